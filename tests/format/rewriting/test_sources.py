"""What a writing command was given: one directory that cannot be listed, or has an odd name, stops no other."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from format import layout
from format.errors import InputError, UnreadableFile
from format.rewriting.sources import WriteSources, read_write_sources
from tests.building import batches, forbid_reading, write_segment
from tests.running import Run

pytestmark = pytest.mark.slow

COMMANDS = {
    "salvage": (),
    "recompress": ("--codec", "lz4"),
    "redact": ("--mode", "fill"),
    "rebuild-index": ("--with-log",),
}


@pytest.fixture
def node(tmp_path: Path) -> Path:
    directory = tmp_path / "node"
    for name in ("a-0", "b-0", "c-0"):
        write_segment(directory / name, 0, batches(2))
    (directory / layout.META_PROPERTIES).write_text("version=1\nnode.id=1\ncluster.id=c\n")
    (directory / layout.CLEAN_SHUTDOWN).write_bytes(b"")
    return directory


@pytest.fixture
def unlistable(node: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """One of the partition directories, which the system does not list."""
    path, open_file = node / "b-0", os.open

    def refusing(place: Any, *rest: Any, **options: Any) -> int:
        if Path(place) == path:
            raise PermissionError(13, "Permission denied")
        return open_file(place, *rest, **options)

    monkeypatch.setattr(os, "open", refusing)
    return path


def codes(sources: WriteSources) -> list[str]:
    return [each.code for each in sources.findings]


def test_a_partition_that_cannot_be_listed_is_left_out(node: Path, unlistable: Path) -> None:
    sources = read_write_sources([node])
    assert (list(sources.partitions), codes(sources), sources.is_whole) == (["a-0", "c-0"], ["file-unreadable"], False)
    [found] = sources.findings
    assert (found.location.path, found.location.topic, found.location.partition) == (str(unlistable), "b", 0)


def test_one_of_several_partitions_that_cannot_be_listed_is_left_out(node: Path, unlistable: Path) -> None:
    sources = read_write_sources([node / "a-0", unlistable])
    assert (list(sources.partitions), codes(sources)) == (["a-0"], ["file-unreadable"])
    with pytest.raises(UnreadableFile):
        read_write_sources([unlistable])


def test_a_partition_with_a_log_that_cannot_be_read_is_left_out(node: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has lost nothing: the permissions are those of this user."""
    log = node / "b-0" / f"{0:020d}.log"
    forbid_reading(log, monkeypatch)
    sources = read_write_sources([node])
    assert (list(sources.partitions), codes(sources), sources.is_whole) == (["a-0", "c-0"], ["file-unreadable"], False)
    [found] = sources.findings
    assert (found.location.path, found.message) == (
        str(log), "cannot open: Permission denied; the partition is left out",
    )  # fmt: skip
    with pytest.raises(UnreadableFile, match="Permission denied"):
        read_write_sources([node / "b-0"])


@pytest.mark.parametrize("command", COMMANDS)
def test_the_others_are_written(
    command: str, node: Path, unlistable: Path, tmp_path: Path, run_kafkalog_many: Callable[..., list[Run]]
) -> None:
    [run] = run_kafkalog_many([[command, node, "--output", tmp_path / "out", *COMMANDS[command], "--format", "jsonl"]])
    run.check(3)
    assert [each["path"] for each in run.rows("finding") if each["code"] == "file-unreadable"] == [str(unlistable)]
    assert sorted(each.name for each in (tmp_path / "out").iterdir() if each.is_dir()) == ["a-0", "c-0"]
    assert not (tmp_path / "out" / layout.CLEAN_SHUTDOWN).exists()


@pytest.mark.parametrize("name", ["t-2147483648", "a-00"])
def test_a_name_at_which_a_broker_stops_is_left_out(node: Path, name: str) -> None:
    write_segment(node / name, 0, batches(1))
    sources = read_write_sources([node])
    assert name not in sources.partitions
    assert len(sources.partitions) == 3
    assert codes(sources) == ["boot-refused"]
    assert not sources.is_whole


def test_marked_directories_stay(node: Path) -> None:
    write_segment(node / f"a-0.{'0' * 32}-delete", 0, batches(1))
    write_segment(node / f"a-0.{'1' * 32}-stray", 0, batches(1))
    sources = read_write_sources([node])
    assert (len(sources.partitions), codes(sources)) == (5, [])


def test_several_log_directories_are_written_one_by_one(node: Path, tmp_path: Path) -> None:
    write_segment(tmp_path / "other" / "a-0", 0, batches(1))
    (tmp_path / "other" / layout.META_PROPERTIES).write_text("version=1\nnode.id=2\ncluster.id=c\n")
    with pytest.raises(InputError, match="give one of them"):
        read_write_sources([tmp_path])


@pytest.mark.parametrize(
    ("takes_files", "wanted"),
    [
        (True, "a log directory, partition directories or .log files"),
        (False, "a log directory or partition directories"),
    ],
)
def test_a_file_of_another_kind_names_what_can_be_given(node: Path, takes_files: bool, wanted: str) -> None:
    index = node / "a-0" / "00000000000000000000.index"
    index.touch()
    with pytest.raises(InputError, match=f"cannot be the source: give {wanted}$"):
        read_write_sources([index], takes_files=takes_files)
