"""The levels of checks, and the lowest severity of findings that makes the exit status 1."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
import typer

from format.findings import Severity
from kafkalog_cli.options.parsers import completion_of, shown

LEVELS = ("headers", "crc", "records", "full")
DEFAULT_SEVERITY = Severity.ERROR
_LABELS = tuple(each.label for each in Severity)


def parse_severity(text: Any) -> Severity:
    """A severity by its name."""
    if isinstance(text, Severity):
        return text
    for severity in Severity:
        if text == severity.label:
            return severity
    raise typer.BadParameter(f"{shown(text)} is not one of {', '.join(_LABELS)}")


class Judging(msgspec.Struct, frozen=True):
    """The severity that fails a run."""

    fail_on: Annotated[
        Severity,
        typer.Option(
            "--fail-on",
            metavar="|".join(_LABELS),
            parser=parse_severity,
            autocompletion=completion_of(_LABELS),
            help="Exit with status 1 for findings of at least this severity.",
            show_default=DEFAULT_SEVERITY.label,
        ),
    ] = DEFAULT_SEVERITY
