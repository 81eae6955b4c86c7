"""To which offset Kafka truncates a follower: the cases of KIP-101 and KIP-279."""

from __future__ import annotations

import pytest

from format.files.leader_epoch_checkpoint import EpochEntry
from format.state.leader_epochs import ReplicaEpochs, replica_epochs


def log(end: int, *entries: tuple[int, int], start: int = 0, high_watermark: int | None = None) -> ReplicaEpochs:
    return ReplicaEpochs(tuple(EpochEntry(*each) for each in entries), start, end, high_watermark)


@pytest.mark.parametrize(
    ("follower", "leader", "offset"),
    [
        # The same history: a follower keeps what the leader has, and no more.
        (log(10, (0, 0)), log(20, (0, 0)), 10),
        (log(20, (0, 0)), log(10, (0, 0)), 10),
        # KIP-101, scenario 1: the high watermark of the follower is old, its records are kept all the same.
        (log(2, (0, 0), high_watermark=1), log(2, (0, 0), (1, 2)), 2),
        # KIP-101, scenario 2: both wrote at offset 1, under other epochs.
        (log(2, (0, 0)), log(2, (0, 0), (1, 1)), 1),
        (log(1300, (0, 0)), log(1750, (0, 0), (1, 1250)), 1250),
        (log(1750, (0, 0), (1, 1250)), log(1300, (0, 0)), 1250),
        # KIP-279: after fast failovers the follower has an epoch that the leader never saw; one question is not enough.
        (log(30, (0, 0), (1, 10), (2, 20)), log(40, (0, 0), (3, 15)), 10),
        (log(30, (0, 0), (2, 20)), log(40, (0, 0), (1, 10), (3, 15)), 10),
        (log(50, (1, 0), (3, 20), (5, 40)), log(60, (1, 0), (2, 30), (4, 45)), 20),
        # Nothing in common.
        (log(30, (5, 0)), log(40, (6, 0)), 0),
        # Logs of formats without epochs: down to the high watermark.
        (log(30, high_watermark=12), log(40), 12),
        (log(30), log(20), 20),
        # Behind the first offset of the leader: the follower starts again there.
        (log(30, (0, 0)), log(90, (0, 50), start=50), 50),
    ],
)
def test_truncation(follower: ReplicaEpochs, leader: ReplicaEpochs, offset: int) -> None:
    assert follower.truncated_by(leader) == offset


def test_what_a_broker_makes_of_the_checkpoint_and_the_batches() -> None:
    noted = [EpochEntry(0, 0), EpochEntry(2, 10), EpochEntry(1, 20), EpochEntry(4, 90)]
    found = replica_epochs(
        noted, [EpochEntry(0, 0), EpochEntry(3, 30)], log_start_offset=5, log_end_offset=50, high_watermark=None
    )
    assert found.entries == (EpochEntry(0, 5), EpochEntry(1, 20), EpochEntry(3, 30))
    assert [found.epoch_at(each) for each in (4, 5, 19, 20, 49, 50)] == [None, 0, 0, 1, 3, None]
