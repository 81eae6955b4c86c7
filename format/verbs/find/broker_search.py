"""A broker's own search for an offset in one segment, which goes by the offset index as it is and stops at damage.

A look-up says what the log holds; this says what a broker gets to. Its code is that of a start (``boot``).
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from format.errors import KafkaLogError, NotInBundle
from format.files import offset_index
from format.io.source import FileSource
from format.layout import OFFSET_INDEX_ENTRY
from format.log.kafka_batch import BatchFacts
from format.node.offsets import PartitionOffsets
from format.verbs.boot.one_log.batches import CorruptRecords, OffsetIndexView, first_batch_reaching, log_end
from format.verbs.boot.steps import BootTerms
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

    def is_at(self, position: int) -> bool:
        """Whether it gets to the batch at a position."""
        return self.batch is not None and self.batch.position == position


class BrokerSearch:
    """A broker's search in one segment after its start, or while it runs."""

    def __init__(self, segment: LookupSegment, offsets: PartitionOffsets) -> None:
        self._segment = segment
        self._is_running = offsets.is_broker_running
        self.index: OffsetIndexView | None = None  # None where a start builds it again
        if segment.segment.offset_index is not None and (
            offsets.is_broker_running or offsets.keeps_indexes(segment.next_base_offset)
        ):
            self.index = self._opened(segment.source(segment.segment.offset_index))

    def _opened(self, index: FileSource) -> OffsetIndexView:
        """The entries of an index: of a running broker's without the space after them, which it knows."""
        base_offset = self._segment.base_offset
        count = index.size_bytes // OFFSET_INDEX_ENTRY.size_bytes
        if self._is_running:
            try:
                last = offset_index.last_entry(index, base_offset)
                count = 0 if last is None else last.entry_number + 1
            except KafkaLogError:
                pass  # the look-up reports it
        return _OpenIndex(base_offset, read_at=index.read_at, count=count)

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
            return Reached(start, damaged_at=None if error.location is None else error.location.position)
        return Reached(start, None if found is None else _by_header(found))

    def why_hidden(self, offset: int, position: int, scan: LookupScan) -> str:
        """Why a broker does not get to the batch at a position, where the scan found the offset; empty if it does."""
        reached = self.reached(offset, scan.start)
        if reached.is_at(position):
            return ""
        if reached.start != scan.start and not scan.is_damaged_at(reached.start):
            return f"not where a wrong index entry leads a broker's search for it, position {reached.start}"
        if reached.batch is not None:
            return f"behind {reached.batch.words}, where a broker's search for it ends"
        damaged_at = scan.damaged_from if reached.damaged_at is None else reached.damaged_at
        if self.reached(offset, scan.start, _BEFORE_4_1).is_at(position):
            return (
                f"at the damage at position {damaged_at} the search of brokers from 4.1 on for it ends; earlier "
                "releases return it"
            )
        return f"behind the damage at position {damaged_at}, where a broker's search for it ends"

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


def _by_header(facts: BatchFacts) -> BatchByHeader:
    return BatchByHeader(
        facts.position, facts.size_bytes, facts.magic, facts.base_offset, facts.last_offset, facts.max_timestamp
    )
