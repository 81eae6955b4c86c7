"""Simulates a run of the cleaner: builds the map of the dirty keys, then filters every segment by it.

Source: storage Cleaner.doClean, buildOffsetMap, cleanInto and shouldRetainRecord; clients MemoryRecords.filterTo. The
cleaner checks no CRCs, and neither does this: a batch counts as it is if its records can be read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec
import numpy as np
from numpy.typing import NDArray

from format import layout
from format.findings import Finding
from format.limits import DEFAULT_LIMITS, MIB, Limits
from format.location import Location
from format.log.batch_chunk import BatchChunk
from format.log.control_records import first_control_records
from format.log.read_records import record_tables
from format.log.record_table import RecordProblem, RecordTable
from format.scan.drivers import SerialDriver, with_last_finding
from format.scan.protocol import Depth, LogUnit, Needs, OpenedRange
from format.scan.read_log import selected_chunks
from format.scan.selection import EVERYTHING
from format.verbs.compaction.cleaned_transactions import CleanedTransactions
from format.verbs.compaction.key_map import KeyMap, key_hashes
from format.verbs.compaction.rewritten_sizes import rebuilt_size

Int64Column = NDArray[np.int64]
Bools = NDArray[np.bool_]


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
    rebuilt. ``kept_offsets`` is filled only with ``with_offsets``.
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
    kept_offsets: list[Int64Column] = msgspec.field(default_factory=list)


class _Chunks(msgspec.Struct, frozen=True):
    """A walk over whole chunks, whatever their CRCs."""

    limits: Limits

    @property
    def needs(self) -> Needs:
        return Needs(Depth.RECORDS, EVERYTHING, self.limits, chunk_bytes=4 * MIB)

    def parts(self, opened: OpenedRange) -> Iterator[BatchChunk | Finding]:
        for item in selected_chunks(opened, self.needs):
            if not isinstance(item, Finding):
                yield item.chunk
            elif item.code != "batch-crc-mismatch":
                yield item


def whole_chunks(log: LogUnit, limits: Limits) -> Iterator[BatchChunk | Finding]:
    """The chunks of a log with the bytes of their batches, and findings about what cannot be read."""
    with SerialDriver(_Chunks(limits)) as driver:
        yield from with_last_finding(log, driver.parts(log))


class CleanedSegment(msgspec.Struct, frozen=True):
    """A segment to clean: its log, the base offset of the next segment, and its modification time."""

    log: LogUnit
    base_offset: int
    next_base_offset: int
    modified_ms: int


def clean(segments: list[CleanedSegment], terms: CleaningTerms) -> Cleaned:
    """Clean a log's segments, those before the first uncleanable offset."""
    cleaned = Cleaned()
    key_map = KeyMap()
    _build_map(segments, terms, key_map, cleaned)
    cleaned.key_count = len(key_map)
    cleaned.end_offset = max(key_map.latest_offset + 1, 0)
    run = _Filter(terms, key_map, cleaned)
    for segment in segments:
        if segment.base_offset < cleaned.end_offset and cleaned.damaged is None:
            run.take(segment)
    return cleaned


def _build_map(segments: list[CleanedSegment], terms: CleaningTerms, key_map: KeyMap, cleaned: Cleaned) -> None:
    start, end = terms.first_dirty_offset, terms.first_uncleanable_offset
    transactions = CleanedTransactions()
    transactions.add_aborted((first, producer) for first, last, producer in terms.aborted if last >= start)
    for segment in segments:
        if segment.next_base_offset <= start or segment.base_offset >= end:
            continue
        for chunk in whole_chunks(segment.log, terms.limits):
            if isinstance(chunk, Finding):
                cleaned.damaged = chunk
                return
            if not _add_chunk(chunk, segment.log.location, start, terms, transactions, key_map, cleaned):
                return
        key_map.latest_offset = max(key_map.latest_offset, min(segment.next_base_offset, end) - 1)


def _add_chunk(
    chunk: BatchChunk,
    location: Location,
    start: int,
    terms: CleaningTerms,
    transactions: CleanedTransactions,
    key_map: KeyMap,
    cleaned: Cleaned,
) -> bool:
    """Add the keys of a chunk; False where the map is full or the log cannot be read."""
    table = chunk.table
    is_data = ~table.is_control & ~_discarded(chunk, transactions, terms.limits)
    wanted = is_data & (table.last_offset >= start)
    for records in record_tables(chunk, which=wanted, limits=terms.limits, location=location):
        if records.problems:
            cleaned.damaged = records.problems[0]
            return False
        keyed = np.flatnonzero((records.key_length >= 0) & (records.offset >= start))
        hashes, offsets = key_hashes(records.rows(keyed)), records.offset[keyed]
        room = terms.most_keys - len(key_map) if len(keyed) else 1
        if room <= len(hashes):
            return _fill_up(records, keyed, hashes, terms, key_map, cleaned)
        key_map.add(hashes, offsets)
    if len(table):
        last = table.last_offset_of(len(table) - 1)
        key_map.latest_offset = max(key_map.latest_offset, last if last >= start else -1)
    return True


def _fill_up(
    records: RecordTable,
    keyed: NDArray[np.intp],
    hashes: Int64Column,
    terms: CleaningTerms,
    key_map: KeyMap,
    cleaned: Cleaned,
) -> bool:
    """Add keys one by one while the map has room; the batch in which it becomes full is not covered."""
    offsets, batches = records.offset[keyed].tolist(), records.batch[keyed].tolist()
    table = records.batches
    previous = -1
    for key, offset, batch in zip(hashes.tolist(), offsets, batches, strict=True):
        if batch != previous and previous >= 0:
            key_map.latest_offset = max(key_map.latest_offset, table.last_offset_of(batch - 1))
        previous = batch
        if len(key_map) >= terms.most_keys:
            cleaned.is_full = True
            return False
        key_map.add(np.array([key], np.int64), np.array([offset], np.int64))
    if previous >= 0:
        key_map.latest_offset = max(key_map.latest_offset, table.last_offset_of(previous))
    return True


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
            found[row] = transactions.is_aborted(producer_id, last_offset, is_transactional=True)
    return found


class _Filter:
    """The second pass: which records stay, and the new sizes of the batches."""

    def __init__(self, terms: CleaningTerms, key_map: KeyMap, cleaned: Cleaned) -> None:
        self._terms = terms
        self._map = key_map
        self._cleaned = cleaned
        self._transactions = CleanedTransactions()
        self._transactions.add_aborted((first, producer) for first, _, producer in terms.aborted)

    def take(self, segment: CleanedSegment) -> None:
        """Filter one segment."""
        keeps_legacy_deletes = segment.modified_ms > self._terms.legacy_horizon_ms
        for chunk in whole_chunks(segment.log, self._terms.limits):
            if isinstance(chunk, Finding):
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
        is_later = records.offset > self._map.latest_offset
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
