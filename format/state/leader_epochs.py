"""The leader epochs of a log: where each begins, and where two logs part."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable

import msgspec

from format.files.leader_epoch_checkpoint import EpochEntry


class ReplicaEpochs(msgspec.Struct, frozen=True):
    """The leader epochs of a log with their start offsets, both rising, and the offsets that bound the log."""

    entries: tuple[EpochEntry, ...]
    log_start_offset: int
    log_end_offset: int
    high_watermark: int | None = None

    @property
    def latest(self) -> int | None:
        """The epoch of the last batch."""
        return self.entries[-1].leader_epoch if self.entries else None

    def epoch_at(self, offset: int) -> int | None:
        """The leader epoch of the record at an offset, None past the end of the log or before the first epoch."""
        if not self.log_start_offset <= offset < self.log_end_offset:
            return None
        at = bisect_right(self.entries, offset, key=lambda entry: entry.start_offset)
        return self.entries[at - 1].leader_epoch if at else None

    def end_offset_for(self, epoch: int) -> tuple[int, int]:
        """The largest epoch up to this one, and the offset after its last record, in the log of a leader.

        A new leader begins a new epoch at the end of its log, so a following epoch is always known.
        """
        after = bisect_right(self.entries, epoch, key=lambda entry: entry.leader_epoch)
        end = self.entries[after].start_offset if after < len(self.entries) else self.log_end_offset
        return (self.entries[after - 1].leader_epoch if after else epoch), end

    def cut_to(self, end_offset: int) -> ReplicaEpochs:
        """The epochs after a truncation, without entries that start at the new end or later."""
        kept = self.entries[: bisect_left(self.entries, end_offset, key=lambda entry: entry.start_offset)]
        return ReplicaEpochs(kept, self.log_start_offset, end_offset, self.high_watermark)

    def truncated_by(self, leader: ReplicaEpochs) -> int:
        """The offset to which this log is truncated as a follower of ``leader``; its own end for no truncation."""
        if self.log_end_offset < leader.log_start_offset:
            return leader.log_start_offset  # out of range: the follower starts again at the leader's log start offset
        follower = self
        while follower.latest is not None:
            sent_epoch = follower.latest
            epoch, end_offset = leader.end_offset_for(sent_epoch)
            if epoch == sent_epoch and end_offset >= follower.log_end_offset:
                return follower.log_end_offset
            own_epoch, own_end = follower.end_offset_for(epoch)
            if own_epoch == epoch:
                return min(end_offset, own_end, follower.log_end_offset)
            cut = min(own_end, follower.log_end_offset)
            if cut >= follower.log_end_offset:
                return min(end_offset, follower.log_end_offset)
            follower = follower.cut_to(cut)
        if follower is self and follower.high_watermark is not None:  # no epoch to send: a log of v0 and v1 messages
            return min(follower.high_watermark, follower.log_end_offset)
        return min(follower.log_end_offset, leader.log_end_offset)


def replica_epochs(
    noted: Iterable[EpochEntry],
    read: Iterable[EpochEntry],
    *,
    log_start_offset: int,
    log_end_offset: int,
    high_watermark: int | None,
) -> ReplicaEpochs:
    """The epochs that a broker has after it has loaded the log.

    ``noted`` are the entries of the leader-epoch-checkpoint. ``read`` are those of the batches, which a broker adds
    where it recovers a log. Entries past the end of the log are dropped (LogLoader).
    """
    entries: list[EpochEntry] = []
    for entry in noted:
        while entries and (
            entries[-1].leader_epoch >= entry.leader_epoch or entries[-1].start_offset >= entry.start_offset
        ):
            entries.pop()
        if entry.start_offset < log_end_offset:
            entries.append(entry)
    for entry in read:
        if not entries or entry.leader_epoch > entries[-1].leader_epoch:
            entries.append(entry)
    while len(entries) > 1 and entries[1].start_offset <= log_start_offset:
        del entries[0]
    if entries and entries[0].start_offset < log_start_offset < log_end_offset:
        entries[0] = EpochEntry(entries[0].leader_epoch, log_start_offset)
    return ReplicaEpochs(tuple(entries), log_start_offset, log_end_offset, high_watermark)
