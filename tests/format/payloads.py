"""Compressed payloads, well made and forged, written byte by byte or by the libraries themselves."""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import lz4.block
import lz4.frame
import snappy
import zstandard

from format import codecs
from format.errors import KafkaLogError
from format.limits import DEFAULT_LIMITS, Limits

GZIP, SNAPPY, LZ4, ZSTD = 1, 2, 3, 4
MIB = 1024 * 1024
XERIAL_HEADER = b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1)


def decompress(codec: int, payload: bytes | memoryview, *, magic: int, limits: Limits = DEFAULT_LIMITS) -> bytes:
    """What ``codecs.decompress`` returns or raises, once ``decompress_briefly`` has done the same."""
    outcomes: list[bytes | KafkaLogError] = []
    for function in (codecs.decompress_briefly, partial(codecs.decompress, magic=magic)):
        try:
            outcomes.append(bytes(function(codec, payload, limits=limits)))
        except KafkaLogError as error:
            outcomes.append(error)
    brief, whole = outcomes
    assert magic != 2 or repr(brief) == repr(whole)
    if isinstance(whole, KafkaLogError):
        raise whole
    return whole


def json_records(count: int) -> bytes:
    """Text as records hold it: alike, and never the same."""
    return b"".join(
        json.dumps({"id": n, "user": f"user-{n * 7919 % 1009}", "sum": n * 31 % 9973 / 100}).encode()
        for n in range(count)
    )


def compressed_payloads(log: Path) -> Iterator[tuple[int, int, int, bytes]]:
    """Position, codec, magic and payload of every compressed batch or message of a whole segment."""
    content = log.read_bytes()
    position = 0
    while position < len(content):
        (length,) = struct.unpack_from(">i", content, position + 8)
        batch = content[position : position + 12 + length]
        magic = batch[16]
        if magic == 2:
            codec, payload = batch[22] & 7, batch[61:]
        else:
            key_position = 26 if magic == 1 else 18
            (key_length,) = struct.unpack_from(">i", batch, key_position)
            value_position = key_position + 4 + max(key_length, 0)
            (value_length,) = struct.unpack_from(">i", batch, value_position)
            codec, payload = batch[17] & 7, batch[value_position + 4 : value_position + 4 + max(value_length, 0)]
        if codec:
            yield position, codec, magic, payload
        position += 12 + length


# -- gzip ----------------------------------------------------------------------------------------------------


def gzip_member(content: bytes, level: int = 6) -> bytes:
    member = zlib.compressobj(level, zlib.DEFLATED, 31)
    return member.compress(content) + member.flush()


def gzip_zeros(mib: int) -> bytes:
    """A member of so many MiB of zeros, whole and right, made from one MiB."""
    deflate = zlib.compressobj(6, zlib.DEFLATED, -15)
    unit = deflate.compress(bytes(MIB)) + deflate.flush(zlib.Z_FULL_FLUSH)
    checksum = 0
    for _ in range(mib):
        checksum = zlib.crc32(bytes(MIB), checksum)
    end = zlib.compressobj(6, zlib.DEFLATED, -15).flush()
    trailer = struct.pack("<II", checksum, mib * MIB & 0xFFFFFFFF)
    return b"\x1f\x8b\x08" + bytes(6) + b"\xff" + unit * mib + end + trailer


# -- snappy --------------------------------------------------------------------------------------------------


def snappy_chunk(block: bytes) -> bytes:
    return struct.pack(">i", len(block)) + block


def snappy_stream(*blocks: bytes) -> bytes:
    return XERIAL_HEADER + b"".join(map(snappy_chunk, blocks))


def snappy_size(size_bytes: int) -> bytes:
    """The size that starts a raw block, in groups of seven bits."""
    out = bytearray()
    while size_bytes > 0x7F:
        out.append(size_bytes & 0x7F | 0x80)
        size_bytes >>= 7
    return bytes(out) + bytes([size_bytes])


def snappy_zeros(mib: int) -> bytes:
    """A raw block: one literal zero, copies of 64, and a copy of the last 63."""
    copies = mib * MIB // 64 - 1
    return snappy_size(mib * MIB) + b"\x00\x00" + b"\xfe\x01\x00" * copies + bytes([62 << 2 | 2, 1, 0])


def snappy_stream_zeros(mib: int) -> bytes:
    return XERIAL_HEADER + snappy_chunk(snappy.compress(bytes(MIB))) * mib


# -- lz4 -----------------------------------------------------------------------------------------------------


def lz4_frame(content: bytes, **options: object) -> bytes:
    """A frame with independent blocks of 64 KiB unless another size is given."""
    chosen = {"block_size": lz4.frame.BLOCKSIZE_MAX64KB, "block_linked": False, "store_size": False, **options}
    return lz4.frame.compress(content, **chosen)


def lz4_zeros(mib: int, *, declared: bool = False) -> bytes:
    """A frame of 4 MiB blocks."""
    context = lz4.frame.create_compression_context()
    size = mib * MIB if declared else 0
    header = lz4.frame.compress_begin(
        context, source_size=size, block_size=lz4.frame.BLOCKSIZE_MAX4MB, block_linked=False
    )
    block = lz4.block.compress(bytes(4 * MIB), store_size=False)
    return header + (struct.pack("<I", len(block)) + block) * (mib // 4) + bytes(4)


# -- zstd ----------------------------------------------------------------------------------------------------


def zstd_undeclared(content: bytes, level: int = 3, **parameters: int) -> bytes:
    """A frame that does not tell its size, as Java's stream writes it."""
    if parameters:
        chosen = zstandard.ZstdCompressionParameters.from_level(level, **parameters)
        stream = zstandard.ZstdCompressor(compression_params=chosen).compressobj()
    else:
        stream = zstandard.ZstdCompressor(level=level).compressobj()
    return stream.compress(content) + stream.flush()


def zstd_header(declared_bytes: int | None = None, window_log: int = 21) -> bytes:
    """A frame header with an eight-byte size and no window, or with a window and no size."""
    magic = struct.pack("<I", 0xFD2FB528)
    if declared_bytes is not None:
        return magic + b"\xe0" + struct.pack("<Q", declared_bytes)
    return magic + bytes([0x00, (window_log - 10) << 3])


def zstd_zeros(mib: int, declared: bool = False, **header: int) -> bytes:
    """A frame of blocks that each repeat one byte 128 Ki times."""
    blocks = mib * 8
    repeat = struct.pack("<I", 128 * 1024 << 3 | 2)[:3] + b"\x00"
    last = struct.pack("<I", 128 * 1024 << 3 | 3)[:3] + b"\x00"
    return zstd_header(mib * MIB if declared else None, **header) + repeat * (blocks - 1) + last


def zstd_skippable(content: bytes) -> bytes:
    return struct.pack("<II", 0x184D2A53, len(content)) + content
