"""Kafka's codecs: ``decompress`` and ``compress``, with memory bounded whatever the bytes declare.

A payload is what a codec made of a v2 batch's records, or the value of a v0 or v1 wrapper message. Every codec
module has the same shape: ``decompress(payload, magic, limits)`` and ``compress(payload, level, magic)``, and where it
saves a copy ``decompress_briefly``, whose result lies in memory that the thread uses again (``thread_room``); it is
imported when its codec is first met, so that a program that decompresses nothing loads no codec library.

What Kafka's own reader (clients common/compress) makes of a payload is what comes out here too, but for these cases:

- A payload that ends inside another zstd frame, or inside the header of another gzip member or snappy chunk, is an
  error here; Kafka takes what came before it for the whole.
- An lz4 content checksum or content size that is wrong is an error here; Kafka does not look at them.
- A second lz4 frame is read here, and Kafka stops after the first; so are linked lz4 blocks, which Kafka refuses.
- A zstd frame that uses a window over ``Limits.max_zstd_window_bytes`` is a LimitExceeded; Kafka takes up to 128 MiB.

All functions may be called from several threads at once, and the libraries release the GIL while they work.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from format.errors import UnknownCodec
from format.layout import CODEC_NAMES
from format.limits import DEFAULT_LIMITS, Limits

_NONE, _GZIP, _SNAPPY, _LZ4, _ZSTD = range(len(CODEC_NAMES))

_Decompress = Callable[[bytes | memoryview, int, Limits], bytes]
_Compress = Callable[[bytes | memoryview, int | None, int], bytes]

#: Codec id -> lowest, highest and default level (clients record/internal/CompressionType); snappy has none.
COMPRESSION_LEVELS: dict[int, tuple[int, int, int]] = {
    _GZIP: (1, 9, -1),
    _LZ4: (1, 17, 9),
    _ZSTD: (-131072, 22, 3),
}


def decompress(codec: int, payload: bytes | memoryview, *, magic: int, limits: Limits = DEFAULT_LIMITS) -> bytes:
    """The bytes that ``codec`` (an index into ``CODEC_NAMES``) made ``payload`` from.

    ``magic`` is that of the batch or wrapper message: with magic 0 the header checksum of an lz4 frame does not
    count, because Kafka's own writer got it wrong. Takes at most ``limits.max_decompressed_bytes`` plus a few MiB.

    An empty payload is an error, except for zstd, where it is an empty stream, as it is for Kafka. Where a payload
    may hold several members, frames or chunks, one that was cut exactly between two of them looks whole: only the
    record count can tell.

    Raises DecompressionFailed for bytes that are damaged, cut short or no product of the codec; LimitExceeded where
    the result, a size that the bytes declare, the window or the number of parts passes a limit; UnknownCodec.
    """
    return _decompressor(codec)(payload, magic, limits)


def decompress_briefly(codec: int, payload: bytes | memoryview, limits: Limits) -> bytes | memoryview:
    """As ``decompress`` for magic 2, but the result is valid only until this thread's next call."""
    return _brief_decompressor(codec)(payload, 2, limits)


def compress(codec: int, payload: bytes | memoryview, *, level: int | None = None, magic: int = 2) -> bytes:
    """``payload`` compressed in the framing of Kafka's Java clients, for ``decompress`` and for Kafka to read.

    ``level`` is one of Kafka's for the codec (``COMPRESSION_LEVELS``), None for Kafka's default. ``magic`` 0 gives
    lz4 frames the wrong header checksum that readers of that time expect.

    Raises UnknownCodec, and ValueError for a level that the codec does not have.
    """
    return compressor(codec, level)(payload, level, magic)


def compressor(codec: int, level: int | None = None) -> Callable[[bytes | memoryview, int | None, int], bytes]:
    """What ``compress`` calls with payload, level and magic, for loops over many payloads; raises what it raises."""
    function = _compressor(codec)
    if level is not None:
        if codec not in COMPRESSION_LEVELS:
            raise ValueError(f"{CODEC_NAMES[codec]} has no compression levels")
        lowest, highest, default = COMPRESSION_LEVELS[codec]
        if not (lowest <= level <= highest or level == default):
            raise ValueError(f"{CODEC_NAMES[codec]} has levels {lowest} to {highest}, not {level}")
    return function


@cache
def _decompressor(codec: int) -> _Decompress:
    if codec == _ZSTD:
        from format.codecs import zstd_frames

        return zstd_frames.decompress
    if codec == _LZ4:
        from format.codecs import lz4_frames

        return lz4_frames.decompress
    if codec == _SNAPPY:
        from format.codecs import snappy_blocks

        return snappy_blocks.decompress
    if codec == _GZIP:
        from format.codecs import gzip_members

        return gzip_members.decompress
    if codec == _NONE:
        return lambda payload, magic, limits: bytes(payload)
    raise UnknownCodec(f"compression type {codec} is unknown")


@cache
def _brief_decompressor(codec: int) -> Callable[[bytes | memoryview, int, Limits], bytes | memoryview]:
    if codec == _LZ4:
        from format.codecs import lz4_frames

        return lz4_frames.decompress_briefly
    if codec == _SNAPPY:
        from format.codecs import snappy_blocks

        return snappy_blocks.decompress_briefly
    return _decompressor(codec)


@cache
def _compressor(codec: int) -> _Compress:
    if codec == _ZSTD:
        from format.codecs import zstd_frames

        return zstd_frames.compress
    if codec == _LZ4:
        from format.codecs import lz4_frames

        return lz4_frames.compress
    if codec == _SNAPPY:
        from format.codecs import snappy_blocks

        return snappy_blocks.compress
    if codec == _GZIP:
        from format.codecs import gzip_members

        return gzip_members.compress
    if codec == _NONE:
        return lambda payload, level, magic: bytes(payload)
    raise UnknownCodec(f"compression type {codec} is unknown")
