"""What groups says where a group is not found, and the CSV of a reset."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from format.columns import GROUP, GROUP_OFFSET
from format.timestamps import iso_time
from format.verbs.groups.group_list import GroupList, GroupSelection
from format.verbs.groups.replicas import Coordinators
from format.wording import are, counted, did_you_mean, first_of, shell_line, shell_word

_MOST_NAMED = 5

NO_COORDINATORS = "No group is known: no readable log of __consumer_offsets or __share_group_state is at the paths."


def none_of(wanted: Iterable[str], found: list[str], coordinators: Coordinators) -> str:
    """The sentence that the wanted groups do not exist, with groups that do; or that their partitions were not read."""
    unknown = coordinators.unknown(wanted)
    sentences = [
        f"It is not known whether group {group} exists: it would be in {place}." for group, place in unknown.items()
    ]
    absent = sorted(set(wanted) - unknown.keys())
    if absent:
        sentences.append(_absent(absent, found))
    return " ".join(sentences)


def _absent(names: list[str], found: list[str]) -> str:
    asked = f"There is no group {' or '.join(names)}"
    if not found:
        return f"{asked}, nor any other."
    suggested = "".join(did_you_mean(name, found) for name in names) if len(found) > _MOST_NAMED else ""
    return f"{asked}; there {are(len(found))} {first_of(found, _MOST_NAMED)}.{suggested}"


def none_of_topics(wanted: GroupSelection, known: Iterable[str], unread_count: int = 0) -> str:
    """The sentence that no wanted group has offsets of the wanted topics; ``known`` are the topics at the paths.

    ``unread_count`` logs could not be read as a whole.
    """
    known, topics = sorted(known), sorted(wanted.topics)
    suggested = "".join(did_you_mean(topic, known) for topic in topics if topic not in known)
    who = f"Group {' or '.join(sorted(wanted.groups))} has no" if wanted.groups else "No group has"
    words = f"{who} offsets of topic {' or '.join(topics)}"
    return f"{words}{f' in what can be read: {unread_words(unread_count)}' if unread_count else ''}.{suggested}"


def none_at_all(coordinators: Coordinators, unread_count: int = 0) -> str:
    """The sentence that no group was found; ``unread_count`` logs could not be read."""
    if unread_count:
        return f"No group is known: {unread_words(unread_count)}."
    words = coordinators.words()
    return f"There is no group in {words}; the others are not at the paths." if words else "There is no group."


def unread_words(count: int) -> str:
    """What of the coordinators could not be read, in words."""
    return f"{counted(count, 'log')} of coordinators cannot be read as a whole"


_GROUP, _PROTOCOL = GROUP.names.index("group"), GROUP.names.index("protocol")
_OFFSET_COLUMNS = [GROUP_OFFSET.names.index(name) for name in ("group", "topic", "partition", "offset")]
_PROTOCOLS = ("classic", "consumer")


class ResetCsv:
    """Lines for some groups. ``left_out`` counts the groups, by the reason why they have none."""

    def __init__(self, groups: Iterable[tuple[Any, ...]]) -> None:
        self.left_out: dict[str, int] = {}
        self.written: set[str] = set()  # the groups with lines
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
                self.written.add(group)
                yield f"{_field(group)},{_field(topic)},{partition},{offset}\n"


#: The most commands that are printed after a CSV file was written.
_MOST_COMMANDS = 10


def reset_commands(groups: Iterable[str], path: str) -> Iterator[str]:
    """A sentence, and Kafka's command that sets the offsets of each group by its lines in the file; empty for none.

    The tool reads the first line as one of a single group before it reads the lines as they are (tools OffsetsUtils).
    """
    names = sorted(groups)
    if names:
        yield "To set them while the group has no members (a stack trace about the file's first line is no error):"
    for name in names[:_MOST_COMMANDS]:
        yield (
            "kafka-consumer-groups.sh --bootstrap-server localhost:9092 --reset-offsets "
            f"--group {shell_word(name)} --from-file {shell_word(path)} --execute"
        )
    if len(names) > _MOST_COMMANDS:
        yield f"and so for {counted(len(names) - _MOST_COMMANDS, 'more group')}"


def next_command(found: GroupList, paths: Iterable[str]) -> str:
    """The command that shows the offsets of the last deleted group; empty where no commits of one are left."""
    known = found.deleted_with_offsets()
    if known is None:
        return ""
    words = ("kafkalog", "groups", "--group", known[0], "--at", iso_time(known[1]), *paths)
    return f"The offsets of {known[0]} just before, as far as they are in the log: {shell_line(words)}"


def _reason(row: tuple[Any, ...]) -> str | None:
    if row[_PROTOCOL] not in _PROTOCOLS:
        return f"the tool does not reset {row[_PROTOCOL]} groups"
    if "\n" in row[_GROUP] or "\r" in row[_GROUP]:
        return "the tool cannot read a name with a line break"
    return None


def _field(text: str) -> str:
    """A field; in quotes where it holds what CSV gives a meaning to, or a space that a reader might trim."""
    if text and not any(character in text for character in ',"\\') and text == text.strip():
        return text
    return '"' + text.replace('"', '""') + '"'
