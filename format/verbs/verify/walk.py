"""What verify finds in each chunk of a log by itself: the parts of its scan.

verify is a scan. Its walk, ``LogWalk``, makes parts that depend on nothing but the bytes of their range, so that any
driver can make them. What goes across batches, segments and files is the fold: ``log_checks`` folds one log,
``partition_checks`` the logs of a partition in order, with their indexes, snapshots and checkpoints.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import IntEnum

import numpy as np

from format.checks.batch_headers import check_batch_headers, check_wrapper_offsets
from format.checks.key_placement import check_key_placement, is_placed_by_key
from format.checks.record_contents import RecordCheck
from format.errors import CorruptDataError
from format.findings import Finding
from format.io.source import FileSource
from format.limits import DEFAULT_LIMITS, Limits
from format.location import Location
from format.log.batch_chunk import BatchChunk, Damage
from format.log.batch_groups import batch_groups
from format.log.batch_table import BatchTable, Int64Column
from format.log.control_records import ControlRecord, decode_control_record, read_control_records
from format.log.legacy_messages import open_wrappers
from format.log.read_records import group_tables, record_tables
from format.log.record_table import RecordTable
from format.log.walker import BODY_CHUNK_BYTES
from format.scan.protocol import Cost, Depth, LogUnit, Needs, OpenedRange
from format.scan.read_log import crc_findings, tail_finding
from format.timestamps import DAY_MS
from format.value_class import state_class, value_class

#: What is read of a log at once, and looked at together.
WALK_CHUNK_BYTES = 2 * BODY_CHUNK_BYTES
# Measured with one process; of the codecs, lz4 takes half as long for a compressed byte, and gzip twice as long.
_CRC_COST = Cost(batch_s=0.2e-6, byte_s=0.2e-9, compressed_byte_s=0.2e-9)
_COST = Cost(batch_s=0.55e-6, byte_s=0.35e-9, compressed_byte_s=3e-9)


class Level(IntEnum):
    """How deep to look: each level does what the one before it does, and more."""

    HEADERS = 0  # every batch header
    CRC = 1  # and every CRC
    RECORDS = 2  # and every record
    FULL = 3  # and everything across files: indexes, checkpoints, snapshots, producers

    @property
    def label(self) -> str:
        return self.name.lower()


@state_class
class WalkedChunk:
    """A chunk of batches, and what was found in it.

    Once the findings are consumed, ``record_count`` is the number of records that were read, and ``keyless_offset`` the
    first offset of one without a key. ``markers`` are the control records of sound batches, by row among these. A
    pickle holds the findings as lists.
    """

    table: BatchTable
    header_findings: Iterable[Finding]
    record_findings: Iterable[Finding]
    markers: dict[int, ControlRecord]
    damage: Damage | None
    tail_finding: Finding | None
    record_count: int = 0
    keyless_offset: int | None = None

    def __reduce__(self) -> tuple[type[WalkedChunk], tuple[object, ...]]:
        self.header_findings, self.record_findings = list(self.header_findings), list(self.record_findings)
        return WalkedChunk, (
            self.table,
            self.header_findings,
            self.record_findings,
            self.markers,
            self.damage,
            self.tail_finding,
            self.record_count,
            self.keyless_offset,
        )


@value_class
class LogWalk:
    """What verify does with the chunks of a range: its parts are WalkedChunks.

    ``partition_count`` holds keys against the default partitioner of a topic with so many partitions.
    """

    level: Level = Level.FULL
    limits: Limits = DEFAULT_LIMITS
    partition_count: int | None = None

    @property
    def needs(self) -> Needs:
        """Headers alone are read so fast that several processes never pay."""
        if self.level < Level.CRC:
            return Needs(Depth.HEADERS, limits=self.limits)
        only_crc = self.level is Level.CRC
        return Needs(
            Depth.CRC if only_crc else Depth.RECORDS,
            limits=self.limits,
            chunk_bytes=WALK_CHUNK_BYTES,
            cost=_CRC_COST if only_crc else _COST,
        )

    def parts(self, opened: OpenedRange) -> Iterator[WalkedChunk]:
        """The chunks of a range; their findings are made while they are consumed."""
        record_check = RecordCheck(opened.log.location, self.limits)
        for chunk in opened.chunks:
            yield _walked(opened.source, chunk, opened.log, self, record_check)


def _walked(
    source: FileSource, chunk: BatchChunk, log: LogUnit, walk: LogWalk, record_check: RecordCheck
) -> WalkedChunk:
    stored_offsets = None
    if chunk.buffer is not None and chunk.table.is_wrapper.any():
        stored_offsets = chunk.table.base_offset.copy()
        open_wrappers(chunk, limits=walk.limits)
    bundled = source.bundled
    has_only_headers = bundled is not None and bundled.has_only_headers
    if bundled is not None and has_only_headers:
        chunk.table.crc_valid[:] = bundled.crc_valid(chunk.table.position)
    sound = sound_batches(chunk.table)
    latest_timestamp_ms = source.mtime_ns // 1_000_000 + DAY_MS
    walked = WalkedChunk(
        chunk.table,
        _header_findings(source, chunk, sound, log, latest_timestamp_ms, stored_offsets),
        (),
        _bundled_markers(source, chunk, walk.limits) if has_only_headers else _markers(chunk, walk.limits),
        chunk.damage,
        None if chunk.damage is None else tail_finding(source, chunk, log),
    )
    if walk.level >= Level.RECORDS:
        walked.record_findings = _record_findings(chunk, log.location, walk, record_check, walked)
    return walked


def sound_batches(table: BatchTable) -> BatchTable:
    """The batches of a table but those whose CRC is known to be wrong."""
    return table if table.crc_valid.all() else table.rows(table.crc_valid != 0)


def _header_findings(
    source: FileSource,
    chunk: BatchChunk,
    sound: BatchTable,
    log: LogUnit,
    latest_timestamp_ms: int,
    stored_offsets: Int64Column | None,
) -> Iterator[Finding]:
    """``stored_offsets`` are the base offsets as the headers tell them, before compressed messages were opened."""
    yield from crc_findings(chunk, log, source)
    yield from check_batch_headers(sound, log.location, latest_timestamp_ms=latest_timestamp_ms)
    if stored_offsets is not None:
        yield from check_wrapper_offsets(chunk.table, stored_offsets, log.location)


def _record_findings(
    chunk: BatchChunk, location: Location, walk: LogWalk, record_check: RecordCheck, walked: WalkedChunk
) -> Iterator[Finding]:
    partition_count = walk.partition_count if is_placed_by_key(location) else None
    sound = record_check.sound_chunk(chunk) if partition_count is None else None
    if sound is not None:
        walked.record_count, walked.keyless_offset = sound.count, sound.keyless_offset
        return
    for group in batch_groups(chunk.table, chunk.table.crc_valid != 0):
        sound = record_check.sound_records(chunk, group) if partition_count is None else None
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
            if partition_count is not None:
                yield from check_key_placement(table, location, partition_count)


def _first_keyless_offset(table: RecordTable) -> int | None:
    rows = np.flatnonzero(table.key_length < 0)
    return int(table.offset[rows[0]]) if len(rows) else None


def _markers(chunk: BatchChunk, limits: Limits) -> dict[int, ControlRecord]:
    """The decoded first record of each control batch, by its row among the sound batches."""
    control = chunk.table.is_control & (chunk.table.crc_valid != 0)
    if not control.any() or chunk.buffer is None:
        return {}
    sound_row = np.cumsum(chunk.table.crc_valid != 0) - 1
    markers: dict[int, ControlRecord] = {}
    for table in record_tables(chunk, which=control, limits=limits):
        for row in range(len(table)):
            batch = int(sound_row[table.batch[row]])
            if batch in markers:
                continue
            try:
                markers[batch] = decode_control_record(table.key(row), table.value(row))
            except CorruptDataError:
                continue  # the record check reports it
    return markers


def _bundled_markers(source: FileSource, chunk: BatchChunk, limits: Limits) -> dict[int, ControlRecord]:
    """The same of a log of which a bundle has the headers, and whole control batches."""
    is_sound = chunk.table.crc_valid != 0
    sound_row = np.cumsum(is_sound) - 1
    found = read_control_records(chunk, source, limits)
    return {int(sound_row[row]): marker for row, marker in found.items() if is_sound[row]}
