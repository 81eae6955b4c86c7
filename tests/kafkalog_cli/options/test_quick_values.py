"""The short cut for option values gives what typer itself would give."""

from __future__ import annotations

from typing import Annotated

import pytest
import typer
from typer.main import get_command

from format.findings import Severity
from kafkalog_cli.options.groups import as_command
from kafkalog_cli.options.guards import Guards
from kafkalog_cli.options.judging import LEVELS, Judging
from kafkalog_cli.options.output import Quiet
from kafkalog_cli.options.parsers import one_of
from kafkalog_cli.options.quick_values import quick
from kafkalog_cli.options.reading import Paths
from kafkalog_cli.options.selection import Rows


def sample(
    paths: Paths,
    judging: Judging,
    rows: Rows,
    guards: Guards,
    mildest: Annotated[Severity, typer.Option(parser=lambda text: text)] = Severity.INFO,
    level: Annotated[str, typer.Option("--level", **one_of(*LEVELS))] = "full",
    quiet: Quiet = False,
    tags: Annotated[list[str] | None, typer.Option("--tag")] = None,
    numbers: Annotated[list[int] | None, typer.Option("--number")] = None,
    ratio: Annotated[float, typer.Option()] = 0.5,
    plain: str = "x",
) -> dict[str, object]:
    return dict(locals())


SAMPLE = as_command(sample)


def outcome(arguments: list[str], *, is_quick: bool) -> object:
    app = typer.Typer(rich_markup_mode=None, add_completion=False)
    app.command()(SAMPLE)
    command = get_command(app)
    if is_quick:
        quick(command.params, SAMPLE)
    try:
        values = command.main(arguments, prog_name="x", standalone_mode=False)
    except typer.BadParameter as error:
        return type(error).__name__, error.format_message()
    return {name: (type(value), value) for name, value in values.items()}


@pytest.mark.parametrize(
    "arguments",
    [
        ["/"],
        ["/", "/tmp"],
        [],
        ["/nowhere"],
        ["/", "--limit", "7", "--level", "crc", "--from-time", "-1", "--max-zstd-window", "1KiB", "-q"],
        ["/", "--fail-on", "fatal", "--tag", "a", "--tag", "b"],
        ["/", "--fail-on", "worse"],
        ["/", "--limit", "0"],
        ["/", "--level", "deep"],
        ["/", "--max-zstd-window", "big"],
        ["/", "--number", "1", "--number", "2", "--ratio", "0.25", "--plain", "y"],
        ["/", "--plain", ""],
        ["/", "--limit", ""],
    ],
)
def test_the_same_as_the_library(arguments):
    assert outcome(arguments, is_quick=True) == outcome(arguments, is_quick=False)


def test_it_is_applied_once():
    app = typer.Typer(add_completion=False)
    app.command()(SAMPLE)
    parameters = get_command(app).params
    before = [each.process_value for each in quick(parameters, SAMPLE)]
    assert [each.process_value for each in quick(parameters, SAMPLE)] == before
