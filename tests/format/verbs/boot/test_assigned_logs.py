"""Logs that the metadata assigns to a node and that are not there: where they are made, and what is lost with them."""

from __future__ import annotations

import os
import re
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest
from msgspec.structs import replace

from format.findings import Severity
from format.limits import DEFAULT_LIMITS
from format.state.cluster_image import TOPIC_RESOURCE, ClusterImage, PartitionState
from format.verbs.boot import boot as boot_module
from format.verbs.boot.boot import boot, refusal_findings
from format.verbs.boot.log_manager import (
    LogDirState,
    LogsState,
    missing_log_steps,
    of_topic_made_anew,
    with_other_replicas,
)
from format.verbs.boot.quorum import LoadedMetadata
from format.verbs.boot.sentence import sentence
from format.verbs.boot.steps import Action, BootResult, BootTerms, KnownMetadata, Step
from tests.building import batches, write_segment
from tests.oracle.boot_mutations.node import HIGH_WATERMARK, OTHER_ID, Node, copied_node

_IDS = [f"{each}{'A' * 21}" for each in "bcd"]
_UNASSIGNED = "A" * 22
_TOPIC = f"t{'A' * 21}"


@pytest.fixture
def node(data_dir: Path, tmp_path: Path) -> Node:
    """A broker and controller with one partition, t-0, which is not there."""
    return copied_node(data_dir / "trials" / "metadata-4.4" / "node-1", tmp_path / "work")


def image_of(directories: list[str], replicas: tuple[int, ...] = (1,), isr: tuple[int, ...] = (1,)) -> ClusterImage:
    """A topic t, each partition of which is assigned to one directory."""
    image = ClusterImage(names={_TOPIC: "t"})
    for number, each in enumerate(directories):
        ids = (each, *[_UNASSIGNED] * (len(replicas) - 1))
        image.partitions[_TOPIC, number] = PartitionState(replicas=replicas, isr=isr, directories=ids)
    return image


def made(opened: list[LogDirState], image: ClusterImage, *, is_whole: bool = True) -> list[Step]:
    return list(missing_log_steps(LogsState(), opened, image, 1, is_whole=is_whole))


def disks() -> list[LogDirState]:
    return [LogDirState(Path(f"/disk-{number}"), each) for number, each in enumerate(_IDS, 1)]


def test_a_log_is_made_in_the_directory_that_the_metadata_assigns() -> None:
    steps = made(disks(), image_of([_IDS[1], _IDS[2], _IDS[0], _IDS[1]]))
    assert [step.path.parent.name for step in steps] == ["disk-2", "disk-3", "disk-1", "disk-2"]
    assert f"for the directory id {_IDS[1]}, that of this log directory" in steps[0].reason


@pytest.mark.parametrize("disk_count", [1, 2])
@pytest.mark.parametrize("is_link", [False, True])
def test_a_log_directory_fails_where_something_else_has_the_name_of_a_log(
    tmp_path: Path, disk_count: int, is_link: bool
) -> None:
    """4.3.1 stopped: FileAlreadyExistsException, and no log directory was left."""
    opened = [LogDirState(tmp_path / each, _IDS[number]) for number, each in enumerate("ab"[:disk_count])]
    opened[0].path.mkdir()
    entry = opened[0].path / "t-0"
    entry.symlink_to("nowhere") if is_link else entry.touch()
    (step,) = made(opened, image_of(_IDS[:1]))
    assert step.broker_message == f"Error while creating log for t-0 in dir {opened[0].path}"
    assert step.action is (Action.REFUSE if disk_count == 1 else Action.OFFLINE)
    assert ("no other is left" in step.reason) == (disk_count == 1)
    assert ("symbolic link" in step.reason) == is_link


@pytest.mark.parametrize("assigned", [_UNASSIGNED, f"e{'A' * 21}"])
def test_a_log_without_such_a_directory_is_made_where_the_fewest_are(assigned: str) -> None:
    steps = made(disks(), image_of([_IDS[0], assigned, assigned]))
    assert [step.path.parent.name for step in steps] == ["disk-1", "disk-2", "disk-3"]
    assert ("which no log directory of the node has" in steps[1].reason) == (assigned != _UNASSIGNED)
    assert len(made(disks(), image_of([_IDS[0], assigned]), is_whole=False)) == 1, "it may lie elsewhere"


@pytest.mark.parametrize(
    ("high_watermark", "lost", "may_lose", "words"),
    [
        (None, None, True, "and may lose records of t-0 (no high watermark is known)"),
        (0, None, False, "it makes empty logs for t-0."),
        (5, (0, 4), False, "and loses 5 offsets below the high watermark (t-0 0 to 4)"),
    ],
)
def test_an_unknown_loss_is_not_none(
    high_watermark: int | None, lost: tuple[int, int] | None, may_lose: bool, words: str
) -> None:
    opened, image = disks(), image_of([_IDS[1]])
    if high_watermark is not None:
        opened[1].high_watermarks["t", 0] = high_watermark
    result = BootResult(steps=[with_other_replicas(step, image, 1) for step in made(opened, image)])
    assert [step.lost_offsets for step in result.steps] == [lost]
    assert (result.loses, result.may_lose) == (lost is not None, may_lose)
    assert words in sentence(result, BootTerms())


def test_an_emptied_disk_is_not_a_start_that_loses_nothing(node: Node) -> None:
    (node.first / HIGH_WATERMARK).unlink()
    result = boot(node.log_dirs, BootTerms())
    assert result.may_lose
    assert "may lose records of t-0" in sentence(result, BootTerms())


@pytest.mark.parametrize(
    ("others", "words"),
    [
        ([], ""),
        (_IDS[:1], f"The node registered the log directory {_IDS[0]}, not here: give it too."),
        (_IDS[:2], f"The node registered the log directories {_IDS[0]} and {_IDS[1]}, not here: give them too."),
    ],
)
def test_a_log_directory_that_was_not_given_may_hold_what_would_be_made(
    node: Node, monkeypatch: pytest.MonkeyPatch, others: list[str], words: str
) -> None:
    load = boot_module.quorum.load_metadata

    def loaded(path: Path, terms: BootTerms) -> LoadedMetadata:
        state = load(path, terms)
        assert state.image is not None
        state.image.brokers[1]["logDirs"] += others
        return state

    monkeypatch.setattr(boot_module.quorum, "load_metadata", loaded)
    answer = sentence(boot(node.log_dirs, BootTerms()), BootTerms())
    assert answer.endswith(words)
    assert ("not here" in answer) == bool(others)


@pytest.mark.parametrize("is_clean", [False, True])
@pytest.mark.parametrize("removed", ["t", "u"])
def test_a_high_watermark_may_be_that_of_a_deleted_topic(is_clean: bool, removed: str) -> None:
    """After a crash: the checkpoint is some seconds old. A clean stop writes it anew."""
    image = image_of([_IDS[0]])
    image.removed_topics["earlier"] = removed
    keep = Step(Action.KEEP, Path("/logs/t-0"), "t", 0, lost_offsets=(5, 8), log_end_offset=5, reason="it is short")
    cut = replace(keep, action=Action.TRUNCATE)
    unclean = frozenset() if is_clean else frozenset({keep.path.parent})
    told, other = (of_topic_made_anew(each, image, unclean) for each in (keep, cut))
    answer = sentence(BootResult(steps=[told]), BootTerms())
    assert other == cut
    if is_clean or removed != "t":
        assert told == keep
        assert "goes on without 4 offsets below the high watermark (t-0 5 to 8)" in answer
    else:
        assert (told.lost_offsets, told.may_lose) == (None, True)
        assert "it goes on, maybe without records of t-0 (the high watermark may be that of a deleted topic)" in answer


# -- what other nodes have -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("replicas", "isr", "words", "reason"),
    [
        ((1,), (1,), "it loses 5 offsets below the high watermark (t-0 0 to 4)", "no other node has a replica"),
        (
            (1, 2, 3), (1, 3), "it removes 5 offsets below the high watermark from this replica (t-0 0 to 4)",
            "2 other replicas on nodes 2 and 3, in sync: 3, and no node led, by the metadata",
        ),
        (
            (1, 2), (1,), "from this replica",
            "1 other replica on node 2, none of them in sync, and no node led, by the metadata",
        ),
    ],
)  # fmt: skip
def test_a_loss_is_one_of_the_cluster_only_where_no_other_node_has_a_replica(
    replicas: tuple[int, ...], isr: tuple[int, ...], words: str, reason: str
) -> None:
    step = Step(Action.TRUNCATE, Path("/logs/t-0/00.log"), "t", 0, lost_offsets=(0, 4), reason="damage")
    told = with_other_replicas(step, image_of([_IDS[0]], replicas, isr), 1)
    assert words in sentence(BootResult(steps=[told]), BootTerms())
    assert told.reason == f"damage; {reason}"


@pytest.mark.parametrize(
    ("leader", "elr", "words"),
    [(1, (), "in sync: 2, and this node led"), (2, (3,), "in sync: 2, ELR: 3, and node 2 led")],
)
def test_who_led_and_who_may_be_elected(leader: int, elr: tuple[int, ...], words: str) -> None:
    image = image_of([_IDS[0]], (1, 2, 3), (1, 2))
    image.partitions[_TOPIC, 0] = msgspec.structs.replace(
        image.partitions[_TOPIC, 0], leader=leader, eligible_leader_replicas=elr
    )
    step = Step(Action.TRUNCATE, Path("/logs/t-0/00.log"), "t", 0, lost_offsets=(0, 4))
    assert f"{words}, by the metadata" in (with_other_replicas(step, image, 1).reason or "")


def test_without_metadata_it_is_one_of_this_replica() -> None:
    step = Step(Action.TRUNCATE, Path("/logs/t-0/00.log"), "t", 0, lost_offsets=(0, 4))
    assert with_other_replicas(step, ClusterImage(), 1) is step
    assert "from this replica" in sentence(BootResult(steps=[step]), BootTerms())


# -- metadata of other nodes -----------------------------------------------------------------------------------------


def test_a_deleted_topic_leaves_strays_by_later_metadata(node: Node) -> None:
    topic_id = "0frMtGEjR5OLKcKIaEHLRA"
    node.partition("t-0").mkdir()
    (node.partition("t-0") / "partition.metadata").write_text(f"version: 0\ntopic_id: {topic_id}\n")
    own = boot(node.log_dirs, BootTerms())
    assert not own.strays
    assert not own.has_unserved
    terms = BootTerms(later=KnownMetadata(Path("/later"), ClusterImage(), 1_700_000_000_000))
    later = boot(node.log_dirs, terms)
    assert later.has_unserved
    answer = sentence(later, terms)
    assert "it renames t-0 to stray and does not serve it" in answer
    assert answer.endswith(" This is by the metadata of 2023-11-14T22:13:20.000Z in /later.")


@pytest.mark.parametrize(
    ("release", "size", "stops"), [((4, 0), 1048575, False), ((4, 1), 1048575, True), ((4, 1), 1048576, False)]
)
def test_a_topic_has_segments_that_are_too_small_for_the_release(
    node: Node, release: tuple[int, int], size: int, stops: bool
) -> None:
    """4.1.1 to 4.4.0 stopped for a topic that 3.9.1 had made, and 4.0.0 started."""
    image = image_of([_UNASSIGNED], replicas=(2,))
    image.configs[TOPIC_RESOURCE, "t"] = {"segment.bytes": str(size)}
    result = boot(node.log_dirs, BootTerms(version=release, later=KnownMetadata(Path("/later"), image, None)))
    text = f"Invalid value {size} for configuration segment.bytes: Value must be at least 1048576"
    assert any(step.broker_message == text for step in result.having(Action.REFUSE)) == stops


@pytest.mark.parametrize("is_deleted", [False, True])
def test_a_log_of_a_topic_that_was_deleted_is_no_damage(
    node: Node, monkeypatch: pytest.MonkeyPatch, is_deleted: bool
) -> None:
    """4.3.1 was killed just after a deletion: the directory has its name still, and becomes a stray."""
    write_segment(node.partition("t-0"), 0, batches(1))
    (node.partition("t-0") / "partition.metadata").write_text(f"version: 0\ntopic_id: {OTHER_ID}\n")
    image = ClusterImage(removed_topics={OTHER_ID: "t"} if is_deleted else {})
    monkeypatch.setattr(boot_module.quorum, "load_metadata", lambda *_: LoadedMetadata(image))
    (stray,) = (each for each in refusal_findings(node.first, DEFAULT_LIMITS) if each.code == "replica-stray")
    assert stray.severity is (Severity.WARNING if is_deleted else Severity.ERROR)
    assert ("the topic of that id was deleted" in stray.message) == is_deleted
    assert ("delete the directory when" in stray.next_step) == is_deleted


def test_a_directory_that_fails_for_one_log_serves_none(node: Node) -> None:
    """4.3.1 stopped serving the whole directory where one log could not be made, and ended if it was the first."""
    second = node.second()
    (second / "t-0").touch()
    terms = BootTerms(later=KnownMetadata(Path("/later"), image_of(["bbbbbbbbbbbbbbbbbbbbbQ"]), None))
    assert f"does not serve the log directory {second}" in sentence(boot(node.log_dirs, terms), terms)
    own = re.search("(?m)^directory.id=(.*)$", node.meta())
    assert own is not None
    (node.first / "t-0").touch()
    terms = BootTerms(later=KnownMetadata(Path("/later"), image_of([own[1]]), None))
    (refusal,) = boot(node.log_dirs, terms).having(Action.REFUSE)
    assert refusal.broker_message == f"Error while creating log for t-0 in dir {node.first}"
    assert refusal.reason.endswith("and with it the metadata log")


def test_a_node_that_went_back_to_zookeeper_has_an_old_metadata_log(node: Node) -> None:
    """3.9.1 left a migration, and served a topic that was made after that; its metadata log stays."""
    meta = node.meta().replace("version=1", "version=0").replace("node.id", "broker.id")
    (node.first / "meta.properties").write_text(meta)
    node.partition("new-0").mkdir()
    (node.partition("new-0") / "partition.metadata").write_text(f"version: 0\ntopic_id: {OTHER_ID}\n")
    for is_known in (False, True):  # 4.4 has no ZooKeeper
        notes = boot(node.log_dirs, BootTerms(is_release_known=is_known)).not_checked
        assert ("still runs with ZooKeeper" in "".join(notes)) == (not is_known)
    (stray,) = (each for each in refusal_findings(node.first, DEFAULT_LIMITS) if each.code == "replica-stray")
    assert "not so if the node still runs with ZooKeeper" in stray.message


def test_metadata_of_the_node_is_named_with_its_time_where_others_may_have_more(data_dir: Path, node: Node) -> None:
    one_of_three = data_dir / "trials" / "metadata" / "node-1"
    answer = sentence(boot([one_of_three], BootTerms()), BootTerms())
    assert "This is by its own metadata of 2026-" in answer
    assert "its own metadata" not in sentence(boot(node.log_dirs, BootTerms()), BootTerms()), "the only voter"


@pytest.mark.parametrize("has_log", [True, False])
def test_a_topic_that_was_made_anew_meanwhile_has_lost_nothing(node: Node, has_log: bool) -> None:
    """The high watermark in the checkpoint, which has names and no ids, is that of the deleted topic."""
    node.unclean()
    (node.first / HIGH_WATERMARK).write_text("0\n1\nt 0 5\n")
    if has_log:
        node.partition("t-0").mkdir()
        (node.partition("t-0") / "partition.metadata").write_text("version: 0\ntopic_id: 0frMtGEjR5OLKcKIaEHLRA\n")
    terms = BootTerms(later=KnownMetadata(Path("/later"), image_of([_IDS[0]]), 0))
    result = boot(node.log_dirs, terms)
    (made_log,) = [step for step in result.having(Action.CREATE) if step.topic == "t" and step.log_end_offset == 0]
    assert made_log.lost_offsets == (None if has_log else (0, 4)), "without the stray, it is not known whose it is"
    assert ("it is new to this node" in made_log.reason) == has_log
    assert len(result.strays) == has_log
    assert not result.may_lose


@pytest.mark.parametrize("is_assigned", [True, False])
def test_a_replica_that_was_assigned_meanwhile_was_never_here(is_assigned: bool) -> None:
    earlier = image_of([_IDS[0]] if is_assigned else [])
    (step,) = missing_log_steps(LogsState(), disks(), image_of([_IDS[0]]), 1, is_whole=True, earlier=earlier)
    assert step.may_lose == is_assigned


# -- space -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("free", "flags", "words", "is_unknown"),
    [(0, 0, None, True), (0, os.ST_RDONLY, None, False), (4096, 0, "4,096 bytes free", False), (2**40, 0, None, False)],
)
def test_a_start_needs_space(
    node: Node, monkeypatch: pytest.MonkeyPatch, free: int, flags: int, words: str | None, is_unknown: bool
) -> None:
    status = SimpleNamespace(f_fsid=1, f_flag=flags, f_bavail=free // 4096, f_frsize=4096)
    monkeypatch.setattr(boot_module.os, "statvfs", lambda _: status)
    result = boot(node.log_dirs, BootTerms())
    assert result.is_unknown == is_unknown
    notes = [note for note in result.not_checked if "disk has room" in note]
    assert [words in note for note in notes if words] == ([True] if words else [])
    note = f"whether a broker can write: {node.first} is mounted read-only here, where no broker starts"
    assert (note in result.not_checked) == bool(flags)
    if is_unknown:
        assert "no byte free, on this host and now" in result.having(Action.UNKNOWN)[0].reason
