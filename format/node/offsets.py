"""The offsets that bound the log of a partition, and what a broker serves of it."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from msgspec.structs import replace

from format import layout
from format.findings import Finding, finding
from format.location import Location
from format.node.log_dir import Checkpoints
from format.node.partition import Partition
from format.wording import counted, offsets_are

#: The marks of directories to which checkpoints apply. Other directories are not replicas any longer, and the topic may
#: have been created again.
MARKS_OF_REPLICAS = (None, "future")


class PartitionOffsets(msgspec.Struct, frozen=True):
    """The offsets of one partition; unknown ones are None.

    ``local_start_offset`` is the base offset of the first segment here. The four offsets after it come from the
    checkpoints; ``unknown`` has the reason for each that is not known, by the name of the field. ``newest_snapshot`` is
    the offset of the last producer snapshot; ``log_end_offset`` comes from reading the log.
    ``last_stable_offset`` comes from its transactions, too: read_committed consumers stop there.
    """

    local_start_offset: int | None = None
    log_start_checkpoint: int | None = None
    high_watermark: int | None = None
    recovery_point: int | None = None
    cleaner_offset: int | None = None
    is_clean_shutdown: bool | None = None
    is_broker_running: bool = False
    has_remote_storage: bool = False
    has_log_start_checkpoint: bool = False
    newest_snapshot: int | None = None
    log_end_offset: int | None = None
    last_stable_offset: int | None = None
    unknown: dict[str, str] = msgspec.field(default_factory=dict)

    @property
    def missing_head(self) -> tuple[int, int] | None:
        """The first and last offset between the checkpoint of the log start and the first segment here; None for none.

        A broker writes a log start below its first segment if the head is in remote storage. Otherwise the checkpoint
        is older than the deletion of segments: it is written once a minute, and when the broker stops (LogManager).
        """
        if self.local_start_offset is None or self.log_start_checkpoint is None:
            return None
        if self.log_start_checkpoint >= self.local_start_offset:
            return None
        return self.log_start_checkpoint, self.local_start_offset - 1

    @property
    def begins_with_first_segment(self) -> bool:
        """Whether the log-start-offset-checkpoint shows that the log begins where its files do.

        It has all logs that begin elsewhere, as those whose head is in remote storage (LogManager).
        """
        return self.has_log_start_checkpoint and self.log_start_checkpoint is None

    @property
    def is_head_remote(self) -> bool:
        """Whether the head of the log is in remote storage."""
        return self.missing_head is not None and bool(self.is_clean_shutdown or self.has_remote_storage)

    @property
    def log_start_offset(self) -> int | None:
        """The first offset that a broker serves (storage LogLoader)."""
        if self.local_start_offset is None or self.is_head_remote:
            return self.log_start_checkpoint
        return max(self.local_start_offset, self.log_start_checkpoint or 0)

    @property
    def committed_end(self) -> int | None:
        """The high watermark, which after a clean stop is at most the recovery point, where the log ended."""
        if self.high_watermark is None or not self.is_clean_shutdown or self.recovery_point is None:
            return self.high_watermark
        return min(self.high_watermark, self.recovery_point)

    @property
    def known_end(self) -> int | None:
        """The offset up to which consumers could read; if it is unknown, an offset that the log has reached."""
        if self.committed_end is not None:
            return self.committed_end
        return max((each for each in (self.recovery_point, self.newest_snapshot) if each is not None), default=None)

    def keeps_indexes(self, upper_offset: int | None) -> bool:
        """Whether a start leaves the indexes of a segment that ends before an offset as they are.

        It builds those past the recovery point again, unless the broker stopped cleanly (LogLoader.recoverLog).
        """
        if self.is_clean_shutdown or upper_offset is None or self.recovery_point is None:
            return bool(self.is_clean_shutdown)
        return upper_offset <= self.recovery_point

    def rebuilds_indexes(self, upper_offset: int | None) -> bool:
        """Whether it is known that a start builds the indexes of such a segment again."""
        is_known = self.recovery_point is not None and not self.is_broker_running
        return is_known and not self.keeps_indexes(upper_offset)

    def with_log_end(self, log_end_offset: int | None) -> PartitionOffsets:
        """The same offsets with the log end offset, None if the log could not be read to its end."""
        return replace(self, log_end_offset=log_end_offset)

    def with_transactions(self, log_end_offset: int, first_unstable_offset: int | None) -> PartitionOffsets:
        """The same offsets with the log end offset and the last stable offset (UnifiedLog.fetchLastStableOffset).

        ``first_unstable_offset`` is that of the oldest transaction that is open, or whose end marker is not replicated.
        A high watermark that is not known does not bound the last stable offset.
        """
        bounds = (log_end_offset, self.high_watermark, first_unstable_offset)
        stable = max(min(each for each in bounds if each is not None), self.log_start_offset or 0)
        return replace(self, log_end_offset=log_end_offset, last_stable_offset=stable)

    def checkpointed(self) -> dict[str, int]:
        """The offsets of the checkpoints, by the name of the file; unknown ones are left out."""
        values = {file_name: getattr(self, name) for name, file_name in _FIELDS.items()}
        return {file_name: offset for file_name, offset in values.items() if offset is not None}


#: The name of the offset in each checkpoint, for messages.
CHECKPOINT_WORDS = {
    layout.REPLICATION_OFFSET_CHECKPOINT: "high watermark",
    layout.RECOVERY_POINT_CHECKPOINT: "recovery point",
    layout.LOG_START_OFFSET_CHECKPOINT: "log start offset",
    layout.CLEANER_OFFSET_CHECKPOINT: "cleaner offset",
}
_FIELDS = {
    "high_watermark": layout.REPLICATION_OFFSET_CHECKPOINT,
    "recovery_point": layout.RECOVERY_POINT_CHECKPOINT,
    "log_start_checkpoint": layout.LOG_START_OFFSET_CHECKPOINT,
    "cleaner_offset": layout.CLEANER_OFFSET_CHECKPOINT,
}


def remote_head_findings(offsets: PartitionOffsets, location: Location) -> Iterator[Finding]:
    """The finding for a log whose head is in remote storage, which is not read."""
    head = offsets.missing_head
    if head is not None and offsets.is_head_remote:
        message = f"{offsets_are(*head)} in remote storage, and not read"
        yield finding("log-head-remote", location.at(offset=head[0]), message)


def unread_heads_words(count: int) -> str:
    """What was not checked, in words, where the heads of so many logs are in remote storage."""
    return f"the part of {counted(count, 'log')} in remote storage: give its address with --remote"


def offsets_of(partition: Partition, checkpoints: Checkpoints) -> PartitionOffsets:
    """The offsets of a partition from file names and checkpoints; its log is not read."""
    unknown: dict[str, str] = {}
    key = partition.key if partition.mark in MARKS_OF_REPLICAS else None
    for name, file_name in _FIELDS.items():
        if key is None:
            unknown[name] = "the directory is not a replica"
        elif file_name not in checkpoints.by_name:
            unknown[name] = f"there is no readable {file_name}"
        elif key not in checkpoints.by_name[file_name]:
            unknown[name] = f"the partition is not in {file_name}"
    return PartitionOffsets(
        local_start_offset=partition.first_base_offset,
        is_clean_shutdown=checkpoints.is_clean_shutdown,
        is_broker_running=checkpoints.is_lock_held is True,
        has_remote_storage=checkpoints.has_remote_storage,
        has_log_start_checkpoint=layout.LOG_START_OFFSET_CHECKPOINT in checkpoints.by_name,
        newest_snapshot=max(partition.snapshots, default=None),
        unknown=unknown,
        **{name: checkpoints.offset(file_name, key) for name, file_name in _FIELDS.items()},
    )
