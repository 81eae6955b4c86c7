"""What several nodes, and the metadata, say of the replicas of a partition."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import msgspec
from msgspec.structs import replace

from format.errors import InputError, KafkaLogError
from format.files import leader_epoch_checkpoint
from format.files.clean_shutdown import broker_epoch_at, left_behind
from format.io.session import path_of
from format.kafka_uuid import is_reserved
from format.layout import CLEAN_SHUTDOWN, CLUSTER_METADATA_TOPIC, LEADER_EPOCH_CHECKPOINT
from format.state.cluster_context import named_nodes
from format.state.cluster_image import PartitionState
from format.state.metadata_log import unclean_elections
from format.state.quorum import Quorum, QuorumMember, quorum_of, read_metadata_copies
from format.timestamps import iso_time
from format.verbs.diff.diff import PartitionResult, ReplicaResult, nameless_words, replica_names
from format.verbs.doctor.diagnosis import Draft, capital, command
from format.verbs.doctor.evidence import Evidence, directory_of
from format.wording import are, counted, listed, offset_range

#: The id that stands for a log directory that is lost; others that stand for none are not assigned or not known yet.
_LOST_DIRECTORY = "AAAAAAAAAAAAAAAAAAAAAQ"


def older_nodes(evidence: Evidence) -> Iterator[Draft]:
    """Nodes whose directories are older than their last start.

    A broker registers after it has read the metadata up to then, so its metadata log reaches that offset.
    """
    image = evidence.context.image
    if image is None:
        return
    for each in evidence.partitions:
        if each.topic != CLUSTER_METADATA_TOPIC or each.mark is not None or each.log_end_offset is None:
            continue
        node_id = evidence.context.node_id_at(directory_of(each))
        broker = image.brokers.get(-1 if node_id is None else node_id)
        if broker is None or evidence.context.is_at_another_cluster(directory_of(each)):
            continue
        registered = broker.get("brokerEpoch", -1)
        if registered < each.log_end_offset:
            continue
        own = evidence.log_dirs_of_node(each.path)  # not those of a copy of the node
        if evidence.context.source is not None and str(evidence.context.source.partition.path) == each.path:
            words = f"The metadata log ends at {each.log_end_offset}, before what its own newest snapshot has (node "
            words += f"{node_id} registered at {registered}): its end is lost; a broker goes on from the snapshot."
            subject = evidence.subject_of(each.path, each.topic, each.partition)
            yield Draft("metadata-damaged", subject, words, each.path, each.log_end_offset, command("boot", *own))
            continue
        lacking = [(result.name, one) for result in evidence.differences for one in result.replicas
                   if evidence.log_dir_of(one.path) in own and _lacks_committed(result, one)]  # fmt: skip
        words = f"The directory is older than the last start of node {node_id}: its metadata log ends at "
        words += f"{each.log_end_offset}, and the node registered at {registered} ({evidence.context.source_words}). "
        words += "An older backup was restored, or its last writes are lost."
        if lacking:
            name, first = lacking[0]
            words += f" It lacks committed records of {counted(len(lacking), 'partition')}, such as {name} "
            words += f"{first.lost_committed.words}."
        yield Draft("node-older", f"node {node_id}", words, each.path, each.log_end_offset,
                    command("diff", *(str(target.path) for target in evidence.targets)),
                    weight=len(lacking), node=f"node {node_id}")  # fmt: skip


def older_directories(evidence: Evidence) -> Iterator[Draft]:
    """Log directories that the last start of their node did not use, though it used another one."""
    image = evidence.context.image
    in_use = {str(each.path) for each in evidence.log_dirs if each.partitions}
    for path in (str(each.path) for each in evidence.log_dirs):
        node_id, own = evidence.context.node_id_at(path_of(path)), evidence.log_dirs_of_node(path)
        broker = None if image is None or node_id is None else image.brokers.get(node_id)
        if broker is None or evidence.context.is_at_another_cluster(path_of(path)):
            continue
        registered = broker.get("brokerEpoch", -1)
        epochs = {each: broker_epoch_at(path_of(each) / CLEAN_SHUTDOWN, evidence.limits) for each in own}
        used = left_behind(epochs, in_use, registered).get(path)
        if used is None:
            continue
        words = f"The log directory is older than the last start of node {node_id}: its last use ended in a clean stop "
        words += f"with broker epoch {epochs[path]}; the node registered with {registered} since, and used {used}. "
        words += "An older backup was restored, or the disk was away: its logs lack what was written since, and a "
        words += "broker starts all the same."
        follow = command("diff", *(str(target.path) for target in evidence.targets)) if evidence.node_names else None
        yield Draft("node-older", path, words, path, None, follow or command("boot", *own), node=evidence.node_of(path))


def _lacks_committed(result: PartitionResult, replica: ReplicaResult) -> bool:
    return bool(replica.lost_committed.count) and not result.is_metadata_log


def diverged(evidence: Evidence) -> Iterator[Draft]:
    """Partitions whose replicas diverge, or lack committed records."""
    for result in evidence.differences:
        if result.is_metadata_log or result.kind not in ("diverged", "behind"):
            continue
        paths = [each.path for each in result.replicas]
        draft = Draft("replicas-diverge", result.name, "", paths[result.best], result.offset, command("diff", *paths),
                      weight=max(each.lost_committed.count for each in result.replicas),
                      many_command=command("diff", *(str(each.path) for each in evidence.targets)))  # fmt: skip
        behind = [each for each in result.replicas if _lacks_committed(result, each)]
        names = _names(result)
        draft = replace(draft, node=", ".join(names[each.path] for each in behind))
        if result.kind == "diverged":
            yield replace(draft, sentence=_election(evidence, result))
        elif not evidence.is_live and any(_is_to_have_all(result, each.node_id) for each in behind):
            yield replace(draft, code="replica-behind", sentence=_election(evidence, result))


def _is_to_have_all(result: PartitionResult, node_id: int | None) -> bool:
    """Whether a node is to have all records: the metadata has a replica there, and not one that is being added."""
    state = result.assignment.state
    if state is None or node_id is None:
        return True
    return node_id in state.isr or node_id in set(state.replicas) - set(state.adding_replicas)


def _election(evidence: Evidence, result: PartitionResult) -> str:
    """Who should lead, and what each other replica, elected, loses."""
    best, names = result.replicas[result.best], _names(result)
    best_name, assignment = names[best.path], result.assignment
    at = "" if result.offset is None else f" from offset {result.offset} on"
    if result.is_of_one_node:
        lacking = [each for each in result.replicas if each.lost.count]
        words = "".join(f"{capital(names[each.path])} lacks {_loss(each)}. " for each in lacking)
        words += f"Its logs here all have the node id {best.node_id}, and differ{at}: no election decides between them."
        return words
    among = "" if result.is_whole else " of the replicas here"
    words = f"Its replicas diverge{at}. "
    if result.kind == "behind":
        lacking = [each for each in result.replicas if _lacks_committed(result, each)]
        words = "".join(f"{capital(names[each.path])} lacks {_loss(each)}. " for each in lacking)
    if assignment.is_leader(best.node_id):
        words += f"Keep {best_name} as the leader{among}: it loses {_loss(best)}"
    else:
        words += f"Elect {best_name}{among}: it loses {_loss(best)}"
    for each in result.replicas:
        if each is not best and each.can_be_elected and result.kind == "diverged":
            words += f"; {names[each.path]} loses {_loss(each)}"
    words += "."
    leader = assignment.leader
    if leader is not None and leader != best.node_id:
        words += f" By {assignment.source}, node {leader} leads."
    elif assignment.state is not None and leader is None:
        words += f" By {assignment.source}: no leader, {assignment.last_members}."
    missing = result.missing_node_ids
    nameless = nameless_words(result, replica_names(result.replicas))
    if nameless:
        words += f" {capital(nameless)}."
    elif missing:
        words += f" Not here: {named_nodes(missing)}."
    elif missing is None:
        words += " Whether there are other replicas is not known."
    return words


def _names(result: PartitionResult) -> dict[str, str]:
    """The replicas by path in words: nodes where all have different ones, else paths."""
    return dict(zip((each.path for each in result.replicas), replica_names(result.replicas), strict=True))


def _loss(replica: ReplicaResult) -> str:
    lost, committed = replica.lost, replica.lost_committed
    if not lost.count:
        return "nothing that the others have"
    if committed.count:
        noun = "offset" if committed.count == 1 else "offsets"
        return f"{committed.count:,} committed {noun} ({committed.words})"
    return f"{counted(lost.count, 'offset')} ({lost.words}), none known as committed"


def no_leaders(evidence: Evidence) -> Iterator[Draft]:
    """Partitions without a leader while a broker with a replica runs, by the newest metadata."""
    active = _active(evidence)
    for name, state in _partition_states(evidence):
        complete = {*state.isr, *(state.eligible_leader_replicas or ())}
        running = [each for each in state.replicas if each in active]
        offline = _without_directory(evidence, state, complete & active)
        if state.leader >= 0 or not running or complete & active != offline:
            continue
        if offline:
            runs = "runs" if len(offline) == 1 else "run"
            words = f"No leader: {named_nodes(sorted(offline))} {runs} on without the log directory that has it"
            words += f", which went offline ({evidence.context.source_words})."
            yield _of_metadata(evidence, "no-leader", name, words)
            continue
        words = f"No leader: {named_nodes(sorted(complete))}, which {'has' if len(complete) == 1 else 'have'} all "
        words += f"committed records, {are(len(complete))} down; {named_nodes(running)} "
        words += f"{'runs and lacks' if len(running) == 1 else 'run and lack'} records"
        yield _of_metadata(evidence, "no-leader", name, f"{words} ({evidence.context.source_words}).")


def _without_directory(evidence: Evidence, state: PartitionState, node_ids: set[int]) -> set[int]:
    """The brokers whose log directory with the partition is offline (server-common DirectoryId.isOnline)."""
    image = evidence.context.image
    offline = set()
    for each in node_ids:
        directory, online = state.directory_of(each), None if image is None else image.brokers[each].get("logDirs")
        is_named = directory is not None and not is_reserved(directory)
        if directory == _LOST_DIRECTORY or (online and is_named and directory not in online):
            offline.add(each)
    return offline


def out_of_sync(evidence: Evidence) -> Iterator[Draft]:
    """Partitions with a replica that is out of sync although its broker runs, by the newest metadata."""
    active = _active(evidence)
    for name, state in _partition_states(evidence):
        lagging = [each for each in state.replicas if each in active and each not in state.isr]
        if state.leader < 0 or not lagging or set(lagging) <= set(state.adding_replicas):
            continue
        words = f"{named_nodes(lagging).capitalize()} {are(len(lagging))} out of sync: the ISR is "
        words += f"{named_nodes(state.isr)} ({evidence.context.source_words})."
        yield _of_metadata(evidence, "replicas-out-of-sync", name, words)


def elected_uncleanly(evidence: Evidence) -> Iterator[Draft]:
    """Partitions whose leader was elected without all committed records, as far back as the metadata log goes."""
    image, source = evidence.context.image, evidence.context.source
    if image is None or source is None or evidence.is_bundled:
        return
    try:
        found = unclean_elections(source.partition, evidence.limits)
    except (InputError, KafkaLogError):
        return  # verify reports it
    for (topic_id, number), each in found.items():
        topic, leader, before = image.names.get(topic_id), each.after.leader, each.before
        last = before.last_known_elr or ()
        if topic is None or leader in last:
            continue  # the last leader has returned from a crash
        complete = sorted({*before.isr, *(before.eligible_leader_replicas or ()), *last} - {leader})
        words = f"Node {leader} became the leader at {iso_time(each.timestamp)} by an unclean election"
        if complete:
            words += f": {named_nodes(complete)} had all committed records"
        words += f". What node {leader} lacked is lost"
        start = _start_of_epoch(evidence, topic, number, each.after.leader_epoch)
        words += "" if start is None else f", from offset {start} on"
        words += f"; the metadata does not show whether it lacked any (offset {each.offset})."
        draft = _of_metadata(evidence, "unclean-election", f"{topic}-{number}", words)
        history = command("metadata", "--history", "--topic", topic, str(source.partition.path))
        yield replace(draft, offset=each.offset, command=history)


def _start_of_epoch(evidence: Evidence, topic: str, number: int, epoch: int) -> int | None:
    """The offset at which a leader epoch, or the next one, begins in the replicas of a partition; None if unknown."""
    starts = []
    for each in evidence.replicas_of(topic, number):
        with suppress(KafkaLogError):
            read = leader_epoch_checkpoint.read(path_of(each.path) / LEADER_EPOCH_CHECKPOINT, evidence.limits)
            starts += [one.start_offset for one in read.entries if one.leader_epoch >= epoch]
    return min(starts, default=None)


def _partition_states(evidence: Evidence) -> Iterator[tuple[str, PartitionState]]:
    """The partitions of the newest metadata, by name; none where it is damaged."""
    image, state = evidence.context.image, evidence.context.state
    if image is None or state is None or state.is_damaged:
        return
    for (topic_id, number), each in image.partitions.items():
        yield f"{image.names.get(topic_id, topic_id)}-{number}", each


def _active(evidence: Evidence) -> set[int]:
    """The brokers that run by the metadata: neither fenced nor shutting down."""
    image = evidence.context.image
    brokers = {} if image is None else image.brokers
    return {
        node_id
        for node_id, broker in brokers.items()
        if not broker.get("fenced") and not broker.get("inControlledShutdown")
    }


def _of_metadata(evidence: Evidence, code: str, name: str, words: str) -> Draft:
    source = evidence.context.source
    path = None if source is None else str(source.partition.path)
    offset = None if evidence.context.state is None else evidence.context.state.last_offset
    follow = None if path is None else command("metadata", path, "--topic", name.rpartition("-")[0])
    many = None if path is None else command("metadata", path)
    return Draft(code, name, words, path, offset, follow, many_command=many)


class _Electors(msgspec.Struct, frozen=True):
    """The voters at hand, a majority of all: those that can lead without the absent ones, the best first, and others.

    ``lost`` are voters that the metadata proves to have been lost.
    """

    quorum: Quorum
    able: list[int]
    lagging: dict[int, QuorumMember]
    lost: list[int]

    @property
    def best(self) -> QuorumMember:
        return self.quorum.voting[self.able[0]]

    def lack(self, node_id: int) -> str:
        """The offsets of the metadata log that a node lacks."""
        return offset_range(self.lagging[node_id].shared_end, self.best.end[1] - 1)


def _electors(evidence: Evidence) -> _Electors | None:
    """The voters at hand where others are absent; None where all are here, or too few to elect a leader."""
    voters, state = evidence.context.voters, evidence.context.state
    if voters is None or state is None or state.is_damaged or evidence.is_live or evidence.is_bundled:
        return None
    logs = [each for each in evidence.partitions if each.topic == CLUSTER_METADATA_TOPIC and each.mark is None]
    if len(logs) < 2 or set(voters) <= evidence.node_ids:
        return None
    quorum = quorum_of(read_metadata_copies(evidence.targets, evidence.limits), evidence.limits)
    able = [node for node, is_able in quorum.can_lead.items() if is_able and node in quorum.voting]  # furthest first
    if not quorum.absent or not quorum.is_intact or not able:
        return None
    lagging = {node: log for node, log in quorum.voting.items() if node not in able}
    candidates = (*quorum.absent, *lagging) if _active(evidence) else ()
    return _Electors(quorum, able, lagging, [each for each in candidates if _was_lost(evidence, each)])


def absent_voters(evidence: Evidence) -> Iterator[Draft]:
    """The metadata quorum where a voter is not here, a majority is, and the metadata proves that a voter was lost.

    A voter that was merely not given, or was stopped in order, is no trouble.
    """
    found = _electors(evidence)
    if found is None or not found.lost:
        return
    quorum, lost = found.quorum, found.lost
    words = (
        f"Of its voters {listed([str(each.node_id) for each in quorum.voters or ()])}, {named_nodes(quorum.absent)} "
    )
    words += f"{are(len(quorum.absent))} not here; {named_nodes(sorted(quorum.voting))} are a majority, and "
    if found.lagging:
        lacks = ", ".join(f"node {node} lacks {found.lack(node)}" for node in found.lagging)
        words += f"only {named_nodes(sorted(found.able))} can lead: {lacks}"
    else:
        words += "each of them can lead"
    words += f". {capital(named_nodes(lost))} {'was' if len(lost) == 1 else 'were'} fenced, and not stopped in order "
    words += f"({evidence.context.source_words})."
    source = found.best.copy.source.partition
    offset = min((log.shared_end for log in found.lagging.values()), default=None)
    yield Draft("voter-absent", source.name, words, str(source.path), offset,
                command("quorum", *(str(each.path) for each in evidence.targets)))  # fmt: skip


def open_elections(evidence: Evidence) -> list[str]:
    """What is not known of an election, where the metadata logs at hand differ and a voter is not here."""
    found = _electors(evidence)
    if found is None or found.lost:
        return []
    absent = named_nodes(found.quorum.absent)
    return [f"whether node {node}, which lacks {found.lack(node)} of the metadata log, can lead without {absent}"
            for node in found.lagging]  # fmt: skip


def _was_lost(evidence: Evidence, node_id: int) -> bool:
    """Whether a broker was fenced because it sent no heartbeats, and not because it was shutting down."""
    image = evidence.context.image
    broker = None if image is None else image.brokers.get(node_id)
    return broker is not None and bool(broker.get("fenced")) and not broker.get("inControlledShutdown")
