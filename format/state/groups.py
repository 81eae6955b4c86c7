"""The latest state of all groups, fed with the records of coordinators' logs in log order.

Memory grows with the number of keys (a group and partition, or a group and member) and of groups, not with the log:
about 80 bytes for each key in columns, and as much for the metadata of a commit where there is some.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from format.log.batch_table import Int64Column
from format.state.distinct import DistinctRows
from format.state.group_records import TOTAL_COLUMNS, VALUE, GroupRecords, Values

_TOTAL = {name: number for number, name in enumerate(TOTAL_COLUMNS)}
_LEAST_ROOM = 1024
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
        self.last_timestamp = -1

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
        self.last_timestamp = max(self.last_timestamp, records.last_timestamp)
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

    def _set(self, numbers: Int64Column, values: Values, log: int) -> None:
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
            if commit.values[LATEST["record_offset"]] > self._latest["record_offset"][key]:
                for name, column in self._latest.items():
                    column[key] = commit.values[LATEST[name]]
                self.expires.pop(key, None)
                self.texts.pop(key, None)
                if commit.text:
                    self.texts[key] = commit.text
