"""What producers --duplicates says of records that real clients wrote twice, under a real broker."""

from __future__ import annotations

import json
import socket
import struct
import subprocess
import time
from pathlib import Path

import pytest

from format.log.encode_batches import BatchHeader, encode_batch
from tests.oracle.broker import Broker
from tests.oracle.kafka_lab import KafkaLab
from tests.record_encoder import NewRecord, encode_record
from tests.running import run_in_process_of_its_own

pytestmark = [pytest.mark.oracle, pytest.mark.slow]

VERSION = "4.3.1"
_SCENARIO = Path(__file__).with_name("LogScenario.java")
_TOPICS = "org.apache.kafka.tools.TopicCommand"
#: A broker that soon forgets producers takes a late retry as new, as one does that lost its snapshots.
_SETTINGS = {"producer.id.expiration.ms": "1000", "producer.id.expiration.check.interval.ms": "200"}


def _lab() -> KafkaLab:
    lab = KafkaLab()
    missing = lab.missing(VERSION)
    if missing is not None:
        from tests.conftest import unavailable

        unavailable(missing)
    return lab


def _batch(producer_id: int) -> bytes:
    now = time.time_ns() // 1_000_000
    epoch, sequence = (0, 0) if producer_id >= 0 else (-1, -1)
    records = b"".join(encode_record(NewRecord(each, 0, b"k%d" % each, b"value")) for each in range(4))
    return encode_batch(BatchHeader(0, 3, 4, now, now, -1, 0, producer_id, epoch, sequence), records)


def _produce(port: int, topic: str, batch: bytes) -> int:
    """One batch by a produce request of version 7, as a client sends it; the error code."""
    body = struct.pack(">hhii", -1, -1, 10_000, 1) + struct.pack(">h", len(topic)) + topic.encode()
    body += struct.pack(">iii", 1, 0, len(batch)) + batch
    request = struct.pack(">hhi", 0, 7, 1) + struct.pack(">h", 5) + b"trial" + body
    with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
        connection.sendall(struct.pack(">i", len(request)) + request)
        answer = b""
        while len(answer) < 4 or len(answer) < 4 + struct.unpack(">i", answer[:4])[0]:
            answer += connection.recv(4096) or b"\0" * 4096
    (error,) = struct.unpack_from(">h", answer, 4 + 4 + 4 + 2 + len(topic) + 4 + 4)
    return int(error)


def test_restarts_retries_and_forgotten_producers(tmp_path: Path) -> None:
    """A producer that was killed and sends the same again, a retry without idempotence, and a proven duplicate."""
    lab, node = _lab(), tmp_path / "node-1"
    scenario = tmp_path / "scenario.json"
    records = [[f"customer-{each}", 20, 1_700_000_000_000 + each] for each in range(12)]
    scenario.write_text(json.dumps([{"topic": "restarted", "batches": [{"records": records}]}]))
    with Broker(lab, VERSION, node, tmp_path / "broker", _SETTINGS) as broker:
        libraries = lab.home / f"kafka-{VERSION}" / "libs"
        for _run in range(2):  # a process each, which ends without closing; its values are the same
            command = [str(lab.java), "-cp", f"{libraries}/*", str(_SCENARIO), broker.address, str(scenario)]
            subprocess.run(command, check=True, capture_output=True, timeout=120)
        for topic in ("retried", "forgotten", "remembered"):
            broker.run(_TOPICS, "--create", "--topic", topic, "--partitions", "1")
        plain, forgotten, remembered = _batch(-1), _batch(4711), _batch(4712)
        for topic, batch, wait in (("retried", plain, 0), ("remembered", remembered, 0), ("forgotten", forgotten, 3)):
            assert _produce(broker.port, topic, batch) == 0
            time.sleep(wait)
            assert _produce(broker.port, topic, batch) == 0
    run = run_in_process_of_its_own("producers", "--duplicates", "--format", "jsonl", node).check(0)
    rows = {row["topic"]: row for row in run.rows("repeated_records")}
    assert {topic: (row["kind"], row["is_duplicate"], row["record_count"]) for topic, row in rows.items()} == {
        "restarted": ("new_producer", False, 12),
        "retried": ("batch", False, 4),
        "forgotten": ("sequence", True, 4),
    }  # the broker itself has dropped the retry of a producer that it remembers
    assert (rows["restarted"]["earlier_first_offset"], rows["restarted"]["first_offset"]) == (0, 12)
    assert rows["restarted"]["producer_id"] > rows["restarted"]["earlier_producer_id"] >= 0
    assert rows["forgotten"]["producer_id"] == rows["forgotten"]["earlier_producer_id"] == 4711
