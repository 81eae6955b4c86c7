"""boot on damaged copies of a node: refusals, cuts with what they lose, strays, and what stays."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from format.findings import Severity
from format.limits import DEFAULT_LIMITS
from format.state.cluster_image import ClusterImage
from format.verbs.boot import log_manager
from format.verbs.boot.boot import boot, refusal_findings
from format.verbs.boot.broker_files import PartitionFiles, read_partition_files
from format.verbs.boot.sentence import sentence
from format.verbs.boot.steps import Action, BootResult, BootTerms, Step
from tests.oracle.boot_mutations.earlier_release import make_earlier
from tests.oracle.boot_mutations.node import (
    CLEAN_MARK,
    HIGH_WATERMARK,
    LOG_START,
    RECOVERY_POINT,
    UNIQUE,
    Node,
    batch_positions,
    copied_node,
    cut,
    flip,
)
from tests.oracle.boot_mutations.table import mutations
from tests.oracle.boot_trials import files_of
from tests.oracle.zookeeper_trials import make_zookeeper_node

pytestmark = pytest.mark.slow

TERMS = BootTerms(every_file=True)


def booted(node: Node, terms: BootTerms = TERMS) -> BootResult:
    return boot(node.log_dirs, terms, node_id=1)


def only(result: BootResult, action: Action) -> Step:
    [step] = result.having(action)
    return step


def log_step(result: BootResult, name: str) -> Step:
    [step] = [each for each in result.steps if each.log_end_offset is not None and each.path.name == name]
    return step


def test_a_sound_node_starts_and_keeps_everything(node: Node) -> None:
    before = files_of(node)
    result = booted(node)
    assert not result.is_refused
    assert not result.is_unknown
    assert not result.loses
    assert not result.having(Action.TRUNCATE, Action.RENAME, Action.CREATE)
    assert log_step(result, "orders-1").log_end_offset == 1166
    assert log_step(result, "trimmed-0").log_start_offset == 300
    assert files_of(node) == before
    named = {step.path for step in result.steps}
    assert {path for path in node.first.glob("orders-*/*") if path.is_file()} <= named


@pytest.mark.parametrize(
    ("mutation", "message"),
    [
        ("directory-names/dir 'lost+found'", "is not in the form of topic-partition"),
        ("two-directories/same partition", "Duplicate log directories for orders-1"),
        ("two-directories/other cluster id", "Invalid cluster.id"),
        ("two-directories/same directory id", "Duplicate directory ID"),
        ("old-formats/damaged lz4 of format 1 at the end", "There was an error in one of the threads"),
        ("partition-metadata/empty", "is null"),
        ("partition-metadata/garbage", "Malformed line in partition metadata file"),
        ("meta-properties/missing", "No readable meta.properties files found."),
        ("meta-properties/other node id", "Stored node id 7"),
        ("quorum-states/zeros", "Error while reading the Quorum status"),
        ("metadata-logs/newest snapshot zeroed", "Record size 0 is less than the minimum record overhead"),
        ("metadata-logs/head deleted, no snapshots", "Inconsistent snapshot state"),
        ("bootstraps/zeros", "Found record size 0 smaller than minimum record overhead"),
        ("bootstraps/cut at 30", "No FeatureLevelRecord for metadata.version"),
        ("leader-epochs/garbage clean", "Malformed line in checkpoint file"),
        ("offset-checkpoints/recovery-point wrong count clean", "Expected [3] entries"),
        (
            "half-done/7 zeros behind the last batch and whole indexes, clean",
            "newPosition > limit: (131072 > 65536)",
        ),
        ("leftovers/file abc.swap", 'For input string: "abc"'),
    ],
)
def test_a_refusal_comes_with_the_brokers_words(node: Node, mutation: str, message: str) -> None:
    next(each for each in mutations() if str(each) == mutation).apply(node)
    result = booted(node)
    assert result.is_refused
    assert message in (result.having(Action.REFUSE)[0].broker_message or "")
    assert "would refuse to start" in sentence(result, TERMS)


@pytest.mark.parametrize("how", ["no directory id", "other directory id"])
def test_logs_of_a_directory_id_that_is_gone_have_no_leader(node: Node, how: str) -> None:
    assigned = re.findall("(?m)^directory.id=(.*)$", node.meta())[0]
    next(each for each in mutations() if str(each) == f"meta-properties/{how}").apply(node)
    result = booted(node)
    assert not result.is_refused
    step = only(result, Action.OFFLINE)
    logs = [each for each in result.steps if each.log_end_offset is not None and each.topic != "__cluster_metadata"]
    assert f"assigns {len(logs)} partitions that lie here to the directory id {assigned}" in step.reason
    made = [each for each in result.having(Action.CREATE) if each.path.name == "meta.properties"]
    assert len(made) == (how == "no directory id")
    found = [each for each in refusal_findings(node.first, DEFAULT_LIMITS) if each.code == "boot-unserved"]
    assert [assigned in each.message for each in found] == [True]  # the node registered no other directory


def test_an_id_of_another_log_directory_is_not_gone(node: Node) -> None:
    meta = node.meta()
    node.second(meta=meta)
    (node.first / "meta.properties").write_text(re.sub("(?m)^directory.id=.*\n", "", meta))
    assert not booted(node).having(Action.OFFLINE)


def test_one_unreadable_file_of_two_directories_takes_one_offline(node: Node) -> None:
    there = node.second() / "orders-1"
    shutil.move(node.partition("orders-1"), there)
    (there / "leader-epoch-checkpoint").write_bytes(b"garbage\n")
    result = booted(node)
    assert not result.is_refused
    assert result.has_unserved
    assert only(result, Action.OFFLINE).path.name == "leader-epoch-checkpoint"


def test_the_directory_of_the_metadata_log_takes_the_broker_with_it(node: Node) -> None:
    node.second()
    (node.partition("orders-1") / "leader-epoch-checkpoint").write_bytes(b"garbage\n")
    step = only(booted(node), Action.REFUSE)
    assert step.path.name == "leader-epoch-checkpoint"
    assert step.reason.endswith("the log directory fails, and with it the metadata log")


def test_a_position_below_zero_is_taken_for_the_files_start(node: Node) -> None:
    log = node.segments("orders-0")[-1]
    log.with_suffix(".index").write_bytes((10).to_bytes(4, "big") + (-5).to_bytes(4, "big", signed=True))
    assert log_step(booted(node), "orders-0").log_end_offset == 1264


def test_a_torn_tail_is_cut_and_its_loss_is_reported(node: Node) -> None:
    log = node.segments("orders-1")[-1]
    *_, before, last = batch_positions(log)
    cut(log, last[0] + 20)
    node.unclean()
    result = booted(node)
    step = only(result, Action.TRUNCATE)
    assert (step.position, step.bytes, step.offset) == (last[0], 20, before[3] + 1)
    assert step.lost_offsets == (last[2], 1165)
    assert log_step(result, "orders-1").log_end_offset == last[2]
    assert "truncates 20 bytes of orders-1" in sentence(result, TERMS)


def test_what_lies_past_the_high_watermark_is_no_loss(node: Node) -> None:
    log = node.segments("orders-1")[-1]
    last = batch_positions(log)[-1]
    cut(log, last[0] + 20)
    node.unclean()
    node.set_offset(HIGH_WATERMARK, "orders-1", last[2])
    result = booted(node)
    assert only(result, Action.TRUNCATE).lost_offsets is None
    assert not result.loses


def test_a_high_watermark_past_the_end_of_a_clean_stop_is_no_loss(node: Node) -> None:
    node.set_offset(HIGH_WATERMARK, "orders-0", 99_999)
    assert not booted(node).loses
    node.unclean()
    assert log_step(booted(node), "orders-0").lost_offsets == (1264, 99_998)


def test_a_log_start_past_the_high_watermark_loses_the_log(node: Node) -> None:
    node.set_offset(LOG_START, "orders-0", 99_999)
    assert log_step(booted(node), "orders-0").lost_offsets == (0, 1263)


def test_damage_below_the_recovery_point_stays(node: Node) -> None:
    flip(node.segments("orders-0")[0], 200)
    node.unclean()
    assert not booted(node).having(Action.TRUNCATE)
    node.set_offset(RECOVERY_POINT, "orders-0", 0)
    result = booted(node)
    assert only(result, Action.TRUNCATE).offset == 0
    deleted = {step.path.name for step in result.having(Action.DELETE)}
    assert "00000000000000001102.log" in deleted


def test_a_clean_stop_hides_a_cut(node: Node) -> None:
    log = node.segments("orders-1")[-1]
    found = batch_positions(log)
    cut(log, found[2][0])
    result = booted(node)
    assert not result.having(Action.TRUNCATE)
    step = log_step(result, "orders-1")
    assert step.log_end_offset == 0, "the index's last entry points past the end, where the broker looks for the end"
    assert step.lost_offsets == (0, 1165)


def test_bytes_behind_the_last_batch_are_named(node: Node) -> None:
    log = node.segments("orders-1")[-1]
    size_bytes = log.stat().st_size
    log.write_bytes(log.read_bytes() + bytes(10))
    step = log_step(booted(node), "orders-1")
    assert (step.position, step.bytes, step.log_end_offset) == (size_bytes, 10, 1166)


def test_an_index_past_the_end_hides_its_segment(node: Node) -> None:
    log = node.segments("orders-0")[-1]
    log.with_suffix(".index").write_bytes((10).to_bytes(4, "big") + (2**30).to_bytes(4, "big"))
    step = log_step(booted(node), "orders-0")
    assert step.log_end_offset == 1102
    assert step.lost_offsets == (1102, 1263)


def test_a_foreign_topic_id_makes_a_stray_and_an_empty_log(node: Node) -> None:
    path = node.partition("orders-1") / "partition.metadata"
    path.write_text(re.sub("topic_id: .*", "topic_id: AAAAAAAAAAAAAAAAAAAAAg", path.read_text()))
    result = booted(node)
    renamed = only(result, Action.RENAME)
    assert renamed.new_path is not None
    assert renamed.new_path.name == "orders-1.UNIQUE-stray"
    created = only(result, Action.CREATE)
    assert created.lost_offsets == (0, 1165)


def test_a_missing_partition_is_made_anew(node: Node) -> None:
    shutil.rmtree(node.partition("users-0"))
    created = only(booted(node), Action.CREATE)
    assert (created.path.name, created.lost_offsets) == ("users-0", (0, 999))


def test_without_its_metadata_log_every_partition_is_stray(node: Node) -> None:
    shutil.rmtree(node.partition("__cluster_metadata-0"))
    result = booted(node)
    assert len(result.having(Action.RENAME)) == 23


@pytest.mark.parametrize(
    ("is_clean", "has_cache", "expected"), [(True, False, 0), (False, True, 0), (False, False, 30)]
)
def test_a_head_in_remote_storage_is_still_the_start_of_the_log(
    node: Node, is_clean: bool, has_cache: bool, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A broker keeps the log start of the checkpoint; without a sign of remote storage it takes the first segment's."""
    monkeypatch.setattr(ClusterImage, "is_known_local", lambda *_: False)
    head_is_gone(node)
    if has_cache:
        (node.first / "remote-log-index-cache").mkdir()
    if not is_clean:
        (node.first / CLEAN_MARK).unlink()
    assert log_step(booted(node), "sensor-0").log_start_offset == expected


def head_is_gone(node: Node) -> None:
    """The first segments of a log are not there any more, and the checkpoint names the offset at which it started."""
    for name in ("00000000000000000000", "00000000000000000015"):
        for each in (node.first / "sensor-0").glob(f"{name}.*"):
            each.unlink()
    (node.first / "log-start-offset-checkpoint").write_text("0\n2\ntrimmed 0 300\nsensor 0 0\n")


def test_the_head_of_a_topic_without_remote_storage_is_lost(node: Node) -> None:
    head_is_gone(node)
    step = log_step(booted(node), "sensor-0")
    assert (step.log_start_offset, step.lost_offsets) == (30, (0, 29))
    (found,) = refusal_findings(node.first, DEFAULT_LIMITS)
    assert (found.code, found.severity, found.lost_offsets) == ("checkpoint-mismatch", Severity.ERROR, (0, 29))


@pytest.mark.parametrize("is_clean", [True, False])
def test_a_segment_that_was_cut_as_it_was_loaded_is_not_cut_again(node: Node, is_clean: bool) -> None:
    """4.3.1 recovers a segment without an index first, then all after an unclean stop: what comes after it stays."""
    log = node.segments("orders-0")[0]
    flip(log, log.stat().st_size - 1)
    log.with_suffix(".index").unlink()
    if not is_clean:
        node.unclean()
        node.set_offset(RECOVERY_POINT, "orders-0", 0)
    result = booted(node)
    (step,) = [each for each in result.having(Action.TRUNCATE) if each.topic == "orders"]
    assert (step.path, step.partition) == (log, 0)
    assert not [each for each in result.having(Action.DELETE) if each.topic == "orders"]
    assert log_step(result, "orders-0").log_end_offset == 1264


def test_the_metadata_log_in_another_directory_than_the_first_is_named(node: Node) -> None:
    there = node.second()
    assert "metadata.log.dir" in " ".join(boot([there, node.first], TERMS, node_id=1).not_checked)
    assert "metadata.log.dir" not in " ".join(booted(node).not_checked)


def test_a_log_in_a_directory_that_fails_is_made_in_the_one_that_the_metadata_names(node: Node) -> None:
    there = node.second()
    shutil.move(node.partition("orders-1"), there / "orders-1")
    (there / RECOVERY_POINT).write_bytes(b"garbage\n")
    (step,) = [each for each in booted(node).having(Action.CREATE) if each.topic == "orders"]
    assert (step.path, step.lost_offsets) == (node.partition("orders-1"), (0, 1165))


def test_a_file_in_place_of_a_second_directory_is_offline(node: Node) -> None:
    there = node.second()
    shutil.rmtree(there)
    there.write_text("x")
    assert only(booted(node), Action.OFFLINE).path == there


def test_a_log_with_the_topic_id_of_another_topic_is_served_to_nobody(node: Node) -> None:
    shutil.copytree(node.partition("orders-1"), node.first / "twin-1")
    step = only(booted(node), Action.OFFLINE)
    assert (step.topic, step.partition) == ("twin", 1)
    assert "that of the topic orders" in step.reason
    assert [each.code for each in refusal_findings(node.first, DEFAULT_LIMITS)] == ["boot-unserved"]


def test_a_completed_swap(node: Node) -> None:
    stem = node.segments("orders-0")[0].stem
    for path in list(node.partition("orders-0").glob(f"{stem}.*")):
        shutil.copy(path, f"{path}.swap")
    result = booted(node)
    assert {step.path.name for step in result.having(Action.RENAME)} == {
        f"{stem}{suffix}.swap" for suffix in (".log", ".index", ".timeindex")
    }
    assert log_step(result, "orders-0").log_end_offset == 1264


def test_a_message_of_an_older_broker(node: Node) -> None:
    (node.partition("orders-1") / "partition.metadata").write_bytes(b"garbage")
    message = only(booted(make_earlier(node), BootTerms(version=(3, 9))), Action.REFUSE).broker_message
    assert message is not None
    assert message.startswith("Malformed line in checkpoint file")


@pytest.mark.long
@pytest.mark.parametrize("part", range(8))
def test_no_damage_makes_boot_fail_or_write(data_dir: Path, tmp_path: Path, part: int) -> None:
    source = data_dir / "kafka-4.3-single" / "node-1"
    for mutation in mutations()[part * 13 :: 104]:
        node = copied_node(source, tmp_path / "work")
        (node.first / CLEAN_MARK).touch()
        mutation.apply(node)
        before = files_of(node)
        result = booted(node)
        assert files_of(node) == before, mutation
        assert sentence(result, TERMS).endswith((".", ")")), mutation
        assert all(step.reason for step in result.steps), mutation


def test_a_log_that_vanishes_after_its_directory_was_listed_is_unknown(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    def list_and_remove(path: Path, topic: str, partition: int) -> PartitionFiles:
        files = read_partition_files(path, topic, partition)
        if topic == "orders" and partition == 1:
            node.segments("orders-1")[0].unlink()
        return files

    log = node.segments("orders-1")[0]
    monkeypatch.setattr(log_manager, "read_partition_files", list_and_remove)
    result = boot(node.log_dirs, BootTerms(), node_id=1)
    assert [(each.path, each.reason) for each in result.having(Action.UNKNOWN)] == [
        (log.parent, "the file no longer exists")
    ]


ZOOKEEPER_META = "version=0\nbroker.id=1\ncluster.id=zookeeperzookeeperzooA\n"


@pytest.mark.parametrize("bad", [0, 1])
def test_a_broker_with_zookeeper_goes_on_without_a_directory_that_is_bad(node: Node, bad: int) -> None:
    make_zookeeper_node(node)
    second = node.second(meta=ZOOKEEPER_META)
    damaged = (node.first, second)[bad]
    (damaged / "meta.properties").write_bytes(b"version=zero\nbroker.id=1\n")
    result = booted(node, BootTerms(version=(3, 9)))
    assert not result.is_refused
    assert [step.path for step in result.having(Action.OFFLINE)] == [damaged]
    assert f"it does not serve the log directory {damaged}." in sentence(result, BootTerms(version=(3, 9)))


@pytest.mark.parametrize("name", ["recovery-point-offset-checkpoint", "users-0/partition.metadata"])
def test_the_answer_names_the_log_directory_that_fails_and_not_the_file_in_it(node: Node, name: str) -> None:
    """Of two, it fails by a checkpoint of zeros, or by what is below one of its logs; the broker serves the other."""
    make_zookeeper_node(node)
    node.second(meta=ZOOKEEPER_META)
    path = node.first / name
    path.unlink(missing_ok=True)
    if path.parent == node.first:
        path.write_bytes(bytes(40))
    else:
        path.mkdir()
    terms = BootTerms(version=(3, 9))
    assert sentence(booted(node, terms), terms).endswith(f": it does not serve the log directory {node.first}.")


def test_a_broker_with_zookeeper_may_cut_a_future_replica_without_a_current_one(node: Node) -> None:
    """2.8.2 and 3.9.1 made an empty log, as ZooKeeper assigned the partition, and cut the future replica to it."""
    make_zookeeper_node(node)
    future = node.partition("users-0").rename(node.first / f"users-0.{UNIQUE}-future")
    terms = BootTerms(version=(3, 9))
    result = booted(node, terms)
    step = only(result, Action.TRUNCATE)
    assert (step.path, step.offset, step.may_lose) == (future, 0, True)
    words = "it may cut the future replica of users-0, whose current one is not here (copy it before)."
    assert words in sentence(result, terms)
    shutil.copytree(future, node.partition("users-0"))
    assert not booted(node, terms).may_lose


def test_what_an_emptied_disk_of_a_broker_with_zookeeper_held_is_not_known(node: Node) -> None:
    """1.1.1, 2.8.2 and 3.9.1 made an empty log there for each partition that had been there."""
    make_zookeeper_node(node)
    second, terms = node.second(meta=ZOOKEEPER_META), BootTerms(version=(3, 9))
    assert not booted(node, terms).may_lose
    (second / "meta.properties").unlink()
    result = booted(node, terms)
    assert only(result, Action.CREATE).path == second / "meta.properties"
    assert result.may_lose
    words = f"A 3.9 broker would start: it takes the empty {second} for new (what it held is not known)."
    assert sentence(result, terms) == words
    shutil.move(node.partition("users-0"), second)  # the file alone is lost
    assert not booted(node, terms).may_lose


def test_a_broker_with_zookeeper_stops_at_an_empty_cluster_id(node: Node) -> None:
    path = make_zookeeper_node(node).first / "meta.properties"
    path.write_text("version=0\nbroker.id=1\ncluster.id=\n")
    result = booted(node, BootTerms(version=(3, 9)))
    assert only(result, Action.REFUSE).broker_message == f"Invalid cluster.id in: {path}"
    path.write_text(ZOOKEEPER_META)
    result = booted(node, BootTerms(version=(3, 9)))
    assert not result.is_refused
    assert "the cluster id in ZooKeeper: a broker does not start with another one" in result.not_checked


def test_a_broker_with_zookeeper_stops_without_any_good_directory(node: Node) -> None:
    make_zookeeper_node(node)
    (node.first / "meta.properties").write_bytes(b"version=zero\nbroker.id=1\n")
    message = only(booted(node, BootTerms(version=(3, 9))), Action.REFUSE).broker_message
    assert message == "Shutdown broker because none of the specified log dirs from"
    (node.first / "meta.properties").write_bytes(b"version=zero\nnode.id=1\n")
    message = only(booted(node, BootTerms(version=(3, 9))), Action.REFUSE).broker_message
    assert message == "No readable meta.properties files found."


def test_a_second_log_directory_of_kraft_without_its_identity_is_refused(data_dir: Path, tmp_path: Path) -> None:
    """It has no metadata log; that it was formatted for KRaft is known by bootstrap.checkpoint."""
    disk = tmp_path / "node-1-0"
    shutil.copytree(data_dir / "field" / "4.3.1-jbod" / "node-1-0", disk)
    (disk / "meta.properties").unlink()
    assert [each.code for each in refusal_findings(disk, DEFAULT_LIMITS)] == ["boot-refused"]
    (disk / "bootstrap.checkpoint").unlink()
    assert list(refusal_findings(disk, DEFAULT_LIMITS)) == [], "a broker with ZooKeeper makes the file"
