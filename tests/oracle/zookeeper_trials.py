"""Trials of boot on a node of a cluster with ZooKeeper, which 3.9 is the last to support.

    python -m tests.oracle.zookeeper_trials [--kafka 3.9.1] [--only REGEX] [--shuffle SEED] [--count N] [--minutes M]

The damages are those of ``tests.oracle.boot_trials``, and meta.properties of version 0. Each broker finds a root of its
own in one ZooKeeper, with the id of the cluster and its topics. What needs a metadata log is left out.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.corpora import SHARED_CORPUS, present
from tests.oracle.boot_mutations.node import METADATA, OTHER_ID, Mutation, Node, copied_node
from tests.oracle.boot_mutations.table import mutations
from tests.oracle.boot_trials import Comparison, Trials, run_all, table
from tests.oracle.kafka_lab import KafkaLab
from tests.ports import free_ports

_CLUSTER = "zookeeperzookeeperzooA"
_MOST_ROOTS = 300
_MADE = "was not predicted and is there"
_CONFIGURATION = """\
broker.id=1
listeners=PLAINTEXT://127.0.0.1:{port}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
zookeeper.connect=127.0.0.1:{zookeeper_port}/t{root}
zookeeper.session.timeout.ms=6000
log.dirs={log_dirs}
log.index.size.max.bytes=131072
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
log.initial.task.delay.ms=600000
"""
_JAVA = ["-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dzookeeper.admin.enableServer=false"]


class ZooKeeperTrials(Trials):
    """Trials whose brokers have a ZooKeeper."""

    settling_seconds = 3.0  # the controller gives a broker its partitions after its start
    zookeeper_port = 0
    _root = 0

    def compared(self, mutation: Mutation) -> Comparison:
        """One trial. A log that ZooKeeper assigns to the broker is made if it is not there: boot cannot know of it."""
        result = super().compared(mutation)
        result.differences = [each for each in result.differences if not each.endswith(_MADE)]
        return result

    def configuration(self, log_dirs: str, port: int, controller_port: int) -> str:
        self._root += 1
        return _CONFIGURATION.format(port=port, zookeeper_port=self.zookeeper_port, root=self._root, log_dirs=log_dirs)


def make_zookeeper_node(node: Node) -> Node:
    """Take away what KRaft needs, and write the meta.properties of a broker with ZooKeeper."""
    shutil.rmtree(node.partition(METADATA))
    (node.first / "bootstrap.checkpoint").unlink()
    (node.first / "meta.properties").write_text(f"version=0\nbroker.id=1\ncluster.id={_CLUSTER}\n")
    return node


def own_mutations() -> Iterator[Mutation]:
    """Odd meta.properties of version 0."""
    sound = f"version=0\nbroker.id=1\ncluster.id={_CLUSTER}\n"
    contents: dict[str, str | None] = {
        "sound": sound,
        "missing": None,
        "empty": "",
        "no version": sound.replace("version=0\n", ""),
        "version 1": sound.replace("version=0", "version=1").replace("broker.id", "node.id"),
        "version 1 with a broker id": sound.replace("version=0", "version=1"),
        "version 2": sound.replace("version=0", "version=2"),
        "version -1": sound.replace("version=0", "version=-1"),
        "version of words": sound.replace("version=0", "version=zero"),
        "no broker id": sound.replace("broker.id=1\n", ""),
        "another broker id": sound.replace("broker.id=1", "broker.id=7"),
        "broker id -1": sound.replace("broker.id=1", "broker.id=-1"),
        "broker id of words": sound.replace("broker.id=1", "broker.id=one"),
        "a node id": sound.replace("broker.id", "node.id"),
        "another node id beside it": sound + "node.id=7\n",
        "no cluster id": "version=0\nbroker.id=1\n",
        "another cluster id": sound.replace(_CLUSTER, OTHER_ID),
        "an empty cluster id": sound.replace(_CLUSTER, ""),
        "a directory id": sound + "directory.id=bbbbbbbbbbbbbbbbbbbbbQ\n",
        "a reserved directory id": sound + "directory.id=AAAAAAAAAAAAAAAAAAAAAA\n",
        "a directory id of words": sound + "directory.id=here\n",
        "an unknown key": sound + "more=1\n",
        "everything twice": sound + sound,
        "spaces": sound.replace("=", " = "),
    }  # fmt: skip
    for name, content in contents.items():
        yield Mutation("meta-properties-0", name, _with_meta(content))
    seconds: dict[str, str | None] = {
        "the same": sound,
        "none": None,
        "of another broker": sound.replace("broker.id=1", "broker.id=7"),
        "of another cluster": sound.replace(_CLUSTER, OTHER_ID),
        "of version 1": sound.replace("version=0", "version=1").replace("broker.id", "node.id"),
        "without a cluster": "version=0\nbroker.id=1\n",
        "garbage": "\x00\xff",
    }
    for name, content in seconds.items():
        yield Mutation("first-directory-0", name, _with_first(content, sound))
        yield Mutation("second-directory-0", name, lambda node, content=content: node.second(meta=content))


def _with_first(content: str | None, sound: str) -> Callable[[Node], None]:
    """Two log directories, of which the first has these properties."""

    def apply(node: Node) -> None:
        _with_meta(content)(node)
        node.second(meta=sound)

    return apply


def _with_meta(content: str | None) -> Callable[[Node], None]:
    def apply(node: Node) -> None:
        path = node.first / "meta.properties"
        path.unlink()
        if content is not None:
            path.write_text(content)

    return apply


def _topics(node: Node) -> dict[str, str]:
    """The znode of each topic of a node: its id, and its partitions on broker 1."""
    found: dict[str, dict[str, Any]] = {}
    for path in sorted(node.first.iterdir()):
        topic, _, number = path.name.rpartition("-")
        if path.is_dir() and number.isdigit():
            topic_id = (path / "partition.metadata").read_text().split("topic_id: ")[1].strip()
            empty: dict[str, Any] = {"adding_replicas": {}, "removing_replicas": {}, "partitions": {}}
            znode = found.setdefault(topic, {"version": 3, "topic_id": topic_id, **empty})
            znode["partitions"][number] = [1]
    return {topic: json.dumps(znode, separators=(",", ":")) for topic, znode in found.items()}


@contextmanager
def zookeeper(lab: KafkaLab, version: str, work: Path, node: Node) -> Iterator[int]:
    """A ZooKeeper with roots that have the cluster id and the topics of a node each; its port."""
    (port,) = free_ports(1)
    (work / "zookeeper").mkdir(parents=True)
    command = lab.java_command(version, _JAVA, extra=lab.logging_jars())
    main = "org.apache.zookeeper.server.ZooKeeperServerMain"
    with (work / "zookeeper.log").open("wb") as output:
        process = subprocess.Popen([*command, main, str(port), str(work / "zookeeper")], stdout=output, stderr=output)
    try:
        time.sleep(3)
        cluster = json.dumps({"version": "1", "id": _CLUSTER}, separators=(",", ":"))
        lines = []
        for root in range(1, _MOST_ROOTS):
            folders = ("", "/cluster", "/brokers", "/brokers/topics")
            lines += [f"create /t{root}{each} x" for each in folders]
            lines.append(f"create /t{root}/cluster/id '{cluster}'")
            lines += [f"create /t{root}/brokers/topics/{topic} '{text}'" for topic, text in _topics(node).items()]
        words = [*command, "org.apache.zookeeper.ZooKeeperMain", "-server", f"127.0.0.1:{port}"]
        subprocess.run(
            words, input="\n".join([*lines, "quit\n"]).encode(), capture_output=True, timeout=120, check=True
        )
        yield port
    finally:
        process.terminate()
        process.wait(30)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kafka", default="3.9.1")
    parser.add_argument("--only", default="")
    parser.add_argument("--shuffle", type=int, metavar="SEED")
    parser.add_argument("--count", type=int, default=0, help="so many of them; 0 for all")
    parser.add_argument("--minutes", type=float, default=0)
    parser.add_argument("--work", type=Path)
    parser.add_argument("--node", type=Path, default=SHARED_CORPUS / "kafka-4.3-single" / "node-1")
    options = parser.parse_args()
    chosen = [each for each in [*own_mutations(), *mutations()] if re.search(options.only, str(each))]
    if options.shuffle is not None:
        random.Random(options.shuffle).shuffle(chosen)
    chosen = chosen[: options.count or None]
    with tempfile.TemporaryDirectory(prefix="zookeeper-trials-") as scratch:
        work = options.work or Path(scratch)
        lab = KafkaLab()
        source = make_zookeeper_node(copied_node(present(options.node), work / "source")).first
        trials = ZooKeeperTrials(lab, options.kafka, source, work / "trials")
        with zookeeper(lab, options.kafka, work, Node(work, [source])) as port:
            trials.zookeeper_port = port
            trials.warm_up()
            results = run_all(trials, chosen, options.minutes)
    print(table(results))
    return 0 if not any(each.differences for each in results) else 1


if __name__ == "__main__":
    sys.exit(main())
