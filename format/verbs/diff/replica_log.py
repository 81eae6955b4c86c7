"""Reads the log of one replica chunk by chunk, beside the logs of the other replicas.

Where another replica has the same bytes at the same place, its chunk is shared: the batches are not parsed or checked a
second time.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from pathlib import Path
from typing import cast

import msgspec
import numpy as np
from numpy.typing import NDArray

from format import layout
from format.errors import FileChanged, InputError, KafkaLogError, NotALogDir
from format.files import meta_properties, partition_metadata
from format.files.leader_epoch_checkpoint import EpochEntry
from format.findings import Finding, finding, finding_of
from format.io.session import is_on_disk
from format.io.source import FileSource, FileState, check_unchanged
from format.layout import MAX_RELATIVE_OFFSET
from format.limits import Limits
from format.location import Location
from format.log.batch_chunk import WHOLE_LOG, BatchChunk, BatchRange
from format.log.batch_header import read_header
from format.log.batch_table import BatchTable
from format.log.longest_chain import chosen_chain
from format.log.walker import BatchWalk
from format.node.log_dir import Checkpoints, Kind, directory_around
from format.node.offsets import PartitionOffsets, offsets_of
from format.node.partition import Partition, Segment, location_of_directory
from format.node.partition_surroundings import denied_log, unread_findings
from format.node.target import Target
from format.offset_ranges import Int64s, Range
from format.scan.progress import Advance
from format.scan.protocol import Cost, LogUnit
from format.scan.read_log import NOT_ELSEWHERE, LogChunk, batches_of, chunks_with_crcs, opened_chunks
from format.scan.selected_logs import every_log_of
from format.scan.selection import EVERYTHING
from format.scan.whole_units import ResultT, WholeUnits
from format.state.cluster_context import Assignment, ClusterContext, named_nodes

_MAX_OFFSET = 2**63 - 1
#: Seconds for each byte, measured with replicas of equal bytes.
_COST = Cost(batch_s=0.0, byte_s=1.1e-9, compressed_byte_s=1.1e-9)
#: The most ranges and findings of damage that are kept for one replica.
MOST_DAMAGED = 1000


class Replica(msgspec.Struct, frozen=True):
    """One copy of a partition, with the facts from the files beside its log."""

    partition: Partition
    offsets: PartitionOffsets
    topic_id: str | None = None
    node_id: int | None = None
    cluster_id: str | None = None  # of the log directory; None where there is none around the partition
    was_cleaned: bool | None = None  # whether the cleaner's checkpoint has the partition; None without a checkpoint
    voters: tuple[int, ...] | None = None  # of the metadata log: the nodes that it asks for votes; None: not known

    @property
    def path(self) -> Path:
        return self.partition.path

    @property
    def log_start_offset(self) -> int:
        """The first offset that a broker serves from this directory."""
        return max(self.offsets.log_start_offset or 0, self.offsets.local_start_offset or 0)

    @property
    def size_bytes(self) -> int:
        """Bytes of the logs."""
        return self.partition.sizes.log_size_bytes


class Replicas(msgspec.Struct):
    """The replicas of one partition, in the order of the paths, and what the metadata at hand says of it."""

    topic: str | None
    number: int | None
    replicas: list[Replica] = msgspec.field(default_factory=list)
    assignment: Assignment = msgspec.field(default_factory=Assignment)

    @property
    def name(self) -> str:
        """The partition's name, or that of the directory where it has no partition's name."""
        return f"{self.topic}-{self.number}" if self.topic is not None else self.replicas[0].partition.name

    @property
    def size_bytes(self) -> int:
        return sum(each.size_bytes for each in self.replicas)

    @property
    def with_id(self) -> Replica:
        """The first replica whose topic id is known, or the first of all."""
        return next((each for each in self.replicas if each.topic_id is not None), self.replicas[0])

    def assign(self, context: ClusterContext) -> None:
        """Note what the metadata says of the partition."""
        self.assignment = context.assignment_of(self.with_id.partition, self.with_id.topic_id)


class OfReplicas(WholeUnits[Replicas, ResultT]):
    """The base of scans that read the replicas of partitions, one partition after the other."""

    __slots__ = ()
    cost = _COST

    def logs(self, unit: Replicas) -> Sequence[LogUnit]:
        return tuple(log for replica in unit.replicas for log in every_log_of(replica.partition))


class Matching(msgspec.Struct):
    """The partitions below the paths: those with several replicas, and those with one.

    ``apart`` are notes about paths of different clusters, which are not compared.
    """

    groups: list[Replicas] = msgspec.field(default_factory=list)
    single: list[Replicas] = msgspec.field(default_factory=list)
    findings: list[Finding] = msgspec.field(default_factory=list)
    apart: list[str] = msgspec.field(default_factory=list)

    def not_checked(self) -> list[str]:
        """Notes about clusters, partitions with one replica, and brokers that run; empty where there are none."""
        notes = list(self.apart)
        if self.single:
            names = ", ".join(each.name for each in self.single[:3]) + (", …" if len(self.single) > 3 else "")
            words = "a partition" if len(self.single) == 1 else f"{len(self.single)} partitions"
            notes.append(f"{words} with one replica here: {names}")
        found = [each for group in self.groups for each in group.replicas if each.offsets.is_broker_running]
        running = sorted({-1 if each.node_id is None else each.node_id for each in found})
        if running:
            who = "a broker" if -1 in running else named_nodes(running)
            notes.append(f"one moment of all replicas: {who} {'runs' if len(running) == 1 else 'run'}")
        return notes


def matched(targets: Sequence[Target], limits: Limits, command: str = "diff compares") -> Matching:
    """Match the partitions of log directories by topic, number and topic id; ``command`` is for messages.

    Partition directories that are given one by one are replicas of each other whatever their names. Raises InputError
    for a path without a partition, and for directories of different partitions.
    """
    for target in targets:
        if target.kind not in (Kind.LOG_DIR, Kind.PARTITION):
            raise NotALogDir(f"{command} partitions and log directories", Location(str(target.path)))
    result = Matching()
    replicas = list(replicas_at(targets, limits, result.findings))
    seen: dict[tuple[int, int], Path] = {}
    for replica in replicas:
        _refuse_same_directory(replica, seen)
    groups: dict[tuple[str | None, int | None], list[Replicas]] = {}
    if all(target.kind is Kind.PARTITION for target in targets):
        keys = sorted({each.partition.key for each in replicas if each.partition.key is not None})
        if len(keys) > 1:
            names = " and ".join(f"{topic}-{number}" for topic, number in keys[:2])
            raise InputError(
                f"{names} are different partitions, not replicas of one partition", Location(str(targets[0].path))
            )
        for replica in replicas:
            _add(groups.setdefault(keys[0] if keys else (None, None), []), replica)
    else:
        for replica in replicas:
            if replica.partition.key is not None and replica.partition.mark is None:
                _add(groups.setdefault(replica.partition.key, []), replica)
    clusters: set[tuple[str, str]] = set()
    for key in sorted(groups):
        if len(groups[key]) > 1:
            first, second = groups[key][0].replicas[0], groups[key][1].replicas[0]
            one, other = first.cluster_id, second.cluster_id
            if one == other or one is None or other is None:
                if first.node_id is not None and first.node_id == second.node_id:  # a log, and a copy of another time
                    words = f"both are of node {first.node_id}, and of two topics of one name"
                    result.apart.append(f"{second.path} against {first.path}: {words}")
                else:
                    result.findings.append(_conflict(first, second))
            elif (one, other) not in clusters:  # said once
                clusters.add((one, other))
                result.apart.append(f"{second.path} against {first.path}: they are of two clusters, {other} and {one}")
        for group in groups[key]:
            group.topic, group.number = key
            if len(group.replicas) > 1:
                result.groups.append(group)
            else:
                result.single.append(group)
    return result


def _add(groups: list[Replicas], replica: Replica) -> None:
    """Add a replica to the group of its topic id and cluster id; one without ids belongs to the first group."""
    for group in groups:
        if all(may_be_one(each, replica) for each in group.replicas):
            group.replicas.append(replica)
            return
    groups.append(Replicas(replica.partition.topic, replica.partition.number, [replica]))


def may_be_one(first: Replica, second: Replica) -> bool:
    """Whether two replicas may be of one partition: the ids that both have are the same."""
    topics, clusters = (first.topic_id, second.topic_id), (first.cluster_id, second.cluster_id)
    return all(None in ids or ids[0] == ids[1] for ids in (topics, clusters))


def _conflict(first: Replica, second: Replica) -> Finding:
    """That directories of one name are of two topics."""
    expected, actual = first.topic_id, second.topic_id
    return finding(
        "topic-id-conflict",
        second.partition.location(),
        f"the topic id is {actual}, in {first.path} it is {expected}: these are not replicas of one partition",
        expected=expected,
        actual=actual,
    )


def _refuse_same_directory(replica: Replica, seen: dict[tuple[int, int], Path]) -> None:
    """Raise InputError for a partition directory that was found before: a log compared with itself proves nothing."""
    if not is_on_disk(replica.path) or not replica.path.is_dir():
        return
    status = replica.path.stat()
    other = seen.setdefault((status.st_dev, status.st_ino), replica.path)
    if other is not replica.path:
        message = f"the same directory as {other}: give the directories of different replicas"
        raise InputError(message, Location(str(replica.path)))


def replicas_at(targets: Iterable[Target], limits: Limits, findings: list[Finding]) -> Iterator[Replica]:
    """The replicas at and below the targets; adds findings about directories and logs that cannot be read."""
    for target in targets:
        if target.kind is Kind.PARTITION:
            file = directory_around(target.path) / layout.META_PROPERTIES  # not beside a partition that was copied
            ids = meta_properties.ids_in(file, limits)[:2]
            yield from _replica(target.partition, target.checkpoints_around(limits), ids, limits, findings)
            continue
        findings.extend(target.link_findings())
        for log_dir in target.log_dirs:
            findings.extend(log_dir.unread_findings())
            checkpoints = log_dir.checkpoints(limits)
            findings.extend(checkpoints.findings)
            ids = meta_properties.ids_in(log_dir.meta_properties, limits)[:2]
            for path in log_dir.partitions:
                try:
                    partition = log_dir.partition(path)
                except KafkaLogError as error:
                    findings.append(finding_of(error, location_of_directory(path)))
                    continue
                yield from _replica(partition, checkpoints, ids, limits, findings)


def _replica(
    partition: Partition,
    checkpoints: Checkpoints,
    ids: tuple[int | None, str | None],
    limits: Limits,
    findings: list[Finding],
) -> Iterator[Replica]:
    """The replica in a partition directory; where this user must not read one of its logs, a finding instead."""
    findings.extend(unread_findings(partition))
    denied = denied_log(partition)
    if denied is not None:
        findings.append(finding_of(denied))
        return
    topic_id = None
    if partition.metadata is not None:
        try:
            topic_id = partition_metadata.read(partition.metadata, limits).topic_id
        except KafkaLogError as error:
            findings.append(finding_of(error, partition.location(partition.metadata)))
    name, was_cleaned = layout.CLEANER_OFFSET_CHECKPOINT, None
    if name in checkpoints.by_name:
        was_cleaned = checkpoints.offset(name, partition.key) is not None
    yield Replica(partition, offsets_of(partition, checkpoints), topic_id, *ids, was_cleaned)


class Window(msgspec.Struct, frozen=True):
    """Batches of one chunk: their rows, and their first and last offsets, which rise."""

    chunk: BatchChunk
    rows: NDArray[np.intp]
    base_offset: Int64s
    last_offset: Int64s

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def table(self) -> BatchTable:
        return self.chunk.table.rows(self.rows)

    @property
    def has_records(self) -> bool:
        """Whether the records can be read; a bundle has headers only."""
        return self.chunk.buffer is not None

    def picked(self, which: NDArray[np.bool_]) -> Window:
        """The batches that a mask selects."""
        return Window(self.chunk, self.rows[which], self.base_offset[which], self.last_offset[which])


class _OpenSegment(msgspec.Struct):
    """The segment that is being read. ``walked`` is None while all its batches come from other replicas.

    ``walk`` reads the chunks of ``walked``, and can skip those that are shared; None for a log in a bundle. ``chain``
    are the positions of the batches in their order, where batches on both sides of damage contradict each other.
    """

    segment: Segment
    next_base_offset: int | None
    location: Location
    source: FileSource
    position: int = 0
    after_offset: int | None = None
    walk: BatchWalk | None = None
    walked: Iterator[LogChunk | Finding] | None = None
    chain: Int64s | None = None

    @property
    def last_possible(self) -> int:
        """The largest offset that a batch can have."""
        last = self.segment.base_offset + MAX_RELATIVE_OFFSET
        return min(last, _MAX_OFFSET - 1 if self.next_base_offset is None else self.next_base_offset - 1)


class ReplicaLog:
    """Reads a log chunk by chunk: ``chunk`` is the current one, None before the first and after the last.

    ``damaged`` are the offsets found unreadable so far, ``changed`` those of them whose file a broker truncated or
    deleted meanwhile. ``epochs`` are the leader epochs of the batches so far.
    ``misplaced`` are the offsets where a batch may belong whose bytes are intact but for a field outside their CRC.
    ``findings`` grows, and callers may empty it.
    """

    def __init__(self, replica: Replica, limits: Limits, advance: Advance) -> None:
        self.replica = replica
        self.chunk: BatchChunk | None = None
        self.is_at_end = False
        self.is_complete = True
        self.findings: list[Finding] = []
        self.damaged: list[Range] = []
        self.changed: list[Range] = []
        self.misplaced: list[Range] = []
        self.epochs: list[EpochEntry] = []
        self.highest_offset = -1
        self._limits = limits
        self._advance = advance
        self._segments = iter(replica.partition.segments)
        self._open: _OpenSegment | None = None
        self._rows: NDArray[np.intp] = np.empty(0, np.intp)
        self._bases: Int64s = np.empty(0, np.int64)
        self._ends: Int64s = np.empty(0, np.int64)
        self._next = 0
        self._misplaced_from: int | None = None  # where such a batch may begin, until the next one is known
        self.is_plain = False  # whether every batch of the chunk is sound, so that another replica may share it

    # -- the rest of the current chunk ---------------------------------------------------------------------

    @property
    def has_batches(self) -> bool:
        return self._next < len(self._rows)

    @property
    def last_offset(self) -> int:
        """The last offset of the current chunk."""
        return int(self._ends[-1])

    @property
    def log_end_offset(self) -> int:
        """The offset after the last batch so far; for a log without batches, the base offset of its last segment."""
        segments = self.replica.partition.segments
        return max(self.highest_offset + 1, segments[-1].base_offset if segments else 0)

    def window(self, last: int) -> Window | None:
        """The batches left of the current chunk up to an offset; None for none."""
        if self.chunk is None:
            return None
        some = slice(self._next, int(np.searchsorted(self._bases, last, "right")))
        if some.start >= some.stop:
            return None
        return Window(self.chunk, self._rows[some], self._bases[some], self._ends[some])

    def consume(self, last: int) -> None:
        """Drop the batches that end at or before an offset."""
        self._next = int(np.searchsorted(self._ends, last, "right"))

    # -- reading -----------------------------------------------------------------------------------------------

    def load(self, others: list[ReplicaLog]) -> None:
        """Make the next chunk with batches the current one, or set ``is_at_end``."""
        while not self.is_at_end:
            try:
                if self._open is None and not self._open_next():
                    self.is_at_end, self.chunk = True, None
                    return
                chunk = self._next_chunk(others)
            except KafkaLogError as error:
                self._leave_unread(error)
                continue
            if chunk is not None and self._take(chunk):
                return

    def close(self) -> None:
        """Close the open file."""
        if self._open is not None:
            self._open.source.close()
            self._open = None

    def _open_next(self) -> bool:
        segment = next(self._segments, None)
        if segment is None:
            return False
        partition = self.replica.partition
        if segment.log is None:
            raise ValueError("a segment of a partition has a log")
        location = partition.location(segment.log, segment.base_offset)
        next_base_offset = partition.next_base_offset(segment)
        try:
            source = FileSource(segment.log)
        except KafkaLogError as error:
            self._note(finding_of(error, location))
            self._note_unread(error, segment.base_offset, next_base_offset)
            return self._open_next()
        self._open = _OpenSegment(segment, next_base_offset, location, source)
        return True

    def _next_chunk(self, others: list[ReplicaLog]) -> BatchChunk | None:
        """The next chunk of the open segment, perhaps shared with another replica; None at the segment's end."""
        opened = self._opened
        if opened.walked is None and opened.position >= opened.source.size_bytes:
            self._end_segment()
            return None
        chunk = self._shared_chunk(others)
        if chunk is not None:
            if opened.walk is not None:
                opened.walk.skip(chunk)
            self._advance_to(opened, chunk)
            return chunk
        if opened.walked is None:
            opened.walked = self._walk(opened)
        for item in opened.walked:
            if isinstance(item, Finding):
                self._note(item)
                continue
            if item.chunk.damage is not None:
                self._note(cast(Finding, next(opened.walked)))  # of the damage: what follows may be shared
            self._advance_to(opened, item.chunk)
            return item.chunk
        self._end_segment()
        return None

    @property
    def _opened(self) -> _OpenSegment:
        if self._open is None:
            raise ValueError("no segment is open")
        return self._open

    def _advance_to(self, opened: _OpenSegment, chunk: BatchChunk) -> None:
        self._advance(chunk.covered_bytes)
        opened.position = chunk.buffer_position + chunk.covered_bytes
        if len(chunk.table):
            opened.after_offset = chunk.table.last_offset_of(len(chunk.table) - 1)

    def _walk(self, opened: _OpenSegment) -> Iterator[LogChunk | Finding]:
        place = BatchRange(opened.position, after_offset=opened.after_offset, read_from=0)
        chunks: Iterable[BatchChunk]
        if opened.source.headers_only is None:
            chunks = opened.walk = BatchWalk(opened.source, place, self._limits)
        else:
            chunks = chunks_with_crcs(opened.source, place, self._limits)
        log = LogUnit(opened.source.place, opened.location, None, opened.next_base_offset)
        return opened_chunks(opened.source, chunks, log, EVERYTHING, limits=self._limits, elsewhere=NOT_ELSEWHERE)

    def _shared_chunk(self, others: Sequence[ReplicaLog]) -> BatchChunk | None:
        """The chunk of another replica, or the rest of it, if the bytes here are the same at the same position.

        None after damage whose batches are not in their order.
        """
        opened = self._opened
        if opened.source.headers_only is not None or opened.chain is not None:
            return None
        found: list[tuple[int, BatchChunk]] = []
        for other in others:
            chunk = other.chunk
            if other is self or chunk is None or chunk.buffer is None or not other.is_plain:
                continue
            if any(each is chunk for _, each in found):
                continue  # the two share it
            if other.replica_segment_base == opened.segment.base_offset:
                row = int(np.searchsorted(chunk.headers.position, opened.position))
                if row < len(chunk.headers) and int(chunk.headers.position[row]) == opened.position:
                    found.append((row, chunk))
        for row, chunk in sorted(found, key=lambda each: each[0]):  # a whole chunk is shared by all replicas
            if row and len(chunk.headers) != len(chunk.table):
                continue  # of messages in wrappers
            start, end = opened.position - chunk.buffer_position, chunk.covered_bytes
            content = opened.source.read_at(opened.position, len(chunk.bodies) - start)
            if content == chunk.bodies.obj:  # bytes against bytes: memoryviews are compared element by element
                return chunk
            if content[: end - start] == bytes(chunk.bodies[start:end]):
                return chunk if not row else chunk.rest(row)
        return None

    @property
    def replica_segment_base(self) -> int:
        """The base offset of the segment of the current chunk; -1 where it is closed already."""
        return -1 if self._open is None else self._open.segment.base_offset

    @property
    def file(self) -> tuple[Path, FileState]:
        """The file of the current chunk, and its state when it was opened."""
        return self._opened.source.place, self._opened.source.state

    def _end_segment(self) -> None:
        opened = self._opened
        self._advance(max(opened.source.size_bytes - opened.position, 0))
        path, state = opened.source.place, opened.source.state
        self.close()
        check_unchanged(path, state, opened.location)

    def _leave_unread(self, error: KafkaLogError) -> None:
        """Note that the rest of a segment cannot be read, and go on after it."""
        opened = self._open
        self._note(finding_of(error, self.replica.partition.location() if opened is None else opened.location))
        if opened is None:
            return
        self._note_unread(error, max(self.highest_offset + 1, opened.segment.base_offset), opened.next_base_offset)
        self.close()

    def _note_unread(self, error: KafkaLogError, first: int, next_base_offset: int | None) -> None:
        self.is_complete = False
        last = _MAX_OFFSET if next_base_offset is None else next_base_offset - 1
        if first <= last:
            self.damaged.append((first, last))
            self.changed += [(first, last)] if isinstance(error, FileChanged) else []

    def _note(self, found: Finding) -> None:
        if found.lost_offsets is not None:
            self.note_damaged(found.lost_offsets)
        if len(self.findings) < MOST_DAMAGED:
            self.findings.append(found)

    def note_damaged(self, lost: Range) -> None:
        """Add offsets that cannot be read."""
        if len(self.damaged) < MOST_DAMAGED:
            self.damaged.append(lost)
        else:  # too many: the last range is extended
            self.damaged[-1] = (min(self.damaged[-1][0], lost[0]), max(self.damaged[-1][1], lost[1]))

    def _take(self, chunk: BatchChunk) -> bool:
        """Make a chunk the current one; False if it has no batch that can be compared."""
        table, opened = chunk.table, self._opened
        rows = _sound_rows(chunk)
        bases, ends = table.base_offset[rows], table.last_offset[rows]
        least, most = max(self.highest_offset + 1, opened.segment.base_offset), opened.last_possible
        first = opened.segment.base_offset if len(table) and int(table.position[0]) == 0 else None
        kept = _rising(bases, ends, least, most, first)
        next_base = None if chunk.damage is None else chunk.damage.next_base_offset
        if chunk.damage is None and opened.chain is None and opened.position < opened.source.size_bytes:
            header = read_header(opened.source, opened.position)
            next_base = None if header is None else header.base_offset
        if opened.chain is None and next_base is not None and kept.any() and int(ends[kept][-1]) >= next_base:
            opened.chain = self._chain(opened)  # this chunk and what follows contradict each other
        if opened.chain is not None:
            kept &= np.isin(table.position[rows], opened.chain)
        if self._misplaced_from is not None and kept.any():
            self._note_place(self._misplaced_from, int(bases[kept][0]) - 1)
            self._misplaced_from = None
        if chunk.damage is not None and chunk.damage.readable is not None:
            self.misplaced.append(chunk.damage.readable)
        if not kept.all():
            self._note_misplaced(table, rows[~kept], opened.location)
            self._note_places(bases, ends, kept)
            rows, bases, ends = rows[kept], bases[kept], ends[kept]
        self._rows, self._bases, self._ends, self._next = rows, bases, ends, 0
        if not len(rows):
            return False
        self.chunk = chunk
        is_whole = len(rows) == len(table) and chunk.damage is None
        self.is_plain = is_whole and chunk.buffer is not None and isinstance(chunk.buffer.obj, bytes)
        self.highest_offset = int(ends[-1])
        self._note_epochs(table, rows)
        return True

    def _chain(self, opened: _OpenSegment) -> Int64s:
        """The positions of the batches of a segment that are in its longest chain of rising offsets."""
        found = [np.empty((0, 3), np.int64)]
        for each in chunks_with_crcs(opened.source, WHOLE_LOG, self._limits):
            chunk = batches_of(each, opened.source, self._limits)
            table = chunk.table.rows(_sound_rows(chunk))
            found.append(np.column_stack((table.position, table.base_offset, table.last_offset)))
        positions, bases, ends = np.concatenate(found).T
        first = opened.segment.base_offset if len(positions) and int(positions[0]) == 0 else None
        kept: Int64s = positions[_rising(bases, ends, opened.segment.base_offset, opened.last_possible, first)]
        return kept

    def _note_places(self, bases: Int64s, ends: Int64s, kept: NDArray[np.bool_]) -> None:
        """Note where the batches that are not kept may belong: between the kept ones around them."""
        before = np.maximum.accumulate(np.where(kept, ends, self.highest_offset))
        after = np.minimum.accumulate(np.where(kept, bases, _MAX_OFFSET)[::-1])[::-1]
        for row in np.flatnonzero(~kept).tolist():
            if after[row] < _MAX_OFFSET:
                self._note_place(int(before[row]) + 1, int(after[row]) - 1)
            elif self._misplaced_from is None:
                self._misplaced_from = int(before[row]) + 1

    def _note_place(self, first: int, last: int) -> None:
        if first <= last and (first, last) not in self.misplaced[-1:]:
            self.misplaced.append((first, last))

    def _note_misplaced(self, table: BatchTable, rows: NDArray[np.intp], location: Location) -> None:
        row = int(rows[0])
        where = location.at(int(table.position[row]), int(table.size_bytes[row]), int(table.base_offset[row]))
        count = len(rows)
        if count == 1:
            words = "a batch claims offsets that do not follow those before it: it is not compared"
        else:
            words = f"{count} batches claim offsets that do not follow those before them: they are not compared"
        self._note(finding("offset-not-increasing", where, words))

    def _note_epochs(self, table: BatchTable, rows: NDArray[np.intp]) -> None:
        highest = self.epochs[-1].leader_epoch if self.epochs else -1
        epochs = np.where(table.magic[rows] == 2, table.leader_epoch[rows], -1)
        if len(epochs) and int(epochs.max()) > highest:
            running = np.maximum.accumulate(np.concatenate(([highest], epochs)))
            for at in np.flatnonzero(running[1:] > running[:-1]).tolist():
                self.epochs.append(EpochEntry(int(epochs[at]), int(table.base_offset[rows[at]])))


def steps_of(logs: list[ReplicaLog]) -> Generator[int, None, None]:
    """The last offset of each step in which logs are read beside each other: all have a chunk that begins before it.

    They are closed at the end.
    """
    try:
        while True:
            for log in logs:
                if not log.has_batches:
                    log.load(logs)
            reading = [log for log in logs if not log.is_at_end]
            if not reading:
                return
            last = min(log.last_offset for log in reading)
            yield last
            for log in reading:
                log.consume(last)
    finally:
        for log in logs:
            log.close()


def _sound_rows(chunk: BatchChunk) -> NDArray[np.intp]:
    """The rows of the batches with a right CRC, without repetitions of batches before."""
    sound = chunk.table.crc_valid == 1
    if chunk.repeated is not None:
        sound &= ~chunk.repeated
    return np.flatnonzero(sound)


def _rising(bases: Int64s, ends: Int64s, least: int, most: int, first: int | None) -> NDArray[np.bool_]:
    """Which batches have offsets inside the bounds, each after those of the batch before.

    The CRC does not cover the base offset, and a single wrong one must not make all following batches wrong: those of
    the longest chain are kept. ``first`` is the offset at which they begin, None if damage is before them.
    """
    kept: NDArray[np.bool_] = (bases >= least) & (ends <= most) & (bases <= ends)
    rows = np.flatnonzero(kept)
    kept[rows] = chosen_chain(bases[rows], ends[rows], first=first).is_kept
    return kept
