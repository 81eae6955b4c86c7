"""Trials of rebuild-quorum with real clusters under load, whose controllers are killed and lost at a random moment.

python -m tests.oracle.rebuild_trials [--runs N] [--first K] [--seed S] [--only REGEX] [--keep DIR]

Runs 0 to 19 rebuild the quorum as it was, runs 20 to 28 with --voter: controllers on another host and other ports, or
a single one, which others join later where the quorum is dynamic.
"""

from __future__ import annotations

import argparse
import base64
import json
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import msgspec

from tests.oracle.kafka_lab import KafkaLab
from tests.ports import free_ports

_CLIENT = Path(__file__).with_name("RebuildClient.java")
_CLIENT_VERSION = "4.3.1"
METADATA = "__cluster_metadata-0"
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
controller.quorum.election.timeout.ms=1500
controller.quorum.fetch.timeout.ms=5000
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
broker.session.timeout.ms=6000
initial.broker.registration.timeout.ms=240000
broker.heartbeat.interval.ms=500
controlled.shutdown.max.retries=1
replica.lag.time.max.ms=6000
auto.create.topics.enable=false
"""
_ROLES = {
    "controller": "process.roles=controller\nlisteners=CONTROLLER://{host}:{controller_port}\n",
    "broker": (
        "process.roles=broker\nlisteners=PLAINTEXT://127.0.0.1:{port}\ninter.broker.listener.name=PLAINTEXT\n"
        "advertised.listeners=PLAINTEXT://127.0.0.1:{port}\n"
    ),
    "broker,controller": (
        "process.roles=broker,controller\ninter.broker.listener.name=PLAINTEXT\n"
        "listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://{host}:{controller_port}\n"
        "advertised.listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://{host}:{controller_port}\n"
    ),
}
#: What docs/runbooks/lost-controllers.md does by ssh: copy a log directory, fill a new disk, replace the metadata.
_COPY = (
    "cd {source} && find . -type f \\( -path './__cluster_metadata-0/*' -o -name meta.properties "
    "-o -name partition.metadata -o -name '*checkpoint' -o -name '*.snapshot' \\) | tar cz -T - | tar xz -C {target}"
)
_FILL = "mkdir -p {log_dir} && tar c -C {made} . | tar x -C {log_dir}"
_REPLACE = (
    "mv {log_dir}/__cluster_metadata-0 {log_dir}.old-metadata && "
    "tar c -C {made} __cluster_metadata-0 | tar x -C {log_dir}"
)
_START_SECONDS = 240
_LOOPBACK, _OTHER_HOST = "127.0.0.1", "127.0.0.2"


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


#: The shapes of the trials with other voters, and whether these are elsewhere (or fewer).
_OTHER_VOTERS = [(SHAPES[number], is_moved) for number, is_moved in (
    (0, True), (0, False), (1, True), (1, False), (2, False), (3, False), (4, True), (4, False),
)]  # fmt: skip
_OTHER_VOTERS.append((Shape("3.8.1", is_dynamic=False, is_combined=False), False))


class Node:
    """One process of the cluster, and its log directory."""

    def __init__(self, number: int, role: str, work: Path) -> None:
        self.number, self.role = number, role
        self.host = _LOOPBACK  # of its controller listener
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
    def address(self) -> str:
        return f"{self.host}:{self.controller_port}"

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
        if self.shape.is_dynamic:
            quorum = f"controller.quorum.bootstrap.servers={','.join(each.address for each in self.controllers)}"
        else:
            voters = ",".join(f"{each.number}@{each.address}" for each in self.controllers)
            quorum = f"controller.quorum.voters={voters}"
        self.configure(quorum)
        self._format()
        try:
            self.start(*self.nodes)
        except BaseException:
            self.kill(*self.nodes)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for client in self.clients:
            client.kill()
            client.wait()
        self.kill(*self.nodes)

    def configure(self, quorum: str) -> None:
        """Write the configuration of all nodes, with this line about the quorum."""
        for node in self.nodes.values():
            text = (_COMMON + _ROLES[node.role]).format(
                node=node.number, log_dir=node.log_dir, port=node.port, host=node.host,
                controller_port=node.controller_port,
            )  # fmt: skip
            for topic in ("offsets.topic", "transaction.state.log", "share.coordinator.state.topic"):
                text += f"{topic}.replication.factor=3\n"
            node.properties.write_text(f"{text}{quorum}\n")

    def _format(self) -> None:
        """Format the first node with the tool; the others get its files with their own ids."""
        first, *others = self.nodes.values()
        voters = (f"{each.number}@{each.address}:{each.directory_id}" for each in self.controllers)
        self.format(first.number, *(["--initial-controllers", ",".join(voters)] if self.shape.is_dynamic else []))
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

    def format(self, number: int, *words: str) -> None:
        """Format the log directory of a node with Kafka's tool."""
        properties = str(self.nodes[number].properties)
        self.tool("kafka.tools.StorageTool", "format", "--config", properties, "--cluster-id", _CLUSTER_ID, *words)

    def tool(self, name: str, *words: str) -> str:
        """Run a tool of the release; its output."""
        command = [*self._java(self.shape.version), name, *words]
        done = subprocess.run(command, capture_output=True, timeout=120, check=False)
        assert done.returncode == 0, (done.stdout + done.stderr).decode()[-3000:]
        return done.stdout.decode()

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

    def do(self, *words: str, timeout: float = 400) -> list[str]:
        """Let a client do something, to its end; the lines of its standard output."""
        done = subprocess.run(self._client(*words), capture_output=True, timeout=timeout, check=False)
        assert done.returncode == 0, (done.stdout[-500:], done.stderr.decode()[-3000:])
        return done.stdout.decode().splitlines()

    def load(self, *words: str) -> Path:
        """Start clients that work until they are killed; the file of what they were told."""
        told = self.work / f"load-{len(self.clients)}.tsv"
        with (self.work / f"load-{len(self.clients)}.err").open("wb") as output:
            self.clients.append(subprocess.Popen(self._client("load", str(told), *words), stdout=output, stderr=output))
        return told


class Trial:
    """One cluster, its loss, and what is wrong afterwards."""

    def __init__(self, cluster: Cluster, chance: random.Random) -> None:
        self.cluster, self.chance = cluster, chance
        self.wrong: list[str] = []
        self.notes: list[str] = []
        self.said = ""  # by the last command in words

    def holds(self, words: str, is_true: bool) -> None:
        if not is_true:
            self.wrong.append(words)

    # -- what both kinds of trials do ------------------------------------------------------------------------

    def rebuild(self, paths: Iterable[Path], *words: str) -> list[dict[str, Any]]:
        """The rows of the command; a dry run, or the output in the folder ``rebuilt``."""
        program = [sys.executable, "-m", "kafkalog_cli", "rebuild-quorum", *map(str, paths), "--format", "jsonl"]
        done = subprocess.run([*program, *words], capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode in (0, 1), done.stderr
        self.said = done.stderr
        return [json.loads(line) for line in done.stdout.splitlines()]

    def install(self, nodes: Iterable[Node] | None = None) -> None:
        """Put the new directories in place of the lost ones; a node with a disk keeps all but its metadata."""
        for node in self.cluster.controllers if nodes is None else nodes:
            made = self.cluster.work / "rebuilt" / f"node-{node.number}"
            line = _REPLACE if (node.log_dir / METADATA).exists() else _FILL
            subprocess.run(line.format(log_dir=node.log_dir, made=made), shell=True, check=True)

    def lose(self, numbers: Iterable[int]) -> None:
        """Throw the disks of nodes away."""
        for number in numbers:
            shutil.rmtree(self.cluster.nodes[number].log_dir)

    def goes_on(self, told: Path, words: str, least: int) -> None:
        """Wait until clients are told of so many more things of a kind."""
        before, end = count_of(told, words), time.monotonic() + 90
        while count_of(told, words) < before + least:
            if time.monotonic() > end:
                self.wrong.append(f"clients got {count_of(told, words) - before} times {words!r} after the rebuild")
                return
            time.sleep(0.5)

    def check_records(self, told: Path) -> None:
        """Stop the clients; every record that was acknowledged must be there."""
        for client in self.cluster.clients:
            client.kill()
            client.wait()
        sent = {line.split("\t", 2)[2] for line in told.read_text().splitlines() if "\tsent\t" in line}
        there = set(self.cluster.do("read", "orders", "ledger"))
        self.notes.append(f"{len(sent)} records acknowledged")
        missing = sorted(sent - there)
        self.holds(f"{len(missing)} acknowledged records are lost, such as {missing[:3]}", not missing)
        died = [line for line in told.read_text().splitlines() if "\tdied" in line or "\tfailed" in line]
        self.holds(f"clients failed: {died[:2]}", not died)

    def settled(self) -> list[str]:
        """The state, when every partition has a leader and all brokers are there."""
        end = time.monotonic() + 60
        while True:
            found = self.cluster.do("state")
            brokers = sum(line.startswith("broker ") for line in found)
            leaderless = [line for line in found if line.startswith("leaderless")]
            if (brokers == 3 and not leaderless) or time.monotonic() > end:
                self.holds(f"{brokers} brokers registered", brokers == 3)
                self.holds(f"without a leader: {leaderless[:5]}", not leaderless)
                return found
            time.sleep(1)

    # -- the trials ------------------------------------------------------------------------------------------

    def _live(self) -> tuple[Path, list[str]]:
        """Fill the cluster and start the clients; the file of what they are told, and the state a while before now."""
        self.cluster.do("fill", "3")
        told = self.cluster.load()
        while count_of(told, "done\ttopic") < 3:
            time.sleep(0.2)
        before = self.cluster.do("state")
        time.sleep(self.chance.uniform(0, 4))
        return told, before

    def lost_controllers(self, lost_count: int) -> None:
        """Controllers are killed and lost under load; the best copy that is left is taken."""
        cluster, chance = self.cluster, self.chance
        told, before = self._live()
        lost = chance.sample([each.number for each in cluster.controllers], lost_count)
        killed_at = time.time() * 1000
        cluster.kill(*lost)
        self.lose(lost)
        self.notes.append(f"lost {sorted(lost)}")
        time.sleep(chance.uniform(0, 6))
        cluster.kill(*(each.number for each in cluster.controllers))
        acknowledged = told.read_text().splitlines()
        self._rebuild_from_rest()
        self.install()
        cluster.start(*(each.number for each in cluster.controllers))
        after = self._check_state(told, before)
        self._check_acknowledged(acknowledged, after, killed_at, lost_count)
        self.check_records(told)

    def _rebuild_from_rest(self, *words: str, is_copied: bool = False) -> None:
        """Rebuild from all that is left, or copies without segments; nothing of the metadata is lost."""
        paths = [each.log_dir for each in self.cluster.nodes.values() if each.log_dir.exists()]
        for at, source in enumerate(paths if is_copied else ()):
            paths[at] = self.cluster.work / "copies" / source.name
            paths[at].mkdir(parents=True)
            subprocess.run(_COPY.format(source=source, target=paths[at]), shell=True, check=True)
        rows = self.rebuild(paths, "--output", str(self.cluster.work / "rebuilt"), *words)
        changes = [row for row in rows if row["type"] == "rebuild_change"]
        # Of a node with both roles the partitions are lost, too: it leaves their ISRs.
        others = [row for row in changes if row["action"] != "set" or "without" not in row["reason"]]
        others = [row for row in others if row["subject"] != "producer ids"] if len(others) < len(changes) else others
        self.holds(f"changes are said to be lost: {others[:3]}", not others)

    def _check_state(self, told: Path, before: list[str]) -> list[str]:
        """Clients go on, and what was there is there again; the new state."""
        for words, least in (("sent\torders", 100), ("sent\tledger", 10), ("read\t", 5), ("done\tacl", 3)):
            self.goes_on(told, words, least)
        after = self.settled()
        base = {line for line in before if not line.startswith(("leaderless", "group readers"))}
        gone = sorted(base - set(after))
        self.holds(f"{len(gone)} lines of the state are gone: {gone[:5]}", not gone)
        return after

    def other_voters(self, *, is_moved: bool) -> None:
        """Controllers are lost; the new ones are on another host and other ports, or there is a single one."""
        cluster = self.cluster
        told, before = self._live()
        killed_at = time.time() * 1000
        cluster.kill(*cluster.nodes)
        numbers = [each.number for each in cluster.controllers]
        lost = self.chance.sample(numbers, 2) if cluster.shape.is_combined else numbers
        self.lose(lost)
        self.notes.append(f"lost {sorted(lost)}")
        voters = cluster.controllers if is_moved else cluster.controllers[:1]
        others = [each for each in cluster.controllers if each not in voters]
        for each in voters if is_moved else ():
            each.host, (each.controller_port,) = _OTHER_HOST, free_ports(1)
        words = [f"--voter={each.number}@{each.address}" for each in voters]
        self._rebuild_from_rest(*words, is_copied=True)
        (setting,) = re.findall(r"(?m)^Set on all nodes: (.*)$", self.said)
        for each in () if cluster.shape.is_dynamic else others:
            each.role = "broker" if each.is_broker else ""
        for each in () if cluster.shape.is_dynamic or is_moved else cluster.nodes.values():
            (each.log_dir / METADATA / "quorum-state").unlink(missing_ok=True)
        active = [each for each in cluster.nodes.values() if each.role]
        cluster.nodes = {each.number: each for each in active}
        if cluster.shape.is_dynamic:  # brokers look for the leader of the others there, too
            setting = ",".join([setting, *(each.address for each in others)])
        cluster.configure(setting)
        self.install(voters)
        for each in others:
            if each in active and not each.log_dir.exists():
                cluster.format(each.number, *(["--no-initial-controllers"] if cluster.shape.is_dynamic else []))
        acknowledged = told.read_text().splitlines()
        cluster.start(*cluster.nodes)
        after = self._check_state(told, before)
        self._check_acknowledged(acknowledged, after, killed_at, len(numbers))
        if others and cluster.shape.is_dynamic:
            self._join(others, told)
        self.check_records(told)

    def _join(self, others: list[Node], told: Path) -> None:
        """Controllers join the single one, and can lead without it then."""
        cluster, name = self.cluster, "org.apache.kafka.tools.MetadataQuorumCommand"
        server = ["--bootstrap-server", cluster.bootstrap]
        for each in others:
            words = [*server, "--command-config", str(each.properties), "add-controller"]
            try:
                cluster.tool(name, *words)
            except AssertionError as error:  # on a busy machine the new one may be said to lag behind
                said = re.findall(r"\S*(?:Exception|Error): [^\n]{,200}", str(error).replace("\\n", "\n"))
                self.notes.append(f"add-controller was repeated: {said}")
                time.sleep(15)
                cluster.tool(name, *words)
        voters = re.findall(r"CurrentVoters:\s+(.*)", cluster.tool(name, *server, "describe", "--status"))
        ids = [int(each) for each in re.findall(r'"id": (\d+)', voters[0])] or json.loads(voters[0])
        self.notes.append(f"voters {ids} in the end")
        self.holds(f"the voters are {voters}", sorted(ids) == [each.number for each in cluster.controllers])
        cluster.kill(cluster.controllers[0].number)
        self.goes_on(told, "done\tacl", 3)
        cluster.start(cluster.controllers[0].number)

    def _check_acknowledged(self, told: list[str], after: list[str], killed_at: float, lost_count: int) -> None:
        """Changes that were acknowledged must be there; brokers may lack the last when all controllers are gone."""
        late = []
        for line in told:
            when, kind, *rest = line.split("\t")
            if kind != "done":
                continue
            what, name = rest[0].split(" ")[:2]
            pattern = {
                "topic": rf"topic {name} ", "config": rf"config {re.escape(rest[0][7:])}$",
                "quota": rf"quota .*user={name}\b", "acl": rf"acl {name} ",
            }[what]  # fmt: skip
            if not any(re.match(pattern, each) for each in after):
                late.append((killed_at - int(when), rest[0]))
        all_late = lost_count == len(self.cluster.controllers) and all(0 <= age < 300 for age, _ in late)
        self.notes.append(f"{sum('	done	' in each for each in told)} changes acknowledged")
        if late:
            self.notes.append(f"acknowledged {[round(age) for age, _ in late]} ms before the kill and lost")
        self.holds(f"acknowledged changes are lost: {late[:3]}", not late or all_late)

    def stale_metadata(self, *, keeps_copies: bool) -> None:
        """All copies of the metadata are lost but one that was taken before changes; the disks of brokers are left.

        With ``keeps_copies`` brokers keep their later copies, which are a branch then, and start with them.
        """
        cluster = self.cluster
        cluster.do("fill", "3")
        told = cluster.load("quiet")
        while count_of(told, "sent") < 300:
            time.sleep(0.2)
        backup = cluster.work / "backup" / "node-1"
        controllers = [each.number for each in cluster.controllers]
        first = cluster.do("state")
        shutil.copytree(cluster.nodes[controllers[0]].log_dir / METADATA, backup / METADATA)
        shutil.copy(cluster.nodes[controllers[0]].log_dir / "meta.properties", backup)
        cluster.do("change", "late")
        away = self.chance.choice([each.number for each in cluster.brokers])
        cluster.kill(away)
        self.notes.append(f"node {away} was away")
        self.goes_on(told, "sent\torders", 1500)
        cluster.start(away)
        self.goes_on(told, "sent\torders", 500)
        second = cluster.do("state")
        cluster.kill(*cluster.nodes)
        brokers = [each.log_dir for each in cluster.brokers]
        rows = self.rebuild([*brokers, backup], "--copy", str(backup), "--dry-run", "--force")
        self._check_named(rows)
        target = ["--output", str(cluster.work / "rebuilt")]
        if not cluster.shape.is_combined:
            self.lose(controllers)
        if keeps_copies:
            self._check_named(self.rebuild([*brokers, backup], "--copy", str(backup), *target))
        else:
            for node in cluster.brokers:
                shutil.rmtree(node.log_dir / METADATA)
                (node.log_dir / METADATA).mkdir()
            self._check_exactly(self.rebuild([*brokers, backup], *target), first, second)
        self.install()
        cluster.start(*cluster.nodes)
        for words, least in (("sent\torders", 100), ("sent\tledger", 10), ("read\t", 5)):
            self.goes_on(told, words, least)
        after = set(self.settled())
        gone = sorted(
            each for each in first if not each.startswith(("group readers", "leaderless")) and each not in after
        )
        self.holds(f"lines of the state at the time of the copy are gone: {gone[:5]}", not gone)
        self.check_records(told)

    def _check_named(self, rows: list[dict[str, Any]]) -> None:
        """With the later copies at hand, changes of every kind are named."""
        subjects = (
            "config max.message.bytes of topic orders", "quota producer_byte_rate of user late",
            "credential SCRAM-SHA-256 of late", "topic new-late", "topic compacted", "partition plain-4", "acl ",
        )  # fmt: skip
        named = [row["subject"] for row in rows if row["type"] == "rebuild_change" and row["action"] == "lost"]
        for subject in subjects:
            self.holds(f"not named although a copy has it: {subject}", any(each.startswith(subject) for each in named))

    def _check_exactly(self, rows: list[dict[str, Any]], first: list[str], second: list[str]) -> None:
        """From the disks alone: topics that are new or gone, partitions that were added, and leader epochs."""
        changes = [row for row in rows if row["type"] == "rebuild_change"]
        lost = {row["subject"] for row in changes if row["action"] == "lost"}
        topics, later = ({line.split()[1]: int(line.split()[3]) for line in state if line.startswith("topic ")}
                         for state in (first, second))  # fmt: skip
        expected = {f"topic {name}" for name in topics.keys() ^ later.keys()}
        for name in topics.keys() & later.keys():
            expected |= {f"partition {name}-{each}" for each in range(topics[name], later[name])}
        self.holds(f"named {sorted(lost ^ expected)} wrongly", lost == expected)
        raised = {row["subject"] for row in changes if row["action"] == "set"}
        self.notes.append(f"{len(lost)} lost, {len(raised)} set")
        self.holds(f"no partition of orders got a higher epoch: {raised}", any("orders" in each for each in raised))


_FIRST_WITH_OTHER_VOTERS = 20


def count_of(told: Path, words: str) -> int:
    """How often clients were told something."""
    return told.read_text().count(words) if told.exists() else 0


def run_one(number: int, lab: KafkaLab, seed: int, work: Path, only: str) -> dict[str, Any] | None:
    """One trial; None where it is not wanted."""
    chance = random.Random(f"{seed}-{number}")
    shape, is_moved = SHAPES[number % len(SHAPES)], None
    if number >= _FIRST_WITH_OTHER_VOTERS:
        shape, is_moved = _OTHER_VOTERS[(number - _FIRST_WITH_OTHER_VOTERS) % len(_OTHER_VOTERS)]
    keeps_copies = not shape.is_combined and number % 8 == 3
    stale = "stale, later copies on brokers" if keeps_copies else "stale"
    kind = stale if number % 4 == 3 else f"{2 if shape.is_combined or number % 2 else 3} of 3"
    if is_moved is not None:
        kind = "voters elsewhere" if is_moved else "a single voter"
    name = f"{number:02} {shape}, {kind}"
    if not re.search(only, name):
        return None
    started = time.monotonic()
    trial = Trial(Cluster(lab, shape, work / f"run-{number}"), chance)
    try:
        with trial.cluster:
            if is_moved is not None:
                trial.other_voters(is_moved=is_moved)
            elif kind == stale:
                trial.stale_metadata(keeps_copies=keeps_copies)
            else:
                trial.lost_controllers(int(kind[0]))
    except (AssertionError, subprocess.SubprocessError) as error:
        trial.wrong.append(f"{type(error).__name__}: {str(error)[:1500]}")
    return {"trial": name, "seconds": round(time.monotonic() - started), "wrong": trial.wrong, "notes": trial.notes}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=29)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="a regular expression for the names of trials")
    parser.add_argument("--keep", type=Path, help="a folder for the clusters, which are kept where something is wrong")
    options = parser.parse_args()
    wrong = 0
    with tempfile.TemporaryDirectory(prefix="rebuild-trials-") as scratch:
        work = options.keep or Path(scratch)
        work.mkdir(parents=True, exist_ok=True)
        for number in range(options.first, options.first + options.runs):
            result = run_one(number, KafkaLab(), options.seed, work, options.only)
            if result is None:
                continue
            print(json.dumps(result), flush=True)
            wrong += bool(result["wrong"])
            if not result["wrong"]:
                shutil.rmtree(work / f"run-{number}", ignore_errors=True)
    print(f"{wrong} wrong")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
