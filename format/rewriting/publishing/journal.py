"""The journal of a directory that is being written: the finished steps and their files, as JSON lines.

The first line holds the job, each later one a finished step. Nothing in it is trusted: a resumed run hashes every
file. A last line cut short by a crash is left out.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

import msgspec

from format.errors import KafkaLogError, OutputError
from format.io.source import os_reason, read_whole
from format.limits import MIB
from format.location import Location

JOURNAL = "journal.jsonl"
#: The version of the results of steps; a journal with another version is not resumed.
_LAYOUT = 2
_MAX_JOURNAL_BYTES = 1024 * MIB
_TAIL_BYTES = 64 * 1024


class FileEntry(msgspec.Struct, frozen=True):
    """A finished file: its path in the directory with slashes, its size, its SHA-256 in hexadecimal."""

    path: str
    size_bytes: int
    sha256: str

    def as_json(self) -> dict[str, Any]:
        return {"path": self.path, "size_bytes": self.size_bytes, "sha256": self.sha256}


class Step(msgspec.Struct, frozen=True):
    """A finished step: its files and its result."""

    files: tuple[FileEntry, ...]
    result: Any


class JournalContent(msgspec.Struct, frozen=True):
    """The content of a journal: the job, and the finished steps by name."""

    job: dict[str, Any]
    steps: dict[str, Step] = msgspec.field(default_factory=dict)


class Journal:
    """The open journal of the run that writes; it owns the descriptor, whose lock keeps other runs out."""

    def __init__(self, fd: int, path: Path) -> None:
        self._fd = fd
        self._path = path

    def begin(self, job: Mapping[str, Any]) -> None:
        """Write the job into an empty journal; cut off a half-written last line of one that is resumed."""
        try:
            end = os.lseek(self._fd, 0, os.SEEK_END)
            while end > 0:
                start = max(0, end - _TAIL_BYTES)
                newline = os.pread(self._fd, end - start, start).rfind(b"\n")
                end = start if newline < 0 else start + newline + 1
                if newline >= 0:
                    break
            os.ftruncate(self._fd, end)
            os.lseek(self._fd, end, os.SEEK_SET)
        except OSError as error:
            raise self._failed(error) from error
        if end == 0:
            self._write({"job": dict(job), "layout": _LAYOUT})

    def add_step(self, name: str, files: Iterable[FileEntry], result: Any) -> None:
        """Add a finished step. Raises OutputError."""
        self._write({"step": name, "files": [each.as_json() for each in files], "result": result})

    def _write(self, line: Mapping[str, Any]) -> None:
        content = memoryview(json.dumps(line).encode("ascii") + b"\n")
        try:
            while content:
                content = content[os.write(self._fd, content) :]
        except OSError as error:
            raise self._failed(error) from error

    def _failed(self, error: OSError) -> OutputError:
        return OutputError(f"cannot write: {os_reason(error)}", Location(str(self._path)))

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def lock_journal(directory: Path) -> Journal:
    """Open the journal of a partial directory, or make it. Raises OutputError where another run has locked it."""
    path = directory / JOURNAL
    try:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
    except OSError as error:
        raise OutputError(f"cannot create: {os_reason(error)}", Location(str(path))) from error
    if not _try_lock(fd):
        os.close(fd)
        raise OutputError("another run is writing it", Location(str(directory)))
    return Journal(fd, path)


def lock_journal_to_resume(directory: Path, manifest: str) -> Journal | None:
    """Open the journal of a partial directory that an earlier run left; None where a run is still writing there.

    A run that is about to publish has removed its journal and locked the file ``manifest`` instead. Raises OutputError.
    """
    for name in (JOURNAL, manifest):
        path = directory / name
        try:
            fd = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
        except FileNotFoundError:
            continue
        except OSError as error:
            raise OutputError(f"cannot resume: {os_reason(error)}", Location(str(path))) from error
        if not _try_lock(fd) or not _is_at(fd, path):
            os.close(fd)
            return None
        if name == JOURNAL:
            return Journal(fd, path)
        try:
            return lock_journal(directory)
        finally:
            os.close(fd)
    return None


@contextlib.contextmanager
def held(manifest: Path) -> Iterator[None]:
    """Lock the manifest, so that no other run resumes a directory without a journal. Raises OSError."""
    fd = os.open(manifest, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)


def _try_lock(fd: int) -> bool:
    """Lock a file; False where another run has locked it."""
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
            return False
        raise
    return True


def _is_at(fd: int, path: Path) -> bool:
    """Whether an open file is still the one at a path: the run that had locked it may have removed it."""
    try:
        return os.path.samestat(os.fstat(fd), os.lstat(path))
    except OSError:
        return False


def read_journal(path: Path, manifest: Path) -> JournalContent | None:
    """The journal at ``path``; where it is missing or empty, the manifest beside it, which replaces it at the end.

    None where neither can be read.
    """
    try:
        lines = read_whole(path, _MAX_JOURNAL_BYTES).split(b"\n")
    except KafkaLogError:
        lines = [b""]
    if len(lines) == 1:
        return _read_manifest(manifest)
    content: JournalContent | None = None
    for line in lines[:-1]:
        try:
            entry = json.loads(line)
            if content is None:
                if entry["layout"] != _LAYOUT:
                    return None
                content = JournalContent(dict(entry["job"]))
            else:
                content.steps[entry["step"]] = Step(_files_of(entry), entry["result"])
        except (ValueError, KeyError, TypeError):
            break
    return content


def _read_manifest(path: Path) -> JournalContent | None:
    """The job alone: a manifest has no steps, so that all of them are repeated."""
    try:
        return JournalContent(dict(json.loads(read_whole(path, _MAX_JOURNAL_BYTES))["job"]))
    except (KafkaLogError, ValueError, KeyError, TypeError):
        return None


def _files_of(entry: Mapping[str, Any]) -> tuple[FileEntry, ...]:
    files = tuple(FileEntry(str(each["path"]), int(each["size_bytes"]), str(each["sha256"])) for each in entry["files"])
    for each in files:
        path = PurePosixPath(each.path)
        if path.is_absolute() or ".." in path.parts or not path.parts:
            raise ValueError(f"a path that leads elsewhere: {each.path!r}")
    return files
