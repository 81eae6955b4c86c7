"""Simulates the recovery of a segment, which keeps the batches before the first incomplete or invalid one.

Source: storage LogSegment.recover, OffsetIndex.append, TimeIndex.maybeAppend, LogLoader.recoverLog.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import NoReturn

from format.io.source import FileSource
from format.layout import MAX_RELATIVE_OFFSET, OFFSET_INDEX_ENTRY
from format.log.batch_chunk import BatchRange
from format.scan.read_log import chunks_with_crcs
from format.verbs.boot.followed import opened
from format.verbs.boot.one_log.file_batches import CorruptRecords, batches_from, first_batch_reaching, invalid_batch
from format.verbs.boot.one_log.index_lookups import LogEnd, OffsetIndexView, log_end
from format.verbs.boot.one_log.loaded_log import LoadedSegment
from format.verbs.boot.one_log.recovered_log import ReadLog, Recovered
from format.verbs.boot.steps import BootTerms, NotKnown, StopsStart

_INDEX_ENTRY = struct.Struct(">iI")


def recovered_segment(segment: LoadedSegment, place: Path, terms: BootTerms) -> Recovered:
    """Simulate the recovery of a segment's log, whose bytes are in ``place``; one that was read is not opened again.

    Raises StopsStart where the broker exits, NotKnown, CorruptRecords, UnreadableFile and FileChanged.
    """
    base_offset = segment.base_offset
    known = terms.read_logs.get(place)
    found = known.recovered(segment.size_bytes) if known is not None and known.base_offset == base_offset else None
    if found is not None:
        return found
    with opened(place) as source:
        found = _summary(source, base_offset, terms).recovered(source.size_bytes)
        return found or _recovered_batch_by_batch(source, segment.shown_path, base_offset, terms)


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


def _recovered_batch_by_batch(source: FileSource, shown_path: Path, base_offset: int, terms: BootTerms) -> Recovered:
    """Read batch by batch, and make index entries as the broker does: one that it cannot add ends recovery."""
    found = Recovered(source.size_bytes, LogEnd(base_offset, 0, False))
    index = bytearray()
    indexed_at, indexed_offset = 0, base_offset
    greatest, offset_of_greatest = -1, base_offset
    time_entry: tuple[int, int] | None = None
    last_epoch = -1
    try:
        for batch in batches_from(source, 0, source.size_bytes, shown_path):
            wrong = invalid_batch(source, batch)
            if wrong is not None:
                raise CorruptRecords(wrong, batch.position)
            relative = batch.last_offset - base_offset
            if not 0 <= relative <= MAX_RELATIVE_OFFSET:
                _overflow(source, base_offset, relative, shown_path)
            if batch.max_timestamp > greatest:
                greatest, offset_of_greatest = batch.max_timestamp, batch.last_offset
            if found.valid_bytes - indexed_at > terms.index_interval_bytes:
                if index and batch.last_offset <= indexed_offset:
                    found.is_emptied = True
                    found.message = (
                        f"Attempt to append an offset {batch.last_offset} to position "
                        f"{len(index) // OFFSET_INDEX_ENTRY.size_bytes} no larger than the last offset appended "
                        f"({indexed_offset})"
                    )
                    break
                index += _INDEX_ENTRY.pack(relative, found.valid_bytes)
                indexed_offset, indexed_at = batch.last_offset, found.valid_bytes
                if time_entry is not None and offset_of_greatest < time_entry[1]:
                    found.is_emptied = True
                    found.message = f"Attempt to append an offset ({offset_of_greatest}) to slot"
                    break
                if time_entry is None or greatest > time_entry[0]:
                    time_entry = (greatest, offset_of_greatest)
            found.valid_bytes += batch.size_bytes
            found.last_offset = batch.last_offset
            if batch.magic >= 2:
                if batch.leader_epoch > last_epoch:
                    last_epoch = batch.leader_epoch
                    found.epochs.append((last_epoch, batch.base_offset))
                found.map_end_offset = batch.next_offset
                found.has_transactions |= batch.producer_id >= 0 and (batch.is_transactional or batch.is_control)
    except CorruptRecords as error:
        found.message = error.text
    if found.is_emptied:
        found.valid_bytes, found.last_offset, index = 0, None, bytearray()
    found.index = OffsetIndexView(base_offset, bytes(index))
    found.end = log_end(source, found.valid_bytes, found.index, shown_path)
    return found


def _overflow(source: FileSource, base_offset: int, relative: int, shown_path: Path) -> NoReturn:
    """Raise for an offset that the segment's index cannot hold: the broker splits the segment, or exits."""
    end = log_end(source, source.size_bytes, OffsetIndexView(base_offset), shown_path)
    last_relative = end.next_offset - 1 - base_offset
    if end.next_offset > base_offset and not 0 <= last_relative <= MAX_RELATIVE_OFFSET:
        raise NotKnown("the segment's offsets overflow its index; the broker splits it into several", shown_path)
    raise StopsStart(
        f"Split operation is only permitted for segments with overflow, and the problem path is {shown_path}",
        "LocalLog.splitOverflowedSegment",
        path=shown_path,
        reason=f"a batch's offset lies {relative} past the segment's base offset, which its index cannot hold",
    )
