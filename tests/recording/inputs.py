"""The folder that a recording's commands run in: copies of the corpora and of damaged partitions, always the same.

Commands name their paths relative to it, so that no output shows where it lies. Every file has one modification time.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from dataclasses import dataclass, field
from pathlib import Path

from tests.corpora import DATA_DIR, SHARED_CORPUS
from tests.recording.damage import Case, damaged_case

#: After the newest record of the corpora: a record that is newer than its file is a finding.
MODIFIED_S = 1_795_260_000
KEY_FILE = "redact-key"
CORPORA = ("kafka-4.3", "kafka-4.3-single", "kafka-0.8-to-2.8")


@dataclass(frozen=True)
class LogDir:
    """A log directory in the folder, its partitions, all relative to the folder; ``steps`` say what was damaged."""

    path: str
    partitions: tuple[str, ...]
    digest: str
    steps: tuple[str, ...] = ()


@dataclass
class Inputs:
    """All log directories of a recording: the corpora's as they are, and the damaged ones."""

    folder: Path
    sound: list[LogDir] = field(default_factory=list)
    damaged: list[LogDir] = field(default_factory=list)

    def digests(self) -> dict[str, str]:
        """A digest of the content of each log directory, by its path."""
        return {each.path: each.digest for each in (*self.sound, *self.damaged)}

    def files(self, path: str, *suffixes: str) -> list[str]:
        """The files right inside a directory with one of these endings, in order."""
        names = sorted(each.name for each in (self.folder / path).iterdir() if each.is_file())
        return [f"{path}/{name}" for name in names if not suffixes or name.endswith(suffixes)]


def lay_out(folder: Path, corpora: Path, damaged_numbers: range) -> Inputs:
    """Copies of the corpora's log directories and the damaged cases of these numbers, in an empty folder."""
    inputs = Inputs(folder)
    (folder / KEY_FILE).write_bytes(b"0123456789abcdef0123456789abcdef")
    for corpus in CORPORA:
        for found in sorted((corpora / corpus).glob("*/meta.properties")):
            path = f"{corpus}/{found.parent.name}"
            shutil.copytree(found.parent, folder / path, copy_function=shutil.copyfile)
            inputs.sound.append(_log_dir(folder, path))
    for number in damaged_numbers:
        case = damaged_case(DATA_DIR, number)
        path = f"damaged/{number:03d}"
        write_case(case, folder / path)
        inputs.damaged.append(_log_dir(folder, path, tuple(case.steps)))
    return inputs


def corpora_folder() -> Path:
    """Where the larger corpora are: the shared ones, or those that ship where there are no others."""
    return SHARED_CORPUS if SHARED_CORPUS.is_dir() else DATA_DIR


def digest_of(path: Path) -> str:
    """A digest of the names and contents of everything below a directory."""
    digest = hashlib.sha256()
    for each in sorted(path.rglob("*")):
        content = each.read_bytes() if each.is_file() else b"/"
        digest.update(f"{each.relative_to(path)} {len(content)}\n".encode() + content)
    return digest.hexdigest()[:20]


def write_case(case: Case, log_dir: Path) -> None:
    """Write the files of a case into a log directory."""
    for path, content in case.files.items():
        (log_dir / path).parent.mkdir(parents=True, exist_ok=True)
        (log_dir / path).write_bytes(content)
    _set_times_and_modes(log_dir)


def _log_dir(folder: Path, path: str, steps: tuple[str, ...] = ()) -> LogDir:
    _set_times_and_modes(folder / path)
    partitions = sorted(f"{path}/{each.name}" for each in (folder / path).iterdir() if each.is_dir())
    return LogDir(path, tuple(partitions), digest_of(folder / path), steps)


def _set_times_and_modes(log_dir: Path) -> None:
    for each in [log_dir, *log_dir.rglob("*")]:
        each.chmod(0o755 if each.is_dir() else 0o644)
        os.utime(each, (MODIFIED_S, MODIFIED_S))
