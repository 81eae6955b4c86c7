"""Names of partition directories, and of files that a broker is writing."""

from __future__ import annotations

from pathlib import Path

import pytest

from format.limits import DEFAULT_LIMITS
from format.node import partition as partition_module
from format.node.partition import is_offset, is_temporary, key_of_directory, parse_partition_dir, read_partition

UNIQUE = "0123456789abcdef0123456789abcdef"


@pytest.mark.parametrize(
    ("name", "parsed"),
    [
        ("orders-0", ("orders", 0, None)),
        ("a-b.c_d-17", ("a-b.c_d", 17, None)),
        (f"orders-0.{UNIQUE}-delete", ("orders", 0, "delete")),
        (f"orders-0.{UNIQUE}-future", ("orders", 0, "future")),
        ("orders", None),
        ("orders-", None),
        ("-0", None),
        ("..-0", None),
        ("or ders-0", None),
    ],
)
def test_a_directory_name(name: str, parsed: tuple[str, int, str | None] | None) -> None:
    assert parse_partition_dir(name) == parsed
    assert key_of_directory(Path("/kafka") / name) == (None if parsed is None else parsed[:2])


def test_twenty_digits_hold_more_than_an_offset() -> None:
    assert is_offset(2**63 - 1)
    assert not is_offset(2**63)


def test_files_that_are_about_to_be_renamed() -> None:
    assert is_temporary("leader-epoch-checkpoint.tmp")
    assert not is_temporary("leader-epoch-checkpoint")
    assert not is_temporary("notes.tmp")


def test_a_directory_is_listed_the_same_where_the_sizes_cannot_be_had_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"{number:020d}{suffix}" for number in (0, 7, 2**63 - 1, 2**63) for suffix in (".log", ".index")]
    names += [f"{9:020d}.timeindex", f"{3:020d}.snapshot", f"{7:020d}.snapshot", f"{7:020d}.log.deleted", "notes"]
    names += [f"{5:020d}.txnindex.swap", "leader-epoch-checkpoint", "partition.metadata", "0.log", "\udcff.log"]
    for number, name in enumerate(names):
        (tmp_path / name).write_bytes(bytes(number))
    (tmp_path / f"{11:020d}.log").symlink_to("notes")
    (tmp_path / f"{13:020d}.log").mkdir()
    quickly = read_partition(tmp_path)
    assert quickly.live_files is not None
    monkeypatch.setattr(partition_module, "listed_files", lambda *_: None)
    slowly = read_partition(tmp_path)
    assert slowly.live_files is None
    for each in (quickly, slowly):
        assert [segment.base_offset for segment in each.segments] == [0, 7, 2**63 - 1]
        assert (each.segment_count, each.first_base_offset, each.segment(1)) == (3, 0, each.segments[1])
    assert quickly.sizes == slowly.sizes
    assert quickly == slowly
    for every in ("segments", "orphans"):
        files = [[list(segment.files.items()) for segment in getattr(each, every)] for each in (quickly, slowly)]
        assert files[0] == files[1]


def test_small_files_are_read_once(tmp_path: Path) -> None:
    directory = tmp_path / "orders-0"
    directory.mkdir()
    first_id, epochs = "AAAAAAAAAAAAAAAAAAAAAQ", directory / "leader-epoch-checkpoint"
    (directory / "partition.metadata").write_text(f"version: 0\ntopic_id: {first_id}")
    epochs.write_text("0\n1\n3 0\n")
    partition = read_partition(directory)
    metadata = directory / "partition.metadata"
    assert partition.topic_id_file(metadata, DEFAULT_LIMITS).topic_id == first_id
    assert [each.leader_epoch for each in partition.epochs_file(epochs, DEFAULT_LIMITS).entries] == [3]
    metadata.unlink()
    epochs.write_text("0\n2\n3 0\n4 7\n")
    assert partition.topic_id_file(metadata, DEFAULT_LIMITS).topic_id == first_id
    assert len(partition.epochs_file(epochs, DEFAULT_LIMITS).entries) == 1
