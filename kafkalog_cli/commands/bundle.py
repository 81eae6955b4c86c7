"""kafkalog bundle: one archive for those who help, without payload."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from format.io.session import BUNDLE_SUFFIX
from format.node.target import targets_at
from format.version import VERSION
from kafkalog_cli.failures import needing
from kafkalog_cli.options.groups import option
from kafkalog_cli.options.output import Judging, Output, Quiet
from kafkalog_cli.options.reading import Paths
from kafkalog_cli.options.work import Guards, Work
from kafkalog_cli.options.writing import KeyFile, key_of
from kafkalog_cli.output import open_output
from kafkalog_cli.runner import Run

if TYPE_CHECKING:
    from format.verbs.report.terms import Report

EXAMPLES = (
    ("kafkalog bundle /var/kafka --output incident.tar.zst", "one archive of a node, without keys and values"),
    ("kafkalog bundle /var/kafka --output incident.tar.zst --redact-names", "without names of topics and groups, too"),
    ("kafkalog bundle node-1 node-2 node-3 --output incident.tar.zst", "of several nodes"),
    (
        "kafkalog bundle /var/kafka --output incident.tar.zst --no-report",
        "the same without the page, which takes seconds",
    ),
)


class Archive(msgspec.Struct, frozen=True):
    """The archive to write."""

    output: Annotated[str, option("The new archive.", metavar="FILE.tar.zst", show_default=False)]
    redact_names: Annotated[
        bool,
        option(
            "Replace the names of topics, directories and other files by keyed hashes, and leave out what holds more "
            "names: the records of Kafka's own topics, the report, the words of findings."
        ),
    ] = False
    key_file: KeyFile = None
    report: Annotated[bool, option("Add the page that report makes.", "--report/--no-report")] = True
    quiet: Quiet = False


def bundle(paths: Paths, archive: Archive, judging: Judging, guards: Guards, work: Work) -> None:
    """Write one archive for a support engineer: everything except the keys, values and headers of records.

    It holds the file list with hashes, all batch headers, indexes and other side files, control batches, Kafka's own
    topics, the findings of verify and the report page. Most commands that diagnose can read it in place of the log
    directory. It needs pyarrow: pip install 'kafkalog[arrow]'. The exit status is that of verify.
    """
    from format.verbs.bundle.bundle import BundleRun, BundleTerms, temporary_directory
    from format.verbs.bundle.secrets import Names
    from format.verbs.verify.verify import bytes_to_verify, compacted_topics_at

    if archive.key_file is not None and not archive.redact_names:
        raise typer.BadParameter("the key is used with --redact-names only", param_hint="--key-file")
    if not archive.output.endswith(BUNDLE_SUFFIX):
        raise typer.BadParameter(f"the name of a bundle must end in {BUNDLE_SUFFIX}", param_hint="--output")
    with needing("a bundle needs pyarrow", "arrow", option="--output"):
        import pyarrow.parquet  # noqa: F401
    names = Names(key_of(archive.key_file)) if archive.redact_names else None
    render, no_report = _renderer() if archive.report else (None, "--no-report")
    if names is not None:
        render, no_report = None, "names are redacted"
    with Run("bundle", Output(archive.quiet, work.session), judging, paths=paths) as run:
        targets = run.readable(targets_at(map(work.session.path, paths)))
        output = open_output(archive.output, paths)
        try:
            terms = BundleTerms(
                guards.limits,
                jobs=work.process_count,
                advance=lambda count: progress.advance(count),
                render=render,
                no_report=no_report,
                names=names,
                compacted_topics=compacted_topics_at(targets, guards.limits),
                directory=temporary_directory(archive.output),
                version=VERSION,
            )
            making = BundleRun(targets, terms)
            progress = run.progress(lambda: sum(bytes_to_verify(each) for each in targets) + making.listed_bytes)
            for found in making.findings():
                run.judge(found)
            made = making.finish(output.write)
            output.publish()
        finally:
            output.discard()
        run.counts(made.counts)
        run.not_checked(*made.left_out)


def _renderer() -> tuple[Callable[[Report], str] | None, str]:
    """The function that makes the page of the report; None and why where a library is not installed."""
    try:
        from kafkalog_cli.page.page import page_of
    except ImportError as error:
        return None, f"it needs Jinja2 and vl-convert ({error}): pip install 'kafkalog[report]'"
    return page_of, ""
