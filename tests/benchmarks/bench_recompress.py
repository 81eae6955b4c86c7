"""recompress against the codec libraries themselves: the same bytes, and reading and writing them.

Run by hand: ``python -m tests.benchmarks.bench_recompress [--mib 512] [--batch-kib 16] [--turns 3] [--table]``. Without
--table it compares the whole command's work with two sums, both of the codec's library called as plainly as can be
plus plain reading, writing and flushing: ``bare``, to decompress the source and compress it; and ``with reading back``,
which is that and to read and decompress source and output once more, as the command does to compare them. Neither
counts checksums (CRC-32C of every batch, SHA-256 of the output) or the comparison. Both are given by the clock and in
processor time, of all processes together. With --table it measures size and speed of each codec and level, for
docs/recompress.md.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from format.codecs import compress, decompress
from format.io.read_policy import keep_freed_memory
from format.layout import CODEC_NAMES
from format.log.encode_batches import BatchHeader, encode_batch
from format.rewriting.publication import Publication
from format.rewriting.sources import read_write_sources
from format.verbs.recompress.new_batches import PlanTerms, TargetFormat
from format.verbs.recompress.recompress import Recompression, recompress
from tests.record_encoder import NewRecord, encode_record

BASE_TIMESTAMP = 1_700_000_000_000
_DISTINCT_BATCHES = 256
LEVELS: tuple[tuple[str, int | None], ...] = (
    ("none", None),
    ("gzip", 1), ("gzip", 6), ("gzip", 9),
    ("snappy", None),
    ("lz4", 1), ("lz4", 9), ("lz4", 17),
    ("zstd", 1), ("zstd", 3), ("zstd", 6), ("zstd", 9), ("zstd", 15), ("zstd", 19),
)  # fmt: skip


def order_event(rng: random.Random) -> bytes:
    """A JSON document as a shop's service sends it: repeated names, random ids, a little text."""
    return json.dumps(
        {
            "eventId": f"{rng.getrandbits(128):032x}",
            "eventType": rng.choice(("OrderPlaced", "OrderShipped", "PaymentAuthorised", "CartUpdated")),
            "occurredAt": BASE_TIMESTAMP + rng.randrange(10**9),
            "customer": {"id": rng.randrange(10**7), "segment": rng.choice(("b2c", "b2b")), "country": rng.choice(
                ("DE", "FR", "US", "GB", "PL", "NL"))},
            "items": [
                {"sku": f"SKU-{rng.randrange(50_000):06d}", "quantity": rng.randrange(1, 5),
                 "price": round(rng.uniform(1, 300), 2), "currency": "EUR"}
                for _ in range(rng.randrange(1, 4))
            ],
            "visit": f"{rng.getrandbits(64):016x}",
            "userAgent": rng.choice(("Mozilla/5.0 (X11; Linux x86_64)", "okhttp/4.12.0", "shop-ios/7.3.1")),
        }
    ).encode()  # fmt: skip


def payloads(batch_bytes: int) -> list[tuple[bytes, int]]:
    """Encoded records of about ``batch_bytes`` for some distinct batches, and how many records each holds."""
    rng = random.Random(1)
    found = []
    for _ in range(_DISTINCT_BATCHES):
        parts: list[bytes] = []
        size_bytes = 0
        while size_bytes < batch_bytes:
            key = f"customer-{rng.randrange(10**6)}".encode()
            parts.append(encode_record(NewRecord(len(parts), len(parts) * 3, key, order_event(rng))))
            size_bytes += len(parts[-1])
        found.append((b"".join(parts), len(parts)))
    return found


def write_source(directory: Path, total_bytes: int, batch_bytes: int, codec: str) -> list[bytes]:
    """A partition of one segment with these batches under a codec; its payloads, uncompressed, in order."""
    pool = payloads(batch_bytes)
    number = CODEC_NAMES.index(codec)
    plain: list[bytes] = []
    offset = written = 0
    directory.mkdir(parents=True)
    packed = [encode_batch(BatchHeader(0, n - 1, n, BASE_TIMESTAMP, BASE_TIMESTAMP + 3 * n), p, codec=number)
              for p, n in pool]  # fmt: skip
    with (directory / f"{0:020d}.log").open("wb") as log:
        while written < total_bytes:
            at = len(plain) % len(pool)
            log.write(offset.to_bytes(8, "big") + packed[at][8:])  # the base offset lies outside the CRC
            plain.append(pool[at][0])
            offset += pool[at][1]
            written += len(pool[at][0])
    return plain


class Taken(NamedTuple):
    """Seconds by the clock and of processors."""

    clock_s: float
    processor_s: float

    def plus(self, *others: Taken) -> Taken:
        return Taken(*map(sum, zip(self, *others, strict=True)))


NOTHING = Taken(0.0, 0.0)


def _processor_s() -> float:
    """Of this process, and of those that it forked and that have ended."""
    return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


def taken_by(work: Callable[[], object]) -> Taken:
    start, processor_start = time.perf_counter(), _processor_s()
    work()
    return Taken(time.perf_counter() - start, _processor_s() - processor_start)


def least(several: list[Taken]) -> Taken:
    return Taken(*map(min, zip(*several, strict=True)))


class Library:
    """A codec's library called as plainly as can be: contexts are used again, no limits, no framing of Kafka's."""

    def __init__(self, codec: str, level: int | None) -> None:
        self.compress: Callable[[bytes], Any]
        self.decompress: Callable[[Any], bytes]
        if codec == "zstd":
            import zstandard

            self.compress = zstandard.ZstdCompressor(level=level or 3).compress
            self.decompress = zstandard.ZstdDecompressor().decompress
        elif codec == "lz4":
            import lz4.frame

            self.compress = partial(
                lz4.frame.compress,
                compression_level=0 if level in (None, 9) else level,  # as in Kafka, where 9 is the fast compressor
                block_size=lz4.frame.BLOCKSIZE_MAX64KB,
                block_linked=False,
                store_size=False,
            )
            self.decompress = lz4.frame.decompress
        elif codec == "snappy":
            import snappy

            self.compress = lambda plain: [
                snappy.compress(plain[start : start + 32768]) for start in range(0, len(plain), 32768)
            ]
            self.decompress = lambda blocks: b"".join(map(snappy.uncompress, blocks))
        elif codec == "gzip":
            import zlib

            from format.codecs.gzip_members import inflate_library

            self.compress = partial(zlib.compress, level=level or 6, wbits=31)
            self.decompress = partial(inflate_library.decompress, wbits=31)
        else:
            self.compress = self.decompress = bytes

    def times(self, plain: list[bytes]) -> tuple[Taken, Taken]:
        """Of compressing and of decompressing, one thread."""
        if self.compress is bytes:
            return NOTHING, NOTHING
        packed: list[Any] = []
        compressing = taken_by(lambda: packed.extend(map(self.compress, plain)))
        return compressing, taken_by(lambda: [None for each in packed if not self.decompress(each)])


def codec_alone(plain: list[bytes], codec: str, level: int | None) -> tuple[Taken, Taken, list[bytes]]:
    """What ``format.codecs`` takes to compress and decompress, one thread, and what came out."""
    number = CODEC_NAMES.index(codec)
    packed: list[bytes] = []
    if not number:
        return NOTHING, NOTHING, plain
    compressing = taken_by(lambda: packed.extend(compress(number, each, level=level) for each in plain))
    decompressing = taken_by(lambda: [decompress(number, each, magic=2) for each in packed])
    return compressing, decompressing, packed


def reading(path: Path) -> Taken:
    def run() -> None:
        with path.open("rb", buffering=0) as log:
            while log.read(4 << 20):
                pass

    return taken_by(run)


def writing(packed: list[bytes], path: Path) -> Taken:
    def run() -> None:
        with path.open("wb", buffering=1 << 20) as file:
            for each in packed:
                file.write(each)
            file.flush()
            os.fsync(file.fileno())

    return taken_by(run)


def whole_command(partition: Path, target: Path, codec: str, level: int | None, jobs: int) -> Taken:
    def run() -> None:
        sources = read_write_sources([partition])
        terms = Recompression(plan=PlanTerms(TargetFormat(CODEC_NAMES.index(codec), level), force=True), jobs=jobs)
        with Publication(target, [partition], job=sources.job("recompress")) as publication:
            for _ in recompress(sources, publication, terms):
                pass

    taken = taken_by(run)
    shutil.rmtree(target)
    return taken


def compare(mib: int, batch_kib: int, turns: int, work: Path) -> None:
    """For each codec, from uncompressed and from lz4, a row of a Markdown table; libraries and command take turns."""
    cores = len(os.sched_getaffinity(0))
    print(f"{mib} MiB of records in batches of {batch_kib} KiB, the least of {turns} turns; {cores} processes\n")
    print(
        "| from | to | bare (s) | with reading back (s) | command by the clock: 1 process | all | in processor time: "
        "1 process | all |\n| --- | --- | --- | --- | --- | --- | --- | --- |"
    )
    for old in ("none", "lz4"):
        partition = work / old / "t-0"
        plain = write_source(partition, mib << 20, batch_kib << 10, old)
        log = partition / f"{0:020d}.log"
        for codec, level in (("zstd", 3), ("lz4", 9), ("snappy", None), ("gzip", 6), ("none", None)):
            if codec == old == "none":
                continue
            packed = codec_alone(plain, codec, level)[2]
            source, target = Library(old, None), Library(codec, level)
            bare, with_reading_back, one, many = [], [], [], []
            for _ in range(turns):
                unpacking = source.times(plain)[1]
                compressing, decompressing = target.times(plain)
                output = work / "written"
                read, write = reading(log), writing(packed, output)
                bare.append(unpacking.plus(compressing, read, write))
                with_reading_back.append(bare[-1].plus(unpacking, decompressing, read, reading(output)))
                output.unlink()
                one.append(whole_command(partition, work / "out", codec, level, 1))
                many.append(whole_command(partition, work / "out", codec, level, cores))
            base = least(with_reading_back)
            ratios = [
                f"{mine[number]:.2f} ({mine[number] / base[number]:.2f})"
                for number in (0, 1)
                for mine in (least(one), least(many))
            ]
            words = f"{codec} {level or ''}".strip()
            print(
                f"| {old} | {words} | {least(bare).clock_s:.2f} | {base.clock_s:.2f} | {' | '.join(ratios)} |",
                flush=True,
            )
        shutil.rmtree(partition)


def table(mib: int, batch_kib: int) -> None:
    """Size and speed of every codec and level, as a Markdown table."""
    pool = [payload for payload, _ in payloads(batch_kib << 10)]
    plain = (pool * ((mib << 20) // sum(map(len, pool)) + 1))[: (mib << 20) // (batch_kib << 10)]
    total = sum(map(len, plain))
    print("| codec | level | size | compress MB/s | decompress MB/s |\n| --- | --- | --- | --- | --- |")
    for codec, level in LEVELS:
        compressing, decompressing, packed = codec_alone(plain, codec, level)
        size = f"{100 * sum(map(len, packed)) / total:.1f} %"
        speeds = [
            f"{total / each.processor_s / 1e6:.0f}" if each.processor_s else "–"
            for each in (compressing, decompressing)
        ]
        print(f"| {codec} | {level if level is not None else '–'} | {size} | {speeds[0]} | {speeds[1]} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mib", type=int, default=512)
    parser.add_argument("--batch-kib", type=int, default=16)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--table", action="store_true")
    arguments = parser.parse_args()
    keep_freed_memory()  # as the commands do
    if arguments.table:
        table(arguments.mib, arguments.batch_kib)
        return
    with tempfile.TemporaryDirectory() as work:
        compare(arguments.mib, arguments.batch_kib, arguments.turns, Path(work))


if __name__ == "__main__":
    sys.exit(main())
