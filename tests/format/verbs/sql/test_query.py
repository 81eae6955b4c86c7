"""Batches of a table, as the engine gets them."""

from __future__ import annotations

import pytest

pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install 'kafkalog[sql]'")
pytest.importorskip("datafusion", reason="datafusion is not installed: pip install 'kafkalog[sql]'")

from format.verbs.sql.query import _joined  # noqa: E402


def test_batches_grow_keep_the_order_and_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("format.verbs.sql.query._MOST_ROWS", 40)
    small = [pa.record_batch({"n": range(first, first + 10)}) for first in range(0, 200, 10)]
    joined = list(_joined([small[0].slice(0, 0), *small[:3], small[3].slice(0, 0), *small[3:]], lambda batch: batch))
    assert [batch.num_rows for batch in joined] == [10, 10, 20, 40, 40, 40, 40]
    assert [number for batch in joined for number in batch["n"].to_pylist()] == list(range(200))
    monkeypatch.setattr("format.verbs.sql.query._MOST_BYTES", 1)
    assert [batch.num_rows for batch in _joined(small, lambda batch: batch)] == [10] * 20


def test_a_row_waits_for_few_rows_to_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("format.verbs.sql.query._MOST_ROWS", 40)
    read = iter([pa.record_batch({"n": [number] * 10}) for number in range(100)])
    found = _joined(read, lambda batch: batch.slice(0, batch["n"][0].as_py() in (7, 20)))
    assert [batch["n"].to_pylist() for batch in (next(found), next(found))] == [[7], [20]]
    assert next(read)["n"][0].as_py() < 30


def test_batches_without_columns_keep_their_rows() -> None:
    none = pa.RecordBatch.from_struct_array(pa.StructArray.from_buffers(pa.struct([]), 5, [None]))
    assert sum(batch.num_rows for batch in _joined([none] * 7, lambda batch: batch)) == 35
