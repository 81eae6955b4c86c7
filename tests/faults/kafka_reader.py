"""Damaged logs through Kafka's own reader and through ours: CRC verdicts, where reading stops, what records come out.

What may differ is in ``RULES``, each with the reason; every difference must be explained by one.
"""

from __future__ import annotations

import subprocess
import tempfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from format.io.source import FileSource
from format.limits import Limits
from format.log.read_records import inner_crcs, record_tables
from format.log.walker import batch_chunks
from tests.oracle.kafka_lab import KafkaLab

Record = tuple[int, int, int]  # offset, timestamp, CRC-32 of key and value


@dataclass
class ReadBatch:
    """A batch as one of the readers saw it; ``failure`` is why its records could not all be read, empty for none."""

    position: int
    size_bytes: int
    magic: int
    last_offset: int | None
    is_valid: bool
    records: list[Record] = field(default_factory=list)
    failure: str = ""


@dataclass
class ReadLog:
    """A log as one of the readers saw it; ``failure`` is why Kafka's stopped between batches, empty where it ended."""

    batches: list[ReadBatch] = field(default_factory=list)
    failure: str = ""
    damage: list[tuple[int, int, str]] = field(default_factory=list)  # ours: position, length, code


@dataclass(frozen=True)
class Difference:
    """One difference between the readers, and the rule that explains it, empty for none."""

    log: str
    position: int
    ours: str
    theirs: str
    rule: str


def kafkas(lab: KafkaLab, version: str, folder: Path) -> dict[str, ReadLog]:
    """Every log of a folder by name, through the jars of a release, all in one run."""
    code = Path(__file__).with_name("KafkaReader.java").read_text(encoding="utf-8")
    if version < "4":  # the classes moved in 4.x
        code = code.replace("common.record.internal.", "common.record.")
    with tempfile.TemporaryDirectory() as scratch:
        source = Path(scratch) / "KafkaReader.java"
        source.write_text(code, encoding="utf-8")
        command = [*lab.java_command(version), str(source), str(folder)]
        done = subprocess.run(command, capture_output=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr.decode(errors="replace")[-3000:]
    logs: dict[str, ReadLog] = {}
    log = ReadLog()
    for line in done.stdout.decode("utf-8").splitlines():
        kind, *words = line.split("\t")
        if kind == "FILE":
            log = logs[words[0]] = ReadLog()
        elif kind == "BATCH":
            position, size, magic, _, last, is_valid = words
            last_offset = None if last == "?" else int(last)
            log.batches.append(ReadBatch(int(position), int(size), int(magic), last_offset, is_valid == "true"))
        elif kind == "RECORD":
            offset, timestamp, crc = (int(word) for word in words)
            log.batches[-1].records.append((offset, timestamp, crc))
        elif words[0] == "records":
            log.batches[-1].failure = words[1]
        else:
            log.failure = words[1]
    return logs


def ours(path: Path, limits: Limits) -> ReadLog:
    """One log through this program's reader."""
    log = ReadLog()
    with FileSource(path) as source:
        for chunk in batch_chunks(source, limits=limits):
            table = chunk.table
            rows = [
                ReadBatch(
                    int(table.position[row]), int(table.size_bytes[row]), int(table.magic[row]),
                    int(table.base_offset[row]) + int(table.last_offset_delta[row]), table.crc_valid[row] != 0,
                )
                for row in range(len(table))
            ]  # fmt: skip
            for records in record_tables(chunk, limits=limits):
                for problem in records.problems:
                    rows[problem.batch].failure = f"{problem.error.code}: {problem.error.message}"
                inner = np.flatnonzero(table.is_wrapper[records.batch])
                for row in inner[~inner_crcs(records, inner)[1]].tolist():
                    rows[int(records.batch[row])].failure = "an inner message's CRC is wrong"
                for row in range(len(records)):
                    crc = 0
                    for part in (records.key(row), records.value(row)):
                        crc = zlib.crc32(b"\x00" if part is None else b"\x01" + part, crc)
                    rows[int(records.batch[row])].records.append(
                        (int(records.offset[row]), int(records.timestamp[row]), crc)
                    )
            log.batches += rows
            if chunk.damage is not None:
                log.damage.append((chunk.damage.position, chunk.damage.length, chunk.damage.code))
    return log


# -- what may differ -----------------------------------------------------------------------------------------


def _ours_alone(words: str) -> Callable[[ReadBatch, ReadBatch], bool]:
    """Ours finds fault, in these words, with what Kafka's reads to its end."""
    return lambda mine, theirs: words in mine.failure and not theirs.failure


#: Differences that are meant, in batches which both readers see and whose CRC is right. Kafka's reader serves what it
#: does not look at; ours reports it, and keeps the records before it.
RULES: dict[str, Callable[[ReadBatch, ReadBatch], bool]] = {
    "a key or value length below -1 is null to Kafka": lambda mine, theirs: (
        any(f"{part} length is invalid" in mine.failure for part in ("key's", "value's", "header value's"))
        and not theirs.failure
    ),
    "Kafka drops the bits that a varint has too many": _ours_alone("a varint overflows its type"),
    "Kafka lets an offset wrap": _ours_alone("does not fit in 64 bits"),
    "Kafka does not look for bytes in a batch of no records": _ours_alone("after the last of 0 records"),
    "Kafka stops after the first lz4 frame or gzip member's worth of records": _ours_alone("after the last of"),
    "Kafka takes a set inside a message that is cut for a shorter one": _ours_alone("the message is cut off"),
    "Kafka looks no further in a set than its last whole message": _ours_alone("inner message"),
    "Kafka computes with a wrapper's offset that cannot be": _ours_alone("is below its last inner offset"),
    "Kafka reads older messages in a newer wrapper": _ours_alone("format differs from its wrapper's"),
    "Kafka reads one lz4 frame of a payload, ours reads them all": lambda mine, theirs: (
        not mine.failure and not theirs.failure and mine.records[: len(theirs.records)] == theirs.records
    ),
}


def compare(name: str, mine: ReadLog, theirs: ReadLog) -> list[Difference]:
    """The differences for one log, as far as Kafka's reader came."""
    found: list[Difference] = []
    by_position = {each.position: each for each in mine.batches}
    damaged = [(start, start + length) for start, length, _ in mine.damage]
    end = 0
    for other in theirs.batches:
        one = by_position.get(other.position)
        if one is None:
            rule = _rule_of_framing(other, damaged)
            found.append(Difference(name, other.position, "no batch", f"a batch, CRC right: {other.is_valid}", rule))
            return found  # from here on Kafka's reader follows a length that ours does not believe
        end = other.position + other.size_bytes
        difference = _in_batch(name, one, other)
        if difference is not None:
            found.append(difference)
    later = [each.position for each in mine.batches if each.position >= end]
    if later and not any(start <= end < stop for start, stop in damaged):
        found.append(Difference(name, end, f"a batch at {later[0]}", f"no more: {theirs.failure}", ""))
    return found


def _rule_of_framing(other: ReadBatch, damaged: list[tuple[int, int]]) -> str:
    """Why ours has no batch where Kafka's has one."""
    if not any(start <= other.position < end for start, end in damaged):
        return ""
    if not other.is_valid:
        return "the CRC is wrong, and nothing stands where the length points: ours calls the length wrong too"
    return "Kafka takes any magic above 2 for 2" if other.magic > 2 or other.magic < 0 else ""


def _in_batch(name: str, one: ReadBatch, other: ReadBatch) -> Difference | None:
    """What the readers made of one batch."""
    ours = (one.size_bytes, one.magic, one.is_valid)
    others = (other.size_bytes, other.magic, other.is_valid)
    if ours != others:
        return Difference(name, one.position, f"size, magic, CRC {ours}", f"{others}", "")
    # Where both give up it does not matter after how many records.
    has_failed = bool(one.failure), bool(other.failure)
    if not one.is_valid or all(has_failed) or (one.records == other.records and not any(has_failed)):
        return None
    rule = next((words for words, is_meant in RULES.items() if is_meant(one, other)), "")
    what = [f"{each.failure or 'read'}, {len(each.records)} records {each.records[:2]}" for each in (one, other)]
    return Difference(name, one.position, *what, rule)


def differences(lab: KafkaLab, version: str, folder: Path, limits: Limits = Limits()) -> list[Difference]:  # noqa: B008
    """All differences over the logs of a folder."""
    found: list[Difference] = []
    for name, theirs in kafkas(lab, version, folder).items():
        found += compare(name, ours(folder / name, limits), theirs)
    return found
