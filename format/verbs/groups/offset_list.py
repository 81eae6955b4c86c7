"""The committed offsets of groups, with the bounds of the logs at the paths."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from functools import cached_property
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from format.layout import CONSUMER_OFFSETS_TOPIC
from format.log.batch_table import Int64Column
from format.node.log_dir import TopicPartition
from format.sorted_values import distinct_values
from format.state.groups import LATEST, OFFSET_COMMIT, SHARE_DELIVERED, SHARE_START, DistinctRows, PendingCommit
from format.verbs.groups.group_facts import Keys
from format.verbs.groups.terms import Narrowing, Read

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
        from format.internal_topics.decoder import CoordinatorDecoder
        from format.internal_topics.schemas import share_groups

        found = {}
        decoder = CoordinatorDecoder(CONSUMER_OFFSETS_TOPIC, share_groups.RECORD_TYPES)
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
