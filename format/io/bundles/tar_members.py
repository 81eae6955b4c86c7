"""The members of a tar archive, one after the other, from a stream that may be hostile.

Only regular files are taken. A header is 512 bytes; a long name has a header of its own before it, of bounded size.
Nothing is written under a member's name.
"""

from __future__ import annotations

import tarfile
from collections.abc import Iterator
from typing import Protocol

from format.errors import InputError
from format.value_class import value_class

_BLOCK = 512
_MOST_EXTENDED_BYTES = 64 * 1024


class Stream(Protocol):
    """Decompressed bytes, read once."""

    def read(self, size: int, /) -> bytes: ...


@value_class
class Member:
    """A member: its content, of ``size_bytes``, has to be read before the next one is asked for."""

    name: str
    size_bytes: int
    stream: ExactStream

    def pieces(self, piece_bytes: int = 1 << 20) -> Iterator[bytes]:
        """The content in pieces. Raises InputError where the archive ends before it."""
        left = self.size_bytes
        while left:
            piece = self.stream.exactly(min(left, piece_bytes))
            left -= len(piece)
            yield piece
        self.stream.exactly(-self.size_bytes % _BLOCK)


class ExactStream:
    """Reads exactly what is asked for."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream

    def exactly(self, size: int) -> bytes:
        """So many bytes. Raises InputError at an early end, and for what does not decompress."""
        parts: list[bytes] = []
        while size > 0:
            try:
                part = self._stream.read(min(size, 1 << 20))
            except Exception as error:  # zstandard's own
                raise InputError(f"the archive is damaged: {error}") from error
            if not part:
                raise InputError("the archive ends too early: it is cut off")
            parts.append(part)
            size -= len(part)
        return b"".join(parts)


def members_of(stream: Stream) -> Iterator[Member]:
    """The members in order. Raises InputError for anything but regular files with plain headers."""
    exact = ExactStream(stream)
    long_name: str | None = None
    while True:
        block = exact.exactly(_BLOCK)
        if not block.strip(b"\0"):
            return
        try:
            info = tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")
        except (tarfile.HeaderError, ValueError) as error:
            raise InputError("this is no tar archive, or a damaged one") from error
        if info.size < 0:
            raise InputError("the archive has a member of a negative size")
        if info.type == tarfile.XHDTYPE and long_name is None:
            if info.size > _MOST_EXTENDED_BYTES:
                raise InputError("the archive has a name that is too long")
            long_name = _name_in(exact.exactly(info.size))
            exact.exactly(-info.size % _BLOCK)
            continue
        if info.type not in (tarfile.REGTYPE, tarfile.AREGTYPE):
            raise InputError(f"the archive has a member that is no regular file: {info.name!r}")
        yield Member(info.name if long_name is None else long_name, info.size, exact)
        long_name = None


def _name_in(records: bytes) -> str:
    """The path in the records of an extended header: each is its own length, a space, a key, ``=``, a value, LF."""
    name = None
    encoding = "utf-8"
    while records:
        digits, _, _ = records.partition(b" ")
        try:
            size = int(digits)
        except ValueError:
            size = 0
        record, records = records[:size], records[size:]
        key, is_there, value = record[len(digits) + 1 : -1].partition(b"=")
        if size <= len(digits) or not record.endswith(b"\n") or not is_there:
            raise InputError("the archive has a damaged extended header")
        if key == b"path":
            name = value.decode(encoding, "surrogateescape")
        elif key == b"hdrcharset":
            pass  # names that are no UTF-8: they are decoded the same way
        else:
            raise InputError("the archive has an extended header that no bundle has")
    if name is None:
        raise InputError("the archive has an extended header without a name")
    return name
