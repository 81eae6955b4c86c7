"""The CSV of offsets that kafka-consumer-groups --reset-offsets --from-file takes.

Source: tools ConsumerGroupCommand (parseResetPlan), CsvUtils. A line is a group, topic, partition and offset, without
a header. The tool splits the file at line feeds before it looks for quotes, and has another tool for streams groups.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from format.columns import GROUP, GROUP_OFFSET

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
