"""The remote part of tiered logs: where its objects lie."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from format.io.remote_path import path_of
from format.value_class import value_class
from kafkalog_cli.options.reading import check_path

if TYPE_CHECKING:
    from format.limits import Limits
    from format.node.target import Target
    from format.state.tiered_logs import TieredLogs
    from kafkalog_cli.runner import Run


def _check(path: str | None) -> str | None:
    return None if path is None else check_path(path)


@value_class
class Tiering:
    """Where the objects of remote storage lie."""

    remote: Annotated[
        str | None,
        typer.Option(
            "--remote",
            metavar="PATH",
            callback=_check,
            help="Read tiered logs to their start: the objects of remote storage lie at this path or address.",
            show_default=False,
        ),
    ] = None

    @contextmanager
    def joined(self, run: Run, targets: Sequence[Target], limits: Limits) -> Iterator[TieredLogs | None]:
        """The context in which partitions have their remote segments, too; findings about these come first."""
        if self.remote is None:
            yield None
            return
        from format.node.remote_tier import joined_with
        from format.state.tiered_logs import tiered_logs

        found = tiered_logs(targets, path_of(self.remote), limits)
        run.findings(found.findings)
        for words in found.not_checked:
            run.not_checked(words)
        with joined_with(found.tier):
            yield found
