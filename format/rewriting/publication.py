"""A new directory that appears whole or not at all: written beside its name, checked, then renamed.

``.NAME.partial-RANDOM`` -> files, each flushed to the disk when it is closed -> read back -> a manifest with the
size and SHA-256 of every file, written last -> directories flushed -> renamed to NAME -> the parent flushed. An error
at any step ends the work, and what was written so far is removed (or kept, to be resumed). A failed flush is never
tried again: what the kernel dropped cannot be known.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any, Self

import msgspec
from msgspec.structs import asdict

from format.errors import KafkaLogError, OutputError, OutputExists
from format.io.file_writer import DigestingWriter, check_apart, sync_directory
from format.io.source import os_reason, read_whole
from format.layout import MANIFEST
from format.limits import MIB
from format.location import Location

JOURNAL = "journal.jsonl"
#: The version of the results of steps; a journal with another version is not resumed.
_LAYOUT = 2
_MAX_JOURNAL_BYTES = 1024 * MIB
_BUFFER_BYTES = 1024 * 1024
_LARGE_BYTES = 128 * 1024
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


@contextlib.contextmanager
def os_errors(what: str, path: str | os.PathLike[str]) -> Iterator[None]:
    """Raises an error of the operating system inside it as OutputError, with what failed."""
    try:
        yield
    except OSError as error:
        raise OutputError(f"{what}: {os_reason(error)}", Location(os.fspath(path))) from error


def _make_directory(path: Path) -> None:
    """Make a directory and those around it that are missing. Raises OutputError."""
    with os_errors("cannot create", path):
        path.mkdir(parents=True, exist_ok=True)


class FileEntry(msgspec.Struct, frozen=True):
    """A finished file: its path in the directory with slashes, its size, its SHA-256 in hexadecimal."""

    path: str
    size_bytes: int
    sha256: str


class PublishedStep(msgspec.Struct, frozen=True):
    """A finished step: its files and its result."""

    files: tuple[FileEntry, ...]
    result: Any


class Journal:
    """The open journal of the run that writes; it owns the descriptor, whose lock keeps other runs out."""

    def __init__(self, fd: int, path: Path) -> None:
        self._fd = fd
        self._path = path

    def begin(self, job: Mapping[str, Any]) -> None:
        """Write the job into an empty journal; cut off a half-written last line of one that is resumed."""
        with os_errors("cannot write", self._path):
            end = os.pread(self._fd, os.fstat(self._fd).st_size, 0).rfind(b"\n") + 1
            os.ftruncate(self._fd, end)
            os.lseek(self._fd, end, os.SEEK_SET)
        if end == 0:
            self._write({"job": dict(job), "layout": _LAYOUT})

    def add_step(self, name: str, files: Iterable[FileEntry], result: Any) -> None:
        """Add a finished step. Raises OutputError."""
        self._write({"step": name, "files": [asdict(each) for each in files], "result": result})

    def _write(self, line: Mapping[str, Any]) -> None:
        content = memoryview(json.dumps(line).encode("ascii") + b"\n")
        with os_errors("cannot write", self._path):
            while content:
                content = content[os.write(self._fd, content) :]

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def lock_journal(directory: Path) -> Journal:
    """Open the journal of a partial directory, or make it. Raises OutputError where another run has locked it."""
    path = directory / JOURNAL
    with os_errors("cannot create", path):
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
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
        with os_errors("cannot resume", path):
            try:
                fd = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
            except FileNotFoundError:
                continue
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
    except (BlockingIOError, PermissionError):
        return False
    return True


def _is_at(fd: int, path: Path) -> bool:
    """Whether an open file is still the one at a path: the run that had locked it may have removed it."""
    try:
        return os.path.samestat(os.fstat(fd), os.lstat(path))
    except OSError:
        return False


def finished_steps(path: Path, manifest: Path, job: Mapping[str, Any]) -> dict[str, PublishedStep] | None:
    """The finished steps in the journal at ``path``, by name; None where it is of another job, or cannot be read.

    Where it is missing or empty, the manifest counts, which replaces it at the end: it has no steps, so that all of
    them are repeated.
    """
    try:
        lines = read_whole(path, _MAX_JOURNAL_BYTES).split(b"\n")
    except KafkaLogError:
        lines = [b""]
    steps: dict[str, PublishedStep] = {}
    try:
        if len(lines) == 1:
            return steps if json.loads(read_whole(manifest, _MAX_JOURNAL_BYTES))["job"] == job else None
        first = json.loads(lines[0])
        if first["layout"] != _LAYOUT or first["job"] != job:
            return None
    except (KafkaLogError, ValueError, KeyError, TypeError):
        return None
    with contextlib.suppress(ValueError, KeyError, TypeError):  # a line that was cut short
        for line in lines[1:-1]:
            entry = json.loads(line)
            steps[entry["step"]] = PublishedStep(_files_of(entry), entry["result"])
    return steps


def _files_of(entry: Mapping[str, Any]) -> tuple[FileEntry, ...]:
    files = tuple(FileEntry(str(each["path"]), int(each["size_bytes"]), str(each["sha256"])) for each in entry["files"])
    for each in files:
        path = PurePosixPath(each.path)
        if path.is_absolute() or ".." in path.parts or not path.parts:
            raise ValueError(f"a path that leads elsewhere: {each.path!r}")
    return files


class NewFile:
    """A file of a publication while it is written, in large pieces and with its SHA-256.

    Missing directories of its path are made. ``close`` flushes it to the disk and passes its entry to ``enter``;
    ``finish_writing`` only begins the flush. As a context manager it removes the file after an exception.
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
        _make_directory(path.parent)
        with os_errors("cannot create", path):
            self._fd = os.open(path, _NEW_FILE, 0o666)
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
        with os_errors("cannot write", self.path):
            self._writer.write(content)

    def finish_writing(self) -> None:
        """Write the rest, so that the file can be read back while a thread, if there is one, flushes it to the disk."""
        if self._is_finished:
            return
        if self._parts:
            self._flush()
        with os_errors("cannot write", self.path):
            self._writer.wait()
        with os_errors("cannot flush to the disk", self.path):
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
            with os_errors("cannot flush to the disk", self.path):
                self._writer.flush()
            sha256 = self._writer.hexdigest()
        finally:
            self._close_descriptor()
        self._enter(FileEntry(self.relative_path, self.size_bytes, sha256))

    def _close_descriptor(self) -> None:
        self._writer.close()
        fd, self._fd = self._fd, -1
        os.close(fd)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
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


def check_target(target: Path, sources: Iterable[Path]) -> Path:
    """The real path of a target that may be written: it does not exist, or is an empty directory.

    Raises OutputInsideSource as ``check_apart`` does; OutputExists where something is there; OutputError where its
    parent is missing.
    """
    location = Location(str(target))
    real = check_apart(target, sources)
    with os_errors("cannot access", target):
        try:
            status = os.lstat(real)
        except FileNotFoundError:
            status = None
    if status is not None:
        _check_empty(real, status, location)
    if not real.parent.is_dir():
        raise OutputError(f"there is no directory {real.parent}", location)
    return real


def _check_empty(real: Path, status: os.stat_result, location: Location) -> None:
    if not stat.S_ISDIR(status.st_mode):
        raise OutputExists("there is a file of that name; the output is a new directory", location)
    with os_errors("cannot list", location.path):
        if os.listdir(real):
            raise OutputExists("the directory exists and is not empty", location)
    if os.path.ismount(real):
        raise OutputExists("is a mount point, which cannot be replaced; name a new directory in it", location)


def partials_of(target: Path) -> list[Path]:
    """The directories that earlier runs left beside a target, by name."""
    prefix = f".{target.name}.partial-"
    with os_errors("cannot list", target.parent):
        named = [path for path in target.parent.iterdir() if path.name.startswith(prefix)]
    return sorted(path for path in named if path.is_dir() and not path.is_symlink())


class Publication:
    """The context manager in which a target directory is written; nothing is there before ``finish`` returns.

    ``job`` describes the work in JSON values; it goes into the manifest, and only a partial directory of the same job
    is resumed. ``manifest`` is the name of that file. Work is divided into steps: files made since the last
    ``finish_step`` belong to the next one, and a resumed run skips a step whose files all have the size and SHA-256 in
    the journal.
    """

    def __init__(
        self,
        target: str | os.PathLike[str],
        sources: Iterable[str | os.PathLike[str]],
        *,
        job: Mapping[str, Any] | None = None,
        manifest: str = MANIFEST,
        resume: bool = False,
        keep_partial: bool = False,
    ) -> None:
        self._asked_target = Path(target)
        self._sources = [Path(each) for each in sources]
        self._job: dict[str, Any] = json.loads(json.dumps(job or {}))
        self._manifest = manifest
        self._resume = resume
        self._keep_partial = keep_partial
        self._journal: Journal | None = None
        self._files: dict[str, FileEntry] = {}
        self._pending: list[FileEntry] = []
        self._steps: dict[str, Any] = {}
        self._step_files: dict[str, tuple[FileEntry, ...]] = {}  # of the steps of an earlier run
        self._read_back: set[str] = set()
        self._is_published = False
        self.target = self._asked_target
        self.path = Path()
        self.is_resumed = False

    # -- beginning ---------------------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        """Check the target, and make or resume the partial directory.

        Raises OutputExists, OutputInsideSource, and OutputError where the directory cannot be made.
        """
        self.target = check_target(self._asked_target, self._sources)
        if self._resume:
            self._find_partial()
        if not self.is_resumed:
            self._begin()
        return self

    def _begin(self) -> None:
        path = self.target.parent / f".{self.target.name}.partial-{os.urandom(4).hex()}"
        with os_errors("cannot create", path):
            os.mkdir(path)
        self.path = path
        try:
            self._journal = lock_journal(path)
            self._journal.begin(self._job)
        except BaseException:
            self._clean_up()
            raise

    def _find_partial(self) -> None:
        """Resume the one partial directory of this target and job, if there is one.

        Nothing in it is changed before its journal is locked: another run may be writing it.
        """
        fitting = [path for path in partials_of(self.target) if self._steps_in(path) is not None]
        found = [
            (path, journal) for path in fitting if (journal := lock_journal_to_resume(path, self._manifest)) is not None
        ]
        try:
            if fitting and not found:
                raise OutputError("another run is writing it", Location(str(fitting[0])))
            if len(found) > 1:
                names = ", ".join(path.name for path, _ in found)
                message = f"more than one partial directory fits: {names}; remove all but one"
                raise OutputError(message, self._location())
            for path, journal in found:
                self._resume_from(path, journal)
        except BaseException:
            for _, journal in found:
                journal.close()
            raise

    def _steps_in(self, path: Path) -> dict[str, PublishedStep] | None:
        """The finished steps of a partial directory; None where it is of another job."""
        return finished_steps(path / JOURNAL, path / self._manifest, self._job)

    def _resume_from(self, path: Path, journal: Journal) -> None:
        """Keep the files of finished steps that have the right SHA-256, and remove all others."""
        steps = self._steps_in(path)  # read again: until now another run may have gone on
        if steps is None:
            raise OutputError("another run has taken it over", Location(str(path)))
        self.path, self._journal, self.is_resumed = path, journal, True
        for name, step in steps.items():
            if all(self._is_on_disk(entry) for entry in step.files):
                self._steps[name] = step.result
                self._step_files[name] = step.files
                self._files.update({entry.path: entry for entry in step.files})
        self._remove_others()
        journal.begin(self._job)

    def _is_on_disk(self, entry: FileEntry) -> bool:
        return is_as_written(self.place_of(entry.path), entry)

    def _remove_others(self) -> None:
        """Remove every file of the partial directory that belongs to no finished step."""
        with os_errors("cannot resume", self.path):
            for directory, _, names in os.walk(self.path):
                for name in names:
                    path = Path(directory, name)
                    relative = path.relative_to(self.path).as_posix()
                    if relative not in self._files and relative != JOURNAL:
                        path.unlink()

    # -- writing -----------------------------------------------------------------------------------------------

    def create(self, relative_path: str | os.PathLike[str], *, write_beside: bool = False) -> NewFile:
        """A new file in the directory; missing directories of its path are made.

        ``write_beside`` lets a thread write it and compute its SHA-256. Raises OutputError, and ValueError for a path
        outside the directory or of an existing file.
        """
        relative = PurePosixPath(os.fspath(relative_path))
        name = relative.as_posix()
        if relative.is_absolute() or ".." in relative.parts or not relative.parts or name in (self._manifest, JOURNAL):
            raise ValueError(f"no file of a publication: {name!r}")
        if name in self._files:
            raise ValueError(f"made before: {name!r}")
        return NewFile(name, self.place_of(name), self._enter, write_beside=write_beside)

    def write_file(self, relative_path: str | os.PathLike[str], content: bytes) -> None:
        """Write a small file at once."""
        with self.create(relative_path) as file:
            file.write(content)

    def create_directory(self, relative_path: str | os.PathLike[str]) -> None:
        """Make a directory, also if no file will be in it."""
        _make_directory(self.place_of(os.fspath(relative_path)))

    def _enter(self, entry: FileEntry) -> None:
        """Note a file that is closed."""
        self._files[entry.path] = entry
        self._pending.append(entry)

    def place_of(self, relative_path: str) -> Path:
        """Where a file is now, to read it back; it moves when the publication is finished."""
        return self.path.joinpath(*PurePosixPath(relative_path).parts)

    def mark_read_back(self, relative_path: str) -> None:
        """Note that the caller has read this file back and compared it; ``finish`` reads back all others."""
        self._read_back.add(relative_path)

    @property
    def files(self) -> dict[str, FileEntry]:
        """The files closed so far, by relative path."""
        return dict(self._files)

    def move_in(self, directory: Path, entries: Iterable[FileEntry]) -> None:
        """Move files here that another process wrote below a directory of the same file system and read back.

        Raises OutputError.
        """
        for entry in entries:
            path = self.place_of(entry.path)
            _make_directory(path.parent)
            with os_errors("cannot move", directory / entry.path):
                os.rename(directory / entry.path, path)
            self._enter(entry)
            self.mark_read_back(entry.path)

    def leave(self) -> None:
        """Release the lock in a forked worker process: only the writing process keeps it."""
        if self._journal is not None:
            self._journal.close()

    def finish_step(self, name: str, result: Any = None) -> None:
        """End step ``name``, with the files closed since the last one; ``result`` is what a resumed run needs of it."""
        if self._journal is None:
            raise ValueError("the publication is not open")
        self._journal.add_step(name, self._pending, result)
        self._steps[name] = result
        self._pending = []

    def is_step_finished(self, name: str) -> bool:
        """Whether an earlier, interrupted run finished this step (or this run did)."""
        return name in self._steps

    def redo_step(self, name: str) -> None:
        """Begin a step that every run repeats: the files that an earlier run made in it are removed."""
        if self._steps.pop(name, None) is None and name not in self._step_files:
            return
        for entry in self._step_files.pop(name, ()):
            del self._files[entry.path]
            path = self.place_of(entry.path)
            with os_errors("cannot remove", path):
                path.unlink()

    def step_result(self, name: str) -> Any:
        """The result that was passed to ``finish_step``."""
        return self._steps[name]

    # -- the end -----------------------------------------------------------------------------------------------

    def finish(self, manifest_extra: Mapping[str, Any] | None = None) -> None:
        """Read back the other files, write the manifest, flush, and rename.

        Raises OutputError; nothing is then published.
        """
        for name in sorted(self._files):
            if name not in self._read_back and not self._is_on_disk(self._files[name]):
                raise OutputError("what was read back is not what was written", Location(str(self.place_of(name))))
        manifest = {
            "manifest_version": 1,
            "job": self._job,
            **(manifest_extra or {}),
            "files": [asdict(self._files[name]) for name in sorted(self._files)],
        }
        path = self.path / self._manifest
        with NewFile(self._manifest, path, self._enter) as file:
            file.write(json.dumps(manifest, indent=1, ensure_ascii=True).encode("ascii") + b"\n")
        if not self._is_on_disk(self._files[self._manifest]):
            raise OutputError("what was read back is not what was written", Location(str(path)))
        with os_errors("cannot publish", self.target), held(path):
            os.unlink(self.path / JOURNAL)
            for directory, _, _ in os.walk(self.path, topdown=False):
                sync_directory(directory)
            self._rename()
        self._is_published = True

    def _rename(self) -> None:
        try:
            os.rename(self.path, self.target)
        except OSError as error:
            if os.path.lexists(self.target) and not _is_empty_directory(self.target):
                raise OutputExists("it appeared while the result was written", self._location()) from error
            raise
        try:
            sync_directory(self.target.parent)
        except OSError:
            os.rename(self.target, self.path)  # the new name may not last: undo it
            raise

    def __exit__(self, *error: object) -> None:
        self._clean_up()

    def _clean_up(self) -> None:
        if self._journal is not None:
            self._journal.close()
            self._journal = None
        if not self._is_published and not self._keep_partial and self.path != Path():
            shutil.rmtree(self.path, ignore_errors=True)

    def _location(self) -> Location:
        return Location(str(self.target))


def _is_empty_directory(path: Path) -> bool:
    try:
        return stat.S_ISDIR(path.lstat().st_mode) and not os.listdir(path)
    except OSError:
        return False


def _sha256_of(path: Path) -> str:
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(fd, "rb", buffering=0) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def is_as_written(path: Path, entry: FileEntry) -> bool:
    """Whether a file has the size and the SHA-256 of its entry; this reads all of it."""
    try:
        return path.is_file() and path.stat().st_size == entry.size_bytes and _sha256_of(path) == entry.sha256
    except OSError:
        return False
