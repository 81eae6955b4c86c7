"""One trial: a cluster, a scenario on it, what clients see, and kafkalog's word on the directories that are left."""

from __future__ import annotations

import re
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from enum import Enum
from pathlib import Path
from typing import Any

from tests.field.clients import Client, ClientRefused, cache_folder, clients
from tests.field.cluster import FieldCluster, Layout, StartFailed
from tests.field.judge import (
    Seen,
    Verdict,
    boot_predicted,
    dump_log_compared,
    lookups_compared,
    records_compared,
    replicas,
    starts_compared,
    verified,
)
from tests.field.old_witness import old_witness
from tests.field.results import Cell
from tests.field.workbench import BenchError, Workbench
from tests.oracle.kafka_lab import KafkaLab

DAY_MS = 86_400_000
BENCH = "java bench"  # the workbench as a client


class Ending(Enum):
    """How the brokers end before the directories are looked at."""

    STOP = "stopped cleanly"
    KILL = "killed"


class Field:
    """What a scenario works with: the cluster, the workbench, and the topics that are judged."""

    def __init__(self, cluster: FieldCluster, bench: Workbench, wanted: Callable[[Client], bool]) -> None:
        self.cluster, self.bench = cluster, bench
        self.failed: str | None = None  # why the scenario came to no end
        self.base = int(time.time() * 1000) - DAY_MS
        self.topics: dict[str, str] = {}  # topic -> client of whose cell it is part
        self.loose: set[str] = set()  # partitions whose replicas need not hold the same
        self.notes: dict[str, str] = {}
        self.refused: dict[str, str] = {}
        self._configs: dict[str, dict[str, str]] = {}
        self.ending = Ending.STOP
        self._wanted = wanted

    def topic(self, name: str, configs: Mapping[str, str] | None = None, *, client: str = BENCH, **words: Any) -> str:
        """Create a topic that is judged."""
        self._configs[name] = dict(configs or {})
        if self.cluster.numbers < [0, 10, 1]:
            self._create_old(name, configs or {}, words)
        else:
            self.bench("create", name, configs=dict(configs or {}), **words)
        self.topics[name] = client
        return name

    def _create_old(self, name: str, configs: Mapping[str, str], words: Mapping[str, Any]) -> None:
        arguments = ["--zookeeper", f"127.0.0.1:{self.cluster.zookeeper_port}", "--create", "--topic", name]
        if "replicas" in words:
            arguments += ["--replica-assignment", ":".join(map(str, words["replicas"]))]
        else:
            arguments += ["--partitions", str(words.get("partitions", 1)), "--replication-factor", "1"]
        for key, value in configs.items():
            arguments += ["--config", f"{key}={value}"]
        self.cluster.tool("kafka.admin.TopicCommand", *arguments)
        time.sleep(1.5)

    def configure(self, topic: str, configs: Mapping[str, str]) -> None:
        """Change configs of a topic; an empty value takes one away."""
        if self.cluster.numbers >= [2, 3]:
            self.bench("configure", topic, configs=dict(configs))
            return
        if self.cluster.numbers >= [0, 11]:
            self._configs[topic] |= configs
            self.bench("configure", topic, configs=self._configs[topic], whole=True)
            return
        words = ["--zookeeper", f"127.0.0.1:{self.cluster.zookeeper_port}", "--alter", "--entity-type", "topics"]
        words += ["--entity-name", topic, "--add-config", ",".join(f"{key}={value}" for key, value in configs.items())]
        self.cluster.tool("kafka.admin.ConfigCommand", *words)
        time.sleep(1.5)

    def send(self, topic: str, count: int, **words: Any) -> int:
        """Send records with times one second apart, after those that were sent before."""
        start = words.pop("start", self.base)
        step = words.pop("step", 1000)
        self.base = max(self.base, start + count * step)
        last = self.bench("send", topic, count=count, start=start, step=step, **words)
        return int(last)

    def write_with_clients(self, configs: Mapping[str, str], **words: Any) -> None:
        """Let every client write to a topic of its own."""
        for client in clients(self.cluster.lab):
            if not self._wanted(client):
                continue
            name = "from-" + client.name.replace(" ", "-")
            self.topic(name, configs, client=client.name, **words)
            bootstrap = f"127.0.0.1:{self.cluster.nodes[0].port}"
            try:
                self.notes[client.name] = client.write(bootstrap, name, self.cluster.numbers)
            except ClientRefused as refusal:
                self.refused[client.name] = str(refusal)

    @property
    def has_transactions(self) -> bool:
        return self.cluster.numbers >= [0, 11]

    def until_in_sync(self, topic: str, count: int) -> None:
        """Wait until as many replicas are in sync."""
        for _ in range(240):
            with suppress(BenchError):
                if len(self.bench("leader", topic)["isr"]) >= count:
                    return
            time.sleep(0.5)
        raise AssertionError(f"{topic}: not {count} replicas in sync")

    def until_quiet(self, topic: str, seconds: float = 3) -> None:
        """Wait until the files of a topic have not changed for some seconds."""
        last, since = None, time.monotonic()
        end = since + 90
        while time.monotonic() - since < seconds and time.monotonic() < end:
            time.sleep(0.3)
            now = [
                (str(path), path.stat().st_size)
                for log_dir in self._log_dirs()
                for path in sorted(log_dir.glob(f"{topic}-0/*.log"))
            ]
            if now != last:
                last, since = now, time.monotonic()

    def until_head_gone(self, topic: str) -> None:
        """Wait until the first segment of a topic is deleted; a broker begins to look half a minute after its start."""
        end = time.monotonic() + 45
        while time.monotonic() < end:
            if not any(next(log_dir.glob(f"{topic}-0/{0:020d}.log"), None) for log_dir in self._log_dirs()):
                return
            time.sleep(0.3)

    def _log_dirs(self) -> list[Path]:
        return [log_dir for node in self.cluster.nodes for log_dir in node.log_dirs]

    def fresh_bench(self, writer: threading.Thread) -> None:
        """Another workbench in place of one that works for a broker that is gone."""
        self.bench.restart()
        writer.join(30)

    def directory_id(self, node: int) -> str:
        text = (self.log_dir(node) / "meta.properties").read_text()
        return next(line.partition("=")[2] for line in text.splitlines() if line.startswith("directory.id="))

    def log_dir(self, node: int = 1, order: int = 0) -> Path:
        return self.cluster.node(node).log_dirs[order]


@dataclass(frozen=True)
class Scenario:
    """What happens to logs: its name, the cluster that it needs, and the brokers on which it makes sense."""

    name: str
    act: Callable[[Field], None]
    layout: Layout = field(default_factory=Layout)
    since: tuple[int, ...] = (0, 0)
    until: tuple[int, ...] = (99,)
    modes: tuple[str, ...] = ("KRaft", "ZooKeeper")
    is_alone: bool = False  # whether it wants a cluster of its own
    shared: Mapping[str, str] = field(default_factory=dict)  # finding code -> why the broker sees it so too

    def fits(self, version: str, mode: str) -> bool:
        numbers = tuple(int(each) for each in version.split("."))
        return (
            mode in self.modes and self.since <= numbers[: len(self.since)] and numbers[: len(self.until)] <= self.until
        )


class Trial:
    """Runs scenarios on one release, one cluster after the other, below a working directory."""

    def __init__(self, lab: KafkaLab, version: str, mode: str, work: Path, wanted: Callable[[Client], bool]) -> None:
        self._lab, self._version, self._mode, self._work, self._wanted = lab, version, mode, work, wanted

    def run(self, scenarios: list[Scenario]) -> list[Cell]:
        """The cells of some scenarios, which share a cluster and so a layout."""
        began = time.monotonic()
        name = scenarios[0].name if len(scenarios) == 1 else f"{scenarios[0].name}-and-{len(scenarios) - 1}"
        work = self._work / re.sub(r"[^\w.]+", "-", f"{self._version} {self._mode} {name}")
        shutil.rmtree(work, ignore_errors=True)
        layout = replace(scenarios[0].layout, zookeeper=self._mode == "ZooKeeper")
        try:
            cluster = FieldCluster(self._lab, self._version, work, layout)
            with cluster:
                cells = self._judged(scenarios, cluster)
        except (BenchError, StartFailed, AssertionError, subprocess.TimeoutExpired) as error:
            cells = [self._failed(each, str(error)) for each in scenarios]
        for cell in cells:
            cell.seconds = round((time.monotonic() - began) / len(scenarios), 1)
        return cells

    def _failed(self, scenario: Scenario, why: str) -> Cell:
        return Cell(self._version, self._mode, scenario.name, BENCH, outcome="failed", note=why[-1500:])

    def _judged(self, scenarios: list[Scenario], cluster: FieldCluster) -> list[Cell]:
        fields = []
        with Workbench(cluster, cache_folder()) as bench:
            for scenario in scenarios:
                fields.append(Field(cluster, bench, self._wanted))
                try:
                    scenario.act(fields[-1])
                except (BenchError, AssertionError, StopIteration, OSError, subprocess.TimeoutExpired) as error:
                    fields[-1].failed = f"{type(error).__name__}: {error}"
            is_killed = fields[-1].ending is Ending.KILL
            seen = None if is_killed else self._witness(fields, bench)
        if is_killed:
            cluster.kill()
        else:
            cluster.stop()
        verdict = Verdict()
        nodes = _copied(cluster)
        verified(verdict, nodes)
        is_predicted = not cluster.has_zookeeper and cluster.numbers >= [3, 9]
        expected = []
        if is_predicted:  # on the directories that the brokers start on
            expected = boot_predicted(verdict, [node.log_dirs for node in cluster.nodes], cluster.version)
        cluster.start()
        texts = [node.log_text for node in cluster.nodes]
        if is_predicted:
            starts_compared(verdict, expected, texts)
        else:
            verdict.starts += len(cluster.nodes)
        if seen is None:
            with Workbench(cluster, cache_folder()) as bench:
                seen = self._witness(fields, bench)
        cluster.kill()
        seen.is_killed = is_killed
        seen.loose = sorted(set().union(*(each.loose for each in fields)))
        seen.shared = sorted({code for each in scenarios for code in each.shared})
        seen.save(cluster.work / "truth.json.gz")
        without_remote(seen, nodes)
        records_compared(verdict, nodes, seen)
        lookups_compared(verdict, nodes, seen)
        dump_log_compared(verdict, nodes, self._lab, "4.3.1", cluster.work / "dump-log")
        cells: list[Cell] = []
        for scenario, happened in zip(scenarios, fields, strict=True):
            others = {topic for each in fields if each is not happened for topic in each.topics}
            cells += self._cells(scenario, happened, verdict, others, is_first=happened is fields[0])
        return cells

    def _witness(self, fields: list[Field], bench: Workbench) -> Seen:
        time.sleep(1)
        cluster = fields[0].cluster
        output = cluster.work / "records.jsonl"
        topics = [
            name
            for each in fields
            for name, client in each.topics.items()
            if each.failed is None and client not in each.refused
        ]
        if cluster.numbers < [0, 10]:
            return old_witness(cluster, topics)
        places = bench("witness", topics=topics, output=str(output), old=cluster.numbers < [0, 11])
        seen = Seen.read(places, output)
        seen.is_last_of_batch = cluster.numbers < [3, 8]
        return seen

    def _cells(
        self, scenario: Scenario, happened: Field, verdict: Verdict, others: set[str], *, is_first: bool
    ) -> list[Cell]:
        """A cell for each client; what is about the topics of no scenario belongs to the first one."""
        if happened.failed is not None:
            return [self._failed(scenario, happened.failed)]
        names = list(dict.fromkeys(happened.topics.values()))
        if not names:
            return []  # none of its clients was asked for
        notes = happened.notes
        cells = {each: Cell(self._version, self._mode, scenario.name, each, note=notes.get(each, "")) for each in names}
        first = next((cells[each] for each in names if each not in happened.refused), cells[names[0]])

        def cell_of(place: str) -> Cell | None:
            topic = place.rpartition("-")[0]
            client = happened.topics.get(topic)
            if client is None or client in happened.refused:
                return first if is_first and topic not in others else None
            return cells[client]

        for row in verdict.findings:
            place = "" if row["topic"] is None else f"{row['topic']}-{row['partition']}"
            cell = cell_of(place)
            if cell is not None:
                words = f"{row['code']} ({row['severity']}) {place} {Path(row['path']).name}: {row['message']}"[:500]
                (cell.shared if row["code"] in scenario.shared else cell.findings).append(words)
        for place, message in verdict.differences:
            cell = cell_of(place)
            if cell is not None:
                cell.differences.append(message)
        for counted, name in (
            ("partitions", "partitions"),
            ("records", "records"),
            ("lookups", "lookups"),
            ("files", "dumped_files"),
        ):
            for place, number in getattr(verdict, counted).items():
                cell = cell_of(place)
                if cell is not None:
                    setattr(cell, name, getattr(cell, name) + number)
        if is_first:
            first.starts += verdict.starts
        for name, reason in happened.refused.items():
            cells[name].outcome, cells[name].note = "refused", reason
        return list(cells.values())


def _copied(cluster: FieldCluster) -> list[list[Path]]:
    """Copies of the log directories of all nodes, as evidence."""
    nodes = []
    for node in cluster.nodes:
        kept = [cluster.work / "evidence" / f"node-{node.number}-{order}" for order in range(len(node.log_dirs))]
        for source, target in zip(node.log_dirs, kept, strict=True):
            shutil.copytree(source, target, symlinks=True)
        nodes.append(kept)
    return nodes


def without_remote(seen: Seen, nodes: list[list[Path]]) -> None:
    """Leave out what clients got from tiered storage: kafkalog has the local part, and says that it has no more."""
    for place, answers in seen.places.items():
        starts = [min(int(each.stem) for each in path.glob("*.log")) for _, path in replicas(nodes, place)]
        start = min(starts, default=0)
        if start <= answers["start"]:
            continue
        answers["start"] = start
        seen.records[place] = [row for row in seen.records[place] if row["offset"] >= start]
        answers["committed"] = [each for each in answers["committed"] if each >= start]
        answers["lookups"] = [each for each in answers["lookups"] if not 0 <= each[1] < start]
