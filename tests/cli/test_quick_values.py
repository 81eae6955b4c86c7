"""The short cut for option values gives what typer itself would give."""

from __future__ import annotations

from typing import Annotated

import pytest
import typer
from typer.main import get_command

from format.findings import Severity
from kafkalog_cli.options import FailOn, FromTime, Level, Limit, MaxZstdWindow, Paths, Quiet
from kafkalog_cli.quick_values import quick


def sample(
    paths: Paths,
    fail_on: FailOn = Severity.ERROR,
    mildest: Annotated[Severity, typer.Option(parser=lambda text: text)] = Severity.INFO,
    limit: Limit = 3,
    level: Level = "full",
    from_time: FromTime = None,
    max_zstd_window: MaxZstdWindow = None,
    quiet: Quiet = False,
    tags: Annotated[list[str] | None, typer.Option("--tag")] = None,
    numbers: Annotated[list[int] | None, typer.Option("--number")] = None,
    ratio: Annotated[float, typer.Option()] = 0.5,
    plain: str = "x",
) -> dict[str, object]:
    return dict(locals())


def outcome(arguments: list[str], *, is_quick: bool) -> object:
    app = typer.Typer(rich_markup_mode=None, add_completion=False)
    app.command()(sample)
    command = get_command(app)
    if is_quick:
        quick(command.params, sample)
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
    app.command()(sample)
    parameters = get_command(app).params
    before = [each.process_value for each in quick(parameters, sample)]
    assert [each.process_value for each in quick(parameters, sample)] == before
