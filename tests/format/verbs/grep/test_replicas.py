"""grep over replicas: which records are one, in which order they come, and that none is lost."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from format.findings import Finding
from format.node.target import targets_at
from format.verbs.grep import replicas
from format.verbs.grep.grep import Criteria, Search
from format.verbs.grep.pattern import text_pattern
from format.verbs.grep.replicas import found_in_replicas
from tests.building import batch, write_segment

Found = list[tuple[int, str, list[str], list[str]]]


def node(root: Path, node_id: int, *, cluster: str = "one") -> Path:
    """The partition directory of a new node."""
    log_dir = root / f"node-{node_id}"
    log_dir.mkdir(parents=True)
    lines = ("version=1", f"cluster.id={cluster}", f"node.id={node_id}")
    (log_dir / "meta.properties").write_text("".join(f"{line}\n" for line in lines))
    return log_dir / "t-0"


def found(paths: Iterable[Path], *, jobs: int = 1) -> Found:
    """Offset, value, nodes that have the record, nodes that have another one."""
    items = list(found_in_replicas(targets_at(paths), Search(Criteria(text_pattern("v")), jobs=jobs)))
    assert not [each for each in items if isinstance(each, Finding)]
    return [
        (each.row[2], each.row[8].decode(), nodes(each.directories), nodes(each.differing))
        for each in items
        if not isinstance(each, Finding)
    ]


def nodes(directories: Iterable[Path]) -> list[str]:
    return [each.parent.name[-1] for each in directories]


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_record_of_several_replicas_is_one(tmp_path: Path, jobs: int) -> None:
    """Though the segments of the replicas begin at other offsets, and one has been truncated, or lacks a record."""
    first, second, third = (node(tmp_path, number) for number in (1, 2, 3))
    values = [batch(number, [b"v%d" % number]) for number in range(6)]
    write_segment(first, 0, values[:2])
    write_segment(first, 2, values[2:])
    write_segment(second, 0, values[:4])
    write_segment(second, 4, values[4:5])
    write_segment(third, 1, [values[1], *values[3:4], batch(4, [b"v-other"], leader_epoch=2)])
    expected = [
        (0, "v0", ["1", "2"], []),
        (1, "v1", ["1", "2", "3"], []),
        (2, "v2", ["1", "2"], []),
        (3, "v3", ["1", "2", "3"], []),
        (4, "v4", ["1", "2"], ["3"]),
        (4, "v-other", ["3"], ["1", "2"]),
        (5, "v5", ["1"], []),
    ]
    assert found([tmp_path], jobs=jobs) == expected
    assert found([first.parent, second, third.parent], jobs=jobs) == expected


def test_replicas_of_another_cluster_are_not_compared(tmp_path: Path) -> None:
    for number, cluster in ((1, "one"), (2, "two")):
        write_segment(node(tmp_path, number, cluster=cluster), 0, [batch(0, [b"v%d" % number])])
    assert found([tmp_path]) == [(0, "v1", ["1"], []), (0, "v2", ["2"], [])]


def test_the_leader_epoch_and_the_producer_belong_to_a_record(tmp_path: Path) -> None:
    write_segment(node(tmp_path, 1), 0, [batch(0, [b"v"]), batch(1, [b"v"])])
    write_segment(node(tmp_path, 2), 0, [batch(0, [b"v"], leader_epoch=3), batch(1, [b"v"], codec=4)])
    assert found([tmp_path]) == [
        (0, "v", ["1"], ["2"]),
        (0, "v", ["2"], ["1"]),
        (1, "v", ["1", "2"], []),
    ]


def test_what_is_held_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With too much to hold each replica's records are shown by themselves; none is lost."""
    monkeypatch.setattr(replicas, "_MOST_HELD_BYTES", 1)
    for number in (1, 2):
        write_segment(node(tmp_path, number), 0, [batch(0, [b"v0", b"v1"])])
    assert found([tmp_path]) == [(offset, f"v{offset}", [each], []) for each in ("1", "2") for offset in (0, 1)]


def test_a_damaged_replica_is_reported(tmp_path: Path) -> None:
    content = batch(0, [b"v0", b"v1"])
    write_segment(node(tmp_path, 1), 0, [content])
    write_segment(node(tmp_path, 2), 0, [content[:-1] + b"x"])
    items = list(found_in_replicas(targets_at([tmp_path]), Search(Criteria(text_pattern("v")))))
    assert [each.code for each in items if isinstance(each, Finding)] == ["batch-crc-mismatch"]
    assert [len(each.directories) for each in items if not isinstance(each, Finding)] == [1, 1]
