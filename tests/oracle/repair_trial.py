"""Trials of ``salvage --repair``: batches of real logs with one wrong field or one flipped bit, and other damage.

    python -m tests.oracle.repair_trial [--count 500] [--other 2000000] [--seed 1] [--shipped]

damages ``count`` batches in one header field, and ``count`` in one bit under the CRC, salvages their partitions, and
compares with what was there before. Then it counts how often ``other`` damages (several flips, zeros, random and moved
bytes) to batches of 200 bytes to 1 MiB look like one flipped bit, by CRC and when decoded, and how often that is
expected. No broker is needed.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import numpy as np
from numpy.typing import NDArray

from format.codecs.checksums import crc32_of, crc32c_of
from format.errors import CorruptDataError
from format.findings import Finding
from format.io.source import FileSource
from format.limits import DEFAULT_LIMITS
from format.location import Location
from format.log.batch_chunk import OffsetRange
from format.log.batch_header import crc_fields
from format.log.batch_table import BatchTable
from format.log.damaged_batches import zeros_tables
from format.log.encode_batches import encode_message
from format.rewriting.flipped_bit import MOST_ODDS, decoded_batch, flip_in
from format.rewriting.publication import Publication
from format.rewriting.sources import read_write_sources
from format.verbs.salvage import salvage
from tests.building import batch
from tests.corpora import corpora
from tests.sources import read_batch_table

FIELDS = {"length": (8, 4), "base offset": (0, 8), "leader epoch": (12, 4), "magic": (16, 1)}
_REPAIRS = ("batch-repaired", "batch-reconstructed")
_PLACE = Location("t-0/00000000000000000000.log")


# -- one wrong field, one flipped bit --------------------------------------------------------------------------


@dataclass
class Outcome:
    """What came of trials: how often each, and the false ones in words."""

    counts: Counter[str] = field(default_factory=Counter)
    false: list[str] = field(default_factory=list)


def sound_logs(*, shipped: bool) -> list[Path]:
    """The logs of the corpora that hold batches, and no damage."""
    found = []
    for corpus in corpora():
        for directory in corpus.partitions() if not (shipped and corpus.is_shared) else ():
            for path in sorted(directory.glob("*.log")):
                with FileSource(path) as source:
                    try:
                        table = read_batch_table(source, check_crc=True)
                    except CorruptDataError:
                        continue
                if len(table) and table.crc_valid.all():
                    found.append(path)
    return found


def wrong_field(content: bytes, table: BatchTable, rng: Random) -> tuple[int, bytes, str]:
    """A batch with another value in a field outside its CRC: its number, all bytes, and what was done."""
    row = rng.randrange(len(table))
    name = rng.choice([*FIELDS] if table.magic[row] == 2 else ["length", "base offset"])
    at, width = FIELDS[name]
    at += int(table.position[row])
    old = int.from_bytes(content[at : at + width], "big")
    new = old ^ (1 << rng.randrange(8 * width)) if rng.random() < 0.7 else (old + rng.randrange(1, 9)) % 256**width
    damaged = content[:at] + new.to_bytes(width, "big") + content[at + width :]
    return row, damaged, f"{name} of batch {row}: {new} for {old}"


def flipped_bit(content: bytes, table: BatchTable, rng: Random) -> tuple[int, bytes, str]:
    """A batch with one bit flipped in its CRC or under it: its number, all bytes, and what was done."""
    row = rng.randrange(len(table))
    stored_at, _, is_v2 = crc_fields(int(table.magic[row]))
    first = stored_at if not is_v2 else crc_fields(2)[0]
    bit = rng.randrange(8 * first, 8 * int(table.size_bytes[row]))
    at = int(table.position[row]) + bit // 8
    damaged = bytearray(content)
    damaged[at] ^= 1 << bit % 8
    return row, bytes(damaged), f"bit {bit % 8} of the byte at position {at}"


def trial(path: Path, damage: Callable[..., tuple[int, bytes, str]], rng: Random, work: Path, result: Outcome) -> None:
    """Damage a copy of the partition, repair it, and say what became of the batch."""
    shutil.rmtree(work, ignore_errors=True)
    copy = work / "source" / path.parent.name
    shutil.copytree(path.parent, copy)
    content = path.read_bytes()
    with FileSource(path) as source:
        table = read_batch_table(source)
    row, damaged, words = damage(content, table, rng)
    (copy / path.name).write_bytes(damaged)
    sources = read_write_sources([copy])
    with Publication(work / "out", [copy], job=sources.job("salvage")) as publication:
        found = [each for each in salvage(sources, publication, repairs=True) if isinstance(each, Finding)]
    written = (work / "out" / copy.name / path.name).read_bytes()
    start, end = int(table.position[row]), int(table.end_position[row])
    repaired = [each for each in found if each.code in _REPAIRS]
    where = f"{path.parent.name}/{path.name}, {words}"
    if written == content:
        result.counts["as it was"] += 1
    elif repaired:
        result.counts["false"] += 1
        result.false.append(f"{where}: {repaired[0].message}")
    elif written == damaged:
        result.counts["kept as it is: nothing proves the field wrong"] += 1
    elif written == content[:start] + content[end:]:
        is_named = any(words in each.message and "that --repair accepts" in each.message for each in found)
        result.counts["left out, with the bit named" if is_named else "left out"] += 1
    else:
        result.counts["other batches left out"] += 1
        result.false.append(f"{where}: {[each.message for each in found]}")


def trials(count: int, seed: int, logs: Sequence[Path], work: Path) -> dict[str, Outcome]:
    """As many trials of each kind."""
    outcomes = {"one wrong field": Outcome(), "one flipped bit": Outcome()}
    for (name, result), damage in zip(outcomes.items(), (wrong_field, flipped_bit), strict=True):
        for number in range(count):
            rng = Random(f"{seed} {name} {number}")
            trial(rng.choice(logs), damage, rng, work, result)
    return outcomes


# -- other damage ----------------------------------------------------------------------------------------------

_WORDS = b"a few short English words of several lengths, as are in logs of programs and in messages of shops".split()
_LARGE_BYTES = 50_000
_SIZES = (200, 500, 1_000, 4_000, 16_000, 100_000, 1_000_000)
_CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


@dataclass
class Subject:
    """A batch, and what was counted of damages to it."""

    name: str
    content: bytes
    tried: int = 0
    like_one_flip: int = 0
    decoded: int = 0
    written: int = 0

    @property
    def magic(self) -> int:
        return self.content[16]

    @property
    def bits(self) -> int:
        return 8 * (len(self.content) - crc_fields(self.magic)[1]) + 32


def subjects(rng: Random) -> list[Subject]:
    """Batches of every codec of about these sizes, and plain v1 messages."""
    found = []
    for size in _SIZES:
        for codec, name in enumerate(_CODECS):
            values: list[bytes] = []
            content = b""
            while len(content) < size:
                for _ in range(max(1, (size - len(content)) // 150)):
                    words = b" ".join(rng.choices(_WORDS, k=rng.randrange(3, 30)))
                    values.append(
                        b'{"id": %d, "amount": %d, "text": "%s"}' % (len(values), rng.randrange(10**9), words)
                    )
                content = batch(10, values, codec=codec)
            found.append(Subject(name, content))
        value = b" ".join(rng.choices(_WORDS, k=max(1, (size - 30) // 6)))
        found.append(Subject("v1", encode_message(1, 10, b"key", value, timestamp=1_700_000_000_000)))
    return found


Change = tuple[int, bytes]


def changes(content: bytes, first: int, rng: Random) -> list[Change]:
    """Damage under the CRC that is not one flipped bit: the new bytes at some places."""
    room = len(content) - first
    kind = rng.randrange(4)
    if kind == 0:
        flips = rng.sample(range(8 * first, 8 * len(content)), rng.randrange(2, 9))
        by_byte: dict[int, int] = {}
        for bit in flips:
            by_byte[bit // 8] = by_byte.get(bit // 8, content[bit // 8]) ^ 1 << bit % 8
        return [(at, bytes((value,))) for at, value in by_byte.items()]
    length = min(rng.choice((2, 3, 4, 8, 16, 64, 512, 4096)), room)
    at = rng.randrange(first, len(content) - length + 1)
    if kind == 1:
        return [(at, bytes(length))]
    if kind == 2:
        return [(at, rng.randbytes(length))]
    moved = rng.randrange(first, len(content) - length + 1)
    return [(at, content[moved : moved + length])]


def with_changes(content: bytes, made: Sequence[Change]) -> bytearray:
    damaged = bytearray(content)
    for at, part in made:
        damaged[at : at + len(part)] = part
    return damaged


def weight(content: bytes, made: Sequence[Change]) -> int:
    """The number of bits that a change flips, up to 2."""
    count = 0
    for at, part in made:
        count += (int.from_bytes(content[at : at + len(part)], "big") ^ int.from_bytes(part, "big")).bit_count()
        if count > 1:
            break
    return count


class Syndromes:
    """The syndromes of single flips, made by single steps and not by the program's search."""

    def __init__(self, bits: int, *, is_v2: bool) -> None:
        self._is_v2 = is_v2
        self._crc_of = crc32c_of if is_v2 else crc32_of
        polynomial = 0x82F63B78 if is_v2 else 0xEDB88320
        values, value = np.empty(bits, np.uint32), 1 << 31
        for number in range(bits):
            values[number] = value
            value = value >> 1 ^ (polynomial if value & 1 else 0)
        self._exponents = np.argsort(values)
        self._sorted = values[self._exponents]

    def of(self, content: bytes, made: Sequence[Change]) -> int:
        """The syndrome of a change: the CRC of the difference, by linearity."""
        total = 0
        for at, part in made:
            old = content[at : at + len(part)]
            crc = self._crc_of(part) ^ self._crc_of(old)
            total ^= self._with_zeros(crc, len(content) - at - len(part))
        return total

    def _with_zeros(self, crc: int, count: int) -> int:
        power = 0
        while count:
            if count & 1:
                low, second, third, high = zeros_tables(power, self._is_v2)
                crc = low[crc & 0xFF] ^ second[crc >> 8 & 0xFF] ^ third[crc >> 16 & 0xFF] ^ high[crc >> 24]
            count >>= 1
            power += 1
        return crc

    def are_of_one_flip(self, syndromes: NDArray[np.uint32], bits: int) -> NDArray[np.bool_]:
        """Which of these one flip among ``bits`` has."""
        at = np.minimum(np.searchsorted(self._sorted, syndromes), len(self._sorted) - 1)
        is_one: NDArray[np.bool_] = (self._sorted[at] == syndromes) & (self._exponents[at] < bits)
        return is_one


def try_other_damage(tried: Sequence[Subject], count: int, rng: Random) -> None:
    """Damage each batch as often, and count what looks like one flipped bit."""
    most = max(each.bits for each in tried)
    syndromes = {is_v2: Syndromes(most, is_v2=is_v2) for is_v2 in (False, True)}
    for subject in tried:
        first = crc_fields(subject.magic)[1]
        of = syndromes[subject.magic == 2]
        made: list[list[Change]] = []
        while len(made) < count // len(tried):
            change = changes(subject.content, first, rng)
            if weight(subject.content, change) > 1:
                made.append(change)
        subject.tried = len(made)
        values = np.array([of.of(subject.content, each) for each in made], np.uint32)
        for number in np.flatnonzero(of.are_of_one_flip(values, subject.bits)).tolist():
            subject.like_one_flip += 1
            damaged = bytes(with_changes(subject.content, made[number]))
            found = flip_in(damaged, OffsetRange(), _PLACE, DEFAULT_LIMITS)
            if found is not None:
                subject.decoded += 1
                subject.written += found.odds <= MOST_ODDS


def unnoticed_shares(subject: Subject, rng: Random, tries: int) -> tuple[float, float]:
    """How often decoding does not notice one flip, and how often not other damage with a flip in vain."""
    first = crc_fields(subject.magic)[1]
    single = both = 0
    for _ in range(tries):
        damaged = bytearray(subject.content)
        bit = rng.randrange(8 * first, 8 * len(damaged))
        damaged[bit // 8] ^= 1 << bit % 8
        single += decoded_batch(damaged, _PLACE, DEFAULT_LIMITS) is not None
        damaged = with_changes(subject.content, changes(subject.content, first, rng))
        damaged[bit // 8] ^= 1 << bit % 8
        both += decoded_batch(damaged, _PLACE, DEFAULT_LIMITS) is not None
    return single / tries, both / tries


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--other", type=int, default=2_000_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--shipped", action="store_true", help="only logs of the repository")
    options = parser.parse_args()
    if options.count:
        logs = sound_logs(shipped=options.shipped)
        with tempfile.TemporaryDirectory() as work:
            for name, result in trials(options.count, options.seed, logs, Path(work) / "trial").items():
                print(f"{name}, {options.count} times in {len(logs)} logs")
                for outcome, number in result.counts.most_common():
                    print(f"  {number:5} {outcome}")
                for each in result.false:
                    print(f"    {each}")
    if options.other:
        rng = Random(options.seed)
        tried = subjects(rng)
        try_other_damage(tried, options.other, rng)
        names = ("codec", "bytes", "tried", "expected", "like one", "decoded", "written", "s^2", "unseen")
        print("".join(f"{name:>10}" for name in names))
        for one in tried:
            single, both = unnoticed_shares(one, rng, 100 if len(one.content) > _LARGE_BYTES else 400)
            counts = (one.name, len(one.content), one.tried, round(one.tried * one.bits / 2**32, 2), one.like_one_flip)
            cells = (*counts, one.decoded, one.written, round(single**2, 4), round(both, 4))
            print("".join(f"{cell:>10}" for cell in cells), flush=True)
        like, decoded = sum(one.like_one_flip for one in tried), sum(one.decoded for one in tried)
        written = sum(one.written for one in tried)
        print(f"{options.other:,} damages: {like} like one flip, {decoded} decoded, {written} written")


if __name__ == "__main__":
    main()
