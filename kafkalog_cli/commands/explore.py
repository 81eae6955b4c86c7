"""kafkalog explore: a log directory on the screen, down to the fields of each byte."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from format.errors import InputError
from format.io.session import Session, is_remote
from format.limits import DEFAULT_LIMITS
from format.node.target import Target
from kafkalog_cli.exit_codes import ExitCode
from kafkalog_cli.options.parsers import usage_errors
from kafkalog_cli.options.reading import AsKind, check_if_given
from kafkalog_cli.options.values import ValueOptions
from kafkalog_cli.render.text import printable

EXAMPLES = (
    ("kafkalog explore /var/kafka", "a log directory"),
    ("kafkalog explore /var/kafka/orders-0", "one partition"),
    ("kafkalog explore /var/kafka/orders-0/00000000000000000000.index", "one file"),
)

Path = Annotated[
    str,
    typer.Argument(
        metavar="PATH",
        help="A log directory, a partition directory (TOPIC-PARTITION), or one file of any kind.",
        callback=check_if_given,
        show_default=False,
    ),
]


def explore(session: Session, path: Path, as_kind: AsKind, values: ValueOptions) -> None:
    """Browse partitions, segments, batches and records on the screen, with the field that each byte belongs to.

    What you open is read, and the batch headers of the partitions that are listed, of logs of more than 64 MiB only
    those at the end. Nothing is written. The keys are shown at the bottom of the screen. Needs a terminal and the
    package textual: pip install 'kafkalog[explore]'.
    """
    from format.verbs.explore import root_place

    if not (sys.stdin.isatty() and sys.stdout.isatty() and sys.stderr.isatty()):
        raise typer.BadParameter("explore needs a terminal; without one, use dump, ls or verify")
    if os.environ.get("TERM") in ("dumb", "unknown"):
        raise typer.BadParameter(
            f"explore needs a terminal whose cursor can be moved; TERM is {os.environ['TERM']}: use dump, ls or verify"
        )
    if is_remote(path):
        raise typer.BadParameter(printable(f"{path}: explore takes a path of this host"))
    with usage_errors(InputError, path):
        root = root_place(session.path(path), as_kind.kind)
    try:
        from kafkalog_cli.screens.explorer import Explorer
    except ImportError as error:
        if error.name is None or error.name.partition(".")[0] != "textual":
            raise
        raise typer.BadParameter("explore needs textual: pip install 'kafkalog[explore]'") from None
    decoding = values.decoding_at([Target(session.path(path), as_kind.kind)], DEFAULT_LIMITS, is_for_people=True)
    screen = Explorer(root, decoding)
    screen.run()
    if screen.return_code:
        raise typer.Exit(ExitCode.BUG)
