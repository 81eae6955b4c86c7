"""Output: the format of rows, the file that they are written to, and --quiet."""

from __future__ import annotations

from typing import Annotated, Any, Protocol

import msgspec
import typer

from format.findings import Severity
from format.io.session import Session
from kafkalog_cli.options.groups import LAST
from kafkalog_cli.options.parsers import completion_of, one_of, parse_columns, shown
from kafkalog_cli.render.formats import FORMATS

Format = Annotated[
    str | None,
    typer.Option(
        "--format", help="Format of the rows.", show_default="table on a terminal, else text", **one_of(*FORMATS)
    ),
]
Columns = Annotated[
    str | None,
    typer.Option(
        "--columns",
        metavar="A,B,...",
        parser=parse_columns,
        help="The columns of table and text, or all.",
        show_default="the essential ones, and more if they fit",
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no summary on standard error."), LAST]


class Output(Protocol):
    """The options that a run reads. ``output_file`` None is standard output; ``format_name`` None depends on it."""

    @property
    def format_name(self) -> str | None: ...
    @property
    def output_file(self) -> str | None: ...
    @property
    def quiet(self) -> bool: ...
    @property
    def chosen_columns(self) -> tuple[str, ...] | None: ...
    @property
    def session(self) -> Session: ...


class RowOutput(msgspec.Struct, frozen=True):
    """Rows on standard output."""

    format_name: Format = None
    columns: Columns = None
    quiet: Quiet = False
    session: Session = msgspec.field(default_factory=Session)

    @property
    def output_file(self) -> None:
        return None

    @property
    def chosen_columns(self) -> tuple[str, ...] | None:
        return _names(self.columns)


class DocumentOutput(msgspec.Struct, frozen=True):
    """Rows on standard output or in a new file."""

    format_name: Format = None
    output_file: Annotated[
        str | None,
        typer.Option("--output", metavar="FILE", help="Write to a new file instead of standard output."),
    ] = None
    columns: Columns = None
    quiet: Quiet = False
    session: Session = msgspec.field(default_factory=Session)

    @property
    def chosen_columns(self) -> tuple[str, ...] | None:
        return _names(self.columns)


class SummaryOutput(msgspec.Struct, frozen=True):
    """Only the summary, on standard error, for commands whose result is a document of its own."""

    quiet: bool = False
    session: Session = msgspec.field(default_factory=Session)

    @property
    def format_name(self) -> str:
        return "text"

    @property
    def output_file(self) -> None:
        return None

    @property
    def chosen_columns(self) -> None:
        return None


def _names(columns: str | None) -> tuple[str, ...] | None:
    """The names in a list with commas."""
    return None if columns is None else tuple(columns.split(","))


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
