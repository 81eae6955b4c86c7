"""A file of a publication while it is written."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

from format.errors import OutputError
from format.io.file_writer import DigestingWriter
from format.io.source import os_reason
from format.location import Location
from format.rewriting.publishing.journal import FileEntry

_BUFFER_BYTES = 1024 * 1024
_LARGE_BYTES = 128 * 1024
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class NewFile:
    """A file of a publication while it is written, in large pieces and with its SHA-256.

    ``close`` flushes it to the disk and passes its entry to ``enter``; ``finish_writing`` only begins the flush. As a
    context manager it removes the file after an exception.
    """

    def __init__(
        self, relative_path: str, path: Path, enter: Callable[[FileEntry], None], *, write_beside: bool = False
    ) -> None:
        self.relative_path = relative_path
        self.path = path
        self.size_bytes = 0
        self.mtime_ns: int | None = None  # set on the file when it is closed: brokers use that of a log
        self._enter = enter
        self._parts: list[bytes | memoryview] = []
        self._buffered_bytes = 0
        self._is_finished = False
        try:
            self._fd = os.open(path, _NEW_FILE, 0o666)
        except OSError as error:
            raise output_error("cannot create", path, error) from error
        self._writer = DigestingWriter(self._fd, in_thread=write_beside)

    def write(self, data: bytes | bytearray | memoryview) -> int:
        """Write bytes, which must not change afterwards. Raises OutputError."""
        part = data if isinstance(data, bytes) else memoryview(data).cast("B")
        if len(part) < _LARGE_BYTES:
            part = bytes(part)  # a small part of a large buffer would keep all of it
        elif self._parts:
            self._flush()  # rather than copy what is large
        self._parts.append(part)
        self._buffered_bytes += len(part)
        self.size_bytes += len(part)
        if self._buffered_bytes >= _BUFFER_BYTES or len(part) >= _LARGE_BYTES:
            self._flush()
        return len(part)

    def _flush(self) -> None:
        content = memoryview(self._parts[0] if len(self._parts) == 1 else b"".join(self._parts))
        self._parts, self._buffered_bytes = [], 0
        with self._errors("cannot write"):
            self._writer.write(content)

    @contextlib.contextmanager
    def _errors(self, what: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise output_error(what, self.path, error) from error

    def finish_writing(self) -> None:
        """Write the rest, so that the file can be read back while a thread, if there is one, flushes it to the disk."""
        if self._is_finished:
            return
        if self._parts:
            self._flush()
        with self._errors("cannot write"):
            self._writer.wait()
        with self._errors("cannot flush to the disk"):
            if self.mtime_ns is not None:
                os.utime(self._fd, ns=(self.mtime_ns, self.mtime_ns))
            self._writer.begin_flush()
        self._is_finished = True

    def close(self) -> None:
        """Flush to the disk and pass the entry on. Does nothing for a closed file. Raises OutputError."""
        if self._fd < 0:
            return
        try:
            self.finish_writing()
            with self._errors("cannot flush to the disk"):
                self._writer.flush()
            sha256 = self._writer.hexdigest()
        finally:
            self._close_descriptor()
        self._enter(FileEntry(self.relative_path, self.size_bytes, sha256))

    def _close_descriptor(self) -> None:
        self._writer.close()
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.close()
        else:
            self.discard()

    def discard(self) -> None:
        """Close and remove the file, unless it was closed before."""
        if self._fd < 0:
            return
        self._close_descriptor()
        with contextlib.suppress(OSError):
            os.unlink(self.path)


def output_error(what: str, path: str | os.PathLike[str], error: OSError) -> OutputError:
    """The OutputError for an error of the operating system."""
    return OutputError(f"{what}: {os_reason(error)}", Location(os.fspath(path)))
