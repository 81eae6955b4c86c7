"""One log in a broker's memory: its segments, and their recovery, which keeps what comes before the first bad batch.

Source: storage LogLoader (recoverLog), LoadedLogOffsets, LogSegment.recover, OffsetIndex.append, TimeIndex.maybeAppend.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import NoReturn

import msgspec

from format.io.source import FileSource
from format.layout import MAX_RELATIVE_OFFSET, OFFSET_INDEX_ENTRY
from format.log.batch_chunk import BatchRange
from format.scan.read_log import chunks_with_crcs
from format.verbs.boot.broker_files import opened
from format.verbs.boot.one_log.batches import (
    CorruptRecords,
    LogEnd,
    OffsetIndexView,
    first_batch_reaching,
    log_end,
    read_index,
    valid_batches,
)
from format.verbs.boot.steps import BootTerms, NotKnown, ReadLog, StopsStart

#: The broker's default of index.interval.bytes: where recovery writes index entries, which matters only in logs whose
#: offsets do not rise.
_INDEX_INTERVAL_BYTES = 4096


class Recovered(msgspec.Struct):
    """A segment after recovery: its valid bytes, its end, and the broker's message where it was truncated.

    ``end`` is the end that the broker's reader finds in the valid bytes. ``is_emptied``: the offsets decrease, so the
    broker makes the segment empty. ``epochs`` are (leader epoch, base offset) of each batch with a new highest epoch.
    """

    size_bytes: int
    end: LogEnd
    valid_bytes: int = 0
    map_end_offset: int | None = None  # the offset after the last v2 batch, up to which the producers' state goes
    has_transactions: bool = False  # a producer's transactional or control batches
    message: str | None = None
    is_emptied: bool = False
    epochs: list[tuple[int, int]] = msgspec.field(default_factory=list)
    index: OffsetIndexView = msgspec.field(default_factory=lambda: OffsetIndexView(0))

    @property
    def next_offset(self) -> int:
        return self.end.next_offset

    @property
    def truncated_bytes(self) -> int:
        return self.size_bytes - self.valid_bytes


def _from_summary(log: ReadLog, size_bytes: int) -> Recovered | None:
    """A sound log after recovery, by its summary; None where its batches have to be read one by one."""
    if not log.is_sound or log.valid_bytes != size_bytes:
        return None
    next_offset = log.base_offset if log.last_offset is None else log.last_offset + 1
    return Recovered(
        size_bytes,
        LogEnd(next_offset, size_bytes, log.last_offset is not None),
        valid_bytes=size_bytes,
        map_end_offset=log.map_end_offset,
        has_transactions=log.has_transactions,
        epochs=log.epochs,
        index=OffsetIndexView(log.base_offset),
    )


class LoadTerms(msgspec.Struct, frozen=True):
    """What is known of a log before it is loaded; ``is_deleted``: its directory waits for its deletion.

    ``may_be_remote``: a checkpoint has the log start offset. Where that is below the first segment, the segments before
    it are in remote storage.
    """

    boot: BootTerms
    clean: bool
    recovery_point: int = 0
    log_start: int = 0
    is_deleted: bool = False
    may_be_remote: bool = False
    is_metadata: bool = False
    max_index_bytes: int | None = None  # the topic's segment.index.bytes, where the metadata has one
    why_recovered: str = "there was no clean shutdown"

    @property
    def is_whole(self) -> bool:
        """Whether the log is loaded: where its directory may be one of several, those to be recovered are not."""
        return self.clean or self.is_metadata or not self.boot.is_one_of_several


class LoadedSegment(msgspec.Struct):
    """A segment in the broker's memory: the file with its bytes, how many of them are valid, and its offset index."""

    base_offset: int
    place: Path | None
    shown_path: Path
    size_bytes: int
    index_place: Path | None
    recovered: Recovered | None = None
    _end: LogEnd | None = None  # as the reader found it on disk

    @property
    def index(self) -> OffsetIndexView:
        """The offset index: as recovery made it, or as it lies on disk."""
        return read_index(self.index_place, self.base_offset) if self.recovered is None else self.recovered.index

    def end(self) -> LogEnd:
        """Where the broker sees the segment end. Raises StopsStart where its reader fails."""
        if self.place is None:
            return LogEnd(self.base_offset, 0, False)
        if self.recovered is not None:
            return self.recovered.end
        if self._end is None:
            with opened(self.place) as source:
                try:
                    self._end = log_end(source, self.size_bytes, self.index, self.shown_path)
                except CorruptRecords as error:
                    raise reader_stops(error, self.shown_path, "to find the end of the log") from error
        return self._end


class LoadedLog(msgspec.Struct, frozen=True):
    """A log after its load: where it starts and ends, its segments, and the epochs that recovery saw."""

    log_start: int
    log_end: int
    segments: tuple[LoadedSegment, ...]
    epochs: tuple[tuple[int, int], ...]
    is_cleared: bool = False  # all segments were below the log start offset


def reader_stops(error: CorruptRecords, path: Path, purpose: str) -> StopsStart:
    """The end of a start at which the broker's reader fails."""
    reason = f"the broker reads the log {purpose}, and stops at bytes that are not a batch"
    return StopsStart(error.text, "FileLogInputStream.nextBatch", path, reason, error.position)


def recovered_segment(segment: LoadedSegment, place: Path, terms: BootTerms) -> Recovered:
    """Simulate the recovery of a segment's log, whose bytes are in ``place``; one that was read is not opened again.

    Raises StopsStart where the broker exits, NotKnown, CorruptRecords, UnreadableFile and FileChanged.
    """
    base_offset = segment.base_offset
    known = terms.read_logs.get(place)
    found = None if known is None or known.base_offset != base_offset else _from_summary(known, segment.size_bytes)
    if found is not None:
        return found
    with opened(place) as source:
        found = _from_summary(_summary(source, base_offset, terms), source.size_bytes)
        return found or _recovered_batch_by_batch(source, segment.shown_path, base_offset)


def emptied_segment(path: Path | None, shown_path: Path, base_offset: int) -> Recovered:
    """A segment that is made empty as its recovery failed; without a whole batch it stays. Raises CorruptRecords."""
    found = Recovered(0, LogEnd(base_offset, 0, False), is_emptied=True, index=OffsetIndexView(base_offset))
    found.message = (
        "Found invalid offset during recovery. Deleting the corrupt segment and creating an empty one with starting "
        f"offset {base_offset}"
    )
    if path is not None:
        with opened(path) as source:
            found.size_bytes = source.size_bytes
            if first_batch_reaching(source, base_offset, 0, source.size_bytes, shown_path) is None:
                found.valid_bytes = source.size_bytes
    return found


def _summary(source: FileSource, base_offset: int, terms: BootTerms) -> ReadLog:
    """The summary of a log up to its first damage, from whole chunks of batches."""
    log = ReadLog(base_offset)
    for chunk in chunks_with_crcs(source, BatchRange(0), terms.limits):
        log.add(chunk.table, is_damaged=chunk.damage is not None)
        if not log.is_sound:
            break
    return log


def _recovered_batch_by_batch(source: FileSource, shown_path: Path, base_offset: int) -> Recovered:
    """Read batch by batch, and make index entries as the broker does: one that it cannot add ends recovery."""
    found = Recovered(source.size_bytes, LogEnd(base_offset, 0, False))
    index = bytearray()
    indexed_at, indexed_offset = 0, base_offset
    greatest, offset_of_greatest = -1, base_offset
    time_entry: tuple[int, int] | None = None
    last_epoch = -1
    try:
        for batch in valid_batches(source, shown_path):
            relative = batch.last_offset - base_offset
            if not 0 <= relative <= MAX_RELATIVE_OFFSET:
                _overflow(source, base_offset, relative, shown_path)
            if batch.max_timestamp > greatest:
                greatest, offset_of_greatest = batch.max_timestamp, batch.last_offset
            if found.valid_bytes - indexed_at > _INDEX_INTERVAL_BYTES:
                if index and batch.last_offset <= indexed_offset:
                    found.is_emptied = True
                    where = f"position {len(index) // OFFSET_INDEX_ENTRY.size_bytes}"
                    after = f"no larger than the last offset appended ({indexed_offset})"
                    found.message = f"Attempt to append an offset {batch.last_offset} to {where} {after}"
                    break
                index += struct.pack(">iI", relative, found.valid_bytes)
                indexed_offset, indexed_at = batch.last_offset, found.valid_bytes
                if time_entry is not None and offset_of_greatest < time_entry[1]:
                    found.is_emptied = True
                    found.message = f"Attempt to append an offset ({offset_of_greatest}) to slot"
                    break
                if time_entry is None or greatest > time_entry[0]:
                    time_entry = (greatest, offset_of_greatest)
            found.valid_bytes += batch.size_bytes
            if batch.magic >= 2:
                if batch.leader_epoch > last_epoch:
                    last_epoch = batch.leader_epoch
                    found.epochs.append((last_epoch, batch.base_offset))
                found.map_end_offset = batch.next_offset
                found.has_transactions |= batch.producer_id >= 0 and (batch.is_transactional or batch.is_control)
    except CorruptRecords as error:
        found.message = error.text
    if found.is_emptied:
        found.valid_bytes, index = 0, bytearray()
    found.index = OffsetIndexView(base_offset, bytes(index))
    found.end = log_end(source, found.valid_bytes, found.index, shown_path)
    return found


def _overflow(source: FileSource, base_offset: int, relative: int, shown_path: Path) -> NoReturn:
    """Raise for an offset that the segment's index cannot hold: the broker splits the segment, or exits."""
    end = log_end(source, source.size_bytes, OffsetIndexView(base_offset), shown_path)
    last_relative = end.next_offset - 1 - base_offset
    if end.next_offset > base_offset and not 0 <= last_relative <= MAX_RELATIVE_OFFSET:
        raise NotKnown("the segment's offsets overflow its index; the broker splits it into several", shown_path)
    text = f"Split operation is only permitted for segments with overflow, and the problem path is {shown_path}"
    reason = f"a batch's offset lies {relative} past the segment's base offset, which its index cannot hold"
    raise StopsStart(text, "LocalLog.splitOverflowedSegment", shown_path, reason)
