"""The latest state of all groups, fed with the records of coordinators' logs in log order.

Memory grows with the number of keys (a group and partition, or a group and member) and of groups, not with the log:
about 100 bytes for each key in columns, and as much for the metadata of a commit where there is some.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from format.log.batch_table import Int64Column
from format.state.distinct import DistinctRows
from format.state.group_records import TOTAL_COLUMNS, VALUE, GroupRecords, Values
from format.value_class import value_class

_TOTAL = {name: number for number, name in enumerate(TOTAL_COLUMNS)}
_LEAST_ROOM = 1024
#: Columns of ``GroupStates.latest``, one row for each key.
LATEST_COLUMNS = ("record_offset", "position", "number", "detail", "timestamp", "expire_timestamp", "place")
LATEST = {name: number for number, name in enumerate(LATEST_COLUMNS)}
_GIVEN = [VALUE[name] for name in LATEST_COLUMNS[:-1]]
#: ``place`` is the number of the log, times two, plus one for a tombstone.
_UNSEEN = -1


@value_class
class PendingCommit:
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
        self._keys = DistinctRows(3)
        self._latest = np.empty((0, len(LATEST_COLUMNS)), np.int64)
        self._totals = np.empty((0, len(TOTAL_COLUMNS)), np.int64)  # one row for each name
        self._partitions = np.empty(0, np.int32)  # of each name
        self.texts: dict[int, bytes] = {}
        self._pending: dict[tuple[int, int], dict[int, PendingCommit]] = {}  # partition, producer id -> key -> commit
        self.last_timestamp = -1

    @property
    def keys(self) -> Int64Column:
        """Group, second name (-1 for none), and the record type times 2^32 plus the partition, of each key."""
        return self._keys.rows

    @property
    def latest(self) -> Int64Column:
        """LATEST_COLUMNS of each key; a record offset of -1 where none counts."""
        return self._latest[: len(self._keys)]

    @property
    def totals(self) -> Int64Column:
        """TOTAL_COLUMNS of each name; no records where it is not the name of a group."""
        return self._totals[: len(self.names)]

    @property
    def partition_of_name(self) -> NDArray[np.int32]:
        """The number of the partition that each name was read in. A name in two partitions is two names."""
        return self._partitions[: len(self.names)]

    def pending(self) -> Iterator[PendingCommit]:
        """The commits in transactions without an end, but those that a tombstone removed."""
        for commits in self._pending.values():
            for key, commit in commits.items():
                place, record_offset = self._latest[key, [LATEST["place"], LATEST["record_offset"]]].tolist()
                if record_offset < commit.values[LATEST["record_offset"]] or not place & 1:
                    yield commit

    def take(self, records: GroupRecords, partition: int, log: int) -> None:
        """Take the records of the next table of a log; it and its partition have numbers that the caller gave."""
        names = self._ids_of(records.names, partition)
        self._make_room_for_names(partition)
        self._add_totals(records.totals, names)
        self.last_timestamp = max(self.last_timestamp, records.last_timestamp)
        for producer_id, is_commit in records.ended:
            self._end_transaction((partition, producer_id), is_commit)
        keys = np.stack((names[records.keys[:, 0]], names[records.keys[:, 1]], records.keys[:, 2]), axis=1)
        numbers = self._keys.numbers_of(keys)
        self._make_room()
        self._set(numbers, records.latest, log)
        self._hold(numbers, records.pending, partition, log)

    def _ids_of(self, names: list[bytes], partition: int) -> Int64Column:
        """The id of each name, and -1 at the end: it is where the number -1 points to."""
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
        needed = len(self._keys)
        if needed > len(self._latest):
            grown = np.empty((needed * 3 // 2 + _LEAST_ROOM, len(LATEST_COLUMNS)), np.int64)
            grown[: len(self._latest)] = self._latest
            grown[len(self._latest) :, LATEST["record_offset"]] = _UNSEEN
            self._latest = grown

    def _set(self, numbers: Int64Column, values: Values, log: int) -> None:
        keys = numbers[values.column("key")]
        is_newer = values.column("record_offset") > self._latest[keys, LATEST["record_offset"]]
        chosen = keys[is_newer]
        self._latest[chosen, : len(_GIVEN)] = values.columns[is_newer][:, _GIVEN]
        self._latest[chosen, LATEST["place"]] = log << 1 | values.column("is_tombstone")[is_newer]
        if self.texts:
            for key in chosen.tolist():
                self.texts.pop(key, None)
        for row, text in values.texts.items():
            if is_newer[row]:
                self.texts[int(keys[row])] = text

    def _hold(self, numbers: Int64Column, values: Values, partition: int, log: int) -> None:
        for row, given in enumerate(values.columns.tolist()):
            key = int(numbers[given[VALUE["key"]]])
            producer_id = given[VALUE["producer_id"]]
            columns = (*(given[column] for column in _GIVEN), log << 1)
            commit = PendingCommit(key, producer_id, columns, values.texts.get(row, b""))
            self._pending.setdefault((partition, producer_id), {})[key] = commit

    def _end_transaction(self, transaction: tuple[int, int], is_commit: bool) -> None:
        commits = self._pending.pop(transaction, {})
        for key, commit in commits.items() if is_commit else ():
            if commit.values[LATEST["record_offset"]] > self._latest[key, LATEST["record_offset"]]:
                self._latest[key] = commit.values
                self.texts.pop(key, None)
                if commit.text:
                    self.texts[key] = commit.text
