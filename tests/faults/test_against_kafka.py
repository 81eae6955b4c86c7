"""Hundreds of damaged logs through the readers of two Kafka releases: no difference that a rule does not explain."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import unavailable
from tests.faults.kafka_reader import ReadBatch, ReadLog, compare, differences
from tests.faults.mutations import case
from tests.faults.workbench import LEGACY, SINGLE
from tests.oracle.kafka_lab import KafkaLab

SEED = 77
CASES = 300
FLIPS = 150
REAL_LOGS = (SINGLE / "clients-0", SINGLE / "edge.cases_1-0", LEGACY / "legacy-0")


def lay_out(folder: Path, cases: int = CASES, flips: int = FLIPS) -> int:
    """Mutations under right CRCs, and real logs with one byte changed; gives their number."""
    for number in range(cases):
        for name, content in case(SEED, number).files.items():
            if name.endswith(".log"):
                (folder / f"case-{number:05d}.log").write_bytes(content)
    for partition in REAL_LOGS:
        content = min(partition.glob("*.log")).read_bytes()[:40_000]
        for number in range(flips // len(REAL_LOGS)):
            position = number * 7919 % len(content)
            changed = content[:position] + bytes([content[position] ^ (1 << number % 8)]) + content[position + 1 :]
            (folder / f"{partition.name}-{position:05d}.log").write_bytes(changed)
    return len(list(folder.iterdir()))


@pytest.mark.oracle
@pytest.mark.parametrize("version", ["4.3.1", "3.9.1"])
def test_no_difference_is_unexplained(version: str, tmp_path: Path) -> None:
    lab = KafkaLab()
    reason = lab.missing(version)
    if reason is not None:
        unavailable(reason)
    assert lay_out(tmp_path) > 400
    found = differences(lab, version, tmp_path)
    assert found, "damaged logs on which both readers agree to the last are no test"
    assert [each for each in found if not each.rule] == []


def test_a_difference_is_seen() -> None:
    def log(**changes: object) -> ReadLog:
        fields = {
            "position": 0,
            "size_bytes": 70,
            "magic": 2,
            "last_offset": 0,
            "is_valid": True,
            "records": [(0, 1, 2)],
        }
        return ReadLog([ReadBatch(**(fields | changes))])  # type: ignore[arg-type]

    assert compare("log", log(), log()) == []
    for changes in (
        {"is_valid": False},
        {"size_bytes": 71},
        {"records": [(0, 1, 3)]},
        {"failure": "x"},
        {"position": 9},
    ):
        assert [each.rule for each in compare("log", log(), log(**changes))] == [""], changes
        assert [each.rule for each in compare("log", log(**changes), log())] == [""], changes
