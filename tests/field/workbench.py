"""The workbench: a Java process that does to a cluster what a scenario asks, and says what clients see of it."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.field.cluster import FieldCluster
from tests.oracle.kafka_lab import KafkaLab

_OPTIONS = ["-Xmx300m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]


def client_version(broker: str) -> str:
    """The newest client that speaks to a broker: those from 4.0 on speak to none before 2.1."""
    return "4.3.1" if [int(each) for each in broker.split(".")[:2]] >= [2, 1] else "3.9.1"


def compiled(lab: KafkaLab, source: Path, version: str, cache: Path, jars: Sequence[Path] = ()) -> Path:
    """The folder with the classes of a Java program, compiled against a release and some more jars."""
    folder = cache / "classes" / version
    made = folder / f"{source.stem}.class"
    if not made.exists() or made.stat().st_mtime < source.stat().st_mtime:
        folder.mkdir(parents=True, exist_ok=True)
        libraries = os.pathsep.join([*map(str, jars), str(lab.home / f"kafka-{version}" / "libs" / "*")])
        done = subprocess.run(
            ["javac", "-nowarn", "-cp", libraries, "-d", str(folder), str(source)], capture_output=True, check=False
        )
        assert done.returncode == 0, done.stderr.decode()
    return folder


class Workbench:
    """The context in which it runs; each operation of Workbench.java is a call."""

    def __init__(self, cluster: FieldCluster, cache: Path) -> None:
        self._cluster = cluster
        self._version = client_version(cluster.version)
        source = Path(__file__).with_name("Workbench.java")
        self._classes = compiled(cluster.lab, source, self._version, cache)

    def __enter__(self) -> Self:
        self._start()
        return self

    def restart(self) -> None:
        """End the process, whatever it does, and start another one."""
        self._process.kill()
        self._process.wait()
        self._errors.close()
        self._start()

    def _start(self) -> None:
        lab = self._cluster.lab
        command = lab.java_command(self._version, _OPTIONS, extra=[self._classes])
        self._errors = (self._cluster.work / "workbench.err").open("ab")
        self._process = subprocess.Popen(
            [*command, "Workbench", self._cluster.bootstrap],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors, text=True, encoding="utf-8",
        )  # fmt: skip

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.wait()
        self._errors.close()

    def __call__(self, op: str, topic: str | None = None, **words: Any) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        if topic is not None:
            words["topic"] = topic
        self._process.stdin.write(json.dumps({"op": op, **words}) + os.linesep)
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise BenchError(f"{op}: the workbench ended")
        answer = json.loads(line)
        if "error" in answer:
            raise BenchError(f"{op} {topic}: {answer['error']}")
        return answer["ok"]


class BenchError(Exception):
    """An operation that the cluster refused, or that did not end in time."""
