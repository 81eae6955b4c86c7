"""The log file side of verify: one walk over a segment that feeds every check."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from format import layout
from format.batches import BatchChunk, BatchTable, Damage, batch_chunks
from format.control_records import ControlRecord, decode_control_record
from format.errors import CorruptDataError, KafkaLogError
from format.findings import Finding, finding_of
from format.legacy_messages import open_wrappers
from format.limits import Limits
from format.location import Location
from format.operations.checks.batch_headers import check_batch_headers
from format.operations.checks.kraft_snapshot import KraftSnapshotCheck
from format.operations.checks.offset_chain import OffsetChain
from format.operations.checks.record_contents import check_records
from format.operations.read_log import crc_findings, location_of_file, tail_finding
from format.records import record_tables
from format.source import FileSource

if TYPE_CHECKING:
    from format.operations.verify import Verification

_DAY_MS = 24 * 60 * 60 * 1000


@dataclass(slots=True)
class SegmentOutcome:
    """How a segment's walk went: the first damage in it, if any, and what stood before it."""

    damaged_from: int | None = None
    damaged_after_offset: int | None = None
    is_readable: bool = True

    def note(self, damage: Damage) -> None:
        if self.damaged_from is None:
            self.damaged_from = damage.position
            self.damaged_after_offset = -1 if damage.after_offset is None else damage.after_offset


@dataclass(frozen=True, slots=True)
class Fed:
    """What a walk hands to the checks that go across files: sound batches, and their control records by row."""

    table: BatchTable
    markers: dict[int, ControlRecord]


def verify_log_file(
    path: Path,
    location: Location,
    chain: OffsetChain,
    terms: Verification,
    outcome: SegmentOutcome,
    *,
    is_last_segment: bool,
    across: Callable[[Fed], Iterator[Finding]] | None = None,
) -> Iterator[Finding]:
    """Findings for one log file at the run's level; ``across`` gets every table of batches with a valid CRC."""
    from format.operations.verify import Level

    with_bodies = terms.level >= Level.CRC
    try:
        with FileSource(path) as source:
            terms.coverage.segments += 1
            terms.coverage.bytes += source.size_bytes
            latest = source.mtime_ns // 1_000_000 + _DAY_MS
            for chunk in batch_chunks(source, with_bodies=with_bodies, check_crc=with_bodies, limits=terms.limits):
                if with_bodies:
                    open_wrappers(chunk, limits=terms.limits)
                terms.coverage.batches += len(chunk.table)
                yield from crc_findings(chunk, location)
                sound = chunk.table.rows(chunk.table.crc_valid != 0)
                if len(sound) < len(chunk.table):
                    outcome.note(_first_bad_crc(chunk))
                yield from check_batch_headers(sound, location, latest_timestamp_ms=latest)
                yield from chain.feed(chunk.table, location)
                if terms.level >= Level.RECORDS:
                    yield from _verify_records(chunk, location, terms)
                if across is not None:
                    yield from across(Fed(sound, _markers(chunk, sound, terms.limits)))
                if chunk.damage is not None:
                    chain.note_damage(chunk.damage)
                    outcome.note(chunk.damage)
                    yield tail_finding(source, chunk, location, is_last_segment)
    except KafkaLogError as error:
        outcome.is_readable = False
        outcome.note(Damage(error.code, 0, 0, error.message))
        yield finding_of(error, location)


def _first_bad_crc(chunk: BatchChunk) -> Damage:
    row = int(np.flatnonzero(chunk.table.crc_valid == 0)[0])
    table = chunk.table
    after = int(table.base_offset[row]) - 1
    return Damage("batch-crc-mismatch", int(table.position[row]), int(table.size_bytes[row]), "", after)


def _verify_records(chunk: BatchChunk, location: Location, terms: Verification) -> Iterator[Finding]:
    for table in record_tables(chunk, limits=terms.limits, location=location):
        terms.coverage.records += len(table)
        yield from check_records(table, location, terms.limits)


def _markers(chunk: BatchChunk, sound: BatchTable, limits: Limits) -> dict[int, ControlRecord]:
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
                continue  # check_records tells of it
    return markers


def verify_lone_segment(path: Path, terms: Verification) -> Iterator[Finding]:
    """One ``.log`` file by itself; its neighbours are not looked at, so its end may be a torn tail."""
    location = location_of_file(path)
    chain = OffsetChain()
    chain.start_segment(0 if location.base_offset is None else location.base_offset, None)
    yield from verify_log_file(path, location, chain, terms, SegmentOutcome(), is_last_segment=True)


def verify_kraft_snapshot(path: Path, terms: Verification) -> Iterator[Finding]:
    """A KRaft snapshot or bootstrap.checkpoint: batches from offset 0, between a header and a footer record."""
    from format.operations.verify import Level

    location = location_of_file(path)
    chain = OffsetChain()
    chain.start_segment(0, None)
    check = KraftSnapshotCheck(location)

    def across(fed: Fed) -> Iterator[Finding]:
        check.feed(fed.markers)
        return iter(())

    outcome = SegmentOutcome()
    yield from verify_log_file(path, location, chain, terms, outcome, is_last_segment=True, across=across)
    if terms.level is Level.FULL and outcome.damaged_from is None:
        yield from check.findings(is_bootstrap=path.name == layout.BOOTSTRAP_CHECKPOINT)
