"""The lines of indexes, transaction indexes and producer snapshots.

Source: tools DumpLogSegments (dumpIndex, dumpTimeIndex, dumpTxnIndex, dumpProducerIdSnapshot), storage OffsetIndex,
TimeIndex, TransactionIndex and ProducerStateManager.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from format.checks.side_files import OffsetIndexCheck, TimeIndexCheck
from format.errors import InputError
from format.files import offset_index, producer_snapshot, time_index, transaction_index
from format.files.index_file import broker_slot
from format.files.side_file import problem_findings
from format.findings import Finding, Severity, finding
from format.io.session import entries_of, is_there
from format.io.source import FileSource, Source
from format.layout import LOG_SUFFIX, OFFSET_INDEX_ENTRY, OFFSET_INDEX_SUFFIX, SEGMENT_FILE, TIME_INDEX_ENTRY, Layout
from format.limits import Limits
from format.location import Location
from format.log.batch_chunk import BatchChunk
from format.log.batch_table import BatchTable, HeaderTable
from format.log.kafka_batch import BatchFacts
from format.log.read_records import record_tables
from format.log.walker import header_chunks
from format.node.partition import location_of_file
from format.scan.read_log import batches_of
from format.verbs.dump_log.java_text import decrement_sequence, java_long, path_line, sibling, stem_of
from format.verbs.dump_log.kafka_reader import batch_at, kafka_walk, read_records
from format.verbs.dump_log.log_lines import OffsetGaps
from format.verbs.dump_log.options import INT32_MAX, DumpLogOptions, ErrorLine, KafkaStops, Release


class Mismatches(msgspec.Struct):
    """What is reported of one file at the end of a run: pairs in file order, and gaps between offsets."""

    index: list[tuple[int, int | None]] = msgspec.field(default_factory=list)  # indexed offset, that of the batch
    timestamps: list[tuple[int, int]] = msgspec.field(default_factory=list)  # of the index, of the log
    out_of_order: list[tuple[int, int]] = msgspec.field(default_factory=list)  # of the entry, of the one before
    not_found: list[tuple[int, int]] = msgspec.field(default_factory=list)  # indexed offset, offset in the log
    gaps: OffsetGaps | None = None


def header_tables(
    path: str | os.PathLike[str], limits: Limits
) -> tuple[list[BatchTable], int | None, InputError | None]:
    """The tables of all batches, the position of the first damage (None for none), and why the file cannot be read.

    Wrapped messages are decompressed, since a wrapper's header does not hold its first offset.
    """
    try:
        with FileSource(path) as source:
            chunks = [batches_of(each, source, limits) for each in header_chunks(source, limits=limits)]
    except InputError as error:
        return [], None, error
    damaged_from = next((chunk.damage.position for chunk in chunks if chunk.damage is not None), None)
    return [chunk.table for chunk in chunks], damaged_from, None


def offset_index_lines(path: str, options: DumpLogOptions, mismatches: Mismatches) -> Iterator[bytes | Finding]:
    """The lines of an .index file, and findings for what would mislead a broker.

    Kafka compares each entry with one batch's last offset only; older brokers wrote first offsets, and an index of
    wrapped messages has offsets from the middle. Only mismatches that make look-ups fail are reported here.
    """
    if options.emulate is not None:
        yield from _emulated_offset_index_lines(path, options, mismatches)
        return
    location = location_of_file(path)
    base_offset = 0 if location.base_offset is None else location.base_offset
    index = offset_index.read(options.place(path), base_offset, options.limits)
    tables, damage, missing = header_tables(options.place(sibling(path, LOG_SUFFIX)), options.limits)
    if not index.entry_count and not (index.padding_bytes and tables):
        yield path_line(path, " is empty.")
        return
    yield from problem_findings(index.problems, location)
    if options.checks_sanity_only:
        yield path_line(path, f" {'passed' if index.passes_sanity_check else 'failed'} sanity check.")
        return
    if not options.verifies_only:
        rows = zip(index.offsets.tolist(), index.positions.tolist(), strict=True)
        yield b"".join([b"offset: %d position: %d\n" % each for each in rows])
        if not index.entry_count:
            yield b"offset: %d position: 0\n" % base_offset  # Kafka takes the first of the zeros for an entry
    if missing is not None:
        yield finding("index-orphan", location, f"cannot be compared with its segment: {missing.message}")
        return
    check = OffsetIndexCheck(index, location)
    for table in tables:
        check.feed(table)
    for found in check.findings(damage):
        if found.severity >= Severity.ERROR:
            yield found
            number = (found.location.position or 0) // OFFSET_INDEX_ENTRY.size_bytes
            last_offset = _last_offset_at(tables, int(index.positions[number]))
            mismatches.index.append((int(index.offsets[number]), last_offset))


def _last_offset_at(tables: list[BatchTable], position: int) -> int | None:
    for table in tables:
        found = np.flatnonzero(table.position == position)
        if len(found):
            return int(table.last_offset[found[0]])
    return None


def _emulated_offset_index_lines(path: str, options: DumpLogOptions, mismatches: Mismatches) -> Iterator[bytes]:
    """The lines that the emulated release prints, up to where it stops."""
    base_offset = java_long(stem_of(path))
    with FileSource(sibling(path, LOG_SUFFIX)) as log, FileSource(path) as source:
        relative, positions = _slots(source, OFFSET_INDEX_ENTRY)
        offsets = base_offset + relative
        if not len(offsets):
            yield path_line(path, " is empty.")
            return
        if options.checks_sanity_only:
            if offsets[-1] < base_offset or source.size_bytes % OFFSET_INDEX_ENTRY.size_bytes:
                raise KafkaStops(f"{path} fails the sanity check of an index")
            yield path_line(path, " passed sanity check.")
            return
        for number, (offset, position) in enumerate(zip(offsets.tolist(), positions.tolist(), strict=True)):
            if offset == base_offset and number:
                return
            facts = batch_at(log, position, _slice_end(log, position, options.max_message_size))
            if facts.last_offset != offset:
                mismatches.index.append((offset, facts.last_offset))
            if not options.verifies_only:
                yield b"offset: %d position: %d\n" % (offset, position)


def _slice_end(log: FileSource, position: int, size_bytes: int) -> int:
    """Where FileRecords.slice ends; raises KafkaStops where it throws."""
    if not 0 <= position <= log.size_bytes or size_bytes < 0:
        raise KafkaStops(f"the position {position} of an entry is past the end of {log.path}")
    end = position + size_bytes
    return log.size_bytes if end > min(INT32_MAX, log.size_bytes) else end


def time_index_lines(path: str, options: DumpLogOptions, mismatches: Mismatches) -> Iterator[bytes | Finding]:
    """The lines of a .timeindex file, and findings for what would mislead a broker.

    The .index beside it is not needed. Kafka compares an entry with one batch only, and reports mismatches in
    correct indexes: those of older brokers, and of segments that had no timestamp yet.
    """
    if options.emulate is not None:
        yield from _emulated_time_index_lines(path, options, mismatches)
        return
    location = location_of_file(path)
    base_offset = 0 if location.base_offset is None else location.base_offset
    index = time_index.read(options.place(path), base_offset, options.limits)
    yield from problem_findings(index.problems, location)
    if options.checks_sanity_only:
        yield path_line(path, f" {'passed' if index.passes_sanity_check else 'failed'} sanity check.")
        return
    if not options.verifies_only:
        rows = zip(index.timestamps.tolist(), index.offsets.tolist(), strict=True)
        yield b"".join([b"timestamp: %d offset: %d\n" % each for each in rows])
        if not index.entry_count and index.padding_bytes:
            yield (b"timestamp: 0 offset: %d\n" % base_offset)  # Kafka takes the first of the zeros for an entry
    tables, damage, missing = header_tables(options.place(sibling(path, LOG_SUFFIX)), options.limits)
    if missing is not None:
        yield finding("index-orphan", location, f"cannot be compared with its segment: {missing.message}")
        return
    check = TimeIndexCheck(index, location)
    damaged_after = None
    for table in tables:
        check.feed(table)
    if damage is not None:
        before = [table.last_offset[table.position < damage] for table in tables]
        damaged_after = max((int(each.max()) for each in before if len(each)), default=base_offset - 1)
    base_offsets = base_offsets_in(options.place(os.path.dirname(path) or "."))
    is_closed = any(each > base_offset for each in base_offsets)
    for found in check.findings(damaged_after, is_closed=is_closed):
        if found.severity >= Severity.ERROR:
            yield found


@cache
def base_offsets_in(directory: str | Path) -> list[int]:
    """The base offsets of the logs in a directory, in order."""
    try:
        with entries_of(directory) as entries:
            matches = [SEGMENT_FILE.match(each.name) for each in entries]
    except OSError:
        return []
    logs = (each for each in matches if each and each["suffix"] == LOG_SUFFIX and each["leftover"] is None)
    return sorted(int(each["base_offset"]) for each in logs)


def _emulated_time_index_lines(path: str, options: DumpLogOptions, mismatches: Mismatches) -> Iterator[bytes]:
    """The lines that the emulated release prints, up to where it stops."""
    base_offset = java_long(stem_of(path))
    index_path = sibling(path, OFFSET_INDEX_SUFFIX)
    with FileSource(sibling(path, LOG_SUFFIX)) as log:
        if not is_there(index_path):
            raise KafkaStops(f"{index_path} is missing; Kafka's tool leaves an empty one behind")
        with FileSource(index_path) as index, FileSource(path) as source:
            relative, positions = _slots(index, OFFSET_INDEX_ENTRY)
            timestamps, relative_of_time = _slots(source, TIME_INDEX_ENTRY)
            offsets = base_offset + relative_of_time
            if options.checks_sanity_only:
                is_odd = bool(source.size_bytes % TIME_INDEX_ENTRY.size_bytes)
                if is_odd or (len(offsets) and (timestamps[-1] < timestamps[0] or offsets[-1] < base_offset)):
                    raise KafkaStops(f"{path} fails the sanity check of a time index")
                yield path_line(path, " passed sanity check.")
                return
            batches = _Batches(log, options)
            previous = -1
            for number, (timestamp, offset) in enumerate(zip(timestamps.tolist(), offsets.tolist(), strict=True)):
                if offset == base_offset and number:
                    return
                slot = broker_slot(len(relative), lambda number: int(relative[number]), offset - base_offset)
                _compare(batches, 0 if slot < 0 else int(positions[slot]), timestamp, offset, previous, mismatches)
                if not options.verifies_only:
                    yield b"timestamp: %d offset: %d\n" % (timestamp, offset)
                previous = timestamp


def _slots(source: Source, layout: Layout) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The two columns of all slots of an index file, padding included."""
    whole = source.size_bytes // layout.size_bytes * layout.size_bytes
    table = np.frombuffer(source.read_at(0, whole), layout.numpy_dtype())
    first, second = (table[name].astype(np.int64) for name in layout.names)
    return first, second


def _compare(
    batches: _Batches, position: int, timestamp: int, offset: int, previous: int, mismatches: Mismatches
) -> None:
    """Compare one entry with the batch that Kafka compares it with."""
    found = batches.first_up_to(position, offset)
    if found is None:
        mismatches.not_found.append((offset, -1))
    elif found.last_offset != offset:
        mismatches.not_found.append((offset, found.last_offset))
    else:
        largest = max(-1, batches.largest_timestamp(found))
        if largest != timestamp:
            mismatches.timestamps.append((timestamp, largest))
        if previous >= timestamp:
            mismatches.out_of_order.append((timestamp, previous))


class _Batches:
    """The batches of a log as Kafka reads them from any position; the result from the start is cached."""

    def __init__(self, log: FileSource, options: DumpLogOptions) -> None:
        self._log = log
        self._limits = options.limits
        self._is_lazy = options.emulate is Release.V3_9_1  # later releases read every header before they look for one
        self._table, self._stop = self._walked(0)

    def _walked(self, position: int) -> tuple[BatchTable, KafkaStops | None]:
        tables = []
        try:
            for item in kafka_walk(self._log, position, min(self._log.size_bytes, INT32_MAX), check_crc=False):
                if isinstance(item, BatchFacts):
                    tables.append(BatchTable(np.array([item[:-1]], np.int64)))
                else:
                    tables.append(item.table)
        except KafkaStops as stop:
            return BatchTable.concatenated(tables), stop
        return BatchTable.concatenated(tables), None

    def first_up_to(self, position: int, offset: int) -> BatchFacts | None:
        """The first batch at or after ``position`` whose last offset is at least ``offset``; raises KafkaStops."""
        _slice_end(self._log, position, INT32_MAX)
        table, stop = self._table, self._stop
        row = int(np.searchsorted(table.position, position))
        if position and not (row < len(table) and table.position[row] == position) and position < self._log.size_bytes:
            (table, stop), row = self._walked(position), 0
        if stop is not None and not self._is_lazy:
            raise stop
        reaches = np.flatnonzero(table.last_offset[row:] >= offset)
        if len(reaches):
            return BatchFacts._make((*table.columns[row + int(reaches[0])].tolist(), False))
        if stop is not None:
            raise stop
        return None

    def largest_timestamp(self, facts: BatchFacts) -> int:
        """The largest timestamp of a batch's records, -1 for none; raises KafkaStops if they cannot be read."""
        raw = memoryview(self._log.read_at(facts.position, facts.size_bytes))
        headers = HeaderTable(np.array([facts[:-1]], np.int64))
        if facts.magic in (0, 1, 2):
            every = np.ones(1, np.bool_)
            chunk = BatchChunk(headers=headers, buffer_position=facts.position, table=headers.unopened(), buffer=raw)
            records = list(record_tables(chunk, which=every, limits=self._limits, location=Location(self._log.path)))
            if not any(each.problems for each in records):
                return max((int(each.timestamp.max()) for each in records if len(each)), default=-1)
        return max((each.timestamp for each in read_records(facts, raw, self._limits)), default=-1)


def transaction_index_lines(path: str, options: DumpLogOptions, mismatches: Mismatches) -> Iterator[bytes | Finding]:
    """A line for each aborted transaction. Kafka checks only the first byte of the version, which must be 0."""
    location = location_of_file(path)
    is_emulated = options.emulate is not None
    if is_emulated:
        java_long(stem_of(path))
    index = transaction_index.read(options.place(path), location.base_offset or 0, options.limits)
    versions = (index.versions >> 8 if is_emulated else index.versions).tolist()
    if is_emulated and any(version > 0 for version in versions):
        raise KafkaStops(f"an entry of {path} has an unknown version")
    columns = (index.producer_ids, index.first_offsets, index.last_offsets, index.last_stable_offsets)
    line = b"version: %d producerId: %d firstOffset: %d lastOffset: %d lastStableOffset: %d\n"
    yield b"".join([line % row for row in zip(versions, *(each.tolist() for each in columns), strict=True)])
    if not is_emulated:
        yield from problem_findings(index.problems, location)


def producer_snapshot_lines(
    path: str, options: DumpLogOptions, mismatches: Mismatches
) -> Iterator[bytes | Finding | ErrorLine]:
    """A line for each producer; as in Kafka, no lines for a snapshot that cannot be trusted."""
    location = location_of_file(path)
    snapshot = producer_snapshot.read(options.place(path), options.limits)
    stored = snapshot.stored_entry_count
    is_readable = snapshot.version == producer_snapshot.CURRENT_VERSION and stored == snapshot.entry_count
    if options.emulate is None:
        yield from problem_findings(snapshot.problems, location)
    elif not is_readable:
        yield ErrorLine("Snapshot failed schema validation")
    elif not snapshot.crc_valid:
        yield ErrorLine("Snapshot is corrupt (CRC is no longer valid)")
    if not is_readable or not snapshot.crc_valid:
        return
    # 3.9.1 always wrote the space after the timestamp.
    space_before, space_after = (b"", b" ") if options.emulate is Release.V3_9_1 else (b" ", b"")
    lines = []
    for producer, epoch, sequence, offset, delta, timestamp, coordinator, first in zip(
        *(column.tolist() for column in snapshot.columns), strict=True
    ):
        open_transaction = b"OptionalLong[%d]" % first if first >= 0 else b"OptionalLong.empty"
        lines.append(
            b"producerId: %d producerEpoch: %d coordinatorEpoch: %d currentTxnFirstOffset: %b lastTimestamp: %d"
            % (producer, epoch, coordinator, open_transaction, timestamp)
        )
        lines.append(space_after)
        if offset >= 0:
            lines.append(
                space_before
                + b"firstSequence: %d lastSequence: %d lastOffset: %d offsetDelta: %d timestamp: %d"
                % (decrement_sequence(sequence, delta), sequence, offset, delta, timestamp)
            )
        lines.append(b"\n")
    yield b"".join(lines)
