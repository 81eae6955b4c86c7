"""Levels of codecs, and samples."""

from __future__ import annotations

import pytest
import typer

from format.verbs.recompress.estimate import DEFAULT_SAMPLE_BYTES
from kafkalog_cli.options.writing import Sample, check_level

LEVELS = [("gzip", 9), ("lz4", 17), ("zstd", -131072), ("zstd", 22), ("none", None)]


@pytest.mark.parametrize(("codec", "level"), LEVELS)
def test_levels_that_there_are(codec: str, level: int | None) -> None:
    check_level(codec, level)


@pytest.mark.parametrize(("codec", "level"), [("gzip", 10), ("lz4", 0), ("zstd", 23), ("snappy", 1), (None, 3)])
def test_levels_that_there_are_not(codec: str | None, level: int) -> None:
    with pytest.raises(typer.BadParameter):
        check_level(codec, level)


def test_samples() -> None:
    assert Sample().size_bytes == DEFAULT_SAMPLE_BYTES == 16 * 1024 * 1024  # the help says 16MiB
    assert Sample(5).size_bytes == 5
    assert Sample(5, whole=True).size_bytes is None
