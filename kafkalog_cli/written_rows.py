"""What the commands that write a new directory report: rows of written segments, counts, and where the result is."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from format.findings import Finding
    from format.rewriting.publishing.publication import Publication
    from format.rewriting.written_segments import WrittenSegment
    from kafkalog_cli.runner import Run

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
