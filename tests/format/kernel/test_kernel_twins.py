"""The kernel's twins, the compiled one and the Python file as it is: the same columns, the same errors, the same text.

Each input goes through everything that the kernel has a part in, once with each twin in its place, and what comes
out must be the same to the last byte.
"""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from format.checks.batches import OffsetChain, check_batch_headers
from format.checks.records import RecordCheck, sound_records
from format.codecs.checksums import crc_tables
from format.columns import DECODED_NAMES, RECORD, record_schema
from format.errors import UnsupportedError
from format.kernel.compiled import COMPILED_MODULES, KERNEL_IS_COMPILED
from format.kernel.tables import GROUP_COLUMNS, HEADER_SUMS, OTHER_COLUMNS, SEGMENT_COLUMNS
from format.log.batch_chunk import BatchChunk, batch_ranges
from format.log.batch_table import BatchTable
from format.log.encode_batches import encode_records
from format.log.read_records import batch_groups, record_tables
from format.log.record_table import RecordTable
from format.log.walker import batch_chunks, header_chunks
from format.rows.line_blocks import LineBlock, RowText, in_lines
from format.rows.record_rows import batch_block, record_block
from kafkalog_cli.render.lines import LINE_STYLES
from tests.building import batch, batches, wrapper
from tests.corpora import DATA_DIR, SHARED_CORPUS
from tests.faults.mutations import case
from tests.format.kernel.twins import INSTALLED, LIMITS, PLAIN, WHERE, Twin, shown
from tests.sources import BytesSource

pytestmark = pytest.mark.long

Functions = dict[str, Any]  # what they offer to other packages, by name

needs_both = pytest.mark.skipif(
    not KERNEL_IS_COMPILED and os.environ.get("KAFKALOG_REQUIRE_COMPILED_KERNEL") != "1",
    reason="there is no compiled kernel here to compare with",
)
#: Modules that are never compiled, and that the others take from.
SHARED = ("crc", "descriptors", "header_layout", "memory", "numbers", "tables", "utf8")
#: Modules that use a function which nothing imported above uses.
for user in (
    "checks.records",
    "decoding.avro",
    "internal_topics.record_check",
    "rewriting.read_back",
    "rows.arrow_columns",
    "state.groups",
    "verbs.ls.partition_listing",
    "verbs.dump_log.log_lines",
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


def lines_of(chunk: BatchChunk, tables: list[RecordTable]) -> list[bytes]:
    """Every row as text in all styles, through a buffer that is soon full."""
    found = []
    buffer = memoryview(bytearray(3000))
    for style in LINE_STYLES.values():
        text = RowText(style)
        blocks = [batch_block(chunk.table, WHERE)]
        for table in tables:
            wide = record_schema(frozenset(("path", "is_below_log_start")) | DECODED_NAMES)
            for schema, start in ((RECORD, None), (wide, 4)):
                blocks.append(record_block(table, WHERE, schema, start))
        made = in_lines(blocks, text, lambda: buffer)
        found += [bytes(each.lines) if isinstance(each, LineBlock) else b"" for each in made]
    return found


def observed(log: bytes, chunk_bytes: int) -> list[Any]:
    """All that a log comes to, in values that can be compared."""
    source = BytesSource(log)
    seen: list[Any] = [list(batch_ranges(source, chunk_bytes))]
    for headers in header_chunks(source, chunk_bytes=chunk_bytes):
        seen.append(("header", columns_of(headers.headers), headers.damage))
    seen += searched(log)
    chain = OffsetChain()
    chain.start_segment(None, None)
    for chunk in batch_chunks(source, limits=LIMITS, chunk_bytes=chunk_bytes):
        seen.append(shown(chain.feed(chunk.table, WHERE)))
        seen.append(("batch", columns_of(chunk.table), chunk.table.crc_valid.tolist(), chunk.damage))
        seen.append(chunk.table.sums)
        seen.append(shown(check_batch_headers(chunk.table, WHERE, latest_timestamp_ms=2**62)))
        everything = np.ones(len(chunk.table), bool)
        seen += [sound_records(chunk, group, LIMITS) for group in batch_groups(chunk.table, everything)]
        tables = []
        for table in record_tables(chunk, which=everything, limits=LIMITS):
            if len(table.columns):
                tables.append(table)
            seen.append(("record", columns_of(table), bytes(table.buffer)))
            seen.append([(each.batch, str(each.error)) for each in table.problems])
            seen.append(shown(RecordCheck(WHERE, LIMITS).findings(table)))
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
    with TemporaryDirectory() as directory:
        for base_offset, content in ((0, log), (7, log), (100, log[:90]), (2**40, b"")):
            for suffix in (".log", ".index", ".timeindex", ".log.deleted", ".snapshot"):
                Path(directory, f"{base_offset:020d}{suffix}").write_bytes(content)
        seen += added_up(directory, log)
    targets = [0, 1, len(log)]
    for end in (70, len(log)):
        for target in targets:
            seen.append(in_use().skip_batches(log, 0, min(end, len(log)), len(log), target, memoryview(status)))
            seen.append(status.tolist())
            if len(targets) < 9 and status[0]:
                targets += [int(status[0]) - 1, int(status[0])]
    return seen


def added_up(directory: str, log: bytes) -> list[Any]:
    """The files of a directory by segments, and what the headers of its logs add up to, from each log on."""
    Path(directory, "a").symlink_to("b")
    Path(directory, f"{2**63:020d}.log").touch()
    names = sorted(os.listdir(directory))
    columns = np.zeros((len(names), len(SEGMENT_COLUMNS)), np.int64)
    others = np.zeros((len(names), len(OTHER_COLUMNS)), np.int64)
    sums, kept, counts = (np.zeros(count, np.int64) for count in (len(HEADER_SUMS), len(HEADER_SUMS), 4))
    fd = os.open(directory, os.O_RDONLY)
    try:
        blob = os.fsencode("\0".join(names) + "\0")
        found = in_use().group_files(fd, blob, memoryview(columns), memoryview(others), memoryview(counts))
        seen: list[Any] = [found, columns.tolist(), others.tolist(), counts.tolist()]
        segments = memoryview(columns[:found])
        room = memoryview(bytearray(len(log) + 1))
        for start in range(found):
            stop = in_use().sum_logs(fd, segments, start, found, room, memoryview(sums), memoryview(kept))
            seen += [stop, sums.tolist()]
        seen.append(in_use().sum_logs(fd, segments, 0, found, room[:-1], memoryview(sums), memoryview(kept)))
        absent = os.fsencode("\0".join([*names, "absent"]) + "\0")
        others = np.zeros((len(names) + 1, len(OTHER_COLUMNS)), np.int64)
        seen.append(in_use().group_files(fd, absent, memoryview(columns), memoryview(others), memoryview(counts)))
    finally:
        os.close(fd)
    return seen


def doubts(batches: BatchTable, table: RecordTable) -> tuple[int, int, int, list[int]]:
    """Which header the quick check does not pass, which key belongs elsewhere, where the chain of offsets breaks."""
    columns, records = (memoryview(np.ascontiguousarray(each.columns)) for each in (batches, table))
    misplaced = in_use().find_misplaced_record(table.buffer, records, columns, 1, 3, 0) if len(table) else -1
    break_at = in_use().find_chain_break(columns, int(batches.base_offset[0]), int(batches.leader_epoch[0]))
    wrong = [in_use().find_wrong_offset(records, columns, first, -1) for first in range(0, len(table), 7)]
    return in_use().find_doubtful_header(columns, 2**62), misplaced, break_at, wrong


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
