"""Checks a segment's .txnindex against the aborted transactions whose markers are in the segment."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import field

import numpy as np

from format import layout
from format.errors import KafkaLogError
from format.files import transaction_index
from format.files.index_file import entries_with_problems
from format.files.side_file import problem_findings
from format.findings import Finding, Judgement, Severity, finding, finding_of
from format.limits import Limits
from format.location import Location
from format.log.batch_table import BatchTable
from format.node.segment import Segment
from format.offset_ranges import Range
from format.state.producer_events import MarkerOrphaned, ProducerEvent, TransactionBegan, TransactionEnded
from format.value_class import state_class
from format.wording import counted_plainly, offset_range


@state_class
class SegmentTransactions:
    """The transactions whose marker is in a segment, and those that began in it, both in log order.

    ``aborts`` are the producer id and offset of all ABORT markers, ``intact`` the offsets of intact batches.
    """

    ended: list[TransactionEnded] = field(default_factory=list)
    began: list[tuple[int, int]] = field(default_factory=list)  # first offset and producer id
    aborts: set[tuple[int, int]] = field(default_factory=set)
    intact: list[Range] = field(default_factory=list)

    def cover(self, table: BatchTable) -> None:
        """Note the offsets of the next batches."""
        if not len(table):
            return
        starts = np.flatnonzero(np.append(True, table.base_offset[1:] != table.last_offset[:-1] + 1))
        ends = np.append(starts[1:], len(table)) - 1
        for first, last in zip(table.base_offset[starts].tolist(), table.last_offset[ends].tolist(), strict=True):
            if self.intact and self.intact[-1][1] + 1 == first:
                self.intact[-1] = (self.intact[-1][0], last)
            else:
                self.intact.append((first, last))

    def is_intact(self, offset: int) -> bool:
        """Whether an offset is in an intact batch."""
        before = bisect_right(self.intact, offset, key=lambda each: each[0])
        return before > 0 and offset <= self.intact[before - 1][1]

    def add(self, events: Iterable[ProducerEvent]) -> None:
        """Add the events of the next batches of the segment."""
        for event in events:
            if isinstance(event, TransactionEnded):
                self.ended.append(event)
            elif isinstance(event, TransactionBegan):
                self.began.append((event.first_offset, event.producer_id))
            if isinstance(event, TransactionEnded | MarkerOrphaned) and event.is_aborted:
                self.aborts.add((event.producer_id, event.place.offset))

    def may_be_stable(self, ended: TransactionEnded, offset: int) -> bool:
        """Whether a broker may have written this last stable offset for a transaction.

        A follower appends the batches of one fetch together: if no transaction was open at the marker, it writes the
        first offset of a transaction that begins after it in the same fetch (storage UnifiedLog.append).
        """
        if offset == ended.last_stable_offset:
            return True
        if ended.last_stable_offset != ended.last_offset + 1:
            return False
        later = self.began[bisect_right(self.began, (ended.last_offset, 2**63)) :]
        return offset == next((first for first, producer_id in later if producer_id != ended.producer_id), None)


def check_transaction_index(
    segment: Segment,
    transactions: SegmentTransactions,
    location: Location,
    *,
    first_offset: int | None,
    is_compacted: bool,
    log_is_whole: bool,
    limits: Limits,
) -> Iterator[Finding]:
    """Findings for one segment.

    The records of a transaction before the log's ``first_offset`` are known only from the index. Compaction removes
    aborted records and their markers. In a damaged log (``log_is_whole`` False), missing records prove nothing, unless
    an intact batch is in their place.
    """
    ended = transactions.ended
    aborted = {(each.producer_id, each.last_offset): each for each in ended if each.is_aborted}
    path = segment.transaction_index
    if path is None:
        if aborted:
            first = min(aborted.values(), key=lambda each: each.last_offset)
            yield finding(
                "transaction-index-mismatch",
                location.at(offset=first.first_offset),
                f"the segment has {counted_plainly(len(aborted), 'aborted transaction')} and no .txnindex",
                expected=len(aborted),
                actual=0,
            )
        return
    where = Location(str(path), location.topic, location.partition, segment.base_offset)
    try:
        index = transaction_index.read(path, segment.base_offset, limits)
    except KafkaLogError as error:
        yield finding_of(error, where)
        return
    yield from problem_findings(index.problems, where)
    is_invalid = entries_with_problems(index.problems, layout.ABORTED_TXN.size_bytes, len(index.producer_ids))
    entry_bytes = layout.ABORTED_TXN.size_bytes
    for number, (producer_id, first, last, stable) in enumerate(
        zip(
            index.producer_ids.tolist(),
            index.first_offsets.tolist(),
            index.last_offsets.tolist(),
            index.last_stable_offsets.tolist(),
            strict=True,
        )
    ):
        place = where.at(number * entry_bytes, entry_bytes, first)
        known = aborted.pop((producer_id, last), None)
        if is_invalid[number] and known is None:
            continue
        began_before = first_offset is not None and first < first_offset
        if known is None:
            if began_before or is_compacted:
                continue
            if not log_is_whole and ((producer_id, last) in transactions.aborts or not transactions.is_intact(last)):
                continue
            yield finding(
                "transaction-index-mismatch", place,
                f"entry {number}: there is no ABORT marker of producer {producer_id} at offset {last}",
            )  # fmt: skip
        elif known.first_offset != first and not (
            is_compacted or began_before or (not log_is_whole and first < known.first_offset)
        ):
            yield finding(
                "transaction-index-mismatch", place,
                f"entry {number}: the transaction of producer {producer_id} begins at offset {known.first_offset}, "
                f"not {first}",
                expected=known.first_offset, actual=first,
            )  # fmt: skip
        elif not (
            is_compacted
            or not log_is_whole
            or transactions.may_be_stable(known, stable)
            or (first_offset is not None and stable < first_offset)
        ):
            yield finding(
                "transaction-index-mismatch",
                place,
                f"entry {number}: the last stable offset was {known.last_stable_offset}, not {stable}",
                expected=known.last_stable_offset,
                actual=stable,
                judgement=Judgement(severity=Severity.WARNING),
            )
    for missing in aborted.values():
        yield finding(
            "transaction-index-mismatch",
            where.at(offset=missing.first_offset),
            f"the aborted transaction of producer {missing.producer_id}, "
            f"{offset_range(missing.first_offset, missing.last_offset)}, is not in the index",
        )
