"""The partition.metadata file: the topic id of the partition (KIP-516, storage PartitionMetadataFile)."""

from __future__ import annotations

import re

import msgspec

from format.errors import InvalidCheckpoint, UnknownVersion
from format.files.side_file import (
    INT32_RANGE,
    Line,
    PathOrSource,
    Problem,
    decode_integer,
    decode_text,
    invalid_line,
    lines,
    opened,
    shown,
)
from format.io.source import Source
from format.kafka_uuid import ZERO_UUID, canonical_uuid, is_uuid
from format.limits import DEFAULT_LIMITS, Limits
from format.location import Location

CURRENT_VERSION = 0
_VALUE = re.compile(r"(?P<name>[^:]*):[ \t\v\f]+(?P<value>.*)", re.DOTALL)


class PartitionMetadata(msgspec.Struct, frozen=True):
    """The topic id, in Kafka's base64. A newer version is decoded, as brokers do, and is a problem."""

    path: str
    version: int
    topic_id: str
    problems: tuple[Problem, ...]


def read(path_or_source: PathOrSource, limits: Limits = DEFAULT_LIMITS) -> PartitionMetadata:
    """Read the file. Raises UnreadableFile, LimitExceeded, and InvalidCheckpoint if a broker could not read it."""
    with opened(path_or_source) as source:
        found = lines(source, limits)
        version_line, version_text = _value(source, next(found, None), "version")
        version = decode_integer(version_text, CURRENT_VERSION, INT32_RANGE[1])
        if version is None:
            raise invalid_line(source, version_line, "a version of 0 or more")
        id_line, id_text = _value(source, next(found, None), "topic_id")
        if not is_uuid(id_text) or canonical_uuid(id_text) == ZERO_UUID:
            raise invalid_line(source, id_line, "a topic id other than zero, 16 bytes in URL-safe base64")
        topic_id = canonical_uuid(id_text)

        problems = []
        if version != CURRENT_VERSION:
            message = f"line 1: version {version}, only {CURRENT_VERSION} is known"
            problems.append(Problem(0, len(version_line.content), message, UnknownVersion.code))
        if topic_id != id_text:
            message = f"line 2: the topic id is {shown(id_text)}, which Kafka writes as {topic_id}"
            problems.append(Problem(id_line.position, len(id_line.content), message, InvalidCheckpoint.code))
        line = next(found, None)
        if line is not None and version == CURRENT_VERSION:
            message = f"line {line.number}: expected the end of the file, found {shown(line.content)}"
            length = source.size_bytes - line.position
            problems.append(Problem(line.position, length, message, InvalidCheckpoint.code))
        return PartitionMetadata(source.path, version, topic_id, tuple(problems))


def _value(source: Source, line: Line | None, name: str) -> tuple[Line, str]:
    if line is None:
        raise InvalidCheckpoint(f'expected a line "{name}: …", found the end of the file', Location(source.path))
    match = _VALUE.fullmatch(decode_text(source, line))
    if match is None or match["name"] != name:
        raise invalid_line(source, line, f'"{name}: …"')
    return line, match["value"]


def write(entries: PartitionMetadata | str) -> bytes:
    """Encode metadata that was read, or a topic id with the current version."""
    version, topic_id = CURRENT_VERSION, entries
    if isinstance(entries, PartitionMetadata):
        version, topic_id = entries.version, entries.topic_id
    return f"version: {version}\ntopic_id: {topic_id}".encode("ascii")
