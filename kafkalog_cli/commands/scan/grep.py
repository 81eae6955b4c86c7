"""kafkalog scan grep: the records that kafkalog grep finds."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Annotated

import typer

from format.columns import RECORD
from format.value_class import value_class
from kafkalog_cli.commands.scan.job import Job, Where, check_addresses, run_job, show_rows
from kafkalog_cli.exit_codes import Condition
from kafkalog_cli.options.guards import Guards
from kafkalog_cli.options.selection import Range

if TYPE_CHECKING:
    from kafkalog_cli.runner import Run

EXAMPLES = (
    ("kafkalog scan grep order-4711 /var/kafka", "records with order-4711 in the key, the value or a header"),
    ("kafkalog scan grep --regex '^user-[0-9]+$' s3://bucket/node-1", "in an object store"),
)


@value_class
class Pattern:
    """What to look for, and where."""

    words: Annotated[
        list[str],
        typer.Argument(
            metavar="PATTERN PATH...",
            help="The text to look for; then log directories, partition directories or files, or addresses of them.",
            show_default=False,
        ),
    ]
    regex: Annotated[
        bool, typer.Option("--regex", help="PATTERN is a regular expression; ^ and $ match the ends of a field.")
    ] = False
    ignore_case: Annotated[bool, typer.Option("--ignore-case", "-i", help="Ignore the case of letters.")] = False
    range: Range = field(default_factory=Range)


def grep(pattern: Pattern, where: Where, guards: Guards) -> None:
    """Find records by text or a regular expression in keys, values and headers, as kafkalog grep does."""
    from format.verbs.grep.grep import Criteria
    from format.verbs.grep.pattern import regex_pattern, text_pattern
    from spark_jobs.submit import job_options

    text, *paths = pattern.words
    if not paths:
        raise typer.BadParameter("no PATH after the PATTERN")
    check_addresses(paths)
    make = regex_pattern if pattern.regex else text_pattern
    try:
        criteria = Criteria(make(text, ignore_case=pattern.ignore_case), selection=pattern.range.selection)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None

    def finish(run: Run) -> None:
        if not run.summary.counts.get(RECORD.type):
            run.condition(Condition.NOTHING_FOUND)

    options = job_options("grep", criteria=criteria, limits=guards.limits)
    run_job(Job("grep", paths, options, RECORD), where, show_rows, finish)
