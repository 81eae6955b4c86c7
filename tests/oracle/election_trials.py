"""Trials of quorum: controllers and brokers killed at random moments, and what the controllers at hand then do.

    python -m tests.oracle.election_trials [--kafka 4.3.1] [--quorum static|dynamic] [--runs N] [--seed N]

Each run starts three controllers and two brokers, makes topics, and kills a controller, then a broker, and at last all.
Then it holds what quorum says against a cluster that is started on copies: for each pair of controllers who leads, from
which offset on, and what both have then; for one alone, and for a pair with a damaged log, where the logs end; and for
the stale directory of the first controller which changes only the brokers' disks show, by kafka-dump-log. Prints a line
for each statement, exits with 1 for a wrong one.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from format.node.target import Target
from format.verbs.quorum import EPOCH, TOPIC, QuorumResult, quorum
from tests.field.cluster import FieldCluster, FieldNode, Layout, StartFailed
from tests.oracle.kafka_lab import KafkaLab

_CONTROLLERS, _BROKERS = (1, 2, 3), (4, 5)
_METADATA = "__cluster_metadata-0"
_LOG = f"{0:020}.log"
_CLUSTER = "electionelectionelectg"
_OF_CONTROLLERS = """\
process.roles=controller
node.id={node}
listeners=CONTROLLER://127.0.0.1:{controller_port}
controller.listener.names=CONTROLLER
"""
_OF_BROKERS = """\
process.roles=broker
node.id={node}
listeners=PLAINTEXT://127.0.0.1:{port}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
inter.broker.listener.name=PLAINTEXT
"""
_SETTINGS = {
    "metadata.max.idle.interval.ms": "20",
    "metadata.log.max.record.bytes.between.snapshots": "20000",
    "broker.session.timeout.ms": "5000",
    "initial.broker.registration.timeout.ms": "140000",
    "broker.heartbeat.interval.ms": "500",
    "log.initial.task.delay.ms": "500",
    "share.coordinator.state.topic.replication.factor": "1",
}
_LEADS = re.compile(r"Completed transition to Leader")
_LOADED = re.compile(r"partition=__cluster_metadata-0.*Loading producer state till offset (\d+)")
_ALONE_SECONDS = 8
_SECONDS = 90


class ElectionCluster(FieldCluster):
    """Three controllers and two brokers, each a node of its own; nodes may begin with copied directories."""

    def __init__(self, lab: KafkaLab, version: str, work: Path, *, is_dynamic: bool) -> None:
        super().__init__(lab, version, work, Layout(nodes=5, settings=_SETTINGS))
        self._is_dynamic = is_dynamic
        controllers = self.nodes[: len(_CONTROLLERS)]
        addresses = [f"127.0.0.1:{node.controller_port}" for node in controllers]
        if is_dynamic:
            found = f"controller.quorum.bootstrap.servers={','.join(addresses)}\n"
        else:
            found = f"controller.quorum.voters={','.join(f'{at}@{each}' for at, each in enumerate(addresses, 1))}\n"
        self._initial = ",".join(f"{at}@{each}:{chr(96 + at) * 21}Q" for at, each in enumerate(addresses, 1))
        for node in self.nodes:
            node.is_controller = node.number in _CONTROLLERS
            text = _OF_CONTROLLERS if node.is_controller else _OF_BROKERS
            text = text.format(node=node.number, port=node.port, controller_port=node.controller_port)
            node.configuration = text + found

    def _format(self, node: FieldNode, cluster_id: str = _CLUSTER) -> None:
        if (node.log_dirs[0] / "meta.properties").exists():
            return
        words = ["format", "--config", str(self._properties(node)), f"--cluster-id={cluster_id}"]
        if self._is_dynamic:
            words += ["--initial-controllers", self._initial] if node.is_controller else ["--no-initial-controllers"]
        self.tool("kafka.tools.StorageTool", *words)

    def log_dir(self, number: int) -> Path:
        return self.node(number).log_dirs[0]

    def topics(self, *words: str) -> str:
        """A run of kafka-topics against the first broker."""
        address = f"127.0.0.1:{self.node(_BROKERS[0]).port}"
        return self.tool("org.apache.kafka.tools.TopicCommand", "--bootstrap-server", address, *words)

    def described(self) -> str:
        """What kafka-metadata-quorum says of the quorum."""
        address = f"127.0.0.1:{self.node(_BROKERS[0]).port}"
        return self.tool(
            "org.apache.kafka.tools.MetadataQuorumCommand", "--bootstrap-server", address, "describe", "--status"
        )


class Run:
    """One run; ``wrong`` counts the statements that were."""

    def __init__(self, lab: KafkaLab, version: str, work: Path, *, is_dynamic: bool, seed: int) -> None:
        self._lab, self._version, self._is_dynamic = lab, version, is_dynamic
        self._work = work
        self._chance = random.Random(seed)
        self.wrong = 0
        self._cluster = ElectionCluster(lab, version, work / "cluster", is_dynamic=is_dynamic)
        self._first = self._chance.choice(_CONTROLLERS)

    def holds(self, words: str, *, is_true: bool) -> None:
        """Print a statement, and count it where it is wrong."""
        self.wrong += not is_true
        print(f"{'right' if is_true else 'WRONG'}: {words}", flush=True)

    def result(self, *nodes: int) -> QuorumResult:
        return quorum([Target(self._cluster.log_dir(each)) for each in nodes])

    def run(self) -> None:
        self._live()
        whole = self.result(*_CONTROLLERS, *_BROKERS)
        for words in whole.sentences():
            print(f"       {words}")
        held = whole.quorum.held[0]
        self.holds("nothing is said to be lost, and all is at hand", is_true=not list(whole.findings()))
        for pair in ((1, 2), (1, 3), (2, 3)):
            self._elect(pair, held if all(whole.quorum.can_lead[each] for each in pair) else None)
        self._elect((self._chance.choice(_CONTROLLERS),))
        for wounded in self._damaged():
            self._elect(wounded)
        self._stale()

    def _live(self) -> None:
        """The life of the cluster, until all nodes are killed."""
        chance = self._chance
        with self._cluster as cluster:
            for number in range(3):
                cluster.topics(
                    "--create", "--topic", f"early-{number}", "--partitions", "4", "--replication-factor", "2"
                )
            described = cluster.described()
            print(
                f"       {' '.join(line for line in described.splitlines() if re.match('(Leader|High|Current)', line))}"
            )
            time.sleep(chance.random() * 3)
            cluster.kill(self._first)
            cluster.topics("--create", "--topic", "late", "--partitions", "2", "--replication-factor", "2")
            cluster.kill(_BROKERS[1])  # the other one leads its partitions then, with a later epoch
            time.sleep(8 + chance.random() * 3)
            others = [each for each in _CONTROLLERS if each != self._first]
            if chance.random() < 0.5:  # a later epoch than that of the first
                again = chance.choice(others)
                cluster.kill(again)
                time.sleep(chance.random() * 2)
                cluster.start(again)
                time.sleep(1 + chance.random() * 3)
            for number in chance.sample([*others, _BROKERS[0]], 3):
                cluster.kill(number)
                time.sleep(chance.random() * 0.5)
        found = self.result(*_CONTROLLERS)
        voters = [each.node_id for each in found.quorum.voters or ()]
        self.holds(f"voters {voters}, dynamic: {found.quorum.is_dynamic}",
                   is_true=voters == list(_CONTROLLERS) and found.quorum.is_dynamic == self._is_dynamic)  # fmt: skip
        epoch = int(re.findall(r"LeaderEpoch:\s+(\d+)", described)[0])
        self.holds(f"epoch {epoch} was that of the quorum once", is_true=found.quorum.best.copy.end[0] >= epoch)

    def _elect(self, numbers: tuple[int, ...], held: int | None = None) -> None:
        """Start controllers on copies, and hold what they do against what quorum says of their directories."""
        said = self.result(*numbers)
        able = [node for node, is_able in said.quorum.can_lead.items() if is_able]
        ends = {each.node_id: each.end for each in said.quorum.members}
        emptied = {each.node_id for each in said.quorum.members if each.copy.epochs.log_start_offset == each.end[1]}
        work = Path(tempfile.mkdtemp(prefix="elect-", dir=self._work))
        again = ElectionCluster(self._lab, self._version, work, is_dynamic=self._is_dynamic)
        if self._is_dynamic:  # the voters' addresses are in the log
            for old, new in zip(self._cluster.nodes, again.nodes, strict=True):
                new.port, new.controller_port, new.configuration = old.port, old.controller_port, old.configuration
        for each in numbers:
            shutil.copytree(self._cluster.log_dir(each), again.log_dir(each))
        try:
            dead = {each for each in numbers if not _starts(again, each)}
            leader = self._leader(again, numbers, _SECONDS if able else _ALONE_SECONDS)
            time.sleep(2)
        finally:
            again.kill()
        refused = {each.node_id for each in said.quorum.members if each.copy.refusal}
        self.holds(f"{refused or 'none'} of {numbers} cannot start: {dead or 'none'}", is_true=refused == dead)
        self.holds(
            f"of {numbers}, {able or 'none'} can lead: {leader} does",
            is_true=(leader in able) if able else leader is None,
        )
        for each in set(numbers) - emptied - refused:
            loaded = [int(end) for end in _LOADED.findall(again.node(each).log_text)]
            self.holds(f"the log of node {each} ends at {ends[each][1]}: at {loaded}", is_true=ends[each][1] in loaded)
        if leader is None:
            return
        lines = (again.log_dir(leader) / _METADATA / "leader-epoch-checkpoint").read_text().split("\n")[2:]
        epoch, start = map(int, [each for each in lines if each][-1].split())
        self.holds(
            f"its epoch {epoch} begins at {start}", is_true=(start == ends[leader][1]) and epoch > ends[leader][0]
        )
        if held is not None:
            self.holds(f"it has what a majority had, up to {held}", is_true=start >= held)
        (other,) = [each for each in numbers if each != leader]
        paths = [again.log_dir(each) / _METADATA / _LOG for each in (leader, other)]
        if not all(each.exists() for each in paths):
            return  # one of them began anew, after its snapshot
        one, two = (each.read_bytes() for each in paths)
        size = min(len(one), len(two))
        self.holds(f"node {other} has the log of node {leader} then ({size} bytes)", is_true=one[:size] == two[:size])

    def _leader(self, cluster: ElectionCluster, numbers: Iterable[int], seconds: float) -> int | None:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            for each in numbers:
                if _LEADS.search(cluster.node(each).log_text):
                    return each
            time.sleep(0.3)
        return None

    def _damaged(self) -> Iterator[tuple[int, ...]]:
        """Pairs of controllers, each after a wound of one: a byte turns in its log, its log or a snapshot is cut."""
        chance = self._chance
        for what in ("turn", "cut", "snapshot"):
            pair = tuple(chance.sample(_CONTROLLERS, 2))
            metadata = self._cluster.log_dir(pair[0]) / _METADATA
            path = max(metadata.glob("*.checkpoint")) if what == "snapshot" else metadata / _LOG
            whole = path.read_bytes()
            content, at = bytearray(whole), chance.randrange(len(whole) // 2, len(whole))
            if what == "turn":
                content[at] ^= 1 << chance.randrange(8)
            else:
                del content[at:]
            path.write_bytes(content)
            print(f"       {what} at {at} in {path.name} of node {pair[0]}")
            yield pair
            path.write_bytes(whole)

    def _stale(self) -> None:
        """The stale metadata of the first controller, and the brokers' disks without their metadata logs."""
        stale = self._cluster.log_dir(self._first)
        brokers = []
        for each in _BROKERS:
            brokers.append(self._work / f"broker-{each}")
            shutil.copytree(self._cluster.log_dir(each), brokers[-1], ignore=shutil.ignore_patterns(_METADATA))
        said = quorum([Target(each) for each in (stale, *brokers)]).lost
        names, epochs = self._image(stale / _METADATA / _LOG)
        later, unknown = set(), set()
        for directory in (path for each in brokers for path in each.iterdir() if path.is_dir()):
            topic, _, number = directory.name.rpartition("-")
            topic_id = (directory / "partition.metadata").read_text().split()[-1]
            lines = (directory / "leader-epoch-checkpoint").read_text().split("\n")[2:]
            last = max((int(line.split()[0]) for line in lines if line), default=-1)
            if topic_id not in names:
                unknown.add((topic, int(number)))
            elif last > epochs[topic_id, int(number)]:
                later.add((topic, int(number)))
        found = {(each.topic, each.partition) for each in said.of(EPOCH)}
        self.holds(f"{len(later)} partitions have a later epoch on disk", is_true=found == later)
        found = {(each.topic, each.partition) for each in said.of(TOPIC)}
        self.holds(f"{len(unknown)} partitions are of topics that are lost", is_true=found == unknown)

    def _image(self, log: Path) -> tuple[set[str], dict[tuple[str, int], int]]:
        """The topic ids and the leader epochs in a metadata log, by kafka-dump-log."""
        told = self._lab.dump_log(self._version, "--cluster-metadata-decoder", "--files", log).stdout.decode()
        names: set[str] = set()
        epochs: dict[tuple[str, int], int] = {}
        for text in re.findall(r"payload: (\{.*\})", told):
            record = json.loads(text)
            data = record["data"]
            if record["type"] == "TOPIC_RECORD":
                names.add(data["topicId"])
            elif record["type"] == "PARTITION_RECORD":
                epochs[data["topicId"], data["partitionId"]] = data["leaderEpoch"]
            elif record["type"] == "PARTITION_CHANGE_RECORD" and data.get("leader", -2) != -2:
                epochs[data["topicId"], data["partitionId"]] += 1
        return names, epochs


def _starts(cluster: ElectionCluster, number: int) -> bool:
    try:
        cluster.start(number)
    except StartFailed:
        return False
    return True


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kafka", default="4.3.1")
    parser.add_argument("--quorum", choices=("static", "dynamic"), default="dynamic")
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    wrong = 0
    for seed in range(options.seed, options.seed + options.runs):
        print(f"run {seed}: {options.kafka}, {options.quorum}", flush=True)
        with tempfile.TemporaryDirectory(prefix="election-trials-") as work:
            run = Run(KafkaLab(), options.kafka, Path(work), is_dynamic=options.quorum == "dynamic", seed=seed)
            run.run()
            wrong += run.wrong
    print(f"{wrong} wrong")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
