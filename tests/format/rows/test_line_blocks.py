"""Lines of JSON, of text and of Kafka's tool, as the kernel that is installed writes them, against Python's own means.

The compiled kernel takes 16 bytes at a time where so many may be read. So bytes that need an escape are at every
place of values of many lengths, and values end where the buffer does.
"""

from __future__ import annotations

import json
import random

import numpy as np

from format.kernel.tables import RECORD_COLUMNS
from format.location import Location
from format.log.batch_chunk import BatchChunk
from format.log.read_records import record_tables
from format.log.record_table import RecordTable
from format.log.walker import batch_chunks
from format.rows.line_blocks import LineBlock, RowText, in_lines
from format.rows.record_rows import record_block
from format.verbs.dump_log.log_lines import BulkLines
from format.verbs.dump_log.options import DumpLogOptions
from kafkalog_cli.render.lines import LINE_STYLES
from kafkalog_cli.render.text import logfmt_string
from tests.building import batch
from tests.sources import BytesSource

#: What is put between plain letters: all that is escaped, and characters of two, three and four bytes.
_ODD = ('"', "\\", "\n", "\0", "\x1f", "\x7f", "é", "…", "𝄞", "\u202e", '""', '\\"')
_NUMBERS = sorted(
    {sign * (10**power + more) for power in range(19) for more in (-1, 0, 1) for sign in (1, -1)}
    | {0, 2**63 - 1, -(2**63), 1_700_000_000_123, 99_999_999, 12_345_678, 10**16 - 1, 10**8 * 10**8 + 7}
)


def texts() -> list[str]:
    """Texts of up to 70 characters, with each odd piece at each place of some of them, and at random places."""
    chance = random.Random(5)
    plain = "".join(chr(0x20 + number % 95) for number in range(95) if chr(0x20 + number) not in '"\\')
    found = [plain[:length] for length in range(70)]
    for odd in _ODD:
        found += [
            plain[:at] + odd + plain[at:length] for length in (0, 7, 8, 15, 16, 17, 33) for at in range(length + 1)
        ]
    for _ in range(300):
        pieces = chance.choices((*plain, *_ODD), k=chance.randrange(70))
        found.append("".join(pieces))
    return found


def table_of(values: list[bytes]) -> tuple[BatchChunk, RecordTable]:
    (chunk,) = batch_chunks(BytesSource(batch(5, values, codec=4)))
    (table,) = record_tables(chunk)
    return chunk, table


def lines_of(table: RecordTable, style: str) -> list[str]:
    room = memoryview(bytearray(20_000))
    made = in_lines([record_block(table, Location("a-0/x.log", "a", 0, 0))], RowText(LINE_STYLES[style]), lambda: room)
    return b"".join(bytes(each.lines) for each in made if isinstance(each, LineBlock)).decode().split("\n")[:-1]


def test_a_value_at_the_end_of_the_buffer() -> None:
    text = 'sixteen letters, "quotes" \\ and\nmore "letters" still'
    for length in range(len(text)):
        _, table = table_of([text[:length].encode()])
        (line,) = lines_of(table, "jsonl")
        assert json.loads(line)["value"] == text[:length]


def test_json_is_what_a_parser_reads_back() -> None:
    values = texts()
    _, table = table_of([each.encode() for each in values])
    lines = lines_of(table, "jsonl")
    assert [json.loads(line)["value"] for line in lines] == values
    assert all(line.isprintable() for line in lines)


def test_text_is_what_the_renderer_writes() -> None:
    values = texts()
    _, table = table_of([each.encode() for each in values])
    for line, value in zip(lines_of(table, "logfmt"), values, strict=True):
        assert f" value={logfmt_string(value)} headers=" in line


def test_csv_is_what_the_renderer_writes() -> None:
    formulas = [before + text for before in "=+-@'\t＝＋－＠﹢" for text in ("", "1", ',"1"')]
    values = ["", *texts(), *formulas]
    _, table = table_of([each.encode() for each in values])
    write = LINE_STYLES["csv"].writers["bytes"]
    for line, value in zip(lines_of(table, "csv"), values, strict=True):
        assert f",{write(value.encode())},[]," in line


def test_kafkas_lines_hold_values_as_they_are() -> None:
    values = [each.replace("\n", "") for each in texts()]
    chunk, table = table_of([each.encode() for each in values])
    bulk = BulkLines(DumpLogOptions(prints_contents=True))
    bulk.start(chunk.table, 0, 1, table, 0, is_begun=False)
    lines = bytes(bulk.next_lines()).decode().split("\n")
    assert bulk.stop == "done"
    assert [line.partition(" payload: ")[2] for line in lines[1:-1]] == values
    assert [int(line.split("valueSize: ")[1].split()[0]) for line in lines[1:-1]] == [
        len(value.encode()) for value in values
    ]


def test_kafkas_lines_leave_a_value_that_is_no_utf_8_to_the_caller() -> None:
    for length in (1, 7, 8, 9, 15, 16, 17, 40):
        for at in range(length):
            value = bytearray(b"x" * length)
            value[at] = 0xFF
            chunk, table = table_of([b"sound", bytes(value)])
            bulk = BulkLines(DumpLogOptions(prints_contents=True))
            bulk.start(chunk.table, 0, 1, table, 0, is_begun=False)
            assert bytes(bulk.next_lines()).endswith(b"payload: sound\n")
            assert (bulk.stop, bulk.record) == ("odd-record", 1)


def test_numbers_of_every_length() -> None:
    chance = random.Random(6)
    numbers = _NUMBERS + [chance.getrandbits(chance.randrange(1, 64)) * chance.choice((1, -1)) for _ in range(2000)]
    _, table = table_of([b"v"])
    rows = np.repeat(table.columns, len(numbers), axis=0)
    rows[:, RECORD_COLUMNS.index("offset")] = numbers
    rows[:, RECORD_COLUMNS.index("timestamp")] = numbers[::-1]
    lines = lines_of(RecordTable(table.batches, table.buffer, rows), "logfmt")
    assert [line.split()[3] for line in lines] == [f"offset={number}" for number in numbers]
    assert [line.split()[4] for line in lines] == [f"timestamp={number}" for number in numbers[::-1]]
