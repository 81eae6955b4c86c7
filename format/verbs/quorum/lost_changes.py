"""Changes that brokers' disks prove and the metadata lacks: leader epochs, partitions, replicas, topics.

A broker acts on a change when it is committed. So a leader epoch on its disk that is higher than that of the metadata,
or a partition that the metadata does not have, was committed once. So was a replica with the epoch of the metadata that
is not assigned to its node: the removal of a replica raises the epoch (metadata PartitionChangeBuilder). A topic that
the metadata does not know may as well have been deleted before the metadata begins, unless the log begins with the
cluster.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import msgspec

from format.errors import KafkaLogError
from format.files import meta_properties
from format.layout import CLUSTER_METADATA_TOPIC
from format.limits import DEFAULT_LIMITS, Limits
from format.node.log_dir import Kind, LogDir, log_dir_around
from format.node.partition import Partition, read_partition
from format.node.target import Target
from format.rows.record_rows import Row
from format.state.cluster_context import latest_epoch_of, topic_id_in
from format.state.cluster_image import PartitionState
from format.state.metadata_log import read_metadata
from format.state.quorum import Quorum

EPOCH, PARTITION, REPLICA, TOPIC = "leader_epoch", "partition", "replica", "topic"


class LostChange(msgspec.Struct, frozen=True):
    """A change that a partition directory shows. ``kind`` is what is lost: an epoch, a partition, a replica, a topic.

    ``epoch_on_disk`` is the last leader epoch of the directory, ``epoch_in_metadata`` that of the metadata, None where
    there is none. ``is_proven`` is false if the topic may have been deleted, or the metadata could not be read whole.
    """

    kind: str
    topic: str
    partition: int
    topic_id: str | None
    epoch_on_disk: int | None
    epoch_in_metadata: int | None
    node_id: int | None
    path: str
    is_proven: bool

    @property
    def row(self) -> Row:
        """The fields in the order of columns.LOST_CHANGE."""
        return (
            self.kind, self.topic, self.partition, self.topic_id, self.epoch_on_disk, self.epoch_in_metadata,
            self.node_id, "proven" if self.is_proven else "possible", self.path,
        )  # fmt: skip


class LostChanges(msgspec.Struct):
    """What the partition directories at the paths show, how many were compared, and how many cannot be listed."""

    changes: list[LostChange]
    compared_count: int
    unread_count: int = 0

    def of(self, *kinds: str, is_proven: bool = True) -> list[LostChange]:
        """The changes of these kinds."""
        return [each for each in self.changes if each.kind in kinds and each.is_proven == is_proven]


def furthest_of_each(changes: Iterable[LostChange]) -> list[LostChange]:
    """For each partition, the change with the latest epoch."""
    best: dict[tuple[str, int], LostChange] = {}
    for each in sorted(changes, key=lambda each: -1 if each.epoch_on_disk is None else each.epoch_on_disk):
        best[each.topic, each.partition] = each
    return sorted(best.values(), key=lambda each: (each.topic, each.partition))


def lost_changes(targets: Iterable[Target], quorum: Quorum, limits: Limits = DEFAULT_LIMITS) -> LostChanges:
    """The changes that the partitions at or below some paths show, and the best copy of the metadata lacks."""
    image = quorum.state.image
    is_whole = not quorum.state.is_damaged and quorum.best.copy.is_usable
    found: list[LostChange] = []
    unknown: list[LostChange] = []
    count, unread = 0, list[KafkaLogError]()
    for log_dir, node_id, paths in directories_of(targets, quorum.best.copy.cluster_id, limits):
        for partition in replicas_in(log_dir, paths, unread):
            count += 1
            topic, number = str(partition.topic), partition.number or 0
            topic_id = topic_id_in(partition.metadata, limits) or image.topic_id(topic)
            state = None if topic_id is None else image.partitions.get((topic_id, number))
            epoch = latest_epoch_of(partition, limits)
            kind = TOPIC if topic_id not in image.names else _kind_of(state, node_id, epoch)
            if kind is not None:
                known = None if state is None else state.leader_epoch
                change = LostChange(kind, topic, number, topic_id, epoch, known, node_id, str(partition.path), is_whole)
                (unknown if kind == TOPIC else found).append(change)
    return LostChanges([*found, *_created(unknown, quorum, limits)], count, len(unread))


def _kind_of(state: PartitionState | None, node_id: int | None, epoch: int | None) -> str | None:
    """What the metadata lacks of a partition of a topic that it knows; None for nothing."""
    if state is None:
        return PARTITION
    if epoch is None or epoch < state.leader_epoch:
        return None
    if node_id is not None and node_id not in state.replicas:
        return REPLICA
    return EPOCH if epoch > state.leader_epoch else None


def _created(unknown: list[LostChange], quorum: Quorum, limits: Limits) -> Iterator[LostChange]:
    """The topics that the metadata does not know, without those that it knows to be deleted."""
    if not unknown:
        return
    partition = quorum.best.copy.source.partition
    removed = dict(quorum.state.image.removed_topics)
    begins_with_cluster = bool(partition.segments) and partition.segments[0].base_offset == 0
    if any(each.topic_id not in removed for each in unknown):
        removed |= read_metadata(partition, limits=limits, watch=lambda image, record: None).image.removed_topics
    for each in unknown:
        if each.topic_id is None or each.topic_id not in removed:
            is_proven = each.is_proven and begins_with_cluster and each.topic_id is not None
            yield msgspec.structs.replace(each, is_proven=is_proven)


def directories_of(
    targets: Iterable[Target], cluster_id: str | None, limits: Limits
) -> Iterator[tuple[LogDir | None, int | None, Sequence[Path]]]:
    """The log directories of a cluster at or below some paths, each with its node id and the partitions that are meant.

    None stands for the log directory of a partition that lies in none.
    """
    for target in targets:
        around = [log_dir_around(target.path)] if target.kind is Kind.PARTITION else []
        for log_dir in (*around, *target.log_dirs):
            node_id, own_cluster, _ = meta_properties.ids_in(
                None if log_dir is None else log_dir.meta_properties, limits
            )
            if None in (own_cluster, cluster_id) or own_cluster == cluster_id:
                yield log_dir, node_id, [target.path] if log_dir is None or around else log_dir.partitions


def replicas_in(log_dir: LogDir | None, paths: Iterable[Path], unread: list[KafkaLogError]) -> Iterator[Partition]:
    """The partitions of topics in a log directory, without the metadata log and directories that are marked.

    ``unread`` gets the errors about directories that cannot be listed, which verify reports.
    """
    for path in paths:
        try:
            partition = read_partition(path) if log_dir is None else log_dir.partition(path, is_kept=False)
        except KafkaLogError as error:
            unread.append(error)
            continue
        is_topic = partition.key is not None and partition.topic != CLUSTER_METADATA_TOPIC
        if is_topic and partition.mark is None:
            yield partition
