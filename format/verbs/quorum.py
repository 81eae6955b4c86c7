"""quorum: what the copies of the metadata log on controllers and brokers say of the quorum, and what is lost.

A broker acts on a change when it is committed. So a leader epoch on its disk that is higher than that of the metadata,
or a partition that the metadata does not have, was committed once. So was a replica with the epoch of the metadata that
is not assigned to its node: the removal of a replica raises the epoch (metadata PartitionChangeBuilder). A topic that
the metadata does not know may as well have been deleted before the metadata begins, unless the log begins with the
cluster.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path

import msgspec

from format.columns import LOST_CHANGE, QUORUM, QUORUM_LOG, QUORUM_VOTER, RowSchema
from format.errors import KafkaLogError
from format.files import meta_properties
from format.findings import Certainty, Finding, Judgement, Severity, finding
from format.io.session import is_in_bundle, is_on_disk
from format.layout import CLUSTER_METADATA_TOPIC, METADATA_PARTITION
from format.limits import DEFAULT_LIMITS, Limits
from format.location import Location
from format.node.log_dir import Kind, LogDir, log_dir_around
from format.node.partition import Partition, read_partition
from format.node.target import Target
from format.rows.record_rows import Row
from format.state.cluster_context import latest_epoch_of, named_nodes, topic_id_in
from format.state.cluster_image import ClusterImage, PartitionState
from format.state.metadata_log import read_metadata
from format.state.quorum import MetadataCopy, Quorum, QuorumMember, quorum_of, read_metadata_copies
from format.wording import are, counted, first_of, listed, shell_line

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
        return (
            self.kind, self.topic, self.partition, self.topic_id, self.epoch_on_disk, self.epoch_in_metadata,
            self.node_id, "proven" if self.is_proven else "possible", self.path,
        )  # fmt: skip


class LostChanges(msgspec.Struct):
    """What the partition directories at the paths show, how many were compared, and how many cannot be listed.

    ``node_ids`` are those of the nodes whose log directories are at the paths, ``log_dir_ids`` the ids of these.
    """

    changes: list[LostChange]
    compared_count: int
    unread_count: int = 0
    node_ids: frozenset[int | None] = frozenset()
    log_dir_ids: frozenset[str | None] = frozenset()

    def of(self, *kinds: str, is_proven: bool = True) -> list[LostChange]:
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
    count, unread, node_ids, log_dir_ids = 0, list[KafkaLogError](), set[int | None](), set[str | None]()
    for log_dir, node_id, paths in directories_of(targets, quorum.best.copy.cluster_id, limits):
        node_ids.add(node_id)
        log_dir_ids.add(meta_properties.ids_in(None if log_dir is None else log_dir.meta_properties, limits)[2])
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
    changes = [*found, *_created(unknown, quorum, limits)]
    return LostChanges(changes, count, len(unread), frozenset(node_ids), frozenset(log_dir_ids))


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


def absent_log_dirs(image: ClusterImage, node_id: int, here: Collection[str | None]) -> str:
    """The log directories that a broker has registered and that are not here, in words; empty if all are.

    ``here`` are ids of directories. With one of which the id is not known, none is missed.
    """
    registered = image.brokers[node_id].get("logDirs") or ()
    absent = len(set(registered).difference(here))
    if not absent or None in here:
        return ""
    return f"{absent} of the {counted(len(registered), 'log directory')} of node {node_id}: not here"


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


#: The most changes and topics that a sentence names.
_MOST_NAMED = 3


class QuorumResult(msgspec.Struct, frozen=True):
    """The quorum by the copies at some paths, and the changes that partition directories show to be lost.

    ``paths`` are those that rebuild-quorum takes: none in a bundle, which holds no records.
    """

    quorum: Quorum
    lost: LostChanges
    paths: tuple[str, ...]

    @property
    def rebuild_command(self) -> str:
        """The command that says what can be rebuilt from these paths; without paths, in words on what to run it."""
        if not self.paths:
            return "run kafkalog rebuild-quorum --dry-run on the log directories themselves"
        return shell_line(("kafkalog", "rebuild-quorum", *self.paths, "--dry-run"))

    @property
    def _has_majority(self) -> bool:
        """Whether the copies of a majority of the voters are here, which have all that was committed."""
        return self.quorum.voters is not None and len(self.quorum.voting) >= self.quorum.majority

    # -- the rows ------------------------------------------------------------------------------------------------

    def rows(self) -> Iterator[tuple[RowSchema, list[Row]]]:
        """The quorum, its voters, a row for each log and for each voter without one, and the lost changes."""
        yield QUORUM, [self._quorum_row()]
        yield QUORUM_LOG, list(self._log_rows())
        yield QUORUM_VOTER, list(self._voter_rows())
        yield LOST_CHANGE, [each.row for each in self.lost.changes]

    def _quorum_row(self) -> Row:
        quorum = self.quorum
        voters = quorum.voters
        certain, possible = quorum.held if voters is not None else (None, None)
        copy = quorum.best.copy
        return (
            copy.cluster_id,
            quorum.is_intact,
            quorum.is_dynamic,
            None if voters is None else [each.node_id for each in voters],
            list(quorum.absent),
            [node for node, is_able in self._can_lead.items() if is_able],
            certain,
            possible,
            copy.end[1],
            str(copy.path),
            list(quorum.best.reasons),
        )

    @property
    def _can_lead(self) -> dict[int, bool | None]:
        return self.quorum.can_lead if self.quorum.voters is not None else {}

    def _log_rows(self) -> Iterator[Row]:
        able = self._can_lead
        for each in self.quorum.members:
            copy, state = each.copy, each.copy.state
            yield _log_row(
                node_id=copy.node_id,
                is_voter=each.is_voter,
                can_lead=able.get(each.node_id, each.is_voter),
                last_epoch=None if each.end[0] < 0 else each.end[0],
                log_end_offset=each.end[1],
                shared_end_offset=each.shared_end,
                leader=None if state is None or state.leader_id < 0 else state.leader_id,
                leader_epoch=None if state is None else state.leader_epoch,
                voted_for=None if state is None or state.voted_id < 0 else state.voted_id,
                path=str(copy.path),
                roles=list(self.quorum.roles_of(copy.node_id)),
                directory_id=copy.directory_id,
                snapshot_end_offset=None if copy.snapshot is None else copy.snapshot.end_offset,
                snapshot_epoch=None if copy.snapshot is None else copy.snapshot.epoch,
                dropped_from=copy.dropped_from,
                refusal=copy.refusal or None,
            )
        for node_id in self.quorum.absent:
            yield _log_row(node_id=node_id, is_voter=True)

    def _voter_rows(self) -> Iterator[Row]:
        for each in self.quorum.voters or ():
            versions = each.kraft_versions
            yield (
                each.node_id,
                each.directory_id,
                [f"{name}://{host}:{port}" for name, host, port in each.endpoints],
                None if versions is None else list(versions),
                self.quorum.is_dynamic,
                each.node_id in self.quorum.voting,
            )

    # -- the words -----------------------------------------------------------------------------------------------

    def sentences(self) -> list[str]:
        """The conclusions: who can lead, what a majority has, what copies disagree about, what is lost."""
        quorum = self.quorum
        if quorum.voters is None:
            ends = [f"{_name(each)} {each.end[1]} (epoch {each.end[0]})" for each in quorum.members]
            found = [
                f"Which nodes vote is not known, so neither is what was committed. The logs end at: {', '.join(ends)}."
            ]
        else:
            leads = " ".join(filter(None, (self._verdict(), self._election_words())))
            found = [leads, *self._unfit_words(), self._held_words(), *self._observer_words(), self._vote_words()]
        if quorum.is_intact is not True:
            found.append(f"The best copy is {quorum.best.copy.path}: {'; '.join(quorum.best.reasons)}.")
        if quorum.is_intact is None and quorum.voters is not None:
            found.append(f"If {named_nodes(quorum.absent)} {are(len(quorum.absent))} lost: {self.rebuild_command}")
        found[1:1] = self._lost_words()
        if not self.lost.changes and self.lost.compared_count:
            count = counted(self.lost.compared_count, "partition directory")
            found.append(f"No lost change shows: of {count} here, none is ahead of the metadata.")
        return list(filter(None, found))

    def _verdict(self) -> str:
        """Whether a majority can elect a leader; voters that are not here are named."""
        quorum = self.quorum
        here, count = sorted(quorum.voting), len(quorum.voters or ())
        kind = "dynamic" if quorum.is_dynamic else "static"
        voters = f"the {counted(count, 'voter')} of the {kind} quorum"
        gone = f"{named_nodes(quorum.absent)} {are(len(quorum.absent))} not" if quorum.absent else ""
        if quorum.is_intact:
            if gone:
                return f"A leader can be elected: of {voters}, {named_nodes(here)} {are(len(here))} here; {gone}."
            whole = (
                f"{voters}, {named_nodes(here)}, are here"
                if count > 1
                else f"{named_nodes(here)}, the only voter, is here"
            )
            return f"A leader can be elected: {whole}."
        able = [node for node, each in sorted(quorum.voting.items()) if each.is_able]
        start = f"only {named_nodes(able)} {are(len(able))} here" if able else "none is here"
        if here != able:
            start = f"only {named_nodes(able)} can start" if able else f"{named_nodes(here)} cannot start"
        if set(here) & set(quorum.unsure):
            start = f"only {named_nodes(able)} {are(len(able))} known to start" if able else "none is known to start"
        if quorum.is_intact is None:
            needed = quorum.majority - len(able)
            others = " or ".join(f"node {each}" for each in quorum.unsure)
            if needed > 1:
                others = (
                    f"{needed} of {named_nodes(quorum.unsure)}"
                    if needed < len(quorum.unsure)
                    else named_nodes(quorum.unsure)
                )
            return f"No leader can be elected without {others}: of {voters}, {start}."
        return f"No leader can be elected: of {voters}, {start}{f'; {gone} here' if gone else ''}."

    def _election_words(self) -> str:
        """Who can be elected, and which records that a majority has it would drop."""
        quorum = self.quorum
        able, members = quorum.can_lead, {each.node_id: each for each in quorum.members}
        winners = [node for node, is_able in sorted(able.items()) if is_able]
        unsure = [node for node, is_able in sorted(able.items()) if is_able is None and node not in quorum.unsure]
        words = []
        if winners:
            is_each = winners == sorted(each.node_id for each in quorum.voters or ()) and len(winners) > 1
            words.append("Each can lead." if is_each else f"{named_nodes(winners).capitalize()} can lead.")
        if unsure and quorum.is_intact:
            others = sorted({each for node in unsure for each in quorum.unsure_for(node)})
            words.append(f"Whether {named_nodes(unsure)} can lead depends on {named_nodes(others)}.")
        certain, _ = quorum.held
        words += [
            f"Node {node}, elected, drops what a majority has from offset {members[node].shared_end} on."
            for node in winners
            if members[node].shared_end < certain
        ]
        return " ".join(words)

    def _unfit_words(self) -> Iterator[str]:
        """The voters here that do not start, lose a part of their log, or do not vote."""
        voters = {each.node_id: each for each in self.quorum.voters or ()}
        for each in self.quorum.members:
            if each.copy.node_id is None:
                why = each.copy.unsure or "no meta.properties is beside it"
                yield f"{each.copy.path} is of a node that is not known: {why}."
            elif each.is_voter is False and each.node_id in voters:
                own, wanted = each.copy.directory_id, voters[each.node_id].directory_id
                yield f"{_head(each)} does not vote: its directory has the id {own}, the voter {wanted}."
            if each.copy.refusal:
                yield f"{_head(each)} does not start: {each.copy.refusal}."
            elif each.copy.unsure and each.copy.node_id is not None:
                yield f"Whether {_name(each)} starts is not known: {each.copy.unsure}."
            elif each.copy.gap:
                yield f"The copy of {_name(each)} is not whole: {each.copy.gap}."
            if each.copy.dropped_from is not None and not each.copy.refusal:
                yield f"{_head(each)} drops its log from {each.copy.dropped_from} on when it starts: damage."

    def _held_words(self) -> str:
        """What is on a majority of the voters, and what only some have."""
        quorum = self.quorum
        voting = quorum.voting
        if not voting:
            return ""
        certain, possible = quorum.held
        known, longest = quorum.committed_end, max(each.shared_end for each in voting.values())
        words = f"A snapshot shows that the records before offset {known} were committed." if known else ""
        if certain and certain >= known:
            words = f"A majority has the records before offset {certain}" + (
                ", the end." if certain == longest else "."
            )
        if known < possible:
            rest = _span(known, possible) if known else f"the records before {possible}"
            words += f" Whether a majority has {rest} depends on {named_nodes(quorum.absent)}."
        if possible < longest:
            holders = sorted(node for node, each in voting.items() if each.shared_end > possible)
            words += f" Only {named_nodes(holders)} {'has' if len(holders) == 1 else 'have'} "
            words += f"{_span(possible, longest)}: no majority."
        for each in quorum.members:
            if each.shared_end < each.end[1]:
                words += f" {_head(each)} has other records from offset {each.shared_end} on, of another epoch."
        return words.strip()

    def _observer_words(self) -> Iterator[str]:
        """What the copies of brokers add. Observers fetch records before they are committed, as voters do."""
        quorum = self.quorum
        reach = max((each.shared_end for each in quorum.voting.values()), default=0)
        further = [each for each in quorum.members if not each.is_voter and each.shared_end > reach]
        if further:
            span = _span(reach, max(each.shared_end for each in further))
            yield f"No voter here has {span}, only {listed([_name(each) for each in further])}."
        for each, first, end in quorum.overwritten:
            lacks = f"the best copy lacks {_span(first, end)}, by a snapshot of {_name(each)}"
            yield f"Committed metadata is lost: {lacks}."

    def _vote_words(self) -> str:
        """The leader and the votes of the latest epoch in the files quorum-state."""
        states = {each.node_id: each.copy.state for each in self.quorum.members if each.copy.node_id is not None}
        epoch = max((each.leader_epoch for each in states.values() if each is not None), default=None)
        latest = {
            node: each for node, each in sorted(states.items()) if each is not None and each.leader_epoch == epoch
        }
        unknown = sorted(node for node, each in self.quorum.voting.items() if each.copy.state is None)
        why = "its quorum-state is" if len(unknown) == 1 else "their quorum-states are"
        lacks = f"How {named_nodes(unknown)} voted is not known: {why} missing or not readable." if unknown else ""
        if not latest:
            return lacks
        leaders = sorted({each.leader_id for each in latest.values() if each.leader_id >= 0})
        votes: dict[int, list[int]] = {}
        for node, each in latest.items():
            if each.voted_id >= 0:
                votes.setdefault(each.voted_id, []).append(node)
        led = f"{named_nodes(leaders)} led" if leaders else "no leader is noted"
        by = [
            f"{named_nodes(nodes)} voted for {'it' if leaders == [node] else f'node {node}'}"
            for node, nodes in votes.items()
        ]
        return f"In epoch {epoch}, by quorum-state, {led}{'; ' if by else ''}{', '.join(by)}. {lacks}".rstrip()

    def _lost_words(self) -> Iterator[str]:
        """The changes that are lost, or that only voters may have that are not here."""
        lost = self.lost
        later = lost.of(EPOCH, PARTITION, REPLICA)
        topics = sorted({each.topic for each in lost.of(TOPIC)})
        head = "Changes are lost" if self._has_majority else "The copies here lack changes"
        if later:
            named = [_change_words(each) for each in furthest_of_each(later)]
            ahead = f"{counted(len(named), 'partition')} on disk {are(len(named))} ahead of the metadata"
            yield f"{head}: {ahead}: {first_of(named, _MOST_NAMED)}."
        if topics:
            unknown = f"{counted(len(topics), 'topic')} on disk that the metadata lacks"
            yield f"{head}: {unknown}: {first_of(topics, _MOST_NAMED)}."
        possible = sorted({each.topic for each in lost.of(TOPIC, is_proven=False)})
        if possible:
            unknown = f"{counted(len(possible), 'topic')} on disk {are(len(possible))} not in the metadata"
            names = first_of(possible, _MOST_NAMED)
            yield f"{unknown}: {names}; created after its end, or deleted before its beginning."

    # -- judgements ----------------------------------------------------------------------------------------------

    def findings(self) -> Iterator[Finding]:
        """What is damaged, what is lost, and whether the quorum is."""
        quorum = self.quorum
        unread = [each for each in quorum.left_out if each.unread]
        known = [each for copy in (*(member.copy for member in quorum.members), *unread) for each in copy.findings]
        yield from known
        yield from (each for each in quorum.state.findings if each not in known)
        place = quorum.best.copy.source.partition.location()
        if quorum.is_intact is False:
            step = f"Restore a disk of one of these voters; if there is none: {self.rebuild_command}"
            yield finding("quorum-lost", place, self._verdict(), judgement=Judgement(next_step=step))
        for each, first, end in quorum.overwritten:
            message = (
                f"a snapshot of {_name(each)} has committed metadata up to offset {end - 1}; the best copy has other "
            )
            message += f"records from offset {first} on, or none"
            yield finding("metadata-committed-lost", place.at(offset=first), message, lost_offsets=(first, end - 1))
        for kind in (EPOCH, PARTITION, REPLICA, TOPIC):
            for is_proven in (True, False):
                yield from _lost_finding(self.lost.of(kind, is_proven=is_proven), has_majority=self._has_majority)

    def not_checked(self) -> Iterator[str]:
        """What the copies at hand cannot show."""
        quorum = self.quorum
        if quorum.absent:
            yield f"the {'log' if len(quorum.absent) == 1 else 'logs'} of {named_nodes(quorum.absent)}, which can vote"
        cluster_id = quorum.best.copy.cluster_id
        for copy in quorum.left_out:
            why = f"a copy of node {copy.node_id}, which has one that reaches further"
            if copy.cluster_id not in (None, cluster_id):
                why = f"a copy of cluster {copy.cluster_id}"
            elif copy.unread:
                why = "which cannot be read"
            yield f"{copy.path}, {why}"
        here = self.lost.node_ids | {each.node_id for each in quorum.members}
        brokers = sorted(set(quorum.state.image.brokers) - here)
        if brokers:
            yield f"the disks of brokers that are not here: {named_nodes(brokers)}"
        for node_id in sorted(set(quorum.state.image.brokers) & self.lost.node_ids):
            words = absent_log_dirs(quorum.state.image, node_id, self.lost.log_dir_ids)
            if words:
                yield words
        if not self.lost.compared_count:
            yield "lost changes: no partition of a topic is here"
        if self.lost.unread_count:
            yield f"lost changes: {counted(self.lost.unread_count, 'partition directory')} cannot be listed"
        running = [_name(each) for each in quorum.members if _runs(each)]
        if running:
            yield f"one moment of all logs: {listed(running)} {'runs' if len(running) == 1 else 'run'}"


def quorum(targets: Sequence[Target], limits: Limits = DEFAULT_LIMITS) -> QuorumResult:
    """The quorum by all copies of the metadata log at or below some paths. Raises InputError if there is none."""
    found = quorum_of([_as_started(each, limits) for each in read_metadata_copies(targets, limits)], limits)
    paths = () if any(is_in_bundle(each.path) for each in targets) else tuple(str(each.path) for each in targets)
    return QuorumResult(found, lost_changes(targets, found, limits), paths)


def read_copies(targets: Iterable[Target], limits: Limits = DEFAULT_LIMITS) -> list[MetadataCopy]:
    """Every copy at or below some paths, in their order, with a refusal where boot says that it stops its node.

    Raises InputError if there is none.
    """
    copies = read_metadata_copies(targets, limits)
    return [msgspec.structs.replace(each, refusal=_as_started(each, limits).refusal) for each in copies]


def _as_started(copy: MetadataCopy, limits: Limits) -> MetadataCopy:
    """A copy; what a damaged one, or one with a cut snapshot, becomes when its node starts is what boot says of it."""
    is_partition = copy.path.name == METADATA_PARTITION and is_on_disk(copy.path)
    is_sound = copy.dropped_from is None and copy.snapshot == copy.sound_snapshot
    if is_sound or copy.refusal or not is_partition:
        return copy
    from format.verbs.boot.boot import NEWEST, step_words
    from format.verbs.boot.quorum import load_metadata
    from format.verbs.boot.steps import BootTerms, NotKnown, StopsStart, problem_step

    try:
        loaded = load_metadata(copy.path.parent, BootTerms(version=NEWEST, is_release_known=False, limits=limits))
    except StopsStart as error:
        return msgspec.structs.replace(copy, refusal=step_words(problem_step(error, copy.path)))
    except (NotKnown, KafkaLogError):
        return copy  # what was read of it is said
    if loaded.is_cut:
        return copy
    epochs = msgspec.structs.replace(copy.epochs, log_end_offset=loaded.log_end_offset)
    return msgspec.structs.replace(copy, dropped_from=None, epochs=epochs)  # of a field that no recovery looks at


def _name(member: QuorumMember) -> str:
    """A node in words, or the path of a copy whose node is not known."""
    return str(member.copy.path) if member.copy.node_id is None else f"node {member.node_id}"


def _head(member: QuorumMember) -> str:
    """The name at the beginning of a sentence; a path stays as it is."""
    return _name(member) if member.copy.node_id is None else f"Node {member.node_id}"


def _log_row(**values: object) -> Row:
    return tuple(values.get(name) for name in QUORUM_LOG.names)


def _runs(member: QuorumMember) -> bool:
    """Whether a process holds the lock of the log directory."""
    log_dir = log_dir_around(member.copy.source.partition.path)
    return log_dir is not None and bool(log_dir.broker_lock.is_held)


def _span(first: int, end: int) -> str:
    """The records from an offset to an end."""
    return f"the record at offset {first}" if end - first == 1 else f"the records {first} to {end - 1}"


def _change_words(change: LostChange) -> str:
    name = f"{change.topic}-{change.partition}"
    if change.kind == PARTITION:
        return f"{name} (not in it)"
    if change.kind == REPLICA:
        return f"{name} (there not on node {change.node_id})"
    return f"{name} (epoch {change.epoch_on_disk}, there {change.epoch_in_metadata})"


def _lost_finding(changes: Sequence[LostChange], *, has_majority: bool) -> Iterator[Finding]:
    """A finding for the changes of a kind, at the first of them; without a majority here, others may have them."""
    if not changes:
        return
    first = changes[0]
    count = len(furthest_of_each(changes))
    more = f", and {counted(count - 1, 'partition')} more" if count > 1 else ""
    if first.kind == EPOCH:
        message = f"the leader epoch on disk is {first.epoch_on_disk}, in the metadata {first.epoch_in_metadata}{more}"
    elif first.kind == PARTITION:
        message = f"the metadata has the topic, and not this partition{more}"
    elif first.kind == REPLICA:
        message = f"the metadata assigns no replica to node {first.node_id}{more}"
    else:
        message = f"the metadata does not know the topic id {first.topic_id}{more}"
    judgement = Judgement(None if has_majority else Severity.WARNING)
    judgement = judgement if first.is_proven else Judgement(Severity.INFO, Certainty.POSSIBLE)
    yield finding(
        "metadata-change-lost",
        Location(first.path, first.topic, first.partition),
        message,
        expected=first.epoch_in_metadata,
        actual=first.epoch_on_disk,
        judgement=judgement,
    )
