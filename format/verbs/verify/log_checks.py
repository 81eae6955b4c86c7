"""The log file side of verify: one walk over a segment that feeds every check."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from format import layout
from format.checks.kraft_snapshot import KraftSnapshotCheck
from format.checks.offset_chain import OffsetChain
from format.errors import KafkaLogError, WorkerDied
from format.findings import Finding, finding, finding_of
from format.location import Location
from format.log.batch_chunk import Damage
from format.log.batch_table import BatchTable
from format.log.control_records import ControlRecord
from format.node.file_location import location_of_file
from format.scan.progress import no_progress
from format.verbs.verify.terms import Verification
from format.verbs.verify.walk import Level, LogToWalk, OpenedLog, WalkedChunk, sound_batches


@dataclass(slots=True)
class SegmentOutcome:
    """How a segment's walk went: the first damage in it, if any, and what stood before it."""

    damaged_from: int | None = None
    damaged_after_offset: int | None = None
    is_readable: bool = True
    is_replaced: bool = False  # the file at the path is not the one that was read, or not there any more

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
    log = LogToWalk(path, location, terms.level, terms.limits, is_last_segment, terms.partition_count)
    before = _identity(path)
    walked_to = 0
    try:
        for walked in terms.walks.chunks(log):
            if isinstance(walked, OpenedLog):
                terms.coverage.segments += 1
                terms.coverage.bytes += walked.size_bytes
                continue
            terms.coverage.batches += len(walked.table)
            yield from walked.header_findings
            if not walked.table.crc_valid.all():
                outcome.note(_first_bad_crc(walked.table))
            yield from chain.feed(walked.table, location)
            yield from walked.record_findings
            terms.coverage.records += walked.record_count
            if across is not None:
                yield from across(Fed(sound_batches(walked.table), walked.markers))
            if walked.damage is not None:
                chain.note_damage(walked.damage)
                outcome.note(walked.damage)
            if walked.tail_finding is not None:
                yield walked.tail_finding
            end = max(walked_to, _end_of(walked))
            terms.advance(end - walked_to)
            walked_to = end
    except WorkerDied:
        raise
    except KafkaLogError as error:
        outcome.is_readable = False
        outcome.note(Damage(error.code, 0, 0, error.message))
        yield finding_of(error, location)
        return
    if _identity(path) != before:
        outcome.is_replaced = True
        yield finding("file-changed", location, "another file took its place while it was read, or none")


def _identity(path: Path) -> tuple[int, int] | None:
    """Which file lies at a path, None for none."""
    try:
        status = path.lstat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _end_of(walked: WalkedChunk) -> int:
    """The position behind a chunk's last batch or damage."""
    table, damage = walked.table, walked.damage
    end = 0 if damage is None else damage.position + damage.length
    return max(end, int(table.position[-1] + table.size_bytes[-1])) if len(table) else end


def _first_bad_crc(table: BatchTable) -> Damage:
    row = int(np.flatnonzero(table.crc_valid == 0)[0])
    after = int(table.base_offset[row]) - 1
    return Damage("batch-crc-mismatch", int(table.position[row]), int(table.size_bytes[row]), "", after)


def verify_lone_segment(path: Path, terms: Verification) -> Iterator[Finding]:
    """One ``.log`` file by itself; its neighbours are not looked at, so its end may be a torn tail."""
    location = location_of_file(path)
    chain = OffsetChain()
    chain.start_segment(location.base_offset, None)
    yield from verify_log_file(path, location, chain, terms, SegmentOutcome(), is_last_segment=True)


def verify_kraft_snapshot(path: Path, terms: Verification) -> Iterator[Finding]:
    """A KRaft snapshot or bootstrap.checkpoint: batches from offset 0, between a header and a footer record.

    Small beside the logs, and not told as progress.
    """
    terms = replace(terms, advance=no_progress)
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
