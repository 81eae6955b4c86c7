"""Bombs, forged sizes and millions of parts: a limit stops them in bounded memory, and none is called corrupt."""

from __future__ import annotations

import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from format.codecs import compress, decompress
from format.errors import LimitExceeded
from format.limits import DEFAULT_LIMITS, MIB
from tests.corpora import REPOSITORY
from tests.format.payloads import (
    GZIP,
    LZ4,
    SNAPPY,
    XERIAL_HEADER,
    ZSTD,
    gzip_member,
    gzip_zeros,
    lz4_zeros,
    snappy_stream_zeros,
    snappy_zeros,
    zstd_header,
    zstd_zeros,
)

pytestmark = pytest.mark.long

#: What decompressing may take beyond its result: steps, windows, the growth of a buffer.
ROOM_MIB = 48
LIMIT_MIB = DEFAULT_LIMITS.max_decompressed_bytes // MIB

ZEROS: dict[str, tuple[int, Callable[[int], bytes]]] = {
    "gzip": (GZIP, gzip_zeros),
    "gzip in members": (GZIP, lambda mib: gzip_zeros(4) + gzip_zeros(mib - 8) + gzip_zeros(4)),
    "snappy raw": (SNAPPY, snappy_zeros),
    "snappy chunks": (SNAPPY, snappy_stream_zeros),
    "lz4": (LZ4, lz4_zeros),
    "lz4 in frames": (LZ4, lambda mib: lz4_zeros(4) + lz4_zeros(mib - 8) + lz4_zeros(4)),
    "zstd": (ZSTD, zstd_zeros),
    "zstd declared": (ZSTD, lambda mib: zstd_zeros(mib, declared=True)),
    "zstd in frames": (ZSTD, lambda mib: zstd_zeros(4) + zstd_zeros(mib - 8, declared=True) + zstd_zeros(4)),
}

_CHILD = """
import sys
from format.codecs import compress, decompress
from format.errors import KafkaLogError

def peak_mib():
    with open("/proc/self/status") as lines:
        return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) / 1024

codec, path = int(sys.argv[1]), sys.argv[2]
with open(path, "rb") as file:
    payload = file.read()
decompress(codec, compress(codec, b"warm up"), magic=2)
before = peak_mib()
try:
    outcome = len(decompress(codec, payload, magic=2))
except KafkaLogError as error:
    outcome = type(error).__name__
print(outcome, peak_mib() - before)
"""


def outcome_and_peak_mib(codec: int, payload: bytes, directory: Path) -> tuple[str, float]:
    """What a process of its own makes of the payload, and by how many MiB its memory grew.

    The peak is the kernel's own count, for a child inherits that of getrusage from the process of the tests.
    """
    if not Path("/proc/self/status").exists():
        pytest.skip("the peak of a process's memory is read from /proc")
    path = directory / "payload"
    path.write_bytes(payload)
    command = [sys.executable, "-c", _CHILD, str(codec), str(path)]
    run = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr[-2000:]
    outcome, peak = run.stdout.split()
    return outcome, float(peak)


@pytest.mark.parametrize("name", ZEROS)
def test_a_bomb_of_1_gib_meets_the_limit(name: str, tmp_path: Path) -> None:
    codec, zeros = ZEROS[name]
    outcome, peak_mib = outcome_and_peak_mib(codec, zeros(1024), tmp_path)
    assert outcome == "LimitExceeded"
    assert peak_mib < LIMIT_MIB + ROOM_MIB


@pytest.mark.parametrize("name", ZEROS)
def test_a_result_as_large_as_the_limit_is_held_once(name: str, tmp_path: Path) -> None:
    codec, zeros = ZEROS[name]
    outcome, peak_mib = outcome_and_peak_mib(codec, zeros(LIMIT_MIB), tmp_path)
    assert outcome == str(LIMIT_MIB * MIB)
    assert LIMIT_MIB - 1 < peak_mib < LIMIT_MIB + ROOM_MIB


@pytest.mark.parametrize("name", ZEROS)
def test_the_zeros_are_sound(name: str) -> None:
    """The bombs above are stopped for their size, not because they are badly made."""
    codec, zeros = ZEROS[name]
    assert decompress(codec, zeros(16), magic=2) == bytes(16 * MIB)


@pytest.mark.parametrize(
    ("codec", "payload"),
    [
        pytest.param(ZSTD, zstd_header(200 * MIB) + b"\x01\x00\x00", id="zstd"),
        pytest.param(SNAPPY, b"\x80\x80\x80\x60" + b"\x00\x00", id="snappy"),
        pytest.param(LZ4, compress(LZ4, b"x")[:-1], id="lz4"),
        pytest.param(GZIP, gzip_member(b"x")[:-4] + struct.pack("<I", 200 * MIB), id="gzip"),
    ],
)
def test_a_forged_size_takes_no_memory(codec: int, payload: bytes, tmp_path: Path) -> None:
    outcome, peak_mib = outcome_and_peak_mib(codec, payload, tmp_path)
    assert outcome == "DecompressionFailed"
    assert peak_mib < 16


EMPTY_PARTS = 300_000


@pytest.mark.parametrize(
    ("codec", "payload"),
    [
        pytest.param(GZIP, gzip_member(b"") * EMPTY_PARTS, id="gzip members"),
        pytest.param(LZ4, compress(LZ4, b"") * EMPTY_PARTS, id="lz4 frames"),
        pytest.param(SNAPPY, XERIAL_HEADER + b"\x00\x00\x00\x01\x00" * EMPTY_PARTS, id="snappy chunks"),
        pytest.param(SNAPPY, XERIAL_HEADER * EMPTY_PARTS, id="snappy streams"),
        pytest.param(ZSTD, compress(ZSTD, b"") * EMPTY_PARTS, id="zstd frames"),
        pytest.param(ZSTD, zstd_header() + bytes(3) * EMPTY_PARTS, id="zstd blocks"),
        pytest.param(ZSTD, struct.pack("<II", 0x184D2A50, 0) * EMPTY_PARTS, id="zstd skippable frames"),
    ],
)
@pytest.mark.parametrize("magic", [0, 2])
def test_parts_without_number_meet_a_limit(codec: int, payload: bytes, magic: int) -> None:
    with pytest.raises(LimitExceeded, match="in one payload"):
        decompress(codec, payload, magic=magic)
