"""Records, batches and findings as Arrow hold what the rows hold, value by value."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install 'kafkalog[spark]'")

from format.columns import BATCH, FINDING, RECORD, SCHEMAS, record_schema  # noqa: E402
from format.findings import finding  # noqa: E402
from format.io.source import FileSource  # noqa: E402
from format.location import Location  # noqa: E402
from format.log.read_records import record_tables  # noqa: E402
from format.log.record_table import RecordTable  # noqa: E402
from format.log.walker import batch_chunks  # noqa: E402
from format.node.partition import location_of_file  # noqa: E402
from format.rows import arrow_columns  # noqa: E402
from format.rows.record_rows import RowValues, batch_rows, record_block, record_rows  # noqa: E402
from tests.building import batch, wrapper  # noqa: E402
from tests.corpora import Corpus  # noqa: E402
from tests.sources import BytesSource  # noqa: E402


def _rows(batch_of_rows: Any) -> list[tuple[Any, ...]]:
    columns = {name: batch_of_rows.column(name).to_pylist() for name in batch_of_rows.schema.names}
    if "headers" in columns:
        columns["headers"] = [
            value and [(each["key"], each["value"]) for each in value] for value in columns["headers"]
        ]
    return list(zip(*columns.values(), strict=True))


def _tables(content: bytes) -> list[RecordTable]:
    return [table for chunk in batch_chunks(BytesSource(content)) for table in record_tables(chunk)]


def test_every_record_and_batch_of_every_corpus_is_the_same_as_a_row(corpus: Corpus) -> None:
    seen = 0
    for path in corpus.files(".log"):
        location = location_of_file(path)
        with FileSource(path) as source:
            for chunk in batch_chunks(source):
                assert _rows(arrow_columns.columns_batch(BATCH, RowValues(chunk.table, location))) == list(
                    batch_rows(chunk.table, location)
                )
                for table in record_tables(chunk):
                    wide = record_schema(frozenset(("path", "is_below_log_start")))
                    block = record_block(table, location, wide, int(table.offset[0]) + 1)
                    parts = list(arrow_columns.block_batches(block, wide.names, batch_bytes=10_000))
                    assert [row for part in parts for row in _rows(part)] == list(block.rows)
                    parts = list(arrow_columns.block_batches(record_block(table, location), batch_bytes=10_000))
                    assert [row for part in parts for row in _rows(part)] == list(record_rows(table, location))
                    seen += len(table)
    assert seen > 100


def test_null_empty_and_hostile_bytes() -> None:
    headers = ((b"h", b"1"), (b"", None), (b"\xff\xfe", b""), (b"h", b"\x00"))
    content = b"".join(
        (
            batch(0, [b"a", None, b"", b"\xff" * 40], key=None, headers=headers),
            batch(4, [b"x" * 300_000], key=b"", codec=4),
            batch(5, [b"y"], key=b"\x00", headers=((b"only", b"one"),)),
            wrapper(1, 6),
            wrapper(0, 9),
        )
    )
    for table in _tables(content):
        where = Location("f")
        made = arrow_columns.columns_batch(RECORD, RowValues.of_records(table, where))
        assert _rows(made) == list(record_rows(table, where))


def test_rows_in_any_order_and_columns_by_name() -> None:
    (table,) = _tables(batch(0, [b"a%d" % number for number in range(50)], headers=((b"k", b"v"),)))
    picked = table.rows(np.array([40, 3, 17, 4]))
    got = arrow_columns.columns_batch(RECORD, RowValues.of_records(picked, Location("f")), ["value", "offset"])
    assert got.schema.names == ["value", "offset"]
    assert got.to_pydict() == {"value": [b"a40", b"a3", b"a17", b"a4"], "offset": [40, 3, 17, 4]}
    with pytest.raises(KeyError):
        arrow_columns.columns_batch(RECORD, RowValues.of_records(table, Location("f")), ["no such column"])


def test_ranges_of_bytes_may_overlap_and_be_null_or_empty() -> None:
    made = arrow_columns.bytes_array(b"abcdef", np.array([1, 0, 9, 6, 0]), np.array([3, 3, -1, 0, 6]))
    made.validate(full=True)
    assert made.to_pylist() == [b"bcd", b"abc", None, b"", b"abcdef"]


@pytest.mark.parametrize(("start", "length"), [(4, 3), (-1, 2), (7, 1), (2**62, 2**62)])
def test_ranges_outside_the_buffer_are_refused(start: int, length: int) -> None:
    with pytest.raises(ValueError):
        arrow_columns.bytes_array(b"abcdef", np.array([0, start]), np.array([1, length]))


def test_parts_are_bounded_and_whole() -> None:
    (table,) = _tables(batch(0, [b"v" * 1000 for _ in range(100)]))
    parts = list(arrow_columns.block_batches(record_block(table, Location("f")), batch_bytes=5000))
    assert [part.num_rows for part in parts] == [4] * 25
    one_by_one = list(arrow_columns.block_batches(record_block(table, Location("f")), batch_bytes=1))
    assert [part.num_rows for part in one_by_one] == [1] * 100


def test_findings_become_rows_and_odd_names_become_text() -> None:
    where = Location("/x/\udcff", "t", 0, 5, 10, 20, 30)
    got = arrow_columns.findings_batch(
        [finding("offset-gap", where, "message", expected=[1], actual=None, lost_offsets=(1, 2))]
    ).to_pylist()[0]
    assert list(got) == list(FINDING.names)
    assert (got["path"], got["expected"], got["actual"], got["lost_offsets"]) == ("/x/\\udcff", "[1]", None, "[1, 2]")
    assert arrow_columns.findings_batch([]).num_rows == 0
    assert arrow_columns.constant("/x/\udcff", 2, "string").to_pylist() == ["/x/\\udcff"] * 2


def test_every_schema_has_an_arrow_schema() -> None:
    for schema in SCHEMAS:
        assert arrow_columns.arrow_schema(schema).names == list(schema.names)
    assert arrow_columns.arrow_schema(RECORD).field("key").type == pa.binary()
    assert arrow_columns.arrow_schema(BATCH).field("crc_valid").type == pa.bool_()


def test_the_headers_of_many_records_at_once(tmp_path: Path) -> None:
    contents = [
        batch(number, [b"v"], headers=((b"k%d" % number, b"x" * number),) * (number % 3)) for number in range(30)
    ]
    (table,) = _tables(b"".join(contents))
    got = arrow_columns.headers_array(table).to_pylist()
    for number, headers in enumerate(got):
        assert [(each["key"], each["value"]) for each in headers] == [(b"k%d" % number, b"x" * number)] * (number % 3)
