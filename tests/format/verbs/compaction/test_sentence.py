"""What compaction says of a log in which damage stops the cleaner, with and without other replicas."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from format.findings import Finding, finding
from format.location import Location
from format.node.partition import Partition, read_partition
from format.node.target import Target
from format.state.cluster_context import ContextTerms, read_context
from format.verbs.compaction.compaction import Compaction, CompactionTerms
from tests.building import batch, forbid_reading, write_segment
from tests.metadata_logs import write_metadata_log, write_node

_STUCK = "Damage stops the cleaner in orders-0{}: it cannot read a batch there, and cleans the log no more. "
_VERIFY = "'kafkalog verify' of the log directories of all these nodes says which replica is intact there. "


def _stuck(
    partition: Partition, policies: str = "compact", blocked_by: str | None = None, damage: Finding | None = None
) -> Any:
    configs, range_ = SimpleNamespace(policies=frozenset(policies.split(","))), SimpleNamespace(blocked_by=blocked_by)
    return SimpleNamespace(partition=partition, damage=damage, configs=configs, range=range_)


@pytest.mark.parametrize(
    ("policies", "blocked_by", "words"),
    [
        ("compact", None, "more. "),
        ("compact,delete", None, "more, nor deletes of it. "),
        ("compact,delete", "dirty_ratio", "more. "),  # the cleaner does not take it yet
    ],
)
def test_nothing_is_deleted_of_a_stuck_log(tmp_path: Path, policies: str, blocked_by: str | None, words: str) -> None:
    """The cleaner deletes of compacted logs, too: 4.3.1 kept all of such a log with a retention of 1 ms."""
    write_segment(tmp_path / "orders-0", 0, [batch(0)])
    judged = Compaction(read_context([Target(tmp_path)], ContextTerms()), CompactionTerms(0))
    judged.stuck = [_stuck(read_partition(tmp_path / "orders-0"), policies, blocked_by)]
    assert judged.stuck_words().endswith(f"cleans the log no {words}")


@pytest.mark.parametrize(
    ("metadata", "words"),
    [
        (None, _STUCK.format("")),
        ({"replicas": (2,), "isr": (2,), "leader": 2}, _STUCK.format("")),
        ({"leader": 1}, _STUCK.format(" (node 1 leads, other replicas: nodes 1 and 3)") + _VERIFY),
        ({"leader": -1}, _STUCK.format(" (no node leads, other replicas: nodes 1 and 3)") + _VERIFY),
    ],
)
def test_the_other_replicas_of_a_stuck_log(tmp_path: Path, metadata: dict[str, Any] | None, words: str) -> None:
    write_segment(write_node(tmp_path, 2) / "orders-0", 0, [batch(0)])
    if metadata is not None:
        write_metadata_log(tmp_path, **metadata)
    judged = Compaction(read_context([Target(tmp_path)], ContextTerms()), CompactionTerms(0))
    stuck: list[Any] = [_stuck(read_partition(tmp_path / "orders-0"))]
    judged.stuck = stuck
    assert judged.stuck_words() == words


def test_the_batch_at_which_the_cleaner_stops_is_named(tmp_path: Path) -> None:
    write_segment(write_node(tmp_path, 2) / "orders-0", 0, [batch(0)])
    judged = Compaction(read_context([Target(tmp_path)], ContextTerms()), CompactionTerms(0))
    where = Location(str(tmp_path / "orders-0" / f"{100:020}.log"), "orders", 0, 100)
    partition = read_partition(tmp_path / "orders-0")
    for place, words in (
        (where.at(200_594, 50_151, 1120), f"the batch at offset 1120 ({100:020}.log, position 200,594)"),
        (where.at(200_594), f"the batch ({100:020}.log, position 200,594)"),
        (where, "a batch there"),
    ):
        stuck: list[Any] = [_stuck(partition, damage=finding("record-invalid", place, ""))]
        judged.stuck = stuck
        assert judged.stuck_words() == _STUCK.format("").replace("a batch there", words)
        judged.stuck = stuck * 3
        assert "too" not in judged.stuck_words()
        judged.stuck = stuck * 4
        assert judged.stuck_words().endswith("and cleans the log no more. It stops in 1 other log, too. ")


def test_a_log_of_which_a_closed_segment_cannot_be_opened_is_not_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its times are not known: they may be within min.compaction.lag.ms."""
    for number in (0, 1):
        for base_offset in (0, 3):
            write_segment(tmp_path / f"orders-{number}", base_offset, [batch(base_offset)])
    forbid_reading(tmp_path / "orders-1" / f"{0:020d}.log", monkeypatch)
    context = read_context([Target(tmp_path)], ContextTerms(options={"cleanup.policy": "compact"}))
    judged = Compaction(context, CompactionTerms(0))
    names = [getattr(each, "code", None) or each.partition.name for each in judged.of_target(Target(tmp_path))]
    assert names[0] == "orders-0"
    assert set(names[1:]) == {"file-unreadable"}
    assert judged.logs == 1
