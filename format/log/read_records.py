"""Decompressing and indexing the records of batches: v2 records, and v0 and v1 messages.

The value of a compressed message (a wrapper) is a message set. v0 inner offsets are absolute; v1 inner offsets are
relative, and the offset of the wrapper is the offset of its last inner message. A wrapper offset of 0 comes from old
librdkafka producers; inner offsets then count from 0. Source: clients record/internal/DefaultRecord,
AbstractLegacyRecordBatch and LegacyRecord (KIP-31, KIP-32, KIP-98).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from enum import IntEnum

import msgspec
import numpy as np
from numpy.typing import NDArray

from format import layout
from format.codecs import decompress, decompress_briefly
from format.errors import InvalidRecord, KafkaLogError, LimitExceeded, UnknownCodec
from format.io.source import FileSource, Source
from format.kernel.records import RECORD_ERRORS, index_messages, index_records
from format.kernel.tables import RESULT_COLUMNS, SPAN_COLUMNS
from format.limits import DEFAULT_LIMITS, MIB, Limits
from format.location import Location
from format.log.batch_chunk import BatchChunk, HeaderChunk, OpenedWrappers
from format.log.batch_header import checked_crcs
from format.log.batch_table import BATCH_COLUMN, BatchTable, HeaderTable, Int64Column, batch_location
from format.log.record_table import RECORD_COLUMN, RecordProblem, RecordTable, located
from format.wording import counted_plainly

#: The approximate bytes of records in a group, if compression makes them eight times smaller.
_GROUP_BYTES = 8 * MIB
_COMPRESSION = 8


class BatchKind(IntEnum):
    """The kinds of batches, whose records are read in different ways."""

    V2 = 0  # a record batch
    MESSAGE = 1  # an uncompressed v0 or v1 message
    WRAPPER = 2  # a compressed v0 or v1 message, with inner messages


class BatchGroup(msgspec.Struct, frozen=True):
    """Rows of a batch table, in order; all batches are of one kind."""

    kind: BatchKind
    rows: NDArray[np.intp]


def batch_groups(table: BatchTable, which: NDArray[np.bool_]) -> list[BatchGroup]:
    """The rows for which ``which`` (bool) is true, in groups."""
    rows = np.flatnonzero(which)
    if not len(rows):
        return []
    picked = table if len(rows) == len(table) else table.rows(rows)
    kinds = np.where(picked.magic == 2, BatchKind.V2, np.where(picked.is_wrapper, BatchKind.WRAPPER, BatchKind.MESSAGE))
    weights = picked.size_bytes * np.where(picked.codec > 0, _COMPRESSION, 1)
    numbers = (np.cumsum(weights) - weights) // _GROUP_BYTES
    edges = np.flatnonzero((kinds[1:] != kinds[:-1]) | (numbers[1:] != numbers[:-1])) + 1
    starts = [0, *edges.tolist()]
    return [
        BatchGroup(BatchKind(int(kinds[start])), rows[start:stop])
        for start, stop in zip(starts, [*starts[1:], len(rows)], strict=True)
    ]


_R = RECORD_COLUMN
_STARTS = ("start", "key_start", "value_start", "headers_start")
_ROW_BYTES = 8 * len(_R)
#: The most wrappers that are decompressed together, and the approximate bytes of their content.
_MOST_OPENED = 1024
_OPENED_BYTES = 2 * MIB
#: The most bytes of decompressed wrappers that are kept for a second use.
_HELD_BYTES = 32 * MIB
_LOWEST_MESSAGE_BYTES = layout.LOG_ENTRY.size_bytes + layout.MIN_MESSAGE_LENGTH


def message_table(chunk: BatchChunk, group: list[int], where: Location) -> RecordTable:
    """Uncompressed v0/v1 messages of a chunk, ``group`` by row, as one record table over the chunk's buffer."""
    batches, buffer = chunk.table, chunk.bodies
    columns = np.empty((len(group), len(_R)), np.int64)
    rows = memoryview(columns)
    result = np.zeros(len(RESULT_COLUMNS), np.int64)
    result_view = memoryview(result)
    problems: list[RecordProblem] = []
    count = 0
    first = 0
    while first < len(group):
        last = _run_end(batches, group, first)
        start = int(batches.position[group[first]]) - chunk.buffer_position
        end = int(batches.end_position[group[last - 1]]) - chunk.buffer_position
        read = index_messages(buffer, start, end, rows, count, result_view) - count
        columns[count : count + read, _R["batch"]] = group[first : first + read]
        count += read
        first += read
        if result[0]:
            place = batch_location(where, batches, group[first])
            reason = f"{RECORD_ERRORS[int(result[0])]} (position {chunk.buffer_position + int(result[1])})"
            problems.append(RecordProblem(group[first], InvalidRecord(reason, place, code="message-invalid")))
            first += 1
    return RecordTable(batches, buffer, columns[:count], problems)


def _run_end(batches: BatchTable, group: list[int], first: int) -> int:
    """The end, as an index in ``group``, of the run from ``first`` on of messages that are consecutive in the file."""
    if group[-1] - group[first] == len(group) - 1 - first:
        starts, ends = batches.position[group[first] : group[-1] + 1], batches.end_position[group[first] : group[-1]]
        breaks = np.flatnonzero(starts[1:] != ends)
        return first + (int(breaks[0]) + 1 if len(breaks) else len(starts))
    return first + 1


def wrapper_tables(chunk: BatchChunk, rows: NDArray[np.intp], limits: Limits, where: Location) -> Iterator[RecordTable]:
    """The inner messages of the wrappers in some rows of a chunk, in tables of bounded size."""
    for opened in _opened(chunk, rows, limits):
        problems = [
            RecordProblem(row, located(error, batch_location(where, chunk.table, row)))
            for row, error in sorted(opened.errors.items())
        ]
        columns = _no_rows() if opened.columns is None else opened.columns
        yield RecordTable(chunk.table, opened.buffer, columns, problems)


def wrapper_table(chunk: BatchChunk, row: int, limits: Limits, where: Location) -> RecordTable:
    """The inner messages of one wrapper."""
    return next(wrapper_tables(chunk, np.array([row], np.intp), limits, where))


def open_wrappers(chunk: BatchChunk, limits: Limits = DEFAULT_LIMITS) -> BatchChunk:
    """The chunk with the offsets and the number of the messages in its wrappers, by decompressing them.

    A wrapper that cannot be decompressed remains closed.
    """
    table = chunk.table
    sound = np.flatnonzero(table.is_wrapper & (table.crc_valid != 0))
    if not len(sound):
        return chunk
    held_bytes = 0
    found: list[tuple[Int64Column, ...]] = []
    for opened in _opened(chunk, sound, limits):
        if opened.columns is None:
            continue
        offsets, batches = opened.columns[:, _R["offset"]], opened.columns[:, _R["batch"]]
        edges = np.flatnonzero(batches[1:] != batches[:-1]) + 1
        starts, ends = np.append(0, edges), np.append(edges, len(batches))
        first_offsets, last_offsets = offsets[starts], offsets[ends - 1]
        # The record check reports impossible offsets.
        can_be = (first_offsets >= 0) & (first_offsets <= last_offsets)
        columns = (batches[starts], first_offsets, last_offsets, ends - starts)
        found.append(tuple(column[can_be] for column in columns))
        held_bytes += opened.columns.nbytes + len(opened.buffer)
        if held_bytes < _HELD_BYTES:
            chunk.opened[int(opened.rows[0])] = opened
    if not found:
        return chunk
    rows, firsts, lasts, counts = (np.concatenate(column) for column in zip(*found, strict=True))
    return replace(chunk, table=table.with_contents(rows, firsts, lasts, counts))


def known_batches(chunk: HeaderChunk, source: Source | None = None) -> BatchChunk:
    """The batches of a chunk by what was read of it, and what a bundle has: wrappers may remain closed."""
    if isinstance(chunk, BatchChunk):
        return chunk
    table = chunk.headers.unopened()
    bundled = source.headers_only if isinstance(source, FileSource) else None
    if bundled is None:
        return chunk.with_batches(table)
    rows = np.flatnonzero(table.is_wrapper)
    if len(rows):
        inner = bundled.inner_offsets(table.position[rows])
        is_known = inner[:, 0] >= 0
        rows, firsts, counts = rows[is_known], inner[is_known, 0], inner[is_known, 1]
        table = table.with_contents(rows, firsts, table.last_offset[rows], counts)
    return chunk.with_batches(table.with_crcs(bundled.crc_valid(table.position)))


def _opened(chunk: BatchChunk, rows: NDArray[np.intp], limits: Limits) -> Iterator[OpenedWrappers]:
    """Decompressed wrappers, some at a time: those that ``open_wrappers`` has kept, and newly decompressed ones."""
    first = 0
    while first < len(rows):
        kept = _kept(chunk, rows[first:])
        if kept is None:
            opened = _open_some(chunk, rows[first : first + _MOST_OPENED], limits, {})
        elif kept.columns is None:
            opened = _open_some(chunk, kept.rows, limits, kept.errors)
        else:
            opened = kept
        if opened.errors:
            # Errors are kept, so that a decompression bomb is met once, but without the frames that hold the bytes.
            for error in opened.errors.values():
                error.__traceback__ = error.__cause__ = error.__context__ = None
            chunk.opened[int(opened.rows[0])] = OpenedWrappers(opened.rows, None, memoryview(b""), opened.errors)
        yield opened
        first += len(opened.rows)


def _kept(chunk: BatchChunk, rows: NDArray[np.intp]) -> OpenedWrappers | None:
    """Take kept wrappers that start with the first of these rows, None if there are none; others remain kept."""
    kept = chunk.opened.pop(int(rows[0]), None)
    if kept is None or np.array_equal(kept.rows, rows[: len(kept.rows)]):
        return kept
    count = min(len(kept.rows), len(rows))
    differs = np.flatnonzero(kept.rows[:count] != rows[:count])
    count = int(differs[0]) if len(differs) else count
    own, other = kept.split(count)
    chunk.opened[int(other.rows[0])] = other
    return own


class _InnerSet(msgspec.Struct, frozen=True):
    """The decompressed content of a compressed message, and the header fields that apply to its inner messages."""

    row: int
    magic: int
    attributes: int
    offset: int
    timestamp: int
    content: bytes


def _open_some(
    chunk: BatchChunk, rows: NDArray[np.intp], limits: Limits, known: dict[int, KafkaLogError]
) -> OpenedWrappers:
    """Decompress the first wrappers of ``rows``, at least one, up to about _OPENED_BYTES of content."""
    buffer = chunk.bodies
    starts = chunk.table.position[rows] - chunk.buffer_position
    ends = starts + chunk.table.size_bytes[rows]
    outer = _outer_messages(buffer, starts, ends)
    errors = dict(known)
    inner_sets: list[_InnerSet] = []
    held_bytes = done = 0
    for row, start, end in zip(rows.tolist(), starts.tolist(), ends.tolist(), strict=True):
        if row not in errors:
            try:
                message = _outer_message(buffer, start, end) if outer is None else outer[done]
                inner = _inner_set(buffer, row, message, limits)
            except KafkaLogError as error:
                errors[row] = error
            else:
                if inner_sets and held_bytes + len(inner.content) > _OPENED_BYTES:
                    break
                inner_sets.append(inner)
                held_bytes += len(inner.content)
        done += 1
    rows = rows[:done]
    buffer = memoryview(inner_sets[0].content if len(inner_sets) == 1 else b"".join([e.content for e in inner_sets]))
    table = _indexed_together(buffer, inner_sets, limits) if inner_sets else None
    if table is None:
        pieces = []
        for inner in inner_sets:
            try:
                pieces.append((_indexed(inner, limits), memoryview(inner.content)))
            except KafkaLogError as error:
                errors[inner.row] = error
        table, buffer = _joined(pieces)
    return OpenedWrappers(rows, table if len(table) else None, buffer, errors)


def _outer_messages(buffer: memoryview, starts: Int64Column, ends: Int64Column) -> list[list[int]] | None:
    """The record rows of wrappers that lie one behind the other; None if any of them needs a closer look."""
    if (starts[1:] != ends[:-1]).any():
        return None
    columns = np.empty((len(starts), len(_R)), np.int64)
    result = np.zeros(len(RESULT_COLUMNS), np.int64)
    count = index_messages(buffer, int(starts[0]), int(ends[-1]), memoryview(columns), 0, memoryview(result))
    rows: list[list[int]] = columns.tolist()
    return None if result[0] or count != len(starts) else rows


def _outer_message(buffer: memoryview, start: int, end: int) -> list[int]:
    """The record row of one wrapper. Raises InvalidRecord."""
    room = np.empty((1, len(_R)), np.int64)
    _index(buffer[start:end], "message", room)
    row: list[int] = room[0].tolist()
    for name in _STARTS:
        row[_R[name]] += start
    return row


def _inner_set(buffer: memoryview, row: int, message: list[int], limits: Limits) -> _InnerSet:
    """Decompress one wrapper, whose record row is ``message``. Raises KafkaLogError."""
    magic, attributes = message[_R["batch"]], message[_R["attributes"]]
    codec = attributes & layout.CODEC_MASK
    if codec >= len(layout.CODEC_NAMES) or layout.CODEC_NAMES[codec] == "zstd":
        raise UnknownCodec(f"compression type {codec} does not exist in message format {magic}")
    start, length = message[_R["value_start"]], message[_R["value_length"]]
    if length < 0:
        raise InvalidRecord("a compressed message has a null value", code="message-invalid")
    content = decompress(codec, buffer[start : start + length], magic=magic, limits=limits)
    return _InnerSet(row, magic, attributes, message[_R["offset"]], message[_R["timestamp"]], content)


def _index(message_set: memoryview, what: str, room: Int64Column) -> int:
    """Index the first messages of a set, as many as ``room`` has rows; return their number. Raises InvalidRecord."""
    result = np.zeros(len(RESULT_COLUMNS), np.int64)
    count = index_messages(message_set, 0, len(message_set), memoryview(room), 0, memoryview(result))
    if result[0]:
        raise InvalidRecord(
            f"{what} {int(result[2])}: {RECORD_ERRORS[int(result[0])]} (byte {int(result[1])})", code="message-invalid"
        )
    return count


def _indexed_together(buffer: memoryview, inner_sets: list[_InnerSet], limits: Limits) -> Int64Column | None:
    """The messages of several consecutive sets, as by ``_indexed`` for each; None if any set needs that function."""
    starts = np.cumsum([0, *(len(inner.content) for inner in inner_sets)])
    inner = np.empty((_most_rows(len(buffer), limits), len(_R)), np.int64)
    try:
        inner = inner[: _index(buffer, "", inner)]
    except InvalidRecord:
        return None
    if len(inner) > limits.max_decompressed_bytes // _ROW_BYTES:
        return None
    firsts = np.searchsorted(inner[:, _R["start"]], starts)
    counts = np.diff(firsts)
    # Each set must start where a message starts, and have at least one.
    if counts.min() < 1 or (inner[firsts[:-1], _R["start"]] != starts[:-1]).any():
        return None
    headers = np.array([(each.row, each.magic, each.attributes, each.offset, each.timestamp) for each in inner_sets])
    rows, magics, attributes, outer_offsets, outer_timestamps = headers.T
    offsets = inner[:, _R["offset"]]
    if (inner[:, _R["attributes"]] & layout.CODEC_MASK).any():
        return None
    if (inner[:, _R["batch"]] != np.repeat(magics, counts)).any():
        return None
    last_offsets = offsets[firsts[1:] - 1]
    is_relative = (magics == 1) & (outer_offsets != 0)
    if (is_relative & ((outer_offsets < last_offsets) | (np.minimum.reduceat(offsets, firsts[:-1]) < 0))).any():
        return None
    offsets += np.repeat(np.where(is_relative, outer_offsets - last_offsets, 0), counts)
    is_append_time = np.repeat((magics == 1) & (attributes & layout.TIMESTAMP_TYPE_BIT != 0), counts)
    if is_append_time.any():
        timestamps = np.repeat(outer_timestamps, counts)
        inner[is_append_time, _R["timestamp"]] = timestamps[is_append_time]
    inner[:, _R["batch"]] = np.repeat(rows, counts)
    return inner


def _most_rows(size_bytes: int, limits: Limits) -> int:
    """One more than the most messages in so many bytes, by their least size and by the limit for their rows."""
    return min(size_bytes // _LOWEST_MESSAGE_BYTES, limits.max_decompressed_bytes // _ROW_BYTES) + 1


def _indexed(wrapper: _InnerSet, limits: Limits) -> Int64Column:
    """The messages of one set, with absolute offsets, and with the wrapper's timestamp if that is a LogAppendTime."""
    inner = np.empty((_most_rows(len(wrapper.content), limits), len(_R)), np.int64)
    inner = inner[: _index(memoryview(wrapper.content), "inner message", inner)]
    most_rows = limits.max_decompressed_bytes // _ROW_BYTES
    if len(inner) > most_rows:
        raise LimitExceeded(f"a compressed message has more than {most_rows} inner messages")
    if not len(inner):
        raise InvalidRecord("a compressed message has no inner messages", code="message-invalid")
    offsets = inner[:, _R["offset"]]
    if (inner[:, _R["attributes"]] & layout.CODEC_MASK).any():
        raise InvalidRecord("an inner message is itself compressed", code="message-invalid")
    if (inner[:, _R["batch"]] != wrapper.magic).any():
        raise InvalidRecord(
            f"an inner message's format differs from its wrapper's ({wrapper.magic})", code="message-invalid"
        )
    inner[:, _R["batch"]] = wrapper.row
    if wrapper.magic == 0:
        return inner
    last_inner = int(offsets[-1])
    if wrapper.offset != 0:
        if wrapper.offset < last_inner or int(offsets.min()) < 0:
            raise InvalidRecord(
                f"the wrapper's offset {wrapper.offset} is below its last inner offset {last_inner}",
                code="message-invalid",
            )
        offsets += wrapper.offset - last_inner
    if wrapper.attributes & layout.TIMESTAMP_TYPE_BIT:
        inner[:, _R["timestamp"]] = wrapper.timestamp
    return inner


def _joined(pieces: list[tuple[Int64Column, memoryview]]) -> tuple[Int64Column, memoryview]:
    """Join messages over several buffers to messages over one buffer."""
    if not pieces:
        return _no_rows(), memoryview(b"")
    if len(pieces) == 1:
        return pieces[0]
    columns = np.concatenate([each for each, _ in pieces])
    lengths = [len(buffer) for _, buffer in pieces]
    shifts = np.repeat(np.cumsum([0, *lengths[:-1]]), [len(each) for each, _ in pieces])
    for name in _STARTS:
        columns[:, _R[name]] += shifts
    return columns, memoryview(b"".join([buffer for _, buffer in pieces]))


def _no_rows() -> Int64Column:
    return np.empty((0, len(_R)), np.int64)


def inner_crcs(table: RecordTable, rows: Int64Column) -> tuple[Int64Column, NDArray[np.bool_]]:
    """The CRC-32 of records that are v0 or v1 messages, as each inner message has one, and whether it is right."""
    starts, content = table.start[rows], np.frombuffer(table.buffer, np.uint8)
    places = (starts + layout.MESSAGE_V0.offset_of("crc"))[:, np.newaxis] + np.arange(4)
    columns = np.zeros((len(rows), len(BATCH_COLUMN)), np.int64)
    columns[:, BATCH_COLUMN["position"]] = starts
    columns[:, BATCH_COLUMN["size_bytes"]] = table.size_bytes[rows]
    columns[:, BATCH_COLUMN["crc"]] = content[places] @ np.array((1 << 24, 1 << 16, 1 << 8, 1))
    messages = HeaderTable(columns)
    return messages.crc, checked_crcs(messages, table.buffer, 0) == 1


_HEADER_BYTES = layout.RECORD_BATCH.size_bytes
_SPAN = {name: number for number, name in enumerate(SPAN_COLUMNS)}
_ERROR, _ERROR_AT, _RECORDS, _END = range(len(RESULT_COLUMNS))
#: Decompressed batches are indexed after this many bytes, before more are decompressed.
_PORTION_BYTES = 8 * MIB
#: The most rows of a table, so that a batch of millions of tiny records takes no more memory than others.
MOST_ROWS = 128 * 1024
#: The most headers of a record that is read: each header becomes several objects, however small it is.
MOST_HEADERS = 1_000_000


def record_tables(
    chunk: BatchChunk,
    *,
    which: NDArray[np.bool_] | None = None,
    limits: Limits = DEFAULT_LIMITS,
    location: Location | None = None,
) -> Iterator[RecordTable]:
    """The records of a chunk's batches in log order, in tables of bounded size.

    ``which`` (bool) selects batches by row; without it, all batches are read except those with a wrong CRC. Records
    that cannot be read are in the problems of the tables. The chunk must have been read with bodies.
    """
    for group in batch_groups(chunk.table, chunk.table.crc_valid != 0 if which is None else which):
        yield from group_tables(chunk, group, limits, location or Location(""))


def group_tables(chunk: BatchChunk, group: BatchGroup, limits: Limits, where: Location) -> Iterator[RecordTable]:
    """The records of one group of a chunk's batches, as in ``record_tables``."""
    if group.kind is BatchKind.V2:
        yield from _v2_tables(chunk, group, limits, where)
    elif group.kind is BatchKind.MESSAGE:
        yield message_table(chunk, group.rows.tolist(), where)
    else:
        yield from wrapper_tables(chunk, group.rows, limits, where)


def _v2_tables(chunk: BatchChunk, group: BatchGroup, limits: Limits, where: Location) -> Iterator[RecordTable]:
    table, buffer = chunk.table.rows(group.rows), chunk.bodies
    starts = table.position - chunk.buffer_position + _HEADER_BYTES
    ends = table.end_position - chunk.buffer_position
    if not table.codec.any():
        yield from _Spans(chunk.table, group.rows, table, buffer, starts, ends, where).tables([])
        return
    joined: bytes | bytearray = bytearray()
    part_ends = [0]
    problems: list[RecordProblem] = []
    first = 0

    def joined_tables(last: int) -> Iterator[RecordTable]:
        """The records of the batches in ``joined``, all before this one."""
        nonlocal joined, part_ends, problems, first
        edges, rows, known = np.array(part_ends, np.int64), slice(first, last), problems
        content, joined = memoryview(joined), bytearray()
        part_ends, first, problems = [0], last, []
        spans = _Spans(chunk.table, group.rows[rows], table.rows(rows), content, edges[:-1], edges[1:], where)
        yield from spans.tables(known)

    for number, (codec, start, end) in enumerate(
        zip(table.codec.tolist(), starts.tolist(), ends.tolist(), strict=True)
    ):
        part: bytes | memoryview = buffer[start:end]
        try:
            part = decompress_briefly(codec, part, limits) if codec else part
        except KafkaLogError as error:
            place = batch_location(where, table, number)
            problems.append(RecordProblem(int(group.rows[number]), located(error, place)))
            part = b""
        is_large = len(part) >= _PORTION_BYTES and isinstance(part, bytes)
        if is_large and joined:
            yield from joined_tables(number)
        if is_large:
            joined = bytes(part)  # not copied
        else:
            joined += part
        del part  # before more is decompressed
        part_ends.append(len(joined))
        if len(joined) >= _PORTION_BYTES:
            yield from joined_tables(number + 1)
    if len(part_ends) > 1:
        yield from joined_tables(len(table))


class _Spans:
    """The decompressed records of v2 batches in one buffer, and their conversion to record tables."""

    def __init__(
        self,
        batches: BatchTable,
        rows: NDArray[np.intp],
        table: BatchTable,
        buffer: memoryview,
        starts: Int64Column,
        ends: Int64Column,
        where: Location,
    ) -> None:
        self._batches = batches
        self._rows = rows
        self._table = table
        self._buffer = buffer
        self._starts = starts
        self._where = where
        spans = np.empty((len(rows), len(_SPAN)), np.int64)
        spans[:, _SPAN["batch"]] = rows
        spans[:, _SPAN["start"]] = starts
        spans[:, _SPAN["end"]] = ends
        spans[:, _SPAN["record_count"]] = np.maximum(table.record_count, 0)
        spans[:, _SPAN["base_offset"]] = table.base_offset
        spans[:, _SPAN["base_timestamp"]] = table.base_timestamp
        spans[:, _SPAN["append_timestamp"]] = table.max_timestamp
        spans[:, _SPAN["is_append_time"]] = table.is_append_time
        self._spans = spans
        self._results = np.zeros((len(rows), len(RESULT_COLUMNS)), np.int64)
        self._limited: dict[int, int] = {}  # by batch, the row from which on its records are left out
        self._read_before = 0  # records in earlier tables of the batch that continues in the next table

    def tables(self, problems: list[RecordProblem]) -> Iterator[RecordTable]:
        """The records in tables; ``problems`` are the known ones, to which those of the records are added."""
        spans, results = self._spans, self._results
        counts, lengths = spans[:, _SPAN["record_count"]], spans[:, _SPAN["end"]] - spans[:, _SPAN["start"]]
        # The count in the header may be forged: the bytes of a batch limit the number of its records.
        capacity = int(np.minimum(counts, lengths // layout.MIN_RECORD_BYTES + 1).sum())
        known = {each.batch for each in problems}
        first: int | None = 0
        is_continued = False
        while first is not None:
            columns = np.empty((min(capacity, MOST_ROWS), len(_R)), np.int64)
            read = index_records(
                self._buffer, memoryview(spans), first, len(spans), memoryview(columns), 0, memoryview(results)
            )
            cut = self._first_unfinished(first) if read < capacity and read == len(columns) else None
            problems += self._problems(first, len(spans) if cut is None else cut, known)
            problems.sort(key=lambda problem: problem.batch)
            # The problems of a batch belong to the table that has its last records.
            later = [] if cut is None else [each for each in problems if each.batch >= self._rows[cut]]
            problems = problems[: len(problems) - len(later)]
            capacity -= read
            is_cut = False
            if cut is not None:
                self._read_before = int(results[cut, _RECORDS]) + (self._read_before if cut == first else 0)
                is_cut = self._read_before > 0
                spans[cut, _SPAN["start"]] = results[cut, _END]
                spans[cut, _SPAN["record_count"]] -= results[cut, _RECORDS]
            records = columns[:read]
            if (records[:, _R["header_count"]] > MOST_HEADERS).any() or self._limited:
                records = self._within_limits(records, problems)
            yield RecordTable(self._batches, self._buffer, records, problems, is_continued, is_cut)
            problems, first, is_continued = later, cut, is_cut

    def _within_limits(self, records: Int64Column, problems: list[RecordProblem]) -> Int64Column:
        """The records without those from a record with too many headers to the end of its batch."""
        batches = records[:, _R["batch"]]
        for row in np.flatnonzero(records[:, _R["header_count"]] > MOST_HEADERS).tolist():
            batch = int(batches[row])
            if batch not in self._limited:
                count = int(records[row, _R["header_count"]])
                message = f"a record has {count} headers, over the limit of {MOST_HEADERS}"
                place = batch_location(self._where, self._table, int(np.flatnonzero(self._rows == batch)[0]))
                problems.append(RecordProblem(batch, LimitExceeded(message, place)))
                self._limited[batch] = row
        first = np.array([self._limited.get(batch, len(records)) for batch in batches.tolist()])
        kept: Int64Column = records[np.arange(len(records)) < first]
        self._limited = dict.fromkeys(self._limited, 0)
        problems.sort(key=lambda problem: problem.batch)
        return kept

    def _first_unfinished(self, first: int) -> int | None:
        """The first span that was not read to its end because the table was full."""
        spans, results = self._spans[first:], self._results[first:]
        stopped = (results[:, _ERROR] == 0) & (results[:, _RECORDS] < spans[:, _SPAN["record_count"]])
        stopped &= results[:, _END] < spans[:, _SPAN["end"]]
        found = np.flatnonzero(stopped)
        return first + int(found[0]) if len(found) else None

    def _problems(self, first: int, last: int, known: set[int]) -> list[RecordProblem]:
        """The problems of the spans that were read to their end."""
        results = self._results[first:last]
        records = results[:, _RECORDS].copy()
        if len(records):
            records[0] += self._read_before
        wrong = (results[:, _ERROR] != 0) | (records != self._table.record_count[first:last])
        wrong |= results[:, _END] != self._spans[first:last, _SPAN["end"]]
        return [
            self._problem(first + number, int(records[number]))
            for number in np.flatnonzero(wrong).tolist()
            if int(self._rows[first + number]) not in known
        ]

    def _problem(self, number: int, records: int) -> RecordProblem:
        batch = int(self._rows[number])
        error, at, _, end = (int(value) for value in self._results[number])
        place = batch_location(self._where, self._table, number)
        count = int(self._table.record_count[number])
        if error:
            byte = at - int(self._starts[number])
            message = f"record {records} of {count}: {RECORD_ERRORS[error]} (byte {byte} of the records)"
            return RecordProblem(batch, InvalidRecord(message, place))
        if records != count:
            message = f"the batch has {counted_plainly(records, 'record')}, but its header says {count}"
            return RecordProblem(batch, InvalidRecord(message, place, code="record-count-mismatch"))
        left = int(self._spans[number, _SPAN["end"]]) - end
        message = f"{counted_plainly(left, 'byte')} after the last of {counted_plainly(count, 'record')}"
        return RecordProblem(batch, InvalidRecord(message, place, code="record-trailing-bytes"))
