"""Replicas of real clusters for the trials of merging: made once for a release, then wounded as copies many times.

A controller (node 1) and three brokers (nodes 2 to 4), which have a replica of each topic's only partition. Node 2
lives longest: its branch is the right one. How the replicas differ depends on the kind of the topic (``KINDS``).
"""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.corpora import SHARED_CORPUS, present
from tests.field.cluster import FieldCluster, Layout
from tests.field.workbench import compiled
from tests.oracle.cluster_trial import log_dir_of, waited
from tests.oracle.compaction_trial import Draw
from tests.oracle.kafka_lab import KafkaLab
from tests.oracle.record_reader import RecordReader, Served

REPLICAS = (2, 3, 4)
#: Kinds of topics, and how many there are of each in a cluster of 4.3.1 and of 3.9.1.
KINDS = {
    "plain": (4, 2),  # equal replicas, several epochs and segments
    "codecs": (5, 1),
    "transactions": (6, 2),  # commits, aborts, one open
    "compacted": (8, 2),  # node 2 was cleaned twice, node 4 once, node 3 never
    "forked": (7, 2),  # node 4 led alone, with one epoch or two, and died; an unclean election; another branch
    "elected": (3, 1),  # the same, but nothing was written after the election
    "lagging": (4, 1),  # node 4 died, and the others went on
    "crashed": (4, 1),  # node 2 has a tail that nobody fetched, of the epoch of the others
    "trimmed": (2, 0),  # records were deleted from the start
    "legacy": (5, 0),  # magic 0, 1 and 2, written by 0.8 to 2.8
}
TRIMMED_BEFORE = 15
VERSIONS = ("4.3.1", "3.9.1")
_OPTIONS = ["-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
_SETTINGS = {
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.replication.factor": "3",
    "auto.leader.rebalance.enable": "false",
    "unclean.leader.election.enable": "true",
    "log.cleaner.backoff.ms": "3600000",
    "log.retention.ms": "-1",
    "log.retention.check.interval.ms": "3600000",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "3600000",
    "transaction.remove.expired.transaction.cleanup.interval.ms": "3600000",
    "auto.create.topics.enable": "false",
}
_CONTROLLER = """\
process.roles=controller
node.id=1
listeners=CONTROLLER://127.0.0.1:{controller_port}
controller.listener.names=CONTROLLER
controller.quorum.voters=1@127.0.0.1:{controller_port}
broker.session.timeout.ms=5000
"""
_BROKER = """\
process.roles=broker
node.id={node}
listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
inter.broker.listener.name=PLAINTEXT
controller.quorum.voters=1@127.0.0.1:{controller_port}
broker.session.timeout.ms=5000
broker.heartbeat.interval.ms=500
log.initial.task.delay.ms=500
"""
_TOPIC = {"segment.ms": "60000", "message.timestamp.after.max.ms": str(2**63 - 1), "retention.ms": "-1"}
_HOUR = 3_600_000
_SECONDS = 90

Entry = dict[str, Any]


class ReplicaCluster(FieldCluster):
    """The controller and the brokers, not started."""

    def __init__(self, lab: KafkaLab, version: str, work: Path) -> None:
        super().__init__(lab, version, work, Layout(nodes=4, settings=_SETTINGS))
        controller_port = self.node(1).controller_port
        self.node(1).is_controller = True
        for node in self.nodes:
            kind = _CONTROLLER if node.is_controller else _BROKER
            node.configuration = kind.format(node=node.number, port=node.port, controller_port=controller_port)
        self._classes = compiled(lab, Path(__file__).with_name("LogScenario.java"), version, work.parent)

    def log_dir(self, node: int) -> Path:
        return log_dir_of(self, node)

    def write(self, entries: Iterable[Entry], node: int | None = None) -> None:
        """Run a scenario, with the address of one node alone where it is given."""
        spec = self.work / "spec.json"
        spec.write_text(json.dumps(list(entries)))
        address = self.bootstrap if node is None else f"127.0.0.1:{self.node(node).port}"
        command = self.lab.java_command(self.version, _OPTIONS, extra=[self._classes])
        done = subprocess.run(
            [*command, "LogScenario", address, str(spec)], capture_output=True, timeout=300, check=False
        )
        assert done.returncode == 0, done.stderr.decode()[-3000:]

    def wait_for(self, what: str, is_so: Callable[[], bool]) -> None:
        assert waited(is_so, _SECONDS), f"in vain: {what}"

    def topics(self, *words: str, node: int = 2) -> list[str]:
        """The lines of partitions that kafka-topics describes."""
        address = f"127.0.0.1:{self.node(node).port}"
        told = self.tool("org.apache.kafka.tools.TopicCommand", "--bootstrap-server", address, "--describe", *words)
        return [line for line in told.splitlines() if "Partition: " in line]

    def wait_in_sync(self) -> None:
        self.wait_for("replicas in sync", lambda: not self.topics("--under-replicated-partitions"))

    def elect_preferred(self) -> None:
        """Let preferred replicas lead, where they live."""
        words = ("--bootstrap-server", f"127.0.0.1:{self.node(2).port}", "--election-type", "preferred")
        try:
            self.tool("org.apache.kafka.tools.LeaderElectionCommand", *words, "--all-topic-partitions")
        except AssertionError as error:
            print("  some are not elected:", str(error).strip().splitlines()[-1][:150], flush=True)

    def clean(self, node: int, pattern: str = "compacted-*") -> None:
        """Let the cleaner of a node do all there is to do."""
        self.write([{"broker": str(node), "late_configs": {"log.cleaner.backoff.ms": "300"}}])
        last, since = None, time.monotonic()
        while time.monotonic() < since + 5:
            now = sorted(_sizes(self.log_dir(node).glob(f"{pattern}/*.log")))
            if now != last:
                last, since = now, time.monotonic()
            time.sleep(0.5)
        self.write([{"broker": str(node), "late_configs": {"log.cleaner.backoff.ms": "3600000"}}])


def _sizes(paths: Iterable[Path]) -> Iterator[tuple[str, int]]:
    for path in paths:
        try:
            yield str(path), path.stat().st_size
        except FileNotFoundError:  # the cleaner has just replaced it
            yield str(path), -1


def _kind_of(topic: str) -> str:
    return topic.rsplit("-", 1)[0]


class _Writer:
    """Draws what is written to the topics."""

    def __init__(self, seed: int, version: str) -> None:
        at = VERSIONS.index(version)
        self.topics = [f"{kind}-{n:02}" for kind, counts in KINDS.items() for n in range(counts[at])]
        self._random = random.Random(seed)
        self._draw = Draw(seed, int(time.time() * 1000) - 4000 * _HOUR)
        self._opened = 0

    def of_kinds(self, *kinds: str) -> list[str]:
        return [each for each in self.topics if _kind_of(each) in kinds]

    def entries(self, topics: Iterable[str], most: int, **more: Any) -> list[Entry]:
        return [self._entry(each, most, more) for each in topics]

    def _entry(self, topic: str, most: int, more: Mapping[str, Any]) -> Entry:
        kind = _kind_of(topic)
        at = self.topics.index(topic)
        first = {"forked": 2, "elected": 2, "crashed": 0}.get(kind, at % 3)
        configs = dict(_TOPIC)
        if kind == "compacted":
            configs |= {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.0"}
            configs["delete.retention.ms"] = "1" if at % 2 else "86400000"
        entry: Entry = {"topic": topic, "configs": configs, "replicas": [*REPLICAS[first:], *REPLICAS[:first]]}
        batches = [] if kind == "legacy" else self._batches(kind, most)
        for batch in batches:
            batch |= more
        if kind == "transactions" and self._random.random() < 0.3:
            self._opened += 1
            time_ms = batches[0]["records"][0][2]
            open_one = {"transaction": "open", "producer": 100 + self._opened, "records": [["key-1", 5, time_ms]]}
            batches.insert(self._random.randrange(len(batches)), open_one)
        return entry | {"batches": batches}

    def _batches(self, kind: str, most: int) -> list[dict[str, Any]]:
        compacted = kind == "compacted"
        batches = self._draw.batches(
            self._random.randrange(4, most),
            keys=25 if compacted else 1000,
            transactions=kind == "transactions",
            codecs=kind == "codecs",
            nulls=not compacted,
        )
        for batch in batches:
            if compacted and self._random.random() < 0.3:
                batch["codec"] = "gzip"
            if self._random.random() < 0.3:
                for record in batch["records"]:
                    record[1] *= 12 if record[1] > 0 else 1
        return batches


def _say(version: str, words: str) -> None:
    print(f"{time.strftime('%X')} Kafka {version}: {words}", flush=True)


def make(lab: KafkaLab, version: str, target: Path, seed: int) -> None:
    """Make the cluster, and copy the nodes as they died to ``target``."""
    writer = _Writer(seed, version)
    work = target.with_name(target.name + "-work")
    shutil.rmtree(work, ignore_errors=True)
    everything = writer.topics
    forking, alive = writer.of_kinds("forked"), writer.of_kinds("forked", "elected")
    with ReplicaCluster(lab, version, work) as cluster:
        _say(version, "written, with changes of the leader")
        cluster.write(writer.entries(everything, 14))
        cluster.wait_in_sync()
        for node in (3, 4):
            cluster.stop(node)
            cluster.write(writer.entries(everything, 8), node=2)
            cluster.start(node)
            cluster.wait_in_sync()
        cluster.elect_preferred()
        cluster.write(writer.entries(everything, 10))
        # The coordinators' topic is made without unclean elections, whatever the brokers' setting.
        unclean = {"unclean.leader.election.enable": "true"}
        cluster.write([{"topic": "__transaction_state", "batches": [], "late_configs": unclean}])
        trims = [{"topic": each, "batches": [], "delete_before": TRIMMED_BEFORE} for each in writer.of_kinds("trimmed")]
        cluster.write(trims)
        _say(version, "cleaned, one node more often than the other, one never")
        cluster.clean(2)
        cluster.write(writer.entries(writer.of_kinds("compacted"), 14))
        cluster.wait_in_sync()
        cluster.clean(4)
        _say(version, "node 4 leads alone")
        cluster.elect_preferred()
        cluster.wait_in_sync()
        cluster.pause(2, 3)
        time.sleep(12)  # until clients no longer hear of the two
        cluster.wait_for(
            "node 4 alone in sync",
            lambda: all("Isr: 4" in line and "Isr: 4," not in line for line in cluster.topics(
                "--topic", "(forked|elected)-.*", node=4)),
        )  # fmt: skip
        cluster.write(writer.entries(alive, 10), node=4)
        cluster.kill(4)
        cluster.start(4)
        cluster.write(writer.entries(forking[::2], 6), node=4)
        cluster.kill(4)
        cluster.resume(2, 3)
        _say(version, "an unclean election, and another branch")
        cluster.wait_for("leaders", lambda: not cluster.topics("--unavailable-partitions"))
        written = writer.of_kinds("forked", "lagging")
        written += [each for each in writer.of_kinds("compacted", "transactions", "codecs") if each[-1] in "0246"]
        cluster.write(writer.entries(written, 12), node=2)
        cluster.clean(2)
        _say(version, "a tail that nobody fetched, and the end")
        cluster.elect_preferred()
        cluster.pause(3)
        cluster.write(writer.entries(writer.of_kinds("crashed"), 8, acks="1"), node=2)
        cluster.kill(2, 3)
        cluster.stop(1)
        target.mkdir(parents=True)
        for node in (1, *REPLICAS):
            shutil.copytree(cluster.log_dir(node), target / f"node-{node}", ignore=shutil.ignore_patterns(".lock"))
    for topic in writer.of_kinds("legacy"):
        for node in REPLICAS:
            directory = target / f"node-{node}" / f"{topic}-0"
            topic_id = (directory / "partition.metadata").read_bytes()
            shutil.rmtree(directory)
            writable_copy(present(SHARED_CORPUS / "kafka-0.8-to-2.8" / "data" / "legacy-0"), directory)
            (directory / "partition.metadata").write_bytes(topic_id)
            if node == 4 and topic[-1] in "13":  # it lags
                for path in directory.glob("*2200.*"):
                    path.unlink()
    shutil.rmtree(work)


def writable_copy(source: Path, target: Path) -> None:
    """A copy of a directory without the modes of what is read-only."""
    shutil.copytree(source, target, copy_function=shutil.copyfile)
    for each in [target, *(path for path in target.rglob("*") if path.is_dir())]:
        each.chmod(0o755)


@dataclass
class Live:
    """A broker that serves the logs that were put into the place of those of node 2, with its controller."""

    cluster: ReplicaCluster
    reader: RecordReader

    def read(self, topics: Iterable[str]) -> dict[str, Served]:
        """What is served of some topics, by the names of their partitions."""
        address = f"127.0.0.1:{self.cluster.node(2).port}"
        return self.reader.read(address, [f"{each}-0" for each in sorted(topics)])


@contextmanager
def live(lab: KafkaLab, version: str, made: Path, logs: Mapping[str, Path], work: Path) -> Iterator[Live]:
    """Start node 2 with partition directories in the place of its own, as docs/runbooks/merge-replicas.md says.

    ``logs`` has them by their topics.
    """
    shutil.rmtree(work, ignore_errors=True)
    cluster = ReplicaCluster(lab, version, work / "cluster")
    for node in (1, 2):
        shutil.copytree(made / f"node-{node}", cluster.log_dir(node))
    for topic, source in logs.items():
        directory = cluster.log_dir(2) / f"{topic}-0"
        shutil.rmtree(directory)
        writable_copy(source, directory)
    for name in (".kafka_cleanshutdown", "cleaner-offset-checkpoint"):
        (cluster.log_dir(2) / name).unlink(missing_ok=True)
    try:
        cluster.start(1, 2)
        with RecordReader(lab, version, work) as reader:
            yield Live(cluster, reader)
    finally:
        cluster.stop(2)
        cluster.stop(1)
