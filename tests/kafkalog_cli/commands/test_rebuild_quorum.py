"""kafkalog rebuild-quorum as a user runs it: exit codes, rows, what is written."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from format.columns import REBUILD_CHANGE, REBUILT_CONTROLLER
from tests.metadata_logs import write_metadata_log, write_node, write_snapshot
from tests.running import Run

Kafkalog = Callable[..., Run]
_NAMES = {11: "eleven", 12: "twelve", 13: "thirteen"}


@pytest.fixture
def kafkalog(run_kafkalog_many: Callable[..., list[Run]]) -> Kafkalog:
    """One run of the program, in a fork: quicker than a process of its own."""
    return lambda *arguments: run_kafkalog_many([("rebuild-quorum", *arguments)])[0]


def node(root: Path, node_id: int, extra_topics: int = 0) -> Path:
    found = write_node(root / f"node-{node_id}", node_id, directory=_NAMES.get(node_id))
    write_snapshot(write_metadata_log(found, extra_topics=extra_topics), 0, 0, _NAMES)
    return found


def test_the_directories_of_lost_controllers(kafkalog: Kafkalog, tmp_path: Path) -> None:
    source, target = node(tmp_path / "old", 1), tmp_path / "new"
    run = kafkalog(source, "--output", target, "--format", "jsonl").check(0)
    rows = run.rows("rebuilt_controller")
    assert [tuple(row)[1:] for row in rows] == [REBUILT_CONTROLLER.names] * 3
    assert [row["path"] for row in rows] == [str(target / f"node-{each}") for each in (11, 12, 13)]
    assert rows[0]["endpoints"] == ["CONTROLLER://host-11:9093"]
    names = sorted(each.name for each in target.iterdir())
    assert names == ["manifest.json", "node-11", "node-12", "node-13"]
    assert json.loads((target / "manifest.json").read_text())["voters"] == [11, 12, 13]
    assert "Put " in run.stderr


def test_a_dry_run_names_what_is_lost_and_writes_nothing(kafkalog: Kafkalog, tmp_path: Path) -> None:
    old, later = node(tmp_path / "a", 1), node(tmp_path / "b", 2, extra_topics=1)
    before = sorted(tmp_path.rglob("*"))
    run = kafkalog(old, later, "--copy", old, "--dry-run", "--format", "jsonl").check(1)
    row, raised = run.rows("rebuild_change")
    assert (raised["action"], raised["subject"]) == ("set", "producer ids")
    assert tuple(row)[1:] == REBUILD_CHANGE.names
    assert (row["action"], row["subject"], row["path"]) == ("lost", "topic extra-0", f"{later}/__cluster_metadata-0")
    assert sorted(tmp_path.rglob("*")) == before
    text = kafkalog(old, later, "--copy", old / "__cluster_metadata-0", "--dry-run").check(1).stdout
    assert "Lost: topic extra-0." in text
    assert "Stop all brokers before the controllers start" in text


def test_records_at_risk_are_no_proven_loss(kafkalog: Kafkalog, data_dir: Path) -> None:
    run = kafkalog(data_dir / "trials/metadata/node-1", "--dry-run", "--format", "jsonl").check(0)
    rows = run.rows("rebuild_change")
    assert {row["action"] for row in rows} == {"at_risk"}
    assert {tuple(row["before"]["isr"]) for row in rows} == {(2,), (3,), (2, 3)}
    text = kafkalog(data_dir / "trials/metadata/node-1", "--dry-run").check(0).stdout
    assert "At risk: records of partitions orders-0" in text
    assert "Lost:" not in text
    assert "Stop all brokers" not in text


def test_an_intact_majority_is_refused(kafkalog: Kafkalog, tmp_path: Path) -> None:
    nodes = [node(tmp_path, 11), node(tmp_path, 12)]
    run = kafkalog(*nodes, "--output", tmp_path / "new").check(5)
    assert "nodes 11 and 12 of the voters 11, 12 and 13 have intact metadata logs" in run.stderr
    assert not (tmp_path / "new").exists()
    kafkalog(*nodes, "--output", tmp_path / "new", "--force").check(0)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "--output DIR or --dry-run"),
        (("--dry-run", "--output", "new"), "--output DIR or --dry-run"),
        (("--dry-run", "--voter", "one@host:9093"), "is not ID@HOST:PORT"),
        (("--dry-run", "--voter", "1@host:70000"), "is not ID@HOST:PORT"),
        (("--dry-run", "--voter", "1@a:1", "--voter", "1@b:1"), "stands twice"),
    ],
)
def test_usage_errors(kafkalog: Kafkalog, tmp_path: Path, words: tuple[str, ...], message: str) -> None:
    assert message in " ".join(kafkalog(node(tmp_path, 1), *words).check(2).stderr.split())


def test_an_output_in_a_log_directory_is_refused(kafkalog: Kafkalog, tmp_path: Path) -> None:
    source = node(tmp_path, 1)
    kafkalog(source, "--output", source / "new").check(5)
    assert not (source / "new").exists()
