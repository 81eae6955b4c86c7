"""The visibility of records in a list is what ``find`` says of each of them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from format.node.partition import read_partition
from format.rows.record_rows import RowBlock
from format.verbs.dump import DumpTerms, dumped_rows
from format.verbs.find.find import find_offset
from format.verbs.find.lookup import Visibility
from format.verbs.find.record_visibility import RecordVisibility
from tests.building import batch, write_segment
from tests.format.verbs.find.lookups import write_checkpoint
from tests.format.verbs.txns.transaction_logs import data, marker


def compared(directory: Path) -> Counter[Visibility | None]:
    """How many records have each visibility. Fails where ``find`` says otherwise, unless below the log start."""
    known = RecordVisibility()
    partition = read_partition(directory)
    counts: Counter[Visibility | None] = Counter()
    for block in dumped_rows(directory, DumpTerms(records=True)):
        assert isinstance(block, RowBlock)
        for row in block.rows:
            seen = known.of(row, directory)
            assert seen == find_offset(partition, row[2]).visibility, row[2]
            counts[seen] += 1
    return counts


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("payments-0", {"visible", "control", "aborted", "read_uncommitted_only"}),
        ("switched-0", {"visible"}),
    ],
)
def test_what_find_says(data_dir: Path, name: str, expected: set[str]) -> None:
    directory = data_dir / "field" / "4.3.1-transactions-heads-compaction" / "node-1-0" / name
    assert {each for each in compared(directory) if each is not None} >= expected


def test_bounds_of_checkpoints(tmp_path: Path) -> None:
    directory = tmp_path / "topic-0"
    write_segment(directory, 0, [batch(number, [b"v"]) for number in range(10)])
    write_checkpoint(tmp_path, "log-start-offset-checkpoint", "topic", 0, 2)
    write_checkpoint(tmp_path, "replication-offset-checkpoint", "topic", 0, 7)
    assert compared(directory) == {"below_log_start": 2, "visible": 5, "not_replicated": 3}


def test_a_transaction_that_ends_behind_damage_is_not_open(tmp_path: Path) -> None:
    directory = tmp_path / "topic-0"
    broken = bytearray(batch(2, [b"v"]))
    broken[8:12] = b"\xff\xff\xff\xff"  # the length
    write_segment(directory, 0, [data(0, 7), bytes(broken), marker(3, 7, commit=True), batch(4, [b"v"])])
    known = RecordVisibility()
    seen = [
        known.of(row, directory)
        for block in dumped_rows(directory, DumpTerms(records=True))
        if isinstance(block, RowBlock)
        for row in block.rows
    ]
    assert Visibility.READ_UNCOMMITTED_ONLY not in seen
