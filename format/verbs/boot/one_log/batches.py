"""Reads batches and index entries as a broker does: one header after the other, without a search past damage.

A start does not check an index: it trusts every entry, and takes the last entry of the file for the last one.
Source: clients record FileLogInputStream, FileRecords, DefaultRecordBatch; storage OffsetIndex, LogSegment.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import numpy as np

from format import layout
from format.codecs.checksums import crc32_of, crc32c_of
from format.errors import NotInBundle
from format.files.index_file import broker_slot
from format.io.source import FileSource, HeadersOnly, Source
from format.limits import Limits
from format.location import Location
from format.log.batch_header import header_tables
from format.log.kafka_batch import BatchFacts, decode_facts, magic_of
from format.log.walker import recorded_damage
from format.verbs.boot.broker_files import opened
from format.verbs.boot.steps import BootTerms
from format.verbs.dump_log.kafka_reader import read_records
from format.verbs.dump_log.options import KafkaStops

_LEAST_WINDOW_BYTES = 512
_MOST_WINDOW_BYTES = 64 * 1024
_INDEX_ENTRY_BYTES = layout.OFFSET_INDEX_ENTRY.size_bytes


class CorruptRecords(Exception):
    """The reader's exception: ``text`` is its message, ``position`` where the batch begins, ``what`` is there in words.

    ``kafka_class`` raises it.
    """

    def __init__(
        self,
        text: str,
        position: int,
        what: str = "bytes that are not a batch",
        kafka_class: str = "FileLogInputStream.nextBatch",
    ) -> None:
        super().__init__(text)
        self.text = text
        self.position = position
        self.what = what
        self.kafka_class = kafka_class


class _Window:
    """Serves small neighbouring reads of one source from larger ones: each twice as large as one right before it."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._start = 0
        self._bytes = b""
        self._window_bytes = _LEAST_WINDOW_BYTES

    def read(self, position: int, length: int) -> bytes:
        at = position - self._start
        if at < 0 or at + length > len(self._bytes):
            is_next = 0 <= at <= len(self._bytes)
            self._window_bytes = min(2 * self._window_bytes, _MOST_WINDOW_BYTES) if is_next else _LEAST_WINDOW_BYTES
            self._start, at = position, 0
            self._bytes = self._source.read_at(position, max(length, self._window_bytes))
        return self._bytes[at : at + length]


def batches_from(source: Source, start: int, end: int, shown_path: Path) -> Iterator[BatchFacts]:
    """The batches from ``start`` to ``end``, up to the first that is not whole.

    Raises CorruptRecords for a length that no batch can have.
    """
    window = _Window(source)
    bundled = _only_headers(source)
    position = start
    while position + layout.UP_TO_MAGIC_BYTES < end:
        if bundled is not None and _ends_at(bundled, source, position):
            return
        head = window.read(position, min(layout.RECORD_BATCH.size_bytes, end - position))
        _, length = layout.LOG_ENTRY.struct.unpack_from(head)
        if length < layout.MIN_MESSAGE_LENGTH:
            least = f"minimum record overhead ({layout.MIN_MESSAGE_LENGTH})"
            raise CorruptRecords(f"Found record size {length} smaller than {least} in file {shown_path}.", position)
        size_bytes = layout.LOG_ENTRY.size_bytes + length
        if position + size_bytes > end:
            return
        magic = magic_of(head)
        if magic >= 2 and len(head) < layout.RECORD_BATCH.size_bytes:
            raise CorruptRecords(f"Failed to load record batch at position {position} from the file", position)
        yield decode_facts(head.ljust(layout.RECORD_BATCH.size_bytes, b"\xff"), position)
        position += size_bytes


def valid_batches(source: Source, shown_path: Path) -> Iterator[BatchFacts]:
    """The whole batches of a file, up to the first whose size or CRC is wrong. Raises CorruptRecords for that."""
    for batch in batches_from(source, 0, source.size_bytes, shown_path):
        wrong = _invalid_batch(source, batch)
        if wrong is not None:
            raise CorruptRecords(wrong, batch.position)
        yield batch


def _invalid_batch(source: Source, batch: BatchFacts) -> str | None:
    """The reader's message about a batch whose size or CRC is wrong; None for a valid batch.

    For a batch in a bundle the message lacks the computed CRC, which is not known.
    """
    of_magic = layout.RECORD_BATCH if batch.magic >= 2 else layout.MESSAGE_V0
    stored_at = of_magic.offset_of("crc")
    bundled = _only_headers(source)
    if bundled is not None:
        (valid,) = bundled.crc_valid(np.array([batch.position])).tolist()
        if valid < 0:
            message = "the bundle does not say whether the CRC of the batch here is right"
            raise NotInBundle(message, Location(source.path, position=batch.position))
        stored = int.from_bytes(source.read_at(batch.position + stored_at, 4), "big")
        return None if valid else f"Record is corrupt (stored crc = {stored},"
    data = source.read_at(batch.position, batch.size_bytes)
    least = (
        layout.RECORD_BATCH.size_bytes if batch.magic >= 2 else layout.LOG_ENTRY.size_bytes + layout.MIN_MESSAGE_LENGTH
    )
    if len(data) < least:
        return f"Record batch is corrupted (the size {len(data)} is smaller than the minimum allowed overhead {least})"
    stored = int.from_bytes(data[stored_at : stored_at + 4], "big")
    covered = memoryview(data)[of_magic.offset_of("attributes" if batch.magic >= 2 else "magic") :]
    computed = crc32c_of(covered) if batch.magic >= 2 else crc32_of(covered)
    return None if stored == computed else f"Record is corrupt (stored crc = {stored}, computed crc = {computed})"


def _only_headers(source: Source) -> HeadersOnly | None:
    """The file in the bundle if the bundle has only its batch headers, else None."""
    return source.headers_only if isinstance(source, FileSource) else None


def _ends_at(bundled: HeadersOnly, source: Source, position: int) -> bool:
    """Whether the reader ends at a position because a batch is cut off there.

    Raises NotInBundle for bytes that are no batch, since the reader's error depends on them. Zeros are an exception: a
    bundle returns them as they were.
    """
    if bundled.stored_bytes(position):
        return False
    damage = recorded_damage(bundled, position)
    if damage is None or damage.code not in ("tail-torn", "tail-zeros"):
        message = "the bundle does not hold what lies here, which is no batch"
        raise NotInBundle(message, Location(source.path, position=position))
    return damage.code == "tail-torn"


def first_batch_reaching(
    source: Source, offset: int, start: int, end: int, shown_path: Path, terms: BootTerms
) -> BatchFacts | None:
    """The first batch from a position on whose last offset is not below ``offset``. Raises CorruptRecords.

    Releases from 4.1 on go by the first offsets of batches (FileRecords.searchForOffsetFromPosition), 4.0 takes that of
    the batch that it finds. The first offset of a compressed message of format 0 or 1 is in what it holds.
    """
    previous: BatchFacts | None = None
    for batch in batches_from(source, start, end, shown_path):
        if terms.version >= (4, 1):
            first_offset = _first_offset(source, batch, terms.limits)
            if first_offset >= offset:
                is_before = previous is not None and previous.last_offset >= offset and first_offset > offset
                return previous if is_before else batch
            previous = batch
        elif batch.last_offset >= offset:
            if terms.version >= (4, 0):
                _first_offset(source, batch, terms.limits)
            return batch
    return previous if previous is not None and previous.last_offset >= offset else None


def _first_offset(source: Source, batch: BatchFacts, limits: Limits) -> int:
    """A batch's first offset. Raises CorruptRecords for a compressed message that the broker cannot read."""
    if batch.magic >= 2 or not batch.codec:
        return batch.base_offset
    raw = memoryview(source.read_at(batch.position, batch.size_bytes))
    try:
        return next(read_records(batch, raw, limits)).offset
    except KafkaStops as error:
        what = f"a compressed message that it cannot read: {error}"
        text = "There was an error in one of the threads during logs loading"
        raise CorruptRecords(text, batch.position, what, "AbstractLegacyRecordBatch.DeepRecordsIterator") from None


def last_batch(source: Source, first: BatchFacts, end: int, shown_path: Path) -> BatchFacts:
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


class OffsetIndexView(msgspec.Struct, frozen=True):
    """The entries of an index file, or of one that recovery has just written."""

    base_offset: int
    content: bytes = b""

    @property
    def entry_count(self) -> int:
        return len(self.content) // _INDEX_ENTRY_BYTES

    def entry(self, number: int) -> tuple[int, int]:
        """Offset and position of an entry."""
        relative, position = layout.OFFSET_INDEX_ENTRY.struct.unpack_from(self.content, number * _INDEX_ENTRY_BYTES)
        return self.base_offset + relative, position

    @property
    def last_offset(self) -> int:
        return self.entry(self.entry_count - 1)[0] if self.entry_count else self.base_offset

    def position_for(self, offset: int) -> int:
        """The position from which to search the log for an offset: that of the entry which OffsetIndex.lookup finds.

        A negative position, which only an invalid entry has, stands for the start of the file.
        """
        slot = broker_slot(self.entry_count, lambda number: self.entry(number)[0], offset)
        return 0 if slot < 0 else max(0, self.entry(slot)[1])


def read_index(path: Path | None, base_offset: int) -> OffsetIndexView:
    """The index at a path; an empty one where the path is None."""
    if path is None:
        return OffsetIndexView(base_offset)
    with opened(path) as source:
        return OffsetIndexView(base_offset, source.read_at(0, source.size_bytes))


class LogEnd(msgspec.Struct, frozen=True):
    """Where a log ends for a broker: the next offset, and the position after the last whole batch."""

    next_offset: int
    position: int
    has_batches: bool


def log_end(source: Source, size_bytes: int, index: OffsetIndexView, shown_path: Path, terms: BootTerms) -> LogEnd:
    """The end of a segment as a start finds it: from the last index entry on. Raises CorruptRecords."""
    offset = index.last_offset
    found = first_batch_reaching(source, offset, index.position_for(offset), size_bytes, shown_path, terms)
    if found is None:
        return LogEnd(index.base_offset, 0, False)
    last = last_batch(source, found, size_bytes, shown_path)
    return LogEnd(last.next_offset, last.position + last.size_bytes, True)
