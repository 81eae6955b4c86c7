"""What groups answers: sentences, the CSV of a reset, and the history of commits."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from format.columns import GROUP, GROUP_OFFSET
from format.state.group_records import VALUE, Outcome, Values
from format.timestamps import iso_time
from format.verbs.groups.group_list import Narrowing, Overview
from format.verbs.groups.groups import LogRecords
from format.verbs.groups.replicas import OFFSETS_TOPIC, Coordinators
from format.wording import counted, did_you_mean, listed

_MOST_NAMED = 5
_UNLESS = ", unless the leader's log is longer"

NO_COORDINATORS = "No group is known: there is no log of __consumer_offsets or __share_group_state at the paths."


def none_of(wanted: Iterable[str], found: list[str], coordinators: Coordinators) -> str:
    """The sentence that the wanted groups do not exist, with groups that do; or that their partitions were not read."""
    unread = coordinators.unread(wanted)
    sentences = [
        f"It is not known whether group {group} exists: it would be in {OFFSETS_TOPIC}-{partition}, which is not at "
        "the paths."
        for group, partition in unread.items()
    ]
    absent = sorted(set(wanted) - unread.keys())
    if absent:
        sentences.append(_absent(absent, found))
    return " ".join(sentences)


def _absent(names: list[str], found: list[str]) -> str:
    asked = f"There is no group {' or '.join(names)}"
    if not found:
        return f"{asked}, nor any other."
    more = len(found) - _MOST_NAMED
    named = [*found[:_MOST_NAMED], f"{more:,} more"] if more > 0 else found
    suggested = "".join(did_you_mean(name, found) for name in names) if more > 0 else ""
    return f"{asked}; there {'is' if len(found) == 1 else 'are'} {listed(named)}.{suggested}"


def none_of_topics(wanted: Narrowing, known: Iterable[str]) -> str:
    """The sentence that no wanted group has offsets of the wanted topics; ``known`` are the topics at the paths."""
    known, topics = sorted(known), sorted(wanted.topics)
    suggested = "".join(did_you_mean(topic, known) for topic in topics if topic not in known)
    who = f"Group {' or '.join(sorted(wanted.groups))} has no" if wanted.groups else "No group has"
    return f"{who} offsets of topic {' or '.join(topics)}.{suggested}"


def none_at_all(coordinators: Coordinators, unread_count: int = 0) -> str:
    """The sentence that no group was found; ``unread_count`` logs could not be read."""
    if unread_count:
        return f"No group is known: {counted(unread_count, 'log')} of coordinators cannot be read."
    words = coordinators.words()
    return f"There is no group in {words}; the others are not at the paths." if words else "There is no group."


def sentences(overview: Overview) -> str:
    """The answer about the listed groups: lag, pending commits, and the largest groups."""
    if not overview.group_count:
        count = overview.dead_count
        dead = (
            f" {counted(count, 'group')} that {'was' if count == 1 else 'were'} deleted left records." if count else ""
        )
        return f"There is no group.{dead}"
    return " ".join(each for each in _answers(overview) if each)


def _answers(overview: Overview) -> tuple[str, ...]:
    return _lag(overview), _outside(overview), _pending(overview), _largest(overview)


def _outside(overview: Overview) -> str:
    """The committed offsets outside their logs, at which a broker answers OFFSET_OUT_OF_RANGE."""
    one, more = overview.outside, overview.outside_count - 1
    if one is None:
        return ""
    bound = "past the log end" if one.is_past_end else "before the log start"
    words = f"Group {one.group} has committed offset {one.offset} on {one.topic}-{one.partition}, {bound} {one.bound}"
    words += f" at the paths: a consumer continues where its auto.offset.reset says{_UNLESS * one.is_past_end}."
    if more:
        words += f" {counted(more, 'other committed offset')} {'is' if more == 1 else 'are'} out of range, too."
    return words


def _lag(overview: Overview) -> str:
    furthest = overview.furthest
    if furthest is None:
        groups = counted(overview.group_count, "group")
        if overview.unknown_count == overview.committed_count > 0:
            return f"{groups}; no lag is known."
        return f"{groups}; none is behind."
    place = f"{furthest.topic}-{furthest.partition}"
    words = f"Group {furthest.group} is {counted(furthest.total, 'record')} behind"
    words += f" on {place}" if furthest.lag == furthest.total else f", {furthest.lag:,} of them on {place}"
    words += f"; its last commit there was at {iso_time(furthest.commit_timestamp)}."
    if overview.group_count > 1:
        others = overview.behind_count - 1
        words += f" Of {counted(overview.group_count - 1, 'other group')} {others or 'none'} "
        words += "is behind, too." if others == 1 else "are behind, too." if others else "is behind."
    return words


def _pending(overview: Overview) -> str:
    count = overview.pending_count
    if not count:
        return ""
    return f"{counted(count, 'offset')} {'waits' if count == 1 else 'wait'} for a transaction that has not ended."


def _largest(overview: Overview) -> str:
    """The groups with the most bytes, where no lag is known, as in the log of a coordinator by itself."""
    if overview.group_count < 2 or overview.unknown_count < overview.committed_count:
        return ""
    sizes = [f"{each.group} ({counted(each.size_bytes, 'byte')}, {counted(each.record_count, 'record')})"
             for each in overview.largest]  # fmt: skip
    return f"The largest by bytes: {listed(sizes)}."


_GROUP, _PROTOCOL = GROUP.names.index("group"), GROUP.names.index("protocol")
_OFFSET_COLUMNS = [GROUP_OFFSET.names.index(name) for name in ("group", "topic", "partition", "offset")]
_PROTOCOLS = ("classic", "consumer")


class ResetCsv:
    """Lines for some groups. ``left_out`` counts the groups, by the reason why they have none."""

    def __init__(self, groups: Iterable[tuple[Any, ...]]) -> None:
        self.left_out: dict[str, int] = {}
        self._groups: set[str] = set()
        for row in groups:
            reason = _reason(row)
            if reason is None:
                self._groups.add(row[_GROUP])
            else:
                self.left_out[reason] = self.left_out.get(reason, 0) + 1

    def lines(self, offsets: Iterable[tuple[Any, ...]]) -> Iterator[str]:
        """A line for each row of ``columns.GROUP_OFFSET`` with a committed offset, with its LF."""
        for row in offsets:
            group, topic, partition, offset = (row[column] for column in _OFFSET_COLUMNS)
            if group in self._groups and offset is not None:
                yield f"{_field(group)},{_field(topic)},{partition},{offset}\n"


def _reason(row: tuple[Any, ...]) -> str | None:
    if row[_PROTOCOL] not in _PROTOCOLS:
        return f"{row[_PROTOCOL]} groups, which the tool does not reset"
    if "\n" in row[_GROUP] or "\r" in row[_GROUP]:
        return "groups with a line break in their name, which the tool cannot read"
    return None


def _field(text: str) -> str:
    """A field; in quotes where it holds what CSV gives a meaning to, or a space that a reader might trim."""
    if text and not any(character in text for character in ',"\\') and text == text.strip():
        return text
    return '"' + text.replace('"', '""') + '"'


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
