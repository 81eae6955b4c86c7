"""Kafka's codecs: ``decompress`` and ``compress``, with memory bounded whatever sizes the bytes declare.

A payload is the compressed records of a v2 batch, or the value of a v0 or v1 wrapper message. All codec modules have
the same functions: ``decompress(payload, magic, limits)``, ``compress(payload, level, magic)``, and, if it saves a
copy, ``decompress_briefly``, whose result is in memory that the thread uses again (``thread_room``). A module is
imported when its codec is first used, so a program that decompresses nothing loads no codec library.

Results are those of Kafka's reader (clients common/compress), except in these cases:

- A payload that ends inside another zstd frame, or inside the header of another gzip member or snappy chunk, is an
  error here; Kafka ignores the incomplete part.
- A wrong lz4 content checksum or content size is an error here; Kafka does not check them.
- A second lz4 frame is read here, and Kafka stops after the first. Linked lz4 blocks are read too, and Kafka rejects
  them.
- A zstd frame that uses a window over ``Limits.max_zstd_window_bytes`` raises LimitExceeded; Kafka accepts 128 MiB.

All functions may be called from several threads at once; the libraries release the GIL while they work.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from types import ModuleType

from format.errors import UnknownCodec
from format.layout import CODEC_NAMES
from format.limits import DEFAULT_LIMITS, Limits

_NONE, _GZIP, _SNAPPY, _LZ4, _ZSTD = range(len(CODEC_NAMES))

_Decompress = Callable[[bytes | memoryview, int, Limits], bytes]
_Compress = Callable[[bytes | memoryview, int | None, int], bytes]

#: Lowest, highest and default level by codec id (clients record/internal/CompressionType); snappy has no levels.
COMPRESSION_LEVELS: dict[int, tuple[int, int, int]] = {_GZIP: (1, 9, -1), _LZ4: (1, 17, 9), _ZSTD: (-131072, 22, 3)}


def decompress(codec: int, payload: bytes | memoryview, *, magic: int, limits: Limits = DEFAULT_LIMITS) -> bytes:
    """Decompress ``payload``; ``codec`` is an index in ``CODEC_NAMES``.

    ``magic`` is the magic of the batch or wrapper message: with magic 0 the header checksum of an lz4 frame is ignored,
    because Kafka's own writer computed it wrongly. Takes memory of at most ``limits.max_decompressed_bytes`` plus a few
    MiB.

    An empty payload is an error, except for zstd, where it is an empty stream, as for Kafka. A payload may consist of
    several members, frames or chunks. If it was cut exactly between two of them, it is not an error here: only the
    record count shows it.

    Raises DecompressionFailed for bytes that are damaged, cut off or not in the codec's format; LimitExceeded if the
    result, a declared size, the window or the number of parts is over a limit; UnknownCodec.
    """
    return _decompressor(codec)(payload, magic, limits)


def decompress_briefly(codec: int, payload: bytes | memoryview, limits: Limits) -> bytes | memoryview:
    """Decompress as ``decompress`` does for magic 2; the result is valid only until this thread's next call."""
    return _brief_decompressor(codec)(payload, 2, limits)


def compress(codec: int, payload: bytes | memoryview, *, level: int | None = None, magic: int = 2) -> bytes:
    """Compress ``payload`` with the framing of Kafka's Java clients.

    ``level`` is a level of the codec in Kafka (``COMPRESSION_LEVELS``), None for the default. With ``magic`` 0, lz4
    frames get the wrong header checksum that readers of that format expect.

    Raises UnknownCodec, and ValueError for a level that the codec does not have.
    """
    return compressor(codec, level)(payload, level, magic)


def compressor(codec: int, level: int | None = None) -> _Compress:
    """The function that ``compress`` calls with payload, level and magic, for loops; raises the same errors."""
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
    if codec == _NONE:
        return lambda payload, magic, limits: bytes(payload)
    function: _Decompress = _module_of(codec).decompress
    return function


@cache
def _brief_decompressor(codec: int) -> Callable[[bytes | memoryview, int, Limits], bytes | memoryview]:
    if codec in (_LZ4, _SNAPPY):
        function: Callable[[bytes | memoryview, int, Limits], bytes | memoryview]
        function = _module_of(codec).decompress_briefly
        return function
    return _decompressor(codec)


@cache
def _compressor(codec: int) -> _Compress:
    if codec == _NONE:
        return lambda payload, level, magic: bytes(payload)
    function: _Compress = _module_of(codec).compress
    return function


def _module_of(codec: int) -> ModuleType:
    """The module of a codec, imported when it is first used; raises UnknownCodec."""
    if codec == _ZSTD:
        from format.codecs import zstd_frames

        return zstd_frames
    if codec == _LZ4:
        from format.codecs import lz4_frames

        return lz4_frames
    if codec == _SNAPPY:
        from format.codecs import snappy_blocks

        return snappy_blocks
    if codec == _GZIP:
        from format.codecs import gzip_members

        return gzip_members
    raise UnknownCodec(f"compression type {codec} is unknown")
