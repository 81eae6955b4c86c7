"""kafkalog ls: partitions and segments, with notes on what is unusual."""

from __future__ import annotations

from collections.abc import Sequence
from time import monotonic
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from format.columns import DISK_USAGE, LOG_DIR, PARTITION, SEGMENT, RowSchema
from format.errors import InputError
from format.findings import Finding, Severity
from format.layout import CODEC_NAMES
from format.limits import Limits
from format.node.target import Target
from kafkalog_cli.options.groups import first_given, option
from kafkalog_cli.options.output import DocumentOutput, Judging
from kafkalog_cli.options.parsers import one_of
from kafkalog_cli.options.reading import JudgedAt, Reading, Tiering
from kafkalog_cli.options.work import DecompressionGuard, Pacing
from kafkalog_cli.options.writing import Sample, check_level
from kafkalog_cli.render.table import ShownColumns, human_size
from kafkalog_cli.runner import Run

if TYPE_CHECKING:
    from format.state.cluster_context import ClusterContext
    from format.verbs.ls.disk_usage import DiskUsage, EstimateTerms
    from format.verbs.ls.ls import Listing

SORT_KEYS = ("name", "size", "segments", "batches", "time")  # as in format.verbs.ls.ls; a test compares them
GROUPINGS = ("topic", "codec", "age")  # likewise, of format.verbs.ls.disk_usage

#: Rows are written together: at most so many, and after so many seconds at the latest.
_MOST_ROWS = 500
_LATEST_S = 0.5

EXAMPLES = (
    ("kafkalog ls /var/kafka", "every partition of a log directory: offsets, sizes, watermarks, notes"),
    ("kafkalog ls /var/kafka/orders-0", "one partition and its segments"),
    ("kafkalog ls --sort size /var/kafka", "the largest partitions first"),
    ("kafkalog ls --by topic node-1 node-2 node-3", "what takes the space on disk, over all nodes"),
    ("kafkalog ls --by topic --estimate node-1 node-2 node-3", "and what recompressing it with zstd would free"),
    ("kafkalog ls --no-scan /var/kafka", "names, sizes and checkpoints only, for thousands of partitions"),
    ("kafkalog ls --format jsonl /var/kafka | jq -c 'select(.mark or .notes)'", "only rows with a mark or notes"),
)

SCAN_EXAMPLES = (
    ("kafkalog scan ls /var/kafka", "every partition and segment"),
    ("kafkalog scan ls /var/kafka --output report --batches", "Parquet tables of them, and of all batches"),
)

#: The columns of a table, and those that a narrow terminal drops first; the other formats have all columns.
_COLUMNS = {
    "log_dir": ShownColumns(
        (
            "path", "cluster_id", "node_id", "partition_count", "size_bytes", "clean_shutdown", "lock_held", "notes",
        ),
        first_to_go=("cluster_id", "lock_held", "size_bytes"),
        deciding=("notes",),
    ),
    "partition": ShownColumns(
        (
            "topic", "partition", "segment_count", "log_size_bytes", "log_start_offset", "log_end_offset",
            "high_watermark", "max_timestamp", "leader_epoch", "codecs", "notes",
        ),
        first_to_go=("leader_epoch", "codecs", "segment_count", "log_start_offset", "max_timestamp", "high_watermark"),
        deciding=("notes",),
    ),
    "segment": ShownColumns(
        (
            "segment_base_offset", "leftover", "size_bytes", "last_offset", "first_timestamp", "max_timestamp",
            "batch_count", "magics", "codecs", "notes",
        ),
        first_to_go=("magics", "first_timestamp", "batch_count", "codecs"),
        deciding=("leftover", "notes"),
    ),
}  # fmt: skip


class RecompressionEstimate(msgspec.Struct, frozen=True):
    """An estimate of what recompression would save: the codec, its level, and the sample."""

    estimate: Annotated[bool, option("With --by: measure what recompressing the logs would save; write nothing.")] = (
        False
    )
    codec: Annotated[
        str | None, option("With --estimate: the codec to try.", show_default="zstd", **one_of(*CODEC_NAMES))
    ] = None
    level: Annotated[int | None, option("With --estimate: its level.", metavar="N", show_default="Kafka's")] = None
    sample: Sample = msgspec.field(default_factory=Sample)

    def check(self, by: str | None) -> None:
        """Raise a usage error for options that do not go together."""
        if self.estimate and by is None:
            raise typer.BadParameter(
                "--estimate goes with --by; to try all codecs on each topic: kafkalog recompress --estimate"
            )
        sample = self.sample
        of_estimate = {"--codec": self.codec, "--level": self.level, "--sample": sample.sample, "--whole": sample.whole}
        name = first_given(of_estimate)
        if name is not None and not self.estimate:
            raise typer.BadParameter(f"{name} goes with --estimate")
        check_level(self.codec or "zstd", self.level)

    def terms(self) -> EstimateTerms | None:
        """The terms for the verb; None where nothing is to be estimated."""
        if not self.estimate:
            return None
        from format.verbs.ls.disk_usage import EstimateTerms
        from format.verbs.recompress.new_batches import TargetFormat

        return EstimateTerms(TargetFormat(CODEC_NAMES.index(self.codec or "zstd"), self.level), self.sample.size_bytes)


class ListedPartitions(msgspec.Struct, frozen=True):
    """What is listed, and in which order."""

    segments: Annotated[
        bool | None,
        option(
            "List the segments below each partition.",
            "--segments/--no-segments",
            show_default="for a partition, not for a log directory; by kafkalog scan always",
        ),
    ] = None
    scan: Annotated[
        bool,
        option(
            "Read the batch headers, or only names, sizes and checkpoints.", "--scan/--no-scan", show_default="--scan"
        ),
    ] = True
    sort: Annotated[
        str,
        option(
            "The order of partitions and segments; all but name put the largest or latest first.", **one_of(*SORT_KEYS)
        ),
    ] = "name"
    reverse: Annotated[bool, option("Reverse the order.", "-r")] = False
    by: Annotated[
        str | None,
        option(
            "Only add up the allocated bytes below all paths, the largest first. Ages are of segments.",
            **one_of(*GROUPINGS),
        ),
    ] = None
    judged_at: JudgedAt = msgspec.field(default_factory=JudgedAt)
    recompression: RecompressionEstimate = msgspec.field(default_factory=RecompressionEstimate)
    tiering: Tiering = msgspec.field(default_factory=Tiering)

    def check_grouping(self) -> None:
        """Raise a usage error for options that do nothing with --by, or without it."""
        if self.by != "age" and self.judged_at.at is not None:
            raise typer.BadParameter("--at goes with --by age: nothing else here depends on the time")
        of_rows = {
            "--segments": self.segments,
            "--no-scan": not self.scan,
            "--sort": None if self.sort == "name" else self.sort,
            "--remote": self.tiering.remote,
        }
        name = first_given(of_rows)
        if self.by is not None and name is not None:
            raise typer.BadParameter(f"--by only adds up what is on disks, the largest first: leave {name} out")


def ls(
    listed: ListedPartitions,
    reading: Reading,
    judging: Judging,
    guard: DecompressionGuard,
    output: DocumentOutput,
    pacing: Pacing,
) -> None:
    """List partitions and segments: offset and time ranges, sizes, codecs, checkpoints, strays.

    Only batch headers are read: use verify to check CRCs and records. A table shows the columns that fit the
    terminal, and findings of severity info only as notes; the other formats show everything.
    """
    from format.node.offsets import unread_heads_words
    from format.scan.selected_logs import selected_bytes
    from format.scan.selection import EVERYTHING
    from format.verbs.ls.ls import ListTerms
    from format.verbs.ls.ls import ls as listings

    listed.recompression.check(listed.by)
    listed.check_grouping()
    if listed.by is not None:
        _list_usage(listed, reading, judging, guard, output, pacing)
        return
    targets = reading.targets()
    segments = listed.segments
    if segments is None and reading.session.cluster is not None:
        segments = True  # for the tables that a cluster writes
    schema = _main_schema(targets[0], segments)
    with (
        Run("ls", output, judging, paths=reading.paths, main_schema=schema, columns=_COLUMNS) as run,
        listed.tiering.joined(run, targets := run.readable(targets), guard.limits),
    ):
        if not listed.scan:
            run.not_checked("the logs and their indexes (--no-scan)")
        is_free = run.is_readable and listed.sort == "name" and not listed.reverse
        shown = _Shown(run, judging.fail_on, puts_odd_first=is_free)
        progress = run.progress(lambda: selected_bytes(targets if listed.scan else [], EVERYTHING))
        terms = ListTerms(
            listed.scan,
            segments,
            listed.sort,
            listed.reverse,
            guard.limits,
            progress.advance,
            _context(targets, guard.limits) if listed.scan else None,
        )
        try:
            for target in targets:
                with run.leaving_out(str(target.path)):
                    for item in listings(target, terms):
                        shown.take(item)
        finally:
            shown.write_rows()
        shown.finish()
        if shown.remote_heads and listed.tiering.remote is None:
            run.not_checked(unread_heads_words(shown.remote_heads))


def _context(targets: list[Target], limits: Limits) -> ClusterContext | None:
    """The context of the metadata log at or beside the paths. Its problems are left to verify."""
    from format.state.cluster_context import ContextTerms, read_context

    try:
        return read_context(targets, ContextTerms(limits=limits))
    except InputError:
        return None  # listing the path reports it


def _list_usage(
    listed: ListedPartitions,
    reading: Reading,
    judging: Judging,
    guard: DecompressionGuard,
    output: DocumentOutput,
    pacing: Pacing,
) -> None:
    """Run ls --by: totals of allocated bytes by topic, codec or age."""
    from format.scan.selected_logs import selected_bytes
    from format.scan.selection import EVERYTHING
    from format.verbs.ls.disk_usage import disk_usage
    from format.verbs.recompress.estimate import not_measured

    by = listed.by or ""
    terms = listed.recompression.terms()
    columns = {"disk_usage": _usage_columns(terms is not None)}
    with Run("ls", output, judging, paths=reading.paths, main_schema=DISK_USAGE, columns=columns) as run:
        targets = run.readable(reading.targets())
        advance = run.progress(lambda: selected_bytes([] if by == "topic" else targets, EVERYTHING)).advance
        found = disk_usage(targets, by, listed.judged_at.now_ms, estimate=terms, limits=guard.limits, advance=advance)
        usages = list(run.results(found))
        allocated_bytes = sum(each.allocated_bytes for each in usages)
        if terms is not None:
            run.conclude(_savings_words(usages, listed.recompression.codec or "zstd"))
            run.count("estimated_bytes", sum(each.estimated_bytes or 0 for each in usages))
            run.count("saved_bytes", sum(each.saved_bytes or 0 for each in usages))
            run.not_checked(*not_measured(terms.largest_topic_bytes, terms.sample_bytes))
        run.write(DISK_USAGE, (each.row(allocated_bytes) for each in (usages[::-1] if listed.reverse else usages)))
        run.count("allocated_bytes", allocated_bytes)


def _usage_columns(has_estimate: bool) -> ShownColumns:
    estimated = ("estimated_bytes", "saved_bytes")
    names = tuple(name for name in DISK_USAGE.names if name != "by" and (has_estimate or name not in estimated))
    return ShownColumns(
        names,
        first_to_go=("size_bytes", "segment_count", "partition_count", "percent", "log_bytes"),
        deciding=("leftover_bytes",),
    )


def _savings_words(usages: Sequence[DiskUsage], codec: str) -> str:
    """The sentence of what recompression would free of the allocated bytes, and where most of it is."""
    allocated_bytes = sum(each.allocated_bytes for each in usages)
    saved_bytes = sum(each.saved_bytes or 0 for each in usages)
    if saved_bytes <= 0:
        return f"{codec} would free nothing of {human_size(allocated_bytes)} on disk."
    percent = round(100 * saved_bytes / allocated_bytes) if allocated_bytes else 0
    most = max(usages, key=lambda each: each.saved_bytes or 0)
    place = {"topic": "topic", "codec": "batches with codec", "age": "segments of age"}[most.by]
    return (
        f"{codec} would free {human_size(saved_bytes)} of {human_size(allocated_bytes)} on disk ({percent} %), "
        f"most of it in {place} {most.name}: {human_size(most.saved_bytes or 0)}."
    )


class _Shown:
    """The output of ls: rows of listings, written together, odd ones first, and findings, which follow a table."""

    def __init__(self, run: Run, fail_on: Severity, *, puts_odd_first: bool) -> None:
        self._run = run
        self._is_readable = run.is_readable
        self._puts_odd_first = puts_odd_first  # for this all partitions are held, but not segments, which stay in order
        self._least = min(fail_on, Severity.WARNING)
        self._held: list[Finding] = []
        self._infos = 0
        self.remote_heads = 0  # logs whose head is in remote storage, which is not read
        self._schema: RowSchema | None = None
        self._rows: list[tuple[Any, ...]] = []
        self._write_at = 0.0

    def take(self, item: Listing | Finding) -> None:
        from format.verbs.ls.ls import LogDirListing
        from format.verbs.ls.partition_listing import HEAD_IS_REMOTE, PartitionListing

        if isinstance(item, Finding):
            self._take_finding(item)
            return
        if isinstance(item, PartitionListing):
            schema = PARTITION
            self.remote_heads += HEAD_IS_REMOTE in (item.notes or "")
        else:
            schema = LOG_DIR if isinstance(item, LogDirListing) else SEGMENT
        if schema != self._schema:
            self.write_rows()
            self._schema = schema
        self._rows.append(item.row())
        is_held = self._puts_odd_first and schema is PARTITION
        if not is_held and (len(self._rows) >= _MOST_ROWS or monotonic() >= self._write_at):
            self.write_rows()
            self._write_at = monotonic() + _LATEST_S

    def write_rows(self) -> None:
        """Write the rows so far."""
        if self._schema is not None and self._rows:
            rows, self._rows = self._rows, []
            if self._puts_odd_first and self._schema.type == "partition":
                rows = _COLUMNS[self._schema.type].odd_first(self._schema, rows)
            self._run.write(self._schema, rows)

    def _take_finding(self, found: Finding) -> None:
        if not self._is_readable:
            self.write_rows()
            self._run.finding(found)
        elif found.severity < self._least and not found.is_incomplete:
            self._infos += 1
        else:
            self._held.append(found)

    def finish(self) -> None:
        """Write the findings that follow the table."""
        self._run.findings(self._held)
        if self._infos:
            self._run.count("info finding", self._infos)


def _main_schema(first: Target, segments: bool | None) -> RowSchema:
    """The row type of a CSV document: segments if requested or if no log directory is given, else partitions."""
    from format.node.log_dir import Kind

    if segments is None:
        try:
            segments = first.kind is not Kind.LOG_DIR
        except InputError:
            segments = False
    return SEGMENT if segments else PARTITION
