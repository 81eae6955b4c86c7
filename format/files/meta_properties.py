"""The meta.properties file: the ids of the cluster, the node and the log directory (KIP-631, KIP-858).

In version 0 (ZooKeeper) all properties are optional, and the node id is ``broker.id``; version 1 (KRaft) must have
``cluster.id`` and ``node.id``. A file without a version has version 0 (metadata MetaProperties).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec

from format.errors import InvalidCheckpoint, KafkaLogError, UnknownVersion
from format.files.side_file import (
    INT32_RANGE,
    MAX_PROBLEMS,
    JavaProperties,
    PathOrSource,
    Problem,
    decode_integer,
    decode_properties,
    encode_property,
    invalid_line,
    opened,
    shown,
)
from format.io.session import entries_of, is_there
from format.io.source import Source
from format.kafka_uuid import canonical_uuid, is_reserved
from format.layout import META_PROPERTIES, METADATA_PARTITION
from format.limits import DEFAULT_LIMITS, Limits
from format.location import Location

KNOWN_VERSIONS = (0, 1)
#: A plausible cluster id: Kafka generates 22 characters of base64, but accepts any text.
_CLUSTER_ID = re.compile(r"[\w.-]+", re.ASCII)


class MetaProperties(msgspec.Struct, frozen=True):
    """The content of the file; missing ids are None.

    ``node_id`` is ``node.id`` in version 1 and ``broker.id`` in version 0. ``properties`` are all (name, value) pairs
    in the order of the file, ``comments`` its comment lines; the second comment of a broker is the time of writing.
    """

    path: str
    version: int
    cluster_id: str | None
    node_id: int | None
    directory_id: str | None
    properties: tuple[tuple[str, str], ...]
    comments: tuple[str, ...]
    problems: tuple[Problem, ...]


def node_id_in(path: Path | None, limits: Limits = DEFAULT_LIMITS) -> int | None:
    """The node id in a file; None for no file and for one that cannot be read, which ls and verify report."""
    return ids_in(path, limits)[0]


def ids_in(path: Path | None, limits: Limits = DEFAULT_LIMITS) -> tuple[int | None, str | None, str | None]:
    """The node id, cluster id and directory id in a file; None for each where ``node_id_in`` returns None."""
    try:
        found = None if path is None else read(path, limits)
    except KafkaLogError:
        found = None
    return (None, None, None) if found is None else (found.node_id, found.cluster_id, found.directory_id)


def has_metadata_log(log_dir: Path) -> bool:
    """Whether the metadata log of KRaft lies in a log directory: an empty directory with its name is none."""
    try:
        with entries_of(log_dir / METADATA_PARTITION) as entries:
            return any(True for _ in entries)
    except OSError:
        return is_there(log_dir / METADATA_PARTITION)


def is_of_zookeeper(log_dirs: Iterable[Path], limits: Limits = DEFAULT_LIMITS) -> bool:
    """Whether log directories are of a node in ZooKeeper mode: its files have version 0, and there is no metadata log.

    A file of version 0 with a directory id is of a node that went from ZooKeeper to KRaft. A file that is missing,
    empty or unreadable is of neither mode, as that of a new or damaged disk.
    """
    are_old = set()
    for log_dir in log_dirs:
        if has_metadata_log(log_dir):
            return False
        try:
            found = read(log_dir / META_PROPERTIES, limits)
        except KafkaLogError:
            continue
        if found.node_id is not None:
            are_old.add(found.version == 0 and found.directory_id is None)
    return are_old == {True}


def is_of_kraft(path: Path | None, limits: Limits = DEFAULT_LIMITS) -> bool:
    """Whether a file is that of a node in KRaft mode: it has version 1."""
    try:
        return path is not None and read(path, limits).version == 1
    except KafkaLogError:
        return False


class KnownIds(msgspec.Struct, frozen=True):
    """Ids from other sources: functions that return the node id, and the directory id for a node id.

    A broker gives a log directory without an id a new one. It then does not lead the partitions that the metadata
    assigns to the old id, until the controller has reassigned them.
    """

    node_id: Callable[[], int | None] = lambda: None
    directory_id: Callable[[int], str | None] = lambda node_id: None


def read(path_or_source: PathOrSource, limits: Limits = DEFAULT_LIMITS) -> MetaProperties:
    """Read the file. Raises UnreadableFile, LimitExceeded, UnknownVersion, InvalidCheckpoint if a broker would stop."""
    with opened(path_or_source) as source:
        found = decode_properties(source, limits)
        version = _version(source, found)
        id_name = "broker.id" if version == 0 else "node.id"
        node_id = _integer(source, found, id_name)
        cluster_id = found.last("cluster.id")
        if version > 0:
            for name in (id_name, "cluster.id"):
                if found.last(name) is None:
                    raise InvalidCheckpoint(
                        f"the property {name}, which version {version} must have, is missing", Location(source.path)
                    )
        return MetaProperties(
            path=source.path,
            version=version,
            cluster_id=None if cluster_id is None else cluster_id.value,
            node_id=node_id,
            directory_id=_directory_id(source, found),
            properties=tuple((each.name, each.value) for each in found.properties),
            comments=found.comments,
            problems=_problems(found, source.size_bytes, is_nameless=node_id is None),
        )


def mended(path_or_source: PathOrSource, known_ids: KnownIds, limits: Limits = DEFAULT_LIMITS) -> bytes | None:
    """A new file with the readable ids of a KRaft node's damaged file; None if the cluster id or node id is lost.

    ``known_ids`` are used for ids that the file has lost.
    """
    try:
        with opened(path_or_source) as source:
            found = decode_properties(source, limits)
            if found.last("broker.id") is not None:
                return None
            try:
                known = _integer(source, found, "node.id")
            except InvalidCheckpoint:
                known = None
            try:
                directory_id = _directory_id(source, found)
            except InvalidCheckpoint:
                directory_id = None
    except KafkaLogError:
        return None
    cluster_id = found.last("cluster.id")
    node_id = known if known is not None else known_ids.node_id()
    if node_id is None or cluster_id is None or not _CLUSTER_ID.fullmatch(cluster_id.value):
        return None
    if directory_id is None or is_reserved(directory_id):
        directory_id = known_ids.directory_id(node_id)
    entries = [("version", "1"), ("cluster.id", cluster_id.value), ("node.id", str(node_id))]
    return write(entries if directory_id is None else [*entries, ("directory.id", directory_id)])


def _version(source: Source, found: JavaProperties) -> int:
    version = found.last("version")
    if version is None:
        return 0
    number = decode_integer(version.value.strip(), *INT32_RANGE)
    if number is None:
        raise invalid_line(source, version.line, "a version number", shown(version.value))
    if number not in KNOWN_VERSIONS:
        raise UnknownVersion(
            f"line {version.line.number}: version {number}, only {KNOWN_VERSIONS[0]} and {KNOWN_VERSIONS[1]} are known",
            Location(source.path, position=version.line.position, length=len(version.line.content)),
        )
    return number


def _integer(source: Source, found: JavaProperties, name: str) -> int | None:
    entry = found.last(name)
    if entry is None:
        return None
    number = decode_integer(entry.value, *INT32_RANGE)
    if number is None:
        raise invalid_line(source, entry.line, f"a 32-bit integer as {name}", shown(entry.value))
    return number


def _directory_id(source: Source, found: JavaProperties) -> str | None:
    entry = found.last("directory.id")
    if entry is None:
        return None
    try:
        return canonical_uuid(entry.value)
    except ValueError as error:
        expected = "16 bytes in URL-safe base64 as directory.id"
        raise invalid_line(source, entry.line, expected, shown(entry.value)) from error


def _problems(found: JavaProperties, size_bytes: int, *, is_nameless: bool) -> tuple[Problem, ...]:
    seen: set[str] = set()
    problems: list[Problem] = []
    if is_nameless:
        message = "it names no node, which every broker writes into it: it was emptied, or overwritten"
        problems.append(Problem(0, size_bytes, message, InvalidCheckpoint.code))
    for each in found.properties:
        if each.name in seen and len(problems) < MAX_PROBLEMS:
            message = f"line {each.line.number}: {shown(each.name)} has an earlier line; a broker uses the last one"
            problems.append(Problem(each.line.position, len(each.line.content), message, InvalidCheckpoint.code))
        seen.add(each.name)
    return tuple(problems)


def write(entries: MetaProperties | Iterable[tuple[str, str]]) -> bytes:
    r"""Encode a file that was read, or (name, value) pairs: the comments, then one property per line.

    Characters outside ASCII become \uXXXX. A broker writes them in UTF-8 and reads them as ISO-8859-1; the ids that
    Kafka generates are ASCII.
    """
    comments: tuple[str, ...] = ()
    if isinstance(entries, MetaProperties):
        comments, entries = entries.comments, entries.properties
    written = [*comments, *(encode_property(name, value) for name, value in entries)]
    return "".join(f"{line}\n" for line in written).encode("latin-1")
