"""Reading the selected batches of a log: chunks with their selected rows, and findings for damage and repeats."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cached_property

import msgspec
import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from format import layout
from format.errors import KafkaLogError, NotInBundle
from format.findings import Finding, Judgement, Severity, finding, finding_of, next_step_of
from format.io.live_broker import comes_true
from format.io.source import FileSource
from format.limits import Limits
from format.location import Location
from format.log.batch_chunk import BatchChunk, BatchRange, Damage, HeaderChunk
from format.log.batch_header import has_right_crc, read_header
from format.log.batch_table import BatchTable, batch_location
from format.log.read_records import known_batches
from format.log.walker import batch_chunks, header_chunks
from format.offset_ranges import Range, joined, merged, without
from format.scan.protocol import LogUnit, Needs, OpenedRange
from format.scan.selection import Selection
from format.wording import are, counted_plainly, listed, offset_range, offsets_are

_REPAIR = "Copy the directory first, then run salvage --repair to keep the records of the batch."
#: Codes of damage at the end of the last segment, which a broker truncates, and the next step if that loses offsets.
_TRUNCATED_AT_START = ("tail-torn", "tail-zeros")
_LOST_END = "Look for these offsets in another replica before a broker starts here, since it truncates the log."


def damage_finding(damage: Damage, log: LogUnit) -> Finding:
    """The finding for bytes that belong to no readable batch.

    An end that is cut off is a torn tail only in the last segment; in any other segment, records are lost.
    """
    size = counted_plainly(damage.length, "byte")
    if damage.code == "limit-exceeded":
        where = log.location.at(position=damage.position, length=damage.length)
        return finding(damage.code, where, f"{damage.reason}: {size}")
    lost = damage.lost_offsets or _lost_at_end(damage, log)
    code, severity = damage.code, None
    if damage.is_cut and code == "log-framing-broken" and log.is_last_segment:  # recovery cuts off any magic
        code, severity = "tail-torn", Severity.FATAL if log.keeps_end else Severity.WARNING
    if damage.reaches_end and not log.is_last_segment and (code == "tail-torn" or (code == "tail-zeros" and lost)):
        code = "log-truncated"
    cannot = "cannot" if damage.readable is None else "cannot otherwise"
    message = f"{damage.reason}; "
    if damage.readable is not None:
        kept = f"{offset_range(*damage.readable)} can be read at position {damage.position}"
        message += f"{kept}, and 'kafkalog salvage --repair' keeps the batch; "
    if damage.next_base_offset is not None:
        message += f"{size} {cannot} be read, the next intact batch starts at offset {damage.next_base_offset}"
    elif damage.reaches_end:
        message += f"the last {size} of the file {cannot} be read"
    else:
        message += f"{size} {cannot} be read"
    if lost is not None:
        message += f"; {offsets_are(*lost)} missing here"
    if damage.reaches_end and log.is_last_segment and log.segment is not None:
        message += _words_about_the_end(log.known_end, damage.lost_from, lost)
    next_offset = damage.lost_from if damage.after_offset is None else damage.after_offset + 1
    if severity is not None:
        message += "; a broker serves what is before, and consumers fail on this magic until the bytes are cut off"
    where = log.location.at(position=damage.position, length=damage.length, offset=next_offset)
    next_step = _LOST_END if lost is not None and code in _TRUNCATED_AT_START else None
    judgement = Judgement(severity, next_step=next_step if damage.readable is None else _REPAIR)
    return finding(code, where, message, lost_offsets=lost, judgement=judgement)


def _lost_at_end(damage: Damage, log: LogUnit) -> tuple[int, int] | None:
    """The offsets that a file lost with its end; None if there are none, or if it is unknown where they ended."""
    first, end = damage.lost_from, log.offsets_end
    if not damage.reaches_end or first is None or end is None or end <= first:
        return None
    return first, end - 1


def _words_about_the_end(known_end: int | None, first: int | None, lost: tuple[int, int] | None) -> str:
    """The end of the message about damage at the end of the log: what is known of the offsets that are lost.

    ``first`` is the first offset that may be lost, None if unknown.
    """
    if known_end is None:
        return "; it is not known where the log ended"
    if lost is None:
        return f"; no checkpoint or snapshot shows a record from offset {max(known_end, first or 0)} on"
    return ", as checkpoints or snapshots show"


class OverlapFindings:
    """Makes findings for batches that start before the one before them ends; chunks must be passed in log order.

    No CRC covers the base offset of a batch, so that one of the two has a false one. ``verify`` judges which.
    """

    def __init__(self, location: Location) -> None:
        self._location = location
        self._last: int | None = None  # the last offset of the intact batch before

    def in_chunk(self, chunk: BatchChunk) -> Iterator[Finding]:
        """Findings for the batches of the next chunk. Repeated batches, and those with a wrong CRC, do not count."""
        table = chunk.table
        last = chunk.after_offset if self._last is None else self._last
        if not len(table):
            return
        if chunk.repeated is None and chunk.is_sound_after(last):
            self._last = table.last_offset_of(len(table) - 1)
            return
        which = (table.crc_valid != 0) & (table.base_offset >= 0)
        which = which if chunk.repeated is None else which & ~chunk.repeated
        rows = np.flatnonzero(which)
        before = np.concatenate(([-1 if last is None else last], table.last_offset[rows]))
        for number in np.flatnonzero(table.base_offset[rows] <= before[:-1]).tolist():
            row = int(rows[number])
            yield finding(
                "offset-not-increasing",
                batch_location(self._location, table, row),
                f"the batch starts at offset {table.base_offset[row]}, but the one before it ends at {before[number]}: "
                "one of the two has a false base offset",
                expected=int(before[number]) + 1,
                actual=int(table.base_offset[row]),
            )
        if len(rows):
            self._last = int(before[-1])


class RepeatFindings:
    """Makes findings for runs of repeated batches; chunks must be passed in log order."""

    def __init__(self, location: Location) -> None:
        self._location = location
        self._start = self._end = 0
        self._first_offset = self._last_offset = 0
        self._count = 0

    def before(self, table: BatchTable, repeated: NDArray[np.bool_] | None) -> Iterator[Finding]:
        """Findings for the runs that end before the next table or in it."""
        if repeated is None:
            yield from self.ended()
            return
        for row in np.flatnonzero(repeated).tolist():
            position = int(table.position[row])
            if position != self._end:
                yield from self.ended()
            if not self._count:
                self._start, self._first_offset = position, int(table.base_offset[row])
            self._count += 1
            self._end, self._last_offset = int(table.end_position[row]), table.last_offset_of(row)

    def ended(self, end_position: int | None = None) -> Iterator[Finding]:
        """End the run, if there is one, and yield its finding; batches of the log may be known to end at a position."""
        if self._count:
            batches = "a batch is" if self._count == 1 else f"{self._count} batches are"
            yield finding(
                "offset-not-increasing",
                self._location.at(self._start, self._end - self._start, self._first_offset),
                f"{batches} in the log a second time, byte for byte, with "
                f"{offset_range(self._first_offset, self._last_offset)}: the records are not read again"
                + (_BROKER_ENDS.format(self._last_offset + 1) if self._end == end_position else ""),
                judgement=Judgement(next_step=_KEEP_ONCE),
            )
        self._count = 0


_MAX_OFFSET = 2**63 - 1
_KEEP_ONCE = "Copy the directory first, then run salvage, which keeps each batch once."
_BROKER_ENDS = (
    "; a broker takes {} for the end of the log, serves nothing from there on, and writes the next records there"
)


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
    log = opened.log
    least = log.log_start_offset if needs.selection.from_log_start else None
    for item in opened_chunks(opened.source, opened.chunks, log, needs.selection, limits=needs.limits):
        if isinstance(item, Finding) or (least is None and log.committed is None):
            yield item
        elif log.committed is not None:
            selected = item.selected & log.committed.batches(item.chunk.table)
            yield LogChunk(item.chunk, item.location, selected, log.committed.log_start_offset)
        elif least is not None:
            yield LogChunk(item.chunk, item.location, item.selected & (item.chunk.table.last_offset >= least), least)


def chunks_with_crcs(source: FileSource, batch_range: BatchRange, limits: Limits) -> Iterator[BatchChunk]:
    """The chunks of a log with checked CRCs: with bodies, or for a log in a bundle the headers and verify's results.

    Raises NotInBundle if the bundle does not contain the result for a CRC.
    """
    if source.headers_only is None:
        yield from batch_chunks(source, batch_range, limits=limits)
        return
    for headers in header_chunks(source, batch_range, limits=limits):
        chunk = known_batches(headers, source)
        unknown = np.flatnonzero(chunk.table.crc_valid < 0)
        if len(unknown):
            where = Location(source.path, position=int(chunk.table.position[unknown[0]]))
            raise NotInBundle("the bundle has no results for the CRCs of batches from here on", where)
        yield chunk


def offsets_out_of_order(logs: Iterable[LogUnit], limits: Limits) -> list[Range]:
    """The offsets of all intact batches of a partition's logs, if these do not rise; [] if they rise.

    A log that cannot be read is left out, from there on.
    """
    intact: list[Range] = []
    logs, before = list(logs), -1
    is_in_order = True
    for log in logs:
        with suppress(KafkaLogError), FileSource(log.path) as source:
            for headers in header_chunks(source, BatchRange(end=log.end), limits=limits):
                if len(table := batches_of(headers, source, limits).table):
                    ends = np.concatenate(([before], table.last_offset[:-1]))
                    is_in_order &= bool((table.base_offset > ends).all())
                    before = table.last_offset_of(len(table) - 1)
    for log in () if is_in_order else logs:
        with suppress(KafkaLogError), FileSource(log.path) as source:
            for chunk in chunks_with_crcs(source, BatchRange(end=log.end), limits):
                table = chunk.table.rows((chunk.table.crc_valid == 1) & (chunk.table.record_count >= 0))
                intact += joined(table.base_offset, table.last_offset)
        intact = merged(intact)
    return intact


def counted_losses(found: Finding, lost: Sequence[Range], reasons: Sequence[str]) -> list[Finding]:
    """A finding for each range of its lost offsets that counts, with the reasons why the others do not."""
    if not reasons:
        return [found]
    why = " and ".join(reasons)
    if not lost:
        message = f"{found.message} (no offset is counted as lost: {why})"
        is_end = found.code in _TRUNCATED_AT_START  # whose step names the lost offsets
        step = next_step_of(found.code, found.location) if is_end else found.next_step
        return [replace(found, message=message, lost_offsets=None, next_step=step)]
    are_counted = f"{listed([offset_range(*each) for each in lost])} {are(lost[-1][1] - lost[0][0] + 1)}"
    message = f"{found.message} (only {are_counted} counted as lost: {why})"
    return [replace(found, message=message, lost_offsets=each) for each in lost]


class IntactElsewhere:
    """The offsets of intact batches that may be in another place than where they are missed.

    ``find`` finds them, when offsets are first found lost; all others are in their place.
    """

    def __init__(self, find: Callable[[], list[Range]]) -> None:
        self._find = find

    @classmethod
    def of_log(cls, log: LogUnit, limits: Limits) -> IntactElsewhere:
        """Those of one log, of whose partition nothing else is read."""
        return cls(lambda: offsets_out_of_order([log], limits))

    @cached_property
    def _offsets(self) -> list[Range]:
        return self._find()

    def taken_from(self, lost: list[Range]) -> tuple[list[Range], list[str]]:
        """What is lost of these offsets, and the reason why others are not."""
        left = without(lost, self._offsets) if lost else []
        others = "the others" if left else "them"
        return left, [f"batches in other places of the log have {others}"] if left != lost else []

    def counted(self, found: Finding) -> list[Finding]:
        """The finding with what is lost of its lost offsets, one for each range."""
        return [found] if found.lost_offsets is None else counted_losses(found, *self.taken_from([found.lost_offsets]))


#: For readers who judge losses by themselves.
NOT_ELSEWHERE = IntactElsewhere(list)


def opened_chunks(
    source: FileSource,
    chunks: Iterable[HeaderChunk],
    log: LogUnit,
    selection: Selection,
    *,
    limits: Limits,
    elsewhere: IntactElsewhere | None = None,
) -> Iterator[LogChunk | Finding]:
    """Consecutive chunks of a log, with compressed v0/v1 messages opened, and findings for damage.

    What ``elsewhere`` has is not lost: by default the offsets of intact batches in other places of the log, whose
    headers are read for it.
    """
    repeats, overlaps = RepeatFindings(log.location), OverlapFindings(log.location)
    elsewhere = elsewhere or IntactElsewhere.of_log(log, limits)
    for each in chunks:
        chunk = batches_of(each, source, limits)
        yield from repeats.before(chunk.table, chunk.repeated)
        yield from overlaps.in_chunk(chunk)
        for found in crc_findings(chunk, log, source):
            yield from elsewhere.counted(found)
        yield LogChunk(chunk, log.location, selection.batches(chunk.table))
        if chunk.damage is not None:
            yield from elsewhere.counted(tail_finding(source, chunk, log))
        if selection.is_past(chunk.table):
            break
    yield from repeats.ended()


def batches_of(chunk: HeaderChunk, source: FileSource, limits: Limits) -> BatchChunk:
    """The batches of a chunk; where only headers were read, compressed v0/v1 messages are read to open them."""
    if isinstance(chunk, BatchChunk):
        return chunk
    headers, table = chunk.headers, known_batches(chunk, source).table
    if source.headers_only is None and headers.is_wrapper.any():
        where = BatchRange(int(headers.position[0]), int(headers.end_position[-1]))
        whole = BatchTable.concatenated(
            [each.table for each in batch_chunks(source, where, check_crc=False, limits=limits)]
        )
        table = whole if len(whole) == len(headers) else table
    return chunk.with_batches(table.with_crcs(headers.crc_valid))


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
    is_after_known = before is not None or (chunk.buffer_position == 0 and log.location.base_offset is not None)
    if table.rows(slice(row, row + 1)).is_wrapper[0]:  # its header has only its last offset
        if not is_after_known:
            return None
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


def tail_finding(source: FileSource, chunk: HeaderChunk, log: LogUnit) -> Finding:
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
