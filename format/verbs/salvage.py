"""salvage: copies every intact batch into a new directory, byte for byte, and lists what is lost."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from msgspec.structs import replace

from format import layout
from format.checks.directories import check_lost_log
from format.errors import UnreadableFile
from format.files.meta_properties import KnownIds
from format.findings import AS_THE_TABLE_SAYS, Cause, Certainty, Finding, Judgement, Severity, finding, finding_of
from format.kafka_uuid import is_reserved
from format.location import Location
from format.node.log_dir import Checkpoints, LogDir, directory_around, log_dir_around
from format.node.offsets import offsets_of
from format.node.partition import Partition
from format.rewriting.carried_files import CarryTerms
from format.rewriting.flipped_bit import MOST_ODDS, FlippedBit, cases
from format.rewriting.index_builder import LOOK_ELSEWHERE, IndexedOffsets
from format.rewriting.intact_batches import BadBytes, Repair
from format.rewriting.publication import Publication
from format.rewriting.rewriter import (
    FirstLook,
    Rewriter,
    RewritingResult,
    SegmentResult,
    SourceLog,
    WriteTerms,
    WrittenSegment,
)
from format.rewriting.run import rewrite
from format.rewriting.sources import WriteSources
from format.rows.finding_rows import finding_as_json
from format.state.cluster_image import ClusterImage
from format.state.metadata_log import read_metadata
from format.verbs.boot.boot import refusal_findings
from format.verbs.verify.written_output import verify_output
from format.wording import are, counted_plainly, offsets_are
from format.wording import offset_range as range_words

#: Codes of intact batches, which are put aside.
_PUT_ASIDE = ("offset-not-increasing", "offset-out-of-segment")


class SegmentLosses(msgspec.Struct):
    """Reports the bytes of a segment that are not kept, and the offsets that they may have held.

    ``report`` sets the last two fields.
    """

    look: FirstLook
    is_compacted: bool
    indexed: IndexedOffsets
    lost_bytes: int = 0
    torn_end: Cause | None = None  # the damage after the last kept batch of the last segment

    @property
    def _location(self) -> Location:
        return self.look.log.location

    def report(self, done: SegmentResult) -> None:
        """Add a finding for each gap in bytes or in offsets to ``done``, and set its last offset."""
        kept, next_base_offset = self.look.scan.kept, self.look.log.next_base_offset
        may_be_sparse = self.is_compacted or self.look.scan.has_sparse
        starts = np.concatenate(([0], kept.end_position))
        ends = np.concatenate((kept.position, [self.look.source.size_bytes]))
        first_lost = np.concatenate(([self.look.log.first_possible(done.last_offset)], kept.last_offset + 1))
        next_kept = [*kept.base_offset.tolist(), next_base_offset]
        # The first offset of a compressed v0 or v1 message that could not be opened is not known.
        is_missing = np.append((kept.base_offset > first_lost[:-1]) & (kept.record_count >= 0), False)
        is_missing &= not may_be_sparse
        for gap in np.flatnonzero((ends > starts) | is_missing).tolist():
            if ends[gap] > starts[gap]:
                self._gap(int(starts[gap]), int(ends[gap]), int(first_lost[gap]), next_kept[gap], done)
            else:
                is_before_last = next_base_offset is None and gap == len(kept) - 1
                found = self._offset_gap(int(starts[gap]), int(first_lost[gap]), next_kept[gap], is_before_last)
                done.add(found, found.severity >= Severity.ERROR)
        if len(kept):
            done.last_offset = kept.last_offset_of(len(kept) - 1)
        end_offset, is_end_reported = int(first_lost[-1]), int(ends[-1]) > int(starts[-1])
        if not (is_end_reported or may_be_sparse) and next_base_offset is not None and end_offset < next_base_offset:
            done.add(self._missing_before_next(end_offset, next_base_offset), True)

    def _offset_gap(self, position: int, first: int, until: int, is_before_last: bool) -> Finding:
        """A finding about offsets between adjoining batches, the second of which may be the last one of the log.

        Compaction may have removed them: the loss is likely. It is proven where an index of the source names one.
        """
        message = f"{offsets_are(first, until - 1)} in no batch, and the new indexes do not show that either"
        judgement = Judgement(certainty=Certainty.LIKELY, next_step=LOOK_ELSEWHERE)
        named = self.indexed.within(first, until)
        if named is not None:
            message = f"{offsets_are(first, until - 1)} in no batch, and an index of the source names offset {named}"
            judgement = Judgement(severity=Severity.ERROR, next_step=LOOK_ELSEWHERE)
        elif is_before_last:
            message += ": compaction removed them, they are lost, or the base offset of the last batch is wrong"
        place = self._location.at(position=position, offset=first)
        return finding("offset-gap", place, message, lost_offsets=(first, until - 1), judgement=judgement)

    def _missing_before_next(self, first: int, next_base_offset: int) -> Finding:
        return finding(
            "log-truncated",
            self._location.at(position=self.look.source.size_bytes, offset=first),
            f"the segment ends at offset {first}, the next one starts at {next_base_offset}: "
            f"{offsets_are(first, next_base_offset - 1)} lost, unless compaction removed them",
            lost_offsets=(first, next_base_offset - 1),
            judgement=Judgement(certainty=Certainty.LIKELY),
        )

    def _gap(self, start: int, end: int, first_lost: int, until: int | None, done: SegmentResult) -> None:
        """Report a range of bytes that is not kept; ``until`` is the next offset after it, None where there is none."""
        # Bad ranges are in order and do not overlap. A log may have very many, so they are searched by bisection.
        first = bisect_right(self.look.scan.bad, start, key=lambda each: each.position + each.length)
        reasons = self.look.scan.bad[first : bisect_left(self.look.scan.bad, end, key=lambda each: each.position)]
        damage = [each for each in reasons if not each.is_repeat]
        worst = (damage or reasons or [BadBytes(start, end - start, "log-framing-broken", "no batch is here")])[0]
        code = worst.code
        if worst.reaches_end:
            if self.look.is_live:
                done.add(finding("live-tail", self._location.at(start, end - start), "the end is being written"), False)
                return
            if code == "tail-torn" and self.look.log.next_base_offset is not None:
                code = "log-truncated"
        is_padding = code == "tail-zeros" and self.look.log.next_base_offset is None
        if not is_padding and not worst.is_repeat:
            self.lost_bytes += end - start - sum(each.length for each in reasons if each.is_repeat)
        unreadable = sum(start <= block < end for block in self.look.unreadable)
        message = f"{counted_plainly(end - start, 'byte')} {are(end - start)} not kept: {worst.reason}"
        if unreadable:
            message += f" ({counted_plainly(unreadable, 'block')} of it could not be read from the disk)"
        if len(damage or reasons) > 1:
            message += f", and {counted_plainly(len(damage or reasons) - 1, 'more such place')} in it"
        if damage and (count := len(reasons) - len(damage)):
            message += f"; {counted_plainly(count, 'batch')} of it {are(count)} earlier in the segment, and kept"
        lost = offset_range(first_lost, until)
        here = [each for each in self.look.repairable if start <= each.position and each.end_position <= end]
        readable = [each for each in here if each.is_offered]
        gone = lost
        is_repeat = lost is None and bool(reasons) and not damage
        is_repeat = is_repeat and sum(each.length for each in reasons) == end - start
        if is_repeat:
            message += "; nothing is lost"
        elif readable:
            gone = self._without(lost, readable, start, end)
            message += "".join(f"; {_readable_words(each)}" for each in readable)
            message += f"; {offsets_are(*gone)} lost" if gone is not None else ""
        elif lost is not None:
            message += f"; {offsets_are(*lost)} lost"
        elif until is None and not is_padding:
            is_put_aside = len(reasons) == 1 and worst.length == end - start and worst.code in _PUT_ASIDE
            message += (
                "; its records are in the quarantine file"
                if is_put_aside
                else f"; the records in it, from offset {first_lost} on, are lost"
            )
        if refused := [each for each in here if not each.is_offered]:
            message += f"; of the batch at position {refused[0].position}: {refused[0].words}, "
            message += f"more than the {cases(MOST_ODDS)} that --repair accepts"
        place = self._location.at(start, end - start, first_lost)
        next_step = "Nothing." if is_padding or is_repeat else LOOK_ELSEWHERE
        if readable and gone is None:
            next_step = "Run salvage with --repair, which writes the batch as it was."
        judgement = Judgement(severity=Severity.WARNING if is_repeat else None, next_step=next_step)
        found = finding(code, place, message, lost_offsets=lost, judgement=judgement)
        if until is None and not is_repeat:
            self.torn_end = Cause.of(found)
        done.add(found, not is_padding and not is_repeat)

    def _without(
        self, lost: tuple[int, int] | None, readable: list[Repair], start: int, end: int
    ) -> tuple[int, int] | None:
        """The lost offsets without those that can be read at the start or the end of a gap; None if none is left."""
        if lost is None or sum(each.size_bytes for each in readable) == end - start:
            return None
        first, last = lost
        for each in readable:
            if each.first_offset <= first <= each.last_offset:
                first = each.last_offset + 1
        for each in reversed(readable):
            if each.first_offset <= last <= each.last_offset:
                last = each.first_offset - 1
        return (first, last) if first <= last else None


def _readable_words(repair: Repair) -> str:
    """What can be read of a batch that is not kept."""
    offsets = range_words(repair.first_offset, repair.last_offset)
    can_be = "reconstructed" if isinstance(repair, FlippedBit) else "read"
    return f"{offsets} can be {can_be} at position {repair.position}, and --repair keeps the batch: {repair.words}"


def _repair_finding(repair: Repair, log: Location) -> Finding:
    """The finding about a batch that is written otherwise than it was found."""
    place = log.at(repair.position, repair.size_bytes, repair.first_offset)
    code, what, judgement = "batch-repaired", f"another {repair.field.replace('_', ' ')}", AS_THE_TABLE_SAYS
    if isinstance(repair, FlippedBit):
        code, what, judgement = "batch-reconstructed", "one bit changed", Judgement(certainty=Certainty.RECONSTRUCTED)
    message = f"the batch is written with {what}: {repair.words}"
    return finding(code, place, message, expected=repair.right, actual=repair.wrong, judgement=judgement)


def offset_range(first: int, until: int | None) -> tuple[int, int] | None:
    """The offsets from ``first`` to before ``until`` as first and last; None for none, or if ``until`` is None."""
    return None if until is None or until <= first else (first, until - 1)


def salvage(
    sources: WriteSources,
    publication: Publication,
    terms: WriteTerms | None = None,
    result: RewritingResult | None = None,
    *,
    repairs: bool = False,
) -> Iterator[Finding | WrittenSegment]:
    """Write the intact batches into the open publication and finish it; yields each segment, and findings on the way.

    With ``repairs``, batches of which only a field outside the CRC is wrong are written with the right one, if that is
    proven.
    Raises OutputError and FileChanged; a source that cannot be read is a finding.
    """
    result = result or RewritingResult()
    salvager = Salvager(terms or WriteTerms(), sources.log_dir, repairs=repairs)
    if sources.log_dir is not None and sources.is_whole:
        for found in refusal_findings(sources.log_dir.path, salvager.terms.limits):
            if found.code == "replica-missing":  # the metadata assigns it here, it had records, and it is gone
                result.findings.append(found)
                result.losses.append(found)
                yield found
    yield from rewrite(sources, publication, salvager, verify_output, result)


class Salvager(Rewriter):
    """Intact batches are copied; every gap between them is a loss.

    ``log_dir`` is the log directory to salvage as a whole, None where partitions were given.
    """

    keeps_misplaced = True
    wants_every_offset = True

    def __init__(self, terms: WriteTerms, log_dir: LogDir | None, *, repairs: bool = False) -> None:
        super().__init__(terms)
        self.repairs = repairs
        self._log_dir = log_dir
        self._checkpoints_of: dict[Path, Checkpoints] = {}  # by log directory
        self._checkpoints = Checkpoints()
        self._is_compacted = False
        self._torn_end: Cause | None = None  # the damage at the end of the last segment

    def report_unreadable(self, error: UnreadableFile, log: SourceLog, result: SegmentResult) -> None:
        lost = offset_range(log.first_possible(result.last_offset), log.next_base_offset)
        found = finding_of(error, log.location)
        message = f"nothing could be read: {found.message}"
        result.add(finding(found.code, log.location, message, lost_offsets=lost), True)

    def report_look(self, look: FirstLook, result: SegmentResult) -> None:
        losses = SegmentLosses(look, self._is_compacted, IndexedOffsets(look.log.location, self.terms.limits))
        for each in look.repairs:
            result.add(_repair_finding(each, look.log.location), False)
        losses.report(result)
        self._torn_end = losses.torn_end
        result.lost_bytes = losses.lost_bytes

    def begin_partition(self, partition: Partition) -> Iterator[Finding]:
        around = directory_around(partition.path)
        if around not in self._checkpoints_of:
            log_dir = self._log_dir or log_dir_around(partition.path)
            self._checkpoints_of[around] = Checkpoints() if log_dir is None else log_dir.checkpoints(self.terms.limits)
            # Problems of the checkpoints of a whole log directory are reported when these are carried over.
            if self._log_dir is None:
                yield from self._checkpoints_of[around].findings
        self._checkpoints = self._checkpoints_of[around]
        cleaned = self._checkpoints.offset(layout.CLEANER_OFFSET_CHECKPOINT, partition.key)
        self._is_compacted = partition.topic in layout.COORDINATOR_TOPICS or bool(cleaned)
        self._torn_end = None
        yield from super().begin_partition(partition)

    def end_partition(self, partition: Partition, last_offset: int | None) -> Iterator[Finding]:
        """A finding where a checkpoint or a producer snapshot shows that the log once ended later."""
        offsets = offsets_of(partition, self._checkpoints)
        if not partition.segments:
            yield from check_lost_log(offsets, partition)
            return
        end = partition.segments[-1].base_offset if last_offset is None else last_offset + 1
        claims = {
            "a producer snapshot": offsets.newest_snapshot or 0,
            f"the {layout.REPLICATION_OFFSET_CHECKPOINT}": offsets.committed_end or 0,
            f"the {layout.RECOVERY_POINT_CHECKPOINT}": offsets.recovery_point or 0,
        }
        if offsets.is_clean_shutdown and offsets.recovery_point is not None:  # where the log ended
            claims = {f"the {layout.RECOVERY_POINT_CHECKPOINT}": offsets.recovery_point}
        what, offset = max(claims.items(), key=lambda each: each[1])
        if offset > end:
            yield finding(
                "checkpoint-mismatch",
                partition.location(),
                f"{what} shows that the log reached offset {offset}, but what is left ends at {end}: "
                f"{offsets_are(end, offset - 1)} lost",
                lost_offsets=(end, offset - 1),
                judgement=Judgement(severity=Severity.FATAL, certainty=Certainty.LIKELY, caused_by=self._torn_end),
            )

    def carry_terms(self, sources: WriteSources) -> CarryTerms:
        """With the ids that the metadata log has, which count before those of other files."""
        known = super().carry_terms(sources)
        metadata = sources.partitions.get(layout.METADATA_PARTITION)
        if sources.log_dir is None or metadata is None:
            return known
        image = read_metadata(metadata, limits=self.terms.limits).image
        here = {each.key for each in sources.partitions.values() if each.mark is None}
        topic_ids = {**known.topic_ids, **{name: topic_id for topic_id, name in image.names.items()}}
        ids = KnownIds(partial(_node_id, image, here), partial(_directory_id, image, here))
        return replace(known, topic_ids=topic_ids, known_ids=ids)

    def keeps_snapshots(self, result: RewritingResult, lost_bytes: int) -> bool:
        return False

    def is_whole(self, result: RewritingResult) -> bool:
        return False

    def manifest(self, result: RewritingResult) -> dict[str, Any]:
        return {
            "lost_bytes": result.lost_bytes,
            "losses": [finding_as_json(each) for each in result.losses],
            "repaired": [finding_as_json(each) for each in result.findings if each.code == "batch-repaired"],
            "reconstructed": [finding_as_json(each) for each in result.findings if each.code == "batch-reconstructed"],
        }


def _node_id(image: ClusterImage, here: set[tuple[str, int] | None]) -> int | None:
    """The one node with replicas of all partitions here, or the only node of the cluster; None if unclear."""
    hosts = [
        set(state.replicas)
        for (topic_id, number), state in image.partitions.items()
        if (image.names.get(topic_id), number) in here
    ]
    nodes = set.intersection(*hosts) if hosts else set(image.brokers)
    return nodes.pop() if len(nodes) == 1 else None


def _directory_id(image: ClusterImage, here: set[tuple[str, int] | None], node_id: int) -> str | None:
    """The id of the log directory to which the metadata assigns most of the partitions here."""
    assigned = Counter(
        image.directory_of(topic_id, number, node_id)
        for topic_id, number in image.partitions
        if (image.names.get(topic_id), number) in here
    )
    ids = [each for each, _ in assigned.most_common() if each is not None and not is_reserved(each)]
    return ids[0] if ids else None
