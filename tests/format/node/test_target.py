"""What lies at a path: log directories, brokers collected in one place, and that each directory is listed once."""

from __future__ import annotations

import re
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from format.errors import FileChanged, InputError, NotALogDir
from format.io import live_broker
from format.io.session import entries_of
from format.node import log_dir as log_dir_module
from format.node import partition as partition_module
from format.node.log_dir import Kind
from format.node.partition import listed_files
from format.node.target import Target, link_words, require_one_cluster, target_at, targets_at
from format.scan.follow import FollowTerms
from format.verbs.extract import Extraction, ParquetFormat, extract_sources
from format.verbs.groups.group_list import GroupTerms
from format.verbs.groups.groups import GroupsReading
from format.verbs.ls.ls import ls
from format.verbs.txns.txns import Transactions, TransactionTerms, follow_transactions
from format.verbs.verify.verify import VerifyTerms, bytes_to_verify, verify
from format.verbs.verify.walk import Level
from tests.building import batches, write_segment
from tests.metadata_logs import write_node


@pytest.fixture
def broker(data_dir: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(data_dir / "kafka-4.3" / "node-1", tmp_path / "kafka-1"))


@pytest.fixture
def looked_at(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each directory was listed and each lock was asked for."""
    counts: Counter[str] = Counter()

    def listing(path: Path) -> object:
        counts[str(path)] += 1
        return entries_of(path)

    def listing_files(path: Path, *rest: Any) -> object:
        counts[str(path)] += 1
        return listed_files(path, *rest)

    probe = live_broker.probe

    def probing(path: Path) -> live_broker.BrokerLock:
        counts[str(path)] += 1
        return probe(path)

    for module in (log_dir_module, partition_module):
        monkeypatch.setattr(module, "entries_of", listing)
    monkeypatch.setattr(partition_module, "listed_files", listing_files)
    monkeypatch.setattr(live_broker, "probe", probing)
    return counts


def test_verify_lists_each_directory_once_and_asks_for_the_lock_once(broker: Path, looked_at: Counter[str]) -> None:
    target, terms = Target(broker), VerifyTerms(Level.RECORDS)
    assert bytes_to_verify(target) > 0
    list(verify(target, terms))
    assert looked_at == dict.fromkeys(map(str, [broker, broker / ".lock", *target.log_dirs[0].partitions]), 1)


def test_ls_lists_each_directory_once(broker: Path, looked_at: Counter[str]) -> None:
    target = Target(broker)
    list(ls(target))
    assert looked_at == dict.fromkeys(map(str, [broker, broker / ".lock", *target.log_dirs[0].partitions]), 1)


def test_a_partition_that_is_gone_after_it_was_listed(broker: Path) -> None:
    log_dir = Target(broker).log_dirs[0]
    path = log_dir.partitions[0]
    log_dir.partition(path)
    shutil.rmtree(path)
    with pytest.raises(FileChanged):
        log_dir.partition(path)


def test_brokers_named_as_partitions_are_log_directories(broker: Path, data_dir: Path) -> None:
    shutil.copytree(data_dir / "kafka-4.3" / "node-2", broker.parent / "kafka-2")
    target = Target(broker.parent)
    assert target.kind is Kind.LOG_DIR
    assert [each.path.name for each in target.log_dirs] == ["kafka-1", "kafka-2"]
    together = verify(target)
    list(together)
    alone = []
    for each in target.log_dirs:
        verified = verify(each.path)
        list(verified)
        alone.append(verified.coverage.segments)
    assert together.coverage.segments == sum(alone) > 0


@pytest.mark.parametrize("names", [("kafka-1", "kafka-2"), ("one", "two"), ("store/a/logs", "store/b/logs")])
@pytest.mark.parametrize("has_own_files", [True, False])
def test_log_directories_below(tmp_path: Path, names: tuple[str, ...], has_own_files: bool) -> None:
    for name in names:
        write_segment(tmp_path / name / "orders-0", 0, batches(2))
        if has_own_files:
            (tmp_path / name / "meta.properties").write_text("version=1\n")
    assert [each.path for each in Target(tmp_path).log_dirs] == [tmp_path / name for name in names]


def test_partitions_without_a_log_directorys_files(tmp_path: Path) -> None:
    write_segment(tmp_path / "orders-0", 0, batches(2))
    (tmp_path / "orders-1").mkdir()
    target = Target(tmp_path)
    assert [each.path for each in target.log_dirs] == [tmp_path]
    assert [each.name for each in target.partitions()] == ["orders-0", "orders-1"]


def test_a_directory_without_any(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    with pytest.raises(NotALogDir):
        _ = Target(tmp_path).kind


def test_the_name_of_a_partition_alone_is_none(tmp_path: Path) -> None:
    """/etc has dbus-1 and polkit-1, which are no partitions; an empty directory may be one that is new."""
    (tmp_path / "dbus-1" / "session.d").mkdir(parents=True)
    (tmp_path / "polkit-1").mkdir()
    (tmp_path / "polkit-1" / "rules.conf").touch()
    with pytest.raises(NotALogDir, match="contains no TOPIC-PARTITION directory"):
        _ = Target(tmp_path).kind
    (tmp_path / "orders-0").mkdir()
    assert Target(tmp_path).kind is Kind.LOG_DIR


def test_segments_in_a_directory_without_the_name_of_a_partition_are_named(tmp_path: Path) -> None:
    write_segment(tmp_path / "old" / "backup_orders", 0, batches(2))
    with pytest.raises(NotALogDir, match=r"has the name of a partition; segments are in .*/old/backup_orders$"):
        _ = Target(tmp_path).kind
    assert Target(tmp_path / "old" / "backup_orders").kind is Kind.PARTITION


def test_a_partition_behind_a_link_is_there_and_not_read(broker: Path, tmp_path: Path) -> None:
    moved = tmp_path / "elsewhere"
    link = broker / "ledger-0"
    link.rename(moved)
    link.symlink_to(moved)
    (log_dir,) = Target(broker).log_dirs
    assert ("ledger", 0) in log_dir.topic_partitions
    assert link not in log_dir.partitions
    (found,) = log_dir.unread_findings()
    assert found.next_step.startswith("Pass the path that it points to as well")
    reported = list(verify(Target(broker), VerifyTerms()))
    named = [each for each in reported if getattr(each, "code", "") == "checkpoint-stale-entry"]
    assert not [each for each in named if each.location.topic == "ledger"]


def test_links_to_partitions_alone_are_named(broker: Path, tmp_path: Path) -> None:
    (tmp_path / "links").mkdir()
    for name in ("ledger-0", "orders-0"):
        (tmp_path / "links" / name).symlink_to(broker / "ledger-0")
    with pytest.raises(NotALogDir, match=r"; symbolic links .*point to \(ledger-0 and orders-0\)$"):
        _ = Target(tmp_path / "links").kind
    (tmp_path / "links" / "third-0").mkdir()
    links = [Target(tmp_path / "links")]
    words = link_words(links, "ledger-0")
    assert (
        words
        == f"; {tmp_path / 'links' / 'ledger-0'} is a symbolic link, which is not followed: give what it points to"
    )
    assert link_words(links, "third-0") == ""


def test_a_broker_behind_a_link_is_reported_and_not_followed(broker: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    shutil.move(broker, elsewhere)
    store = tmp_path / "store"
    shutil.copytree(elsewhere, store / "kafka-1")
    for name in ("kafka-2", "third"):
        (store / name).symlink_to(elsewhere)
    target = Target(store)
    assert [each.path for each in target.log_dirs] == [store / "kafka-1"]
    assert [each.location.path for each in target.link_findings()] == [str(store / "kafka-2"), str(store / "third")]
    assert {each.code for each in target.link_findings()} == {"file-unreadable"}


def test_a_target_is_passed_on_as_it_is(tmp_path: Path) -> None:
    target = Target(tmp_path)
    assert target_at(target) is target


@pytest.mark.parametrize(
    ("name", "leftover"),
    [
        ("00000000000000000123-0000000004.checkpoint", None),
        ("00000000000000000123-0000000004.checkpoint.deleted", "deleted"),
        ("00000000000000000123-0000000004-5577006791947779410.checkpoint.part", "part"),  # as a node writes it
        ("00000000000000000123-0000000004.checkpoint.part", "part"),
    ],
)
def test_kraft_snapshots(tmp_path: Path, name: str, leftover: str | None) -> None:
    directory = tmp_path / "__cluster_metadata-0"
    write_segment(directory, 0, batches(1))
    (directory / name).write_bytes(b"")
    partition = Target(directory).partition
    assert [(each.end_offset, each.epoch, each.leftover) for each in partition.kraft_snapshots] == [(123, 4, leftover)]
    assert partition.unexpected == []


@pytest.mark.parametrize(("topic", "is_marked"), [("__cluster_metadata", False), ("orders", True)])
def test_a_controller_leaves_no_mark(tmp_path: Path, topic: str, is_marked: bool) -> None:
    write_segment(tmp_path / f"{topic}-0", 0, batches(1))
    (tmp_path / "meta.properties").write_text("version=1\nnode.id=1\ncluster.id=c\n")
    assert Target(tmp_path).log_dirs[0].is_marked_at_shutdown == is_marked
    assert ("unclean-shutdown" in {each.code for each in verify(tmp_path)}) == is_marked


def test_what_lies_around_several_paths_is_listed_once(broker: Path, looked_at: Counter[str]) -> None:
    partitions = targets_at(Target(broker).log_dirs[0].partitions)
    looked_at.clear()
    assert len({id(each.checkpoints_around()) for each in partitions}) == 1
    logs = targets_at(sorted(next(iter(partitions)).path.glob("*.log")) * 2)
    assert len({id(each.surroundings.partition(each.path)) for each in logs}) == 1
    assert set(looked_at.values()) == {1}


def test_paths_of_two_clusters_are_refused_where_one_is_asked(tmp_path: Path) -> None:
    """Their logs have the same names: one was taken for a replica of the other, or both made one data set."""
    nodes = [write_node(tmp_path / f"node-{each}", each, f"cluster-{each % 2}") for each in (1, 2, 3)]
    for each in nodes:
        (each / "__consumer_offsets-0").mkdir()
    (tmp_path / "alone").mkdir()
    require_one_cluster([Target(nodes[0]), Target(nodes[2]), Target(tmp_path / "alone", Kind.LOG_DIR)])
    words = f"of the cluster cluster-0, and {nodes[0]} of cluster-1: give the paths of one cluster"
    for second in (nodes[1], nodes[1] / "__consumer_offsets-0"):
        targets = [Target(nodes[0]), Target(second)]
        for ask in (require_one_cluster, lambda each: GroupsReading(each, GroupTerms())):
            with pytest.raises(InputError, match=re.escape(words)):
                ask(targets)
        with pytest.raises(InputError, match=re.escape(words)):
            list(Transactions(tuple(targets)).read(TransactionTerms(0)))
        with pytest.raises(InputError, match=re.escape(words)):
            next(follow_transactions(targets, TransactionTerms(0), FollowTerms()))
        with pytest.raises(InputError, match=re.escape(words)):
            extract_sources([each.path for each in targets], Extraction(ParquetFormat()))


def test_a_partition_that_is_a_link_to_nothing(tmp_path: Path) -> None:
    """There is no path to pass in place of it."""
    write_segment(tmp_path / "t-0", 0, batches(1))
    (tmp_path / "t-1").symlink_to("nowhere")
    (tmp_path / "t-2").symlink_to("t-0")
    missing, link = Target(tmp_path).log_dirs[0].unread_findings()
    assert missing.message.startswith("is a symbolic link to nothing")
    assert not missing.next_step.startswith("Pass the path")
    assert (link.message, link.next_step[:13]) == ("is a symbolic link, which is not followed", "Pass the path")
