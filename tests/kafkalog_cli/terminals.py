"""Runs of kafkalog on pseudo-terminals, each in a forked child, and what the terminal shows at the end."""

from __future__ import annotations

import fcntl
import io
import os
import pty
import re
import select
import signal
import struct
import sys
import termios
import time
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from tests.running import import_everything

#: The clock of all runs, in ms: what an answer says about the present does not change between two of them.
NOW_MS = 1_800_000_000_000
_SECONDS = 120.0
_PIECE = re.compile(r"\x1b\[([0-9;?]*)([A-Za-z])|\x1b.|\r|\n|[^\x1b\r\n]+", re.DOTALL)
_FOLLOWS = b"until Ctrl-C."


@dataclass(frozen=True)
class Terminal:
    """A terminal: its size, the variables that programs look at, and whether progress appears at once or never.

    With ``is_paged``, standard output is a pipe to another program on the terminal.
    """

    columns: int = 80
    lines: int = 24
    term: str = "xterm-256color"
    no_color: bool = False
    shows_progress: bool = True
    is_paged: bool = False


@dataclass(frozen=True)
class Seen:
    """The exit code of a run, and all that it wrote to its terminal."""

    code: int
    text: str

    def screen(self, columns: int) -> list[str]:
        """The lines that are there at the end, those that scrolled off too, without trailing spaces."""
        lines: list[list[str]] = [[]]
        row = column = 0
        for match in _PIECE.finditer(self.text):
            piece, count, kind = match[0], match[1], match[2]
            if piece == "\r":
                column = 0
            elif piece == "\n":
                row, column = row + 1, 0
            elif kind == "A":
                row = max(0, row - int(count or 1))
            elif kind == "K":
                lines[row] = [] if count == "2" else lines[row][:column]
            elif not piece.startswith("\x1b"):
                for letter in piece:
                    if column == columns:
                        row, column = row + 1, 0
                        lines += [[] for _ in range(row + 1 - len(lines))]
                    lines[row] += " " * (column + 1 - len(lines[row]))
                    lines[row][column] = letter
                    column += 1
            lines += [[] for _ in range(row + 1 - len(lines))]
        return ["".join(each).rstrip() for each in lines]


def run_on_terminal(words: list[str], terminal: Terminal, cwd: Path, *, typed: bytes = b"") -> Seen:
    """Run kafkalog with these words. ``typed`` is typed when something is shown, and Ctrl-C when a run follows."""
    import_everything()
    process, end = pty.fork()
    if process == 0:
        _child(words, terminal, cwd)
    seen, last = b"", time.monotonic() + _SECONDS
    while True:
        assert time.monotonic() < last, f"{words} does not end: {seen[-2000:]!r}"
        if not select.select([end], [], [], 1)[0]:
            continue
        try:
            piece = os.read(end, 65536)
        except OSError:  # the last writer has gone
            break
        if not piece:
            break
        is_following = _FOLLOWS in seen
        seen += piece
        if typed:
            os.write(end, typed)
            typed = b""
        if _FOLLOWS in seen and not is_following:
            os.kill(process, signal.SIGINT)
    os.close(end)
    code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    return Seen(code, seen.decode("utf-8").replace("\r\n", "\n"))


def _child(words: list[str], terminal: Terminal, cwd: Path) -> NoReturn:
    code, pager = 99, 0
    try:
        fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", terminal.lines, terminal.columns, 0, 0))
        os.chdir(cwd)
        if terminal.is_paged:
            pager = _put_in_pipe()
        for name in ("NO_COLOR", "COLUMNS", "LINES", "FORCE_COLOR", "KAFKALOG_DEBUG"):
            os.environ.pop(name, None)
        os.environ["TERM"] = terminal.term
        if terminal.no_color:
            os.environ["NO_COLOR"] = "1"
        sys.stdin = io.TextIOWrapper(io.FileIO(0, closefd=False), encoding="utf-8")
        sys.stdout, sys.stderr = (
            io.TextIOWrapper(io.FileIO(descriptor, "w", closefd=False), encoding="utf-8", write_through=True)
            for descriptor in (1, 2)
        )
        signal.signal(signal.SIGINT, signal.default_int_handler)
        _set_clocks(terminal.shows_progress)
        sys.argv = ["kafkalog", *words]
        from kafkalog_cli.main import main

        code = main()
    finally:
        if pager:  # the terminal goes with this process
            os.close(1)
            os.waitpid(pager, 0)
        os._exit(code)  # neither pytest's exit handlers nor its buffered output belong to the child


def _put_in_pipe() -> int:
    """Send standard output through a program that writes it to the terminal; returns its process id."""
    read_end, write_end = os.pipe()
    pager = os.fork()
    if pager == 0:
        os.dup2(read_end, 0)
        os.close(write_end)
        os.execvp("cat", ["cat"])
    os.dup2(write_end, 1)
    os.close(read_end)
    os.close(write_end)
    return pager


def _set_clocks(shows_progress: bool) -> None:
    """Stop the clock, show progress at once or never, and draw no table early."""
    from kafkalog_cli import progress
    from kafkalog_cli.render import table

    time.time_ns = lambda: NOW_MS * 1_000_000
    progress._DELAY_S = 0.0 if shows_progress else float("inf")
    progress._INTERVAL_S = 0.0
    table._LATEST_BLOCK_S = float("inf")
