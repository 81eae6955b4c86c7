"""What a writing command was given: partitions with their names in the output, perhaps a log directory around them."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from format import layout
from format.errors import InputError, UnreadableFile
from format.findings import Finding
from format.io.remote_path import absolute
from format.io.source import os_reason
from format.location import Location
from format.node.file_location import location_of_file
from format.node.log_dir import Kind, LogDir, read_log_dir
from format.node.partition import Partition, read_partition
from format.node.partition_surroundings import unexpected_finding
from format.node.segment import Segment
from format.node.target import kind_of


@dataclass(frozen=True, slots=True)
class WriteSources:
    """The sources of a writing command, in order; ``partitions`` maps a directory's name in the output to what to read.

    ``log_dir`` is set where the source is a whole log directory. ``left_out`` tells what will not be in the output.
    """

    paths: tuple[Path, ...]
    partitions: dict[str, Partition]
    log_dir: LogDir | None = None
    left_out: list[Finding] = field(default_factory=list)

    @property
    def size_bytes(self) -> int:
        """Bytes of all live ``.log`` files, for progress."""
        return sum(_size_of(each.log) for part in self.partitions.values() for each in part.segments if each.log)

    def job(self, command: str, **options: Any) -> dict[str, Any]:
        """What a run is about, for its manifest and for resuming: command, options, sources and their state."""
        return job_of(command, options, self.paths, self._all_files())

    def _all_files(self) -> Iterator[Path]:
        if self.log_dir is not None:
            yield from self.log_dir.checkpoint_paths.values()
        for partition in self.partitions.values():
            yield partition.path
            for segment in partition.segments:
                yield from segment.files.values()


def job_of(command: str, options: Mapping[str, Any], paths: Iterable[Path], files: Iterable[Path]) -> dict[str, Any]:
    """A command with its options and sources, and a digest of what their files are now: names, sizes, times."""
    digest = hashlib.sha256()
    for path in files:
        try:
            status = os.lstat(path)
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

    Raises InputError for anything else, for two partitions of one name, and for what is not there.
    """
    kinds = [kind_of(path) for path in paths]
    if Kind.LOG_DIR in kinds:
        if len(paths) != 1:
            raise InputError("a log directory is written by itself: give one, or several partition directories")
        return _of_log_dir(read_log_dir(paths[0]))
    partitions: dict[str, Partition] = {}
    for path, kind in zip(paths, kinds, strict=True):
        if kind is Kind.PARTITION:
            partition = read_partition(path)
        elif kind is Kind.LOG and takes_files:
            partition = _of_file(path)
        else:
            wanted = "a log directory, partition directories" + (" or .log files" if takes_files else "")
            raise InputError(f"is no source for this: give {wanted}", Location(str(path)))
        name = partition.name if partition.mark is None else absolute(partition.path).name
        if name in partitions:
            raise InputError(f"there are two sources for {name} in the output", Location(str(path)))
        partitions[name] = partition
    return WriteSources(tuple(paths), partitions)


def _of_log_dir(log_dir: LogDir) -> WriteSources:
    partitions = {path.name: read_partition(path) for path in log_dir.partitions}
    left_out = [unexpected_finding(path, Location(str(path))) for path in log_dir.unexpected]
    return WriteSources((log_dir.path,), partitions, log_dir, left_out)


def _of_file(path: Path) -> Partition:
    """A partition of one segment, for a log file by itself; named as its directory is."""
    location = location_of_file(path)
    if location.base_offset is None:
        raise InputError("the name tells no base offset: 20 digits and .log are needed", Location(str(path)))
    directory = absolute(path).parent
    partition = Partition(directory, location.topic, location.partition)
    partition.segments.append(Segment(directory, location.base_offset, None, {layout.LOG_SUFFIX: path}))
    return partition


def is_cluster_metadata(partition: Partition) -> bool:
    """Whether it is KRaft's metadata log, which brokers read before anything else and never compress."""
    return partition.topic == layout.CLUSTER_METADATA_TOPIC


def _size_of(path: Path) -> int:
    try:
        return path.lstat().st_size
    except OSError:
        return 0


def check_listable(path: Path) -> None:
    """Raises UnreadableFile where a directory cannot be listed."""
    try:
        os.scandir(path).close()
    except OSError as error:
        raise UnreadableFile(f"cannot list: {os_reason(error)}", Location(str(path))) from error
