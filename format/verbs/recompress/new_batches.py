"""Makes new batches: under another codec, from packed and unpacked v0/v1 messages, converted and merged.

Every function takes a chunk with bodies and some of its rows, and returns whole batches. Records keep their offsets,
timestamps and timestamp types, keys, values and headers; v2 batches also leader epoch, producer and delete horizon.
Source: clients record/internal/MemoryRecordsBuilder, storage LogValidator.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from format import layout
from format.codecs import compress, compressor, decompress
from format.errors import CorruptDataError, KafkaLogError, LimitExceeded, UnsupportedError
from format.limits import MIB, Limits
from format.location import Location
from format.log.batch_chunk import BatchChunk
from format.log.encode_batches import (
    HEADER_BYTES,
    BatchHeader,
    batch_spans,
    encode_batch,
    encode_message,
    encode_records,
    encode_wrapper,
    seal_batches,
)
from format.log.read_records import message_table, record_tables, wrapper_table
from format.log.record_table import RecordTable
from format.rewriting.written_batches import (
    Decision,
    NewBatches,
    batch_bytes,
    new_batches,
    offsets_of,
)

_OFFSET_BYTES = 8
#: New bytes made at once, not counting the rest of the last batch: a batch may decompress to a thousand times its size.
_MOST_NEW_BYTES = 3 * MIB


class Target(msgspec.Struct, frozen=True):
    """The target: a codec number, its level, and the format to convert messages to (None: unchanged)."""

    codec: int
    level: int | None = None
    magic: int | None = None


def recompressed(
    chunk: BatchChunk, rows: Sequence[int], target: Target, limits: Limits
) -> tuple[NewBatches, KafkaLogError | None]:
    """v2 batches with the same records under another codec: only length, codec and CRC of the headers change.

    Stops after _MOST_NEW_BYTES, and at a batch that cannot be decompressed, whose error is returned with the batches
    before it.
    """
    buffer, which = chunk.bodies, np.array(rows)
    starts, ends = batch_spans(chunk, which)
    spans = zip(starts.tolist(), ends.tolist(), chunk.table.codec[which].tolist(), strict=True)
    new_codec, level = target.codec, target.level
    pack = compressor(new_codec, level) if new_codec else None
    parts: list[bytes | memoryview] = []  # header and payload of each batch
    error: KafkaLogError | None = None
    new_bytes = 0
    for start, end, codec in spans:
        payload_start = start + HEADER_BYTES
        payload: bytes | memoryview = buffer[payload_start:end]
        try:
            if codec:
                payload = decompress(codec, payload, magic=2, limits=limits)
        except (CorruptDataError, UnsupportedError, LimitExceeded) as failure:
            error = failure
            break
        if pack:
            payload = pack(payload, level, 2)
        parts += buffer[start:payload_start], payload
        new_bytes += len(payload)
        if new_bytes > _MOST_NEW_BYTES:
            break
    which = which[: len(parts) // 2]
    sizes_bytes = HEADER_BYTES + np.array(list(map(len, parts[1::2])), np.int64)
    content = bytearray().join(parts)
    seal_batches(content, sizes_bytes, new_codec)
    decisions = np.full(len(which), Decision.RECOMPRESSED, np.int8)
    return NewBatches(content, sizes_bytes, *offsets_of(chunk, which), decisions), error


def rewrapped(chunk: BatchChunk, row: int, target: Target, limits: Limits) -> NewBatches:
    """A compressed v0/v1 message with the same inner set under another codec.

    Raises CorruptDataError, LimitExceeded.
    """
    table = chunk.table
    magic, attributes = int(table.magic[row]), int(table.attributes[row])
    for table_of in (message_table, wrapper_table):
        _raise_problems(table_of(chunk, [row], limits, Location("")))
    outer = message_table(chunk, [row], limits, Location(""))
    inner = decompress(attributes & layout.CODEC_MASK, outer.value(0) or b"", magic=magic, limits=limits)
    content = encode_message(
        magic,
        int.from_bytes(batch_bytes(chunk, row)[:_OFFSET_BYTES], "big", signed=True),
        outer.key(0),
        compress(target.codec, inner, level=target.level, magic=magic),
        timestamp=int(outer.timestamp[0]),
        attributes=attributes & ~layout.CODEC_MASK | target.codec,
    )
    return _one_batch(content, int(table.base_offset[row]), table.last_offset_of(row), Decision.RECOMPRESSED)


def unpacked(chunk: BatchChunk, row: int, limits: Limits) -> NewBatches:
    """The inner messages of a compressed v0/v1 message, each by itself with its absolute offset and its timestamp."""
    magic = int(chunk.table.magic[row])
    time_type = int(chunk.table.attributes[row]) & layout.TIMESTAMP_TYPE_BIT if magic == 1 else 0
    inner = wrapper_table(chunk, [row], limits, Location(""))
    _raise_problems(inner)
    offsets = inner.offset.tolist()
    messages = [
        encode_message(
            magic,
            offset,
            inner.key(number),
            inner.value(number),
            timestamp=int(inner.timestamp[number]),
            attributes=int(inner.attributes[number]) & ~layout.TIMESTAMP_TYPE_BIT | time_type,
        )
        for number, offset in enumerate(offsets)
    ]
    return new_batches(messages, offsets, offsets, Decision.REBUILT)


def packed(chunk: BatchChunk, rows: Sequence[int], target: Target) -> NewBatches:
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
        timestamp=int(table.max_timestamp[list(rows)].max()),
        attributes=int(table.attributes[rows[0]]) & layout.TIMESTAMP_TYPE_BIT if magic == 1 else 0,
        level=target.level,
    )
    return _one_batch(content, first_offset, last_offset, Decision.REBUILT)


def rebuilt(chunk: BatchChunk, rows: Sequence[int], target: Target, limits: Limits) -> NewBatches:
    """One v2 batch from the records of some batches that may be merged: v0/v1 messages, or v2 without a producer.

    Records of v0 get no timestamp (-1), as a broker gives them; those of v0 and v1 no leader epoch.
    """
    table = chunk.table
    first, last = rows[0], rows[-1]
    first_offset, last_offset = int(table.base_offset[first]), table.last_offset_of(last)
    append_time = bool(table.is_append_time[first])
    parts: list[memoryview] = []
    count = 0
    base_timestamp: int | None = None
    largest = layout.NO_TIMESTAMP
    which = np.zeros(len(table), bool)
    which[list(rows)] = True
    for records in record_tables(chunk, which=which, limits=limits):
        _raise_problems(records)
        if not len(records):
            continue
        if base_timestamp is None:
            base_timestamp = int(records.timestamp[0])
        largest = max(largest, int(records.timestamp.max()))
        parts.append(encode_records(records, first_offset, base_timestamp))
        count += len(records)
    if is_header_trusted := int(table.magic[first]) == 2:
        largest = int(table.max_timestamp[list(rows)].max())  # as the headers have it, right or not
    header = BatchHeader(
        first_offset,
        last_offset - first_offset,
        count,
        layout.NO_TIMESTAMP if base_timestamp is None else base_timestamp,
        largest,
        int(table.leader_epoch[first]) if is_header_trusted else layout.NO_LEADER_EPOCH,
        layout.TIMESTAMP_TYPE_BIT if append_time else 0,
    )
    content = encode_batch(header, b"".join(parts), codec=target.codec, level=target.level)
    return _one_batch(content, first_offset, last_offset, Decision.REBUILT)


def _raise_problems(records: RecordTable) -> None:
    if records.problems:
        raise records.problems[0].error


def _one_batch(content: bytes, first_offset: int, last_offset: int, decision: Decision) -> NewBatches:
    return new_batches([content], [first_offset], [last_offset], decision)
