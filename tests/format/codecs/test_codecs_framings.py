"""Each framing that a codec allows, and each that it does not; what Kafka's reader does with it is in the comments.

The expectations were compared with Kafka 4.3.1's own readers (clients common/compress) on the same bytes.
"""

from __future__ import annotations

import struct
import zlib

import lz4.frame
import pytest
import snappy
import zstandard

from format.codecs import compress, lz4_frames
from format.errors import DecompressionFailed, LimitExceeded
from format.limits import MIB, Limits
from tests.format.payloads import (
    GZIP,
    LZ4,
    SNAPPY,
    XERIAL_HEADER,
    ZSTD,
    decompress,
    gzip_member,
    json_records,
    lz4_frame,
    snappy_chunk,
    snappy_size,
    snappy_stream,
    zstd_header,
    zstd_skippable,
    zstd_undeclared,
    zstd_zeros,
)

TEXT = json_records(50)
LONG_TEXT = json_records(6000)


def fails(codec: int, payload: bytes, match: str | None = None, magic: int = 2) -> None:
    with pytest.raises(DecompressionFailed, match=match):
        decompress(codec, payload, magic=magic)


# -- gzip ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", [TEXT, LONG_TEXT], ids=["small", "large"])
def test_gzip_members_in_a_row(text: bytes) -> None:
    member = gzip_member(text)
    assert decompress(GZIP, member + gzip_member(b"second"), magic=2) == text + b"second"
    assert decompress(GZIP, member + gzip_member(b"") + member, magic=2) == text + text
    assert decompress(GZIP, gzip_member(b""), magic=2) == b""


@pytest.mark.parametrize("after", [bytes(1), bytes(100), b"garbage" * 9, b"\x1f\x8b\x20" * 20, b"\x8b" * 30000])
def test_gzip_ignores_what_follows_and_is_no_member(after: bytes) -> None:
    """As Java's GZIPInputStream does."""
    for text in (TEXT, LONG_TEXT):
        assert decompress(GZIP, gzip_member(text) + after, magic=2) == text


def test_gzip_trailer_and_header() -> None:
    member = gzip_member(TEXT)
    fails(GZIP, member[:-8] + b"abcd" + member[-4:])
    fails(GZIP, member[:-4] + struct.pack("<I", len(TEXT) + 1))
    fails(GZIP, member[:-4] + struct.pack("<I", 2**32 - 1))
    fails(GZIP, member[:2] + b"\x07" + member[3:])
    with_name = member[:3] + b"\x08" + member[4:10] + b"name\x00" + member[10:]
    assert decompress(GZIP, with_name, magic=2) == TEXT
    header = member[:3] + b"\x02" + member[4:10]
    assert decompress(GZIP, header + struct.pack("<H", zlib.crc32(header) & 0xFFFF) + member[10:], magic=2) == TEXT
    fails(GZIP, header + struct.pack("<H", ~zlib.crc32(header) & 0xFFFF) + member[10:])


def test_gzip_a_member_that_needs_several_steps() -> None:
    content = LONG_TEXT * 40  # past the one call for small results, and past one step of input
    assert len(gzip_member(content, level=1)) > 64 * 1024
    assert decompress(GZIP, gzip_member(content, level=1) * 2, magic=2) == content * 2


# -- snappy ----------------------------------------------------------------------------------------------------

BLOCK = snappy.compress(TEXT)


def test_snappy_raw_and_chunked() -> None:
    assert decompress(SNAPPY, BLOCK, magic=2) == TEXT
    assert decompress(SNAPPY, snappy_stream(BLOCK, BLOCK), magic=2) == TEXT * 2
    assert decompress(SNAPPY, snappy_stream(), magic=2) == b""  # what Java writes for nothing
    assert decompress(SNAPPY, b"\x00", magic=2) == b""
    assert decompress(SNAPPY, snappy_stream(b"\x00", BLOCK), magic=2) == TEXT
    assert decompress(SNAPPY, snappy_stream(BLOCK) + snappy_stream(BLOCK), magic=2) == TEXT * 2


@pytest.mark.parametrize("versions", [(0, 0), (1, 1), (99, 99), (-1, 5)])
def test_snappy_version_numbers_do_not_count(versions: tuple[int, int]) -> None:
    """snappy-java reads only the magic bytes of the first header."""
    header = XERIAL_HEADER[:8] + struct.pack(">ii", *versions)
    assert decompress(SNAPPY, header + snappy_chunk(BLOCK), magic=2) == TEXT


@pytest.mark.parametrize("length", [-1, 0, 2**31 - 1, -(2**31), len(BLOCK) + 1])
def test_snappy_chunk_lengths_that_cannot_be(length: int) -> None:
    chunk = struct.pack(">i", length) + BLOCK
    fails(SNAPPY, XERIAL_HEADER + chunk, "chunk")
    fails(SNAPPY, snappy_stream(BLOCK) + chunk, "chunk")
    fails(SNAPPY, snappy_stream(BLOCK) + chunk[:4], "chunk")


def test_snappy_stream_headers_that_are_damaged() -> None:
    fails(SNAPPY, XERIAL_HEADER[:15])  # too short for a stream, so it is read as a raw block
    fails(SNAPPY, snappy_stream(BLOCK) + XERIAL_HEADER[:9], "header")
    fails(SNAPPY, snappy_stream(BLOCK) + b"\x82SNAXXX\x00" + XERIAL_HEADER[8:] + snappy_chunk(BLOCK), "header")
    fails(SNAPPY, b"\x83SNAPPY\x00" + snappy_stream(BLOCK)[8:])


def test_snappy_sizes_that_blocks_declare() -> None:
    body = BLOCK[len(snappy_size(len(TEXT))) :]
    for size in (len(TEXT) - 1, len(TEXT) + 1, 0, len(BLOCK) * 22):
        fails(SNAPPY, snappy_size(size) + body)
        fails(SNAPPY, snappy_stream(snappy_size(size) + body))
    fails(SNAPPY, snappy_size(100 * MIB) + body, "more than it can hold")
    fails(SNAPPY, snappy_stream(snappy_size(100 * MIB) + body), "more than it can hold")
    fails(SNAPPY, b"\xff" * 10)  # no end of the size
    for size in (257 * MIB, 2**31, 2**32 - 1):
        for payload in (snappy_size(size) + body, snappy_stream(snappy_size(size) + body), snappy_size(size)):
            with pytest.raises(LimitExceeded, match=str(size)):
                decompress(SNAPPY, payload, magic=2)


def test_snappy_the_most_that_a_block_can_hold_passes() -> None:
    zeros = bytes(60_000)
    assert len(snappy.compress(zeros)) * 22 > len(zeros) > len(snappy.compress(zeros)) * 20
    assert decompress(SNAPPY, snappy.compress(zeros), magic=2) == zeros


def test_snappy_large_blocks() -> None:
    content = LONG_TEXT * 30
    assert len(content) > 4 * MIB
    block = snappy.compress(content)
    assert decompress(SNAPPY, block, magic=2) == content
    assert decompress(SNAPPY, snappy_stream(BLOCK, block, BLOCK), magic=2) == TEXT + content + TEXT
    fails(SNAPPY, block[:-1])
    fails(SNAPPY, snappy_stream(block[:-1], BLOCK))


# -- lz4 -------------------------------------------------------------------------------------------------------


def header_checksum_position(frame: bytes) -> int:
    """After magic number, flags and block descriptor, and a content size where the flags have one."""
    return 14 if frame[4] & 0x08 else 6


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"block_checksum": True},
        {"content_checksum": True},
        {"store_size": True},
        {"store_size": True, "content_checksum": True, "block_checksum": True},
        {"block_linked": True},  # Kafka refuses it
        {"block_linked": True, "store_size": True, "block_size": lz4.frame.BLOCKSIZE_MAX4MB},
        {"block_size": lz4.frame.BLOCKSIZE_MAX256KB},
        {"compression_level": 12},
    ],
    ids=str,
)
@pytest.mark.parametrize("magic", [0, 1, 2])
def test_lz4_frames(options: dict[str, object], magic: int) -> None:
    for text in (b"", TEXT, LONG_TEXT):
        frame = lz4_frame(text, **options)
        assert decompress(LZ4, frame, magic=magic) == text
        assert decompress(LZ4, frame + frame, magic=magic) == text * 2  # Kafka stops after the first
        assert decompress(LZ4, frame + b"garbage", magic=magic) == text  # as Kafka does
        broken = bytearray(frame)
        broken[header_checksum_position(frame)] ^= 0x55
        if magic == 0:
            assert decompress(LZ4, bytes(broken), magic=0) == text
        else:
            fails(LZ4, bytes(broken), "headerChecksum", magic)


@pytest.mark.parametrize("linked", [True, False])
def test_lz4_a_frame_that_needs_several_steps(linked: bool) -> None:
    content = LONG_TEXT * 40
    assert len(content) > 8 * MIB
    frame = lz4_frame(content, block_linked=linked, block_size=lz4.frame.BLOCKSIZE_MAX1MB)
    assert decompress(LZ4, frame, magic=2) == content
    assert decompress(LZ4, frame + frame, magic=2) == content * 2
    fails(LZ4, frame[:-1], "end inside a frame")


def test_lz4_header_checksum_is_the_librarys() -> None:
    for option in ("block_checksum", "content_checksum", "block_linked", "store_size"):
        for text in (TEXT, LONG_TEXT):
            frame = lz4_frame(text, **{option: True})
            end = header_checksum_position(frame)
            assert lz4_frames._header_checksum(frame[4:end]) == frame[end]


def test_lz4_magic_0_is_written_with_kafkas_wrong_checksum() -> None:
    """0x1a is what brokers 0.8 wrote, 0x82 is right: both stand in the shipped logs."""
    assert compress(LZ4, TEXT, magic=0)[:7].hex() == "04224d1860401a"
    assert compress(LZ4, TEXT, magic=1)[:7].hex() == compress(LZ4, TEXT)[:7].hex() == "04224d18604082"
    fails(LZ4, compress(LZ4, TEXT, magic=0), "headerChecksum", magic=1)
    assert decompress(LZ4, compress(LZ4, TEXT), magic=0) == TEXT


def test_lz4_checksums_and_sizes_that_are_wrong() -> None:
    """Kafka checks those of blocks; it does not look at the content's."""
    of_blocks = bytearray(lz4_frame(TEXT, block_checksum=True))
    of_blocks[-5] ^= 1
    fails(LZ4, bytes(of_blocks), "blockChecksum")
    of_content = bytearray(lz4_frame(TEXT, content_checksum=True))
    of_content[-1] ^= 1
    fails(LZ4, bytes(of_content), "contentChecksum")
    for size in (len(TEXT) - 1, len(TEXT) + 1, 2**63, 1):
        sized = bytearray(lz4_frame(TEXT, store_size=True))
        sized[6:14] = struct.pack("<Q", size)
        fails(LZ4, bytes(sized), magic=0)  # where the header's checksum does not hide it


def test_lz4_headers_that_kafka_refuses() -> None:
    frame = compress(LZ4, TEXT)
    fails(LZ4, b"\x02\x21\x4c\x18" + frame[4:], "magic number")
    fails(LZ4, zstd_skippable(b"x") + frame, "magic number")
    fails(LZ4, frame[:4] + b"\x61" + frame[5:], "dictionary", magic=0)
    for flags, descriptor in ((0x20, 0x40), (0xA0, 0x40), (0x62, 0x40), (0x60, 0x30), (0x60, 0xC0), (0x60, 0x41)):
        fails(LZ4, frame[:4] + bytes([flags, descriptor]) + frame[6:], magic=0)


def test_lz4_stored_blocks_and_block_sizes() -> None:
    frame = compress(LZ4, b"abc")
    assert frame[7:11] == struct.pack("<I", 0x80000003)
    assert decompress(LZ4, frame, magic=2) == b"abc"
    fails(LZ4, frame[:7] + struct.pack("<I", 64 * 1024 + 1) + bytes(70_000))
    fails(LZ4, frame[:7] + struct.pack("<I", 2**31 - 1))
    fails(LZ4, frame[:7] + struct.pack("<I", 3) + b"\xff\xff\xff" + bytes(4))


# -- zstd ------------------------------------------------------------------------------------------------------

FRAMES = [compress(ZSTD, TEXT), zstd_undeclared(TEXT), zstandard.ZstdCompressor(write_checksum=True).compress(TEXT)]


def test_zstd_frames_in_a_row() -> None:
    skip = zstd_skippable(b"skip me")
    for frame in FRAMES:
        for other in FRAMES:
            assert decompress(ZSTD, frame + other, magic=2) == TEXT * 2
            assert decompress(ZSTD, skip + frame + skip + other + skip, magic=2) == TEXT * 2
        assert decompress(ZSTD, skip + frame, magic=2) == TEXT
        assert decompress(ZSTD, frame + zstd_undeclared(b"") + frame, magic=2) == TEXT * 2
    assert decompress(ZSTD, skip, magic=2) == b""
    assert decompress(ZSTD, zstd_undeclared(b""), magic=2) == decompress(ZSTD, compress(ZSTD, b""), magic=2) == b""
    large = zstd_undeclared(LONG_TEXT)
    assert decompress(ZSTD, large + compress(ZSTD, LONG_TEXT) + large, magic=2) == LONG_TEXT * 3


@pytest.mark.parametrize("after", [b"\x28", b"\x28\xb5\x2f", bytes(2), b"garbage garbage", zstd_skippable(b"x")[:-1]])
def test_zstd_fails_on_what_follows_and_is_no_frame(after: bytes) -> None:
    for frame in FRAMES:
        fails(ZSTD, frame + after)


def test_zstd_dictionary() -> None:
    samples = [json_records(30)[n * 7 :] for n in range(300)]
    dictionary = zstandard.train_dictionary(4096, samples)
    frame = zstandard.ZstdCompressor(dict_data=dictionary).compress(TEXT)
    fails(ZSTD, frame, f"dictionary {dictionary.dict_id()}")


def test_zstd_declared_sizes() -> None:
    single = zstandard.ZstdCompressor().compress(json_records(200))
    assert single[4] & 0x60 == 0x60  # single segment, a size of two bytes that is stored less 256
    for change in (-1, 1, 1000):
        (size,) = struct.unpack_from("<H", single, 5)
        fails(ZSTD, single[:5] + struct.pack("<H", size + change) + single[7:])
    blocks = zstd_zeros(1)[6:]
    assert decompress(ZSTD, zstd_header(MIB) + blocks, magic=2) == bytes(MIB)
    for size in (0, 1, MIB - 1, MIB + 1, 200 * MIB):
        fails(ZSTD, zstd_header(size) + blocks)
    for size in (256 * MIB + 1, 2**31, 2**60, 2**64 - 3):
        with pytest.raises(LimitExceeded, match=str(size)):
            decompress(ZSTD, zstd_header(size) + blocks, magic=2)


def test_zstd_windows() -> None:
    zeros = zstd_zeros(9, window_log=23)
    assert decompress(ZSTD, zeros, magic=2) == bytes(9 * MIB)
    with pytest.raises(LimitExceeded, match="window of 16777216 bytes"):
        decompress(ZSTD, zstd_zeros(9, window_log=24), magic=2)
    assert decompress(ZSTD, zstd_zeros(9, window_log=24), magic=2, limits=Limits(max_zstd_window_bytes=16 * MIB))
    for content in (TEXT, LONG_TEXT, LONG_TEXT * 10):  # Java's level 22 asks for 128 MiB for the smallest batch
        assert decompress(ZSTD, zstd_undeclared(content, window_log=27), magic=2) == content
    for window_log in (28, 31, 41):  # more than Kafka accepts
        with pytest.raises(LimitExceeded, match="window"):
            decompress(ZSTD, zstd_zeros(1, window_log=window_log), magic=2)
        with pytest.raises(LimitExceeded, match="window"):
            decompress(ZSTD, FRAMES[0] + zstd_zeros(1, window_log=window_log), magic=2)
    with pytest.raises(LimitExceeded, match="window"):
        decompress(ZSTD, zstd_undeclared(LONG_TEXT), magic=2, limits=Limits(max_zstd_window_bytes=100_000))
    with pytest.raises(LimitExceeded, match="window"):
        decompress(ZSTD, zstd_undeclared(TEXT), magic=2, limits=Limits(max_zstd_window_bytes=1000))


def test_zstd_blocks_that_cannot_be() -> None:
    reserved = zstd_header() + struct.pack("<I", 10 << 3 | 3 << 1 | 1)[:3] + bytes(10)
    fails(ZSTD, reserved, "block")
    too_long = zstd_header() + struct.pack("<I", (128 * 1024 + 1) << 3 | 1)[:3] + bytes(128 * 1024 + 1)
    fails(ZSTD, too_long, "block")
    stored = zstd_header() + struct.pack("<I", 5 << 3 | 1)[:3] + b"hello"
    assert decompress(ZSTD, stored, magic=2) == b"hello"
    fails(ZSTD, stored[:4] + b"\x08" + stored[5:])  # a reserved bit of the frame's header


def test_zstd_checksum() -> None:
    checked = zstandard.ZstdCompressor(write_checksum=True).compress(TEXT)
    for frames in (checked, checked + checked):
        fails(ZSTD, frames[:-1] + bytes([frames[-1] ^ 1]), "checksum")
