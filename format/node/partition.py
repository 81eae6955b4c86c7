"""A partition directory: its segments in order, its snapshots and its other files."""

from __future__ import annotations

import os
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from dataclasses import replace as replace_fields
from pathlib import Path
from stat import S_ISREG

import msgspec
from msgspec.structs import replace

from format import layout
from format.errors import FileChanged, KafkaLogError, UnreadableFile
from format.files import leader_epoch_checkpoint, partition_metadata
from format.files.leader_epoch_checkpoint import LeaderEpochCheckpoint
from format.files.partition_metadata import PartitionMetadata
from format.files.side_file import INT64_RANGE
from format.io.session import absolute, entries_of, is_on_disk, is_there, path_of, session_of
from format.io.source import FileSource, os_reason
from format.kernel import tables
from format.kernel.directories import group_files
from format.limits import Limits
from format.location import Location


class NamedFiles(Mapping[str, Path]):
    """Files of one directory by suffix. Paths are made on access, since a listing of many files needs few of them."""

    __slots__ = ("_directory", "_names", "_paths")

    def __init__(self, directory: Path, names: dict[str, str]) -> None:
        self._directory = directory
        self._names = names
        self._paths: dict[str, Path] = {}

    def __reduce__(self) -> tuple[type[NamedFiles], tuple[Path, dict[str, str]]]:
        """Pickled without the paths, which are made again."""
        return NamedFiles, (self._directory, self._names)

    @property
    def names(self) -> Mapping[str, str]:
        """The names of the files by suffix."""
        return self._names

    def __getitem__(self, suffix: str) -> Path:
        path = self._paths.get(suffix)
        if path is None:
            path = self._paths[suffix] = self._directory / self._names[suffix]
        return path

    def __contains__(self, suffix: object) -> bool:
        return suffix in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


class Segment(msgspec.Struct, frozen=True):
    """The files with the same base offset (and the same leftover mark, if any).

    ``files`` maps the suffixes ``.log``, ``.index``, ``.timeindex``, ``.txnindex`` and ``.snapshot`` to the existing
    files. ``leftover`` is ``deleted``, ``cleaned`` or ``swap`` (storage LogFileUtils), None for a live segment.
    ``end`` is the position in the log from which on the next segment has the batches, None for the end of the file.
    """

    directory: Path
    base_offset: int
    leftover: str | None = None
    files: Mapping[str, Path] = msgspec.field(default_factory=dict)
    is_remote: bool = False  # in the remote storage of a tiered log
    end: int | None = None

    @property
    def log(self) -> Path | None:
        return self.files.get(layout.LOG_SUFFIX)

    @property
    def offset_index(self) -> Path | None:
        return self.files.get(layout.OFFSET_INDEX_SUFFIX)

    @property
    def time_index(self) -> Path | None:
        return self.files.get(layout.TIME_INDEX_SUFFIX)

    @property
    def transaction_index(self) -> Path | None:
        return self.files.get(layout.TRANSACTION_INDEX_SUFFIX)

    @property
    def producer_snapshot(self) -> Path | None:
        return self.files.get(layout.PRODUCER_SNAPSHOT_SUFFIX)


#: The message about a file that should be a segment's log.
NOT_A_SEGMENT_NAME = "the name of a segment is its base offset in 20 digits and .log; this file has another name"


def missing_indexes(segment: Segment) -> list[str]:
    """The suffixes of the indexes that a segment needs and lacks.

    A segment whose log is empty needs none: a broker makes them at the first append (storage LazyIndex).
    """
    missing = [each for each in (layout.OFFSET_INDEX_SUFFIX, layout.TIME_INDEX_SUFFIX) if each not in segment.files]
    if layout.OFFSET_INDEX_SUFFIX in missing and _is_empty(segment.log):
        missing.remove(layout.OFFSET_INDEX_SUFFIX)
    if layout.TIME_INDEX_SUFFIX in missing and not needs_time_index(segment):
        missing.remove(layout.TIME_INDEX_SUFFIX)
    return missing


def _is_empty(log: Path | None) -> bool:
    try:
        return log is not None and log.stat(follow_symlinks=False).st_size == 0
    except OSError:
        return False


def needs_time_index(segment: Segment) -> bool:
    """Whether a segment needs a time index: not if its log is empty, or has messages of format 0, without timestamps.

    Brokers before 0.10.1 write no time indexes. A log that cannot be read needs a time index.
    """
    if segment.log is None:
        return True
    try:
        with FileSource(segment.log) as source:
            if source.size_bytes < layout.MESSAGE_V0.size_bytes:
                return source.size_bytes > 0
            fields = layout.MESSAGE_V0.struct.unpack(source.read_at(0, layout.MESSAGE_V0.size_bytes))
    except KafkaLogError:
        return True
    message = dict(zip(layout.MESSAGE_V0.names, fields, strict=True))
    return bool(message["length"] <= 0 or message["magic"] != 0)


def segment_file_name(base_offset: int, suffix: str) -> str:
    """The name of a segment's file: the base offset in 20 digits, and the suffix (storage LogFileUtils)."""
    return f"{base_offset:020d}{suffix}"


class DirectorySizes(msgspec.Struct):
    """Bytes of the regular files right in a directory, bytes and number of the live ``.log`` files among them."""

    size_bytes: int = 0
    log_size_bytes: int = 0
    segment_count: int = 0

    def add_files(self, directory: Path, names: Iterable[str]) -> None:
        """Add files of a local directory; files that no longer exist count as 0."""
        try:
            fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError:
            return  # a live broker deleted it
        try:
            for name in names:
                with suppress(OSError):
                    self.add(name, os.stat(name, dir_fd=fd, follow_symlinks=False))
        finally:
            os.close(fd)

    def add(self, name: str, status: os.stat_result) -> None:
        """Add a file by its status."""
        if S_ISREG(status.st_mode):
            self.size_bytes += status.st_size
            if is_live_log(name):
                self.log_size_bytes += status.st_size
                self.segment_count += 1


def is_live_log(name: str) -> bool:
    """Whether this is the name of a live log, also of one whose offset is too large."""
    return name[20:] == layout.LOG_SUFFIX and layout.SEGMENT_FILE.match(name) is not None


def size_of_files(paths: Iterable[Path]) -> int:
    """The bytes of the regular files among these paths; a file that does not exist counts as 0."""
    size_bytes = 0
    for path in paths:
        try:
            status = path.lstat()
        except OSError:
            continue
        size_bytes += status.st_size if S_ISREG(status.st_mode) else 0
    return size_bytes


#: The unit of st_blocks (POSIX).
_BLOCK_BYTES = 512


def allocated_bytes(status: os.stat_result) -> int:
    """The bytes that a file takes up on disk; in an object store this is its size."""
    blocks: int | None = status.st_blocks
    return status.st_size if blocks is None else blocks * _BLOCK_BYTES


_WIDTH = len(tables.SEGMENT_COLUMNS)
_LOG_BIT = 1 << tables.SEGMENT_SUFFIXES.index(".log")
_PLAIN_BITS = _LOG_BIT | 1 << tables.SEGMENT_SUFFIXES.index(".index") | 1 << tables.SEGMENT_SUFFIXES.index(".timeindex")
_SNAPSHOT_BIT = 1 << tables.SEGMENT_SUFFIXES.index(".snapshot")


class LiveFiles(msgspec.Struct, frozen=True):
    """Rows of SEGMENT_COLUMNS by base offset, one after the other: segments that have a log."""

    columns: array[int]
    have_indexes: bool = True  # whether each has an offset index and a time index

    def __len__(self) -> int:
        return len(self.columns) // _WIDTH

    @property
    def table(self) -> memoryview:
        """The rows as the kernel reads them; there must be one."""
        return memoryview(self.columns).cast("B").cast("q", (len(self), _WIDTH))

    def log_size_bytes(self, start: int = 0, end: int | None = None) -> int:
        """The bytes of all logs together, or of those from ``start`` to before ``end``."""
        return sum(self.columns[tables.F_LOG_BYTES :: _WIDTH][start:end])

    def base_offset(self, number: int) -> int:
        """The base offset of a segment."""
        return self.columns[_WIDTH * number + tables.F_BASE_OFFSET]

    def log_bytes(self, number: int) -> int:
        """The size of a segment's log."""
        return self.columns[_WIDTH * number + tables.F_LOG_BYTES]

    def segment(self, directory: Path, number: int) -> Segment:
        return _segment(directory, self.base_offset(number), self.columns[_WIDTH * number + tables.F_SUFFIXES])

    def segments(self, directory: Path) -> list[Segment]:
        """All segments as objects."""
        return [self.segment(directory, number) for number in range(len(self))]


class ListedFiles(msgspec.Struct, frozen=True):
    """What a directory holds: the segments, files without a log by their base offset, and other names with sizes.

    ``snapshots`` are the base offsets of all producer snapshots. The size of what is no regular file is -1.
    """

    live: LiveFiles
    without_log: tuple[Segment, ...]
    snapshots: tuple[int, ...]
    others: tuple[tuple[str, int], ...]
    size_bytes: int


def listed_files(directory: Path, directory_fd: int, names: list[str]) -> ListedFiles | None:
    """The files of these names, which are sorted, in an open directory; None if the size of one cannot be read."""
    if not names:
        return ListedFiles(LiveFiles(array("q")), (), (), (), 0)
    count = len(names)
    room = array("q", bytes(8 * (_WIDTH + len(tables.OTHER_COLUMNS)) * count))
    split_at = _WIDTH * count
    segments = memoryview(room)[:split_at].cast("B").cast("q", (count, _WIDTH))
    others = memoryview(room)[split_at:].cast("B").cast("q", (count, len(tables.OTHER_COLUMNS)))
    counts = array("q", bytes(8 * 4))
    found = group_files(directory_fd, os.fsencode("\0".join(names) + "\0"), segments, others, memoryview(counts))
    if found < 0:
        return None
    other_count, size_bytes, any_bits, common_bits = counts
    live = LiveFiles(room[: _WIDTH * found], common_bits & _PLAIN_BITS == _PLAIN_BITS)
    pairs = room[split_at : split_at + 2 * other_count].tolist()
    other_names = tuple((names[number], size) for number, size in zip(pairs[::2], pairs[1::2], strict=True))
    if common_bits & _LOG_BIT and not any_bits & _SNAPSHOT_BIT:
        return ListedFiles(live, (), (), other_names, size_bytes)
    kept = array("q")
    without_log: list[Segment] = []
    snapshots: list[int] = []
    for base_offset, suffixes, log_bytes in _rows(live):
        if suffixes & _SNAPSHOT_BIT:
            snapshots.append(base_offset)
        if suffixes & _LOG_BIT:
            kept.extend((base_offset, suffixes, log_bytes))
        elif suffixes != _SNAPSHOT_BIT:
            without_log.append(_segment(directory, base_offset, suffixes))
    have_indexes = all(bits & _PLAIN_BITS == _PLAIN_BITS for bits in kept[tables.F_SUFFIXES :: _WIDTH])
    return ListedFiles(LiveFiles(kept, have_indexes), tuple(without_log), tuple(snapshots), other_names, size_bytes)


def _rows(live: LiveFiles) -> Iterator[tuple[int, ...]]:
    return zip(*(live.columns[column::_WIDTH] for column in range(_WIDTH)), strict=True)


def _segment(directory: Path, base_offset: int, suffixes: int) -> Segment:
    names = {
        suffix: segment_file_name(base_offset, suffix)
        for bit, suffix in enumerate(tables.SEGMENT_SUFFIXES)
        if suffixes >> bit & 1
    }
    return Segment(directory, base_offset, None, NamedFiles(directory, names))


#: The suffix and the mark that follow the base offset in the name of a segment's file.
_ENDINGS = {
    suffix + mark: (suffix, mark.lstrip(".") or None)
    for suffix in (
        layout.LOG_SUFFIX,
        layout.OFFSET_INDEX_SUFFIX,
        layout.TIME_INDEX_SUFFIX,
        layout.TRANSACTION_INDEX_SUFFIX,
        layout.PRODUCER_SNAPSHOT_SUFFIX,
    )
    for mark in ("", *layout.LEFTOVER_SUFFIXES)
}
_MAX_OFFSET_DIGITS = f"{INT64_RANGE[1]:020d}"

DIRECTORY_GONE = "cannot list: the directory does not exist, or no longer exists"


class KraftSnapshot(msgspec.Struct, frozen=True):
    """A KRaft snapshot file, with the end offset and epoch of the log that it replaces (raft Snapshots)."""

    path: Path
    end_offset: int
    epoch: int
    leftover: str | None = None


@dataclass(slots=True)
class Partition:
    """One partition directory, from the names of its files.

    ``segments`` are those with a live ``.log``, by base offset; ``orphans`` are files of a base offset without one,
    except snapshots; ``leftovers`` are marked ``.deleted``, ``.cleaned`` or ``.swap``.
    """

    path: Path
    topic: str | None = None
    number: int | None = None
    mark: str | None = None  # delete, future or stray
    leftovers: list[Segment] = field(default_factory=list)
    orphans: list[Segment] = field(default_factory=list)
    snapshots: dict[int, Path] = field(default_factory=dict)
    kraft_snapshots: list[KraftSnapshot] = field(default_factory=list)
    leader_epoch_checkpoint: Path | None = None
    metadata: Path | None = None
    quorum_state: Path | None = None
    interrupted_writes: list[Path] = field(default_factory=list)  # a checkpoint's .tmp file that was never renamed
    unexpected: list[Path] = field(default_factory=list)
    live_files: LiveFiles | None = field(default=None, repr=False, compare=False)  # None: there are only objects
    _segments: list[Segment] | None = None
    _file_names: list[str] = field(default_factory=list, repr=False, compare=False)  # of all regular files
    _sizes: DirectorySizes | None = field(default=None, repr=False, compare=False)
    _topic_id: PartitionMetadata | None = field(default=None, repr=False, compare=False)
    _epochs: LeaderEpochCheckpoint | None = field(default=None, repr=False, compare=False)

    @property
    def key(self) -> tuple[str, int] | None:
        """Topic and number; None for a directory with another kind of name."""
        return None if self.topic is None or self.number is None else (self.topic, self.number)

    @property
    def name(self) -> str:
        return self.path.name if self.topic is None else f"{self.topic}-{self.number}"

    @property
    def is_deleted(self) -> bool:
        """Whether a broker removes the directory, file by file. No stop closes the log: its indexes stay unfinished."""
        return self.mark == "delete"

    @property
    def segments(self) -> list[Segment]:
        """The segments by base offset. Objects are made when they are asked for: a directory may have very many."""
        if self._segments is None:
            self._segments = [] if self.live_files is None else self.live_files.segments(self.path)
        return self._segments

    @segments.setter
    def segments(self, segments: list[Segment]) -> None:
        self._segments = segments
        self.live_files = None

    def with_segments(self, segments: list[Segment]) -> Partition:
        """The same with other segments."""
        return replace_fields(self, _segments=segments, live_files=None)

    @property
    def segment_count(self) -> int:
        return len(self.segments) if self.live_files is None else len(self.live_files)

    def segment(self, number: int) -> Segment:
        if self._segments is None and self.live_files is not None:
            return self.live_files.segment(self.path, number)
        return self.segments[number]

    @property
    def first_base_offset(self) -> int | None:
        """The base offset of the first segment; None where there is none."""
        if self.live_files is not None:
            return self.live_files.base_offset(0) if len(self.live_files) else None
        return self.segments[0].base_offset if self.segments else None

    @property
    def sizes(self) -> DirectorySizes:
        """The sizes of the files that were listed, read once."""
        if self._sizes is None:
            self._sizes = DirectorySizes()
            self._sizes.add_files(self.path, self._file_names)
        return self._sizes

    @property
    def unread_logs(self) -> list[int]:
        """The base offsets, in order, of live logs that are not regular files."""
        matches = [layout.SEGMENT_FILE.match(path.name) for path in self.unexpected]
        logs = [each for each in matches if each and each["suffix"] == layout.LOG_SUFFIX and not each["leftover"]]
        return [number for number in sorted(int(each["base_offset"]) for each in logs) if is_offset(number)]

    def topic_id_file(self, path: Path, limits: Limits) -> PartitionMetadata:
        """The partition.metadata at a path, read once. Raises KafkaLogError."""
        if self._topic_id is None:
            self._topic_id = partition_metadata.read(path, limits)
        return self._topic_id

    def epochs_file(self, path: Path, limits: Limits) -> LeaderEpochCheckpoint:
        """The leader-epoch-checkpoint at a path, read once. Raises KafkaLogError."""
        if self._epochs is None:
            self._epochs = leader_epoch_checkpoint.read(path, limits)
        return self._epochs

    def location(self, path: Path | None = None, base_offset: int | None = None) -> Location:
        """The Location of a file of this partition, or of the directory itself."""
        return Location(str(path or self.path), self.topic, self.number, base_offset)

    def next_base_offset(self, segment: Segment) -> int | None:
        """The base offset of the segment after this one, None for the last."""
        after = bisect_right(self.segments, segment.base_offset, key=lambda each: each.base_offset)
        return self.segments[after].base_offset if after < len(self.segments) else None


def parse_partition_dir(name: str) -> tuple[str, int, str | None] | None:
    """Topic, partition number and mark in the name of a partition directory; None for other names."""
    match = layout.PARTITION_DIR.match(name)
    if match is None or match["topic"] in (".", ".."):
        return None
    return match["topic"], int(match["partition"]), match["mark"]


def named(path: Path) -> Path:
    """The path, made absolute if it has no name, as ``.`` and ``..``."""
    return path if path.name not in ("", "..") else absolute(path)


def key_of_directory(path: Path) -> tuple[str, int] | None:
    """Topic and partition number in the name of a partition directory; None for other names."""
    parsed = parse_partition_dir(path.absolute().name)
    return None if parsed is None else parsed[:2]


def is_offset(number: int) -> bool:
    """Whether a number in a file name can be an offset: 20 digits can be more than 63 bits."""
    return number <= INT64_RANGE[1]


def is_segment_number(digits: str) -> bool:
    """Whether the first characters of a file name are a base offset: 20 digits, of at most 63 bits."""
    return len(digits) == 20 and digits.isascii() and digits.isdigit() and digits <= _MAX_OFFSET_DIGITS


def is_temporary(name: str) -> bool:
    """Whether this is the name of a temporary file that a broker writes and then renames."""
    return name.endswith(layout.TEMPORARY_SUFFIX) and (
        name.removesuffix(layout.TEMPORARY_SUFFIX) in layout.ATOMICALLY_WRITTEN
    )


def read_partition(path: str | os.PathLike[str]) -> Partition:
    """List a partition directory.

    A directory whose name is not ``TOPIC-PARTITION`` is accepted, and has neither topic nor number. Raises
    UnreadableFile if the directory cannot be listed, FileChanged if it does not exist.
    """
    directory = path_of(path)
    parsed = parse_partition_dir(named(directory).name)
    partition = Partition(directory)
    if parsed is not None:
        partition.topic, partition.number, partition.mark = parsed
    try:
        if is_on_disk(directory) and _list_on_disk(partition):
            return _with_remote_segments(partition)
        with entries_of(directory) as entries:
            found = list(entries)
            listed = sorted([(entry.name, entry.is_file(follow_symlinks=False)) for entry in found])
            if not is_on_disk(directory):  # the listing has sizes; later each would take a request
                partition._sizes = DirectorySizes()
                for entry in found:
                    partition._sizes.add(entry.name, entry.stat(follow_symlinks=False))
    except FileNotFoundError as error:
        raise FileChanged(DIRECTORY_GONE, partition.location()) from error
    except OSError as error:
        raise UnreadableFile(f"cannot list: {os_reason(error)}", partition.location()) from error
    partition._file_names = [name for name, is_file in listed if is_file]
    _sort_out(partition, listed)
    return _with_remote_segments(partition)


def _with_remote_segments(partition: Partition) -> Partition:
    session = session_of(partition.path)
    if session is not None and session.tier is not None and partition.mark is None:
        partition.segments = session.tier.joined(partition.key, partition.segments)
    return partition


def _list_on_disk(partition: Partition) -> bool:
    """List a directory on a local disk, names and sizes at once.

    False, with nothing done, if the size of a file cannot be read. Raises OSError if the directory cannot be opened or
    listed.
    """
    directory = partition.path
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        found = listed_files(directory, fd, sorted(os.listdir(fd)))
    finally:
        os.close(fd)
    if found is None:
        return False  # a live broker deletes files meanwhile
    sizes = DirectorySizes(found.size_bytes, found.live.log_size_bytes(), len(found.live))
    for name, size in found.others:
        if size >= 0 and is_live_log(name):  # of an offset that is too large
            sizes.segment_count += 1
            sizes.log_size_bytes += size
    partition._sizes = sizes
    partition.live_files = found.live
    partition.orphans.extend(found.without_log)
    for base_offset in found.snapshots:
        name = segment_file_name(base_offset, layout.PRODUCER_SNAPSHOT_SUFFIX)
        partition.snapshots[base_offset] = directory / name
    _sort_out(partition, [(name, size >= 0) for name, size in found.others])
    return True


def _sort_out(partition: Partition, listed: list[tuple[str, bool]]) -> None:
    """Set the fields of a partition from the names in its directory, each with whether it is a regular file."""
    directory = partition.path
    grouped: dict[tuple[str, str], dict[str, str]] = {}  # by digits and mark; the names by suffix
    for name, is_file in listed:
        digits, ending = name[:20], _ENDINGS.get(name[20:])
        if ending is None or not is_file or not is_segment_number(digits):
            _put_other(partition, name, is_file)
            continue
        suffix, leftover = ending
        grouped.setdefault((digits, leftover or ""), {})[suffix] = name
        if leftover is None and suffix == layout.PRODUCER_SNAPSHOT_SUFFIX:
            partition.snapshots[int(digits)] = directory / name
    segments: list[Segment] = []
    for digits, mark in sorted(grouped):
        names = grouped[digits, mark]
        segment = Segment(directory, int(digits), mark or None, NamedFiles(directory, names))
        if mark:
            partition.leftovers.append(segment)
        elif layout.LOG_SUFFIX in names:
            segments.append(segment)
        elif names.keys() != {layout.PRODUCER_SNAPSHOT_SUFFIX}:
            partition.orphans.append(segment)
    if partition.live_files is None:
        partition.segments = segments


def _put_other(partition: Partition, name: str, is_file: bool) -> None:
    """Set the field for a name that is not the name of a segment's file."""
    file_path = partition.path / name
    kraft = layout.KRAFT_SNAPSHOT_FILE.match(name)
    if not is_file or (kraft is not None and not is_offset(int(kraft["end_offset"]))):
        partition.unexpected.append(file_path)
    elif is_temporary(name):
        partition.interrupted_writes.append(file_path)
    elif kraft is not None:
        leftover = (kraft["leftover"] or "").lstrip(".") or None
        partition.kraft_snapshots.append(
            KraftSnapshot(file_path, int(kraft["end_offset"]), int(kraft["epoch"]), leftover)
        )
    elif name == layout.LEADER_EPOCH_CHECKPOINT:
        partition.leader_epoch_checkpoint = file_path
    elif name == layout.PARTITION_METADATA:
        partition.metadata = file_path
    elif name == layout.QUORUM_STATE:
        partition.quorum_state = file_path
    else:
        partition.unexpected.append(file_path)


def looks_like_partition(path: Path) -> bool:
    """Whether a directory contains a file of a partition; False if it cannot be listed."""
    try:
        with entries_of(path) as entries:
            return any(is_partition_file(entry.name) for entry in entries)
    except OSError:
        return False


def is_partition_file(name: str) -> bool:
    """Whether this is the name of a segment's file, or of another file in partition directories."""
    return bool(layout.SEGMENT_FILE.match(name)) or name in (
        layout.PARTITION_METADATA,
        layout.LEADER_EPOCH_CHECKPOINT,
        layout.QUORUM_STATE,
    )


def location_of_directory(path: Path) -> Location:
    """The location of a partition directory, with the topic and partition in its name."""
    parsed = parse_partition_dir(named(path).name)
    return Location(str(path)) if parsed is None else Location(str(path), parsed[0], parsed[1])


def location_of_file(path: str | os.PathLike[str]) -> Location:
    """The location of a file, with the topic, partition and segment in the names of its directory and itself.

    A file of the log directory itself has none of these, even if that directory is called ``node-1``.
    """
    place = path_of(path)
    parsed = parse_partition_dir(named(place.parent).name)
    match = layout.SEGMENT_FILE.match(place.name)
    location = Location(str(place))
    if parsed is not None and place.name.removesuffix(layout.TEMPORARY_SUFFIX) not in layout.LOG_DIR_FILES:
        location = replace(location, topic=parsed[0], partition=parsed[1])
    if match is not None and is_offset(int(match["base_offset"])):
        location = replace(location, base_offset=int(match["base_offset"]))
    return location


def proven_topic_of_file(path: str | os.PathLike[str]) -> str | None:
    """The topic of a file in a partition directory that has a partition.metadata file, None for other files.

    The name of the directory alone proves nothing: a file may have been copied to ``case-42``.
    """
    place = path_of(path)
    if not is_there(place.parent / layout.PARTITION_METADATA):
        return None
    return location_of_file(place).topic
