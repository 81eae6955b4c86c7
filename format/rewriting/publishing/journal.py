"""The journal of a directory being written: which steps are finished, with which files. JSON lines.

The first line holds the job, each later one a finished step. Nothing in it is believed: whoever resumes hashes every
file. A last line cut short by a crash is left out.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from format.errors import KafkaLogError, OutputError
from format.io.source import os_reason, read_whole
from format.limits import MIB
from format.location import Location

_MAX_JOURNAL_BYTES = 1024 * MIB
_TAIL_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class FileEntry:
    """A finished file: its path in the directory with slashes, its size, its SHA-256 in hexadecimal."""

    path: str
    size_bytes: int
    sha256: str

    def as_json(self) -> dict[str, Any]:
        return {"path": self.path, "size_bytes": self.size_bytes, "sha256": self.sha256}


@dataclass(frozen=True, slots=True)
class Step:
    """A finished step: its files, and what it gave back."""

    files: tuple[FileEntry, ...]
    result: Any


@dataclass(frozen=True, slots=True)
class JournalContent:
    """What a journal says."""

    job: dict[str, Any]
    steps: dict[str, Step] = field(default_factory=dict)


class Journal:
    """The open journal of the run that writes; it owns the descriptor, whose lock keeps other runs out."""

    def __init__(self, fd: int, path: Path) -> None:
        self._fd = fd
        self._path = path

    def begin(self, job: Mapping[str, Any]) -> None:
        """Write the job into an empty journal; cut a half-written last line off one that is taken up."""
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
            self._write({"job": dict(job)})

    def add_step(self, name: str, files: Iterable[FileEntry], result: Any) -> None:
        """One finished step; raises OutputError."""
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


def read_journal(path: Path, manifest: Path) -> JournalContent | None:
    """The journal at ``path``; where it is gone, the manifest beside it, which replaced it just before the end.

    None where neither can be read.
    """
    try:
        lines = read_whole(path, _MAX_JOURNAL_BYTES).split(b"\n")
    except KafkaLogError:
        return _read_manifest(manifest)
    content: JournalContent | None = None
    for line in lines[:-1]:
        try:
            entry = json.loads(line)
            if content is None:
                content = JournalContent(dict(entry["job"]))
            else:
                content.steps[entry["step"]] = Step(_files_of(entry), entry["result"])
        except (ValueError, KeyError, TypeError):
            break
    return content


def _read_manifest(path: Path) -> JournalContent | None:
    """The job alone: a manifest says nothing of steps, so that everything is done again."""
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
