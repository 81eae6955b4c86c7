"""Memory that a thread decompresses into again and again: new memory for each batch costs a copy, or its clearing."""

from __future__ import annotations

import threading

from format.limits import MIB

#: What does not fit into so much gets memory of its own.
LARGEST_ROOM_BYTES = 16 * MIB
_SMALLEST_ROOM_BYTES = MIB // 4


class _Room(threading.local):
    view = memoryview(bytearray())


_room = _Room()


def thread_room(size_bytes: int) -> memoryview:
    """This thread's room, of at least so many bytes; what was in it stays."""
    view = _room.view
    if len(view) < size_bytes:
        larger = memoryview(bytearray(max(size_bytes, 2 * len(view), _SMALLEST_ROOM_BYTES)))
        larger[: len(view)] = view
        _room.view = view = larger
    return view
