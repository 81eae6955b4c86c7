"""The partitions of __consumer_offsets: which were read, how many there are, and which one holds a group."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from format.layout import CONSUMER_OFFSETS_TOPIC
from format.wording import counted, listed

OFFSETS_TOPIC = CONSUMER_OFFSETS_TOPIC
_MOST_NAMED = 5
_SIGN = 1 << 31


class Coordinators(msgspec.Struct, frozen=True):
    """The partitions that were read, and ``count``, how many the topic has; None where no metadata log was found."""

    read: frozenset[int]
    count: int | None = None

    @property
    def missing(self) -> list[int]:
        """The partitions that were not read, as far as their number is known."""
        return [] if self.count is None else [each for each in range(self.count) if each not in self.read]

    def partition_of(self, group: str) -> int | None:
        """The partition that holds a group, None where the number of partitions is not known."""
        return partition_of_group(group, self.count) if self.count else None

    def unread(self, groups: Iterable[str]) -> dict[str, int]:
        """The groups whose partition was not read, each with that partition."""
        places = {group: self.partition_of(group) for group in sorted(groups)}
        return {group: place for group, place in places.items() if place is not None and place not in self.read}

    def words(self) -> str:
        """What was read, such as "partition 0 of the 4 of __consumer_offsets"; empty where nothing is missing."""
        if not self.missing or not self.read:
            return ""
        names = [str(each) for each in sorted(self.read)]
        more = len(names) - _MOST_NAMED
        shown = listed([*names[:_MOST_NAMED], f"{more:,} more"] if more > 0 else names)
        return f"{'partition' if len(names) == 1 else 'partitions'} {shown} of the {self.count} of {OFFSETS_TOPIC}"

    def not_read(self) -> str:
        """A note about the groups that the answer cannot have."""
        return f"groups in {counted(len(self.missing), 'partition')} of {OFFSETS_TOPIC}: not at the paths"


def partition_of_group(group: str, partition_count: int) -> int:
    """The partition of __consumer_offsets that holds a group (GroupMetadataManager.partitionFor).

    It is the absolute value of the hash of the group's name as a Java string, over UTF-16 code units; the smallest
    number, whose absolute value does not fit, counts as 0 (clients Utils.abs).
    """
    digest = 0
    units = group.encode("utf-16-be", "surrogatepass")
    for position in range(0, len(units), 2):
        digest = (31 * digest + int.from_bytes(units[position : position + 2])) & 0xFFFFFFFF
    absolute = digest if digest < _SIGN else (1 << 32) - digest
    return absolute % _SIGN % partition_count
