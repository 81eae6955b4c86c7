"""The destination of results: standard output or a new file, as bytes, with distinct errors for failures to write.

A reader that closed the pipe raises ReaderGone. Any other failure raises OutputError. A file is never incomplete: it
is written under another name beside its own and renamed when it is complete.
"""

from __future__ import annotations

import os
import select
import shutil
import stat
import sys
import time
from collections.abc import Iterable
from io import FileIO
from typing import BinaryIO, Protocol

from format.errors import OutputError, OutputExists
from format.io.file_writer import check_apart, sync_directory
from format.location import Location

_BUFFER_BYTES = 128 * 1024
_LATEST_FLUSH_S = 0.5


class ReaderGone(Exception):
    """The reader of the output closed it, as ``head`` does."""


class RawStream(Protocol):
    """The stream below a buffer. It may write only a part of the bytes, or return None where it would block."""

    def write(self, data: memoryview, /) -> int | None: ...
    def fileno(self) -> int: ...


class OutputStream:
    """Buffered bytes on their way to standard output or a device; ``name`` is for messages."""

    def __init__(
        self, raw: RawStream, name: str, *, is_terminal: bool = False, encoding: str = "utf-8", width: int | None = None
    ) -> None:
        """``width`` is that of the terminal on which the lines are read; None where it does not matter."""
        self._raw = raw
        self.name = name
        self.is_terminal = is_terminal
        self.width = shutil.get_terminal_size().columns if is_terminal else width
        self.encoding = encoding
        self.line_count = 0  # of those written to a terminal
        self._parts: list[bytes] = []
        self._buffered_bytes = 0
        self._flushed_at = time.monotonic()
        self._failed = False

    @property
    def is_utf8(self) -> bool:
        return self.encoding.lower().replace("_", "-") in ("utf-8", "utf8")

    def write(self, lines: bytes | memoryview) -> None:
        """Write bytes: at once to a terminal, else buffered for up to half a second."""
        if len(lines) >= _BUFFER_BYTES:  # large enough by itself: not copied
            self.flush()
            self._write_out(memoryview(lines))
            return
        if isinstance(lines, memoryview):
            lines = bytes(lines)  # its owner may change it before it is written
        self._parts.append(lines)
        self.line_count += lines.count(b"\n") if self.is_terminal else 0
        self._buffered_bytes += len(lines)
        is_full = self._buffered_bytes >= _BUFFER_BYTES
        if self.is_terminal or is_full or time.monotonic() - self._flushed_at >= _LATEST_FLUSH_S:
            self.flush()

    def write_text(self, text: str) -> None:
        """Write text in the encoding of the stream; what it cannot encode becomes a backslash escape."""
        self.write(text.encode() if self.is_utf8 else text.encode(self.encoding, "backslashreplace"))

    def flush(self) -> None:
        """Write everything buffered; raises ReaderGone or OutputError, and after that writes nothing more."""
        rest = memoryview(b"".join(self._parts))
        self._parts.clear()
        self._buffered_bytes = 0
        self._flushed_at = time.monotonic()
        self._write_out(rest)

    def _write_out(self, rest: memoryview) -> None:
        if self._failed:
            return
        try:
            while rest:
                written = self._raw.write(rest)
                if written is None:  # the stream was made non-blocking
                    select.select([], [self._raw], [])
                else:
                    rest = rest[written:]
        except (OSError, ValueError) as error:
            self._failed = True
            raise output_failure(error, self.name) from error

    def publish(self) -> None:
        """Make what was written permanent."""
        self.flush()

    def discard(self) -> None:
        """Drop bytes that are not written yet."""
        self._parts.clear()
        self._failed = True


class FileOutput(OutputStream):
    """A new file: written beside its name as ``.NAME.partial-RANDOM``, then renamed."""

    def __init__(self, path: str) -> None:
        """Open the file beside ``path``; OutputError where that fails."""
        directory, name = os.path.split(path)
        self._directory = directory or os.curdir
        self._path = path
        self._partial = os.path.join(self._directory, f".{name}.partial-{os.urandom(4).hex()}")
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            self._fd = os.open(self._partial, flags, 0o666)
        except OSError as error:
            raise OutputError(f"cannot create: {_reason(error)}", Location(path)) from error
        super().__init__(FileIO(self._fd, "wb", closefd=False), path)

    def publish(self) -> None:
        """Flush to the disk, rename, flush the directory; OutputError if one of them fails."""
        self.flush()
        try:
            os.fsync(self._fd)
            os.rename(self._partial, self._path)
            self._partial = self._path  # from here on a failure removes the published file
            sync_directory(self._directory)
        except OSError as error:
            raise OutputError(f"cannot publish: {_reason(error)}", Location(self._path)) from error
        os.close(self._fd)
        self._fd = -1

    def discard(self) -> None:
        """Remove the file if it is not published."""
        super().discard()
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
            try:
                os.unlink(self._partial)
            except OSError:
                return  # nothing more can be done


def open_output(path: str | None, sources: Iterable[str] = ()) -> OutputStream:
    """Standard output for None and ``-``; else a new file, or a device or pipe that exists.

    Raises InputError for an address, OutputExists for a file that is not empty, OutputInsideSource for a place inside
    one of the sources or a broker's log directory, OutputError for anything else that cannot be opened.
    """
    if path is None or path == "-":
        return _standard_output()
    real = str(check_apart(path, sources))
    try:
        status = os.stat(real)
    except FileNotFoundError:
        return FileOutput(real)
    except OSError as error:
        raise OutputError(f"cannot create: {_reason(error)}", Location(path)) from error
    if stat.S_ISREG(status.st_mode):
        if status.st_size:
            raise OutputExists("the file exists and is not empty", Location(path))
        return FileOutput(real)
    if stat.S_ISDIR(status.st_mode):
        raise OutputExists("is a directory", Location(path))
    try:
        fd = os.open(real, os.O_WRONLY | os.O_CLOEXEC)
    except OSError as error:
        raise OutputError(f"cannot open: {_reason(error)}", Location(path)) from error
    return OutputStream(FileIO(fd, "wb", closefd=False), path, is_terminal=os.isatty(fd))


def _standard_output() -> OutputStream:
    stream = sys.stdout
    if stream is None:
        raise OutputError("standard output is closed", Location("<stdout>"))
    stream.flush()
    binary: BinaryIO = stream.buffer
    raw: RawStream = getattr(binary, "raw", binary)  # bypass Python's own buffer, which would be written again at exit
    encoding = stream.encoding or "utf-8"
    return OutputStream(raw, "<stdout>", is_terminal=stream.isatty(), encoding=encoding, width=_pager_width(raw))


def _pager_width(raw: RawStream) -> int | None:
    """The width of the terminal of standard error where standard output is a pipe, as in ``| less``; else None."""
    try:
        if stat.S_ISFIFO(os.fstat(raw.fileno()).st_mode) and sys.stderr is not None and sys.stderr.isatty():
            return os.get_terminal_size(sys.stderr.fileno()).columns or None
    except (OSError, ValueError):
        pass
    return None


def close_standard_output() -> ReaderGone | OutputError | None:
    """Flush Python's own buffers, so that nothing can fail after this; returns what failed, if anything."""
    if sys.stdout is None:
        return None
    try:
        sys.stdout.flush()
    except OSError as error:
        # The buffer keeps what it could not write and would try again at exit: let that go to /dev/null.
        fd = os.open(os.devnull, os.O_WRONLY)
        os.dup2(fd, sys.stdout.fileno())
        os.close(fd)
        return output_failure(error)
    return None


def output_failure(error: OSError | ValueError, name: str = "<stdout>") -> ReaderGone | OutputError:
    """The exception for a failure to write."""
    if isinstance(error, BrokenPipeError):
        return ReaderGone()
    return OutputError(f"cannot write: {_reason(error)}", Location(name))


def _reason(error: OSError | ValueError) -> str:
    return os.strerror(error.errno) if isinstance(error, OSError) and error.errno else str(error)
