from __future__ import annotations

import struct

import numpy as np
import pytest
from crc32c import crc32c
from hypothesis import given
from hypothesis import strategies as st

from format.errors import InvalidSnapshot, LimitExceeded, UnreadableFile
from format.files import producer_snapshot
from format.limits import Limits
from tests.format.damage import outcomes, single_byte_changes, truncations
from tests.sources import BytesSource

ENTRY = ">qhiqiqiq"
SOUND = [(7, 0, 19, 79, 19, 1795250494397, -1, -1), (9, 3, -1, -1, 0, 1795250494397, 2, -1)]


def sealed(entries, version=1, count=None, crc=None, tail=b""):
    body = struct.pack(">i", len(entries) if count is None else count)
    body += b"".join(struct.pack(ENTRY, *entry) for entry in entries) + tail
    return struct.pack(">hI", version, crc32c(body) if crc is None else crc) + body


def rows(snapshot):
    return list(zip(*(column.tolist() for column in snapshot.columns), strict=True))


def read(content):
    return producer_snapshot.read(BytesSource(content))


def test_every_snapshot_of_a_broker_is_read_and_written_back(corpus):
    found = 0
    for path in corpus.files(".snapshot"):
        snapshot = producer_snapshot.read(path)
        assert snapshot.problems == ()
        assert (snapshot.version, snapshot.crc_valid, snapshot.trailing_bytes) == (1, True, 0)
        assert snapshot.stored_entry_count == snapshot.entry_count
        assert producer_snapshot.write(snapshot.columns) == path.read_bytes()
        found += 1
    assert found > 0


def test_entries_of_a_broker_are_what_kafka_dump_log_prints(data_dir):
    snapshot = producer_snapshot.read(data_dir / "kafka-4.3-single/node-1/clients-0/00000000000000000200.snapshot")
    assert rows(snapshot)[3] == (7, 0, 19, 79, 19, 1795250494397, -1, -1)
    assert snapshot.producer_ids.tolist() == [4, 5, 6, 7, 8]
    assert snapshot.last_offsets.tolist() == [19, 39, 59, 79, 99]
    assert all(column.dtype == np.dtype(np.int64) for column in snapshot.columns)


def field(bits):
    return st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


@given(
    st.lists(st.tuples(*(field(bits) for bits in (64, 16, 32, 64, 32, 64, 32, 64))), max_size=10),
)
def test_what_is_written_is_read_back(entries):
    content = sealed(entries)
    snapshot = read(content)
    assert rows(snapshot) == entries
    assert snapshot.crc_valid
    assert producer_snapshot.write(snapshot.columns) == content
    assert producer_snapshot.write(snapshot.columns) == content


def test_a_value_that_does_not_fit_is_refused():
    columns = list(read(sealed(SOUND)).columns)
    columns[1] = columns[1] + 2**15
    with pytest.raises(InvalidSnapshot, match="a producer epoch does not fit in 16 bits"):
        producer_snapshot.write(tuple(columns))


def test_a_wrong_crc_leaves_the_entries_readable():
    snapshot = read(sealed(SOUND, crc=1))
    assert (snapshot.crc_valid, rows(snapshot)) == (False, SOUND)
    assert [(each.position, each.length, each.code) for each in snapshot.problems] == [(2, 4, "snapshot-invalid")]


@pytest.mark.parametrize("count", [3, 2**31 - 1, -1, -(2**31)])
def test_a_forged_count_gives_the_entries_that_are_there(count):
    snapshot = read(sealed(SOUND, count=count))
    assert (rows(snapshot), snapshot.stored_entry_count, snapshot.crc_valid) == (SOUND, count, True)
    assert [(each.position, each.length) for each in snapshot.problems] == [(6, 4)]


def test_a_count_too_low_leaves_bytes_over():
    snapshot = read(sealed(SOUND, count=1))
    assert (rows(snapshot), snapshot.trailing_bytes) == (SOUND[:1], 46)
    assert [(each.position, each.length) for each in snapshot.problems] == [(56, 46)]


def test_zeros_are_damage_and_no_other_version():
    assert {each.code for each in read(bytes(102)).problems} == {"snapshot-invalid"}


def test_an_unknown_version_is_a_problem():
    snapshot = read(sealed(SOUND, version=2))
    assert [(each.position, each.length, each.code) for each in snapshot.problems] == [(0, 2, "version-unknown")]
    assert rows(snapshot) == SOUND  # the entries fill the file exactly, as those of version 1 do
    other = read(sealed(SOUND, version=2, tail=b"more"))
    assert (other.version, other.entry_count, other.crc_valid) == (2, 0, True)
    assert [each.code for each in other.problems] == ["version-unknown"]


@pytest.mark.parametrize("length", range(10))
def test_a_file_shorter_than_its_header_is_a_problem(length):
    snapshot = read(sealed([])[:length])
    assert (snapshot.version, snapshot.stored_entry_count, snapshot.entry_count) == (None, None, 0)
    assert not snapshot.crc_valid
    assert [(each.position, each.length) for each in snapshot.problems] == [(0, length)]
    assert snapshot.problems[0].message.startswith(f"the file has {length} byte{'' if length == 1 else 's'}, fewer")


def test_values_that_cannot_be_and_repeated_producers_are_problems():
    entries = [*SOUND, (7, 0, 20, 80, -1, 5, -1, -1), (-8, 0, 20, 80, 1, 5, -1, -1), (8, 0, -2, 80, 1, 5, -1, -1)]
    snapshot = read(sealed(entries))
    assert [(each.position, each.length, each.message) for each in snapshot.problems] == [
        (10 + 2 * 46, 3 * 46, "entries 2 to 4: a negative value in a field that cannot be negative"),
        (10 + 2 * 46, 46, "entry 2: the producer id of an earlier entry"),
    ]
    assert rows(snapshot) == entries


@pytest.mark.slow
def test_every_changed_byte_and_every_truncation_is_noticed(data_dir):
    content = (data_dir / "kafka-4.3-single/node-1/clients-0/00000000000000000200.snapshot").read_bytes()
    for damaged in (single_byte_changes, truncations):
        for changed, snapshot in outcomes(producer_snapshot.read, damaged(content)):
            assert isinstance(snapshot, producer_snapshot.ProducerSnapshot)
            assert snapshot.problems
            assert snapshot.entry_count <= len(changed) // 46


def test_limits_and_unreadable_files(tmp_path):
    with pytest.raises(LimitExceeded):
        producer_snapshot.read(BytesSource(bytes(100)), Limits(max_side_file_bytes=99))
    with pytest.raises(UnreadableFile):
        producer_snapshot.read(tmp_path / "00000000000000000000.snapshot")
