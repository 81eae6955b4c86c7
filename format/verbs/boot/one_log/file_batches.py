"""Reads batches as a broker's file reader does: one header after the other, without a search past damage.

Source: clients record FileLogInputStream, FileRecords, DefaultRecordBatch.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path

import msgspec

from format.codecs.checksums import crc32_of, crc32c_of
from format.io.source import Source
from format.layout import CONTROL_BIT, LOG_ENTRY, MESSAGE_V0, MIN_MESSAGE_LENGTH, RECORD_BATCH, TRANSACTIONAL_BIT
from format.log.batch_header import header_tables
from format.verbs.boot.one_log.bundled_batches import ends_at, headers_in_bundle, invalid_crc

_UP_TO_MAGIC = RECORD_BATCH.offset_of("magic") + 1
_ENTRY = LOG_ENTRY.struct
_V2 = RECORD_BATCH.struct
_LEGACY_TIMESTAMP = struct.Struct(">q")
_LEGACY_TIMESTAMP_AT = MESSAGE_V0.size_bytes
_LEGACY_CRC_FROM = MESSAGE_V0.offset_of("magic")
_V2_CRC_FROM = RECORD_BATCH.offset_of("attributes")
_WINDOW_BYTES = 64 * 1024


class CorruptRecords(Exception):
    """The reader's CorruptRecordException: ``text`` is its message, ``position`` where the batch begins."""

    def __init__(self, text: str, position: int) -> None:
        super().__init__(text)
        self.text = text
        self.position = position


class FileBatch(msgspec.Struct, frozen=True):
    """The header fields of a batch that the reader uses; -1 for those that a v0 or v1 message lacks."""

    position: int
    size_bytes: int
    base_offset: int
    last_offset: int
    magic: int
    max_timestamp: int
    leader_epoch: int
    producer_id: int
    attributes: int = 0

    @property
    def is_transactional(self) -> bool:
        return bool(self.attributes & TRANSACTIONAL_BIT)

    @property
    def is_control(self) -> bool:
        return bool(self.attributes & CONTROL_BIT)

    @property
    def next_offset(self) -> int:
        return _wrapped(self.last_offset + 1)


class _Window:
    """Serves small neighbouring reads of one source from larger ones."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._start = 0
        self._bytes = b""

    def read(self, position: int, length: int) -> bytes:
        at = position - self._start
        if at < 0 or at + length > len(self._bytes):
            self._start, at = position, 0
            self._bytes = self._source.read_at(position, max(length, _WINDOW_BYTES))
        return self._bytes[at : at + length]


def batches_from(source: Source, start: int, end: int, shown_path: Path) -> Iterator[FileBatch]:
    """The batches from ``start`` to ``end``, up to the first that is not whole.

    Raises CorruptRecords for a length that no batch can have.
    """
    window = _Window(source)
    bundled = headers_in_bundle(source)
    position = start
    while position + _UP_TO_MAGIC <= end:
        if bundled is not None and ends_at(bundled, source, position):
            return
        head = window.read(position, min(RECORD_BATCH.size_bytes, end - position))
        offset, length = _ENTRY.unpack_from(head)
        if length < MIN_MESSAGE_LENGTH:
            raise CorruptRecords(
                f"Found record size {length} smaller than minimum record overhead ({MIN_MESSAGE_LENGTH}) in file "
                f"{shown_path}.",
                position,
            )
        size_bytes = LOG_ENTRY.size_bytes + length
        if position + size_bytes > end:
            return
        yield _batch(head, window, position, size_bytes, offset)
        position += size_bytes


def _batch(head: bytes, window: _Window, position: int, size_bytes: int, offset: int) -> FileBatch:
    magic = int.from_bytes(head[_UP_TO_MAGIC - 1 : _UP_TO_MAGIC], "big", signed=True)
    if magic < 2:
        timestamp = -1
        if magic == 1 and size_bytes >= _LEGACY_TIMESTAMP_AT + 8:
            timestamp = _LEGACY_TIMESTAMP.unpack(window.read(position + _LEGACY_TIMESTAMP_AT, 8))[0]
        return FileBatch(position, size_bytes, offset, offset, magic, timestamp, -1, -1)
    if len(head) < RECORD_BATCH.size_bytes:
        raise CorruptRecords(f"Failed to load record batch at position {position} from the file", position)
    values = dict(zip(RECORD_BATCH.names, _V2.unpack(head), strict=True))
    return FileBatch(
        position,
        size_bytes,
        offset,
        _wrapped(offset + values["last_offset_delta"]),
        magic,
        values["max_timestamp"],
        values["leader_epoch"],
        values["producer_id"],
        values["attributes"],
    )


def _wrapped(value: int) -> int:
    """A sum as a Java long, which overflows silently."""
    return (value + 2**63) % 2**64 - 2**63


def invalid_batch(source: Source, batch: FileBatch) -> str | None:
    """The reader's message about a batch whose size or CRC is wrong; None for a valid batch.

    For a batch in a bundle the message lacks the computed CRC, which is not known.
    """
    bundled = headers_in_bundle(source)
    if bundled is not None:
        return invalid_crc(bundled, source, batch.position, batch.magic)
    data = source.read_at(batch.position, batch.size_bytes)
    if batch.magic >= 2:
        least, crc_from, crc_of = RECORD_BATCH.size_bytes, _V2_CRC_FROM, crc32c_of
        stored_at = RECORD_BATCH.offset_of("crc")
    else:
        least, crc_from, crc_of = LOG_ENTRY.size_bytes + MIN_MESSAGE_LENGTH, _LEGACY_CRC_FROM, crc32_of
        stored_at = MESSAGE_V0.offset_of("crc")
    if len(data) < least:
        return f"Record batch is corrupted (the size {len(data)} is smaller than the minimum allowed overhead {least})"
    stored = int.from_bytes(data[stored_at : stored_at + 4], "big")
    computed = crc_of(memoryview(data)[crc_from:])
    return None if stored == computed else f"Record is corrupt (stored crc = {stored}, computed crc = {computed})"


def first_batch_reaching(source: Source, offset: int, start: int, end: int, shown_path: Path) -> FileBatch | None:
    """The first batch from a position on whose last offset is not below ``offset``. Raises CorruptRecords."""
    return next((each for each in batches_from(source, start, end, shown_path) if each.last_offset >= offset), None)


def last_batch(source: Source, first: FileBatch, end: int, shown_path: Path) -> FileBatch:
    """The last whole batch before ``end``, searched for from the batch ``first`` on. Raises CorruptRecords.

    ``header_tables`` finds its place quickly: the reader accepts every header that it accepts.
    """
    position = first.position
    for table in header_tables(source, position, end):
        position = int(table.position[-1])
    last = first
    for batch in batches_from(source, position, end, shown_path):
        last = batch
    return last
