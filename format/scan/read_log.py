"""Read a log file's selected batches: chunks with their place, and the damage on the way as findings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from format import layout
from format.errors import KafkaLogError, NotInBundle
from format.findings import Finding, finding, finding_of
from format.io.live_broker import comes_true
from format.io.remote_path import path_of
from format.io.source import FileSource
from format.limits import Limits
from format.location import Location
from format.log.batch_chunk import BatchChunk, Damage
from format.log.batch_header import has_right_crc, read_header
from format.log.batch_ranges import BatchRange
from format.log.legacy_messages import open_bundled_wrappers, open_wrappers
from format.log.walker import batch_chunks
from format.scan.damage_findings import RepeatFindings, damage_finding
from format.scan.protocol import LogUnit, Needs, OpenedRange
from format.scan.selection import CommittedView, Selection
from format.value_class import value_class

_MAX_OFFSET = 2**63 - 1


@value_class
class LogChunk:
    """A chunk of a log file, its location, and which of its rows are selected."""

    chunk: BatchChunk
    location: Location
    selected: NDArray[np.bool_]
    least_offset: int = 0  # of the records that are selected

    @property
    def readable(self) -> NDArray[np.bool_]:
        """The rows whose records are read: those asked for but damaged batches and repeated ones."""
        which: NDArray[np.bool_] = self.selected & (self.chunk.table.crc_valid != 0)
        return which if self.chunk.repeated is None else which & ~self.chunk.repeated


def selected_chunks(opened: OpenedRange, needs: Needs) -> Iterator[LogChunk | Finding]:
    """The chunks of a range with their location and selected rows, and findings where the log is damaged."""
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
    """The chunks of a log with bodies, their CRCs checked; of a log in a bundle the headers, with what verify found.

    Raises NotInBundle where the bundle does not say whether a CRC is right.
    """
    bundled = source.bundled
    if bundled is None or not bundled.has_only_headers:
        yield from batch_chunks(source, batch_range, limits=limits)
        return
    for chunk in batch_chunks(source, batch_range, with_bodies=False, limits=limits):
        chunk.table.crc_valid[:] = bundled.crc_valid(chunk.table.position)
        open_bundled_wrappers(chunk.table, bundled)
        unknown = np.flatnonzero(chunk.table.crc_valid < 0)
        if len(unknown):
            where = Location(source.path, position=int(chunk.table.position[unknown[0]]))
            raise NotInBundle("the bundle does not say which of the batches from here on have a wrong CRC", where)
        yield chunk


def opened_chunks(
    source: FileSource,
    chunks: Iterable[BatchChunk],
    log: LogUnit,
    selection: Selection,
    *,
    limits: Limits,
) -> Iterator[LogChunk | Finding]:
    """Chunks of a log, one behind the other, compressed v0/v1 messages opened, and findings where it is damaged."""
    repeats = RepeatFindings(log.location)
    for chunk in chunks:
        if chunk.buffer is not None:
            open_wrappers(chunk, limits=limits)
        yield from repeats.before(chunk)
        yield from crc_findings(chunk, log, source)
        yield LogChunk(chunk, log.location, selection.batches(chunk.table))
        if chunk.damage is not None:
            yield tail_finding(source, chunk, log)
        if selection.is_past(chunk.table):
            break
    yield from repeats.ended()


def crc_findings(chunk: BatchChunk, log: LogUnit, source: FileSource | None = None) -> Iterator[Finding]:
    """One finding per batch of the chunk whose CRC is wrong.

    With a source its bytes are read once more: bytes that differ then are those of a file that is being changed.
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
        words = "its offsets" if lost is None else f"offsets {lost[0]} to {lost[1]}"
        yield finding(
            "batch-crc-mismatch",
            where,
            f"the CRC of the batch does not match its bytes: {words} cannot be trusted",
            actual=int(table.crc[row]),
            lost_offsets=lost,
        )


def _lost_offsets(chunk: BatchChunk, row: int, sound_before: int, log: LogUnit) -> tuple[int, int] | None:
    """The offsets of a batch with a wrong CRC: what its header claims, as far as sound neighbours leave room for it.

    The segment's base offset and the next one's bound it too. What cannot be there is all that there is room for.

    ``sound_before`` is the row of the nearest batch before it with a right CRC, -1 for none in this chunk.
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
    """The first offset of the batch behind a row, if its CRC is right."""
    if row + 1 == len(chunk.table):
        return chunk.next_offset
    # The first offset of a compressed v0/v1 message is known once it was opened, the last one always.
    return int(chunk.table.base_offset[row + 1]) if chunk.table.crc_valid[row + 1] != 0 else None


def tail_finding(source: FileSource, chunk: BatchChunk, log: LogUnit) -> Finding:
    """The finding for a chunk's damage; an end that is being written, as a second look shows, is no damage."""
    if chunk.damage is None:
        raise ValueError("the chunk has no damage")
    found = damage_finding(chunk.damage, log)
    if not (chunk.damage.reaches_end and log.is_last_segment):
        return found
    damage = chunk.damage
    changed: list[Finding] = []

    def has_changed() -> bool:
        changed.extend(_second_look(source, damage, found.location))
        return bool(changed)

    return changed[0] if comes_true(has_changed, path_of(source.path).absolute().parent) else found


def _second_look(source: FileSource, damage: Damage, location: Location) -> Iterator[Finding]:
    """The finding for an end of file that was being written, as its present state shows."""
    try:
        with FileSource(source.path) as again:
            if again.size_bytes < source.size_bytes:
                yield finding("file-changed", location, "the file was cut while it was read")
            elif _is_being_written(again, damage, again.size_bytes > source.size_bytes):
                yield finding("live-tail", location, "the file is being written: its end was not there yet")
    except KafkaLogError as error:
        yield finding_of(error, location)


def _is_being_written(source: FileSource, damage: Damage, has_grown: bool) -> bool:
    """Whether a batch has come to stand where none did, or more of one."""
    header = read_header(source, damage.position)
    if header is None:
        return has_grown and source.size_bytes - damage.position < layout.RECORD_BATCH.size_bytes
    if header.end_position > source.size_bytes:
        return has_grown
    return has_right_crc(source, header.position, header.size_bytes, header.magic)
