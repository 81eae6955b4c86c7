"""Reading the selected batches of a log: chunks with their selected rows, and findings for damage."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec
import numpy as np
from numpy.typing import NDArray

from format import layout
from format.errors import KafkaLogError, NotInBundle
from format.findings import Finding, finding, finding_of
from format.io.live_broker import comes_true
from format.io.source import FileSource
from format.limits import Limits
from format.location import Location
from format.log.batch_chunk import BatchChunk, Damage
from format.log.batch_header import has_right_crc, read_header
from format.log.batch_ranges import BatchRange
from format.log.legacy_messages import open_bundled_wrappers, open_wrappers
from format.log.walker import batch_chunks
from format.scan.damage_findings import OverlapFindings, RepeatFindings, damage_finding
from format.scan.protocol import LogUnit, Needs, OpenedRange
from format.scan.selection import CommittedView, Selection
from format.wording import offset_range

_MAX_OFFSET = 2**63 - 1


class LogChunk(msgspec.Struct, frozen=True):
    """A chunk of a log, the location of the log, and which of the chunk's rows are selected (bool).

    Records below ``least_offset`` are not selected.
    """

    chunk: BatchChunk
    location: Location
    selected: NDArray[np.bool_]
    least_offset: int = 0

    @property
    def readable(self) -> NDArray[np.bool_]:
        """Which rows have records to be read: the selected ones without damaged and repeated batches (bool)."""
        which: NDArray[np.bool_] = self.selected & (self.chunk.table.crc_valid != 0)
        return which if self.chunk.repeated is None else which & ~self.chunk.repeated


def selected_chunks(opened: OpenedRange, needs: Needs) -> Iterator[LogChunk | Finding]:
    """The chunks of a range with their location and selected rows, and findings for damage."""
    items = opened_chunks(opened.source, opened.chunks, opened.log, needs.selection, limits=needs.limits)
    log_start_offset = opened.log.log_start_offset
    if needs.selection.from_log_start and log_start_offset is not None:
        items = _chunks_from(items, log_start_offset)
    committed = opened.log.committed
    return items if committed is None else _committed_chunks(items, committed)


def _chunks_from(items: Iterator[LogChunk | Finding], log_start_offset: int) -> Iterator[LogChunk | Finding]:
    for item in items:
        if isinstance(item, LogChunk):
            selected = item.selected & (item.chunk.table.last_offset >= log_start_offset)
            yield LogChunk(item.chunk, item.location, selected, log_start_offset)
        else:
            yield item


def _committed_chunks(items: Iterator[LogChunk | Finding], committed: CommittedView) -> Iterator[LogChunk | Finding]:
    for item in items:
        if isinstance(item, LogChunk):
            selected = item.selected & committed.batches(item.chunk.table)
            yield LogChunk(item.chunk, item.location, selected, committed.log_start_offset)
        else:
            yield item


def chunks_with_crcs(source: FileSource, batch_range: BatchRange, limits: Limits) -> Iterator[BatchChunk]:
    """The chunks of a log with checked CRCs: with bodies, or for a log in a bundle the headers and verify's results.

    Raises NotInBundle if the bundle does not contain the result for a CRC.
    """
    bundled = source.headers_only
    if bundled is None:
        yield from batch_chunks(source, batch_range, limits=limits)
        return
    for chunk in batch_chunks(source, batch_range, with_bodies=False, limits=limits):
        chunk.table.crc_valid[:] = bundled.crc_valid(chunk.table.position)
        open_bundled_wrappers(chunk.table, bundled)
        unknown = np.flatnonzero(chunk.table.crc_valid < 0)
        if len(unknown):
            where = Location(source.path, position=int(chunk.table.position[unknown[0]]))
            raise NotInBundle("the bundle has no results for the CRCs of batches from here on", where)
        yield chunk


def opened_chunks(
    source: FileSource,
    chunks: Iterable[BatchChunk],
    log: LogUnit,
    selection: Selection,
    *,
    limits: Limits,
) -> Iterator[LogChunk | Finding]:
    """Consecutive chunks of a log, with compressed v0/v1 messages decompressed, and findings for damage."""
    repeats, overlaps = RepeatFindings(log.location), OverlapFindings(log.location)
    for chunk in chunks:
        if chunk.buffer is not None:
            open_wrappers(chunk, limits=limits)
        yield from repeats.before(chunk)
        yield from overlaps.in_chunk(chunk)
        yield from crc_findings(chunk, log, source)
        yield LogChunk(chunk, log.location, selection.batches(chunk.table))
        if chunk.damage is not None:
            yield tail_finding(source, chunk, log)
        if selection.is_past(chunk.table):
            break
    yield from repeats.ended()


def crc_findings(chunk: BatchChunk, log: LogUnit, source: FileSource | None = None) -> Iterator[Finding]:
    """A finding for each batch of the chunk with a wrong CRC.

    With a source, its bytes are read again: if they differ, the file is being changed.
    """
    table = chunk.table
    is_sound = table.crc_valid != 0
    if is_sound.all():
        return
    sound_before = np.maximum.accumulate(np.where(is_sound, np.arange(len(table)), -1))
    for row in np.flatnonzero(~is_sound).tolist():
        position, size_bytes = int(table.position[row]), int(table.size_bytes[row])
        where = log.location.at(position=position, length=size_bytes, offset=int(table.base_offset[row]))
        if source is not None and chunk.buffer is not None:
            start = position - chunk.buffer_position
            if source.read_at(position, size_bytes) != chunk.buffer[start : start + size_bytes]:
                yield finding("file-changed", where, "the batch's bytes changed while they were read")
                continue
        lost = _lost_offsets(chunk, row, int(sound_before[row]), log)
        words = "its offsets" if lost is None else offset_range(*lost)
        yield finding(
            "batch-crc-mismatch",
            where,
            f"the CRC of the batch does not match its bytes: {words} cannot be trusted",
            actual=int(table.crc[row]),
            lost_offsets=lost,
        )


def _lost_offsets(chunk: BatchChunk, row: int, sound_before: int, log: LogUnit) -> tuple[int, int] | None:
    """The offsets of a batch with a wrong CRC, None if they are unknown.

    They are the offsets in its header, if they fit between those of the adjacent sound batches and the base offsets of
    this segment and the next; otherwise all offsets between these. ``sound_before`` is the row of the last earlier
    batch with a right CRC, -1 for none in this chunk.
    """
    table = chunk.table
    first, last = int(table.base_offset[row]), table.last_offset_of(row)
    before = chunk.after_offset if sound_before < 0 else table.last_offset_of(sound_before)
    after = _offset_after(chunk, row)
    least = (log.location.base_offset or 0) if before is None else before + 1
    if after is None:
        after = log.next_base_offset
    most = _MAX_OFFSET if after is None else after - 1
    if before is not None and table.rows(slice(row, row + 1)).is_wrapper[0]:
        first = least
    if not least <= first <= last <= most:
        first, last = least, most if after is not None or log.known_end is None else log.known_end - 1
    return (first, last) if first <= last < _MAX_OFFSET else None


def _offset_after(chunk: BatchChunk, row: int) -> int | None:
    """The first offset of the batch after a row, None if its CRC is wrong or unknown."""
    if row + 1 == len(chunk.table):
        return chunk.next_offset
    # For a compressed v0/v1 message that could not be decompressed, the base offset is its last offset.
    return int(chunk.table.base_offset[row + 1]) if chunk.table.crc_valid[row + 1] != 0 else None


def tail_finding(source: FileSource, chunk: BatchChunk, log: LogUnit) -> Finding:
    """The finding for a chunk's damage, or for an end that is being written, if reading it again shows that."""
    if chunk.damage is None:
        raise ValueError("the chunk has no damage")
    found = damage_finding(chunk.damage, log)
    if not (chunk.damage.reaches_end and log.is_last_segment):
        return found
    damage = chunk.damage
    changed: list[Finding] = []

    def has_changed() -> bool:
        changed.extend(_change_findings(source, damage, found.location))
        return bool(changed)

    return changed[0] if comes_true(has_changed, source.place.absolute().parent) else found


def _change_findings(source: FileSource, damage: Damage, location: Location) -> Iterator[Finding]:
    """A finding if the present state of the file shows that its end was being written."""
    try:
        with FileSource(source.place) as again:
            if again.size_bytes < source.size_bytes:
                yield finding("file-changed", location, "the file was truncated while it was read")
            elif _is_being_written(again, damage, again.size_bytes > source.size_bytes):
                yield finding("live-tail", location, "the file is being written: its end was not written yet")
    except KafkaLogError as error:
        yield finding_of(error, location)


def _is_being_written(source: FileSource, damage: Damage, has_grown: bool) -> bool:
    """Whether there now is a batch, or more of one, at the place of the damage."""
    header = read_header(source, damage.position)
    if header is None:
        return has_grown and source.size_bytes - damage.position < layout.RECORD_BATCH.size_bytes
    if header.end_position > source.size_bytes:
        return has_grown
    return has_right_crc(source, header.position, header.size_bytes, header.magic)
