"""A log that is damaged in hundreds of places: each is reported, and memory stays that of a few chunks."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.building import batch
from tests.corpora import REPOSITORY

pytestmark = pytest.mark.long

MOST_BYTES = 400 * 1024 * 1024
_BATCHES, _DAMAGED_EVERY = 60_000, 100
_FIRST_OFFSET = 0x0123_4567_89AB_CDEF  # without zeros, which would look like the lengths of old messages
_CHILD = """
import resource, sys
sys.argv = ["kafkalog", *sys.argv[1:]]
from kafkalog_cli.main import main
try:
    code = main()
except SystemExit as leaving:
    code = leaving.code
with open("/proc/self/status") as lines:  # ru_maxrss begins with that of the process that started this one
    peak = int(next(line for line in lines if line.startswith("VmHWM")).split()[1])
print(code or 0, max(peak, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss) * 1024, file=sys.stderr)
"""


@pytest.fixture(scope="module")
def partition(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """24 MB of batches of 400 bytes; in every 100th the length is wrong, and reading has to start again after it."""
    directory = tmp_path_factory.mktemp("damaged") / "t-0"
    directory.mkdir()
    one = batch(0, [b"7" * 320])
    with (directory / f"{_FIRST_OFFSET:020d}.log").open("wb") as log:
        for number in range(_BATCHES):
            content = (_FIRST_OFFSET + number).to_bytes(8, "big") + one[8:]  # the base offset lies outside the CRC
            log.write(content[:8] + b"\xff" + content[9:] if number % _DAMAGED_EVERY == 20 else content)
    return directory


@pytest.mark.parametrize(
    "words",
    [
        ("verify", "--jobs", "2"),
        ("dump", "--records", "--jobs", "2"),
        ("grep", "7", "--jobs", "2"),
        ("salvage",),
        ("recompress", "--codec", "gzip", "--skip-damaged", "--jobs", "2"),
        ("redact",),
        ("extract", "--to", "parquet"),
    ],
    ids=lambda words: words[0],
)
def test_every_damage_is_reported_and_memory_is_bounded(
    words: tuple[str, ...], partition: Path, tmp_path: Path
) -> None:
    writes = words[0] in ("salvage", "recompress", "redact", "extract")
    more = ["--output", str(tmp_path / "out")] if writes else []
    done = subprocess.run(
        [sys.executable, "-c", _CHILD, *words, str(partition), *more, "--format", "jsonl", "--quiet"],
        capture_output=True,
        cwd=REPOSITORY,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        timeout=300,
        check=False,
    )
    code, peak_bytes = done.stderr.split()[-2:]
    assert int(code) == 1, done.stderr[-2000:]
    reported = done.stdout.count(b'"type":"finding"')
    assert reported == (103 if words[0] == "verify" else _BATCHES // _DAMAGED_EVERY)
    assert int(peak_bytes) < MOST_BYTES
