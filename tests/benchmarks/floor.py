"""The floor: what reading a log, computing its CRCs and decompressing its batches takes by the C libraries alone.

``python -m tests.benchmarks.floor LOG … [--records] [--passes N]`` prints seconds on the clock and of the processor.
"""

from __future__ import annotations

import argparse
import os
import time
import zlib
from collections.abc import Callable
from pathlib import Path

import lz4.frame
import snappy
import zstandard
from crc32c import crc32c

from format.codecs.gzip_members import inflate_library
from format.layout import CODEC_MASK, MESSAGE_V1, RECORD_BATCH

_READ_BYTES = 4 * 1024 * 1024
_GZIP_WINDOW_BITS = 31
_XERIAL_HEADER_BYTES = 16


def _unsnap(payload: memoryview) -> None:
    position = _XERIAL_HEADER_BYTES
    while position < len(payload):
        length = int.from_bytes(payload[position : position + 4], "big")
        snappy.uncompress(payload[position + 4 : position + 4 + length])
        position += 4 + length


_zstd = zstandard.ZstdDecompressor()
DECOMPRESSORS: tuple[Callable[[memoryview], object], ...] = (
    len,
    lambda payload: inflate_library.decompress(payload, _GZIP_WINDOW_BITS),
    _unsnap,
    lz4.frame.decompress,
    _zstd.decompress,
)


def pass_over(path: Path, *, with_records: bool) -> None:
    """One pass over a log of whole batches."""
    fd = os.open(path, os.O_RDONLY)
    size = os.fstat(fd).st_size
    position = 0
    while position < size:
        buffer = memoryview(os.pread(fd, _READ_BYTES, position))
        at = 0
        while len(buffer) - at >= RECORD_BATCH.size_bytes:
            end = at + 12 + int.from_bytes(buffer[at + 8 : at + 12], "big")
            if end > len(buffer):
                break
            if buffer[at + 16] == 2:
                crc32c(buffer[at + 21 : end])
                if with_records:
                    DECOMPRESSORS[buffer[at + 22] & CODEC_MASK](buffer[at + RECORD_BATCH.size_bytes : end])
            else:
                zlib.crc32(buffer[at + 16 : end])
                if with_records and buffer[at + 17] & CODEC_MASK:
                    payload = buffer[at + MESSAGE_V1.size_bytes + 8 : end]
                    DECOMPRESSORS[buffer[at + 17] & CODEC_MASK](payload)
            at = end
        position += at
        if at == 0:
            break
    os.close(fd)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("logs", nargs="+", type=Path)
    parser.add_argument("--records", action="store_true", help="decompress, too")
    parser.add_argument("--passes", type=int, default=3, help="the best of so many counts")
    options = parser.parse_args()
    costs = []
    for _ in range(options.passes):
        wall, cpu = time.perf_counter(), time.process_time()
        for log in options.logs:
            pass_over(log, with_records=options.records)
        costs.append((time.perf_counter() - wall, time.process_time() - cpu))
    print(*min(costs))


if __name__ == "__main__":
    main()
