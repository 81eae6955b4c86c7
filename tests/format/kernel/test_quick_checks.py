"""What the kernel's shortcuts promise, whichever twin runs: what they pass, the closer look passes too."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from format.checks import batches, records
from format.checks.batches import check_batch_headers
from format.checks.records import RecordCheck, SoundRecords, sound_records
from format.codecs.checksums import crc32_of, crc32c_of, crc_tables
from format.errors import KafkaLogError
from format.kernel.checks import check_crcs
from format.kernel.compiled import KERNEL_IS_COMPILED
from format.kernel.tables import BATCH_COLUMNS
from format.limits import DEFAULT_LIMITS, Limits
from format.log.encode_batches import BatchHeader, encode_batch
from format.log.read_records import batch_groups, group_tables, record_tables
from format.log.walker import batch_chunks
from tests.building import batch, wrapper
from tests.faults.mutations import case
from tests.format.kernel.twins import INSTALLED, LIMITS, PLAIN, WHERE, shown
from tests.record_encoder import NewRecord, encode_record
from tests.sources import BytesSource

pytestmark = pytest.mark.slow


def test_checksums_of_the_kernel_are_those_of_the_libraries() -> None:
    chance = random.Random(3)
    tables = crc_tables()
    assert len(tables) == 2 * 16 * 256
    for size in (*range(14, 80), 255, 256, 1000):
        log = batch(5, [chance.randbytes(size)]) + wrapper(1, 6, 1) + wrapper(0, 7, 2)
        chunk = next(batch_chunks(BytesSource(log), check_crc=False))
        assert chunk.buffer is not None
        valid = np.full(len(chunk.table), 9, np.int8)
        numbers = chunk.headers.columns.copy()
        columns = memoryview(numbers)
        assert check_crcs(chunk.buffer, 0, columns, 10**6, tables, memoryview(valid)) == 0
        assert valid.tolist() == [1, 1, 1]
        assert check_crcs(chunk.buffer, 0, columns, 0, tables, memoryview(valid)) == 3
        numbers[:, BATCH_COLUMNS.index("crc")] ^= 1
        assert check_crcs(chunk.buffer, 0, columns, 10**6, tables, memoryview(valid)) == 0
        assert valid.tolist() == [0, 0, 0]
    assert (crc32c_of(b"123456789"), crc32_of(b"123456789")) == (0xE3069283, 0xCBF43926)


def test_headers_that_the_quick_check_passes_have_no_findings(monkeypatch: pytest.MonkeyPatch) -> None:
    """The quick check of headers looks at rows once, in the kernel; the closer look at everything, in numpy."""

    def found(log: bytes, quick: bool) -> list[Any]:
        monkeypatch.setattr(batches, "KERNEL_IS_COMPILED", quick)
        seen: list[Any] = []
        for chunk in batch_chunks(BytesSource(log), limits=LIMITS):
            seen += shown(check_batch_headers(chunk.table, WHERE, latest_timestamp_ms=2**61))
        return seen

    numbers = range(1000) if KERNEL_IS_COMPILED else range(200)
    with_findings = without = 0
    for number in numbers:
        for name, content in case(99, number).files.items():
            if name.endswith(".log"):
                closer = found(content, quick=False)
                assert found(content, quick=True) == closer
                with_findings += bool(closer)
                without += not closer
    assert min(with_findings, without) > len(numbers) // 20


def test_groups_that_are_sound_without_tables_have_no_findings_and_the_same_records(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def check(log: bytes) -> None:
        for chunk in batch_chunks(BytesSource(log), limits=LIMITS, check_crc=False):
            for group in batch_groups(chunk.table, np.ones(len(chunk.table), bool)):
                checker = RecordCheck(WHERE, LIMITS)
                tables = list(group_tables(chunk, group, LIMITS, WHERE))
                findings = [code for table in tables for code, *_ in shown(checker.findings(table))]
                found = []
                for twin in (PLAIN, INSTALLED):
                    monkeypatch.setattr(records, "count_sound_batches", twin["checks"].count_sound_batches)
                    found.append(sound_records(chunk, group, LIMITS))
                sound, other = found
                assert sound == other
                kinds[(bool(findings), sound is not None)] += 1
                if sound is not None:
                    assert not findings
                    keyless = [int(at) for table in tables for at in table.offset[table.key_length < 0]]
                    assert sound == SoundRecords(sum(map(len, tables)), keyless[0] if keyless else None)

    kinds: Counter[tuple[bool, bool]] = Counter()
    for number in range(200):
        for name, content in case(99, number).files.items():
            if name.endswith(".log"):
                check(content)
    for log in _odd_logs():
        check(log)
    assert kinds[(False, True)] > 100
    assert kinds[(True, False)] > 20


def test_sound_batches_of_every_kind_need_no_tables() -> None:
    marker = batch(40, [bytes(6)], key=bytes(4), attributes=0x30, producer_id=1, producer_epoch=0)
    append_time = batch(41, [b"a", b"b"], attributes=8, max_timestamp=99)
    headers = ((b"name", None), ("n\u00e4me".encode(), b"value"))
    log = batch(0) + batch(3, [None, b""], key=None) + batch(5, [bytes(300)] * 30, headers=headers)
    for each in (
        log,
        marker,
        append_time,
        batch(43, [], record_count=0),
        *(batch(0, codec=codec) for codec in range(5)),
    ):
        (chunk,) = batch_chunks(BytesSource(each))
        for group in batch_groups(chunk.table, chunk.table.crc_valid != 0):
            assert sound_records(chunk, group, LIMITS) is not None


def _odd_logs() -> Iterator[bytes]:
    """Logs of batches that are odd in one way each, their CRCs aside."""
    chance = random.Random(8)
    values = [b"a", None, b"", bytes(300)]
    for fields in (
        {},
        {"codec": 4},
        {"max_timestamp": 5},
        {"record_count": 3},
        {"record_count": 9},
        {"record_count": -1},
        {"attributes": 8},
        {"attributes": 8, "max_timestamp": 2**63 - 1},
        {"base_timestamp": 2**63 - 1},
        {"base_timestamp": 2**63 - 1, "attributes": 8},
        {"base_timestamp": -(2**63), "max_timestamp": 3 - 2**63},
        {"last_offset_delta": 1},
        {"last_offset_delta": 9},
        {"last_offset_delta": -1},
        {"base_offset": 2**63 - 2, "timestamp": 9},
        {"base_offset": -5},
        {"values": [], "record_count": -1},
        {"values": [bytes(6000)]},
        {"base_timestamp": 2**63 - 1, "max_timestamp": 2 - 2**63},  # their sum in 64 bits
    ):
        yield batch(0, values) + batch(**{"base_offset": 20, "values": values, **fields}) + batch(40, [b"x"])
    for control_type in range(4):
        for key, value in (
            (bytes((0, 0, 0, control_type)), bytes(6)),
            (bytes((0x80, 0, 0, control_type)), bytes(6)),
            (b"\0\0\0", bytes(6)),
            (bytes(4), bytes(3)),
            (bytes(4), b"\x80" + bytes(5)),
        ):
            yield batch(7, [value], key=key, attributes=0x30) + batch(8, [], record_count=0)
    early = [encode_record(NewRecord(number, -3 * number, b"k", b"v")) for number in range(3)]
    for base_timestamp, max_timestamp in ((-(2**63), -(2**63)), (100, 100)):
        yield encode_batch(BatchHeader(0, 2, 3, base_timestamp, max_timestamp), b"".join(early), codec=0)
    good: tuple[tuple[bytes, bytes | None], ...] = (("h\xe9".encode(), b"v"), (b"", None))
    for headers in (good, ((b"\xff", b""),), ((b"h", b"v"),) * 1200):
        yield batch(0, values, headers=headers) + batch(4, values, key=None) + batch(8, key=None)
    for _ in range(1500):
        key = chance.choice((None, b"", b"key"))
        log = bytearray(batch(5, values, key=key, headers=chance.choice((good[:1], ()))) + batch(9, values))
        for _ in range(chance.randint(1, 2)):
            log[chance.randrange(61, 100)] = chance.choice((0, 1, 2, 3, 0x7F, 0x80, 0xFF, chance.randrange(256)))
        yield bytes(log)


def test_a_batch_of_many_records_comes_in_several_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    from format.log import read_records

    def read(log: bytes) -> tuple[list[Any], list[Any], list[Any]]:
        rows: list[Any] = []
        problems: list[Any] = []
        findings: list[Any] = []
        for chunk in batch_chunks(BytesSource(log)):
            check = RecordCheck(WHERE, DEFAULT_LIMITS)
            for table in record_tables(chunk):
                assert len(table) <= read_records.MOST_ROWS
                rows += [
                    (*row[1:4], table.key(number), table.value(number))
                    for number, row in enumerate(table.columns.tolist())
                ]
                problems += [(each.batch, str(each.error)) for each in table.problems]
                findings += shown(check.findings(table))
        return rows, problems, findings

    def many(base_offset: int, count: int, **fields: int) -> bytes:
        return batch(base_offset, [b"%d" % number for number in range(count)], **fields)

    log = b"".join(
        [many(0, 40), many(40, 3), many(43, 60, codec=4), many(103, 90, max_timestamp=5),
         many(193, 20, record_count=50), many(213, 50, record_count=30), many(263, 0), many(263, 1)]
    )  # fmt: skip
    whole = read(log)
    assert [code for code, *_ in whole[2]] == [
        "record-count-mismatch",
        "record-trailing-bytes",
        "max-timestamp-mismatch",
    ]
    for most in (1, 2, 7, 20, 40, 64, 100):
        monkeypatch.setattr(read_records, "MOST_ROWS", most)
        rows, problems, findings = read(log)
        assert rows == whole[0]
        assert problems == whole[1]
        assert sorted(findings) == sorted(whole[2])


def test_limits_of_inner_messages_are_limits() -> None:
    log = wrapper(1, 0, 200)
    limits = Limits(max_decompressed_bytes=96 * 199)
    (chunk,) = batch_chunks(BytesSource(log), limits=limits)
    (table,) = record_tables(chunk, limits=limits)
    assert [each.error.code for each in table.problems] == ["limit-exceeded"]
    assert isinstance(table.problems[0].error, KafkaLogError)
