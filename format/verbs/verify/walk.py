"""One walk over a log file, or over a range of it, which makes what verify needs of each chunk of batches.

What a walk finds depends on nothing but the bytes that it walks over, so that ranges of a log can be walked by
processes of their own. What goes across batches, segments and files is in ``format.verbs.verify.log_checks``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import Protocol

import numpy as np

from format.checks.batch_headers import check_batch_headers, check_wrapper_offsets
from format.checks.key_placement import check_key_placement, is_placed_by_key
from format.checks.record_contents import RecordCheck
from format.errors import CorruptDataError
from format.findings import Finding
from format.io.source import FileSource
from format.limits import Limits
from format.location import Location
from format.log.batch_chunk import BatchChunk, Damage
from format.log.batch_ranges import BatchRange
from format.log.batch_table import BatchTable, Int64Column
from format.log.control_records import ControlRecord, decode_control_record
from format.log.legacy_messages import open_wrappers
from format.log.read_records import record_tables
from format.log.walker import BODY_CHUNK_BYTES, batch_chunks
from format.scan.read_log import crc_findings, tail_finding

#: What is read of a log at once, and looked at together.
WALK_CHUNK_BYTES = BODY_CHUNK_BYTES
_DAY_MS = 24 * 60 * 60 * 1000


class Level(IntEnum):
    """How deep to look: each level does what the one before it does, and more."""

    HEADERS = 0  # every batch header
    CRC = 1  # and every CRC
    RECORDS = 2  # and every record
    FULL = 3  # and everything across files: indexes, checkpoints, snapshots, producers

    @property
    def label(self) -> str:
        return self.name.lower()


@dataclass(frozen=True, slots=True)
class LogToWalk:
    """A log file and how to walk over it."""

    path: Path
    location: Location
    level: Level
    limits: Limits
    is_last_segment: bool
    partition_count: int | None = None  # hold keys against the default partitioner of a topic with so many


@dataclass(frozen=True, slots=True)
class OpenedLog:
    """What comes before the chunks of a log that could be opened."""

    size_bytes: int


@dataclass(slots=True)
class WalkedChunk:
    """A chunk of batches, what was found in it, and how many records were read once the findings are consumed.

    ``markers`` are the control records of sound batches, by row among these.
    """

    table: BatchTable
    header_findings: Iterable[Finding]
    record_findings: Iterable[Finding]
    markers: dict[int, ControlRecord]
    damage: Damage | None
    tail_finding: Finding | None
    record_count: int = 0
    is_table_shared: bool = False  # the table comes after the chunk, on its way from another process


class Walks(Protocol):
    """Who walks over the logs."""

    def chunks(self, log: LogToWalk) -> Iterator[OpenedLog | WalkedChunk]:
        """The chunks of a log, in order. Raises KafkaLogError where it cannot be opened or read."""
        ...


class OwnWalks:
    """Walks in the process that asks for them."""

    def chunks(self, log: LogToWalk) -> Iterator[OpenedLog | WalkedChunk]:
        """The chunks of a log, in order. Raises KafkaLogError where it cannot be opened or read."""
        with FileSource(log.path) as source:
            yield OpenedLog(source.size_bytes)
            yield from walk_log(source, log, BatchRange())


def walk_log(source: FileSource, log: LogToWalk, batch_range: BatchRange) -> Iterator[WalkedChunk]:
    """All chunks from the start of a range on, in order; their findings are made while they are consumed."""
    with_bodies = log.level >= Level.CRC
    chunks = batch_chunks(
        source,
        batch_range.start,
        batch_range.end,
        after_offset=batch_range.after_offset,
        with_bodies=with_bodies,
        check_crc=with_bodies,
        limits=log.limits,
        chunk_bytes=WALK_CHUNK_BYTES if with_bodies else None,
    )
    return walk_chunks(source, log, chunks)


def walk_chunks(source: FileSource, log: LogToWalk, chunks: Iterable[BatchChunk]) -> Iterator[WalkedChunk]:
    """Chunks of a log, one behind the other, walked over; their findings are made while they are consumed."""
    record_check = RecordCheck(log.location, log.limits)
    for chunk in chunks:
        yield _walked(source, chunk, log, record_check)


def _walked(source: FileSource, chunk: BatchChunk, log: LogToWalk, record_check: RecordCheck) -> WalkedChunk:
    stored_offsets = None
    if chunk.buffer is not None and chunk.table.is_wrapper.any():
        stored_offsets = chunk.table.base_offset.copy()
        open_wrappers(chunk, limits=log.limits)
    sound = sound_batches(chunk.table)
    latest_timestamp_ms = source.mtime_ns // 1_000_000 + _DAY_MS
    walked = WalkedChunk(
        chunk.table,
        _header_findings(source, chunk, sound, log.location, latest_timestamp_ms, stored_offsets),
        (),
        _markers(chunk, log.limits),
        chunk.damage,
        None if chunk.damage is None else tail_finding(source, chunk, log.location, log.is_last_segment),
    )
    if log.level >= Level.RECORDS:
        walked.record_findings = _record_findings(chunk, log, record_check, walked)
    return walked


def sound_batches(table: BatchTable) -> BatchTable:
    """The batches of a table but those whose CRC is known to be wrong."""
    return table if table.crc_valid.all() else table.rows(table.crc_valid != 0)


def _header_findings(
    source: FileSource,
    chunk: BatchChunk,
    sound: BatchTable,
    location: Location,
    latest_timestamp_ms: int,
    stored_offsets: Int64Column | None,
) -> Iterator[Finding]:
    """``stored_offsets`` are the base offsets as the headers tell them, before compressed messages were opened."""
    yield from crc_findings(chunk, location, source)
    yield from check_batch_headers(sound, location, latest_timestamp_ms=latest_timestamp_ms)
    if stored_offsets is not None:
        yield from check_wrapper_offsets(chunk.table, stored_offsets, location)


def _record_findings(
    chunk: BatchChunk, log: LogToWalk, record_check: RecordCheck, walked: WalkedChunk
) -> Iterator[Finding]:
    for table in record_tables(chunk, limits=log.limits, location=log.location):
        walked.record_count += len(table)
        yield from record_check.findings(table)
        if log.partition_count is not None and is_placed_by_key(log.location):
            yield from check_key_placement(table, log.location, log.partition_count)


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
                continue  # the record check tells of it
    return markers
