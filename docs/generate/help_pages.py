"""The help page of the program and of every command in its table."""

from __future__ import annotations

from typing import Any

from typer.main import get_command

from kafkalog_cli.main import COMMANDS, PROGRAM, app

COLUMNS = 110


def help_of(command: str | None = None) -> str:
    """What ``kafkalog --help``, or ``kafkalog COMMAND --help``, prints on a terminal of 110 columns."""
    group: Any = get_command(app)
    context = group.make_context(PROGRAM, [], resilient_parsing=True, terminal_width=COLUMNS)
    if command is not None:
        group = group.get_command(context, command)
        context = group.make_context(command, [], parent=context, resilient_parsing=True, terminal_width=COLUMNS)
    return "\n".join(line.rstrip() for line in group.get_help(context).splitlines()).strip() + "\n"


def all_help_pages() -> str:
    """A section for the program, and one for each command in the table's order."""
    sections = [f"## {PROGRAM}\n\n```text\n{help_of()}```"]
    for entry in COMMANDS:
        sections.append(f"## {PROGRAM} {entry.name}\n\n{entry.help}\n\n```text\n{help_of(entry.name)}```")
    return "\n\n".join(sections)
