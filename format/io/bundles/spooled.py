"""The unpacked content of a bundle, in an unnamed temporary file: it is in no directory, and nothing is left behind."""

from __future__ import annotations

import io
import os
import tempfile
from collections.abc import Iterator

import msgspec

from format.errors import InputError


class Region(msgspec.Struct, frozen=True):
    """A range of bytes in a spool."""

    start: int
    size_bytes: int


class Spool:
    """An unnamed file in the directory for temporary files; it is deleted when the process ends."""

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile(prefix="kafkalog-bundle-")  # noqa: SIM115 - closed with the bundle
        self._end = 0

    def free_bytes(self) -> int:
        """The free space of the file system."""
        status = os.fstatvfs(self._file.fileno())
        return status.f_bavail * status.f_frsize

    @property
    def end(self) -> int:
        return self._end

    def append(self, content: bytes | bytearray | memoryview) -> Region:
        """Write bytes at the end. Raises InputError if that fails, for example without space."""
        region = Region(self._end, len(content))
        rest = memoryview(content)
        try:
            while rest:
                written = os.pwrite(self._file.fileno(), rest, self._end)
                self._end += written
                rest = rest[written:]
        except OSError as error:
            raise InputError(f"cannot unpack: {error.strerror}: {tempfile.gettempdir()}") from error
        return region

    def read(self, start: int, length: int) -> bytes:
        """Read a range that was written before."""
        parts = []
        while length > 0:
            part = os.pread(self._file.fileno(), length, start)
            if not part:
                raise OSError("the unpacked bundle was truncated")
            parts.append(part)
            start, length = start + len(part), length - len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def lines(self, region: Region, most_bytes: int = 1 << 20) -> Iterator[bytes]:
        """The lines of a region. Raises InputError for a line that is too long or cut off."""
        reader = io.BufferedReader(RegionReader(self, region), 1 << 16)
        while line := reader.readline(most_bytes):
            if not line.endswith(b"\n"):
                raise InputError("a member has a line that is too long, or cut off")
            yield line


class RegionReader(io.RawIOBase):
    """A region of a spool as a binary file."""

    def __init__(self, spool: Spool, region: Region) -> None:
        self._spool = spool
        self._region = region
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        base = (0, self._at, self._region.size_bytes)[whence]
        self._at = max(base + offset, 0)
        return self._at

    def tell(self) -> int:
        return self._at

    def readinto(self, buffer: object, /) -> int:
        """Read into a buffer, as many bytes as fit or are left; return their number."""
        target = memoryview(buffer).cast("B")  # type: ignore[arg-type]
        length = min(len(target), max(self._region.size_bytes - self._at, 0))
        if length:
            target[:length] = self._spool.read(self._region.start + self._at, length)
        self._at += length
        return length
