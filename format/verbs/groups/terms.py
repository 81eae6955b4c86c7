"""The options of groups, and the data that was read for the answer."""

from __future__ import annotations

from collections.abc import Sequence

from format.limits import DEFAULT_LIMITS, Limits
from format.node.checkpoints import TopicPartition
from format.state.groups import GroupStates
from format.value_class import value_class
from format.verbs.groups.replicas import Replicas


@value_class
class Narrowing:
    """The groups and topics to list; empty for all."""

    groups: frozenset[str] = frozenset()
    topics: frozenset[str] = frozenset()


@value_class
class Read:
    """What was read: the state, the coordinators' partitions and the logs by their numbers, and the other partitions.

    ``until`` is the time of the state, None for the present.
    """

    states: GroupStates
    partitions: Sequence[TopicPartition]
    paths: Sequence[str]
    replicas: Replicas
    until: int | None = None
    limits: Limits = DEFAULT_LIMITS
