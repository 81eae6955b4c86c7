"""Nodes of a quorum: a controller without a broker leaves logs alone; a voter is an id and a directory id."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from format.files.meta_properties import is_of_zookeeper
from format.limits import DEFAULT_LIMITS
from format.state.cluster_image import ClusterImage
from format.verbs.boot import quorum
from format.verbs.boot.boot import LAST_WITH_ZOOKEEPER, boot, refusal_findings
from format.verbs.boot.identity import NodeIdentity
from format.verbs.boot.sentence import sentence
from format.verbs.boot.steps import Action, BootResult, BootTerms, KnownMetadata
from tests.oracle.boot_mutations.node import CLEAN_MARK, METADATA, UNIQUE, Node, copied_node, cut
from tests.oracle.zookeeper_trials import make_zookeeper_node

TERMS = BootTerms(version=(4, 3))
NOTHING = "A 4.3 controller would start."
_OTHER = "bbbbbbbbbbbbbbbbbbbbbQ"


@pytest.fixture
def controller(data_dir: Path, tmp_path: Path) -> Node:
    """A controller without a broker, the only voter of its quorum."""
    return copied_node(data_dir / "trials" / "controller-4.3" / "node-1", tmp_path / "work")


@pytest.fixture
def both(data_dir: Path, tmp_path: Path) -> Node:
    """A broker and controller, the only voter of its quorum."""
    return copied_node(data_dir / "trials" / "metadata-4.4" / "node-1", tmp_path / "work")


def said(node: Node, terms: BootTerms = TERMS) -> str:
    return sentence(boot(node.log_dirs, terms), terms)


def test_an_empty_metadata_directory_makes_no_node_of_kraft(node: Node) -> None:
    """A 3.9 broker with ZooKeeper leaves it alone, and loads all logs."""
    log_dir = make_zookeeper_node(node).first
    node.partition(METADATA).mkdir()
    assert is_of_zookeeper([log_dir])
    result = boot([log_dir], BootTerms(version=LAST_WITH_ZOOKEEPER))
    assert not [step for step in result.steps if step.action is Action.RENAME or METADATA in str(step.path)]
    assert not [each for each in refusal_findings(log_dir, DEFAULT_LIMITS) if each.code == "replica-stray"]


@pytest.mark.parametrize("is_whole", [True, False])
def test_the_end_of_a_future_replica_is_not_lost_where_the_current_one_has_it(node: Node, is_whole: bool) -> None:
    """4.3.1 cut it, and copied the rest again from the current replica."""
    future = node.second() / f"orders-1.{UNIQUE}-future"
    shutil.copytree(node.partition("orders-1"), future)
    shutil.copy(node.first / "replication-offset-checkpoint", node.log_dirs[1])
    for each in (future,) if is_whole else (future, node.partition("orders-1")):
        cut(log := max(each.glob("*.log")), log.stat().st_size - 5)
    (node.first / CLEAN_MARK).unlink()
    lost = {step.path.parent: step.lost_offsets for step in boot(node.log_dirs, TERMS).having(Action.TRUNCATE)}
    assert (lost[future] is None) == is_whole
    assert is_whole or lost[future] == lost[node.partition("orders-1")]


def stray(node: Node) -> None:
    node.partition("orders-0").mkdir()
    (node.partition("orders-0") / f"{0:020}.log").touch()


ONLY_A_BROKER_MINDS: dict[str, Callable[[Node], object]] = {
    "lost+found": lambda node: node.partition("lost+found").mkdir(),
    "orders-0.bak": lambda node: node.partition("orders-0.bak").mkdir(),
    "recovery point": lambda node: (node.first / "recovery-point-offset-checkpoint").write_text("garbage\n"),
    "stray": stray,
}


@pytest.mark.parametrize("name", ONLY_A_BROKER_MINDS)
def test_a_controller_leaves_logs_alone(controller: Node, name: str) -> None:
    ONLY_A_BROKER_MINDS[name](controller)
    result = boot(controller.log_dirs, TERMS)
    assert sentence(result, TERMS) == NOTHING
    assert any(note.startswith("process.roles:") for note in result.not_checked)
    assert not list(refusal_findings(controller.first, DEFAULT_LIMITS))


@pytest.mark.parametrize("name", ["lost+found", "orders-0.bak", "recovery point"])
def test_a_broker_does_not(controller: Node, both: Node, name: str) -> None:
    node = both
    ONLY_A_BROKER_MINDS[name](node)
    assert said(node, BootTerms()).startswith("A 4.4 broker would refuse to start")


def test_a_broker_whose_registration_is_lost_is_no_controller_alone(controller: Node) -> None:
    """Its metadata log was lost and begins anew, with the controller only: the start takes its logs for strays."""
    stray(controller)
    (controller.first / "replication-offset-checkpoint").write_text("0\n0\n")
    assert said(controller).startswith("A 4.3 broker would start: it renames orders-0 to stray and does not serve it.")


def test_the_option_says_what_the_metadata_log_does_not(controller: Node) -> None:
    ONLY_A_BROKER_MINDS["lost+found"](controller)
    assert "broker would refuse to start" in said(controller, replace(TERMS, is_broker=True))


@pytest.mark.parametrize(("is_broker", "action"), [(None, Action.UNKNOWN), (True, Action.REFUSE)])
def test_where_nothing_tells_the_roles_a_refusal_of_brokers_is_not_known(
    controller: Node, is_broker: bool | None, action: Action
) -> None:
    for path in controller.partition(METADATA).iterdir():
        path.unlink()
    controller.partition(METADATA).rmdir()
    ONLY_A_BROKER_MINDS["lost+found"](controller)
    result = boot(controller.log_dirs, replace(TERMS, is_broker=is_broker))
    (step,) = result.having(action)
    assert step.path.name == "lost+found"
    assert ("process.roles decides" in step.reason) == (is_broker is None)
    assert any(note.startswith("whether the node is a broker") for note in result.not_checked) == (is_broker is None)


def test_files_that_only_a_broker_writes_tell_its_role(controller: Node) -> None:
    for path in controller.partition(METADATA).iterdir():
        path.unlink()
    controller.partition(METADATA).rmdir()
    ONLY_A_BROKER_MINDS["recovery point"](controller)
    assert boot(controller.log_dirs, TERMS).is_refused


def test_a_controller_needs_the_lock(controller: Node) -> None:
    (controller.first / ".lock").mkdir()
    (step,) = boot(controller.log_dirs, TERMS).having(Action.REFUSE)
    assert step.broker_message == f"{controller.first / '.lock'}: Is a directory"


@pytest.mark.parametrize(
    ("size", "version", "message"),
    [
        (0, (4, 3), None),
        (0, (3, 9), "No value present"),
        (16, (4, 3), 'MemoryRecords.firstBatchSize()" is null'),
        (17, (4, 3), None),
        (165, (4, 3), None),
        (165, (4, 2), "No value present"),
    ],
)
def test_the_snapshot_of_a_new_quorum_may_be_torn(
    controller: Node, size: int, version: tuple[int, int], message: str | None
) -> None:
    (controller.first / "bootstrap.checkpoint").unlink()  # 3.9 does not know its level
    cut(controller.partition(METADATA) / f"{0:020}-{0:010}.checkpoint", size)
    refusals = boot(controller.log_dirs, BootTerms(version=version)).having(Action.REFUSE)
    messages = [step.broker_message for step in refusals if step.kafka_class == "RecordsSnapshotReader"]
    assert messages == ([] if message is None else [message])


# -- voters and directory ids ----------------------------------------------------------------------------------------


def with_directory_id(node: Node, line: str) -> None:
    (node.first / "meta.properties").write_text(re.sub("(?m)^directory.id=.*\n", line, node.meta()))


@pytest.mark.parametrize(
    ("line", "words"), [(f"directory.id={_OTHER}\n", f"has {_OTHER}"), ("", "has none, and gets a new one")]
)
def test_the_only_voter_with_another_directory_id_waits_without_end(controller: Node, line: str, words: str) -> None:
    with_directory_id(controller, line)
    assert said(controller) == "A 4.3 controller would not start: 1 reason."
    (step,) = boot(controller.log_dirs, TERMS).having(Action.REFUSE)
    assert step.path == controller.first / "meta.properties"
    assert words in step.reason
    assert "waits without end" in step.reason


def test_a_broker_too(both: Node) -> None:
    assert "would start" in said(both, BootTerms())
    with_directory_id(both, f"directory.id={_OTHER}\n")
    result = boot(both.log_dirs, BootTerms())
    assert "directory id" in result.having(Action.REFUSE)[0].reason


def observed(count: int, **changed: object) -> tuple[BootResult, str]:
    """The answer on voter 1 of several, whose directory has the id A in the log and another one on disk."""
    image = ClusterImage(
        voters={
            each: {"voterId": each, "voterDirectoryId": f"{'abcdefgh'[each]}{'A' * 21}"} for each in range(1, count + 1)
        },
        features={"kraft.version": 1},
    )
    path = Path("/disk-1")
    identity = NodeIdentity(node_id=1, directory_ids={path: _OTHER, Path("/disk-2"): f"b{'A' * 21}"})
    for name, value in changed.items():
        setattr(identity if name == "directory_ids" else image, name, value)
    result = BootResult(steps=quorum.observer_steps(path, identity, image, 1, TERMS), is_controller=True)
    return result, sentence(result, TERMS)


@pytest.mark.parametrize(("voters", "starts"), [(1, False), (2, False), (3, True), (5, True)])
def test_the_other_voters_elect_a_leader_if_they_are_a_majority(voters: int, starts: bool) -> None:
    result, answer = observed(voters)
    assert result.has_unserved == starts
    assert result.is_refused != starts
    assert ("would start: it only observes the metadata quorum, in which it never votes" in answer) == starts
    assert f"is that of {Path('/disk-2')}" in result.steps[0].reason


@pytest.mark.parametrize(
    "changed",
    [
        {"directory_ids": {Path("/disk-1"): f"b{'A' * 21}"}},
        {"features": {}},
        {"voters": None},
        {"voters": {2: {"voterId": 2, "voterDirectoryId": _OTHER}}},
    ],
    ids=["the same id", "static voters", "no voters in the log", "not a voter"],
)
def test_other_nodes_are_not_accused(changed: dict[str, object]) -> None:
    _, answer = observed(1, **changed)
    assert answer == NOTHING


def test_later_metadata_has_the_voters(controller: Node) -> None:
    """The node was removed and added again with its new directory id, in records that its own log has not yet."""
    with_directory_id(controller, f"directory.id={_OTHER}\n")
    later = ClusterImage(voters={1: {"voterId": 1, "voterDirectoryId": _OTHER}}, features={"kraft.version": 1})
    terms = replace(TERMS, later=KnownMetadata(Path("/later"), later, 0))
    assert said(controller, terms).startswith(NOTHING)


def test_a_node_without_its_metadata_log_knows_none_of_its_partitions(data_dir: Path, tmp_path: Path) -> None:
    node = copied_node(data_dir / "kafka-4.3-single" / "node-1", tmp_path / "work")
    shutil.rmtree(node.partition("__cluster_metadata-0"))
    answer = said(node)
    assert "would start: it begins an empty metadata log, as none is here, and renames " in answer
    assert answer.endswith(
        " Another log directory of the node may have the metadata: give it too. Other controllers may have it: give "
        "theirs with --metadata."
    )


def test_a_metadata_snapshot_that_lacks_topics_of_the_log(node: Node) -> None:
    """4.3.1 stopped at this record with a NullPointerException."""
    snapshots = sorted(node.partition(METADATA).glob("*.checkpoint"))
    shutil.copy(snapshots[0], snapshots[-1])
    [stop] = boot(node.log_dirs, TERMS).having(Action.REFUSE)
    assert stop.broker_message == "Error loading metadata log record from offset 1021"
    assert "lacks: Unable to find partition " in stop.reason
