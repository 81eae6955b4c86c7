"""Replicas on brokers' disks: leader epochs, ends, high watermarks and producer ids, which show later metadata."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

import msgspec

from format.errors import KafkaLogError, UnreadableFile
from format.files import producer_snapshot
from format.io.source import FileSource
from format.layout import NO_PRODUCER_ID, REPLICATION_OFFSET_CHECKPOINT
from format.limits import Limits
from format.log.walker import header_chunks
from format.node.log_dir import LogDir
from format.node.partition import Partition, Segment
from format.node.target import Target
from format.state.cluster_context import latest_epoch_of, topic_id_in
from format.verbs.quorum.lost_changes import directories_of, replicas_in

ReplicaKey = tuple[str, int]  # topic id and partition


class Replica(msgspec.Struct, frozen=True):
    """A partition directory of a broker. ``high_watermark`` is the one noted on the disk, -1 if there is none.

    ``end_offset`` is -1 for a copy without segments, ``largest_producer_id`` -1 where no producer is known.
    ``is_live``: a broker runs on it.
    """

    node_id: int
    path: str
    leader_epoch: int
    end_offset: int
    high_watermark: int
    largest_producer_id: int
    is_live: bool

    @property
    def reach(self) -> tuple[int, int]:
        """The last leader epoch and the end of the log, which compare as replicas do."""
        return self.leader_epoch, self.end_offset


class Disks(msgspec.Struct):
    """The replicas on brokers' disks by topic id and partition, and the nodes whose disks are here.

    ``unread`` are the errors about directories, logs and files of partitions that cannot be read.
    """

    replicas: dict[ReplicaKey, list[Replica]] = msgspec.field(default_factory=lambda: defaultdict(list))
    node_ids: set[int] = msgspec.field(default_factory=set)
    unread: list[KafkaLogError] = msgspec.field(default_factory=list)

    @property
    def all(self) -> Iterator[Replica]:
        """All replicas."""
        for each in self.replicas.values():
            yield from each


def read_disks(targets: Iterable[Target], cluster_id: str, limits: Limits) -> Disks:
    """The replicas in the log directories of a cluster at some paths; what cannot be read is left out."""
    found = Disks()
    for log_dir, node_id, paths in directories_of(targets, cluster_id, limits):
        if node_id is None or log_dir is None:
            continue
        found.node_ids |= {node_id} if log_dir.checkpoint_paths else set()
        for partition in replicas_in(log_dir, paths, found.unread):
            try:
                for file in filter(None, (partition.metadata, partition.leader_epoch_checkpoint)):
                    FileSource(file).close()
                topic_id = topic_id_in(partition.metadata, limits)
                if topic_id is not None:
                    replica = _replica(log_dir, partition, node_id, limits)
                    found.replicas[topic_id, partition.number or 0].append(replica)
            except UnreadableFile as error:
                found.unread.append(error)
            except KafkaLogError:
                continue  # verify reports the damage
    return found


def _replica(log_dir: LogDir, partition: Partition, node_id: int, limits: Limits) -> Replica:
    checkpoints = log_dir.checkpoints(limits)
    watermark = checkpoints.offset(REPLICATION_OFFSET_CHECKPOINT, partition.key)
    epoch, end, producer_id = -1, -1, NO_PRODUCER_ID
    if partition.segment_count:
        epoch, end, producer_id = _tail(partition, partition.segment(partition.segment_count - 1), limits)
    noted = latest_epoch_of(partition, limits)  # also of an epoch without records
    epoch = epoch if noted is None else max(epoch, noted)
    watermark = -1 if watermark is None else watermark
    is_live = bool(checkpoints.is_lock_held)
    return Replica(node_id, str(partition.path), epoch, end, watermark, producer_id, is_live)


def _tail(partition: Partition, last: Segment, limits: Limits) -> tuple[int, int, int]:
    """The leader epoch and the end of the last segment, and the largest producer id in it and before it."""
    epoch, end, producer_id = -1, last.base_offset, NO_PRODUCER_ID
    if partition.snapshots:
        known = producer_snapshot.read(partition.snapshots[max(partition.snapshots)], limits)
        producer_id = max(known.producer_ids.tolist(), default=NO_PRODUCER_ID) if known.crc_valid else NO_PRODUCER_ID
    if last.log is not None:
        with FileSource(last.log) as source:
            for chunk in header_chunks(source, limits=limits):
                if len(chunk.headers):
                    row = len(chunk.headers) - 1
                    epoch, end = int(chunk.headers.leader_epoch[row]), chunk.headers.last_offset_of(row) + 1
                    producer_id = max(producer_id, int(chunk.headers.producer_id.max()))
    return epoch, end, producer_id
