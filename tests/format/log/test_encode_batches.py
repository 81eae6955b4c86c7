"""Records of any table, encoded anew all at once, are what they are encoded one by one."""

from __future__ import annotations

import random

import pytest
from msgspec.structs import replace

from format.errors import UnsupportedError
from format.log.encode_batches import BatchHeader, encode_batch, encode_records
from format.log.read_records import record_tables
from format.log.record_table import RecordTable
from format.log.walker import batch_chunks
from tests.building import BASE_TIMESTAMP, batch, wrapper
from tests.record_encoder import NewRecord, encode_record
from tests.sources import BytesSource


def tables_of(*batches: bytes) -> list[RecordTable]:
    found = []
    for chunk in batch_chunks(BytesSource(b"".join(batches))):
        found += list(record_tables(chunk))
    assert found
    assert not any(each.problems for each in found)
    return found


def one_by_one(table: RecordTable, base_offset: int, base_timestamp: int) -> bytes:
    return b"".join(
        encode_record(
            NewRecord(
                int(table.offset[row]) - base_offset,
                int(table.timestamp[row]) - base_timestamp,
                table.key(row),
                table.value(row),
                tuple(table.headers(row) or ()),
                int(table.attributes[row]) if table.header_count[row] >= 0 else 0,
            )
        )
        for row in range(len(table))
    )


def varied_batch(seed: int, codec: int) -> bytes:
    chance = random.Random(seed)

    def some() -> bytes | None:
        return None if chance.random() < 0.2 else chance.randbytes(chance.choice((0, 1, 63, 64, 65, 200, 9000)))

    records = [
        NewRecord(
            number * chance.choice((1, 100)) if number == 39 else number,
            chance.choice((0, -1, 63, 64, -65, 10**6, -(10**15), 2**40)),
            some(),
            some(),
            tuple((chance.randbytes(chance.randrange(70)), some()) for _ in range(chance.choice((0, 0, 1, 3)))),
        )
        for number in range(40)
    ]
    header = BatchHeader(1000 * seed, 4000, len(records), BASE_TIMESTAMP, BASE_TIMESTAMP + 2**40)
    return encode_batch(header, b"".join(map(encode_record, records)), codec=codec)


@pytest.mark.parametrize("codec", range(5))
def test_v2_records(codec: int) -> None:
    for table in tables_of(*(varied_batch(seed, codec) for seed in range(1, 30))):
        for base_offset, base_timestamp in ((0, 0), (int(table.offset[0]), int(table.timestamp[0])), (10**6, -1)):
            encoded = encode_records(table, base_offset, base_timestamp)
            assert bytes(encoded) == one_by_one(table, base_offset, base_timestamp)


@pytest.mark.parametrize("magic", [0, 1])
def test_messages(magic: int) -> None:
    for table in tables_of(*(wrapper(magic, 5 * number) for number in range(40))):
        assert bytes(encode_records(table, 0, BASE_TIMESTAMP)) == one_by_one(table, 0, BASE_TIMESTAMP)


def test_header_bytes_stay_as_they_are() -> None:
    record = encode_record(NewRecord(0, 0, b"k", b"v", ((b"name", b"x"),)))
    at = record.index(b"name") - 1
    longer = bytes((record[0] + 2,)) + record[1:at] + b"\x88\x00" + record[at + 1 :]  # the length 4 in two bytes
    [table] = tables_of(encode_batch(BatchHeader(0, 0, 1), longer))
    assert table.headers(0) == [(b"name", b"x")]
    assert bytes(encode_records(table, 0, -1)) == longer


def test_offsets_without_a_delta_are_an_error() -> None:
    [table] = tables_of(batch(2**31))
    assert len(encode_records(table, 3, 0))
    for base_offset in (2, 2**32 + 1):
        with pytest.raises(UnsupportedError, match="the offsets are too far apart"):
            encode_records(table, base_offset, 0)


def test_timestamps_without_a_delta_are_an_error() -> None:
    [table] = tables_of(batch(0, timestamp=2**62))
    table = replace(table, columns=table.columns.copy())
    table.timestamp[1] = -(2**63)
    with pytest.raises(UnsupportedError, match="the timestamps are too far apart"):
        encode_records(table, 0, 2**62)


def test_a_table_without_records() -> None:
    [table] = tables_of(batch(0))
    assert bytes(encode_records(table.rows(slice(0, 0)), 0, 0)) == b""
