"""The outcome of a look-up: the record that it found or why there is none, its steps and its findings."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import msgspec

from format.errors import KafkaLogError
from format.findings import Finding
from format.location import Location
from format.timestamps import DAY_MS

if TYPE_CHECKING:
    from format.state.cluster_context import Assignment


class TraceStep(msgspec.Struct, frozen=True):
    """One step of a look-up; ``stage`` is segment, time_index, offset_index, scan or match.

    The location's position is a byte in the file at its path, its offset the logical offset that the step found.
    """

    stage: str
    location: Location
    detail: str

    def row(self) -> tuple[Any, ...]:
        """The step as a row of columns.STEP."""
        where = self.location
        return self.stage, where.path, where.position, where.offset, self.detail


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


class FoundRecord(msgspec.Struct, frozen=True):
    """The record that a look-up found: the location of its batch, with the record's own offset.

    ``timestamp`` is in ms, None in message format 0; ``leader_epoch`` is None in formats without one. ``note`` is a
    remark about the offset. ``file_written_at`` (ms) is the modification time of the log. ``visibility_bytes_read``
    counts the bytes after the newest producer snapshot that were read for the visibility. Where that would be too many,
    ``visibility_bytes_needed`` is their number. ``unsure`` are the conditions under which the record is served,
    ``hidden`` why a broker's search for the offset does not get to the record.
    """

    location: Location
    timestamp: int | None = None
    leader_epoch: int | None = None
    note: str = ""
    batch: MatchedBatch | None = None
    visibility: Visibility | None = None
    unsure: str = ""
    hidden: str = ""
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

    def row(self, assignment: Assignment | None = None, node_id: int | None = None) -> tuple[Any, ...]:
        """The match as a row of columns.MATCH, with what the metadata says of the partition and of this node."""
        state = None if assignment is None else assignment.state
        where, batch = self.location, self.batch
        return (
            where.topic,
            where.partition,
            where.offset,
            self.timestamp,
            where.base_offset,
            where.position,
            self.leader_epoch,
            None if self.visibility is None else self.visibility.value,
            None if batch is None else batch.is_control,
            None if batch is None else batch.is_transactional,
            self.transaction_state,
            None if batch is None else batch.producer_id,
            None if batch is None else batch.producer_epoch,
            None if batch is None else batch.base_offset,
            None if batch is None else batch.crc_valid,
            None if assignment is None else assignment.is_leader(node_id),
            node_id,
            None if assignment is None else assignment.leader,
            None if state is None else list(state.isr),
            None if state is None or state.eligible_leader_replicas is None else list(state.eligible_leader_replicas),
            where.path,
        )


class LookupResult(msgspec.Struct):
    """What a look-up found and how: ``match`` is the record, None where there is none; ``reason`` then says why.

    ``answer`` is what is known of an offset whose record was not found: its visibility, which is None in remote
    storage. ``nearest`` is the next record. ``bytes_read`` counts the bytes that were read from all files for the
    search. ``not_checked`` is what could not be decided. A log that could not be read is the ``error``; the steps and
    findings up to there are kept.
    """

    match: FoundRecord | None = None
    reason: str = ""
    nearest: FoundRecord | None = None
    answer: FoundRecord | None = None
    steps: list[TraceStep] = msgspec.field(default_factory=list)
    findings: list[Finding] = msgspec.field(default_factory=list)
    not_checked: list[str] = msgspec.field(default_factory=list)
    bytes_read: int = 0
    error: KafkaLogError | None = None

    @property
    def visibility(self) -> Visibility | None:
        """Which consumers see the offset, as far as it is known."""
        known = self.match or self.answer
        return None if known is None else known.visibility

    def step(self, stage: str, location: Location, detail: str) -> None:
        """Add a step."""
        self.steps.append(TraceStep(stage, location, detail))

    def report(self, found: Iterable[Finding]) -> None:
        """Add findings, each once: a look-up may pass a batch more than once."""
        known = {(each.code, each.location) for each in self.findings}
        for each in found:
            if (each.code, each.location) not in known:
                known.add((each.code, each.location))
                self.findings.append(each)

    def miss(self, reason: str, nearest: FoundRecord | None = None) -> None:
        """Say why there is no such record."""
        self.reason, self.nearest = reason, nearest
