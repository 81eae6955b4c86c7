from __future__ import annotations

import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from format.errors import InvalidIndex, LimitExceeded, UnreadableFile
from format.files import time_index
from format.io.source import FileSource
from format.limits import Limits
from tests.format.damage import outcomes, single_byte_changes, truncations
from tests.sources import BytesSource

#: What kafka-dump-log of 4.3.1 prints for the first time index of orders-2: timestamp, offset.
EXPECTED_ORDERS_2 = [
    (1793522590646, 127),
    (1793608988983, 291),
    (1793695389642, 442),
    (1793781782284, 520),
    (1793781790898, 592),
    (1793868194672, 733),
    (1793954588432, 876),
    (1794040986545, 954),
]


def base_offset_of(path):
    return int(path.name[:20])


def encoded(*entries):
    return b"".join(struct.pack(">qi", *entry) for entry in entries)


def pairs(index):
    return list(zip(index.timestamps.tolist(), index.offsets.tolist(), strict=True))


def naive_floor(index, target_timestamp):
    found = [number for number, timestamp in enumerate(index.timestamps.tolist()) if timestamp <= target_timestamp]
    return (found[-1], *pairs(index)[found[-1]]) if found else None


# -- what brokers wrote --------------------------------------------------------------------------------------


def test_every_index_of_a_broker_is_read_whole_and_written_back(corpus):
    found = 0
    for path in corpus.files(".timeindex"):
        index = time_index.read(path, base_offset_of(path))
        content = path.read_bytes()
        assert index.problems == ()
        assert time_index.write(index.columns) + bytes(index.padding_bytes) == content
        assert len(content) == index.entry_count * 12 + index.padding_bytes
        # A broker that was killed left its last timestamp 0 behind, which its next start notices.
        assert index.passes_sanity_check == (index.padding_bytes == 0 or index.entry_count == 0)
        found += index.entry_count
    assert found > 0


def test_entries_of_a_broker_are_what_kafka_dump_log_prints(data_dir):
    path = data_dir / "kafka-4.3-single/node-1/orders-2/00000000000000000000.timeindex"
    assert pairs(time_index.read(path, 0)) == EXPECTED_ORDERS_2
    assert pairs(time_index.read(str(path), 5_000_000_000))[0] == (1793522590646, 5_000_000_127)
    assert time_index.read(path, 0).relative_offsets.dtype == np.dtype(np.int64)


def test_floor_entry_of_a_broker_s_index_is_that_of_a_naive_scan(corpus):
    for path in corpus.files(".timeindex"):
        base_offset = base_offset_of(path)
        index = time_index.read(path, base_offset)
        timestamps = index.timestamps.tolist()
        with FileSource(path) as source:
            assert time_index.floor_entry(source, base_offset, None) == naive_floor(index, 2**63 - 1)
            for target in {-1, 0, 2**62, *timestamps, *(timestamp - 1 for timestamp in timestamps)}:
                assert time_index.floor_entry(source, base_offset, target) == naive_floor(index, target)


# -- made ones -----------------------------------------------------------------------------------------------


@given(
    st.lists(st.tuples(st.integers(1, 500), st.integers(0, 5000)), max_size=1200),
    st.booleans(),
    st.sampled_from([0, 1, 2, 7, 340, 341, 342, 3000]),
    st.data(),
)
def test_floor_entry_is_that_of_a_naive_scan(steps, begins_with_zeros, padding, data):
    rising = [tuple(row) for row in np.cumsum(np.array(steps), axis=0).tolist()] if steps else []
    # Timestamp 0 at the base offset is an entry of zeros. Before padding alone it cannot be distinguished from it.
    first = [(0, 0)] if begins_with_zeros and (rising or padding == 0) else []
    content = encoded(*first, *rising) + bytes(padding * 12)
    index = time_index.read(BytesSource(content), 1000)
    if not (padding == 1 and not rising and not first):
        assert index.padding_bytes == padding * 12
        assert pairs(index) == [(timestamp, 1000 + offset) for timestamp, offset in [*first, *rising]]
    assert index.problems == ()
    target = data.draw(st.sampled_from([0, *index.timestamps.tolist()])) + data.draw(st.sampled_from([-1, 0, 1, 10**6]))
    found = time_index.floor_entry(BytesSource(content), 1000, target)
    assert found == naive_floor(index, target)
    if found is not None:
        assert (found.entry_number, found.timestamp, found.offset) == found
    assert time_index.floor_entry(BytesSource(content), 1000, None) == naive_floor(index, 2**63 - 1)


@given(st.lists(st.tuples(st.integers(1, 2**63 - 1), st.integers(0, 2**31 - 1)), max_size=20), st.integers(0, 2**62))
def test_what_is_written_is_read_back(entries, base_offset):
    content = encoded(*entries)
    index = time_index.read(BytesSource(content), base_offset)
    assert list(zip(index.timestamps.tolist(), index.relative_offsets.tolist(), strict=True)) == entries
    assert time_index.write(index.columns) == content
    assert time_index.write((index.timestamps, index.relative_offsets)) == content


def test_a_relative_offset_that_does_not_fit_is_refused():
    with pytest.raises(InvalidIndex):
        time_index.write(([5], [2**31]))
    with pytest.raises(InvalidIndex):
        time_index.write(([5], [-(2**31) - 1]))


# -- zeros and padding ---------------------------------------------------------------------------------------


def test_zeros_of_an_active_segment_are_padding(data_dir):
    cut = (data_dir / "kafka-4.3/node-1/payments-0/00000000000000000000.timeindex").read_bytes()[:4092]
    index = time_index.read(BytesSource(cut), 0)
    assert pairs(index)[-1] == (1795249375556, 477)
    assert (index.entry_count, index.padding_bytes, index.problems) == (5, 4092 - 60, ())
    assert time_index.write(index.columns) == cut[:60]
    assert not index.passes_sanity_check


def test_zeros_are_an_entry_only_as_the_first_one():
    alone = time_index.read(BytesSource(bytes(12)), 9)
    assert (pairs(alone), alone.padding_bytes, alone.problems) == ([(0, 9)], 0, ())
    assert time_index.floor_entry(BytesSource(bytes(12)), 9, 5) == (0, 0, 9)
    assert time_index.floor_entry(BytesSource(bytes(12)), 9, -1) is None
    padding = time_index.read(BytesSource(bytes(24)), 9)
    assert (padding.entry_count, padding.padding_bytes, padding.passes_sanity_check) == (0, 24, True)
    assert time_index.floor_entry(BytesSource(bytes(24)), 9, None) is None
    before = encoded((0, 0), (7, 3)) + bytes(24)
    assert (pairs(time_index.read(BytesSource(before), 9)), time_index.read(BytesSource(before), 9).problems) == (
        [(0, 9), (7, 12)],
        (),
    )
    assert time_index.floor_entry(BytesSource(before), 9, 6) == (0, 0, 9)
    empty = time_index.read(BytesSource(b""), 9)  # what a segment of v0 messages has
    assert (empty.entry_count, empty.passes_sanity_check) == (0, True)


def test_a_look_up_in_ten_mebibytes_reads_a_few_kibibytes(tmp_path):
    path = tmp_path / "00000000000000000000.timeindex"
    numbers = np.arange(1, 200_001)
    with path.open("wb") as file:
        file.write(time_index.write((numbers * 1000, numbers)))
        file.truncate(10 * 1024 * 1024 // 12 * 12)
    for target in (0, 1000, 99_999_999, 2**50):
        with FileSource(path) as source:
            number = min(target // 1000, 200_000)
            expected = None if number == 0 else (number - 1, number * 1000, number)
            assert time_index.floor_entry(source, 0, target) == expected
            assert source.bytes_read <= 8192
    with FileSource(path) as source:
        assert time_index.floor_entry(source, 0, None) == (199_999, 200_000_000, 200_000)
        assert source.bytes_read <= 8192


@pytest.mark.slow
@pytest.mark.parametrize("entry_count", [340, 341, 342, 511, 512, 513, 1025, 2049])
@pytest.mark.parametrize("padding", [0, 1, 700])
def test_floor_entry_finds_every_entry_on_both_sides_of_every_probe(entry_count, padding):
    numbers = np.arange(1, entry_count + 1)
    content = time_index.write((numbers * 2, numbers)) + bytes(padding * 12)
    for target in range(2 * entry_count + 4):
        number = min(target // 2, entry_count) - 1
        expected = None if number < 0 else (number, 2 * number + 2, number + 1)
        assert time_index.floor_entry(BytesSource(content), 0, target) == expected


# -- damage --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("entries", "first", "count", "message"),
    [
        ([(5, 1), (0, 0), (0, 0), (9, 2)], 1, 2, "entries 1 to 2: zeros before the last entry"),
        ([(5, 1), (-1, 2), (9, 3)], 1, 1, "entry 1: a negative timestamp or offset"),
        ([(5, 1), (6, -2), (9, 3)], 1, 1, "entry 1: a negative timestamp or offset"),
        ([(5, 1), (5, 2), (9, 3)], 1, 1, "entry 1: the timestamp is not above the timestamp of the previous entry"),
        ([(5, 2), (6, 1), (9, 3)], 1, 1, "entry 1: the offset is below the offset of the previous entry"),
    ],
)
def test_damage_is_a_problem_and_hides_nothing(entries, first, count, message):
    content = encoded(*entries)
    index = time_index.read(BytesSource(content), 0)
    assert [(each.position, each.length, each.message, each.code) for each in index.problems] == [
        (first * 12, count * 12, message, "index-invalid")
    ]
    assert pairs(index) == entries
    assert time_index.write(index.columns) == content


def test_the_same_offset_under_a_larger_timestamp_is_sound():
    assert time_index.read(BytesSource(encoded((5, 1), (6, 1))), 0).problems == ()


def test_a_size_that_is_no_multiple_is_a_problem():
    index = time_index.read(BytesSource(encoded((5, 1)) + bytes(11)), 0)
    assert (index.entry_count, index.trailing_bytes, index.passes_sanity_check) == (1, 11, False)
    assert [(each.position, each.length) for each in index.problems] == [(12, 11)]


def test_a_broker_notices_at_start_only_what_the_ends_show():
    def passes(*entries):
        return time_index.read(BytesSource(encoded(*entries)), 0).passes_sanity_check

    assert passes((5, 1), (4, 2), (9, 3))
    assert not passes((5, 1), (9, 2), (4, 3))
    assert not passes((5, 1), (9, -2))


def test_offsets_near_the_largest_do_not_wrap():
    content = encoded((5, 1), (6, 9))
    index = time_index.read(BytesSource(content), 2**63 - 5)
    assert index.offsets.tolist() == [2**63 - 4, 2**63 - 1]
    assert [each.position for each in index.problems] == [12]
    for impossible in (-1, 2**63):
        with pytest.raises(InvalidIndex):
            time_index.read(BytesSource(content), impossible)
    with pytest.raises(InvalidIndex):
        time_index.floor_entry(BytesSource(encoded((-7, 1), (6, 9))), 0, 3)


@pytest.mark.slow
def test_every_changed_byte_and_every_truncation_is_survived(data_dir):
    content = (data_dir / "kafka-4.3-single/node-1/orders-2/00000000000000000000.timeindex").read_bytes() + bytes(12)
    for damaged in (single_byte_changes, truncations):
        for changed, index in outcomes(lambda source: time_index.read(source, 0), damaged(content)):
            assert isinstance(index, time_index.TimeIndex)
            assert index.entry_count * 12 + index.padding_bytes + index.trailing_bytes == len(changed)
            for target in (0, 1793781782284, 2**62):
                for _ in outcomes(lambda source, at=target: time_index.floor_entry(source, 0, at), iter([changed])):
                    pass


def test_limits_and_unreadable_files(tmp_path):
    with pytest.raises(LimitExceeded):
        time_index.read(BytesSource(bytes(1200)), 0, Limits(max_side_file_bytes=1199))
    with pytest.raises(UnreadableFile):
        time_index.read(tmp_path, 0)
