"""Kafka's default partitioner: the hash of a key, and records in a partition that it would not choose.

The source is ``Utils.murmur2`` and ``BuiltInPartitioner.partitionForKey`` in Kafka's clients.
"""

from __future__ import annotations

if not __file__.endswith(".so"):  # a compiled module takes these names from its .pxd file
    from format.kernel.header_layout import *
    from format.kernel.memory import *
    from format.kernel.numbers import *
    from format.kernel.tables import *

_MURMUR2_SEED = 0x9747B28C
_MURMUR2_MULTIPLIER = 0x5BD1E995
_MURMUR2_MASK = 0xFFFFFFFF


def find_misplaced_record(
    buffer: Bytes, records: Table, batches: Table, partition: int, partition_count: int, first: int
) -> int:
    """The first record row from ``first`` on with a key for which Kafka chooses another partition, else -1.

    Records without a key, and control records, may be in any partition.
    """
    source = bytes_at(buffer)
    for row in range(first, len(records)):
        if records[row, R_KEY_LENGTH] < 0:
            continue
        batch = records[row, R_BATCH]
        if batches[batch, B_MAGIC] == 2 and batches[batch, B_ATTRIBUTES] & CONTROL_BIT:
            continue
        digest = _murmur2(source, records[row, R_KEY_START], records[row, R_KEY_LENGTH])
        if (digest & MAX_I32) % partition_count != partition:
            return row
    return -1


def hash_of_key(buffer: Bytes, at: int, length: int) -> int:
    """The murmur2 hash of ``buffer[at:at + length]``, unsigned, with the seed of Kafka's clients."""
    return _murmur2(bytes_at(buffer), at, length)


def _murmur2(source: Bytes, at: int, length: int) -> int:
    """The hash that ``hash_of_key`` returns."""
    digest = _MURMUR2_SEED ^ (length & _MURMUR2_MASK)
    left = length
    while left >= 4:
        word = source[at + 3]
        word = word << 24 | source[at + 2] << 16 | source[at + 1] << 8 | source[at]
        word = word * _MURMUR2_MULTIPLIER & _MURMUR2_MASK
        word = (word ^ word >> 24) * _MURMUR2_MULTIPLIER & _MURMUR2_MASK
        digest = digest * _MURMUR2_MULTIPLIER & _MURMUR2_MASK ^ word
        at += 4
        left -= 4
    if left:
        if left == 3:
            digest ^= source[at + 2] << 16
        if left >= 2:
            digest ^= source[at + 1] << 8
        digest = (digest ^ source[at]) * _MURMUR2_MULTIPLIER & _MURMUR2_MASK
    digest = (digest ^ digest >> 13) * _MURMUR2_MULTIPLIER & _MURMUR2_MASK
    return digest ^ digest >> 15
