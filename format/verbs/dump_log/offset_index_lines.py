"""The lines of an .index file. Source: tools DumpLogSegments.dumpIndex, storage OffsetIndex and AbstractIndex."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import numpy as np

from format.checks.side_files import OffsetIndexCheck
from format.files import offset_index
from format.findings import Finding, Severity, finding
from format.io.source import FileSource
from format.layout import LOG_SUFFIX, OFFSET_INDEX_ENTRY
from format.limits import Limits
from format.log.batch_table import BatchTable
from format.node.partition import location_of_file
from format.verbs.dump_log.file_names import java_long, path_line, sibling, stem_of
from format.verbs.dump_log.kafka_walk import batch_at
from format.verbs.dump_log.options import INT32_MAX, DumpLogOptions
from format.verbs.dump_log.segment_headers import header_tables
from format.verbs.dump_log.stops import KafkaStops


class IndexMismatches(msgspec.Struct):
    """Entries that are not the last offset of the batch they point to: (index offset, log offset), in file order."""

    pairs: list[tuple[int, int | None]] = msgspec.field(default_factory=list)


def entry_lines(
    path: str, options: DumpLogOptions, mismatches: IndexMismatches, limits: Limits
) -> Iterator[bytes | Finding]:
    """The lines that every release prints for a sound index, and findings for what would mislead a broker.

    Kafka compares each entry with one batch's last offset only; older brokers wrote first offsets, and an index of
    wrapped messages has offsets from the middle. Only mismatches that make look-ups fail are reported here.
    """
    location = location_of_file(path)
    base_offset = 0 if location.base_offset is None else location.base_offset
    index = offset_index.read(options.place(path), base_offset, limits)
    log = sibling(path, LOG_SUFFIX)
    tables, damage, missing = header_tables(log, limits)
    if not index.entry_count and not (index.padding_bytes and tables):
        yield path_line(path, " is empty.")
        return
    for problem in index.problems:
        yield finding(problem.code, location.at(position=problem.position, length=problem.length), problem.message)
    if options.checks_sanity_only:
        verdict = "passed" if index.passes_sanity_check else "failed"
        yield path_line(path, f" {verdict} sanity check.")
        return
    if not options.verifies_only:
        yield b"".join(
            [
                b"offset: %d position: %d\n" % each
                for each in zip(index.offsets.tolist(), index.positions.tolist(), strict=True)
            ]
        )
        if not index.entry_count:
            # Kafka takes the first of the preallocated zeros for an entry.
            yield b"offset: %d position: 0\n" % base_offset
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
            mismatches.pairs.append((int(index.offsets[number]), _last_offset_at(tables, int(index.positions[number]))))


def _last_offset_at(tables: list[BatchTable], position: int) -> int | None:
    for table in tables:
        found = np.flatnonzero(table.position == position)
        if len(found):
            return int(table.last_offset[found[0]])
    return None


def emulated_entry_lines(path: str, options: DumpLogOptions, mismatches: IndexMismatches) -> Iterator[bytes]:
    """The lines that the emulated release prints, up to where it dies."""
    base_offset = java_long(stem_of(path))
    with FileSource(sibling(path, LOG_SUFFIX)) as log, FileSource(path) as source:
        entries = np.frombuffer(
            source.read_at(0, source.size_bytes // OFFSET_INDEX_ENTRY.size_bytes * OFFSET_INDEX_ENTRY.size_bytes),
            OFFSET_INDEX_ENTRY.numpy_dtype(),
        )
        offsets = base_offset + entries["relative_offset"].astype(np.int64)
        positions = entries["position"].astype(np.int64)
        if not len(entries):
            yield path_line(path, " is empty.")
            return
        if options.checks_sanity_only:
            if offsets[-1] < base_offset or source.size_bytes % OFFSET_INDEX_ENTRY.size_bytes:
                raise KafkaStops(
                    "org.apache.kafka.storage.internals.log.CorruptIndexException: Corrupt index found, index file "
                    f"{path}",
                    code="index-invalid",
                )
            yield path_line(path, " passed sanity check.")
            return
        for number, (offset, position) in enumerate(zip(offsets.tolist(), positions.tolist(), strict=True)):
            if offset == base_offset and number:
                return
            end = slice_end(log, position, options.max_message_size)
            facts = batch_at(log, position, end)
            if facts is None:
                raise KafkaStops("java.util.NoSuchElementException", code="offset-index-mismatch")
            if facts.last_offset != offset:
                mismatches.pairs.append((offset, facts.last_offset))
            if not options.verifies_only:
                yield b"offset: %d position: %d\n" % (offset, position)


def slice_end(log: FileSource, position: int, size_bytes: int) -> int:
    """Where FileRecords.slice ends; raises KafkaStops where it throws."""
    if not 0 <= position <= log.size_bytes or size_bytes < 0:
        raise KafkaStops(
            f"java.lang.IllegalArgumentException: Slice from position {position} exceeds end position of {log.path}",
            code="offset-index-mismatch",
        )
    end = position + size_bytes
    return log.size_bytes if end > min(INT32_MAX, log.size_bytes) else end
