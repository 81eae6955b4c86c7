"""The errors of the codecs, with messages of one line."""

from __future__ import annotations

import threading

from format.errors import DecompressionFailed, LimitExceeded
from format.limits import MIB

_LONGEST_REASON = 160

#: The most members, frames, chunks or blocks that a payload may have. Real ones have 32 KiB or more; millions of empty
#: ones would cost seconds and give nothing. With parts of 2 KiB, this is 256 MiB.
MAX_PARTS = 2**17


def failed(codec_name: str, reason: str | Exception) -> DecompressionFailed:
    """A DecompressionFailed; the message of a library's error is reduced to one line of printable ASCII."""
    text = str(reason)
    if isinstance(reason, Exception):
        text = " ".join(text.removeprefix(f"{codec_name}: ").split()).encode("ascii", "backslashreplace").decode()
        text = "".join(letter if letter.isprintable() else "?" for letter in text)[:_LONGEST_REASON]
    return DecompressionFailed(f"{codec_name}: {text or type(reason).__name__}")


def output_over_limit(codec_name: str, limit_bytes: int, declared_bytes: int | None = None) -> LimitExceeded:
    """A LimitExceeded for the size of the result, or for the size that the payload declares."""
    what = "decompresses to more" if declared_bytes is None else f"declares {declared_bytes} bytes, more"
    return LimitExceeded(f"{codec_name}: {what} than the limit of {limit_bytes} bytes")


def too_many_parts(codec_name: str, part_name: str) -> LimitExceeded:
    """A LimitExceeded for a payload with more than MAX_PARTS parts."""
    return LimitExceeded(f"{codec_name}: more than {MAX_PARTS} {part_name} in one payload")


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
