"""Make the corpus tests/_data/groups: a real broker with groups of every protocol, and what it says of them.

    python -m tests.oracle.groups_corpus OUTPUT [--groups 500] [--seed 7]

The broker is killed right after it was asked, while members and transactions are still there. OUTPUT gets ``node-1``,
its log directory without the metadata and transaction logs, and ``truth/groups.json``, what its AdminClient reported.
"""

from __future__ import annotations

import argparse
import gzip
import json
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.corpora import REPOSITORY
from tests.oracle.broker import free_ports
from tests.oracle.kafka_lab import KafkaLab

VERSION = "4.3.1"
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
offsets.topic.segment.bytes=1048576
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
share.coordinator.state.topic.num.partitions=2
group.initial.rebalance.delay.ms=0
group.max.session.timeout.ms=1800000
group.consumer.session.timeout.ms=1000000
group.consumer.max.session.timeout.ms=1800000
group.share.session.timeout.ms=1000000
group.share.max.session.timeout.ms=1800000
group.streams.session.timeout.ms=1000000
group.streams.max.session.timeout.ms=1800000
group.share.max.groups=1000
group.share.max.share.sessions=2000
log.index.size.max.bytes=4096
log.cleaner.enable=false
"""
#: Parts of the log directory that the groups do not need: an excerpt, on which no broker would start.
_LEFT_OUT = ("__cluster_metadata-", "__transaction_state-", "bootstrap.checkpoint", "meta.properties")


def make(output: Path, groups: int, seed: int) -> None:
    """Run the scenario, and copy what is left of it."""
    lab = KafkaLab()
    missing = lab.missing(VERSION)
    if missing is not None:
        sys.exit(missing)
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        log_dir = work / "node-1"
        port, controller_port = free_ports(2)
        properties = work / "server.properties"
        properties.write_text(_CONFIGURATION.format(port=port, controller_port=controller_port, log_dir=log_dir))
        options = ["-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
        java = lab.java_command(VERSION, options, extra=lab.logging_jars())
        format_words = ["kafka.tools.StorageTool", "format", "-t", "kafkalog-groups-test-A", "-c", str(properties)]
        subprocess.run([*java, *format_words], check=True, capture_output=True)
        with (work / "broker.log").open("wb") as said:
            broker = subprocess.Popen([*java, "kafka.Kafka", str(properties)], stdout=said, stderr=said)
        scenario = None
        try:
            _wait(port, broker)
            words = [str(REPOSITORY / "tests/oracle/GroupScenario.java"), f"127.0.0.1:{port}", str(groups), str(seed)]
            scenario = subprocess.Popen(
                [*lab.java_command(VERSION, options), *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
            )
            assert scenario.stdout is not None
            assert scenario.stderr is not None
            truth = scenario.stdout.readline()
            if not truth:
                sys.exit(scenario.stderr.read())
            broker.send_signal(signal.SIGKILL)
            broker.wait()
        finally:
            for process in (broker, scenario):
                if process is not None:
                    process.kill()
                    process.wait()
        _copy(log_dir, output / "node-1")
    folder = output / "truth"
    folder.mkdir(parents=True)
    content = json.dumps(json.loads(truth), indent=0, sort_keys=True, ensure_ascii=False).encode()
    (folder / "groups.json.gz").write_bytes(gzip.compress(content, mtime=0))


def _wait(port: int, broker: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + 90
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            if broker.poll() is not None or time.monotonic() > end:
                sys.exit("the broker did not start")
        time.sleep(0.2)


def _copy(log_dir: Path, output: Path) -> None:
    """The log directory without what the groups do not need; sparse and preallocated files stay as they are."""

    def left_out(_folder: str, names: list[str]) -> list[str]:
        return [name for name in names if name.startswith(_LEFT_OUT)]

    shutil.copytree(log_dir, output, ignore=left_out)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output", type=Path)
    parser.add_argument("--groups", type=int, default=500)
    parser.add_argument("--seed", type=int, default=7)
    given = parser.parse_args()
    make(given.output, given.groups, given.seed)
