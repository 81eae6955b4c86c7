"""explore on a real terminal of 80 columns and 24 lines, kept by tmux."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.building import batch, write_indexed_segment
from tests.conftest import unavailable
from tests.corpora import REPOSITORY

pytestmark = pytest.mark.long

_WAIT_S = 60
_NAMES = ("customer.profile.snapshots-3", "payments-eu-west-1-authorised-11", "payments-eu-west-1-authorised-12")


class Terminal:
    """A terminal of tmux, with a server of its own."""

    def __init__(self, socket: Path, *command: str) -> None:
        self._tmux = ("tmux", "-S", str(socket), "-f", "/dev/null")
        subprocess.run([*self._tmux, "new-session", "-d", "-x", "80", "-y", "24", *command], check=True, cwd=REPOSITORY)

    def press(self, *keys: str) -> None:
        subprocess.run([*self._tmux, "send-keys", *keys], check=True)

    def lines(self) -> list[str]:
        shown = subprocess.run([*self._tmux, "capture-pane", "-p"], check=True, capture_output=True, text=True)
        return shown.stdout.splitlines()

    def wait_for(self, condition: Callable[[list[str]], bool]) -> list[str]:
        """The screen once it is as wanted."""
        end = time.monotonic() + _WAIT_S
        while not condition(lines := self.lines()):
            assert time.monotonic() < end, "\n".join(lines)
            time.sleep(0.2)
        return lines

    def close(self) -> None:
        subprocess.run([*self._tmux, "kill-server"], check=False, capture_output=True)


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    if shutil.which("tmux") is None:
        unavailable("tmux is not installed")
    for name in _NAMES:
        write_indexed_segment(tmp_path / "node-1" / name, 0, [batch(0), batch(3)])
    opened = Terminal(tmp_path / "tmux", sys.executable, "-m", "kafkalog_cli", "explore", str(tmp_path / "node-1"))
    yield opened
    opened.close()


def test_names_are_whole_and_have_their_log_ends(terminal: Terminal) -> None:
    lines = terminal.wait_for(lambda lines: sum("headers read" in line for line in lines) == len(_NAMES))
    for name in _NAMES:
        (line,) = [line for line in lines if f" {name} " in line]
        assert line.split()[-4:] == ["end", "6", "headers", "read"]
    terminal.press("Down", "Enter")
    terminal.wait_for(lambda lines: any("…0.log" in line for line in lines))
    terminal.press("Down", "Down")
    lines = terminal.wait_for(lambda lines: any("│" in line and "00 00" in line for line in lines))
    names = [line.partition("│")[0].split()[2] for line in lines[2:] if line[:3] in ("├ ▶", "├ ▼", "└ ▶")]
    assert len(names) == len(_NAMES)
    assert all(len(name) >= 12 for name in names), names
    terminal.press("q")
