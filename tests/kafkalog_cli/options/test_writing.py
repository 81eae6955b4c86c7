"""What the commands that write have in common: sources, resuming, the density of indexes."""

from __future__ import annotations

from pathlib import Path

import pytest
import typer

from format.rewriting.index_builder import DEFAULT_INTERVAL_BYTES
from kafkalog_cli.options.writing import Indexing, Resumption, SourceOptions, local_directory


def test_the_interval_is_kafkas_unless_given() -> None:
    assert Indexing().interval_bytes == DEFAULT_INTERVAL_BYTES == 4096  # the help says so
    assert Indexing(100).interval_bytes == 100


def test_sources_are_paths() -> None:
    assert SourceOptions(["a-0", "b-1"]).paths == [Path("a-0"), Path("b-1")]


def test_a_partial_directory_stays_only_where_it_is_wanted(tmp_path: Path) -> None:
    for keeps in (False, True):
        directory = tmp_path / str(keeps)
        directory.mkdir()
        try:
            with Resumption(keep_partial=keeps).publication(str(directory / "out"), [], {"command": "x"}) as made:
                made.write_file("f", b"x")
                raise KeyError
        except KeyError:
            pass
        assert bool(list(directory.iterdir())) is keeps


@pytest.mark.parametrize("address", ["s3://bucket/out", "hdfs://namenode/out", "gs://bucket/out"])
def test_an_address_is_refused_as_output(address: str) -> None:
    """As a path it would be a directory called ``s3:`` below the current one."""
    with pytest.raises(typer.BadParameter, match="is an address"):
        local_directory(address)


def test_output_is_a_path_or_a_file_address() -> None:
    assert [local_directory(each) for each in ("out", "./a:b", "/x/out", "file:///x/out")] == [
        "out",
        "./a:b",
        "/x/out",
        "/x/out",
    ]
