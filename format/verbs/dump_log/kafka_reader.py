"""The records of a batch as Kafka's own classes read them, which are sometimes more lenient or stricter than ours.

Only used for batches that ``format.log.read_records`` cannot read, so it may be slow. Sums wrap as in Java.
Source: clients record/internal DefaultRecord, DefaultRecordBatch, LegacyRecord, AbstractLegacyRecordBatch; utils
ByteUtils.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from format import layout
from format.codecs import decompress
from format.codecs.checksums import crc32_of
from format.errors import KafkaLogError, LimitExceeded
from format.limits import Limits
from format.verbs.dump_log.batch_text import BatchFacts
from format.verbs.dump_log.java_text import increment_sequence, int64
from format.verbs.dump_log.stops import KafkaStops

_INVALID = "org.apache.kafka.common.errors.InvalidRecordException"
_CORRUPT = "org.apache.kafka.common.errors.CorruptRecordException"
_ZSTD = layout.CODEC_NAMES.index("zstd")
_CRC_AT = layout.MESSAGE_V0.offset_of("crc")
_MAGIC_AT = layout.MESSAGE_V0.offset_of("magic")
_ATTRIBUTES_AT = layout.MESSAGE_V0.offset_of("attributes")


class KafkaRecord(NamedTuple):
    """The printed fields of a record. v0 and v1 have ``crc`` and ``crc_valid``; their ``header_keys`` is None.

    ``key_size`` and ``value_size`` are the printed sizes, ``key`` and ``value`` the bytes that exist. ``fault`` is the
    exception that Kafka dies with when it prints the key and value, after the rest of the line.
    """

    offset: int
    timestamp: int
    key_size: int
    value_size: int
    key: bytes | None
    value: bytes | None
    sequence: int
    header_keys: tuple[bytes, ...] | None
    crc: int = 0
    crc_valid: bool = True
    fault: KafkaStops | None = None


class _End(Exception):
    """The bytes end in the middle of a field (BufferUnderflowException)."""


class _Bytes:
    """Bytes with a read position, like a ByteBuffer."""

    def __init__(self, raw: memoryview) -> None:
        self.raw = raw
        self.at = 0

    @property
    def remaining(self) -> int:
        return len(self.raw) - self.at

    def take(self, length: int) -> bytes | None:
        """The next ``length`` bytes, None for a negative length (Utils.readBytes)."""
        if length < 0:
            return None
        if length > self.remaining:
            raise _End
        self.at += length
        return bytes(self.raw[self.at - length : self.at])

    def byte(self) -> int:
        if self.at >= len(self.raw):
            raise _End
        self.at += 1
        return self.raw[self.at - 1]

    def varint(self) -> int:
        return self._zigzag(5, 32)

    def varlong(self) -> int:
        return self._zigzag(10, 64)

    def _zigzag(self, most_bytes: int, bits: int) -> int:
        value = 0
        for number in range(most_bytes):
            byte = self.byte()
            value |= (byte & 0x7F) << 7 * number
            if byte < 0x80:
                value &= (1 << bits) - 1  # excess bits of the last byte are dropped
                return (value >> 1) ^ -(value & 1)
        raise KafkaStops(f"{_INVALID}: Found invalid record structure")


def read_records(facts: BatchFacts, raw: memoryview, limits: Limits) -> Iterator[KafkaRecord]:
    """The records of the batch in ``raw``, its header included; raises KafkaStops where Kafka does.

    For a compressed v2 batch Kafka reads all records before it returns the first; this yields each one as it is read.
    """
    if facts.magic >= 2:
        yield from _read_v2(facts, raw, limits)
    elif facts.codec:
        yield from _read_wrapper(facts, raw, limits)
    else:
        yield _legacy_record(raw[_CRC_AT:], facts.base_offset, None)


def _read_v2(facts: BatchFacts, raw: memoryview, limits: Limits) -> Iterator[KafkaRecord]:
    if len(raw) < layout.RECORD_BATCH.size_bytes:
        raise KafkaStops("java.lang.IndexOutOfBoundsException")
    if facts.record_count == 0:
        return
    content = raw[layout.RECORD_BATCH.size_bytes :]
    if facts.codec:
        content = _decompressed(facts.codec, content, 2, limits)
    if facts.record_count < 0:
        raise KafkaStops(f"{_INVALID}: Found invalid record count {facts.record_count} in magic v{facts.magic} batch")
    source = _Bytes(content)
    for number in range(facts.record_count):
        record = _read_v2_record(facts, source)
        if number == facts.record_count - 1 and source.remaining:
            raise KafkaStops(
                f"{_INVALID}: Incorrect declared batch size, records still remaining in file",
                code="record-trailing-bytes",
            )
        yield record


def _read_v2_record(facts: BatchFacts, source: _Bytes) -> KafkaRecord:
    try:
        size_bytes = source.varint()
        if facts.codec and size_bytes < 0:
            raise KafkaStops("java.lang.IllegalArgumentException: capacity < 0")
        if source.remaining < size_bytes:
            raise KafkaStops(f"{_INVALID}: Invalid record size: expected {size_bytes} bytes in record payload")
        body = _Bytes(source.raw[source.at : source.at + size_bytes]) if facts.codec else source
        start = body.at
        record = _read_v2_body(facts, body)
        if body.at - start != size_bytes:
            raise KafkaStops(
                f"{_INVALID}: Invalid record size: expected to read {size_bytes} bytes in record payload, "
                f"but instead read {body.at - start}"
            )
        if facts.codec:
            source.at += size_bytes
        return record
    except _End:
        raise KafkaStops(f"{_INVALID}: Found invalid record structure") from None


def _read_v2_body(facts: BatchFacts, body: _Bytes) -> KafkaRecord:
    body.byte()
    timestamp = int64(facts.base_timestamp + body.varlong())
    if facts.attributes & layout.TIMESTAMP_TYPE_BIT:
        timestamp = facts.max_timestamp
    offset_delta = body.varint()
    base_sequence = facts.base_sequence
    sequence = increment_sequence(base_sequence, offset_delta) if base_sequence >= 0 else -1
    key = body.take(body.varint())
    value = body.take(body.varint())
    header_count = body.varint()
    if not 0 <= header_count <= body.remaining:
        raise KafkaStops(f"{_INVALID}: Found invalid number of record headers {header_count}")
    header_keys = []
    for _ in range(header_count):
        header_key = body.take(body.varint())
        if header_key is None:
            raise KafkaStops(f"{_INVALID}: Invalid negative header key size")
        header_keys.append(header_key)
        body.take(body.varint())
    return KafkaRecord(
        int64(facts.base_offset + offset_delta),
        timestamp,
        -1 if key is None else len(key),
        -1 if value is None else len(value),
        key,
        value,
        sequence,
        tuple(header_keys),
    )


def _read_wrapper(facts: BatchFacts, raw: memoryview, limits: Limits) -> Iterator[KafkaRecord]:
    if facts.magic not in (0, 1):
        raise KafkaStops(f"{_INVALID}: Invalid wrapper magic found in legacy deep record iterator {facts.magic}")
    if facts.codec == _ZSTD:
        raise KafkaStops(f"{_INVALID}: Invalid wrapper compressionType found in legacy deep record iterator")
    outer = _legacy_record(raw[_CRC_AT:], facts.base_offset, None)
    if outer.fault is not None:
        raise outer.fault
    if outer.value is None:
        raise KafkaStops(f"{_INVALID}: Found invalid compressed record set with null value (magic = {facts.magic})")
    content = _decompressed(facts.codec, memoryview(outer.value), facts.magic, limits)
    append_timestamp = facts.max_timestamp if facts.magic and facts.attributes & layout.TIMESTAMP_TYPE_BIT else None
    inner: list[tuple[int, memoryview]] = []
    source = _Bytes(content)
    try:
        while source.remaining >= layout.LOG_ENTRY.size_bytes:
            offset, size_bytes = layout.LOG_ENTRY.struct.unpack(source.take(layout.LOG_ENTRY.size_bytes) or b"")
            if size_bytes < layout.MIN_MESSAGE_LENGTH:
                raise KafkaStops(f"{_CORRUPT}: Record size {size_bytes} is less than the minimum record overhead (14)")
            if size_bytes > source.remaining:
                break  # a partial message at the end is left out
            inner.append((offset, source.raw[source.at : source.at + size_bytes]))
            source.at += size_bytes
    except _End:
        pass
    if not inner:
        raise KafkaStops(f"{_INVALID}: Found invalid compressed record set with no inner records")
    base = 0
    if facts.magic == 1 and facts.base_offset != 0:
        if facts.base_offset < inner[-1][0]:
            raise KafkaStops(
                f"{_INVALID}: Found invalid wrapper offset in compressed v1 message set, wrapper offset "
                f"'{facts.base_offset}' is less than the last inner message offset '{inner[-1][0]}' and it is not zero."
            )
        base = int64(facts.base_offset - inner[-1][0])
    for offset, message in inner:
        if message[_ATTRIBUTES_AT - _CRC_AT] & layout.CODEC_MASK:
            raise KafkaStops(f"{_INVALID}: Inner messages must not be compressed")
        yield _legacy_record(message, int64(base + offset), append_timestamp)


def _legacy_record(message: memoryview, offset: int, append_timestamp: int | None) -> KafkaRecord:
    """The record of a message that starts at its CRC; a key or value that does not fit is left out."""
    magic = message[_MAGIC_AT - _CRC_AT]
    field = layout.MESSAGE_V0.size_bytes - _CRC_AT
    timestamp = layout.NO_TIMESTAMP
    if magic:
        timestamp = int.from_bytes(message[field : field + 8], "big", signed=True)
        field = layout.MESSAGE_V1.size_bytes - _CRC_AT
        if append_timestamp is not None and magic == 1:
            timestamp = append_timestamp
    key_size = _int32_at(message, field)
    value_at = field + 4 + max(0, key_size)
    value_size = _int32_at(message, value_at)
    key = value = None
    fault = None
    try:
        key = _delimited(message, field + 4, key_size)
        value = _delimited(message, value_at + 4, value_size)
    except KafkaStops as stop:
        fault = stop
    stored_crc = int.from_bytes(message[: _MAGIC_AT - _CRC_AT], "big")
    is_valid = crc32_of(message[_MAGIC_AT - _CRC_AT :]) == stored_crc
    return KafkaRecord(offset, timestamp, key_size, value_size, key, value, -1, None, stored_crc, is_valid, fault)


def _int32_at(message: memoryview, at: int) -> int:
    if at + 4 > len(message):
        raise KafkaStops("java.lang.IndexOutOfBoundsException", code="message-invalid")
    return int.from_bytes(message[at : at + 4], "big", signed=True)


def _delimited(message: memoryview, at: int, length: int) -> bytes | None:
    if length < 0:
        return None
    if at + length > len(message):
        raise KafkaStops("java.lang.IllegalArgumentException: newLimit > capacity", code="message-invalid")
    return bytes(message[at : at + length])


def _decompressed(codec: int, content: memoryview, magic: int, limits: Limits) -> memoryview:
    try:
        return memoryview(decompress(codec, content, magic=magic, limits=limits))
    except LimitExceeded:
        raise
    except KafkaLogError as error:
        raise KafkaStops(f"org.apache.kafka.common.KafkaException: {error.message}", code=error.code) from error
