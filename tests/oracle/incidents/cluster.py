"""Brokers on log directories of an incident, and what clients do with them."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.field.cluster import FieldCluster, Layout
from tests.oracle.kafka_lab import KafkaLab

_CLIENT = Path(__file__).with_name("IncidentClient.java")
_JAVA = ["-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
HOUR = 3_600_000
ENDLESS = str(2**63 - 1)
SETTINGS = {
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.num.partitions": "4",
    "log.index.size.max.bytes": "131072",
    "offsets.topic.segment.bytes": "104857600",
    "transaction.remove.expired.transaction.cleanup.interval.ms": "3600000",
    "metadata.log.max.record.bytes.between.snapshots": "20971520",
    "log.segment.delete.delay.ms": "500",
    "auto.create.topics.enable": "false",
}

Step = dict[str, Any]


class Running(FieldCluster):
    """Nodes that run on copies of log directories of other runs, or on new ones."""

    classes: Path
    _paused: tuple[int, ...] = ()

    @property
    def bootstrap(self) -> str:
        """The brokers that answer."""
        running = [each for each in self.nodes if each.process is not None and not each.is_controller]
        return ",".join(f"127.0.0.1:{each.port}" for each in running if each.number not in self._paused)

    def pause(self, *numbers: int) -> None:
        super().pause(*numbers)
        self._paused = numbers

    def resume(self, *numbers: int) -> None:
        super().resume(*numbers)
        self._paused = ()

    def do(self, *steps: Step, timeout: float = 300) -> list[Any]:
        """Let a client do these steps; what it was told at each."""
        spec = self.work / "spec.json"
        spec.write_text(json.dumps(steps))
        done = subprocess.run(self.client(spec), capture_output=True, text=True, timeout=timeout, check=False)
        assert done.returncode == 0, (done.stdout[-500:], done.stderr[-3000:])
        return [json.loads(line) for line in done.stdout.splitlines() if line[:1] in '[{"0123456789-']

    def client(self, spec: Path) -> list[str]:
        """The command of a client that does the steps of a file."""
        command = self.lab.java_command(self.version, _JAVA, extra=[self.classes, *self.lab.logging_jars()])
        return [*command, "IncidentClient", self.bootstrap, str(spec)]

    def log_dir(self, number: int = 1) -> Path:
        return self.node(number).log_dirs[0]


class Lab:
    """Makes clusters in a folder, and keeps the log directories of a shop in order, from which incidents begin."""

    def __init__(self, version: str, work: Path) -> None:
        self.kafka, self.version, self.work = KafkaLab(), version, work
        self._classes = work / f"classes-{version}"
        self._count = 0

    def missing(self) -> str | None:
        return self.kafka.missing(self.version)

    @contextmanager
    def cluster(
        self,
        nodes: int = 1,
        *,
        start: Mapping[int, Path] | None = None,
        running: tuple[int, ...] = (),
        settings: Mapping[str, str] | None = None,
        version: str | None = None,
        dirs: int = 1,
        roles: Mapping[str, str] | None = None,
    ) -> Iterator[Running]:
        """A running cluster, on copies of these log directories by node; ``running`` nodes, or all.

        ``roles`` has the configurations of a broker, node 1, and of a controller, node 2.
        """
        self._count += 1
        work = self.work / f"run-{self._count}"
        brokers = nodes if roles is None else 1
        replicas = {
            "offsets.topic.replication.factor": str(brokers),
            "transaction.state.log.replication.factor": str(brokers),
        }
        layout = Layout(nodes=nodes, dirs=dirs, settings=SETTINGS | replicas | dict(settings or {}))
        cluster = Running(self.kafka, version or self.version, work, layout)
        cluster.classes = self._compiled()
        if roles is not None:
            broker, controller = cluster.nodes
            broker.configuration = roles["broker"].format(
                node=1, port=broker.port, controller_port=controller.controller_port
            )
            controller.configuration = roles["controller"].format(node=2, controller_port=controller.controller_port)
            controller.is_controller = True
        for number, path in (start or {}).items():
            copied(path, cluster.log_dir(number))
        try:
            if start is None:
                for node in cluster.nodes:
                    cluster._format(node)
            cluster.start(*running)
            yield cluster
        finally:
            cluster.kill()
            shutil.rmtree(work, ignore_errors=True)

    def _compiled(self) -> Path:
        if not self._classes.exists():
            self._classes.mkdir(parents=True)
            libraries = self.kafka.home / f"kafka-{self.version}" / "libs" / "*"
            command = ["javac", "-cp", str(libraries), "-d", str(self._classes), str(_CLIENT)]
            subprocess.run(command, check=True, capture_output=True, timeout=120)
        return self._classes

    def shop(self, nodes: int) -> dict[int, Path]:
        """The log directories of a shop of one or three nodes, stopped cleanly; nothing is wrong with them."""
        folder = self.work / f"shop-{nodes}"
        found = {number: folder / f"node-{number}" for number in range(1, nodes + 1)}
        if not folder.exists():
            with self.cluster(nodes) as cluster:
                fill(cluster, nodes)
                cluster.stop()
                keep(cluster, folder)
        return found

    def batches(self, log: Path) -> list[dict[str, int]]:
        """The batches of a log, as Kafka's own tool prints them."""
        found = []
        for line in self.kafka.dump_log(self.version, "--files", log).stdout.decode(errors="replace").splitlines():
            if line.startswith("baseOffset:"):
                words = line.split()
                row = dict(zip(words[::2], words[1::2], strict=False))
                found.append(
                    {
                        name.rstrip(":"): int(row[name])
                        for name in ("baseOffset:", "lastOffset:", "count:", "position:", "size:")
                    }
                )
        return found


def fill(cluster: Running, nodes: int) -> None:
    """A shop: orders by customers, payments in transactions, a compacted table, two groups that are up to date."""
    now = int(time.time() * 1000)
    spread = [[(first + each) % nodes + 1 for each in range(nodes)] for first in range(3)]
    least = {"min.insync.replicas": "2"} if nodes > 1 else {}
    order = '{"order":"order-%d","customer":"Erika Mustermann","city":"Hildesheim","amount":%d}'
    steps: list[Step] = [
        {"do": "create", "topic": "orders", "assignment": spread, "configs": least},
        {"do": "create", "topic": "payments", "assignment": spread[:2], "configs": least},
        {
            "do": "create",
            "topic": "customers",
            "assignment": spread[:1],
            "configs": least | {"cleanup.policy": "compact"},
        },
        {"do": "create", "topic": "clicks", "assignment": spread, "configs": least},
        {
            "do": "send",
            "topic": "orders",
            "count": 1500,
            "key": "customer-%d",
            "keys": 200,
            "value": order,
            "time": now - 20 * HOUR,
            "every_ms": 40_000,
        },
        {
            "do": "send",
            "topic": "customers",
            "count": 300,
            "key": "customer-%d",
            "value": '{"name":"Erika Mustermann","id":%d}',
        },
        {
            "do": "send",
            "topic": "clicks",
            "count": 900,
            "key": "session-%d",
            "keys": 90,
            "value": "/shop/item/%d",
            "time": now - 2 * HOUR,
            "every_ms": 5000,
        },
    ]
    for at in range(4):
        steps.append(
            {
                "do": "send",
                "topic": "payments",
                "count": 50,
                "from": 50 * at,
                "key": "order-%d",
                "value": '{"order":"order-%d","iban":"DE02120300000000202051"}',
                "transactional_id": "payments-service",
                "transaction": "commit",
            }
        )
    ends = {f"{topic}-{partition}": 0 for topic, count in (("orders", 3), ("clicks", 3)) for partition in range(count)}
    told = cluster.do(*steps)
    for topic, records in (("orders", told[4]), ("clicks", told[6])):
        for partition, offset, _ in records:
            ends[f"{topic}-{partition}"] = max(ends[f"{topic}-{partition}"], offset + 1)
    billing = {name: end for name, end in ends.items() if name.startswith("orders")}
    cluster.do(
        {"do": "commit", "group": "billing-app", "offsets": billing},
        {"do": "commit", "group": "statistics", "offsets": ends},
        {"do": "elect"},
    )


def copied(source: Path, target: Path) -> None:
    """A copy of a log directory without its lock; holes of preallocated indexes stay holes."""
    target.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(["cp", "-a", "--sparse=always", str(source), str(target)], check=True)
    (target / ".lock").unlink(missing_ok=True)


def keep(cluster: Running, folder: Path, *numbers: int) -> None:
    """Copy the log directories of nodes, or of all, to FOLDER/node-N."""
    for node in cluster.nodes:
        if not numbers or node.number in numbers:
            for at, path in enumerate(node.log_dirs):
                copied(path, folder / (f"node-{node.number}" if at == 0 else f"node-{node.number}-disk-{at + 1}"))


def turn(path: Path, position: int, mask: int = 0x01) -> None:
    """Change bits of one byte of a file."""
    with path.open("r+b") as file:
        file.seek(position)
        byte = file.read(1)[0]
        file.seek(position)
        file.write(bytes([byte ^ mask]))


def offsets_of(records: list[list[int]], partition: int) -> list[int]:
    """The offsets that the broker gave to records of a partition."""
    return [offset for number, offset, _ in records if number == partition]
