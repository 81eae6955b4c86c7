"""The time as of which a state is shown."""

from __future__ import annotations

from typing import Annotated

import typer

from format.value_class import value_class
from kafkalog_cli.options.parsers import parse_moment


@value_class
class AsOf:
    """The time up to which logs are replayed."""

    at: Annotated[
        int | None,
        typer.Option(
            "--at",
            metavar="T",
            parser=parse_moment,
            help="Show the state as of this time, by replaying no further: epoch milliseconds, ISO-8601 (UTC unless it "
            "names an offset), or relative (-2h).",
            show_default="the end of the logs",
        ),
    ] = None
