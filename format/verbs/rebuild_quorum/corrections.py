"""What brokers' disks prove of metadata that is older: changes that are lost, and records that correct it.

A broker that appended under a leader epoch got it from the metadata. Where the metadata does not know this epoch, a
leader elected by it would begin an epoch that followers have seen, and could be one that lacks committed records: the
partition gets a higher epoch, and a leader and an ISR by the logs themselves.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from format.errors import KafkaLogError, Refused, UnreadableFile
from format.files import meta_properties, producer_snapshot
from format.internal_topics.encoder import encode_metadata_record
from format.io.source import FileSource
from format.layout import NO_PRODUCER_ID, REPLICATION_OFFSET_CHECKPOINT
from format.limits import Limits
from format.location import Location
from format.log.walker import header_chunks
from format.node.log_dir import LogDir
from format.node.partition import Partition, Segment
from format.node.target import Target
from format.state.cluster_context import latest_epoch_of, named_nodes, topic_id_in
from format.state.cluster_image import ClusterImage, PartitionState
from format.verbs import quorum
from format.verbs.metadata.metadata import changed_fields
from format.verbs.rebuild_quorum.surviving import SubjectKey, SurvivingRecords
from format.wording import are, counted_plainly

ReplicaKey = tuple[str, int]  # topic id and partition


class BrokerReplica(msgspec.Struct, frozen=True):
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

    ``log_dir_ids`` are the ids of the log directories that are here, None for one without an id. ``unread`` are
    the errors about directories, logs and files of partitions that cannot be read.
    """

    replicas: dict[ReplicaKey, list[BrokerReplica]] = msgspec.field(default_factory=lambda: defaultdict(list))
    node_ids: set[int] = msgspec.field(default_factory=set)
    log_dir_ids: set[str | None] = msgspec.field(default_factory=set)
    unread: list[KafkaLogError] = msgspec.field(default_factory=list)

    def absent_of(self, image: ClusterImage) -> dict[int, str]:
        """The nodes of which only some log directories are here, and in words those that are not."""
        found = {}
        for node_id in sorted(self.node_ids & set(image.brokers)):
            words = quorum.absent_log_dirs(image, node_id, self.log_dir_ids)
            if words:
                found[node_id] = words
        return found

    @property
    def all(self) -> Iterator[BrokerReplica]:
        for each in self.replicas.values():
            yield from each


def read_disks(targets: Iterable[Target], cluster_id: str, limits: Limits) -> Disks:
    """The replicas in the log directories of a cluster at some paths; what cannot be read is left out."""
    found = Disks()
    for log_dir, node_id, paths in quorum.directories_of(targets, cluster_id, limits):
        if node_id is None or log_dir is None:
            continue
        found.node_ids |= {node_id} if log_dir.checkpoint_paths else set()
        found.log_dir_ids.add(meta_properties.ids_in(log_dir.meta_properties, limits)[2])
        for partition in quorum.replicas_in(log_dir, paths, found.unread):
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


def _replica(log_dir: LogDir, partition: Partition, node_id: int, limits: Limits) -> BrokerReplica:
    checkpoints = log_dir.checkpoints(limits)
    watermark = checkpoints.offset(REPLICATION_OFFSET_CHECKPOINT, partition.key)
    epoch, end, producer_id = -1, -1, NO_PRODUCER_ID
    if partition.segment_count:
        epoch, end, producer_id = _tail(partition, partition.segment(partition.segment_count - 1), limits)
    noted = latest_epoch_of(partition, limits)  # also of an epoch without records
    epoch = epoch if noted is None else max(epoch, noted)
    watermark = -1 if watermark is None else watermark
    is_live = bool(checkpoints.is_lock_held)
    return BrokerReplica(node_id, str(partition.path), epoch, end, watermark, producer_id, is_live)


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


#: The size of the blocks in which a controller hands out producer ids (server-common ProducerIdsBlock).
PRODUCER_ID_BLOCK = 1000
LOST, AT_RISK, SET = "lost", "at_risk", "set"
#: What the subject of a change ``at_risk`` begins with, before the name.
RECORDS_OF_PARTITION = "records of partition "


class MetadataChange(msgspec.Struct, frozen=True):
    """A change of the metadata that is lost, or that is made (``set``) so that the brokers' logs stay right.

    ``at_risk`` are records that only nodes have whose disks are not here. ``record`` is what is written for a change.
    ``path`` is the file or directory that proves it.
    """

    action: str
    subject: str
    before: Any
    after: Any
    reason: str
    path: str | None = None
    record: bytes | None = None


def corrections_by_disks(
    found: SurvivingRecords, disks: Disks, *, is_stale: bool, absent: frozenset[int] = frozenset()
) -> list[MetadataChange]:
    """The corrections that brokers' disks ask for. ``is_stale``: a later change is lost.

    ``absent`` are the nodes that get a new metadata log, and may come back without their partitions.
    """
    changes: list[MetadataChange] = []
    names = {key: f"{found.image.names.get(key[0], key[0])}-{key[1]}" for key in found.image.partitions}
    for key, state in sorted(found.image.partitions.items(), key=lambda item: names[item[0]]):
        known = [each for each in disks.replicas.get(key, ()) if each.node_id in state.replicas]
        corrected = list(_corrected(key, state, known, names[key], found.versions)) if known else []
        is_stale = is_stale or bool(corrected)
        changes += corrected or _without_absent(key, state, known, names[key], found.versions, absent)
    changes += _producer_ids(found, disks, is_stale=is_stale)
    return changes


def _without_absent(
    key: ReplicaKey,
    state: PartitionState,
    replicas: list[BrokerReplica],
    name: str,
    versions: dict[str, int],
    absent: frozenset[int],
) -> Iterator[MetadataChange]:
    """The change of a partition that a node may lead, or hold back, which may come back without its log.

    Such a node has the directory id of before, so the controller would take it for the replica that it was. It leaves
    the ISR, and fetches what it lacks. Where all that were in sync are absent, the records are at risk.
    """
    elr = state.eligible_leader_replicas or ()
    gone = sorted({*state.isr, *elr, *(state.last_known_elr or ()), state.leader} & absent)
    if not gone:
        return
    isr = [each for each in state.isr if each not in absent]
    best = None if isr else _furthest(replicas, name)
    if not isr and not any(each.node_id in elr for each in replicas):
        yield _at_risk(name, state, sorted(state.isr) or gone, best)
    isr = isr if best is None else [best.node_id]
    if not isr:
        return
    leader = state.leader if state.leader in isr else isr[0]
    new = _with_leader(state, leader, isr, state.leader_epoch)
    come = "is not here: it may come back without its log"
    come = come if len(gone) == 1 else "are not here: they may come back without their logs"
    reason = f"{named_nodes(gone)} {come}"
    yield MetadataChange(
        SET, f"partition {name}", _shown(state), _shown(new), reason, None, _record(key, new, versions)
    )


def _at_risk(name: str, state: PartitionState, holders: list[int], best: BrokerReplica | None) -> MetadataChange:
    """The records of a partition whose in-sync replicas are not here. ``best`` is to lead, None for none."""
    whose = "its" if len(holders) == 1 else "their"
    subject = f"{RECORDS_OF_PARTITION}{name}"
    reason = f"the in-sync replicas were on {named_nodes(holders)}, which {are(len(holders))} not here: "
    if best is not None:
        subject += f" from offset {best.end_offset} on"
        reason += f"lost unless {whose} log directories are given, as node {best.node_id} leads"
    elif len(holders) == 1:
        reason += "lost unless it keeps its log directories"
    else:  # one that comes back empty may lead the others
        reason += "safe only if all of them keep their log directories"
    return MetadataChange(AT_RISK, subject, {"isr": list(state.isr)}, None, reason, None if best is None else best.path)


def _with_leader(state: PartitionState, leader: int, isr: list[int], top: int) -> PartitionState:
    """The partition with another leader and ISR, under a leader epoch above ``top`` and its own."""
    return msgspec.structs.replace(
        state,
        leader=leader,
        isr=tuple(isr),
        leader_epoch=max(top, state.leader_epoch) + 1,
        partition_epoch=state.partition_epoch + 1,
        eligible_leader_replicas=None if state.eligible_leader_replicas is None else (),
        last_known_elr=None if state.last_known_elr is None else (),
    )


def _corrected(
    key: ReplicaKey, state: PartitionState, replicas: list[BrokerReplica], name: str, versions: dict[str, int]
) -> Iterator[MetadataChange]:
    """The change of a partition of which the disks show that the leader epoch or the ISR is old."""
    top = max(each.leader_epoch for each in replicas)
    noted = max((each for each in replicas if each.leader_epoch == top), key=lambda each: each.high_watermark)
    behind = [each for each in replicas if each.node_id in state.isr and not each.is_live
              and 0 <= each.end_offset < noted.high_watermark]  # fmt: skip
    best = _furthest(replicas, name) if behind or top > state.leader_epoch else None
    if best is None:
        return
    here = {each.node_id for each in replicas}
    if top > state.leader_epoch:
        isr = [
            each.node_id for each in replicas if each.leader_epoch == top and each.end_offset >= noted.high_watermark
        ]
        reason = f"node {best.node_id} has leader epoch {top}, the metadata knows none after {state.leader_epoch}"
        path = best.path
    else:
        out = {each.node_id for each in behind}
        isr = [each for each in state.isr if each in here - out]
        reason = (
            f"the log of {named_nodes(sorted(out))} ends before the high watermark {noted.high_watermark} "
            f"of node {noted.node_id}"
        )
        path = noted.path
    # who was in sync in an epoch that the metadata does not know is not known: each absent replica may have been
    gone = sorted(set(state.replicas if top > state.leader_epoch else state.isr) - here)
    if gone:
        has, whose = ("has", "its") if len(gone) == 1 else ("have", "their")
        reason += f"; records that only {named_nodes(gone)} {has} are lost unless {whose} log directories are given"
    isr = sorted(isr or [best.node_id], key=state.replicas.index)
    leader = state.leader if top <= state.leader_epoch and state.leader in isr else best.node_id
    new = _with_leader(state, leader, isr, top)
    yield MetadataChange(
        SET, f"partition {name}", _shown(state), _shown(new), reason, path, _record(key, new, versions)
    )


def _furthest(replicas: list[BrokerReplica], name: str) -> BrokerReplica | None:
    """The replica that reaches furthest, None for none. Raises Refused where that is not known."""
    best = max(replicas, key=lambda each: each.reach, default=None)
    top = -1 if best is None else best.leader_epoch
    unknown = [each.path for each in replicas if each.leader_epoch == top and each.end_offset < 0]
    if unknown:
        raise Refused(
            f"which replica of partition {name} is to lead depends on their ends, and this copy has no segment of it: "
            "give whole log directories",
            Location(unknown[0]),
        )
    return best


def _shown(state: PartitionState) -> dict[str, Any]:
    return {"leader": state.leader, "leader_epoch": state.leader_epoch, "isr": list(state.isr)}


def _record(key: ReplicaKey, state: PartitionState, versions: dict[str, int]) -> bytes:
    """A PartitionRecord, which replaces what was known of the partition (controller ReplicationControlManager)."""
    version = max(versions.get("PARTITION_RECORD", 0), versions.get("PARTITION_CHANGE_RECORD", 0))
    data = {
        "partitionId": key[1], "topicId": key[0], "replicas": state.replicas, "isr": state.isr,
        "removingReplicas": state.removing_replicas, "addingReplicas": state.adding_replicas, "leader": state.leader,
        "leaderRecoveryState": int(state.is_recovering), "leaderEpoch": state.leader_epoch,
        "partitionEpoch": state.partition_epoch, "directories": state.directories,
    }  # fmt: skip
    if state.eligible_leader_replicas is not None and version >= 2:
        data |= {"eligibleLeaderReplicas": [], "lastKnownElr": []}
    return encode_metadata_record("PARTITION_RECORD", version, data)


def changes_on_disks(lost: quorum.LostChanges, image: ClusterImage) -> Iterator[MetadataChange]:
    """The topics, partitions and replicas that only disks have: brokers set them aside as stray."""
    for each in quorum.furthest_of_each(lost.of(quorum.PARTITION)):
        name, count = f"partition {each.topic}-{each.partition}", image.partition_count(each.topic)
        reason = f"{_holder([each])} it, and the metadata has {counted_plainly(count, 'partition')}"
        yield MetadataChange(LOST, name, None, {"partition": each.partition}, reason, each.path)
    for each in quorum.furthest_of_each(lost.of(quorum.REPLICA)):
        assigned = list(image.partitions[str(each.topic_id), each.partition].replicas)
        name, reason = f"partition {each.topic}-{each.partition}", f"{_holder([each])} a replica, and the metadata"
        yield MetadataChange(LOST, name, {"replicas": assigned}, None, f"{reason} assigns it to {assigned}", each.path)
    topics: dict[tuple[str, str | None], list[quorum.LostChange]] = defaultdict(list)
    for each in lost.changes:
        if each.kind == quorum.TOPIC:
            topics[each.topic, each.topic_id].append(each)
    for (topic, topic_id), replicas in sorted(topics.items(), key=lambda item: item[0][0]):
        other = image.topic_id(topic)
        reason = f"{_holder(replicas)} it"
        reason += f"; the metadata has another topic of this name, with the id {other}" if other else ""
        reason += "" if replicas[0].is_proven else "; or it was deleted before the metadata here begins"
        after = {"topic_id": topic_id, "partitions": sorted({each.partition for each in replicas})}
        yield MetadataChange(LOST, f"topic {topic}", None, after, reason, replicas[0].path)


def _holder(replicas: list[quorum.LostChange]) -> str:
    """The nodes of some directories, and a verb."""
    nodes = sorted({each.node_id for each in replicas if each.node_id is not None})
    return f"{named_nodes(nodes)} {'have' if len(nodes) > 1 else 'has'}" if nodes else f"{replicas[0].path} has"


def gone_topics(image: ClusterImage, disks: Disks) -> Iterator[MetadataChange]:
    """Topics of which no disk has a replica, although all disks that should have one are here.

    They were deleted later if the disks show other later changes, too; otherwise they may have been created last.
    """
    partitions: dict[str, list[tuple[int, PartitionState]]] = defaultdict(list)
    for (topic_id, number), state in image.partitions.items():
        partitions[topic_id].append((number, state))
    whole = disks.node_ids - disks.absent_of(image).keys()
    for topic_id, states in sorted(partitions.items(), key=lambda item: image.names.get(item[0], "")):
        nodes = {node for _, state in states for node in state.replicas}
        if nodes <= whole and not any((topic_id, number) in disks.replicas for number, _ in states):
            reason = f"no disk of {named_nodes(sorted(nodes))} has it: it was deleted later, and comes back empty"
            yield MetadataChange(
                LOST, f"topic {image.names.get(topic_id, topic_id)}", {"topic_id": topic_id}, None, reason
            )


def _producer_ids(found: SurvivingRecords, disks: Disks, *, is_stale: bool) -> Iterator[MetadataChange]:
    """The next producer id, raised above those on the disks, and above the block that each broker may have."""
    next_id = found.image.next_producer_id or 0
    used = max(disks.all, key=lambda each: each.largest_producer_id, default=None)
    largest = -1 if used is None else used.largest_producer_id
    if largest < next_id and not is_stale:
        return
    blocks = max(largest + 1, next_id) // PRODUCER_ID_BLOCK + 2 + len(found.image.brokers)
    new = blocks * PRODUCER_ID_BLOCK
    reason = (
        f"producer id {largest} is in use, from a block that the metadata has not handed out"
        if largest >= next_id
        else "the metadata is older than the disks, and blocks of ids may have been handed out since"
    )
    data = {"brokerId": min(found.image.brokers, default=0), "brokerEpoch": -1, "nextProducerId": new}
    record = encode_metadata_record("PRODUCER_IDS_RECORD", 0, data)
    path = None if used is None or largest < next_id else used.path
    yield MetadataChange(
        SET, "producer ids", {"next_producer_id": next_id}, {"next_producer_id": new}, reason, path, record
    )


def changes_between(
    before: ClusterImage, after: SurvivingRecords, subjects: Iterable[SubjectKey], reason: str, path: str
) -> Iterator[MetadataChange]:
    """The changes of some subjects from one state of the metadata to a later one, which is lost."""
    for key in sorted(subjects, key=lambda each: (each[0], each[1] or "")):
        read = after.subjects[key]
        was, became = changed_fields(read(before), read(after.image))
        if was == became == "set" and after.before is not None:
            became = "set again"  # of a credential only that is shown
        if was != became:
            yield MetadataChange(LOST, key[0], was, became, reason, path)
