"""The members of a tar archive, one after the other, from a stream that may be hostile.

Only regular files are accepted. A header is 512 bytes; a long name is in an extended header before it, whose size is
bounded. No file is ever created with the name of a member.
"""

from __future__ import annotations

import tarfile
from collections.abc import Iterator
from typing import Protocol

import msgspec

from format.errors import InputError

_BLOCK = 512
_MOST_EXTENDED_BYTES = 64 * 1024


class Stream(Protocol):
    """Decompressed bytes, read once."""

    def read(self, size: int, /) -> bytes: ...


class Member(msgspec.Struct, frozen=True):
    """A member of an archive. Its content, of ``size_bytes``, must be read before the next member."""

    name: str
    size_bytes: int
    stream: ExactStream

    def pieces(self, piece_bytes: int = 1 << 20) -> Iterator[bytes]:
        """The content in pieces. Raises InputError if the archive ends too early."""
        left = self.size_bytes
        while left:
            piece = self.stream.exactly(min(left, piece_bytes))
            left -= len(piece)
            yield piece
        self.stream.exactly(-self.size_bytes % _BLOCK)


class ExactStream:
    """Reads exact numbers of bytes from a stream."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream

    def exactly(self, size: int) -> bytes:
        """Read ``size`` bytes. Raises InputError at an early end, and for bytes that cannot be decompressed."""
        parts: list[bytes] = []
        while size > 0:
            try:
                part = self._stream.read(min(size, 1 << 20))
            except Exception as error:  # errors of zstandard
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
            raise InputError("this is not a tar archive, or a damaged one") from error
        if info.size < 0:
            raise InputError("the archive has a member with a negative size")
        if info.type == tarfile.XHDTYPE and long_name is None:
            if info.size > _MOST_EXTENDED_BYTES:
                raise InputError("the archive has a name that is too long")
            long_name = _name_in(exact.exactly(info.size))
            exact.exactly(-info.size % _BLOCK)
            continue
        if info.type not in (tarfile.REGTYPE, tarfile.AREGTYPE):
            raise InputError(f"the archive has a member that is not a regular file: {info.name!r}")
        yield Member(info.name if long_name is None else long_name, info.size, exact)
        long_name = None


def _name_in(records: bytes) -> str:
    """The path in the records of a pax header. Each record is its length, a space, a key, ``=``, a value and LF."""
    name = None
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
            name = value.decode("utf-8", "surrogateescape")
        elif key != b"hdrcharset":  # the character set of a name that is not UTF-8, which is decoded the same way
            raise InputError("the archive has an extended header that no bundle has")
    if name is None:
        raise InputError("the archive has an extended header without a name")
    return name
