"""The state of a file when it was opened, by which another process recognizes it."""

from __future__ import annotations

import msgspec


class FileState(msgspec.Struct, frozen=True):
    """The size, modification time and identity of an opened file. Remote and bundled files have made-up inodes."""

    size_bytes: int
    mtime_ns: int
    device_inode: tuple[int, int]
