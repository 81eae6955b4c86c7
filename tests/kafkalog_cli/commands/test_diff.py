"""kafkalog diff as a user runs it: the ledger whose replicas diverged, exit codes, mistakes."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from format.columns import DIVERGENCE, REPLICA
from tests.running import Run

Kafkalog = Callable[..., Run]


@pytest.fixture
def kafkalog(run_kafkalog_many: Callable[..., list[Run]]) -> Kafkalog:
    """One run of the program, in a fork."""
    return lambda *arguments: run_kafkalog_many([("diff", *arguments)])[0]


def test_the_ledger_of_the_crashed_leader(kafkalog: Kafkalog, data_dir: Path) -> None:
    """Node 1 was killed with records of epoch 0 that nobody fetched; node 2 wrote 500 of epoch 1 at their offsets."""
    nodes = data_dir / "kafka-4.3" / "node-1", data_dir / "kafka-4.3" / "node-2"
    run = kafkalog("--format", "jsonl", *nodes).check(1)
    (row,) = run.rows("divergence")
    assert tuple(row)[1:] == DIVERGENCE.names
    assert (row["topic"], row["kind"], row["offset"], row["leader_epoch"]) == ("ledger", "diverged", 1250, [0, 1])
    assert (row["log_end_offset"], row["high_watermark"]) == ([1300, 1750], [1000, 1750])
    assert (row["unique_from"], row["unique_to"]) == ([1250, 1250], [1299, 1749])
    assert row["lost_if_elected"] == [[1250, 1749], [1250, 1299]]
    assert (row["truncate_to"], row["elect"]) == ([[None, 1250], [1250, None]], 1)
    crashed, elected = run.rows("replica")
    assert tuple(crashed)[1:] == REPLICA.names
    assert (crashed["lost_committed_count"], elected["lost_committed_count"]) == (500, 0)
    assert (crashed["truncate_to"], elected["epochs"]) == (1250, [[0, 0], [1, 1250]])
    assert run.stderr.startswith("ledger-0: node 1 diverges from node 2 at offset 1,250. Elect node 2")
    assert run.summary["conditions"] == ["difference-found"]
    assert run.summary["not_checked"] == ["a partition with one replica here: payments-0"]


def test_a_copy_is_identical_whatever_its_name(kafkalog: Kafkalog, data_dir: Path, tmp_path: Path) -> None:
    original = data_dir / "kafka-4.3" / "node-1" / "payments-0"
    copy = tmp_path / "saved"
    shutil.copytree(original, copy)
    run = kafkalog("--format", "jsonl", original, copy).check(0)
    (row,) = run.rows("divergence")
    assert (row["kind"], row["offset"], row["topic"]) == ("identical", None, "payments")
    assert "1 partition compared: all replicas are the same." in run.stderr


def test_a_byte_that_turned_is_found_on_its_replica(kafkalog: Kafkalog, data_dir: Path, tmp_path: Path) -> None:
    node = tmp_path / "node-2"
    shutil.copytree(data_dir / "kafka-4.3" / "node-2", node)
    log = node / "ledger-0" / "00000000000000000000.log"
    content = bytearray(log.read_bytes())
    content[1000] ^= 1
    log.write_bytes(content)
    run = kafkalog("--format", "jsonl", data_dir / "kafka-4.3" / "node-2", node).check(1)
    (row,) = run.rows("divergence")
    assert (row["kind"], row["offset"], row["damaged"]) == ("different_bytes", 50, [[], [[50, 99]]])
    assert [each["code"] for each in run.rows("finding")] == ["batch-crc-mismatch"]
    assert "cannot be read at offsets 50 to 99" in run.stderr


def test_topics_of_one_name_that_are_not_one_topic(kafkalog: Kafkalog, data_dir: Path, tmp_path: Path) -> None:
    node = tmp_path / "node-2"
    shutil.copytree(data_dir / "kafka-4.3" / "node-2", node)
    metadata = node / "ledger-0" / "partition.metadata"
    metadata.write_text("version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAg")
    run = kafkalog("--format", "jsonl", data_dir / "kafka-4.3" / "node-1", node).check(1)
    assert not run.rows("divergence")
    assert [each["code"] for each in run.rows("finding")] == ["topic-id-conflict"]


def test_paths_that_cannot_be_compared(kafkalog: Kafkalog, data_dir: Path) -> None:
    node = data_dir / "kafka-4.3" / "node-1"
    kafkalog(node / "ledger-0", node / "payments-0").check(2)
    kafkalog(node / "ledger-0" / "00000000000000000000.log", node).check(2)
    assert kafkalog(node).check(3).stderr.startswith("No partition has two replicas at the paths: ")
    kafkalog(node, node).check(2)


def test_the_table_shows_the_replicas_of_what_differs(kafkalog: Kafkalog, data_dir: Path, tmp_path: Path) -> None:
    nodes = data_dir / "kafka-4.3" / "node-1", data_dir / "kafka-4.3" / "node-2"
    run = kafkalog("--format", "table", *nodes).check(1)
    assert "lost_committed_count" in run.stdout
    copy = shutil.copytree(nodes[0] / "ledger-0", tmp_path / "ledger-0")
    same = kafkalog("--format", "table", nodes[0] / "ledger-0", copy).check(0)
    assert "lost_committed_count" not in same.stdout
