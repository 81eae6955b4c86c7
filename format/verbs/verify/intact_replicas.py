"""What heals a damaged replica: another one that is intact at the damaged offsets, proven by reading it.

A follower fetches only what is past the end of its log, so no broker repairs a batch inside one. A replica whose
directory is removed fetches everything anew from the leader. So the leader must be another node, whose log is intact
from its first offset to its last and has every committed record.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from format.errors import KafkaLogError
from format.findings import Finding, Severity
from format.io.session import is_on_disk
from format.io.source import FileSource
from format.layout import CLUSTER_METADATA_TOPIC, LOG_SUFFIX
from format.limits import Limits
from format.log.batch_chunk import BatchRange
from format.node.log_dir import Kind
from format.node.partition import read_partition
from format.node.target import Target
from format.offset_ranges import Range, is_covered, merged, without
from format.scan.progress import no_progress
from format.scan.read_log import NOT_ELSEWHERE, chunks_with_crcs, opened_chunks
from format.scan.selected_logs import log_of_segment
from format.scan.selection import EVERYTHING
from format.state.cluster_context import Assignment, ClusterContext, ContextTerms, named_nodes, read_context
from format.verbs.diff.diff import ReplicaResult, compared
from format.verbs.diff.replica_log import Replica, Replicas, may_be_one, replicas_at
from format.wording import counted, listed, offset_range, shell_line, shell_word

_ANY_BROKER = "localhost:9092"  # where no metadata names the address of one
_MERGE = "Together they may be whole: stop their brokers, and run: "
_SALVAGE = "Copy the directory first, then run salvage to keep the intact batches after the damage."


class OtherReplica(msgspec.Struct, frozen=True):
    """Another replica of a damaged partition. ``problem`` is why it is not intact at the damaged offsets.

    ``lack`` is why nothing can be fetched anew from it, though it is intact there: what is wrong elsewhere in its log.
    """

    replica: Replica
    problem: str = ""
    lack: str = ""

    @property
    def name(self) -> str:
        """The node, or the path where the node is not known."""
        return _name(self.replica)


class Remedy(msgspec.Struct, frozen=True):
    """What to do about the damaged offsets of a replica. ``others`` are the replicas at hand, and were read.

    ``is_deep``: all logs were read as a whole; else only the damaged offsets were, which ``commands`` need more than.
    ``is_end``: the log lost its end, which a follower fetches by itself.
    """

    damaged: Replica
    others: tuple[OtherReplica, ...]
    assignment: Assignment
    is_deep: bool = True
    is_end: bool = False
    bootstrap_server: str = _ANY_BROKER

    @property
    def intact(self) -> tuple[OtherReplica, ...]:
        """The other replicas that are intact at the damaged offsets."""
        return tuple(each for each in self.others if not each.problem)

    @property
    def source(self) -> OtherReplica | None:
        """The replica to fetch anew from: a whole one, the leader or a member of the ISR if there is one."""
        whole = [each for each in self.intact if not each.lack] if self.is_deep else []
        state = self.assignment.state
        order = () if state is None else (state.leader, *self.assignment.complete_replicas)

        def rank(each: OtherReplica) -> int:
            node_id = each.replica.node_id
            return order.index(node_id) if node_id in order else len(order)

        return min(whole, key=rank, default=None)

    @property
    def not_at_hand(self) -> tuple[int, ...]:
        """The nodes whose replicas were not looked at, as far as the metadata names them."""
        return self.assignment.missing([self.damaged.node_id, *(each.replica.node_id for each in self.others)]) or ()

    # -- the words -------------------------------------------------------------------------------------------

    @property
    def sentence(self) -> str:
        """What is known of the other replicas at the damaged offsets, and what to do, without commands."""
        found = self.intact
        if not self.others:
            return f"{self._not_looked_at} Give their log directories too, before salvage." if self.not_at_hand else ""
        if not found:
            why = "; ".join(f"that of {each.name} {each.problem}" for each in self.others)
            return f"No replica at hand is intact there: {why}. {self._not_looked_at}".rstrip()
        words = f"{_whose([each.replica for each in found])} intact there"
        source = self.source
        if source is not None:
            words += self._advice(source)
        elif self.is_deep:
            words += f"; {'; '.join(f'that of {each.name} {each.lack}' for each in found)}: fetch nothing anew from it"
        return f"{words}. {self._not_looked_at}".rstrip()

    def _advice(self, source: OtherReplica) -> str:
        """The end of the sentence about intact replicas: what to do, in order."""
        state, name, this = self.assignment.state, source.name, _name(self.damaged)
        it = "it" if len(self.intact) == 1 else name
        if self.is_end:
            return self._advice_at_end(source)
        heal = f"let {this} fetch anew"
        if state is None or self._nameless:
            why = f"of which node {self._nameless} is" if self._nameless else self.assignment.unknown
            return f": if {this} leads, move leadership to {it}, then {heal} (not known: {why})"
        if self.damaged.node_id not in state.replicas:
            return f", and {this} has no replica by {self.assignment.source}: nothing needs this one"
        node_id = source.replica.node_id
        if state.leader == node_id:
            return f", and {name} leads: {heal}"
        if state.leader < 0:
            if node_id in self.assignment.complete_replicas:
                return f", and no node leads ({self._members}): start {name}, wait until it leads, then {heal}"
            return f", but no node leads, and {name} may lack records ({self._members}): 'kafkalog diff' says which"
        leads = f"node {state.leader} leads"
        if node_id not in state.isr:
            return f", but {leads}, and {name} is out of sync ({self._members}): once in the ISR, move leadership to it"
        return f": move leadership to {it} ({leads}), then {heal}"

    def _advice_at_end(self, source: OtherReplica) -> str:
        """What to do where the log lost its end: a broker truncates it when it starts, and as a follower fetches."""
        state, name, this = self.assignment.state, source.name, _name(self.damaged)
        heal = f"{this} fetches them by itself"
        if state is None or self._nameless:
            return f": if {this} may lead, start {name} and wait until it leads before {this} starts; then {heal}"
        leader = self.assignment.leader
        if leader is not None and leader != self.damaged.node_id:
            return f", and node {leader} leads by {self.assignment.source}: {heal}"
        if source.replica.node_id in self.assignment.complete_replicas:
            return f" ({self._members}): start {name} and wait until it leads before {this} starts; then {heal}"
        return f", but {name} may lack committed records ({self._members}): 'kafkalog diff' says which"

    @property
    def _nameless(self) -> str:
        """The damaged replica or the source, if its node is not known: meta.properties is gone or cannot be read."""
        replicas = [self.damaged] if self.source is None else [self.damaged, self.source.replica]
        return next((_name(each) for each in replicas if each.node_id is None), "")

    @property
    def _members(self) -> str:
        return f"{self.assignment.last_members}, by {self.assignment.source}"

    @property
    def _not_looked_at(self) -> str:
        nodes = self.not_at_hand
        is_named = None not in (self.damaged.node_id, *(each.replica.node_id for each in self.others))
        if self.others and not (is_named and self.assignment.state is not None):
            return "Whether there are other replicas is not known."
        if not nodes:
            return ""
        leads = f" (node {self.assignment.leader} leads)" if self.assignment.leader in nodes else ""
        was = "replica on {} was" if len(nodes) == 1 else "replicas on {} were"
        return f"Its {was.format(named_nodes(nodes))} not looked at{leads}."

    @property
    def commands(self) -> tuple[str, ...]:
        """The commands that move leadership, where a move is needed and possible now, and then remove the directory.

        The broker of the damaged replica is stopped before the last one, and started after it.
        """
        source, state = self.source, None if self._nameless else self.assignment.state
        if source is None or self.is_end or (state is not None and self.damaged.node_id not in state.replicas):
            return ()
        node_id = source.replica.node_id
        remove = self._removal()
        if state is None or state.leader == node_id:
            return remove
        if state.leader < 0:
            return remove if node_id in self.assignment.complete_replicas else ()
        if node_id not in state.isr or node_id is None or state.adding_replicas or state.removing_replicas:
            return ()
        return (*self._move(node_id, state.replicas), *remove)

    def _move(self, node_id: int, replicas: tuple[int, ...]) -> Iterator[str]:
        """The commands that make a node the preferred leader, if it is not, and then the leader."""
        topic, partition = self.damaged.partition.key or ("", 0)
        server = f"--bootstrap-server {shell_word(self.bootstrap_server)}"
        if replicas[0] != node_id:
            order = [node_id, *(each for each in replicas if each != node_id)]
            entry = {"topic": topic, "partition": partition, "replicas": order}
            plan = json.dumps({"version": 1, "partitions": [entry]}, separators=(",", ":"))
            yield f"echo {shell_word(plan)} > reassignment.json"
            yield f"kafka-reassign-partitions.sh {server} --reassignment-json-file reassignment.json --execute"
        which = f"--topic {shell_word(topic)} --partition {partition}"
        yield f"kafka-leader-election.sh {server} --election-type preferred {which}"

    @property
    def election(self) -> str:
        """The unclean election of an intact replica, for a lost end where a broker may truncate the leader's log.

        Brokers that did not stop cleanly leave the ISR and the ELR when they register again (KIP-966), so that after a
        crash of all nodes only the last leader can be elected cleanly, whatever its log lost.
        """
        state, source = self.assignment.state, self.source
        if not self.is_end or state is None or source is None or state.leader not in (-1, self.damaged.node_id):
            return ""
        if source.replica.node_id not in self.assignment.complete_replicas:
            return ""
        topic, partition = self.damaged.partition.key or ("", 0)
        return (
            f"kafka-leader-election.sh --bootstrap-server {shell_word(self.bootstrap_server)} --election-type unclean "
            f"--topic {shell_word(topic)} --partition {partition}"
        )

    def _removal(self) -> tuple[str, ...]:
        """The command that moves the damaged directory out of its log directory; none for one that is not on a disk."""
        path = self.damaged.path
        if not is_on_disk(path):
            return ()
        absolute = path.absolute()
        log_dir = absolute.parent
        return (f"mv {shell_word(str(absolute))} {shell_word(f'{log_dir}.{path.name}.damaged')}",)

    @property
    def merge(self) -> str | None:
        """The command that makes one log of all replicas, where each lacks something that another one has.

        It is the same for each of them.
        """
        if not self.intact or not self.others or self.source is not None or not self.is_deep:
            return None
        paths = sorted(str(each.path) for each in (self.damaged, *(other.replica for other in self.others)))
        output = f"{self.damaged.partition.name}.merged"
        return shell_line(["kafkalog", "salvage", "--merge", *paths, "--output", output])

    @property
    def next_step(self) -> str:
        """The sentence with its commands; empty where nothing is known of other replicas."""
        words, commands = self.sentence, self.commands
        if not words:
            return ""
        words = f"{self.damaged.partition.name}: {words[0].lower()}{words[1:]}"
        if self.election:
            words += " If it does not lead, as after a crash of all nodes, with only intact replicas up, run: "
            return words + self.election
        if self.others and self.source is None and (self.is_deep or not self.intact):
            return f"{words} {_SALVAGE if self.merge is None else _MERGE + self.merge}"
        if not commands:
            return words
        leader = "" if self.source is None else self.source.name
        moves = [each for each in commands if not each.startswith("mv ")]
        remove = next((f"run: {each}" for each in commands if each.startswith("mv ")), "remove the directory")
        first = f"Run: {'; '.join(moves)}. When {leader} leads, stop" if moves else "Stop"
        return f"{words} {first} the broker of {_name(self.damaged)}, {remove}, and start it again."


class ReplicasAtHand:
    """The replicas at some paths, listed and compared when they are first asked for; for several damaged places."""

    def __init__(self, targets: Sequence[Target], limits: Limits, context: ClusterContext | None = None) -> None:
        self._targets, self._limits, self._context = targets, limits, context
        self._replicas: list[Replica] | None = None
        self._compared: dict[Path, list[ReplicaResult]] = {}

    def is_assigned(self, directory: Path) -> bool:
        """Whether the best metadata at the paths assigns the replica in a directory to its node.

        Not one without a topic id, which a broker takes for stray whatever the metadata says.
        """
        try:
            context, partition = self.context, read_partition(directory)
        except KafkaLogError:
            return False
        is_stray = partition.metadata is None
        return not is_stray and context.node_id_of(partition) in context.assignment_of(partition).replicas

    @property
    def context(self) -> ClusterContext:
        """That of the best metadata log at the paths, which is read once. Raises KafkaLogError."""
        if self._context is None:
            self._context = read_context(self._targets, ContextTerms(limits=self._limits))
        return self._context

    def advised(self, found: Finding, *, is_end: bool = False) -> Finding:
        """The finding, with the remedy as its next step, where one is known. ``is_end``: the log lost its end."""
        if found.lost_offsets is None or found.location.topic in (None, CLUSTER_METADATA_TOPIC):
            return found  # a voter must not lose its metadata log
        path = Path(found.location.path)
        try:
            remedy = self.remedy(path.parent if path.suffix == LOG_SUFFIX else path, found.lost_offsets, is_end=is_end)
        except KafkaLogError:
            return found  # verifying the other paths reports it
        step = "" if remedy is None or (is_end and remedy.source is None) else remedy.next_step
        if not step:
            return found
        if is_end and found.severity < Severity.ERROR:
            step = f"Nothing, if these are copies of a running broker's files; else {step}"
        return msgspec.structs.replace(found, next_step=step)

    def remedy(self, damaged: Path, offsets: Range, *, deep: bool = True, is_end: bool = False) -> Remedy | None:
        """What heals the replica in a directory; None where it is not below the targets. Raises KafkaLogError.

        The other replicas are read: with ``deep`` all logs of the partition as a whole, else only the damaged offsets.
        """
        if self._replicas is None:
            usable = [each for each in self._targets if each.kind in (Kind.LOG_DIR, Kind.PARTITION)]
            self._replicas = [each for each in replicas_at(usable, self._limits, []) if each.partition.mark is None]
        own = next((each for each in self._replicas if str(each.path) == str(damaged)), None)
        if own is None or own.partition.key is None:
            return None
        others = [each for each in self._replicas if _is_other(each, own)]
        assignment = self.context.assignment_of(own.partition, own.topic_id)
        judged = [OtherReplica(each, self._problem(own, each, offsets)) for each in others]
        if deep and any(not each.problem for each in judged):
            results = self._results(own, others, assignment)
            judged = [
                msgspec.structs.replace(each, lack=_lack(result)) for each, result in zip(judged, results, strict=True)
            ]
        remedy = Remedy(own, tuple(judged), assignment, deep, is_end)
        return msgspec.structs.replace(remedy, bootstrap_server=self._address(remedy.source))

    def _results(self, own: Replica, others: list[Replica], assignment: Assignment) -> list[ReplicaResult]:
        """What diff finds of the other replicas; its comparison reads each log once."""
        if own.path not in self._compared:
            topic, number = own.partition.key or (None, None)
            group = Replicas(topic, number, [own, *others], assignment)
            self._compared[own.path] = compared(group, self._limits, no_progress).replicas[1:]
        return self._compared[own.path]

    def _problem(self, own: Replica, other: Replica, offsets: Range) -> str:
        """Why another replica is not intact at these offsets, empty if it is."""
        intact, epochs = _intact_batches(other, offsets, self._limits)
        if not is_covered(offsets, intact):
            return f"has no intact batch at {offset_range(*without([offsets], intact)[0])}"
        expected = _epoch_at(own, offsets[0], self._limits)
        if expected is not None and epochs and expected not in epochs:
            return f"has other records there, of the leader epoch {min(epochs)}, not {expected}"
        return ""

    def _address(self, source: OtherReplica | None) -> str:
        """The address of the broker to fetch from, as the metadata has it."""
        image = None if self._context is None else self._context.image
        if image is None or source is None or source.replica.node_id not in image.brokers:
            return _ANY_BROKER
        endpoints = image.brokers[source.replica.node_id]["endPoints"]
        return f"{endpoints[0]['host']}:{endpoints[0]['port']}" if endpoints else _ANY_BROKER


def _is_other(each: Replica, own: Replica) -> bool:
    is_same = each is own or (each.node_id is not None and each.node_id == own.node_id)
    return not is_same and each.partition.key == own.partition.key and may_be_one(each, own)


def _intact_batches(replica: Replica, offsets: Range, limits: Limits) -> tuple[list[Range], set[int]]:
    """The offsets of the intact batches of a log around some offsets, and the leader epochs of those at them."""
    spans: list[Range] = []
    epochs: set[int] = set()
    for segment in replica.partition.segments:
        log = log_of_segment(replica.partition, segment)
        if log is None or segment.base_offset > offsets[1]:
            break
        if log.next_base_offset is not None and log.next_base_offset <= offsets[0]:
            continue
        try:
            with FileSource(log.path) as source:
                chunks = chunks_with_crcs(source, BatchRange(0), limits)
                for item in opened_chunks(source, chunks, log, EVERYTHING, limits=limits, elsewhere=NOT_ELSEWHERE):
                    if isinstance(item, Finding):
                        continue
                    table = item.chunk.table
                    at = (table.crc_valid == 1) & (table.last_offset >= offsets[0]) & (table.base_offset <= offsets[1])
                    bounds = table.base_offset[at].tolist(), table.last_offset[at].tolist()
                    spans += zip(*bounds, strict=True)
                    epochs.update(table.leader_epoch[at & (table.magic == 2)].tolist())
                    if len(table) and table.base_offset[len(table) - 1] > offsets[1]:
                        break
        except KafkaLogError:
            continue  # verifying that replica reports it
    return merged(spans), epochs


def _epoch_at(replica: Replica, offset: int, limits: Limits) -> int | None:
    """The leader epoch of an offset by the leader-epoch-checkpoint; None if it does not say it."""
    path = replica.partition.leader_epoch_checkpoint
    try:
        entries = () if path is None else replica.partition.epochs_file(path, limits).entries
    except KafkaLogError:
        return None
    return next((each.leader_epoch for each in reversed(entries) if each.start_offset <= offset), None)


def _lack(result: ReplicaResult) -> str:
    """Why nothing can be fetched anew from a replica, empty for a whole one."""
    if result.damaged:
        return f"is damaged at {offset_range(*result.damaged[0])}"
    lost = result.lost_committed
    if lost.first is not None and lost.last is not None:
        return f"lacks {counted(lost.count, 'committed record')} ({offset_range(lost.first, lost.last)})"
    return ""


def _whose(replicas: list[Replica]) -> str:
    """The subject of a sentence, as ``Its replicas on nodes 1 and 3 are``."""
    ids = sorted(each.node_id for each in replicas if each.node_id is not None)
    names = named_nodes(ids) if len(ids) == len(replicas) else listed([_name(each) for each in replicas])
    return f"Its replica{' on' if len(replicas) == 1 else 's on'} {names} {'is' if len(replicas) == 1 else 'are'}"


def _name(replica: Replica) -> str:
    return str(replica.path) if replica.node_id is None else f"node {replica.node_id}"
