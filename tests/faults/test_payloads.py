"""Compressed batches whose payload is wrong under a CRC that is right: decompression-failed, or a limit."""

from __future__ import annotations

import struct
from pathlib import Path

import lz4.frame
import pytest
import snappy

from format.codecs import compress
from format.layout import CODEC_NAMES
from format.limits import MIB, Limits
from format.log.encode_batches import BatchHeader, encode_message, seal_batch
from tests.building import BASE_TIMESTAMP, batch
from tests.faults.judging import codes_of, offsets_read, verdict
from tests.format.payloads import (
    GZIP,
    LZ4,
    SNAPPY,
    XERIAL_HEADER,
    ZSTD,
    gzip_member,
    zstd_header,
    zstd_skippable,
)
from tests.record_encoder import NewRecord, encode_record

CODECS = (GZIP, SNAPPY, LZ4, ZSTD)
RECORDS = b"".join(encode_record(NewRecord(each, each, b"key", b"value %d" % each * 20)) for each in range(3))
HEADER = BatchHeader(3, 2, 3, BASE_TIMESTAMP, BASE_TIMESTAMP + 2)
_XERIAL = XERIAL_HEADER
SIZED = lz4.frame.compress(RECORDS, store_size=True)


def log_of(codec: int, payload: bytes) -> bytes:
    """A batch with this payload between two sound ones."""
    return batch(0) + seal_batch(HEADER, payload, codec=codec) + batch(6)


WRONG: dict[str, tuple[int, bytes]] = {
    **{f"{CODEC_NAMES[codec]}: garbage": (codec, bytes(range(200, 256)) * 3) for codec in CODECS},
    **{
        f"{CODEC_NAMES[codec]}: made by {CODEC_NAMES[other]}": (codec, compress(other, RECORDS))
        for codec in CODECS for other in CODECS if codec != other
    },
    **{f"{CODEC_NAMES[codec]}: empty": (codec, b"") for codec in (GZIP, SNAPPY, LZ4)},
    "snappy: chunk length -1": (SNAPPY, _XERIAL + struct.pack(">i", -1) + b"x" * 20),
    "snappy: chunk length 0": (SNAPPY, _XERIAL + struct.pack(">i", 0) + b"x" * 20),
    "snappy: chunk length 2**31-1": (SNAPPY, _XERIAL + struct.pack(">i", 2**31 - 1) + b"x" * 20),
    "snappy: chunk past the end": (SNAPPY, _XERIAL + struct.pack(">i", 21) + b"x" * 20),
    "zstd: dictionary": (ZSTD, b"\x28\xb5\x2f\xfd\x23\x07\x00\x00\x00\x05" + b"\x29\x00\x00hello"),
    "lz4: bad header checksum": (LZ4, compress(LZ4, RECORDS, magic=0)),
    "lz4: bad content checksum": (LZ4, lz4.frame.compress(RECORDS, content_checksum=True)[:-1] + b"\x00"),
    "lz4: false content size": (LZ4, SIZED[:6] + struct.pack("<Q", 7) + SIZED[14:]),
    "gzip: bad trailer": (GZIP, gzip_member(RECORDS)[:-8] + bytes(8)),
    "gzip: bad length in the trailer": (GZIP, gzip_member(RECORDS)[:-4] + bytes(4)),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_a_payload_that_is_none(tmp_path: Path, name: str) -> None:
    codec, payload = WRONG[name]
    found = verdict(tmp_path, log_of(codec, payload))
    assert codes_of(found) == ["decompression-failed"]
    assert found[0].location.offset == 3
    assert offsets_read(tmp_path) == [0, 1, 2, 6, 7, 8]


SOUND: dict[str, tuple[int, bytes]] = {
    "snappy: raw": (SNAPPY, snappy.compress(RECORDS)),
    "gzip: several members": (GZIP, gzip_member(RECORDS[:50]) + gzip_member(RECORDS[50:])),
    "lz4: a second frame": (LZ4, lz4.frame.compress(RECORDS[:50]) + lz4.frame.compress(RECORDS[50:])),
    "lz4: linked blocks": (LZ4, lz4.frame.compress(RECORDS, block_linked=True)),
    "zstd: a second frame": (ZSTD, compress(ZSTD, RECORDS[:50]) + compress(ZSTD, RECORDS[50:])),
    "zstd: skippable frames": (ZSTD, zstd_skippable(b"x") + compress(ZSTD, RECORDS) + zstd_skippable(b"")),
}


@pytest.mark.parametrize("name", SOUND)
def test_a_payload_that_is_unusual(tmp_path: Path, name: str) -> None:
    codec, payload = SOUND[name]
    assert verdict(tmp_path, log_of(codec, payload)) == []
    assert offsets_read(tmp_path) == list(range(9))


def test_an_empty_zstd_payload_is_no_frame_and_no_records(tmp_path: Path) -> None:
    """Zero frames are sound zstd, so that the records are what is missing."""
    (found,) = verdict(tmp_path, log_of(ZSTD, b""))
    assert (found.code, found.location.offset) == ("record-count-mismatch", 3)
    assert offsets_read(tmp_path) == [0, 1, 2, 6, 7, 8]


@pytest.mark.parametrize("codec", CODECS)
def test_a_payload_cut_at_any_byte_is_never_a_short_success(tmp_path: Path, codec: int) -> None:
    payload = compress(codec, RECORDS)
    for length in range(len(payload)):
        found = codes_of(verdict(tmp_path, log_of(codec, payload[:length])))
        assert found in (["decompression-failed"], ["record-count-mismatch"]), length


LIMITED: dict[str, tuple[int, bytes]] = {
    **{f"{CODEC_NAMES[codec]}: too large": (codec, compress(codec, bytes(9 * MIB))) for codec in CODECS},
    "snappy: claims 4 GiB": (SNAPPY, b"\xff\xff\xff\xff\x0f" + b"x" * 300),
    "zstd: declares 2**60": (ZSTD, zstd_header(2**60) + b"\x01\x00\x00"),
    # Single segment off, window exponent 21: 2 GiB.
    "zstd: window of 2 GiB": (ZSTD, b"\x28\xb5\x2f\xfd\x00" + bytes([21 << 3]) + b"\x03\x00\x10\x00"),
}


@pytest.mark.parametrize("name", LIMITED)
def test_a_limit_is_never_called_damage(tmp_path: Path, name: str) -> None:
    codec, payload = LIMITED[name]
    found = verdict(tmp_path, log_of(codec, payload), limits=Limits(max_decompressed_bytes=8 * MIB))
    assert codes_of(found) == ["limit-exceeded"]
    assert found[0].is_incomplete


def test_lz4_with_a_bad_header_checksum_is_legal_in_v0(tmp_path: Path) -> None:
    inner = b"".join(encode_message(0, each, b"k", b"v") for each in range(3))
    log = encode_message(0, 2, None, compress(LZ4, inner, magic=0), attributes=LZ4)
    assert verdict(tmp_path, log) == []
    assert offsets_read(tmp_path) == [0, 1, 2]
