"""The digest of the batches of a segment: a sum of 64-bit hashes, one for each batch, by ranges of offsets.

A hash is made of a batch's last offset, size, CRC, leader epoch, magic and attributes. Sums do not depend on where
segments begin, so the digests of two replicas can be compared though they rolled their segments at other offsets. A
batch belongs to the range of its last offset.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from format.log.batch_table import BatchTable, Int64Column

#: The most ranges that a digest keeps apart.
MOST_RANGES = 8
_FIRST_SHIFT = 4
#: Sums are of 64 bits.
MASK = (1 << 64) - 1
_FACTORS = tuple(np.uint64(each) for each in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))


def batch_hashes(table: BatchTable) -> NDArray[np.uint64]:
    """A hash of each batch (uint64), by the finalizer of splitmix64 after each group of fields."""
    shape = (table.size_bytes.astype(np.uint64) << np.uint64(32)) | (table.crc.astype(np.uint64) & np.uint64(2**32 - 1))
    kind = (
        (table.leader_epoch.astype(np.uint64) << np.uint64(24))
        ^ (table.magic.astype(np.uint64) << np.uint64(16))
        ^ table.attributes.astype(np.uint64)
    )
    found = _mixed(table.last_offset.astype(np.uint64))
    for column in (shape, kind):
        found = _mixed(found ^ column)
    return found


def _mixed(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    step, first, second = _FACTORS
    values = values + step
    values = (values ^ (values >> np.uint64(30))) * first
    values = (values ^ (values >> np.uint64(27))) * second
    return values ^ (values >> np.uint64(31))


class Digest(msgspec.Struct):
    """The sums of a run of batches: ``sums[n]`` is that of offsets ``(first + n) << shift`` and the ones after them.

    The ranges grow to the next power of two when there are more than MOST_RANGES.
    """

    shift: int = _FIRST_SHIFT
    first: int = 0
    sums: list[int] = msgspec.field(default_factory=list)

    @property
    def total(self) -> int:
        """The sum of all batches."""
        return sum(self.sums) & MASK

    def add(self, last_offsets: Int64Column, hashes: NDArray[np.uint64]) -> None:
        """Add batches by their last offsets, of which none is negative, and their hashes."""
        if not len(hashes):
            return
        low, high = int(last_offsets.min()), int(last_offsets.max())
        if not self.sums:
            self.first = low >> self.shift
        while (high >> self.shift) - min(self.first, low >> self.shift) >= MOST_RANGES:
            self.shift, self.first, self.sums = self.shift + 1, *_halved(self.first, self.sums)
        keys = last_offsets >> self.shift
        lead = max(self.first - int(keys.min()), 0)
        if lead:
            self.sums, self.first = [0] * lead + self.sums, self.first - lead
        self.sums += [0] * (int(keys.max()) - self.first + 1 - len(self.sums))
        for key in np.unique(keys).tolist():
            at = key - self.first
            self.sums[at] = (self.sums[at] + int(hashes[keys == key].sum(dtype=np.uint64))) & MASK

    def packed(self) -> bytes:
        """The digest in bytes: the shift, the first range, and the sums."""
        return struct.pack(f">Bq{len(self.sums)}Q", self.shift, self.first, *self.sums)

    @classmethod
    def of_packed(cls, packed: bytes) -> Digest:
        """The digest that was packed. Raises ValueError for other bytes."""
        count, rest = divmod(len(packed) - 9, 8)
        if count < 0 or rest:
            raise ValueError("not a digest")
        shift, first, *sums = struct.unpack(f">Bq{count}Q", packed)
        return cls(shift, first, sums)


def _halved(first: int, sums: Sequence[int]) -> tuple[int, list[int]]:
    """The first range and the sums of ranges of twice the size."""
    halved = [0] * (((first + len(sums) - 1) >> 1) - (first >> 1) + 1) if sums else []
    for number, each in enumerate(sums, first):
        at = (number >> 1) - (first >> 1)
        halved[at] = (halved[at] + each) & MASK
    return first >> 1, halved


def merged(digests: Iterable[Digest], shift: int) -> dict[int, int]:
    """The sums of several digests by ranges of one size, which none of them exceeds."""
    found: dict[int, int] = {}
    for digest in digests:
        for number, each in enumerate(digest.sums, digest.first):
            key = number >> (shift - digest.shift)
            found[key] = (found.get(key, 0) + each) & MASK
    return found
