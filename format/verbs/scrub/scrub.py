"""scrub: one pass over the segments of a node that are due, the longest unverified first.

Each segment is read by itself: batch headers, CRCs, and that its batches belong to it. Its digest is held against that
of the last time: only compaction and truncation change a sealed segment, and both leave traces.
"""

from __future__ import annotations

import time
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from functools import partial
from hashlib import blake2b
from pathlib import Path

import msgspec
import numpy as np
from msgspec.structs import replace

from format import layout
from format.checks.batches import OffsetChain
from format.errors import FileChanged, InputError, KafkaLogError
from format.files import meta_properties, offset_checkpoint
from format.findings import FINDING_CODES, Certainty, Finding, Judgement, Severity, finding, finding_of
from format.io.live_broker import is_broker_running, settled
from format.io.session import is_on_disk
from format.io.source import FileState
from format.kernel.tables import F_BASE_OFFSET, F_LOG_BYTES, SEGMENT_COLUMNS
from format.limits import DEFAULT_LIMITS, MIB, Limits
from format.location import Location
from format.log.batch_table import BatchTable, Int64Column
from format.log.control_records import ControlRecord
from format.node.partition import (
    Partition,
    Segment,
    location_of_directory,
    location_of_file,
    parse_partition_dir,
    read_partition,
    segment_file_name,
)
from format.node.partition_surroundings import unread_findings
from format.node.target import Target
from format.scan.drivers import SerialDriver, size_of
from format.scan.progress import Advance, no_progress
from format.scan.protocol import LogUnit
from format.state.cluster_context import topic_id_in
from format.timestamps import DAY_MS, iso_time
from format.verbs.scrub.digest import MASK, Digest, batch_hashes
from format.verbs.scrub.state import KnownPartition, State, VerifiedSegment
from format.verbs.verify.partition_checks import Coverage, LogFold, UnitReport
from format.verbs.verify.verify import compacted_topics_at
from format.verbs.verify.walk import Level, LogWalk

DEFAULT_PERIOD_MS = 21 * DAY_MS
#: The default rate is such that all segments are read in this share of the period, and at most the cap.
_SHARE_OF_PERIOD = 0.8
_LEAST_BYTES_PER_S, _MOST_BYTES_PER_S = MIB, 100 * MIB
_NEVER_MS = -1


class ScrubTerms(msgspec.Struct, frozen=True):
    """How a node is scrubbed.

    ``bytes_per_s`` is the rate that the session keeps, for the record. ``now_ms`` is the clock. The pass ends early
    before a segment if ``ends`` says so, and within one if ``is_stopping`` does.
    """

    period_ms: int = DEFAULT_PERIOD_MS
    bytes_per_s: int = 0
    limits: Limits = DEFAULT_LIMITS
    now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000
    is_stopping: Callable[[], bool] = lambda: False
    ends: Callable[[], bool] = lambda: False
    advance: Advance = no_progress


class DueReplica(msgspec.Struct, frozen=True):
    """A partition directory with segments that are due, and its row in the state. ``topic_id`` is None without one."""

    path: Path
    partition_id: int
    topic_id: str | None
    is_compacted: bool


class Due(msgspec.Struct, frozen=True):
    """A segment that is due. ``next_base_offset`` is -1 for the last segment of its partition."""

    replica: DueReplica
    base_offset: int
    next_base_offset: int


class ScrubPlan(msgspec.Struct):
    """What a pass is to verify: the due segments as rows of int64, sorted, and how much there is in all.

    The columns of ``rows``: when the segment was verified (-1: never), the number of its replica, its base offset, that
    of the next segment, and its size in bytes.
    """

    replicas: list[DueReplica]
    rows: np.ndarray[tuple[int, int], np.dtype[np.int64]]
    findings: list[Finding]
    segment_count: int
    size_bytes: int

    @property
    def due_bytes(self) -> int:
        """The bytes of the due segments."""
        return int(self.rows[:, 4].sum())

    def due(self) -> Iterator[Due]:
        """The due segments, the longest unverified first."""
        for row in self.rows:
            _, number, base_offset, next_base_offset, _ = row.tolist()
            yield Due(self.replicas[number], base_offset, next_base_offset)

    def rate(self, period_ms: int) -> int:
        """The bytes per second at which all segments are read within the period, between the least and the cap."""
        wanted = self.size_bytes / (period_ms / 1000 * _SHARE_OF_PERIOD) if period_ms else _MOST_BYTES_PER_S
        return int(min(max(wanted, _LEAST_BYTES_PER_S), _MOST_BYTES_PER_S))


def plan_pass(targets: Sequence[Target], state: State, terms: ScrubTerms) -> ScrubPlan:
    """List the replicas of log directories and partitions, note in the state what is there, and choose what is due.

    A segment is due if it was never verified, if it was verified before the period began, if it has another size and is
    not the last one, or if it was damaged and its file is another one now. Raises InputError for another kind of path.
    """
    for target in targets:
        if not is_on_disk(target.path):
            raise InputError("scrub reads disks, and not object stores or bundles", Location(str(target.path)))
        target.require_partitions("scrub verifies partitions")
    planner = _Planner(state, terms, compacted_topics_at(targets, terms.limits))
    for target in targets:
        planner.target(target)
    return planner.plan()


class _Planner:
    def __init__(self, state: State, terms: ScrubTerms, compacted_topics: Mapping[str, bool]) -> None:
        self._state, self._terms, self._compacted_topics = state, terms, compacted_topics
        self._now_ms = terms.now_ms()
        self._known = {each.path: each for each in state.partitions()}
        self._listed: set[str] = set()
        self._cleaned: dict[Path, Mapping[tuple[str, int], int]] = {}
        self._roots: list[str] = []
        self._replicas: list[DueReplica] = []
        self._rows = array("q")
        self._findings: list[Finding] = []
        self._segment_count = self._size_bytes = 0

    def target(self, target: Target) -> None:
        """List what is at and below a path."""
        self._findings += target.unread_findings()
        paths = (
            [path for log_dir in target.log_dirs for path in log_dir.partitions] if target.log_dirs else [target.path]
        )
        owners: dict[Path, tuple[int | None, str | None]] = {}
        for path in paths:
            parsed = parse_partition_dir(path.name)
            if parsed is None or parsed[2] is not None:
                continue  # a replica that is being moved is verified at its new place, and deleted ones are not served
            if path.parent not in owners:
                around = path.parent / layout.META_PROPERTIES
                owners[path.parent] = meta_properties.ids_in(around if around.is_file() else None)[:2]
            try:
                self._replica(path, *parsed[:2], owners[path.parent])
            except FileChanged:
                continue  # a broker deleted it
            except KafkaLogError as error:
                if error.code not in FINDING_CODES:
                    raise  # the state cannot be written
                self._listed.add(str(path.absolute()))
                self._findings.append(finding_of(error, location_of_directory(path)))
        self._roots.append(str(target.path.absolute()))

    def _replica(self, path: Path, topic: str, number: int, owner: tuple[int | None, str | None]) -> None:
        partition = read_partition(path)
        self._findings += unread_findings(partition)
        inode = path.stat().st_ino
        base_offsets, sizes = _base_offsets_and_sizes(partition)
        name = str(path.absolute())
        self._listed.add(name)
        self._segment_count += len(base_offsets)
        self._size_bytes += int(sizes.sum())
        known = self._known.get(name)
        still = sizes.copy()
        still[-1:] = 0  # the last segment grows
        listing = blake2b(base_offsets.tobytes() + still.tobytes(), digest_size=16).digest()
        if known is not None and (known.listing, known.directory_inode) == (listing, inode) and self._is_fresh(known):
            return
        if path.parent not in self._cleaned:
            self._cleaned[path.parent] = cleaned_offsets(path.parent, self._terms.limits)
        is_compacted = self._compacted_topics.get(topic, False) or topic in layout.COORDINATOR_TOPICS
        is_compacted = is_compacted or (topic, number) in self._cleaned[path.parent]
        topic_id = topic_id_in(partition.metadata, self._terms.limits)
        is_same = known is not None and (known.directory_inode, known.topic_id) == (inode, topic_id)
        verified = {each.base_offset: each for each in self._state.segments(known.id)} if known and is_same else {}
        rows, gone, may_rest = self._due(path, base_offsets, sizes, verified)
        partition_id = self._state.keep_partition(
            known if is_same else None,
            path=name,
            node_id=owner[0],
            cluster_id=owner[1],
            topic=topic,
            partition=number,
            topic_id=topic_id,
            directory_inode=inode,
            is_compacted=is_compacted,
            listing=listing if may_rest else b"",
            segment_count=len(base_offsets),
            size_bytes=int(sizes.sum()),
        )
        if gone:
            self._state.drop_segments(partition_id, gone, self._now_ms)
        for verified_ms, *place in rows:
            self._rows.extend((verified_ms, len(self._replicas), *place))
        self._replicas.append(DueReplica(path, partition_id, topic_id, is_compacted))

    def _is_fresh(self, known: KnownPartition) -> bool:
        """Whether no segment of a replica whose listing is as it was then has become due by time alone."""
        return known.oldest_ms is None or known.oldest_ms >= self._now_ms - self._terms.period_ms

    def _due(
        self, path: Path, base_offsets: Int64Column, sizes: Int64Column, verified: dict[int, VerifiedSegment]
    ) -> tuple[list[tuple[int, ...]], list[int], bool]:
        """The due segments of a replica, the base offsets that are gone, and whether only time makes others due.

        Each row has when the segment was verified, its base offset, that of the next segment, and its size.
        """
        cutoff_ms = self._now_ms - self._terms.period_ms
        rows: list[tuple[int, ...]] = []
        listed, may_rest = base_offsets.tolist(), True
        for base_offset, next_base_offset, size in zip(listed, [*listed[1:], -1], sizes.tolist(), strict=True):
            known = verified.pop(base_offset, None)
            may_rest = may_rest and known is not None and not known.is_damaged
            if known is None:
                rows.append((_NEVER_MS, base_offset, next_base_offset, size))
            elif (
                (known.size_bytes != size and next_base_offset >= 0)
                or known.verified_ms < cutoff_ms
                or (known.is_damaged and not known.is_still(path / segment_file_name(base_offset, layout.LOG_SUFFIX)))
            ):
                rows.append((known.verified_ms, base_offset, next_base_offset, size))
        return rows, list(verified), may_rest and not rows

    def plan(self) -> ScrubPlan:
        """The plan. What is known below the paths and no longer there is forgotten."""
        for path, known in self._known.items():
            if path not in self._listed and any(path == root or path.startswith(f"{root}/") for root in self._roots):
                self._state.drop_partition(known.id)
        rows = np.frombuffer(self._rows, np.int64).reshape(-1, 5)
        order = np.lexsort((rows[:, 2], rows[:, 1], rows[:, 0]))
        return ScrubPlan(self._replicas, rows[order], self._findings, self._segment_count, self._size_bytes)


def _base_offsets_and_sizes(partition: Partition) -> tuple[Int64Column, Int64Column]:
    """The base offsets of the live logs of a partition in order, and their sizes in bytes."""
    live = partition.live_files
    if live is not None:
        columns = np.frombuffer(live.columns, np.int64).reshape(-1, len(SEGMENT_COLUMNS))
        return columns[:, F_BASE_OFFSET].copy(), columns[:, F_LOG_BYTES].copy()
    logs = [(each.base_offset, size_of(each.log)) for each in partition.segments if each.log is not None]
    columns = np.array(logs, np.int64).reshape(-1, 2)
    return columns[:, 0].copy(), columns[:, 1].copy()


def cleaned_offsets(log_dir: Path, limits: Limits) -> Mapping[tuple[str, int], int]:
    """By partition, the offset to which the cleaner has cleaned its log, by the checkpoint; empty without one."""
    path = log_dir / layout.CLEANER_OFFSET_CHECKPOINT
    if path.is_file():
        with suppress(KafkaLogError):
            return {(each.topic, each.partition): each.offset for each in offset_checkpoint.read(path, limits).entries}
    return {}


class _Stopped(Exception):
    """The pass is to end, in the middle of a segment."""


def scrub(plan: ScrubPlan, state: State, terms: ScrubTerms) -> Iterator[Finding]:
    """Verify what is due by a plan, and write each result into the state; yields the findings.

    Raises OutputError if the state cannot be written.
    """
    yield from plan.findings
    pass_id = state.begin_pass(terms.now_ms(), terms.bytes_per_s, len(plan.findings))
    is_complete = False
    try:
        for due in plan.due():
            if terms.ends():
                return
            yield from _Check(due, state, terms).done(pass_id)
        is_complete = True
    except _Stopped:
        return
    finally:
        state.end_pass(pass_id, terms.now_ms(), is_complete=is_complete)


class _Seen(msgspec.Struct):
    """The sound batches of one reading of a segment, and what of them was there the last time.

    ``known_sum`` is the sum of the batches that end at or before the last time's end, and ``known_epoch`` the highest
    leader epoch among batches before the last time's end offset.
    """

    known: VerifiedSegment | None
    digest: Digest = msgspec.field(default_factory=Digest)
    verified_bytes: int = 0
    end_offset: int = -1
    last_epoch: int = -1
    known_sum: int = 0
    known_epoch: int = -1

    def take(self, table: BatchTable, markers: dict[int, ControlRecord]) -> None:
        last_offsets = table.last_offset
        if not len(table) or int(last_offsets.min()) < 0:
            return  # no broker writes such offsets, and the check of the headers reports them
        hashes = batch_hashes(table)
        self.digest.add(last_offsets, hashes)
        self.verified_bytes = int(table.end_position[-1])
        self.end_offset = max(self.end_offset, int(last_offsets.max()) + 1)
        self.last_epoch = max(self.last_epoch, int(table.leader_epoch.max()))
        if self.known is not None:
            is_known = table.end_position <= self.known.verified_bytes
            self.known_sum = (self.known_sum + int(hashes[is_known].sum(dtype=np.uint64))) & MASK
            is_before = last_offsets < self.known.end_offset
            if is_before.any():
                self.known_epoch = max(self.known_epoch, int(table.leader_epoch[is_before].max()))


class _Check(msgspec.Struct):
    """The verification of one segment."""

    due: Due
    state: State
    terms: ScrubTerms

    def done(self, pass_id: int) -> Iterator[Finding]:
        """Verify the segment, write the result, and yield what was found. Raises _Stopped."""
        replica, base_offset = self.due.replica, self.due.base_offset
        path = replica.path / segment_file_name(base_offset, layout.LOG_SUFFIX)
        location = location_of_file(path)
        next_base_offset = None if self.due.next_base_offset < 0 else self.due.next_base_offset
        segment = Segment(replica.path, base_offset, None, {layout.LOG_SUFFIX: path})
        found, verified = self._look(LogUnit(path, location, segment, next_base_offset))
        if found:
            # The plan may be old: the segment may be another one now, or have another one after it.
            again = partial(self._look_anew, path, location)
            found, verified = again()
            if found and is_broker_running(replica.path):
                found, verified = settled((found, verified), again, location)
        if verified is None:
            self.state.drop_segments(replica.partition_id, [base_offset], self.terms.now_ms())
            return
        self.state.keep_segment(replica.partition_id, verified, found, pass_id)
        yield from found

    def _look_anew(self, path: Path, location: Location) -> tuple[list[Finding], VerifiedSegment | None]:
        """List the partition and read the segment again; nothing is found in one that no longer exists."""
        try:
            partition = read_partition(self.due.replica.path)
        except KafkaLogError:
            return [], None
        for segment in partition.segments:
            if segment.base_offset == self.due.base_offset and segment.log is not None:
                return self._look(LogUnit(path, location, segment, partition.next_base_offset(segment)))
        return [], None

    def _look(self, log: LogUnit) -> tuple[list[Finding], VerifiedSegment | None]:
        """The findings of one reading of the segment, and its row of the state; None where it is no longer there.

        One that cannot be read has a row as a damaged one has: it is read again when it changed, or is due.
        """
        known = self.state.segment(self.due.replica.partition_id, self.due.base_offset)
        walk, report, seen = LogWalk(Level.CRC, self.terms.limits), UnitReport(Coverage()), _Seen(known)
        offsets = OffsetChain(is_compacted=True)  # what is missing between segments is verify's to find
        offsets.start_segment(self.due.base_offset, log.next_base_offset)
        changed_ns = 0
        with suppress(OSError):  # reading the file reports it
            changed_ns = log.path.stat().st_ctime_ns
        parts = SerialDriver(walk, self.terms.advance).parts(log)
        with closing(parts):
            for _ in LogFold(log, offsets, walk, report.coverage, report.add, across=seen.take).folded(parts):
                if self.terms.is_stopping():
                    raise _Stopped
        found = [each for each in report.ended() if each.severity > Severity.INFO or each.is_incomplete]
        file = parts.state
        if file is None:
            if not any(each.code == "file-unreadable" for each in found):
                return found, None
            try:
                status = log.path.stat()
            except OSError:
                return found, None
            file = FileState(status.st_size, status.st_mtime_ns, (status.st_dev, status.st_ino))
        is_damaged = any(each.severity > Severity.INFO for each in found)
        verified = self._verified(seen, file, changed_ns, is_damaged=is_damaged)
        if known is not None and not (is_damaged or known.is_damaged):
            changed = self._changed(log, known, seen)
            if changed is not None:
                return [*found, changed], replace(known, verified_ms=verified.verified_ms)  # it is compared again
        return found, verified

    def _verified(self, seen: _Seen, file: FileState, changed_ns: int, *, is_damaged: bool) -> VerifiedSegment:
        base_offset = self.due.base_offset
        return VerifiedSegment(
            base_offset,
            max(seen.end_offset, base_offset),
            file.device_inode[1],
            file.size_bytes,
            file.mtime_ns,
            changed_ns,
            seen.verified_bytes,
            seen.last_epoch,
            self.terms.now_ms(),
            is_damaged,
            b"" if is_damaged else seen.digest.packed(),
        )

    def _changed(self, log: LogUnit, known: VerifiedSegment, seen: _Seen) -> Finding | None:
        """A finding if batches that were there the last time are others now, and no broker can have changed them."""
        is_shorter = seen.verified_bytes < known.verified_bytes
        if not is_shorter and seen.known_sum == Digest.of_packed(known.digest).total:
            return None
        replica = self.due.replica
        try:
            if topic_id_in(read_partition(replica.path).metadata, self.terms.limits) != replica.topic_id:
                return None  # the topic was deleted and made again
        except KafkaLogError:
            return None  # a broker deleted it
        is_untouched = known.is_still(log.path)
        if not is_untouched and self._is_compacted():
            return None
        if is_shorter:
            next_base_offset = log.next_base_offset
            if next_base_offset is None or next_base_offset <= seen.end_offset:
                return None  # the log was truncated, and goes on where this segment ends now
        elif seen.known_epoch > known.last_epoch:
            return None  # truncated, and written anew under a later leader
        certainty = Certainty.LIKELY
        if is_untouched:
            certainty = Certainty.PROVEN
        elif replica.topic_id is None:
            certainty = Certainty.POSSIBLE  # another topic may have the name now
        then = iso_time(known.verified_ms)
        if is_untouched:
            how = "nothing has written the file since, by its size and time: the disk or the file system changed it"
        else:
            how = "the file was written since, and neither truncation nor compaction explains it"
        what = "fewer batches are in it" if is_shorter else "its batches are others"
        return finding(
            "segment-changed",
            log.location,
            f"{what} than at {then}, with right CRCs; {how}",
            judgement=Judgement(Severity.WARNING if certainty is Certainty.POSSIBLE else None, certainty),
        )

    def _is_compacted(self) -> bool:
        """Whether the cleaner may have made another file of the segment, by the checkpoint as it is now."""
        path = self.due.replica.path
        parsed = parse_partition_dir(path.name)
        cleaned = cleaned_offsets(path.parent, self.terms.limits)
        return self.due.replica.is_compacted or (parsed is not None and parsed[:2] in cleaned)
