"""verify --follow: new batches by themselves and against those before them."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from format.limits import DEFAULT_LIMITS
from format.node.target import Target
from format.scan import follow
from format.verbs.verify.partition_checks import follow_verify
from format.verbs.verify.verify import Coverage
from format.verbs.verify.walk import Level, LogWalk
from tests.building import batch, write_segment
from tests.format.scan.scripted import Step, shown_by

PRODUCER = {"producer_id": 7, "producer_epoch": 0}


@pytest.fixture(autouse=True)
def patience_is_short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follow, "_PATIENCE_S", 0.1)


def append(path: Path, content: bytes) -> Callable[[], None]:
    def do() -> None:
        with path.open("ab") as file:
            file.write(content)

    return do


def found(
    root: Path, steps: list[Step], level: Level = Level.FULL, coverage: Coverage | None = None
) -> list[tuple[str, Any]]:
    return [(each.code, each.location.offset) for each in findings(root, steps, level, coverage)]


def findings(root: Path, steps: list[Step], level: Level = Level.FULL, coverage: Coverage | None = None) -> list[Any]:
    walk, counted = LogWalk(level, DEFAULT_LIMITS), coverage or Coverage()
    return shown_by(lambda follow: follow_verify([Target(root)], walk, follow, counted), steps)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    old = batch(0, base_sequence=0, **PRODUCER)
    return write_segment(tmp_path / "t-0", 0, [old, batch(3, base_sequence=3, **PRODUCER)])


def test_sound_batches_give_nothing_and_are_counted(log: Path) -> None:
    coverage = Coverage()
    steps: list[Step] = [
        (append(log, batch(6, base_sequence=6, **PRODUCER)), 0),
        (append(log.with_name("00000000000000000009.log"), batch(9, base_sequence=9, **PRODUCER)), 0),
        (append(log.with_name("00000000000000000012.log"), b"\x00"), 0),
        (append(log.with_name("00000000000000000009.log"), batch(12)[:0]), 0),
    ]
    assert found(log.parent, steps, coverage=coverage) == []
    assert (coverage.partitions, coverage.segments, coverage.batches, coverage.records) == (1, 2, 2, 6)
    assert coverage.bytes == 2 * len(batch(6, base_sequence=6, **PRODUCER))


def test_what_does_not_follow_what_was_there(log: Path) -> None:
    steps: list[Step] = [
        (append(log, batch(6, base_sequence=20, **PRODUCER)), 1),
        (append(log, batch(6, base_sequence=23, **PRODUCER)), 1),
        (append(log, batch(12, base_sequence=26, **PRODUCER)), 0),
    ]
    assert found(log.parent, steps) == [("sequence-gap", 6), ("offset-not-increasing", 6)]


def test_lower_levels_look_at_less(log: Path) -> None:
    steps: list[Step] = [(append(log, batch(6, base_sequence=60, **PRODUCER)), 0), (append(log, batch(11)), 1)]
    assert found(log.parent, steps, Level.HEADERS) == [("offset-gap", 11)]


def test_a_wrong_crc(log: Path) -> None:
    bad = bytearray(batch(6))
    bad[-1] ^= 1
    assert found(log.parent, [(append(log, bytes(bad)), 1)]) == [("batch-crc-mismatch", 6)]
    assert found(log.parent, [(append(log, bytes(bad) + batch(9)), 1)], Level.CRC)[0] == (
        "batch-crc-mismatch",
        6,
    )


def test_offsets_of_a_batch_that_is_out_of_place_are_not_lost(log: Path) -> None:
    content = b"x" * 300 + batch(12, base_sequence=12, **PRODUCER) + batch(6, base_sequence=6, **PRODUCER)
    broken = [each for each in findings(log.parent, [(append(log, content), 3)]) if each.code == "log-framing-broken"]
    assert [each.lost_offsets for each in broken] == [(9, 11)]


def test_after_a_cut_the_checks_start_anew(log: Path) -> None:
    size = log.stat().st_size
    steps: list[Step] = [
        (append(log, batch(6, base_sequence=6, **PRODUCER)), 0),
        (lambda: os.truncate(log, size), 1),
        (append(log, batch(6, base_sequence=6, **PRODUCER)), 0),
        (append(log, batch(9, base_sequence=10, **PRODUCER)), 1),
    ]
    assert found(log.parent, steps) == [("followed-log-cut", 6), ("sequence-gap", 9)]
