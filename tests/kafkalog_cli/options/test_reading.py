"""Paths and kinds as they are given on a command line."""

from __future__ import annotations

import pytest
import typer
from typer.main import get_command

from format.node.log_dir import Kind
from kafkalog_cli.command_table import COMMANDS
from kafkalog_cli.main import app, main
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
    assert options.AsKind("index").kind is Kind.OFFSET_INDEX


@pytest.mark.parametrize("inner", ["", "/", "/node-1/orders-0"])
def test_an_archive_at_an_address_is_refused_before_anything_is_asked(inner: str) -> None:
    with pytest.raises(typer.BadParameter, match=r"b/x\.tar\.zst.*: an archive is only read on this host"):
        options.check_paths(CONTEXT, [f"s3://KEY:SECRET@b/x.tar.zst{inner}?region=a"])


def test_an_empty_path_is_not_the_current_directory() -> None:
    """As of a variable of a shell that is not set."""
    with pytest.raises(typer.BadParameter, match=r"a path is empty; the current directory is '\.'"):
        options.check_paths(CONTEXT, [""])


#: Files of each kind that a help may name, those of them of any topic, and the words that commands need besides a path.
_FILES = {
    "a .log file": "sensor-0/00000000000000000000.log",
    "a log of __consumer_offsets": "__consumer_offsets-1/00000000000000000000.log",
    "a log or a snapshot of __cluster_metadata-0": "__cluster_metadata-0/00000000000000000000.log",
    "a file of a segment": "sensor-0/00000000000000000000.timeindex",
    "one file of any kind": "replication-offset-checkpoint",
}
_OF_ANY_TOPIC = ("a .log file", "a file of a segment")
_MORE_WORDS = {
    "extract": ("--output", "{}"),
    "report": ("--output", "{}.html"),
    "bundle": ("--no-report", "--output", "{}.tar.zst"),
}
_WITH_PATHS = [
    entry.name for entry in COMMANDS
    for each in get_command(app).get_command(None, entry.name).params
    if each.name == "paths" and each.help.startswith("A log directory")
]  # fmt: skip


@pytest.mark.parametrize("name", _WITH_PATHS)
def test_help_names_the_kinds_of_files_that_a_command_takes(name, data_dir, tmp_path, capsys) -> None:
    [paths] = [each for each in get_command(app).get_command(None, name).params if each.name == "paths"]
    more = [word.format(tmp_path / "out") for word in _MORE_WORDS.get(name, ())]
    node = data_dir / "kafka-4.3-single" / "node-1"
    for kind, file in _FILES.items():
        is_named = kind in paths.help or "one file of any kind" in paths.help
        is_named |= any(each in paths.help for each in _OF_ANY_TOPIC) and file.endswith(".log")
        assert (main([name, str(node / file), *more, "-q"]) != 2) == is_named, kind


@pytest.mark.parametrize("name", ["ls", "dump", "grep", "metadata", "quorum", "compaction", "retention", "verify"])
def test_help_names_the_kinds_that_a_path_can_be_read_as(name, data_dir, capsys) -> None:
    [option] = [each for each in get_command(app).get_command(None, name).params if each.name == "as_kind"]
    named = option.help.rstrip(".").partition(": ")[2].split(", ")
    node = data_dir / "kafka-4.3-single" / "node-1"
    files = {
        "log-dir": node,
        "partition": node / "__cluster_metadata-0",
        "log": node / _FILES["a log or a snapshot of __cluster_metadata-0"],
        "offset-checkpoint": node / "replication-offset-checkpoint",
    }
    words = ["x"] if name == "grep" else []
    for kind, path in files.items():
        assert (main([name, *words, str(path), "--as", kind, "-q"]) != 2) == (kind in named), kind
