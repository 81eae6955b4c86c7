"""One batch as kafka-dump-log prints it.

Source: tools DumpLogSegments.printBatchLevel, and what it calls of FileLogInputStream and AbstractLegacyRecordBatch.
"""

from __future__ import annotations

from typing import NamedTuple

from format import layout
from format.verbs.dump_log.java_text import increment_sequence, int64
from format.verbs.dump_log.stops import KafkaStops

_HEADER = layout.RECORD_BATCH
_MESSAGE = layout.MESSAGE_V1
_MAGIC_AT = _HEADER.offset_of("magic")
_OVERHEAD = layout.LOG_ENTRY.size_bytes


class BatchFacts(NamedTuple):
    """The printed header fields of a batch or outermost message; ``crc_valid`` is computed, not stored."""

    position: int
    size_bytes: int
    magic: int
    base_offset: int
    last_offset_delta: int
    record_count: int
    attributes: int
    crc: int
    leader_epoch: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    crc_valid: bool

    @property
    def is_control(self) -> bool:
        return self.magic >= 2 and bool(self.attributes & layout.CONTROL_BIT)

    @property
    def last_offset(self) -> int:
        return int64(self.base_offset + self.last_offset_delta)

    @property
    def codec(self) -> int:
        return self.attributes & layout.CODEC_MASK

    @property
    def timestamp_type(self) -> bytes:
        if self.magic == 0:
            return layout.NO_TIMESTAMP_TYPE.encode()
        return layout.TIMESTAMP_TYPE_NAMES[bool(self.attributes & layout.TIMESTAMP_TYPE_BIT)].encode()


def decode_facts(header: bytes, position: int, crc_valid: bool) -> BatchFacts:
    """Decode a header as Kafka does, without checking its values; ``header`` is complete for its magic."""
    magic = magic_of(header)
    if magic >= 2:
        fields = _HEADER.struct.unpack_from(header)
        base_offset, length, epoch, _, crc, attributes, delta, base, largest, producer, pid_epoch, sequence, count = (
            fields
        )
        return BatchFacts(
            position, _OVERHEAD + length, magic, base_offset, delta, count, attributes, crc, epoch, base, largest,
            producer, pid_epoch, sequence, crc_valid,
        )  # fmt: skip
    base_offset, length, crc, _, attributes, *timestamp = (_MESSAGE if magic else layout.MESSAGE_V0).struct.unpack_from(
        header
    )
    when = timestamp[0] if timestamp else layout.NO_TIMESTAMP
    return BatchFacts(
        position, _OVERHEAD + length, magic, base_offset, 0, -1, attributes, crc, -1, when, when, -1, -1, -1, crc_valid
    )


def magic_of(header: bytes | memoryview) -> int:
    """The magic of a header, as a signed byte."""
    return int.from_bytes(header[_MAGIC_AT : _MAGIC_AT + 1], "big", signed=True)


def header_bytes(magic: int) -> int:
    """How many bytes Kafka reads as the header of a batch with that magic, which may be unknown."""
    if magic >= 2:
        return _HEADER.size_bytes
    return layout.MESSAGE_V0.size_bytes if magic == 0 else _MESSAGE.size_bytes


def batch_line(facts: BatchFacts) -> bytes:
    """The line of a batch, with its LF; raises UnprintableBatch where Kafka dies while printing it."""
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
            raise UnprintableBatch(
                f"java.lang.IllegalArgumentException: Invalid magic used in LegacyRecord: {facts.magic}", start
            )
    if facts.codec >= len(layout.CODEC_NAMES):
        raise UnprintableBatch(f"java.lang.IllegalArgumentException: Unknown compression type id: {facts.codec}", start)
    return b"%b position: %d %b: %d size: %d magic: %d compresscodec: %b crc: %d isvalid: %b\n" % (
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


class UnprintableBatch(KafkaStops):
    """Kafka dies while printing a batch's line, after ``start``."""

    def __init__(self, message: str, start: bytes) -> None:
        super().__init__(message, code="batch-invalid")
        self.start = start


def java_boolean(value: object) -> bytes:
    """A truth value as Java prints it."""
    return b"true" if value else b"false"
