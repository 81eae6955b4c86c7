"""Location: a place in a file, with the partition and segment of the file."""

from __future__ import annotations

import msgspec


class Location(msgspec.Struct, frozen=True):
    """The place of a byte range, a batch or a record.

    ``position`` and ``length`` are in bytes in the file at ``path``; ``base_offset`` is the base offset of the segment;
    ``offset`` is a record offset. Unknown values are None.
    """

    path: str
    topic: str | None = None
    partition: int | None = None
    base_offset: int | None = None
    position: int | None = None
    length: int | None = None
    offset: int | None = None

    def at(self, position: int | None = None, length: int | None = None, offset: int | None = None) -> Location:
        """Another place in the same file."""
        return Location(self.path, self.topic, self.partition, self.base_offset, position, length, offset)

    def __str__(self) -> str:
        place = self.path
        if self.position is not None:
            place += f" position {self.position}"
            if self.length is not None:
                place += f" length {self.length}"
        if self.offset is not None:
            place += f" offset {self.offset}"
        return place
