"""Lines for a terminal: folded between words, with a command whole in a line of its own, to be copied."""

from __future__ import annotations

import re
import textwrap

#: A command at the end of a line, alone or after a colon.
_COMMAND = re.compile(r"(?:^\s*|(?<=: ))(?:kafkalog|kafka-[a-z-]+(?:\.sh)?) \S.*$")
#: An option before its value, which stay together.
_OPTION = re.compile(r"(?<![^ (])(--[\w-]+) (?=\w)")
_NO_BREAK = "\x00"


def folded_line(line: str, width: int, indent: str = "") -> list[str]:
    """A line in as many lines as it needs, each with an indent. No word is cut, nor a command; an empty line is one."""
    if len(indent) + len(line) <= width:
        return [indent + line]
    found = _COMMAND.search(line)
    words = _OPTION.sub(rf"\1{_NO_BREAK}", line if found is None else line[: found.start()])
    lines = textwrap.wrap(
        words,
        width,
        initial_indent=indent,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
    lines = [each.replace(_NO_BREAK, " ") for each in lines]
    return lines if found is None else [*lines, indent + found[0].strip()]
