"""A broker's log directory: its partition directories and its own files."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from operator import methodcaller
from pathlib import Path

import msgspec

from format import layout
from format.errors import FileChanged, UnreadableFile
from format.files import offset_checkpoint
from format.files.side_file import read_reported
from format.findings import Finding, Judgement, finding, finding_of
from format.io import live_broker
from format.io.live_broker import BrokerLock
from format.io.session import entries_of, is_remote, is_there, map_near, path_of
from format.io.source import os_reason
from format.limits import DEFAULT_LIMITS, Limits
from format.location import Location
from format.node.partition import (
    DIRECTORY_GONE,
    Partition,
    is_partition_file,
    is_temporary,
    named,
    parse_partition_dir,
    read_partition,
)
from format.node.partition_surroundings import unread_finding

TopicPartition = tuple[str, int]


class Beside(msgspec.Struct, frozen=True):
    """The other log directories of a node: what they hold, and which of them has the metadata log."""

    partitions: frozenset[TopicPartition] = frozenset()
    metadata_dir: Path | None = None


class Checkpoints(msgspec.Struct, frozen=True):
    """The checkpoints and other state of one log directory.

    ``by_name`` maps the name of a checkpoint file to its offsets; missing and unreadable files are not in it.
    ``is_clean_shutdown`` is None without a log directory. ``has_remote_storage`` is whether a broker keeps indexes of
    remote segments here. ``findings`` report the problems of the checkpoint files.
    """

    by_name: Mapping[str, Mapping[TopicPartition, int]] = msgspec.field(default_factory=dict)
    is_clean_shutdown: bool | None = None
    has_remote_storage: bool = False
    lock: BrokerLock | None = None
    findings: tuple[Finding, ...] = ()

    @property
    def is_lock_held(self) -> bool | None:
        """Whether a broker runs on the directory; None if unknown."""
        return None if self.lock is None else self.lock.is_held

    def offset(self, name: str, key: TopicPartition | None) -> int | None:
        """The offset of a partition in the checkpoint file ``name``, None if it has none."""
        return None if key is None else self.by_name.get(name, {}).get(key)

    def of_partition(self, key: TopicPartition | None) -> Checkpoints:
        """The checkpoints of one partition only, which are small enough for another process; without findings."""
        only = {
            name: {key: offsets[key]} if key is not None and key in offsets else {}
            for name, offsets in self.by_name.items()
        }
        return Checkpoints(only, self.is_clean_shutdown, self.has_remote_storage, self.lock)


def read_checkpoints(
    paths: Mapping[str, Path],
    limits: Limits = DEFAULT_LIMITS,
    *,
    is_clean_shutdown: bool | None = None,
    has_remote_storage: bool = False,
    lock: BrokerLock | None = None,
) -> Checkpoints:
    """Read the checkpoint files at ``paths`` (by file name); errors become findings."""
    by_name: dict[str, Mapping[TopicPartition, int]] = {}
    findings: list[Finding] = []
    for name, path in sorted(paths.items()):
        checkpoint = read_reported(findings, Location(str(path)), offset_checkpoint.read, path, limits)
        if checkpoint is not None:
            by_name[name] = checkpoint.by_partition()
    return Checkpoints(by_name, is_clean_shutdown, has_remote_storage, lock, tuple(findings))


class Kind(Enum):
    """The kind of a path, from its name; ``--as`` overrides it."""

    LOG_DIR = "log-dir"  # or a directory with log directories below it
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
    """A log directory, from the names of its files; partitions and checkpoints are read when needed, and once.

    ``checkpoint_paths`` maps the name of a checkpoint file to its path.
    """

    path: Path
    partitions: Sequence[Path] = ()
    checkpoint_paths: dict[str, Path] = field(default_factory=dict)
    meta_properties: Path | None = None
    clean_shutdown: Path | None = None
    lock: Path | None = None
    bootstrap_checkpoint: Path | None = None
    remote_index_cache: Path | None = None
    interrupted_writes: list[Path] = field(default_factory=list)  # a checkpoint's .tmp file that was never renamed
    unexpected: list[Path] = field(default_factory=list)
    files: list[Path] = field(default_factory=list)  # all entries that are not directories
    _read_partitions: dict[Path, Partition] = field(default_factory=dict, repr=False, compare=False)
    _checkpoints: Checkpoints | None = field(default=None, repr=False, compare=False)
    _broker_lock: BrokerLock | None = field(default=None, repr=False, compare=False)

    def partition(self, path: Path, *, is_kept: bool = True) -> Partition:
        """One of the partition directories, listed once, unless ``is_kept`` is false.

        Raises UnreadableFile if it cannot be listed, FileChanged if it does not exist, or no longer exists.
        """
        known = self._read_partitions.get(path)
        if known is None:
            known = read_partition(path)
            if not is_kept:
                return known
            self._read_partitions[path] = known
            return known
        try:
            os.lstat(path)  # the quick answer for a directory on a disk, as a report asks for each several times
        except OSError:
            if not is_remote(path) and not is_there(path):
                raise FileChanged(DIRECTORY_GONE, known.location()) from None
        return known

    def listed_partition(self, path: Path) -> Partition:
        """A partition directory as it was listed, which may no longer exist; otherwise as ``partition``."""
        return self._read_partitions.get(path) or self.partition(path)

    def checkpoints(self, limits: Limits = DEFAULT_LIMITS) -> Checkpoints:
        """The offset checkpoints, read once."""
        if self._checkpoints is None:
            self._checkpoints = read_checkpoints(
                self.checkpoint_paths,
                limits,
                is_clean_shutdown=self.clean_shutdown is not None,
                has_remote_storage=self.remote_index_cache is not None,
                lock=self.broker_lock,
            )
        return self._checkpoints

    def take_checkpoints(self, checkpoints: Checkpoints) -> None:
        """Take the checkpoints that another process read."""
        self._checkpoints, self._broker_lock = checkpoints, checkpoints.lock

    @property
    def broker_lock(self) -> BrokerLock:
        """Whether a broker runs on the directory, probed once."""
        if self._broker_lock is None:
            self._broker_lock = live_broker.probe(self.path / layout.LOCK)
        return self._broker_lock

    @property
    def topic_partitions(self) -> set[TopicPartition]:
        """Topic and number of each partition directory, including marked directories and links."""
        places = [*self.partitions, *(path for path in self.unexpected if path.is_symlink())]
        return {parsed[:2] for parsed in (parse_partition_dir(path.name) for path in places) if parsed}

    @property
    def is_marked_at_shutdown(self) -> bool:
        """Whether a broker writes the clean-shutdown mark here: not in a directory with only the metadata log."""
        return any(topic != layout.CLUSTER_METADATA_TOPIC for topic, _ in self.topic_partitions)

    def unread_findings(self) -> Iterator[Finding]:
        """Findings for partitions that are not read, since symbolic links are not followed."""
        yield from filter(None, (unread_finding(path, Location(str(path))) for path in self.unexpected))


def kind_of_file(name: str) -> Kind | None:
    """The kind of a file name, without leftover marks; None for a name that Kafka does not use."""
    if name in _KIND_OF_NAME:
        return _KIND_OF_NAME[name]
    for mark in (*layout.LEFTOVER_SUFFIXES, ".part"):
        name = name.removesuffix(mark)
    return _KIND_OF_SUFFIX.get(os.path.splitext(name)[1])


def list_directory(path: Path) -> list[tuple[str, bool]]:
    """List a directory: the names, sorted, each with whether it is a directory; raises UnreadableFile."""
    try:
        with entries_of(path) as entries:
            return sorted((entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries)
    except OSError as error:
        raise UnreadableFile(f"cannot list: {os_reason(error)}", Location(str(path))) from error


def read_log_dir(path: str | os.PathLike[str]) -> LogDir:
    """List a log directory; partitions are sorted by topic, number and mark.

    Raises UnreadableFile if it cannot be listed.
    """
    directory = path_of(path)
    return log_dir_of(directory, list_directory(directory))


def log_dir_of(directory: Path, names: Iterable[tuple[str, bool]]) -> LogDir:
    """The log directory for a directory that was listed: ``names`` as from ``list_directory``."""
    found = LogDir(directory)
    partitions: list[str] = []
    for name, is_dir in names:
        if is_dir and parse_partition_dir(name) is not None:
            partitions.append(name)
            continue
        place = directory / name
        if not is_dir:
            found.files.append(place)
        if name in layout.OFFSET_CHECKPOINTS and not is_dir:
            found.checkpoint_paths[name] = place
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
    found.partitions = [directory / name for name in sorted(partitions, key=_order)]
    return found


def _order(name: str) -> tuple[str, int, str, str]:
    topic, number, mark = parse_partition_dir(name) or ("", 0, None)
    return topic, number, mark or "", name


def directory_around(partition: Path) -> Path:
    """The parent directory of a partition directory."""
    return named(partition).parent


def with_checkpoints(log_dirs: Sequence[LogDir], limits: Limits = DEFAULT_LIMITS) -> Iterator[LogDir]:
    """The log directories in turn. Of several in a store, the checkpoints are read, those of several at once."""
    if len(log_dirs) < 2 or not is_remote(log_dirs[0].path):
        yield from log_dirs
        return
    alone = (replace(each, partitions=()) for each in log_dirs)
    found = map_near(methodcaller("checkpoints", limits), alone, log_dirs[0].path)
    for log_dir, checkpoints in zip(log_dirs, found, strict=True):
        log_dir.take_checkpoints(checkpoints)
        yield log_dir


def log_dir_around(partition: Path) -> LogDir | None:
    """The log directory of a partition directory, None if it cannot be listed."""
    try:
        return read_log_dir(directory_around(partition))
    except UnreadableFile:
        return None


#: The levels of directories that are searched, and the most directories that are listed.
_DEPTH = 3
_MOST_LISTED = 2000

Names = list[tuple[str, bool]]


class LogDirSearch:
    """One search, with findings for the directories that it could not list or follow.

    A directory named like a partition, such as ``kafka-1``, is a log directory if it contains the files of a log
    directory, or partitions.
    """

    def __init__(self) -> None:
        self._listed_count = 0
        self._unlistable: list[Finding] = []
        self._passed: list[Path] = []  # entries, not followed, of directories above log directories
        self.misnamed: list[Path] = []  # directories with segments, and without the name of a partition

    def below(self, path: Path, names: Names) -> tuple[LogDir, ...]:
        """The log directory at a path that has these names, or the log directories below it; empty if there is none."""
        self._listed_count = 0
        self._unlistable, self._passed, self.misnamed = [], [], []
        return tuple(self._below(path, names, _DEPTH))

    def link_findings(self) -> Iterator[Finding]:
        """Findings for directories that were not searched: links, and directories that cannot be listed."""
        yield from self._unlistable
        for path in self._passed:
            if path.is_symlink() and path.is_dir():
                message = "is a symbolic link to a directory, which is not followed"
                judgement = Judgement(next_step="Pass the path that it points to as well, if it is a log directory.")
                yield finding("file-unreadable", Location(str(path)), message, judgement=judgement)

    def _below(self, path: Path, names: Names, depth: int) -> Iterator[LogDir]:
        if has_own_files(names):
            yield log_dir_of(path, names)
            return
        if any(layout.SEGMENT_FILE.match(name) for name, _ in names):
            self.misnamed.append(path)
            return
        children: dict[str, Names] = {}
        if self._holds_partitions(path, names, children):
            # Partitions that cannot be listed are reported when they are read.
            partitions = {str(path / name) for name in children}
            self._unlistable = [each for each in self._unlistable if each.location.path not in partitions]
            yield log_dir_of(path, names)
            return
        found = False
        directories = [name for name, is_dir in names if is_dir] if depth else []
        unknown = (path / name for name in directories if not children.get(name))
        listings = map_near(_listing_of, unknown, path)
        for name in directories:
            known = children.get(name) or self._taken(listings)
            for log_dir in self._below(path / name, known, depth - 1) if known else ():
                found = True
                yield log_dir
        if found:
            self._passed += [path / name for name, is_dir in names if not is_dir]

    def _holds_partitions(self, path: Path, names: Names, children: dict[str, Names]) -> bool:
        """Whether directories named like partitions are partitions: the first that shows it by its content decides."""
        named = [name for name, is_dir in names if is_dir and parse_partition_dir(name) is not None]
        for name in named:
            listed = children[name] = self._taken(map(_listing_of, (path / name,)))
            if any(is_partition_file(each) for each, _ in listed):
                return True
            if has_own_files(listed) or any(is_dir and parse_partition_dir(each) for each, is_dir in listed):
                return False
        # A name alone proves nothing: /etc/dbus-1 is not a partition. An empty directory may be a new partition.
        return any(not children[name] for name in named) and self._listed_count < _MOST_LISTED

    def _taken(self, listings: Iterator[Names | UnreadableFile]) -> Names:
        """The names of the next listing."""
        if self._listed_count >= _MOST_LISTED:
            return []
        self._listed_count += 1
        listing = next(listings)
        if isinstance(listing, UnreadableFile):
            self._unlistable.append(finding_of(listing))
            return []
        return listing


def _listing_of(path: Path) -> Names | UnreadableFile:
    try:
        return list_directory(path)
    except UnreadableFile as error:
        return error


def has_own_files(names: Names) -> bool:
    """Whether one of these names is a file of a log directory itself."""
    return any(name in layout.LOG_DIR_FILES and not is_dir for name, is_dir in names)
