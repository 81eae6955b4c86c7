"""The paths of a command: the kind of each, and its log directories or its partition, each listed once."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cache, cached_property, partial
from pathlib import Path

from format import layout
from format.errors import InputError, KafkaLogError, NotALogDir, UnreadableFile
from format.files import meta_properties
from format.findings import Finding, finding
from format.io.session import (
    BUNDLE_SUFFIX,
    RemotePath,
    entries_of,
    is_bundle,
    is_on_disk,
    is_remote,
    is_there,
    map_near,
    path_of,
)
from format.io.source import FileSource, os_reason
from format.io.store import WrongAddress, has_listings
from format.limits import DEFAULT_LIMITS, Limits
from format.location import Location
from format.node.log_dir import (
    Checkpoints,
    Kind,
    LogDir,
    LogDirSearch,
    directory_around,
    kind_of_file,
    list_directory,
    log_dir_around,
    log_dir_of,
)
from format.node.partition import (
    Partition,
    is_partition_file,
    location_of_directory,
    named,
    parse_partition_dir,
    read_partition,
)
from format.wording import did_you_mean, first_of, shell_word

_LOOKED_AT_BYTES = 1024
_TAR_MARK = (257, b"ustar")
#: The first bytes of compressed files, the name of the format, and the command that unpacks them.
_PACKED = (
    (b"\x1f\x8b\x08", "gzip", "gzip -dk"),
    (b"\x28\xb5\x2f\xfd", "zstd", "zstd -d"),
    (b"\x04\x22\x4d\x18", "lz4", "lz4 -d"),
    (b"BZh", "bzip2", "bzip2 -dk"),
    (b"\xfd7zXZ\x00", "xz", "xz -dk"),
    (b"PK\x03\x04", "zip", "unzip"),
)
_PACKED_NAMES = (".gz", ".zst", ".lz4", ".bz2", ".xz")
_TAR_NAMES = (".tgz", ".tbz2", ".txz", ".tzst", *(f".tar{ending}" for ending in _PACKED_NAMES))
#: The control characters that are usual in texts. A batch has its magic, 0 to 2, at byte 16, so it is never a text.
_TEXT_CONTROLS = b"\t\n\r\f\x1b"
_NO_TEXT = bytes(code for code in range(0x20) if code not in _TEXT_CONTROLS)
_MOST_NAMED = 8
#: The directories above a missing address that are looked up for a message: each takes a request.
_MOST_ABOVE = 3
#: The size of the header of a batch of Redpanda, and the names of its segments: base offset, term and version.
_REDPANDA_HEADER_BYTES = 61
_REDPANDA_SEGMENT = re.compile(r"\d+-\d+-v\d+\.log")
_OTHER_FORMAT = "whose format is not Kafka's: use the offline log viewer of Redpanda"
#: A path that looks like an address with one slash or none after the scheme, or like the name of an object in AWS.
_NEARLY_ADDRESS = re.compile(r"(?:(s3[an]?|gs|abfss?|hdfs|https?):/?|arn:aws[a-z-]*:s3:::)([^/].*)", re.IGNORECASE)


def refuse_foreign_file(path: Path) -> None:
    """Raise InputError for a directory, a compressed file, an archive or a text; an unreadable file is accepted."""
    if is_remote(path):
        return
    if path.is_dir():
        raise InputError("a directory, not a log: give one of its files", Location(str(path)))
    try:
        with FileSource(path) as source:
            start = source.read_at(0, _LOOKED_AT_BYTES)
    except KafkaLogError:
        return
    words = _foreign_words(path, start)
    if words:
        raise InputError(words, Location(str(path)))


def _foreign_words(path: Path, start: bytes) -> str:
    if start[_TAR_MARK[0] :].startswith(_TAR_MARK[1]):
        return f"a tar archive: unpack it first, with: tar xf {shell_word(str(path))}"
    for mark, name, program in _PACKED:
        if start.startswith(mark) and path.name.endswith(BUNDLE_SUFFIX) and is_bundle(str(path)):
            return "a bundle, which holds no keys, values or headers: only the command kafkalog reads it"
        if start.startswith(mark):
            unpack = "tar xf" if path.name.endswith(_TAR_NAMES) else program
            return f"compressed with {name}: unpack it first, with: {unpack} {shell_word(str(path))}"
    if _is_redpanda_batch(start):
        return f"a segment of Redpanda, {_OTHER_FORMAT}"
    if _is_text(start):
        return "a text file, not a Kafka log; segments of logs have names such as 00000000000000000000.log"
    return ""


def _is_redpanda_batch(start: bytes) -> bool:
    """Whether a batch of Redpanda starts here: little-endian, and the CRC of its header is its first field."""
    if len(start) < _REDPANDA_HEADER_BYTES:
        return False
    from format.codecs.checksums import crc32c_of  # only for a file without the name of a segment

    return crc32c_of(memoryview(start)[4:_REDPANDA_HEADER_BYTES]) == int.from_bytes(start[:4], "little")


def _is_text(start: bytes) -> bool:
    if not start or start.translate(None, _NO_TEXT) != start:
        return False
    try:
        start.decode()
    except UnicodeDecodeError as error:
        return error.reason == "unexpected end of data"  # the last character is not whole in the bytes that were read
    return True


def foreign_segments(names: Iterable[str]) -> str:
    """The message about a directory whose segment files are compressed, or Redpanda's; empty if there are none."""
    for name in names:
        if _REDPANDA_SEGMENT.fullmatch(name):
            return f"its segments, such as {name}, are those of Redpanda, {_OTHER_FORMAT}"
        for ending in _PACKED_NAMES:
            if name.endswith(ending) and layout.SEGMENT_FILE.match(name.removesuffix(ending)):
                return f"its segments are compressed as files, such as {name}: unpack them first"
    return ""


def absent_words(path: Path) -> str:
    """The message about a path that does not exist; it names the partitions of the topic, or similar names."""
    words = "there is no such file or directory"
    if isinstance(path, RemotePath):
        said = path.session.stores.why_absent(str(path))
        if said or not has_listings(path):
            return f"{words}; {said}" if said else words
    meant = _meant_address(str(path))
    if meant:
        return f"{words}. An address has two slashes after its scheme: {meant}"
    names = _names_beside(path)
    if names is None:
        return f"{words}{_existing_words(path)}"
    partitions = _partitions_beside(path, path.name, names)
    if partitions:
        is_one = len(partitions) == 1
        these = "that directory" if is_one else "one of these directories"
        return (
            f"{words}; {path.name} is a topic, and its partition{' is' if is_one else 's are'} "
            f"{_partition_names(path.name, partitions)}: give {these}"
        )
    parsed = parse_partition_dir(path.name)
    if parsed is not None:
        partitions = _partitions_beside(path, parsed[0], names)
        if partitions:
            is_one = len(partitions) == 1
            return (
                f"{words}; the partition{' of' if is_one else 's of'} {parsed[0]} here "
                f"{'is' if is_one else 'are'} {_partition_names(parsed[0], partitions)}"
            )
    suggested = did_you_mean(path.name, names, "" if str(path.parent) == "." else f"{path.parent}/")
    return f"{words}.{suggested}" if suggested else words


def _meant_address(path: str) -> str:
    """The address that was meant by a path such as ``s3:/bucket/a`` or an ARN; empty for any other path."""
    found = _NEARLY_ADDRESS.fullmatch(path)
    return "" if found is None else f"{(found[1] or 's3').lower()}://{found[2]}"


def _existing_words(path: Path) -> str:
    """Which part of a path exists, whose parent does not; the names there that are similar to the next part."""
    missing = path.parent
    for _ in range(_MOST_ABOVE if is_remote(path) else len(path.parts)):
        above = missing.parent
        names = _names_beside(missing)
        if names is not None or (not is_remote(path) and above.exists()):
            suggested = did_you_mean(missing.name, names or (), "" if str(above) == "." else f"{above}/")
            there = f": of this path, only {above} exists"
            return f"{there}.{suggested}" if suggested else there
        if above == missing:
            break
        missing = above
    return ""


def _names_beside(path: Path) -> list[str] | None:
    """The names in the directory of a path, in order; None where it cannot be listed."""
    try:
        with entries_of(path.parent) as entries:
            return sorted(entry.name for entry in entries)
    except OSError:
        return None


def _partitions_beside(path: Path, topic: str, names: Collection[str]) -> list[int]:
    """The partitions of a topic beside a path, in order; none where ``node-1`` and ``node-2`` are log directories."""
    parsed = filter(None, map(parse_partition_dir, names))
    partitions = sorted(number for name, number, mark in parsed if name == topic and mark is None)
    if not partitions or layout.META_PROPERTIES in names:  # in a log directory all are partitions
        return partitions
    is_log_dir = is_there(path.parent / f"{topic}-{partitions[0]}" / layout.META_PROPERTIES)
    return [] if is_log_dir else partitions


def _partition_names(topic: str, partitions: Sequence[int]) -> str:
    return first_of([f"{topic}-{number}" for number in partitions], _MOST_NAMED)


class Surroundings:
    """The parent directories of the paths of one command, each listed once for all paths in it."""

    def __init__(self) -> None:
        self._log_dirs: dict[Path, LogDir | None] = {}
        self._partitions: dict[Path, Partition] = {}

    def log_dir(self, partition: Path) -> LogDir | None:
        """The log directory of a partition directory, None if it cannot be listed."""
        directory = directory_around(partition)
        if directory not in self._log_dirs:
            self._log_dirs[directory] = log_dir_around(partition)
        return self._log_dirs[directory]

    def checkpoints(self, partition: Path, limits: Limits = DEFAULT_LIMITS) -> Checkpoints:
        """The checkpoints of the log directory of a partition; empty if it cannot be listed."""
        log_dir = self.log_dir(partition)
        return Checkpoints() if log_dir is None else log_dir.checkpoints(limits)

    def partition(self, file: Path) -> Partition:
        """The partition directory of a file. Raises UnreadableFile and FileChanged."""
        if file.parent not in self._partitions:
            self._partitions[file.parent] = read_partition(file.parent)
        return self._partitions[file.parent]


def clusters_of(targets: Iterable[Target], limits: Limits = DEFAULT_LIMITS) -> list[tuple[str, Path]]:
    """The cluster ids in the meta.properties of log directories, each with the first directory that has it.

    None is read, and the list is empty, where all targets are in one log directory.
    """
    found: dict[str, Path] = {}
    log_dirs: dict[Path, None] = {}
    for target in targets:
        if target.kind in (Kind.PARTITION, Kind.LOG):
            log_dirs[directory_around(target.path if target.kind is Kind.PARTITION else target.path.parent)] = None
        log_dirs |= dict.fromkeys(each.path for each in target.log_dirs)
    if len(log_dirs) < 2:
        return []
    files = [log_dir / layout.META_PROPERTIES for log_dir in log_dirs]
    read = map_near(partial(meta_properties.ids_in, limits=limits), files, files[0])
    for log_dir, (_, cluster_id, _) in zip(log_dirs, read, strict=True):
        if cluster_id is not None:
            found.setdefault(cluster_id, log_dir)
    return list(found.items())


def require_one_cluster(targets: Iterable[Target], limits: Limits = DEFAULT_LIMITS) -> None:
    """Raise InputError for log directories of two clusters, by meta.properties: their logs have the same names."""
    clusters = clusters_of(targets, limits)
    if len(clusters) > 1:
        (first_id, first), (other_id, other) = clusters[:2]
        words = f"of the cluster {other_id}, and {first} of {first_id}: give the paths of one cluster"
        raise InputError(words, Location(str(other)))


class Target:
    """A path of a command. Its properties are read when they are first used, and once.

    ``kind`` overrides the kind by name and content. ``surroundings`` are shared by all paths of a command.
    """

    def __init__(
        self, path: str | os.PathLike[str], kind: Kind | None = None, surroundings: Surroundings | None = None
    ) -> None:
        self.path = path_of(path)
        self.surroundings = surroundings or Surroundings()
        self._given_kind = kind
        self._search = LogDirSearch()

    @cached_property
    def kind(self) -> Kind:
        """The kind of the path: a log directory (or a directory with some below it), a partition, or a kind of file.

        Raises InputError for a path that does not exist, and for a compressed file or a text; NotALogDir for a
        directory without files of Kafka, or a file with an unknown name.
        """
        if self._given_kind is Kind.LOG:
            refuse_foreign_file(self.path)
        return self._given_kind or self._found_kind()

    def require_partitions(self, why: str) -> None:
        """Raise InputError unless the path is a log directory or a partition directory; ``why`` ends the message."""
        if self.kind not in (Kind.LOG_DIR, Kind.PARTITION):
            message = f"pass a log directory or a partition directory: {why}"
            raise InputError(message, Location(str(self.path)))

    @cached_property
    def log_dirs(self) -> tuple[LogDir, ...]:
        """The log directory at the path, or those below it; empty for a partition or a file.

        Raises the errors of ``kind``.
        """
        if self.kind is not Kind.LOG_DIR:
            return ()
        return self._found_log_dirs or (log_dir_of(self.path, self._names),)

    @cached_property
    def partition(self) -> Partition:
        """The partition at the path, with any name. Raises UnreadableFile and FileChanged."""
        return read_partition(self.path)

    def partitions(self) -> Iterator[Partition]:
        """The partitions at or below the path in order, without those that cannot be listed. Raises like ``kind``."""
        if self.kind is Kind.PARTITION:
            try:
                yield self.partition
            except KafkaLogError:
                return
        for log_dir in self.log_dirs:
            for path in log_dir.partitions:
                try:
                    partition = log_dir.partition(path)
                except KafkaLogError:
                    continue
                yield partition

    def checkpoints_around(self, limits: Limits = DEFAULT_LIMITS) -> Checkpoints:
        """The checkpoints of the log directory of this partition; empty if it cannot be listed."""
        return self.surroundings.checkpoints(self.path, limits)

    def link_findings(self) -> Iterator[Finding]:
        """Findings for symbolic links between this path and the log directories below it, which are not followed."""
        if self.kind is Kind.LOG_DIR and self.log_dirs:
            yield from self._search.link_findings()

    def unread_findings(self) -> Iterator[Finding]:
        """The same, and those for partitions behind links."""
        yield from self.link_findings()
        for log_dir in self.log_dirs:
            yield from log_dir.unread_findings()

    @cached_property
    def _names(self) -> list[tuple[str, bool]]:
        return list_directory(self.path)

    @cached_property
    def _found_log_dirs(self) -> tuple[LogDir, ...]:
        return self._search.below(self.path, self._names)

    def _found_kind(self) -> Kind:
        location = Location(str(self.path))
        try:
            is_dir = self.path.is_dir()
            exists = is_dir or is_there(self.path)
        except WrongAddress as error:
            raise InputError(str(error), location) from error
        except OSError as error:
            raise UnreadableFile(f"cannot access: {os_reason(error)}", location) from error
        if not exists:
            raise InputError(absent_words(self.path), location)
        if is_dir:
            return self._kind_of_directory(location)
        kind = kind_of_file(self.path.name)
        if kind is None or (kind is Kind.LOG and not layout.SEGMENT_FILE.match(self.path.name)):
            refuse_foreign_file(self.path)
        if kind is None and not has_listings(self.path):
            raise NotALogDir("not the name of a Kafka file; a web server has no listings: give single files", location)
        if kind is None:
            raise NotALogDir("not the name of a Kafka file; pass its kind with --as, such as --as log", location)
        return kind

    def _kind_of_directory(self, location: Location) -> Kind:
        names = self._names
        has_partition_dir = any(parse_partition_dir(name) and is_dir for name, is_dir in names)
        has_segment = any(layout.SEGMENT_FILE.match(name) for name, _ in names)
        if has_partition_dir and not has_segment and self._found_log_dirs:
            return Kind.LOG_DIR
        has_partition_file = any(is_partition_file(name) for name, _ in names)
        if has_segment or (parse_partition_dir(named(self.path).name) and (not names or has_partition_file)):
            return Kind.PARTITION
        if has_partition_file or any(name in layout.LOG_DIR_FILES for name, _ in names):
            return Kind.LOG_DIR
        if self._found_log_dirs:
            return Kind.LOG_DIR
        foreign = foreign_segments(name for name, _ in names)
        if foreign:
            raise InputError(foreign, location)
        message = "this directory contains no TOPIC-PARTITION directory and no segment file"
        misnamed = list(map(str, self._search.misnamed))
        if misnamed:
            these = first_of(misnamed, _MOST_NAMED)
            message = f"no directory here has the name of a partition; segments are in {these}"
        places = [(name, self.path / name) for name, is_dir in names if not is_dir]
        links = [name for name, place in places if place.is_symlink() and place.is_dir()]
        if links:
            these = first_of(links, _MOST_NAMED)
            message += f"; symbolic links are not followed: give what they point to ({these})"
        raise NotALogDir(message, location)


def link_words(targets: Iterable[Target], name: str) -> str:
    """The end of a message that no partition of a name is at some targets: that a link there has it; else empty."""
    places = (path for target in targets for log_dir in target.log_dirs for path in log_dir.unexpected)
    link = next((path for path in places if path.name == name and path.is_symlink()), None)
    return "" if link is None else f"; {link} is a symbolic link, which is not followed: give what it points to"


def targets_at(
    paths: Iterable[str | os.PathLike[str]], kind: Kind | None = None, *, takes_empty: bool = False
) -> list[Target]:
    """The targets for the paths of one command; with ``takes_empty`` an empty directory beside others is a log one.

    A new file system may have lost+found.
    """
    surroundings = Surroundings()
    targets = [Target(path, kind, surroundings) for path in paths]
    empty = [_names_here(each.path) in (set(), {"lost+found"}) for each in targets] if takes_empty else []
    if any(empty) and not all(empty):
        return [
            Target(each.path, Kind.LOG_DIR, surroundings) if is_empty else each
            for each, is_empty in zip(targets, empty, strict=True)
        ]
    return targets


def each_once(targets: Sequence[Target]) -> list[Target]:
    """The targets without those that are given twice, or that are read with another one in which they are."""
    found: dict[str, Target] = {}  # by the real path
    for each in targets:
        found.setdefault(os.path.realpath(each.path) if is_on_disk(each.path) else str(each.path), each)

    @cache
    def directories_read(at: str) -> frozenset[str]:
        target = found[at]
        paths = (path for log_dir in target.log_dirs for path in (log_dir.path, *log_dir.partitions))
        return frozenset(at + str(path)[len(str(target.path)) :] for path in paths) or frozenset((at,))

    @cache
    def logs_read(directory: Path) -> frozenset[str]:
        return frozenset(each.log.name for each in read_partition(directory).segments if each.log is not None)

    def is_read_with_another(at: str, target: Target) -> bool:
        directory, _, name = at.rpartition("/")
        around = [each for each in _directories_around(at) if each in found]
        try:
            if not around or target.kind not in (Kind.LOG_DIR, Kind.PARTITION, Kind.LOG):
                return False
            wanted = directories_read(at)
            if target.kind is Kind.LOG:
                wanted = frozenset((directory,))
                if name not in logs_read(Path(directory) if is_on_disk(target.path) else target.path.parent):
                    return False
            return any(wanted <= directories_read(each) for each in around)
        except KafkaLogError:
            return False

    return [target for at, target in found.items() if not is_read_with_another(at, target)]


def _directories_around(place: str) -> Iterator[str]:
    """The directories that a path or an address is in, the innermost first."""
    while "/" in place:
        place = place.rpartition("/")[0]
        yield place


def _names_here(path: Path) -> set[str] | None:
    """The names in a directory on this machine; None where there is none, or none that can be listed."""
    try:
        return set(os.listdir(path)) if is_on_disk(path) else None
    except OSError:
        return None


def nothing_to_read(target: Target) -> Finding:
    """The finding for a directory below which no segment was found."""
    location = Location(str(target.path)) if target.kind is Kind.LOG_DIR else location_of_directory(target.path)
    if target.kind is Kind.LOG_DIR and _names_here(target.path) == set():
        message = "the directory is empty: it was not formatted, or its disk is not mounted; with KRaft, a broker that "
        message += "has it in log.dirs does not start; with ZooKeeper, it makes its logs anew, empty"
        return finding("log-dir-empty", location, message)
    return finding("nothing-to-read", location, "no segment of any log was found here or below")


def kind_of(path: str | os.PathLike[str]) -> Kind:
    """The kind of a path; raises the errors of ``Target.kind``."""
    return Target(path).kind


def target_at(path: str | os.PathLike[str] | Target) -> Target:
    """The target for a path; a Target is returned as it is."""
    return path if isinstance(path, Target) else Target(path)
