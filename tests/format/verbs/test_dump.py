"""dump --last reads the end of each partition; Arrow of records is made in threads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from format.errors import InputError
from format.findings import Finding
from format.node.target import Target
from format.verbs import dump
from tests.building import batch, batches, write_segment
from tests.running import Run

COUNTS = (1, 4, 9, 10, 17, 1000)


@pytest.mark.slow
@pytest.mark.parametrize("options", [(), ("--records",), ("--records", "--read-committed")])
def test_the_last_rows_are_the_end_of_all_rows(
    tmp_path: Path, data_dir: Path, run_kafkalog_many: Callable[..., list[Run]], options: tuple[str, ...]
) -> None:
    write_segment(tmp_path / "a-0", 0, batches(3))
    write_segment(tmp_path / "a-0", 9, batches(2, 9, codec=4))
    write_segment(tmp_path / "b-0", 0, batches(2))
    for path in (tmp_path, data_dir / "trials" / "transactions" / "node-1" / "payments-0"):
        words = ("dump", *options, "--format", "jsonl")
        everything, *ends = run_kafkalog_many(
            [(*words, path), *((*words, "--last", str(count), path) for count in COUNTS)]
        )
        rows = [row for row in everything.check(0, 1).rows() if row["type"] in ("batch", "record")]
        assert len(rows) >= 3
        for count, last in zip(COUNTS, ends, strict=True):
            expected = []
            for topic in dict.fromkeys(row["topic"] for row in rows):
                expected += [row for row in rows if row["topic"] == topic][-count:]
            assert [row for row in last.check(0, 1).rows() if row["type"] in ("batch", "record")] == expected


def test_either_end(tmp_path: Path, run_kafkalog_many: Callable[..., list[Run]]) -> None:
    write_segment(tmp_path / "a-0", 0, batches(3))
    (run,) = run_kafkalog_many([("dump", "--last", "1", "--limit", "1", tmp_path)])
    assert "give one of --last and --limit" in run.check(2).stderr


@pytest.mark.parametrize(("ahead_bytes", "large_bytes"), [(1 << 20, 1 << 20), (1, 1 << 20), (1 << 20, 1)])
def test_threads_keep_the_order_of_batches_findings_and_errors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ahead_bytes: int, large_bytes: int
) -> None:
    pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install 'kafkalog[arrow]'")
    from format.rows.arrow_columns import block_batches

    damaged = batches(30, 90, codec=4)
    for number in (3, 4, 20):
        damaged[number] = damaged[number][:-1] + bytes([damaged[number][-1] ^ 1])
    mixed = [batch(3 * number, codec=4 if number % 3 == 2 else 0) for number in range(30)]
    write_segment(tmp_path / "a-0", 0, mixed)
    write_segment(tmp_path / "a-0", 90, damaged)
    write_segment(tmp_path / "a-0", 180, batches(30, 180))
    real = dump.logs_below

    def failing(*arguments: Any) -> Iterator[Any]:
        yield from real(*arguments)
        raise InputError("the next directory cannot be listed")

    def items(count: int) -> list[object]:
        monkeypatch.setattr(dump, "processor_count", lambda: count)
        terms = dump.DumpTerms(records=True)
        found: list[object] = []
        try:
            for item in dump.dumped_batches(
                Target(tmp_path), terms, lambda block: block_batches(block, batch_bytes=64)
            ):
                found.append(item if isinstance(item, Finding) else item.to_pylist())
        except InputError as error:
            found.append(str(error))
        return found

    monkeypatch.setattr(dump, "DUMP_CHUNK_BYTES", 300)
    monkeypatch.setattr(dump, "_AHEAD_BYTES", ahead_bytes)
    monkeypatch.setattr(dump, "_LARGE_BYTES", large_bytes)
    monkeypatch.setattr(dump, "logs_below", failing)
    alone = items(1)
    assert sum(isinstance(each, Finding) for each in alone) == 3
    assert sum(len(each) for each in alone if isinstance(each, list)) == 3 * (90 - 3)
    assert alone[-1] == "the next directory cannot be listed"
    assert items(3) == alone
