"""Lines for a terminal: folded between words, with a command whole in a line of its own, to be copied."""

from __future__ import annotations

import re
import textwrap

#: A command at the end of a line, alone or after a colon.
_COMMAND = re.compile(r"(?:^\s*|(?<=: ))(?:kafkalog|kafka-[a-z-]+(?:\.sh)?) \S.*$")
#: An option before its value, which stay together.
_OPTION = re.compile(r"(?<![^ (])(--[\w-]+) (?=\w)")
#: A space at which no line ends; what is folded has no control characters.
NO_BREAK = "\x00"


def folded_line(line: str, width: int | None, indent: str = "", *, head: str = "") -> list[str]:
    """A line in as many lines as it needs, each with an indent, which may be its own; the first one with ``head``.

    No word is cut, nor a command. An empty line is one; without a width, every line is.
    """
    words = line.lstrip(" ")
    indent, line = indent + " " * (len(line) - len(words)), words
    head = head or indent
    if width is None or len(head) + len(line) <= width:
        return [head + line.replace(NO_BREAK, " ")]
    found = _COMMAND.search(line)
    words = _OPTION.sub(rf"\1{NO_BREAK}", line if found is None else line[: found.start()])
    lines = textwrap.wrap(
        words, width, initial_indent=head, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )
    lines = [each.replace(NO_BREAK, " ") for each in lines]
    return lines if found is None else [*lines, indent + found[0].strip()]
