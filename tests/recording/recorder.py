"""Making a recording: lays out the inputs, runs the commands with a checkout's code, and checks the inputs after."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path

from tests.corpora import DATA_DIR, REPOSITORY
from tests.recording.commands import Command, commands, small_commands
from tests.recording.inputs import Inputs, corpora_folder, digest_of, lay_out
from tests.recording.outcomes import Recording, settled, without_words_of_libraries

ALL_DAMAGED = 200
SMALL_DAMAGED = 60
#: The libraries whose releases show in what is written or drawn.
LIBRARIES = ("numpy", "pyarrow", "zstandard", "lz4", "python-snappy", "cramjam", "isal", "typer", "rich")
ENVIRONMENT = {"COLUMNS": "160", "LINES": "40", "NO_COLOR": "1", "TERM": "dumb", "TZ": "UTC", "LC_ALL": "C.UTF-8"}
#: What a user may have set and a recording must not depend on.
IGNORED_VARIABLES = ("KAFKALOG_DEBUG", "FORCE_COLOR", "PYTHONWARNINGS", "PYTHONHASHSEED")


def record(root: Path, damaged: int = ALL_DAMAGED) -> Recording:
    """All commands over all inputs, with the code of the checkout at ``root``."""
    return _record(root, corpora_folder(), damaged, commands)


def record_small() -> Recording:
    """A few commands over what ships with the tests, with this checkout's code: ten seconds.

    What it holds is the same on every machine, so that it can be kept as a golden.
    """
    found = _record(REPOSITORY, DATA_DIR, SMALL_DAMAGED, small_commands)
    return Recording({}, found.inputs, [without_words_of_libraries(each) for each in found.outcomes])


def _record(root: Path, corpora: Path, damaged: int, choose: Callable[[Inputs], Iterator[list[Command]]]) -> Recording:
    with tempfile.TemporaryDirectory(prefix="recording-", dir=_scratch_root()) as scratch:
        folder = Path(scratch) / "inputs"
        folder.mkdir()
        inputs = lay_out(folder, corpora, range(damaged))
        groups = list(choose(inputs))
        _check_no_command_twice(groups)
        outcomes = [settled(each) for each in _run(root, folder, Path(scratch), groups)]
        changed = [path for path, digest in inputs.digests().items() if digest_of(folder / path) != digest]
        assert not changed, f"the commands changed their sources: {changed}"
    return Recording(_about(), inputs.digests(), outcomes)


def _scratch_root() -> Path | None:
    """A folder in memory where there is one: the commands that write wait for the disk otherwise."""
    memory = Path("/dev/shm")
    return memory if os.access(memory, os.W_OK) else None


def _check_no_command_twice(groups: list[list[Command]]) -> None:
    lines = [command for group in groups for command in group]
    assert len(lines) == len(set(lines)), sorted(each for each in lines if lines.count(each) > 1)[:5]


def _run(root: Path, folder: Path, scratch: Path, groups: list[list[Command]]) -> Iterator[dict[str, object]]:
    job, results = scratch / "job.json", scratch / "results.jsonl"
    job.write_text(json.dumps(groups), encoding="utf-8")
    environment = {name: value for name, value in os.environ.items() if name not in IGNORED_VARIABLES}
    environment |= ENVIRONMENT | {"PYTHONPATH": str(REPOSITORY), "PYTHONSAFEPATH": "1"}
    words = [sys.executable, "-m", "tests.recording.runner", *map(str, (root, job, results))]
    subprocess.run(words, cwd=folder, env=environment, stdin=subprocess.DEVNULL, check=True)
    with results.open(encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


def _about() -> dict[str, str]:
    return {"python": platform.python_version()} | {each: version(each) for each in LIBRARIES}
