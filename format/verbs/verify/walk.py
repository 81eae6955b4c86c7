"""The walk of verify: checks each chunk of a log by itself.

verify is a scan. ``LogWalk`` makes its parts, which depend on nothing but the bytes of their range, so that any driver
can make them. The checks across batches, segments and files are the fold: ``log_checks`` folds one log, and
``partition_checks`` the logs of a partition in order, with their indexes, snapshots and checkpoints.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import IntEnum
from typing import TYPE_CHECKING

import msgspec
import numpy as np
from msgspec.structs import astuple
from numpy.typing import NDArray

from format import layout
from format.checks.batches import check_batch_headers, check_wrapper_offsets
from format.checks.records import Misplaced, RecordCheck, is_placed_by_key, misplaced_records
from format.findings import Finding
from format.io.source import FileSource
from format.limits import DEFAULT_LIMITS, Limits
from format.location import Location
from format.log.batch_chunk import BatchChunk, Damage, HeaderChunk
from format.log.batch_table import BatchTable
from format.log.control_records import ControlRecord, first_control_records, read_control_records
from format.log.read_records import batch_groups, group_tables, known_batches
from format.log.record_table import RecordTable
from format.log.walker import BODY_CHUNK_BYTES
from format.scan.protocol import Cost, Depth, LogUnit, Needs, OpenedRange
from format.scan.read_log import crc_findings, tail_finding
from format.timestamps import DAY_MS

if TYPE_CHECKING:
    from format.internal_topics.group_replay import GroupChanges
    from format.internal_topics.record_check import InternalRecordCheck

#: The bytes of a log that are read and checked together.
WALK_CHUNK_BYTES = 2 * BODY_CHUNK_BYTES
# Measured with one process. A byte compressed with lz4 takes half as long, one compressed with gzip twice as long.
_CRC_COST = Cost(batch_s=0.2e-6, byte_s=0.2e-9, compressed_byte_s=0.2e-9)
_COST = Cost(batch_s=0.55e-6, byte_s=0.35e-9, compressed_byte_s=3e-9)


class Level(IntEnum):
    """How much is checked: each level checks what the one before it does, and more."""

    HEADERS = 0  # every batch header
    CRC = 1  # and every CRC
    RECORDS = 2  # and every record
    FULL = 3  # and everything across files: indexes, checkpoints, snapshots, producers


class WalkedChunk(msgspec.Struct):
    """A chunk of batches, and the findings about it.

    ``record_count`` (the records that were read), ``keyless_offset`` (the offset of the first record without a key),
    ``group_changes`` (the group records of __consumer_offsets) and ``misplaced`` (the records with keys of other
    partitions) are set while ``record_findings`` is consumed.
    ``markers`` are the control records of sound batches, by row among these. Pickling turns the findings into lists.
    """

    table: BatchTable
    header_findings: Iterable[Finding]
    record_findings: Iterable[Finding]
    markers: dict[int, ControlRecord]
    damage: Damage | None
    tail_finding: Finding | None
    record_count: int = 0
    keyless_offset: int | None = None
    group_changes: GroupChanges | None = None
    misplaced: Misplaced | None = None
    repeated: NDArray[np.bool_] | None = None  # as in BatchChunk

    def __reduce__(self) -> tuple[type[WalkedChunk], tuple[object, ...]]:
        self.header_findings, self.record_findings = list(self.header_findings), list(self.record_findings)
        return WalkedChunk, astuple(self)  # the count and what follows it are set now


#: The partition count of every topic, or of each topic by its name; None checks no keys.
PartitionCounts = int | Mapping[str, int] | None


class LogWalk(msgspec.Struct, frozen=True):
    """The walk over the chunks of a range; its parts are WalkedChunks.

    With ``partition_counts``, the partition of each record with a key is compared with the one that the default
    partitioner picks in a topic of that many partitions: a number for all topics, or one for each by its name.
    ``only_headers`` leaves out CRCs and records at any level: batch headers and control batches are read.
    """

    level: Level = Level.FULL
    limits: Limits = DEFAULT_LIMITS
    partition_counts: PartitionCounts = None
    only_headers: bool = False

    def partition_count_of(self, location: Location) -> int | None:
        """The number of partitions against which the keys of a log are checked; None where they are not."""
        if self.partition_counts is None or not is_placed_by_key(location):
            return None
        counts = self.partition_counts
        return counts if isinstance(counts, int) else counts.get(location.topic or "")

    @property
    def needs(self) -> Needs:
        """What the level reads. Headers alone have no cost: they are read too fast for several processes to pay."""
        if self.level < Level.CRC or self.only_headers:
            return Needs(Depth.HEADERS, limits=self.limits)
        only_crc = self.level is Level.CRC
        return Needs(
            Depth.CRC if only_crc else Depth.RECORDS,
            limits=self.limits,
            chunk_bytes=WALK_CHUNK_BYTES,
            cost=_CRC_COST if only_crc else _COST,
        )

    def parts(self, opened: OpenedRange) -> Iterator[WalkedChunk]:
        """The chunks of a range; the findings of a chunk are made as they are consumed."""
        record_check = RecordCheck(opened.log.location, self.limits)
        for chunk in opened.chunks:
            yield _walked(opened.source, chunk, opened.log, self, record_check)


def _walked(
    source: FileSource, headers: HeaderChunk, log: LogUnit, walk: LogWalk, record_check: RecordCheck
) -> WalkedChunk:
    chunk = known_batches(headers, source)
    sound = sound_batches(chunk.table)
    latest_timestamp_ms = source.mtime_ns // 1_000_000 + DAY_MS
    walked = WalkedChunk(
        chunk.table,
        _header_findings(source, chunk, sound, log, latest_timestamp_ms),
        (),
        _markers(source, chunk, walk),
        chunk.damage,
        None if chunk.damage is None else tail_finding(source, chunk, log),
    )
    walked.repeated = chunk.repeated
    if walk.level >= Level.RECORDS and not walk.only_headers:
        walked.record_findings = _record_findings(chunk, log.location, walk, record_check, walked)
    return walked


def sound_batches(table: BatchTable) -> BatchTable:
    """The batches of a table without those whose CRC is known to be wrong."""
    return table.rows(table.crc_valid != 0) if table.sums.wrong_crcs else table


def _header_findings(
    source: FileSource, chunk: BatchChunk, sound: BatchTable, log: LogUnit, latest_timestamp_ms: int
) -> Iterator[Finding]:
    yield from crc_findings(chunk, log, source)
    yield from check_batch_headers(sound, log.location, latest_timestamp_ms=latest_timestamp_ms)
    if chunk.table.sums.wrappers:
        yield from check_wrapper_offsets(chunk.table, chunk.headers, log.location)


def _record_findings(
    chunk: BatchChunk, location: Location, walk: LogWalk, record_check: RecordCheck, walked: WalkedChunk
) -> Iterator[Finding]:
    partition_count = walk.partition_count_of(location)
    internal_check, changes = _internal_checks(location)
    needs_tables = partition_count is not None or internal_check is not None
    for group in batch_groups(chunk.table, chunk.table.crc_valid != 0):
        sound = None if needs_tables else record_check.sound_records(chunk, group)
        if sound is not None:
            walked.record_count += sound.count
            if walked.keyless_offset is None:
                walked.keyless_offset = sound.keyless_offset
            continue
        for table in group_tables(chunk, group, walk.limits, location):
            walked.record_count += len(table)
            if walked.keyless_offset is None:
                walked.keyless_offset = _first_keyless_offset(table)
            yield from record_check.findings(table)
            if internal_check is not None:
                found = list(internal_check.findings(table))
                yield from found
                if changes is not None:
                    changes.take(table, found)
            if partition_count is not None:
                for each, misplaced in misplaced_records(table, location, partition_count):
                    walked.misplaced = misplaced if walked.misplaced is None else walked.misplaced + misplaced
                    yield each
    if changes is not None:
        for row in np.flatnonzero(chunk.table.crc_valid == 0)[:1].tolist():
            changes.end(int(chunk.table.base_offset[row]))
        walked.group_changes = changes


def _internal_checks(location: Location) -> tuple[InternalRecordCheck | None, GroupChanges | None]:
    """The check of the records of Kafka's own topics, and what collects the group records of __consumer_offsets."""
    if not (location.topic or "").startswith(layout.INTERNAL_TOPIC_PREFIX):
        return None, None
    from format.internal_topics.group_replay import GroupChanges
    from format.internal_topics.record_check import InternalRecordCheck  # it imports every schema

    check = InternalRecordCheck.of(location)
    has_groups = check is not None and location.topic == layout.CONSUMER_OFFSETS_TOPIC
    return check, GroupChanges() if has_groups else None


def _first_keyless_offset(table: RecordTable) -> int | None:
    rows = np.flatnonzero(table.key_length < 0)
    return int(table.offset[rows[0]]) if len(rows) else None


def _markers(source: FileSource, chunk: BatchChunk, walk: LogWalk) -> dict[int, ControlRecord]:
    """The first control record of each sound control batch, by its row among the sound batches.

    Where only headers are read, as from a bundle that has the control batches whole, they are read from the source.
    """
    is_sound = chunk.table.crc_valid != 0
    if source.headers_only is None and not walk.only_headers:
        return {} if chunk.buffer is None else first_control_records(chunk, is_sound, walk.limits)
    sound_row = np.cumsum(is_sound) - 1
    found = read_control_records(chunk, source, walk.limits)
    return {int(sound_row[row]): marker for row, marker in found.items() if is_sound[row]}
