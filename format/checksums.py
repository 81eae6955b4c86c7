"""Checksums and the partitioner's hash: CRC-32C (v2 batches, producer snapshots), CRC-32 (v0, v1 messages), murmur2.

Buffers are read in place; the libraries release the GIL for large ones.
"""

from __future__ import annotations

import struct
import zlib

import crc32c

_MURMUR2_SEED = 0x9747B28C
_MURMUR2_MULTIPLIER = 0x5BD1E995
_U32 = 0xFFFFFFFF


def crc32c_of(buffer: bytes | bytearray | memoryview) -> int:
    """The CRC-32C (Castagnoli) of the bytes, unsigned."""
    return crc32c.crc32c(buffer)


def crc32_of(buffer: bytes | bytearray | memoryview) -> int:
    """The CRC-32 (of zip and gzip) of the bytes, unsigned."""
    return zlib.crc32(buffer)


def murmur2(key: bytes | bytearray | memoryview) -> int:
    """The 32-bit murmur2 hash that Kafka's producers give a key, signed as Java's int (clients common/utils/Utils)."""
    words_end = len(key) & ~3
    digest = _MURMUR2_SEED ^ len(key)
    for (word,) in struct.iter_unpack("<I", key[:words_end]):
        word = word * _MURMUR2_MULTIPLIER & _U32
        word = (word ^ word >> 24) * _MURMUR2_MULTIPLIER & _U32
        digest = digest * _MURMUR2_MULTIPLIER & _U32 ^ word
    if len(key) & 3:
        digest ^= int.from_bytes(key[words_end:], "little")
        digest = digest * _MURMUR2_MULTIPLIER & _U32
    digest = (digest ^ digest >> 13) * _MURMUR2_MULTIPLIER & _U32
    digest ^= digest >> 15
    return digest - (1 << 32) if digest >> 31 else digest


def partition_for_key(key: bytes | bytearray | memoryview, partition_count: int) -> int:
    """The partition that Kafka's default partitioner picks for a key (clients BuiltInPartitioner.partitionForKey).

    A record without a key goes anywhere. Raises ValueError for a topic without partitions.
    """
    if partition_count < 1:
        raise ValueError(f"a topic has at least one partition, not {partition_count}")
    return (murmur2(key) & 0x7FFFFFFF) % partition_count
