"""Compression levels, and the size of the sample for estimates."""

from __future__ import annotations

from typing import Annotated

import msgspec
import typer

from kafkalog_cli.options.parsers import parse_size


def check_level(codec: str | None, level: int | None) -> None:
    """Refuse a level that the codec does not have."""
    from format.codecs import COMPRESSION_LEVELS
    from format.layout import CODEC_NAMES

    if level is None:
        return
    number = CODEC_NAMES.index(codec) if codec else -1
    if number not in COMPRESSION_LEVELS:
        raise typer.BadParameter(f"--level goes with --codec gzip, lz4 or zstd, not with {codec or 'none given'}")
    lowest, highest, default = COMPRESSION_LEVELS[number]
    if not (lowest <= level <= highest or level == default):
        raise typer.BadParameter(f"{codec} has levels {lowest} to {highest}, not {level}")


class Sample(msgspec.Struct, frozen=True):
    """The part of each topic that is measured."""

    sample: Annotated[
        int | None,
        typer.Option(
            "--sample",
            metavar="SIZE",
            parser=parse_size,
            help="With --estimate: log bytes to measure per topic.",
            show_default="16MiB",
        ),
    ] = None
    whole: Annotated[bool, typer.Option("--whole", help="With --estimate: measure everything.")] = False

    @property
    def size_bytes(self) -> int | None:
        """The bytes to measure; None for all."""
        from format.verbs.recompress.estimate import DEFAULT_SAMPLE_BYTES

        return None if self.whole else self.sample or DEFAULT_SAMPLE_BYTES
