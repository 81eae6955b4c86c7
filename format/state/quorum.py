"""The metadata quorum: its voters, who of them can be elected, and what a majority holds, from copies of its log.

A voter votes for no candidate whose log ends before its own: the last leader epoch counts, then the end offset
(KIP-595). Some voters may not be at hand.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from format.errors import UnreadableFile
from format.kafka_uuid import canonical_uuid
from format.limits import DEFAULT_LIMITS, Limits
from format.location import Location
from format.node.target import Target
from format.state.metadata_copies import BestCopy, MetadataCopy, Voter, best_copy, read_metadata_copies, state_of_copy
from format.state.metadata_log import MetadataState

#: The leader epoch of the last batch, and the end offset; in this order they compare as the voters do.
LogEnd = tuple[int, int]


def majority_of(voter_count: int) -> int:
    """How many voters elect a leader."""
    return voter_count // 2 + 1


def can_lead(ends: Mapping[int, LogEnd], voter_count: int, dead_count: int = 0) -> dict[int, bool | None]:
    """By node id, whether a voter can be elected; None where that depends on voters that are not at hand.

    ``dead_count`` voters are at hand and cannot vote.
    """
    majority, absent = majority_of(voter_count), voter_count - len(ends) - dead_count
    found: dict[int, bool | None] = {}
    for node_id, end in ends.items():
        votes = sum(end >= other for other in ends.values())
        found[node_id] = True if votes >= majority else None if votes + absent >= majority else False
    return found


def held_by_majority(ends: Sequence[int], voter_count: int) -> tuple[int, int]:
    """The offset before which a majority certainly has all records, and before which it may have them.

    ``ends`` has, of each voter at hand, the offset before which its records are those of the longest log.
    """
    ordered, majority = sorted(ends, reverse=True), majority_of(voter_count)
    absent = voter_count - len(ordered)
    certain = ordered[majority - 1] if len(ordered) >= majority else 0
    possible = ordered[max(majority - absent, 1) - 1] if ordered else 0
    return certain, possible


class Member(msgspec.Struct, frozen=True):
    """A node of the quorum by its furthest copy of the metadata log.

    ``is_voter`` is None if the voters are not known, or the node is not: there is no meta.properties beside its copy.
    Before ``shared_end``, its log is that of the best copy.
    """

    copy: MetadataCopy
    is_voter: bool | None
    shared_end: int

    @property
    def node_id(self) -> int:
        return -1 if self.copy.node_id is None else self.copy.node_id

    @property
    def end(self) -> LogEnd:
        return self.copy.end

    @property
    def is_able(self) -> bool:
        """Whether a node starts on the copy, so that it can vote."""
        return not self.copy.refusal


class Quorum(msgspec.Struct, frozen=True):
    """The quorum by the copies at hand; its members come with the furthest log first. ``voters`` None: not known.

    ``best`` is the copy that is compared with, ``state`` its image of the cluster. ``left_out`` are the copies of other
    clusters, those that cannot be read, and those of nodes of which another copy reaches further.
    """

    members: tuple[Member, ...]
    voters: tuple[Voter, ...] | None
    best: BestCopy
    state: MetadataState
    left_out: tuple[MetadataCopy, ...] = ()

    @property
    def is_dynamic(self) -> bool:
        """Whether the voters are in the metadata log, and not in the configuration of the controllers (KIP-853)."""
        return self.best.copy.kraft_version > 0

    @property
    def voting(self) -> dict[int, Member]:
        """The voters at hand, by node."""
        return {each.node_id: each for each in self.members if each.is_voter}

    @property
    def absent(self) -> tuple[int, ...]:
        """The voters whose logs are not at hand."""
        return tuple(each.node_id for each in self.voters or () if each.node_id not in self.voting)

    @property
    def majority(self) -> int:
        """How many voters elect a leader."""
        return majority_of(len(self.voters or ()))

    @property
    def is_intact(self) -> bool | None:
        """Whether a majority of the voters can start and vote; None where that depends on those that are not here."""
        if self.voters is None:
            return None
        able = sum(each.is_able for each in self.voting.values())
        return True if able >= self.majority else None if able + len(self.absent) >= self.majority else False

    @property
    def can_lead(self) -> dict[int, bool | None]:
        """By node, whether a voter at hand can be elected; None where that depends on the absent ones."""
        able = {node: each.end for node, each in self.voting.items() if each.is_able}
        dead = {node: False for node, each in self.voting.items() if not each.is_able}
        return {**can_lead(able, len(self.voters or ()), len(dead)), **dead}

    @property
    def held(self) -> tuple[int, int]:
        """The offset before which a majority certainly has all records of the best copy, and before which it may."""
        ends = [each.shared_end for each in self.voting.values()]
        return held_by_majority(ends, len(self.voters or ()))

    @property
    def committed_end(self) -> int:
        """The offset before which a majority has the records of the best copy, or a snapshot has them.

        A majority's records of an earlier epoch are not committed while another voter has a later epoch without them.
        """
        by_snapshots = [min(each.shared_end, each.copy.committed_end) for each in self.members]
        return max([*by_snapshots, self.held[0]])

    @property
    def overwritten(self) -> list[tuple[Member, int, int]]:
        """The members with committed records that the best copy has not: from an offset, up to an end."""
        return [
            (each, each.shared_end, each.copy.committed_end)
            for each in self.members
            if each.shared_end < each.copy.committed_end
        ]

    def roles_of(self, node_id: int | None) -> tuple[str, ...]:
        """The roles of a node by the metadata: broker, controller, or both; none where it does not name the node."""
        image = self.state.image
        voters = {each.node_id for each in self.voters or ()}
        roles = {"broker": image.brokers, "controller": {*image.controllers, *voters}}
        return tuple(role for role, nodes in roles.items() if node_id in nodes)


def read_quorum(targets: Iterable[Target], limits: Limits = DEFAULT_LIMITS) -> Quorum:
    """The quorum by all copies of the metadata log at or below some paths. Raises InputError if there is none."""
    return quorum_of(read_metadata_copies(targets, limits), limits)


def quorum_of(
    copies: Sequence[MetadataCopy], limits: Limits = DEFAULT_LIMITS, chosen: BestCopy | None = None
) -> Quorum:
    """The quorum by some copies, without those of other clusters than most; of a node, its furthest copy counts.

    ``chosen`` is the copy to compare with, None for the best one. A node whose copy cannot be read counts as absent.
    Raises UnreadableFile if none can be read.
    """
    readable = [each for each in copies if not each.unread]
    if chosen is None and not readable:
        raise UnreadableFile(copies[0].unread, Location(str(copies[0].path)))
    best = chosen or best_copy(readable)
    state = state_of_copy(best.copy, limits)
    of_nodes: dict[object, MetadataCopy] = {}
    for each in (best.copy, *sorted(readable, key=lambda each: (each.is_usable, each.end), reverse=True)):
        if None in (each.cluster_id, best.copy.cluster_id) or each.cluster_id == best.copy.cluster_id:
            of_nodes.setdefault(each.path if each.node_id is None else each.node_id, each)
    voters = _voters(list(of_nodes.values()), state)
    return Quorum(
        tuple(
            Member(each, _votes(each, voters), each.epochs.truncated_by(best.copy.epochs)) for each in of_nodes.values()
        ),
        voters,
        best,
        state,
        tuple(each for each in copies if all(each is not kept for kept in of_nodes.values())),
    )


def _voters(copies: Sequence[MetadataCopy], state: MetadataState) -> tuple[Voter, ...] | None:
    """The voters by the copies, the best first; where none names them, the controllers that have registered."""
    registered = {
        node_id: Voter(node_id, None, tuple((each["name"], each["host"], each["port"]) for each in data["endPoints"]))
        for node_id, data in sorted(state.image.controllers.items())
    }
    named = next((each.voters for each in copies if each.voters is not None), None)
    if named is None:
        return tuple(registered.values()) or None
    return tuple(each if each.endpoints else registered.get(each.node_id, each) for each in named)


def _votes(copy: MetadataCopy, voters: tuple[Voter, ...] | None) -> bool | None:
    """Whether the node of a copy votes. One whose directory has another id than the voter set says only observes."""
    if voters is None or copy.node_id is None:
        return None
    expected = next((each for each in voters if each.node_id == copy.node_id), None)
    if expected is None or None in (expected.directory_id, copy.directory_id):
        return expected is not None
    return canonical_uuid(str(expected.directory_id)) == canonical_uuid(str(copy.directory_id))
