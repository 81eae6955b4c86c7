"""dump-log: the output of Kafka's kafka-dump-log, byte for byte, and correct output where that tool has a defect."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import msgspec

from format import layout
from format.errors import InputError, KafkaLogError, WorkerDied
from format.findings import Finding, finding_of
from format.io.session import absolute as absolute_path
from format.io.source import FileSource
from format.limits import MIB
from format.node.partition import location_of_file
from format.scan.drivers import scan_logs
from format.scan.protocol import Cost, Depth, LogParts, LogUnit, Needs, OpenedRange
from format.verbs.dump_log.contents import deprecation_lines, parser_for
from format.verbs.dump_log.java_text import hash_map_order, java_long, name_of, normalised, path_line, stem_of
from format.verbs.dump_log.log_lines import LogLines, OffsetGaps, Piece
from format.verbs.dump_log.options import INT32_MAX, DumpLogOptions, ErrorLine, KafkaStops, Release
from format.verbs.dump_log.side_file_lines import (
    Mismatches,
    base_offsets_in,
    offset_index_lines,
    producer_snapshot_lines,
    time_index_lines,
    transaction_index_lines,
)

#: The bytes of a log that are read at once. A worker may have the lines of two chunks ready before its turn to print;
#: larger chunks would make it wait.
CHUNK_BYTES = 2 * MIB
_BATCH_COST = Cost(batch_s=0.6e-6, byte_s=0.15e-9, compressed_byte_s=0.15e-9)
_RECORD_COST = Cost(batch_s=0.9e-6, byte_s=2e-9, compressed_byte_s=8e-9)
Item = bytes | memoryview | ErrorLine | Finding
#: How many digits a snapshot's name has for its end offset and, after a dash, for its epoch.
_OFFSET_DIGITS, _EPOCH_DIGITS = 20, 10
_SIDE_FILES: dict[str, Callable[..., Iterator[Item]]] = {
    layout.OFFSET_INDEX_SUFFIX: offset_index_lines,
    layout.TIME_INDEX_SUFFIX: time_index_lines,
    layout.PRODUCER_SNAPSHOT_SUFFIX: producer_snapshot_lines,
    layout.TRANSACTION_INDEX_SUFFIX: transaction_index_lines,
}


class DumpLogScan(msgspec.Struct, frozen=True):
    """dump-log as a scan; ``make`` creates the LogLines of an open file."""

    options: DumpLogOptions
    make: Callable[[FileSource], LogLines]

    @property
    def needs(self) -> Needs:
        """With --max-bytes the log must be read in order, because the end depends on what came before."""
        cost = _RECORD_COST if self.options.reads_records else _BATCH_COST
        return Needs(
            Depth.RECORDS if self.options.reads_records else Depth.CRC,
            limits=self.options.limits,
            chunk_bytes=CHUNK_BYTES,
            cost=cost if self.options.max_bytes == INT32_MAX else None,
        )

    def parts(self, opened: OpenedRange) -> Iterator[Piece | OffsetGaps]:
        """The pieces of a range, then its gaps."""
        log = self.make(opened.source)
        yield from log.lines(opened.batches)
        yield log.gaps

    def fold(self, log: LogUnit, parts: LogParts[Piece | OffsetGaps]) -> Iterator[Piece | OffsetGaps]:
        """The pieces, then the gaps of the whole log."""
        gaps = OffsetGaps(None)
        for part in parts:
            if isinstance(part, OffsetGaps):
                gaps.follow(part)
            else:
                yield part
        yield gaps


def dump_log(files: Sequence[str], options: DumpLogOptions, *, jobs: int = 1) -> Iterator[Item]:
    """The lines of some files in order, then the mismatches that Kafka's tool reports on standard error.

    A memoryview is valid until the next item is requested. Up to ``jobs`` processes share a large log, unless a
    release is emulated. Raises KafkaStops where an emulated release ends with an exception; the items before it are
    what that release prints until then. Nothing is ever created or written. A file that cannot be read gives a
    finding, unless a release is emulated.
    """
    seen: dict[str, Mismatches] = {}
    for given in files:
        path = normalised(given)
        yield path_line(path, "", before="Dumping ")
        mismatches = seen.setdefault(str(absolute_path(options.session.path(path))), Mismatches())
        try:
            yield from _file_items(path, options, mismatches, jobs)
        except WorkerDied:
            raise
        except KafkaLogError as error:
            if options.emulate is None:
                yield finding_of(error, location_of_file(path))
            elif isinstance(error, InputError):
                raise KafkaStops(error.message) from error
            else:
                raise
    yield from _mismatch_lines(seen, options.emulate)


def _file_items(path: str, options: DumpLogOptions, mismatches: Mismatches, jobs: int) -> Iterator[Item]:
    suffix = os.path.splitext("_" + name_of(path))[1]
    if suffix in (layout.LOG_SUFFIX, layout.CHECKPOINT_SUFFIX):
        yield from _log_items(path, suffix, options, mismatches, jobs)
    elif suffix in _SIDE_FILES:
        yield from _SIDE_FILES[suffix](path, options, mismatches)
    else:
        yield ErrorLine(f"Ignoring unknown file {path}")


def _log_items(path: str, suffix: str, options: DumpLogOptions, mismatches: Mismatches, jobs: int) -> Iterator[Item]:
    yield deprecation_lines(options)
    parse = parser_for(options)
    try:
        yield _heading(path, suffix)
    except KafkaStops:
        if options.emulate is not None:
            raise
    location = location_of_file(path)
    next_base_offset = None
    if location.base_offset is not None:
        base_offsets = base_offsets_in(options.place(os.path.dirname(path) or "."))
        next_base_offset = next((each for each in base_offsets if each > location.base_offset), None)
    log = LogUnit(options.session.path(path), location, None, next_base_offset)
    name = os.fsencode(name_of(path))
    make = partial(LogLines, log=log, name=name, options=options, parse=parse)
    with FileSource(options.place(path)) as source:  # an error names the path as it was given
        if options.emulate is not None:
            lines = make(source)
            yield from lines.emulated_lines()
            mismatches.gaps = lines.gaps
            return
    for item in scan_logs(DumpLogScan(options, make), [log], jobs=jobs):
        if isinstance(item, OffsetGaps):
            mismatches.gaps = item
        else:
            yield item


def _heading(path: str, suffix: str) -> bytes:
    """The line above a log's batches; raises KafkaStops for a name that Kafka cannot parse."""
    if suffix == layout.LOG_SUFFIX:
        return b"Log starting offset: %d\n" % java_long(stem_of(path))
    name = name_of(path)
    if name == layout.BOOTSTRAP_CHECKPOINT:
        return b"KRaft bootstrap snapshot\n"
    epoch = name[_OFFSET_DIGITS + 1 : _OFFSET_DIGITS + 1 + _EPOCH_DIGITS]
    if len(epoch) < _EPOCH_DIGITS:
        raise KafkaStops(f"the name {name} has no epoch")
    return b"Snapshot end offset: %d, epoch: %d\n" % (java_long(name[:_OFFSET_DIGITS]), java_long(epoch))


def _mismatch_lines(seen: Mapping[str, Mismatches], emulate: Release | None) -> Iterator[ErrorLine]:
    """The last lines of Kafka's standard error; files are in the order of the emulated release's hash table, if any."""

    def each_with(kind: str) -> Iterator[tuple[str, Any]]:
        found = {path: values for path, each in seen.items() if (values := getattr(each, kind))}
        paths = found if emulate is None else hash_map_order(found, is_scala=emulate is Release.V3_9_1)
        return ((path, found[path]) for path in paths)

    for path, pairs in each_with("index"):
        yield ErrorLine(f"Mismatches in :{path}")
        if emulate is Release.V4_3_1:
            pairs = sorted(dict(pairs).items(), reverse=True)
        elif emulate is Release.V3_9_1:
            pairs = pairs[::-1]
        for offset, found in pairs:
            yield ErrorLine(f"  Index offset: {offset}, log offset: {'none' if found is None else found}")
    for path, pairs in each_with("timestamps"):
        yield ErrorLine(f"Found timestamp mismatch in :{path}")
        for ours, logs in pairs:
            yield ErrorLine(f"  Index timestamp: {ours}, log timestamp: {logs}")
    for path, pairs in each_with("out_of_order"):
        yield ErrorLine(f"Found out of order timestamp in :{path}")
        for ours, previous in pairs:
            yield ErrorLine(f"  Index timestamp: {ours}, Previously indexed timestamp: {previous}")
    for path, pairs in each_with("not_found"):
        where = "the log." if emulate is Release.V3_9_1 else f":{path}"
        yield ErrorLine(f"The following indexed offsets are not found in {where}")
        for indexed, found in pairs:
            yield ErrorLine(f"Indexed offset: {indexed}, found log offset: {found}")
    for path, gaps in each_with("gaps"):
        yield ErrorLine(f"Non-consecutive offsets in {path}")
        for first, second in gaps.pairs():
            yield ErrorLine(f"  {first} is followed by {second}")
