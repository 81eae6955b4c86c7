from __future__ import annotations

import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from format.errors import InvalidIndex, LimitExceeded, UnreadableFile
from format.files import offset_index
from format.files.index_file import MAX_PROBLEMS
from format.io.source import FileSource
from format.limits import Limits
from tests.format.damage import outcomes, single_byte_changes, truncations
from tests.sources import BytesSource

INT32_MAX = 2**31 - 1

#: What kafka-dump-log of 4.3.1 prints for the first index of orders-2: offset, position.
EXPECTED_ORDERS_2 = [
    (127, 16161),
    (291, 26574),
    (442, 32744),
    (520, 41854),
    (592, 48328),
    (733, 54443),
    (876, 59505),
    (954, 64643),
    (1031, 80789),
]


def base_offset_of(path):
    return int(path.name[:20])


def encoded(*entries):
    return b"".join(struct.pack(">ii", *entry) for entry in entries)


def naive_floor(index, target_offset):
    found = [number for number, offset in enumerate(index.offsets.tolist()) if offset <= target_offset]
    if not found:
        return None
    return found[-1], int(index.offsets[found[-1]]), int(index.positions[found[-1]])


#: Rising relative offsets and positions, as a broker appends them, and padding after them.
healthy = st.tuples(
    st.lists(st.tuples(st.integers(1, 500), st.integers(1, 5000)), max_size=1500),
    st.sampled_from([0, 1, 2, 7, 511, 512, 513, 3000]),
    st.integers(0, 2**40),
)


def entries_of(steps):
    return [] if not steps else [tuple(row) for row in np.cumsum(np.array(steps), axis=0).tolist()]


# -- what brokers wrote --------------------------------------------------------------------------------------


def test_every_index_of_a_broker_is_read_whole_and_written_back(corpus):
    found = 0
    for path in corpus.files(".index"):
        index = offset_index.read(path, base_offset_of(path))
        content = path.read_bytes()
        assert index.problems == ()
        assert index.passes_sanity_check
        assert index.trailing_bytes == 0
        assert offset_index.write(index.columns) + bytes(index.padding_bytes) == content
        assert len(content) == index.entry_count * 8 + index.padding_bytes
        assert (index.offsets == index.relative_offsets + base_offset_of(path)).all()
        found += index.entry_count
    assert found > 0


def test_entries_of_a_broker_are_what_kafka_dump_log_prints(data_dir):
    path = data_dir / "kafka-4.3-single/node-1/orders-2/00000000000000000000.index"
    index = offset_index.read(path, 0)
    assert [index.relative_offsets.dtype, index.positions.dtype, index.offsets.dtype] == [np.dtype(np.int64)] * 3
    assert list(zip(index.offsets.tolist(), index.positions.tolist(), strict=True)) == EXPECTED_ORDERS_2
    shifted = offset_index.read(path, 5_000_000_000)
    assert shifted.offsets.tolist() == [offset + 5_000_000_000 for offset, _ in EXPECTED_ORDERS_2]


def test_floor_entry_of_a_broker_s_index_is_that_of_a_naive_scan(corpus):
    for path in corpus.files(".index"):
        base_offset = base_offset_of(path)
        index = offset_index.read(path, base_offset)
        offsets = index.offsets.tolist()
        with FileSource(path) as source:
            last = offset_index.floor_entry(source, base_offset, None)
            assert last == (naive_floor(index, 2**62) if offsets else None)
            for target in {base_offset - 1, base_offset, 2**62, *offsets, *(offset - 1 for offset in offsets)}:
                assert offset_index.floor_entry(source, base_offset, target) == naive_floor(index, target)


# -- made ones -----------------------------------------------------------------------------------------------


@given(healthy, st.data())
def test_floor_entry_is_that_of_a_naive_scan(case, data):
    steps, padding, base_offset = case
    content = encoded(*entries_of(steps)) + bytes(padding * 8)
    index = offset_index.read(BytesSource(content), base_offset)
    assert index.problems == ()
    assert index.padding_bytes == padding * 8
    some = data.draw(st.sampled_from([0, *index.relative_offsets.tolist()]))
    target = base_offset + some + data.draw(st.sampled_from([-1, 0, 1, 10**6]))
    source = BytesSource(content)
    found = offset_index.floor_entry(source, base_offset, target)
    assert found == naive_floor(index, target)
    if found is not None:
        assert (found.entry_number, found.offset, found.position) == found
    assert offset_index.floor_entry(BytesSource(content), base_offset, None) == naive_floor(index, 2**62)


@given(st.lists(st.tuples(st.integers(0, INT32_MAX), st.integers(1, INT32_MAX)), max_size=20), st.integers(0, 2**62))
def test_what_is_written_is_read_back(entries, base_offset):
    content = encoded(*entries)
    index = offset_index.read(BytesSource(content), base_offset)
    assert list(zip(index.relative_offsets.tolist(), index.positions.tolist(), strict=True)) == entries
    assert offset_index.write(index.columns) == content
    assert offset_index.write((index.relative_offsets, index.positions)) == content


def test_columns_that_do_not_fit_are_refused():
    with pytest.raises(InvalidIndex, match="a position does not fit in 32 bits"):
        offset_index.write(([1], [2**31]))
    with pytest.raises(InvalidIndex, match="a relative offset does not fit"):
        offset_index.write(([2**31], [1]))
    assert offset_index.write(([], [])) == b""


# -- a preallocated tail -------------------------------------------------------------------------------------


def test_zeros_of_an_active_segment_are_padding(data_dir):
    content = (data_dir / "kafka-4.3/node-1/payments-0/00000000000000000000.index").read_bytes()
    cut = content[:4096]
    index = offset_index.read(BytesSource(cut), 0)
    assert (index.entry_count, index.padding_bytes, index.problems) == (5, 4096 - 40, ())
    assert offset_index.write(index.columns) == cut[:40]
    empty = offset_index.read(BytesSource(bytes(4096)), 7)
    assert (empty.entry_count, empty.padding_bytes, empty.problems) == (0, 4096, ())
    assert offset_index.floor_entry(BytesSource(bytes(4096)), 7, 100) is None
    assert offset_index.read(BytesSource(b""), 7).entry_count == 0
    assert offset_index.floor_entry(BytesSource(b""), 7, None) is None


@pytest.mark.parametrize("entry_count", [0, 1, 1000, 300_000])
def test_a_look_up_in_ten_mebibytes_reads_a_few_kibibytes(tmp_path, entry_count):
    path = tmp_path / "00000000000000000000.index"
    numbers = np.arange(1, entry_count + 1)
    with path.open("wb") as file:
        file.write(offset_index.write((numbers * 10, numbers * 100)))
        file.truncate(10 * 1024 * 1024)
    for target in (0, 10, 4_999, 1_500_000, 2**40):
        with FileSource(path) as source:
            found = offset_index.floor_entry(source, 0, target)
            number = min(target // 10, entry_count)
            assert found == (None if number == 0 else (number - 1, number * 10, number * 100))
            assert source.bytes_read <= 8192
    with FileSource(path) as source:
        index = offset_index.read(source, 0)
    assert (index.entry_count, index.problems) == (entry_count, ())
    assert index.padding_bytes == 10 * 1024 * 1024 - entry_count * 8


@pytest.mark.slow
@pytest.mark.parametrize("entry_count", [340, 341, 342, 511, 512, 513, 1025, 2049])
@pytest.mark.parametrize("padding", [0, 1, 700])
def test_floor_entry_finds_every_entry_on_both_sides_of_every_probe(entry_count, padding):
    numbers = np.arange(1, entry_count + 1)
    content = offset_index.write((numbers * 2, numbers)) + bytes(padding * 8)
    for target in range(2 * entry_count + 4):
        number = min(target // 2, entry_count) - 1
        expected = None if number < 0 else (number, 2 * number + 2, number + 1)
        assert offset_index.floor_entry(BytesSource(content), 0, target) == expected


# -- damage --------------------------------------------------------------------------------------------------

SOUND = [(10, 100), (20, 200), (30, 300), (40, 400)]


@pytest.mark.parametrize(
    ("entries", "first", "count", "message"),
    [
        ([(10, 100), (0, 0), (0, 0), (40, 400)], 1, 2, "entries 1 to 2: zeros before the last entry"),
        ([(0, 0), (20, 200)], 0, 1, "entry 0: zeros before the last entry"),
        ([(10, 100), (-20, 200), (30, 300)], 1, 1, "entry 1: a negative offset or position"),
        ([(10, 100), (20, -200), (30, 300)], 1, 1, "entry 1: a negative offset or position"),
        ([(10, 100), (10, 200), (30, 300)], 1, 1, "entry 1: the offset is not above the offset of the previous entry"),
        (
            [(10, 100), (20, 100), (30, 300)],
            1,
            1,
            "entry 1: the position is not above the position of the previous entry",
        ),
        (
            [(10, 100), (5000, 200), (30, 300)],
            2,
            1,
            "entry 2: the offset is not above the offset of the previous entry",
        ),
        ([(10, 100), (0, 0), (10, 300)], 2, 1, "entry 2: the offset is not above the offset of the previous entry"),
    ],
)
def test_damage_is_a_problem_and_hides_nothing(entries, first, count, message):
    content = encoded(*entries)
    index = offset_index.read(BytesSource(content), 0)
    assert (first * 8, count * 8, message, "index-invalid") in [
        (each.position, each.length, each.message, each.code) for each in index.problems
    ]
    assert list(zip(index.relative_offsets.tolist(), index.positions.tolist(), strict=True)) == entries
    assert offset_index.write(index.columns) == content


def test_a_size_that_is_no_multiple_is_a_problem():
    index = offset_index.read(BytesSource(encoded(*SOUND) + b"\0\0\0"), 0)
    assert (index.entry_count, index.trailing_bytes, index.passes_sanity_check) == (4, 3, False)
    assert [(each.position, each.length) for each in index.problems] == [(32, 3)]


def test_a_broker_takes_the_whole_file_for_entries_when_it_checks_it():
    def passes(content):
        return offset_index.read(BytesSource(content), 0).passes_sanity_check

    assert passes(b"")
    assert passes(encoded(*SOUND))
    assert not passes(encoded(*SOUND, (-1, 500)))
    assert passes(encoded(*SOUND, (-1, 500)) + bytes(8))


def test_offsets_near_the_largest_do_not_wrap():
    base_offset = 2**63 - 1 - 25
    index = offset_index.read(BytesSource(encoded(*SOUND)), base_offset)
    assert index.offsets.tolist() == [base_offset + 10, base_offset + 20, 2**63 - 1, 2**63 - 1]
    assert [each.position for each in index.problems] == [16]
    with pytest.raises(InvalidIndex):
        offset_index.floor_entry(BytesSource(encoded(*SOUND)), base_offset, None)
    for impossible in (-1, 2**63, 99999999999999999999):
        with pytest.raises(InvalidIndex):
            offset_index.read(BytesSource(encoded(*SOUND)), impossible)
        with pytest.raises(InvalidIndex):
            offset_index.floor_entry(BytesSource(encoded(*SOUND)), impossible, 1)


def test_an_impossible_entry_is_never_the_answer_of_a_look_up():
    with pytest.raises(InvalidIndex) as caught:
        offset_index.floor_entry(BytesSource(encoded((10, 100), (20, -200), (30, 300)), "i"), 0, 25)
    assert (caught.value.location.position, caught.value.location.length) == (8, 8)


def test_the_number_of_problems_is_bounded():
    entries = [(0, 0), (5, 5)] * 5000
    index = offset_index.read(BytesSource(encoded(*entries)), 0)
    assert len(index.problems) <= 5 * (MAX_PROBLEMS + 1)
    assert any("4900 more runs of such entries" in each.message for each in index.problems)


@pytest.mark.slow
@pytest.mark.parametrize("padding_bytes", [0, 16])
def test_every_changed_byte_and_every_truncation_is_survived(data_dir, padding_bytes):
    path = data_dir / "kafka-4.3-single/node-1/orders-2/00000000000000000000.index"
    content = path.read_bytes() + bytes(padding_bytes)
    for damaged in (single_byte_changes, truncations):
        for changed, index in outcomes(lambda source: offset_index.read(source, 0), damaged(content)):
            assert isinstance(index, offset_index.OffsetIndex)
            assert index.entry_count * 8 + index.padding_bytes + index.trailing_bytes == len(changed)
            assert offset_index.write(index.columns) + bytes(index.padding_bytes) == changed[: len(changed) // 8 * 8]
            for target in (0, 100, 500, 2**40):
                for _ in outcomes(lambda source, at=target: offset_index.floor_entry(source, 0, at), iter([changed])):
                    pass


def test_limits_and_unreadable_files(tmp_path):
    with pytest.raises(LimitExceeded):
        offset_index.read(BytesSource(bytes(800)), 0, Limits(max_side_file_bytes=799))
    with pytest.raises(UnreadableFile):
        offset_index.read(tmp_path / "00000000000000000000.index", 0)
