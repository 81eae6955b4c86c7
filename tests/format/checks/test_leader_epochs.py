"""The leader-epoch-checkpoint against the leader epochs of batches: what lies before its first entry."""

from __future__ import annotations

from pathlib import Path

import pytest

from format.checks.side_files import LeaderEpochCheck
from format.findings import Finding, Severity
from format.limits import DEFAULT_LIMITS
from format.location import Location
from tests.building import batch, wrapper
from tests.sources import BytesSource, read_batch_table


@pytest.mark.parametrize(
    ("entries", "first_offset", "actual"),
    [("1\n8 3", 0, [3]), ("0", 0, [None]), ("1\n8 3", 3, []), ("1\n8 3", None, []), ("1\n8 0", 0, [])],
)
def test_a_checkpoint_that_begins_after_the_log(
    tmp_path: Path, entries: str, first_offset: int | None, actual: list[int | None]
) -> None:
    path = tmp_path / "leader-epoch-checkpoint"
    path.write_text(f"0\n{entries}\n")
    check = LeaderEpochCheck(path, Location(str(path)), DEFAULT_LIMITS, first_offset=first_offset)
    found: list[Finding] = []
    for number in range(3):
        table = read_batch_table(BytesSource(batch(3 * number, leader_epoch=8)))
        found += check.feed(table, Location("x"))
    found += check.end_findings(9)
    assert [each.actual for each in found] == actual
    assert {each.severity for each in found} <= {Severity.INFO}  # brokers leave it on replicas that were fetched anew


def test_a_checkpoint_that_an_older_format_has_emptied(tmp_path: Path) -> None:
    path = tmp_path / "leader-epoch-checkpoint"
    path.write_text("0\n1\n8 6\n")
    check = LeaderEpochCheck(path, Location(str(path)), DEFAULT_LIMITS, first_offset=0)
    for content in (batch(0, leader_epoch=8), wrapper(1, 3), batch(6, leader_epoch=8)):
        assert not [*check.feed(read_batch_table(BytesSource(content)), Location("x"))]
    assert not [*check.end_findings(9)]
