"""The list of groups, made from the state of groups and their offsets."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from format.layout import CONSUMER_OFFSETS_TOPIC
from format.limits import DEFAULT_LIMITS, Limits
from format.log.batch_table import Int64Column
from format.node.checkpoints import TopicPartition
from format.sorted_values import distinct_values
from format.state.distinct import DistinctRows
from format.state.group_records import OFFSET_COMMIT, SHARE_DELIVERED, SHARE_START, TOTAL_COLUMNS
from format.state.groups import LATEST, GroupStates, PendingCommit
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


_SHARE_TOPICS = 15  # the record type with the names of the topics of a share group
#: Stands for an unknown number in columns.
UNKNOWN = -1
#: Where an offset is that is outside the log: the values of ``group_offset``'s ``out_of_range``.
OUT_OF_RANGE = (None, "past_log_end", "before_log_start")
_PAST_LOG_END, _BEFORE_LOG_START = 1, 2
_BLOCK_ROWS = 4096
_SHOWN = ("record_offset", "position", "number", "detail", "timestamp", "place")


class OffsetColumns(msgspec.Struct, frozen=True):
    """The rows of group_offset, sorted, in columns.

    ``key`` is a row of the state's keys, ``log`` a row of ``bounds``: log ends, high watermarks and log starts. A lag
    is below 0 where the offset is past the log end, and has a meaning where ``has_lag``. ``outside`` is a number of
    OUT_OF_RANGE.
    """

    key: NDArray[np.int32]
    owner: NDArray[np.int32]
    lag: Int64Column
    has_lag: NDArray[np.bool_]
    outside: NDArray[np.int8]
    log: NDArray[np.int32]
    bounds: Int64Column


class OffsetList:
    """Offsets by group, topic and partition. ``owner_of`` is the name under which the group of each name is listed."""

    def __init__(self, read: Read, keys: Keys, owner_of: Int64Column, narrowing: Narrowing) -> None:
        self._read = read
        self._states = read.states
        self._keys = keys
        self._owner_of = owner_of
        self._narrowing = narrowing
        self.pending: dict[int, PendingCommit] = {}
        for commit in read.states.pending():
            known = self.pending.get(commit.key)
            if known is None or commit.values[LATEST["record_offset"]] > known.values[LATEST["record_offset"]]:
                self.pending[commit.key] = commit

    def is_committed(self, key: NDArray[np.int32]) -> NDArray[np.bool_]:
        """Whether there is a committed offset; otherwise only a pending one."""
        found: NDArray[np.bool_] = self._keys.is_live[key]
        return found

    @cached_property
    def columns(self) -> OffsetColumns:
        """All rows, in columns."""
        keys, states = self._keys, self._states
        is_listed = keys.is_live & ((keys.type == OFFSET_COMMIT) | (keys.type == SHARE_START))
        is_listed[list(self.pending)] = True
        rows = np.flatnonzero(is_listed).astype(np.int32)
        owner = self._owner_of[keys.group[rows]].astype(np.int32)
        topics = self.topics(distinct_values(keys.name[rows]))
        if self._narrowing.groups:
            wanted = {
                name
                for name in distinct_values(owner).tolist()
                if text_of(states.names[name]) in self._narrowing.groups
            }
            is_wanted = np.isin(owner, list(wanted))
            rows, owner = rows[is_wanted], owner[is_wanted]
        if self._narrowing.topics:
            names = [name for name, topic in topics.items() if topic in self._narrowing.topics]
            is_wanted = np.isin(keys.name[rows], names)
            rows, owner = rows[is_wanted], owner[is_wanted]
        group_rank = _ranks(
            owner, lambda name: (states.names[name], int(states.partition_of_name[name])), len(states.names)
        )
        topic_rank = _ranks(keys.name[rows], topics.__getitem__, len(states.names))
        order = np.lexsort((keys.partition[rows], topic_rank, group_rank))
        rows, owner = rows[order], owner[order]
        del order, group_rank, topic_rank
        log, bounds = self._log_bounds(rows, topics)
        log_end, log_start = bounds[log, 0], bounds[log, 2]
        is_committed, is_share = self.is_committed(rows), keys.type[rows] == SHARE_START
        offset = states.latest("number")[rows]
        has_lag = (log_end != UNKNOWN) & is_committed
        lag = log_end - offset
        for row, delivered in self._delivered(rows):
            lag[row] -= delivered
        # The log end of a time in the past is an estimate, which a commit may be ahead of.
        may_be_past_end = ~is_share if self._read.until is None else np.zeros(len(rows), np.bool_)
        np.maximum(lag, 0, out=lag, where=~may_be_past_end)
        outside = np.zeros(len(rows), np.int8)
        outside[(offset < log_start) & is_committed & ~is_share] = _BEFORE_LOG_START
        outside[has_lag & (lag < 0)] = _PAST_LOG_END
        return OffsetColumns(rows, owner, lag, has_lag, outside, log, bounds)

    def topics(self, names: NDArray[np.int32]) -> dict[int, str]:
        """The topics of some names of the state, in which a share group's topic is an id."""
        texts = {}
        partitions = self._states.partition_of_name
        ids: dict[str, str] | None = None
        for name in names.tolist():
            raw = self._states.names[name]
            if self._read.partitions[int(partitions[name])][0] == CONSUMER_OFFSETS_TOPIC:
                texts[name] = text_of(raw)
                continue
            if ids is None:
                ids = {**self._read.replicas.topic_names(), **self._share_topics()}
            topic_id = base64.urlsafe_b64encode(raw).rstrip(b"=").decode()
            texts[name] = ids.get(topic_id, topic_id)
        return texts

    def topic_partition(self, key: int) -> TopicPartition:
        """The topic and partition of a row of the state's keys."""
        name = self._keys.name[[key]]
        return self.topics(name)[int(name[0])], int(self._keys.partition[key])

    def _share_topics(self) -> dict[str, str]:
        """The names of share groups' topics by their ids, from the groups' own records."""
        keys = np.flatnonzero(self._keys.is_live & (self._keys.type == _SHARE_TOPICS)).tolist()
        if not keys:
            return {}
        from format.internal_topics.decoder import decoder_for

        found = {}
        decoder = decoder_for(CONSUMER_OFFSETS_TOPIC)
        for key in keys:
            group = self._states.names[int(self._keys.group[key])]
            record_key = decoder.decode_key(_SHARE_TOPICS.to_bytes(2, "big") + len(group).to_bytes(2, "big") + group)
            data = decoder.decode_value(record_key, self._states.texts.get(key)).data or {}
            for kind in ("initializingTopics", "initializedTopics", "deletingTopics"):
                found.update({topic["topicId"]: topic["topicName"] for topic in data.get(kind, ())})
        return found

    def _log_bounds(self, rows: NDArray[np.int32], topics: dict[int, str]) -> tuple[NDArray[np.int32], Int64Column]:
        """A row of bounds for each row, and the bounds: log end, high watermark and log start, or UNKNOWN."""
        pairs = DistinctRows(2)
        numbers = np.empty(len(rows), np.int32)
        for first in range(0, len(rows), _BLOCK_ROWS):
            block = rows[first : first + _BLOCK_ROWS]
            columns = (self._keys.name[block].astype(np.int64), self._keys.partition[block].astype(np.int64))
            numbers[first : first + len(block)] = pairs.numbers_of(np.stack(columns, axis=1))
        found = np.full((len(pairs), 3), UNKNOWN)
        read = self._read
        for number, (name, partition) in enumerate(pairs.rows.tolist()):
            bounds = read.replicas.log_bounds((topics[name], partition), read.limits, read.until)
            known = (bounds.log_end_offset, bounds.high_watermark, bounds.log_start_offset)
            found[number] = [UNKNOWN if each is None else each for each in known]
        return numbers, found

    def _delivered(self, rows: NDArray[np.int32]) -> Iterator[tuple[int, int]]:
        """The number of records that share groups have delivered past their start offset, by row."""
        keys, expires = self._keys, self._states.expires
        share = np.flatnonzero(keys.type[rows] == SHARE_START)
        if len(share):
            others = np.flatnonzero(keys.is_live & (keys.type == SHARE_DELIVERED)).tolist()
            places = {(int(keys.group[key]), int(keys.name[key]), int(keys.partition[key])): key for key in others}
            for row in share.tolist():
                key = int(rows[row])
                other = places.get((int(keys.group[key]), int(keys.name[key]), int(keys.partition[key])))
                if other in expires:
                    yield row, expires[other]

    def rows(self) -> Iterator[tuple[Any, ...]]:
        """Rows of ``columns.GROUP_OFFSET``."""
        offsets, keys, states = self.columns, self._keys, self._states
        topics = self.topics(distinct_values(keys.name[offsets.key]))
        group, text = -1, ""
        for first in range(0, len(offsets.key), _BLOCK_ROWS):
            block = slice(first, first + _BLOCK_ROWS)
            key = offsets.key[block]
            columns = zip(
                key.tolist(),
                offsets.owner[block].tolist(),
                keys.name[key].tolist(),
                keys.partition[key].tolist(),
                self.is_committed(key).tolist(),
                zip(*(states.latest(column)[key].tolist() for column in _SHOWN), strict=True),
                offsets.bounds[offsets.log[block]].tolist(),
                offsets.lag[block].tolist(),
                offsets.has_lag[block].tolist(),
                offsets.outside[block].tolist(),
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
                    topics[name],
                    partition,
                    offset if is_committed else None,
                    None if epoch < 0 or not is_committed else epoch,
                    metadata,
                    timestamp if is_committed else None,
                    states.expires.get(each) if is_committed and not is_share else None,
                    _known(bounds[0]),
                    _known(bounds[1]),
                    lag if has_lag else None,
                    OUT_OF_RANGE[outside],
                    None if pending is None else pending.values[LATEST["number"]],
                    None if pending is None else pending.producer_id,
                    self._read.paths[place >> 1],
                    position,
                    record_offset,
                )


def text_of(raw: bytes) -> str:
    """A name or text of the state; bytes that are not UTF-8 are replaced."""
    return raw.decode("utf-8", "replace")


def _known(value: int) -> int | None:
    return None if value == UNKNOWN else value


def _ranks(names: NDArray[np.int32], order_of: Any, count: int) -> NDArray[np.int32]:
    """The rank of each name in the order of its ``order_of`` value."""
    distinct = sorted(distinct_values(names).tolist(), key=order_of)
    ranks = np.zeros(count, np.int32)
    ranks[distinct] = np.arange(len(distinct))
    found: NDArray[np.int32] = ranks[names]
    return found


_TOTAL = {name: number for number, name in enumerate(TOTAL_COLUMNS)}
#: How many of the groups with the most bytes are named.
_MOST_LARGE = 3
_MS_PER_HOUR = 3_600_000


class _Sums(msgspec.Struct, frozen=True):
    """Sums over the offsets of each group: committed partitions, those with a lag, the lag, pending partitions.

    ``outside`` are the committed partitions whose offset is outside the log.
    """

    committed: Int64Column
    known: Int64Column
    lag: Int64Column
    pending: Int64Column
    outside: Int64Column


class Outside(msgspec.Struct, frozen=True):
    """A committed offset that is outside its log, at ``bound``: past the log end, or before the log start."""

    group: str
    topic: str
    partition: int
    offset: int
    is_past_end: bool
    bound: int


class Lag(msgspec.Struct, frozen=True):
    """The group that is the furthest behind: its lag, and the partition with the largest share of it."""

    group: str
    total: int
    topic: str
    partition: int
    lag: int
    commit_timestamp: int


class Size(msgspec.Struct, frozen=True):
    """The size and number of a group's records in the log that was read."""

    group: str
    size_bytes: int
    record_count: int


class Overview(msgspec.Struct, frozen=True):
    """All listed groups together; ``group_count`` without those that are dead."""

    group_count: int
    dead_count: int
    behind_count: int
    committed_count: int
    unknown_count: int  # of committed partitions, those whose lag is not known
    pending_count: int
    outside_count: int  # of committed partitions, those whose offset is outside the log
    outside: Outside | None  # one of them
    furthest: Lag | None
    largest: tuple[Size, ...] = ()


class GroupList:
    """Groups by name, and their offsets by topic and partition."""

    def __init__(self, read: Read, narrowing: Narrowing) -> None:
        self._read = read
        self._states = read.states
        self._narrowing = narrowing
        self._keys = Keys.of(read.states)
        self._facts = group_facts(read.states, self._keys)

    @cached_property
    def _owner(self) -> Int64Column:
        """The name under which the group of each name is listed: its name in __consumer_offsets, if it is there."""
        owner = np.arange(len(self._states.names))
        in_share_state = np.flatnonzero(self._is_group & ~self._in_consumer_offsets)
        if len(in_share_state):
            names = self._states.names
            known = {names[name]: name for name in np.flatnonzero(self._is_group & self._in_consumer_offsets).tolist()}
            for name in in_share_state.tolist():
                owner[name] = known.get(names[name], name)
        return owner

    @cached_property
    def _is_group(self) -> NDArray[np.bool_]:
        is_group: NDArray[np.bool_] = self._states.totals[:, _TOTAL["record_count"]] > 0
        return is_group

    @cached_property
    def _in_consumer_offsets(self) -> NDArray[np.bool_]:
        first = np.array([topic == CONSUMER_OFFSETS_TOPIC for topic, _ in self._read.partitions], bool)
        found: NDArray[np.bool_] = first[self._states.partition_of_name]
        return found

    @cached_property
    def _groups(self) -> list[int]:
        """The names of the listed groups, in order."""
        names, partitions = self._states.names, self._states.partition_of_name
        wanted = self._narrowing.groups
        listed = distinct_values(self._owner[self._is_group]).tolist()
        if wanted:
            listed = [name for name in listed if text_of(names[name]) in wanted]
        if self._narrowing.topics:
            with_offsets = set(self._offsets.columns.owner.tolist())
            listed = [name for name in listed if name in with_offsets]
        return sorted(listed, key=lambda name: (names[name], int(partitions[name])))

    def __len__(self) -> int:
        return len(self._groups)

    def names(self) -> list[str]:
        """The names of all groups that were found, listed or not, in order."""
        names = self._states.names
        return sorted({text_of(names[name]) for name in np.flatnonzero(self._is_group).tolist()})

    def group_rows(self) -> Iterator[tuple[Any, ...]]:
        """Rows of ``columns.GROUP``."""
        states, facts, sums = self._states, self._facts, self._sums
        committed, known, lag, pending = sums.committed, sums.known, sums.lag, sums.pending
        totals = self._totals()
        for name in self._groups:
            _, records, size_bytes, commits, first, last = totals[name].tolist()
            topic, partition = self._read.partitions[int(states.partition_of_name[name])]
            protocol, state = self._protocol_and_state(name, int(committed[name]), int(pending[name]))
            is_live = bool(facts.is_live[name])
            leader = states.texts.get(int(facts.leader_key[name])) if is_live else None
            hours = (last - first) / _MS_PER_HOUR
            yield (
                text_of(states.names[name]),
                protocol,
                state,
                int(facts.generation[name]) if is_live else None,
                int(facts.member_count[name]),
                None if leader is None else text_of(leader),
                int(committed[name]),
                int(lag[name]) if known[name] else None,
                int(committed[name] - known[name]),
                int(sums.outside[name]),
                int(pending[name]),
                last if commits else None,
                commits,
                round((commits - 1) / hours) if commits > 1 and hours > 0 else None,
                records,
                size_bytes,
                partition if topic == CONSUMER_OFFSETS_TOPIC else None,
            )

    @cached_property
    def _sums(self) -> _Sums:
        offsets, count = self._offsets.columns, len(self._states.names)
        has_lag = offsets.has_lag
        lag, pending = np.zeros(count, np.int64), np.zeros(count, np.int64)
        np.add.at(lag, offsets.owner[has_lag], np.maximum(offsets.lag[has_lag], 0))
        if self._offsets.pending:
            is_pending = np.isin(offsets.key, list(self._offsets.pending))
            np.add.at(pending, offsets.owner[is_pending], 1)
        return _Sums(
            np.bincount(offsets.owner[self._offsets.is_committed(offsets.key)], minlength=count),
            np.bincount(offsets.owner[has_lag], minlength=count),
            lag,
            pending,
            np.bincount(offsets.owner[offsets.outside > 0], minlength=count),
        )

    def overview(self) -> Overview:
        """The totals of all listed groups."""
        states, offsets, sums = self._states, self._offsets.columns, self._sums
        listed = np.array(self._groups, np.int64)
        committed, pending, lag = sums.committed[listed], sums.pending[listed], sums.lag[listed]
        is_live = self._facts.is_live[listed] | (committed > 0) | (pending > 0)
        furthest = None
        if len(lag) and int(lag.max()) > 0:
            name = int(listed[lag.argmax()])
            rows = np.flatnonzero(offsets.owner == name)
            row = int(rows[offsets.lag[rows].argmax()])
            key = int(offsets.key[row])
            furthest = Lag(
                text_of(states.names[name]),
                int(sums.lag[name]),
                *self._offsets.topic_partition(key),
                int(offsets.lag[row]),
                int(states.latest("timestamp")[key]),
            )
        return Overview(
            int(is_live.sum()),
            len(listed) - int(is_live.sum()),
            int((lag > 0).sum()),
            int(committed.sum()),
            int(committed.sum() - sums.known[listed].sum()),
            int(pending.sum()),
            int(sums.outside[listed].sum()),
            self._first_outside(),
            furthest,
            self._largest(listed),
        )

    def _first_outside(self) -> Outside | None:
        """The first committed offset that is outside its log, those past the log end first."""
        states, offsets = self._states, self._offsets.columns
        rows = np.flatnonzero(offsets.outside)
        if not len(rows):
            return None
        row = int(rows[np.argsort(offsets.outside[rows], kind="stable")[0]])
        key, number = int(offsets.key[row]), int(offsets.outside[row])
        log_end, _, log_start = offsets.bounds[offsets.log[row]].tolist()
        is_past_end = OUT_OF_RANGE[number] == "past_log_end"
        return Outside(
            text_of(states.names[int(offsets.owner[row])]),
            *self._offsets.topic_partition(key),
            int(states.latest("number")[key]),
            is_past_end,
            log_end if is_past_end else log_start,
        )

    def _largest(self, listed: Int64Column) -> tuple[Size, ...]:
        """The groups with the most bytes in the logs that were read, the largest first."""
        totals = self._totals()
        names = listed[np.argsort(-totals[listed, _TOTAL["size_bytes"]], kind="stable")][:_MOST_LARGE].tolist()
        rows = {name: totals[name].tolist() for name in names}
        return tuple(
            Size(text_of(self._states.names[name]), row[_TOTAL["size_bytes"]], row[_TOTAL["record_count"]])
            for name, row in rows.items()
        )

    def _totals(self) -> Int64Column:
        """TOTAL_COLUMNS by the name under which a group is listed."""
        totals = self._states.totals.copy()
        for name in np.flatnonzero(self._owner != np.arange(len(totals))).tolist():
            owner = self._owner[name]
            totals[owner, 1:4] += totals[name, 1:4]
        return totals

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

    @cached_property
    def _offsets(self) -> OffsetList:
        return OffsetList(self._read, self._keys, self._owner, self._narrowing)

    def offset_rows(self) -> Iterator[tuple[Any, ...]]:
        """Rows of ``columns.GROUP_OFFSET``."""
        return self._offsets.rows()
