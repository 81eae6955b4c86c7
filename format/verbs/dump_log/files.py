"""Prints the files of one run, each by its kind, and the mismatches at the end. Source: tools DumpLogSegments.main."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from pathlib import Path

import msgspec

from format import layout
from format.errors import InputError, KafkaLogError, WorkerDied
from format.findings import Finding, finding_of
from format.io.session import absolute as absolute_path
from format.io.session import entries_of
from format.io.source import FileSource
from format.limits import DEFAULT_LIMITS, Limits
from format.node.partition import location_of_file
from format.scan.drivers import scan_logs
from format.scan.protocol import LogUnit
from format.verbs.dump_log import offset_index_lines, time_index_lines
from format.verbs.dump_log.contents import deprecation_lines, parser_for
from format.verbs.dump_log.file_names import java_long, name_of, normalised, path_line, stem_of
from format.verbs.dump_log.java_text import hash_map_order
from format.verbs.dump_log.log_lines import LogLines
from format.verbs.dump_log.log_scan import DumpLogScan
from format.verbs.dump_log.offset_gaps import OffsetGaps
from format.verbs.dump_log.offset_index_lines import IndexMismatches
from format.verbs.dump_log.options import DumpLogOptions, Release
from format.verbs.dump_log.side_file_lines import producer_snapshot_lines, transaction_index_lines
from format.verbs.dump_log.stops import ErrorLine, KafkaStops
from format.verbs.dump_log.time_index_lines import TimeIndexMismatches

Item = bytes | memoryview | ErrorLine | Finding
#: How many digits a snapshot's name has for its end offset and, after a dash, for its epoch.
_OFFSET_DIGITS, _EPOCH_DIGITS = 20, 10


class _Mismatches(msgspec.Struct):
    """The mismatches and gaps reported at the end, by the file's absolute path."""

    index_mismatches: dict[str, IndexMismatches] = msgspec.field(default_factory=dict)
    time_index_mismatches: dict[str, TimeIndexMismatches] = msgspec.field(default_factory=dict)
    gaps: dict[str, OffsetGaps] = msgspec.field(default_factory=dict)


def dump_log(
    files: Sequence[str], options: DumpLogOptions, limits: Limits = DEFAULT_LIMITS, *, jobs: int = 1
) -> Iterator[Item]:
    """The lines of some files in order, then the mismatches that Kafka's tool reports on standard error.

    A memoryview is valid until the next item is requested. Up to ``jobs`` processes share a large log, unless a
    release is emulated. Raises KafkaStops where an emulated release dies; the items before it are what that release
    prints until then. Nothing is ever created or written. A file that cannot be read gives a finding, unless a
    release is emulated.
    """
    mismatches = _Mismatches()
    for given in files:
        path = normalised(given)
        yield path_line(path, "", before="Dumping ")
        if options.emulate is not None:
            try:
                yield from _file_items(path, options, limits, mismatches, jobs)
            except InputError as error:
                raise KafkaStops(f"java.nio.file.NoSuchFileException: {error}", code=error.code) from error
            continue
        try:
            yield from _file_items(path, options, limits, mismatches, jobs)
        except WorkerDied:
            raise
        except KafkaLogError as error:
            yield finding_of(error, location_of_file(path))
    yield from _mismatch_lines(mismatches, options.emulate)


def _file_items(path: str, options: DumpLogOptions, limits: Limits, seen: _Mismatches, jobs: int) -> Iterator[Item]:
    name = name_of(path)
    dot = name.rfind(".")
    suffix = name[dot:] if dot >= 0 else ""
    if dot < 0 and options.emulate is Release.V3_9_1:
        raise KafkaStops("java.lang.StringIndexOutOfBoundsException: begin -1")
    absolute = str(absolute_path(options.session.path(path)))
    if suffix in (layout.LOG_SUFFIX, layout.CHECKPOINT_SUFFIX):
        yield from _log_items(path, suffix, options, limits, seen, jobs)
    elif suffix == layout.OFFSET_INDEX_SUFFIX:
        mismatches = seen.index_mismatches.setdefault(absolute, IndexMismatches())
        if options.emulate is None:
            yield from offset_index_lines.entry_lines(path, options, mismatches, limits)
        else:
            yield from offset_index_lines.emulated_entry_lines(path, options, mismatches)
    elif suffix == layout.TIME_INDEX_SUFFIX:
        if options.emulate is None:
            yield from time_index_lines.entry_lines(path, options, limits)
        else:
            found = seen.time_index_mismatches.setdefault(absolute, TimeIndexMismatches())
            yield from time_index_lines.emulated_entry_lines(path, options, found, limits)
    elif suffix == layout.PRODUCER_SNAPSHOT_SUFFIX:
        yield from producer_snapshot_lines(path, options, limits)
    elif suffix == layout.TRANSACTION_INDEX_SUFFIX:
        yield from transaction_index_lines(path, options, limits)
    else:
        yield ErrorLine(f"Ignoring unknown file {path}")


def _log_items(
    path: str, suffix: str, options: DumpLogOptions, limits: Limits, mismatches: _Mismatches, jobs: int
) -> Iterator[Item]:
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
        base_offsets = _base_offsets(options.place(os.path.dirname(path) or "."))
        next_base_offset = next((each for each in base_offsets if each > location.base_offset), None)
    log = LogUnit(options.session.path(path), location, None, next_base_offset)
    make = partial(
        LogLines,
        log=log,
        name=os.fsencode(name_of(path)),
        options=options,
        parse=parse,
        limits=limits,
    )
    for item in _pieces(path, log, options, limits, make, jobs):
        if not isinstance(item, OffsetGaps):
            yield item
        elif item:
            mismatches.gaps[str(absolute_path(options.session.path(path)))] = item


def _pieces(
    path: str,
    log: LogUnit,
    options: DumpLogOptions,
    limits: Limits,
    make: Callable[[FileSource], LogLines],
    jobs: int,
) -> Iterator[bytes | memoryview | Finding | OffsetGaps]:
    """The lines of a log, and its gaps."""
    with FileSource(options.place(path)) as source:  # an error names the path as it was given
        if options.emulate is not None:
            lines = make(source)
            yield from lines.emulated_lines()
            yield lines.gaps
            return
    yield from scan_logs(DumpLogScan(options, limits, make), [log], jobs=jobs)


def _heading(path: str, suffix: str) -> bytes:
    """The line above a log's batches; raises KafkaStops for a name that Kafka cannot parse."""
    if suffix == layout.LOG_SUFFIX:
        return b"Log starting offset: %d\n" % java_long(stem_of(path))
    name = name_of(path)
    if name == layout.BOOTSTRAP_CHECKPOINT:
        return b"KRaft bootstrap snapshot\n"
    epoch = name[_OFFSET_DIGITS + 1 : _OFFSET_DIGITS + 1 + _EPOCH_DIGITS]
    if len(epoch) < _EPOCH_DIGITS:
        raise KafkaStops("java.lang.StringIndexOutOfBoundsException")
    return b"Snapshot end offset: %d, epoch: %d\n" % (java_long(name[:_OFFSET_DIGITS]), java_long(epoch))


@cache
def _base_offsets(directory: str | Path) -> list[int]:
    """The base offsets of the logs in a directory, in order."""
    try:
        with entries_of(directory) as entries:
            matches = [layout.SEGMENT_FILE.match(each.name) for each in entries]
    except OSError:
        return []
    return sorted(int(each["base_offset"]) for each in matches if each and each["suffix"] == layout.LOG_SUFFIX)


def _mismatch_lines(mismatches: _Mismatches, emulate: Release | None) -> Iterator[ErrorLine]:
    """The last lines of Kafka's standard error; files are in the order of the emulated release's hash table, if any."""
    for path in _ordered({path: each for path, each in mismatches.index_mismatches.items() if each.pairs}, emulate):
        yield ErrorLine(f"Mismatches in :{path}")
        pairs = mismatches.index_mismatches[path].pairs
        if emulate is Release.V4_3_1:
            pairs = sorted(dict(pairs).items(), reverse=True)
        elif emulate is Release.V3_9_1:
            pairs = pairs[::-1]
        for index_offset, log_offset in pairs:
            yield ErrorLine(
                f"  Index offset: {index_offset}, log offset: {'none' if log_offset is None else log_offset}"
            )
    yield from _time_index_lines(mismatches.time_index_mismatches, emulate)
    for path in _ordered(mismatches.gaps, emulate):
        yield ErrorLine(f"Non-consecutive offsets in {path}")
        for first, second in mismatches.gaps[path].pairs():
            yield ErrorLine(f"  {first} is followed by {second}")


def _time_index_lines(mismatches: Mapping[str, TimeIndexMismatches], emulate: Release | None) -> Iterator[ErrorLine]:
    for path in _ordered({path: each for path, each in mismatches.items() if each.timestamps}, emulate):
        yield ErrorLine(f"Found timestamp mismatch in :{path}")
        for ours, logs in mismatches[path].timestamps:
            yield ErrorLine(f"  Index timestamp: {ours}, log timestamp: {logs}")
    for path in _ordered({path: each for path, each in mismatches.items() if each.out_of_order}, emulate):
        yield ErrorLine(f"Found out of order timestamp in :{path}")
        for ours, previous in mismatches[path].out_of_order:
            yield ErrorLine(f"  Index timestamp: {ours}, Previously indexed timestamp: {previous}")
    for path in _ordered({path: each for path, each in mismatches.items() if each.not_found}, emulate):
        where = "the log." if emulate is Release.V3_9_1 else f":{path}"
        yield ErrorLine(f"The following indexed offsets are not found in {where}")
        for indexed, found in mismatches[path].not_found:
            yield ErrorLine(f"Indexed offset: {indexed}, found log offset: {found}")


def _ordered(mismatches: Mapping[str, object], emulate: Release | None) -> list[str]:
    if emulate is None:
        return list(mismatches)
    return hash_map_order(mismatches, is_scala=emulate is Release.V3_9_1)
