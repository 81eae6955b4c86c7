"""kafkalog rebuild-index: new indexes from the log, in a new directory."""

from __future__ import annotations

from typing import Annotated

import msgspec

from format.layout import MANIFEST
from kafkalog_cli.options.groups import option
from kafkalog_cli.options.writing import OutputDirectory, Rewriting, SourceOptions
from kafkalog_cli.runner import show_written

EXAMPLES = (
    ("kafkalog rebuild-index /var/kafka/orders-0 --output fresh", "fresh/orders-0/*.index, *.timeindex, *.txnindex"),
    ("kafkalog rebuild-index /mnt/copy --output /mnt/fresh --with-log", "a whole log directory that a broker can use"),
)
_COLUMNS = ("path", "source_bytes", "batch_count", "index_entries", "time_index_entries", "aborted_txns")


class RebuiltIndexes(msgspec.Struct, frozen=True):
    """Which indexes are rebuilt, where they are written, and what is copied with them."""

    sources: SourceOptions
    output: OutputDirectory
    with_log: Annotated[bool, option("Copy the logs and all other files too, byte for byte.")] = False


def rebuild_index(rebuilt: RebuiltIndexes, rewriting: Rewriting) -> None:
    """Rebuild .index, .timeindex and .txnindex from the log, as a broker does when it recovers a segment.

    The new indexes are written to DIR/TOPIC-PARTITION. To use them, stop the broker and replace the old ones.
    """
    from format.rewriting.rewriter import PASSES
    from format.rewriting.sources import read_write_sources
    from format.verbs.rebuild_index import IndexRebuilding
    from format.verbs.rebuild_index import rebuild_index as rebuild_sources

    with rewriting.run("rebuild-index", _COLUMNS) as run:
        paths = rebuilt.sources.paths
        found = read_write_sources(paths)
        with_log, interval_bytes = rebuilt.with_log, rewriting.indexing.interval_bytes
        job = found.job("rebuild-index", index_interval_bytes=interval_bytes, with_log=with_log)
        with rewriting.publication(run, rebuilt.output, paths, job) as publication:
            progress = run.progress((PASSES if with_log else 1) * found.size_bytes)
            terms = IndexRebuilding(with_log=with_log, **rewriting.terms(progress))
            show_written(run, rebuild_sources(found, publication, terms), counts_written=False)
            files = publication.files
            run.count("written_bytes", sum(each.size_bytes for name, each in files.items() if name != MANIFEST))
