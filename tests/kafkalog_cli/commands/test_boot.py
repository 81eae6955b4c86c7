"""kafkalog boot as a user runs it: exit codes, rows, the sentence."""

from __future__ import annotations

import gzip
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from format.columns import BOOT_STEP
from kafkalog_cli.commands.boot import KAFKA_VERSIONS
from tests.oracle.boot_mutations.earlier_release import make_earlier
from tests.oracle.boot_mutations.node import CLEAN_MARK, Node, batch_positions, copied_node, cut
from tests.running import Run

Kafkalog = Callable[..., Run]


@pytest.fixture
def kafkalog(run_kafkalog_many: Callable[..., list[Run]]) -> Kafkalog:
    """One run of the program, in a fork: quicker than a process of its own."""
    return lambda *arguments: run_kafkalog_many([("boot", *arguments)])[0]


@pytest.fixture
def node(data_dir: Path, tmp_path: Path) -> Node:
    copy = copied_node(data_dir / "kafka-4.3-single" / "node-1", tmp_path / "work")
    (copy.first / CLEAN_MARK).touch()
    return copy


@pytest.mark.parametrize(
    "version",
    [*(pytest.param(each, marks=pytest.mark.slow) for each in KAFKA_VERSIONS[:-1]), KAFKA_VERSIONS[-1]],
)
def test_a_sound_node(kafkalog: Kafkalog, node: Node, version: str) -> None:
    make_earlier(node)
    run = kafkalog("--format", "jsonl", "--kafka-version", version, node.first).check(0)
    assert f"A {version} broker would start" in run.stderr
    assert {tuple(row)[1:] for row in run.rows("boot_step")} == {BOOT_STEP.names}
    assert run.summary["complete"] is True
    assert run.summary["not_checked"]


def test_every_file_has_a_row_where_that_is_asked_for(kafkalog: Kafkalog, node: Node) -> None:
    few = kafkalog("--format", "jsonl", node.first).check(0).rows("boot_step")
    all_rows = kafkalog("--format", "jsonl", "--every-file", node.first).check(0).rows("boot_step")
    assert "keep" not in {row["action"] for row in few}
    kept = {row["path"] for row in all_rows if row["action"] == "keep"}
    assert str(node.partition("orders-0") / "00000000000000001102.log") in kept
    assert str(node.partition("orders-0")) in kept


def test_a_refusal(kafkalog: Kafkalog, node: Node) -> None:
    (node.first / "lost+found").mkdir()
    run = kafkalog("--format", "jsonl", node.first).check(1)
    assert run.rows("boot_step")[0]["action"] == "refuse"
    assert "would refuse to start" in run.stderr
    assert run.summary["conditions"] == ["damage"]


def test_people_read_the_answer_first_and_the_usual_steps_counted(kafkalog: Kafkalog, node: Node) -> None:
    usual = (
        "It recovers the metadata log, rebuilds 2 indexes, writes 1 producer snapshot and deletes 1 spare file "
        "(--every-file lists them)."
    )
    assert kafkalog("--format", "table", node.first).check(0).stdout.splitlines() == [
        "A 4.4 broker would start.",
        usual,
    ]
    (node.first / "lost+found").mkdir()
    refused = kafkalog("--format", "table", node.first).check(1).stdout
    assert refused.startswith("A 4.4 broker would refuse to start: 1 reason.\n")
    assert "'lost+found' is not in the form of topic-partition" in refused
    assert "rebuild" not in refused
    every = kafkalog("--format", "table", "--every-file", node.first).check(1).stdout
    assert "rebuild_index" in every
    assert "--every-file" not in every


def test_reasons_are_shown_in_full(kafkalog: Kafkalog, data_dir: Path) -> None:
    run = kafkalog("--format", "table", data_dir / "trials" / "compaction" / "node-1").check(1)
    assert run.stdout.count("the high watermark in the checkpoint is 4; no other node has a replica") == 1
    assert " characters)" not in run.stdout


def test_a_loss(kafkalog: Kafkalog, node: Node) -> None:
    log = node.segments("orders-1")[-1]
    log.write_bytes(log.read_bytes()[:-20])
    node.unclean()
    run = kafkalog("--format", "jsonl", node.first).check(1)
    [row] = [row for row in run.rows("boot_step") if row["action"] == "truncate"]
    assert row["lost_offsets"][1] == 1165
    assert "loses" in run.stderr


def test_a_pipe_in_place_of_a_log_is_passed_over_and_the_answer_not_complete(kafkalog: Kafkalog, node: Node) -> None:
    """As a broker does; but what the pipe stands for is not known."""
    log = node.segments("orders-0")[-1]
    log.unlink()
    os.mkfifo(log)
    run = kafkalog("--format", "jsonl", node.first).check(1)
    assert [row["lost_offsets"] for row in run.rows("boot_step") if row["lost_offsets"]] == [[1102, 1263]]
    assert run.summary["complete"] is False
    assert f"{log} is not a regular file: a broker ignores it" in run.summary["not_checked"]
    assert run.summary["conditions"] == ["damage", "incomplete"]


def test_what_cannot_be_said(kafkalog: Kafkalog, node: Node) -> None:
    os.truncate(node.first / "recovery-point-offset-checkpoint", 2**40)
    run = kafkalog("--format", "jsonl", node.first).check(3)
    assert run.summary["complete"] is False
    assert "cannot be predicted" in run.stderr


def test_a_pipe_for_which_a_broker_waits_without_end(kafkalog: Kafkalog, node: Node) -> None:
    epochs = node.partition("orders-0") / "leader-epoch-checkpoint"
    epochs.unlink()
    os.mkfifo(epochs)
    run = kafkalog("--format", "jsonl", node.first).check(1)
    assert "A 4.4 broker would not start: 1 reason." in run.stderr
    (row,) = [each for each in run.rows("boot_step") if each["action"] == "refuse"]
    assert (row["path"], row["broker_message"], row["kafka_class"]) == (str(epochs), None, "CheckpointFile")


def test_the_node_id_of_the_configuration(kafkalog: Kafkalog, node: Node) -> None:
    run = kafkalog("--node-id", "7", node.first).check(1)
    assert "doesn't match previous node id 7" in run.stdout


def test_a_partition_is_a_usage_error(kafkalog: Kafkalog, node: Node) -> None:
    run = kafkalog(node.partition("orders-0")).check(2)
    assert "is not a log directory" in run.stderr
    node.partition("empty-0").mkdir()
    kafkalog(node.partition("empty-0")).check(2)


def test_a_disk_that_is_not_mounted_may_have_the_name_of_a_partition(kafkalog: Kafkalog, tmp_path: Path) -> None:
    (tmp_path / "kafka-1").mkdir()
    assert "would refuse to start: 1 reason." in kafkalog(tmp_path / "kafka-1").check(1).stdout


def test_an_archive_or_a_text_is_a_usage_error(kafkalog: Kafkalog, node: Node, tmp_path: Path) -> None:
    archive, text = tmp_path / "node.tgz", tmp_path / "server.log"
    archive.write_bytes(gzip.compress(b"a log directory"))
    text.write_text("INFO started (kafka.server.KafkaServer)\n")
    assert f"compressed with gzip: unpack it first, with: tar xf {archive}" in kafkalog(archive).check(2).stderr
    assert "a text file, not a Kafka log" in kafkalog(text).check(2).stderr
    # beside another log directory it is what log.dirs names, and a broker has an answer to that
    assert "it is not a directory" in kafkalog("--format", "jsonl", node.first, text).stdout


def test_a_directory_of_brokers_is_a_usage_error(kafkalog: Kafkalog, node: Node) -> None:
    run = kafkalog(node.first.parent)
    assert run.code == 2
    assert f"has 1 log directory below it: give those of one node, such as {node.first}" in run.stderr


def test_an_empty_directory_is_refused_by_the_broker(kafkalog: Kafkalog, tmp_path: Path) -> None:
    run = kafkalog(tmp_path).check(1)
    assert "No readable meta.properties files found." in run.stdout


# -- nodes of a quorum, and their metadata ---------------------------------------------------------------------------


@pytest.fixture
def small(data_dir: Path, tmp_path: Path) -> Node:
    """A broker and controller whose only partition, t-0, is not there."""
    return copied_node(data_dir / "trials" / "metadata-4.4" / "node-1", tmp_path / "small")


def test_two_nodes_are_a_usage_error(kafkalog: Kafkalog, small: Node) -> None:
    other = small.second(meta=small.meta().replace("node.id=1", "node.id=2"))
    run = kafkalog(other, small.first).check(2)
    assert f"{other} of node 2 and {small.first} of node 1" in run.stderr
    assert "one node at a time" in " ".join(run.stderr.split())
    assert "boot_step" not in run.stdout
    run = kafkalog("--format", "jsonl", "--node-id", "1", small.first, other).check(1)
    assert run.rows("boot_step")[0]["broker_message"].startswith("Stored node id 2 doesn't match previous node id 1")


def test_two_directories_of_one_node_are_none(kafkalog: Kafkalog, small: Node) -> None:
    small.second()
    kafkalog(*small.log_dirs).check(0)


def test_the_roles_of_the_configuration(kafkalog: Kafkalog, small: Node) -> None:
    (small.first / "lost+found").mkdir()
    for roles in ("broker", "broker,controller"):
        assert "A 4.4 broker would refuse" in kafkalog("--process-roles", roles, small.first).check(1).stdout
    assert "A 4.4 controller would start" in kafkalog("--process-roles", "controller", small.first).check(0).stdout


def test_what_may_be_lost_is_not_complete(kafkalog: Kafkalog, small: Node) -> None:
    (small.first / "replication-offset-checkpoint").unlink()
    run = kafkalog("--format", "jsonl", small.first).check(3)
    assert "may lose records of t-0" in run.stderr
    assert run.summary["conditions"] == ["incomplete"]


def test_strays_are_not_served(kafkalog: Kafkalog, small: Node) -> None:
    (small.partition("t-0")).mkdir()
    run = kafkalog("--format", "jsonl", small.first).check(1)
    assert "renames t-0 to stray and does not serve it" in run.stderr
    assert run.summary["conditions"] == ["damage"]


def test_metadata_of_another_node(kafkalog: Kafkalog, small: Node, tmp_path: Path) -> None:
    later = copied_node(small.first, tmp_path / "later").first
    log = small.partition("__cluster_metadata-0") / "00000000000000000000.log"
    at = next(position for position, _, base, _ in batch_positions(log) if base >= 20)
    cut(log, at)
    assert "t-0" not in kafkalog(small.first).check(0).stdout
    run = kafkalog("--metadata", later, small.first).check(0)
    assert "it makes empty logs for t-0." in run.stdout
    assert f"This is by the metadata of 2026-11-23T17:46:07.453Z in {later / '__cluster_metadata-0'}." in run.stdout
    assert "is of the cluster" in kafkalog("--metadata", _of_another_cluster(later), small.first).check(2).stderr


def test_metadata_that_is_not_later_is_a_usage_error(kafkalog: Kafkalog, small: Node, tmp_path: Path) -> None:
    earlier = copied_node(small.first, tmp_path / "earlier").first / "__cluster_metadata-0"
    log = earlier / "00000000000000000000.log"
    cut(log, batch_positions(log)[-2][0])
    assert "give later metadata" in " ".join(kafkalog("--metadata", earlier, small.first).check(2).stderr.split())
    (tmp_path / "empty").mkdir()
    kafkalog("--metadata", tmp_path / "empty", small.first).check(2)


def _of_another_cluster(log_dir: Path) -> Path:
    path = log_dir / "meta.properties"
    path.write_text(path.read_text().replace("fieldfieldfieldfieldfg", "otherotherotherotherog"))
    return log_dir


def test_a_node_that_ran_with_zookeeper_is_started_by_the_last_release_with_it(
    kafkalog: Kafkalog, data_dir: Path, tmp_path: Path
) -> None:
    """A later one would take all its logs for strays, which is no news to who still has ZooKeeper."""
    log_dir = data_dir / "kafka-0.8-to-2.8" / "data"
    done = kafkalog(log_dir)
    assert done.stdout.startswith("A 3.9 broker would start.")
    assert done.code == 0
    assert "releases before 3.9, which refuse more: a meta.properties that is empty" in done.stderr
    assert "releases from 4.0 on, which have no ZooKeeper mode" in done.stderr
    later = kafkalog("--kafka-version", "4.4", log_dir)
    assert later.stdout.startswith("A 4.4 broker would start: it begins an empty metadata log")
    assert later.code == 1
    copy = tmp_path / "log"
    shutil.copytree(log_dir, copy)
    (copy / "meta.properties").unlink()  # nothing says how it ran
    assert "A 4.4 broker would refuse to start" in kafkalog(copy).stdout
    os.mkfifo(copy / "meta.properties")
    assert "4.4 broker" in kafkalog(copy).stdout


@pytest.mark.parametrize("content", [None, b"", bytes(60), b"version=zero\n"])
@pytest.mark.parametrize("is_first", [False, True])
def test_a_disk_without_an_identity_does_not_make_a_node_with_zookeeper_one_of_kraft(
    kafkalog: Kafkalog, data_dir: Path, tmp_path: Path, content: bytes | None, is_first: bool
) -> None:
    """A broker of 3.9.1 started on each: it writes the file on a disk that is new, and leaves out one that is bad."""
    disk = tmp_path / "disk"
    disk.mkdir()
    if content is not None:
        (disk / "meta.properties").write_bytes(content)
    disks = [disk, data_dir / "kafka-0.8-to-2.8" / "data"]
    done = kafkalog(*(disks if is_first else reversed(disks)))
    assert done.stdout.startswith("A 3.9 broker would start")


def test_a_line_feed_in_a_name_makes_no_line(
    run_kafkalog_many: Callable[..., list[Run]], data_dir: Path, tmp_path: Path
) -> None:
    node = Path(shutil.copytree(data_dir / "kafka-4.3-single" / "node-1", tmp_path / "node-1"))
    shutil.copytree(next(node.glob("orders-*")), node / "a\nforged line-0")
    for run in run_kafkalog_many([(verb, node) for verb in ("boot", "verify", "doctor")]):
        assert not [line for line in run.stdout.splitlines() + run.stderr.splitlines() if line.startswith("forged")]
        assert "a\\nforged line-0" in run.stdout
