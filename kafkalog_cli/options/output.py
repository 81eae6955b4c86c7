"""Output: the format of rows, the file that they are written to, and --quiet."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any

import msgspec
import typer

from format.findings import Severity
from format.io.session import Session
from kafkalog_cli.options.groups import LAST, option
from kafkalog_cli.options.parsers import one_of, parse_columns, parse_count, shown
from kafkalog_cli.render.formats import FORMATS

Format = Annotated[
    str | None,
    option("Format of the rows.", "--format", show_default="table on a terminal, else text", **one_of(*FORMATS)),
]
Columns = Annotated[
    str | None,
    option(
        "The columns of table and text, or all.",
        "--columns",
        metavar="A,B,...",
        parser=parse_columns,
        show_default="the essential ones, and more if they fit",
    ),
]
EveryRow = Annotated[
    bool, option("In tables and text, show every row, and not counts of what is usual.", "--every-row")
]
Quiet = Annotated[bool, option("No progress and no summary on standard error.", "--quiet", "-q"), LAST]


class Output(msgspec.Struct, frozen=True):
    """The options that a run reads; here of a command whose result is a document of its own, and no rows."""

    quiet: Quiet = False
    session: Session = msgspec.field(default_factory=Session)

    @property
    def format_name(self) -> str | None:
        """The format of the rows; None depends on where they go."""
        return None

    @property
    def output_file(self) -> str | None:
        """The file to write; None is standard output."""
        return None

    @property
    def columns(self) -> str | None:
        """The names of the columns that were chosen, with commas; None for the essential ones."""
        return None

    @property
    def chosen_columns(self) -> tuple[str, ...] | None:
        return None if self.columns is None else tuple(self.columns.split(","))


class RowOutput(Output, frozen=True):
    """Rows on standard output."""

    format_name: Format = None
    columns: Columns = None


class DocumentOutput(Output, frozen=True):
    """Rows on standard output or in a new file."""

    format_name: Format = None
    output_file: Annotated[
        str | None, option("Write to a new file instead of standard output.", "--output", metavar="FILE")
    ] = None
    columns: Columns = None


LEVELS = ("headers", "crc", "records", "full")
DEFAULT_SEVERITY = Severity.ERROR
_LABELS = tuple(each.label for each in Severity)


def parse_severity(text: str) -> Severity:
    """A severity by its name."""
    for severity in Severity:
        if text == severity.label:
            return severity
    raise typer.BadParameter(f"{shown(text)} is not one of {', '.join((*_LABELS, *_CONDITIONS))}")


#: A row by the names of its columns.
_Values = Mapping[str, Any]


def _never(row: _Values) -> bool:
    return False


class FailCondition(msgspec.Struct, frozen=True):
    """A condition of --fail-on besides severities: what fails a run, and the command that can know it.

    It is met by a finding with ``code``, or by a row of the type ``row_type`` for which ``number_of`` is above
    ``least``: 0, or N of ``name:N``. A row for which ``is_unknown`` is true leaves it open. doctor knows the condition
    by its diagnoses with the code ``diagnosis``.
    """

    name: str
    command: str
    what: str
    code: str = ""
    row_type: str = ""
    number_of: Callable[[_Values], int | None] = _never
    is_unknown: Callable[[_Values], bool] = _never
    diagnosis: str = ""
    takes_number: bool = False
    least: int = 0

    def is_met_by(self, row: _Values) -> bool:
        """Whether a row of the type meets it."""
        return (self.number_of(row) or 0) > self.least

    def is_known_to(self, command: str) -> bool:
        return command == self.command or (command == "doctor" and self.diagnosis != "")


def _has_unknown_lag(row: _Values) -> bool:
    return bool(row["partitions_without_lag"])


FAIL_CONDITIONS = (
    FailCondition(
        "hanging", "txns", "whether a transaction hangs", code="transaction-hanging", row_type="transaction",
        is_unknown=lambda row: row["state"] == "open" and row["is_hanging"] is None, diagnosis="transaction-hangs",
    ),
    FailCondition(
        "out-of-range", "groups", "whether a committed offset is outside its log", row_type="group",
        number_of=lambda row: row["partitions_out_of_range"], is_unknown=_has_unknown_lag,
        diagnosis="group-out-of-range",
    ),
    FailCondition(
        "lag", "groups", "how far a group lags", row_type="group", number_of=lambda row: row["total_lag"],
        is_unknown=_has_unknown_lag, takes_number=True,
    ),
    FailCondition("misplaced", "verify", "whether a record is in the partition of its key", code="record-misplaced"),
    FailCondition(
        "diverged", "diff", "whether replicas diverge", row_type="divergence",
        number_of=lambda row: row["kind"] == "diverged", diagnosis="replicas-diverge",
    ),
)  # fmt: skip
_CONDITIONS = {each.name: each for each in FAIL_CONDITIONS}


def parse_fail_on(words: list[str]) -> tuple[Severity | None, tuple[FailCondition, ...]]:
    """The lowest severity and the conditions in the values of --fail-on. Raises a usage error."""
    severities: list[Severity] = []
    conditions: list[FailCondition] = []
    for word in (each.strip() for value in words for each in value.split(",")):
        name, colon, number = word.partition(":")
        condition = _CONDITIONS.get(name)
        if condition is None:
            severities.append(parse_severity(word))
        elif condition.takes_number != bool(colon):
            form = f"{name}:N" if condition.takes_number else name
            raise typer.BadParameter(f"{shown(word)} is not {form}")
        elif condition.takes_number:
            conditions.append(msgspec.structs.replace(condition, least=parse_count(number)))
        else:
            conditions.append(condition)
    return min(severities, default=None), tuple(conditions)


def _check_fail_on(context: typer.Context, words: list[str] | None) -> list[str] | None:
    """The values of --fail-on. Raises a usage error for a condition that this command cannot know."""
    command = str(context.info_name)
    for each in parse_fail_on(words or [])[1]:
        if not each.is_known_to(command):
            raise typer.BadParameter(f"{command} does not know {each.what}: kafkalog {each.command} does")
    return words


def _complete_fail_on(context: typer.Context, incomplete: str) -> list[str]:
    """The severities, and the conditions that the command knows."""
    known = [each.name for each in FAIL_CONDITIONS if each.is_known_to(str(context.info_name))]
    return [name for name in (*_LABELS, *known) if name.startswith(incomplete)]


def fail_on_help(command: str) -> str:
    """The help of --fail-on, with the conditions that a command knows."""
    words = "Exit with status 1 for findings of at least this severity"
    known = [each.name + each.takes_number * ":N" for each in FAIL_CONDITIONS if each.is_known_to(command)]
    if not known:
        return f"{words}."
    return f"{words}, or for conditions: {', '.join(known)}. May be repeated, or a list with commas."


class Judging(msgspec.Struct, frozen=True):
    """What fails a run: findings from a severity upwards, and conditions."""

    fail_on_words: Annotated[
        list[str] | None,
        option(
            fail_on_help(""),  # see made_command
            "--fail-on",
            metavar="|".join(_LABELS),
            callback=_check_fail_on,
            autocompletion=_complete_fail_on,
            show_default=DEFAULT_SEVERITY.label,
        ),
    ] = None

    @property
    def fail_on(self) -> Severity:
        """The lowest severity that fails a run."""
        severity, _ = parse_fail_on(self.fail_on_words or [])
        return DEFAULT_SEVERITY if severity is None else severity

    @property
    def conditions(self) -> tuple[FailCondition, ...]:
        """The conditions that fail a run."""
        return parse_fail_on(self.fail_on_words or [])[1]

    def is_met_by_diagnosis(self, diagnosis: str) -> bool:
        """Whether a diagnosis of doctor with this code meets a condition."""
        return any(each.diagnosis == diagnosis != "" for each in self.conditions)

    def is_on(self, name: str) -> bool:
        return any(each.name == name for each in self.conditions)
