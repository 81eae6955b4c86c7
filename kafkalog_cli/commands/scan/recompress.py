"""kafkalog scan recompress --estimate: what codecs would save; its earlier name is recompress-estimate."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Annotated

import typer

from format.columns import ESTIMATE
from format.layout import CODEC_NAMES
from format.value_class import value_class
from kafkalog_cli.commands.scan.job import Addresses, Job, Where, run_job, show_rows
from kafkalog_cli.options.compression import Sample, check_level
from kafkalog_cli.options.guards import Guards
from kafkalog_cli.options.parsers import one_of

if TYPE_CHECKING:
    from kafkalog_cli.runner import Run
    from spark_jobs.submit import ScanResult

EXAMPLES = (
    ("kafkalog scan recompress --estimate /var/kafka", "what each codec would save per topic, from a sample"),
    ("kafkalog scan recompress --estimate /var/kafka --codec zstd --whole", "one codec, measured on everything"),
)

Codec = Annotated[
    str | None, typer.Option("--codec", help="Measure this codec, not all of them.", **one_of(*CODEC_NAMES))
]


@value_class
class Estimate:
    """What is measured."""

    codec: Codec = None
    level: Annotated[
        int | None, typer.Option("--level", metavar="N", help="The compression level.", show_default="Kafka's")
    ] = None
    estimate: Annotated[
        bool, typer.Option("--estimate", help="Measure what the codecs would save, per topic; write nothing.")
    ] = False
    sample: Sample = field(default_factory=Sample)


@value_class
class NamedEstimate:
    """The same under the earlier name of the verb."""

    codec: Codec = None
    level: Annotated[
        int | None, typer.Option("--codec-level", metavar="N", help="The compression level.", show_default="Kafka's")
    ] = None
    sample: Sample = field(default_factory=Sample)


def recompress(paths: Addresses, estimate: Estimate, where: Where, guards: Guards) -> None:
    """Measure what codecs would save, as kafkalog recompress --estimate does; nothing is recompressed."""
    if not estimate.estimate:
        raise typer.BadParameter("as a Spark job recompress only estimates: give --estimate")
    _estimate(paths, estimate, where, guards)


def recompress_estimate(paths: Addresses, estimate: NamedEstimate, where: Where, guards: Guards) -> None:
    """Measure what codecs would save, as kafkalog recompress --estimate does."""
    _estimate(paths, estimate, where, guards)


def _estimate(paths: list[str], estimate: Estimate | NamedEstimate, where: Where, guards: Guards) -> None:
    from format.verbs.recompress.estimate import not_measured
    from spark_jobs.submit import Rows, job_options

    check_level(estimate.codec, estimate.level)
    sample_bytes = estimate.sample.size_bytes
    largest_log_bytes = 0

    def show(run: Run, item: ScanResult) -> None:
        nonlocal largest_log_bytes
        if isinstance(item, Rows) and item.schema is ESTIMATE:
            rows = list(item.rows)
            at = ESTIMATE.names.index("log_bytes")
            largest_log_bytes = max([largest_log_bytes, *(row[at] for row in rows)])
            run.write(ESTIMATE, rows)
        else:
            show_rows(run, item)

    def finish(run: Run) -> None:
        for words in not_measured(largest_log_bytes, sample_bytes):
            run.not_checked(words)

    options = job_options(
        "recompress-estimate",
        codec=estimate.codec,
        codec_level=estimate.level,
        sample_bytes=sample_bytes,
        limits=guards.limits,
    )
    run_job(Job("recompress-estimate", paths, options, ESTIMATE), where, show, finish)
