"""v0 and v1 messages, and the message sets nested in compressed ones, with right offsets and timestamps.

Source: clients record/internal/AbstractLegacyRecordBatch and LegacyRecord (KIP-31, KIP-32). A compressed wrapper's
value is a message set: v0 inner offsets are absolute; v1 inner offsets are relative, and the wrapper's offset is
that of its last inner message. A wrapper offset of 0 comes from old librdkafka producers: inner offsets then count
from 0.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from format import kernel, layout
from format.batches import BatchChunk, BatchTable
from format.codecs import decompress
from format.errors import InvalidRecord, KafkaLogError, LimitExceeded, UnknownCodec
from format.limits import DEFAULT_LIMITS, MIB, Limits
from format.location import Location
from format.records import RecordProblem, RecordTable, batch_location, located

Int64Column = NDArray[np.int64]

_R = {name: number for number, name in enumerate(kernel.RECORD_COLUMNS)}
_ROW_BYTES = 8 * len(_R)
#: Opened messages are given out when they come to this many bytes, and no more are kept for a second use.
_HELD_BYTES = 8 * MIB
_LOWEST_MESSAGE_BYTES = layout.LOG_ENTRY.size_bytes + layout.MIN_MESSAGE_LENGTH


def message_table(chunk: BatchChunk, group: list[int], limits: Limits, where: Location) -> RecordTable:
    """Some uncompressed v0/v1 messages of a chunk as one record table over the chunk's own buffer."""
    if chunk.buffer is None:
        raise ValueError("the chunk was read without bodies")
    batches = chunk.table
    columns = np.empty((len(group), len(_R)), np.int64)
    rows = memoryview(columns)
    result = np.zeros(len(kernel.RESULT_COLUMNS), np.int64)
    result_view = memoryview(result)
    problems: list[RecordProblem] = []
    count = 0
    first = 0
    while first < len(group):
        last = _run_end(batches, group, first)
        start = int(batches.position[group[first]]) - chunk.buffer_position
        end = int(batches.end_position[group[last - 1]]) - chunk.buffer_position
        read = kernel.index_messages(chunk.buffer, start, end, rows, count, result_view) - count
        columns[count : count + read, _R["batch"]] = group[first : first + read]
        count += read
        first += read
        if result[0]:
            place = batch_location(where, batches, group[first])
            reason = f"{kernel.ERRORS[int(result[0])]} (position {chunk.buffer_position + int(result[1])})"
            problems.append(RecordProblem(group[first], InvalidRecord(reason, place, code="message-invalid"), 0))
            first += 1
    return RecordTable(batches, chunk.buffer, columns[:count], problems)


def _run_end(batches: BatchTable, group: list[int], first: int) -> int:
    """The end of the run of rows from ``group[first]`` on that lie one behind the other in the file."""
    if group[-1] - group[first] == len(group) - 1 - first:
        starts, ends = batches.position[group[first] : group[-1] + 1], batches.end_position[group[first] : group[-1]]
        breaks = np.flatnonzero(starts[1:] != ends)
        return first + (int(breaks[0]) + 1 if len(breaks) else len(starts))
    return first + 1


@dataclass(frozen=True, slots=True)
class OpenedWrapper:
    """The inner messages of one compressed message as record columns, and the buffer that they lie in."""

    columns: Int64Column
    buffer: memoryview

    @property
    def held_bytes(self) -> int:
        return self.columns.nbytes + len(self.buffer)


def wrapper_tables(chunk: BatchChunk, rows: NDArray[np.intp], limits: Limits, where: Location) -> Iterator[RecordTable]:
    """The inner messages of some compressed v0/v1 messages of a chunk, in tables of bounded size."""
    batches = chunk.table
    pieces: list[OpenedWrapper] = []
    problems: list[RecordProblem] = []
    held_bytes = 0
    for row in rows.tolist():
        try:
            opened = _opened(chunk, row, limits)
        except KafkaLogError as error:
            problems.append(RecordProblem(row, located(error, batch_location(where, batches, row)), 0))
            continue
        opened.columns[:, _R["batch"]] = row
        pieces.append(opened)
        held_bytes += opened.held_bytes
        if held_bytes >= _HELD_BYTES:
            yield _joined(batches, pieces, problems)
            pieces, problems, held_bytes = [], [], 0
    if pieces or problems:
        yield _joined(batches, pieces, problems)


def wrapper_table(chunk: BatchChunk, rows: list[int], limits: Limits, where: Location) -> RecordTable:
    """The inner messages of a few compressed v0/v1 messages as one table."""
    tables = list(wrapper_tables(chunk, np.asarray(rows, np.intp), limits, where))
    if len(tables) == 1:
        return tables[0]
    pieces = [OpenedWrapper(table.columns, table.buffer) for table in tables]
    return _joined(chunk.table, pieces, [problem for table in tables for problem in table.problems])


def _opened(chunk: BatchChunk, row: int, limits: Limits) -> OpenedWrapper:
    """A compressed message opened, or as ``open_wrappers`` has kept it; so is the error of one that cannot be."""
    kept = chunk.opened.get(row)
    if isinstance(kept, KafkaLogError):
        raise kept
    if kept is not None:
        del chunk.opened[row]
        return kept
    if chunk.buffer is None:
        raise ValueError("the chunk was read without bodies")
    start = int(chunk.table.position[row]) - chunk.buffer_position
    return OpenedWrapper(*_open(chunk.buffer[start : start + int(chunk.table.size_bytes[row])], limits))


def _joined(batches: BatchTable, pieces: list[OpenedWrapper], problems: list[RecordProblem]) -> RecordTable:
    if not pieces:
        return RecordTable(batches, memoryview(b""), np.empty((0, len(_R)), np.int64), problems)
    if len(pieces) == 1:
        return RecordTable(batches, pieces[0].buffer, pieces[0].columns, problems)
    columns = np.concatenate([piece.columns for piece in pieces])
    lengths = [len(piece.buffer) for piece in pieces]
    shifts = np.repeat(np.cumsum([0, *lengths[:-1]]), [len(piece.columns) for piece in pieces])
    for name in ("start", "key_start", "value_start", "headers_start"):
        columns[:, _R[name]] += shifts
    return RecordTable(batches, memoryview(b"".join([piece.buffer for piece in pieces])), columns, problems)


def _open(message: memoryview, limits: Limits) -> tuple[Int64Column, memoryview]:
    """The inner messages of one compressed message, and the buffer that they lie in."""
    outer = _index(message, "message", 1)
    codec = int(outer[0, _R["attributes"]]) & layout.CODEC_MASK
    magic = int(outer[0, _R["batch"]])
    names = len(layout.CODEC_NAMES)
    if codec >= names or layout.CODEC_NAMES[codec] == "zstd":
        raise UnknownCodec(f"compression type {codec} does not exist in message format {magic}")
    value_start, value_length = int(outer[0, _R["value_start"]]), int(outer[0, _R["value_length"]])
    if value_length < 0:
        raise InvalidRecord("a compressed message has a null value", code="message-invalid")
    inner_set = memoryview(
        decompress(codec, message[value_start : value_start + value_length], magic=magic, limits=limits)
    )
    most_rows = limits.max_decompressed_bytes // _ROW_BYTES
    inner = _index(inner_set, "inner message", most_rows + 1)
    if len(inner) > most_rows:
        raise LimitExceeded(f"a compressed message has more than {most_rows} inner messages")
    if not len(inner):
        raise InvalidRecord("a compressed message has no inner messages", code="message-invalid")
    return _absolute(inner, outer[0], magic), inner_set


def _index(message_set: memoryview, what: str, most_rows: int) -> Int64Column:
    """The first messages of a set, up to ``most_rows``."""
    columns = np.empty((min(len(message_set) // _LOWEST_MESSAGE_BYTES + 1, most_rows), len(_R)), np.int64)
    result = np.zeros(len(kernel.RESULT_COLUMNS), np.int64)
    count = kernel.index_messages(message_set, 0, len(message_set), memoryview(columns), 0, memoryview(result))
    if result[0]:
        raise InvalidRecord(
            f"{what} {int(result[2])}: {kernel.ERRORS[int(result[0])]} (byte {int(result[1])})", code="message-invalid"
        )
    return columns[:count]


def _absolute(inner: Int64Column, outer: Int64Column, magic: int) -> Int64Column:
    """Inner messages with absolute offsets, and the wrapper's timestamp where it is a LogAppendTime."""
    offsets = inner[:, _R["offset"]]
    if (inner[:, _R["attributes"]] & layout.CODEC_MASK).any():
        raise InvalidRecord("an inner message is itself compressed", code="message-invalid")
    if (inner[:, _R["batch"]] != magic).any():
        raise InvalidRecord(f"an inner message's format differs from its wrapper's ({magic})", code="message-invalid")
    if magic == 0:
        return inner
    wrapper_offset, last_inner = int(outer[_R["offset"]]), int(offsets[-1])
    if wrapper_offset != 0:
        if wrapper_offset < last_inner or int(offsets.min()) < 0:
            raise InvalidRecord(
                f"the wrapper's offset {wrapper_offset} is below its last inner offset {last_inner}",
                code="message-invalid",
            )
        offsets += wrapper_offset - last_inner
    if int(outer[_R["attributes"]]) & layout.TIMESTAMP_TYPE_BIT:
        inner[:, _R["timestamp"]] = outer[_R["timestamp"]]
    return inner


def open_wrappers(chunk: BatchChunk, *, limits: Limits = DEFAULT_LIMITS) -> None:
    """Put the real base offset, last offset delta and record count of compressed v0/v1 wrappers into the table.

    A header alone tells only a wrapper's last offset. A wrapper that cannot be opened keeps what its header says.
    """
    table = chunk.table
    is_sound = table.is_wrapper & (table.crc_valid != 0)
    if not is_sound.any():
        return
    held_bytes = 0
    for row in np.flatnonzero(is_sound).tolist():
        try:
            opened = _opened(chunk, row, limits)
        except KafkaLogError as error:
            # Kept, so that a bomb is met once; without the frames that it went through, which hold the bytes.
            error.__traceback__ = error.__cause__ = error.__context__ = None
            chunk.opened[row] = error
            continue
        offsets = opened.columns[:, _R["offset"]]
        if not 0 <= offsets[0] <= offsets[-1]:
            continue  # its offsets cannot be; the record check tells of them
        table.base_offset[row] = offsets[0]
        table.last_offset_delta[row] = int(offsets[-1]) - int(offsets[0])
        table.record_count[row] = len(offsets)
        held_bytes += opened.held_bytes
        if held_bytes < _HELD_BYTES:
            chunk.opened[row] = opened


def wrong_inner_checksums(table: RecordTable, rows: Int64Column) -> list[int]:
    """The record rows among ``rows`` whose own CRC-32 is wrong; v0 and v1 inner messages carry one each."""
    from format.checksums import crc32_of

    crc_at, covered_from = layout.MESSAGE_V0.offset_of("crc"), layout.MESSAGE_V0.offset_of("magic")
    wrong = []
    for row in rows.tolist():
        start = int(table.start[row])
        message = table.buffer[start : start + int(table.size_bytes[row])]
        if crc32_of(message[covered_from:]) != int.from_bytes(message[crc_at : crc_at + 4], "big"):
            wrong.append(row)
    return wrong


def is_wrapper(table: BatchTable) -> NDArray[np.bool_]:
    """Which rows are compressed v0/v1 messages."""
    return table.is_wrapper
