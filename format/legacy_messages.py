"""v0 and v1 messages, and the message sets nested in compressed ones, with right offsets and timestamps.

Source: clients record/internal/AbstractLegacyRecordBatch and LegacyRecord (KIP-31, KIP-32). A compressed wrapper's
value is a message set: v0 inner offsets are absolute; v1 inner offsets are relative, and the wrapper's offset is
that of its last inner message. A wrapper offset of 0 comes from old librdkafka producers: inner offsets then count
from 0.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from format import kernel, layout
from format.batches import BatchChunk, BatchTable
from format.codecs import decompress
from format.errors import InvalidRecord, KafkaLogError, UnknownCodec
from format.limits import DEFAULT_LIMITS, Limits
from format.location import Location
from format.records import RecordProblem, RecordTable, batch_location, located

Int64Column = NDArray[np.int64]

_R = {name: number for number, name in enumerate(kernel.RECORD_COLUMNS)}
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


def wrapper_table(chunk: BatchChunk, group: list[int], limits: Limits, where: Location) -> RecordTable:
    """The inner messages of some compressed v0/v1 messages of a chunk as one record table."""
    if chunk.buffer is None:
        raise ValueError("the chunk was read without bodies")
    batches = chunk.table
    pieces: list[Int64Column] = []
    buffers: list[memoryview] = []
    problems: list[RecordProblem] = []
    at = 0
    for row in group:
        start = int(batches.position[row]) - chunk.buffer_position
        place = batch_location(where, batches, row)
        try:
            columns, buffer = _open(chunk.buffer[start : start + int(batches.size_bytes[row])], limits, place)
        except KafkaLogError as error:
            problems.append(RecordProblem(row, located(error, place), 0))
            continue
        columns[:, _R["batch"]] = row
        for name in ("start", "key_start", "value_start", "headers_start"):
            columns[:, _R[name]] += at
        pieces.append(columns)
        buffers.append(buffer)
        at += len(buffer)
    if not pieces:
        return RecordTable(batches, memoryview(b""), np.empty((0, len(_R)), np.int64), problems)
    joined = buffers[0] if len(buffers) == 1 else memoryview(b"".join(buffers))
    return RecordTable(batches, joined, np.concatenate(pieces), problems)


def _open(message: memoryview, limits: Limits, place: Location) -> tuple[Int64Column, memoryview]:
    """The inner messages of one compressed message, and the buffer that they lie in."""
    outer = _index(message, place, "message")
    codec = int(outer[0, _R["attributes"]]) & layout.CODEC_MASK
    magic = int(outer[0, _R["batch"]])
    names = len(layout.CODEC_NAMES)
    if codec >= names or layout.CODEC_NAMES[codec] == "zstd":
        raise UnknownCodec(f"compression type {codec} does not exist in message format {magic}", place)
    value_start, value_length = int(outer[0, _R["value_start"]]), int(outer[0, _R["value_length"]])
    if value_length < 0:
        raise InvalidRecord("a compressed message has a null value", place, code="message-invalid")
    inner_set = memoryview(
        decompress(codec, message[value_start : value_start + value_length], magic=magic, limits=limits)
    )
    inner = _index(inner_set, place, "inner message")
    if not len(inner):
        raise InvalidRecord("a compressed message has no inner messages", place, code="message-invalid")
    return _absolute(inner, outer[0], magic, place), inner_set


def _index(message_set: memoryview, place: Location, what: str) -> Int64Column:
    capacity = len(message_set) // _LOWEST_MESSAGE_BYTES + 1
    columns = np.empty((capacity, len(_R)), np.int64)
    result = np.zeros(len(kernel.RESULT_COLUMNS), np.int64)
    count = kernel.index_messages(message_set, 0, len(message_set), memoryview(columns), 0, memoryview(result))
    if result[0]:
        raise InvalidRecord(
            f"{what} {int(result[2])}: {kernel.ERRORS[int(result[0])]} (byte {int(result[1])})",
            place,
            code="message-invalid",
        )
    return columns[:count]


def _absolute(inner: Int64Column, outer: Int64Column, magic: int, place: Location) -> Int64Column:
    """Inner messages with absolute offsets, and the wrapper's timestamp where it is a LogAppendTime."""
    offsets = inner[:, _R["offset"]]
    if (inner[:, _R["attributes"]] & layout.CODEC_MASK).any():
        raise InvalidRecord("an inner message is itself compressed", place, code="message-invalid")
    if (inner[:, _R["batch"]] != magic).any():
        raise InvalidRecord(
            f"an inner message's format differs from its wrapper's ({magic})", place, code="message-invalid"
        )
    if magic == 0:
        return inner
    wrapper_offset, last_inner = int(outer[_R["offset"]]), int(offsets[-1])
    if wrapper_offset != 0:
        if wrapper_offset < last_inner or int(offsets.min()) < 0:
            raise InvalidRecord(
                f"the wrapper's offset {wrapper_offset} is below its last inner offset {last_inner}",
                place,
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
    wrappers = np.flatnonzero(is_wrapper(table) & (table.crc_valid != 0)).tolist()
    for row in wrappers:
        opened = wrapper_table(chunk, [row], limits, Location(""))
        if len(opened):
            first, last = int(opened.offset[0]), int(opened.offset[-1])
            table.base_offset[row] = first
            table.last_offset_delta[row] = last - first
            table.record_count[row] = len(opened)


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
    return (table.magic < 2) & (table.codec > 0)
