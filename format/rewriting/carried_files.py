"""Copies files other than logs and indexes into the output, unchanged or adjusted to the output.

A file at which a broker would stop is left out, with a finding: a broker rebuilds a missing one or starts without it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import numpy as np

from format import layout
from format.checks.directories import KraftSnapshotCheck
from format.errors import InputError, InvalidCheckpoint, KafkaLogError
from format.files import (
    clean_shutdown,
    leader_epoch_checkpoint,
    meta_properties,
    offset_checkpoint,
    partition_metadata,
    producer_snapshot,
    quorum_state,
)
from format.files.meta_properties import KnownIds, MetaProperties
from format.files.offset_checkpoint import TopicPartitionOffset
from format.files.side_file import problem_findings, read_reported
from format.findings import Finding, finding, finding_of
from format.io.source import FileSource, Source, read_whole
from format.kafka_uuid import is_reserved
from format.limits import DEFAULT_LIMITS, Limits
from format.location import Location
from format.log.control_records import first_control_records
from format.log.walker import batch_chunks
from format.node.log_dir import LogDir
from format.node.partition import Partition
from format.rewriting.publication import Publication

_COPY_BYTES = 4 * 1024 * 1024
#: The properties that Kafka writes into meta.properties; others, and comments, come from users.
_IDENTITY = ("version", "broker.id", "node.id", "cluster.id", "directory.id")
_LEFT_OUT = "the file is left out"


class LogRange(msgspec.Struct, frozen=True):
    """The offsets of a partition of the output: base offset of the first segment, and log end offset."""

    start_offset: int
    end_offset: int

    def nearest(self, offset: int) -> int:
        """The offset itself, or the end of the range that is nearest to it."""
        return min(max(offset, self.start_offset), self.end_offset)


class CarryTerms(msgspec.Struct, frozen=True):
    """How files are carried over: ``knows_all`` writes only what is known to be Kafka's, never bytes as they are.

    ``topic_ids`` are topic ids by name, for a partition.metadata that cannot be read. ``known_ids`` are the ids of the
    node and of the log directory, for a meta.properties that cannot be read or lacks one.
    """

    limits: Limits = DEFAULT_LIMITS
    knows_all: bool = False
    topic_ids: Mapping[str, str] = msgspec.field(default_factory=dict)
    known_ids: KnownIds = msgspec.field(default_factory=KnownIds)


FileT = TypeVar("FileT")


def pieces_of(source: Source, start: int, end: int) -> Iterator[bytes]:
    """The bytes of a range of a file, a few MiB at a time."""
    while start < end:
        part = source.read_at(start, min(_COPY_BYTES, end - start))
        yield part
        start += len(part)


def copy_file(publication: Publication, path: Path, relative_path: str) -> None:
    """Copy a file byte for byte. Raises UnreadableFile, FileChanged, OutputError."""
    with FileSource(path) as source, publication.create(relative_path) as new:
        new.mtime_ns = source.mtime_ns
        for part in pieces_of(source, 0, source.size_bytes):
            new.write(part)


def topic_ids_of(partitions: Iterable[Partition], limits: Limits) -> dict[str, str]:
    """The ids of topics by name, from the partition.metadata of any of their partitions."""
    found: dict[str, str] = {}
    for partition in partitions:
        if partition.topic is None or partition.metadata is None or partition.topic in found:
            continue
        try:
            found[partition.topic] = partition_metadata.read(partition.metadata, limits).topic_id
        except KafkaLogError:
            continue
    return found


class CarriedFiles(msgspec.Struct, frozen=True):
    """What was found on the way, and the offsets of the producer snapshots that were copied."""

    findings: list[Finding]
    snapshots: set[int] = msgspec.field(default_factory=set)


def carry_partition_files(
    publication: Publication, partition: Partition, name: str, terms: CarryTerms, *, snapshots: bool
) -> CarriedFiles:
    """Copy partition.metadata, the leader epochs, quorum-state, KRaft snapshots and (``snapshots``) producer snapshots.

    A file that cannot be read is left out, with findings: a broker rebuilds leader epochs from the log, and
    ``rebuild_snapshots`` makes the producer snapshots.
    """
    carrying = _Carrying(publication, terms, name)
    carried = CarriedFiles(list(_carried_metadata(carrying, partition)))
    findings = carried.findings
    if (path := partition.leader_epoch_checkpoint) is not None:
        place = partition.location(path)
        findings += carrying.small(path, place, leader_epoch_checkpoint.read, leader_epoch_checkpoint.write)
    if (path := partition.quorum_state) is not None and not terms.knows_all:
        findings += carrying.small(path, partition.location(path), quorum_state.read, quorum_state.write)
    for each in partition.kraft_snapshots if not terms.knows_all else ():
        if each.leftover is None:
            findings += carrying.kraft_snapshot(each.path, partition.location(each.path), is_bootstrap=False)
    for base_offset, path in sorted(partition.snapshots.items()) if snapshots else ():
        location = partition.location(path, base_offset)
        snapshot = read_reported(findings, location, producer_snapshot.read, path, terms.limits)
        if snapshot is not None and not snapshot.problems:
            carried.snapshots.add(base_offset)
            carrying.write(path.name, read_whole(path, terms.limits.max_decompressed_bytes))
    return carried


def _carried_metadata(carrying: _Carrying, partition: Partition) -> Iterator[Finding]:
    """partition.metadata, rebuilt where it cannot be read and the topic's id is known from elsewhere."""
    terms, path = carrying.terms, partition.metadata
    topic_id = terms.topic_ids.get(partition.topic or "")
    if path is None:
        if topic_id is None or not partition.segments:
            return
        message = f"{layout.PARTITION_METADATA} is missing, so that a broker would take the log for stray"
        found = finding("replica-stray", partition.location(), f"{message}; it is made with topic id {topic_id}")
    else:
        location = partition.location(path)
        try:
            problems = partition_metadata.read(path, terms.limits).problems
        except KafkaLogError as error:
            words = "it is left out, since a broker stops at it; without it a KRaft broker takes the log for stray"
            found = _and(finding_of(error, location), f"it is rebuilt with topic id {topic_id}" if topic_id else words)
        else:
            yield from problem_findings(problems, location)
            yield from carrying.small(path, location, partition_metadata.read, partition_metadata.write, problems=False)
            return
    yield found
    if topic_id is not None:
        carrying.write(layout.PARTITION_METADATA, partition_metadata.write(topic_id))


def carry_log_dir_files(
    publication: Publication,
    log_dir: LogDir,
    ranges: dict[tuple[str, int], LogRange],
    terms: CarryTerms,
    *,
    is_whole: bool,
) -> Iterator[Finding]:
    """Carry over the files of the log directory itself: identity, bootstrap metadata, offset checkpoints.

    ``ranges`` are the offsets of the output's partitions; a checkpoint keeps only their entries. ``is_whole``: the
    output has every record of the source, so that offsets and the clean-shutdown file stay. Otherwise offsets are moved
    into the range of the log, and recovery points to its start: a broker then checks the whole log, and rebuilds the
    producers' state.
    """
    carrying = _Carrying(publication, terms)
    if (path := log_dir.meta_properties) is not None:
        yield from _carried_identity(carrying, path)
    if (path := log_dir.bootstrap_checkpoint) is not None and not terms.knows_all:
        yield from carrying.kraft_snapshot(path, Location(str(path)), is_bootstrap=True)
    if (path := log_dir.clean_shutdown) is not None and is_whole:
        yield from carrying.small(path, Location(str(path)), clean_shutdown.read, clean_shutdown.write)
    for name, path in sorted(log_dir.checkpoint_paths.items()):
        location = Location(str(path))
        try:
            checkpoint = offset_checkpoint.read(path, terms.limits)
        except KafkaLogError as error:
            yield finding_of(error, location)
            continue
        yield from problem_findings(checkpoint.problems, location)
        entries = []
        for (topic, partition), offset in checkpoint.by_partition().items():
            log_range = ranges.get((topic, partition))
            if log_range is None:
                continue
            if not is_whole:
                nearest = log_range.nearest(offset)
                if name == layout.RECOVERY_POINT_CHECKPOINT:
                    nearest = log_range.start_offset
                elif nearest != offset:
                    yield finding(
                        "checkpoint-mismatch",
                        Location(str(path), topic, partition, offset=offset),
                        f"offset {offset} of {topic}-{partition} is outside the log that is left, offsets "
                        f"{log_range.start_offset} to {log_range.end_offset}; {nearest} is written instead",
                    )
                offset = nearest
            entries.append(TopicPartitionOffset(topic, partition, offset))
        publication.write_file(name, offset_checkpoint.write(entries))


def _carried_identity(carrying: _Carrying, path: Path) -> Iterator[Finding]:
    """meta.properties, rebuilt where it cannot be read and the ids of the cluster and of the node are known."""
    terms, location = carrying.terms, Location(str(path))
    try:
        found = meta_properties.read(path, terms.limits)
        if found.node_id is None:
            raise InvalidCheckpoint("the property node.id or broker.id is missing", location)
    except KafkaLogError as error:
        content = meta_properties.mended(path, terms.known_ids, terms.limits)
        words = (
            "the file is left out: nothing else here has its ids. Before a broker starts, write one with version, "
            "cluster.id and node.id, from a backup or another node"
        )
        if content is not None:
            words = "it is rebuilt with what is sound in it"
            carrying.write(path.name, content)
        wrong = finding_of(error, location)
        yield finding(wrong.code, location, f"{wrong.message}; {words}")
        return
    if found.version > 0 and (found.directory_id is None or is_reserved(found.directory_id)):
        directory_id = terms.known_ids.directory_id(found.node_id)
        if found.directory_id != directory_id:
            ids = [] if directory_id is None else [("directory.id", directory_id)]
            others = [each for each in found.properties if each[0] != "directory.id"]
            carrying.write(path.name, meta_properties.write([*others, *ids]))
            what = f"directory.id={found.directory_id} is reserved by Kafka"
            what = "the property directory.id is missing" if found.directory_id is None else what
            words = "it is written, as the metadata log has it"
            words = "it is left out, and a broker makes up a new one" if directory_id is None else words
            yield finding("checkpoint-invalid", location, f"{what}; {words}")
            return
    yield from carrying.small(path, location, meta_properties.read, _written_identity)


def _written_identity(found: MetaProperties) -> bytes:
    """meta.properties with only the properties that Kafka writes, each once."""
    known = dict(found.properties)
    return meta_properties.write((name, known[name]) for name in _IDENTITY if name in known)


def _and(found: Finding, words: str) -> Finding:
    """A finding that also says what is done."""
    return finding(found.code, found.location, f"{found.message}; {words}")


class _Carrying(msgspec.Struct, frozen=True):
    """Carries files into one directory of the output."""

    publication: Publication
    terms: CarryTerms
    directory: str = ""

    def write(self, name: str, content: bytes) -> None:
        self.publication.write_file(f"{self.directory}/{name}" if self.directory else name, content)

    def small(
        self,
        path: Path,
        location: Location,
        read: Callable[[Path, Limits], FileT],
        write: Callable[[FileT], bytes],
        *,
        problems: bool = True,
    ) -> Iterator[Finding]:
        """Carry a small file, unchanged or rewritten from what is known of it. One that cannot be read is left out."""
        try:
            known: Any = read(path, self.terms.limits)
            if problems:
                yield from problem_findings(known.problems, location)
            is_rewritten = self.terms.knows_all
            content = write(known) if is_rewritten else read_whole(path, self.terms.limits.max_decompressed_bytes)
        except KafkaLogError as error:
            yield _and(finding_of(error, location), _LEFT_OUT)
            return
        self.write(path.name, content)

    def kraft_snapshot(self, path: Path, location: Location, *, is_bootstrap: bool) -> Iterator[Finding]:
        """Carry a KRaft snapshot or bootstrap.checkpoint; one that is damaged or unfinished is left out."""
        check = KraftSnapshotCheck(location)
        try:
            with FileSource(path) as source:
                for chunk in batch_chunks(source, limits=self.terms.limits):
                    check.feed(first_control_records(chunk, np.ones(len(chunk.table), bool), self.terms.limits))
                    if chunk.damage is not None or not chunk.table.crc_valid.all():
                        message = "a batch in it is damaged; the file is left out, since a broker stops at it"
                        yield finding("batch-crc-mismatch", location, message)
                        return
            unfinished = list(check.findings(is_bootstrap=is_bootstrap))
            yield from (_and(found, _LEFT_OUT) for found in unfinished)
            if not unfinished:
                copy_file(self.publication, path, f"{self.directory}/{path.name}" if self.directory else path.name)
        except InputError as error:
            yield finding_of(error, location)
