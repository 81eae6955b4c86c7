"""The quorum by the metadata logs of several of its nodes: what a majority holds, who can lead, who voted for whom."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress

import msgspec

from format.columns import QUORUM_LOG
from format.errors import KafkaLogError
from format.files import leader_epoch_checkpoint, meta_properties, quorum_state
from format.files.leader_epoch_checkpoint import EpochEntry
from format.files.quorum_state import QuorumState
from format.io.source import FileSource
from format.kafka_uuid import canonical_uuid
from format.limits import Limits
from format.log.walker import header_chunks
from format.node.log_dir import log_dir_around
from format.rows.record_rows import Row
from format.state.cluster_context import named_nodes
from format.state.cluster_image import ClusterImage
from format.state.metadata_log import MetadataSource
from format.state.quorum import can_lead, held_by_majority
from format.verbs.diff.diff import ReplicaEpochs, replica_epochs
from format.wording import are, counted


class QuorumLog(msgspec.Struct, frozen=True):
    """The metadata log of one node; ``shared_end`` is the offset before which it is the log that reaches furthest."""

    source: MetadataSource
    epochs: ReplicaEpochs
    state: QuorumState | None
    is_voter: bool | None
    shared_end: int = 0

    @property
    def node_id(self) -> int:
        return -1 if self.source.node_id is None else self.source.node_id

    @property
    def end(self) -> tuple[int, int]:
        """The last leader epoch and the end offset."""
        return self.source.reach


class Quorum(msgspec.Struct, frozen=True):
    """The logs of several nodes, the furthest first. ``voters`` None: the nodes that vote are not known."""

    logs: list[QuorumLog]
    voters: tuple[int, ...] | None

    @property
    def voting(self) -> dict[int, QuorumLog]:
        """The logs of voters, by node."""
        return {each.node_id: each for each in self.logs if each.is_voter}

    @property
    def absent(self) -> tuple[int, ...]:
        """The voters whose logs are not at hand."""
        return tuple(each for each in self.voters or () if each not in self.voting)

    @property
    def can_lead(self) -> dict[int, bool | None]:
        """By node, whether a voter at hand can be elected; None where that depends on the absent ones."""
        return can_lead({node: log.end for node, log in self.voting.items()}, len(self.voters or ()))

    def rows(self) -> Iterator[Row]:
        """A row of columns.QUORUM_LOG for each log, and one for each voter that is not at hand."""
        able = self.can_lead if self.voters is not None else {}
        for log in self.logs:
            epoch, end = log.end
            state = log.state
            yield self._row(
                node_id=log.source.node_id,
                is_voter=log.is_voter,
                can_lead=able.get(log.node_id) if log.is_voter else log.is_voter,
                last_epoch=None if epoch < 0 else epoch,
                log_end_offset=end,
                shared_end_offset=log.shared_end,
                leader=None if state is None or state.leader_id < 0 else state.leader_id,
                leader_epoch=None if state is None else state.leader_epoch,
                voted_for=None if state is None or state.voted_id < 0 else state.voted_id,
                path=str(log.source.partition.path),
            )
        for node_id in self.absent:
            yield self._row(node_id=node_id, is_voter=True)

    @staticmethod
    def _row(**values: object) -> Row:
        return tuple(values.get(name) for name in QUORUM_LOG.names)

    # -- the words -------------------------------------------------------------------------------------------

    def sentence(self) -> str:
        """What a majority holds, and who can lead; what is not at hand is named."""
        ends = ", ".join(f"{_named(each)} {each.end[1]:,} (epoch {each.end[0]})" for each in self.logs)
        if self.voters is None:
            return f"The metadata logs end at: {ends}. Which nodes vote is not known, so neither is what was committed."
        observers = [each.node_id for each in self.logs if not each.is_voter]
        words = (
            f"Of {counted(len(self.voters), 'voter')}, {counted(len(self.voting), 'log')} {are(len(self.voting))} here"
        )
        words += f" (not here: {named_nodes(self.absent)})" if self.absent else ""
        words += f"; they end at: {ends}."
        words += f" Not a voter: {named_nodes(observers)}." if observers else ""
        return " ".join(filter(None, (words, self._held_words(), self._election_words(), self._vote_words())))

    def _held_words(self) -> str:
        """What is on a majority of the voters, and what only some have."""
        voting = self.voting
        if not voting or self.voters is None:
            return ""
        certain, possible = held_by_majority([each.shared_end for each in voting.values()], len(self.voters))
        longest = max(each.shared_end for each in voting.values())
        words = f"A majority has the records before offset {certain:,}." if certain else ""
        if certain < possible:
            words += (
                f" Whether it has those from {certain:,} to {possible - 1:,} depends on {named_nodes(self.absent)}."
            )
        if possible < longest:
            holders = [node for node, each in voting.items() if each.shared_end > possible]
            words += f" Only {named_nodes(holders)} {'has' if len(holders) == 1 else 'have'} "
            words += f"the records from offset {possible:,} on: no majority has them."
        for node, each in voting.items():
            if each.shared_end < each.end[1]:
                words += f" Node {node} has other records from offset {each.shared_end:,} on, of an earlier epoch."
        return words.strip()

    def _election_words(self) -> str:
        """Who can be elected, and which records of a majority it would lack."""
        able = self.can_lead
        winners = [node for node, is_able in able.items() if is_able]
        unsure = [node for node, is_able in able.items() if is_able is None]
        words = f"{named_nodes(winners).capitalize()} can lead." if winners else ""
        if unsure:
            words += f" Whether {named_nodes(unsure)} can lead depends on {named_nodes(self.absent)}."
        if not self.absent and winners and self.voters is not None:
            voting = self.voting
            certain, _ = held_by_majority([each.shared_end for each in voting.values()], len(self.voters))
            lacking = [node for node in winners if voting[node].shared_end < certain]
            if not lacking:
                words += (
                    " Each of them has what a majority has." if len(winners) > 1 else " It has what a majority has."
                )
            for node in lacking:
                words += f" Node {node}, elected, drops the records from offset {voting[node].shared_end:,} on."
        return words.strip()

    def _vote_words(self) -> str:
        """The leader and the votes of the latest epoch in the files quorum-state."""
        states = {each.node_id: each.state for each in self.logs if each.state is not None}
        epoch = max((each.leader_epoch for each in states.values()), default=None)
        if epoch is None:
            return ""
        latest = {node: each for node, each in states.items() if each.leader_epoch == epoch}
        leaders = sorted({each.leader_id for each in latest.values() if each.leader_id >= 0})
        votes = [f"node {node} voted for node {each.voted_id}" for node, each in latest.items() if each.voted_id >= 0]
        led = f"{named_nodes(leaders)} led" if leaders else "no leader is noted"
        return f"In epoch {epoch}, by quorum-state, {led}{'; ' if votes else ''}{', '.join(votes)}."


def quorum_of(
    sources: Sequence[MetadataSource], image: ClusterImage, voters: tuple[int, ...] | None, limits: Limits
) -> Quorum | None:
    """The quorum by several metadata logs of one cluster, the furthest first; None for the log of one node alone."""
    best = sources[0]
    own: dict[int, MetadataSource] = {}
    for source in sorted(sources, key=lambda each: each.reach, reverse=True):
        is_of_cluster = None in (source.cluster_id, best.cluster_id) or source.cluster_id == best.cluster_id
        if source.node_id is not None and is_of_cluster:
            own.setdefault(source.node_id, source)
    if len(own) < 2:
        return None
    logs = [QuorumLog(each, _epochs_of(each, limits), _state_of(each, limits), _votes(each, image, voters, limits))
            for each in own.values()]  # fmt: skip
    longest = logs[0].epochs
    shared = [msgspec.structs.replace(each, shared_end=each.epochs.truncated_by(longest)) for each in logs]
    return Quorum(shared, voters)


def _votes(source: MetadataSource, image: ClusterImage, voters: tuple[int, ...] | None, limits: Limits) -> bool | None:
    """Whether the node of a log votes. One whose directory has another id than the voter set says only observes."""
    if voters is None:
        return None
    if source.node_id not in voters:
        return False
    expected = (image.voters or {}).get(source.node_id, {}).get("voterDirectoryId")
    log_dir = log_dir_around(source.partition.path)
    if expected is None or log_dir is None or log_dir.meta_properties is None:
        return True
    try:
        actual = meta_properties.read(log_dir.meta_properties, limits).directory_id
    except KafkaLogError:
        return True  # verify reports it
    return actual is None or canonical_uuid(expected) == canonical_uuid(actual)


def _state_of(source: MetadataSource, limits: Limits) -> QuorumState | None:
    path = source.partition.quorum_state
    try:
        return None if path is None else quorum_state.read(path, limits)
    except KafkaLogError:
        return None  # verify reports it


def _epochs_of(source: MetadataSource, limits: Limits) -> ReplicaEpochs:
    """The leader epochs of a log, by its checkpoint and the headers of its batches."""
    path = source.partition.leader_epoch_checkpoint
    noted: Sequence[EpochEntry] = ()
    read: list[EpochEntry] = []
    with suppress(KafkaLogError):  # verify reports it
        noted = () if path is None else leader_epoch_checkpoint.read(path, limits).entries
    segments = source.partition.segments
    for segment in segments:
        if segment.log is None:
            continue
        with suppress(KafkaLogError), FileSource(segment.log) as opened:
            next_offset = segment.base_offset
            for chunk in header_chunks(opened, limits=limits):
                for row, epoch in enumerate(chunk.headers.leader_epoch.tolist()):
                    if not read or epoch > read[-1].leader_epoch:
                        read.append(EpochEntry(epoch, next_offset))
                    next_offset = chunk.headers.last_offset_of(row) + 1
    start, end = segments[0].base_offset if segments else source.reach[1], source.reach[1]
    return replica_epochs(noted, read, log_start_offset=start, log_end_offset=end, high_watermark=None)


def _named(log: QuorumLog) -> str:
    return f"node {log.node_id}"
