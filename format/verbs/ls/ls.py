"""ls: lists log directories, partitions and segments, from names, sizes, side files and batch headers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import msgspec
from msgspec.structs import replace

from format import layout
from format.columns import LOG_DIR
from format.errors import KafkaLogError, NotALogDir
from format.files import meta_properties
from format.files.side_file import problem_findings
from format.findings import Finding, finding, finding_of
from format.io.live_broker import settled
from format.io.session import path_of
from format.limits import DEFAULT_LIMITS, Limits
from format.location import Location
from format.node.log_dir import Checkpoints, Kind, LogDir, directory_around
from format.node.offsets import MARKS_OF_REPLICAS
from format.node.partition import (
    DirectorySizes,
    Partition,
    Segment,
    key_of_directory,
    location_of_directory,
    location_of_file,
    read_partition,
    size_of_files,
)
from format.node.partition_surroundings import interrupted_finding, unexpected_finding, unexpected_note
from format.node.target import Target, target_at
from format.rows.record_rows import Row
from format.scan.cluster import cluster_of
from format.scan.progress import Advance, no_progress
from format.scan.protocol import Driver, LogUnit
from format.state.cluster_context import ClusterContext
from format.verbs.ls.partition_listing import (
    ListedPartition,
    PartitionListing,
    PartitionTerms,
    SegmentListing,
    joined_notes,
    list_log,
    list_partition,
    list_segment,
)


class ListUnit(msgspec.Struct, frozen=True):
    """A partition directory, and the checkpoints around it."""

    path: Path
    checkpoints: Checkpoints

    def listed(self, terms: PartitionTerms, listed: Callable[[], Partition] | None = None) -> ListedPartition:
        """The listing; ``listed`` returns the partition where its directory was listed before.

        Beside a running broker, what is wrong is looked at again.
        """
        first = list_partition(self.path, self.checkpoints, terms, listed=listed)
        if self.checkpoints.lock is None or not self.checkpoints.lock.may_be_held:
            return first

        def again() -> tuple[list[Finding], ListedPartition]:
            checkpoints = Target(self.path).checkpoints_around(terms.limits)
            found = list_partition(self.path, checkpoints, replace(terms, advance=no_progress))
            return found.findings, found

        findings, found = settled((first.findings, first), again, location_of_directory(self.path))
        return replace(found, findings=findings)


class ListScan(msgspec.Struct, frozen=True):
    """ls as a scan of units for a cluster: the partitions of a log directory, each listed by itself.

    Logs are not cut into ranges, since headers are read fast.
    """

    walk: ClassVar[None] = None

    terms: PartitionTerms

    def place(self, unit: ListUnit) -> Path:
        """The partition directory."""
        return unit.path

    def logs(self, unit: ListUnit) -> tuple[LogUnit, ...]:
        """None: the listing opens them itself."""
        return ()

    def results(self, unit: ListUnit, driver: Driver[Any]) -> Iterator[ListedPartition]:
        yield unit.listed(self.terms)


def known_by(
    context: ClusterContext | None, listing: PartitionListing, log_dir: Path | None = None
) -> PartitionListing:
    """The listing with the topic id, if the directory has none, the topic's configs, and notes.

    ``log_dir`` is the directory of the partition's own, for callers that have it.
    """
    image = None if context is None else context.image
    if context is None or image is None or listing.topic is None or listing.mark not in MARKS_OF_REPLICAS:
        return listing
    log_dir = log_dir or directory_around(path_of(listing.path))
    if context.is_at_another_cluster(log_dir):
        return listing
    topic_id = image.topic_id(listing.topic)
    configs = image.topic_configs(listing.topic)
    note = None if listing.topic == layout.CLUSTER_METADATA_TOPIC else _note(context, log_dir, listing, topic_id)
    notes = [each for each in (listing.notes, note) if each]
    return replace(listing, topic_id=listing.topic_id or topic_id, configs=dict(configs), notes=joined_notes(notes))


def _note(context: ClusterContext, log_dir: Path, listing: PartitionListing, topic_id: str | None) -> str | None:
    """Why the directory is stray or not served; None where it is served, or where the image may be incomplete."""
    metadata, image = context.state, context.image
    if metadata is None or image is None or image.problem is not None:
        return None
    if metadata.is_damaged or metadata.last_offset < 0:
        return None
    node_id, number = context.node_id_at(log_dir), -1 if listing.partition is None else listing.partition
    if listing.topic_id is not None and listing.topic_id != topic_id:
        if listing.topic_id not in image.names:
            return "stray: the metadata log has no topic of its id"
        # A broker goes by the id, and keeps a log that it has under another name (LogManager.isStrayReplica).
        state = image.partitions.get((listing.topic_id, number))
        result = "stray" if state is None or node_id not in (None, *state.replicas) else "not served"
        return f"{result}: its topic id is that of {image.names[listing.topic_id]}"
    if topic_id is None:
        return "stray: the metadata log has no topic of its name"
    state = image.partitions.get((topic_id, number))
    if node_id is not None and (state is None or node_id not in state.replicas):
        return f"stray: the metadata log does not assign it to node {node_id}"
    return None


#: Sort keys. Sizes, counts and times sort the largest first; ties and unknown values sort by name.
SORT_KEYS = ("name", "size", "segments", "batches", "time")
#: Keys that need only names and sizes, so that a listing need not wait for the others.
_CHEAP_SORT_KEYS = ("size", "segments")
#: Those that wait for all of them.
_SCANNED_SORT_KEYS = {"batches": attrgetter("batch_count"), "time": attrgetter("max_timestamp")}
_SEGMENT_KINDS = (Kind.LOG, Kind.OFFSET_INDEX, Kind.TIME_INDEX, Kind.TRANSACTION_INDEX, Kind.PRODUCER_SNAPSHOT)
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
        return LOG_DIR.row_of(self)


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

    def of_partitions(self, with_segments: bool) -> PartitionTerms:
        """The options for single partitions."""
        return PartitionTerms(self.scan, with_segments, self.limits, self.advance)


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
        listed = ListUnit(path, checkpoints).listed(terms.of_partitions(terms.segments is not False))
        yield from listed.findings
        yield from _with_segments(listed, terms)
    elif kind in _SEGMENT_KINDS or kind is Kind.KRAFT_SNAPSHOT:
        found: list[Finding] = []
        listing = _segment_of_file(path, kind, terms, found)
        yield from found
        yield listing
    else:
        raise NotALogDir(
            "ls lists log directories, partitions and segments; dump shows what this file holds", Location(str(path))
        )


def _log_dir(found: LogDir, with_segments: bool, terms: ListTerms) -> Iterator[Listing | Finding]:
    # Checkpoints are read before the logs: a running broker only moves the ends of the logs past them.
    checkpoints = found.checkpoints(terms.limits)
    yield from checkpoints.findings
    sizes = {each: sizes_of(found, each) for each in found.partitions}
    findings: list[Finding] = []
    listing = log_dir_listing(found, checkpoints, sizes.values(), terms.limits, findings)
    yield from findings
    yield listing

    partitions = found.partitions
    if terms.sort in _CHEAP_SORT_KEYS:
        by_size = {"size": lambda each: sizes[each].log_size_bytes, "segments": lambda each: sizes[each].segment_count}
        partitions = _sorted(partitions, by_size[terms.sort], terms.reverse)
    elif terms.sort == "name":
        partitions = _sorted(partitions, None, terms.reverse)
    waiting: list[ListedPartition] = []
    for item in _listed(found, partitions, checkpoints, with_segments, terms):
        if isinstance(item, Finding):
            yield item
            continue
        yield from item.findings
        if terms.sort in _SCANNED_SORT_KEYS:
            waiting.append(item)
        else:
            yield from _with_segments(item, terms)
    key = _SCANNED_SORT_KEYS.get(terms.sort)
    for each in [] if key is None else _sorted(waiting, lambda one: key(one.listing), terms.reverse):
        yield from _with_segments(each, terms)


def _listed(
    found: LogDir, partitions: Sequence[Path], checkpoints: Checkpoints, with_segments: bool, terms: ListTerms
) -> Iterator[Finding | ListedPartition]:
    """The partitions in this order."""
    units = [ListUnit(each, checkpoints.of_partition(key_of_directory(each))) for each in partitions]
    own_terms = terms.of_partitions(with_segments)
    cluster = cluster_of(found.path)
    if cluster is not None:
        scan = ListScan(replace(own_terms, advance=no_progress))
        yield from cluster.results(scan, units, terms.advance)
    else:
        for unit in units:
            yield unit.listed(own_terms, partial(found.partition, unit.path))


def sizes_of(log_dir: LogDir, path: Path) -> DirectorySizes:
    """The sizes of a partition; none if it cannot be listed, which is reported later in its place."""
    try:
        return log_dir.partition(path).sizes
    except KafkaLogError:
        return DirectorySizes()


def _with_segments(listed: ListedPartition, terms: ListTerms) -> Iterator[Listing]:
    yield known_by(terms.context, listed.listing)
    key = _SCANNED_SORT_KEYS.get(terms.sort)
    if terms.sort == "size":
        key = attrgetter("size_bytes")
    yield from _sorted(listed.segments, key, terms.reverse)


def _sorted(items: Sequence[_Item], key: Callable[[_Item], int | None] | None, reverse: bool) -> list[_Item]:
    """The largest first, ties in the given order, unknown values last. ``reverse`` reverses the whole list."""
    ordered = list(items)
    if key is not None:
        values = {id(each): key(each) for each in ordered}
        ordered.sort(key=lambda each: (values[id(each)] is None, -(values[id(each)] or 0)))
    return ordered[::-1] if reverse else ordered


def log_dir_listing(
    log_dir: LogDir, checkpoints: Checkpoints, sizes: Iterable[DirectorySizes], limits: Limits, found: list[Finding]
) -> LogDirListing:
    """The listing of a log directory itself, with the sizes of its partitions; findings are added to ``found``."""
    location = Location(str(log_dir.path))
    notes: list[str] = []
    cluster_id = node_id = directory_id = None
    if log_dir.meta_properties is None:
        notes.append(f"no {layout.META_PROPERTIES}")
    else:
        where = Location(str(log_dir.meta_properties))
        try:
            properties = meta_properties.read(log_dir.meta_properties, limits)
        except KafkaLogError as error:
            notes.append(f"{layout.META_PROPERTIES}: {error.code}")
            found.append(finding_of(error, where))
        else:
            cluster_id, node_id, directory_id = properties.cluster_id, properties.node_id, properties.directory_id
            found += problem_findings(properties.problems, where)
    lock = log_dir.broker_lock
    if lock.is_held:
        notes.append("in use by a running broker" + (f", process {lock.pid}" if lock.pid else ""))
    if log_dir.clean_shutdown is None and log_dir.is_marked_at_shutdown:  # not where only the metadata log is
        words = f"there is no {layout.CLEAN_SHUTDOWN}: the broker runs, or was killed"
        found.append(finding("unclean-shutdown", location, words))
        notes.append("no clean shutdown")
    notes += _checkpointed_but_absent(log_dir, checkpoints, found)
    found += [interrupted_finding(entry, Location(str(entry))) for entry in log_dir.interrupted_writes]
    found += [unexpected_finding(entry, Location(str(entry))) for entry in log_dir.unexpected]
    if log_dir.unexpected:
        notes.append(unexpected_note(log_dir.unexpected))
    return LogDirListing(
        path=str(log_dir.path),
        cluster_id=cluster_id,
        node_id=node_id,
        directory_id=directory_id,
        partition_count=len(log_dir.partitions),
        size_bytes=size_of_files(log_dir.files) + sum(each.size_bytes for each in sizes),
        clean_shutdown=log_dir.clean_shutdown is not None,
        lock_held=lock.is_held,
        notes=joined_notes(notes),
    )


def _checkpointed_but_absent(log_dir: LogDir, checkpoints: Checkpoints, found: list[Finding]) -> list[str]:
    """One finding for each checkpoint that names partitions without a directory here; returns a note on all of them."""
    absent: set[tuple[str, int]] = set()
    for name, offsets in checkpoints.by_name.items():
        missing = sorted(offsets.keys() - log_dir.topic_partitions)
        if missing:
            absent.update(missing)
            words = f"names {_partition_names(missing)}, for which there is no directory here"
            found.append(finding("checkpoint-stale-entry", Location(str(log_dir.checkpoint_paths[name])), words))
    return [f"checkpoints name {_partition_names(sorted(absent))}, not here"] if absent else []


def _partition_names(partitions: list[tuple[str, int]]) -> str:
    shown = ", ".join(f"{topic}-{number}" for topic, number in partitions[:_SHOWN_NAMES])
    more = len(partitions) - _SHOWN_NAMES
    return f"{shown} and {more} more" if more > 0 else shown


def _segment_of_file(path: Path, kind: Kind, terms: ListTerms, found: list[Finding]) -> SegmentListing:
    """The segment that a file belongs to, with its side files; a log with another name is listed by itself."""
    location, own_terms = location_of_file(path), terms.of_partitions(True)
    match = None if kind is Kind.KRAFT_SNAPSHOT else layout.SEGMENT_FILE.match(path.name)
    if match is None or location.base_offset is None:
        return list_log(path, location, own_terms, found)
    partition = read_partition(path.parent)
    following = [each.base_offset for each in partition.segments if each.base_offset > location.base_offset]
    segment = _segment_with(partition, path) or Segment(
        path.parent, location.base_offset, None, {match["suffix"]: path}
    )
    return list_segment(
        segment,
        replace(location, path=str(segment.log or path)),
        own_terms,
        found,
        next_base_offset=min(following) if following and segment.leftover is None else None,
    )[0]


def _segment_with(partition: Partition, path: Path) -> Segment | None:
    every = (*partition.segments, *partition.leftovers, *partition.orphans)
    return next((each for each in every if any(file.name == path.name for file in each.files.values())), None)
