"""A broker's own search in one segment, which goes by the offset index as it is and stops at damage.

A look-up says what the log holds; this says what a broker gets to. Its code is that of a start (``boot``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from format.errors import KafkaLogError, NotInBundle
from format.files.index_file import broker_slot, floor_entry
from format.layout import NO_TIMESTAMP, OFFSET_INDEX_ENTRY, TIME_INDEX_ENTRY, Layout
from format.log.kafka_batch import BatchFacts
from format.node.offsets import PartitionOffsets
from format.verbs.boot.one_log.batches import (
    CorruptRecords,
    OffsetIndexView,
    batches_from,
    first_batch_reaching,
    log_end,
)
from format.verbs.boot.steps import BootTerms
from format.verbs.dump_log.kafka_reader import KafkaRecord, read_records
from format.verbs.dump_log.options import KafkaStops
from format.verbs.find.lookup import FoundRecord
from format.verbs.find.segment_lookup import BatchByHeader, LookupScan, LookupSegment

_BEFORE_4_1 = (4, 0)


class _OpenIndex(OffsetIndexView, frozen=True, kw_only=True):
    """The first ``entry_count`` entries of an open index, which are read one by one."""

    read_at: Callable[[int, int], bytes]
    count: int

    @property
    def entry_count(self) -> int:
        return self.count

    def entry(self, number: int) -> tuple[int, int]:
        size_bytes = OFFSET_INDEX_ENTRY.size_bytes
        relative, position = OFFSET_INDEX_ENTRY.struct.unpack(self.read_at(number * size_bytes, size_bytes))
        return self.base_offset + relative, position


class Reached(msgspec.Struct, frozen=True):
    """Where a broker's search for an offset begins, and the batch, or the unreadable damage, to which it gets."""

    start: int
    batch: BatchByHeader | None = None
    damaged_at: int | None = None


class BrokerSearch:
    """A broker's search in one segment after its start, or while it runs."""

    def __init__(self, segment: LookupSegment, offsets: PartitionOffsets) -> None:
        self._segment = segment
        self._is_running = offsets.is_broker_running
        self.index: OffsetIndexView | None = None  # None where a start builds it again
        if segment.segment.offset_index is not None and (
            offsets.is_broker_running or offsets.keeps_indexes(segment.next_base_offset)
        ):
            self.index = self._opened(segment.segment.offset_index)

    def _opened(self, path: Path) -> OffsetIndexView:
        def read_at(position: int, length: int) -> bytes:
            return self._segment.source(path).read_at(position, length)  # the file may have been closed

        count = self._count(path, OFFSET_INDEX_ENTRY)
        return _OpenIndex(self._segment.base_offset, read_at=read_at, count=count)

    def _count(self, path: Path, layout: Layout) -> int:
        """How many entries an index has: of a running broker's without the space after them, which it knows.

        None of an index that cannot be read, which the look-up reports.
        """
        try:
            index = self._segment.source(path)
            if not self._is_running:
                return index.size_bytes // layout.size_bytes
            last = floor_entry(index, layout, self._segment.base_offset, None)
        except KafkaLogError:
            return 0
        return 0 if last is None else last[0] + 1

    def reached(self, offset: int, start: int, version: tuple[int, int] = BootTerms().version) -> Reached:
        """What the search for an offset gets to; it begins at ``start`` where no index is used."""
        log = self._segment.log
        if self.index is not None:
            start = self.index.position_for(offset)
        terms = BootTerms(version=version, limits=self._segment.limits)
        try:
            found = first_batch_reaching(log, offset, start, log.size_bytes, log.place, terms)
        except CorruptRecords as error:
            return Reached(start, damaged_at=error.position)
        except NotInBundle as error:
            return Reached(start, damaged_at=_position_of(error))
        return Reached(start, None if found is None else _by_header(found))

    def why_hidden(self, offset: int, position: int, scan: LookupScan) -> str:
        """Why a broker does not get to the batch at a position, where the scan found the offset; empty if it does."""
        newest = self._why_elsewhere(self.reached(offset, scan.start), position, scan)
        if not scan.findings:
            return newest
        earlier = self._why_elsewhere(self.reached(offset, scan.start, _BEFORE_4_1), position, scan)
        if newest and earlier:
            return newest
        if newest:
            return f"{newest}, from 4.1 on: earlier releases return it"
        return earlier and f"{earlier}, up to 4.0: later releases return it"

    def _why_elsewhere(self, reached: Reached, position: int, scan: LookupScan) -> str:
        if reached.batch is not None and reached.batch.position == position:
            return ""
        if reached.batch is not None and reached.batch.position < position:
            return f"behind {reached.batch.words}, where a broker's search for it ends"
        if reached.start != scan.start and not scan.is_damaged_at(reached.start):
            return f"not where a wrong index entry leads a broker's search for it, position {reached.start}"
        if reached.batch is not None:
            return f"before {reached.batch.words}, with which a broker answers"
        damaged_at = scan.damaged_from if reached.damaged_at is None else reached.damaged_at
        if damaged_at is not None and damaged_at > position:
            return f"right before the damage at position {damaged_at}, which a broker's search for it reads, too"
        return f"behind the damage at position {damaged_at}, where a broker's search for it ends"

    def batches_from(self, position: int) -> Iterator[BatchByHeader]:
        """The batches from a position on, up to what a broker or a consumer cannot read."""
        try:
            yield from map(_by_header, self._batches_from(position))
        except CorruptRecords:
            return

    def log_end(self) -> int | None:
        """The log end offset that a start takes from the last segment, by its last index entry; None if not known."""
        log = self._segment.log
        if self.index is None or self._is_running:
            return None
        try:
            terms = BootTerms(limits=self._segment.limits)
            return log_end(log, log.size_bytes, self.index, log.place, terms).next_offset
        except (CorruptRecords, NotInBundle):
            return None

    # -- times -------------------------------------------------------------------------------------------------

    def _time_entry(self, path: Path, number: int) -> tuple[int, int]:
        size_bytes = TIME_INDEX_ENTRY.size_bytes
        content = self._segment.source(path).read_at(number * size_bytes, size_bytes)
        timestamp, relative = TIME_INDEX_ENTRY.struct.unpack(content)
        return timestamp, self._segment.base_offset + relative

    def time_floor(self, timestamp: int | None = None) -> tuple[int, int]:
        """Timestamp and offset of the entry at or below a time, or of the last one (TimeIndex.lookup, lastEntry).

        The timestamp is -1 where there is none.
        """
        path = self._segment.segment.time_index
        if path is None:
            return NO_TIMESTAMP, self._segment.base_offset
        slot = (count := self._count(path, TIME_INDEX_ENTRY)) - 1
        if timestamp is not None:
            size_bytes = TIME_INDEX_ENTRY.size_bytes
            slot = broker_slot(count, lambda number: self._time_entry(path, number)[0], timestamp, size_bytes)
        return (NO_TIMESTAMP, self._segment.base_offset) if slot < 0 else self._time_entry(path, slot)

    def first_at(
        self, timestamp: int, starting_offset: int, start: int, known: FoundRecord | None = None
    ) -> int | None:
        """The offset of the first record at or past a time and an offset (LogSegment.findOffsetByTimestamp).

        The search begins at ``start`` where no index is used; ``known`` is what a look-up found. Raises CorruptRecords
        where a broker fails.
        """
        if self.index is not None:
            start = self.index.position_for(max(self.time_floor(timestamp)[1], starting_offset))
        for batch in self._batches_from(start):
            if batch.max_timestamp >= timestamp:
                if known is not None and batch.position == known.location.position:
                    return known.location.offset
                for record in self._records_of(batch):
                    if record.timestamp >= timestamp and record.offset >= starting_offset:
                        return record.offset
        return None

    def first_with(self, timestamp: int, offset: int, start: int, known: FoundRecord | None = None) -> int | None:
        """The offset of the first record with a timestamp, which is the largest of its batch, as in ``first_at``.

        The search begins for ``offset`` (UnifiedLog.fetchOffsetByTimestamp).
        """
        if self.index is not None:
            start = self.index.position_for(offset)
        for batch in self._batches_from(start):
            if batch.max_timestamp == timestamp:
                if known is not None and batch.position == known.location.position:
                    return known.location.offset
                return next((each.offset for each in self._records_of(batch) if each.timestamp == timestamp), None)
        return None

    def _batches_from(self, start: int) -> Iterator[BatchFacts]:
        """The batches of which a broker reads the timestamp: of none with a magic below 0. Raises CorruptRecords."""
        log = self._segment.log
        try:
            for batch in batches_from(log, start, log.size_bytes, log.place):
                if batch.magic < 0:
                    raise CorruptRecords(f"Invalid magic used in LegacyRecord: {batch.magic}", batch.position)
                yield batch
        except NotInBundle as error:
            raise CorruptRecords(error.message, _position_of(error)) from None

    def _records_of(self, batch: BatchFacts) -> Iterator[KafkaRecord]:
        raw = memoryview(self._segment.log.read_at(batch.position, batch.size_bytes))
        try:
            yield from read_records(batch, raw, self._segment.limits)
        except (KafkaStops, KafkaLogError) as error:
            raise CorruptRecords(str(error), batch.position) from None


def _position_of(error: NotInBundle) -> int:
    """The position of damage, of which a bundle holds nothing else."""
    return (error.location and error.location.position) or 0


def _by_header(facts: BatchFacts) -> BatchByHeader:
    return BatchByHeader(
        facts.position, facts.size_bytes, facts.magic, facts.base_offset, facts.last_offset, facts.max_timestamp
    )
