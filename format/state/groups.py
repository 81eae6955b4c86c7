"""The latest state of all groups, fed with the records of coordinators' logs in log order.

Memory grows with the number of keys (a group and partition, or a group and member) and of groups, not with the log:
about 80 bytes for each key in columns, and as much for the metadata of a commit where there is some.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from enum import IntEnum
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from format import layout
from format.kernel.distinct import number_rows, number_strings, place_rows
from format.kernel.group_records import SHARE_STATE_TYPES, read_group_records
from format.kernel.tables import GROUP_COLUMNS
from format.log.batch_table import Int64Column
from format.log.record_table import RecordTable

#: Another one for each process, so that no log can be made whose names all have the same hash.
_SEED = int.from_bytes(os.urandom(4), "big")
_LEAST_ROOM = 1024
#: How many slots there are at least for each number.
_LEAST_SLOTS_EACH = 1.4


def distinct_strings(buffer: memoryview, spans: Int64Column) -> tuple[Int64Column, Int64Column]:
    """The number of each string of ``spans`` (starts and lengths), and the row where each number is first.

    Equal strings have equal numbers, counted from 0 in order of first occurrence; a negative length has the number -1.
    """
    numbers = np.empty(len(spans), np.int64)
    firsts = np.empty(len(spans), np.int64)
    spans = np.ascontiguousarray(spans)
    slots = _empty_slots(len(spans))
    count = number_strings(buffer, memoryview(spans), _SEED, memoryview(slots), memoryview(firsts), memoryview(numbers))
    return numbers, firsts[:count]


class DistinctRows:
    """Rows of integers that have numbers, counted from 0 in order of first occurrence; grows."""

    def __init__(self, width: int) -> None:
        self._width = width
        self._known = np.empty((_LEAST_ROOM, width), np.int64)
        self._slots = _empty_slots(_LEAST_ROOM)
        self._count = 0

    def __len__(self) -> int:
        return self._count

    @property
    def rows(self) -> Int64Column:
        """The row of each number; valid until more rows are numbered."""
        return self._known[: self._count]

    def complete(self) -> None:
        """Free what is needed only to number more rows."""
        self._slots = _empty_slots(0)
        self._known.resize((self._count, self._width), refcheck=False)

    def numbers_of(self, rows: Int64Column) -> Int64Column:
        """The number of each row; those that are new get the next ones."""
        self._make_room(self._count + len(rows))
        numbers = np.empty(len(rows), np.int64)
        self._count = number_rows(
            memoryview(np.ascontiguousarray(rows)),
            self._width,
            _SEED,
            memoryview(self._slots),
            memoryview(self._known),
            self._count,
            memoryview(numbers),
        )
        return numbers

    def _make_room(self, needed: int) -> None:
        if needed <= len(self._known):
            return
        # In place, so that there are never two of them: the memory of a large array moves without a copy.
        self._known.resize((needed + needed // 8, self._width), refcheck=False)
        if len(self._slots) < _LEAST_SLOTS_EACH * len(self._known):
            del self._slots
            self._slots = _empty_slots(len(self._known))
            place_rows(memoryview(self._known), self._count, self._width, _SEED, memoryview(self._slots))


def _empty_slots(numbers: int) -> NDArray[np.int64]:
    return np.full(1 << int(_LEAST_SLOTS_EACH * max(numbers, 1)).bit_length(), -1, np.int64)


#: The topics of group coordinators, each with the first of its record types.
COORDINATOR_TOPICS = {"__consumer_offsets": 0, "__share_group_state": SHARE_STATE_TYPES}

OFFSET_COMMIT = 1
#: A share-partition has two keys here: its start offset, and the rest. An update may leave the start offset as it is.
SHARE_START, SHARE_DELIVERED = SHARE_STATE_TYPES, SHARE_STATE_TYPES + 1

_FACT = {name: number for number, name in enumerate(GROUP_COLUMNS)}
#: Columns of ``GroupRecords.values``; ``key`` is a row of ``keys``.
VALUE_COLUMNS = (
    "key",
    "record_offset",
    "position",
    "number",
    "detail",
    "timestamp",
    "expire_timestamp",
    "is_tombstone",
    "producer_id",  # of a transaction that is open at the end of the table, or of any in the history; else -1
    "outcome",
)
VALUE = {name: number for number, name in enumerate(VALUE_COLUMNS)}
#: Columns of ``GroupRecords.totals``; ``name`` is a number in ``names``.
TOTAL_COLUMNS = ("name", "record_count", "size_bytes", "commit_count", "first_commit", "last_commit")
_MAX_INT64 = np.iinfo(np.int64).max


class Outcome(IntEnum):
    """The outcome of a commit, according to the records up to the end of a table."""

    PLAIN = 0  # outside of transactions
    COMMITTED = 1
    ABORTED = 2
    OPEN = 3


class KeyedValues(msgspec.Struct, frozen=True):
    """Values of keys: ``columns`` is int64 with VALUE_COLUMNS; ``texts`` has those that are not empty, by row."""

    columns: Int64Column
    texts: dict[int, bytes]

    def __len__(self) -> int:
        return len(self.columns)

    def column(self, name: str) -> Int64Column:
        return self.columns[:, VALUE[name]]

    @classmethod
    def none(cls) -> KeyedValues:
        return cls(np.empty((0, len(VALUE_COLUMNS)), np.int64), {})


class GroupRecords(msgspec.Struct, frozen=True):
    """The changes of groups in one record table; small, and made of columns.

    ``keys`` are rows of a group, a second name (both numbers in ``names``, -1 for none) and the record type times 2^32
    plus the partition. ``latest`` has the last value of each key, ``pending`` the last of each key and transaction that
    is open at the end, ``ended`` the first marker of each producer, and ``history``, if wanted, every commit.
    """

    names: list[bytes]
    keys: Int64Column
    latest: KeyedValues
    totals: Int64Column
    pending: KeyedValues = msgspec.field(default_factory=KeyedValues.none)
    ended: tuple[tuple[int, bool], ...] = ()
    history: KeyedValues | None = None


def read_groups(
    table: RecordTable, topic: str, *, until: int | None = None, with_history: bool = False
) -> GroupRecords | None:
    """Reduce the records of a table of one of COORDINATOR_TOPICS; None if it has none.

    ``until`` leaves out records with a later timestamp, markers too.
    """
    keep = None if until is None else table.timestamp <= until
    is_control = _of_records(table.batches.is_control, table)
    markers = _Markers.of(table, is_control if keep is None else is_control & keep)
    if keep is not None or is_control.any():
        table = table.rows(~is_control if keep is None else ~is_control & keep)
    if not len(table) and not len(markers.offset):
        return None
    return _Reduction(table, topic, markers).result(with_history)


class _Markers(msgspec.Struct, frozen=True):
    """The ends of transactions in a table, in log order."""

    producer_id: Int64Column
    offset: Int64Column
    is_commit: NDArray[np.bool_]

    @classmethod
    def of(cls, table: RecordTable, is_control: NDArray[np.bool_]) -> _Markers:
        rows = np.flatnonzero(is_control & (table.key_length >= layout.CONTROL_KEY.size_bytes))
        source = np.frombuffer(table.buffer, np.uint8) if len(rows) else np.empty(0, np.uint8)
        at = table.key_start[rows] + layout.CONTROL_KEY.offset_of("type")
        number = source[at].astype(np.int64) << 8 | source[at + 1] if len(rows) else np.empty(0, np.int64)
        is_commit = number == layout.CONTROL_TYPES.index("COMMIT")
        rows_of_ends = is_commit | (number == layout.CONTROL_TYPES.index("ABORT"))
        rows, is_commit = rows[rows_of_ends], is_commit[rows_of_ends]
        return cls(table.batches.producer_id[table.batch[rows]], table.offset[rows], is_commit)

    def first_of_each(self) -> tuple[tuple[int, bool], ...]:
        """The first marker of each producer, in log order."""
        _, first = np.unique(self.producer_id, return_index=True)
        rows = np.sort(first)
        return tuple(zip(self.producer_id[rows].tolist(), self.is_commit[rows].tolist(), strict=True))

    def outcomes(self, producer_id: Int64Column, offset: Int64Column) -> Int64Column:
        """The outcomes of records in transactions, from the next marker of the same producer."""
        producers = np.concatenate((producer_id, self.producer_id))
        order = np.lexsort((np.concatenate((offset, self.offset)), producers))
        is_marker = order >= len(offset)
        places = np.where(is_marker, np.arange(len(order)), len(order))
        following = np.minimum.accumulate(places[::-1])[::-1]
        has_any = following < len(order)
        following = np.where(has_any, following, len(order) - 1)
        is_ended = has_any & (producers[order] == producers[order[following]])
        outcome = np.full(len(order), int(Outcome.OPEN))
        marker = order[following] - len(offset)
        ended = np.flatnonzero(is_ended & ~is_marker)
        outcome[order[ended]] = np.where(self.is_commit[marker[ended]], int(Outcome.COMMITTED), int(Outcome.ABORTED))
        return outcome[: len(offset)]


class _Reduction:
    """The records of one table on their way to ``GroupRecords``."""

    def __init__(self, table: RecordTable, topic: str, markers: _Markers) -> None:
        first_type = COORDINATOR_TOPICS[topic]
        self._markers = markers
        facts = np.empty((len(table), len(GROUP_COLUMNS)), np.int64)
        read_group_records(table.buffer, memoryview(np.ascontiguousarray(table.columns)), first_type, memoryview(facts))
        is_known = facts[:, _FACT["type"]] >= 0
        if not is_known.all():
            table, facts = table.rows(is_known), facts[is_known]
        self._table = table
        self._facts = facts
        types = facts[:, _FACT["type"]]
        types[types == 0] = OFFSET_COMMIT  # what brokers wrote before 0.9; the key is the same
        self._is_tombstone = table.value_length < 0
        self._is_value = ~self._is_tombstone & (facts[:, _FACT["error"]] == 0)
        self._is_commit = self._is_value & (types == OFFSET_COMMIT)
        self._producer_id = np.full(len(table), layout.NO_PRODUCER_ID)
        self._outcome = np.zeros(len(table), np.int8)
        in_transaction = np.flatnonzero(self._is_commit & _of_records(table.batches.is_transactional, table))
        if len(in_transaction):
            self._producer_id[in_transaction] = table.batches.producer_id[table.batch[in_transaction]]
            outcomes = markers.outcomes(self._producer_id[in_transaction], table.offset[in_transaction])
            self._outcome[in_transaction] = outcomes
        self._number_names()

    def _number_names(self) -> None:
        facts = self._facts
        spans = np.concatenate(
            (
                facts[:, [_FACT["group_start"], _FACT["group_length"]]],
                facts[:, [_FACT["name_start"], _FACT["name_length"]]],
            )
        )
        numbers, firsts = distinct_strings(self._table.buffer, spans)
        self._group, self._name = np.split(numbers, 2)
        buffer = self._table.buffer
        self._names = [bytes(buffer[start : start + length]) for start, length in spans[firsts].tolist()]

    def result(self, with_history: bool) -> GroupRecords:
        facts = self._facts
        keys = DistinctRows(3)
        types = facts[:, _FACT["type"]]
        counts = (self._outcome <= Outcome.COMMITTED) & (self._is_value | self._is_tombstone)
        if len(types) and int(types[0]) >= SHARE_STATE_TYPES:
            has_start = counts & (self._is_tombstone | (facts[:, _FACT["number"]] >= 0))
            start_key = self._key_numbers(keys, np.full(len(types), SHARE_START))
            key = self._key_numbers(keys, np.full(len(types), SHARE_DELIVERED))
            starts, rest = _last_of_keys(start_key, has_start), _last_of_keys(key, counts)
            latest = self._values(np.concatenate((starts, rest)), np.concatenate((start_key[starts], key[rest])))
        else:
            key = self._key_numbers(keys, types)
            records = _last_of_keys(key, counts)
            latest = self._values(records, key[records])
        pending = np.flatnonzero(self._outcome == Outcome.OPEN)
        if len(pending):
            pending = pending[_last_of_each(np.stack((key[pending], self._producer_id[pending]), axis=1))]
        history = None
        if with_history:
            records = np.flatnonzero(self._is_commit | (self._is_tombstone & (types == OFFSET_COMMIT)))
            history = self._values(records, key[records])
        return GroupRecords(
            self._names,
            keys.rows,
            latest,
            self._totals(),
            self._values(pending, key[pending]),
            self._markers.first_of_each(),
            history,
        )

    def _key_numbers(self, keys: DistinctRows, types: Int64Column) -> Int64Column:
        partition = self._facts[:, _FACT["partition"]]
        return keys.numbers_of(np.stack((self._group, self._name, types << 32 | partition & 0xFFFFFFFF), axis=1))

    def _values(self, records: NDArray[np.intp], key: Int64Column) -> KeyedValues:
        """The values of some records, whose keys have these numbers."""
        table, facts = self._table, self._facts
        timestamp = facts[records, _FACT["timestamp"]]
        columns = np.empty((len(records), len(VALUE_COLUMNS)), np.int64)
        for column, values in (
            ("key", key),
            ("record_offset", table.offset[records]),
            ("position", table.batches.position[table.batch[records]]),
            ("number", facts[records, _FACT["number"]]),
            ("detail", facts[records, _FACT["detail"]]),
            ("timestamp", np.where(timestamp < 0, table.timestamp[records], timestamp)),
            ("expire_timestamp", facts[records, _FACT["expire_timestamp"]]),
            ("is_tombstone", self._is_tombstone[records]),
            ("producer_id", self._producer_id[records]),
            ("outcome", self._outcome[records]),
        ):
            columns[:, VALUE[column]] = values
        lengths = facts[records, _FACT["text_length"]]
        rows = np.flatnonzero(lengths > 0)
        starts = facts[records[rows], _FACT["text_start"]].tolist()
        spans = zip(rows.tolist(), starts, lengths[rows].tolist(), strict=True)
        buffer = table.buffer
        return KeyedValues(columns, {row: bytes(buffer[start : start + length]) for row, start, length in spans})

    def _totals(self) -> Int64Column:
        """A row of TOTAL_COLUMNS for each group."""
        table, group = self._table, self._group
        count = len(self._names)
        records = np.bincount(group, minlength=count)
        size_bytes = np.bincount(group, weights=table.size_bytes, minlength=count).astype(np.int64)
        committing = group[self._is_commit]
        timestamps = table.timestamp[self._is_commit]
        first, last = np.full(count, _MAX_INT64), np.full(count, -1)
        np.minimum.at(first, committing, timestamps)
        np.maximum.at(last, committing, timestamps)
        commits = np.bincount(committing, minlength=count)
        rows = np.stack((np.arange(count), records, size_bytes, commits, first, last), axis=1)
        return rows[records > 0]


def _of_records(of_batches: NDArray[np.bool_], table: RecordTable) -> NDArray[np.bool_]:
    """A property of batches for each of their records; quick if no batch has it, which is the usual case."""
    return of_batches[table.batch] if of_batches.any() else np.zeros(len(table), bool)


def _last_of_keys(key: Int64Column, counts: NDArray[np.bool_]) -> NDArray[np.intp]:
    """The last record of each key among those that count."""
    records = np.flatnonzero(counts)
    if not len(records):
        return records
    last = np.full(int(key.max()) + 1, -1)
    last[key[records]] = records
    found: NDArray[np.intp] = last[last >= 0]
    return found


def _last_of_each(rows: Int64Column) -> NDArray[np.intp]:
    """The last of equal rows, in order."""
    _, first = np.unique(rows[::-1], axis=0, return_index=True)
    return np.sort(len(rows) - 1 - first)


_TOTAL = {name: number for number, name in enumerate(TOTAL_COLUMNS)}
#: What is kept of the latest value of each key.
LATEST_COLUMNS = ("record_offset", "position", "number", "detail", "timestamp", "expire_timestamp", "place")
LATEST = {name: number for number, name in enumerate(LATEST_COLUMNS)}
_GIVEN = [VALUE[name] for name in LATEST_COLUMNS[:-1]]
#: Those that are columns here; few values have an expire timestamp. ``place`` is the number of the log, times two, plus
#: one for a tombstone.
_TYPES = {
    "record_offset": np.int64,
    "position": np.int64,
    "number": np.int64,
    "timestamp": np.int64,
    "detail": np.int32,
    "place": np.int32,
}
_UNSEEN = -1


class PendingCommit(msgspec.Struct, frozen=True):
    """An offset committed in a transaction whose end was not seen."""

    key: int
    producer_id: int
    values: tuple[int, ...]  # LATEST_COLUMNS
    text: bytes


class GroupStates:
    """The state after the records fed so far."""

    def __init__(self) -> None:
        self.names: list[bytes] = []
        self._ids: dict[int, dict[bytes, int]] = {}  # by partition: record offsets of two are not comparable
        self._keys = DistinctRows(2)
        self._latest = {name: np.empty(0, kind) for name, kind in _TYPES.items()}
        self.expires: dict[int, int] = {}  # key -> expire timestamp, or what a share delivered, where there is one
        self._totals = np.empty((0, len(TOTAL_COLUMNS)), np.int64)  # one row for each name
        self._partitions = np.empty(0, np.int32)  # of each name
        self.texts: dict[int, bytes] = {}
        self._pending: dict[tuple[int, int], dict[int, PendingCommit]] = {}  # partition, producer id -> key -> commit

    @property
    def keys(self) -> Int64Column:
        """For each key two pairs: group and second name (2^32 - 1 for none), and record type and partition.

        The first of each pair is times 2^32. Valid until more records are taken.
        """
        return self._keys.rows

    def latest(self, name: str) -> NDArray[Any]:
        """A column of the latest values; the record offset is -1 for a key without a value.

        Valid until more records are taken.
        """
        return self._latest[name][: len(self._keys)]

    @property
    def totals(self) -> Int64Column:
        """TOTAL_COLUMNS of each name; zero records for a name that is not of a group."""
        return self._totals[: len(self.names)]

    @property
    def partition_of_name(self) -> NDArray[np.int32]:
        """The number of the partition that each name was read in. A name in two partitions is two names."""
        return self._partitions[: len(self.names)]

    def pending(self) -> Iterator[PendingCommit]:
        """The commits in transactions without an end, except those that a tombstone removed."""
        for commits in self._pending.values():
            for key, commit in commits.items():
                is_older = self._latest["record_offset"][key] < commit.values[LATEST["record_offset"]]
                if is_older or not self._latest["place"][key] & 1:
                    yield commit

    def take(self, records: GroupRecords, partition: int, log: int) -> None:
        """Take the records of the next table of a log; it and its partition have numbers that the caller gave."""
        names = self._ids_of(records.names, partition)
        self._make_room_for_names(partition)
        self._add_totals(records.totals, names)
        for producer_id, is_commit in records.ended:
            self._end_transaction((partition, producer_id), is_commit)
        pairs = names[records.keys[:, 0]] << 32 | names[records.keys[:, 1]] & 0xFFFFFFFF
        numbers = self._keys.numbers_of(np.stack((pairs, records.keys[:, 2]), axis=1))
        self._make_room()
        self._set(numbers, records.latest, log)
        self._hold(numbers, records.pending, partition, log)

    def complete(self) -> None:
        """Free what is needed only to take more records."""
        self._keys.complete()

    def _ids_of(self, names: list[bytes], partition: int) -> Int64Column:
        """The id of each name, and -1 at the end, so that the index -1 finds -1."""
        ids = self._ids.setdefault(partition, {})
        found = np.empty(len(names) + 1, np.int64)
        for number, name in enumerate(names):
            known = ids.get(name)
            if known is None:
                known = ids[name] = len(self.names)
                self.names.append(name)
            found[number] = known
        found[-1] = -1
        return found

    def _make_room_for_names(self, partition: int) -> None:
        """Make room in the columns of names; new names are of this partition."""
        before, needed = len(self._partitions), len(self.names)
        if len(self._totals) < needed:
            added = needed * 3 // 2 + _LEAST_ROOM - len(self._totals)
            empty = np.tile(np.array((0, 0, 0, 0, np.iinfo(np.int64).max, -1), np.int64), (added, 1))
            self._totals = np.concatenate((self._totals, empty))
        if before < needed:
            self._partitions = np.concatenate((self._partitions, np.full(needed - before, partition, np.int32)))

    def _add_totals(self, totals: Int64Column, names: Int64Column) -> None:
        ids = names[totals[:, _TOTAL["name"]]]
        for name in ("record_count", "size_bytes", "commit_count"):
            self._totals[ids, _TOTAL[name]] += totals[:, _TOTAL[name]]
        first, last = _TOTAL["first_commit"], _TOTAL["last_commit"]
        self._totals[ids, first] = np.minimum(self._totals[ids, first], totals[:, first])
        self._totals[ids, last] = np.maximum(self._totals[ids, last], totals[:, last])

    def _make_room(self) -> None:
        needed, room = len(self._keys), len(self._latest["place"])
        if needed > room:
            for column in self._latest.values():  # in place, so that there are never two of them
                column.resize(needed + needed // 8 + _LEAST_ROOM, refcheck=False)
            self._latest["record_offset"][room:] = _UNSEEN

    def _set(self, numbers: Int64Column, values: KeyedValues, log: int) -> None:
        keys = numbers[values.column("key")]
        is_newer = values.column("record_offset") > self._latest["record_offset"][keys]
        chosen, columns = keys, values.columns
        if not is_newer.all():
            chosen, columns = keys[is_newer], columns[is_newer]
        for name in ("record_offset", "position", "number", "timestamp", "detail"):
            self._latest[name][chosen] = columns[:, VALUE[name]]
        self._latest["place"][chosen] = log << 1 | columns[:, VALUE["is_tombstone"]]
        for known in (self.texts, self.expires):
            for key in chosen.tolist() if known else ():
                known.pop(key, None)
        expires = columns[:, VALUE["expire_timestamp"]]
        with_expires = np.flatnonzero(expires >= 0)
        self.expires.update(zip(chosen[with_expires].tolist(), expires[with_expires].tolist(), strict=True))
        for row, text in values.texts.items():
            if is_newer[row]:
                self.texts[int(keys[row])] = text

    def _hold(self, numbers: Int64Column, values: KeyedValues, partition: int, log: int) -> None:
        for row, given in enumerate(values.columns.tolist()):
            key = int(numbers[given[VALUE["key"]]])
            producer_id = given[VALUE["producer_id"]]
            columns = (*(given[column] for column in _GIVEN), log << 1)
            commit = PendingCommit(key, producer_id, columns, values.texts.get(row, b""))
            self._pending.setdefault((partition, producer_id), {})[key] = commit

    def _end_transaction(self, transaction: tuple[int, int], is_commit: bool) -> None:
        commits = self._pending.pop(transaction, {})
        for key, commit in commits.items() if is_commit else ():
            if commit.values[LATEST["record_offset"]] > self._latest["record_offset"][key]:
                for name, column in self._latest.items():
                    column[key] = commit.values[LATEST[name]]
                self.expires.pop(key, None)
                self.texts.pop(key, None)
                if commit.text:
                    self.texts[key] = commit.text
