"""Hopping through a log: what is read, and what is reported of the bytes that no batch holds."""

from __future__ import annotations

import pickle
import random
from itertools import pairwise

import numpy as np
import pytest

from format.limits import MIB
from format.log.batch_chunk import WHOLE_LOG, BatchChunk, BatchRange, Damage
from format.log.batch_table import BATCH_COLUMN, BatchTable, TableSums, new_highest
from format.log.encode_batches import encode_message
from format.log.read_records import known_batches
from format.log.walker import batch_chunks, header_chunks
from tests.building import batch, batches
from tests.sources import BytesSource


def walk(
    log: bytes, batch_range: BatchRange = WHOLE_LOG, *, with_bodies: bool = True, chunk_bytes: int = MIB
) -> tuple[list[int], list[Damage], list[BatchChunk]]:
    """Base offsets, damage and chunks of a log."""
    read = batch_chunks if with_bodies else header_chunks
    chunks = [known_batches(each) for each in read(BytesSource(log), batch_range, chunk_bytes=chunk_bytes)]
    offsets = [int(offset) for chunk in chunks for offset in chunk.table.base_offset]
    return offsets, [chunk.damage for chunk in chunks if chunk.damage is not None], chunks


@pytest.mark.parametrize("with_bodies", [True, False])
@pytest.mark.parametrize("chunk_bytes", [64, 100, 1000, 1 << 20])
def test_every_batch_is_found_whatever_the_chunk_size(with_bodies: bool, chunk_bytes: int) -> None:
    log = b"".join(batches(50))
    offsets, damage, chunks = walk(log, with_bodies=with_bodies, chunk_bytes=chunk_bytes)
    assert offsets == list(range(0, 150, 3))
    assert not damage
    table = BatchTable.concatenated([chunk.table for chunk in chunks])
    assert table.end_position[-1] == len(log)
    assert (table.crc_valid == (1 if with_bodies else -1)).all()


def test_a_batch_larger_than_a_chunk_is_read_whole() -> None:
    log = batch(0, [b"x" * 5000]) + batch(1, [b"y"])
    offsets, damage, chunks = walk(log, chunk_bytes=128)
    assert offsets == [0, 1]
    assert not damage
    assert all((chunk.table.crc_valid == 1).all() for chunk in chunks)


@pytest.mark.parametrize("with_bodies", [True, False])
def test_every_truncation_is_reported_and_nothing_before_it_is_lost(with_bodies: bool) -> None:
    parts = batches(3)
    log = b"".join(parts)
    edges = {0, len(parts[0]), len(parts[0] + parts[1]), len(log)}
    for length in range(len(log)):
        offsets, damage, _ = walk(log[:length], with_bodies=with_bodies)
        whole = sum(length >= edge for edge in sorted(edges)[1:])
        assert offsets == [0, 3, 6][:whole], length
        if length in edges:
            assert not damage, length
        else:
            start = sum(len(part) for part in parts[:whole])
            assert [(each.code, each.position, each.length) for each in damage] == [
                ("tail-torn", start, length - start)
            ]


_FIRST, _, _THIRD = batches(3)
_TORN = {
    "an offset of the log": (2).to_bytes(8, "big") + _THIRD[8:-10],
    "a negative offset": b"\xff" * 8 + _THIRD[8:-10],
    "the start of the first batch": _FIRST[:40],
    "no more than a header up to the magic": b"\xff" * 17,
}


@pytest.mark.parametrize("with_bodies", [True, False])
@pytest.mark.parametrize("what", _TORN)
def test_an_end_that_a_broker_takes_for_a_cut_batch_is_torn(with_bodies: bool, what: str) -> None:
    """A broker compares no offsets there, and recovery cuts all of these off without a word about damage."""
    _, damage, _ = walk(b"".join(batches(3)) + _TORN[what], with_bodies=with_bodies)
    assert [each.code for each in damage] == ["tail-torn"]
    assert "no batch starts here" not in damage[0].reason or what == "no more than a header up to the magic"


@pytest.mark.parametrize("with_bodies", [True, False])
@pytest.mark.parametrize("garbage", [b"\xff" * 40, b"\0" * 100, b"x", bytes(range(256))])
def test_garbage_between_batches_is_located_to_the_byte(with_bodies: bool, garbage: bytes) -> None:
    first, second, third = batches(3)
    offsets, damage, _ = walk(first + garbage + second + third, with_bodies=with_bodies)
    assert offsets == [0, 3, 6]
    (only,) = damage
    assert (only.code, only.position, only.length) == ("log-framing-broken", len(first), len(garbage))
    assert (only.after_offset, only.next_base_offset) == (2, 3)


def test_a_wrong_length_loses_its_own_batch_only() -> None:
    parts = batches(5)
    for wrong in (0, -1, 13, 48, 50, 49 + 1000, 2**31 - 1):
        broken = bytearray(parts[2])
        broken[8:12] = wrong.to_bytes(4, "big", signed=True)
        offsets, damage, _ = walk(b"".join([*parts[:2], broken, *parts[3:]]))
        assert offsets == [0, 3, 9, 12], wrong
        (only,) = damage
        assert only.position == len(parts[0] + parts[1]), wrong
        assert only.length == len(parts[2]), wrong
        assert only.next_base_offset == 9


def test_a_batch_inside_a_value_is_no_batch_while_the_chain_holds() -> None:
    inside = batch(1000, [b"phantom"])
    holder = bytearray(batch(0, [inside]))
    holder[-1] ^= 1  # even when the holder's CRC is wrong, the next header is where its length says
    offsets, damage, chunks = walk(bytes(holder) + batch(1))
    assert offsets == [0, 1]
    assert not damage
    assert [int(valid) for chunk in chunks for valid in chunk.table.crc_valid] == [0, 1]


def test_after_damage_a_header_without_its_crc_does_not_count() -> None:
    forged = bytearray(batch(3, [b"forged"]))
    forged[-1] ^= 1
    first, good = batch(0), batch(9)
    offsets, damage, _ = walk(first + b"\xff" * 30 + bytes(forged) + good)
    assert offsets == [0, 9]
    assert [(each.position, each.length) for each in damage] == [(len(first), 30 + len(forged))]


def test_zeros_at_the_end_are_distinguished_from_a_torn_batch() -> None:
    log = batch(0)
    (zeros,) = walk(log + b"\0" * 4096)[1]
    assert (zeros.code, zeros.position, zeros.length, zeros.reaches_end) == ("tail-zeros", len(log), 4096, True)


def test_formats_mix_in_one_log() -> None:
    log = encode_message(0, 0, b"k", b"v") + encode_message(1, 1, None, b"", timestamp=5) + batch(2)
    (chunk,) = walk(log)[2]
    table = chunk.table
    assert table.magic.tolist() == [0, 1, 2]
    assert table.base_offset.tolist() == [0, 1, 2]
    assert table.max_timestamp.tolist()[:2] == [-1, 5]
    assert table.crc_valid.tolist() == [1, 1, 1]


def test_a_forged_base_offset_near_the_end_of_64_bits_does_not_raise() -> None:
    offsets, damage, _ = walk(batch(2**63 - 2, timestamp=0) + batch(2**63 - 1, timestamp=0))
    assert offsets == [2**63 - 2, 2**63 - 1]
    assert not damage


def test_start_and_end_bound_the_walk() -> None:
    parts = batches(4)
    start, end = len(parts[0]), len(b"".join(parts[:3]))
    log = b"".join(parts)
    assert walk(log, BatchRange(start, end))[0] == [3, 6]
    assert walk(log, batch_range=BatchRange(start))[0] == [3, 6, 9]


def test_every_crc_flip_is_seen() -> None:
    parts = batches(2)
    log = b"".join(parts)
    for position in range(17, len(parts[0])):
        broken = bytearray(log)
        broken[position] ^= 0x10
        offsets, damage, chunks = walk(bytes(broken))
        valid = np.concatenate([chunk.table.crc_valid for chunk in chunks])
        assert not damage, position
        assert (valid == 0).sum() == 1, position
        assert 3 in offsets, position


@pytest.mark.parametrize("highest", [-1, 0, 3, 9])
def test_new_highest_rows_are_those_above_all_before(highest: int) -> None:
    for values in ([], [5], [0, 0, 0], [4, 1, 4, 5, 5, 7], [7, 7, 3], [-1, -1], [1, 2, 3]):
        rows, seen = [], highest
        for row, value in enumerate(values):
            if value > seen:
                rows.append(row)
                seen = value
        assert new_highest(np.array(values, np.int64), highest) == rows


def sums_by_numpy(table: BatchTable) -> TableSums:
    """The sums column by column; Python's integers do not overflow where last offsets do."""
    last = [
        base + delta for base, delta in zip(table.base_offset.tolist(), table.last_offset_delta.tolist(), strict=True)
    ]
    fits = [-(2**63) <= each < 2**63 for each in last]
    rises = all(fits) and all(before < after for before, after in pairwise(last))
    producers = table.producer_id
    codecs = [table.codec == codec for codec in range(8)]
    in_transaction = (table.is_transactional | table.is_control) & (producers >= 0)
    return TableSums(
        magics=sum(1 << magic for magic in set(table.magic.tolist())),
        record_count=int(np.maximum(table.record_count, 0).sum()),
        size_bytes=int(table.size_bytes.sum()),
        least_offset=int(table.base_offset.min()),
        greatest_offset=int(table.base_offset.max()),
        least_delta=int(table.last_offset_delta.min()),
        greatest_delta=int(table.last_offset_delta.max()),
        max_timestamp=int(table.max_timestamp.max()),
        lowest_epoch=int(table.leader_epoch.min()),
        highest_epoch=int(table.leader_epoch.max()),
        rises=int(rises),
        follows=int(rises and all(base > before for base, before in zip(table.base_offset[1:], last, strict=False))),
        right_crcs=int((table.crc_valid == 1).sum()),
        wrong_crcs=int((table.crc_valid == 0).sum()),
        wrappers=int(table.is_wrapper.sum()),
        controls=int(table.is_control.sum()),
        transactionals=int(table.is_transactional.sum()),
        with_producer=int((producers >= 0).sum()),
        in_transactions=int(in_transaction.sum()),
        producer_changes=int((producers[1:] != producers[:-1]).sum()),
        codec_counts=[int(each.sum()) for each in codecs],
        codec_bytes=[int(table.size_bytes[each].sum()) for each in codecs],
    )


ODD = {
    "base_offset": [-(2**63), -1, 0, 5, 2**62, 2**63 - 1],
    "last_offset_delta": [-(2**31), -1, 0, 1, 2**31 - 1],
    "max_timestamp": [-(2**63), -1, 0, 2**63 - 1],
    "record_count": [-1, 0, 1, 2**31 - 1],
    "leader_epoch": [-1, 0, 7],
    "producer_id": [-(2**63), -1, 0, 9, 2**63 - 1],
    "attributes": [0, 1, 4, 7, 0x10, 0x20, 0x30, 0x40, 0xFF],
    "magic": [0, 1, 2],
    "size_bytes": [61, 100, 2**31 + 11],
}


def odd_table(picks: random.Random) -> BatchTable:
    columns = np.zeros((picks.randint(1, 6), len(BATCH_COLUMN)), np.int64)
    for name, values in ODD.items():
        columns[:, BATCH_COLUMN[name]] = [picks.choice(values) for _ in range(len(columns))]
    if picks.random() < 0.7:
        columns[:, BATCH_COLUMN["base_offset"]] = np.arange(len(columns)) * 2**31  # offsets that may rise
    return BatchTable(columns, np.array([picks.choice([-1, 0, 1]) for _ in range(len(columns))], np.int8))


def test_the_sums_are_those_of_the_columns() -> None:
    picks = random.Random(7)
    tables = [odd_table(picks) for _ in range(500)]
    assert [table.sums for table in tables] == [sums_by_numpy(table) for table in tables]
    for table, highest in ((table, highest) for table in tables for highest in (-2, -1, 0, 7)):
        assert table.higher_epochs(highest) == new_highest(table.leader_epoch, highest)
    assert {(table.sums.rises, table.sums.follows) for table in tables if len(table) > 1} == {(0, 0), (1, 0), (1, 1)}


def test_a_look_up_in_one_row_is_that_in_the_column() -> None:
    picks = random.Random(11)
    for table in (odd_table(picks) for _ in range(200)):
        for row in range(len(table)):
            assert table.last_offset_of(row) == int(table.last_offset[row])
            assert table.has_delete_horizon_at(row) == bool(table.has_delete_horizon[row])
            assert [table.value(name, row) for name in BATCH_COLUMN] == table.columns[row].tolist()


def test_a_table_without_rows_adds_up_to_nothing() -> None:
    sums = BatchTable.empty().sums
    assert (sums.magics, sums.record_count, sums.rises, sums.codec_counts) == (0, 0, 0, [0] * 8)


def test_tables_cannot_change() -> None:
    table = BatchTable(np.zeros((2, len(BATCH_COLUMN)), np.int64))
    for column in (table.crc_valid, table.base_offset):
        with pytest.raises(ValueError, match="read-only"):
            column[0] = 0
    one = np.ones(1, np.int64)
    other = table.with_contents(one, 3 * one, 5 * one, 2 * one)
    assert (table.base_offset.tolist(), table.last_offset.tolist()) == ([0, 0], [0, 0])
    assert (other.base_offset.tolist(), other.last_offset.tolist()) == ([0, 3], [0, 5])
    assert other.record_count.tolist() == [0, 2]


def test_a_table_is_the_same_after_pickling() -> None:
    table = BatchTable(np.arange(2 * len(BATCH_COLUMN)).reshape(2, -1), np.array([1, 0], np.int8))
    assert table.sums.wrong_crcs == 1
    copied = pickle.loads(pickle.dumps(table))
    assert copied.columns.tolist() == table.columns.tolist()
    assert copied.crc_valid.tolist() == [1, 0]
