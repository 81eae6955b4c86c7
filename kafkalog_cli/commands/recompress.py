"""kafkalog recompress: the same records with another codec, in a new directory; or what that would save."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from format.findings import Severity
from format.layout import CODEC_NAMES
from kafkalog_cli.options import (
    CacheFriendly,
    FailOn,
    Format,
    Jobs,
    MaxDecompressedBytes,
    MaxRate,
    MaxRecordBytes,
    MaxZstdWindow,
    Quiet,
    check_level,
    jobs_of,
    limits_of,
    one_of,
    parse_size,
    reading,
)
from kafkalog_cli.runner import Run
from kafkalog_cli.writing import (
    SEGMENT_TABLE_COLUMNS,
    IndexInterval,
    KeepPartial,
    Resume,
    SegmentBytes,
    Sources,
    say_published,
    tell_resumed,
    tell_written,
)

if TYPE_CHECKING:
    from format.verbs.recompress.plan import PlanTerms

EXAMPLES = (
    ("kafkalog recompress /mnt/copy --output /mnt/small --codec zstd", "a whole log directory that a broker can use"),
    ("kafkalog recompress orders-0 orders-1 --output small --codec zstd --level 9", "two partitions, harder"),
    ("kafkalog recompress /var/kafka --estimate", "what each codec would save per topic, from a sample"),
    ("kafkalog recompress /var/kafka/orders-0 --explain --codec lz4", "batch by batch: what would be done, and why"),
    ("kafkalog recompress old-0 --output new --codec zstd --magic 2", "v0 and v1 messages become v2 batches"),
)


def recompress(
    sources: Sources,
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            metavar="DIR",
            help="A new directory for the result, outside the sources; it appears whole or not at all.",
        ),
    ] = None,
    codec: Annotated[str | None, typer.Option("--codec", help="The codec to use.", **one_of(*CODEC_NAMES))] = None,
    level: Annotated[
        int | None,
        typer.Option(
            "--level",
            metavar="N",
            help="Its level: gzip 1 to 9, lz4 1 to 17, zstd -131072 to 22.",
            show_default="Kafka's: gzip 6, lz4 9, zstd 3",
        ),
    ] = None,
    estimate: Annotated[
        bool, typer.Option("--estimate", help="Measure what the codecs would save, per topic; write nothing.")
    ] = False,
    sample: Annotated[
        int | None,
        typer.Option(
            "--sample",
            metavar="SIZE",
            parser=parse_size,
            help="With --estimate: log bytes to measure per topic.",
            show_default="16MiB",
        ),
    ] = None,
    whole: Annotated[bool, typer.Option("--whole", help="With --estimate: measure everything.")] = False,
    explain: Annotated[
        bool, typer.Option("--explain", help="For each batch, what would be done and why; write nothing.")
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Recompress batches that have the codec already, as for another level.")
    ] = False,
    merge_bytes: Annotated[
        int | None,
        typer.Option(
            "--batch-bytes",
            metavar="SIZE",
            parser=parse_size,
            help="Merge neighbouring batches, as they are in the source, up to this size; never those of producers "
            "with ids.",
            show_default="no merging",
        ),
    ] = None,
    magic: Annotated[
        str | None, typer.Option("--magic", help="Convert v0 and v1 messages to this format.", **one_of("2"))
    ] = None,
    segment_bytes: SegmentBytes = None,
    skip_damaged: Annotated[
        bool,
        typer.Option("--skip-damaged", help="Leave out, and list, what is damaged, instead of refusing the source."),
    ] = False,
    jobs: Jobs = None,
    max_rate: MaxRate = None,
    cache_friendly: CacheFriendly = False,
    resume: Resume = False,
    keep_partial: KeepPartial = False,
    index_interval: IndexInterval = None,
    fail_on: FailOn = Severity.ERROR,
    format_name: Format = None,
    max_decompressed_bytes: MaxDecompressedBytes = None,
    max_record_bytes: MaxRecordBytes = None,
    max_zstd_window: MaxZstdWindow = None,
    quiet: Quiet = False,
) -> None:
    """Write the same records with another codec, with new indexes, into a new directory.

    Offsets, timestamps, keys, values, headers, producers, transactions and leader epochs stay as they are. What was
    written is read back and compared, record by record, before it appears. Batches that have the codec already are
    copied byte for byte. A damaged source is refused: run salvage first.
    """
    from format.verbs.recompress.new_batches import Target
    from format.verbs.recompress.plan import PlanTerms

    _check_options(output, codec, level, estimate, explain)
    limits = limits_of(max_decompressed_bytes, max_record_bytes, max_zstd_window)
    paths = [Path(each) for each in sources]
    if estimate and not explain:
        with reading(max_rate, cache_friendly):
            _estimate(paths, codec, level, None if whole else sample, whole, limits, format_name, quiet, fail_on)
        return
    target = Target(CODEC_NAMES.index(codec or "zstd"), level, None if magic is None else int(magic))
    plan = PlanTerms(target, force, merge_bytes or 0)
    if explain:
        with reading(max_rate, cache_friendly):
            _explain(paths, plan, limits, format_name, quiet, fail_on)
        return
    from format.columns import WRITTEN_SEGMENT
    from format.rewriting.index_builder import DEFAULT_INTERVAL_BYTES
    from format.rewriting.publish import Publication
    from format.rewriting.sources import read_write_sources
    from format.verbs.recompress.recompress import recompress as recompress_sources
    from format.verbs.recompress.terms import Recompression
    from kafkalog_cli.exit_codes import Condition

    with (
        reading(max_rate, cache_friendly),
        Run(
            "recompress",
            format_name=format_name,
            quiet=quiet,
            main_schema=WRITTEN_SEGMENT,
            table_columns={WRITTEN_SEGMENT.type: SEGMENT_TABLE_COLUMNS},
            fail_on=fail_on,
            shows_summary=True,
        ) as run,
    ):
        found = read_write_sources(paths)
        terms = Recompression(
            plan, segment_bytes, skip_damaged, jobs_of(jobs, max_rate), limits, index_interval or DEFAULT_INTERVAL_BYTES
        )
        job = found.job(
            "recompress",
            codec=codec,
            level=level,
            magic=magic,
            force=force,
            batch_bytes=merge_bytes,
            segment_bytes=segment_bytes,
            skip_damaged=skip_damaged,
            index_interval_bytes=terms.interval_bytes,
        )
        with Publication(output or "", paths, job=job, resume=resume, keep_partial=keep_partial) as publication:
            tell_resumed(run, publication, resume)
            terms.advance = run.progress(2 * found.size_bytes).advance
            tell_written(run, recompress_sources(found, publication, terms))
        if run.summary.counts.get("lost_bytes"):
            run.condition(Condition.DAMAGE)
        say_published(run, publication.target)


def _check_options(output: str | None, codec: str | None, level: int | None, estimate: bool, explain: bool) -> None:
    if (output is None) != (estimate or explain):
        raise typer.BadParameter("give --output DIR, or one of --estimate and --explain, which write nothing")
    if codec is None and not estimate:
        raise typer.BadParameter("say which codec with --codec none|gzip|snappy|lz4|zstd")
    check_level(codec, level)


def _estimate(
    paths: list[Path],
    codec: str | None,
    level: int | None,
    sample: int | None,
    whole: bool,
    limits: object,
    format_name: str | None,
    quiet: bool,
    fail_on: Severity,
) -> None:
    from format.columns import ESTIMATE
    from format.findings import Finding
    from format.rewriting.sources import read_write_sources
    from format.verbs.recompress.estimate import DEFAULT_SAMPLE_BYTES, estimate, not_measured, targets_of

    with Run("recompress", format_name=format_name, quiet=quiet, main_schema=ESTIMATE, fail_on=fail_on) as run:
        found = read_write_sources(paths)
        sample_bytes = None if whole else sample or DEFAULT_SAMPLE_BYTES
        progress = run.progress()
        largest_log_bytes = 0
        for item in estimate(found, targets_of(codec, level), sample_bytes, limits=limits, advance=progress.advance):
            if isinstance(item, Finding):
                run.finding(item)
            else:
                run.write(ESTIMATE, (item.row(),))
                largest_log_bytes = max(largest_log_bytes, item.log_bytes)
        for words in not_measured(largest_log_bytes, sample_bytes):
            run.not_checked(words)


def _explain(
    paths: list[Path], plan: PlanTerms, limits: object, format_name: str | None, quiet: bool, fail_on: Severity
) -> None:
    from format.columns import BATCH_DECISION
    from format.findings import Finding
    from format.rewriting.sources import read_write_sources
    from format.verbs.recompress.explain import explain_recompress

    with Run("recompress", format_name=format_name, quiet=quiet, main_schema=BATCH_DECISION, fail_on=fail_on) as run:
        found = read_write_sources(paths)
        progress = run.progress(found.size_bytes)
        for item in explain_recompress(found, plan, limits=limits, advance=progress.advance):
            if isinstance(item, Finding):
                run.finding(item)
            else:
                run.write(BATCH_DECISION, item)
