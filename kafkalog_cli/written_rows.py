"""The output of commands that write a new directory: rows of written segments, counts, and the path of the result."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from kafkalog_cli.runner import Run

if TYPE_CHECKING:
    from format.findings import Finding
    from format.rewriting.publication import Publication
    from format.rewriting.rewriter import WrittenSegment
    from kafkalog_cli.options.judging import Judging
    from kafkalog_cli.options.output import Output

#: The columns of a table of written segments.
SEGMENT_TABLE_COLUMNS = (
    "path",
    "source_bytes",
    "size_bytes",
    "batch_count",
    "copied_count",
    "recompressed_count",
    "rebuilt_count",
    "lost_bytes",
)


def writing_run(
    command: str, output: Output, judging: Judging, *, table_columns: Sequence[str] = SEGMENT_TABLE_COLUMNS
) -> Run:
    """The Run of a command whose rows are written segments; its summary is a result."""
    from format.columns import WRITTEN_SEGMENT

    columns = {WRITTEN_SEGMENT.type: table_columns}
    return Run(command, output, judging, main_schema=WRITTEN_SEGMENT, table_columns=columns, shows_summary=True)


def show_written(run: Run, items: Iterable[Finding | WrittenSegment], *, counts_written: bool = True) -> None:
    """Write a row for each segment and finding as it arrives, and add up the counts of the summary.

    ``written_bytes`` is the sum of the logs; with ``counts_written`` False the caller counts it in another way.
    """
    from format.columns import WRITTEN_SEGMENT
    from format.findings import Finding

    for item in items:
        if isinstance(item, Finding):
            run.finding(item)
            continue
        run.write(WRITTEN_SEGMENT, (item.row(),))
        run.count("batches", item.batch_count)
        run.count("source_bytes", item.source_bytes)
        if counts_written:
            run.count("written_bytes", item.size_bytes)
        if item.lost_bytes:
            run.count("lost_bytes", item.lost_bytes)


def show_resumed(run: Run, publication: Publication, resume: bool) -> None:
    """With --resume, count the finished files that are reused, and print a line if there is no run to continue."""
    if not resume:
        return
    run.count("resumed_files", len(publication.files))
    if not publication.is_resumed:
        run.say_now("--resume: there is no unfinished run of the same command beside the output: starting a new one")


def say_published(run: Run, target: object) -> None:
    """Print the path of the result on standard error, after all rows."""
    from kafkalog_cli.render.escape import printable

    run.say_at_end(f"published: {printable(str(target))}")
