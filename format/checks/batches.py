"""Batch headers: each by itself, and the chain of offsets and leader epochs through a partition's segments."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec
import numpy as np
from numpy.typing import NDArray

from format import layout
from format.findings import Certainty, Finding, Judgement, Severity, finding
from format.kernel.checks import find_chain_break, find_doubtful_header
from format.kernel.compiled import KERNEL_IS_COMPILED
from format.location import Location
from format.log.batch_chunk import Damage
from format.log.batch_table import BatchTable, HeaderTable, Int64Column, batch_location
from format.timestamps import iso_time
from format.wording import offset_range, offsets_are

_MAX_I64 = 2**63 - 1


def check_batch_headers(
    table: BatchTable, location: Location, *, latest_timestamp_ms: int | None = None
) -> Iterator[Finding]:
    """Findings for the headers of one table; timestamps above ``latest_timestamp_ms``, if known, are reported."""
    if KERNEL_IS_COMPILED:
        latest = _MAX_I64 if latest_timestamp_ms is None else latest_timestamp_ms
        if find_doubtful_header(memoryview(np.ascontiguousarray(table.columns)), latest) < 0:
            return
    is_v2 = table.magic == 2
    delta, count, base_offset = table.last_offset_delta, table.record_count, table.base_offset
    yield from _each(
        table, location, is_v2 & ((delta < 0) | (count < 0)), "batch-invalid",
        lambda row: f"last offset delta {delta[row]}, record count {count[row]}: neither can be negative",
    )  # fmt: skip
    yield from _each(
        table, location, (base_offset < 0) | (base_offset > _MAX_I64 - np.maximum(delta, 0)), "batch-invalid",
        lambda row: f"base offset {base_offset[row]} and last offset delta {delta[row]} give no valid offset",
    )  # fmt: skip
    yield from _each(
        table, location, is_v2 & (delta >= 0) & (count > delta + 1), "last-offset-delta-mismatch",
        lambda row: f"{count[row]} records cannot have a last offset delta of {delta[row]}",
    )  # fmt: skip
    yield from _each(
        table, location, is_v2 & (table.leader_epoch < layout.NO_LEADER_EPOCH), "batch-invalid",
        lambda row: f"leader epoch {table.leader_epoch[row]} is negative",
    )  # fmt: skip
    known = np.choose(table.magic, (layout.KNOWN_ATTRIBUTES_V0, layout.KNOWN_ATTRIBUTES_V1, layout.KNOWN_ATTRIBUTES_V2))
    yield from _each(
        table, location, (table.attributes & ~known) != 0, "attributes-unknown",
        lambda row: f"attributes {table.attributes[row] & 0xFFFF:#06x} have bits that no known version of format "
                    f"{table.magic[row]} uses",
    )  # fmt: skip
    yield from _producer_fields(table, location)
    yield from _control_fields(table, location)
    timestamp = table.max_timestamp
    odd = timestamp < layout.NO_TIMESTAMP
    if latest_timestamp_ms is not None:
        odd |= timestamp > latest_timestamp_ms
    yield from _each(
        table, location, odd, "timestamp-suspicious",
        lambda row: f"max timestamp {iso_time(int(timestamp[row]))} is "
                    + ("negative" if timestamp[row] < 0 else "more than a day after the file was last written"),
    )  # fmt: skip


def _producer_fields(table: BatchTable, location: Location) -> Iterator[Finding]:
    """Findings for producer id, epoch and base sequence that contradict each other.

    Without a producer id, a broker ignores epoch and sequence, and clients differ: -1, or 0 in both (several Node
    clients), or 0 as the sequence (aiokafka, the group coordinator).
    """
    is_v2 = table.magic == 2
    producer_id, producer_epoch, base_sequence = table.producer_id, table.producer_epoch, table.base_sequence
    has_producer = producer_id >= 0
    yield from _each(
        table, location,
        is_v2 & ((producer_id < layout.NO_PRODUCER_ID)
                 | (has_producer & ((producer_epoch < 0) | (base_sequence < layout.NO_SEQUENCE)))),
        "batch-invalid",
        lambda row: f"producer id {producer_id[row]}, epoch {producer_epoch[row]} and base sequence "
                    f"{base_sequence[row]} contradict each other",
    )  # fmt: skip
    # A broker refuses this from a client (LogValidator.validateBatch); coordinators write it into their own topics.
    if location.topic is not None and not location.topic.startswith(layout.INTERNAL_TOPIC_PREFIX):
        yield from _each(
            table, location,
            is_v2 & has_producer & (producer_epoch >= 0) & ~table.is_control & (base_sequence == layout.NO_SEQUENCE),
            "batch-invalid",
            lambda row: f"the batch has producer id {producer_id[row]} and no base sequence; brokers reject that",
            Severity.WARNING,
        )  # fmt: skip
    yield from _each(
        table, location, is_v2 & ~has_producer & table.is_transactional, "batch-invalid",
        lambda row: "the batch is transactional and has no producer id",
        Severity.WARNING,
    )  # fmt: skip


def _control_fields(table: BatchTable, location: Location) -> Iterator[Finding]:
    """Findings for control batches that no broker or controller writes; consumers skip their records."""
    is_control = table.is_control
    yield from _each(
        table, location, is_control & (table.codec > 0), "batch-invalid",
        lambda row: "a control batch is compressed; no broker compresses one",
    )  # fmt: skip
    has_producer = table.producer_id >= 0
    yield from _each(
        table, location, is_control & has_producer & ((table.base_sequence >= 0) | ~table.is_transactional),
        "batch-invalid",
        lambda row: "the control bit is set on a batch that is not a transaction marker: consumers skip its records",
    )  # fmt: skip
    if location.topic is not None and location.topic != layout.CLUSTER_METADATA_TOPIC:
        yield from _each(
            table, location, is_control & ~has_producer, "batch-invalid",
            lambda row: "the control bit is set on a batch without a producer id, which only metadata logs have: "
                        "consumers skip its records",
        )  # fmt: skip


def check_wrapper_offsets(table: BatchTable, headers: HeaderTable, location: Location) -> Iterator[Finding]:
    """Findings for compressed v0 messages whose offset, which no CRC covers, is not that of their last inner message.

    ``table`` has the batches of ``headers``. In v1 the inner offsets are relative to the offset of the wrapper.
    """
    stored, last_offset = headers.header_offset, table.last_offset
    wrong = table.is_wrapper & (table.record_count >= 0) & (table.magic == 0) & (stored != last_offset)
    for row in np.flatnonzero(wrong).tolist():
        yield finding(
            "record-offset-invalid",
            batch_location(location, table, row),
            f"the compressed message has offset {stored[row]}, but the last message in it has {last_offset[row]}",
            expected=int(last_offset[row]),
            actual=int(stored[row]),
        )


def _each(
    table: BatchTable,
    location: Location,
    wrong: NDArray[np.bool_],
    code: str,
    message: Callable[[int], str],
    severity: Severity | None = None,
) -> Iterator[Finding]:
    for row in np.flatnonzero(wrong).tolist():
        yield finding(code, batch_location(location, table, row), message(row), judgement=Judgement(severity=severity))


_ONLY_V2 = 1 << 2  # in the bits of magics


class EpochFell(msgspec.Struct, frozen=True):
    """A batch has a lower leader epoch than the batches before it, or none (-1); ``row`` is its number in the table."""

    row: int
    leader_epoch: int
    previous_epoch: int


class LeaderEpochs(msgspec.Struct):
    """The leader epochs of a log: ``last`` of the last batch fed, ``_current`` of the last batch that has one."""

    last: int = layout.NO_LEADER_EPOCH
    _current: int = layout.NO_LEADER_EPOCH

    def feed(self, table: BatchTable) -> list[EpochFell]:
        """Take the next batches in log order; returns where epochs fall. Formats before v2 have none.

        Only the first of the batches that follow with the lower epoch is returned: one batch whose epoch is too high
        does not make all that follow it wrong.
        """
        sums = table.sums
        if sums.lowest_epoch == sums.highest_epoch == self._current == self.last and sums.magics == _ONLY_V2:
            return []  # the usual case
        rows = np.flatnonzero((table.magic == 2) & (table.leader_epoch >= layout.NO_LEADER_EPOCH))
        if not len(rows):
            return []
        epochs = table.leader_epoch[rows].astype(np.int64)
        has_epoch = epochs >= 0
        last_with_epoch = np.maximum.accumulate(np.where(has_epoch, np.arange(len(rows)), -1))
        current = np.where(last_with_epoch >= 0, epochs[last_with_epoch], self._current)
        before = np.concatenate(([self._current], current[:-1]))
        previous = np.concatenate(([self.last], epochs[:-1]))
        fallen = np.flatnonzero((epochs < before) & (has_epoch | (previous >= 0)))
        self.last, self._current = int(epochs[-1]), int(current[-1])
        return [EpochFell(int(rows[at]), int(epochs[at]), int(before[at])) for at in fallen.tolist()]


_NEVER = 2**63
_MOST_FILLED = 1000
_NO_GAPS = np.empty(0, np.int64)


class OffsetChain:
    """Checks that each batch continues the offsets and leader epochs before it; fed segment by segment, in order.

    Gaps in offsets are no loss in a compacted log: if checkpoints and configs show compaction (``is_compacted``), or
    after the first batch with fewer records than offsets. They are likely a loss if configs show none (``is_compacted``
    is False; None for not known). Otherwise the log may have been compacted too: in the replica from which it was
    fetched, in batches of one record each, or before the configuration was changed. But compaction removes every record
    without a key, and starts at the start of a log, so that a gap after such a record is a loss.

    Where two batches contradict each other, one has a false base offset: the one for which there is room between the
    batches around it. So a batch after a gap is judged with the two after it; ``end_segment`` ends the wait for these.
    """

    def __init__(self, *, is_compacted: bool | None = None) -> None:
        self._has_no_compaction = is_compacted is False
        self._compacted_from = 0 if is_compacted else _NEVER
        self._unexplained_from = _NEVER  # the offset after the first gap that compaction may have left
        self._keyless_offset: int | None = None  # the first offset of a record without a key
        self._last_gap: int | None = None  # the offset after the last gap in the tables before
        self._gaps: Int64Column = _NO_GAPS  # the offsets after the gaps in the last table
        self.last_gap_count = 0  # the offsets that are missing before the batch after the last gap
        self.first_offset: int | None = None
        self.last_offset: int | None = None
        self._held: BatchTable | None = None  # the last batches, which are judged with those after them
        self._after_false = _NEVER - 1  # where the batch before the next one must end, if its base offset is false
        self._last_batch: BatchTable | None = None
        self._epochs = LeaderEpochs()
        self._greatest_offset = -1
        self._previous: int | None = None  # the last offset of the previous batch, which may be below the log's
        self._least_last_offset = -1  # the last offset of the previous segment, or before damage
        self._is_first_of_segment = True
        self._is_after_damage = False
        self._filled: dict[int, tuple[Location, int, int]] = {}  # gaps with one false batch, by its base offset
        self._held_again: set[int] = set()  # base offsets of batches that were repeated while they waited
        self._base_offset: int | None = None
        self._next_base_offset: int | None = None

    def may_be_compacted(self, offset: int | None = None) -> bool:
        """Whether compaction may have removed records before an offset, or before the end of the batches so far."""
        return min(self._compacted_from, self._unexplained_from) <= (_NEVER - 1 if offset is None else offset)

    @property
    def log_end_offset(self) -> int | None:
        """The offset after the last batch, None before the first."""
        return None if self.last_offset is None else self.last_offset + 1

    def start_segment(self, base_offset: int | None, next_base_offset: int | None) -> None:
        """Start the segment of this base offset, whose offsets must end before the next segment's base offset.

        None for a file whose name has no offset: then the base offset is that of its first batch.
        """
        if self._previous is None and self._base_offset is not None:
            self._previous = self._base_offset - 1  # the first segment has no batch: its offsets are missing
        self._base_offset = base_offset
        self._next_base_offset = next_base_offset
        self._is_first_of_segment = True
        self._keep_last_offset()

    def resume(self, base_offset: int | None, next_offset: int) -> None:
        """Start in the middle of the segment of that base offset, after batches that end before ``next_offset``."""
        self.start_segment(base_offset, None)
        self._is_first_of_segment = base_offset is None or next_offset <= base_offset
        if next_offset > 0:
            self._previous = self.last_offset = next_offset - 1

    def note_damage(self, damage: Damage) -> None:
        """Note that bytes are damaged here, so that the gap after them is not reported as well."""
        self._is_after_damage = True
        self._keep_last_offset()

    def _keep_last_offset(self) -> None:
        if self.last_offset is not None:
            self._least_last_offset = self.last_offset

    def has_gap(self, after: int, upto: int) -> bool:
        """Whether there is a gap between a batch that ends at ``after`` and one of the last table at ``upto``."""
        if self._last_gap is not None and self._last_gap > after:
            return True
        if self._held is not None and after < int(self._held.base_offset[0]) <= upto:
            return True
        return bool(((self._gaps > after) & (self._gaps <= upto)).any())

    def feed(
        self,
        table: BatchTable,
        location: Location,
        *,
        keyless_offset: int | None = None,
        repeated: NDArray[np.bool_] | None = None,
    ) -> Iterator[Finding]:
        """Findings for one table of batches, which must follow the tables before.

        ``keyless_offset`` is the first offset of a record without a key among its batches. Those that are ``repeated``
        are left out, but for any that goes on where the batch before it ends.
        """
        if repeated is None:
            yield from self._fed(table, location, keyless_offset)
            return
        yield from self._fed(self._without(table, repeated), location, keyless_offset)
        again = table.base_offset[repeated].tolist()
        if self._held is not None:
            self._held_again = set(again).intersection(self._held.base_offset.tolist())
        for base in again:
            yield from self._not_filled(base)

    def _not_filled(self, base_offset: int) -> Iterator[Finding]:
        """The finding for the gap around a batch that seemed to have a false base offset, and is there again."""
        filled = self._filled.pop(base_offset, None)
        if filled is not None and filled[2] < self._compacted_from:
            yield self._gap_finding(*filled, False)

    def _without(self, table: BatchTable, repeated: NDArray[np.bool_]) -> BatchTable:
        """The batches that are not repeated, and those that go on where the batch before them ends."""
        is_fed = ~repeated
        fed_to = self._previous if self._held is None else self._held.last_offset_of(len(self._held) - 1)
        for row, (base, last) in enumerate(zip(table.base_offset.tolist(), table.last_offset.tolist(), strict=True)):
            is_fed[row] |= fed_to is not None and base == fed_to + 1
            fed_to = last if is_fed[row] else fed_to
        return table.rows(is_fed)

    def _fed(self, table: BatchTable, location: Location, keyless_offset: int | None) -> Iterator[Finding]:
        if not len(table):
            return
        if self._keyless_offset is None:
            self._keyless_offset = keyless_offset
        if self.first_offset is None:
            self.first_offset = int(table.base_offset[0])
        end = None if self._held is not None else self._plain_end(table)
        if end is not None:
            self._after_false = _NEVER - 1
            self._move_to(end, _NO_GAPS)
            self._last_batch = table.rows(slice(len(table) - 1, None))
            return
        if self._held is not None:
            table, self._held = BatchTable.concatenated([self._held, table]), None
        held = len(table) - self._waiting(table)
        self._held = table.rows(slice(held, None)) if held < len(table) else None
        table = table.rows(slice(0, held))
        if len(table):
            yield from self._checked(table, location)

    def end_segment(self, location: Location) -> Iterator[Finding]:
        """Findings for the batches that wait for one after them: the segment ends here, or bytes are damaged."""
        if self._held is not None:
            table, self._held = self._held, None
            yield from self._checked(table, location)

    @property
    def end_after_gap(self) -> BatchTable | None:
        """The last batch after the one before it, if only it waits: it comes after a gap, and none follows it."""
        if self._held is None or len(self._held) > 1 or self._last_batch is None or self._is_first_of_segment:
            return None
        return BatchTable.concatenated([self._last_batch, self._held])

    @property
    def is_whole(self) -> bool:
        """Whether no offset is missing before what waits, and a record without a key shows that none was removed."""
        has_gap = self._last_gap is not None or len(self._gaps) > 0
        return not has_gap and not self.may_be_compacted() and self._keyless_offset is not None

    def place_waiting(self, last_offset: int) -> None:
        """Take the batch that waits for one that ends at ``last_offset``: its own base offset is false."""
        if self._held is not None:
            self._held = None
            self._move_to(last_offset, _NO_GAPS)

    def _waiting(self, table: BatchTable) -> int:
        """How many of the last batches must wait: one after a gap, and one that starts before that one ends."""
        count = len(table)
        if int(table.base_offset[-1]) > self._end_before(table, count - 1) + 1:
            return 1
        if count > 1 and int(table.base_offset[-1]) <= table.last_offset_of(count - 2):
            return 2 if int(table.base_offset[-2]) > self._end_before(table, count - 2) + 1 else 0
        return 0

    def _end_before(self, table: BatchTable, row: int) -> int:
        """The last offset before a batch of the next table; no offset is above it if it is unknown."""
        if row:
            return table.last_offset_of(row - 1)
        if self._previous is not None:
            return self._previous
        return _NEVER if self._base_offset is None else self._base_offset - 1

    def _checked(self, table: BatchTable, location: Location) -> Iterator[Finding]:
        base, last = table.base_offset, table.last_offset
        sparse = table.is_sparse & (table.crc_valid != 0)
        if self._compacted_from == _NEVER and sparse.any():
            self._compacted_from = int(base[int(np.argmax(sparse))])
        yield from self._check_segment(table, location)
        previous = np.empty(len(table), np.int64)
        previous[1:] = last[:-1]
        previous[0] = -1 if self._previous is None else self._previous
        known = np.ones(len(table), bool)
        known[0] = self._previous is not None
        falls = np.flatnonzero(known & (base <= previous))
        is_false = np.zeros(len(table), bool)  # single batches with a false base offset
        for row in falls.tolist():
            false_row, found = self._fall(table, location, row, int(previous[row]))
            is_false[false_row] = True
            yield found
        for row in np.flatnonzero(is_false[:-1] & (base[1:] - 1 > previous[:-1])).tolist()[:_MOST_FILLED]:
            if len(self._filled) < _MOST_FILLED:
                place = batch_location(location, table, row)
                self._filled[int(base[row])] = place, int(previous[row]), int(base[row + 1])
                if int(base[row]) in self._held_again:
                    yield from self._not_filled(int(base[row]))
        # The base offset of a compressed v0/v1 message is known only after it was decompressed.
        gaps = known & (base > previous) & (base - 1 != previous) & (table.record_count >= 0)
        # After a batch that is repeated, the next one goes on where the log was before.
        gaps &= base - 1 != np.maximum(np.maximum.accumulate(previous), self._greatest_offset)
        # The offsets of a batch with a false base offset are in the gap around it.
        right_ends = np.where(is_false, previous + last - base + 1, _NEVER - 1)
        gaps &= ~is_false & (base - 1 < np.concatenate(([self._after_false], right_ends[:-1])))
        self._after_false = int(right_ends[-1])
        after_gaps = base[gaps]
        if len(after_gaps):
            self.last_gap_count = int(after_gaps[-1]) - int(previous[gaps][-1]) - 1
        elif self._previous is None and self._base_offset is not None:
            self.last_gap_count = max(0, int(base[0]) - self._base_offset)
        self._greatest_offset = max(self._greatest_offset, int(last.max()))
        for row in np.flatnonzero(gaps).tolist():
            yield from self._gap(table, location, row, int(previous[row]), int(base[row]))
        for event in self._epochs.feed(table):
            yield finding(
                "leader-epoch-decreasing",
                batch_location(location, table, event.row),
                f"leader epoch {event.leader_epoch} follows {event.previous_epoch}"
                if event.leader_epoch >= 0
                else f"the batch has no leader epoch and follows one of epoch {event.previous_epoch}",
                expected=event.previous_epoch,
                actual=event.leader_epoch,
                judgement=Judgement(severity=None if event.leader_epoch >= 0 else Severity.WARNING),
            )
        self._last_batch = table.rows(slice(len(table) - 1, None))
        self._move_to(int(last[-1]), after_gaps)

    def _fall(self, table: BatchTable, location: Location, row: int, previous: int) -> tuple[int, Finding]:
        """The batch with the false base offset where offsets do not rise to the batch in ``row``, and the finding."""
        base, last = table.base_offset, table.last_offset
        false_row, expected, doubt = row, previous + 1, ""
        message = f"the batch starts at offset {base[row]}, but the one before it ends at {previous}"
        if row:
            before = self._end_before(table, row - 1)
            room_before = int(base[row]) - before - 1 - (previous - int(base[row - 1]) + 1)
            following = int(base[row + 1]) if row + 1 < len(table) else self._next_base_offset
            if row + 1 == len(table) and self._held is not None:
                following = int(self._held.base_offset[0])
            room_here = 1  # unknown
            if following is not None:
                room_here = following - previous - 1 - (int(last[row]) - int(base[row]) + 1)
            if room_before >= 0 and (room_here < 0 or (room_before == 0) > (room_here == 0)):
                false_row, expected = row - 1, before + 1
                message = (
                    f"the batch has {offset_range(int(base[row - 1]), previous)}, but the one before it ends at "
                    f"{before} and the one after it starts at {base[row]}"
                )
            elif room_before >= 0 and room_here >= 0 and (room_before == 0) == (room_here == 0):
                doubt = (
                    f"; this one or that at position {table.position[row - 1]} has a false offset, which is not known"
                )
        place = batch_location(location, table, false_row)
        actual = int(base[false_row])
        return false_row, finding("offset-not-increasing", place, message + doubt, expected=expected, actual=actual)

    def _plain_end(self, table: BatchTable) -> int | None:
        """The last offset of a table in which the compiled kernel finds nothing wrong, else None."""
        if not KERNEL_IS_COMPILED or self._previous is None or self._base_offset is None:
            return None
        first, last = int(table.base_offset[0]), table.last_offset_of(len(table) - 1)
        if first != self._previous + 1 or first < self._base_offset:
            return None
        if last - self._base_offset > layout.MAX_RELATIVE_OFFSET:
            return None
        if (self._is_first_of_segment and first > self._base_offset) or (
            self._next_base_offset is not None and last >= self._next_base_offset
        ):
            return None
        columns = memoryview(np.ascontiguousarray(table.columns))
        return last if find_chain_break(columns, first, self._epochs.last) < 0 else None

    def _move_to(self, last_offset: int, gaps: Int64Column) -> None:
        """Note the end of a table, and the offsets after the gaps in it."""
        self._greatest_offset = max(self._greatest_offset, last_offset)
        if len(self._gaps):
            self._last_gap = int(self._gaps[-1])
        self._gaps = gaps
        self._previous = last_offset
        self.last_offset = max(last_offset, self._least_last_offset)
        self._is_first_of_segment = False
        self._is_after_damage = False

    def _check_segment(self, table: BatchTable, location: Location) -> Iterator[Finding]:
        base, last = table.base_offset, table.last_offset
        if self._base_offset is None:
            self._base_offset = int(base[0])
        starts_late = self._is_first_of_segment and int(base[0]) > self._base_offset
        if starts_late and int(base[0]) < self._compacted_from and table.record_count[0] >= 0:
            yield finding(
                "file-name-mismatch",
                batch_location(location, table, 0),
                f"the first batch starts at offset {base[0]}, but the file's name says {self._base_offset}",
                expected=self._base_offset,
                actual=int(base[0]),
                judgement=Judgement(severity=Severity.INFO, certainty=Certainty.POSSIBLE),
            )
        outside = (base < self._base_offset) | (last - self._base_offset > layout.MAX_RELATIVE_OFFSET)
        if self._next_base_offset is not None:
            outside |= last >= self._next_base_offset
        for row in np.flatnonzero(outside).tolist():
            end = " on" if self._next_base_offset is None else f" to {self._next_base_offset - 1}"
            yield finding(
                "offset-out-of-segment",
                batch_location(location, table, row),
                f"{offsets_are(int(base[row]), int(last[row]))} outside the segment, which may have the offsets from "
                f"{self._base_offset}{end}",
            )

    def end_findings(self, location: Location) -> Iterator[Finding]:
        """The finding for offsets that are missing before a last segment without batches: the log once ended there."""
        base, previous = self._base_offset, self._previous
        if not self._is_first_of_segment or self._is_after_damage or previous is None or base is None:
            return
        if previous + 1 < base < self._compacted_from:
            yield self._gap_finding(location.at(offset=base), previous, base, True)

    def _gap(self, table: BatchTable, location: Location, row: int, previous: int, base: int) -> Iterator[Finding]:
        if base >= self._compacted_from or (row == 0 and self._is_after_damage):
            return
        between_segments = row == 0 and self._is_first_of_segment
        yield self._gap_finding(batch_location(location, table, row), previous, base, between_segments)

    def _gap_finding(self, place: Location, previous: int, base: int, between_segments: bool) -> Finding:
        code, message = "offset-gap", f"{offsets_are(previous + 1, base - 1)} in no batch here"
        if between_segments:
            code = "segment-missing"
        if self._keyless_offset is None or self._keyless_offset > previous:
            self._unexplained_from = min(self._unexplained_from, base)
            if self._has_no_compaction:
                message += ": the metadata does not have the topic as compacted, so they are lost, unless it was before"
                return finding(code, place, message, judgement=Judgement(Severity.WARNING, Certainty.LIKELY))
            return finding(
                code,
                place,
                f"{message}: compaction removed the records, or they are lost; neither is proven, as the "
                "cleaner-offset-checkpoint does not cover the gap and no record before it lacks a key",
                judgement=Judgement(
                    severity=Severity.INFO,
                    certainty=Certainty.POSSIBLE,
                    next_step="Compare with another replica, if the topic was never compacted.",
                ),
            )
        return finding(
            code,
            place,
            f"{message}, and the record without a key at offset {self._keyless_offset} shows that the log was not "
            "compacted",
            lost_offsets=(previous + 1, base - 1),
            judgement=Judgement(severity=None if between_segments else Severity.WARNING, certainty=Certainty.LIKELY),
        )
