"""Where a release is made: a clone of the committed state, and virtual environments of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.corpora import REPOSITORY


@dataclass(frozen=True)
class Workplace:
    """A scratch folder for one run, and the folder for what is made."""

    scratch: Path
    output: Path

    @property
    def clone(self) -> Path:
        """A clone of the checkout: what is not committed is not released."""
        path = self.scratch / "clone"
        if not path.exists():
            run("git", "clone", "--quiet", str(REPOSITORY), str(path))
        return path

    def environment(self, name: str, *requirements: str) -> Path:
        """The ``bin`` folder of a new virtual environment with these requirements."""
        path = self.scratch / name
        run(sys.executable, "-m", "venv", str(path))
        if requirements:
            run(str(path / "bin/pip"), "install", "--quiet", *requirements)
        return path / "bin"

    def made(self, pattern: str) -> Path:
        """The one file of an earlier step whose name fits the pattern; ends the program where there is none."""
        found = sorted(self.output.glob(pattern))
        if len(found) != 1:
            sys.exit(f"{self.output} must hold one file {pattern}; it holds {[each.name for each in found]}")
        return found[0]


def commit_time() -> int:
    """When the released state was committed, in seconds: the time of every file in what is made."""
    words = ["git", "-C", str(REPOSITORY), "log", "-1", "--format=%ct"]
    return int(subprocess.run(words, check=True, capture_output=True, text=True).stdout)


def run(*words: str, at: Path | None = None, **variables: str) -> None:
    """Run a program under more environment variables; ends this one where it fails."""
    environment = {**os.environ, "SOURCE_DATE_EPOCH": str(commit_time()), "PYTHONHASHSEED": "0", **variables}
    environment.pop("PYTHONPATH", None)
    done = subprocess.run(words, cwd=at, env=environment)
    if done.returncode:
        sys.exit(f"failed with status {done.returncode}: {' '.join(words)}")
