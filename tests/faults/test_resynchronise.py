"""Going on after damage: every intact batch around it is found, and none is found that is not there."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from format.log.batch_chunk import Damage
from format.log.encode_batches import encode_message
from format.log.walker import batch_chunks
from tests.building import batch, batches, wrapper
from tests.faults.judging import codes_of, offsets_read, verdict
from tests.sources import BytesSource


def walk(log: bytes, **more: object) -> tuple[list[tuple[int, int]], list[Damage]]:
    """Position and base offset of every batch with a right CRC, and the damage."""
    found, damage = [], []
    for chunk in batch_chunks(BytesSource(log), **more):  # type: ignore[arg-type]
        sound = chunk.table.crc_valid != 0
        found += list(zip(chunk.table.position[sound].tolist(), chunk.table.base_offset[sound].tolist(), strict=True))
        damage += [chunk.damage] if chunk.damage is not None else []
    return found, damage


def starts(parts: list[bytes]) -> list[int]:
    found = [0]
    for each in parts:
        found.append(found[-1] + len(each))
    return found[:-1]


# -- batch images in values ----------------------------------------------------------------------------------

#: What a value may hold that looks like the log itself: one batch, several, with offsets that fit in or do not.
IMAGES = {
    "the next offsets": batch(3),
    "the next offsets, twice": batch(3) + batch(6),
    "its own offsets": batch(0),
    "offsets far ahead": batch(1000),
    "a whole segment": b"".join(batches(40, 3)),
    "old messages": encode_message(0, 4, b"k", b"v") + encode_message(1, 5, b"k", b"v"),
    "with garbage around": b"garbage" + batch(3) + b"garbage",
}


def log_with_image(image: bytes) -> list[bytes]:
    """Three batches, the second with the image in the value of its second record of three."""
    return [batch(0), batch(3, [b"before", image, b"after"]), batch(6), batch(9)]


@pytest.mark.parametrize("name", IMAGES)
def test_an_image_in_a_sound_batch_is_a_value(name: str) -> None:
    parts = log_with_image(IMAGES[name])
    assert walk(b"".join(parts)) == (list(zip(starts(parts), [0, 3, 6, 9], strict=True)), [])


@pytest.mark.parametrize("name", IMAGES)
@pytest.mark.parametrize("chunk_bytes", [100, 1 << 20])
def test_no_flip_in_a_batch_makes_the_image_in_it_a_batch(name: str, chunk_bytes: int) -> None:
    parts = log_with_image(IMAGES[name])
    log = b"".join(parts)
    first, _, third, fourth = starts(parts)
    right = {(first, 0), (third, 6), (fourth, 9)}
    image_end = log.index(IMAGES[name]) + len(IMAGES[name])
    flips = [*range(len(parts[0]), len(parts[0]) + 80), *range(image_end, third)]
    for position in flips:
        for mask in (0x01, 0x80):
            broken = bytearray(log)
            broken[position] ^= mask
            found = set(walk(bytes(broken), chunk_bytes=chunk_bytes)[0])
            assert {at for at, _ in found} <= set(starts(parts)), (position, mask)
            assert right <= found, (position, mask)


@pytest.mark.parametrize("name", IMAGES)
@pytest.mark.parametrize("destroyed", [(0, 8), (0, 20), (0, 61), (8, 12), (12, 61), (20, 70)])
def test_a_destroyed_header_in_front_of_an_image(name: str, destroyed: tuple[int, int]) -> None:
    parts = log_with_image(IMAGES[name])
    at = starts(parts)[1]
    broken = bytearray(b"".join(parts))
    first, last = destroyed
    broken[at + first : at + last] = b"\xaa" * (last - first)
    found, damage = walk(bytes(broken))
    assert {(0, 0), (starts(parts)[2], 6), (starts(parts)[3], 9)} <= set(found)
    assert {position for position, _ in found} <= set(starts(parts))
    # Where the offset alone is wrong the batch is intact; where its length is right, only its CRC is wrong.
    assert len(found) == (4 if destroyed == (0, 8) else 3)
    assert bool(damage) == (destroyed not in ((0, 8), (20, 70)))


@pytest.mark.parametrize("magic", [0, 1])
def test_an_image_that_ends_an_old_message(magic: int) -> None:
    """The value ends the message there, so that an image in it leads exactly to the next header, or to the end."""
    image = encode_message(magic, 1, b"k", b"image") + encode_message(magic, 2, b"k", b"image")
    parts = [
        encode_message(magic, 0, b"k", b"v"),
        encode_message(magic, 1, b"key", image),
        encode_message(magic, 2, b"k", b"v"),
    ]
    for whole in (parts, parts[:2]):
        log = b"".join(whole)
        at = starts(whole)[1]
        for position in range(at, at + 30):
            broken = bytearray(log)
            broken[position] ^= 0x20
            found, _ = walk(bytes(broken))
            assert {position for position, _ in found} <= set(starts(whole)), position


# -- whole batches moved -------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", [(0, 1, 1, 2), (0, 2, 1), (0, 2), (0, 0, 1, 2), (2, 1, 0)])
@pytest.mark.parametrize("codec", [0, 4])
def test_moved_batches_are_no_damage_between(order: tuple[int, ...], codec: int) -> None:
    parts = batches(3, codec=codec)
    moved = [parts[each] for each in order]
    assert walk(b"".join(moved)) == (list(zip(starts(moved), [3 * each for each in order], strict=True)), [])


def test_moved_batches_after_damage_are_found(tmp_path: Path) -> None:
    parts = batches(6)
    log = b"".join([parts[0], parts[3], b"garbage", parts[1], parts[2], parts[4], parts[5]])
    found = verdict(tmp_path, log)
    assert offsets_read(tmp_path) == [0, 1, 2, 9, 10, 11, 3, 4, 5, 6, 7, 8, 12, 13, 14, 15, 16, 17]
    assert "log-framing-broken" in codes_of(found)


# -- one damaged range ---------------------------------------------------------------------------------------


def check_one_range(parts: list[bytes], first: int, last: int, filling: bytes) -> None:
    """Damages bytes first to last: all batches beside them are found, none else, and the lost offsets are listed."""
    log = b"".join(parts)
    ends = [*starts(parts)[1:], len(log)]
    broken = log[:first] + filling + log[last:]
    found, damage = walk(broken)
    whole = {start for start, end in zip(starts(parts), ends, strict=True) if end <= first or start >= last}
    positions = {position for position, _ in found}
    assert whole <= positions, (first, last)
    # The base offset, leader epoch and magic lie outside the CRC: a batch may survive a change there.
    assert positions <= set(starts(parts)), (first, last)
    for each in damage:
        inside = [start for start in whole if each.position <= start < each.position + each.length]
        assert not inside, (first, last)


@pytest.mark.parametrize("kind", ["v2", "v2 compressed", "v2 with images", "old messages", "old wrappers"])
def test_every_intact_batch_around_a_damaged_range_is_kept(kind: str) -> None:
    random = Random(kind)
    parts = {
        "v2": lambda: batches(12, values=5),
        "v2 compressed": lambda: [batch(5 * each, [b"%d" % each * 40] * 5, codec=1 + each % 4) for each in range(12)],
        # What is left of the very last batch without its header could be anything: see docs/reliability.md.
        "v2 with images": lambda: [*(batch(each, [b"x" + batch(each + 1) + b"y"]) for each in range(12)), batch(12)],
        "old messages": lambda: [encode_message(each % 2, each, b"k", b"v" * each) for each in range(20)],
        "old wrappers": lambda: [wrapper(each % 2, 3 * each, codec=1 + each % 3) for each in range(12)],
    }[kind]()
    size = sum(len(each) for each in parts)
    for _ in range(300):
        first = random.randrange(size)
        last = min(size, first + random.choice((1, 2, 4, 12, 61, 200, 512)))
        filling = random.choice((bytes(last - first), random.randbytes(last - first), b"\xff" * (last - first)))
        check_one_range(parts, first, last, filling)


def test_lost_offsets_are_listed_to_the_last_one(tmp_path: Path) -> None:
    parts = batches(8)
    log = bytearray(b"".join(parts))
    at = starts(parts)
    log[at[2] + 5 : at[5] + 30] = bytes(at[5] + 30 - at[2] - 5)
    found = [each for each in verdict(tmp_path, bytes(log)) if each.lost_offsets]
    lost = {offset for each in found for offset in range(each.lost_offsets[0], each.lost_offsets[1] + 1)}  # type: ignore[index]
    assert lost == set(range(24)) - set(offsets_read(tmp_path)) == set(range(6, 18))


def test_the_first_offset_of_a_compressed_old_message_bounds_the_loss(tmp_path: Path) -> None:
    log = wrapper(1, 0) + b"x" * 50 + wrapper(1, 3)
    (found,) = verdict(tmp_path, log)
    assert (found.code, found.lost_offsets) == ("log-framing-broken", None)


def test_a_batch_with_an_offset_below_zero_in_front_of_what_is_none() -> None:
    """An intact batch behind damage, its base offset changed, and then less than a header."""
    for base_offset in (-(2**63), -4, -1):
        moved = base_offset.to_bytes(8, "big", signed=True) + batch(3)[8:]
        for rest in (b"\x01", b"garbage", b"\xff" * 8, bytes(5)):
            found, damage = walk(batch(0) + b"garbage" + moved + rest)
            assert (0, 0) in found
            assert damage


def test_damage_in_two_places(tmp_path: Path) -> None:
    parts = batches(9)
    log = bytearray(b"".join(parts))
    at = starts(parts)
    for which in (2, 6):
        log[at[which] + 8 : at[which] + 12] = b"\x00\x00\x30\x00"
    found = verdict(tmp_path, bytes(log))
    assert [each.lost_offsets for each in found] == [None, None]
    assert "offsets 6 to 8 can be read" in found[0].message


def test_garbage_after_every_batch(tmp_path: Path) -> None:
    parts = batches(30)
    found = verdict(tmp_path, b"".join(each + b"garbage" for each in parts))
    assert offsets_read(tmp_path) == list(range(90))
    assert codes_of(found) == ["log-framing-broken"] * 29 + ["tail-torn"]


def test_a_damaged_offset_far_ahead_hides_nothing_after_the_next_damage(tmp_path: Path) -> None:
    parts = batches(6)
    parts[1] = b"\x00\x00\x01" + parts[1][3:]  # outside the CRC
    log = b"".join([*parts[:3], b"garbage", *parts[3:]])
    verdict(tmp_path, log)
    assert {0, 1, 2, 6, 7, 8, *range(9, 18)} <= set(offsets_read(tmp_path))
