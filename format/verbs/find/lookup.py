"""The outcome of a look-up: the record that it found or why there is none, its steps and its findings."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import msgspec

from format.findings import Finding
from format.location import Location
from format.timestamps import DAY_MS


class TraceStep(msgspec.Struct, frozen=True):
    """One step of a look-up; ``stage`` is segment, time_index, offset_index, scan or match.

    The location's position is a byte in the file at its path, its offset the logical offset that the step found.
    """

    stage: str
    location: Location
    detail: str


class Visibility(StrEnum):
    """Which consumers get the record at an offset, as far as this replica says: they read from the leader."""

    VISIBLE = "visible"
    READ_UNCOMMITTED_ONLY = "read_uncommitted_only"  # in an open transaction, or behind one
    ABORTED = "aborted"
    CONTROL = "control"
    NOT_REPLICATED = "not_replicated"  # at or past the high watermark
    BELOW_LOG_START = "below_log_start"
    COMPACTED = "compacted"  # or never written
    DAMAGED = "damaged"
    PAST_END = "past_end"


class MatchedBatch(msgspec.Struct, frozen=True):
    """The batch that holds a record; producer id and epoch are -1 for none, ``crc_valid`` False for a wrong CRC."""

    base_offset: int
    is_control: bool
    is_transactional: bool
    producer_id: int
    producer_epoch: int
    crc_valid: bool


class Match(msgspec.Struct, frozen=True):
    """The record that a look-up found: the location of its batch, with the record's own offset.

    ``timestamp`` is in ms, None in message format 0; ``leader_epoch`` is None in formats without one. ``note`` is a
    remark about the offset. ``file_written_at`` (ms) is the modification time of the log. ``bytes_read`` counts the
    bytes that the look-up read from all files, and ``visibility_bytes_read`` those after the newest producer snapshot
    that were read for the visibility. Where that would be too many, ``visibility_bytes_needed`` is their number.
    ``is_replicated``: the offset is below the high watermark of the checkpoint; None without one.
    """

    location: Location
    timestamp: int | None
    leader_epoch: int | None
    note: str = ""
    bytes_read: int = 0
    batch: MatchedBatch | None = None
    visibility: Visibility | None = None
    is_replicated: bool | None = None
    transaction_state: str | None = None
    visibility_bytes_read: int = 0
    visibility_bytes_needed: int = 0
    file_written_at: int | None = None

    @property
    def is_ahead_of_its_file(self) -> bool:
        """Whether the timestamp is more than a day after the last write of the log, as only a wrong clock makes it."""
        if self.timestamp is None or self.file_written_at is None:
            return False
        return self.timestamp > self.file_written_at + DAY_MS


class NotFound(msgspec.Struct, frozen=True):
    """Why there is no such record, and the nearest record, if any.

    ``answer`` is what is known of the offset nevertheless; its ``visibility`` is None where it is in remote storage.
    """

    reason: str
    nearest: Match | None = None
    bytes_read: int = 0
    visibility: Visibility | None = None
    answer: Match | None = None


#: What a look-up yields while it runs, and its result.
LookupStep = TraceStep | Finding
Result = Match | NotFound


def step_row(step: TraceStep) -> tuple[Any, ...]:
    """A step as a row of columns.STEP."""
    where = step.location
    return step.stage, where.path, where.position, where.offset, step.detail


def match_row(match: Match, is_leader: bool | None = None) -> tuple[Any, ...]:
    """A match as a row of columns.MATCH; ``is_leader`` says whether the replica is known to be the leader's."""
    where, batch = match.location, match.batch
    return (
        where.topic,
        where.partition,
        where.offset,
        match.timestamp,
        where.base_offset,
        where.position,
        match.leader_epoch,
        None if match.visibility is None else match.visibility.value,
        None if batch is None else batch.is_control,
        None if batch is None else batch.is_transactional,
        match.transaction_state,
        None if batch is None else batch.producer_id,
        None if batch is None else batch.producer_epoch,
        None if batch is None else batch.base_offset,
        None if batch is None else batch.crc_valid,
        is_leader,
    )
