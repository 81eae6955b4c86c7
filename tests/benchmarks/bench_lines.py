"""What a line costs in the kernel alone: JSON, text and Kafka's, of records that are decompressed and indexed already.

    python -m tests.benchmarks.bench_lines LOG

Nanoseconds of processor time for a record, the least of several passes over the first 16 MiB of a log of v2 batches.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from format.io.source import FileSource
from format.limits import MIB
from format.location import Location
from format.log.read_records import record_tables
from format.log.record_table import RecordTable
from format.log.walker import batch_chunks
from format.rows.line_blocks import LineBlock, RowText
from format.rows.record_rows import record_block
from format.verbs.dump_log.log_lines import BulkLines
from format.verbs.dump_log.options import DumpLogOptions
from kafkalog_cli.render.lines import LINE_STYLES

_LOG_BYTES = 16 * MIB
_PASSES = 15


def print_lines(path: Path) -> None:
    """A row for each kind of line."""
    tables: list[RecordTable] = []
    with FileSource(path) as source:
        for chunk in batch_chunks(source, chunk_bytes=MIB):
            tables += record_tables(chunk)
            if chunk.buffer_position > _LOG_BYTES:
                break
    room = memoryview(bytearray(4 * MIB))
    bulk = BulkLines(DumpLogOptions(prints_contents=True))
    print("| lines | bytes of a record's line | ns of processor time |\n| --- | --- | --- |")
    for name, style in LINE_STYLES.items():
        _print_row(name, tables, partial(_line_bytes, RowText(style), room))
    _print_row("dump-log", tables, partial(_kafka_bytes, bulk))


def _line_bytes(text: RowText, room: memoryview, table: RecordTable) -> int:
    """Writes the lines of a table's records; returns their bytes."""
    where = Location("topic-0/00000000000000000000.log", "topic", 0, 0)
    blocks = text.lines(record_block(table, where), lambda: room)
    return sum(len(block.lines) for block in blocks if isinstance(block, LineBlock))


def _kafka_bytes(bulk: BulkLines, table: RecordTable) -> int:
    """Writes the lines of a table's batches and records, all of which must be ordinary; returns their bytes."""
    first, last = int(table.batch[0]), int(table.batch[-1])
    bulk.start(table.batches, first, last + 1, table, 0, is_begun=False)
    written = len(bulk.next_lines())
    while bulk.stop != "done":
        written += len(bulk.next_lines())
    return written


def _print_row(name: str, tables: list[RecordTable], write: Callable[[RecordTable], int]) -> None:
    records = sum(map(len, tables))
    spent = []
    for _ in range(_PASSES):
        started = time.process_time_ns()
        written = sum(map(write, tables))
        spent.append(time.process_time_ns() - started)
    print(f"| {name} | {written / records:.0f} | {min(spent) / records:.0f} |", flush=True)


if __name__ == "__main__":
    print_lines(Path(sys.argv[1]))
