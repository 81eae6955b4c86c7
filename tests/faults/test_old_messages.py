"""Messages of v0 and v1, and the sets inside compressed ones, wrong under a CRC that is right."""

from __future__ import annotations

from pathlib import Path

import pytest

from format.codecs import compress
from format.log.encode_batches import encode_message, encode_wrapper, reseal
from tests.building import BASE_TIMESTAMP, batch, wrapper
from tests.faults.judging import codes_of, offsets_read, verdict


def message(magic: int, offset: int, value: bytes | None = b"v", *, attributes: int = 0, timestamp: int = -1) -> bytes:
    return encode_message(magic, offset, b"k", value, attributes=attributes, timestamp=timestamp if magic else -1)


def between(one: bytes, magic: int, next_offset: int = 3) -> bytes:
    """The message after one at offset 0, before one at ``next_offset``."""
    return message(magic, 0) + one + message(magic, next_offset)


def inner_set(magic: int, offsets: tuple[int, ...], inner_magic: int | None = None) -> list[bytes]:
    return [message(magic if inner_magic is None else inner_magic, each) for each in offsets]


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", [1, 2, 3])
def test_sound_wrappers_are_silent(tmp_path: Path, magic: int, codec: int) -> None:
    assert verdict(tmp_path, wrapper(magic, 0, codec=codec) + wrapper(magic, 3, codec=codec)) == []
    assert offsets_read(tmp_path) == list(range(6))


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("size", [-1, 0, 13])
def test_a_size_below_the_least(tmp_path: Path, magic: int, size: int) -> None:
    one = message(magic, 1)
    log = between(one[:8] + size.to_bytes(4, "big", signed=True) + one[12:], magic, 2)
    (found,) = verdict(tmp_path, log)
    assert (found.code, found.location.length) == ("log-framing-broken", len(one))
    assert found.lost_offsets is None, "its CRC is right: it can be read, and salvage --repair keeps it"


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("field", [b"\xff\xff\xff\xfe", b"\x7f\xff\xff\xff", b"\x00\x00\x00\x09"])
def test_a_key_length_that_does_not_fit(tmp_path: Path, magic: int, field: bytes) -> None:
    one = message(magic, 1)
    at = 26 if magic else 18
    (found,) = verdict(tmp_path, between(reseal(one[:at] + field + one[at + 4 :]), magic, 2))
    assert (found.code, found.location.offset) == ("message-invalid", 1)
    assert offsets_read(tmp_path) == [0, 2]


INNER_WRONG = {
    "nothing inside": lambda magic: encode_wrapper(magic, [], codec=1, last_offset=2),
    "a null value": lambda magic: encode_message(magic, 2, None, None, attributes=1),
    "a compressed message inside": lambda magic: encode_wrapper(
        magic, [encode_wrapper(magic, inner_set(magic, (0, 1)), codec=1, last_offset=1)], codec=1, last_offset=2),
    "another format inside": lambda magic: encode_wrapper(
        magic, inner_set(magic, (0, 1), 1 - magic), codec=1, last_offset=2),
    "an inner message cut": lambda magic: encode_message(
        magic, 2, None, compress(1, b"".join(inner_set(magic, (0, 1)))[:-3]), attributes=1),
    "an inner size below the least": lambda magic: encode_wrapper(
        magic, [message(magic, 0)[:8] + bytes(4) + message(magic, 0)[12:]], codec=1, last_offset=2),
}  # fmt: skip


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("name", INNER_WRONG)
def test_a_set_inside_that_is_wrong(tmp_path: Path, name: str, magic: int) -> None:
    (found,) = verdict(tmp_path, between(INNER_WRONG[name](magic), magic))
    assert found.code == "message-invalid"
    assert offsets_read(tmp_path) == [0, 3]


def test_an_inner_crc_that_is_wrong(tmp_path: Path) -> None:
    inner = bytearray(message(0, 1) + message(0, 2))
    inner[-1] ^= 1
    log = between(encode_message(0, 2, None, compress(1, bytes(inner)), attributes=1), 0)
    (found,) = verdict(tmp_path, log)
    assert (found.code, found.location.offset) == ("message-invalid", 2)


def test_a_wrapper_offset_below_the_last_one_inside(tmp_path: Path) -> None:
    log = between(encode_wrapper(1, inner_set(1, (0, 5)), codec=1, last_offset=2), 1)
    (found,) = verdict(tmp_path, log)
    assert found.code == "message-invalid"
    assert "below its last inner offset" in found.message


@pytest.mark.parametrize("offset", [1, 3, 2**40])
def test_a_v0_wrapper_offset_that_is_not_the_last_one_inside(tmp_path: Path, offset: int) -> None:
    log = message(0, 0) + encode_wrapper(0, inner_set(0, (1, 2)), codec=1, last_offset=offset)
    assert codes_of(verdict(tmp_path, log)) == ["record-offset-invalid"]
    assert offsets_read(tmp_path) == [0, 1, 2]


def test_inner_offsets_that_fall(tmp_path: Path) -> None:
    log = between(encode_wrapper(0, inner_set(0, (2, 1)), codec=1, last_offset=1), 0)
    assert "record-offset-invalid" in codes_of(verdict(tmp_path, log))


def test_a_wrapper_of_an_old_librdkafka(tmp_path: Path) -> None:
    assert verdict(tmp_path, encode_wrapper(1, inner_set(1, (0, 1, 2)), codec=1, last_offset=0)) == []
    assert offsets_read(tmp_path) == [0, 1, 2]


@pytest.mark.parametrize("codec", [4, 5, 7])
def test_a_codec_that_the_format_has_not(tmp_path: Path, codec: int) -> None:
    (found,) = verdict(tmp_path, between(encode_message(1, 2, None, b"payload", attributes=codec), 1))
    assert (found.code, found.is_incomplete) == ("codec-unknown", True)


def test_attribute_bits_that_the_format_has_not(tmp_path: Path) -> None:
    assert codes_of(verdict(tmp_path, between(message(1, 1, attributes=0x40), 1, 2))) == ["attributes-unknown"]
    assert codes_of(verdict(tmp_path, between(message(0, 1, attributes=0x08), 0, 2))) == ["attributes-unknown"]


def test_all_formats_in_one_segment(tmp_path: Path) -> None:
    log = message(0, 0) + wrapper(0, 1) + message(1, 4) + wrapper(1, 5) + batch(8) + message(0, 11)
    assert verdict(tmp_path, log) == []
    assert offsets_read(tmp_path) == list(range(12))


def test_append_time_is_the_wrappers(tmp_path: Path) -> None:
    inner = [message(1, each, timestamp=5) for each in range(2)]
    log = encode_wrapper(1, inner, codec=1, last_offset=1, timestamp=BASE_TIMESTAMP, attributes=8)
    assert verdict(tmp_path, log) == []


@pytest.mark.parametrize("magic", [0, 1])
def test_every_flip_in_a_wrapper_costs_that_wrapper_alone(tmp_path: Path, magic: int) -> None:
    parts = [wrapper(magic, first) for first in (0, 3, 6)]
    for position in range(len(parts[1])):
        changed = bytearray(parts[1])
        changed[position] ^= 0x08
        found = codes_of(verdict(tmp_path, parts[0] + bytes(changed) + parts[2]))
        assert found, position
        assert {0, 1, 2, 6, 7, 8} <= set(offsets_read(tmp_path)), position
