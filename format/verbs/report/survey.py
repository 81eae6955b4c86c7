"""Collects facts for a report from batches and findings: totals, histograms, epochs, places of damage, a time line.

verify passes each chunk to ``ReportSurvey.see`` before it checks it; tables of batches that a scan wrote go to ``add``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from format import layout
from format.findings import Finding, Severity
from format.layout import CLUSTER_METADATA_TOPIC, TRANSACTION_STATE_TOPIC
from format.limits import Limits
from format.location import Location
from format.log.batch_table import BatchTable, Int64Column
from format.node.log_dir import Checkpoints
from format.node.partition import Partition, parse_partition_dir
from format.rows.record_rows import Row
from format.scan.protocol import LogUnit
from format.state.log_headers import Headers, LogTotals
from format.verbs.boot.steps import ReadLog
from format.verbs.txns.partition_transactions import (
    ENDED_COLUMNS,
    PartitionTransactions,
    forget_below_start,
    take_snapshot,
)
from format.verbs.txns.txns import Transactions
from format.verbs.verify.walk import WalkedChunk, sound_batches

_SECOND_MS = 1_000
#: The most pairs of topic and time that are kept; then the intervals of time are doubled.
_MOST_TIMES = 24_000
_MOST_RELATIVE = layout.MAX_RELATIVE_OFFSET
#: The number of ranges of offsets by which the bytes of one partition are added up.
OFFSET_RANGES = 128
#: The number of classes of batch sizes, which are powers of two.
SIZE_CLASSES = 40


class BytesByTime(msgspec.Struct):
    """Bytes and records by topic and interval of the batches' largest timestamps.

    Only intervals with batches are kept, so that a few impossible timestamps cost nothing.
    """

    width_ms: int = _SECOND_MS
    sums: dict[tuple[int, int], list[int]] = msgspec.field(default_factory=dict)  # topic number, time -> bytes, records

    def add(self, topic: int, table: BatchTable) -> None:
        times = table.max_timestamp
        known = times >= 0
        sizes, counts = table.size_bytes, np.maximum(table.record_count, 0)
        if not known.all():
            times, sizes, counts = times[known], sizes[known], counts[known]
        if not len(times):
            return
        numbers, places = np.unique(times // self.width_ms, return_inverse=True)
        all_bytes = np.bincount(places, weights=sizes)
        all_records = np.bincount(places, weights=counts)
        for number, size_bytes, records in zip(*map(np.ndarray.tolist, (numbers, all_bytes, all_records)), strict=True):
            found = self.sums.setdefault((topic, number), [0, 0])
            found[0] += int(size_bytes)
            found[1] += int(records)
        while len(self.sums) > _MOST_TIMES:
            self.width_ms *= 2
            before, self.sums = self.sums, {}
            for (topic, number), (size_bytes, records) in before.items():
                found = self.sums.setdefault((topic, number // 2), [0, 0])
                found[0] += size_bytes
                found[1] += records


class BytesByOffset(msgspec.Struct):
    """The bytes of one log by ranges of offsets; the ranges grow with the log."""

    start: int | None = None
    width: int = 1
    sums: NDArray[np.int64] = msgspec.field(default_factory=lambda: np.zeros(OFFSET_RANGES, np.int64))

    def add(self, table: BatchTable, segment_base_offset: int) -> None:
        """Add the batches whose offsets their segment can hold, each spread evenly over its offsets."""
        offsets, sizes = table.base_offset, table.size_bytes
        most = segment_base_offset + _MOST_RELATIVE
        sound = (offsets >= segment_base_offset) & (offsets <= most)
        if self.start is not None:
            sound &= offsets >= self.start
        # The last offset of a batch with a wrong CRC may be any.
        deltas = np.where(table.crc_valid == 0, 0, np.clip(table.last_offset_delta, 0, None))
        if not sound.all():
            offsets, sizes, deltas = offsets[sound], sizes[sound], deltas[sound]
        if not len(offsets):
            return
        deltas = np.minimum(deltas, most - offsets)
        is_first = self.start is None
        if self.start is None:
            self.start = int(offsets.min())
        relative = offsets - self.start
        furthest = int((relative + deltas).max())
        if is_first:
            self.width = 1 << (furthest // OFFSET_RANGES).bit_length()
        while furthest >= self.width * OFFSET_RANGES:
            self.sums = np.concatenate((self.sums.reshape(-1, 2).sum(axis=1), np.zeros(OFFSET_RANGES // 2, np.int64)))
            self.width *= 2
        shift = self.width.bit_length() - 1  # the width is a power of two, and a shift is quicker
        places = relative >> shift
        counts = ((relative + deltas) >> shift) - places + 1
        if (counts > 1).any():
            relative, deltas, sizes = (np.repeat(each, counts) for each in (relative, deltas, sizes))
            first_rows = np.cumsum(counts) - counts
            places = np.repeat(places, counts) + np.arange(len(relative)) - np.repeat(first_rows, counts)
            sizes = _bytes_before(places + 1, shift, relative, deltas, sizes) - _bytes_before(
                places, shift, relative, deltas, sizes
            )
        self.sums += np.bincount(places, weights=sizes, minlength=OFFSET_RANGES).astype(np.int64)

    def ranges(self) -> list[tuple[int, int, int]]:
        """First offset, last offset and bytes of each range up to the last that has any."""
        if self.start is None:
            return []
        last = int(np.flatnonzero(self.sums)[-1]) if self.sums.any() else -1
        return [
            (self.start + number * self.width, self.start + (number + 1) * self.width - 1, int(self.sums[number]))
            for number in range(last + 1)
        ]


def _bytes_before(
    place: Int64Column, shift: int, relative: Int64Column, deltas: Int64Column, sizes: Int64Column
) -> Int64Column:
    """The part of each batch's bytes that lies on offsets before a range."""
    before: Int64Column = sizes * np.clip((place << shift) - relative, 0, deltas + 1) // (deltas + 1)
    return before


class BatchSizes(msgspec.Struct):
    """The number, bytes and records of batches by codec and power of two of their size."""

    sums: NDArray[np.int64] = msgspec.field(
        default_factory=lambda: np.zeros((3, len(layout.CODEC_BITS_NAMES) * SIZE_CLASSES), np.int64)
    )

    def add(self, table: BatchTable) -> None:
        sizes: Int64Column = table.size_bytes
        powers = np.clip(np.frexp(sizes.astype(np.float64))[1] - 1, 0, SIZE_CLASSES - 1)
        cells = table.codec * SIZE_CLASSES + powers
        length = self.sums.shape[1]
        self.sums[0] += np.bincount(cells, minlength=length)
        self.sums[1] += np.bincount(cells, weights=sizes, minlength=length).astype(np.int64)
        self.sums[2] += np.bincount(cells, weights=np.maximum(table.record_count, 0), minlength=length).astype(np.int64)

    def rows(self) -> list[tuple[str, int, int, int, int]]:
        """Codec, least size, batches, bytes and records of each class that has any."""
        found = []
        for cell in np.flatnonzero(self.sums[0]).tolist():
            codec, power = divmod(cell, SIZE_CLASSES)
            counts = self.sums[:, cell].tolist()
            found.append((layout.CODEC_BITS_NAMES[codec], 1 << power, *counts))
        return found


KINDS = ("damage", "transaction", "leader_epoch", "metadata", "segment")
#: The most events of each kind that are kept, the latest ones; the others are counted.
_MOST_EVENTS = 1_000
#: The number of undamaged partitions, the largest ones, whose bytes are shown by offset.
LARGEST = 4
#: The most damaged partitions whose bytes are shown by offset, and the most places of damage in each.
MOST_DAMAGED = 60
_MOST_PLACES = 200
#: The most findings that wait for their batches.
_MOST_WAITING = 100_000
_MOST_ENDED = 1_000
_MOST_EPOCHS = 100
_FIRST_OFFSET, _LAST_OFFSET = ENDED_COLUMNS.index("first_offset"), ENDED_COLUMNS.index("last_offset")
_IS_ABORTED = ENDED_COLUMNS.index("is_aborted")


class Timeline(msgspec.Struct):
    """Leader epochs, metadata changes, transactions, segment rolls and damage by kind; what has no time is left out."""

    events: dict[str, list[Row]] = msgspec.field(default_factory=lambda: {kind: [] for kind in KINDS})
    counts: dict[str, int] = msgspec.field(default_factory=lambda: dict.fromkeys(KINDS, 0))

    def add(
        self, kind: str, timestamp: int | None, where: Location, detail: str, severity: Severity = Severity.INFO
    ) -> None:
        """Add an event of one of KINDS."""
        if timestamp is None or timestamp < 0:
            return
        self.counts[kind] += 1
        events = self.events[kind]
        events.append((timestamp, kind, where.topic, where.partition, where.offset, detail, severity.label, where.path))
        if len(events) >= 2 * _MOST_EVENTS:
            events.sort(key=_time)
            del events[:-_MOST_EVENTS]

    def segment(self, where: Location, timestamp: int) -> None:
        """Add the first batch of a segment."""
        place = where.at(offset=where.base_offset)
        self.add("segment", timestamp, place, f"segment {where.base_offset} begins")

    def transaction(self, values: dict[str, Any]) -> None:
        """Add a row of columns.TRANSACTION that is open or was aborted."""
        where = Location(values["path"], values["topic"], values["partition"], offset=values["first_offset"])
        name = values["transactional_id"] or f"producer {values['producer_id']}"
        if values["state"] != "open":
            self.add("transaction", values["last_timestamp"], where, f"a transaction of {name} is aborted")
            return
        hangs = bool(values["is_hanging"])
        words = f"{name} begins a transaction that {'hangs' if hangs else 'is open'}"
        severity = Severity.ERROR if hangs else Severity.WARNING
        self.add("transaction", values["start_timestamp"], where, words, severity)

    def metadata(self, path: str, values: dict[str, Any]) -> None:
        """Add a row of columns.METADATA_CHANGE."""
        where = Location(path, CLUSTER_METADATA_TOPIC, 0, offset=values["offset"])
        self.add("metadata", values["timestamp"], where, f"{values['record_type']}: {values['subject']}")

    def rows(self) -> list[Row]:
        """Rows of columns.TIMELINE_EVENT by time, the latest of each kind."""
        kept = [row for events in self.events.values() for row in sorted(events, key=_time)[-_MOST_EVENTS:]]
        return sorted(kept, key=_time)

    @property
    def total(self) -> int:
        return sum(self.counts.values())


def _time(row: Row) -> tuple[int, str]:
    return row[0], row[1]


class DamagedPlace(msgspec.Struct):
    """The offsets of a finding; ``last_offset`` is the last lost offset."""

    code: str
    severity: Severity
    offset: int
    last_offset: int
    timestamp: int | None


class SurveyedPartition(msgspec.Struct):
    """The facts of one partition."""

    path: Path
    totals: LogTotals = msgspec.field(default_factory=LogTotals)
    record_count: int = 0
    by_offset: BytesByOffset | None = msgspec.field(default_factory=BytesByOffset)
    places: list[DamagedPlace] = msgspec.field(default_factory=list)
    worst: Severity | None = None
    finding_count: int = 0
    committed_count: int = 0  # of the transactions that were dropped after they had ended
    aborted_count: int = 0
    last_log: Path | None = None
    last_log_timestamp: int = -1  # the largest timestamp in ``last_log``
    log_end_offset: int = 0
    first_open_offset: int | None = None
    epochs: dict[int, tuple[int, int, Location]] = msgspec.field(default_factory=dict)  # epoch -> offset, time, place

    @property
    def log_bytes(self) -> int:
        """The bytes of all batches."""
        return sum(self.totals.codec_bytes)

    def place(self, found: Finding, offset: int | None, timestamp: int | None) -> DamagedPlace | None:
        """Add the place of a finding; None for one without an offset, and where there are too many."""
        first, last = found.lost_offsets or (offset, offset)
        if first is None or last is None or len(self.places) >= _MOST_PLACES:
            return None
        self.places.append(DamagedPlace(found.code, found.severity, first, last, timestamp))
        return self.places[-1]


class _Placed(msgspec.Struct):
    """A finding at a position of a log, and the batch at or before it among those seen so far."""

    found: Finding
    place: DamagedPlace | None
    position: int = -1
    offset: int | None = None
    timestamp: int | None = None

    def see(self, table: BatchTable) -> None:
        row = table.row_at(self.found.location.position or 0) if len(table) else -1
        if row >= 0 and int(table.position[row]) > self.position:
            self.position, self.offset = int(table.position[row]), int(table.base_offset[row])
            self.timestamp = int(table.max_timestamp[row])


class _Current(msgspec.Struct):
    """The partition that verify reads, and its last table."""

    seen: SurveyedPartition
    partition: Partition
    transactions: PartitionTransactions | None
    topic: int
    log: LogUnit | None = None
    table: BatchTable = msgspec.field(default_factory=BatchTable.empty)


class ReportSurvey(msgspec.Struct):
    """The facts of all partitions that were read.

    Of those that ``see`` reads, which come one after another, large state exists for only one at a time.
    """

    limits: Limits
    transactions: Transactions = msgspec.field(default_factory=Transactions)
    timeline: Timeline = msgspec.field(default_factory=Timeline)
    by_time: BytesByTime = msgspec.field(default_factory=BytesByTime)
    sizes: BatchSizes = msgspec.field(default_factory=BatchSizes)
    partitions: dict[Path, SurveyedPartition] = msgspec.field(default_factory=dict)
    read_logs: dict[Path, ReadLog] = msgspec.field(default_factory=dict)  # logs that a broker's start may recover
    topics: dict[str, int] = msgspec.field(default_factory=dict)  # numbers by name, in the order of appearance
    _by_offset: list[SurveyedPartition] = msgspec.field(default_factory=list)  # those whose bytes by offset are kept
    _find: Callable[[Path], tuple[Partition, Checkpoints]] | None = None
    _last_place: tuple[str, Path] = ("", Path())
    _waiting: dict[str, list[_Placed]] = msgspec.field(default_factory=dict)  # by path, until their batches are seen
    _waiting_count: int = 0
    _current: _Current | None = None

    def begin(self, find: Callable[[Path], tuple[Partition, Checkpoints]]) -> None:
        """Set the function that looks up the partitions that follow."""
        self._end_target()
        self._find = find

    def see(self, log: LogUnit, walked: WalkedChunk) -> None:
        """Add a chunk of a segment; chunks come in log order."""
        if log.segment is None or self._find is None:
            return
        current = self._current
        if current is None or current.seen.path != log.path.parent:
            current = self._next_partition(*self._find(log.path.parent))
        is_first = current.log is not log
        table = walked.table
        current.log, current.table = log, table
        self._note_read(log, walked)
        if not len(table):
            return
        seen = current.seen
        if is_first:
            seen.last_log, seen.last_log_timestamp = log.path, -1
        seen.last_log_timestamp = max(seen.last_log_timestamp, table.sums.max_timestamp)
        seen.log_end_offset = table.last_offset_of(len(table) - 1) + 1
        base_offset = log.location.base_offset or 0
        sound = sound_batches(table)
        self._add(seen, current.topic, log.location, table, sound)
        if is_first and base_offset:
            self.timeline.segment(log.location, table.value("max_timestamp", 0))
        if current.transactions is not None:
            current.transactions.feed(Headers(sound, walked.markers), base_offset, None)
            _forget_ended(current.transactions, seen)

    def add(self, where: Location, table: BatchTable) -> None:
        """Add batches that a scan wrote of the log at ``where``; the partitions may come in any order."""
        seen = self.partition(Path(where.path).parent)
        self._add(seen, self.topic(where.topic or where.path), where, table, sound_batches(table))

    def partition(self, path: Path) -> SurveyedPartition:
        """The facts of a partition that scans wrote of; its bytes are shown by offset only where a caller says so."""
        return self.partitions.setdefault(path, SurveyedPartition(path, by_offset=None))

    def topic(self, name: str) -> int:
        return self.topics.setdefault(name, len(self.topics))

    def _add(self, seen: SurveyedPartition, topic: int, where: Location, table: BatchTable, sound: BatchTable) -> None:
        """Add batches to the sums."""
        for placed in self._waiting.get(where.path, ()):
            placed.see(table)
        seen.totals.add(table, where.base_offset)
        seen.record_count += table.sums.record_count
        self.by_time.add(topic, table)
        self.sizes.add(table)
        if seen.by_offset is not None:
            seen.by_offset.add(table, where.base_offset or 0)
        if not len(sound):
            return
        sums = sound.sums
        known = seen.epochs.get(sums.lowest_epoch)
        if known is not None and sums.lowest_epoch == sums.highest_epoch and sums.least_offset >= known[0]:
            return  # the usual case
        epochs, rows = np.unique(sound.leader_epoch, return_index=True)
        for epoch, row in zip(epochs.tolist(), rows.tolist(), strict=True):
            offset = int(sound.base_offset[row])
            known = seen.epochs.get(epoch)
            if epoch >= 0 and (len(seen.epochs) < _MOST_EPOCHS if known is None else offset < known[0]):
                place = where.at(int(sound.position[row]), None, offset)
                seen.epochs[epoch] = offset, int(sound.max_timestamp[row]), place

    def _note_read(self, log: LogUnit, walked: WalkedChunk) -> None:
        """Add a chunk to the summary of a log for boot, which then does not read the log again."""
        read = self.read_logs.get(log.path)
        if read is None:
            if log.location.base_offset is None:
                return
            read = self.read_logs[log.path] = ReadLog(log.location.base_offset)
        # Offsets of opened wrappers are no longer those of the headers.
        read.add(walked.table, is_damaged=walked.damage is not None or walked.table.sums.wrappers > 0)

    def _next_partition(self, partition: Partition, checkpoints: Checkpoints) -> _Current:
        self._end_partition()
        seen = self.partitions.setdefault(partition.path, SurveyedPartition(partition.path))
        transactions = None
        if partition.mark is None and partition.topic not in (TRANSACTION_STATE_TOPIC, CLUSTER_METADATA_TOPIC):
            transactions = PartitionTransactions.of_partition(partition, checkpoints)
            list(take_snapshot(transactions, self.limits))  # verify reports its findings
        topic = self.topic(partition.topic or partition.path.name)
        self._current = _Current(seen, partition, transactions, topic)
        return self._current

    def find(self, found: Finding) -> None:
        """Add a finding; one at a position of a log gets the time of the batch there, seen before it or later."""
        where, current = found.location, self._current
        directory = self._directory_of(where.path)
        seen = self.partitions.setdefault(directory, SurveyedPartition(directory))
        seen.finding_count += 1
        seen.worst = found.severity if seen.worst is None else max(seen.worst, found.severity)
        if found.severity < Severity.WARNING:
            return
        placed = _Placed(found, seen.place(found, where.offset, None))
        if where.position is None:
            return
        if current is not None and current.log is not None and where.path == str(current.log.path):
            placed.see(current.table)
            self._settle(seen, placed)
        elif self._waiting_count < _MOST_WAITING:
            self._waiting_count += 1
            self._waiting.setdefault(where.path, []).append(placed)

    def _settle(self, seen: SurveyedPartition, placed: _Placed) -> None:
        """Take the time of a finding, and its offset if it has none, from the batch at or before it."""
        if placed.position < 0:
            return
        timestamp = placed.timestamp if placed.timestamp is not None and placed.timestamp >= 0 else None
        found = placed.found
        self.timeline.add("damage", timestamp, found.location, f"{found.code}: {found.message}", found.severity)
        if placed.place is not None:
            placed.place.timestamp = timestamp
        elif found.location.offset is None and found.lost_offsets is None:
            seen.place(found, placed.offset, timestamp)

    def _directory_of(self, place: str) -> Path:
        """The partition directory of a file, or the directory itself; findings about one place often follow another."""
        if place != self._last_place[0]:
            path = Path(place)
            self._last_place = place, path.parent if parse_partition_dir(path.name) is None else path
        return self._last_place[1]

    def finish(self) -> None:
        """End the last partition, and complete the time line."""
        self._end_target()
        for seen in self.partitions.values():
            for epoch, (_, timestamp, place) in sorted(seen.epochs.items()):
                self.timeline.add("leader_epoch", timestamp, place, f"leader epoch {epoch} begins")
            seen.epochs = {}

    def _end_target(self) -> None:
        self._end_partition()
        self._settle_waiting(list(self._waiting))

    def _settle_waiting(self, paths: Iterable[str]) -> None:
        for path in paths:
            placed = self._waiting.pop(path, [])
            self._waiting_count -= len(placed)
            for each in placed:
                self._settle(self.partitions[self._directory_of(path)], each)

    def _end_partition(self) -> None:
        """End the current partition, and drop what is not needed of it any more."""
        current, self._current = self._current, None
        if current is None:
            return
        self._settle_waiting([path for path in self._waiting if self._directory_of(path) == current.seen.path])
        if current.transactions is not None:
            forget_below_start(current.transactions, self.limits)
            current.seen.first_open_offset = current.transactions.state.first_open_offset()
            current.transactions.last_of_producer = {
                each: current.transactions.last_of_producer[each]
                for each in current.transactions.state.open
                if each in current.transactions.last_of_producer
            }
            self.transactions.keep(current.transactions)
        self._forget_offsets(current)

    def _forget_offsets(self, current: _Current) -> None:
        """Keep the bytes by offset of some damaged partitions, and of the largest; ``current`` was read last."""
        ended = current.seen
        shown = [each for each in self._by_offset if not each.places]
        if not ended.places and len(shown) == LARGEST and ended.log_bytes <= shown[-1].log_bytes:
            ended.by_offset = None  # the usual case
            return
        kept = [each for each in self._by_offset if each is not ended]
        if ended.by_offset is not None:
            kept.append(ended)
        sound = sorted((each for each in kept if not each.places), key=lambda each: -each.log_bytes)
        damaged = sorted(
            (each for each in kept if each.places), key=lambda each: (-(each.worst or 0), -len(each.places))
        )
        self._by_offset = [*sound[:LARGEST], *damaged[:MOST_DAMAGED]]
        for each in (*sound[LARGEST:], *damaged[MOST_DAMAGED:]):
            each.by_offset = None

    def header_times(self) -> dict[Path, tuple[int, int]]:
        """The largest timestamp and the end offset of the last log of each partition."""
        return {
            each.last_log: (each.last_log_timestamp, each.log_end_offset)
            for each in self.partitions.values()
            if each.last_log is not None
        }


def _forget_ended(found: PartitionTransactions, seen: SurveyedPartition) -> None:
    """Drop ended transactions, except the last ones and those past the high watermark, and count the dropped ones."""
    if sum(map(len, found.ended)) <= 2 * _MOST_ENDED:
        return
    table = np.concatenate(found.ended)
    high_watermark = found.offsets.high_watermark
    keeps = np.zeros(len(table), np.bool_)
    keeps[-_MOST_ENDED:] = True
    if high_watermark is not None:
        keeps |= (table[:, _LAST_OFFSET] >= high_watermark) & (table[:, _FIRST_OFFSET] >= 0)
    gone = table[~keeps]
    aborted = int((gone[:, _IS_ABORTED] == 1).sum())
    seen.aborted_count += aborted
    seen.committed_count += len(gone) - aborted
    found.ended = [table[keeps]]
