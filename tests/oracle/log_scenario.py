"""A node of its own for trials of retention and of the cleaner: filled by LogScenario.java, stopped, started again."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from tests.oracle.broker import Broker
from tests.oracle.kafka_lab import KafkaLab

_SOURCE = Path(__file__).with_name("LogScenario.java")
_OPTIONS = ["-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
#: A node that changes nothing of its logs by itself.
QUIET = {
    "log.cleaner.enable": "true",
    "log.initial.task.delay.ms": "3600000",
    "log.cleaner.backoff.ms": "3600000",
    "log.retention.ms": "604800000",
}


class ScenarioNode:
    """One node below a directory, formatted anew; ``log_dir`` is its log directory."""

    def __init__(self, lab: KafkaLab, version: str, work: Path) -> None:
        self._lab, self._version, self._work = lab, version, work
        self.log_dir = work / "node-1"
        work.mkdir(parents=True, exist_ok=True)

    def format(self) -> None:
        """Make the log directory, empty."""
        shutil.rmtree(self.log_dir, ignore_errors=True)
        properties = self._work / "format.properties"
        properties.write_text(
            "process.roles=broker,controller\nnode.id=1\ncontroller.quorum.voters=1@127.0.0.1:9\n"
            "listeners=PLAINTEXT://127.0.0.1:8,CONTROLLER://127.0.0.1:9\ncontroller.listener.names=CONTROLLER\n"
            f"log.dirs={self.log_dir}\n"
        )
        words = ["kafka.tools.StorageTool", "format", "-t", "MkU3OEVBNTcwNTJENDM2Qg", "-c", str(properties)]
        command = [*self._lab.java_command(self._version, _OPTIONS), *words]
        done = subprocess.run(command, capture_output=True, timeout=120, check=False)
        assert done.returncode == 0, done.stderr.decode()[-3000:]

    def broker(self, configs: Mapping[str, str]) -> Broker:
        """A broker on the directory with some configs of its own, as a context."""
        return Broker(self._lab, self._version, self.log_dir, self._work / "broker", configs)

    def fill(self, topics: Iterable[Mapping[str, Any]]) -> None:
        """Write the topics of a scenario, and stop."""
        spec = self._work / "spec.json"
        spec.write_text(json.dumps(list(topics)))
        with self.broker(QUIET) as broker:
            words = [str(_SOURCE), broker.address, str(spec)]
            command = [*self._lab.java_command(self._version, _OPTIONS), *words]
            done = subprocess.run(command, capture_output=True, timeout=300, check=False)
            assert done.returncode == 0, done.stderr.decode()[-3000:]

    def run_until_quiet(self, configs: Mapping[str, str], seen: Callable[[], Any], *, seconds: float = 8) -> Any:
        """Run a broker until what ``seen`` returns has not changed for some seconds; the last of it."""
        with self.broker(configs):
            last, since = seen(), time.monotonic()
            end = since + 180
            while time.monotonic() - since < seconds and time.monotonic() < end:
                time.sleep(0.5)
                now = seen()
                if now != last:
                    last, since = now, time.monotonic()
        return last
