"""Remote storage of tiered logs: its objects by their names, and its segments joined with local ones."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from format import layout
from format.io.session import Session, is_there, session_of
from format.node.log_dir import TopicPartition, list_directory
from format.node.partition import Segment


class RemoteTier(msgspec.Struct):
    """The remote segments of each partition, by base offset and without overlaps."""

    segments: Mapping[TopicPartition, Sequence[Segment]] = msgspec.field(default_factory=dict)

    def joined(self, key: TopicPartition | None, local: list[Segment]) -> list[Segment]:
        """The segments of a partition as one log: remote segments before the first local one, then the local ones."""
        remote = () if key is None else self.segments.get(key, ())
        if not remote:
            return local
        first_local = local[0].base_offset if local else None
        return [each for each in remote if first_local is None or each.base_offset < first_local] + local


_UUID = "[A-Za-z0-9_-]{22}"
_LOCAL_DIRECTORY = re.compile(rf"(?P<topic>.+)-(?P<partition>[0-9]+)-(?P<topic_id>{_UUID})")
_PLUGIN_DIRECTORY = re.compile(rf"(?P<topic>.+)-(?P<topic_id>{_UUID})")
_OBJECT = re.compile(rf"(?P<offset>[0-9]{{20}})-(?P<segment_id>{_UUID})(?P<suffix>\.[a-z_-]+)")
_MANIFEST = ".rsm-manifest"
_DEPTH = 3
_SUFFIXES = (
    layout.LOG_SUFFIX,
    layout.OFFSET_INDEX_SUFFIX,
    layout.TIME_INDEX_SUFFIX,
    layout.TRANSACTION_INDEX_SUFFIX,
    layout.PRODUCER_SNAPSHOT_SUFFIX,
)


class RemoteObjects(msgspec.Struct, frozen=True):
    """The objects of one remote segment, as files by suffix."""

    directory: Path
    topic: str
    topic_id: str
    partition: int
    segment_id: str
    start_offset: int
    files: dict[str, Path]

    @property
    def key(self) -> tuple[str, int, str]:
        """Topic id, partition and segment id."""
        return self.topic_id, self.partition, self.segment_id

    @property
    def path(self) -> Path:
        """The path of the log, or of another file if there is no log."""
        return self.files.get(layout.LOG_SUFFIX) or next(iter(self.files.values()))


def remote_objects(directory: Path, depth: int = _DEPTH) -> Iterator[RemoteObjects]:
    """The objects of all segments at or below a path. Raises UnreadableFile if it cannot be listed."""
    for name, is_dir in list_directory(directory):
        if not is_dir:
            continue
        place = directory / name
        local = _LOCAL_DIRECTORY.fullmatch(name)
        plugin = _PLUGIN_DIRECTORY.fullmatch(name)
        numbers = [each for each, is_below in list_directory(place) if is_below and each.isdigit()] if plugin else []
        if numbers and plugin is not None:
            for number in numbers:
                yield from _objects(place / number, plugin["topic"], plugin["topic_id"], int(number))
        elif local is not None:
            yield from _objects(place, local["topic"], local["topic_id"], int(local["partition"]))
        elif depth:
            yield from remote_objects(place, depth - 1)


def _objects(directory: Path, topic: str, topic_id: str, partition: int) -> Iterator[RemoteObjects]:
    found: dict[tuple[int, str], dict[str, Path]] = {}
    with_manifest: set[tuple[int, str]] = set()
    for name, _ in list_directory(directory):
        match = _OBJECT.fullmatch(name)
        if match is None:
            continue
        key = int(match["offset"]), match["segment_id"]
        if match["suffix"] == _MANIFEST:
            with_manifest.add(key)
        files = found.setdefault(key, {})
        if match["suffix"] in _SUFFIXES:
            files[match["suffix"]] = directory / name
    for (offset, segment_id), files in sorted(found.items()):
        if (offset, segment_id) in with_manifest:
            files = _files_of_plugin(directory, f"{offset:020d}-{segment_id}")
        if files:
            yield RemoteObjects(directory, topic, topic_id, partition, segment_id, offset, files)


def _files_of_plugin(directory: Path, stem: str) -> dict[str, Path]:
    """The files in the plugin's objects: the log, and the indexes in the manifest."""
    text = str(directory)
    address = f"aiven+{text}" if "://" in text else f"aiven+file://{directory.absolute()}"
    session = session_of(directory) or Session()
    paths = {suffix: session.path(f"{address}/{stem}{suffix}") for suffix in _SUFFIXES}
    return {suffix: path for suffix, path in paths.items() if suffix == layout.LOG_SUFFIX or is_there(path)}
