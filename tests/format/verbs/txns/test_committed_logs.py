"""--read-committed of dump, grep and extract: what a read_committed consumer of a real broker got."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from format.scan.selection import Selection
from tests.building import batch, write_segment
from tests.dumping import dump
from tests.format.verbs.txns.transaction_logs import data, marker
from tests.running import Run

COMMITTED = Selection(read_committed=True)


def dumped(directory: Path, selection: Selection = COMMITTED) -> list[int]:
    """The offsets of the records that dump shows."""
    offsets: list[int] = []
    for block in dump(directory, records=True, selection=selection):
        assert hasattr(block, "rows")
        offsets += [row[block.schema.names.index("offset")] for row in block.rows]
    return offsets


@pytest.mark.parametrize("name", ["payments-0", "payments-1", "accounts-0", "accounts-1"])
def test_what_a_consumer_got(
    data_dir: Path, tmp_path: Path, run_kafkalog_many: Callable[..., list[Run]], name: str
) -> None:
    corpus = data_dir / "trials" / "transactions"
    partition = corpus / "node-1" / name
    expected = json.loads((corpus / "truth" / "transactions.json").read_text())["committed"][name]
    assert dumped(partition) == expected
    output = tmp_path / "extracted"
    dump_run, grep_run, extract_run = run_kafkalog_many(
        [
            ("dump", "--records", "--read-committed", "--format", "jsonl", partition),
            ("grep", "--all", "--read-committed", "--format", "jsonl", partition),
            ("extract", "--read-committed", "--to", "jsonl", "--output", output, partition),
        ]
    )
    assert [row["offset"] for row in dump_run.check(0).rows("record")] == expected
    assert [row["offset"] for row in grep_run.check(0).rows("record")] == expected
    extract_run.check(0)
    (file,) = output.rglob("*.jsonl")
    assert [json.loads(line)["offset"] for line in file.read_text().splitlines()] == expected


def test_with_ranges_and_over_segments(tmp_path: Path) -> None:
    directory = tmp_path / "payments-0"
    write_segment(directory, 0, [data(0, 7), data(2, 8), batch(4), marker(7, 7, commit=False)])
    write_segment(
        directory, 8, [data(8, 7), marker(10, 8, commit=True), marker(11, 7, commit=True), data(12, 9), batch(14)]
    )
    assert dumped(directory) == [2, 3, 4, 5, 6, 8, 9]
    assert dumped(directory, Selection(from_offset=3, to_offset=9, read_committed=True)) == [3, 4, 5, 6, 8]
    (tmp_path / "log-start-offset-checkpoint").write_text("0\n1\npayments 0 5\n")
    (tmp_path / "replication-offset-checkpoint").write_text("0\n1\npayments 0 11\n")
    assert dumped(directory) == [5, 6]  # the marker of the second transaction of 7 is not replicated


@pytest.mark.parametrize("log_start", [4, 12])
def test_no_part_of_a_batch_in_which_the_last_stable_offset_lies(tmp_path: Path, log_start: int) -> None:
    """As consumers of 3.9.1 and 4.3.1 got none: records were deleted up to the middle of a batch, and more.

    A transaction is open from 0 on, so the last stable offset is the log start.
    """
    directory = tmp_path / "payments-0"
    write_segment(directory, 0, [data(0, 7, count=10), batch(10, [b"x"] * 5), batch(15)])
    (tmp_path / "log-start-offset-checkpoint").write_text(f"0\n1\npayments 0 {log_start}\n")
    assert dumped(directory) == []
    assert dumped(directory, Selection(from_log_start=True)) == list(range(log_start, 18))
