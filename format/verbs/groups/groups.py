"""groups: read the coordinators' logs into the state of all groups."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import msgspec

from format.findings import Finding
from format.internal_topics.group_replay import REPLAY_CODES, GroupReplay
from format.limits import DEFAULT_LIMITS, Limits
from format.location import Location
from format.node.log_dir import Kind, TopicPartition
from format.node.target import Target
from format.scan.cost import size_of
from format.scan.drivers import scan_logs
from format.scan.progress import Advance, no_progress
from format.scan.protocol import LogUnit
from format.state.groups import GroupStates
from format.verbs.groups.coordinators import OFFSETS_TOPIC, Coordinators
from format.verbs.groups.group_list import GroupList
from format.verbs.groups.replicas import Replicas, find_replicas
from format.verbs.groups.scan import GroupsScan, LogChanges, LogRecords
from format.verbs.groups.terms import Narrowing, Read
from format.wording import counted

if TYPE_CHECKING:
    from format.state.cluster_context import ClusterContext


class GroupTerms(msgspec.Struct, frozen=True):
    """The options of a run. ``until``: the state as of that time, without records that have a later timestamp."""

    narrowing: Narrowing = msgspec.field(default_factory=Narrowing)
    until: int | None = None
    with_history: bool = False
    limits: Limits = DEFAULT_LIMITS


class GroupsReading:
    """The coordinators' logs at some paths while they are read; afterwards the list of groups."""

    def __init__(self, targets: Sequence[Target], terms: GroupTerms, context: ClusterContext | None = None) -> None:
        """Find the logs. Raises InputError for a path that holds none.

        ``context``: that of the same paths, if it was read before.
        """
        self._terms = terms
        self._context = context
        self._targets = targets
        self.replicas: Replicas = find_replicas(targets, terms.limits)
        self._states = GroupStates()
        self._partitions: dict[TopicPartition, int] = {}
        self._paths: dict[str, int] = {}
        self._unread: set[str] = set()
        self._replays: dict[TopicPartition, GroupReplay] = {}
        places = [
            log.location for log in self.replicas.logs if isinstance(log, LogUnit) and not log.location.base_offset
        ]
        self._from_start = {(each.topic or OFFSETS_TOPIC, each.partition or 0) for each in places}

    def topics(self) -> set[str]:
        """The topics of the partitions at the paths."""
        return {each.topic for target in self._targets for each in target.partitions() if each.topic is not None}

    def read(self, *, jobs: int = 1, advance: Advance = no_progress) -> Iterator[LogRecords | Finding]:
        """Read everything; yields findings, and the records of each table for callers that need their history."""
        terms = self._terms
        scan = GroupsScan(terms.until, terms.with_history, terms.limits)
        for item in scan_logs(scan, self.replicas.logs, jobs=jobs, advance=advance):
            if isinstance(item, LogRecords):
                place = item.log.location
                key = (place.topic or OFFSETS_TOPIC, place.partition or 0)
                partition = self._partitions.setdefault(key, len(self._partitions))
                log = self._paths.setdefault(str(item.log.path), len(self._paths))
                self._states.take(item.records, partition, log)
            elif isinstance(item, LogChanges):
                yield from self._replay_of(item.log.location).feed(item.changes, item.log.location)
                continue
            else:
                self._note_unread(item)
            yield item

    def _replay_of(self, place: Location) -> GroupReplay:
        """The replay of a partition; one whose first log is not there from offset 0 judges nothing."""
        key = (place.topic or OFFSETS_TOPIC, place.partition or 0)
        replay = self._replays.get(key)
        if replay is None:
            replay = self._replays[key] = GroupReplay()
            if key not in self._from_start:
                replay.stop()
        return replay

    def _note_unread(self, found: Finding) -> None:
        """What cannot be read of a log is missing from the replay of its partition."""
        if found.location.partition is not None and found.code not in REPLAY_CODES:
            self._replay_of(found.location).stop()
        if found.code == "file-unreadable":
            self._unread.add(found.location.path)

    @property
    def unread_count(self) -> int:
        """How many logs could not be read, or not to their end. In a bundle without names that is all of them."""
        return len(self._unread)

    @property
    def size_bytes(self) -> int:
        """The bytes to read, for a progress bar."""
        return sum(size_of(log.path) for log in self.replicas.logs if isinstance(log, LogUnit))

    @cached_property
    def coordinators(self) -> Coordinators:
        """The partitions of __consumer_offsets at the paths, and their number from the metadata log there."""
        from format.state.cluster_context import ContextTerms, read_context  # it imports much, and few runs need it

        places = [log.location for log in self.replicas.logs if isinstance(log, LogUnit)]
        read = frozenset(
            each.partition for each in places if each.topic == OFFSETS_TOPIC and each.partition is not None
        )
        context = self._context or read_context(self._targets, ContextTerms(limits=self._terms.limits))
        image = context.image
        return Coordinators(read, None if image is None else image.partition_count(OFFSETS_TOPIC) or None)

    def not_checked(self, found: GroupList) -> list[str]:
        """Notes about what is missing from the answer."""
        words = []
        if not self.replicas.has_coordinators:
            words.append("there is no log of __consumer_offsets or __share_group_state at the paths")
        elif self._asks_for_all and self.coordinators.missing:
            words.append(self.coordinators.not_read())
        if self.replicas.left_out:
            (left, chosen), count = self.replicas.left_out[0], len(self.replicas.left_out)
            words.append(
                f"{counted(count, 'replica')} of coordinator partitions that end no later than "
                f"the one that was read, such as {left.path} beside {chosen.path}"
            )
        unknown = found.overview().unknown_count
        if unknown:
            words.append(f"the lag on {counted(unknown, 'committed partition')}: not at the paths")
        return words

    @property
    def _asks_for_all(self) -> bool:
        """Whether all groups of some log directories are asked for, rather than those of chosen partitions."""
        return any(target.kind is Kind.LOG_DIR for target in self._targets)

    def groups(self) -> GroupList:
        """The groups after everything was read."""
        terms = self._terms
        self._states.complete()
        read = Read(
            self._states,
            list(self._partitions),
            list(self._paths),
            self.replicas,
            until=terms.until,
            limits=terms.limits,
        )
        return GroupList(read, terms.narrowing)
