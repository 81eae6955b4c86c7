"""A new directory that appears whole or not at all: written beside its name, checked, then renamed.

``.NAME.partial-RANDOM`` -> files, each flushed to the disk when it is closed -> read back -> a manifest with the
size and SHA-256 of every file, written last -> directories flushed -> renamed to NAME -> the parent flushed. An error
at any step ends the work, and what was written so far is removed (or kept, to be resumed). A failed flush is never
tried again: what the kernel dropped cannot be known.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath
from types import TracebackType
from typing import Any, Self

from format.errors import OutputError, OutputExists
from format.io.file_writer import sync_directory
from format.layout import MANIFEST
from format.location import Location
from format.rewriting.publishing.journal import (
    JOURNAL,
    FileEntry,
    Journal,
    Step,
    held,
    lock_journal,
    lock_journal_to_resume,
    read_journal,
)
from format.rewriting.publishing.new_file import NewFile, output_error
from format.rewriting.publishing.target import check_target, partials_of


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
        try:
            os.mkdir(path)
        except OSError as error:
            raise output_error("cannot create", path, error) from error
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

    def _steps_in(self, path: Path) -> dict[str, Step] | None:
        """The finished steps of a partial directory; None where it is of another job."""
        content = read_journal(path / JOURNAL, path / self._manifest)
        return content.steps if content is not None and content.job == self._job else None

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
        try:
            for directory, _, names in os.walk(self.path):
                for name in names:
                    path = Path(directory, name)
                    relative = path.relative_to(self.path).as_posix()
                    if relative not in self._files and relative != JOURNAL:
                        path.unlink()
        except OSError as error:
            raise output_error("cannot resume", self.path, error) from error

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
        path = self.place_of(name)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise output_error("cannot create", path.parent, error) from error
        return NewFile(name, path, self._enter, write_beside=write_beside)

    def write_file(self, relative_path: str | os.PathLike[str], content: bytes) -> None:
        """Write a small file at once."""
        with self.create(relative_path) as file:
            file.write(content)

    def create_directory(self, relative_path: str | os.PathLike[str]) -> None:
        """Make a directory, also if no file will be in it."""
        path = self.place_of(PurePosixPath(os.fspath(relative_path)).as_posix())
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise output_error("cannot create", path, error) from error

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
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                os.rename(directory / entry.path, path)
            except OSError as error:
                raise output_error("cannot move", directory / entry.path, error) from error
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
            try:
                path.unlink()
            except OSError as error:
                raise output_error("cannot remove", path, error) from error

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
            "files": [self._files[name].as_json() for name in sorted(self._files)],
        }
        path = self.path / self._manifest
        with NewFile(self._manifest, path, self._enter) as file:
            file.write(json.dumps(manifest, indent=1, ensure_ascii=True).encode("ascii") + b"\n")
        if not self._is_on_disk(self._files[self._manifest]):
            raise OutputError("what was read back is not what was written", Location(str(path)))
        try:
            with held(path):
                os.unlink(self.path / JOURNAL)
                for directory, _, _ in os.walk(self.path, topdown=False):
                    sync_directory(directory)
                self._rename()
        except OSError as error:
            raise output_error("cannot publish", self.target, error) from error
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

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
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
