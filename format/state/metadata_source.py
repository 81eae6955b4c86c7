"""Which metadata log to read: the one below the paths that reaches furthest, or a file that was named."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from format.errors import InputError, KafkaLogError
from format.files import meta_properties
from format.io.source import FileSource
from format.layout import CLUSTER_METADATA_TOPIC
from format.limits import Limits
from format.location import Location
from format.log.walker import header_chunks
from format.node.log_dir import Kind, LogDir, log_dir_around
from format.node.partition import KraftSnapshot, Partition, Segment, proven_topic_of_file, read_partition
from format.node.target import Target

_METADATA_KEY = (CLUSTER_METADATA_TOPIC, 0)


class MetadataSource(msgspec.Struct, frozen=True):
    """A metadata partition, its node, and the end of its log: (leader epoch, end offset)."""

    partition: Partition
    node_id: int | None
    cluster_id: str | None
    reach: tuple[int, int]


def metadata_source(targets: Iterable[Target], limits: Limits) -> tuple[MetadataSource, list[MetadataSource]]:
    """The metadata log with the latest end, and the others. Raises InputError if there is none."""
    targets = list(targets)
    found = [source for target in targets for source in _sources(target, limits)]
    if not found:
        path = str(targets[0].path)
        raise InputError(f"there is no {CLUSTER_METADATA_TOPIC}-0 with a log or a snapshot here", Location(path))
    furthest = max(found, key=lambda source: source.reach)
    return furthest, [source for source in found if source is not furthest]


def _sources(target: Target, limits: Limits) -> Iterator[MetadataSource]:
    if target.kind in (Kind.LOG, Kind.KRAFT_SNAPSHOT):
        topic = proven_topic_of_file(target.path)
        if topic not in (None, CLUSTER_METADATA_TOPIC):
            raise InputError(f"a log of the topic {topic} holds no metadata", Location(str(target.path)))
        yield _source(_lone_file(target), None, limits)
        return
    if target.kind is Kind.PARTITION:
        partition = target.partition
        if partition.key == _METADATA_KEY or partition.kraft_snapshots:
            yield _source(partition, log_dir_around(partition.path), limits)
        return
    for log_dir in target.log_dirs:
        for path in log_dir.partitions:
            if path.name == f"{CLUSTER_METADATA_TOPIC}-0":
                partition = log_dir.partition(path)
                if partition.segments or partition.kraft_snapshots:
                    yield _source(partition, log_dir, limits)


def _lone_file(target: Target) -> Partition:
    """A partition of one file: a snapshot, or a segment without the snapshots beside it."""
    around = read_partition(target.path.parent)
    partition = Partition(target.path, CLUSTER_METADATA_TOPIC, 0)
    if target.kind is Kind.LOG:
        segments = [each for each in around.segments if each.log is not None and each.log.name == target.path.name]
        partition.segments = segments or [Segment(target.path.parent, 0, None, {".log": target.path})]
    else:
        named = [each for each in around.kraft_snapshots if each.path.name == target.path.name]
        partition.kraft_snapshots = [KraftSnapshot(target.path, each.end_offset, each.epoch) for each in named]
        partition.kraft_snapshots = partition.kraft_snapshots or [KraftSnapshot(target.path, 0, 0)]
    return partition


def _source(partition: Partition, log_dir: LogDir | None, limits: Limits) -> MetadataSource:
    node_id = cluster_id = None
    if log_dir is not None and log_dir.meta_properties is not None:
        try:
            properties = meta_properties.read(log_dir.meta_properties, limits)
            node_id, cluster_id = properties.node_id, properties.cluster_id
        except KafkaLogError:
            pass  # verify reports it
    reaches = [(each.epoch, each.end_offset) for each in partition.kraft_snapshots if each.leftover is None]
    if partition.segments and partition.segments[-1].log is not None:
        reaches.append(_log_reach(partition.segments[-1].log, partition.segments[-1].base_offset, limits))
    return MetadataSource(partition, node_id, cluster_id, max(reaches, default=(-1, 0)))


def _log_reach(path: Path, base_offset: int, limits: Limits) -> tuple[int, int]:
    """Leader epoch and end offset of a segment's last batch, from the headers alone."""
    reach = (-1, base_offset)
    try:
        with FileSource(path) as source:
            for chunk in header_chunks(source, limits=limits):
                if len(chunk.headers):
                    row = len(chunk.headers) - 1
                    reach = max(reach, (int(chunk.headers.leader_epoch[row]), chunk.headers.last_offset_of(row) + 1))
    except KafkaLogError:
        pass  # the replay reports it
    return reach
