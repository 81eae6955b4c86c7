"""Where the batches and messages of a log lie, read from their length fields alone.

The recording compares what two versions of the program print for the same files. So its inputs must not depend on
the program: this module and ``damage`` import nothing of it.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass

import crc32c

OFFSET_AND_LENGTH_BYTES = 12
CRC_POSITION = 17
CRC_POSITION_IN_MESSAGE = 12
#: Position and size in bytes of each header field, by format.
V2_FIELDS = {
    "base_offset": (0, 8), "length": (8, 4), "leader_epoch": (12, 4), "magic": (16, 1), "crc": (17, 4),
    "attributes": (21, 2), "last_offset_delta": (23, 4), "base_timestamp": (27, 8), "max_timestamp": (35, 8),
    "producer_id": (43, 8), "producer_epoch": (51, 2), "base_sequence": (53, 4), "record_count": (57, 4),
}  # fmt: skip
V2_HEADER_BYTES = 61
MESSAGE_FIELDS = {"offset": (0, 8), "length": (8, 4), "crc": (12, 4), "magic": (16, 1), "attributes": (17, 1)}
MESSAGE_HEADER_BYTES = {0: 18, 1: 26}


@dataclass(frozen=True)
class Batch:
    """One batch or message: its place in the file and what look-ups need of its header."""

    position: int
    size_bytes: int
    magic: int
    base_offset: int
    last_offset: int
    max_timestamp: int | None
    codec: int

    @property
    def end(self) -> int:
        return self.position + self.size_bytes

    @property
    def fields(self) -> dict[str, tuple[int, int]]:
        return V2_FIELDS if self.magic == 2 else MESSAGE_FIELDS

    @property
    def header_bytes(self) -> int:
        return V2_HEADER_BYTES if self.magic == 2 else MESSAGE_HEADER_BYTES[self.magic]


def batches_of(content: bytes) -> list[Batch]:
    """The batches of an intact log; what follows the last whole one is left out."""
    found = []
    position = 0
    while position + V2_FIELDS["attributes"][0] <= len(content):
        size = OFFSET_AND_LENGTH_BYTES + number_at(content, position + 8, 4)
        if size <= OFFSET_AND_LENGTH_BYTES or position + size > len(content):
            break
        found.append(_batch_at(content, position, size))
        position += size
    return found


def _batch_at(content: bytes, position: int, size: int) -> Batch:
    magic, offset = content[position + 16], number_at(content, position, 8)
    if magic == 2:
        last = offset + number_at(content, position + 23, 4)
        timestamp: int | None = number_at(content, position + 35, 8)
        return Batch(position, size, magic, offset, last, timestamp, content[position + 22] & 7)
    timestamp = number_at(content, position + 18, 8) if magic == 1 else None
    return Batch(position, size, magic, offset, offset, timestamp, content[position + 17] & 7)


def number_at(content: bytes, position: int, size_bytes: int) -> int:
    return int.from_bytes(content[position : position + size_bytes], "big", signed=True)


def sealed(batch: bytes) -> bytes:
    """The batch or message with the CRC that its bytes have now."""
    if batch[16] == 2:
        return _with_crc(batch, CRC_POSITION, crc32c.crc32c(batch[CRC_POSITION + 4 :]))
    return _with_crc(batch, CRC_POSITION_IN_MESSAGE, zlib.crc32(batch[CRC_POSITION_IN_MESSAGE + 4 :]))


def _with_crc(batch: bytes, position: int, crc: int) -> bytes:
    return batch[:position] + crc.to_bytes(4, "big") + batch[position + 4 :]
