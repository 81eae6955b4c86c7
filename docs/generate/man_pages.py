"""The manual pages, one for the program and one for each command, from the same source as ``--help``.

The commands write their help to a formatter; the one here writes roff, the language of ``man``, with the macros of
man(7).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from typer._click.formatting import HelpFormatter
from typer.main import get_command

from format.version import VERSION
from kafkalog_cli.command_table import COMMANDS, COMMON_PAGE, SCANS, write_common_options
from kafkalog_cli.main import PROGRAM, app
from tests.corpora import REPOSITORY

#: Where the pages lie: ``pip install`` copies everything below docs/share into the prefix's own share folder.
MAN_PAGES = REPOSITORY / "docs/share/man/man1"

_LIKE_A_REQUEST = re.compile(r"^([.'])", re.MULTILINE)  # roff reads such a line as an order


def man_pages() -> dict[str, str]:
    """The text of every manual page by its file name."""
    names = [(), *((entry.name,) for entry in COMMANDS), *(("scan", verb.name) for verb in SCANS)]
    pages = {f"{'-'.join((PROGRAM, *words))}.1": _page(words) for words in names}
    formatter = ManFormatter(f"{PROGRAM}-{COMMON_PAGE}", "options that many commands share")
    write_common_options(formatter)
    return pages | {f"{PROGRAM}-{COMMON_PAGE}.1": formatter.page([PROGRAM])}


def _page(words: tuple[str, ...]) -> str:
    command: Any = get_command(app)
    context = command.make_context(PROGRAM, [], resilient_parsing=True)
    summary = command.help
    for place, word in enumerate(words):
        summary = next(entry.help for entry in (COMMANDS, SCANS)[place] if entry.name == word)
        command = command.get_command(context, word)
        context = command.make_context(word, [], parent=context, resilient_parsing=True)
    formatter = ManFormatter("-".join((PROGRAM, *words)), str(summary))
    command.format_help(context, formatter)
    return formatter.page(_related(words))


def _related(words: tuple[str, ...]) -> list[str]:
    if not words:
        return [f"{PROGRAM}-{entry.name}" for entry in COMMANDS]
    if words == ("scan",):
        return [PROGRAM, *(f"{PROGRAM}-scan-{verb.name}" for verb in SCANS)]
    return (
        [PROGRAM, f"{PROGRAM}-{COMMON_PAGE}"]
        if len(words) == 1
        else [PROGRAM, f"{PROGRAM}-scan", f"{PROGRAM}-{words[-1]}"]
    )


class ManFormatter(HelpFormatter):
    """Writes a help page as a manual page: the methods that commands call, with roff for their output."""

    def __init__(self, name: str, summary: str) -> None:
        super().__init__()
        self._name = name
        self._is_described = False
        title = f'.TH {_text(name.upper())} 1 "" "{PROGRAM} {VERSION}" "{PROGRAM} manual"'
        first_sentence = re.split(r"(?<=\.)\s", " ".join(summary.split()))[0].rstrip(".")
        self._lines = [title, ".SH NAME", f"{_text(name)} \\- {_text(first_sentence)}"]

    def page(self, related: Iterable[str]) -> str:
        """The whole page, with the pages of related commands at its end."""
        pages = ", ".join(f"\\fB{_text(name)}\\fR(1)" for name in sorted(related))
        return "\n".join((*self._lines, ".SH SEE ALSO", pages)) + "\n"

    def write_usage(self, prog: str, args: str = "", prefix: str | None = None) -> None:
        """The synopsis."""
        self._lines += [".SH SYNOPSIS", f".B {_text(prog)}", _text(args)]

    def write_heading(self, heading: str) -> None:
        """The heading of a section."""
        self._lines.append(f".SH {_text(heading.upper())}")

    def write_paragraph(self) -> None:
        """Nothing: the macros make the room between paragraphs."""

    def write_text(self, text: str) -> None:
        """Paragraphs; the first ones of a page are its description."""
        if not self._is_described:
            self.write_heading("Description")
            self._is_described = True
        for number, paragraph in enumerate(text.split("\n\n")):
            if number:
                self._lines.append(".PP")
            is_verbatim = paragraph.startswith("\b")
            lines = _text(paragraph.removeprefix("\b").strip("\n"))
            self._lines += [".EX", lines, ".EE"] if is_verbatim else [re.sub(r"\s*\n\s*", "\n", lines.strip())]

    def write_dl(self, rows: Iterable[tuple[str, str]], col_max: int = 30, col_spacing: int = 2) -> None:
        """Terms with their meanings."""
        for term, meaning in rows:
            self._lines += [".TP", f"\\fB{_text(term)}\\fR", _text(" ".join(meaning.split())) or "\\&"]

    def write(self, string: str) -> None:
        """Examples: a line that begins with ``#`` is the meaning of the command below it."""
        for line in string.splitlines():
            words = line.strip()
            if words.startswith("#"):
                self._lines += [".PP", _text(words.removeprefix("#").strip())]
            elif words:
                self._lines += [".PP", ".RS 4", ".EX", _text(words), ".EE", ".RE"]

    @contextmanager
    def section(self, name: str) -> Iterator[None]:  # type: ignore[override]
        """A section with its heading."""
        self._is_described = True
        self.write_heading(name)
        yield

    @contextmanager
    def indentation(self) -> Iterator[None]:  # type: ignore[override]
        """Nothing: the macros indent."""
        yield


def _text(text: str) -> str:
    """Text as roff prints it unchanged; hyphens stay the ASCII ones, so that commands can be copied."""
    escaped = _LIKE_A_REQUEST.sub(r"\\&\1", text.replace("\\", "\\e").replace("-", "\\-"))
    return "".join(letter if letter.isascii() else f"\\[u{ord(letter):04X}]" for letter in escaped)
