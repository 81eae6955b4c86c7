"""The listing of one partition directory: its log as a whole, its checkpoints and other files."""

from __future__ import annotations

import errno
from collections.abc import Callable, Generator
from operator import attrgetter
from pathlib import Path
from typing import TypeVar

import msgspec

from format.columns import PARTITION
from format.errors import KafkaLogError, UnreadableFile
from format.files.leader_epoch_checkpoint import LeaderEpochCheckpoint
from format.files.partition_metadata import PartitionMetadata
from format.files.side_file import problem_findings
from format.findings import Finding, finding, finding_of
from format.io.session import joins_remote_segments
from format.limits import DEFAULT_LIMITS, Limits
from format.node.log_dir import Checkpoints
from format.node.offsets import CHECKPOINT_WORDS, PartitionOffsets, offsets_of, remote_head_findings
from format.node.partition import Partition, location_of_directory, parse_partition_dir, read_partition
from format.node.partition_surroundings import MARKS, MAX_BASE_OFFSET, surroundings_findings
from format.rows.record_rows import Row
from format.scan.progress import Advance, no_progress
from format.state.totals import LogTotals
from format.verbs.ls.segment_listing import (
    SeenCodes,
    SegmentListing,
    joined_notes,
    list_segment,
    list_sound_segment,
)
from format.verbs.ls.sound_logs import SoundLogs
from format.wording import counted_plainly

#: The note on a log whose head is in remote storage.
HEAD_IS_REMOTE = "head in remote storage"
_ROW_OF = attrgetter(*PARTITION.names)
_SideFileT = TypeVar("_SideFileT", PartitionMetadata, LeaderEpochCheckpoint)


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
        """The fields in the order of columns.PARTITION."""
        row: Row = _ROW_OF(self)
        return row


class ListedPartition(msgspec.Struct, frozen=True):
    """The listings of a partition and of its segments, leftovers included, by base offset."""

    listing: PartitionListing
    segments: tuple[SegmentListing, ...]


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


def list_partition(
    path: Path,
    checkpoints: Checkpoints,
    terms: PartitionTerms,
    *,
    listed: Callable[[], Partition] | None = None,
    known: KnownLog | None = None,
) -> Generator[Finding, None, ListedPartition]:
    """List one partition directory: yields findings, returns the listing.

    ``listed`` returns the partition where its directory was listed before, and ``known`` has the totals of a log that
    the caller has read.
    """
    try:
        partition = read_partition(path) if listed is None else listed()
    except UnreadableFile as error:
        yield _unlistable(error, path)
        topic, number, mark = parse_partition_dir(path.name) or (None, None, None)
        return ListedPartition(PartitionListing(str(path), topic, number, mark, notes="cannot be listed"), ())

    seen = SeenCodes()
    marked = [] if partition.mark is None else [MARKS[partition.mark]]
    notes: list[str] = []
    notes += yield from surroundings_findings(partition)
    topic_id = yield from seen.passing(_topic_id(partition, terms.limits))
    leader_epoch = yield from seen.passing(_leader_epoch(partition, terms.limits))
    live = yield from seen.passing(_live_segments(partition, terms))
    if known is not None:
        live.totals, live.log_end_offset = known.totals, known.log_end_offset
    listings = live.listings
    if terms.segments:
        listings += yield from _leftovers(partition, terms)
    listings.sort(key=lambda each: (each.segment_base_offset or 0, each.leftover or ""))
    offsets = offsets_of(partition, checkpoints).with_log_end(live.log_end_offset)
    notes += yield from _checkpoints_past_end(partition, offsets, live.log_end_offset)
    remote_count = 0 if partition.live_files is not None else sum(each.is_remote for each in partition.segments)
    if remote_count:
        notes.append(f"{remote_count} of {counted_plainly(partition.segment_count, 'segment')} remote")
    if offsets.is_head_remote:
        notes.append(HEAD_IS_REMOTE)
        if joins_remote_segments(path):  # it was asked for
            yield from remote_head_findings(offsets, partition.location())
    sizes, totals = partition.sizes, live.totals
    is_read = known is not None or (terms.scan and (totals.is_whole or totals.batch_count > 0))
    listing = PartitionListing(
        path=str(path),
        topic=partition.topic,
        partition=partition.number,
        mark=partition.mark,
        topic_id=topic_id,
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
        leader_epoch=leader_epoch,
        batch_count=totals.batch_count if is_read else None,
        magics=totals.magics_text if is_read else None,
        codecs=totals.codecs_text if is_read else None,
        notes=joined_notes([*marked, *seen.notes(), *notes]),
    )
    return ListedPartition(listing, tuple(listings))


class _LiveSegments(msgspec.Struct):
    """The live segments of a partition: listings, totals, and the log end offset, None where it is not known."""

    listings: list[SegmentListing] = msgspec.field(default_factory=list)
    totals: LogTotals = msgspec.field(default_factory=LogTotals)
    log_end_offset: int | None = None


def _live_segments(partition: Partition, terms: PartitionTerms) -> Generator[Finding, None, _LiveSegments]:
    """List or add up the live segments: yields findings, returns the result."""
    count, scan, segments = partition.segment_count, terms.scan, terms.segments
    found = _LiveSegments()
    with SoundLogs(partition, terms.advance, scan=scan) as sound:
        number = 0
        while number < count:
            start = number
            if scan or not segments:
                number = sound.add(start, start + 1 if segments else count)
            added = sound.taken()
            if number > start and not segments:
                found.totals.merge(added if scan else LogTotals(is_whole=False))
                found.log_end_offset = _end_of_log(*sound.log(number - 1), scan, added.last_offset)
                continue
            segment = partition.segment(start)
            next_base_offset = partition.segment(start + 1).base_offset if start + 1 < count else None
            location = partition.location(segment.log, segment.base_offset)
            if number > start:
                listed = yield from list_sound_segment(segment, location, added, sound.log(start)[1], terms.limits)
            else:
                listed = yield from list_segment(
                    segment,
                    location,
                    next_base_offset=next_base_offset,
                    scan=scan,
                    side_files=segments,
                    limits=terms.limits,
                    advance=terms.advance,
                )
            number = start + 1
            found.totals.merge(listed.totals or LogTotals(is_whole=False))
            one = listed.listing
            found.log_end_offset = _end_of_log(
                segment.base_offset, one.size_bytes, one.batch_count is not None, one.last_offset
            )
            if segments:
                found.listings.append(one)
    if count and any(base_offset > partition.segment(count - 1).base_offset for base_offset in partition.unread_logs):
        found.log_end_offset = None
    return found


def _leftovers(partition: Partition, terms: PartitionTerms) -> Generator[Finding, None, list[SegmentListing]]:
    """List the segments that a broker marked as deleted, cleaned or swapped."""
    found = []
    for leftover in partition.leftovers:
        if leftover.log is not None and leftover.base_offset <= MAX_BASE_OFFSET:
            location = partition.location(leftover.log, leftover.base_offset)
            listed = yield from list_segment(
                leftover, location, scan=terms.scan, limits=terms.limits, advance=terms.advance
            )
            found.append(listed.listing)
    return found


def _checkpoints_past_end(
    partition: Partition, offsets: PartitionOffsets, log_end_offset: int | None
) -> Generator[Finding, None, list[str]]:
    """A finding for each checkpoint that is past the log end; returns notes about them."""
    notes = []
    for name, offset in offsets.checkpointed().items():
        if log_end_offset is not None and offset > log_end_offset:
            words = CHECKPOINT_WORDS[name]
            notes.append(f"{words} past the log end")
            yield finding(
                "checkpoint-mismatch",
                partition.location(),
                f"the {words} in {name} is {offset}, past the log end offset {log_end_offset}",
                expected=f"at most {log_end_offset}",
                actual=offset,
            )
    return notes


def _unlistable(error: UnreadableFile, path: Path) -> Finding:
    cause = error.__cause__
    if isinstance(cause, OSError) and cause.errno == errno.ENOENT:
        message = "the directory vanished after the log directory was listed"
        return finding("file-changed", location_of_directory(path), message)
    return finding_of(error, location_of_directory(path))


def _end_of_log(base_offset: int, size_bytes: int | None, is_read: bool, last_offset: int | None) -> int | None:
    """The offset after the last batch of a segment; None where it was not read."""
    if size_bytes == 0:
        return base_offset
    if not is_read:
        return None
    return base_offset if last_offset is None else last_offset + 1


def _topic_id(partition: Partition, limits: Limits) -> Generator[Finding, None, str | None]:
    if partition.metadata is None:
        return None
    metadata = yield from _read_side_file(partition, partition.metadata, partition.topic_id_file, limits)
    return None if metadata is None else metadata.topic_id


def _leader_epoch(partition: Partition, limits: Limits) -> Generator[Finding, None, int | None]:
    """The latest leader epoch in the checkpoint; None where that is empty or missing."""
    if partition.leader_epoch_checkpoint is None:
        return None
    path = partition.leader_epoch_checkpoint
    checkpoint = yield from _read_side_file(partition, path, partition.epochs_file, limits)
    return None if checkpoint is None else max((entry.leader_epoch for entry in checkpoint.entries), default=None)


def _read_side_file(
    partition: Partition, path: Path, read: Callable[[Path, Limits], _SideFileT], limits: Limits
) -> Generator[Finding, None, _SideFileT | None]:
    """A side file of a partition, None if it cannot be read; yields findings about it."""
    location = partition.location(path)
    try:
        found = read(path, limits)
    except KafkaLogError as error:
        yield finding_of(error, location)
        return None
    yield from problem_findings(found.problems, location)
    return found
