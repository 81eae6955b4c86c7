"""A gigabyte in a few kilobytes, for each codec, through verify and dump as a user runs them: a limit, not a crash."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from format.errors import LimitExceeded
from format.io.source import FileSource
from format.log import read_records
from format.log.encode_batches import BatchHeader, encode_batch, encode_message, seal_batch
from format.log.walker import batch_chunks
from tests.building import BASE_TIMESTAMP, batch, write_segment
from tests.corpora import REPOSITORY
from tests.format.payloads import (
    GZIP,
    LZ4,
    SNAPPY,
    ZSTD,
    gzip_zeros,
    lz4_zeros,
    snappy_stream_zeros,
    snappy_zeros,
    zstd_zeros,
)
from tests.record_encoder import NewRecord, encode_record, encode_varint

MOST_BYTES = 400 * 1024 * 1024
GIB_IN_MIB = 1024
BOMBS: dict[str, tuple[int, int, Callable[[], bytes]]] = {
    "gzip": (2, GZIP, lambda: gzip_zeros(GIB_IN_MIB)),
    "snappy raw, declared": (2, SNAPPY, lambda: snappy_zeros(GIB_IN_MIB)),
    "snappy chunks": (2, SNAPPY, lambda: snappy_stream_zeros(GIB_IN_MIB)),
    "lz4": (2, LZ4, lambda: lz4_zeros(GIB_IN_MIB)),
    "lz4, declared": (2, LZ4, lambda: lz4_zeros(GIB_IN_MIB, declared=True)),
    "zstd, not declared": (2, ZSTD, lambda: zstd_zeros(GIB_IN_MIB)),
    "zstd, declared": (2, ZSTD, lambda: zstd_zeros(GIB_IN_MIB, declared=True)),
    "gzip in v0": (0, GZIP, lambda: gzip_zeros(GIB_IN_MIB)),
    "snappy in v1": (1, SNAPPY, lambda: snappy_stream_zeros(GIB_IN_MIB)),
    "lz4 in v1": (1, LZ4, lambda: lz4_zeros(GIB_IN_MIB)),
}
_CHILD = """
import sys, time, resource
from pathlib import Path
started = time.perf_counter()
sys.argv = ["kafkalog", *sys.argv[1:]]
from kafkalog_cli.main import main
try:
    code = main()
except SystemExit as leaving:
    code = leaving.code
with open("/proc/self/status") as lines:
    peak = int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) * 1024
print(f"{code or 0} {peak} {time.perf_counter() - started}", file=sys.stderr)
"""


@dataclass(frozen=True)
class Bombed:
    """What one run over a bomb came to."""

    code: int
    peak_bytes: int
    seconds: float
    codes: list[str]
    complete: bool


def bombed(name: str, folder: Path, command: str = "verify") -> Bombed:
    """A log with this bomb between two sound batches, through a command in a process of its own."""
    magic, codec, make = BOMBS[name]
    payload = make()
    if magic == 2:
        header = BatchHeader(3, 2, 3, BASE_TIMESTAMP, BASE_TIMESTAMP)
        one = seal_batch(header, payload, codec=codec)
    else:
        one = encode_message(magic, 5, None, payload, attributes=codec)
    partition = folder / "t-0"
    partition.mkdir()
    (partition / f"{0:020d}.log").write_bytes(batch(0) + one + batch(6))
    words = [command, *(["--records"] if command == "dump" else []), "--format", "jsonl", str(partition)]
    done = subprocess.run(
        [sys.executable, "-c", _CHILD, *words], cwd=REPOSITORY, capture_output=True, text=True, check=False
    )
    assert "Traceback" not in done.stderr, done.stderr
    code, peak, seconds = done.stderr.split("\n")[-2].split()
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    codes = [row["code"] for row in rows if row["type"] == "finding" and row["code"] != "index-missing"]
    return Bombed(int(code), int(peak), float(seconds), codes, rows[-1]["complete"])


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the peak of a process's memory is read from /proc")
@pytest.mark.parametrize(("command", "name"), [*(("verify", name) for name in BOMBS), ("dump", "zstd, declared")])
def test_a_bomb_meets_a_limit(name: str, command: str, tmp_path: Path) -> None:
    found = bombed(name, tmp_path, command)
    assert found.codes == ["limit-exceeded"]
    assert (found.code, found.complete) == (3, False)
    assert found.peak_bytes < MOST_BYTES


def with_headers(base_offset: int, count: int) -> bytes:
    """A batch of two records, the first with so many headers of two bytes."""
    body = b"\0" + encode_varint(0) * 2 + encode_varint(-1) * 2 + encode_varint(count) + b"\0\1" * count
    other = encode_record(NewRecord(1, 1, b"k", b"v", ()))
    records = encode_varint(len(body)) + body + other
    header = BatchHeader(base_offset=base_offset, last_offset_delta=1, record_count=2)
    return encode_batch(header, records, codec=4)


def test_a_record_of_millions_of_headers_meets_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_records, "MOST_HEADERS", 1000)
    log = write_segment(tmp_path / "t-0", 0, [batch(0), with_headers(3, 1000), with_headers(5, 1001), batch(7)])
    with FileSource(log) as source:
        tables = [table for chunk in batch_chunks(source) for table in read_records.record_tables(chunk)]
    assert [offset for table in tables for offset in table.offset.tolist()] == [0, 1, 2, 3, 4, 7, 8, 9]
    [problem] = [each for table in tables for each in table.problems]
    assert isinstance(problem.error, LimitExceeded)
    assert "1001 headers" in str(problem.error)
