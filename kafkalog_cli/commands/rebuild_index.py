"""kafkalog rebuild-index: fresh indexes from the log, in a new directory."""

from __future__ import annotations

from typing import Annotated

import typer

from format.findings import Severity
from kafkalog_cli.options import (
    CacheFriendly,
    FailOn,
    Format,
    MaxDecompressedBytes,
    MaxRate,
    MaxRecordBytes,
    MaxZstdWindow,
    Quiet,
    limits_of,
    reading,
)
from kafkalog_cli.runner import Run
from kafkalog_cli.writing import (
    IndexInterval,
    KeepPartial,
    OutputDirectory,
    Resume,
    Sources,
    say_published,
    tell_resumed,
    tell_written,
)

EXAMPLES = (
    ("kafkalog rebuild-index /var/kafka/orders-0 --output fresh", "fresh/orders-0/*.index, *.timeindex, *.txnindex"),
    ("kafkalog rebuild-index /mnt/copy --output /mnt/fresh --with-log", "a whole log directory that a broker can use"),
)
_TABLE_COLUMNS = ("path", "source_bytes", "batch_count", "index_entries", "time_index_entries", "aborted_txns")


def rebuild_index(
    sources: Sources,
    output: OutputDirectory,
    with_log: Annotated[
        bool, typer.Option("--with-log", help="Copy the logs and all other files too, byte for byte.")
    ] = False,
    resume: Resume = False,
    keep_partial: KeepPartial = False,
    index_interval: IndexInterval = None,
    fail_on: FailOn = Severity.ERROR,
    format_name: Format = None,
    max_decompressed_bytes: MaxDecompressedBytes = None,
    max_record_bytes: MaxRecordBytes = None,
    max_zstd_window: MaxZstdWindow = None,
    max_rate: MaxRate = None,
    cache_friendly: CacheFriendly = False,
    quiet: Quiet = False,
) -> None:
    """Build .index, .timeindex and .txnindex anew from the log, as a broker does when it recovers a segment.

    They go into DIR/TOPIC-PARTITION; to use them, stop the broker and put them in the place of the old ones.
    """
    from pathlib import Path

    from format.columns import WRITTEN_SEGMENT
    from format.layout import MANIFEST
    from format.rewriting.index_builder import DEFAULT_INTERVAL_BYTES
    from format.rewriting.publish import Publication
    from format.rewriting.sources import read_write_sources
    from format.verbs.rebuild_index.rebuild_index import IndexRebuilding
    from format.verbs.rebuild_index.rebuild_index import rebuild_index as rebuild_sources

    with (
        reading(max_rate, cache_friendly),
        Run(
            "rebuild-index",
            format_name=format_name,
            quiet=quiet,
            main_schema=WRITTEN_SEGMENT,
            table_columns={WRITTEN_SEGMENT.type: _TABLE_COLUMNS},
            fail_on=fail_on,
            shows_summary=True,
        ) as run,
    ):
        paths = [Path(each) for each in sources]
        found = read_write_sources(paths)
        interval_bytes = index_interval or DEFAULT_INTERVAL_BYTES
        job = found.job("rebuild-index", index_interval_bytes=interval_bytes, with_log=with_log)
        limits = limits_of(max_decompressed_bytes, max_record_bytes, max_zstd_window)
        with Publication(output, paths, job=job, resume=resume, keep_partial=keep_partial) as publication:
            tell_resumed(run, publication, resume)
            progress = run.progress((2 if with_log else 1) * found.size_bytes)
            terms = IndexRebuilding(with_log, limits, interval_bytes, progress.advance)
            tell_written(run, rebuild_sources(found, publication, terms), counts_written=False)
            files = publication.files
            run.count("written_bytes", sum(each.size_bytes for name, each in files.items() if name != MANIFEST))
        say_published(run, publication.target)
