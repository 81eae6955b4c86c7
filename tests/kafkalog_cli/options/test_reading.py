"""Paths and kinds as they are given on a command line."""

from __future__ import annotations

import pytest
import typer

from format.node.log_dir import Kind
from kafkalog_cli.main import app
from kafkalog_cli.options import reading as options

#: Of a command that reads bundles.
CONTEXT = typer.Context(typer.main.get_command(app), info_name="kafkalog ls")


def test_a_path_that_is_not_there_is_a_usage_error(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    (tmp_path / "dangling").symlink_to("nowhere")
    there = [str(tmp_path), str(tmp_path / "file"), str(tmp_path / "dangling")]
    assert options.check_paths(CONTEXT, there) == there
    for name in ("missing", "file/below", "x" * 300, "esc\x1b[2J"):
        with pytest.raises(typer.BadParameter) as refused:
            options.check_paths(CONTEXT, [*there, str(tmp_path / name)])
        assert "\x1b" not in str(refused.value)


def test_kinds():
    assert options.AsKind().kind is None
    assert options.Reading(["/x"], options.AsKind("index")).kind is Kind.OFFSET_INDEX


@pytest.mark.parametrize("inner", ["", "/", "/node-1/orders-0"])
def test_an_archive_at_an_address_is_refused_before_anything_is_asked(inner: str) -> None:
    with pytest.raises(typer.BadParameter, match=r"b/x\.tar\.zst.*: an archive is only read on this host"):
        options.check_paths(CONTEXT, [f"s3://KEY:SECRET@b/x.tar.zst{inner}?region=a"])


def test_an_empty_path_is_not_the_current_directory() -> None:
    """As of a variable of a shell that is not set."""
    with pytest.raises(typer.BadParameter, match=r"a path is empty; the current directory is '\.'"):
        options.check_paths(CONTEXT, [""])
