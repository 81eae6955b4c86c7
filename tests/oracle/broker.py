"""A real broker on a log directory that was written: one KRaft node on loopback ports that nobody else has."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.oracle.kafka_lab import KafkaLab
from tests.ports import free_ports

_CONFIGURATION = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller_port}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
inter.broker.listener.name=PLAINTEXT
log.dirs={log_dir}
offsets.topic.replication.factor=1
offsets.topic.num.partitions=4
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=4
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
share.coordinator.state.topic.num.partitions=2
group.initial.rebalance.delay.ms=0
log.cleaner.enable=false
transaction.abort.timed.out.transaction.cleanup.interval.ms=3600000
transaction.remove.expired.transaction.cleanup.interval.ms=3600000
log.retention.ms=-1
log.retention.bytes=-1
log.index.size.max.bytes=131072
"""
_LOG4J = """\
log4j.rootLogger=INFO, out
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=%p %m (%c)%n
"""
_START_SECONDS = 90


class Broker:
    """The context in which it runs; ``log_text`` is what it said."""

    def __init__(
        self, lab: KafkaLab, version: str, log_dir: Path, work: Path, settings: Mapping[str, str] | None = None
    ) -> None:
        self._lab = lab
        self._version = version
        self._log_dir = log_dir
        self._work = work
        self._settings = settings or {}
        self.port, self._controller_port = free_ports(2)
        self._output = work / "broker.log"

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def log_text(self) -> str:
        return self._output.read_text(errors="backslashreplace")

    def __enter__(self) -> Self:
        self._work.mkdir(parents=True, exist_ok=True)
        properties = self._work / "server.properties"
        properties.write_text(
            _CONFIGURATION.format(port=self.port, controller_port=self._controller_port, log_dir=self._log_dir)
            + "".join(f"{name}={value}\n" for name, value in self._settings.items())
        )
        if not (self._log_dir / "meta.properties").exists():
            self._format(properties)
        log4j = self._work / "log4j.properties"
        log4j.write_text(_LOG4J)
        options = ["-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", f"-Dlog4j.configuration=file:{log4j}"]
        logging = self._lab.logging_jars()
        command = [*self._lab.java_command(self._version, options, extra=logging), "kafka.Kafka", str(properties)]
        with self._output.open("wb") as output:
            self._process = subprocess.Popen(command, stdout=output, stderr=output, stdin=subprocess.DEVNULL)
        try:
            self._wait()
        except BaseException:
            self._process.kill()
            self._process.wait()
            raise
        return self

    def _format(self, properties: Path) -> None:
        """Prepare an empty log directory."""
        command = [*self._lab.java_command(self._version), "kafka.tools.StorageTool", "format", "--config"]
        command += [str(properties), "--cluster-id", "oracleoracleoracleoracg"]
        subprocess.run(command, check=True, capture_output=True, timeout=60)

    def _wait(self) -> None:
        end = time.monotonic() + _START_SECONDS
        while "Kafka Server started" not in self.log_text:
            assert self._process.poll() is None, f"the broker ended: {self.log_text[-6000:]}"
            assert time.monotonic() < end, f"the broker did not start: {self.log_text[-6000:]}"
            time.sleep(0.2)

    def run(self, main_class: str, *arguments: str, timeout: float = 60) -> str:
        """One of Kafka's tools, to its end; its standard output."""
        options = ["-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
        command = [*self._lab.java_command(self._version, options), main_class, "--bootstrap-server", self.address]
        done = subprocess.run([*command, *arguments], capture_output=True, timeout=timeout, check=False)
        assert done.returncode == 0, done.stderr.decode(errors="backslashreplace")[-4000:]
        return done.stdout.decode("latin-1")

    def kill(self) -> None:
        """End it as a crash does."""
        self._process.kill()
        self._process.wait()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.send_signal(signal.SIGTERM)  # nothing for one that was killed
        try:
            self._process.wait(60)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
