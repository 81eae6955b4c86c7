"""Messages on standard error: screen-safe, and never a reason to fail."""

from __future__ import annotations

import os
import sys
import traceback

from kafkalog_cli.render.escape import printable


def say(text: str) -> None:
    """Write lines to standard error; each is made screen-safe, and an error in writing them is ignored."""
    lines = "".join(f"{printable(line)}\n" for line in text.split("\n"))
    try:
        if sys.stderr is not None:
            encoding = sys.stderr.encoding or "utf-8"
            sys.stderr.write(lines.encode(encoding, "backslashreplace").decode(encoding))
            sys.stderr.flush()
    except (OSError, ValueError):
        pass


def is_debugging() -> bool:
    """Whether KAFKALOG_DEBUG asks for tracebacks."""
    return os.environ.get("KAFKALOG_DEBUG", "") not in ("", "0")


def say_traceback(error: BaseException) -> None:
    """Print the traceback of an error if KAFKALOG_DEBUG asks for it."""
    if is_debugging():
        say("".join(traceback.format_exception(error)).rstrip("\n"))
