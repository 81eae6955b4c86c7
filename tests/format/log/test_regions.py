"""Regions: every byte of a batch or message has exactly one owner, whatever the bytes are."""

from __future__ import annotations

import random

import pytest

from format import layout
from format.errors import CorruptDataError
from format.log.regions import regions_of_batch, zigzag_varint
from tests.building import batch, wrapper
from tests.corpora import DATA_DIR

EDGE_CASES = DATA_DIR / "kafka-4.3-single" / "node-1" / "edge.cases_1-0" / "00000000000000000000.log"
LEGACY = DATA_DIR / "kafka-0.8-to-2.8" / "data" / "legacy-0" / "00000000000000000000.log"


def assert_seamless(content: bytes, position: int) -> int:
    """Regions follow each other from the position to the end of the batch, which is returned."""
    end = position + layout.LOG_ENTRY.size_bytes + layout.LOG_ENTRY.struct.unpack_from(content, position)[1]
    for region in regions_of_batch(content, position):
        assert region.position == position, region
        assert region.length > 0, region
        position = region.end_position
    assert position == end
    return end


@pytest.mark.parametrize(("path", "least"), [(EDGE_CASES, 10), (LEGACY, 100)], ids=["v2", "v0 and v1"])
def test_every_byte_has_an_owner(path, least) -> None:
    content = path.read_bytes()
    position = count = 0
    while position < len(content) and count < 1000:
        position = assert_seamless(content, position)
        count += 1
    assert count > least


def test_fields_of_a_record_are_named() -> None:
    content = batch(7, [b"value"], key=b"key", headers=((b"name", b"x"), (b"none", None)))
    regions = {region.field: region.value for region in regions_of_batch(content, 0)}
    assert (regions["key"], regions["value"], regions["headerCount"]) == ('"key"', '"value"', "2")
    assert (regions["headerKey"], regions["headerValue"]) == ('"none"', '"x"')
    assert regions["base_offset"] == "7"


def test_what_cannot_be_decoded_has_an_owner_too() -> None:
    """Bytes changed at random below the header: no error, and still no gap."""
    chance = random.Random(5)
    undecodable = 0
    for content in (batch(0, [b"a" * 40, b"b" * 40]), wrapper(1, 3), wrapper(0, 3)):
        start = layout.RECORD_BATCH.size_bytes if content[16] == 2 else layout.MESSAGE_V1.size_bytes
        for _ in range(2000):
            hit = bytearray(content)
            hit[chance.randrange(start, len(hit))] = chance.randrange(256)
            assert_seamless(bytes(hit), 0)
            undecodable += any("cannot be decoded" in each.value for each in regions_of_batch(bytes(hit), 0))
    assert undecodable > 30


def test_a_length_past_the_end_is_an_error() -> None:
    content = batch(0)
    with pytest.raises(CorruptDataError, match="no batch starts at position 0"):
        list(regions_of_batch(content[:-1], 0))
    with pytest.raises(CorruptDataError, match="too short for a batch header"):
        list(regions_of_batch(content[:9], 0))


def test_most_records_bounds_what_is_decoded() -> None:
    content = batch(0, [b"a", b"b", b"c"])
    regions = list(regions_of_batch(content, 0, 1))
    assert regions[-1].value.startswith("2 more records, ")
    assert regions[-1].end_position == len(content)


@pytest.mark.parametrize(("octets", "value"), [("00", 0), ("01", -1), ("02", 1), ("d8 04", 300), ("80 80 01", 8192)])
def test_varints(octets: str, value: int) -> None:
    encoded = bytes.fromhex(octets)
    assert zigzag_varint(encoded, 0, len(encoded)) == (value, len(encoded))


@pytest.mark.parametrize("octets", ["", "80", "80" * 11])
def test_a_varint_without_an_end_is_an_error(octets: str) -> None:
    encoded = bytes.fromhex(octets)
    with pytest.raises(CorruptDataError, match="no end"):
        zigzag_varint(encoded, 0, len(encoded))
