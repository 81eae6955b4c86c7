"""The sources of a writing command: partitions, their names in the output, and perhaps a log directory."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from format import layout
from format.errors import FileChanged, InputError, KafkaLogError, UnreadableFile
from format.files.side_file import INT32_RANGE
from format.findings import Finding, finding, finding_of
from format.io.session import absolute
from format.io.source import FileSource
from format.limits import DEFAULT_LIMITS
from format.location import Location
from format.log.walker import batch_chunks
from format.node.log_dir import Kind, LogDir
from format.node.partition import (
    NOT_A_SEGMENT_NAME,
    Partition,
    Segment,
    location_of_directory,
    location_of_file,
    read_partition,
)
from format.node.partition_surroundings import completed_swaps, denied_log, unexpected_finding
from format.node.target import Target, nothing_to_read
from format.scan.drivers import size_of

_STOPS_BROKER = "boot-refused"


class WriteSources(msgspec.Struct, frozen=True):
    """The sources of a writing command, in order; ``partitions`` maps directory names of the output to partitions.

    ``log_dir`` is set where the source is a whole log directory. ``findings`` are about parts of the sources that the
    output will lack or change.
    """

    paths: tuple[Path, ...]
    partitions: dict[str, Partition]
    log_dir: LogDir | None = None
    findings: list[Finding] = msgspec.field(default_factory=list)

    @property
    def is_whole(self) -> bool:
        """Whether all partitions of the sources go into the output."""
        return not any(each.is_incomplete or each.code == _STOPS_BROKER for each in self.findings)

    @property
    def size_bytes(self) -> int:
        """Bytes of all live ``.log`` files, for progress."""
        return sum(size_of(each.log) for part in self.partitions.values() for each in part.segments if each.log)

    def job(self, command: str, **options: Any) -> dict[str, Any]:
        """The job of a run, for its manifest and for resuming: command, options, sources and their state."""
        return job_of(command, options, self.paths, self._all_files())

    def _all_files(self) -> Iterator[Path]:
        if self.log_dir is not None:
            yield from self.log_dir.checkpoint_paths.values()
        for partition in self.partitions.values():
            yield partition.path
            for segment in partition.segments:
                yield from segment.files.values()


def job_of(command: str, options: Mapping[str, Any], paths: Iterable[Path], files: Iterable[Path]) -> dict[str, Any]:
    """A job: command, options and sources, and a digest of the names, sizes and times of their files."""
    digest = hashlib.sha256()
    for path in files:
        try:
            status = path.lstat()
            digest.update(f"{path}\0{status.st_size}\0{status.st_mtime_ns}\n".encode("utf-8", "surrogateescape"))
        except OSError:
            digest.update(f"{path}\0gone\n".encode("utf-8", "surrogateescape"))
    return {
        "command": command,
        "options": dict(options),
        "sources": [str(each) for each in paths],
        "sources_state_sha256": digest.hexdigest(),
    }


def read_write_sources(paths: Sequence[Path], *, takes_files: bool = False) -> WriteSources:
    """The partitions at these paths: one log directory, or partition directories (or with ``takes_files`` logs).

    A partition directory that cannot be listed is left out, unless it is the only one. Raises InputError for other
    paths, for two partitions of the same name, for a path that does not exist, and where nothing is left.
    """
    if len(paths) == 1:
        target = Target(paths[0])
        if target.kind is Kind.LOG_DIR:
            return _of_log_dir(target)
    partitions: dict[str, Partition] = {}
    unreadable: list[UnreadableFile] = []
    for path in paths:
        try:
            partition = _partition_at(path, takes_files)
        except UnreadableFile as error:
            if len(paths) == 1 or isinstance(error, FileChanged):
                raise
            unreadable.append(error)
            continue
        name = partition.name if partition.mark is None else absolute(partition.path).name
        if name in partitions:
            raise InputError(f"there are two sources for {name} in the output", Location(str(path)))
        partitions[name] = partition
    if unreadable and not partitions:
        raise unreadable[0]
    findings = [_unreadable(Path(error.location.path), error) for error in unreadable if error.location is not None]
    return _completed(WriteSources(tuple(paths), partitions, None, findings))


def read_measured_sources(paths: Sequence[Path]) -> WriteSources:
    """The partitions for a command that measures and writes nothing: also several log directories, of any nodes.

    All replicas of a partition count, as each of them takes space. Raises as ``read_write_sources``.
    """
    targets = [Target(path) for path in paths]
    places = [
        log_dir.path
        for target in targets
        for log_dir in (target.log_dirs if target.kind is Kind.LOG_DIR else (target,))
    ]
    if len(places) == 1 or not any(target.kind is Kind.LOG_DIR for target in targets):
        return read_write_sources(paths)
    found = [read_write_sources([place]) for place in places]
    partitions = {str(partition.path): partition for each in found for partition in each.partitions.values()}
    return WriteSources(tuple(paths), partitions, None, [finding for each in found for finding in each.findings])


def _partition_at(path: Path, takes_files: bool) -> Partition:
    kind = Target(path).kind
    if kind is Kind.LOG_DIR:
        raise InputError(
            "a log directory must be the only source: give one log directory, or one or more partition directories"
        )
    if kind is Kind.PARTITION:
        return read_partition(path)
    if kind is Kind.LOG and takes_files:
        return _of_file(path)
    wanted = "a log directory, partition directories or .log files"
    wanted = wanted if takes_files else "a log directory or partition directories"
    raise InputError(f"cannot be the source: give {wanted}", Location(str(path)))


def _of_log_dir(target: Target) -> WriteSources:
    """One log directory without the partitions that cannot be listed or whose names stop a broker."""
    log_dirs = target.log_dirs
    if len(log_dirs) != 1:
        names = ", ".join(str(each.path) for each in log_dirs[:3]) + (", …" if len(log_dirs) > 3 else "")
        raise InputError(f"several log directories lie here ({names}): give one of them", Location(str(target.path)))
    log_dir = log_dirs[0]
    partitions: dict[str, Partition] = {}
    findings = [unexpected_finding(path, Location(str(path))) for path in log_dir.unexpected]
    seen: set[tuple[str, int, str | None]] = set()
    listed = {path.name for path in log_dir.partitions}
    for path in log_dir.partitions:
        try:
            partition = log_dir.partition(path)
        except UnreadableFile as error:
            findings.append(_unreadable(path, error))
            continue
        key = (partition.topic or "", partition.number or 0, partition.mark and path.name)
        why = None
        if key[1] > INT32_RANGE[1]:
            why = f"the largest number of a partition is {INT32_RANGE[1]}"
        elif key in seen:
            why = "the same partition lies in another directory"
        elif partition.mark == "future" and f"{partition.topic}-{partition.number}" in listed:
            why = "it is a future replica beside the current one, in the same log directory"
        if why is None:
            seen.add(key)
            partitions[path.name] = partition
        else:
            message = f"the directory is left out, since a broker stops at it: {why}"
            findings.append(finding(_STOPS_BROKER, partition.location(), message))
    return _completed(WriteSources((target.path,), partitions, log_dir, findings))


def _completed(sources: WriteSources) -> WriteSources:
    """The sources after completing interrupted swaps of segments, with a finding where there are no segments.

    Partitions with a log that this user must not read are left out; raises UnreadableFile where none is left.
    """
    findings = list(sources.findings)
    partitions = {}
    denied: UnreadableFile | None = None
    for name, partition in sources.partitions.items():
        denied = denied_log(partition)
        if denied is not None:
            findings.append(_unreadable(partition.path, denied))
            continue
        partitions[name], found = _swapped(partition)
        findings += found
    if denied is not None and not partitions:
        raise denied
    if not any(each.segments for each in partitions.values()) and not any(each.is_incomplete for each in findings):
        findings.append(nothing_to_read(Target(sources.paths[0])))
    return replace(sources, partitions=partitions, findings=findings)


def _swapped(partition: Partition) -> tuple[Partition, list[Finding]]:
    """The partition with its swaps completed; as it is where one is damaged and all that it replaces is still here."""
    completed, found = completed_swaps(partition, DEFAULT_LIMITS)
    swaps = [each for each in completed.segments if each not in partition.segments]
    replaced = [each for each in partition.segments if each not in completed.segments]
    if not replaced or replaced[0].base_offset > swaps[0].base_offset or all(map(_is_sound, swaps)):
        return completed, found
    words = "a .swap file is damaged: the segments that a broker would replace when it starts are taken instead"
    return partition, [finding("segment-leftover", partition.location(swaps[0].log, swaps[0].base_offset), words)]


def _is_sound(segment: Segment) -> bool:
    """Whether every batch of a log can be read, and has a right CRC."""
    try:
        with FileSource(segment.log or Path()) as source:
            chunks = batch_chunks(source, limits=DEFAULT_LIMITS)
            return all(each.damage is None and each.table.sums.right_crcs == len(each.table) for each in chunks)
    except KafkaLogError:
        return False


def _unreadable(path: Path, error: UnreadableFile) -> Finding:
    found = finding_of(error, location_of_directory(path))
    return finding(found.code, found.location, f"{found.message}; the partition is left out")


def _of_file(path: Path) -> Partition:
    """A partition of one segment for a log file by itself; it has the name of its directory."""
    location = location_of_file(path)
    if location.base_offset is None:
        raise InputError(NOT_A_SEGMENT_NAME, Location(str(path)))
    directory = absolute(path).parent
    partition = Partition(directory, location.topic, location.partition)
    partition.segments.append(Segment(directory, location.base_offset, None, {layout.LOG_SUFFIX: path}))
    return partition


def is_cluster_metadata(partition: Partition) -> bool:
    """Whether it is KRaft's metadata log, which brokers read before anything else and never compress."""
    return partition.topic == layout.CLUSTER_METADATA_TOPIC
