"""What a consumer gets of a broker, partition by partition: one Java process that reads from broker after broker."""

from __future__ import annotations

import base64
import json
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from format.layout import REPLICATION_OFFSET_CHECKPOINT
from tests.field.workbench import compiled
from tests.json_rows import to_bytes, to_headers
from tests.oracle.kafka_lab import KafkaLab
from tests.running import run_many

_OPTIONS = ["-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
Row = dict[str, Any]


@dataclass
class Served:
    """What a broker serves of one partition: its offsets, all records, and the offsets that read_committed gives."""

    start: int = -1
    end: int = -1
    stable: int = -1
    records: dict[int, Row] = field(default_factory=dict)
    committed: list[int] = field(default_factory=list)
    problem: str = ""  # why nothing can be read: "unknown" to the broker, "no leader", or "no answer" of the leader


class ReadingFailed(Exception):
    """The consumer ended with an error."""


class RecordReader:
    """The context in which the process runs."""

    def __init__(self, lab: KafkaLab, version: str, work: Path) -> None:
        self._output = work / "served.jsonl"
        source = Path(__file__).with_name("RecordReader.java")
        classes = compiled(lab, source, version, work)
        self._command = [*lab.java_command(version, _OPTIONS, extra=[classes]), "RecordReader"]

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.wait()

    def read(self, bootstrap: str, places: Iterable[str]) -> dict[str, Served]:
        """Everything that is served of some partitions, by their names."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("\t".join([bootstrap, str(self._output), *places]) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline().strip()
        if answer != "ok":
            raise ReadingFailed(answer or "the consumer's process ended")
        found: dict[str, Served] = {}
        with self._output.open(encoding="utf-8") as lines:
            for line in lines:
                row = json.loads(line)
                if "place" in row:
                    place = row.pop("place")
                    served = found[place] = Served(**row)
                elif "committed" in row:
                    served.committed.append(row["committed"])
                else:
                    served.records[row["offset"]] = row
        return found


def _base64(content: bytes | None) -> str | None:
    return None if content is None else base64.b64encode(content).decode()


@dataclass
class Kept:
    """What dump says that a log directory holds of one partition: records, and the offsets of committed ones."""

    records: dict[int, Row] = field(default_factory=dict)
    committed: list[int] = field(default_factory=list)
    high_watermark: int | None = None  # by the checkpoint, which ends what read_committed gives of files


def _high_watermarks(log_dir: Path) -> dict[str, int]:
    """The high watermark of each partition in the checkpoint of a log directory, which salvage has written."""
    path = log_dir / REPLICATION_OFFSET_CHECKPOINT
    lines = [line.split() for line in path.read_text().splitlines()[2:]] if path.exists() else []
    return {f"{topic}-{partition}": int(offset) for topic, partition, offset in lines}


def kept_records(log_dir: Path) -> dict[str, Kept]:
    """All records of a log directory but control records, by partition, as dump reads them."""
    words = ("dump", "--records", "--raw", "--format", "jsonl", "--jobs", "1", "--quiet")
    everything, committed = run_many([(*words, log_dir), (*words, "--read-committed", log_dir)])
    kept: dict[str, Kept] = {}
    for run, is_committed in ((everything, False), (committed, True)):
        for row in run.check(0, 1, 3).rows("record"):
            each = kept.setdefault(f"{row['topic']}-{row['partition']}", Kept())
            if row["is_control"]:
                continue
            if is_committed:
                each.committed.append(row["offset"])
            else:
                each.records[row["offset"]] = _as_served(row)
    for name, high_watermark in _high_watermarks(log_dir).items():
        kept.setdefault(name, Kept()).high_watermark = high_watermark
    return kept


def _as_served(row: Row) -> Row:
    return {
        "offset": row["offset"],
        "timestamp": -1 if row["timestamp"] is None else row["timestamp"],
        "leader_epoch": -1 if row["leader_epoch"] is None else row["leader_epoch"],
        "key": _base64(to_bytes(row["key"])),
        "value": _base64(to_bytes(row["value"])),
        "headers": [[_base64(key), _base64(value)] for key, value in to_headers(row["headers"])],
    }


def differences(place: str, kept: Kept, served: Served) -> list[str]:
    """Where the records that a broker serves are not those that the directory holds; offsets below its start aside.

    A leader without followers raises a high watermark that is too low in the checkpoint; behind it, files alone cannot
    prove what is committed.
    """
    if served.problem:
        return [f"{place}: {served.problem}"]
    found = []
    expected = {offset: row for offset, row in kept.records.items() if offset >= served.start}
    both = sorted(expected.keys() & served.records.keys())
    if wrong := sorted(expected.keys() ^ served.records.keys()):
        found.append(f"{place}: {len(wrong)} records that only one side has, such as {wrong[:5]}")
    if wrong := [each for each in both if expected[each] != served.records[each]]:
        found.append(f"{place}: {len(wrong)} records differ: {expected[wrong[0]]} and {served.records[wrong[0]]}")
    stable = served.stable if kept.high_watermark is None else min(served.stable, kept.high_watermark)
    here, there = (
        {each for each in side if served.start <= each < stable} for side in (kept.committed, served.committed)
    )
    if wrong := sorted(here ^ there):
        found.append(f"{place}: {len(wrong)} records that read_committed gives on one side, such as {wrong[:5]}")
    return found
