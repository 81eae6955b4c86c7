"""kafkalog report: one page about some log directories, or the same as data."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer
from msgspec.structs import replace

from format.io.session import Session
from format.node.target import targets_at
from kafkalog_cli.exit_codes import Condition
from kafkalog_cli.failures import needing
from kafkalog_cli.options.groups import option
from kafkalog_cli.options.output import Judging, Output, Quiet
from kafkalog_cli.options.parsers import one_of
from kafkalog_cli.options.reading import ConfigSources, Paths, bundles_of
from kafkalog_cli.options.work import Guards, Work
from kafkalog_cli.output import open_output
from kafkalog_cli.runner import Run

if TYPE_CHECKING:
    from format.io.bundles.bundle import Bundle
    from format.verbs.report.table_report import TableReport
    from format.verbs.report.terms import Report

EXAMPLES = (
    ("kafkalog report /var/kafka --output incident.html", "one page about a node"),
    ("kafkalog report node-1 node-2 node-3 --output incident.html", "all nodes on one page, their replicas compared"),
    ("kafkalog report /mnt/report --output incident.html", "the tables of scans of many brokers"),
    ("kafkalog report /var/kafka --format json | jq '.tables.topic_usage'", "the same as data"),
)


class Document(msgspec.Struct, frozen=True):
    """What is written, and where."""

    format: Annotated[str, option("A page for a browser, or the same as data.", **one_of("html", "json"))] = "html"
    output: Annotated[
        str | None, option("Write to a new file instead of standard output, which must be no terminal.", metavar="FILE")
    ] = None
    with_bytes: Annotated[
        bool, option("Also show the first bytes at each place of damage, which may be keys and values.")
    ] = False
    quiet: Quiet = False


def report(
    paths: Paths, document: Document, sources: ConfigSources, judging: Judging, guards: Guards, work: Work
) -> None:
    """Make one page with the results of all checks and diagnoses, to read and to share.

    The page begins with the diagnoses of kafkalog doctor --deep. The logs are read once, as verify reads them.
    The page loads nothing, and has names, but no keys and no values. It needs Jinja2 and vl-convert:
    pip install 'kafkalog[report]'. The exit status is that of kafkalog doctor --deep.

    A path may also be a report set: the tables that kafkalog scan verify --output DIR and other scans wrote.
    """
    from format.verbs.report.report import ReportRun
    from format.verbs.report.terms import ReportTerms
    from format.verbs.verify.verify import bytes_to_verify

    render = _renderer(document.format)
    has_tables = _has_tables(work.session, paths, document, sources)
    with Run("report", Output(document.quiet, work.session), judging, paths=paths) as run:
        output = open_output(document.output, paths)
        try:
            if output.is_terminal:
                message = f"the document is too long for a terminal: add --output incident.{document.format}"
                raise typer.BadParameter(message, param_hint="--output")
            terms = ReportTerms(
                time.time_ns() // 1_000_000,
                guards.limits,
                jobs=work.process_count,
                with_bytes=document.with_bytes,
                context=sources.terms({}, guards.limits),
            )
            making: ReportRun | TableReport
            if has_tables:
                with needing("reading a report set needs pyarrow", "arrow"):
                    import pyarrow.parquet  # noqa: F401
                from format.verbs.report.table_report import TableReport

                making = TableReport([work.session.path(path) for path in paths], terms)
            else:
                targets = run.readable(targets_at(map(work.session.path, paths), takes_empty=True))
                progress = run.progress(lambda: sum(bytes_to_verify(each) for each in targets))
                terms = replace(terms, advance=progress.advance, bundles=_bundles_of(work.session, paths, document))
                making = ReportRun(targets, terms)
            for found in making.findings():
                run.judge(found)
            made = making.finish()
            made.leave_out(run.left_out)
            for part in render(made):
                output.write(part.encode())
            output.publish()
        finally:
            output.discard()
        run.judge_report(made)
        if has_tables and made.differing:
            run.condition(Condition.DIFFERENCE_FOUND)
        run.counts(made.counts)
        if made.not_checked:
            run.not_checked("what is listed at the end of the report")


def _has_tables(session: Session, paths: list[str], document: Document, sources: ConfigSources) -> bool:
    """Whether the paths are report sets. Raises a usage error if only some are, or for options that are about logs."""
    from format.rows.table_set import is_table_set

    found = [path for path in paths if is_table_set(session.path(path))]
    if not found:
        return False
    if len(found) < len(paths):
        raise typer.BadParameter(f"{found[0]} is a report set, and other paths are not: run report once for each kind")
    if document.with_bytes:
        raise typer.BadParameter("a report set has no bytes of logs", param_hint="--with-bytes")
    if sources.metadata is not None or sources.broker_properties is not None:
        raise typer.BadParameter(
            "a report set has the results of other runs: give it to kafkalog scan retention and compaction",
            param_hint="--metadata" if sources.metadata is not None else "--broker-properties",
        )
    return True


def _bundles_of(session: Session, paths: list[str], document: Document) -> tuple[Bundle, ...]:
    """The bundles that the paths are in. Raises a usage error if only some are, or for --with-bytes."""
    found = bundles_of(session, paths)
    if found and document.with_bytes:
        raise typer.BadParameter("a bundle has no bytes of records", param_hint="--with-bytes")
    return found


def _renderer(name: str) -> Callable[[Report], Iterator[str]]:
    """The function that makes the document, part by part. Raises a usage error if its library is not installed."""
    if name == "json":
        from kafkalog_cli.page.page import document_parts

        return document_parts
    instead = ", or use --format json"
    with needing("a page needs Jinja2 and vl-convert", "report", option="--format", instead=instead):
        from kafkalog_cli.page.page import page_parts
    return page_parts
