"""Lines that the kernel makes of rows are, byte for byte, those that the renderers make."""

from __future__ import annotations

import io
import itertools
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from format.columns import DECODED_COLUMNS, EXTRA_RECORD_COLUMNS, RowSchema, record_schema
from format.kernel.compiled import KERNEL_IS_COMPILED
from format.location import Location
from format.log.batch_table import BatchTable
from format.log.encode_batches import BatchHeader, encode_batch, encode_message
from format.log.read_records import record_tables
from format.log.record_table import RecordTable
from format.log.walker import batch_chunks
from format.rows import line_blocks
from format.rows.internal_record_rows import decode_internal
from format.rows.line_blocks import LineBlock, RowText, have_last_offsets
from format.rows.record_rows import RowBlock, batch_block, record_block
from format.scan.selection import Selection
from format.verbs.dump import DumpTerms, dump_lines
from kafkalog_cli.output import OutputStream
from kafkalog_cli.render.formats import open_renderer
from kafkalog_cli.render.lines import LINE_STYLES
from tests.building import batch, wrapper
from tests.corpora import Corpus
from tests.dumping import dump
from tests.kafkalog_cli.hostile import HOSTILE_BYTES, byte_strings, texts
from tests.record_encoder import NewRecord, encode_record
from tests.sources import BytesSource

pytestmark = pytest.mark.long

STYLES = tuple(LINE_STYLES)
PLACES = (Location("x.log", "topic", 0, 0), Location("x.log", 'to"pic\n', None, None), Location("x.log"))


def rendered(format_name: str, blocks: Iterable[Any]) -> bytes:
    """What the renderer makes of blocks, lines passed on as they are."""
    buffer = io.BytesIO()
    output = OutputStream(buffer, "<test>")
    renderer = open_renderer(format_name, output, aside=print)
    for block in blocks:
        if isinstance(block, LineBlock):
            renderer.write_raw(block.schema, block.lines, block.row_count)
        elif isinstance(block, RowBlock) and block.row_count:
            renderer.write(block.schema, block.rows)
    output.flush()
    return buffer.getvalue()


def made(format_name: str, table: RecordTable | BatchTable, place: Location, room_bytes: int) -> Iterator[Any]:
    """A table's lines, through a buffer of so many bytes, and rows where a record is too long for it."""
    buffer = memoryview(bytearray(room_bytes))
    block = batch_block(table, place) if isinstance(table, BatchTable) else record_block(table, place, *wide(place))
    return RowText(LINE_STYLES[format_name]).lines(block, lambda: buffer)


def wide(place: Location) -> tuple[RowSchema, int | None]:
    """At two of the places all columns that records can have, the log start offset known at one of them."""
    extra = frozenset(column.name for column in (*EXTRA_RECORD_COLUMNS, *DECODED_COLUMNS) if place.base_offset != 0)
    return record_schema(extra), 2 if place.topic is not None else None


def with_decoded(table: RecordTable) -> RecordTable:
    """Half of the tables with decoded columns, whose texts are JSON of the hostile values themselves."""
    if len(table) % 2:
        return table
    decoded = np.full((len(table), len(DECODED_COLUMNS)), None)
    for row in range(len(table)):
        for column, content in ((0, table.key(row)), (3, table.value(row))):
            if content is not None:
                text = json.dumps({"%s": content.decode("utf-8", "replace")}, ensure_ascii=False)
                schema_id = (row, "0f5c", None, '%"\n')[row % 4]
                decoded[row, column : column + 3] = (text, schema_id, ("avro", 'connect-"x')[row % 2])
    return replace(table, decoded=decoded)


def assert_same_lines(log: bytes, room_bytes: int = 1 << 16) -> int:
    """Every batch and record of a log, in all styles and at all places; how many rows there were."""
    count = 0
    for chunk in batch_chunks(BytesSource(log), check_crc=len(log) % 2 == 0):
        for style in STYLES:
            for place in PLACES:
                if have_last_offsets(chunk.table):
                    got = rendered(style, made(style, chunk.table, place, max(room_bytes, 4096)))
                    assert got == rendered(style, [batch_block(chunk.table, place)])
                for table in map(with_decoded, record_tables(chunk)):
                    got = rendered(style, made(style, table, place, room_bytes))
                    assert got == rendered(style, [record_block(table, place, *wide(place))])
                    count += len(table)
    return count


def test_hostile_keys_values_and_headers() -> None:
    log = b"".join(
        encode_batch(
            BatchHeader(number, 0, 1),
            encode_record(NewRecord(0, 0, content, HOSTILE_BYTES[-number], ((content, content), (b"h", None)))),
        )
        for number, content in enumerate(HOSTILE_BYTES)
    )
    assert assert_same_lines(log) == 9 * len(HOSTILE_BYTES)


def test_every_character() -> None:
    characters = "".join(chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000)
    step = 4096 if KERNEL_IS_COMPILED else 65536
    parts = [characters[:0x3000], *(characters[start : start + 512] for start in range(0, len(characters), step))]
    values = [part.encode() for part in parts]
    assert assert_same_lines(batch(0, values, key=None), 1 << 17) == 9 * len(values)


def test_every_byte_at_every_place_of_a_block() -> None:
    """C copies plain text in blocks of 8 bytes: what ends one may stand anywhere in it."""
    values = [b"a" * before + bytes((byte,)) + b"b" * (17 - before) for before in range(18) for byte in range(256)]
    assert assert_same_lines(batch(0, values, key=None), 1 << 17) == 9 * len(values)


def test_every_mix_of_what_takes_a_backslash() -> None:
    values = [b"x" + b"".join(mix) + b"y" for mix in itertools.product((b"a", b'"', b"\\"), repeat=8)]
    assert assert_same_lines(batch(0, values, key=None), 1 << 17) == 9 * len(values)


contents = st.none() | byte_strings | texts.map(lambda text: text.encode("utf-8", "surrogateescape"))
small_numbers = st.integers(-(2**31), 2**31 - 1)


@st.composite
def batches_of_records(draw: st.DrawFn) -> bytes:
    """A v2 batch, or a v0 or v1 message, with anything in it."""
    magic = draw(st.sampled_from((2, 2, 2, 0, 1)))
    if magic < 2:
        timestamp = draw(st.integers(-(2**63), 2**63 - 1))
        offset = draw(st.integers(0, 2**63 - 1))
        key, value = draw(contents), draw(contents)
        return encode_message(magic, offset, key, value, timestamp=timestamp)
    headers = st.lists(st.tuples(byte_strings, contents), max_size=3).map(tuple)
    records = [
        NewRecord(number, draw(st.integers(-(2**40), 2**40)), draw(contents), draw(contents), draw(headers))
        for number in range(draw(st.integers(0, 4)))
    ]
    header = BatchHeader(
        base_offset=draw(st.integers(0, 2**62)),
        last_offset_delta=draw(st.integers(0, 2**31 - 1)),
        record_count=len(records),
        base_timestamp=draw(st.integers(-(2**62), 2**62)),
        max_timestamp=draw(st.integers(-(2**63), 2**63 - 1)),
        leader_epoch=draw(small_numbers),
        attributes=draw(st.sampled_from((0, 8, 0x10, 0x20, 0x30, 0x40, 0x78))),
        producer_id=draw(st.integers(-(2**63), 2**63 - 1)),
        producer_epoch=draw(st.integers(-(2**15), 2**15 - 1)),
        base_sequence=draw(st.sampled_from((-1, 0, 2**31 - 2, 2**31 - 1)) | small_numbers),
    )
    codec = draw(st.sampled_from((0, 0, 1, 2, 3, 4)))
    return encode_batch(header, b"".join(map(encode_record, records)), codec=codec)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(batches_of_records(), max_size=4), st.sampled_from((700, 1500, 1 << 16)))
def test_anything_that_can_be_read(parts: list[bytes], room_bytes: int) -> None:
    assert_same_lines(b"".join(parts), room_bytes)


# -- the whole way ---------------------------------------------------------------------------------------------


@pytest.mark.skipif(not KERNEL_IS_COMPILED, reason="lines are made so only by a compiled kernel")
@pytest.mark.parametrize("format_name", STYLES)
@pytest.mark.parametrize("records", [False, True])
def test_dump_gives_the_same_by_rows_by_lines_and_by_processes(
    shipped_corpus: Corpus, format_name: str, records: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(line_blocks, "KERNEL_IS_COMPILED", True)
    monkeypatch.setattr("format.scan.drivers.is_worth_sharing", lambda *_: True)
    monkeypatch.setattr("format.verbs.dump.DUMP_CHUNK_BYTES", 10_000)
    log_dir = shipped_corpus.log_dirs[0]
    for decodes in (False, True):
        terms = DumpTerms(records, decodes_internal=decodes)
        blocks = dump(log_dir, records=records)
        by_rows = rendered(format_name, decode_internal(blocks) if decodes else blocks)
        assert by_rows.count(b"\n") > 20
        assert rendered(format_name, dump_lines([log_dir], terms, LINE_STYLES[format_name])) == by_rows
        assert rendered(format_name, dump_lines([log_dir], terms, LINE_STYLES[format_name], jobs=2)) == by_rows


def test_damage_stands_between_the_same_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(line_blocks, "KERNEL_IS_COMPILED", True)
    monkeypatch.setattr("format.scan.drivers.is_worth_sharing", lambda *_: True)
    monkeypatch.setattr("format.verbs.dump.DUMP_CHUNK_BYTES", 700)
    log = bytearray(b"".join(wrapper(1, n * 3) if n % 9 == 4 else batch(n * 3, codec=n % 5) for n in range(90)))
    for position in (900, 4000, len(log) - 40):
        log[position] ^= 0x55
    path = tmp_path / "t-0" / "00000000000000000000.log"
    path.parent.mkdir()
    path.write_bytes(log)
    for records in (False, True):
        for selection in (Selection(), Selection(from_offset=50), Selection(from_offset=50, to_offset=60)):
            terms = DumpTerms(records, selection)
            style = LINE_STYLES["jsonl"]
            by_rows = as_given(dump(path, records=records, selection=selection))
            assert as_given(dump_lines([path], terms, style)) == by_rows
            assert as_given(dump_lines([path], terms, style, jobs=2)) == by_rows
            for limit in (1, 7, 10_000):
                limited = as_given(dump_lines([path], terms, style, limit=limit, jobs=2))
                assert limited == cut(by_rows, limit)


def as_given(items: Iterable[Any]) -> list[Any]:
    """Lines one by one, and findings between them."""
    seen: list[Any] = []
    for item in items:
        if isinstance(item, (LineBlock, RowBlock)):
            seen += rendered("jsonl", [item]).splitlines()
        else:
            seen.append((item.code, str(item.location), item.message))
    return seen


def cut(items: list[Any], limit: int) -> list[Any]:
    """Up to the last of so many lines."""
    lines = [number for number, item in enumerate(items) if isinstance(item, bytes)]
    return items if len(lines) < limit else items[: lines[limit - 1] + 1]
