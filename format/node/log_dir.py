"""A broker's log directory: its partition directories, checkpoints and identity; and what kind of thing a path is."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

from format import layout
from format.errors import InputError, NotALogDir, UnreadableFile
from format.io.remote_path import absolute, entries_of, is_there, path_of
from format.io.source import os_reason
from format.location import Location
from format.node.partition import Partition, is_temporary, looks_like_partition, parse_partition_dir, read_partition


class Kind(Enum):
    """What a path is, from its name; ``--as`` overrides it."""

    LOG_DIR = "log-dir"
    PARTITION = "partition"
    LOG = "log"
    OFFSET_INDEX = "index"
    TIME_INDEX = "timeindex"
    TRANSACTION_INDEX = "txnindex"
    PRODUCER_SNAPSHOT = "snapshot"
    KRAFT_SNAPSHOT = "checkpoint"
    LEADER_EPOCH_CHECKPOINT = "leader-epoch-checkpoint"
    OFFSET_CHECKPOINT = "offset-checkpoint"
    PARTITION_METADATA = "partition-metadata"
    META_PROPERTIES = "meta-properties"
    QUORUM_STATE = "quorum-state"
    CLEAN_SHUTDOWN = "clean-shutdown"
    LOCK = "lock"


_KIND_OF_SUFFIX = {
    layout.LOG_SUFFIX: Kind.LOG,
    layout.OFFSET_INDEX_SUFFIX: Kind.OFFSET_INDEX,
    layout.TIME_INDEX_SUFFIX: Kind.TIME_INDEX,
    layout.TRANSACTION_INDEX_SUFFIX: Kind.TRANSACTION_INDEX,
    layout.PRODUCER_SNAPSHOT_SUFFIX: Kind.PRODUCER_SNAPSHOT,
    layout.CHECKPOINT_SUFFIX: Kind.KRAFT_SNAPSHOT,
}
_KIND_OF_NAME = {
    layout.LEADER_EPOCH_CHECKPOINT: Kind.LEADER_EPOCH_CHECKPOINT,
    layout.PARTITION_METADATA: Kind.PARTITION_METADATA,
    layout.META_PROPERTIES: Kind.META_PROPERTIES,
    layout.QUORUM_STATE: Kind.QUORUM_STATE,
    layout.CLEAN_SHUTDOWN: Kind.CLEAN_SHUTDOWN,
    layout.LOCK: Kind.LOCK,
    **dict.fromkeys(layout.OFFSET_CHECKPOINTS, Kind.OFFSET_CHECKPOINT),
}


@dataclass(slots=True)
class LogDir:
    """A log directory as found; only names are read. ``checkpoints`` maps a checkpoint file's name to its path."""

    path: Path
    partitions: list[Path] = field(default_factory=list)
    checkpoints: dict[str, Path] = field(default_factory=dict)
    meta_properties: Path | None = None
    clean_shutdown: Path | None = None
    lock: Path | None = None
    bootstrap_checkpoint: Path | None = None
    remote_index_cache: Path | None = None
    interrupted_writes: list[Path] = field(default_factory=list)  # a checkpoint's .tmp file that was never renamed
    unexpected: list[Path] = field(default_factory=list)

    def partition(self, path: Path) -> Partition:
        return read_partition(path)


def kind_of_file(name: str) -> Kind | None:
    """The kind that a file's name tells, leftover marks put aside; None for a name that Kafka does not use."""
    if name in _KIND_OF_NAME:
        return _KIND_OF_NAME[name]
    for mark in (*layout.LEFTOVER_SUFFIXES, ".part"):
        name = name.removesuffix(mark)
    return _KIND_OF_SUFFIX.get(os.path.splitext(name)[1])


def kind_of(path: str | os.PathLike[str]) -> Kind:
    """What a path is: a log directory, a partition directory, or a file of some kind.

    Raises InputError for a path that is not there, NotALogDir for a directory with nothing of Kafka's in it or a
    file of an unknown name.
    """
    place = path_of(path)
    location = Location(str(place))
    try:
        is_dir = place.is_dir()
        exists = is_dir or is_there(place)
    except OSError as error:
        raise UnreadableFile(f"cannot look: {os_reason(error)}", location) from error
    if not exists:
        raise InputError("there is no such file or directory", location)
    if is_dir:
        return _kind_of_dir(place, location)
    kind = kind_of_file(place.name)
    if kind is None:
        raise NotALogDir(
            "the name is none that Kafka gives its files; say what it is with --as KIND, such as --as log", location
        )
    return kind


def _kind_of_dir(place: Path, location: Location) -> Kind:
    resolved = place if place.name not in ("", "..") else absolute(place)
    names = _listed(place)
    has_partition_dir = any(parse_partition_dir(name) and is_dir for name, is_dir in names)
    has_segment = any(layout.SEGMENT_FILE.match(name) for name, _ in names)
    if has_partition_dir and not has_segment:
        return Kind.LOG_DIR
    if has_segment or (parse_partition_dir(resolved.name) and (not names or looks_like_partition(place))):
        return Kind.PARTITION
    if any(name in _KIND_OF_NAME or name == layout.BOOTSTRAP_CHECKPOINT for name, _ in names):
        return Kind.LOG_DIR
    nested = [name for name, is_dir in names if is_dir and _holds_partitions(place / name)]
    hint = f"; {nested[0]} below it is one: name that" if nested else ""
    raise NotALogDir(f"this directory holds no TOPIC-PARTITION directory and no segment file{hint}", location)


def _holds_partitions(path: Path) -> bool:
    try:
        return any(parse_partition_dir(name) and is_dir for name, is_dir in _listed(path))
    except UnreadableFile:
        return False


def _listed(path: Path) -> list[tuple[str, bool]]:
    try:
        with entries_of(path) as entries:
            return sorted((entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries)
    except OSError as error:
        raise UnreadableFile(f"cannot list: {os_reason(error)}", Location(str(path))) from error


def read_log_dir(path: str | os.PathLike[str]) -> LogDir:
    """What lies in a log directory, from names alone; partitions by topic, number and mark.

    Raises UnreadableFile when it cannot be listed.
    """
    directory = path_of(path)
    found = LogDir(directory)
    partitions: list[tuple[str, int, str, Path]] = []
    for name, is_dir in _listed(directory):
        place = directory / name
        parsed = parse_partition_dir(name) if is_dir else None
        if parsed is not None:
            partitions.append((parsed[0], parsed[1], parsed[2] or "", place))
        elif name in layout.OFFSET_CHECKPOINTS and not is_dir:
            found.checkpoints[name] = place
        elif name == layout.META_PROPERTIES and not is_dir:
            found.meta_properties = place
        elif name == layout.CLEAN_SHUTDOWN and not is_dir:
            found.clean_shutdown = place
        elif name == layout.LOCK and not is_dir:
            found.lock = place
        elif name == layout.BOOTSTRAP_CHECKPOINT and not is_dir:
            found.bootstrap_checkpoint = place
        elif name == layout.REMOTE_INDEX_CACHE and is_dir:
            found.remote_index_cache = place
        elif is_temporary(name) and not is_dir:
            found.interrupted_writes.append(place)
        else:
            found.unexpected.append(place)
    found.partitions = [place for _, _, _, place in sorted(partitions)]
    return found
