"""A source for a damaged log file: unreadable blocks are read as zeros, and repaired fields as they must be."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort

from format.errors import UnreadableFile
from format.io.source import FileSource

_BLOCK_BYTES = 4096
_MOST_PATCHED = 8


class PatchedSource:
    """A Source over a file, with zeros for unreadable blocks of 4 KiB; ``unreadable`` has the position of each.

    The zeros do not match the CRC of the batch they are in, so that batch counts as damaged, and reading resumes after
    it. ``patch`` puts a few bytes in the place of those in the file, which itself is not changed.
    """

    def __init__(self, file: FileSource) -> None:
        self._file = file
        self.path = file.path
        self.size_bytes = file.size_bytes
        self.mtime_ns = file.mtime_ns
        self.bytes_read = 0
        self.unreadable: set[int] = set()
        self._patches: dict[int, bytes] = {}
        self._patched_at: list[int] = []  # their positions, sorted

    def patch(self, position: int, content: bytes) -> None:
        """Show ``content``, at most 8 bytes, in the place of the bytes at a position."""
        if position not in self._patches:
            insort(self._patched_at, position)
        self._patches[position] = content

    def read_at(self, position: int, length: int) -> bytes:
        """Read like FileSource, but without UnreadableFile for I/O errors; raises FileChanged."""
        length = min(length, self.size_bytes - position)
        if length <= 0:
            return b""
        content = self._stored(position, length)
        first = bisect_right(self._patched_at, position - _MOST_PATCHED)
        last = bisect_left(self._patched_at, position + length)
        return content if first >= last else self._patched(content, position, self._patched_at[first:last])

    def _patched(self, content: bytes, position: int, patched_at: list[int]) -> bytes:
        """The bytes at a position with the patches at these positions."""
        changed = bytearray(content)
        for at in patched_at:
            patch = self._patches[at]
            start, end = max(at, position), min(at + len(patch), position + len(content))
            if start < end:
                changed[start - position : end - position] = patch[start - at : end - at]
        return bytes(changed)

    def _stored(self, position: int, length: int) -> bytes:
        """The bytes of the file, with zeros for unreadable blocks."""
        self.bytes_read += length
        if not self._touches_unreadable(position, length):
            try:
                return self._file.read_at(position, length)
            except UnreadableFile as error:
                if error.code != UnreadableFile.code:
                    raise
        return b"".join(self._block(at, position, length) for at in range(*_blocks(position, length)))

    def data_range(self, position: int) -> tuple[int, int]:
        """The same as for the FileSource."""
        return self._file.data_range(position)

    def _touches_unreadable(self, position: int, length: int) -> bool:
        return bool(self.unreadable) and any(at in self.unreadable for at in range(*_blocks(position, length)))

    def _block(self, block_start: int, position: int, length: int) -> bytes:
        start, end = max(block_start, position), min(block_start + _BLOCK_BYTES, position + length)
        if block_start not in self.unreadable:
            try:
                return self._file.read_at(start, end - start)
            except UnreadableFile as error:
                if error.code != UnreadableFile.code:
                    raise
                self.unreadable.add(block_start)
        return bytes(end - start)

    def close(self) -> None:
        self._file.close()


def _blocks(position: int, length: int) -> tuple[int, int, int]:
    return position - position % _BLOCK_BYTES, position + length, _BLOCK_BYTES
