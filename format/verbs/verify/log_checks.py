"""The fold of verify over one log: passes its chunks to the checks that need more than one chunk."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import numpy as np
from msgspec.structs import replace

from format import layout
from format.checks.batches import OffsetChain
from format.checks.directories import KraftSnapshotCheck
from format.errors import KafkaLogError, WorkerDied
from format.findings import Cause, Finding, Judgement, Severity, finding, finding_of
from format.log.batch_chunk import Damage
from format.log.batch_table import BatchTable, batch_location
from format.log.control_records import ControlRecord
from format.node.partition import location_of_file
from format.rewriting.index_builder import IndexedOffsets
from format.rewriting.intact_batches import proof_of_false_end
from format.scan.progress import no_progress
from format.scan.protocol import LogUnit
from format.verbs.verify.terms import Verification
from format.verbs.verify.walk import Level, sound_batches

if TYPE_CHECKING:
    from format.internal_topics.group_replay import GroupReplay


class SegmentOutcome(msgspec.Struct):
    """What reading a segment found: its first damage, if any, and the last offset before that (-1 for none)."""

    damaged_from: int | None = None
    damaged_after_offset: int | None = None
    is_readable: bool = True  # False where reading ended before the log did
    torn_end: Cause | None = None  # the damage that reaches the end of the log
    cause: Cause | None = None  # the first damage

    def note(self, damage: Damage) -> None:
        """Remember the place of the first damage."""
        if self.damaged_from is None:
            self.damaged_from = damage.position
            self.damaged_after_offset = -1 if damage.after_offset is None else damage.after_offset


class SoundBatches(msgspec.Struct, frozen=True):
    """Batches of a chunk whose CRC is right, and their control records by row: what checks across files read."""

    table: BatchTable
    markers: dict[int, ControlRecord]


def verify_log_file(
    log: LogUnit,
    chain: OffsetChain,
    terms: Verification,
    outcome: SegmentOutcome,
    *,
    across: Callable[[SoundBatches], Iterator[Finding]] | None = None,
    replay: GroupReplay | None = None,
) -> Iterator[Finding]:
    """Findings for one log file at the run's level; ``across`` is called with the sound batches of each chunk.

    ``replay`` is that of the group records of the logs before it.
    """
    parts = terms.parts(log)
    try:
        for walked in parts:
            terms.watch(log, walked)
            terms.coverage.batches += len(walked.table)
            for each in walked.header_findings:
                if outcome.cause is None and each.code == "batch-crc-mismatch":
                    outcome.cause = Cause.of(each)
                yield each
            if not walked.table.crc_valid.all():
                outcome.note(_first_bad_crc(walked.table))
            record_findings = list(walked.record_findings)  # reads the records, which sets keyless_offset
            yield from chain.feed(walked.table, log.location, keyless_offset=walked.keyless_offset)
            yield from record_findings
            if replay is not None and walked.group_changes is not None:
                yield from replay.feed(walked.group_changes, log.location)
                if walked.damage is not None:
                    replay.stop()
            terms.coverage.records += walked.record_count
            if walked.misplaced is not None:
                terms.coverage.add_misplaced(f"{log.location.topic}-{log.location.partition}", walked.misplaced)
            if across is not None:
                yield from across(SoundBatches(sound_batches(walked.table), walked.markers))
            if walked.damage is not None:
                yield from chain.end_segment(log.location)
                chain.note_damage(walked.damage)
                outcome.note(walked.damage)
            if walked.tail_finding is not None:
                if outcome.cause is None and not walked.tail_finding.is_incomplete:
                    outcome.cause = Cause.of(walked.tail_finding)
                is_end = walked.damage is not None and walked.damage.reaches_end
                if is_end and not walked.tail_finding.is_incomplete:  # what is still being written is no damage
                    outcome.torn_end = Cause.of(walked.tail_finding)
                yield walked.tail_finding
        yield from _false_end(log, chain, terms)
        yield from chain.end_segment(log.location)
    except WorkerDied:
        raise
    except KafkaLogError as error:
        unread = Damage(error.code, 0, 0, error.message)
        outcome.is_readable = False
        outcome.note(unread)
        chain.note_damage(unread)
        if replay is not None:
            replay.stop()
        yield finding_of(error, log.location)
    finally:
        if parts.state is not None:
            terms.coverage.segments += 1
            terms.coverage.bytes += parts.state.size_bytes


def _false_end(log: LogUnit, chain: OffsetChain, terms: Verification) -> Iterator[Finding]:
    """The finding for a last batch whose base offset is too high, if that is proven; it contradicts no other batch."""
    end = chain.end_after_gap
    if end is None or int(end.position[1]) != int(end.end_position[0]) or int(end.last_offset_delta[1]) < 0:
        return
    right = end.last_offset_of(0) + 1
    indexed = IndexedOffsets(log.location, terms.walk.limits) if terms.level is Level.FULL else None
    proof = proof_of_false_end(end, right, indexed, is_whole=chain.is_whole)
    if proof:
        yield finding(
            "batch-invalid",
            batch_location(log.location, end, 1),
            f"the base offset of the batch is {end.base_offset[1]}, and must be {right}: {proof}",
            expected=right,
            actual=int(end.base_offset[1]),
        )
        chain.place_waiting(right + int(end.last_offset_delta[1]))


def group_replay(topic: str | None, base_offset: int | None) -> GroupReplay | None:
    """The replay of a group coordinator's log that is there from its beginning, None for others."""
    if topic != layout.CONSUMER_OFFSETS_TOPIC or base_offset != 0:
        return None
    from format.internal_topics.group_replay import GroupReplay  # few runs need it

    return GroupReplay()


def _first_bad_crc(table: BatchTable) -> Damage:
    row = int(np.flatnonzero(table.crc_valid == 0)[0])
    after = int(table.base_offset[row]) - 1
    return Damage("batch-crc-mismatch", int(table.position[row]), int(table.size_bytes[row]), "", after)


def verify_lone_segment(path: Path, terms: Verification) -> Iterator[Finding]:
    """Findings for one ``.log`` file by itself. Other segments are not read: its end is judged as the end of a log."""
    location = location_of_file(path)
    chain = OffsetChain()
    chain.start_segment(location.base_offset, None)
    replay = group_replay(location.topic, location.base_offset)
    yield from verify_log_file(LogUnit(path, location), chain, terms, SegmentOutcome(), replay=replay)


def _as_snapshot(found: Finding, is_newest: bool) -> Finding:
    """A finding about the torn end of a log, as a finding about a KRaft snapshot, which no broker mends."""
    return finding(
        "data-truncated",
        found.location,
        found.message,
        judgement=Judgement(
            severity=Severity.ERROR if is_newest else Severity.WARNING,
            next_step="Restore the file from another node, or from a backup.",
        ),
    )


def verify_kraft_snapshot(path: Path, terms: Verification, *, is_newest: bool = True) -> Iterator[Finding]:
    """Findings for a KRaft snapshot or bootstrap.checkpoint: batches from offset 0, between header and footer record.

    A node reads the newest one at every start and does not repair it, so a torn end is damage. The file is small: it is
    read in this process and not counted as progress.
    """
    terms = replace(terms, driver=None, advance=no_progress)
    location = location_of_file(path)
    chain = OffsetChain()
    chain.start_segment(0, None)
    check = KraftSnapshotCheck(location)

    def across(sound: SoundBatches) -> Iterator[Finding]:
        check.feed(sound.markers)
        return iter(())

    outcome = SegmentOutcome()
    for found in verify_log_file(LogUnit(path, location), chain, terms, outcome, across=across):
        yield _as_snapshot(found, is_newest) if found.code in ("tail-torn", "tail-zeros") else found
    if terms.level is Level.FULL and outcome.damaged_from is None:
        yield from check.findings(is_bootstrap=path.name == layout.BOOTSTRAP_CHECKPOINT)
