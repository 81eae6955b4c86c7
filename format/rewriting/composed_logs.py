"""Logs that are put together from ranges of other files, and are read as a file by FileSource.

The files are opened when they are needed, in the state in which they were when the ranges were chosen. What changed
since then raises FileChanged.
"""

from __future__ import annotations

import os
import stat
from bisect import bisect_right
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from format.io.session import Session, StoredPath
from format.io.source import FileSource, FileState

#: The most files of one log that are open at a time.
_MOST_OPEN = 16


class Piece(msgspec.Struct, frozen=True):
    """A range of a file, of whole batches: positions from ``start`` to before ``end``, and the offsets in it.

    ``replica`` is the number of the replica that the file is of.
    """

    replica: int
    path: Path
    state: FileState
    start: int
    end: int
    first_offset: int
    last_offset: int
    record_count: int

    @property
    def size_bytes(self) -> int:
        return self.end - self.start


class ComposedPath(StoredPath):
    """The path of a log that is put together from pieces; there is no file of that name."""

    __slots__ = ("_pieces",)
    _pieces: tuple[Piece, ...]

    @classmethod
    def of(cls, path: Path, pieces: Sequence[Piece]) -> ComposedPath:
        """A log of these pieces, in this order."""
        made = cls(path)
        made._session, made._pieces = Session(), tuple(pieces)
        return made

    @property
    def pieces(self) -> tuple[Piece, ...]:
        """The pieces, in order. Raises FileNotFoundError for a path that was made from that of a log."""
        try:
            return self._pieces
        except AttributeError:
            raise FileNotFoundError(f"not a composed log: {self}") from None

    def stat(self, *, follow_symlinks: bool = True) -> os.stat_result:
        """The status: a regular file with the size of all pieces."""
        size_bytes = sum(each.size_bytes for each in self.pieces)
        seconds = _mtime_ns(self.pieces) // 10**9
        return os.stat_result((stat.S_IFREG | 0o444, 0, 0, 1, 0, 0, size_bytes, seconds, seconds, seconds))

    def open_stored(self) -> ComposedFile:
        return ComposedFile(self.pieces)

    def __reduce__(self) -> tuple[Any, ...]:
        return ComposedPath.of, (Path(str(self)), self.pieces)


def _mtime_ns(pieces: Sequence[Piece]) -> int:
    return max((each.state.mtime_ns for each in pieces), default=0)


class ComposedFile:
    """An opened log of pieces, see ``StoredFile``. Raises as FileSource does for what the pieces are in."""

    headers_only = None

    def __init__(self, pieces: Sequence[Piece]) -> None:
        self._pieces = pieces
        self._starts = [0]
        for each in pieces:
            self._starts.append(self._starts[-1] + each.size_bytes)
        self.size_bytes = self._starts.pop()
        self.mtime_ns = _mtime_ns(pieces)
        self.device_inode = (0, 0)
        self._opened: dict[Path, FileSource] = {}

    def read(self, length: int, position: int) -> tuple[bytes, int]:
        parts: list[bytes] = []
        at = bisect_right(self._starts, position) - 1
        while length > 0 and at < len(self._pieces):
            piece = self._pieces[at]
            inside = position - self._starts[at]
            part = self._source(piece).read_at(piece.start + inside, min(length, piece.size_bytes - inside))
            parts.append(part)
            position += len(part)
            length -= len(part)
            at += 1
        content = parts[0] if len(parts) == 1 else b"".join(parts)
        return content, len(content)

    def _source(self, piece: Piece) -> FileSource:
        found = self._opened.get(piece.path)
        if found is None:
            if len(self._opened) >= _MOST_OPEN:
                self._opened.pop(next(iter(self._opened))).close()
            found = self._opened[piece.path] = FileSource(piece.path, piece.state)
        return found

    def current_size_bytes(self) -> int:
        return self.size_bytes

    def close(self) -> None:
        for each in self._opened.values():
            each.close()
        self._opened.clear()
