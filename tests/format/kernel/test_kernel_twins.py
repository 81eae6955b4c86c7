"""The kernel's twins, the compiled one and the Python file as it is: the same columns, the same errors, the same text.

Each input goes through everything that the kernel has a part in, once with each twin in its place, and what comes
out must be the same to the last byte.
"""

from __future__ import annotations

import os
import random
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from format.checks.batch_headers import check_batch_headers
from format.checks.offset_chain import OffsetChain
from format.checks.record_contents import RecordCheck, SoundRecords, sound_records
from format.codecs.checksums import crc32_of, crc32c_of, crc_tables
from format.columns import RECORD, record_schema
from format.errors import KafkaLogError, UnsupportedError
from format.findings import Finding
from format.io.source import BytesSource
from format.kernel.checks import check_crcs
from format.kernel.compiled import COMPILED_MODULES, KERNEL_IS_COMPILED
from format.kernel.tables import BATCH_COLUMNS, GROUP_COLUMNS, HEADER_SUMS
from format.limits import DEFAULT_LIMITS, MIB, Limits
from format.location import Location
from format.log.batch_chunk import BatchChunk
from format.log.batch_groups import batch_groups
from format.log.batch_ranges import batch_ranges
from format.log.batch_table import BatchTable
from format.log.encode_batches import BatchHeader, NewRecord, encode_batch, encode_record, encode_records
from format.log.legacy_messages import open_wrappers
from format.log.read_records import group_tables, record_tables
from format.log.record_table import RecordTable
from format.log.walker import batch_chunks
from format.rows.row_text import RowText, have_last_offsets
from kafkalog_cli.line_style import line_style
from tests.building import batch, batches, wrapper
from tests.corpora import DATA_DIR, SHARED_CORPUS
from tests.faults.mutations import case
from tests.faults.plain_kernel import plain_module

WHERE = Location("x.log", "topic", 7, 0)
LIMITS = Limits(max_decompressed_bytes=16 * MIB, max_record_bytes=5000)
Twin = dict[str, ModuleType]  # the kernel's modules by name
Functions = dict[str, Any]  # what they offer to other packages, by name

needs_both = pytest.mark.skipif(
    not KERNEL_IS_COMPILED and os.environ.get("KAFKALOG_REQUIRE_COMPILED_KERNEL") != "1",
    reason="there is no compiled kernel here to compare with",
)
#: The modules as they are installed, and the plain ones.
INSTALLED: Twin = {name: import_module(f"format.kernel.{name}") for name in COMPILED_MODULES}
PLAIN: Twin = {name: plain_module(name) for name in COMPILED_MODULES}
#: Modules that are never compiled, and that the others take from.
SHARED = ("crc", "header_layout", "memory", "numbers", "tables", "utf8")
#: Modules that use a function which nothing imported above uses.
for user in (
    "checks.key_placement",
    "rewriting.compare_records",
    "state.group_records",
    "verbs.dump_log.bulk_lines",
    "verbs.grep.record_search",
):
    import_module(f"format.{user}")


def functions_of(twin: Twin) -> Functions:
    """The functions that a twin offers: those that its Python files define."""
    return {
        name: getattr(twin[module_name], name)
        for module_name, plain in PLAIN.items()
        for name, value in vars(plain).items()
        if not name.startswith("_") and getattr(value, "__module__", None) == plain.__name__
    }


INSTALLED_FUNCTIONS, PLAIN_FUNCTIONS = functions_of(INSTALLED), functions_of(PLAIN)
#: The functions of the twin that serves now.
_serving = INSTALLED_FUNCTIONS


@contextmanager
def kernel_in_use(functions: Functions) -> Iterator[None]:
    """Every module of the package uses these functions, in every place where compiled ones may serve."""
    name_of = {id(function): name for name, function in INSTALLED_FUNCTIONS.items()}
    replaced = set()
    with pytest.MonkeyPatch.context() as patch:
        for module_name, module in list(sys.modules.items()):
            if not module_name.startswith("format.") or module_name.startswith("format.kernel."):
                continue
            for attribute, value in list(vars(module).items()):
                if id(value) in name_of:
                    patch.setattr(module, attribute, functions[name_of[id(value)]])
                    replaced.add(name_of[id(value)])
            if hasattr(module, "KERNEL_IS_COMPILED"):
                patch.setattr(module, "KERNEL_IS_COMPILED", True)
        assert replaced == set(INSTALLED_FUNCTIONS)
        patch.setitem(globals(), "_serving", functions)
        yield


def columns_of(table: BatchTable | RecordTable) -> tuple[tuple[int, ...], bytes]:
    return table.columns.shape, np.ascontiguousarray(table.columns).tobytes()


def told(findings: Iterator[Finding]) -> list[tuple[str, str, str]]:
    return [(each.code, str(each.location), each.message) for each in findings]


def lines_of(chunk: BatchChunk, tables: list[RecordTable]) -> list[bytes]:
    """Every row as text in both styles, through a buffer that is soon full."""
    found = []
    buffer = memoryview(bytearray(3000))
    for style in ("jsonl", "text"):
        text = RowText(line_style(style))
        if have_last_offsets(chunk.table):
            found += [bytes(buffer[: each.length]) for each in text.batch_lines(chunk.table, WHERE, lambda: buffer)]
        for table in tables:
            for schema, start in ((RECORD, None), (record_schema(frozenset(("path", "is_below_log_start"))), 4)):
                made = text.record_lines(table, WHERE, lambda: buffer, schema, start)
                found += [bytes(buffer[: each.length]) for each in made]
    return found


def observed(log: bytes, chunk_bytes: int) -> list[Any]:
    """All that a log comes to, in values that can be compared."""
    source = BytesSource(log)
    seen: list[Any] = [list(batch_ranges(source, chunk_bytes))]
    for chunk in batch_chunks(source, with_bodies=False, chunk_bytes=chunk_bytes):
        seen.append(("header", columns_of(chunk.table), chunk.damage))
    seen += searched(log)
    chain = OffsetChain()
    chain.start_segment(None, None)
    for chunk in batch_chunks(source, limits=LIMITS, chunk_bytes=chunk_bytes):
        seen.append(told(chain.feed(chunk.table, WHERE)))
        seen.append(("batch", columns_of(chunk.table), chunk.table.crc_valid.tolist(), chunk.damage))
        open_wrappers(chunk, limits=LIMITS)
        seen.append(told(check_batch_headers(chunk.table, WHERE, latest_timestamp_ms=2**62)))
        everything = np.ones(len(chunk.table), bool)
        seen += [sound_records(chunk, group, LIMITS) for group in batch_groups(chunk.table, everything)]
        tables = []
        for table in record_tables(chunk, which=everything, limits=LIMITS):
            if len(table.columns):
                tables.append(table)
            seen.append(("record", columns_of(table), bytes(table.buffer)))
            seen.append([(each.batch, each.records_read, str(each.error)) for each in table.problems])
            seen.append(told(RecordCheck(WHERE, LIMITS).findings(table)))
            seen.append([table.headers(row) for row in range(min(len(table), 50))])
            seen.append(doubts(chunk.table, table))
            seen.append(found_in(table))
            seen.append(written_anew(table))
            seen.append(kafka_lines_of(chunk.table, table))
            seen.append(groups_in(table))
            seen.append([in_use().hash_of_key(key, 0, len(key)) for key in keys_of(table)])
        seen += lines_of(chunk, tables)
    return seen


def keys_of(table: RecordTable) -> list[bytes]:
    """The first keys of a table."""
    return [bytes(table.key(row) or b"") for row in range(min(len(table), 9))]


def kafka_lines_of(batches: BatchTable, table: RecordTable) -> list[Any]:
    """What kafka-dump-log prints for a table's batches and records, through a buffer that is soon full."""
    if not len(table):
        return []
    columns, records = (memoryview(np.ascontiguousarray(each.columns)) for each in (batches, table))
    valid = memoryview(batches.crc_valid)
    seen: list[Any] = []
    buffer = memoryview(bytearray(30_000))
    for wants in (0, 1, 2, 3, 7):
        state = np.array([int(table.batch[0]), 0, 0, 0], np.int64)
        before = None
        while before != state.tolist() and state[0] < len(batches):
            before = state.tolist()
            filled = in_use().write_dump_log(
                columns, valid, table.buffer, records, crc_tables(), len(batches), wants, memoryview(state), buffer
            )
            seen.append((wants, bytes(buffer[:filled]), state.tolist()))
            if state[3] >= 2:  # what is odd is left to the caller, who goes on after it
                state[:] = (state[0] + 1, 0, state[2], 0) if state[3] == 2 else (state[0], 1, state[2] + 1, 0)
    return seen


def groups_in(table: RecordTable) -> list[Any]:
    """What the records say of groups, and numbers for their keys and for rows of integers."""
    if not len(table):
        return []
    records = memoryview(np.ascontiguousarray(table.columns))
    rows = np.empty((len(table), len(GROUP_COLUMNS)), np.int64)
    seen: list[Any] = []
    for first_type in (0, 100):
        in_use().read_group_records(table.buffer, records, first_type, memoryview(rows))
        seen.append(rows.tolist())
    spans = np.stack((table.key_start, table.key_length), axis=1)
    firsts, numbers = np.zeros((2, len(table)), np.int64)
    slots = np.full(1 << (2 * len(table)).bit_length(), -1, np.int64)
    views = [memoryview(each) for each in (slots, firsts, numbers)]
    seen.append((in_use().number_strings(table.buffer, memoryview(spans), 12345, *views), numbers.tolist()))
    known, width = np.zeros_like(rows), len(GROUP_COLUMNS)
    slots[:] = -1
    given = (memoryview(rows), width, 99, views[0], memoryview(known), 0, views[2])
    count = in_use().number_rows(*given)
    slots[:] = -1
    in_use().place_rows(memoryview(known), count, width, 77, views[0])
    return [*seen, count, firsts.tolist(), numbers.tolist(), known[:count].tolist(), slots.tolist()]


def written_anew(table: RecordTable) -> Any:
    """The records as those of another batch, and where they differ from a table over other bytes."""
    if not len(table):
        return None
    try:
        encoded = bytes(encode_records(table, max(int(table.offset[0]) - 3, -(2**63)), int(table.timestamp[0])))
    except UnsupportedError as error:
        return str(error)
    other = bytearray(table.buffer)
    for at in range(0, len(other), 97):
        other[at] ^= 1
    columns = memoryview(np.ascontiguousarray(table.columns))
    rows = [-1]
    while (row := in_use().find_other_record(table.buffer, columns, other, columns, rows[-1] + 1)) >= 0:
        rows.append(row)
    return encoded, rows, in_use().find_other_record(table.buffer, columns, table.buffer, columns, 0)


def in_use() -> SimpleNamespace:
    """The functions of the twin that serves now."""
    return SimpleNamespace(**_serving)


def searched(log: bytes) -> list[Any]:
    """What the kernel says of a log: where headers come next, where batches end, and what headers add up to."""
    status = np.zeros(3, np.int64)
    seen: list[Any] = [
        in_use().find_candidate(log, start, len(log), 0, len(log) - start) for start in (1, len(log) // 2)
    ]
    sums = np.zeros(len(HEADER_SUMS), np.int64)
    for end, most in ((len(log), 2**62), (len(log), 5), (min(90, len(log)), 2**62)):
        sums[HEADER_SUMS.index("least_offset")] = 0
        seen += [in_use().sum_headers(log, 0, end, 0, most, memoryview(sums)), sums.tolist()]
    targets = [0, 1, len(log)]
    for end in (70, len(log)):
        for target in targets:
            seen.append(in_use().skip_batches(log, 0, min(end, len(log)), len(log), target, memoryview(status)))
            seen.append(status.tolist())
            if len(targets) < 9 and status[0]:
                targets += [int(status[0]) - 1, int(status[0])]
    return seen


def doubts(batches: BatchTable, table: RecordTable) -> tuple[int, int, int, int]:
    """Which rows the quick checks do not pass, which key belongs elsewhere, and where the chain of offsets breaks."""
    columns, records = (memoryview(np.ascontiguousarray(each.columns)) for each in (batches, table))
    record = in_use().find_doubtful_record(table.buffer, records, columns, 5000, crc_tables()) if len(table) else -1
    misplaced = in_use().find_misplaced_record(table.buffer, records, columns, 1, 3, 0) if len(table) else -1
    break_at = in_use().find_chain_break(columns, int(batches.base_offset[0]), int(batches.leader_epoch[0]))
    return in_use().find_doubtful_header(columns, 2**62), record, misplaced, break_at


def found_in(table: RecordTable) -> list[list[int]]:
    """Where some bytes lie in the values, among them all of the first, one more, and none at all."""
    values = np.flatnonzero(table.value_length >= 0)
    fields = np.stack((table.value_start[values], (table.value_start + table.value_length)[values]), axis=1)
    places = np.full(len(values), -7, np.int64)
    seen = []
    first = bytes(table.buffer[slice(*fields[0])])[:2000] if len(values) else b""
    for wanted in (first, first + b"\0", first[len(first) // 2 :], b"e", b"\0\0", b""):
        in_use().find_in_fields(table.buffer, memoryview(fields), memoryview(wanted), memoryview(places))
        seen.append(places.tolist())
    return seen


def logs_of_brokers() -> list[Any]:
    """Logs of every format and codec, their first 60 KB: it is the plain twin that takes its time."""
    return [
        pytest.param(path, id=str(path.relative_to(folder)))
        for folder in (DATA_DIR, SHARED_CORPUS)
        if folder.is_dir()
        for path in sorted(folder.glob("*/*/*/*.log"))
        if path.stat().st_size
    ]


def assert_twins_agree(log: bytes, chunk_bytes: int) -> None:
    assert KERNEL_IS_COMPILED, "KAFKALOG_REQUIRE_COMPILED_KERNEL is set and the kernel is not compiled"
    with kernel_in_use(INSTALLED_FUNCTIONS):
        compiled_saw = observed(log, chunk_bytes)
    with kernel_in_use(PLAIN_FUNCTIONS):
        plain_saw = observed(log, chunk_bytes)
    assert compiled_saw == plain_saw


@needs_both
@pytest.mark.parametrize("path", logs_of_brokers())
def test_twins_agree_on_the_logs_of_brokers(path: Path) -> None:
    assert_twins_agree(path.read_bytes()[:60_000], 20_000)


@needs_both
@pytest.mark.parametrize("seed", range(4))
def test_twins_agree_on_damaged_logs_under_right_crcs(seed: int) -> None:
    for number in range(120):
        for name, content in case(seed, number).files.items():
            if name.endswith(".log"):
                assert_twins_agree(content, 400)


@needs_both
def test_twins_agree_on_bytes_that_were_hit() -> None:
    chance = random.Random(11)
    sound = b"".join(
        [*batches(3), wrapper(1, 9), wrapper(0, 12, codec=2), batch(15, codec=4),
         batch(18, [b"\xff\xfe" * 20, None, b""]), batch(21, headers=((b"k", None), (b"\xff", b"v")), attributes=0x30)]
    )  # fmt: skip
    for _ in range(250):
        hit = bytearray(sound)
        for _ in range(chance.randrange(1, 4)):
            hit[chance.randrange(len(hit))] = chance.randrange(256)
        assert_twins_agree(bytes(hit[: chance.randrange(len(hit)) if chance.random() < 0.2 else None]), 500)


@needs_both
@pytest.mark.parametrize("module", COMPILED_MODULES)
def test_twins_have_the_same_names(module: str) -> None:
    def names(twin: Twin) -> set[str]:
        """Without those that a plain module takes from others, and a compiled one has from their .pxd files."""
        return {name for name in vars(twin[module]) if not name.startswith("_")} - taken

    taken = {name for each in SHARED for name in vars(import_module(f"format.kernel.{each}"))}
    assert names(INSTALLED) == names(PLAIN)
    assert names(PLAIN)
    assert not str(INSTALLED[module].__file__).endswith(".py")
    assert str(PLAIN[module].__file__).endswith(".py")


# -- what the kernel's shortcuts promise, whichever twin runs --------------------------------------------------


def test_checksums_of_the_kernel_are_those_of_the_libraries() -> None:
    chance = random.Random(3)
    tables = crc_tables()
    assert len(tables) == 2 * 16 * 256
    for size in (*range(14, 80), 255, 256, 1000):
        log = batch(5, [chance.randbytes(size)]) + wrapper(1, 6, 1) + wrapper(0, 7, 2)
        chunk = next(batch_chunks(BytesSource(log), check_crc=False))
        assert chunk.buffer is not None
        valid = np.full(len(chunk.table), 9, np.int8)
        columns = memoryview(chunk.table.columns)
        assert check_crcs(chunk.buffer, 0, columns, 10**6, tables, memoryview(valid)) == 0
        assert valid.tolist() == [1, 1, 1]
        assert check_crcs(chunk.buffer, 0, columns, 0, tables, memoryview(valid)) == 3
        chunk.table.columns[:, BATCH_COLUMNS.index("crc")] ^= 1
        assert check_crcs(chunk.buffer, 0, columns, 10**6, tables, memoryview(valid)) == 0
        assert valid.tolist() == [0, 0, 0]
    assert (crc32c_of(b"123456789"), crc32_of(b"123456789")) == (0xE3069283, 0xCBF43926)


def test_what_the_quick_checks_pass_has_no_findings(monkeypatch: pytest.MonkeyPatch) -> None:
    """The quick checks look at rows once, in the kernel; the closer look at everything, in numpy."""
    from format.checks import batch_headers, record_contents

    def found(log: bytes, quick: bool) -> list[Any]:
        monkeypatch.setattr(batch_headers, "KERNEL_IS_COMPILED", quick)
        monkeypatch.setattr(record_contents, "KERNEL_IS_COMPILED", quick)
        seen: list[Any] = []
        for chunk in batch_chunks(BytesSource(log), limits=LIMITS):
            open_wrappers(chunk, limits=LIMITS)
            seen += told(check_batch_headers(chunk.table, WHERE, latest_timestamp_ms=2**61))
            check = RecordCheck(WHERE, LIMITS)
            for table in record_tables(chunk, limits=LIMITS):
                seen += told(check.findings(table))
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
    from format.checks import record_contents

    monkeypatch.setattr(record_contents, "KERNEL_IS_COMPILED", False)

    def check(log: bytes) -> None:
        for chunk in batch_chunks(BytesSource(log), limits=LIMITS, check_crc=False):
            for group in batch_groups(chunk.table, np.ones(len(chunk.table), bool)):
                checker = RecordCheck(WHERE, LIMITS)
                tables = list(group_tables(chunk, group, LIMITS, WHERE))
                findings = [code for table in tables for code, *_ in told(checker.findings(table))]
                found = []
                for twin in (PLAIN, INSTALLED):
                    monkeypatch.setattr(record_contents, "count_sound_batches", twin["checks"].count_sound_batches)
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
                problems += [(each.batch, each.records_read, str(each.error)) for each in table.problems]
                findings += told(check.findings(table))
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
    (chunk,) = batch_chunks(BytesSource(log))
    (table,) = record_tables(chunk, limits=Limits(max_decompressed_bytes=96 * 199))
    assert [each.error.code for each in table.problems] == ["limit-exceeded"]
    assert isinstance(table.problems[0].error, KafkaLogError)
