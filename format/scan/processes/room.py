"""Rooms: memory for the bytes of parts."""

from __future__ import annotations

from format.limits import MIB

#: The size of the room for the bytes of one part.
SLOT_BYTES = 4 * MIB


class OwnRoom:
    """A room in the memory of this process, which is reused for all parts; it is allocated when it is first needed."""

    def __init__(self) -> None:
        self._memory: memoryview | None = None

    def __call__(self) -> memoryview:
        if self._memory is None:
            self._memory = memoryview(bytearray(SLOT_BYTES))
        return self._memory
