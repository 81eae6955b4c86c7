"""Trial of streams: a query beside a live broker that rolls and deletes segments, killed and restarted meanwhile.

    python -m tests.oracle.stream_trial [--kafka 4.3.1] [--seconds 600] [--rate 200] [--kills 3] [--keep DIR]

A producer writes numbered records of a kilobyte to three partitions with small segments and a short retention. The
query writes them as Parquet, in a process of its own that is killed with SIGKILL a few times and started again from its
checkpoint. In the end every record must be there once.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import pyarrow.parquet as pq

from tests.corpora import REPOSITORY
from tests.oracle.broker import Broker
from tests.oracle.kafka_lab import KafkaLab

_TOPIC, _PARTITIONS = "numbers", 3
_SETTINGS = {
    "log.retention.check.interval.ms": "1000",
    "log.initial.task.delay.ms": "1000",
    "log.segment.delete.delay.ms": "1000",
}
_TOPIC_CONFIGS = ("segment.bytes=1048576", "retention.bytes=25165824")


class Producer(threading.Thread):
    """Writes numbered lines through Kafka's console producer."""

    def __init__(self, lab: KafkaLab, version: str, broker: Broker, rate: int) -> None:
        super().__init__(daemon=True)
        command = [
            *lab.java_command(version, ["-Xmx128m", "-XX:+UseSerialGC"]),
            "org.apache.kafka.tools.ConsoleProducer",
        ]
        command += ["--bootstrap-server", broker.address, "--topic", _TOPIC]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        self._rate = rate
        self.count = 0
        self.is_done = False

    def run(self) -> None:
        assert self._process.stdin is not None
        while not self.is_done:
            for _ in range(self._rate // 10):
                self._process.stdin.write(b"%d:%s\n" % (self.count, b"x" * 1000))
                self.count += 1
            self._process.stdin.flush()
            time.sleep(0.1)
        self._process.stdin.close()
        assert self._process.wait(60) == 0


def run_query(log_dir: str, place: str, *, is_last: bool) -> None:
    """The query, in this process; the last one ends when it has read all that is there."""
    from spark_jobs.session import close_session, open_session

    session = open_session("local[2]")
    stream = session.readStream.format("kafkalog").option("topics", _TOPIC).load(log_dir)
    numbers = stream.selectExpr(
        "partition", "offset", "CAST(substring_index(CAST(value AS STRING), ':', 1) AS BIGINT) n"
    )
    writer = numbers.writeStream.format("parquet").option("checkpointLocation", f"{place}/checkpoint")
    writer = writer.trigger(availableNow=True) if is_last else writer.trigger(processingTime="5 seconds")
    writer.start(f"{place}/out").awaitTermination()
    close_session(session)


def _started(log_dir: Path, place: Path, *words: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "tests.oracle.stream_trial", "--query", str(log_dir), "--keep", str(place), *words]
    return subprocess.Popen(command, cwd=REPOSITORY, start_new_session=True)


def _micro_batches(place: Path) -> int:
    return sum(each.name.isdigit() for each in (place / "checkpoint" / "commits").glob("*"))


def trial(version: str, place: Path, seconds: int, rate: int, kills: int) -> int:
    """Run it, and compare; returns how many records were wrong."""
    lab = KafkaLab()
    log_dir = place / "node"
    rng = random.Random(7)
    with Broker(lab, version, log_dir, place / "work", _SETTINGS) as broker:
        words = [each for config in _TOPIC_CONFIGS for each in ("--config", config)]
        broker.run(
            "org.apache.kafka.tools.TopicCommand",
            "--create",
            "--topic",
            _TOPIC,
            "--partitions",
            str(_PARTITIONS),
            *words,
        )
        producer = Producer(lab, version, broker, rate)
        producer.start()
        began = time.monotonic()
        for number in range(kills + 1):
            query = _started(log_dir, place)
            share = seconds / (kills + 1)
            until = began + share * (number + 1) - (rng.random() * share / 4 if number < kills else 0)
            while time.monotonic() < until:
                if query.poll() is not None:
                    raise SystemExit(f"the query ended by itself, exit status {query.returncode}")
                time.sleep(0.5)
            os.killpg(query.pid, signal.SIGKILL)
            query.wait()
            print(
                f"{time.monotonic() - began:.0f} s: query killed after {_micro_batches(place)} micro-batches",
                flush=True,
            )
        producer.is_done = True
        producer.join()
        time.sleep(8)  # until the broker has noted the high watermarks
        if _started(log_dir, place, "--last").wait(300) != 0:
            raise SystemExit("the last query failed")
        firsts = [min(int(each.stem) for each in (log_dir / f"{_TOPIC}-{n}").glob("*.log")) for n in range(_PARTITIONS)]
        segments = sum(len(list((log_dir / f"{_TOPIC}-{n}").glob("*.log"))) for n in range(_PARTITIONS))
    return _compared(place, producer.count, firsts, segments)


def _compared(place: Path, count: int, firsts: list[int], segments: int) -> int:
    rows = pq.read_table(_written(place)).to_pydict()
    numbers = rows["n"]
    missing, twice = count - len(set(numbers)), len(numbers) - len(set(numbers))
    places = set(zip(rows["partition"], rows["offset"], strict=True))
    print(
        f"{count} records written, {len(numbers)} read in {_micro_batches(place)} micro-batches: {missing} missing, "
        f"{twice} twice; retention had deleted up to offsets {firsts}, {segments} segments were left"
    )
    return missing + twice + abs(len(places) - len(numbers))


def _written(place: Path) -> list[str]:
    """The files that the sink's log names: those of a micro-batch that did not end do not count."""
    import json

    found: dict[str, bool] = {}
    logs = (place / "out" / "_spark_metadata").iterdir()
    for log in sorted((each for each in logs if each.name.split(".")[0].isdigit()), key=lambda each: int(each.stem)):
        for line in log.read_text().splitlines()[1:]:
            found[json.loads(line)["path"].removeprefix("file://")] = True
    return list(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kafka", default="4.3.1")
    parser.add_argument("--seconds", type=int, default=600)
    parser.add_argument("--rate", type=int, default=200)
    parser.add_argument("--kills", type=int, default=3)
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--query")
    parser.add_argument("--last", action="store_true")
    given = parser.parse_args()
    if given.query:
        run_query(given.query, str(given.keep), is_last=given.last)
        return
    place = given.keep or Path(tempfile.mkdtemp(prefix="kafkalog-stream-"))
    place.mkdir(parents=True, exist_ok=True)
    wrong = trial(given.kafka, place, given.seconds, given.rate, given.kills)
    if given.keep is None:
        shutil.rmtree(place)
    raise SystemExit(min(wrong, 1))


if __name__ == "__main__":
    main()
