"""Committed offsets outside their logs: past the log end, and before the log start."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from format.columns import GROUP, GROUP_OFFSET
from format.layout import LOG_START_OFFSET_CHECKPOINT
from format.verbs.groups.group_list import GroupTerms, group_gravity, is_up_to_date, offset_gravity
from tests.building import BASE_TIMESTAMP, batch, write_segment
from tests.format.verbs.groups.commit_logs import Answer, batches_of, commit

OFFSET, LAG, PENDING = map(GROUP_OFFSET.names.index, ("offset", "lag", "pending_offset"))


def _node(
    path: Path, *committed: int, first: int = 0, end: int = 10, log_start: int | None = None, checkpoint: bool = True
) -> Path:
    """A node whose group a has committed offsets in partitions of orders, each with the log from first to end."""
    commits = ((commit("a", number, offset), None) for number, offset in enumerate(committed))
    write_segment(path / "__consumer_offsets-0", 0, batches_of(*commits))
    for number in range(len(committed)):
        write_segment(path / f"orders-{number}", first, [batch(first, [b"x"] * (end - first))])
    if checkpoint:
        starts = [] if log_start is None else [f"orders {number} {log_start}\n" for number in range(len(committed))]
        (path / LOG_START_OFFSET_CHECKPOINT).write_text(f"0\n{len(starts)}\n{''.join(starts)}")
    return path


def _said(answer: Answer) -> list[tuple[int, int | None, str | None]]:
    return [(row["offset"], row["lag"], row["out_of_range"]) for row in answer.offsets]


def test_past_the_log_end_the_lag_is_below_zero(tmp_path: Path) -> None:
    answer = Answer(_node(tmp_path, 4, 10, 25))
    assert _said(answer) == [(4, 6, None), (10, 0, None), (25, -15, "past_log_end")]
    group = answer.groups["a"]
    assert (group["total_lag"], group["partitions_out_of_range"], group["partitions_without_lag"]) == (6, 1, 0)
    assert answer.sentences.startswith(
        "Group a has committed offset 25 on orders-2, past the log end 10 at the paths: a consumer continues where its "
        "auto.offset.reset says, unless the leader's log is longer."
    )


def test_a_lag_of_minus_one_is_known(tmp_path: Path) -> None:
    answer = Answer(_node(tmp_path, 11))
    assert _said(answer) == [(11, -1, "past_log_end")]
    assert answer.groups["a"]["partitions_without_lag"] == 0
    assert not answer.not_checked


@pytest.mark.parametrize(("first", "log_start"), [(5, None), (0, 5), (5, 2)], ids=["deleted", "raised", "stale"])
def test_before_the_log_start(tmp_path: Path, first: int, log_start: int | None) -> None:
    answer = Answer(_node(tmp_path, 4, 5, first=first, log_start=log_start))
    assert _said(answer) == [(4, 6, "before_log_start"), (5, 5, None)]
    assert answer.sentences.startswith(
        "Group a has committed offset 4 on orders-0, before the log start 5 at the paths: a consumer continues where "
        "its auto.offset.reset says."
    )


def test_the_head_may_be_elsewhere(tmp_path: Path) -> None:
    without = Answer(_node(tmp_path / "without", 4, first=5, checkpoint=False))
    remote = _node(tmp_path / "remote", 4, first=5, log_start=2)
    (remote / ".kafka_cleanshutdown").write_text('{"version":0,"brokerEpoch":-1}')
    assert _said(without) == _said(Answer(remote)) == [(4, 6, None)]


def test_the_replica_that_reaches_furthest_counts(tmp_path: Path) -> None:
    nodes = [_node(tmp_path / "node-1", 12, 3, first=5), _node(tmp_path / "node-2", 12, 3, first=2, end=20)]
    assert _said(Answer(nodes[0])) == [(12, -2, "past_log_end"), (3, 7, "before_log_start")]
    assert _said(Answer(*nodes)) == [(12, 8, None), (3, 17, None)]


def test_several_are_counted_and_one_past_the_end_is_named(tmp_path: Path) -> None:
    answer = Answer(_node(tmp_path, 1, 2, 30, first=5))
    assert "offset 30 on orders-2, past the log end 10" in answer.sentences
    assert "2 other committed offsets are out of range, too." in answer.sentences


def test_that_none_is_behind_needs_the_lag_of_all(tmp_path: Path) -> None:
    node = _node(tmp_path / "whole", 10, 10)
    assert Answer(node).sentences == "1 group; none is behind."
    shutil.rmtree(node / "orders-1")
    assert Answer(node).sentences == "1 group; none is behind on the 1 committed partition whose lag is known."
    shutil.rmtree(node / "orders-0")
    assert Answer(node).sentences == "1 group; no lag is known."


def test_what_is_odd_is_sorted_first(tmp_path: Path) -> None:
    answer = Answer(_node(tmp_path, 10, 8, 4, 25))
    offsets = sorted(answer.raw_offsets, key=offset_gravity)
    assert [row[OFFSET] for row in offsets] == [25, 4, 8, 10]
    assert [is_up_to_date(row) for row in offsets] == [False, False, False, True]
    unknown = (*offsets[3][:LAG], None, *offsets[3][LAG + 1 :])
    assert not is_up_to_date(unknown)
    pending = (*offsets[3][:PENDING], 11, *offsets[3][PENDING + 1 :])
    assert not is_up_to_date(pending)
    behind, outside = (("a", {"total_lag": 9}), ("b", {"total_lag": 1, "partitions_out_of_range": 1}))
    groups = [
        tuple({"group": name, **values}.get(column) for column in GROUP.names) for name, values in (behind, outside)
    ]
    assert [row[0] for row in sorted(groups, key=group_gravity)] == ["b", "a"]


def test_of_a_time_in_the_past_nothing_is_said(tmp_path: Path) -> None:
    """Neither that the group would be reset, nor that it is not behind."""
    answer = Answer(_node(tmp_path, 4, 25, first=5), terms=GroupTerms(until=BASE_TIMESTAMP + 30))
    assert _said(answer) == [(4, 6, None), (25, None, None)]
    assert "auto.offset.reset" not in answer.sentences
    assert answer.groups["a"]["partitions_without_lag"] == 1
    assert answer.not_checked[-1].endswith("or committed past the log end")


def test_a_commit_shows_that_the_log_of_then_reached_it(tmp_path: Path) -> None:
    """The clock of the producer was ahead: by the timestamps the log ended at 10."""
    node = _node(tmp_path, 12)
    later = batch(10, [b"x"] * 10, timestamp=BASE_TIMESTAMP + 60_000)
    with (node / "orders-0" / f"{0:020}.log").open("ab") as log:
        log.write(later)
    assert _said(Answer(node, terms=GroupTerms(until=BASE_TIMESTAMP + 30))) == [(12, 0, None)]
