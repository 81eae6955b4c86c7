"""New batches from old ones: another codec, packed and unpacked v0/v1 messages, converted and merged batches.

Every function takes a chunk with bodies and rows of it and gives back whole batches. What the records say stays:
offsets, timestamps and their type, keys, values, headers; in v2 also the leader epoch, producer and delete horizon.
Source: clients record/internal/MemoryRecordsBuilder, storage LogValidator.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray

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
from format.errors import CorruptDataError, KafkaLogError, LimitExceeded, UnsupportedError
from format.legacy_messages import message_table, wrapper_table
from format.limits import Limits
from format.location import Location
from format.operations.batch_headers import (
    CODEC_BYTE,
    COVERED_BY_CRC,
    CRC,
    HEADER_BYTES,
    LENGTH,
    Headers,
    as_fields,
    batch_spans,
    headers_at,
)
from format.records import RecordTable, record_tables

_OFFSET_BYTES = 8
#: What a v2 batch's length field says of a batch without a payload.
_LENGTH_WITHOUT_PAYLOAD = HEADER_BYTES - layout.LOG_ENTRY.size_bytes


@dataclass(frozen=True, slots=True)
class NewBatches:
    """Whole batches for the output, in order: each a head and the payload after it, with its first and last offset."""

    heads: Sequence[bytes | bytearray | memoryview]
    payloads: Sequence[bytes | memoryview]
    first_offsets: Sequence[int]
    last_offsets: Sequence[int]

    def __len__(self) -> int:
        return len(self.heads)

    @property
    def size_bytes(self) -> int:
        return sum(map(len, self.heads)) + sum(map(len, self.payloads))

    def parts(self) -> Iterator[bytes | bytearray | memoryview]:
        """The pieces that the batches are when they are joined."""
        return chain.from_iterable(zip(self.heads, self.payloads, strict=True))

    def each(self) -> Iterator[NewBatches]:
        """Every batch by itself."""
        for head, payload, first, last in zip(
            self.heads, self.payloads, self.first_offsets, self.last_offsets, strict=True
        ):
            yield NewBatches([head], [payload], [first], [last])


def _one(content: bytes | bytearray | memoryview, first_offset: int, last_offset: int) -> NewBatches:
    return NewBatches([content], [b""], [first_offset], [last_offset])


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


def copied(chunk: BatchChunk, rows: Sequence[int]) -> NewBatches:
    """The batches as they are."""
    if chunk.buffer is None:
        raise ValueError("the chunk was read without bodies")
    which = np.array(rows)
    starts, ends = (each.tolist() for each in batch_spans(chunk, which))
    heads = [chunk.buffer[start:end] for start, end in zip(starts, ends, strict=True)]
    return NewBatches(heads, [b""] * len(heads), *_offsets(chunk, which))


def _offsets(chunk: BatchChunk, which: NDArray[np.intp]) -> tuple[list[int], list[int]]:
    first = chunk.table.base_offset[which]
    return first.tolist(), (first + chunk.table.last_offset_delta[which]).tolist()


def recompressed(
    chunk: BatchChunk, rows: Sequence[int], target: Target, limits: Limits
) -> tuple[NewBatches, KafkaLogError | None]:
    """v2 batches with their very records under another codec: headers stay but for length, codec and CRC.

    Stops at a batch that cannot be decompressed, with what ``decompress`` raised; the batches before it are made.
    """
    if chunk.buffer is None:
        raise ValueError("the chunk was read without bodies")
    buffer, table, which = chunk.buffer, chunk.table, np.array(rows)
    starts, ends = batch_spans(chunk, which)
    spans = zip((starts + HEADER_BYTES).tolist(), ends.tolist(), table.codec[which].tolist(), strict=True)
    payloads: list[bytes] = []
    error: KafkaLogError | None = None
    for start, end, codec in spans:
        payload: bytes | memoryview = buffer[start:end]
        try:
            if codec:
                payload = decompress(codec, payload, magic=2, limits=limits)
        except (CorruptDataError, UnsupportedError, LimitExceeded) as failure:
            error = failure
            break
        payloads.append(compress(target.codec, payload, level=target.level))
    which = which[: len(payloads)]
    heads = _sealed_headers(headers_at(buffer, starts[: len(payloads)]), payloads, target.codec)
    return NewBatches(heads, payloads, *_offsets(chunk, which)), error


def _sealed_headers(headers: Headers, payloads: list[bytes], codec: int) -> list[bytes]:
    """The headers with the codec, and the lengths and CRCs of their new payloads."""
    headers[:, LENGTH] = as_fields([_LENGTH_WITHOUT_PAYLOAD + len(each) for each in payloads], ">i4")
    headers[:, CODEC_BYTE] = headers[:, CODEC_BYTE] & (0xFF & ~layout.CODEC_MASK) | codec
    covered = headers[:, COVERED_BY_CRC].tobytes()
    width = COVERED_BY_CRC.stop - COVERED_BY_CRC.start
    crcs = [
        crc32c_of(payload, crc32c_of(covered[number * width : (number + 1) * width]))
        for number, payload in enumerate(payloads)
    ]
    headers[:, CRC] = as_fields(crcs, ">u4")
    whole = headers.tobytes()
    return [whole[start : start + HEADER_BYTES] for start in range(0, len(whole), HEADER_BYTES)]


def rewrapped(chunk: BatchChunk, row: int, target: Target, limits: Limits) -> NewBatches:
    """A compressed v0/v1 message with the same inner set under another codec; raises what ``decompress`` raises."""
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
    return _one(content, int(table.base_offset[row]), int(table.last_offset[row]))


def unpacked(chunk: BatchChunk, row: int, limits: Limits) -> NewBatches:
    """The inner messages of a compressed v0/v1 message, each by itself with its absolute offset and its timestamp."""
    magic = int(chunk.table.magic[row])
    time_type = int(chunk.table.attributes[row]) & layout.TIMESTAMP_TYPE_BIT if magic == 1 else 0
    inner = wrapper_table(chunk, [row], limits, Location(""))
    _raise_problems(inner)
    offsets = inner.offset.tolist()
    heads = [
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
    return NewBatches(heads, [b""] * len(heads), offsets, offsets)


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
    return _one(content, first_offset, last_offset)


def rebuilt(chunk: BatchChunk, rows: Sequence[int], target: Target, limits: Limits) -> NewBatches:
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
    which[list(rows)] = True
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
        largest = int(table.max_timestamp[list(rows)].max())  # what the headers said, be it right or not
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
    return _one(content, first_offset, last_offset)


def _raise_problems(records: RecordTable) -> None:
    if records.problems:
        raise records.problems[0].error
