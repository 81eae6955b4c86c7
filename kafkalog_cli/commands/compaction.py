"""kafkalog compaction: what the log cleaner would keep and free, how far it has cleaned, and what stops it."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import msgspec

from format.columns import CLEANER
from kafkalog_cli.options.groups import option
from kafkalog_cli.options.output import DocumentOutput, Judging
from kafkalog_cli.options.parsers import number_to, parse_count
from kafkalog_cli.options.reading import ConfigSources, JudgedAt, Reading
from kafkalog_cli.options.work import Guards, Work
from kafkalog_cli.render.table import ShownColumns
from kafkalog_cli.runner import Run

EXAMPLES = (
    ("kafkalog compaction /var/kafka", "each compacted log: its dirty ratio, what a run would free, what stops it"),
    ("kafkalog compaction /var/kafka/users-0", "one log"),
    ("kafkalog compaction --min-cleanable-dirty-ratio 0.1 /var/kafka", "what a lower ratio would have cleaned"),
    (
        "kafkalog compaction --every-log /var/kafka/orders-0",
        "what compaction would make of a log that is not compacted",
    ),
)

_COLUMNS = {
    "cleaner": ShownColumns(
        (
            "topic", "partition", "dirty_ratio", "blocked_by", "would_free_bytes", "would_keep_bytes", "cleaner_offset",
            "first_uncleanable_offset", "tombstone_count", "delete_horizon",
        ),
        deciding=("blocked_by",),
    )
}  # fmt: skip


class SupposedCleaning(msgspec.Struct, frozen=True):
    """The time of the cleaner's run, and configs that override those of every topic."""

    judged_at: JudgedAt = msgspec.field(default_factory=JudgedAt)
    min_cleanable_dirty_ratio: Annotated[
        float | None, option("Assume this min.cleanable.dirty.ratio for every topic.", metavar="R", parser=number_to(1))
    ] = None
    min_compaction_lag_ms: Annotated[
        int | None, option("Assume this min.compaction.lag.ms for every topic.", metavar="MS", parser=parse_count)
    ] = None
    delete_retention_ms: Annotated[
        int | None, option("Assume this delete.retention.ms for every topic.", metavar="MS", parser=parse_count)
    ] = None
    every_log: Annotated[bool, option("Also show logs that are not compacted, as if they were compacted.")] = False
    sources: ConfigSources = msgspec.field(default_factory=ConfigSources)


def compaction(
    reading: Reading, supposed: SupposedCleaning, output: DocumentOutput, judging: Judging, guards: Guards, work: Work
) -> None:
    """Show what the cleaner would keep and free of each compacted log, how far it has cleaned, and what stops it.

    The records of the log are read as the cleaner reads them. Topic configs come from the metadata log beside the
    partitions. Nothing is cleaned.
    """
    from format.state.cluster_context import read_context
    from format.verbs.compaction.compaction import Compaction, CompactionTerms, LogCompaction

    with Run("compaction", output, judging, paths=reading.paths, main_schema=CLEANER, columns=_COLUMNS) as run:
        targets = run.readable(reading.targets())
        options = {
            "min.cleanable.dirty.ratio": supposed.min_cleanable_dirty_ratio,
            "min.compaction.lag.ms": supposed.min_compaction_lag_ms,
            "delete.retention.ms": supposed.delete_retention_ms,
        }
        context = read_context(targets, supposed.sources.terms(options, guards.limits))
        run.findings(context.findings)
        is_bundled = bool(reading.session.bundles)
        terms = CompactionTerms(
            supposed.judged_at.now_ms, guards.limits, every_log=supposed.every_log, reads_records=not is_bundled
        )
        judged = Compaction(context, terms)
        advance = run.progress_of_logs(targets)
        logs = []
        run.hold()
        of_target = partial(judged.of_target, jobs=work.process_count, advance=advance)
        for log in run.results_of_each(targets, of_target):
            if run.is_readable:
                logs.append(log)
            else:
                run.write(CLEANER, (log.row(),))
        run.conclude(judged.sentence())
        run.write(CLEANER, (each.row() for each in sorted(logs, key=LogCompaction.gravity)))
        run.not_checked(*judged.not_checked())
        if is_bundled:
            run.not_checked("what the cleaner would free: a bundle has no keys")
