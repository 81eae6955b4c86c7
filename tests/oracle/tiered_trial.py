"""A tiered log by a real broker with Kafka's LocalTieredStorage, and what a consumer and ListOffsets say of it.

``python -m tests.oracle.tiered_trial DIR JARS`` fills DIR with ``node-1`` (the log directory), ``remote`` (the objects)
and ``truth.json``. JARS is a directory with the test jar of Kafka's storage module, as Maven gives it:
``mvn dependency:copy -Dartifact=org.apache.kafka:kafka-storage:4.3.1:jar:test -DoutputDirectory=JARS``.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
import tempfile
import time
from pathlib import Path

from tests.oracle.broker import Broker
from tests.oracle.kafka_lab import KafkaLab

VERSION = "4.3.1"
TOPIC = "orders"
_SESSIONS = 6
_RECORDS = 150
_SETTINGS = {
    "remote.log.storage.system.enable": "true",
    "remote.log.storage.manager.class.name": "org.apache.kafka.server.log.remote.storage.LocalTieredStorage",
    "remote.log.metadata.manager.listener.name": "PLAINTEXT",
    "rlmm.config.remote.log.metadata.topic.num.partitions": "2",
    "rlmm.config.remote.log.metadata.topic.replication.factor": "1",
    "remote.log.manager.task.interval.ms": "500",
    "log.retention.check.interval.ms": "500",
    "log.initial.task.delay.ms": "200",
    "log.segment.delete.delay.ms": "200",
    "offsets.topic.num.partitions": "1",
}


def _wait_for(words: str, condition: object) -> None:
    assert callable(condition)
    end = time.monotonic() + 240
    while not condition():
        assert time.monotonic() < end, words
        time.sleep(0.5)


def _records(broker: Broker, count: int) -> list[dict[str, int | str]]:
    """What a consumer gets: offset, timestamp and value of each record."""
    text = broker.run(
        "org.apache.kafka.tools.consumer.ConsoleConsumer", "--topic", TOPIC, "--from-beginning", "--max-messages",
        str(count), "--timeout-ms", "120000", "--formatter-property", "print.offset=true", "--formatter-property",
        "print.timestamp=true", timeout=240,
    )  # fmt: skip
    found = re.findall(r"^CreateTime:(\d+)\tOffset:(\d+)\t(.*)$", text, re.MULTILINE)
    return [{"offset": int(offset), "timestamp": int(timestamp), "value": value} for timestamp, offset, value in found]


def _first_local(node: Path) -> int:
    return int(min((node / f"{TOPIC}-0").glob("*.log")).stem)


def _offset(broker: Broker, at: str) -> int:
    """The answer of ListOffsets for a time, -1 for none."""
    text = broker.run("org.apache.kafka.tools.GetOffsetShell", "--topic", TOPIC, "--time", at, timeout=120)
    found = re.search(rf"^{TOPIC}:0:(\d*)$", text, re.MULTILINE)
    return int(found[1]) if found is not None and found[1] else -1


def make(directory: Path, jars: Path) -> None:
    """Run the broker, and write what it left and what it said."""
    node, remote = directory / "node-1", directory / "remote"
    settings = {
        **_SETTINGS,
        "remote.log.storage.manager.class.path": f"{jars.resolve()}/*",
        "rsm.config.dir": str(remote.resolve()),
    }
    truth: dict[str, object] = {}
    with Broker(KafkaLab(), VERSION, node, Path(tempfile.mkdtemp()), settings) as broker:
        configs = ("remote.storage.enable=true", "segment.ms=500", "local.retention.ms=1", "retention.ms=-1")
        broker.run(
            "org.apache.kafka.tools.TopicCommand", "--create", "--topic", TOPIC, "--partitions", "1",
            *(word for each in configs for word in ("--config", each)), timeout=120,
        )  # fmt: skip
        for session in range(_SESSIONS):
            if session == _SESSIONS - 2:  # what comes now stays on the disk, too
                _wait_for("no segment left the disk", lambda: _first_local(node) >= 2 * _RECORDS)
                broker.run(
                    "kafka.admin.ConfigCommand", "--entity-type", "topics", "--entity-name", TOPIC, "--alter",
                    "--add-config", "local.retention.ms=3600000", timeout=120,
                )  # fmt: skip
            broker.run(
                "org.apache.kafka.tools.VerifiableProducer", "--topic", TOPIC, "--max-messages", str(_RECORDS),
                "--acks", "-1", timeout=120,
            )  # fmt: skip
        time.sleep(3)
        records = _records(broker, _SESSIONS * _RECORDS)
        truth["records"] = records
        times = [int(records[number]["timestamp"]) for number in (0, 10, 200, 460, 700, len(records) - 1)]
        truth["lookups"] = {str(each): _offset(broker, str(each)) for each in (times[0] - 1000, *times, times[-1] + 9)}
        names = {"earliest": "-2", "latest": "-1", "earliest_local": "-4", "latest_tiered": "-5"}
        truth["offsets"] = {name: _offset(broker, at) for name, at in names.items()}
    shutil.rmtree(node / "remote-log-index-cache", ignore_errors=True)
    (directory / "truth.json").write_text(json.dumps(truth))


if __name__ == "__main__":
    make(Path(sys.argv[1]), Path(sys.argv[2]))
