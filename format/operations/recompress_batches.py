"""New batches from old ones: another codec, packed and unpacked v0/v1 messages, converted and merged batches.

Every function takes a chunk with bodies and rows of it and gives back whole batches. What the records say stays:
offsets, timestamps and their type, keys, values, headers; in v2 also the leader epoch, producer and delete horizon.
Source: clients record/internal/MemoryRecordsBuilder, storage LogValidator.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from format import layout
from format.batches import BatchChunk
from format.checksums import crc32c_of
from format.codecs import compress, decompress
from format.encode_batches import (
    BatchHeader,
    NewRecord,
    encode_batch,
    encode_message,
    encode_record,
    encode_wrapper,
)
from format.legacy_messages import message_table, wrapper_table
from format.limits import Limits
from format.location import Location
from format.records import RecordTable, record_tables

_HEADER_BYTES = layout.RECORD_BATCH.size_bytes
_OFFSET_BYTES = 8
_LENGTH, _LENGTH_AT = struct.Struct(">i"), layout.RECORD_BATCH.offset_of("length")
_CRC, _CRC_AT = struct.Struct(">I"), layout.RECORD_BATCH.offset_of("crc")
_ATTRIBUTES_AT = layout.RECORD_BATCH.offset_of("attributes")
_CODEC_AT = _ATTRIBUTES_AT + 1  # the codec bits are in the low byte of the attributes


class NewBatch(NamedTuple):
    """A whole batch for the output, and its first and last offset."""

    content: bytes | bytearray | memoryview
    first_offset: int
    last_offset: int


@dataclass(frozen=True, slots=True)
class Target:
    """What batches are made into: a codec number, its level, and the format of converted messages (None: as it is)."""

    codec: int
    level: int | None = None
    magic: int | None = None


def batch_bytes(chunk: BatchChunk, row: int) -> memoryview:
    """The bytes of one batch of a chunk."""
    if chunk.buffer is None:
        raise ValueError("the chunk was read without bodies")
    start = int(chunk.table.position[row]) - chunk.buffer_position
    return chunk.buffer[start : start + int(chunk.table.size_bytes[row])]


def copied(chunk: BatchChunk, row: int) -> NewBatch:
    """The batch as it is."""
    return NewBatch(batch_bytes(chunk, row), int(chunk.table.base_offset[row]), int(chunk.table.last_offset[row]))


def recompressed(chunk: BatchChunk, row: int, target: Target, limits: Limits) -> NewBatch:
    """A v2 batch, or a v0/v1 wrapper, with its very records under another codec; raises what ``decompress`` raises."""
    table = chunk.table
    content = batch_bytes(chunk, row)
    if int(table.magic[row]) < 2:
        return _rewrapped(chunk, row, target, limits)
    payload = content[_HEADER_BYTES:]
    codec = int(table.codec[row])
    plain = decompress(codec, payload, magic=2, limits=limits) if codec else payload
    packed = compress(target.codec, plain, level=target.level)
    return _sealed(chunk, row, packed, target.codec)


def _sealed(chunk: BatchChunk, row: int, payload: bytes, codec: int) -> NewBatch:
    """The v2 batch with another payload: its header stays but for length, codec and CRC."""
    batch = bytearray(batch_bytes(chunk, row)[:_HEADER_BYTES])
    batch += payload
    _LENGTH.pack_into(batch, _LENGTH_AT, len(batch) - layout.LOG_ENTRY.size_bytes)
    batch[_CODEC_AT] = batch[_CODEC_AT] & ~layout.CODEC_MASK | codec
    _CRC.pack_into(batch, _CRC_AT, crc32c_of(memoryview(batch)[_ATTRIBUTES_AT:]))
    return NewBatch(batch, int(chunk.table.base_offset[row]), int(chunk.table.last_offset[row]))


def _rewrapped(chunk: BatchChunk, row: int, target: Target, limits: Limits) -> NewBatch:
    """A compressed v0/v1 message with the same inner set under another codec."""
    table = chunk.table
    magic, attributes = int(table.magic[row]), int(table.attributes[row])
    outer = message_table(chunk, [row], limits, Location(""))
    _raise_problems(outer)
    inner = decompress(attributes & layout.CODEC_MASK, outer.value(0) or b"", magic=magic, limits=limits)
    content = encode_message(
        magic,
        int.from_bytes(batch_bytes(chunk, row)[:_OFFSET_BYTES], "big", signed=True),
        outer.key(0),
        compress(target.codec, inner, level=target.level, magic=magic),
        timestamp=int(outer.timestamp[0]),
        attributes=attributes & ~layout.CODEC_MASK | target.codec,
    )
    return NewBatch(content, int(table.base_offset[row]), int(table.last_offset[row]))


def unpacked(chunk: BatchChunk, row: int, limits: Limits) -> Iterator[NewBatch]:
    """The inner messages of a compressed v0/v1 message, each by itself with its absolute offset and its timestamp."""
    magic = int(chunk.table.magic[row])
    time_type = int(chunk.table.attributes[row]) & layout.TIMESTAMP_TYPE_BIT if magic == 1 else 0
    inner = wrapper_table(chunk, [row], limits, Location(""))
    _raise_problems(inner)
    for number, offset in enumerate(inner.offset.tolist()):
        content = encode_message(
            magic,
            offset,
            inner.key(number),
            inner.value(number),
            timestamp=int(inner.timestamp[number]),
            attributes=int(inner.attributes[number]) & ~layout.TIMESTAMP_TYPE_BIT | time_type,
        )
        yield NewBatch(content, offset, offset)


def packed(chunk: BatchChunk, rows: list[int], target: Target) -> NewBatch:
    """One compressed message around plain v0 or v1 messages of one format and timestamp type, in order."""
    table = chunk.table
    magic = int(table.magic[rows[0]])
    first_offset, last_offset = int(table.base_offset[rows[0]]), int(table.base_offset[rows[-1]])
    inner = []
    for row in rows:
        message = batch_bytes(chunk, row)
        if magic == 1:  # offsets inside are relative (KIP-31); they lie outside the CRC
            relative = int(table.base_offset[row]) - first_offset
            inner.append(relative.to_bytes(_OFFSET_BYTES, "big") + bytes(message[_OFFSET_BYTES:]))
        else:
            inner.append(bytes(message))
    content = encode_wrapper(
        magic,
        inner,
        codec=target.codec,
        last_offset=last_offset,
        timestamp=int(table.max_timestamp[rows].max()),
        attributes=int(table.attributes[rows[0]]) & layout.TIMESTAMP_TYPE_BIT if magic == 1 else 0,
        level=target.level,
    )
    return NewBatch(content, first_offset, last_offset)


def rebuilt(chunk: BatchChunk, rows: list[int], target: Target, limits: Limits) -> NewBatch:
    """One v2 batch from the records of some batches that may be merged: v0/v1 messages, or v2 without a producer.

    Records of v0 get no timestamp (-1), as a broker gives them; those of v0 and v1 no leader epoch.
    """
    table = chunk.table
    first, last = rows[0], rows[-1]
    first_offset, last_offset = int(table.base_offset[first]), int(table.last_offset[last])
    append_time = bool(table.is_append_time[first])
    parts: list[bytes] = []
    base_timestamp: int | None = None
    largest = layout.NO_TIMESTAMP
    which = table.magic < -1
    which[rows] = True
    for records in record_tables(chunk, which=which, limits=limits):
        _raise_problems(records)
        timestamps = records.timestamp.tolist()
        is_v2 = int(table.magic[first]) == 2
        for number, (offset, timestamp) in enumerate(zip(records.offset.tolist(), timestamps, strict=True)):
            if base_timestamp is None:
                base_timestamp = timestamp
            largest = max(largest, timestamp)
            record = NewRecord(
                offset - first_offset,
                timestamp - base_timestamp,
                records.key(number),
                records.value(number),
                tuple(records.headers(number) or ()),
                int(records.attributes[number]) if is_v2 else 0,
            )
            parts.append(encode_record(record))
    if is_header_trusted := int(table.magic[first]) == 2:
        largest = int(table.max_timestamp[rows].max())  # what the headers said, be it right or not
    header = BatchHeader(
        first_offset,
        last_offset - first_offset,
        len(parts),
        layout.NO_TIMESTAMP if base_timestamp is None else base_timestamp,
        largest,
        int(table.leader_epoch[first]) if is_header_trusted else layout.NO_LEADER_EPOCH,
        layout.TIMESTAMP_TYPE_BIT if append_time else 0,
    )
    content = encode_batch(header, b"".join(parts), codec=target.codec, level=target.level)
    return NewBatch(content, first_offset, last_offset)


def _raise_problems(records: RecordTable) -> None:
    if records.problems:
        raise records.problems[0].error
