"""salvage --merge of three damaged nodes of some GiB: MB/s of output, and the peak memory.

    python -m tests.benchmarks.bench_merge [--data DIR] [--gib N] [--partitions N] [--batch-bytes N]

Each replica has damage of its own in every segment, and a part of it lies in all three. The time is that of the whole
process on the clock, and of the processors, with the page cache as the making of the data left it. Nothing here asserts
a time.
"""

from __future__ import annotations

import argparse
import os
import random
import shlex
import shutil
import struct
import sys
import tempfile
from pathlib import Path

from tests.benchmarks.measure import MIB, peak_bytes, run
from tests.building import batch

_SEGMENT_BYTES = 512 * MIB


def write_replica(directory: Path, size_bytes: int, batch_bytes: int) -> None:
    """A log of one record a batch, with segments and offset indexes as a broker has them.

    No CRC covers the base offset.
    """
    directory.mkdir(parents=True)
    whole = bytearray(batch(0, [os.urandom(batch_bytes - 100)]))
    offset = 0
    for start in range(0, size_bytes, _SEGMENT_BYTES):
        base, entries = offset, bytearray()
        with (directory / f"{base:020d}.log").open("wb") as log:
            for number in range(min(_SEGMENT_BYTES, size_bytes - start) // len(whole)):
                whole[0:8] = offset.to_bytes(8, "big")
                log.write(whole)
                if number:
                    entries += struct.pack(">ii", offset - base, number * len(whole))
                offset += 1
        (directory / f"{base:020d}.index").write_bytes(entries)
    (directory / "leader-epoch-checkpoint").write_text("0\n1\n0 0\n")


def damage(directory: Path, rng: random.Random, count: int) -> None:
    """Overwrite pages of each segment."""
    for path in sorted(directory.glob("*.log")):
        with path.open("r+b") as log:
            for _ in range(count):
                log.seek(rng.randrange(path.stat().st_size - 4096))
                log.write(rng.randbytes(4096))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--gib", type=float, default=2, help="bytes of each node")
    parser.add_argument("--partitions", type=int, default=4)
    parser.add_argument("--batch-bytes", type=int, default=16_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="merge-", dir=options.data) as scratch:
        root = Path(scratch)
        nodes = [root / f"node-{number}" for number in (1, 2, 3)]
        for partition in range(options.partitions):
            first = nodes[0] / f"t-{partition}"
            write_replica(first, int(options.gib * 1024 * MIB) // options.partitions, options.batch_bytes)
            for number, node in enumerate(nodes):
                if number:
                    shutil.copytree(first, node / first.name)
            for number, node in enumerate(nodes):
                damage(node / first.name, random.Random(number), 20)
                damage(node / first.name, random.Random(99), 2)
        output = root / "merged"
        words = [
            sys.executable,
            "-m",
            "kafkalog_cli",
            "salvage",
            "--merge",
            *map(str, nodes),
            "--output",
            str(output),
        ]
        os.sync()  # or the disk is busy with the replicas
        cost = run(words, expected=(0, 1))
        size_bytes = sum(path.stat().st_size for path in output.rglob("*.log"))
        shutil.rmtree(output)
        peak = peak_bytes(["sh", "-c", f"{shlex.join(words)} || [ $? = 1 ]"])
        print("| GiB of a node | MB/s of output | MB/s by CPU | peak MiB |\n| --- | --- | --- | --- |")
        speeds = [f"{size_bytes / seconds / 1e6:.0f}" for seconds in (cost.wall_s, cost.cpu_s)]
        print(f"| {options.gib:g} | {' | '.join(speeds)} | {peak / MIB:.0f} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
