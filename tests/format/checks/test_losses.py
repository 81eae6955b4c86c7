"""Losses: within what consumers could read, and no offset twice."""

from __future__ import annotations

import pytest

from format.checks.losses import LossAccount, after_stop
from format.findings import finding
from format.location import Location
from format.node.offsets import PartitionOffsets

Range = tuple[int, int]


def counted(offsets: PartitionOffsets, *ranges: Range) -> list[Range | None]:
    account = LossAccount(offsets)
    found = [finding("log-framing-broken", Location("a"), "", lost_offsets=each) for each in ranges]
    return [account.counted(each).lost_offsets for each in found]


@pytest.mark.parametrize(
    ("lost", "expected"),
    [((0, 9), None), ((5, 14), (10, 14)), ((12, 14), (12, 14)), ((90, 120), (90, 99)), ((100, 120), None)],
)
def test_what_was_deleted_or_never_served_is_no_loss(lost: Range, expected: Range | None) -> None:
    offsets = PartitionOffsets(0, log_start_checkpoint=10, high_watermark=100, is_clean_shutdown=True)
    assert counted(offsets, lost) == [expected]


def test_a_high_watermark_that_may_be_old_bounds_nothing() -> None:
    offsets = PartitionOffsets(0, high_watermark=100, is_clean_shutdown=False)
    assert counted(offsets, (90, 120)) == [(90, 120)]


def test_no_offset_is_counted_twice() -> None:
    ranges = ((10, 19), (10, 19), (15, 24), (5, 12), (0, 30), (40, 50))
    assert counted(PartitionOffsets(0), *ranges) == [(10, 19), None, (20, 24), (5, 9), (0, 30), (40, 50)]


@pytest.mark.parametrize("lost", [None, (5, 9)])
@pytest.mark.parametrize("is_clean", [False, True, None])
@pytest.mark.parametrize("topic", ["orders", "__cluster_metadata"])
def test_the_next_step_for_a_torn_end_depends_on_the_stop(
    lost: Range | None, is_clean: bool | None, topic: str
) -> None:
    before = finding("tail-torn", Location("a", topic, 0), "", lost_offsets=lost)
    after = after_stop(before, PartitionOffsets(0, is_clean_shutdown=is_clean))
    is_left = bool(is_clean) and topic == "orders"  # a broker recovers the metadata log at every start
    assert (".kafka_cleanshutdown" in after.next_step) == is_left
    assert ("the lost offsets" in after.next_step) == (is_left and lost is not None)
    assert is_left or after == before
