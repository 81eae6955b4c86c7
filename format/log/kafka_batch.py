"""The header of a batch as Kafka's own reader takes it, which checks nothing: any magic, and sums that wrap.

Source: clients record FileLogInputStream, DefaultRecordBatch, AbstractLegacyRecordBatch.
"""

from __future__ import annotations

from typing import NamedTuple

from format import layout

_HEADER = layout.RECORD_BATCH
_MESSAGE = layout.MESSAGE_V1
_MAGIC_AT = _HEADER.offset_of("magic")
_OVERHEAD = layout.LOG_ENTRY.size_bytes


def int64(number: int) -> int:
    """The number as a Java long holds it, wrapped."""
    return (number + 2**63) % 2**64 - 2**63


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
    crc_valid: bool = False

    @property
    def is_transactional(self) -> bool:
        return self.magic >= 2 and bool(self.attributes & layout.TRANSACTIONAL_BIT)

    @property
    def is_control(self) -> bool:
        return self.magic >= 2 and bool(self.attributes & layout.CONTROL_BIT)

    @property
    def last_offset(self) -> int:
        return int64(self.base_offset + self.last_offset_delta)

    @property
    def next_offset(self) -> int:
        return int64(self.last_offset + 1)

    @property
    def codec(self) -> int:
        return self.attributes & layout.CODEC_MASK

    @property
    def timestamp_type(self) -> bytes:
        if self.magic == 0:
            return layout.NO_TIMESTAMP_TYPE.encode()
        return layout.TIMESTAMP_TYPE_NAMES[bool(self.attributes & layout.TIMESTAMP_TYPE_BIT)].encode()


def decode_facts(header: bytes, position: int) -> BatchFacts:
    """Decode a header as Kafka does, without checking its values; ``header`` is complete for its magic."""
    magic = magic_of(header)
    if magic >= 2:
        fields = _HEADER.struct.unpack_from(header)
        base_offset, length, epoch, _, crc, attributes, delta, base, largest, producer, pid_epoch, sequence, count = (
            fields
        )
        return BatchFacts(
            position, _OVERHEAD + length, magic, base_offset, delta, count, attributes, crc, epoch, base, largest,
            producer, pid_epoch, sequence,
        )  # fmt: skip
    base_offset, length, crc, _, attributes, *timestamp = (_MESSAGE if magic else layout.MESSAGE_V0).struct.unpack_from(
        header
    )
    when = timestamp[0] if timestamp else layout.NO_TIMESTAMP
    return BatchFacts(
        position, _OVERHEAD + length, magic, base_offset, 0, -1, attributes, crc, -1, when, when, -1, -1, -1
    )


def magic_of(header: bytes | memoryview) -> int:
    """The magic of a header, as a signed byte."""
    return int.from_bytes(header[_MAGIC_AT : _MAGIC_AT + 1], "big", signed=True)


def header_bytes(magic: int) -> int:
    """How many bytes Kafka reads as the header of a batch with that magic, which may be unknown."""
    if magic >= 2:
        return _HEADER.size_bytes
    return layout.MESSAGE_V0.size_bytes if magic == 0 else _MESSAGE.size_bytes
