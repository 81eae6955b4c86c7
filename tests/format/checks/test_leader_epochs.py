"""The leader-epoch-checkpoint of a broker that runs may be written while the log is read."""

from __future__ import annotations

from pathlib import Path

from format.checks.leader_epochs import LeaderEpochCheck
from format.io.source import BytesSource
from format.limits import DEFAULT_LIMITS
from format.location import Location
from format.log.walker import read_batch_table
from tests.building import batch


def test_a_leader_that_changed_since_the_checkpoint_was_read(tmp_path: Path) -> None:
    path = tmp_path / "leader-epoch-checkpoint"
    path.write_text("0\n1\n8 0\n")
    table = read_batch_table(BytesSource(batch(0, leader_epoch=8) + batch(3, leader_epoch=10)))
    check = LeaderEpochCheck(path, Location(str(path)), DEFAULT_LIMITS)
    assert [each.actual for each in check.feed(table, Location("x"))] == [10]
    path.write_text("0\n2\n8 0\n10 3\n")
    assert [*check.feed(table, Location("x"))] == []
