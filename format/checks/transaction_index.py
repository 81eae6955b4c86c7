"""Checks a segment's .txnindex against the aborted transactions whose markers are in the segment."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator

import msgspec
import numpy as np

from format import layout
from format.checks.losses import judged_at_end
from format.errors import KafkaLogError
from format.files import transaction_index
from format.files.index_file import entries_with_problems
from format.files.side_file import problem_findings
from format.findings import Finding, Judgement, Severity, finding, finding_of
from format.limits import Limits
from format.location import Location
from format.log.batch_table import BatchTable
from format.node.offsets import PartitionOffsets
from format.node.partition import Segment
from format.offset_ranges import Range
from format.state.producer_events import MarkerOrphaned, ProducerEvent, TransactionBegan, TransactionEnded
from format.wording import counted_plainly, offset_range


class SegmentTransactions(msgspec.Struct):
    """The transactions whose marker is in a segment, and those that began in it, both in log order.

    ``aborts`` are the producer id and offset of all ABORT markers, ``intact`` the offsets of intact batches.
    """

    ended: list[TransactionEnded] = msgspec.field(default_factory=list)
    began: list[tuple[int, int]] = msgspec.field(default_factory=list)  # first offset and producer id
    aborts: set[tuple[int, int]] = msgspec.field(default_factory=set)
    intact: list[Range] = msgspec.field(default_factory=list)

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


class LogAround(msgspec.Struct, frozen=True):
    """What is known of the log that a segment is in, up to the end of the segment.

    The records of a transaction before the log's ``first_offset`` are known only from the index. Compaction removes
    aborted records and their markers. In a damaged log (``is_whole`` False), missing records prove nothing, unless an
    intact batch is in their place. ``ends`` has the offsets of the partition if this is its last segment, and the end
    offset of the log: a broker that runs may have written to the index since.
    """

    first_offset: int | None
    is_compacted: bool
    is_whole: bool
    ends: PartitionOffsets | None = None

    def is_at_end(self, offset: int) -> bool:
        """Whether an offset is past the end of the log."""
        return self.ends is not None and offset >= (self.ends.log_end_offset or 0)

    def judged(self, found: Finding) -> Finding:
        """A finding about what is missing at the end of the log, or of the index."""
        return found if self.ends is None else judged_at_end(found, self.ends)


def check_transaction_index(
    segment: Segment, transactions: SegmentTransactions, location: Location, log: LogAround, limits: Limits
) -> Iterator[Finding]:
    """Findings for one segment."""
    ended = transactions.ended
    aborted = {(each.producer_id, each.last_offset): each for each in ended if each.is_aborted}
    path = segment.transaction_index
    if path is None:
        if aborted:
            first = min(aborted.values(), key=lambda each: each.last_offset)
            yield log.judged(
                finding(
                    "transaction-index-mismatch",
                    location.at(offset=first.first_offset),
                    f"the segment has {counted_plainly(len(aborted), 'aborted transaction')} and no .txnindex",
                    expected=len(aborted),
                    actual=0,
                )
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
        began_before = log.first_offset is not None and first < log.first_offset
        if known is None:
            if began_before or log.is_compacted:
                continue
            if not log.is_whole and ((producer_id, last) in transactions.aborts or not transactions.is_intact(last)):
                continue
            found = finding(
                "transaction-index-mismatch", place,
                f"entry {number}: there is no ABORT marker of producer {producer_id} at offset {last}",
            )  # fmt: skip
            if not log.is_at_end(last):
                yield found
            elif log.ends is not None and not log.ends.is_broker_running:  # it writes the marker, then the entry
                yield log.judged(found)
        elif known.first_offset != first and not (
            log.is_compacted or began_before or (not log.is_whole and first < known.first_offset)
        ):
            yield finding(
                "transaction-index-mismatch", place,
                f"entry {number}: the transaction of producer {producer_id} begins at offset {known.first_offset}, "
                f"not {first}",
                expected=known.first_offset, actual=first,
            )  # fmt: skip
        elif not (
            log.is_compacted
            or not log.is_whole
            or transactions.may_be_stable(known, stable)
            or (log.first_offset is not None and stable < log.first_offset)
        ):
            yield finding(
                "transaction-index-mismatch",
                place,
                f"entry {number}: the last stable offset was {known.last_stable_offset}, not {stable}",
                expected=known.last_stable_offset,
                actual=stable,
                judgement=Judgement(severity=Severity.WARNING),
            )
    index_end = int(index.last_offsets[-1]) if len(index.last_offsets) else -1
    for missing in aborted.values():
        found = finding(
            "transaction-index-mismatch",
            where.at(offset=missing.first_offset),
            f"the aborted transaction of producer {missing.producer_id}, "
            f"{offset_range(missing.first_offset, missing.last_offset)}, is not in the index",
        )
        yield log.judged(found) if missing.last_offset > index_end else found
