"""boot held against a real broker: a sample of the trials; ``python -m tests.oracle.boot_trials`` runs all of them."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from msgspec.structs import replace

from format.node.target import Target
from format.state.metadata_log import read_metadata
from format.state.quorum import metadata_source
from format.verbs.boot.boot import boot
from format.verbs.boot.sentence import sentence
from format.verbs.boot.steps import Action, BootTerms, KnownMetadata
from tests.field.cluster import FieldCluster, Layout
from tests.oracle.boot_mutations.table import mutations
from tests.oracle.boot_trials import Trials
from tests.oracle.broker import Broker
from tests.oracle.kafka_lab import KafkaLab
from tests.oracle.quorum_trials import QuorumTrials, quorum_mutations

pytestmark = [pytest.mark.oracle]

VERSION = "4.3.1"
SAMPLE = (
    "untouched/unclean",
    "directory-names/dir 'lost+found'",
    "two-directories/same partition",
    "two-directories/partition moved, its epochs garbage",
    "partition-metadata/empty",
    "partition-metadata/foreign id",
    "tails/2 payments-0 cut unclean",
    "middles/13 users-0 zero-batch point zero unclean",
    "indexes/index active past the end clean",
    "leftovers/swap of the first segment",
    "metadata-logs/newest snapshot zeroed",
    "metadata-logs/directory missing",
    "missing/partition users-0",
    "segment-files/log is a pipe",
    "log-starts/1265 clean",
)


def available_lab() -> KafkaLab:
    lab = KafkaLab()
    missing = lab.missing(VERSION) or (None if lab.logging_jars() else "no logger for Kafka 4.3.1: fetch a 3.x release")
    if missing is not None:
        from tests.conftest import unavailable

        unavailable(missing)
    return lab


@pytest.fixture(scope="module")
def trials(data_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Trials:
    """Brokers on copies of the node that ships with the tests."""
    return Trials(available_lab(), VERSION, data_dir / "kafka-4.3-single" / "node-1", tmp_path_factory.mktemp("boot"))


def test_the_sample_is_of_the_trials() -> None:
    assert set(SAMPLE) <= {str(each) for each in mutations()}


@pytest.mark.parametrize("name", SAMPLE)
def test_a_broker_does_what_boot_says(trials: Trials, name: str) -> None:
    mutation = next(each for each in mutations() if str(each) == name)
    result = trials.compared(mutation)
    assert result.predicted == result.outcome
    assert not result.differences


QUORUM_SAMPLE = (
    "lost+found",
    "a garbled recovery checkpoint",
    "a stray partition",
    "another directory id",
    "no directory id",
    "the first snapshot cut at 16",
    "the first snapshot cut at 17",
)


@pytest.fixture(scope="module")
def quorum_trials(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> QuorumTrials:
    """Nodes of a quorum whose voters have directory ids."""
    work = tmp_path_factory.mktemp("quorum")
    return QuorumTrials(available_lab(), VERSION, request.param, "dynamic", work)


@pytest.mark.parametrize(
    ("quorum_trials", "name"),
    # A node of both roles waits half a minute for a leader where its directory id is wrong.
    [
        (roles, name)
        for roles in ("controller", "both")
        for name in QUORUM_SAMPLE
        if roles == "controller" or not name.endswith("directory id")
    ],
    indirect=["quorum_trials"],
)
def test_a_voter_does_what_boot_says(quorum_trials: QuorumTrials, name: str) -> None:
    mutation = next(each for each in quorum_mutations() if each.name == name)
    result = quorum_trials.compared(mutation)
    assert result.predicted == result.outcome
    assert not result.differences


@pytest.mark.parametrize("emptied", [0, 1])
def test_logs_of_an_emptied_disk_are_made_where_the_metadata_assigns_them(tmp_path: Path, emptied: int) -> None:
    lab = available_lab()
    disks = [tmp_path / "disk-1", tmp_path / "disk-2"]
    for disk in disks:
        disk.mkdir()
    settings = {"log.dirs": ",".join(map(str, disks)), "log.cleaner.enable": "true"}
    with Broker(lab, VERSION, disks[0], tmp_path / "work", settings) as broker:
        broker.run("org.apache.kafka.tools.TopicCommand", "--create", "--topic", "t", "--partitions", "7")
    held = {path.name: disk for disk in disks for path in disk.glob("t-*")}
    for path in disks[emptied].iterdir():
        if path.name.startswith("t-"):
            shutil.rmtree(path)
        elif path.is_file() and path.name not in ("meta.properties", "bootstrap.checkpoint"):
            path.unlink()
    result = boot(disks, BootTerms(version=(4, 3)), node_id=1)
    made = {step.path.name: step.path.parent for step in result.having(Action.CREATE) if step.topic == "t"}
    assert made == {name: disk for name, disk in held.items() if disk == disks[emptied]}
    assert result.may_lose
    with Broker(lab, VERSION, disks[0], tmp_path / "work", settings):
        assert {path.name: disk for disk in disks for path in disk.glob("t-*")} == held


def test_a_node_that_was_down_while_the_cluster_changed(tmp_path: Path) -> None:
    """Its topic is deleted and made anew, and then its directory gets another id than the voter set has."""
    lab = available_lab()
    layout = Layout(3, dynamic_voters=True, all_vote=True, release="4.3-IV0")

    def topic(cluster: FieldCluster, *words: str) -> None:
        cluster.tool("org.apache.kafka.tools.TopicCommand", "--bootstrap-server", cluster.bootstrap, *words)

    with FieldCluster(lab, VERSION, tmp_path, layout) as cluster:
        here, there = cluster.node(1).log_dirs[0], cluster.node(2).log_dirs[0]
        topic(cluster, "--create", "--topic", "t", "--replica-assignment", "1:2")
        cluster.stop(1)
        topic(cluster, "--delete", "--topic", "t")
        topic(cluster, "--create", "--topic", "t", "--replica-assignment", "1:2")
        terms = BootTerms(version=(4, 3))
        assert not boot([here], terms).strays
        source, _ = metadata_source([Target(str(there))], terms.limits)
        state = read_metadata(source.partition)
        later = replace(terms, later=KnownMetadata(there, state.image, state.last_timestamp))
        result = boot([here], later)
        assert [step.path.name for step in result.strays] == ["t-0"]
        assert [step.path.name for step in result.having(Action.CREATE) if step.topic == "t"] == ["t-0"]
        assert not result.loses
        assert not result.may_lose
        cluster.start(1)
        assert len(list(here.glob("t-0.*-stray"))) == 1
        assert (here / "t-0").exists()
        cluster.stop(1)
        path = here / "meta.properties"
        path.write_text(re.sub("(?m)^directory.id=.*$", "directory.id=bbbbbbbbbbbbbbbbbbbbbQ", path.read_text()))
        result = boot([here], terms)
        assert not result.is_refused
        assert "only observes the metadata quorum" in sentence(result, terms)
        cluster.start(1)
        quorum = cluster.tool(
            "org.apache.kafka.tools.MetadataQuorumCommand", "--bootstrap-server", cluster.bootstrap, "describe",
            "--replication",
        )  # fmt: skip
        (line,) = [each for each in quorum.splitlines() if "bbbbbbbbbbbbbbbbbbbbb" in each]
        assert line.split()[0] == "1"
        assert line.split()[-1] == "Observer"
