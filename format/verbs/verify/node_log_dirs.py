"""Checks of the log directories of one node together: duplicate partitions, and replicas in another directory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import msgspec

from format.errors import KafkaLogError
from format.files import meta_properties
from format.findings import Certainty, Finding, Judgement, Severity, finding
from format.io.session import is_there
from format.layout import CLUSTER_METADATA_TOPIC, PARTITION_METADATA
from format.limits import Limits
from format.location import Location
from format.node.log_dir import LogDir, TopicPartition
from format.node.partition import parse_partition_dir

_METADATA = (CLUSTER_METADATA_TOPIC, 0)
#: Marks of directories that are no duplicate: a replica that is being moved is in two directories, and no client
#: reads a stray or deleted one.
_BESIDE = ("future", "stray", "delete")


class _Owner(msgspec.Struct, frozen=True):
    """The node that a log directory belongs to, and the directory id; ``is_metadata``: the metadata log is in it."""

    cluster_id: str | None
    node_id: int
    directory_id: str | None
    is_metadata: bool

    def is_beside(self, other: _Owner) -> bool:
        """Whether one node uses both: two with the same directory id, and two with a metadata log, are copies."""
        is_copy = self.directory_id is not None and self.directory_id == other.directory_id
        is_copy = is_copy or (self.is_metadata and other.is_metadata)
        return (self.cluster_id, self.node_id) == (other.cluster_id, other.node_id) and not is_copy


def check_node_log_dirs(log_dirs: Iterable[LogDir], limits: Limits) -> Iterator[Finding]:
    """Findings for log directories that belong to one node by meta.properties; those without one are skipped."""
    owned = _owned(log_dirs, limits)
    for number, (log_dir, owner) in enumerate(owned):
        for other_dir, other in owned[:number]:
            if owner.is_beside(other):
                yield from _duplicates(log_dir, other_dir, has_metadata=_has_metadata(owner, owned))
            elif owner.directory_id is not None and owner.directory_id == other.directory_id:
                yield finding(
                    "boot-refused",
                    Location(str(log_dir.path)),
                    f"{other_dir.path} has the same directory id {owner.directory_id}, as if one were a copy: a broker "
                    "does not start with both",
                    judgement=Judgement(
                        severity=Severity.INFO, certainty=Certainty.POSSIBLE, next_step="Nothing, if one is a copy."
                    ),
                )
                break


def replicas_elsewhere(log_dirs: Sequence[LogDir], limits: Limits) -> dict[Path, frozenset[TopicPartition]]:
    """By log directory, the partitions that lie in the other log directories of the same node."""
    if len(log_dirs) < 2:
        return {}
    owned = _owned(log_dirs, limits)
    found: dict[Path, frozenset[TopicPartition]] = {}
    for log_dir, owner in owned:
        others = [each for each, other in owned if owner.is_beside(other)]
        found[log_dir.path] = frozenset(key for each in others for key in _replicas(each))
    return found


def _duplicates(log_dir: LogDir, other_dir: LogDir, *, has_metadata: bool) -> Iterator[Finding]:
    """Findings for partitions in both directories.

    Where the node has a metadata log, a broker treats a log without a topic id as stray: no duplicate is reported.
    """
    others = _replicas(other_dir)
    for key, path in sorted(_replicas(log_dir).items()):
        other = others.get(key)
        if other is None:
            continue
        if has_metadata and not all(is_there(each / PARTITION_METADATA) for each in (path, other)):
            continue
        yield finding(
            "boot-refused",
            Location(str(path), *key),
            f"a broker would not start: the same partition is in {other} too; remove one of the two: "
            f"Duplicate log directories for {key[0]}-{key[1]} are found",
        )


def _has_metadata(owner: _Owner, owned: Iterable[tuple[LogDir, _Owner]]) -> bool:
    return owner.is_metadata or any(each.is_metadata and owner.is_beside(each) for _, each in owned)


def _replicas(log_dir: LogDir) -> dict[TopicPartition, Path]:
    found: dict[TopicPartition, Path] = {}
    for path in log_dir.partitions:
        parsed = parse_partition_dir(path.name)
        if parsed is not None and parsed[2] not in _BESIDE:
            found[parsed[0], parsed[1]] = path
    return found


def _owned(log_dirs: Iterable[LogDir], limits: Limits) -> list[tuple[LogDir, _Owner]]:
    """The log directories whose node is known."""
    owned = []
    for log_dir in log_dirs:
        if log_dir.meta_properties is None:
            continue
        try:
            found = meta_properties.read(log_dir.meta_properties, limits)
        except KafkaLogError:
            continue
        if found.node_id is not None:
            is_metadata = _METADATA in log_dir.topic_partitions
            owned.append((log_dir, _Owner(found.cluster_id, found.node_id, found.directory_id, is_metadata)))
    return owned
