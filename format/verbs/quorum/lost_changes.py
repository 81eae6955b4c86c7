"""Changes that brokers' disks prove and the metadata lacks: later leader epochs, more partitions, unknown topics.

A broker acts on a change when it is committed. So a leader epoch on its disk that is higher than that of the metadata,
or a partition that the metadata does not have, was committed once. A topic that the metadata does not know may as well
have been deleted before the metadata begins, unless the log begins with the cluster.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress

import msgspec

from format.errors import KafkaLogError
from format.files import meta_properties
from format.layout import CLUSTER_METADATA_TOPIC
from format.limits import DEFAULT_LIMITS, Limits
from format.node.log_dir import Kind, log_dir_around
from format.node.partition import Partition, read_partition
from format.node.target import Target
from format.rows.record_rows import Row
from format.state.cluster_context import latest_epoch_of, topic_id_in
from format.state.quorum import Quorum

EPOCH, PARTITION, TOPIC = "leader_epoch", "partition", "topic"


class LostChange(msgspec.Struct, frozen=True):
    """A change that a partition directory shows. ``kind`` is what is lost: a leader epoch, a partition, or a topic.

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
    """What the partition directories at the paths show, and how many of them were compared."""

    changes: list[LostChange]
    compared_count: int

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
    image, cluster_id = quorum.state.image, quorum.best.copy.cluster_id
    is_whole = not quorum.state.is_damaged and quorum.best.copy.is_usable
    found: list[LostChange] = []
    unknown: list[LostChange] = []
    count = 0
    for partition, node_id, own_cluster in _partitions(targets, limits):
        if partition.key is None or (own_cluster is not None and cluster_id not in (None, own_cluster)):
            continue
        count += 1
        topic, number = partition.key
        topic_id = topic_id_in(partition.metadata, limits) or image.topic_id(topic)
        state = None if topic_id is None else image.partitions.get((topic_id, number))
        epoch = latest_epoch_of(partition, limits)
        kind = TOPIC if topic_id not in image.names else PARTITION if state is None else EPOCH
        if state is not None and (epoch is None or epoch <= state.leader_epoch):
            continue
        known = None if state is None else state.leader_epoch
        change = LostChange(kind, topic, number, topic_id, epoch, known, node_id, str(partition.path), is_whole)
        (unknown if kind == TOPIC else found).append(change)
    return LostChanges([*found, *_created(unknown, quorum, limits)], count)


def _created(unknown: list[LostChange], quorum: Quorum, limits: Limits) -> Iterator[LostChange]:
    """The topics that the metadata does not know, without those that it knows to be deleted."""
    if not unknown:
        return
    partition = quorum.best.copy.source.partition
    removed = dict(quorum.state.image.removed_topics)
    begins_with_cluster = bool(partition.segments) and partition.segments[0].base_offset == 0
    if any(each.topic_id not in removed for each in unknown):
        from format.state.metadata_log import read_metadata

        removed |= read_metadata(partition, limits=limits, watch=lambda image, record: None).image.removed_topics
    for each in unknown:
        if each.topic_id is None or each.topic_id not in removed:
            is_proven = each.is_proven and begins_with_cluster and each.topic_id is not None
            yield msgspec.structs.replace(each, is_proven=is_proven)


def _partitions(targets: Iterable[Target], limits: Limits) -> Iterator[tuple[Partition, int | None, str | None]]:
    """The partitions of topics, without directories that are marked, each with its node id and cluster id."""
    for target in targets:
        around = [log_dir_around(target.path)] if target.kind is Kind.PARTITION else []
        for log_dir in (*around, *target.log_dirs):
            properties = None if log_dir is None else log_dir.meta_properties
            node_id, cluster_id, _ = meta_properties.ids_in(properties, limits)
            paths = [target.path] if log_dir is None or around else log_dir.partitions
            for path in paths:
                with suppress(KafkaLogError):  # verify reports it
                    partition = read_partition(path)
                    if partition.mark is None and partition.topic != CLUSTER_METADATA_TOPIC:
                        yield partition, node_id, cluster_id
