"""The list of groups, made from the state of groups and their offsets, and the answer in sentences."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from format.columns import GROUP, GROUP_OFFSET
from format.internal_topics.decoder import decoder_for
from format.layout import CONSUMER_OFFSETS_TOPIC
from format.limits import DEFAULT_LIMITS, Limits
from format.log.batch_table import Int64Column
from format.node.log_dir import TopicPartition
from format.sorted_values import distinct_values
from format.state.groups import (
    LATEST,
    OFFSET_COMMIT,
    SHARE_DELIVERED,
    SHARE_START,
    TOTAL_COLUMNS,
    DistinctRows,
    GroupStates,
    PendingCommit,
)
from format.timestamps import DAY_MS, iso_time
from format.verbs.groups.replicas import CoordinatorReplicas
from format.wording import counted, duration, listed


class GroupSelection(msgspec.Struct, frozen=True):
    """The groups and topics to list; empty for all."""

    groups: frozenset[str] = frozenset()
    topics: frozenset[str] = frozenset()


class GroupTerms(msgspec.Struct, frozen=True):
    """The options of a run. ``until``: the state as of that time, without records that have a later timestamp."""

    narrowing: GroupSelection = GroupSelection()
    until: int | None = None
    with_history: bool = False
    limits: Limits = DEFAULT_LIMITS


class Read(msgspec.Struct):
    """What was read: the state, the numbers of the coordinators' partitions and of the logs, and the partitions."""

    terms: GroupTerms
    replicas: CoordinatorReplicas
    states: GroupStates = msgspec.field(default_factory=GroupStates)
    partitions: dict[TopicPartition, int] = msgspec.field(default_factory=dict)
    paths: dict[str, int] = msgspec.field(default_factory=dict)


#: Protocols by number. The tuples below have a record type for each of them.
PROTOCOLS = ("classic", "consumer", "share", "streams")
CLASSIC, CONSUMER, SHARE, STREAMS = range(len(PROTOCOLS))
_CLASSIC_GROUP = 2
_EPOCH_TYPES = (_CLASSIC_GROUP, 3, 11, 17)
_MEMBER_TYPES = (None, 5, 10, 19)
_TARGET_TYPES = (None, 6, 12, 20)
_CURRENT_TYPES = (None, 8, 14, 22)
_TOPOLOGY_TYPE = 23
#: MemberState.STABLE: the member has its target assignment, and nothing to revoke. That of streams groups begins at 1.
_MEMBER_IS_STABLE = (None, 0, 0, 1)


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
        rows = _live_rows(keys, _TARGET_TYPES[number], is_its)
        target[keys.group[rows]] = number_of[rows]
        rows = _live_rows(keys, _CURRENT_TYPES[number], is_its)
        moving = detail_of[rows] != _MEMBER_IS_STABLE[number]
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


def _live_rows(keys: Keys, record_type: int | None, of_groups: NDArray[np.bool_] | None = None) -> NDArray[np.intp]:
    rows = np.flatnonzero(keys.is_live & (keys.type == record_type))
    return rows if of_groups is None else rows[of_groups[keys.group[rows]]]


_SHARE_TOPICS = 15  # the record type with the names of the topics of a share group
_UNKNOWN = -1  # stands for an unknown number in columns
#: Where an offset is that is outside the log: the values of ``group_offset``'s ``out_of_range``.
_OUT_OF_RANGE = (None, "past_log_end", "before_log_start")
_PAST_LOG_END, _BEFORE_LOG_START = 1, 2
_BLOCK_ROWS = 4096
_SHOWN = ("record_offset", "position", "number", "detail", "timestamp", "place")


class OffsetList:
    """Offsets by group, topic and partition: the rows of group_offset, sorted, in columns.

    ``key`` is a row of the state's keys, ``owner`` the name under which the group is listed, ``log`` a row of
    ``bounds``: log ends, high watermarks and log starts. A lag is below 0 where the offset is past the log end, and has
    a meaning where ``has_lag``. ``outside`` is a number of _OUT_OF_RANGE. ``is_committed`` is False where there is only
    a pending offset.
    """

    def __init__(self, read: Read, keys: Keys, owner_of: Int64Column) -> None:
        states, narrowing = read.states, read.terms.narrowing
        self._read, self._keys, self._states = read, keys, states
        self._paths = list(read.paths)
        self._of_offsets = [topic == CONSUMER_OFFSETS_TOPIC for topic, _ in read.partitions]
        self.pending: dict[int, PendingCommit] = {}
        for commit in states.pending():
            known = self.pending.get(commit.key)
            if known is None or commit.values[LATEST["record_offset"]] > known.values[LATEST["record_offset"]]:
                self.pending[commit.key] = commit
        is_listed = keys.is_live & ((keys.type == OFFSET_COMMIT) | (keys.type == SHARE_START))
        is_listed[list(self.pending)] = True
        rows = np.flatnonzero(is_listed).astype(np.int32)
        owner = owner_of[keys.group[rows]].astype(np.int32)
        self._topics = topics = self._topic_names(distinct_values(keys.name[rows]))
        is_wanted = np.ones(len(rows), bool)
        if narrowing.groups:
            names = distinct_values(owner).tolist()
            is_wanted &= np.isin(owner, [name for name in names if text_of(states.names[name]) in narrowing.groups])
        if narrowing.topics:
            names = [name for name, topic in topics.items() if topic in narrowing.topics]
            is_wanted &= np.isin(keys.name[rows], names)
        rows, owner = rows[is_wanted], owner[is_wanted]
        group_rank = _ranks(
            owner, lambda name: (states.names[name], int(states.partition_of_name[name])), len(states.names)
        )
        topic_rank = _ranks(keys.name[rows], topics.__getitem__, len(states.names))
        order = np.lexsort((keys.partition[rows], topic_rank, group_rank))
        self.key, self.owner = rows, owner = rows[order], owner[order]
        del order, group_rank, topic_rank, is_wanted
        self.log, self.bounds = self._log_bounds(rows)
        log_end, log_start = self.bounds[self.log, 0], self.bounds[self.log, 2]
        self.is_committed, is_share = keys.is_live[rows], keys.type[rows] == SHARE_START
        offset = states.latest("number")[rows]
        self.has_lag = (log_end != _UNKNOWN) & self.is_committed
        self.lag = log_end - offset
        for row, delivered in self._delivered():
            self.lag[row] -= delivered
        if read.terms.until is not None:
            self.has_lag &= is_share | (self.lag >= 0) | self._is_in_log_now(rows, offset)
        # The log end of a time in the past is an estimate, which a commit may be ahead of.
        may_be_past_end = ~is_share if read.terms.until is None else np.zeros(len(rows), np.bool_)
        np.maximum(self.lag, 0, out=self.lag, where=~may_be_past_end)
        self.outside = np.zeros(len(rows), np.int8)
        self.outside[(offset < log_start) & self.is_committed & ~is_share] = _BEFORE_LOG_START
        self.outside[self.has_lag & (self.lag < 0)] = _PAST_LOG_END

    def _is_in_log_now(self, rows: NDArray[np.int32], offset: Int64Column) -> NDArray[np.bool_]:
        """Which committed offsets the logs reach by now: one that they do not was past the end at an earlier time, too.

        Only those with a lag below 0 are looked up.
        """
        found = np.zeros(len(rows), np.bool_)
        replicas, limits = self._read.replicas, self._read.terms.limits
        for row in np.flatnonzero(self.has_lag & (self.lag < 0)).tolist():
            key = self._topics[int(self._keys.name[rows[row]])], int(self._keys.partition[rows[row]])
            end = replicas.log_bounds(key, limits).log_end_offset
            found[row] = end is not None and offset[row] <= end
        replicas.has_unknown_past |= bool((self.has_lag & (self.lag < 0) & ~found).any())
        return found

    def _topic_names(self, names: NDArray[np.int32]) -> dict[int, str]:
        """The topics of some names of the state, in which a share group's topic is an id."""
        texts = {}
        partitions = self._states.partition_of_name
        ids: dict[str, str] | None = None
        for name in names.tolist():
            raw = self._states.names[name]
            if self._of_offsets[int(partitions[name])]:
                texts[name] = text_of(raw)
                continue
            if ids is None:
                ids = {**self._read.replicas.topic_names(), **self._share_topics()}
            topic_id = base64.urlsafe_b64encode(raw).rstrip(b"=").decode()
            texts[name] = ids.get(topic_id, topic_id)
        return texts

    def _share_topics(self) -> dict[str, str]:
        """The names of share groups' topics by their ids, from the groups' own records."""
        keys = np.flatnonzero(self._keys.is_live & (self._keys.type == _SHARE_TOPICS)).tolist()
        found: dict[str, str] = {}
        decoder = decoder_for(CONSUMER_OFFSETS_TOPIC)
        for key in keys:
            group = self._states.names[int(self._keys.group[key])]
            record_key = decoder.decode_key(_SHARE_TOPICS.to_bytes(2, "big") + len(group).to_bytes(2, "big") + group)
            data = decoder.decode_value(record_key, self._states.texts.get(key)).data or {}
            for kind in ("initializingTopics", "initializedTopics", "deletingTopics"):
                found.update({topic["topicId"]: topic["topicName"] for topic in data.get(kind, ())})
        return found

    def place(self, row: int) -> str:
        """The topic and partition of a row, such as "orders-3"."""
        key = self.key[row]
        return f"{self._topics[int(self._keys.name[key])]}-{int(self._keys.partition[key])}"

    def _log_bounds(self, rows: NDArray[np.int32]) -> tuple[NDArray[np.int32], Int64Column]:
        """A row of bounds for each row, and the bounds: log end, high watermark and log start, or _UNKNOWN."""
        pairs = DistinctRows(2)
        numbers = np.empty(len(rows), np.int32)
        for first in range(0, len(rows), _BLOCK_ROWS):
            block = rows[first : first + _BLOCK_ROWS]
            columns = (self._keys.name[block].astype(np.int64), self._keys.partition[block].astype(np.int64))
            numbers[first : first + len(block)] = pairs.numbers_of(np.stack(columns, axis=1))
        terms, replicas = self._read.terms, self._read.replicas
        found = np.full((len(pairs), 3), _UNKNOWN)
        for number, (name, partition) in enumerate(pairs.rows.tolist()):
            bounds = replicas.log_bounds((self._topics[name], partition), terms.limits, terms.until)
            found[number] = [_UNKNOWN if each is None else each for each in bounds]
        return numbers, found

    def _delivered(self) -> Iterator[tuple[int, int]]:
        """The number of records that share groups have delivered past their start offset, by row."""
        keys, expires = self._keys, self._states.expires
        share = np.flatnonzero(keys.type[self.key] == SHARE_START)
        if len(share):
            others = np.flatnonzero(keys.is_live & (keys.type == SHARE_DELIVERED)).tolist()
            places = {(int(keys.group[key]), int(keys.name[key]), int(keys.partition[key])): key for key in others}
            for row in share.tolist():
                key = int(self.key[row])
                other = places.get((int(keys.group[key]), int(keys.name[key]), int(keys.partition[key])))
                if other in expires:
                    yield row, expires[other]

    def rows(self) -> Iterator[tuple[Any, ...]]:
        keys, states = self._keys, self._states
        group, text = -1, ""
        for first in range(0, len(self.key), _BLOCK_ROWS):
            block = slice(first, first + _BLOCK_ROWS)
            key = self.key[block]
            columns = zip(
                key.tolist(),
                self.owner[block].tolist(),
                keys.name[key].tolist(),
                keys.partition[key].tolist(),
                self.is_committed[block].tolist(),
                zip(*(states.latest(column)[key].tolist() for column in _SHOWN), strict=True),
                self.bounds[self.log[block]].tolist(),
                self.lag[block].tolist(),
                self.has_lag[block].tolist(),
                self.outside[block].tolist(),
                (keys.type[key] == SHARE_START).tolist(),
                strict=True,
            )
            for each, owner, name, partition, is_committed, values, bounds, lag, has_lag, outside, is_share in columns:
                if owner != group:
                    group, text = owner, text_of(states.names[owner])
                pending = self.pending.get(each)
                if not is_committed and pending is not None:
                    values = tuple(pending.values[LATEST[column]] for column in _SHOWN)
                record_offset, position, offset, epoch, timestamp, place = values
                metadata = None if is_share or not is_committed else text_of(states.texts.get(each, b""))
                yield (
                    text,
                    self._topics[name],
                    partition,
                    offset if is_committed else None,
                    None if epoch < 0 or not is_committed else epoch,
                    metadata,
                    timestamp if is_committed else None,
                    states.expires.get(each) if is_committed and not is_share else None,
                    None if bounds[0] == _UNKNOWN else bounds[0],
                    None if bounds[1] == _UNKNOWN else bounds[1],
                    lag if has_lag else None,
                    _OUT_OF_RANGE[outside],
                    None if pending is None else pending.values[LATEST["number"]],
                    None if pending is None else pending.producer_id,
                    self._paths[place >> 1],
                    position,
                    record_offset,
                )


def text_of(raw: bytes) -> str:
    """A name or text of the state; bytes that are not UTF-8 are replaced."""
    return raw.decode("utf-8", "replace")


def _ranks(names: NDArray[np.int32], order_of: Any, count: int) -> NDArray[np.int32]:
    """The rank of each name in the order of its ``order_of`` value."""
    distinct = sorted(distinct_values(names).tolist(), key=order_of)
    ranks = np.zeros(count, np.int32)
    ranks[distinct] = np.arange(len(distinct))
    found: NDArray[np.int32] = ranks[names]
    return found


_GROUP_COLUMN = {name: number for number, name in enumerate(GROUP.names)}
_OFFSET_COLUMN = {name: number for number, name in enumerate(GROUP_OFFSET.names)}


def group_gravity(row: tuple[Any, ...]) -> tuple[bool, int]:
    """A key that sorts rows of columns.GROUP: offsets out of range first, then the largest lag."""
    return not row[_GROUP_COLUMN["partitions_out_of_range"]], -(row[_GROUP_COLUMN["total_lag"]] or 0)


def offset_gravity(row: tuple[Any, ...]) -> tuple[bool, int]:
    """A key that sorts rows of columns.GROUP_OFFSET: those out of range first, then the largest lag."""
    return row[_OFFSET_COLUMN["out_of_range"]] is None, -(row[_OFFSET_COLUMN["lag"]] or 0)


def is_up_to_date(row: tuple[Any, ...]) -> bool:
    """Whether the lag of a row of columns.GROUP_OFFSET is known to be 0, and no transaction commits another offset."""
    is_odd = row[_OFFSET_COLUMN["out_of_range"]] is not None or row[_OFFSET_COLUMN["pending_offset"]] is not None
    return row[_OFFSET_COLUMN["lag"]] == 0 and not is_odd


_TOTAL = {name: number for number, name in enumerate(TOTAL_COLUMNS)}
#: How many of the groups with the most bytes are named.
_MOST_LARGE = 3
_MS_PER_HOUR = 3_600_000
#: A coordinator's partition is unusual if it is so large, so many times as large as any other, and one group's share of
#: its records is so high.
_LARGE_BYTES = 1_000_000
_TIMES_AS_LARGE = 10
_MOST_OF_THEM = 0.9
#: The most deleted groups that get a sentence.
_MOST_DELETED = 3


class GroupList:
    """Groups by name, and their offsets by topic and partition.

    ``group_count`` counts the listed groups without those that are dead, ``unknown_count`` the committed partitions of
    all listed ones whose lag is not known. ``has_coordinator_of`` says whether the partition of __consumer_offsets that
    holds a group was read: without it the state of a share group is not known.
    """

    def __init__(self, read: Read, has_coordinator_of: Callable[[str], bool] = lambda _: True) -> None:
        self._has_coordinator_of = has_coordinator_of
        self._states = states = read.states
        self._keys = Keys.of(states)
        self._facts = group_facts(states, self._keys)
        self._partitions = list(read.partitions)
        self._places = read.partitions
        self._coordinator_bytes = {} if read.terms.until is not None else read.replicas.coordinator_bytes()
        self._totals = states.totals.copy()
        self._is_group = self._totals[:, _TOTAL["record_count"]] > 0
        of_offsets = np.array([topic == CONSUMER_OFFSETS_TOPIC for topic, _ in read.partitions], bool)
        self._in_consumer_offsets: NDArray[np.bool_] = of_offsets[states.partition_of_name]
        owner = self._owners()
        offsets = self._offsets = OffsetList(read, self._keys, owner)
        names, narrowing = distinct_values(owner[self._is_group]).tolist(), read.terms.narrowing
        if narrowing.groups:
            names = [name for name in names if text_of(states.names[name]) in narrowing.groups]
        if narrowing.topics:
            with_offsets = set(offsets.owner.tolist())
            names = [name for name in names if name in with_offsets]
        self._groups = sorted(names, key=lambda name: (states.names[name], int(states.partition_of_name[name])))
        count = len(states.names)
        self._committed = np.bincount(offsets.owner[offsets.is_committed], minlength=count)
        self._known = np.bincount(offsets.owner[offsets.has_lag], minlength=count)
        self._outside = np.bincount(offsets.owner[offsets.outside > 0], minlength=count)
        is_pending = np.isin(offsets.key, list(offsets.pending))
        self._pending = np.bincount(offsets.owner[is_pending], minlength=count)
        self._lag = np.zeros(count, np.int64)
        np.add.at(self._lag, offsets.owner[offsets.has_lag], np.maximum(offsets.lag[offsets.has_lag], 0))
        self._listed = np.array(self._groups, np.int64)
        self._deleted = np.full(count, -1)
        tombstones = np.flatnonzero((states.latest("record_offset") >= 0) & (states.latest("place") & 1 == 1))
        np.maximum.at(self._deleted, self._keys.group[tombstones], states.latest("timestamp")[tombstones])
        self._is_live = is_live = self._facts.is_live | (self._committed > 0) | (self._pending > 0)
        self.group_count = int(is_live[self._listed].sum())
        self.dead_count = len(self._groups) - self.group_count
        self.unknown_count = int((self._committed - self._known)[self._listed].sum())

    def _owners(self) -> Int64Column:
        """The name under which the group of each name is listed: its name in __consumer_offsets, if it is there.

        The totals of its other name are added to those of that one.
        """
        names, totals = self._states.names, self._totals
        owner = np.arange(len(names))
        in_share_state = np.flatnonzero(self._is_group & ~self._in_consumer_offsets).tolist()
        if in_share_state:
            known = {names[name]: name for name in np.flatnonzero(self._is_group & self._in_consumer_offsets).tolist()}
            for name in in_share_state:
                owner[name] = known.get(names[name], name)
                if owner[name] != name:
                    totals[owner[name], 1:4] += totals[name, 1:4]
        return owner

    def __len__(self) -> int:
        return len(self._groups)

    def names(self) -> list[str]:
        """The names of all groups that were found, listed or not, in order."""
        names = self._states.names
        return sorted({text_of(names[name]) for name in np.flatnonzero(self._is_group).tolist()})

    def group_rows(self) -> Iterator[tuple[Any, ...]]:
        """Rows of ``columns.GROUP``."""
        states, facts = self._states, self._facts
        for name in self._groups:
            _, records, size_bytes, commits, first, last = self._totals[name].tolist()
            topic, partition = self._partitions[int(states.partition_of_name[name])]
            committed, known, pending = int(self._committed[name]), int(self._known[name]), int(self._pending[name])
            protocol, state = self._protocol_and_state(name, committed, pending)
            is_live = bool(facts.is_live[name])
            leader = states.texts.get(int(facts.leader_key[name])) if is_live else None
            is_known = self._in_consumer_offsets[name] or self._has_coordinator_of(text_of(states.names[name]))
            hours = (last - first) / _MS_PER_HOUR
            yield (
                text_of(states.names[name]),
                protocol,
                state if is_known else None,
                int(facts.generation[name]) if is_live else None,
                int(facts.member_count[name]) if is_known else None,
                None if leader is None else text_of(leader),
                committed,
                int(self._lag[name]) if known else None,
                committed - known,
                int(self._outside[name]),
                pending,
                last if commits else None,
                commits,
                round((commits - 1) / hours) if commits > 1 and hours > 0 else None,
                records,
                size_bytes,
                partition if topic == CONSUMER_OFFSETS_TOPIC else None,
                self._deleted_ms(name) if state == "Dead" else None,
            )

    def _protocol_and_state(self, name: int, committed: int, pending: int) -> tuple[str, str]:
        facts = self._facts
        number = int(facts.protocol[name])
        if facts.is_live[name]:
            return PROTOCOLS[number], facts.state[name]
        if not self._in_consumer_offsets[name]:
            return PROTOCOLS[SHARE], "Empty" if committed else "Dead"
        if committed or pending:  # of a consumer that is in no group, or of an expired group
            return PROTOCOLS[CLASSIC], "Empty"
        return PROTOCOLS[number if number >= 0 else CLASSIC], "Dead"

    def offset_rows(self) -> Iterator[tuple[Any, ...]]:
        """Rows of ``columns.GROUP_OFFSET``."""
        return self._offsets.rows()

    @property
    def offset_count(self) -> int:
        """The number of rows of ``offset_rows``."""
        return len(self._offsets.key)

    def sentences(self) -> str:
        """The answer about the listed groups: offsets out of range, lag, pending commits, and the largest groups.

        - "made 150,750 of 150,759 commits": the group has most records of a partition of __consumer_offsets, which is
          many times as large as any other here.
        - "none is behind": the lag on every committed partition is known, and 0 on each. Where it is known for some
          only, "none is behind" is said of these.
        - "Of 3 other groups none is behind": so is the lag of these.
        """
        if not self.group_count:
            return " ".join(self._deletion_words()) or "There is no group."
        pending = int(self._pending[self._listed].sum())
        wait = "waits" if pending == 1 else "wait"
        open_commits = f"{counted(pending, 'offset')} {wait} for a transaction that has not ended." if pending else ""
        largest = self._filling_words() or self._largest_words()
        words = (self._out_of_range_words(), self._lag_words(), open_commits, largest)
        return " ".join((*(each for each in words if each), *self._deletion_words()))

    def _deleted_ms(self, name: int) -> int | None:
        """When a dead group was deleted, by its last tombstone; None for none."""
        deleted = int(self._deleted[name])
        return None if deleted < 0 else deleted

    def _dead(self) -> list[tuple[int, int]]:
        """The listed groups that were deleted, and when: the last one first."""
        dead = [(name, int(self._deleted[name])) for name in self._groups if not self._is_live[name]]
        return sorted((each for each in dead if each[1] >= 0), key=lambda each: -each[1])

    def _deletion_words(self) -> Iterator[str]:
        """When the groups were deleted of which there are tombstones, and how many more there are."""
        dead = self._dead()
        if dead and self.group_count:
            name, deleted = dead[0]
            words = f"Group {text_of(self._states.names[name])} was deleted at {iso_time(deleted)}"
            more = len(dead) - 1
            yield words + (f", and {counted(more, 'other group')} before." if more else ".")
            return
        for name, deleted in dead[:_MOST_DELETED]:
            words = f"Group {text_of(self._states.names[name])} was deleted at {iso_time(deleted)}"
            since = deleted - int(self._totals[name, _TOTAL["last_commit"]])
            if self._totals[name, _TOTAL["commit_count"]] and since >= 0:
                words += f", {duration(since)} after its last commit"
                words += ": its offsets may have expired" if since >= DAY_MS else ""
            yield f"{words}."
        if len(dead) > _MOST_DELETED:
            more = len(dead) - _MOST_DELETED
            yield f"{counted(more, 'other group')} {'was' if more == 1 else 'were'} deleted before."

    def deleted_with_offsets(self) -> tuple[str, int] | None:
        """The last deleted group of which commits are left in the log, and the last time at which it had offsets."""
        for name, deleted in self._dead():
            if self._totals[name, _TOTAL["commit_count"]]:
                return text_of(self._states.names[name]), deleted - 1
        return None

    def _lag_words(self) -> str:
        """The group that is the furthest behind, and the partition with the largest share of its lag."""
        lag, committed = self._lag[self._listed], int(self._committed[self._listed].sum())
        known = committed - self.unknown_count
        where = f" on the {counted(known, 'committed partition')} whose lag is known" if self.unknown_count else ""
        if not lag.any():
            what = f"none is behind{where}" if known or not committed else "no lag is known"
            return f"{counted(self.group_count, 'group')}; {what}."
        offsets, name = self._offsets, int(self._listed[lag.argmax()])
        rows = np.flatnonzero((offsets.owner == name) & offsets.has_lag)
        row, total = int(rows[offsets.lag[rows].argmax()]), int(self._lag[name])
        place, most = offsets.place(row), int(offsets.lag[row])
        committed_ms = int(self._states.latest("timestamp")[offsets.key[row]])
        unknown = int(self._committed[name] - self._known[name])
        least = "at least " if unknown else ""
        words = f"Group {text_of(self._states.names[name])} is {least}{counted(total, 'record')} behind"
        words += f" on {place}" if most == total else f", {most:,} of them on {place}"
        words += f"; its last commit there was at {iso_time(committed_ms)}."
        words += f" Its lag on {counted(unknown, 'other partition')} is not known." if unknown else ""
        if self.group_count > 1:
            others = int((lag > 0).sum()) - 1
            if self.group_count == 2:
                other = "is behind, too" if others else f"is not behind{where}"
                return f"{words} The other group {other}."
            words += f" Of {counted(self.group_count - 1, 'other group')} {others or 'none'} "
            words += "is behind, too." if others == 1 else "are behind, too." if others else f"is behind{where}."
        return words

    def _out_of_range_words(self) -> str:
        """The committed offsets outside their logs, at which a broker answers OFFSET_OUT_OF_RANGE.

        The first of them is named; those past the log end come first.
        """
        offsets = self._offsets
        rows = np.flatnonzero(offsets.outside)
        if not len(rows):
            return ""
        row = int(rows[np.argsort(offsets.outside[rows], kind="stable")[0]])
        is_past_end = offsets.outside[row] == _PAST_LOG_END
        log_end, _, log_start = offsets.bounds[offsets.log[row]].tolist()
        bound = f"past the log end {log_end}" if is_past_end else f"before the log start {log_start}"
        group = text_of(self._states.names[int(offsets.owner[row])])
        offset, more = int(self._states.latest("number")[offsets.key[row]]), len(rows) - 1
        words = f"Group {group} has committed offset {offset} on {offsets.place(row)}, {bound} at the paths: "
        words += "a consumer continues where its auto.offset.reset says"
        words += ", unless the leader's log is longer." if is_past_end else "."
        if more:
            words += f" {counted(more, 'other committed offset')} {'is' if more == 1 else 'are'} out of range, too."
        return words

    def _filling_words(self) -> str:
        """The group that made most commits of an unusually large partition of __consumer_offsets, if it is listed."""
        sizes = self._coordinator_bytes
        if len(sizes) < 2:
            return ""
        second, (number, most) = sorted(sizes.items(), key=lambda each: each[1])[-2:]
        if most < max(_LARGE_BYTES, _TIMES_AS_LARGE * second[1]):
            return ""
        totals = np.where((self._is_group & self._in_consumer_offsets)[:, None], self._totals, 0)
        place = self._places.get((CONSUMER_OFFSETS_TOPIC, number))
        is_there = self._states.partition_of_name == (-1 if place is None else place)
        records = np.where(is_there, totals[:, _TOTAL["record_count"]], 0)
        name = int(records.argmax())
        if not records[name] or records[name] < _MOST_OF_THEM * records.sum() or name not in self._groups:
            return ""
        made, of_all = int(totals[name, _TOTAL["commit_count"]]), int(totals[:, _TOTAL["commit_count"]].sum())
        group = text_of(self._states.names[name])
        return (
            f"Group {group} made {made:,} of {counted(of_all, 'commit')}: {most / 1e6:,.1f} MB of "
            f"{CONSUMER_OFFSETS_TOPIC}-{number}; no other partition of it here has more than "
            f"{counted(second[1], 'byte')}."
        )

    def _largest_words(self) -> str:
        """The groups with the most bytes, where no lag is known, as in the log of a coordinator by itself."""
        if self.group_count < 2 or self._known[self._listed].any():
            return ""
        size_of, sizes = self._totals[self._listed, _TOTAL["size_bytes"]], []
        for name in self._listed[np.argsort(-size_of, kind="stable")][:_MOST_LARGE].tolist():
            _, records, size_bytes, *_ = self._totals[name].tolist()
            group = text_of(self._states.names[name])
            sizes.append(f"{group} ({counted(size_bytes, 'byte')}, {counted(records, 'record')})")
        return f"The largest by bytes: {listed(sizes)}."
