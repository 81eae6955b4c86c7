"""The clients that write to the brokers: small programs on libraries of many languages, built once.

Each is called as ``PROGRAM BOOTSTRAP TOPIC VERSION MODE``, writes to partition 0 of the topic in every way that its
library has, and prints one JSON object: how many records it sent, and the ways. MODE is ``plain`` for brokers before
0.11, which know no headers, producer ids and transactions, else ``all``.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.field.workbench import compiled
from tests.oracle.kafka_lab import KafkaLab

_SOURCES = Path(__file__).with_name("clients")
JAVA_VERSIONS = ("0.11.0.3", "1.1.1", "2.8.2", "3.3.2", "3.6.2", "3.9.1", "4.0.0", "4.1.0", "4.2.0", "4.3.1")


def cache_folder() -> Path:
    """Where the built clients and compiled Java programs are kept."""
    return Path(os.environ.get("KAFKALOG_FIELD") or Path.home() / ".cache" / "kafkalog-field")


@dataclass(frozen=True)
class Client:
    """A library: its name, and the words that start its program."""

    name: str
    command: Callable[[], list[str]]

    def write(self, bootstrap: str, topic: str, broker: list[int], timeout: float = 90) -> str:
        """Let it write. Raises ClientRefused with its last words where it cannot speak to the broker."""
        version = ".".join(map(str, broker if broker[0] == 0 else [*broker[:2], 0]))
        mode = "all" if broker >= [0, 11] else "plain"
        try:
            done = subprocess.run(
                [*self.command(), bootstrap, topic, version, mode], capture_output=True, timeout=timeout, check=False
            )
        except subprocess.TimeoutExpired as error:
            raise ClientRefused(f"no end after {timeout:.0f} s") from error
        lines = done.stdout.decode(errors="replace").splitlines()
        if done.returncode != 0 or not lines:
            words = " ".join(done.stderr.decode(errors="replace").split())
            raise ClientRefused(words[-400:] or f"exit {done.returncode}")
        said = json.loads(lines[-1])
        return f"{said['sent']} records: {', '.join(said['ways'])}"


class ClientRefused(Exception):
    """A client that ended with an error, in its own words."""


def _java(lab: KafkaLab, version: str) -> list[str]:
    folder = compiled(lab, _SOURCES / "java" / "JavaClient.java", version, cache_folder() / "client")
    options = ["-Xmx200m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
    return [*lab.java_command(version, options, extra=[folder]), "JavaClient"]


def _program(*words: str) -> Callable[[], list[str]]:
    folder = cache_folder()
    return lambda: [str(folder / word) if "/" in word else word for word in words]


def clients(lab: KafkaLab) -> list[Client]:
    """All of them; the Java clients are those whose releases are there."""
    made = [
        Client(f"java {each}", lambda each=each: _java(lab, each)) for each in JAVA_VERSIONS if not lab.missing(each)
    ]
    for name in ("confluent", "kafka_python", "aiokafka"):
        made.append(Client(name.replace("_", "-"), _program("py/bin/python", f"py/with_{name}.py")))
    made += [Client(name, _program(f"bin/{name}")) for name in ("sarama", "franz", "segmentio")]
    made += [
        Client("kafkajs", _program("node", "node/kafkajs.js")),
        Client("kafka-node", _program("node", "node/kafka_node.js")),
        Client("no-kafka", _program("node", "node/no_kafka.js")),
        Client("platformatic", _program("node", "node/platformatic.mjs")),
    ]
    made += [Client(name, _program(f"rust/debug/{name}")) for name in ("rdkafka", "rskafka", "kafka_rust")]
    return made


def prepare() -> None:
    """Fetch the libraries with their own package managers, and build the programs; what is there already is kept."""
    folder = cache_folder()
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "py" / "bin" / "python").exists():
        _run(folder, sys.executable, "-m", "venv", "py")
        _run(folder, "py/bin/python", "-m", "pip", "install", "-q", "-r", str(_SOURCES / "python" / "requirements.txt"))
    for each in (_SOURCES / "python").glob("*.py"):
        shutil.copy(each, folder / "py")
    shutil.copytree(_SOURCES / "node", folder / "node", dirs_exist_ok=True)
    if not (folder / "node" / "node_modules" / "kafkajs").exists():
        _run(folder / "node", "npm", "install", "--no-audit", "--no-fund", "--ignore-scripts")
    (folder / "bin").mkdir(exist_ok=True)
    _run(_SOURCES / "go", "go", "build", "-o", f"{folder / 'bin'}/", "./...")
    _run(_SOURCES / "rust", "cargo", "build", "-q", "--target-dir", str(folder / "rust"))


def _run(where: Path, *words: str) -> None:
    subprocess.run(words, cwd=where, check=True, stdin=subprocess.DEVNULL)
