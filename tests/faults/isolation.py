"""What it would cost to decompress every batch in a process of its own, where a crash of a codec library does no harm.

python -m tests.faults.isolation
"""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from random import Random

from format.codecs import compress, decompress
from format.layout import CODEC_NAMES
from format.limits import MIB

SIZES = {"16 KiB": (16 * 1024, 1000), "8 MiB": (8 * MIB, 10)}
CODEC = CODEC_NAMES.index("zstd")


def serve(connection: Connection) -> None:
    """Decompresses what comes over the connection, until nothing does."""
    while payload := connection.recv_bytes():
        connection.send_bytes(decompress(CODEC, payload, magic=2))


def microseconds(work: Callable[[], object], times: int) -> float:
    """The least of three rounds, for one call."""
    rounds = []
    for _ in range(3):
        started = time.perf_counter()
        for _ in range(times):
            work()
        rounds.append(time.perf_counter() - started)
    return min(rounds) / times * 1e6


def main() -> None:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    started = time.perf_counter()
    process = context.Process(target=serve, args=(theirs,), daemon=True)
    process.start()
    words = [b"word%d " % number for number in range(4000)]
    random = Random(1)

    def elsewhere(payload: bytes) -> bytes:
        ours.send_bytes(payload)
        return ours.recv_bytes()

    elsewhere(compress(CODEC, b"x"))
    print(f"a process starts in {time.perf_counter() - started:.2f} s")
    for name, (size_bytes, times) in SIZES.items():
        content = b"".join(random.choices(words, k=size_bytes // 8))[:size_bytes]
        payload = compress(CODEC, content)
        here = microseconds(lambda payload=payload: decompress(CODEC, payload, magic=2), times)  # type: ignore[misc]
        there = microseconds(lambda payload=payload: elsewhere(payload), times)  # type: ignore[misc]
        print(f"{name} of records: {here:.0f} us here, {there:.0f} us there")
    ours.send_bytes(b"")
    process.join()


if __name__ == "__main__":
    main()
