"""Logs with any number of wounds, and what of them is intact: by what was done to them, not by reading them.

``python -m tests.faults.wounds --cases 2000 --most-batches 10000`` wounds so many logs and salvages each. It ends at
the first one of which something else is kept than the longest chain of intact batches, and prints its seed.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from format.codecs.checksums import crc32_of, crc32c_of
from format.findings import Finding
from format.layout import MAX_RELATIVE_OFFSET
from format.log.encode_batches import encode_message
from format.rewriting.publication import Publication
from format.rewriting.sources import read_write_sources
from format.verbs.salvage import salvage
from tests.building import batch, wrapper

LOG = f"{0:020d}.log"
#: How far apart in offsets the log under test and the segment after it lie, at the most.
_FOREIGN_OFFSETS = (0, 10**6)


@dataclass(slots=True)
class Placed:
    """A batch as it was written: where in the wounded log it lies, and its bytes before anything hit them."""

    position: int
    content: bytes
    last_delta: int


@dataclass(slots=True)
class WoundedLog:
    """The bytes of a log, and the batches in it that may still be whole."""

    content: bytearray = field(default_factory=bytearray)
    placed: list[Placed] = field(default_factory=list)
    next_offset: int = 0  # where the next segment starts
    done: list[str] = field(default_factory=list)

    def intact(self) -> list[tuple[int, int, int, int]]:
        """Start, end, first and last offset of the batches that no wound has hit but in their base offset or epoch."""
        found: list[tuple[int, int, int, int]] = []
        for each in sorted(self.placed, key=lambda each: each.position):
            end = each.position + len(each.content)
            now = bytes(self.content[each.position : end])
            if now[8:12] == each.content[8:12] and now[16:] == each.content[16:] and _has_right_crc(now):
                base = int.from_bytes(now[:8], "big", signed=True)
                # The header of an old compressed message has its last offset, or 0 as some clients send it.
                is_old = now[16] < 2
                first, last = (base - each.last_delta, base) if is_old and base else (base, base + each.last_delta)
                if not found or each.position >= found[-1][1]:
                    found.append((each.position, end, first, last))
        return found


def _has_right_crc(content: bytes) -> bool:
    if content[16] == 2:
        return int.from_bytes(content[17:21], "big") == crc32c_of(content[21:])
    return int.from_bytes(content[12:16], "big") == crc32_of(content[16:])


def longest(intact: list[tuple[int, int, int, int]], next_offset: int) -> int:
    """How many of these batches the longest chain of rising offsets in their segment has."""
    lowest_end: list[int] = []
    for _, _, first, last in intact:
        if 0 <= first <= last < min(next_offset, MAX_RELATIVE_OFFSET + 1):
            length = bisect_left(lowest_end, first)
            lowest_end[length : length + 1] = [min([last, *lowest_end[length : length + 1]])]
    return len(lowest_end)


# -- logs ----------------------------------------------------------------------------------------------------------


def _plain(rng: random.Random) -> Callable[[int], tuple[bytes, int]]:
    made = [batch(0, [rng.randbytes(rng.randrange(60)) for _ in range(1 + n % 5)]) for n in range(12)]
    return lambda offset: _moved(rng.choice(made), offset)


def _packed(rng: random.Random) -> Callable[[int], tuple[bytes, int]]:
    made = [batch(0, [b"%d" % n * rng.randrange(1, 80)] * (1 + n % 7), codec=1 + n % 4) for n in range(12)]
    return lambda offset: _moved(rng.choice(made), offset)


def _large(rng: random.Random) -> Callable[[int], tuple[bytes, int]]:
    made = [batch(0, [rng.randbytes(rng.choice((10, 3000, 20_000)))] * (1 + n % 3)) for n in range(12)]
    return lambda offset: _moved(rng.choice(made), offset)


def _old(magic: int) -> Callable[[random.Random], Callable[[int], tuple[bytes, int]]]:
    def make(rng: random.Random) -> Callable[[int], tuple[bytes, int]]:
        made = [encode_message(magic, 0, b"key", rng.randbytes(rng.randrange(70))) for _ in range(12)]
        return lambda offset: (offset.to_bytes(8, "big") + rng.choice(made)[8:], 0)

    return make


def _old_packed(rng: random.Random) -> Callable[[int], tuple[bytes, int]]:
    made = [(wrapper(1, 0, count, codec=1 + count % 3), count - 1) for count in range(1, 9)]

    def at(offset: int) -> tuple[bytes, int]:
        content, last = rng.choice(made)
        return (offset + last).to_bytes(8, "big") + content[8:], last

    return at


def _mixed(rng: random.Random) -> Callable[[int], tuple[bytes, int]]:
    kinds = [_old(0)(rng), _old(1)(rng), _old_packed(rng), _plain(rng), _packed(rng)]
    return lambda offset: rng.choice(kinds)(offset)


def _moved(content: bytes, offset: int) -> tuple[bytes, int]:
    return offset.to_bytes(8, "big") + content[8:], int.from_bytes(content[23:27], "big")


KINDS: dict[str, Callable[[random.Random], Callable[[int], tuple[bytes, int]]]] = {
    "v2": _plain,
    "v2 compressed": _packed,
    "v2 large": _large,
    "v0": _old(0),
    "v1": _old(1),
    "v1 compressed": _old_packed,
    "all formats": _mixed,
}


# -- wounds --------------------------------------------------------------------------------------------------------

Part = tuple[bytes, int | None]  # bytes, and the last offset delta of the batch that they are
Maker = Callable[[int], tuple[bytes, int]]


def _garbage(rng: random.Random, size: int) -> bytes:
    kind = rng.randrange(4)
    if kind == 0:
        return rng.randbytes(size)
    if kind == 1:
        return bytes(size)
    return bytes([rng.choice((1, 2, 0x2E, 0xFF))]) * size if kind == 2 else (b"not a batch " * size)[:size]


def _move_parts(rng: random.Random, parts: list[Part], make: Maker, kind: str) -> None:
    """Wounds that leave batches whole."""
    at = rng.randrange(len(parts))
    if kind == "repeated":
        parts.insert(at, parts[rng.randrange(len(parts))])
    elif kind == "repeated run":
        first = rng.randrange(len(parts))
        parts[at:at] = parts[first : first + rng.randrange(1, 9)]
    elif kind == "swapped":
        other = rng.randrange(len(parts))
        parts[at], parts[other] = parts[other], parts[at]
    elif kind == "moved":
        moved = parts.pop(at)
        parts.insert(rng.randrange(len(parts) + 1), moved)
    elif kind == "removed":
        del parts[at : at + rng.randrange(1, 4)]
    elif kind == "foreign":
        parts.insert(at, make(rng.randrange(*_FOREIGN_OFFSETS)))
    elif kind == "garbage between":
        parts.insert(at, (_garbage(rng, rng.choice((1, 7, 61, 400, 5000))), None))
    if not parts:
        parts.append(make(0))


MOVES = ("repeated", "repeated run", "swapped", "moved", "removed", "foreign", "garbage between")
HITS = ("zeros", "garbage", "base offset", "length", "cut")


def _hit(rng: random.Random, log: WoundedLog, kind: str) -> None:
    """Wounds that hit bytes wherever they are."""
    content = log.content
    if len(content) < 100 or not log.placed:
        return
    at = rng.randrange(len(content))
    size = min(rng.choice((1, 4, 12, 61, 200, 512, 4096)), len(content) - at)
    one = rng.choice(log.placed)
    if kind == "zeros":
        content[at : at + size] = bytes(size)
    elif kind == "garbage":
        content[at : at + size] = _garbage(rng, size)
    elif kind == "base offset":
        content[one.position + rng.randrange(8)] ^= 1 << rng.randrange(8)
    elif kind == "length":
        content[one.position + 8 + rng.randrange(4)] ^= 1 << rng.randrange(8)
    elif kind == "cut":
        del content[at : at + size]
        # What is left of a batch may be made whole by what comes to lie beside it, if both were alike.
        heads = [each for each in log.placed if each.position < at]
        tails = [each for each in log.placed if each.position + len(each.content) > at + size]
        moved = {each.position - size: Placed(each.position - size, each.content, each.last_delta) for each in tails}
        log.placed = heads + [each for place, each in sorted(moved.items()) if place >= 0]
        log.placed = [each for each in log.placed if each.position + 16 < len(content)]


def wounded_log(seed: int, most_batches: int = 10_000, most_wounds: int = 50) -> WoundedLog:
    """A log of 10 to ``most_batches`` batches with 1 to ``most_wounds`` wounds; the same for the same seed."""
    rng = random.Random(seed)
    kind = rng.choice(sorted(KINDS))
    make = KINDS[kind](rng)
    count = int(10 * (most_batches / 10) ** rng.random())
    wounds = int(most_wounds ** rng.random())
    log = WoundedLog(done=[kind, f"{count} batches"])
    parts: list[Part] = []
    for _ in range(count):
        content, last_delta = make(log.next_offset)
        parts.append((content, last_delta))
        log.next_offset += last_delta + 1
    kinds = [rng.choice((*MOVES, *HITS, "length to another batch")) for _ in range(wounds)]
    log.done += kinds
    for each in kinds:
        if each in MOVES:
            _move_parts(rng, parts, make, each)
    for content, delta in parts:
        if delta is not None:
            log.placed.append(Placed(len(log.content), content, delta))
        log.content += content
    for each in kinds:
        if each in HITS:
            _hit(rng, log, each)
    needed: set[int] = set()
    for _ in range(kinds.count("length to another batch")):
        _stretch(rng, log, needed)
    return log


def _stretch(rng: random.Random, log: WoundedLog, needed: set[int]) -> None:
    """Let the length of an intact batch lead to a later one.

    It must be its only wound, and an intact batch must follow: what a length says that leads on is believed else.
    ``needed`` are the batches that follow one so.
    """
    intact = log.intact()
    starts = [start for start, *_ in intact]
    able = {start: end for start, end, *_ in intact[:-1] if end in starts and start not in needed}
    if able:
        position = rng.choice(sorted(able))
        needed.add(able[position])
        other = rng.choice([start for start in starts if start > position])
        log.content[position + 8 : position + 12] = (other - position - 12).to_bytes(4, "big")


# -- what salvage makes of them --------------------------------------------------------------------------------------


def spans_of(numbers: list[tuple[int, int]], end: int) -> list[tuple[int, int]]:
    """The ranges up to ``end`` that these ranges, in order, leave out."""
    found, at = [], 0
    for first, last in [*numbers, (end, end)]:
        if first > at:
            found.append((at, first - 1))
        at = last + 1
    return found


def wrong_with(log: WoundedLog, directory: Path) -> str:
    """Salvage the log and say what is wrong with the outcome; empty if nothing is."""
    partition = directory / "t-0"
    partition.mkdir()
    (partition / LOG).write_bytes(log.content)
    (partition / f"{log.next_offset:020d}.log").write_bytes(batch(log.next_offset))
    sources = read_write_sources([partition], takes_files=True)
    with Publication(directory / "out", [partition], job=sources.job("salvage")) as publication:
        found = [each for each in salvage(sources, publication) if isinstance(each, Finding)]
    kept = (directory / "out" / "t-0" / LOG).read_bytes()
    intact = log.intact()
    where = {}
    for start, end, first, last in intact:
        where.setdefault(bytes(log.content[start:end]), []).append((start, end, first, last))
    chain = list(_chain_of(kept, where))
    if (not chain and kept) or sum(end - start for start, end, _, _ in chain) != len(kept):
        return "something is kept that is no intact batch, or is out of order"
    most = longest(intact, log.next_offset)
    if len(chain) != most:
        return f"{len(chain)} batches are kept of a chain of {most}"
    lost = sorted(each.lost_offsets for each in found if each.lost_offsets is not None)
    expected = spans_of([(first, last) for _, _, first, last in chain], log.next_offset)
    if joined(lost) != expected:
        return f"the losses are {lost}, they should be {expected}"
    return ""


def joined(ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Ranges in order, those that touch made one; those that overlap stay two."""
    found: list[tuple[int, int]] = []
    for first, last in ranges:
        if found and found[-1][1] + 1 == first:
            found[-1] = (found[-1][0], last)
        else:
            found.append((first, last))
    return found


def _chain_of(kept: bytes, where: dict[bytes, list[tuple[int, int, int, int]]]) -> Iterator[tuple[int, int, int, int]]:
    """The intact batches that the kept bytes are, as long as their places and offsets rise."""
    at = position = 0
    last_offset = -1
    while at < len(kept):
        size = 12 + int.from_bytes(kept[at + 8 : at + 12], "big")
        places = [each for each in where.get(kept[at : at + size], ()) if each[0] >= position and each[2] > last_offset]
        if not places:
            return
        _, position, _, last_offset = places[0]
        at += size
        yield places[0]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--most-batches", type=int, default=10_000)
    parser.add_argument("--most-wounds", type=int, default=50)
    parser.add_argument("--keep-going", action="store_true")
    options = parser.parse_args()
    started, failed = time.monotonic(), 0
    for seed in range(options.first_seed, options.first_seed + options.cases):
        log = wounded_log(seed, options.most_batches, options.most_wounds)
        with tempfile.TemporaryDirectory() as directory:
            wrong = wrong_with(log, Path(directory))
        if wrong:
            failed += 1
            print(f"seed {seed}: {wrong[:300]}; {', '.join(log.done)[:300]}", flush=True)
            if not options.keep_going:
                return 1
    print(f"{options.cases} logs, {failed} wrong, in {time.monotonic() - started:.0f} s")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
