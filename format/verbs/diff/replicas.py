"""Finds the replicas below some paths: partition directories of one topic id and number, in several log directories."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import msgspec

from format import layout
from format.errors import InputError, KafkaLogError, NotALogDir
from format.files import meta_properties, partition_metadata
from format.findings import Finding, finding, finding_of
from format.io.session import is_on_disk
from format.limits import Limits
from format.location import Location
from format.node.log_dir import Checkpoints, Kind, directory_around, read_log_dir
from format.node.offsets import PartitionOffsets, offsets_of
from format.node.partition import Partition, location_of_directory
from format.node.partition_surroundings import unread_findings
from format.node.target import Target
from format.state.cluster_context import Assignment


class Replica(msgspec.Struct, frozen=True):
    """One copy of a partition, with the facts from the files beside its log."""

    partition: Partition
    offsets: PartitionOffsets
    topic_id: str | None = None
    node_id: int | None = None
    cluster_id: str | None = None  # of the log directory; None for a partition directory by itself
    was_cleaned: bool | None = None  # whether the cleaner's checkpoint has the partition; None without a checkpoint

    @property
    def path(self) -> Path:
        return self.partition.path

    @property
    def log_start_offset(self) -> int:
        """The first offset that a broker serves from this directory."""
        return max(self.offsets.log_start_offset or 0, self.offsets.local_start_offset or 0)

    @property
    def size_bytes(self) -> int:
        """Bytes of the logs."""
        return self.partition.sizes.log_size_bytes


class Replicas(msgspec.Struct):
    """The replicas of one partition, in the order of the paths, and what the metadata at hand says of it.

    ``voters`` are the node ids of the controllers that vote, for the metadata log; None if they are not known.
    """

    topic: str | None
    number: int | None
    replicas: list[Replica] = msgspec.field(default_factory=list)
    assignment: Assignment = msgspec.field(default_factory=Assignment)
    voters: tuple[int, ...] | None = None

    @property
    def name(self) -> str:
        """The partition's name, or that of the directory where it has no partition's name."""
        return f"{self.topic}-{self.number}" if self.topic is not None else self.replicas[0].partition.name

    @property
    def size_bytes(self) -> int:
        return sum(each.size_bytes for each in self.replicas)


class Matching(msgspec.Struct):
    """The partitions below the paths: those with several replicas, and the names of those with one."""

    groups: list[Replicas] = msgspec.field(default_factory=list)
    single: list[str] = msgspec.field(default_factory=list)
    findings: list[Finding] = msgspec.field(default_factory=list)


def matched(targets: Sequence[Target], limits: Limits) -> Matching:
    """Match the partitions of log directories by topic, number and topic id.

    Partition directories that are given one by one are replicas of each other whatever their names. Raises InputError
    for a path without a partition, and for directories of different partitions.
    """
    for target in targets:
        if target.kind not in (Kind.LOG_DIR, Kind.PARTITION):
            raise NotALogDir("diff compares partitions and log directories", Location(str(target.path)))
    result = Matching()
    if all(target.kind is Kind.PARTITION for target in targets):
        _match_partitions(targets, limits, result)
        return result
    groups: dict[tuple[str, int], list[Replicas]] = {}
    seen: dict[tuple[int, int], Path] = {}
    for replica in _found(targets, limits, result.findings):
        _refuse_same_directory(replica, seen)
        key = replica.partition.key
        if key is not None and replica.partition.mark is None:
            _add(groups.setdefault(key, []), replica)
    for key in sorted(groups):
        if len(groups[key]) > 1:
            result.findings.append(_conflict(groups[key]))
        for group in groups[key]:
            if len(group.replicas) > 1:
                result.groups.append(group)
            else:
                result.single.append(group.name)
    return result


def _match_partitions(targets: Sequence[Target], limits: Limits, result: Matching) -> None:
    replicas = list(_found(targets, limits, result.findings))
    seen: dict[tuple[int, int], Path] = {}
    for replica in replicas:
        _refuse_same_directory(replica, seen)
    keys = sorted({each.partition.key for each in replicas if each.partition.key is not None})
    if len(keys) > 1:
        names = " and ".join(f"{topic}-{number}" for topic, number in keys[:2])
        raise InputError(
            f"{names} are different partitions, not replicas of one partition", Location(str(targets[0].path))
        )
    topic, number = keys[0] if keys else (None, None)
    groups: list[Replicas] = []
    for replica in replicas:
        _add(groups, replica)
    if len(groups) > 1:
        result.findings.append(_conflict(groups))
    for group in groups:
        group.topic, group.number = topic, number
        if len(group.replicas) > 1:
            result.groups.append(group)
        else:
            result.single.append(group.name)


def _add(groups: list[Replicas], replica: Replica) -> None:
    """Add a replica to the group of its topic id and cluster id; one without ids belongs to the first group."""
    for group in groups:
        if all(_may_be_one(each, replica) for each in group.replicas):
            group.replicas.append(replica)
            return
    groups.append(Replicas(replica.partition.topic, replica.partition.number, [replica]))


def _may_be_one(first: Replica, second: Replica) -> bool:
    """Whether two replicas may be of one partition: the ids that both have are the same."""
    topics, clusters = (first.topic_id, second.topic_id), (first.cluster_id, second.cluster_id)
    return all(None in ids or ids[0] == ids[1] for ids in (topics, clusters))


def _conflict(groups: list[Replicas]) -> Finding:
    first, second = groups[0].replicas[0], groups[1].replicas[0]
    what, expected, actual = "topic id", first.topic_id, second.topic_id
    if expected == actual or None in (expected, actual):  # the topic id of the metadata log is that of every cluster
        what, expected, actual = "cluster id", first.cluster_id, second.cluster_id
    return finding(
        "topic-id-conflict",
        second.partition.location(),
        f"the {what} is {actual}, in {first.path} it is {expected}: these are not replicas of one partition",
        expected=expected,
        actual=actual,
    )


def _refuse_same_directory(replica: Replica, seen: dict[tuple[int, int], Path]) -> None:
    """Raise InputError for a partition directory that was found before: a log compared with itself proves nothing."""
    if not is_on_disk(replica.path) or not replica.path.is_dir():
        return
    status = replica.path.stat()
    other = seen.setdefault((status.st_dev, status.st_ino), replica.path)
    if other is not replica.path:
        message = f"the same directory as {other}: give the directories of different replicas"
        raise InputError(message, Location(str(replica.path)))


def _found(targets: Iterable[Target], limits: Limits, findings: list[Finding]) -> Iterator[Replica]:
    """The replicas at and below the targets; adds findings about directories that cannot be listed."""
    for target in targets:
        if target.kind is Kind.PARTITION:
            try:
                log_dir = read_log_dir(directory_around(target.path))
                node_id = meta_properties.node_id_in(log_dir.meta_properties, limits)
            except KafkaLogError:
                node_id = None  # a partition directory that was copied without its log directory
            yield _replica(target.partition, target.checkpoints_around(limits), (node_id, None), limits, findings)
            continue
        findings.extend(target.link_findings())
        for log_dir in target.log_dirs:
            findings.extend(log_dir.unread_findings())
            checkpoints = log_dir.checkpoints(limits)
            findings.extend(checkpoints.findings)
            ids = meta_properties.ids_in(log_dir.meta_properties, limits)
            for path in log_dir.partitions:
                try:
                    partition = log_dir.partition(path)
                except KafkaLogError as error:
                    findings.append(finding_of(error, location_of_directory(path)))
                    continue
                yield _replica(partition, checkpoints, ids, limits, findings)


def _replica(
    partition: Partition,
    checkpoints: Checkpoints,
    ids: tuple[int | None, str | None],
    limits: Limits,
    findings: list[Finding],
) -> Replica:
    findings.extend(unread_findings(partition))
    topic_id = None
    if partition.metadata is not None:
        try:
            topic_id = partition_metadata.read(partition.metadata, limits).topic_id
        except KafkaLogError as error:
            findings.append(finding_of(error, partition.location(partition.metadata)))
    was_cleaned = None
    if layout.CLEANER_OFFSET_CHECKPOINT in checkpoints.by_name:
        was_cleaned = checkpoints.offset(layout.CLEANER_OFFSET_CHECKPOINT, partition.key) is not None
    return Replica(partition, offsets_of(partition, checkpoints), topic_id, *ids, was_cleaned)
