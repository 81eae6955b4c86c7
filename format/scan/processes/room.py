"""Memory for the bytes of parts."""

from __future__ import annotations

from format.limits import MIB

#: How much room there is for the bytes of one part.
SLOT_BYTES = 4 * MIB


class OwnRoom:
    """One piece of memory in this process, filled again and again, made when it is first needed."""

    def __init__(self) -> None:
        self._memory: memoryview | None = None

    def __call__(self) -> memoryview:
        if self._memory is None:
            self._memory = memoryview(bytearray(SLOT_BYTES))
        return self._memory
