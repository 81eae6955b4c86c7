"""kafkalog retention: why each segment is still there, and when it is deleted."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import msgspec
import typer

from format.columns import RETENTION_TOTAL, SEGMENT_RETENTION, RowSchema
from format.wording import counted
from kafkalog_cli.options.groups import option
from kafkalog_cli.options.output import DocumentOutput, EveryRow, Judging
from kafkalog_cli.options.parsers import one_of, parse_limit
from kafkalog_cli.options.reading import ConfigSources, JudgedAt, Reading
from kafkalog_cli.options.work import Guards, Work
from kafkalog_cli.render.table import ShownColumns
from kafkalog_cli.runner import Run

EXAMPLES = (
    ("kafkalog retention /var/kafka/orders-0", "why each segment of a partition is still there, and until when"),
    ("kafkalog retention --totals /var/kafka", "by topic: what the next check deletes, and what keeps the rest"),
    ("kafkalog retention --retention-ms 86400000 /var/kafka/orders-0", "what a retention of one day would delete"),
    ("kafkalog retention --at +7d /var/kafka", "what is left in a week, if nothing is written"),
)

POLICIES = ("delete", "compact", "compact,delete")
_COLUMNS = {
    "segment_retention": ShownColumns(
        (
            "topic", "partition", "segment_base_offset", "retained_by", "deletable_by", "deletable_at",
            "largest_timestamp_offset", "size_bytes", "largest_timestamp",
        ),
        first_to_go=("largest_timestamp", "size_bytes", "deletable_at"),
        deciding=("retained_by", "deletable_by"),
    ),
    "retention_total": ShownColumns(
        ("topic", "segment_count", "size_bytes", "deletable_bytes", "next_deletable_at", "retained"),
        first_to_go=("segment_count", "next_deletable_at"),
        deciding=("retained",),
    ),
}  # fmt: skip


class SupposedRetention(msgspec.Struct, frozen=True):
    """The time of the broker's check, and configs that override those of every topic."""

    judged_at: JudgedAt = msgspec.field(default_factory=JudgedAt)
    retention_ms: Annotated[
        int | None, option("Assume this retention.ms for every topic.", metavar="MS", parser=parse_limit)
    ] = None
    retention_bytes: Annotated[
        int | None, option("Assume this retention.bytes for every topic.", metavar="N", parser=parse_limit)
    ] = None
    cleanup_policy: Annotated[
        str | None, option("Assume this cleanup.policy for every topic.", **one_of(*POLICIES))
    ] = None
    sources: ConfigSources = msgspec.field(default_factory=ConfigSources)
    totals: Annotated[bool, option("Show only the totals by topic.")] = False
    every_row: EveryRow = False


def retention(
    reading: Reading, supposed: SupposedRetention, output: DocumentOutput, judging: Judging, guards: Guards, work: Work
) -> None:
    """Show why each segment is still there, which record keeps it, and when it is deleted.

    The rules are the broker's own: by time, by size and by the log start offset; the oldest segment first, and none
    past the high watermark. Topic configs come from the metadata log beside the partitions. Nothing is deleted. Of log
    directories, tables and text show the totals and the segments that no config keeps; of partitions all segments.
    """
    from format.node.log_dir import Kind
    from format.state.cluster_context import read_context
    from format.verbs.retention import Retention, RetentionTerms, is_held_back

    if supposed.totals and supposed.every_row:
        raise typer.BadParameter("give one of --totals and --every-row")
    main_schema: RowSchema = RETENTION_TOTAL if supposed.totals else SEGMENT_RETENTION
    with Run("retention", output, judging, paths=reading.paths, main_schema=main_schema, columns=_COLUMNS) as run:
        targets = run.readable(reading.targets())
        options = {
            "retention.ms": supposed.retention_ms,
            "retention.bytes": supposed.retention_bytes,
            "cleanup.policy": supposed.cleanup_policy,
        }
        context = read_context(targets, supposed.sources.terms(options, guards.limits))
        run.findings(context.findings)
        terms = RetentionTerms(supposed.judged_at.now_ms, guards.limits, with_offsets=not supposed.totals)
        judged = Retention(context, terms)
        advance = run.progress_of_logs(targets)
        shows_all = supposed.every_row or all(target.kind is Kind.PARTITION for target in targets)
        segments = []
        run.hold()
        of_target = partial(judged.of_target, jobs=work.process_count, advance=advance)
        for row in run.results_of_each(targets, of_target):
            if supposed.totals:
                continue
            if not run.is_readable:
                run.write(SEGMENT_RETENTION, (row,))
            elif shows_all or is_held_back(row):
                segments.append(row)
        run.conclude(judged.sentence())
        if run.is_readable:
            run.write(SEGMENT_RETENTION, segments)
        if run.format_name != "csv" or supposed.totals:
            run.write(RETENTION_TOTAL, judged.total_rows())
        if run.is_readable and not supposed.totals:
            count = sum(each.segment_count for each in judged.totals.values()) - len(segments)
            run.count(SEGMENT_RETENTION.type, count)
            if count:
                run.conclude(f"Not listed: {counted(count, 'segment')} (--every-row lists them).")
        run.not_checked(*judged.not_checked())
