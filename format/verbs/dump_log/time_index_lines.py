"""The lines of a .timeindex file. Source: tools DumpLogSegments.dumpTimeIndex, storage TimeIndex and AbstractIndex."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from format.checks.side_files import TimeIndexCheck
from format.files import time_index
from format.files.index_file import broker_slot
from format.findings import Finding, Severity, finding
from format.io.session import entries_of, is_there, path_of
from format.io.source import FileSource, Source
from format.layout import LOG_SUFFIX, OFFSET_INDEX_ENTRY, OFFSET_INDEX_SUFFIX, TIME_INDEX_ENTRY, Layout
from format.limits import Limits
from format.location import Location
from format.log.batch_chunk import BatchChunk
from format.log.batch_table import BatchTable
from format.log.read_records import record_tables
from format.node.partition import location_of_file
from format.verbs.dump_log.batch_text import BatchFacts
from format.verbs.dump_log.file_names import java_long, path_line, sibling, stem_of
from format.verbs.dump_log.kafka_reader import read_records
from format.verbs.dump_log.kafka_walk import OddBatch, kafka_walk
from format.verbs.dump_log.offset_index_lines import slice_end
from format.verbs.dump_log.options import INT32_MAX, DumpLogOptions, Release
from format.verbs.dump_log.segment_headers import header_tables
from format.verbs.dump_log.stops import KafkaStops


class TimeIndexMismatches(msgspec.Struct):
    """The mismatches that Kafka reports at the end: lists of pairs, in file order."""

    timestamps: list[tuple[int, int]] = msgspec.field(default_factory=list)  # of the index, of the log
    out_of_order: list[tuple[int, int]] = msgspec.field(default_factory=list)  # of the entry, of the one before
    not_found: list[tuple[int, int]] = msgspec.field(default_factory=list)  # indexed offset, offset in the log


def entry_lines(path: str, options: DumpLogOptions, limits: Limits) -> Iterator[bytes | Finding]:
    """The lines that every release prints for a sound index, and findings for what would mislead a broker.

    The .index beside it is not needed. Kafka compares an entry with one batch only, and reports mismatches in
    correct indexes: those of older brokers, and of segments that had no timestamp yet.
    """
    location = location_of_file(path)
    base_offset = 0 if location.base_offset is None else location.base_offset
    index = time_index.read(options.place(path), base_offset, limits)
    for problem in index.problems:
        yield finding(problem.code, location.at(position=problem.position, length=problem.length), problem.message)
    if options.checks_sanity_only:
        verdict = "passed" if index.passes_sanity_check else "failed"
        yield path_line(path, f" {verdict} sanity check.")
        return
    if not options.verifies_only:
        rows = zip(index.timestamps.tolist(), index.offsets.tolist(), strict=True)
        yield b"".join([b"timestamp: %d offset: %d\n" % each for each in rows])
        if not index.entry_count and index.padding_bytes:
            yield (b"timestamp: 0 offset: %d\n" % base_offset)  # Kafka takes the first of the zeros for an entry
    tables, damage, missing = header_tables(options.place(sibling(path, LOG_SUFFIX)), limits)
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
    is_closed = bool(later_segment_exists(options.session.path(path), base_offset))
    for found in check.findings(damaged_after, is_closed=is_closed):
        if found.severity >= Severity.ERROR:
            yield found


def later_segment_exists(path: Path, base_offset: int) -> bool:
    """Whether a segment with a higher base offset lies beside the file."""
    own = f"{base_offset:020d}"
    with entries_of(path.parent) as entries:
        paths = [path_of(each.name) for each in entries]
    return any(each.suffix == LOG_SUFFIX and len(each.stem) == len(own) and each.stem > own for each in paths)


def emulated_entry_lines(
    path: str, options: DumpLogOptions, mismatches: TimeIndexMismatches, limits: Limits
) -> Iterator[bytes]:
    """The lines that the emulated release prints, up to where it dies."""
    base_offset = java_long(stem_of(path))
    index_path = sibling(path, OFFSET_INDEX_SUFFIX)
    with FileSource(sibling(path, LOG_SUFFIX)) as log:
        if not is_there(index_path):
            # Here Kafka's tool leaves an empty .index behind.
            raise KafkaStops("java.lang.IllegalArgumentException: Invalid max index size: -1", code="index-missing")
        with FileSource(index_path) as index, FileSource(path) as source:
            relative, positions = _slots(index, OFFSET_INDEX_ENTRY)
            timestamps, relative_of_time = _slots(source, TIME_INDEX_ENTRY)
            offsets = base_offset + relative_of_time
            if options.checks_sanity_only:
                _check_sanity(path, source, timestamps, offsets, base_offset)
                yield path_line(path, " passed sanity check.")
                return
            batches = _Batches(log, options.emulate, limits)
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


def _check_sanity(
    path: str, source: Source, timestamps: NDArray[np.int64], offsets: NDArray[np.int64], base_offset: int
) -> None:
    """Raises KafkaStops for what TimeIndex.sanityCheck throws."""
    is_corrupt = bool(source.size_bytes % TIME_INDEX_ENTRY.size_bytes)
    if len(timestamps):
        is_corrupt |= bool(timestamps[-1] < timestamps[0] or offsets[-1] < base_offset)
    if is_corrupt:
        raise KafkaStops(
            "org.apache.kafka.storage.internals.log.CorruptIndexException: Corrupt time index found, time index file "
            f"({path})",
            code="index-invalid",
        )


def _compare(
    batches: _Batches, position: int, timestamp: int, offset: int, previous: int, mismatches: TimeIndexMismatches
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

    def __init__(self, log: FileSource, release: Release | None, limits: Limits) -> None:
        self._log = log
        self._limits = limits
        self._is_lazy = release is Release.V3_9_1  # later releases read every header before they look for one
        self._table, self._stop = self._walked(0)

    def _walked(self, position: int) -> tuple[BatchTable, KafkaStops | None]:
        tables = []
        try:
            for item in kafka_walk(self._log, position, min(self._log.size_bytes, INT32_MAX), check_crc=False):
                if isinstance(item, OddBatch):
                    tables.append(BatchTable(np.array([item.facts[:-1]], np.int64)))
                else:
                    tables.append(item.table)
        except KafkaStops as stop:
            return BatchTable.concatenated(tables), stop
        return BatchTable.concatenated(tables), None

    def first_up_to(self, position: int, offset: int) -> BatchFacts | None:
        """The first batch at or after ``position`` whose last offset is at least ``offset``; raises KafkaStops."""
        slice_end(self._log, position, INT32_MAX)
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
        table = BatchTable(np.array([facts[:-1]], np.int64))
        if facts.magic in (0, 1, 2):
            every = np.ones(1, np.bool_)
            chunk = BatchChunk(table, raw, facts.position)
            records = list(record_tables(chunk, which=every, limits=self._limits, location=Location(self._log.path)))
            if not any(each.problems for each in records):
                return max((int(each.timestamp.max()) for each in records if len(each)), default=-1)
        return max((each.timestamp for each in read_records(facts, raw, self._limits)), default=-1)
