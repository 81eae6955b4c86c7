"""strace in front of the program: which system calls write the output, and one of them made to fail."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from tests.corpora import REPOSITORY

#: The calls by which an output comes about; not openat, of which a start of Python does hundreds, never quite the same.
WRITING_CALLS = ("mkdir", "write", "fsync", "ftruncate", "unlink", "rename", "utimensat")
_CALL = re.compile(r"^(?:\d+ +)?(?P<name>\w+)\((?P<arguments>.*)$")
#: The same calls in the same order in every run: no byte code is written, no hash seed is drawn.
_ENVIRONMENT = {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONHASHSEED": "0", "PYTHONPATH": str(REPOSITORY)}


@dataclass(frozen=True)
class Step:
    """The ``number``-th call of that name in the main thread, which touches the output."""

    name: str
    number: int


def missing() -> str | None:
    """Why nothing can be traced here, in words."""
    strace = shutil.which("strace")
    if strace is None:
        return "strace is not installed"
    probe = subprocess.run([strace, "-e", "trace=none", "true"], capture_output=True, check=False)
    return None if probe.returncode == 0 else "strace may not trace processes here"


def run_traced(arguments: list[str | Path], *options: str) -> subprocess.CompletedProcess[bytes]:
    """The program under strace with these options."""
    # With the filter only the calls in question stop, but at such a stop no signal can be sent.
    is_killed = any("signal=" in each for each in options)
    command = [
        "strace",
        "-f",
        *([] if is_killed else ["--seccomp-bpf"]),
        *options,
        sys.executable,
        "-m",
        "kafkalog_cli",
    ]
    return subprocess.run(
        [*command, *map(str, arguments)],
        capture_output=True,
        env={**os.environ, **_ENVIRONMENT},
        cwd=REPOSITORY,
        timeout=120,
        check=False,
    )


def writing_steps(arguments: list[str | Path], work: Path) -> list[Step]:
    """Every call of a whole run that touches the partial directory or its parent, in order."""
    log = work / "calls"
    done = run_traced(arguments, "-y", "-s", "4096", "-o", str(log), "-e", "trace=" + ",".join(WRITING_CALLS))
    assert done.returncode == 0, done.stderr
    lines = log.read_text(errors="backslashreplace").splitlines()
    main = lines[0].split(" ", 1)[0]
    counts: Counter[str] = Counter()
    steps = []
    for line in lines:
        match = _CALL.match(line)
        if match is None or line.split(" ", 1)[0] != main:
            continue
        counts[match["name"]] += 1
        if ".partial-" in match["arguments"] and " = -1 E" not in line:
            steps.append(Step(match["name"], counts[match["name"]]))
        elif match["name"] == "fsync" and f"<{work}/" in line + "/" and ".partial-" not in line:
            steps.append(Step("fsync", counts["fsync"]))
    return steps


def fault(step: Step, what: str) -> tuple[str, ...]:
    """The options that make one call fail: an error's name, KILL, or LIE (it says one byte is written; none is)."""
    how = {"KILL": "signal=KILL", "LIE": "retval=1"}.get(what, f"error={what}")
    return ("-o", "/dev/null", "-e", f"trace={step.name}", "-e", f"inject={step.name}:{how}:when={step.number}")
