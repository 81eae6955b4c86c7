"""A part of the sweeps of ``tests.faults.sweep`` in every run: some cases of every kind in every partition."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.sweep import (
    Part,
    Tally,
    report,
    sweep_covered,
    sweep_crc,
    sweep_side_files,
    sweep_truncations,
    sweep_uncovered,
)
from tests.faults.workbench import names, workbench

#: What no look at the bytes can show; docs/reliability.md says why for each.
KNOWN = {
    "side file .kafka_cleanshutdown": "one mark of a clean stop is as good as another",
    "side file meta.properties": "comments, and names that nothing else on the disk repeats",
    "side file partition.metadata": "a topic id that nothing else on the disk repeats",
    "side file recovery-point-offset-checkpoint": "an offset inside the log, or another way to write the same",
    "side file replication-offset-checkpoint": "an offset inside the log, or another way to write the same",
    "compacted log, byte outside the CRC: v2 base_offset": "a base offset moved into a gap",
    "contiguous log, byte outside the CRC: v0 base_offset": "a message moved up at the end: a cleaner leaves such gaps",
    "contiguous log, byte outside the CRC: v1 base_offset": "a message moved up at the end: a cleaner leaves such gaps",
    "side file cleaner-offset-checkpoint": "an offset inside the log, or another way to write the same",
    "side file log-start-offset-checkpoint": "an offset inside the log, or another way to write the same",
    "side file leader-epoch-checkpoint": "a start inside the first batch of an epoch, or another way to write the same",
}


def unexplained(tally: Tally) -> list[str]:
    return [
        what for what in tally.undetected if not any(what == known or what.startswith(known + ": ") for known in KNOWN)
    ]


@pytest.mark.parametrize("name", names())
def test_single_byte_changes_and_truncations(name: str, tmp_path: Path) -> None:
    tally = Tally()
    bench = workbench(tmp_path, name)
    assert bench.before == set()
    log_bytes = sum(path.stat().st_size for path in bench.logs)
    sweep_uncovered(bench, Part(389), tally)
    sweep_covered(bench, Part(max(97, log_bytes // 20)), tally)
    sweep_crc(bench, Part(max(47, log_bytes // 40)), tally)
    sweep_truncations(bench, Part(max(97, log_bytes // 20)), tally)
    assert sum(tally.cases.values()) > 100
    assert unexplained(tally) == [], report(tally)


@pytest.mark.parametrize("name", ["v1-codec-1", "payments-1"])
def test_bytes_of_side_files(name: str, tmp_path: Path) -> None:
    tally = Tally()
    sweep_side_files(workbench(tmp_path, name), Part(431), tally)
    assert sum(tally.cases.values()) > 20
    assert unexplained(tally) == [], report(tally)
