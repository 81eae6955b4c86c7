"""kafkalog diff on two replicas of some hundred MiB; prints the table of docs/performance.md.

    python -m tests.benchmarks.bench_diff [--data DIR] [--rounds N] [--mib N]

Speeds are the bytes of both replicas together over the time of the whole process, on the clock and of the processors,
with a warm page cache; each is the best of the rounds. Nothing here asserts a time.
"""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from format.limits import MIB
from format.log.encode_batches import BatchHeader, encode_batch
from tests.benchmarks.measure import peak_bytes, run
from tests.record_encoder import NewRecord, encode_record


def _records(base_offset: int, size_bytes: int) -> bytes:
    value = os.urandom(size_bytes // 2).hex().encode()
    return encode_record(NewRecord(0, 0, b"key-%d" % base_offset, value, ()))


def write_log(directory: Path, size_bytes: int, batch_bytes: int, *, codec: Callable[[int], int]) -> None:
    """A log of one record a batch; ``codec`` says by which one each batch is compressed."""
    directory.mkdir(parents=True)
    content = _records(0, batch_bytes - 100)
    made = {each: encode_batch(BatchHeader(0, 0, 1), content, codec=each) for each in (0, 3)}
    offset = written = 0
    with (directory / f"{0:020d}.log").open("wb") as log:
        while written < size_bytes:
            whole = bytearray(made[codec(offset)])
            whole[0:8] = offset.to_bytes(8, "big")  # not covered by the CRC
            written += log.write(whole)
            offset += 1


def cases(data: Path, size_bytes: int) -> list[tuple[str, Path, Path]]:
    """What is measured: a name, and two replicas."""
    result = []
    for batch_bytes in (500, 4000, 16_000, 100_000):
        one, other = data / f"{batch_bytes}" / "a" / "t-0", data / f"{batch_bytes}" / "b" / "t-0"
        write_log(one, size_bytes, batch_bytes, codec=lambda _: 0)
        shutil.copytree(one, other)
        result.append((f"the same bytes, batches of {batch_bytes:,} bytes", one, other))
    moved = data / "moved" / "t-0"
    write_log(moved, size_bytes, 16_000, codec=lambda offset: 3 if offset == 0 else 0)
    # The other replica has the first batch without compression, so that all others lie elsewhere.
    original = data / "original" / "t-0"
    original.mkdir(parents=True)
    content = (moved / f"{0:020d}.log").read_bytes()
    first = 12 + int.from_bytes(content[8:12], "big")
    second = bytearray(content[first : first + 12 + int.from_bytes(content[first + 8 : first + 12], "big")])
    second[0:8] = bytes(8)
    (original / f"{0:020d}.log").write_bytes(bytes(second) + content[first:])
    result.append(("the same batches at other positions, 16,000 bytes each", original, moved))
    return result


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--mib", type=int, default=512, help="bytes of each replica")
    options = parser.parse_args()
    print("| what | GB/s of both together | GB/s by CPU | peak MiB |\n| --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory(prefix="diff-", dir=options.data) as data:
        for name, one, other in cases(Path(data), options.mib * MIB):
            size_bytes = sum(path.stat().st_size for each in (one, other) for path in each.iterdir())
            words = shlex.join(
                [sys.executable, "-m", "kafkalog_cli", "diff", "--format", "jsonl", str(one), str(other)]
            )
            command = ["sh", "-c", f"{words} || [ $? = 1 ]"]  # 1 says that there is a difference
            costs = [run(command) for _ in range(options.rounds)]
            clock = size_bytes / min(each.wall_s for each in costs) / 1e9
            cpu = size_bytes / min(each.cpu_s for each in costs) / 1e9
            print(f"| {name} | {clock:.1f} | {cpu:.1f} | {round(peak_bytes(command) / MIB)} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
