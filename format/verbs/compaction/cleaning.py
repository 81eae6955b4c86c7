"""Simulates a run of the cleaner: builds the map of the dirty keys, then filters every segment by it.

Source: storage Cleaner.doClean, buildOffsetMap, cleanInto and shouldRetainRecord; clients MemoryRecords.filterTo. The
cleaner checks no CRCs, and neither does this: a batch counts as it is if its records can be read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from heapq import heappop, heappush

import msgspec
import numpy as np
from numpy.typing import NDArray

from format import layout
from format.findings import Finding
from format.limits import DEFAULT_LIMITS, MIB, Limits
from format.location import Location
from format.log.batch_chunk import BatchChunk
from format.log.control_records import ControlRecord, first_control_records
from format.log.read_records import record_tables
from format.log.record_table import RecordProblem, RecordTable
from format.scan.protocol import Depth, LogUnit, Needs
from format.scan.selection import EVERYTHING
from format.state.log_headers import log_chunks

Int64Column = NDArray[np.int64]
Bools = NDArray[np.bool_]


class CleanedTransactions(msgspec.Struct):
    """The transactions of batches in log order; ``add_aborted`` takes their transaction index entries beforehand."""

    _aborted: list[tuple[int, int]] = msgspec.field(default_factory=list)  # first offset and producer id
    _known: set[tuple[int, int]] = msgspec.field(default_factory=set)
    # producer id -> whether a batch of it was seen
    _ongoing_aborted: dict[int, bool] = msgspec.field(default_factory=dict)
    _ongoing_committed: set[int] = msgspec.field(default_factory=set)

    def add_aborted(self, entries: Iterable[tuple[int, int]]) -> None:
        """Add aborted transactions: the first offset and the producer of each."""
        for entry in entries:
            if entry not in self._known:
                self._known.add(entry)
                heappush(self._aborted, entry)

    def is_aborted(self, producer_id: int, last_offset: int) -> bool:
        """Whether a transactional data batch belongs to an aborted transaction."""
        self._begin_aborted_up_to(last_offset)
        if producer_id in self._ongoing_aborted:
            self._ongoing_aborted[producer_id] = True
            return True
        self._ongoing_committed.add(producer_id)
        return False

    def is_needless(self, producer_id: int, last_offset: int, marker: ControlRecord | None) -> bool:
        """Whether a control batch may be removed: its transaction has no batch left, or it is empty already."""
        self._begin_aborted_up_to(last_offset)
        if marker is None:
            return True
        if marker.type_name == "ABORT":
            return not self._ongoing_aborted.pop(producer_id, False)
        if marker.type_name == "COMMIT":
            was_seen = producer_id in self._ongoing_committed
            self._ongoing_committed.discard(producer_id)
            return not was_seen
        return False

    def _begin_aborted_up_to(self, offset: int) -> None:
        while self._aborted and self._aborted[0][0] <= offset:
            _, producer_id = heappop(self._aborted)
            self._ongoing_aborted.setdefault(producer_id, False)


def rebuilt_size(records: RecordTable, keep: NDArray[np.bool_], horizons: Int64Column, sizes: Int64Column) -> None:
    """Add to ``sizes`` (by batch row) the sizes of the kept records, and of the header with a batch's first one.

    ``horizons`` has the delete horizon that each batch has or gets, -1 for none.
    """
    rows = np.flatnonzero(keep)
    if not len(rows):
        return
    batches = records.batches
    batch = records.batch[rows]
    is_first = np.append(True, batch[1:] != batch[:-1])
    timestamps = records.timestamp[rows]
    first_of = np.maximum.accumulate(np.where(is_first, np.arange(len(rows)), 0))
    base = np.where(horizons[batch] >= 0, horizons[batch], timestamps[first_of])
    is_v2 = batches.magic[batch] == 2
    old = records.size_bytes[rows]
    body = old - _body_prefix(old)
    body += _varlong_size(timestamps - base) - _varlong_size(timestamps - batches.base_timestamp[batch])
    new = np.where(is_v2, body + _varlong_size(body), old)
    np.add.at(sizes, batch, new)
    starts = np.unique(batch[is_v2])
    begun = starts if not records.is_continued else starts[starts != int(batch[0])]
    sizes[begun] += layout.RECORD_BATCH.size_bytes


def _varlong_size(values: Int64Column) -> Int64Column:
    """The bytes of a zigzag varint of each value."""
    zigzag = ((values << 1) ^ (values >> 63)).astype(np.uint64)
    size = np.ones(len(values), np.int64)
    for bits in range(7, 64, 7):
        size += zigzag >= np.uint64(1 << bits)
    return size


def _body_prefix(sizes: Int64Column) -> Int64Column:
    """The bytes of the length field of records whose sizes, with that field, are given."""
    prefix = np.ones(len(sizes), np.int64)
    for length in range(1, 6):
        # A body of b bytes has a length of n bytes where zigzag(b) < 2**(7n).
        prefix = np.where(sizes - length >= 1 << (7 * length - 1), length + 1, prefix)
    return prefix


#: How many keys wait at least until they are merged into the map.
_LEAST_PENDING = 256 * 1024


def key_hashes(table: RecordTable) -> Int64Column:
    """The hash of each record's key; of records without one, any number."""
    content = bytes(table.buffer)
    starts, lengths = table.key_start.tolist(), table.key_length.tolist()
    spans = zip(starts, lengths, strict=True)
    return np.fromiter((hash(content[at : at + max(size, 0)]) for at, size in spans), np.int64, len(starts))


class KeyMap(msgspec.Struct):
    """The latest offset of each key: 64-bit hashes and offsets in sorted columns, filled in log order.

    The cleaner compares 128-bit hashes, and never keys, as well (storage SkimpyOffsetMap). With five million keys, the
    most that its default buffer holds, two of them share a 64-bit hash with a probability of one in a million.
    """

    _hashes: Int64Column = msgspec.field(default_factory=lambda: np.empty(0, np.int64))
    _offsets: Int64Column = msgspec.field(default_factory=lambda: np.empty(0, np.int64))
    _pending: list[tuple[Int64Column, Int64Column]] = msgspec.field(default_factory=list)
    _pending_rows: int = 0

    def add(self, hashes: Int64Column, offsets: Int64Column) -> None:
        self._pending.append((hashes, offsets))
        self._pending_rows += len(hashes)
        if self._pending_rows >= max(_LEAST_PENDING, len(self._hashes) // 4):
            self.settle()

    def settle(self) -> None:
        """Merge the keys that were added since the last call; the last offset of each is kept."""
        if not self._pending:
            return
        hashes = np.concatenate([self._hashes, *(each[0] for each in self._pending)])
        offsets = np.concatenate([self._offsets, *(each[1] for each in self._pending)])
        self._pending, self._pending_rows = [], 0
        order = np.argsort(hashes, kind="stable")
        hashes, offsets = hashes[order], offsets[order]
        is_last = np.append(hashes[1:] != hashes[:-1], True) if len(hashes) else np.empty(0, np.bool_)
        self._hashes, self._offsets = hashes[is_last], offsets[is_last]

    @property
    def most(self) -> int:
        """The number of keys, or more: of those that wait, some may be known."""
        return len(self._hashes) + self._pending_rows

    def __len__(self) -> int:
        self.settle()
        return len(self._hashes)

    def offsets_of(self, hashes: Int64Column) -> Int64Column:
        """The latest offset of each key, -1 for a key that is not in the map."""
        self.settle()
        if not len(self._hashes):
            return np.full(len(hashes), -1, np.int64)
        at = np.minimum(np.searchsorted(self._hashes, hashes), len(self._hashes) - 1)
        return np.where(self._hashes[at] == hashes, self._offsets[at], -1)


class CleaningTerms(msgspec.Struct, frozen=True):
    """The parameters of a run.

    ``producers`` has the last data offset of each active producer (None: its last entry is a marker) and its epoch.
    ``aborted`` are the transactions that begin in the range: first and last offset, and producer. ``most_keys`` is the
    number of keys that the cleaner's buffer can hold.
    """

    now_ms: int
    first_dirty_offset: int
    first_uncleanable_offset: int
    delete_retention_ms: int
    legacy_horizon_ms: int
    most_keys: int
    producers: Mapping[int, tuple[int | None, int]] = msgspec.field(default_factory=dict)
    aborted: tuple[tuple[int, int, int], ...] = ()
    limits: Limits = DEFAULT_LIMITS
    with_offsets: bool = False


class Cleaned(msgspec.Struct):
    """The result of a run: bytes and records before and after, tombstones left, and the earliest delete horizon.

    ``end_offset`` is where the next run begins. ``is_estimate``: sizes are estimated, since compressed batches would be
    rebuilt. ``wrong_crcs`` are findings about batches that the cleaner takes all the same. ``kept_offsets`` is filled
    only with ``with_offsets``.
    """

    end_offset: int = 0
    read_bytes: int = 0
    kept_bytes: int = 0
    record_count: int = 0
    kept_records: int = 0
    tombstone_count: int = 0
    key_count: int = 0
    delete_horizon: int | None = None
    is_full: bool = False
    is_estimate: bool = False
    damaged: Finding | RecordProblem | None = None
    wrong_crcs: list[Finding] = msgspec.field(default_factory=list)
    kept_offsets: list[Int64Column] = msgspec.field(default_factory=list)


def whole_chunks(log: LogUnit, limits: Limits) -> Iterator[BatchChunk | Finding]:
    """The chunks of a log with the bytes of their batches, whatever their CRCs, and findings about damage."""
    for item in log_chunks(log, Needs(Depth.RECORDS, EVERYTHING, limits, chunk_bytes=4 * MIB)):
        yield item if isinstance(item, Finding) else item.chunk


def _stops(found: Finding) -> bool:
    """Whether the cleaner stops at damage: not at a wrong CRC, as it checks none."""
    return found.code != "batch-crc-mismatch"


class CleanedSegment(msgspec.Struct, frozen=True):
    """A segment to clean: its log, the base offset of the next segment, and its modification time."""

    log: LogUnit
    base_offset: int
    next_base_offset: int
    modified_ms: int


def clean(segments: list[CleanedSegment], terms: CleaningTerms) -> Cleaned:
    """Clean a log's segments, those before the first uncleanable offset."""
    cleaned = Cleaned()
    first = _MapBuilder(terms, cleaned)
    first.take(segments)
    cleaned.key_count = len(first.map)
    cleaned.end_offset = max(first.latest_offset + 1, 0)
    second = _Filter(terms, first.map, first.latest_offset, cleaned)
    for segment in segments:
        if segment.base_offset < cleaned.end_offset and cleaned.damaged is None:
            second.take(segment)
    return cleaned


class _MapBuilder:
    """The first pass: the map of the dirty keys, and the last offset that it covers, -1 for none."""

    def __init__(self, terms: CleaningTerms, cleaned: Cleaned) -> None:
        self.map = KeyMap()
        self.latest_offset = -1
        self._terms = terms
        self._cleaned = cleaned
        self._transactions = CleanedTransactions()
        dirty = ((first, producer) for first, last, producer in terms.aborted if last >= terms.first_dirty_offset)
        self._transactions.add_aborted(dirty)

    def take(self, segments: list[CleanedSegment]) -> None:
        """Add the keys of the segments, until the map is full or a log cannot be read."""
        start, end = self._terms.first_dirty_offset, self._terms.first_uncleanable_offset
        for segment in segments:
            if segment.next_base_offset <= start or segment.base_offset >= end:
                continue
            for chunk in whole_chunks(segment.log, self._terms.limits):
                if isinstance(chunk, Finding):
                    if not _stops(chunk):
                        continue
                    self._cleaned.damaged = chunk
                    return
                if not self._add_chunk(chunk, segment.log.location):
                    return
            self._cover(min(segment.next_base_offset, end) - 1)

    def _cover(self, offset: int) -> None:
        self.latest_offset = max(self.latest_offset, offset)

    def _add_chunk(self, chunk: BatchChunk, location: Location) -> bool:
        """Add the keys of a chunk; False where the map is full or the log cannot be read."""
        table, start, limits = chunk.table, self._terms.first_dirty_offset, self._terms.limits
        is_data = ~table.is_control & ~_discarded(chunk, self._transactions, limits)
        wanted = is_data & (table.last_offset >= start)
        for records in record_tables(chunk, which=wanted, limits=limits, location=location):
            if records.problems:
                self._cleaned.damaged = records.problems[0]
                return False
            keyed = np.flatnonzero((records.key_length >= 0) & (records.offset >= start))
            hashes = key_hashes(records.rows(keyed))
            room = self._room(hashes)
            self.map.add(hashes[:room], records.offset[keyed[:room]])
            if room < len(keyed):
                full = int(records.batch[keyed[room]])  # the batch in which the map becomes full is not covered
                if full > int(records.batch[keyed[0]]):
                    self._cover(records.batches.last_offset_of(full - 1))
                self._cleaned.is_full = True
                return False
        if len(table) and table.last_offset_of(len(table) - 1) >= start:
            self._cover(table.last_offset_of(len(table) - 1))
        return True

    def _room(self, hashes: Int64Column) -> int:
        """How many of the keys can be added before the map is full."""
        if self.map.most + len(hashes) < self._terms.most_keys:
            return len(hashes)  # the usual case
        is_new = np.zeros(len(hashes), np.bool_)
        is_new[np.unique(hashes, return_index=True)[1]] = True
        is_new &= self.map.offsets_of(hashes) < 0
        full = np.flatnonzero(len(self.map) + np.cumsum(is_new) - is_new >= self._terms.most_keys)
        return int(full[0]) if len(full) else len(hashes)


def _discarded(chunk: BatchChunk, transactions: CleanedTransactions, limits: Limits) -> Bools:
    """Which batches belong to aborted transactions, or are markers that nothing needs; updates ``transactions``."""
    table = chunk.table
    found = np.zeros(len(table), np.bool_)
    is_control = table.is_control
    rows = np.flatnonzero(table.is_transactional | is_control)
    if not len(rows):
        return found
    markers = first_control_records(chunk, np.ones(len(table), np.bool_), limits)
    columns = zip(
        rows.tolist(), table.producer_id[rows].tolist(), table.last_offset[rows].tolist(), is_control[rows].tolist(),
        strict=True,
    )  # fmt: skip
    for row, producer_id, last_offset, is_marker in columns:
        if is_marker:
            found[row] = transactions.is_needless(producer_id, last_offset, markers.get(row))
        else:
            found[row] = transactions.is_aborted(producer_id, last_offset)
    return found


class _Filter:
    """The second pass: which records stay, and the new sizes of the batches."""

    def __init__(self, terms: CleaningTerms, key_map: KeyMap, latest_offset: int, cleaned: Cleaned) -> None:
        self._terms = terms
        self._map = key_map
        self._latest_offset = latest_offset
        self._cleaned = cleaned
        self._transactions = CleanedTransactions()
        self._transactions.add_aborted((first, producer) for first, _, producer in terms.aborted)

    def take(self, segment: CleanedSegment) -> None:
        keeps_legacy_deletes = segment.modified_ms > self._terms.legacy_horizon_ms
        for chunk in whole_chunks(segment.log, self._terms.limits):
            if isinstance(chunk, Finding):
                if not _stops(chunk):
                    self._cleaned.wrong_crcs.append(chunk)
                    continue
                self._cleaned.damaged = chunk
                return
            self._take_chunk(chunk, segment.log.location, keeps_legacy_deletes)
            if self._cleaned.damaged is not None:
                return

    def _take_chunk(self, chunk: BatchChunk, location: Location, keeps_legacy_deletes: bool) -> None:
        table, cleaned = chunk.table, self._cleaned
        count = len(table)
        now = self._terms.now_ms
        is_control = table.is_control
        can_discard = _discarded(chunk, self._transactions, self._terms.limits)
        horizon = np.where(table.has_delete_horizon, table.base_timestamp, -1)
        is_over = (horizon >= 0) & (horizon <= now)
        is_discarded = can_discard & (~is_control | is_over)
        kept = np.zeros(count, np.int64)
        tombstones = np.zeros(count, np.int64)
        records_in = np.zeros(count, np.int64)
        sizes = np.zeros(count, np.int64)
        needs_horizon = can_discard & is_control & (horizon < 0)
        stays_empty = self._stays_empty(chunk)
        everything = np.ones(count, np.bool_)
        for records in record_tables(chunk, which=everything, limits=self._terms.limits, location=location):
            if records.problems:
                cleaned.damaged = records.problems[0]
                return
            batch = records.batch
            keep = self._keeps(records, is_discarded[batch], horizon[batch], keeps_legacy_deletes)
            is_tombstone = (records.value_length < 0) & ~is_control[batch] & keep
            np.add.at(kept, batch[keep], 1)
            np.add.at(records_in, batch, 1)
            np.add.at(tombstones, batch[is_tombstone], 1)
            sets_horizon = needs_horizon | ((tombstones > 0) & (horizon < 0) & (table.magic == 2))
            bases = np.where(sets_horizon, now + self._terms.delete_retention_ms, horizon)
            rebuilt_size(records, keep, bases, sizes)
            if self._terms.with_offsets:
                cleaned.kept_offsets.append(records.offset[keep].copy())
        sets_horizon = (needs_horizon | ((tombstones > 0) & (table.magic == 2))) & (horizon < 0)
        is_whole = (kept == records_in) & (kept > 0)
        is_rebuilt = (kept > 0) & (~is_whole | sets_horizon)
        is_packed = is_rebuilt & (table.codec > 0)
        new_sizes = np.where(kept > 0, np.where(is_rebuilt, sizes, table.size_bytes), 0)
        # The compressed size of the kept records is not known: it is taken as proportional to their number.
        share = np.minimum(kept / np.maximum(records_in, 1), 1.0)
        packed = layout.RECORD_BATCH.size_bytes + (table.size_bytes - layout.RECORD_BATCH.size_bytes) * share
        new_sizes = np.where(is_packed, packed.astype(np.int64), new_sizes)
        new_sizes = np.where((kept == 0) & stays_empty, layout.RECORD_BATCH.size_bytes, new_sizes)
        cleaned.is_estimate = cleaned.is_estimate or bool(is_packed.any())
        cleaned.read_bytes += int(table.size_bytes.sum())
        cleaned.kept_bytes += int(new_sizes.sum())
        cleaned.record_count += int(records_in.sum())
        cleaned.kept_records += int(kept.sum())
        cleaned.tombstone_count += int(tombstones.sum())
        left = horizon[(kept > 0) & (horizon >= 0)]
        if len(left):
            earliest = int(left.min())
            known = cleaned.delete_horizon
            cleaned.delete_horizon = earliest if known is None else min(known, earliest)

    def _keeps(
        self, records: RecordTable, is_discarded: Bools, horizon: Int64Column, keeps_legacy_deletes: bool
    ) -> Bools:
        """Which records stay."""
        table = records.batches
        is_control = table.is_control[records.batch]
        is_later = records.offset > self._latest_offset
        has_key = records.key_length >= 0
        hashes = key_hashes(records)
        is_latest = has_key & (records.offset >= self._map.offsets_of(hashes))
        is_legacy = table.magic[records.batch] < 2
        keeps_deletes = np.where(is_legacy, keeps_legacy_deletes, (horizon < 0) | (horizon > self._terms.now_ms))
        has_value = records.value_length >= 0
        keep: Bools = ~is_discarded & (is_control | is_later | (is_latest & (has_value | keeps_deletes)))
        return keep

    def _stays_empty(self, chunk: BatchChunk) -> Bools:
        """Which batches stay even if they become empty: the last of each active producer, and the last of the run."""
        table = chunk.table
        found: Bools = table.last_offset + 1 == self._terms.first_uncleanable_offset
        for row in np.flatnonzero(table.producer_id >= 0).tolist():
            last = self._terms.producers.get(int(table.producer_id[row]))
            if last is None:
                continue
            offset, epoch = last
            if offset is not None:
                found[row] |= table.last_offset_of(row) == offset
            else:
                found[row] |= bool(table.is_control[row]) and int(table.producer_epoch[row]) == epoch
        return found
