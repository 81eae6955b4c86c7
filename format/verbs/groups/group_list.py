"""The list of groups, made from the state of groups and their offsets."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from format.layout import CONSUMER_OFFSETS_TOPIC
from format.log.batch_table import Int64Column
from format.sorted_values import distinct_values
from format.state.groups import TOTAL_COLUMNS
from format.verbs.groups.group_facts import CLASSIC, PROTOCOLS, SHARE, Keys, group_facts
from format.verbs.groups.offset_list import OUT_OF_RANGE, OffsetList, text_of
from format.verbs.groups.terms import Narrowing, Read

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
