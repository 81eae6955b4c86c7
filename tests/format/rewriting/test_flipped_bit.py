"""salvage --repair: one flipped bit under the CRC of a batch is found, and flipped back where that is safe."""

from __future__ import annotations

import json
from itertools import combinations
from pathlib import Path
from random import Random

import pytest

from format.findings import Certainty
from format.io.source import FileSource, PatchedSource
from format.layout import MANIFEST
from format.limits import DEFAULT_LIMITS
from format.location import Location
from format.log.batch_chunk import OffsetRange
from format.log.encode_batches import encode_message
from format.rewriting.flipped_bit import MOST_ODDS, FlippedBit, flip_in, flipped_bits
from format.rewriting.intact_batches import scan_segment
from format.verbs.verify.verify import verify
from tests.building import BASE_TIMESTAMP, batch, wrapper, write_segment
from tests.format.rewriting.test_repairs import LOG, codes, salvaged, sound_log

FORMATS = {
    **{
        f"v2, codec {codec}": batch(7, [b"value-%d" % number for number in range(3)], codec=codec) for codec in range(5)
    },
    "v0": encode_message(0, 7, b"key", b"value"),
    "v1": encode_message(1, 7, b"key", b"value", timestamp=BASE_TIMESTAMP),
    "v0, gzip": wrapper(0, 7),
    "v1, snappy": wrapper(1, 7, codec=2),
}
WORDS = [b"a", b"few", b"short", b"English", b"words", b"again"]


def flipped(content: bytes, *bits: int) -> bytes:
    changed = bytearray(content)
    for bit in bits:
        changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


def found_in(content: bytes) -> FlippedBit | None:
    return flip_in(content, OffsetRange(), Location("t-0/0.log"), DEFAULT_LIMITS)


def large(codec: int) -> bytes:
    chance = Random(codec)
    return batch(0, [b" ".join(chance.choices(WORDS, k=60)) for _ in range(100)], codec=codec)


@pytest.mark.parametrize("name", FORMATS)
def test_a_flip_in_any_field_is_found(name: str) -> None:
    content = FORMATS[name]
    first = 8 * (17 if name.startswith("v2") else 12)  # the CRC and all that it covers
    for bit in [*range(first, first + 8 * 6), *range(first, 8 * len(content), 11)]:
        found = found_in(flipped(content, bit))
        assert found is not None, bit
        assert (found.at, found.bit) == divmod(bit, 8)
        assert found.last_offset == int.from_bytes(content[:8], "big") + (2 if name.startswith("v2") else 0)
        assert found.odds == pytest.approx((8 * len(content) - first) / 2**32)


@pytest.mark.parametrize("name", ["v2, codec 0", "v1"])
def test_two_flips_are_never_taken_for_one(name: str) -> None:
    content = FORMATS[name]
    bits = range(8 * 21, 8 * len(content), 37)
    assert not any(found_in(flipped(content, *pair)) for pair in combinations(bits, 2))


def test_one_damaged_byte_is_never_taken_for_a_flip() -> None:
    content = FORMATS["v2, codec 0"]
    for at in (21, 40, 60, len(content) - 1):
        for change in range(3, 256, 4 + at % 2):
            if change.bit_count() != 1:
                damaged = bytearray(content)
                damaged[at] ^= change
                assert found_in(bytes(damaged)) is None


def test_records_that_are_not_those_of_the_header_count_as_false() -> None:
    """The CRC of the batch is right but for one bit, and it says that it has one record more than it has."""
    assert found_in(flipped(batch(7, [b"v"] * 3, record_count=4), 8 * 63)) is None


@pytest.mark.parametrize(("codec", "is_offered"), [(0, False), (1, True), (2, False), (3, False)])
def test_what_is_offered_depends_on_what_decoding_notices(codec: int, is_offered: bool) -> None:
    content = large(codec)
    assert len(content) > 3_000
    found = found_in(flipped(content, 8 * 1500 + 3))
    assert found is not None
    assert (found.at, found.bit) == (1500, 3)
    assert (found.odds <= MOST_ODDS) is is_offered


@pytest.mark.parametrize("bit", [8 * 17 + 1, 8 * 25 + 5, 8 * 57, 8 * 70 + 2])
def test_the_batch_is_written_and_listed_as_reconstructed(tmp_path: Path, bit: int) -> None:
    log = sound_log()
    damaged = [*log[:4], flipped(log[4], bit), *log[5:]]
    path = write_segment(tmp_path / "t-0", 0, damaged).parent
    result = salvaged(path, tmp_path / "out", repairs=True)
    assert (tmp_path / "out" / "t-0" / LOG).read_bytes() == b"".join(log)
    assert not result.losses
    [found] = result.findings
    assert (found.code, found.certainty) == ("batch-reconstructed", Certainty.RECONSTRUCTED)
    at, bit_in_byte = divmod(bit, 8)
    position = sum(map(len, log[:4])) + at
    assert f"bit {bit_in_byte} of the byte at position {position} flipped (" in found.message
    assert "other damage looks the same in 1 of 6," in found.message
    assert (found.expected, found.actual) == (log[4][at], log[4][at] ^ 1 << bit_in_byte)
    [listed] = json.loads((tmp_path / "out" / MANIFEST).read_text())["reconstructed"]
    assert listed["certainty"] == "reconstructed"
    assert path.joinpath(LOG).read_bytes() == b"".join(damaged)


@pytest.mark.parametrize("bit", [8 * 23, 8 * 70 + 2])
def test_without_the_option_it_is_offered(tmp_path: Path, bit: int) -> None:
    log = sound_log()
    log[4] = flipped(log[4], bit)
    [loss] = salvaged(write_segment(tmp_path / "t-0", 0, log).parent, tmp_path / "out", repairs=False).losses
    assert loss.lost_offsets == (12, 14)
    assert "offsets 12 to 14 can be reconstructed" in loss.message
    assert "other damage looks the same in 1 of 6," in loss.message
    assert "--repair" in loss.next_step
    assert not (tmp_path / "out" / "t-0" / LOG).read_bytes().count(log[4])


@pytest.mark.parametrize("repairs", [False, True])
def test_a_batch_too_large_for_its_crc_is_refused(tmp_path: Path, repairs: bool) -> None:
    content = large(0)
    path = write_segment(tmp_path / "t-0", 0, [flipped(content, 8 * 999), batch(100, [b"v"])]).parent
    result = salvaged(path, tmp_path / "out", repairs=repairs)
    [loss] = result.losses
    assert loss.lost_offsets == (0, 99)
    assert "bit 0 of the byte at position 999" in loss.message
    assert loss.message.endswith(", more than the 1 of 1,000,000 cases that --repair accepts")
    assert "batch-reconstructed" not in codes(result.findings)


def test_bytes_that_the_disk_did_not_read_are_no_flip(tmp_path: Path) -> None:
    log = sound_log()
    log[4] = flipped(log[4], 8 * 70)
    path = write_segment(tmp_path / "t-0", 0, log)
    with FileSource(path) as file:
        source = PatchedSource(file)
        scan = scan_segment(source, OffsetRange(), DEFAULT_LIMITS)
        assert len(list(flipped_bits(source, scan, [], Location(str(path)), DEFAULT_LIMITS))) == 1
        source.unreadable.add(0)
        assert not list(flipped_bits(source, scan, [], Location(str(path)), DEFAULT_LIMITS))


def test_verify_calls_it_damaged_as_before(tmp_path: Path) -> None:
    log = sound_log()
    log[4] = flipped(log[4], 8 * 70)
    [found] = [each for each in verify(write_segment(tmp_path / "t-0", 0, log).parent) if each.severity > 1]
    assert (found.code, found.certainty, found.lost_offsets) == ("batch-crc-mismatch", Certainty.PROVEN, (12, 14))
