"""A command on a pseudo-terminal of a given size, and what stands on its screen afterwards."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
import time
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

_CONTROL = re.compile(r"\x1b\[([0-9;?]*)([A-Za-z])|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[()][A-Z0-9]|\x1b.")
_SECONDS = 300


class Screen:
    """The lines that a terminal shows for the text that is written to it, those that scrolled off included."""

    def __init__(self, columns: int) -> None:
        self._columns = columns
        self._lines: list[list[str]] = [[]]
        self._row = self._column = 0
        self._folded: set[int] = set()

    @property
    def lines(self) -> list[str]:
        lines = ["".join(each).rstrip() for each in self._lines]
        while lines and not lines[-1]:
            lines.pop()
        return lines

    @property
    def folded(self) -> frozenset[int]:
        """The lines that go on what the line above them began, as the text was wider than the terminal."""
        return frozenset(self._folded)

    def feed(self, text: str) -> None:
        at = 0
        while at < len(text):
            if (found := _CONTROL.match(text, at)) is not None:
                self._control(found)
                at = found.end()
                continue
            self._character(text[at])
            at += 1

    def _character(self, character: str) -> None:
        if character == "\n":
            self._down()
        elif character == "\r":
            self._column = 0
        elif character == "\b":
            self._column = max(0, self._column - 1)
        elif character == "\t":
            self._column = min(self._columns - 1, self._column // 8 * 8 + 8)
        elif character >= " " and not unicodedata.combining(character):
            if self._column >= self._columns:
                self._column = 0
                self._down()
                self._folded.add(self._row)
            line = self._lines[self._row]
            line.extend(" " * (self._column + 1 - len(line)))
            line[self._column] = character
            self._column += 1

    def _down(self) -> None:
        self._row += 1
        if self._row == len(self._lines):
            self._lines.append([])

    def _control(self, found: re.Match[str]) -> None:
        words, letter = found[1], found[2]
        count = int(words) if words and words.isdigit() else 0
        line = self._lines[self._row]
        if letter == "A":
            self._row = max(0, self._row - (count or 1))
        elif letter == "K":
            if count == 0:
                del line[self._column :]
            else:
                line.clear()
        elif letter == "J":
            del self._lines[self._row + 1 :]
            del line[self._column :]
        elif letter == "G":
            self._column = max(0, count - 1)


@dataclass(frozen=True)
class Shown:
    """What a command printed on a terminal: every line, and those that are still on the screen when it ended."""

    command: str
    exit_status: int
    seconds: float
    lines: list[str]
    rows: int
    folded: frozenset[int] = frozenset()  # the lines that the terminal made of a line that was too wide

    @property
    def visible(self) -> list[str]:
        return self.lines[-(self.rows - 1) :]  # the prompt has the last row

    def flat(self, *, only_visible: bool = False) -> str:
        """The text in one piece, whether a program or the terminal folded it."""
        first = len(self.lines) - len(self.visible) if only_visible else 0
        parts = [("" if at in self.folded else " ") + self.lines[at] for at in range(first, len(self.lines))]
        return re.sub(r"[\s│┃|]+", " ", "".join(parts))

    @property
    def text(self) -> str:
        return "\n".join(self.lines)


def shown(command: Sequence[str | Path], cwd: Path, *, columns: int = 80, rows: int = 24) -> Shown:
    """Run a command on a terminal of this size, to its end."""
    primary, secondary = pty.openpty()
    fcntl.ioctl(secondary, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    left_out = ("COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR", "CI", "GITHUB_ACTIONS")
    environment = {name: value for name, value in os.environ.items() if name not in left_out}
    environment |= {"TERM": "xterm-256color", "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8"}
    start = time.monotonic()
    process = subprocess.Popen(
        list(map(str, command)),
        stdin=secondary,
        stdout=secondary,
        stderr=secondary,
        cwd=cwd,
        env=environment,
        start_new_session=True,
    )
    os.close(secondary)
    output = bytearray()
    with contextlib.suppress(OSError):  # how a terminal ends when its last writer is gone
        while time.monotonic() < start + _SECONDS:
            readable, _, _ = select.select([primary], [], [], 1)
            if readable:
                part = os.read(primary, 65536)
                if not part:
                    break
                output += part
            elif process.poll() is not None:
                break
    os.close(primary)
    if process.poll() is None and time.monotonic() >= start + _SECONDS:
        process.kill()
    status = process.wait()
    screen = Screen(columns)
    screen.feed(output.decode(errors="replace"))
    words = " ".join(str(each) for each in command[1:])
    return Shown(f"kafkalog {words}", status, time.monotonic() - start, screen.lines, rows, screen.folded)
