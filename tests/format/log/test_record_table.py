"""Records of v2 batches and of v0/v1 messages: what is decoded, and what is reported of the rest."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from format import layout
from format.limits import Limits
from format.log.encode_batches import BatchHeader, encode_batch, encode_message, encode_wrapper, reseal, seal_batch
from format.log.read_records import record_tables
from format.log.record_table import RecordTable
from format.log.walker import batch_chunks
from tests.building import BASE_TIMESTAMP, batch, batches, wrapper
from tests.record_encoder import NewRecord, encode_record, encode_varint
from tests.sources import BytesSource

CODECS = range(5)


def tables(log: bytes, **keywords: object) -> list[RecordTable]:
    return [
        table
        for chunk in batch_chunks(BytesSource(log))
        for table in record_tables(chunk, **keywords)  # type: ignore[arg-type]
    ]


def read(log: bytes, **keywords: object) -> tuple[list[tuple[int, int, bytes | None, bytes | None]], list[str]]:
    """(offset, timestamp, key, value) of every record, and the codes of the problems."""
    found = tables(log, **keywords)
    rows = [
        (int(table.offset[row]), int(table.timestamp[row]), table.key(row), table.value(row))
        for table in found
        for row in range(len(table))
    ]
    return rows, [problem.error.code for table in found for problem in table.problems]


@pytest.mark.parametrize("codec", CODECS)
def test_records_of_every_codec(codec: int) -> None:
    headers = ((b"trace", b"\x00\xff"), (b"", None))
    log = batch(7, [b"one", None, b""], codec=codec, key=None, headers=headers)
    assert read(log) == (
        [(7 + n, BASE_TIMESTAMP + 7 + n, None, value) for n, value in enumerate((b"one", None, b""))],
        [],
    )
    (table,) = tables(log)
    assert [table.headers(row) for row in range(3)] == [list(headers)] * 3


def test_tables_keep_log_order_over_codecs_and_formats() -> None:
    log = b"".join(
        [encode_message(0, 0, b"k", b"v"), wrapper(0, 1), encode_message(1, 4, b"k", b"v", timestamp=9), wrapper(1, 5),
         batch(8, codec=0), batch(11, codec=4), batch(14, codec=2)]
    )  # fmt: skip
    rows, problems = read(log)
    assert [row[0] for row in rows] == list(range(17))
    assert not problems


def test_sequences_wrap_to_zero() -> None:
    (table,) = tables(batch(0, producer_id=1, producer_epoch=0, base_sequence=2**31 - 2))
    assert table.sequence.tolist() == [2**31 - 2, 2**31 - 1, 0]


def test_log_append_time_is_the_batchs() -> None:
    rows, _ = read(batch(0, attributes=layout.TIMESTAMP_TYPE_BIT, max_timestamp=42))
    assert [row[1] for row in rows] == [42, 42, 42]


def test_a_batch_with_a_wrong_crc_is_not_read_unless_asked_for() -> None:
    broken = bytearray(batch(0))
    broken[-1] ^= 1
    log = bytes(broken) + batch(3)
    assert [row[0] for row in read(log)[0]] == [3, 4, 5]
    (chunk,) = batch_chunks(BytesSource(log))
    (table,) = record_tables(chunk, which=chunk.table.position >= 0)
    assert table.offset.tolist()[-3:] == [3, 4, 5]


# -- resealed damage: the CRC is right, the records are not -----------------------------------------------------


def one_record(body: bytes, *, count: int = 1, delta: int = 0) -> bytes:
    """A batch whose records are these bytes, after a sound record at delta 0."""
    first = encode_record(NewRecord(0, 0, b"k", b"sound"))
    header = BatchHeader(100, max(delta, 1), count + 1, base_timestamp=5, max_timestamp=5)
    return seal_batch(header, first + body, codec=0)


def record_of(*fields: bytes) -> bytes:
    body = b"\0" + b"".join(fields)
    return encode_varint(len(body)) + body


V = encode_varint
DAMAGE = {
    "length unterminated": b"\x80",
    "length of six bytes": b"\x80\x80\x80\x80\x80\x01",
    "length overflows": b"\x80\x80\x80\x80\x10",
    "length negative": V(-5),
    "length zero": V(0),
    "length past the batch": V(1000) + b"x" * 20,
    "timestamp delta of eleven bytes": record_of(b"\x80" * 10 + b"\x01", V(1), V(-1), V(-1), V(0)),
    "timestamp delta overflows": record_of(b"\xff" * 9 + b"\x02", V(1), V(-1), V(-1), V(0)),
    "timestamp past 64 bits": record_of(V(2**63 - 1), V(1), V(-1), V(-1), V(0)),
    "offset delta unterminated": record_of(V(0), b"\x80\x80"),
    "key length -2": record_of(V(0), V(1), V(-2), V(-1), V(0)),
    "key past the record": record_of(V(0), V(1), V(99), b"k", V(-1), V(0)),
    "value length -2": record_of(V(0), V(1), V(-1), V(-2), V(0)),
    "value past the record": record_of(V(0), V(1), V(-1), V(2**31 - 1), V(0)),
    "header count negative": record_of(V(0), V(1), V(-1), V(-1), V(-1)),
    "header count huge": record_of(V(0), V(1), V(-1), V(-1), V(2**31 - 1)),
    "header key -1": record_of(V(0), V(1), V(-1), V(-1), V(1), V(-1), V(-1)),
    "header value -2": record_of(V(0), V(1), V(-1), V(-1), V(1), V(0), V(-2)),
    "bytes after the headers": record_of(V(0), V(1), V(-1), V(-1), V(0), b"left"),
    "record cut after its attributes": record_of(),
}


@pytest.mark.parametrize("codec", [0, 4])
@pytest.mark.parametrize("name", DAMAGE)
def test_a_damaged_record_is_reported_and_those_before_it_are_kept(name: str, codec: int) -> None:
    log = one_record(DAMAGE[name])
    if codec:
        first = encode_record(NewRecord(0, 0, b"k", b"sound"))
        log = encode_batch(BatchHeader(100, 1, 2, 5, 5), first + DAMAGE[name], codec=codec)
    rows, problems = read(log + batch(200))
    assert [row[0] for row in rows] == [100, 200, 201, 202]
    assert problems == ["record-invalid"]


@pytest.mark.parametrize(
    ("count", "code"),
    [(-1, "record-count-mismatch"), (0, "record-count-mismatch"), (2, "record-trailing-bytes"),
     (4, "record-count-mismatch"), (2**31 - 1, "record-count-mismatch")],
)  # fmt: skip
def test_a_forged_record_count(count: int, code: str) -> None:
    rows, problems = read(batch(0, record_count=count) + batch(3))
    assert [row[0] for row in rows][-3:] == [3, 4, 5]
    assert problems in ([code], ["record-trailing-bytes"])


def test_an_empty_batch_that_compaction_left_is_fine() -> None:
    assert read(batch(0, [], last_offset_delta=9)) == ([], [])


def test_a_bomb_is_a_limit_not_damage() -> None:
    for codec in (1, 2, 3, 4):
        _, problems = read(batch(0, [b"\0" * 3_000_000], codec=codec), limits=Limits(max_decompressed_bytes=1_000_000))
        assert problems == ["limit-exceeded"], codec


@pytest.mark.parametrize("codec", [5, 6, 7])
def test_an_unknown_codec_is_unsupported_not_corrupt(codec: int) -> None:
    plain = bytearray(batch(0))
    plain[22] |= codec
    assert read(reseal(plain) + batch(3))[1] == ["codec-unknown"]


@pytest.mark.parametrize("codec", [1, 2, 3, 4])
def test_garbage_under_a_codec_is_reported(codec: int) -> None:
    header = BatchHeader(0, 0, 1)
    _, problems = read(seal_batch(header, b"garbage, not a frame", codec=codec) + batch(1))
    assert problems == ["decompression-failed"]


# -- v0 and v1 ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", [1, 2, 3])
def test_inner_messages_have_absolute_offsets(magic: int, codec: int) -> None:
    rows, problems = read(wrapper(magic, 1000, 5, codec=codec))
    assert [row[0] for row in rows] == [1000, 1001, 1002, 1003, 1004]
    assert [row[1] for row in rows] == ([-1] * 5 if magic == 0 else [BASE_TIMESTAMP + each for each in range(5)])
    assert not problems


def test_a_wrapper_of_old_librdkafka_counts_from_zero() -> None:
    assert [row[0] for row in read(wrapper(1, 0, 3, last_offset=0))[0]] == [0, 1, 2]


def test_a_problem_comes_once_and_with_the_records_around_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where records fill several tables, and one of the batches cannot be decompressed."""
    broken = bytearray(batch(5, [b"v"] * 2, codec=1))
    broken[61:63] = b"\0\0"
    log = batch(0, [b"v"] * 5, codec=1) + reseal(broken) + batch(7, [b"v"] * 5, codec=1)
    assert [(len(table), [each.batch for each in table.problems]) for table in tables(log)] == [(10, [1])]
    monkeypatch.setattr("format.log.read_records.MOST_ROWS", 3)
    found = [(table.offset.tolist(), [each.batch for each in table.problems]) for table in tables(log)]
    assert found == [([0, 1, 2], []), ([3, 4, 7], [1]), ([8, 9, 10], []), ([11], [])]


def test_opening_wrappers_tells_their_first_offset_and_count() -> None:
    (chunk,) = batch_chunks(BytesSource(wrapper(1, 50, 4) + wrapper(0, 54, 2)))
    closed = chunk.headers.unopened()
    assert (closed.base_offset.tolist(), closed.record_count.tolist()) == ([53, 55], [-1, -1])
    assert chunk.headers.header_offset.tolist() == chunk.headers.last_offset.tolist() == [53, 55]
    assert not {"base_offset", "record_count", "sums"} & set(dir(chunk.headers))
    assert chunk.table.base_offset.tolist() == [50, 54]
    assert chunk.table.last_offset.tolist() == [53, 55]
    assert chunk.table.record_count.tolist() == [4, 2]


@pytest.mark.parametrize("step", [1, 2, 3])
@pytest.mark.parametrize("is_opened_before", [False, True])
def test_opened_wrappers_serve_callers_that_want_some_of_them(step: int, is_opened_before: bool) -> None:
    bad = encode_wrapper(1, [], codec=1, last_offset=20)
    log = b"".join([wrapper(1, 0, 5), wrapper(0, 5, 5), wrapper(1, 10, 5), wrapper(1, 15, 5), bad, wrapper(0, 21, 4)])
    (chunk,) = batch_chunks(BytesSource(log))
    if not is_opened_before:
        chunk = replace(chunk, table=chunk.headers.unopened(), opened={})
    some = np.arange(len(chunk.table)) % step == 0
    found = list(record_tables(chunk, which=some)) + list(record_tables(chunk, which=~some))
    offsets = sorted(offset for table in found for offset in table.offset.tolist())
    assert offsets == [*range(20), *range(21, 25)]
    for table in found:
        for row in range(len(table)):
            assert chunk.table.base_offset[table.batch[row]] <= table.offset[row] or not is_opened_before
            assert table.value(row) is not None
    problems = [(problem.batch, problem.error.code) for table in found for problem in table.problems]
    assert problems == [(4, "message-invalid")]
    assert [each[0] for each in read(log)[0]] == offsets


def test_a_message_that_runs_over_the_end_of_its_wrapper_is_not_taken_from_the_next() -> None:
    """Each alone is wrong: the second of the first wrapper's messages ends inside of the second wrapper."""
    first, second = (encode_message(1, number, b"k", b"v" * 30) for number in range(2))
    logs = encode_wrapper(1, [first, second[:-10]], codec=1, last_offset=1)
    logs += encode_wrapper(1, [second[-10:], first], codec=1, last_offset=2)
    assert read(logs) == ([], ["message-invalid", "message-invalid"])


def test_log_append_time_of_a_wrapper_is_its_inner_messages() -> None:
    inner = [encode_message(1, number, b"k", b"v", timestamp=1) for number in range(2)]
    log = encode_wrapper(1, inner, codec=1, last_offset=9, timestamp=77, attributes=layout.TIMESTAMP_TYPE_BIT)
    assert [row[:2] for row in read(log)[0]] == [(8, 77), (9, 77)]


INNER = [encode_message(1, number, b"k", b"v") for number in range(3)]
LEGACY_DAMAGE = {
    "null value": encode_message(1, 5, None, None, attributes=1),
    "no inner messages": encode_wrapper(1, [], codec=1, last_offset=5),
    "inner set cut": encode_wrapper(1, [INNER[0], INNER[1][:-1]], codec=1, last_offset=5),
    "inner magic differs": encode_wrapper(1, [encode_message(0, 0, b"k", b"v")], codec=1, last_offset=5),
    "nested compression": encode_wrapper(1, [encode_wrapper(1, INNER, codec=1, last_offset=2)], codec=1, last_offset=5),
    "wrapper offset below the last inner": encode_wrapper(1, INNER, codec=1, last_offset=1),
}


@pytest.mark.parametrize("name", LEGACY_DAMAGE)
def test_a_damaged_wrapper_is_reported_and_the_rest_is_read(name: str) -> None:
    rows, problems = read(encode_message(1, 0, b"k", b"v") + LEGACY_DAMAGE[name] + encode_message(1, 6, b"k", b"v"))
    assert [row[0] for row in rows] == [0, 6]
    assert problems == ["message-invalid"]


@pytest.mark.parametrize("magic", [0, 1])
def test_zstd_does_not_exist_in_old_formats(magic: int) -> None:
    assert read(encode_message(magic, 5, None, b"x", attributes=4))[1] == ["codec-unknown"]


def test_a_damaged_message_among_plain_ones_loses_itself_only() -> None:
    bad = bytearray(encode_message(1, 1, b"key", b"value"))
    bad[26:30] = (1000).to_bytes(4, "big")  # the key's length
    rows, problems = read(encode_message(1, 0, b"k", b"v") + reseal(bad) + encode_message(1, 2, b"k", b"v"))
    assert [row[0] for row in rows] == [0, 2]
    assert problems == ["message-invalid"]


@pytest.mark.slow
def test_every_flip_of_every_byte_raises_nothing() -> None:
    for log in (batch(3), batch(3, codec=1), wrapper(1, 5), encode_message(0, 9, b"k", b"v")):
        for position in range(len(log)):
            for mask in (0x01, 0x80, 0xFF):
                broken = bytearray(log)
                broken[position] ^= mask
                read(bytes(broken) + b"".join(batches(2, 100)))
                if position >= 17 and len(log) - position > 1:
                    resealed = bytearray(reseal(broken))
                    read(bytes(resealed) + b"".join(batches(2, 100)))
