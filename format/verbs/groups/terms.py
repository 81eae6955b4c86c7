"""The options of groups, and the data that was read for the answer."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from format.limits import DEFAULT_LIMITS, Limits
from format.node.log_dir import TopicPartition
from format.state.groups import GroupStates
from format.verbs.groups.replicas import Replicas


class Narrowing(msgspec.Struct, frozen=True):
    """The groups and topics to list; empty for all."""

    groups: frozenset[str] = frozenset()
    topics: frozenset[str] = frozenset()


class Read(msgspec.Struct, frozen=True):
    """What was read: the state, the coordinators' partitions and the logs by their numbers, and the other partitions.

    ``until`` is the time of the state, None for the present.
    """

    states: GroupStates
    partitions: Sequence[TopicPartition]
    paths: Sequence[str]
    replicas: Replicas
    until: int | None = None
    limits: Limits = DEFAULT_LIMITS
