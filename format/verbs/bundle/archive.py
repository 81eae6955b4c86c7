"""Writes the archive: collects members in files without names, and writes them in order after a manifest."""

from __future__ import annotations

import hashlib
import io
import tarfile
import tempfile
from collections.abc import Callable
from typing import IO, Any

import msgspec

from format.errors import OutputError
from format.io.bundles.schemas import MANIFEST, json_line
from format.location import Location

#: The zstd level. It is fixed, so that the same content gives the same bytes.
_LEVEL = 9
Write = Callable[[bytes], object]


class NewMember(io.RawIOBase):
    """A member of the archive while it is written; a binary stream."""

    def __init__(self, name: str, file: IO[bytes]) -> None:
        self.name = name
        self.size_bytes = 0
        self.sha256 = ""
        self._file = file
        self._start = file.tell()
        self._digest = hashlib.sha256()

    def writable(self) -> bool:
        return True

    def write(self, content: Any, /) -> int:
        """Add bytes. Raises OutputError where they cannot be stored."""
        piece = memoryview(content).cast("B")
        self._digest.update(piece)
        try:
            self._file.write(piece)
        except OSError as error:
            raise OutputError(
                f"cannot write a temporary file: {error.strerror}", Location(tempfile.gettempdir())
            ) from error
        self.size_bytes += len(piece)
        return len(piece)

    def tell(self) -> int:
        return self.size_bytes

    def finish(self) -> None:
        """Compute the SHA-256, after the last bytes."""
        self.sha256 = self._digest.hexdigest()

    def copy_to(self, archive: tarfile.TarFile) -> None:
        """Write the member into an archive; its header does not depend on the user or the time."""
        info = tarfile.TarInfo(self.name)
        info.size = self.size_bytes
        info.mode = 0o644
        self._file.seek(self._start)
        archive.addfile(info, self._file)


class NewArchive(msgspec.Struct):
    """Members in files without names. Members that are written one after another share one file."""

    directory: str | None = None
    _members: list[NewMember] = msgspec.field(default_factory=list)
    _shared: IO[bytes] | None = None

    def stream(self, name: str) -> NewMember:
        """A member that is written at the same time as others."""
        return self._add(NewMember(name, self._temporary()))

    def file(self, name: str) -> NewMember:
        """A member that is finished before the next call of this method."""
        if self._shared is None:
            self._shared = self._temporary()
        self._shared.seek(0, io.SEEK_END)
        return self._add(NewMember(name, self._shared))

    def _add(self, member: NewMember) -> NewMember:
        self._members.append(member)
        return member

    def _temporary(self) -> IO[bytes]:
        try:
            return tempfile.TemporaryFile(dir=self.directory)
        except OSError as error:
            raise OutputError(
                f"cannot create a temporary file: {error.strerror}", Location(self.directory or "")
            ) from error

    def drop(self, member: NewMember) -> None:
        """Leave out a member whose source cannot be read."""
        self._members.remove(member)

    def write(self, manifest: dict[str, Any], write: Write) -> None:
        """Write the manifest, which lists all members, and the members by name, compressed with zstd."""
        import zstandard

        members = sorted(self._members, key=lambda each: each.name)
        for each in members:
            each.finish()
        listed = [{"name": each.name, "size_bytes": each.size_bytes, "sha256": each.sha256} for each in members]
        first = NewMember(MANIFEST, io.BytesIO())
        first.write(json_line({**manifest, "members": listed}))
        sink: Any = _Sink(write)
        compressor = zstandard.ZstdCompressor(level=_LEVEL, write_checksum=True)
        with (
            compressor.stream_writer(sink, closefd=False) as packed,
            tarfile.open(
                fileobj=packed, mode="w|", format=tarfile.PAX_FORMAT, encoding="utf-8", errors="surrogateescape"
            ) as archive,
        ):
            for each in (first, *members):
                each.copy_to(archive)


class _Sink:
    """A file object for zstandard, which passes all bytes to a function."""

    def __init__(self, write: Write) -> None:
        self._write = write

    def write(self, content: bytes) -> int:
        self._write(bytes(content))
        return len(content)
