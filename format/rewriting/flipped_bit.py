"""A single flipped bit under the CRC of a batch: where it is, and how often other damage looks the same.

A CRC is linear: stored CRC xor computed CRC, the syndrome, depends on the damage alone, not on the batch. A flipped bit
that is ``e`` bits before the end of the message with its CRC gives x^e modulo the CRC's polynomial. These are all
different in batches below 256 MiB, so at most one flip makes a CRC right; its ``e`` is found by baby steps and giant
steps, in the square root of the batch's bits.

Other damage may have the syndrome of one flip. Two flips never have it, since the Hamming distance is 4 (of CRC-32 up
to 11 KiB); no even number of flips has it in CRC-32C, which divides by x + 1. A syndrome that is as good as random is
that of one of the ``n`` bits of message and CRC in n of 2^32 cases. The false batch must be decoded, too: the damage
must be where that does not notice it, and so must the bit that is flipped in vain, which can be any. The share ``s`` of
bits that are not noticed depends on the batch: nearly all in an uncompressed one, none in the data of gzip, which has a
checksum of its own. So it is measured, by flipping bits of the corrected batch one by one. Other damage looks the same
in n / 2^32 * s^2 of all cases; ``s`` is taken for 1 where that suffices.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from math import sqrt
from typing import TYPE_CHECKING

import msgspec
import numpy as np
from numpy.typing import NDArray

from format.checks.batches import check_batch_headers, check_wrapper_offsets
from format.checks.records import RecordCheck
from format.codecs.checksums import crc32_of, crc32c_of, crc_tables
from format.findings import Finding
from format.io.source import PatchedSource
from format.layout import LOG_ENTRY
from format.limits import MIB, Limits
from format.location import Location
from format.log.batch_chunk import BatchChunk, OffsetRange
from format.log.batch_header import CRC_BYTES, HEADER_BYTES, MAGIC_AT, crc_fields, headers_in
from format.log.batch_table import BatchTable
from format.log.damaged_batches import zeros_tables
from format.log.read_records import open_wrappers, record_tables
from format.rewriting.intact_batches import Repair

if TYPE_CHECKING:
    from format.rewriting.intact_batches import SegmentScan

#: The greatest odds at which a bit is flipped back.
MOST_ODDS = 1e-6
_CRC_BITS = 8 * CRC_BYTES
_CRC_VALUES = 1 << _CRC_BITS
#: With this many bits two flips may have the same syndrome in CRC-32C.
_TOO_MANY_BITS = 2**31 - 1
#: So many bits of the corrected batch are flipped to see whether decoding notices it, if that decodes at most so many
#: bytes. Three are added to those that are not noticed: with none of many, the share is below 3 / n with 95%.
_TRIES = 256
_FEW_TRIES = 32
_DECODED_BYTES = 256 * MIB
_UNSEEN = 3
_GOLDEN = (sqrt(5) - 1) / 2


class FlippedBit(Repair, frozen=True, kw_only=True):
    """A bit, the lowest being 0, of the byte ``at`` of the file, and the odds that flipping it back is false.

    ``wrong`` and ``right`` are the values of the byte.
    """

    at: int
    bit: int
    odds: float

    @property
    def is_offered(self) -> bool:
        return self.odds <= MOST_ODDS

    @property
    def words(self) -> str:
        return (
            f"with bit {self.bit} of the byte at position {self.at} flipped ({self.wrong:#04x} to {self.right:#04x}), "
            f"its CRC is right and its records can be read; other damage looks the same in {cases(self.odds)}"
        )

    def apply(self, source: PatchedSource) -> None:
        """Let a source show the right byte."""
        source.patch(self.at, bytes((self.right,)))


def cases(odds: float) -> str:
    """Odds as ``1 of N cases``, with the first two digits of N."""
    number = int(1 / odds)
    step = 10 ** max(len(str(number)) - 2, 0)
    return f"1 of {number // step * step:,} cases"


def flipped_bits(
    source: PatchedSource, scan: SegmentScan, known: list[Repair], location: Location, limits: Limits
) -> Iterator[FlippedBit]:
    """The batches that are not kept, and not among the ``known`` repairs, with the one bit that makes each right."""
    starts = {each.position for each in known}
    for bad in scan.bad:
        if bad.is_repeat or bad.position in starts:
            continue
        entry = source.read_at(bad.position, LOG_ENTRY.size_bytes)
        if len(entry) < LOG_ENTRY.size_bytes:
            continue
        size_bytes = LOG_ENTRY.size_bytes + LOG_ENTRY.struct.unpack(entry)[1]
        if not MAGIC_AT < size_bytes <= min(bad.length, limits.max_decompressed_bytes + HEADER_BYTES):
            continue
        content = source.read_at(bad.position, size_bytes)
        if any(bad.position - 4096 < block < bad.position + size_bytes for block in source.unreadable):
            continue  # the disk did not read it: the damage is known, and is not one bit
        found = flip_in(content, scan.offsets, location, limits, bad.position)
        if found is not None:
            yield found


def flip_in(
    content: bytes, offsets: OffsetRange, location: Location, limits: Limits, position: int = 0
) -> FlippedBit | None:
    """The one flip after which the CRC of a batch is right and its records are those that its header says."""
    flips = [
        (at, bit, bits)
        for magic in (2, 0)
        if (magic == content[MAGIC_AT] or not magic) and len(content) > crc_fields(magic)[1]
        for at, bit, bits in _flips_for_crc(content, magic)
    ]
    if len(flips) != 1:
        return None
    [(at, bit, bits)] = flips
    right = bytearray(content)
    right[at] ^= 1 << bit
    batch = decoded_batch(right, location, limits)
    if batch is None or not offsets.holds(batch.table.base_offset, batch.table.last_offset_delta)[0]:
        return None
    return FlippedBit(
        position,
        len(content),
        "bit",
        content[at],
        right[at],
        "",
        int(batch.table.base_offset[0]),
        batch.table.last_offset_of(0),
        at=position + at,
        bit=bit,
        odds=_odds(right, bits, batch.size_bytes, location, limits),
    )


def _flips_for_crc(content: bytes, magic: int) -> Iterator[tuple[int, int, int]]:
    """The flip that makes the CRC of the format right, as byte and bit, with the number of bits that it can be."""
    stored_at, covered_from, is_v2 = crc_fields(magic)
    crc = (crc32c_of if is_v2 else crc32_of)(memoryview(content)[covered_from:])
    bits = 8 * (len(content) - covered_from) + _CRC_BITS
    exponent = _exponent(crc ^ int.from_bytes(content[stored_at : stored_at + CRC_BYTES], "big"), bits, is_v2=is_v2)
    if exponent is None:
        return
    at, bit = _place(exponent, len(content), stored_at)
    if is_v2 or content[MAGIC_AT] ^ (1 << bit if at == MAGIC_AT else 0) < 2:
        yield at, bit, bits


def _place(exponent: int, size_bytes: int, stored_at: int) -> tuple[int, int]:
    """The byte and the bit of a batch that are ``exponent`` bits before the end of its message with the CRC."""
    if exponent < _CRC_BITS:
        bit = _CRC_BITS - 1 - exponent
        return stored_at + CRC_BYTES - 1 - bit // 8, bit % 8
    from_end = exponent - _CRC_BITS
    return size_bytes - 1 - from_end // 8, 7 - from_end % 8


def _exponent(syndrome: int, bits: int, *, is_v2: bool) -> int | None:
    """The number of steps from the last bit of the CRC to this syndrome, if it is below ``bits``."""
    if bits >= _TOO_MANY_BITS or not (syndrome.bit_count() % 2 if is_v2 else syndrome):
        return None
    polynomial = crc_tables()[(0 if is_v2 else len(crc_tables()) // 2) + 0x80]
    first = [syndrome]
    for _ in range(7):
        first.append(first[-1] >> 1 ^ (polynomial if first[-1] & 1 else 0))
    power = bits.bit_length() // 2 - 3
    babies = _multiplied(np.array(first, np.uint32), 0, power, is_v2)
    giants, numbers = _giants(power, (bits >> power + 3).bit_length(), is_v2)
    at = np.minimum(np.searchsorted(giants, babies), len(giants) - 1)
    baby = np.flatnonzero(giants[at] == babies)
    exponents = (numbers[at[baby]] << power + 3) - baby
    exponents = exponents[(exponents >= 0) & (exponents < bits)]
    return int(exponents[0]) if len(exponents) == 1 else None


@cache
def _giants(power: int, doublings: int, is_v2: bool) -> tuple[NDArray[np.uint32], NDArray[np.intp]]:
    """The last bit of the CRC after every ``2 ** power`` zero bytes, sorted, and after how many times that many."""
    values = _multiplied(np.array([1 << _CRC_BITS - 1], np.uint32), power, doublings, is_v2)
    order = np.argsort(values)
    return values[order], order


def _multiplied(values: NDArray[np.uint32], power: int, doublings: int, is_v2: bool) -> NDArray[np.uint32]:
    """The CRCs, then those after ``2 ** power`` more zero bytes, after twice as many, and so on."""
    for number in range(power, power + doublings):
        low, second, third, high = _tables(number, is_v2)
        after = low[values & 0xFF] ^ second[values >> 8 & 0xFF] ^ third[values >> 16 & 0xFF] ^ high[values >> 24]
        values = np.concatenate((values, after))
    return values


@cache
def _tables(power: int, is_v2: bool) -> NDArray[np.uint32]:
    return np.array(zeros_tables(power, is_v2), np.uint32)


class DecodedBatch(msgspec.Struct, frozen=True):
    table: BatchTable
    size_bytes: int  # of the records


def decoded_batch(content: bytearray, location: Location, limits: Limits) -> DecodedBatch | None:
    """A batch whose CRC is not looked at; None if there is any finding about its header or its records."""
    buffer = memoryview(bytes(content))
    headers = headers_in(buffer, 0)
    if len(headers) != 1 or int(headers.end_position[0]) != len(content):
        return None
    closed = BatchChunk(headers=headers, buffer_position=0, table=headers.unopened(), buffer=buffer)
    chunk = open_wrappers(closed, limits)
    sizes: list[int] = []
    if next(_findings(chunk, sizes, location, limits), None) is not None:
        return None
    return DecodedBatch(chunk.table, sum(sizes))


def _findings(chunk: BatchChunk, sizes: list[int], location: Location, limits: Limits) -> Iterator[Finding]:
    yield from check_batch_headers(chunk.table, location)
    yield from check_wrapper_offsets(chunk.table, chunk.headers, location)
    check = RecordCheck(location, limits)
    for table in record_tables(chunk, limits=limits, location=location):
        sizes.append(len(table.buffer))
        yield from check.findings(table)


def _odds(right: bytearray, bits: int, decoded_bytes: int, location: Location, limits: Limits) -> float:
    """The odds that other damage led to this batch; above MOST_ODDS they may be an estimate from few tries."""
    by_crc = bits / _CRC_VALUES
    if by_crc <= MOST_ODDS:
        return by_crc
    tries = min(_TRIES, _DECODED_BYTES // max(decoded_bytes, 1))
    most_unnoticed = tries * sqrt(MOST_ODDS / by_crc)
    unnoticed = tried = 0
    while tried < tries and (tried < _FEW_TRIES or unnoticed <= most_unnoticed):
        tried += 1
        exponent = int(bits * (tried * _GOLDEN % 1))
        if exponent < _CRC_BITS:
            unnoticed += 1
            continue
        at, bit = _place(exponent, len(right), 0)
        right[at] ^= 1 << bit
        unnoticed += decoded_batch(right, location, limits) is not None
        right[at] ^= 1 << bit
    share: float = min(1.0, (unnoticed + _UNSEEN) / tried) if tried else 1.0
    return by_crc * share * share
