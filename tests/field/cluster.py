"""Real brokers of any release on loopback ports: one to three nodes, with KRaft or with a ZooKeeper of their own."""

from __future__ import annotations

import base64
import re
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

from format.layout import META_PROPERTIES
from tests.oracle.kafka_lab import KafkaLab
from tests.ports import free_ports

_ZOOKEEPER_VERSION = "2.8.2"  # its ZooKeeper serves every release that still needs one
_COMMON = """\
offsets.topic.replication.factor=1
offsets.topic.num.partitions=2
log.index.size.max.bytes=65536
log.cleaner.backoff.ms=500
log.cleaner.dedupe.buffer.size=16777216
log.retention.check.interval.ms=1000
group.initial.rebalance.delay.ms=0
controlled.shutdown.max.retries=1
default.replication.factor=1
min.insync.replicas=1
replica.lag.time.max.ms=4000
"""
_TRANSACTIONS = """\
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=2
"""
_KRAFT = """\
process.roles=broker,controller
node.id={node}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
inter.broker.listener.name=PLAINTEXT
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
share.coordinator.state.topic.num.partitions=2
broker.session.timeout.ms=3000
broker.heartbeat.interval.ms=500
metadata.log.max.record.bytes.between.snapshots=8192
log.initial.task.delay.ms=500
"""
_ZOOKEEPER = """\
broker.id={node}
host.name=127.0.0.1
port={port}
listeners=PLAINTEXT://127.0.0.1:{port}
advertised.host.name=127.0.0.1
advertised.port={port}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
zookeeper.connect=127.0.0.1:{zookeeper_port}
zookeeper.session.timeout.ms=6000
log.cleaner.enable=true
"""
_LOG4J = """\
log4j.rootLogger=INFO, out
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=%p %m (%c)%n
log4j.logger.org.apache.zookeeper=WARN
"""
_STARTED = re.compile(r"Kafka Server started|started \(kafka\.server\.KafkaServer\)")
_START_SECONDS = 150
_SESSION_SECONDS = 10
_JAVA = ["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]


@dataclass
class FieldNode:
    """One broker: its number, its log directories, and its process while it runs."""

    number: int
    log_dirs: list[Path]
    port: int
    controller_port: int
    output: Path
    configuration: str = ""  # in place of the usual one
    is_controller: bool = False  # and nothing else: it is stopped after the brokers
    process: subprocess.Popen[bytes] | None = None
    starts: list[Path] = field(default_factory=list)  # what it printed, a file for each start

    @property
    def log_text(self) -> str:
        """What it printed since its last start."""
        return self.starts[-1].read_text(errors="backslashreplace") if self.starts else ""


@dataclass(frozen=True)
class Layout:
    """How a cluster is laid out, and the settings that a scenario wants."""

    nodes: int = 1
    dirs: int = 1
    zookeeper: bool = False
    dynamic_voters: bool = False  # node 1 alone votes at first, or all nodes with ``all_vote``
    all_vote: bool = False
    release: str | None = None  # the metadata.version to format with
    settings: Mapping[str, str] = field(default_factory=dict)
    settings_of: Callable[[Path], dict[str, str]] | None = None  # those that depend on the working directory
    extra_jars: Callable[[str], list[Path]] | None = None  # of a release


class FieldCluster:
    """The context in which its brokers run; ``version`` may be changed while they are stopped."""

    def __init__(self, lab: KafkaLab, version: str, work: Path, layout: Layout) -> None:
        self.lab, self.version, self.work, self.layout = lab, version, work, layout
        work.mkdir(parents=True, exist_ok=True)
        ports = free_ports(2 * layout.nodes + 1)
        self.zookeeper_port = ports.pop()
        self.settings = dict(layout.settings)
        if layout.settings_of is not None:
            self.settings |= layout.settings_of(work)
        self._extra_jars = [] if layout.extra_jars is None else layout.extra_jars(version)
        self._zookeeper: subprocess.Popen[bytes] | None = None
        self._killed_at = -1000.0
        self.nodes = [
            FieldNode(number, [work / f"node-{number}-{each}" for each in range(layout.dirs)], ports.pop(), ports.pop(),
                      work / f"node-{number}.out")
            for number in range(1, layout.nodes + 1)
        ]  # fmt: skip
        (work / "log4j.properties").write_text(_LOG4J)

    @property
    def bootstrap(self) -> str:
        return ",".join(f"127.0.0.1:{node.port}" for node in self.nodes if not node.is_controller)

    @property
    def has_zookeeper(self) -> bool:
        """Whether a node is configured for ZooKeeper, as all are before a migration ends."""
        return any("zookeeper.connect=" in (node.configuration or _ZOOKEEPER) for node in self.nodes) and (
            self.layout.zookeeper
        )

    def node(self, number: int) -> FieldNode:
        return self.nodes[number - 1]

    @property
    def numbers(self) -> list[int]:
        """The release as numbers, 0.8.2.2 as [0, 8, 2, 2]."""
        return [int(each) for each in self.version.split(".")]

    def __enter__(self) -> Self:
        try:
            if self.layout.zookeeper:
                self._start_zookeeper()
            else:
                for node in self.nodes:
                    self._format(node)
            self.start()
        except BaseException:
            self._end_all()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end_all()

    def start(self, *numbers: int) -> None:
        """Start the nodes with these numbers, or all, and wait until they serve."""
        chosen = [node for node in self.nodes if not numbers or node.number in numbers]
        if self.layout.zookeeper:  # it keeps the sessions of brokers that were killed, until they expire
            time.sleep(max(0.0, self._killed_at + _SESSION_SECONDS - time.monotonic()))
        for node in chosen:
            self._launch(node)
        for node in chosen:
            self._wait(node)

    def stop(self, *numbers: int) -> None:
        """Stop nodes cleanly; the last of a cluster is killed where it does not end by itself."""
        running = [node for node in self.nodes if (not numbers or node.number in numbers) and node.process is not None]
        self._stop([node for node in running if not node.is_controller])
        self._stop([node for node in running if node.is_controller])

    def _stop(self, chosen: list[FieldNode]) -> None:
        for node in chosen:
            assert node.process is not None
            node.process.send_signal(signal.SIGTERM)
        for node in chosen:
            assert node.process is not None
            try:
                node.process.wait(60)
            except subprocess.TimeoutExpired:
                node.process.kill()
                node.process.wait()
            node.process = None

    def kill(self, *numbers: int) -> None:
        """End nodes as a crash does."""
        for node in self.nodes:
            if (not numbers or node.number in numbers) and node.process is not None:
                node.process.kill()
                node.process.wait()
                node.process = None
                self._killed_at = time.monotonic()

    def pause(self, *numbers: int) -> None:
        for number in numbers:
            process = self.node(number).process
            assert process is not None
            process.send_signal(signal.SIGSTOP)

    def resume(self, *numbers: int) -> None:
        for number in numbers:
            process = self.node(number).process
            assert process is not None
            process.send_signal(signal.SIGCONT)

    def tool(self, main_class: str, *words: str, version: str | None = None, timeout: float = 120) -> str:
        """A command-line tool of the release, to its end; its standard output."""
        command = [*self._java(version or self.version, 256), main_class, *words]
        done = subprocess.run(command, capture_output=True, timeout=timeout, check=False)
        assert done.returncode == 0, (done.stdout + done.stderr).decode(errors="backslashreplace")[-3000:]
        return done.stdout.decode(errors="backslashreplace")

    def _java(self, version: str, megabytes: int) -> list[str]:
        options = [f"-Xmx{megabytes}m", *_JAVA, f"-Dlog4j.configuration=file:{self.work / 'log4j.properties'}"]
        if version.startswith(("0.", "1.")):
            options.append("-Djava.security.manager=allow")
        return self.lab.java_command(version, options, extra=[*self.lab.logging_jars(), *self._extra_jars])

    def _properties(self, node: FieldNode) -> Path:
        kind = _ZOOKEEPER if self.layout.zookeeper else _KRAFT
        text = kind.format(
            node=node.number, port=node.port, controller_port=node.controller_port, zookeeper_port=self.zookeeper_port
        )
        text = node.configuration or text
        text += _COMMON + (_TRANSACTIONS if self.numbers >= [0, 11] else "")
        text += f"log.dirs={','.join(map(str, node.log_dirs))}\n"
        if not self.layout.zookeeper and not node.configuration:
            if self.layout.dynamic_voters:
                servers = ",".join(f"127.0.0.1:{each.controller_port}" for each in self.nodes)
                text += f"controller.quorum.bootstrap.servers={servers}\n"
                text += f"advertised.listeners=PLAINTEXT://127.0.0.1:{node.port},CONTROLLER://127.0.0.1:{node.controller_port}\n"
            else:
                voters = ",".join(f"{each.number}@127.0.0.1:{each.controller_port}" for each in self.nodes)
                text += f"controller.quorum.voters={voters}\n"
        text += "".join(f"{name}={value}\n" for name, value in self.settings.items())
        path = self.work / f"node-{node.number}.properties"
        path.write_text(text)
        return path

    def with_controller(self, configuration: str, cluster_id: str) -> FieldNode:
        """Add a controller of its own, with a formatted directory; it is not started."""
        number = len(self.nodes) + 1
        port, controller_port = free_ports(2)
        node = FieldNode(
            number, [self.work / f"node-{number}-0"], port, controller_port, self.work / f"node-{number}.out"
        )
        node.configuration = configuration.format(node=number, controller_port=controller_port)
        node.is_controller = True
        self._format(node, cluster_id)
        self.nodes.append(node)
        return node

    def _format(self, node: FieldNode, cluster_id: str = "fieldfieldfieldfieldfg") -> None:
        """Prepare a node's directories, unless they are those of a node that ran before."""
        if (node.log_dirs[0] / META_PROPERTIES).exists():
            return
        words = ["format", "--config", str(self._properties(node)), f"--cluster-id={cluster_id}"]
        if self.layout.release is not None:
            words += ["--release-version", self.layout.release]
        if self.layout.all_vote:
            words += ["--initial-controllers", ",".join(map(_voter, self.nodes))]
        elif self.layout.dynamic_voters:
            words.append("--standalone" if node.number == 1 else "--no-initial-controllers")
        self.tool("kafka.tools.StorageTool", *words)

    def _start_zookeeper(self) -> None:
        data = self.work / "zookeeper"
        data.mkdir(exist_ok=True)
        command = self.lab.java_command(
            _ZOOKEEPER_VERSION, ["-Xmx128m", *_JAVA, "-Dzookeeper.admin.enableServer=false"],
            extra=self.lab.logging_jars(),
        )  # fmt: skip
        main = ["org.apache.zookeeper.server.ZooKeeperServerMain", str(self.zookeeper_port), str(data)]
        with (self.work / "zookeeper.out").open("wb") as output:
            self._zookeeper = subprocess.Popen([*command, *main], stdout=output, stderr=output)
        time.sleep(3)

    def _launch(self, node: FieldNode) -> None:
        output = self.work / f"node-{node.number}-start-{len(node.starts)}.out"
        node.starts.append(output)
        for each in node.log_dirs:
            each.mkdir(exist_ok=True)
        command = [*self._java(self.version, 400), "kafka.Kafka", str(self._properties(node))]
        with output.open("wb") as file:
            node.process = subprocess.Popen(command, stdout=file, stderr=file, stdin=subprocess.DEVNULL)

    def _wait(self, node: FieldNode) -> None:
        end = time.monotonic() + _START_SECONDS
        while not _STARTED.search(node.log_text):
            assert node.process is not None
            if node.process.poll() is not None or time.monotonic() > end:
                raise StartFailed(f"node {node.number} did not start: {_errors(node.log_text)}")
            time.sleep(0.2)

    def _end_all(self) -> None:
        self.kill()
        if self._zookeeper is not None:
            self._zookeeper.kill()
            self._zookeeper.wait()


def _voter(node: FieldNode) -> str:
    """A voter as the storage tool wants it, with the ID that its directory is to get."""
    directory_id = base64.urlsafe_b64encode(bytes([node.number]) * 16).decode().rstrip("=")
    return f"{node.number}@127.0.0.1:{node.controller_port}:{directory_id}"


class StartFailed(Exception):
    """A broker ended or did not serve in time."""


def _errors(text: str) -> str:
    lines = [line for line in text.splitlines() if line.startswith(("ERROR", "FATAL", "Exception", "Caused"))]
    return " / ".join(lines[:4]) or text[-1500:]
