"""kafkalog report: one page about some log directories, or the same as data."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated

import typer

from format.value_class import value_class
from kafkalog_cli.options.guards import Guards
from kafkalog_cli.options.judging import Judging
from kafkalog_cli.options.output import Quiet, SummaryOutput
from kafkalog_cli.options.parsers import one_of
from kafkalog_cli.options.reading import Paths, place_of
from kafkalog_cli.options.work import Work
from kafkalog_cli.runner import Run

if TYPE_CHECKING:
    from collections.abc import Callable

    from format.verbs.report.terms import Report

EXAMPLES = (
    ("kafkalog report /var/kafka --output incident.html", "one page about a node"),
    ("kafkalog report node-1 node-2 node-3 --output incident.html", "all nodes on one page, their replicas compared"),
    ("kafkalog report /var/kafka --format json | jq '.tables.topic_usage'", "the same as data"),
)


@value_class
class Document:
    """What is written, and where."""

    format: Annotated[
        str, typer.Option("--format", help="A page for a browser, or the same as data.", **one_of("html", "json"))
    ] = "html"
    output: Annotated[
        str | None,
        typer.Option("--output", metavar="FILE", help="Write to a new file instead of standard output."),
    ] = None
    with_bytes: Annotated[
        bool,
        typer.Option(
            "--with-bytes",
            help="Also show the first bytes at each place of damage: they may be keys and values.",
        ),
    ] = False
    quiet: Quiet = False


def report(paths: Paths, document: Document, judging: Judging, guards: Guards, work: Work) -> None:
    """Make one page of what all checks and answers say, to read and to pass on.

    The logs are read once, as verify reads them. The page loads nothing, and holds names, but no keys and no values.
    It needs Jinja2 and vl-convert: pip install 'kafkalog[report]'. The exit status is that of verify.
    """
    from format.node.target import Target
    from format.verbs.report.report import ReportRun
    from format.verbs.report.terms import ReportTerms
    from format.verbs.verify.verify import bytes_to_verify
    from kafkalog_cli.output import open_output

    render = _renderer(document.format)
    with work.reading(), Run("report", SummaryOutput(document.quiet), judging, paths=paths) as run:
        targets = [Target(place_of(path)) for path in paths]
        output = open_output(document.output, paths)
        try:
            progress = run.progress(lambda: sum(bytes_to_verify(each) for each in targets))
            terms = ReportTerms(
                time.time_ns() // 1_000_000,
                guards.limits,
                jobs=work.process_count,
                advance=progress.advance,
                with_bytes=document.with_bytes,
            )
            making = ReportRun(targets, terms)
            for found in making.findings():
                run.judge(found)
            made = making.finish()
            output.write(render(made).encode())
            output.publish()
        finally:
            output.discard()
        for name, count in made.counts.items():
            run.count(name, count)
        if made.not_checked:
            run.not_checked("what is listed at the end of the report")


def _renderer(name: str) -> Callable[[Report], str]:
    """The function that makes the document; a usage error if it needs a library that is not installed."""
    if name == "json":
        from kafkalog_cli.page.document import document_of

        return document_of
    try:
        import vl_convert  # noqa: F401

        from kafkalog_cli.page.page import page_of
    except ImportError as error:
        message = f"a page needs Jinja2 and vl-convert ({error}): pip install 'kafkalog[report]', or use --format json"
        raise typer.BadParameter(message, param_hint="--format") from None
    return page_of
