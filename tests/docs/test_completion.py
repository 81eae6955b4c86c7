"""The completion files that are installed with the program, in the real shells."""

from __future__ import annotations

import os
import pty
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.conftest import unavailable
from tests.corpora import REPOSITORY

pytestmark = pytest.mark.long

SHARE = REPOSITORY / "docs/share"
_SECONDS = 60.0
_QUIET = 0.5  # while more input waits, zsh takes a tab for a character


def program(name: str) -> None:
    """Skip where a shell is missing."""
    if shutil.which(name) is None:
        unavailable(f"{name} is not installed")


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """An environment in which ``kafkalog`` is this program, and the home directory is an empty one."""
    launcher = tmp_path / "bin/kafkalog"
    launcher.parent.mkdir()
    launcher.write_text(f'#!/bin/sh\nPYTHONPATH="{REPOSITORY}" exec "{sys.executable}" -m kafkalog_cli "$@"\n')
    launcher.chmod(0o755)
    path = f"{launcher.parent}{os.pathsep}{os.environ['PATH']}"
    return {"PATH": path, "HOME": str(tmp_path), "TERM": "dumb", "LC_ALL": "C.UTF-8"}


@contextmanager
def _terminal(command: list[str], environment: dict[str, str]) -> Iterator[int]:
    """A shell that runs in a terminal of its own; yields the terminal's other end."""
    process, end = pty.fork()
    if process == 0:
        os.execvpe(command[0], command, environment)
    try:
        yield end
    finally:
        os.close(end)
        os.waitpid(process, 0)


def _typed(end: int, line: bytes, wanted: str) -> None:
    """Type a line, and wait for the text that the terminal shows then, and for a moment without any more."""
    os.write(end, line)
    shown = b""
    last = time.monotonic() + _SECONDS
    while select.select([end], [], [], _QUIET)[0] or wanted.encode() not in shown:
        assert time.monotonic() < last, f"{wanted!r} did not come; the terminal shows {shown.decode()!r}"
        if select.select([end], [], [], 0)[0]:
            shown += os.read(end, 65536)


@pytest.mark.parametrize(
    ("shell", "start"),
    [
        ("bash", [f". {SHARE}/bash-completion/completions/kafkalog"]),
        ("zsh", [f"fpath=({SHARE}/zsh/site-functions $fpath)", "autoload -Uz compinit", "compinit -u -D"]),
    ],
)
def test_a_tab_completes_commands_options_and_paths(shell: str, start: list[str], environment: dict[str, str]) -> None:
    program(shell)
    (Path(environment["HOME"]) / "orders-0").mkdir()
    words = {"bash": ["bash", "--norc", "--noprofile", "-i"], "zsh": ["zsh", "-f", "-i"]}[shell]
    with _terminal(words, environment) as end:
        for line in (*start, f"cd {environment['HOME']}"):
            _typed(end, f"{line}; echo do''ne\n".encode(), "done\r\n")
        _typed(end, b"kafkalog recom\t", "recompress ")
        _typed(end, b"--est\t", "--estimate ")
        _typed(end, b"ord\t", "orders-0/")
        _typed(end, b"\x15kafkalog help veri\t", "verify ")  # \x15 removes the line


def test_fish_completes_commands_options_and_paths(environment: dict[str, str]) -> None:
    program("fish")
    (Path(environment["HOME"]) / "orders-0").mkdir()

    def completed(line: str) -> list[str]:
        script = f"source {SHARE}/fish/vendor_completions.d/kafkalog.fish; complete --do-complete '{line}'"
        command = ["fish", "--command", script]
        done = subprocess.run(
            command,
            env=environment,
            cwd=environment["HOME"],
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=True,
        )
        return [each.split("\t")[0] for each in done.stdout.splitlines()]

    assert completed("kafkalog recom") == ["recompress"]
    assert completed("kafkalog recompress --est") == ["--estimate"]
    assert completed("kafkalog help veri") == ["verify"]
    assert completed("kafkalog verify ord") == ["orders-0/"]
