"""The history of commits: every commit in the log, with its outcome."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from format.state.groups import VALUE, Outcome, Values
from format.verbs.groups.scan import LogRecords
from format.verbs.groups.terms import Narrowing

_WORDS = {
    Outcome.PLAIN: "plain",
    Outcome.COMMITTED: "committed",
    Outcome.ABORTED: "aborted",
    Outcome.OPEN: "open",
}
_DELETED = "deleted"
_Row = tuple[Any, ...]


class CommitHistory:
    """Rows of ``columns.GROUP_COMMIT`` in the order in which the commits took effect.

    A commit in a transaction comes where its end marker is read, with the outcome, or at the end if there is none.
    """

    def __init__(self, narrowing: Narrowing) -> None:
        self._narrowing = narrowing
        self._open: dict[tuple[str | None, int | None, int], list[_Row]] = {}

    def rows_of(self, item: LogRecords) -> Iterator[_Row]:
        """The rows of the next record table of a log."""
        place, records = item.log.location, item.records
        for producer_id, is_commit in records.ended:
            outcome = Outcome.COMMITTED if is_commit else Outcome.ABORTED
            for row in self._open.pop((place.topic, place.partition, producer_id), ()):
                yield _with_outcome(row, outcome)
        if records.history is None:
            return
        names = [name.decode("utf-8", "replace") for name in records.names]
        for row, outcome in self._rows(item, names, records.history):
            if outcome is Outcome.OPEN:
                self._open.setdefault((place.topic, place.partition, row[-4]), []).append(row)
            else:
                yield row

    def rest(self) -> Iterator[_Row]:
        """The commits in transactions whose end was not seen."""
        for rows in self._open.values():
            yield from rows

    def _rows(self, item: LogRecords, names: list[str], values: Values) -> Iterator[tuple[_Row, Outcome]]:
        narrowing, path = self._narrowing, str(item.log.path)
        keys = item.records.keys.tolist()
        at = VALUE
        for number, value in enumerate(values.columns.tolist()):
            group_name, topic_name, partition = keys[value[at["key"]]]
            group, topic = names[group_name], names[topic_name]
            if narrowing.groups and group not in narrowing.groups:
                continue
            if narrowing.topics and topic not in narrowing.topics:
                continue
            is_tombstone = bool(value[at["is_tombstone"]])
            outcome = Outcome(value[at["outcome"]])
            epoch, producer_id = value[at["detail"]], value[at["producer_id"]]
            row = (
                group,
                topic,
                partition & 0xFFFFFFFF,
                None if is_tombstone else value[at["number"]],
                None if epoch < 0 else epoch,
                None if is_tombstone else values.texts.get(number, b"").decode("utf-8", "replace"),
                value[at["timestamp"]],
                _DELETED if is_tombstone else _WORDS[outcome],
                None if producer_id < 0 else producer_id,
                path,
                value[at["position"]],
                value[at["record_offset"]],
            )
            yield row, outcome


def _with_outcome(row: _Row, outcome: Outcome) -> _Row:
    return (*row[:7], _WORDS[outcome], *row[8:])
