"""kafkalog scan recompress --estimate: what codecs would save."""

from __future__ import annotations

from typing import Annotated

import msgspec
import typer

from format.layout import CODEC_NAMES
from kafkalog_cli.commands.recompress import Recompressed
from kafkalog_cli.commands.recompress import recompress as recompress_here
from kafkalog_cli.options.groups import option
from kafkalog_cli.options.output import Judging, RowOutput
from kafkalog_cli.options.parsers import one_of
from kafkalog_cli.options.work import Guards
from kafkalog_cli.options.writing import Rewriting, Sample, SourceOptions

SCAN_EXAMPLES = (
    ("kafkalog scan recompress --estimate /var/kafka", "what each codec would save per topic, from a sample"),
    ("kafkalog scan recompress --estimate /var/kafka --codec zstd --whole", "one codec, measured on everything"),
)

Codec = Annotated[str | None, option("Measure this codec, not all of them.", "--codec", **one_of(*CODEC_NAMES))]


class EstimateOptions(msgspec.Struct, frozen=True):
    """What is measured."""

    codec: Codec = None
    level: Annotated[int | None, option("The compression level.", metavar="N", show_default="Kafka's")] = None
    estimate: Annotated[bool, option("Measure what the codecs would save, per topic; write nothing.")] = False
    sample: Sample = msgspec.field(default_factory=Sample)


def recompress(
    sources: SourceOptions, estimate: EstimateOptions, judging: Judging, output: RowOutput, guards: Guards
) -> None:
    """Measure what codecs would save, as kafkalog recompress --estimate does; nothing is recompressed."""
    if not estimate.estimate:
        raise typer.BadParameter("as a Spark job recompress only estimates: give --estimate")
    wanted = Recompressed(sources, codec=estimate.codec, level=estimate.level, estimate=True, sample=estimate.sample)
    recompress_here(wanted, Rewriting(judging=judging, output=output, guards=guards))
