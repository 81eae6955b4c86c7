"""Trials of rebuild-quorum with real clusters under load, whose controllers are killed and lost at a random moment.

python -m tests.oracle.rebuild_trials [--runs N] [--seed S] [--only REGEX] [--keep DIR]
"""

from __future__ import annotations

import base64
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from tests.oracle.kafka_lab import KafkaLab
from tests.ports import free_ports

_CLIENT = Path(__file__).with_name("RebuildClient.java")
_CLIENT_VERSION = "4.3.1"
_CLUSTER_ID = "rebuildrebuildrebuildw"
_JAVA = ["-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
_LOG4J = """\
log4j.rootLogger=INFO, out
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=%d{HH:mm:ss,SSS} %p %m (%c)%n
"""
_COMMON = """\
node.id={node}
log.dirs={log_dir}
controller.listener.names=CONTROLLER
controller.quorum.election.timeout.ms=600
controller.quorum.fetch.timeout.ms=1500
metadata.log.max.record.bytes.between.snapshots=20000
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
super.users=User:ANONYMOUS
allow.everyone.if.no.acl.found=true
offsets.topic.num.partitions=2
transaction.state.log.num.partitions=2
transaction.state.log.min.isr=1
group.initial.rebalance.delay.ms=0
log.index.size.max.bytes=65536
log.cleaner.dedupe.buffer.size=16777216
broker.session.timeout.ms=4000
broker.heartbeat.interval.ms=500
controlled.shutdown.max.retries=1
replica.lag.time.max.ms=6000
auto.create.topics.enable=false
"""
_ROLES = {
    "controller": "process.roles=controller\nlisteners=CONTROLLER://127.0.0.1:{controller_port}\n",
    "broker": (
        "process.roles=broker\nlisteners=PLAINTEXT://127.0.0.1:{port}\ninter.broker.listener.name=PLAINTEXT\n"
        "advertised.listeners=PLAINTEXT://127.0.0.1:{port}\n"
    ),
    "broker,controller": (
        "process.roles=broker,controller\ninter.broker.listener.name=PLAINTEXT\n"
        "listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}\n"
        "advertised.listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}\n"
    ),
}
_START_SECONDS = 120


class Shape(msgspec.Struct, frozen=True):
    """A kind of cluster: release, static or dynamic voters, and combined or separate roles."""

    version: str
    is_dynamic: bool
    is_combined: bool

    def __str__(self) -> str:
        voters, roles = "dynamic" if self.is_dynamic else "static", "combined" if self.is_combined else "separate"
        return f"{self.version} {voters} {roles}"


SHAPES = [Shape(version, dynamic, combined) for version, dynamic, combined in (
    ("4.3.1", True, False), ("3.9.1", False, False), ("3.9.1", True, False),
    ("4.3.1", True, True), ("3.9.1", False, True), ("4.3.1", False, False),
)]  # fmt: skip


class Node:
    """One process of the cluster, and its log directory."""

    def __init__(self, number: int, role: str, work: Path) -> None:
        self.number, self.role = number, role
        self.port, self.controller_port = free_ports(2)
        self.log_dir = work / f"node-{number}"
        self.properties = work / f"node-{number}.properties"
        self.output = work / f"node-{number}.out"
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def is_controller(self) -> bool:
        return "controller" in self.role

    @property
    def is_broker(self) -> bool:
        return "broker" in self.role

    @property
    def directory_id(self) -> str:
        return base64.urlsafe_b64encode(bytes([self.number + 16]) * 16).decode().rstrip("=")

    @property
    def log_text(self) -> str:
        return self.output.read_text(errors="backslashreplace") if self.output.exists() else ""


class Cluster:
    """The context of three controllers and three brokers, or of three nodes that are both."""

    def __init__(self, lab: KafkaLab, shape: Shape, work: Path) -> None:
        self.lab, self.shape, self.work = lab, shape, work
        work.mkdir(parents=True, exist_ok=True)
        (work / "log4j.properties").write_text(_LOG4J)
        roles = ["broker,controller"] * 3 if shape.is_combined else ["controller"] * 3 + ["broker"] * 3
        self.nodes = {number: Node(number, role, work) for number, role in enumerate(roles, 1)}
        self.controllers = [each for each in self.nodes.values() if each.is_controller]
        self.brokers = [each for each in self.nodes.values() if each.is_broker]
        self.clients: list[subprocess.Popen[bytes]] = []

    # -- the processes ---------------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        for node in self.nodes.values():
            self._configure(node)
        self._format()
        self.start(*self.nodes)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for client in self.clients:
            client.kill()
            client.wait()
        self.kill(*self.nodes)

    def _configure(self, node: Node) -> None:
        text = (_COMMON + _ROLES[node.role]).format(
            node=node.number, log_dir=node.log_dir, port=node.port, controller_port=node.controller_port
        )
        for topic in ("offsets.topic", "transaction.state.log", "share.coordinator.state.topic"):
            text += f"{topic}.replication.factor=3\n"
        addresses = [f"127.0.0.1:{each.controller_port}" for each in self.controllers]
        if self.shape.is_dynamic:
            text += f"controller.quorum.bootstrap.servers={','.join(addresses)}\n"
        else:
            voters = [f"{each.number}@{address}" for each, address in zip(self.controllers, addresses, strict=True)]
            text += f"controller.quorum.voters={','.join(voters)}\n"
        node.properties.write_text(text)

    def _format(self) -> None:
        """Format the first node with the tool; the others get its files with their own ids."""
        first, *others = self.nodes.values()
        words = ["format", "--config", str(first.properties), "--cluster-id", _CLUSTER_ID]
        if self.shape.is_dynamic:
            voters = (
                f"{each.number}@127.0.0.1:{each.controller_port}:{each.directory_id}" for each in self.controllers
            )
            words += ["--initial-controllers", ",".join(voters)]
        command = [*self._java(self.shape.version), "kafka.tools.StorageTool", *words]
        done = subprocess.run(command, capture_output=True, timeout=120, check=False)
        assert done.returncode == 0, (done.stdout + done.stderr).decode()[-3000:]
        text = (first.log_dir / "meta.properties").read_text()
        for node in (first, *others):
            if node is not first:
                if node.is_controller:
                    shutil.copytree(first.log_dir, node.log_dir)
                else:
                    node.log_dir.mkdir()
            own = re.sub(r"(?m)^node.id=.*$", f"node.id={node.number}", text)
            own = re.sub(r"(?m)^directory.id=.*$", f"directory.id={node.directory_id}", own)
            (node.log_dir / "meta.properties").write_text(own)

    def _java(self, version: str) -> list[str]:
        options = [*_JAVA, f"-Dlog4j.configuration=file:{self.work / 'log4j.properties'}"]
        return self.lab.java_command(version, options, extra=self.lab.logging_jars())

    def start(self, *numbers: int, wait: bool = True) -> None:
        for number in numbers:
            node = self.nodes[number]
            with node.output.open("wb") as output:
                command = [*self._java(self.shape.version), "kafka.Kafka", str(node.properties)]
                node.process = subprocess.Popen(command, stdout=output, stderr=output, stdin=subprocess.DEVNULL)
        for number in numbers if wait else ():
            self.wait(number)

    def wait(self, number: int) -> None:
        """Wait until a node serves."""
        node, end = self.nodes[number], time.monotonic() + _START_SECONDS
        while "Kafka Server started" not in node.log_text:
            assert node.process is not None
            is_waiting = node.process.poll() is None and time.monotonic() < end
            assert is_waiting, f"node {number} did not start: {node.log_text[-4000:]}"
            time.sleep(0.2)

    def kill(self, *numbers: int) -> None:
        for number in numbers:
            process = self.nodes[number].process
            if process is not None:
                process.kill()
        for number in numbers:
            process = self.nodes[number].process
            if process is not None:
                process.wait()
            self.nodes[number].process = None

    def stop(self, *numbers: int) -> None:
        for number in numbers:
            process = self.nodes[number].process
            if process is not None:
                process.send_signal(signal.SIGTERM)
        for number in numbers:
            process = self.nodes[number].process
            if process is not None:
                try:
                    process.wait(40)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()
            self.nodes[number].process = None

    # -- the clients -----------------------------------------------------------------------------------------

    @property
    def bootstrap(self) -> str:
        return ",".join(f"127.0.0.1:{each.port}" for each in self.brokers)

    def _client(self, *words: str) -> list[str]:
        classes = self.work.parent / "classes"
        if not classes.exists():
            classes.mkdir()
            libraries = self.lab.home / f"kafka-{_CLIENT_VERSION}" / "libs" / "*"
            subprocess.run(
                ["javac", "-cp", str(libraries), "-d", str(classes), str(_CLIENT)], check=True, capture_output=True
            )
        options = [*_JAVA, f"-Dlog4j.configuration=file:{self.work / 'log4j.properties'}"]
        return [
            *self.lab.java_command(_CLIENT_VERSION, options, extra=[classes]),
            "RebuildClient",
            self.bootstrap,
            *words,
        ]

    def do(self, *words: str, timeout: float = 180) -> list[str]:
        """Let a client do something, to its end; the lines of its standard output."""
        done = subprocess.run(self._client(*words), capture_output=True, timeout=timeout, check=False)
        assert done.returncode == 0, (done.stdout[-500:], done.stderr.decode()[-3000:])
        return done.stdout.decode().splitlines()

    def load(self) -> Path:
        """Start clients that work until they are killed; the file of what they were told."""
        told = self.work / f"load-{len(self.clients)}.tsv"
        with (self.work / f"load-{len(self.clients)}.err").open("wb") as output:
            self.clients.append(subprocess.Popen(self._client("load", str(told)), stdout=output, stderr=output))
        return told
