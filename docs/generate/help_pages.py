"""The help page of the program and of every command in its table."""

from __future__ import annotations

from typing import Any

from typer.main import get_command

from kafkalog_cli.command_table import COMMANDS, SCANS
from kafkalog_cli.main import PROGRAM, app

COLUMNS = 110


def help_of(*names: str) -> str:
    """What ``kafkalog --help``, or ``kafkalog COMMAND --help``, prints on a terminal of 110 columns."""
    command: Any = get_command(app)
    context = command.make_context(PROGRAM, [], resilient_parsing=True, terminal_width=COLUMNS)
    for name in names:
        command = command.get_command(context, name)
        context = command.make_context(name, [], parent=context, resilient_parsing=True, terminal_width=COLUMNS)
    return "\n".join(line.rstrip() for line in command.get_help(context).splitlines()).strip() + "\n"


def all_help_pages() -> str:
    """A section for the program, and one for each command and each verb of scan in the tables' order."""
    sections = [f"## {PROGRAM}\n\n```text\n{help_of()}```"]
    for entry in COMMANDS:
        sections.append(f"## {PROGRAM} {entry.name}\n\n{entry.help}\n\n```text\n{help_of(entry.name)}```")
        for verb in SCANS if entry.name == "scan" else ():
            sections.append(f"### {PROGRAM} scan {verb.name}\n\n```text\n{help_of('scan', verb.name)}```")
    return "\n\n".join(sections)
