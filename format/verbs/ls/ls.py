"""ls: lists log directories, partitions and segments, from names, sizes, side files and batch headers."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace

from format import layout
from format.columns import LOG_DIR
from format.errors import KafkaLogError, NotALogDir
from format.files import meta_properties
from format.files.side_file import problem_findings
from format.findings import Finding, finding, finding_of
from format.limits import DEFAULT_LIMITS, Limits
from format.location import Location
from format.node.log_dir import Checkpoints, Kind, LogDir
from format.node.partition import (
    DirectorySizes,
    Partition,
    Segment,
    key_of_directory,
    location_of_file,
    read_partition,
    size_of_files,
)
from format.node.partition_surroundings import (
    MAX_BASE_OFFSET,
    interrupted_finding,
    unexpected_finding,
    unexpected_note,
)
from format.node.target import Target, target_at
from format.rows.record_rows import Row
from format.scan.cluster import cluster_of
from format.scan.progress import Advance, no_progress
from format.state.cluster_context import ClusterContext
from format.verbs.ls.known_topics import known_by
from format.verbs.ls.partition_listing import ListedPartition, PartitionListing
from format.verbs.ls.segment_listing import SegmentListing, joined_notes, list_log, list_segment
from format.verbs.ls.units import ListScan, ListUnit

#: Sort keys. Sizes, counts and times sort the largest first; ties and unknown values sort by name.
SORT_KEYS = ("name", "size", "segments", "batches", "time")
#: Keys that need only names and sizes, so that a listing need not wait for the others.
_CHEAP_SORT_KEYS = ("size", "segments")
_SEGMENT_KINDS = (
    Kind.LOG,
    Kind.OFFSET_INDEX,
    Kind.TIME_INDEX,
    Kind.TRANSACTION_INDEX,
    Kind.PRODUCER_SNAPSHOT,
)
_SHOWN_NAMES = 5
_Item = TypeVar("_Item")


class LogDirListing(msgspec.Struct, frozen=True):
    """One row of columns.LOG_DIR, which documents the fields."""

    path: str
    cluster_id: str | None
    node_id: int | None
    directory_id: str | None
    partition_count: int
    size_bytes: int
    clean_shutdown: bool
    lock_held: bool | None
    notes: str | None

    def row(self) -> Row:
        """The fields in the order of columns.LOG_DIR."""
        return tuple(getattr(self, name) for name in LOG_DIR.names)


Listing = LogDirListing | PartitionListing | SegmentListing


class ListTerms(msgspec.Struct, frozen=True):
    """The options of a listing.

    ``scan`` False reads no log and no index. ``segments`` lists the segments of each partition; None does so where the
    path is a partition. ``sort`` is one of SORT_KEYS. ``context`` has the topics of the metadata log.
    """

    scan: bool = True
    segments: bool | None = None
    sort: str = "name"
    reverse: bool = False
    limits: Limits = DEFAULT_LIMITS
    advance: Advance = no_progress
    context: ClusterContext | None = None


PLAIN = ListTerms()


def ls(path: Path | Target, terms: ListTerms = PLAIN) -> Iterator[Listing | Finding]:
    """List a log directory and its partitions, a partition and its segments, or one segment.

    The findings about a partition come before its listing. Raises InputError for a path that does not exist or is none
    of the three.
    """
    target = target_at(path)
    path, kind = target.path, target.kind
    if kind is Kind.LOG_DIR:
        yield from target.link_findings()
        for log_dir in target.log_dirs:
            yield from _log_dir(log_dir, bool(terms.segments), terms)
    elif kind is Kind.PARTITION:
        checkpoints = target.checkpoints_around(terms.limits)
        yield from checkpoints.findings
        listing = ListScan(terms.scan, terms.segments is not False, terms.limits)
        for item in listing.listed(ListUnit(path, checkpoints), None, terms.advance):
            if isinstance(item, ListedPartition):
                yield from _with_segments(known_by(terms.context, item), terms)
            else:
                yield item
    elif kind in _SEGMENT_KINDS:
        yield (yield from _segment_of_file(path, terms))
    elif kind is Kind.KRAFT_SNAPSHOT:
        yield (
            yield from list_log(
                path, location_of_file(path), scan=terms.scan, limits=terms.limits, advance=terms.advance
            )
        )
    else:
        raise NotALogDir(
            "ls lists log directories, partitions and segments; dump shows what this file holds", Location(str(path))
        )


def _log_dir(found: LogDir, with_segments: bool, terms: ListTerms) -> Iterator[Listing | Finding]:
    # Checkpoints are read before the logs: a running broker only moves the ends of the logs past them.
    checkpoints = found.checkpoints(terms.limits)
    yield from checkpoints.findings
    sizes = {each: sizes_of(found, each) for each in found.partitions}
    yield (yield from log_dir_listing(found, checkpoints, sizes.values(), terms.limits))

    partitions = found.partitions
    if terms.sort in _CHEAP_SORT_KEYS:
        by_size = {"size": lambda each: sizes[each].log_size_bytes, "segments": lambda each: sizes[each].segment_count}
        partitions = _sorted(partitions, by_size[terms.sort], terms.reverse)
    elif terms.sort == "name":
        partitions = _sorted(partitions, None, terms.reverse)
    else:
        every: list[ListedPartition] = []
        for item in _listed(found, partitions, checkpoints, with_segments, terms):
            if isinstance(item, ListedPartition):
                every.append(item)
            else:
                yield item
        key = _scanned_key(terms.sort)
        for each in _sorted(every, lambda one: key(one.listing), terms.reverse):
            yield from _with_segments(each, terms)
        return
    for item in _listed(found, partitions, checkpoints, with_segments, terms):
        if isinstance(item, ListedPartition):
            yield from _with_segments(item, terms)
        else:
            yield item


def _listed(
    found: LogDir, partitions: Sequence[Path], checkpoints: Checkpoints, with_segments: bool, terms: ListTerms
) -> Iterator[Finding | ListedPartition]:
    """The partitions in this order, each after its findings."""
    scan = ListScan(terms.scan, with_segments, terms.limits)
    units = [ListUnit(each, checkpoints.of_partition(key_of_directory(each))) for each in partitions]
    cluster = cluster_of(found.path)
    if cluster is not None:
        items = cluster.results(scan, units, terms.advance)
    else:
        items = chain.from_iterable(
            scan.listed(unit, partial(found.partition, unit.path), terms.advance) for unit in units
        )
    for item in items:
        yield known_by(terms.context, item) if isinstance(item, ListedPartition) else item


def sizes_of(log_dir: LogDir, path: Path) -> DirectorySizes:
    """The sizes of a partition; none if it cannot be listed, which is reported later in its place."""
    try:
        return log_dir.partition(path).sizes
    except KafkaLogError:
        return DirectorySizes()


def _with_segments(listed: ListedPartition, terms: ListTerms) -> Iterator[Listing]:
    yield listed.listing
    keys: dict[str, Callable[[SegmentListing], int | None]] = {
        "size": lambda each: each.size_bytes,
        "batches": _scanned_key("batches"),
        "time": _scanned_key("time"),
    }
    yield from _sorted(list(listed.segments), keys.get(terms.sort), terms.reverse)


def _scanned_key(sort: str) -> Callable[[Any], int | None]:
    return (lambda each: each.batch_count) if sort == "batches" else (lambda each: each.max_timestamp)


def _sorted(items: Sequence[_Item], key: Callable[[_Item], int | None] | None, reverse: bool) -> list[_Item]:
    """The largest first, ties in the given order, unknown values last. ``reverse`` reverses the whole list."""
    ordered = list(items)
    if key is not None:
        values = {id(each): key(each) for each in ordered}
        ordered.sort(key=lambda each: (values[id(each)] is None, -(values[id(each)] or 0)))
    return ordered[::-1] if reverse else ordered


def log_dir_listing(
    found: LogDir, checkpoints: Checkpoints, sizes: Iterable[DirectorySizes], limits: Limits
) -> Generator[Finding, None, LogDirListing]:
    """List a log directory itself, with the sizes of its partitions: yields findings, returns the listing."""
    location = Location(str(found.path))
    notes: list[str] = []
    cluster_id = node_id = directory_id = None
    if found.meta_properties is None:
        notes.append(f"no {layout.META_PROPERTIES}")
    else:
        where = Location(str(found.meta_properties))
        try:
            properties = meta_properties.read(found.meta_properties, limits)
        except KafkaLogError as error:
            notes.append(f"{layout.META_PROPERTIES}: {error.code}")
            yield finding_of(error, where)
        else:
            cluster_id, node_id, directory_id = properties.cluster_id, properties.node_id, properties.directory_id
            yield from problem_findings(properties.problems, where)
    lock = found.broker_lock
    if lock.is_held:
        notes.append("in use by a running broker" + (f", process {lock.pid}" if lock.pid else ""))
    notes += yield from _shutdown(found, location)
    notes += yield from _checkpointed_but_absent(found, checkpoints)
    for entry in found.interrupted_writes:
        yield interrupted_finding(entry, Location(str(entry)))
    for entry in found.unexpected:
        yield unexpected_finding(entry, Location(str(entry)))
    if found.unexpected:
        notes.append(unexpected_note(found.unexpected))
    return LogDirListing(
        path=str(found.path),
        cluster_id=cluster_id,
        node_id=node_id,
        directory_id=directory_id,
        partition_count=len(found.partitions),
        size_bytes=size_of_files(found.files) + sum(each.size_bytes for each in sizes),
        clean_shutdown=found.clean_shutdown is not None,
        lock_held=lock.is_held,
        notes=joined_notes(notes),
    )


def _shutdown(found: LogDir, location: Location) -> Generator[Finding, None, list[str]]:
    """The finding about a missing clean-shutdown file; a directory with only the metadata log never has one."""
    if found.clean_shutdown is not None:
        return []
    if not found.is_marked_at_shutdown:
        return []
    yield finding("unclean-shutdown", location, f"there is no {layout.CLEAN_SHUTDOWN}: the broker runs, or was killed")
    return ["no clean shutdown"]


def _checkpointed_but_absent(found: LogDir, checkpoints: Checkpoints) -> Generator[Finding, None, list[str]]:
    """One finding for each checkpoint that names partitions without a directory here; returns a note on all of them."""
    present = found.topic_partitions
    absent: set[tuple[str, int]] = set()
    for name, offsets in checkpoints.by_name.items():
        missing = sorted(offsets.keys() - present)
        if not missing:
            continue
        absent.update(missing)
        yield finding(
            "checkpoint-stale-entry",
            Location(str(found.checkpoint_paths[name])),
            f"names {_partition_names(missing)}, for which there is no directory here",
        )
    return [f"checkpoints name {_partition_names(sorted(absent))}, not here"] if absent else []


def _partition_names(partitions: list[tuple[str, int]]) -> str:
    shown = ", ".join(f"{topic}-{number}" for topic, number in partitions[:_SHOWN_NAMES])
    more = len(partitions) - _SHOWN_NAMES
    return f"{shown} and {more} more" if more > 0 else shown


def _segment_of_file(path: Path, terms: ListTerms) -> Generator[Finding, None, SegmentListing]:
    """The segment that a file belongs to, with its side files; a log with another name is listed by itself."""
    location = location_of_file(path)
    match = layout.SEGMENT_FILE.match(path.name)
    if match is None or location.base_offset is None or location.base_offset > MAX_BASE_OFFSET:
        return (yield from list_log(path, location, scan=terms.scan, limits=terms.limits, advance=terms.advance))
    partition = read_partition(path.parent)
    live = [each.base_offset for each in partition.segments if each.base_offset <= MAX_BASE_OFFSET]
    following = [each for each in live if each > location.base_offset]
    segment = _segment_with(partition, path) or Segment(
        path.parent, location.base_offset, None, {match["suffix"]: path}
    )
    next_base_offset = min(following) if following and segment.leftover is None else None
    listed = yield from list_segment(
        segment,
        replace(location, path=str(segment.log or path)),
        next_base_offset=next_base_offset,
        scan=terms.scan,
        limits=terms.limits,
        advance=terms.advance,
    )
    return listed.listing


def _segment_with(partition: Partition, path: Path) -> Segment | None:
    every = (*partition.segments, *partition.leftovers, *partition.orphans)
    return next((each for each in every if any(file.name == path.name for file in each.files.values())), None)
