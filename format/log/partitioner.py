"""Kafka's default partitioner: the hash of a key, and the partition that producers choose for it."""

from __future__ import annotations

from format.kernel.partitioner import hash_of_key


def murmur2(key: bytes | bytearray | memoryview) -> int:
    """The 32-bit murmur2 hash of a key, signed as in Java (clients common/utils/Utils.murmur2)."""
    digest = hash_of_key(key, 0, len(key))
    return digest - (1 << 32) if digest >> 31 else digest


def partition_for_key(key: bytes | bytearray | memoryview, partition_count: int) -> int:
    """The partition that the default partitioner chooses for a key (clients BuiltInPartitioner.partitionForKey).

    A record without a key may go to any partition. Raises ValueError for a topic without partitions.
    """
    if partition_count < 1:
        raise ValueError(f"a topic has at least one partition, not {partition_count}")
    return (murmur2(key) & 0x7FFFFFFF) % partition_count
