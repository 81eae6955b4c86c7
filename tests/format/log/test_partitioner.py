"""murmur2 and the default partitioner against Kafka's own results."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from format.log.record_table import murmur2, partition_for_key


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview, lambda raw: memoryview(b"ab" + raw + b"c")[2:-1]])
def test_any_buffer(kind: object) -> None:
    assert callable(kind)
    assert murmur2(kind(b"foobar")) == -790332482


#: clients UtilsTest.testMurmur2
KAFKAS_OWN = {
    b"21": -973932308,
    b"foobar": -790332482,
    b"a-little-bit-long-string": -985981536,
    b"a-little-bit-longer-string": -1486304829,
    b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
    b"abc": 479470107,
}


@pytest.mark.parametrize(("key", "digest"), KAFKAS_OWN.items())
def test_murmur2_of_kafkas_own_test(key: bytes, digest: int) -> None:
    assert murmur2(key) == digest


#: Key in hex, digest, partition of 12: from Kafka 4.3.1's Utils.murmur2 and BuiltInPartitioner.partitionForKey, for
#: tails of every length and bytes that Java holds as negative.
FROM_KAFKA = [
    ("", 275646681, 9),
    ("61", -1563381124, 4),
    ("ff", -311467685, 3),
    ("6162", 316155434, 2),
    ("80ff", -80095470, 2),
    ("616263", 479470107, 3),
    ("00000000", 850957120, 4),
    ("6162636465", 461995741, 1),
    ("fffefdfcfb", 524068735, 7),
    ("c3a9c3a9c3a9", -1888828503, 5),
    ("666f6f62617273", 858288115, 7),
]


@pytest.mark.parametrize(("key_hex", "digest", "partition"), FROM_KAFKA)
def test_murmur2_and_partition_from_kafka(key_hex: str, digest: int, partition: int) -> None:
    key = bytes.fromhex(key_hex)
    assert murmur2(key) == digest
    assert partition_for_key(key, 12) == partition


@given(key=st.binary(max_size=64), partition_count=st.integers(1, 1000))
def test_partition_for_key(key: bytes, partition_count: int) -> None:
    digest = murmur2(key)
    assert -(2**31) <= digest < 2**31
    assert partition_for_key(key, partition_count) == (digest & 0x7FFFFFFF) % partition_count < partition_count


def test_no_partitions() -> None:
    for partition_count in (0, -1):
        with pytest.raises(ValueError, match=str(partition_count)):
            partition_for_key(b"key", partition_count)
