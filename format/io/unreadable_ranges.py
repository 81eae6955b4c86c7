"""A source for a log file on a failing disk: unreadable blocks read as zeros, and their ranges are recorded."""

from __future__ import annotations

from format.errors import UnreadableFile
from format.io.source import FileSource

_BLOCK_BYTES = 4096


class PatchedSource:
    """A Source over a file whose unreadable blocks of 4 KiB read as zeros; ``unreadable`` lists them.

    No CRC fits over such zeros, so that the batch they lie in counts as damaged and the rest is found again.
    """

    def __init__(self, file: FileSource) -> None:
        self._file = file
        self.path = file.path
        self.size_bytes = file.size_bytes
        self.mtime_ns = file.mtime_ns
        self.bytes_read = 0
        self.unreadable: set[int] = set()

    def read_at(self, position: int, length: int) -> bytes:
        """Like FileSource, but does not raise I/O errors; FileChanged is raised."""
        length = min(length, self.size_bytes - position)
        if length <= 0:
            return b""
        self.bytes_read += length
        if not self._touches_unreadable(position, length):
            try:
                return self._file.read_at(position, length)
            except UnreadableFile as error:
                if error.code != UnreadableFile.code:
                    raise
        return b"".join(self._block(at, position, length) for at in range(*_blocks(position, length)))

    def data_range(self, position: int) -> tuple[int, int]:
        """Like FileSource."""
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
