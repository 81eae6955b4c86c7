"""Messages on standard error: screen-safe, and never a reason to fail."""

from __future__ import annotations

import os
import sys
import traceback

from kafkalog_cli.render.escape import printable

#: Lines are not cut for a terminal narrower than this.
_LEAST_WIDTH = 30


def say(text: str) -> None:
    """Write lines to standard error; each is made screen-safe, and an error in writing them is ignored."""
    lines = "".join(f"{printable(line)}\n" for line in text.split("\n"))
    try:
        if sys.stderr is not None:
            if sys.stderr.isatty():
                lines = _folded(lines, os.get_terminal_size(sys.stderr.fileno()).columns)
            encoding = sys.stderr.encoding or "utf-8"
            sys.stderr.write(lines.encode(encoding, "backslashreplace").decode(encoding))
            sys.stderr.flush()
    except (OSError, ValueError):
        pass


def _folded(lines: str, width: int) -> str:
    """Lines that fit a terminal, cut between words. Lines with options stay whole: they may hold a command to copy."""
    found = []
    for line in lines.splitlines():
        if len(line) <= width or " --" in line or width < _LEAST_WIDTH:
            found.append(line)
        else:
            indent = " " * (len(line) - len(line.lstrip()))
            import textwrap  # only for a narrow terminal

            found += textwrap.wrap(
                line, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
            )
    return "".join(f"{each}\n" for each in found)


def is_debugging() -> bool:
    """Whether KAFKALOG_DEBUG asks for tracebacks."""
    return os.environ.get("KAFKALOG_DEBUG", "") not in ("", "0")


def say_traceback(error: BaseException) -> None:
    """Print the traceback of an error if KAFKALOG_DEBUG asks for it."""
    if is_debugging():
        say("".join(traceback.format_exception(error)).rstrip("\n"))
