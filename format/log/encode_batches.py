"""Encoding of record batches and messages, as brokers and producers write them.

It is the inverse of ``format.log.read_records``. Source: clients record/internal/DefaultRecord, DefaultRecordBatch,
LegacyRecord.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
import numpy as np
from numpy.typing import NDArray

from format import layout
from format.codecs import compress
from format.codecs.checksums import crc32_of, crc32c_function, crc32c_of
from format.errors import UnsupportedError
from format.kernel.encode import NEW_RECORD_BYTES, put_v2_records
from format.log.batch_chunk import BatchChunk
from format.log.batch_header import crc_fields
from format.log.record_table import RecordTable


class BatchHeader(msgspec.Struct, frozen=True):
    """The fields of a v2 batch header that its records do not determine."""

    base_offset: int
    last_offset_delta: int
    record_count: int
    base_timestamp: int = layout.NO_TIMESTAMP
    max_timestamp: int = layout.NO_TIMESTAMP
    leader_epoch: int = 0
    attributes: int = 0  # without the codec bits
    producer_id: int = layout.NO_PRODUCER_ID
    producer_epoch: int = layout.NO_PRODUCER_EPOCH
    base_sequence: int = layout.NO_SEQUENCE


def encode_records(records: RecordTable, base_offset: int, base_timestamp: int) -> memoryview:
    """Encode the records of a table, of any format, as v2 records of a batch with this base offset and timestamp (ms).

    Raises UnsupportedError for offsets or timestamps whose deltas do not fit in 32 or 64 bits.
    """
    if not len(records):
        return memoryview(b"")
    for name, column, base, bits in (
        ("offsets", records.offset, base_offset, 32),
        ("timestamps", records.timestamp, base_timestamp, 64),
    ):
        if not all(-(1 << bits - 1) <= int(each) - base < 1 << bits - 1 for each in (column.min(), column.max())):
            raise UnsupportedError(f"the {name} are too far apart for one batch")
    room_bytes = len(records) * NEW_RECORD_BYTES
    room_bytes += int(np.maximum(records.key_length, 0).sum() + np.maximum(records.value_length, 0).sum())
    room_bytes += int((records.start + records.size_bytes - records.headers_start)[records.header_count > 0].sum())
    out = memoryview(np.empty(room_bytes, np.uint8))
    columns = memoryview(np.ascontiguousarray(records.columns))
    return out[: put_v2_records(out, records.buffer, columns, base_offset, base_timestamp)]


def encode_batch(
    header: BatchHeader, records: bytes | memoryview, *, codec: int = 0, level: int | None = None
) -> bytes:
    """Encode a v2 batch of encoded records: compress them, and compute length and CRC."""
    payload = compress(codec, records, level=level) if codec else bytes(records)
    return seal_batch(header, payload, codec=codec)


def seal_batch(header: BatchHeader, payload: bytes, *, codec: int) -> bytes:
    """Encode a v2 batch of records that are compressed already: compute length and CRC."""
    fields = layout.RECORD_BATCH.struct.pack(
        header.base_offset,
        layout.RECORD_BATCH.size_bytes - layout.LOG_ENTRY.size_bytes + len(payload),
        header.leader_epoch,
        2,
        0,
        (header.attributes & ~layout.CODEC_MASK) | codec,
        header.last_offset_delta,
        header.base_timestamp,
        header.max_timestamp,
        header.producer_id,
        header.producer_epoch,
        header.base_sequence,
        header.record_count,
    )
    return reseal(fields + payload)


def reseal(batch: bytes | bytearray) -> bytes:
    """The same batch or message with its CRC computed again; its length field must be right."""
    magic = batch[layout.RECORD_BATCH.offset_of("magic")]
    at, start, is_v2 = crc_fields(magic)
    crc = (crc32c_of if is_v2 else crc32_of)(memoryview(batch)[start:])
    return bytes(batch[:at]) + crc.to_bytes(4, "big") + bytes(batch[at + 4 :])


def encode_message(
    magic: int,
    offset: int,
    key: bytes | None,
    value: bytes | None,
    *,
    timestamp: int = layout.NO_TIMESTAMP,
    attributes: int = 0,
) -> bytes:
    """Encode one v0 or v1 message, with its offset and size; ``timestamp`` is in ms."""
    body = magic.to_bytes(1, "big") + attributes.to_bytes(1, "big")
    if magic == 1:
        body += timestamp.to_bytes(8, "big", signed=True)
    for field in (key, value):
        body += (-1 if field is None else len(field)).to_bytes(4, "big", signed=True) + (field or b"")
    crc = crc32_of(memoryview(body)).to_bytes(4, "big")
    return layout.LOG_ENTRY.struct.pack(offset, len(crc) + len(body)) + crc + body


def encode_wrapper(
    magic: int,
    messages: Iterable[bytes],
    *,
    codec: int,
    last_offset: int,
    timestamp: int = layout.NO_TIMESTAMP,
    attributes: int = 0,
    level: int | None = None,
) -> bytes:
    """Encode a compressed v0 or v1 message of encoded inner messages (absolute offsets in v0, relative in v1)."""
    value = compress(codec, b"".join(messages), level=level, magic=magic)
    return encode_message(magic, last_offset, None, value, timestamp=timestamp, attributes=attributes | codec)


HEADER_BYTES = layout.RECORD_BATCH.size_bytes
_LENGTH = np.arange(layout.LOG_ENTRY.offset_of("length"), layout.LOG_ENTRY.size_bytes)
_CRC = np.arange(layout.RECORD_BATCH.offset_of("crc"), layout.RECORD_BATCH.offset_of("attributes"))
#: The low byte of the attributes, which has the codec bits.
_CODEC_BYTE = layout.RECORD_BATCH.offset_of("attributes") + 1
#: The first byte that the CRC covers.
_CRC_START = layout.RECORD_BATCH.offset_of("attributes")


def batch_spans(chunk: BatchChunk, rows: NDArray[np.intp]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The starts and ends (int64) of the batches of these rows in the chunk's buffer."""
    starts = chunk.table.position[rows] - chunk.buffer_position
    return starts, starts + chunk.table.size_bytes[rows]


def seal_batches(content: bytearray, size_bytes: NDArray[np.int64], codec: int) -> None:
    """Set the codec of consecutive v2 batches in ``content``, and compute their lengths and CRCs.

    ``size_bytes`` (int64) has the size of each batch.
    """
    octets = np.frombuffer(content, np.uint8)
    ends = np.cumsum(size_bytes)
    starts = ends - size_bytes
    octets[starts[:, None] + _LENGTH] = _fields(size_bytes - layout.LOG_ENTRY.size_bytes, ">i4")
    octets[starts + _CODEC_BYTE] = octets[starts + _CODEC_BYTE] & (0xFF & ~layout.CODEC_MASK) | codec
    crc32c, view = crc32c_function(), memoryview(content)
    spans = zip((starts + _CRC_START).tolist(), ends.tolist(), strict=True)
    octets[starts[:, None] + _CRC] = _fields(np.array([crc32c(view[start:end]) for start, end in spans]), ">u4")


def _fields(values: NDArray[np.int64], dtype: str) -> NDArray[np.uint8]:
    """Numbers as bytes (uint8), a row for each; ``dtype`` is the numpy dtype of the field, such as ``>u4``."""
    return values.astype(dtype).view(np.uint8).reshape(len(values), np.dtype(dtype).itemsize)
