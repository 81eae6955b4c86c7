"""kafkalog quorum as a user runs it: rows, the conclusion, exit codes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from format.columns import QUORUM, QUORUM_LOG, QUORUM_VOTER
from tests.format.verbs.test_quorum import damage_end, made, write_replica
from tests.running import Run

Kafkalog = Callable[..., Run]


@pytest.fixture
def kafkalog(run_kafkalog_many: Callable[..., list[Run]]) -> Kafkalog:
    """One run of the program, in a fork: quicker than a process of its own."""
    return lambda *arguments: run_kafkalog_many([("quorum", *arguments)])[0]


def test_a_healthy_quorum_of_one(kafkalog: Kafkalog, data_dir: Path) -> None:
    node = data_dir / "kafka-4.3-single" / "node-1"
    run = kafkalog("--format", "jsonl", node).check(0)
    for schema in (QUORUM, QUORUM_LOG, QUORUM_VOTER):
        assert {tuple(row)[1:] for row in run.rows(schema.type)} == {schema.names}
    assert run.rows("quorum")[0]["is_intact"] is True
    assert run.summary["complete"] is True
    assert "No lost change shows: of " in run.stderr
    text = kafkalog(node).check(0).stdout
    assert text.startswith("A leader can be elected: node 1, the only voter, is here. Node 1 can lead.\n")


def test_a_voter_that_is_not_here_leaves_it_incomplete(kafkalog: Kafkalog, data_dir: Path) -> None:
    run = kafkalog("--format", "jsonl", data_dir / "trials" / "metadata" / "node-1").check(3)
    assert run.rows("quorum")[0]["is_intact"] is None
    assert "the logs of nodes 2 and 3, which can vote" in run.summary["not_checked"]


@pytest.mark.slow
def test_a_bundle_names_no_command_that_is_refused_for_it(
    kafkalog: Kafkalog, run_kafkalog_many: Callable[..., list[Run]], data_dir: Path, tmp_path: Path
) -> None:
    bundle = tmp_path / "node-1.tar.zst"
    node = data_dir / "trials" / "metadata" / "node-1"
    run_kafkalog_many([("bundle", node, "--output", bundle)])[0].check(0)
    advice = "lost: run kafkalog rebuild-quorum --dry-run on the log directories themselves"
    assert advice in kafkalog(bundle).check(3).stdout


def test_proven_loss_fails(kafkalog: Kafkalog, tmp_path: Path) -> None:
    made(tmp_path, {1: 9, 2: 9, 3: 9})
    nodes = [tmp_path / f"node-{each}" for each in (1, 2, 3)]
    kafkalog(*nodes).check(0)
    for number in range(9):
        write_replica(nodes[0], f"orders-{number}", [5])
    run = kafkalog(*nodes).check(1)
    assert "Changes are lost: 9 partitions on disk are ahead of the metadata" in run.stdout
    assert run.stdout.count("/orders-") == 6 + 2  # rows, and a finding of each kind
    assert "Not listed: 3 lost changes (--every-row lists them)." in run.stderr
    assert kafkalog("--every-row", *nodes).check(1).stdout.count("/orders-") == 9 + 2


def test_damage_fails(kafkalog: Kafkalog, tmp_path: Path) -> None:
    made(tmp_path, {1: 9, 2: 9, 3: 9})
    damage_end(tmp_path / "node-1")
    assert "drops its log from 8 on" in kafkalog(*(tmp_path / f"node-{each}" for each in (1, 2, 3))).check(1).stdout


def test_a_path_without_a_metadata_log_is_refused(kafkalog: Kafkalog, data_dir: Path) -> None:
    run = kafkalog(data_dir / "kafka-4.3-single" / "node-1" / "orders-0").check(2)
    assert "__cluster_metadata" in run.stderr
