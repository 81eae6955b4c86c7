"""The listing of a partition directory: its log as a whole, its segments, checkpoints and other files.

The totals of logs come from their batch headers: of one log with its damage, of many small sound ones in one call."""

from __future__ import annotations

import errno
import os
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from msgspec.structs import replace

from format import layout
from format.columns import PARTITION, SEGMENT
from format.errors import KafkaLogError, UnreadableFile
from format.files import offset_index, producer_snapshot, time_index
from format.files.side_file import problem_findings, read_reported
from format.findings import Finding, Judgement, finding, finding_of
from format.io.session import is_read_plainly, joins_remote_segments
from format.io.source import FileSource, Source, os_reason
from format.kernel.headers import sum_logs
from format.kernel.tables import HEADER_SUMS
from format.limits import DEFAULT_LIMITS, Limits
from format.location import Location
from format.log.batch_chunk import BatchRange, HeaderChunk
from format.log.batch_table import BatchTable, batch_location
from format.log.read_records import wrapper_table
from format.log.walker import HEADER_CHUNK_BYTES, batch_chunks
from format.node.log_dir import Checkpoints
from format.node.offsets import CHECKPOINT_WORDS, PartitionOffsets, offsets_of, remote_head_findings
from format.node.partition import (
    LiveFiles,
    Partition,
    Segment,
    location_of_directory,
    missing_indexes,
    parse_partition_dir,
    read_partition,
)
from format.node.partition_surroundings import MARKS, surroundings_findings, surroundings_notes
from format.rows.record_rows import Row
from format.scan.progress import Advance, no_progress
from format.scan.protocol import Depth, LogUnit, Needs, OpenedRange
from format.scan.read_log import IntactElsewhere, tail_finding
from format.state.log_headers import LogTotals, log_parts
from format.wording import counted_plainly

#: The most places of damage in one log that are reported one by one; the others are counted.
MAX_DAMAGE_FINDINGS = 20
_NO_SUMS = bytes(8 * len(HEADER_SUMS))


class _HeaderChunks(msgspec.Struct, frozen=True):
    """A walk over chunks of headers, each with the range that it is read from."""

    limits: Limits

    @property
    def needs(self) -> Needs:
        return Needs(Depth.HEADERS, limits=self.limits)

    def parts(self, opened: OpenedRange) -> Iterator[tuple[OpenedRange, HeaderChunk]]:
        return ((opened, chunk) for chunk in opened.chunks)


def read_log_totals(
    log: LogUnit,
    found: list[Finding],
    *,
    next_base_offset: int | None = None,
    limits: Limits = DEFAULT_LIMITS,
    advance: Advance = no_progress,
) -> LogTotals:
    """The totals of what can be read of one log; findings are added to ``found``.

    If the first message is a compressed one of v0 or v1, all of it is read, since its header lacks its first offset.
    """
    totals, location, elsewhere = LogTotals(), log.location, IntactElsewhere.of_log(log, limits)
    damage_count = 0
    is_first = True
    for part in log_parts(_HeaderChunks(limits), log, advance):
        if isinstance(part, Finding):
            totals.is_whole = False
            found.append(part)
            continue
        opened, chunk = part
        opens_unread = False
        table = chunk.headers.unopened()
        if is_first and len(table):
            is_first = False
            if table.is_wrapper[0]:
                known = _with_first_opened(opened, table, limits, found)
                table, opens_unread = (table, True) if known is None else (known, False)
        impossible = totals.add(table, location.base_offset)
        if impossible is not None:
            more = f", and {len(impossible) - 1} more near it" if len(impossible) > 1 else ""
            base_offset = impossible.value("base_offset", 0)
            last_offset = base_offset + impossible.value("last_offset_delta", 0)
            message = f"a batch claims offsets {base_offset} to {last_offset}, which this segment cannot hold{more}"
            found.append(finding("offset-out-of-segment", batch_location(location, impossible, 0), message))
        if opens_unread:
            totals.first_offset = totals.first_timestamp = None
        if chunk.damage is not None:
            damage_count += 1
            if damage_count <= MAX_DAMAGE_FINDINGS or chunk.damage.reaches_end:
                found += elsewhere.counted(tail_finding(opened.source, chunk, log))
    if damage_count > MAX_DAMAGE_FINDINGS:
        message = f"{damage_count} places where a batch should start hold no batch; only the first ones are listed here"
        judgement = Judgement(next_step="Run verify, which lists them all.")
        found.append(finding("log-framing-broken", location, message, judgement=judgement))
    if next_base_offset is not None and totals.last_offset is not None and totals.last_offset >= next_base_offset:
        message = f"the last offset is {totals.last_offset}, but the next segment starts at {next_base_offset}"
        found.append(finding("segment-overlap", location.at(offset=totals.last_offset), message))
    return totals


def _with_first_opened(
    opened: OpenedRange, table: BatchTable, limits: Limits, found: list[Finding]
) -> BatchTable | None:
    """The table with its first row opened, a compressed v0/v1 message; None if that cannot be read.

    Findings are added to ``found``.
    """
    source, location = opened.source, opened.log.location
    start, end = int(table.position[0]), int(table.end_position[0])
    if end - start > limits.max_decompressed_bytes:
        return None
    if source.headers_only is not None:
        offsets, timestamps = source.headers_only.outline(start) or ([], [])
    else:
        whole = next(batch_chunks(source, BatchRange(start, end), check_crc=False, limits=limits))
        inner = wrapper_table(whole, 0, limits, location)
        found += [finding_of(problem.error, location) for problem in inner.problems]
        offsets, timestamps = inner.offset.tolist(), inner.timestamp.tolist()
    if not offsets:
        return None
    firsts, lasts, counts, times = np.array([[offsets[0]], [offsets[-1]], [len(offsets)], [timestamps[0]]], np.int64)
    return table.with_contents(np.array([0]), firsts, lasts, counts, times)


class SoundLogs:
    """The small sound logs of one partition, added up by the kernel without tables of batches; to be closed.

    All other logs are left to ``read_log_totals``, which reports what is wrong with them. No log is added where a read
    policy is set, or the partition is not on a disk. With ``scan`` False logs are passed over, not read.
    """

    def __init__(self, partition: Partition, advance: Advance, *, scan: bool = True) -> None:
        self._advance = advance
        self._sums, self._kept = array("q", _NO_SUMS), array("q", _NO_SUMS)
        self._files = partition.live_files
        self._scan = scan
        self._directory_fd = -1
        if scan and is_read_plainly(partition.path) and self._files:
            with suppress(OSError):
                self._directory_fd = os.open(partition.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)

    def add(self, start: int, end: int) -> int:
        """Add the logs of segments from ``start`` to before ``end``; returns the number of the next one.

        It stops at a segment that needs a closer look: it lacks an index, or its log is large or not sound.
        """
        if self._files is None:
            return start
        if not self._scan:
            return end if self._files.have_indexes else start
        if self._directory_fd < 0:
            return start
        sums, kept = memoryview(self._sums), memoryview(self._kept)
        stop = sum_logs(self._directory_fd, self._files.table, start, end, _reading_room(), sums, kept)
        self._advance(self._files.log_size_bytes(start, stop))
        return stop

    def log(self, number: int) -> tuple[int, int]:
        """The base offset of a segment that was added, and the size of its log."""
        files = self._files or LiveFiles(array("q"))
        return files.base_offset(number), files.log_bytes(number)

    def taken(self) -> LogTotals:
        """The totals of the logs that were added since the last call."""
        totals = LogTotals.of_sums(self._sums)
        self._sums = array("q", _NO_SUMS)
        return totals

    def close(self) -> None:
        if self._directory_fd >= 0:
            os.close(self._directory_fd)


_room: memoryview | None = None  # for one log, and one more byte, which shows whether it has grown


def _reading_room() -> memoryview:
    global _room
    if _room is None or len(_room) != HEADER_CHUNK_BYTES + 1:
        _room = memoryview(bytearray(HEADER_CHUNK_BYTES + 1))
    return _room


#: The note on a log whose head is in remote storage.
HEAD_IS_REMOTE = "head in remote storage"
_SEGMENT_ROW_OF, _PARTITION_ROW_OF = attrgetter(*SEGMENT.names), attrgetter(*PARTITION.names)


class SegmentListing(msgspec.Struct, frozen=True):
    """One row of columns.SEGMENT, which documents the fields."""

    path: str
    topic: str | None
    partition: int | None
    segment_base_offset: int | None
    leftover: str | None
    size_bytes: int | None
    first_offset: int | None = None
    last_offset: int | None = None
    first_timestamp: int | None = None
    max_timestamp: int | None = None
    batch_count: int | None = None
    magics: str | None = None
    codecs: str | None = None
    index_entries: int | None = None
    time_index_entries: int | None = None
    aborted_txns: int | None = None
    snapshot_producers: int | None = None
    notes: str | None = None

    def row(self) -> Row:
        row: Row = _SEGMENT_ROW_OF(self)
        return row


class PartitionListing(msgspec.Struct, frozen=True):
    """One row of columns.PARTITION, which documents the fields; fields of a log that was not read are None too."""

    path: str
    topic: str | None
    partition: int | None
    mark: str | None
    topic_id: str | None = None
    segment_count: int | None = None
    size_bytes: int | None = None
    log_size_bytes: int | None = None
    log_start_offset: int | None = None
    first_offset: int | None = None
    log_end_offset: int | None = None
    high_watermark: int | None = None
    recovery_point: int | None = None
    cleaner_offset: int | None = None
    first_timestamp: int | None = None
    max_timestamp: int | None = None
    leader_epoch: int | None = None
    batch_count: int | None = None
    magics: str | None = None
    codecs: str | None = None
    notes: str | None = None
    configs: dict[str, str] | None = None

    def row(self) -> Row:
        row: Row = _PARTITION_ROW_OF(self)
        return row


class ListedPartition(msgspec.Struct, frozen=True):
    """The listings of a partition and of its segments, leftovers included, by base offset, and the findings.

    ``totals`` are those of the live logs.
    """

    listing: PartitionListing
    segments: tuple[SegmentListing, ...] = ()
    findings: list[Finding] = msgspec.field(default_factory=list)
    totals: LogTotals = msgspec.field(default_factory=LogTotals)


class KnownLog(msgspec.Struct, frozen=True):
    """What a caller has read of a log: its totals, and its end, None where that is not known."""

    totals: LogTotals
    log_end_offset: int | None


class PartitionTerms(msgspec.Struct, frozen=True):
    """How a partition is listed.

    ``scan`` False reads names, sizes and checkpoints, but no log. ``segments`` False opens no index and lists no
    segment, and only adds them up.
    """

    scan: bool = True
    segments: bool = True
    limits: Limits = DEFAULT_LIMITS
    advance: Advance = no_progress


def joined_notes(notes: Iterable[str]) -> str | None:
    """The notes as one cell, None for none."""
    return "; ".join(notes) or None


def _codes_of(findings: Sequence[Finding]) -> list[str]:
    """The codes of some findings as notes, each with its count."""
    counts = Counter(each.code for each in findings)
    return [code if count == 1 else f"{count} x {code}" for code, count in counts.items()]


def list_segment(
    segment: Segment,
    location: Location,
    terms: PartitionTerms,
    found: list[Finding],
    *,
    next_base_offset: int | None = None,
    known: tuple[LogTotals, int] | None = None,
) -> tuple[SegmentListing, LogTotals | None]:
    """The listing of one segment, and the totals of its log where that was read; findings are added to ``found``.

    ``next_base_offset`` is None for the last segment. ``known`` has the totals and the size of the log of a live
    segment with both indexes that gave no findings. ``location`` is that of the log, or of another file of the segment
    where the log is missing.
    """
    start = len(found)
    notes: list[str] = ["remote"] if segment.is_remote else []
    totals, size_bytes = known or (None, None)
    if segment.log is None:
        notes.append("no .log")
    elif known is None:
        size_bytes = _file_size(segment.log, location, found)
        missing = missing_indexes(segment) if segment.leftover is None else []
        if missing:
            words = " and ".join(missing)
            found.append(finding("index-missing", location, f"the segment has no {words}"))
            notes.append(f"no {words}")
        if terms.scan and size_bytes is not None:
            log = LogUnit(segment.log, location, segment, next_base_offset, end=segment.end)
            totals = read_log_totals(
                log, found, next_base_offset=next_base_offset, limits=terms.limits, advance=terms.advance
            )
    counts = _side_file_counts(segment, location, terms.limits, found) if terms.scan and terms.segments else {}
    others = [each for each in found[start:] if each.code != "index-missing"]  # the notes have it
    listing = _listing(location, segment.base_offset, size_bytes, totals, [*notes, *_codes_of(others)])
    return replace(listing, leftover=segment.leftover, **counts), totals


def list_log(path: Path, location: Location, terms: PartitionTerms, found: list[Finding]) -> SegmentListing:
    """The listing of a file of batches that belongs to no segment: a KRaft snapshot, or a log under another name."""
    start = len(found)
    size_bytes = _file_size(path, location, found)
    totals = None
    if terms.scan and size_bytes is not None:
        totals = read_log_totals(LogUnit(path, location), found, limits=terms.limits, advance=terms.advance)
    return _listing(location, location.base_offset, size_bytes, totals, _codes_of(found[start:]))


def _file_size(path: Path, location: Location, found: list[Finding]) -> int | None:
    try:
        return path.lstat().st_size
    except FileNotFoundError:
        found.append(finding("file-changed", location, "the file vanished after its directory was listed"))
    except OSError as error:
        found.append(finding("file-unreadable", location, f"cannot access: {os_reason(error)}"))
    return None


def _listing(
    location: Location, base_offset: int | None, size_bytes: int | None, totals: LogTotals | None, notes: list[str]
) -> SegmentListing:
    known = totals or LogTotals()
    is_known = totals is not None and (totals.is_whole or totals.batch_count > 0)
    return SegmentListing(
        path=location.path,
        topic=location.topic,
        partition=location.partition,
        segment_base_offset=base_offset,
        leftover=None,
        size_bytes=size_bytes,
        first_offset=known.first_offset,
        last_offset=known.last_offset,
        first_timestamp=known.first_timestamp,
        max_timestamp=known.max_timestamp,
        batch_count=known.batch_count if is_known else None,
        magics=known.magics_text if is_known else None,
        codecs=known.codecs_text if is_known else None,
        notes=joined_notes(notes),
    )


def _side_file_counts(
    segment: Segment, location: Location, limits: Limits, found: list[Finding]
) -> dict[str, int | None]:
    """How many entries each side file holds; None for one that is missing or cannot be read."""
    base_offset = segment.base_offset

    def whole_entries(source: Source, entry_bytes: int, where: Location) -> int:
        """The number of entries in the file, with a finding where it ends in the middle of one."""
        left = source.size_bytes % entry_bytes
        if left:
            message = f"the file has {counted_plainly(source.size_bytes, 'byte')}, not a multiple of {entry_bytes}"
            place = where.at(position=source.size_bytes - left, length=left)
            found.append(finding("index-invalid", place, message))
        return source.size_bytes // entry_bytes

    # Entries of indexes are counted by bisection: the preallocated zeros of an active segment are not read.
    def index_entries(index: Any, entry: layout.Layout, source: Source, where: Location) -> int:
        whole_entries(source, entry.size_bytes, where)
        last = index.floor_entry(source, base_offset, None)
        return 0 if last is None else int(last.entry_number) + 1

    def aborted_txns(source: Source, where: Location) -> int:
        return whole_entries(source, layout.ABORTED_TXN.size_bytes, where)

    def snapshot_producers(source: Source, where: Location) -> int:
        snapshot = producer_snapshot.read(source, limits)
        found.extend(problem_findings(snapshot.problems, where))
        return snapshot.entry_count

    counts: dict[str, int | None] = {}
    for name, path, count in (
        ("index_entries", segment.offset_index, partial(index_entries, offset_index, layout.OFFSET_INDEX_ENTRY)),
        ("time_index_entries", segment.time_index, partial(index_entries, time_index, layout.TIME_INDEX_ENTRY)),
        ("aborted_txns", segment.transaction_index, aborted_txns),
        ("snapshot_producers", segment.producer_snapshot, snapshot_producers),
    ):
        if path is not None:
            where = replace(location, path=str(path))
            try:
                with FileSource(path) as source:
                    counts[name] = count(source, where)
            except KafkaLogError as error:
                found.append(finding_of(error, where))
    return counts


def list_partition(
    path: Path,
    checkpoints: Checkpoints,
    terms: PartitionTerms,
    *,
    listed: Callable[[], Partition] | None = None,
    known: KnownLog | None = None,
) -> ListedPartition:
    """List one partition directory.

    ``listed`` returns the partition where its directory was listed before, and ``known`` has the totals of a log that
    the caller has read.
    """
    try:
        partition = read_partition(path) if listed is None else listed()
    except UnreadableFile as error:
        topic, number, mark = parse_partition_dir(path.name) or (None, None, None)
        listing = PartitionListing(str(path), topic, number, mark, notes="cannot be listed")
        return ListedPartition(listing, findings=[_unlistable(error, path)])
    found = list(surroundings_findings(partition))
    start = len(found)
    location_of, epochs_path = partition.location, partition.leader_epoch_checkpoint
    metadata = read_reported(
        found, location_of(partition.metadata), partition.topic_id_file, partition.metadata, terms.limits
    )
    epochs = read_reported(found, location_of(epochs_path), partition.epochs_file, epochs_path, terms.limits)
    live = _live_segments(partition, terms, found)
    notes = [] if partition.mark is None else [MARKS[partition.mark]]
    notes += ["the directory's name is not TOPIC-PARTITION"] if partition.topic is None else []
    notes += [*_codes_of(found[start:]), *surroundings_notes(partition)]
    if known is not None:
        live.totals, live.log_end_offset = known.totals, known.log_end_offset
    if terms.segments:
        for leftover in partition.leftovers:  # those that a broker marked as deleted, cleaned or swapped
            if leftover.log is not None:
                location = partition.location(leftover.log, leftover.base_offset)
                live.listings.append(list_segment(leftover, location, terms, found)[0])
    live.listings.sort(key=lambda each: (each.segment_base_offset or 0, each.leftover or ""))
    offsets = offsets_of(partition, checkpoints).with_log_end(live.log_end_offset)
    notes += _checkpoints_past_end(partition, offsets, live.log_end_offset, found)
    remote_count = 0 if partition.live_files is not None else sum(each.is_remote for each in partition.segments)
    if remote_count:
        notes.append(f"{remote_count} of {counted_plainly(partition.segment_count, 'segment')} remote")
    if offsets.is_head_remote:
        notes.append(HEAD_IS_REMOTE)
        if joins_remote_segments(path):  # it was asked for
            found += remote_head_findings(offsets, partition.location())
    sizes, totals = partition.sizes, live.totals
    is_read = known is not None or (terms.scan and (totals.is_whole or totals.batch_count > 0))
    listing = PartitionListing(
        path=str(path),
        topic=partition.topic,
        partition=partition.number,
        mark=partition.mark,
        topic_id=None if metadata is None else metadata.topic_id,
        segment_count=partition.segment_count,
        size_bytes=sizes.size_bytes,
        log_size_bytes=sizes.log_size_bytes,
        log_start_offset=offsets.log_start_offset,
        first_offset=totals.first_offset,
        log_end_offset=live.log_end_offset,
        high_watermark=offsets.high_watermark,
        recovery_point=offsets.recovery_point,
        cleaner_offset=offsets.cleaner_offset,
        first_timestamp=totals.first_timestamp,
        max_timestamp=totals.max_timestamp,
        leader_epoch=None if epochs is None else max((each.leader_epoch for each in epochs.entries), default=None),
        batch_count=totals.batch_count if is_read else None,
        magics=totals.magics_text if is_read else None,
        codecs=totals.codecs_text if is_read else None,
        notes=joined_notes(notes),
    )
    return ListedPartition(listing, tuple(live.listings), found, totals)


class _LiveSegments(msgspec.Struct):
    """The live segments of a partition: listings, totals, and the log end offset, None where it is not known."""

    listings: list[SegmentListing] = msgspec.field(default_factory=list)
    totals: LogTotals = msgspec.field(default_factory=LogTotals)
    log_end_offset: int | None = None


def _live_segments(partition: Partition, terms: PartitionTerms, found: list[Finding]) -> _LiveSegments:
    """List or add up the live segments."""
    count, scan, segments = partition.segment_count, terms.scan, terms.segments
    live = _LiveSegments()
    with closing(SoundLogs(partition, terms.advance, scan=scan)) as sound:
        number = 0
        while number < count:
            start = number
            if scan or not segments:
                number = sound.add(start, start + 1 if segments else count)
            added = sound.taken()
            if number > start and not segments:
                live.totals.merge(added if scan else LogTotals(is_whole=False))
                live.log_end_offset = _end_of_log(*sound.log(number - 1), scan, added.last_offset)
                continue
            segment = partition.segment(start)
            listing, totals = list_segment(
                segment,
                partition.location(segment.log, segment.base_offset),
                terms,
                found,
                next_base_offset=partition.segment(start + 1).base_offset if start + 1 < count else None,
                known=(added, sound.log(start)[1]) if number > start else None,
            )
            number = start + 1
            live.totals.merge(totals or LogTotals(is_whole=False))
            live.log_end_offset = _end_of_log(
                segment.base_offset, listing.size_bytes, listing.batch_count is not None, listing.last_offset
            )
            if segments:
                live.listings.append(listing)
    if count and any(base_offset > partition.segment(count - 1).base_offset for base_offset in partition.unread_logs):
        live.log_end_offset = None
    return live


def _end_of_log(base_offset: int, size_bytes: int | None, is_read: bool, last_offset: int | None) -> int | None:
    """The offset after the last batch of a segment; None where it was not read."""
    if size_bytes == 0:
        return base_offset
    if not is_read:
        return None
    return base_offset if last_offset is None else last_offset + 1


def _checkpoints_past_end(
    partition: Partition, offsets: PartitionOffsets, log_end_offset: int | None, found: list[Finding]
) -> list[str]:
    """A finding for each checkpoint that is past the log end; returns notes about them."""
    notes = []
    for name, offset in offsets.checkpointed().items():
        if log_end_offset is not None and offset > log_end_offset:
            words = CHECKPOINT_WORDS[name]
            notes.append(f"{words} past the log end")
            found.append(
                finding(
                    "checkpoint-mismatch",
                    partition.location(),
                    f"the {words} in {name} is {offset}, past the log end offset {log_end_offset}",
                    expected=f"at most {log_end_offset}",
                    actual=offset,
                )
            )
    return notes


def _unlistable(error: UnreadableFile, path: Path) -> Finding:
    cause = error.__cause__
    if isinstance(cause, OSError) and cause.errno == errno.ENOENT:
        message = "the directory vanished after the log directory was listed"
        return finding("file-changed", location_of_directory(path), message)
    return finding_of(error, location_of_directory(path))
