"""What the commands that write a new directory share: their options, and how their results are shown."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated

import typer

from kafkalog_cli.options import check_paths, parse_size

if TYPE_CHECKING:
    from format.findings import Finding
    from format.rewriting.publish import Publication
    from format.rewriting.written_segments import WrittenSegment
    from kafkalog_cli.runner import Run

Sources = Annotated[
    list[str],
    typer.Argument(
        metavar="SRC...",
        help="A log directory, or one or more partition directories (TOPIC-PARTITION). Never written to.",
        callback=check_paths,
        show_default=False,
    ),
]
OutputDirectory = Annotated[
    str,
    typer.Option(
        "--output",
        metavar="DIR",
        help="A new directory for the result, outside the sources; it appears whole or not at all.",
        show_default=False,
    ),
]
Resume = Annotated[
    bool,
    typer.Option(
        "--resume", help="Take up what an interrupted run of the same command left; finished files are hashed first."
    ),
]
KeepPartial = Annotated[
    bool, typer.Option("--keep-partial", help="After a failure keep what was written, for --resume.")
]
IndexInterval = Annotated[
    int | None,
    typer.Option(
        "--index-interval-bytes",
        metavar="SIZE",
        parser=parse_size,
        help="Log bytes between index entries, as the topic's index.interval.bytes.",
        show_default="4096",
    ),
]
SegmentBytes = Annotated[
    int | None,
    typer.Option(
        "--segment-bytes",
        metavar="SIZE",
        parser=parse_size,
        help="Roll a new segment where one would grow past this.",
        show_default="as in the source, and 2 GiB at most",
    ),
]
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


def tell_written(run: Run, items: Iterable[Finding | WrittenSegment], *, counts_written: bool = True) -> None:
    """Rows for segments and findings as they come, and the sums for the summary.

    What was written is the sum of the logs; with ``counts_written`` False the caller has another sum.
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


def tell_resumed(run: Run, publication: Publication, resume: bool) -> None:
    """With --resume how many finished files are taken over, and a word where there is nothing to take up."""
    if not resume:
        return
    run.count("resumed_files", len(publication.files))
    if not publication.is_resumed:
        run.say_now("--resume: no unfinished run of this very command is beside the output; it begins from the start")


def say_published(run: Run, target: object) -> None:
    """Where the result is, on standard error, once all rows are out."""
    from kafkalog_cli.render.escape import printable

    run.say_at_end(f"published: {printable(str(target))}")
