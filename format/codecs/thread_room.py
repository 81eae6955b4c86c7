"""Memory of a thread that is reused for decompression: new memory for each batch would have to be cleared or copied."""

from __future__ import annotations

import threading

from format.limits import MIB

#: Larger results get memory of their own.
LARGEST_ROOM_BYTES = 16 * MIB
_SMALLEST_ROOM_BYTES = MIB // 4


class _Room(threading.local):
    view = memoryview(bytearray())


_room = _Room()


def thread_room(size_bytes: int) -> memoryview:
    """This thread's room, of at least ``size_bytes``; its content is kept when it grows."""
    view = _room.view
    if len(view) < size_bytes:
        larger = memoryview(bytearray(max(size_bytes, 2 * len(view), _SMALLEST_ROOM_BYTES)))
        larger[: len(view)] = view
        _room.view = view = larger
    return view
