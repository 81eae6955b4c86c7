"""kafkalog recompress: the same records with another codec in a new directory, or an estimate of what that saves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from format.columns import BATCH_DECISION, ESTIMATE
from format.layout import CODEC_NAMES
from format.limits import Limits
from kafkalog_cli.exit_codes import Condition
from kafkalog_cli.options.groups import first_given, option
from kafkalog_cli.options.parsers import SIZE, one_of
from kafkalog_cli.options.writing import Rewriting, Sample, SourceOptions, check_level, local_directory
from kafkalog_cli.render.table import ShownColumns
from kafkalog_cli.runner import Run, show_written

if TYPE_CHECKING:
    from format.rewriting.sources import WriteSources
    from format.verbs.recompress.new_batches import PlanTerms

EXAMPLES = (
    ("kafkalog recompress /mnt/copy --output /mnt/small --codec zstd", "a whole log directory that a broker can use"),
    (
        "kafkalog recompress orders-0 orders-1 --output small --codec zstd --level 9",
        "two partitions, at a higher level",
    ),
    ("kafkalog recompress /var/kafka --estimate", "what each codec would save per topic, from a sample"),
    ("kafkalog recompress --estimate --codec zstd node-1 node-2 node-3", "over all nodes, every replica counted"),
    ("kafkalog recompress /var/kafka/orders-0 --explain --codec lz4", "batch by batch: what would be done, and why"),
    ("kafkalog recompress old-0 --output new --codec zstd --magic 2", "v0 and v1 messages become v2 batches"),
)

_ESTIMATE_COLUMNS = ShownColumns(
    ESTIMATE.names,
    first_to_go=(
        "compress_ms", "decompress_mb_per_s", "compress_mb_per_s", "level", "sampled_bytes", "saved_bytes",
    ),
)  # fmt: skip
_DECISION_COLUMNS = ShownColumns(
    ("topic", "partition", "base_offset", "last_offset", "size_bytes", "codec", "decision", "reason"),
    first_to_go=("size_bytes", "last_offset"),
)

#: So many batches of --explain are held back, so that its sentences stand above them.
_MOST_HELD = 20_000


class Recompressed(msgspec.Struct, frozen=True):
    """What is recompressed and how, where it is written, and whether it is only measured or explained."""

    sources: SourceOptions
    output: Annotated[
        str | None,
        option(
            "A new directory for the result, outside the sources; it appears only when it is complete.",
            metavar="DIR",
            callback=local_directory,
        ),
    ] = None
    codec: Annotated[str | None, option("The codec to use.", **one_of(*CODEC_NAMES))] = None
    level: Annotated[
        int | None,
        option(
            "The compression level: gzip 1 to 9, lz4 1 to 17, zstd -131072 to 22.",
            metavar="N",
            show_default="Kafka's: gzip 6, lz4 9, zstd 3",
        ),
    ] = None
    estimate: Annotated[bool, option("Measure what the codecs would save, per topic; write nothing.")] = False
    sample: Sample = msgspec.field(default_factory=Sample)
    explain: Annotated[bool, option("Show for each batch what would be done and why; write nothing.")] = False
    force: Annotated[bool, option("Recompress batches that already have the codec, for another level.")] = False
    merge_bytes: Annotated[
        int | None,
        option(
            "Merge neighbouring batches up to this size, as they are in the source; batches of producers with ids are "
            "never merged.",
            "--batch-bytes",
            show_default="no merging",
            **SIZE,
        ),
    ] = None
    magic: Annotated[str | None, option("Convert v0 and v1 messages to this format.", **one_of("2"))] = None
    segment_bytes: Annotated[
        int | None,
        option(
            "Start a new segment where one would grow past this size.",
            show_default="as in the source, and 2 GiB at most",
            **SIZE,
        ),
    ] = None
    skip_damaged: Annotated[bool, option("Leave out damaged bytes, and list them, instead of refusing the source.")] = (
        False
    )


def recompress(recompressed: Recompressed, rewriting: Rewriting) -> None:
    """Write the same records with another codec, and new indexes, into a new directory.

    Offsets, timestamps, keys, values, headers, producers, transactions and leader epochs stay as they are. The result
    is read back and compared, record by record, before it is published. Batches that already have the codec are
    copied byte for byte. A damaged source is refused: run salvage first.
    """
    from format.rewriting.rewriter import PASSES
    from format.rewriting.sources import read_measured_sources, read_write_sources
    from format.verbs.recompress.new_batches import PlanTerms, TargetFormat

    _check_options(recompressed, rewriting)
    paths, output, judging = recompressed.sources.paths, rewriting.output, rewriting.judging
    limits, interval_bytes = rewriting.guards.limits, rewriting.indexing.interval_bytes
    if recompressed.estimate:
        columns = {ESTIMATE.type: _ESTIMATE_COLUMNS}
        with Run("recompress", output, judging, main_schema=ESTIMATE, columns=columns) as run:
            _estimate(run, read_measured_sources(paths), recompressed, limits)
        return
    magic = None if recompressed.magic is None else int(recompressed.magic)
    target = TargetFormat(CODEC_NAMES.index(recompressed.codec or "zstd"), recompressed.level, magic)
    plan = PlanTerms(target, recompressed.force, recompressed.merge_bytes or 0)
    if recompressed.explain:
        columns = {BATCH_DECISION.type: _DECISION_COLUMNS}
        with Run("recompress", output, judging, main_schema=BATCH_DECISION, columns=columns) as run:
            _explain(run, read_measured_sources(paths), plan, limits)
        return
    from format.verbs.recompress.recompress import Recompression
    from format.verbs.recompress.recompress import recompress as recompress_sources

    with rewriting.run("recompress") as run:
        found = read_write_sources(paths)
        job = found.job(
            "recompress",
            codec=recompressed.codec,
            level=recompressed.level,
            magic=recompressed.magic,
            force=recompressed.force,
            batch_bytes=recompressed.merge_bytes,
            segment_bytes=recompressed.segment_bytes,
            skip_damaged=recompressed.skip_damaged,
            index_interval_bytes=interval_bytes,
        )
        with rewriting.publication(run, recompressed.output or "", paths, job) as publication:
            terms = Recompression(
                plan=plan,
                segment_bytes=recompressed.segment_bytes,
                skip_damaged=recompressed.skip_damaged,
                **rewriting.terms(run.progress(PASSES * found.size_bytes)),
            )
            show_written(run, recompress_sources(found, publication, terms))
        if run.summary.counts.get("lost_bytes"):
            run.condition(Condition.DAMAGE)


def _check_options(given: Recompressed, rewriting: Rewriting) -> None:
    if (given.output is not None) + given.estimate + given.explain != 1:
        raise typer.BadParameter("give --output DIR, or one of --estimate and --explain, which write nothing")
    if given.codec is None and not given.estimate:
        raise typer.BadParameter("give the codec: --codec none|gzip|snappy|lz4|zstd")
    check_level(given.codec, given.level)
    measured = {"--sample": given.sample.sample, "--whole": given.sample.whole}
    planned = {"--force": given.force, "--batch-bytes": given.merge_bytes, "--magic": given.magic}
    written = {
        "--segment-bytes": given.segment_bytes,
        "--skip-damaged": given.skip_damaged,
        "--resume": rewriting.resumption.resume,
        "--keep-partial": rewriting.resumption.keep_partial,
        "--index-interval-bytes": rewriting.indexing.index_interval,
    }
    for options, has_effect, where in (
        (measured, given.estimate, "--estimate"),
        (planned, not given.estimate, "--output or --explain"),
        (written, given.output is not None, "--output"),
    ):
        name = None if has_effect else first_given(options)
        if name is not None:
            raise typer.BadParameter(f"{name} goes with {where}")


def _estimate(run: Run, sources: WriteSources, given: Recompressed, limits: Limits) -> None:
    from format.verbs.recompress.estimate import Savings, estimate, not_measured, targets_of

    sample_bytes = given.sample.size_bytes
    targets = targets_of(given.codec, given.level)
    progress = run.progress()
    largest_log_bytes = 0
    savings = Savings()
    run.hold()
    try:
        for each in run.results(estimate(sources, targets, sample_bytes, limits=limits, advance=progress.advance)):
            run.write(ESTIMATE, (each.row(),))
            savings.take(each)
            largest_log_bytes = max(largest_log_bytes, each.log_bytes)
    finally:
        run.conclude(savings.sentence())  # of what was measured, when the run is interrupted
    run.not_checked(*not_measured(largest_log_bytes, sample_bytes))


def _explain(run: Run, sources: WriteSources, plan: PlanTerms, limits: Limits) -> None:
    from format.verbs.recompress.estimate import Decided, explain_recompress

    progress = run.progress(sources.size_bytes)
    decided = Decided(plan.target.codec)
    written = 0
    run.hold()
    try:
        for rows in run.results(explain_recompress(sources, plan, limits=limits, advance=progress.advance)):
            decided.take(rows)
            run.write(BATCH_DECISION, rows)
            written += len(rows)
            if written > _MOST_HELD:
                run.conclude()  # the rows so far; the sentences stand below them
    finally:
        run.conclude(*decided.sentences())
