"""Location: where on disk something was found."""

from __future__ import annotations

from dataclasses import replace

from format.value_class import value_class


@value_class
class Location:
    """The place of a byte range, a batch or a record.

    ``position`` and ``length`` are bytes in the file at ``path``; ``base_offset`` is that of the segment;
    ``offset`` is a logical record offset. What is not known is None.
    """

    path: str
    topic: str | None = None
    partition: int | None = None
    base_offset: int | None = None
    position: int | None = None
    length: int | None = None
    offset: int | None = None

    def at(self, position: int | None = None, length: int | None = None, offset: int | None = None) -> Location:
        """The same file, another place in it."""
        return replace(self, position=position, length=length, offset=offset)

    def __str__(self) -> str:
        place = self.path
        if self.position is not None:
            place += f" position {self.position}"
            if self.length is not None:
                place += f" length {self.length}"
        if self.offset is not None:
            place += f" offset {self.offset}"
        return place
