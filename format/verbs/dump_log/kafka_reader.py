"""Batches and records as Kafka's own classes read them, which are sometimes more lenient or stricter than ours.

Records are read here only where ``format.log.read_records`` cannot read their batch, so it may be slow. Sums wrap as in
Java. Source: clients record/internal FileLogInputStream, DefaultRecord, DefaultRecordBatch, LegacyRecord,
AbstractLegacyRecordBatch; tools DumpLogSegments.printBatchLevel.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from format import layout
from format.codecs import decompress
from format.codecs.checksums import crc32_of
from format.errors import KafkaLogError, LimitExceeded
from format.io.source import Source
from format.kernel.headers import hop
from format.kernel.tables import BATCH_COLUMNS
from format.limits import Limits
from format.log.batch_chunk import BatchChunk
from format.log.batch_header import checked_crcs, has_right_crc
from format.log.batch_table import HeaderTable
from format.log.kafka_batch import BatchFacts, decode_facts, header_bytes, int64, magic_of
from format.log.walker import BODY_CHUNK_BYTES
from format.verbs.dump_log.java_text import increment_sequence
from format.verbs.dump_log.options import KafkaStops

_MAGIC_AT = layout.RECORD_BATCH.offset_of("magic")
_OVERHEAD = layout.LOG_ENTRY.size_bytes
#: The fewest bytes after the last whole batch that Kafka still looks at: a header up to its magic.
_LENGTH = slice(layout.LOG_ENTRY.offset_of("length"), layout.LOG_ENTRY.size_bytes)
_TABLE_ROWS = 16 * 1024
_ZSTD = layout.CODEC_NAMES.index("zstd")
_CRC_AT = layout.MESSAGE_V0.offset_of("crc")
_ATTRIBUTES_AT = layout.MESSAGE_V0.offset_of("attributes")


def batch_line(facts: BatchFacts) -> tuple[bytes, KafkaStops | None]:
    """The line of a batch, with its LF; or its start, and why Kafka's tool ends while it prints the rest."""
    if facts.magic >= 2:
        sequence = facts.base_sequence
        last_sequence = -1 if sequence == -1 else increment_sequence(sequence, facts.last_offset_delta)
        has_horizon = facts.attributes & layout.DELETE_HORIZON_BIT
        horizon = b"OptionalLong[%d]" % facts.base_timestamp if has_horizon else b"OptionalLong.empty"
        start = (
            b"baseOffset: %d lastOffset: %d count: %d baseSequence: %d lastSequence: %d producerId: %d "
            b"producerEpoch: %d partitionLeaderEpoch: %d isTransactional: %b isControl: %b deleteHorizonMs: %b"
        ) % (
            facts.base_offset,
            facts.last_offset,
            facts.record_count,
            sequence,
            last_sequence,
            facts.producer_id,
            facts.producer_epoch,
            facts.leader_epoch,
            java_boolean(facts.attributes & layout.TRANSACTIONAL_BIT),
            java_boolean(facts.attributes & layout.CONTROL_BIT),
            horizon,
        )
    else:
        start = b"offset: %d" % facts.base_offset
        if facts.magic < 0:
            return start, KafkaStops(f"the magic {facts.magic} is not known")
    if facts.codec >= len(layout.CODEC_NAMES):
        return start, KafkaStops(f"the codec {facts.codec} is not known")
    line = b"%b position: %d %b: %d size: %d magic: %d compresscodec: %b crc: %d isvalid: %b\n" % (
        start,
        facts.position,
        facts.timestamp_type,
        facts.max_timestamp,
        facts.size_bytes,
        facts.magic,
        layout.CODEC_NAMES[facts.codec].encode(),
        facts.crc,
        java_boolean(facts.crc_valid),
    )
    return line, None


def java_boolean(value: object) -> bytes:
    """A truth value as Java prints it."""
    return b"true" if value else b"false"


def kafka_walk(source: Source, start: int, end: int, *, check_crc: bool = True) -> Iterator[BatchChunk | BatchFacts]:
    """The batches that Kafka finds in ``source[start:end]``. Raises KafkaStops where it stops.

    Alone come those that are no batch for batch_table: the magic is unknown, or they are too short for their magic.
    """
    position = start
    scratch = np.empty((_TABLE_ROWS, len(BATCH_COLUMNS)), np.int64)
    status = np.zeros(3, np.int64)
    wanted = BODY_CHUNK_BYTES
    while position < end - layout.UP_TO_MAGIC_BYTES:
        buffer = memoryview(source.read_at(position, min(wanted, end - position)))
        wanted = BODY_CHUNK_BYTES
        status[2] = -1  # accept every header
        count = hop(buffer, 0, len(buffer), position, memoryview(scratch), 0, memoryview(status))
        headers = HeaderTable(scratch[:count].copy())
        whole = int(np.searchsorted(headers.end_position, position + len(buffer), "right"))
        if whole:
            headers = headers.rows(slice(0, whole))
            if check_crc:
                headers = headers.with_crcs(checked_crcs(headers, buffer, position))
            yield BatchChunk(headers=headers, buffer_position=position, table=headers.unopened(), buffer=buffer)
            position = int(headers.end_position[-1])
            continue
        length = int.from_bytes(buffer[_LENGTH], "big", signed=True)
        if length < layout.MIN_MESSAGE_LENGTH:
            raise _too_small(length)
        if position > end - _OVERHEAD - length:
            return
        if count:
            wanted = _OVERHEAD + length  # larger than one read
            continue
        facts = _facts(source, position)
        if check_crc:
            facts = facts._replace(crc_valid=_is_valid(source, facts))
        yield facts
        position += _OVERHEAD + length


def batch_at(source: Source, position: int, end: int) -> BatchFacts:
    """The first batch that Kafka finds in ``source[position:end]``, without its CRC checked. Raises KafkaStops."""
    if position < end - layout.UP_TO_MAGIC_BYTES:
        length = int.from_bytes(source.read_at(position, _OVERHEAD)[_LENGTH], "big", signed=True)
        if length < layout.MIN_MESSAGE_LENGTH:
            raise _too_small(length)
        if position <= end - _OVERHEAD - length:
            return _facts(source, position)
    raise KafkaStops(f"there is no batch at position {position}")


def _too_small(length: int) -> KafkaStops:
    return KafkaStops(f"the length {length} is less than that of any batch")


def _is_valid(source: Source, facts: BatchFacts) -> bool:
    if facts.magic >= 2 and facts.size_bytes < layout.RECORD_BATCH.size_bytes:
        return False
    return has_right_crc(source, facts.position, facts.size_bytes, facts.magic)


def _facts(source: Source, position: int) -> BatchFacts:
    """The facts of a header. It may extend past its batch; Kafka stops where it extends past the end of the file."""
    header = source.read_at(position, layout.RECORD_BATCH.size_bytes)
    magic = magic_of(header)
    if len(header) < header_bytes(magic):
        raise KafkaStops(f"the header at position {position} is cut off by the end of the file")
    return decode_facts(header, position)


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

    def varint(self, bits: int = 32) -> int:
        """A signed number of at most so many bits."""
        value = 0
        for number in range(-(-bits // 7)):
            byte = self.byte()
            value |= (byte & 0x7F) << 7 * number
            if byte < 0x80:
                value &= (1 << bits) - 1  # excess bits of the last byte are dropped
                return (value >> 1) ^ -(value & 1)
        raise KafkaStops("a number has too many bytes")


def read_records(facts: BatchFacts, raw: memoryview, limits: Limits) -> Iterator[KafkaRecord]:
    """The records of the batch in ``raw``, its header included; raises KafkaStops where Kafka throws an exception.

    For a compressed v2 batch Kafka reads all records before it returns the first; this yields each one as it is read.
    """
    try:
        if facts.magic >= 2:
            yield from _read_v2(facts, raw, limits)
        elif facts.codec:
            yield from _read_wrapper(facts, raw, limits)
        else:
            yield _legacy_record(raw[_CRC_AT:], facts.base_offset, None)
    except _End:
        raise KafkaStops("a record is cut off by the end of its batch") from None


def _read_v2(facts: BatchFacts, raw: memoryview, limits: Limits) -> Iterator[KafkaRecord]:
    if len(raw) < layout.RECORD_BATCH.size_bytes:
        raise _End
    if facts.record_count == 0:
        return
    content = raw[layout.RECORD_BATCH.size_bytes :]
    if facts.codec:
        content = _decompressed(facts.codec, content, 2, limits)
    if facts.record_count < 0:
        raise KafkaStops(f"the number of records, {facts.record_count}, is negative")
    source = _Bytes(content)
    for number in range(facts.record_count):
        record = _read_v2_record(facts, source)
        if number == facts.record_count - 1 and source.remaining:
            raise KafkaStops(f"{source.remaining} bytes are left after the last record")
        yield record


def _read_v2_record(facts: BatchFacts, source: _Bytes) -> KafkaRecord:
    size_bytes = source.varint()
    if source.remaining < size_bytes or (facts.codec and size_bytes < 0):
        raise KafkaStops(f"a record claims {size_bytes} bytes of {source.remaining}")
    body = _Bytes(source.raw[source.at : source.at + size_bytes]) if facts.codec else source
    start = body.at
    record = _read_v2_body(facts, body)
    if body.at - start != size_bytes:
        raise KafkaStops(f"a record claims {size_bytes} bytes and has {body.at - start}")
    if facts.codec:
        source.at += size_bytes
    return record


def _read_v2_body(facts: BatchFacts, body: _Bytes) -> KafkaRecord:
    body.byte()
    timestamp = int64(facts.base_timestamp + body.varint(64))
    if facts.attributes & layout.TIMESTAMP_TYPE_BIT:
        timestamp = facts.max_timestamp
    offset_delta = body.varint()
    base_sequence = facts.base_sequence
    sequence = increment_sequence(base_sequence, offset_delta) if base_sequence >= 0 else -1
    key, value = body.take(body.varint()), body.take(body.varint())
    header_count = body.varint()
    if not 0 <= header_count <= body.remaining:
        raise KafkaStops(f"a record claims {header_count} headers")
    header_keys = []
    for _ in range(header_count):
        header_key = body.take(body.varint())
        if header_key is None:
            raise KafkaStops("the key of a header has a negative length")
        header_keys.append(header_key)
        body.take(body.varint())
    sizes = (-1 if key is None else len(key), -1 if value is None else len(value))
    offset = int64(facts.base_offset + offset_delta)
    return KafkaRecord(offset, timestamp, *sizes, key, value, sequence, tuple(header_keys))


def _read_wrapper(facts: BatchFacts, raw: memoryview, limits: Limits) -> Iterator[KafkaRecord]:
    if facts.magic not in (0, 1) or facts.codec == _ZSTD:
        raise KafkaStops(f"no message of the magic {facts.magic} can be compressed with codec {facts.codec}")
    outer = _legacy_record(raw[_CRC_AT:], facts.base_offset, None)
    if outer.fault is not None:
        raise outer.fault
    if outer.value is None:
        raise KafkaStops("a compressed message has no value")
    source = _Bytes(_decompressed(facts.codec, memoryview(outer.value), facts.magic, limits))
    append_timestamp = facts.max_timestamp if facts.magic and facts.attributes & layout.TIMESTAMP_TYPE_BIT else None
    inner: list[tuple[int, memoryview]] = []
    while source.remaining >= layout.LOG_ENTRY.size_bytes:
        offset, size_bytes = layout.LOG_ENTRY.struct.unpack(source.take(layout.LOG_ENTRY.size_bytes) or b"")
        if size_bytes < layout.MIN_MESSAGE_LENGTH:
            raise _too_small(size_bytes)
        if size_bytes > source.remaining:
            break  # a partial message at the end is left out
        inner.append((offset, source.raw[source.at : source.at + size_bytes]))
        source.at += size_bytes
    if not inner:
        raise KafkaStops("a compressed message holds no messages")
    base, last_offset = 0, inner[-1][0]
    if facts.magic == 1 and facts.base_offset != 0:
        if facts.base_offset < last_offset:
            raise KafkaStops(f"the last message in one of offset {facts.base_offset} has the relative {last_offset}")
        base = int64(facts.base_offset - last_offset)
    for offset, message in inner:
        if message[_ATTRIBUTES_AT - _CRC_AT] & layout.CODEC_MASK:
            raise KafkaStops("a message in a compressed message is compressed")
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
    fault = None
    if max(field + 4, field + 4 + key_size, value_at + 4 + value_size) > len(message):
        fault = KafkaStops("a key or value extends past the end of its message")
    key = _delimited(message, field + 4, key_size)
    value = None if key is None and key_size >= 0 else _delimited(message, value_at + 4, value_size)
    stored_crc = int.from_bytes(message[: _MAGIC_AT - _CRC_AT], "big")
    is_valid = crc32_of(message[_MAGIC_AT - _CRC_AT :]) == stored_crc
    return KafkaRecord(offset, timestamp, key_size, value_size, key, value, -1, None, stored_crc, is_valid, fault)


def _int32_at(message: memoryview, at: int) -> int:
    if at + 4 > len(message):
        raise _End
    return int.from_bytes(message[at : at + 4], "big", signed=True)


def _delimited(message: memoryview, at: int, length: int) -> bytes | None:
    return None if length < 0 or at + length > len(message) else bytes(message[at : at + length])


def _decompressed(codec: int, content: memoryview, magic: int, limits: Limits) -> memoryview:
    try:
        return memoryview(decompress(codec, content, magic=magic, limits=limits))
    except LimitExceeded:
        raise
    except KafkaLogError as error:
        raise KafkaStops(error.message) from error
