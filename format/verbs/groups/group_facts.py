"""The facts of each group from its latest records: protocol, state, generation and members, as columns."""

from __future__ import annotations

import msgspec
import numpy as np
from numpy.typing import NDArray

from format.log.batch_table import Int64Column
from format.state.groups import GroupStates

#: Protocols by number. The tuples below have a record type for each of them.
PROTOCOLS = ("classic", "consumer", "share", "streams")
CLASSIC, CONSUMER, SHARE, STREAMS = range(len(PROTOCOLS))
_CLASSIC_GROUP = 2
_EPOCH_TYPES = (_CLASSIC_GROUP, 3, 11, 17)
_MEMBER_TYPES = (None, 5, 10, 19)
_TARGET_TYPES = (None, 6, 12, 20)
_CURRENT_TYPES = (None, 8, 14, 22)
_TOPOLOGY_TYPE = 23
#: MemberState.STABLE: the member has its target assignment, and nothing to revoke.
_MEMBER_IS_STABLE = 0


class Keys(msgspec.Struct, frozen=True):
    """The keys of the state as columns; ``is_live`` marks those with a value that is not deleted or pending."""

    group: NDArray[np.int32]
    name: NDArray[np.int32]  # -1: none
    type: NDArray[np.int16]
    partition: NDArray[np.int32]
    is_live: NDArray[np.bool_]

    @classmethod
    def of(cls, states: GroupStates) -> Keys:
        names, rest = states.keys[:, 0], states.keys[:, 1]
        is_live = (states.latest("record_offset") >= 0) & (states.latest("place") & 1 == 0)
        return cls(
            (names >> 32).astype(np.int32),
            names.astype(np.int32),
            (rest >> 32).astype(np.int16),
            rest.astype(np.int32),
            is_live,
        )


class GroupFacts(msgspec.Struct, frozen=True):
    """One value for each name of the state. ``protocol`` is -1 where the group has no record of its own.

    ``leader_key`` is the key whose text is the leader, -1 for none.
    """

    protocol: Int64Column
    is_live: NDArray[np.bool_]
    generation: Int64Column
    member_count: Int64Column
    leader_key: Int64Column
    state: list[str]


def group_facts(states: GroupStates, keys: Keys) -> GroupFacts:
    """The facts of each name.

    Sources: ClassicGroup, ConsumerGroup, ShareGroup, StreamsGroup (maybeUpdateGroupState).
    """
    count = len(states.names)
    record_offset, number_of, detail_of = (states.latest(name) for name in ("record_offset", "number", "detail"))
    protocol, newest = np.full(count, -1), np.full(count, -1)
    is_live = np.zeros(count, bool)
    epoch, detail = np.full(count, -1), np.full(count, -1)
    leader_key = np.full(count, -1)
    for only_live in (False, True):
        for number, record_type in enumerate(_EPOCH_TYPES):
            rows = np.flatnonzero((keys.type == record_type) & (keys.is_live if only_live else True))
            group, offset = keys.group[rows], record_offset[rows]
            better = (offset > newest[group]) | (only_live & ~is_live[group])
            rows, group = rows[better], group[better]
            protocol[group] = number
            newest[group] = record_offset[rows]
            is_live[group] = only_live
            epoch[group], detail[group] = number_of[rows], detail_of[rows]
            leader_key[group] = rows if record_type == _CLASSIC_GROUP else -1
    members = np.where((protocol == CLASSIC) & is_live, np.maximum(detail, 0), 0)
    target, topology = np.full(count, -1), np.full(count, -1)
    is_moving = np.zeros(count, bool)
    for number in (CONSUMER, SHARE, STREAMS):
        is_its = (protocol == number) & is_live
        counted = np.bincount(keys.group[_live_rows(keys, _MEMBER_TYPES[number])], minlength=count)
        members = np.where(is_its, counted, members)
        rows = _live_rows(keys, _TARGET_TYPES[number])
        rows = rows[is_its[keys.group[rows]]]
        target[keys.group[rows]] = number_of[rows]
        rows = _live_rows(keys, _CURRENT_TYPES[number])
        rows = rows[is_its[keys.group[rows]]]
        moving = detail_of[rows] != _MEMBER_IS_STABLE
        moving |= number_of[rows] != target[keys.group[rows]]
        is_moving[keys.group[rows[moving]]] = True
    rows = _live_rows(keys, _TOPOLOGY_TYPE)
    topology[keys.group[rows]] = number_of[rows]
    state = np.full(count, "Stable", object)
    is_grown = np.isin(protocol, (CONSUMER, STREAMS))
    state[is_grown & is_moving] = "Reconciling"
    state[is_grown & (epoch > target)] = "Assigning"
    state[(protocol == STREAMS) & (topology != detail)] = "NotReady"
    state[members == 0] = "Empty"
    return GroupFacts(protocol, is_live, epoch, members, leader_key, state.tolist())


def _live_rows(keys: Keys, record_type: int | None) -> NDArray[np.intp]:
    return np.flatnonzero(keys.is_live & (keys.type == record_type))
