"""Rows of batches and records as lines of JSON or text, made by the kernel."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pickle import PickleBuffer

import msgspec

from format.columns import BATCH, RECORD, RowSchema, record_schema
from format.findings import Finding
from format.rows.record_rows import RowBlock
from format.rows.row_text import RowText, have_last_offsets


class LineBlock(msgspec.Struct, frozen=True):
    """Whole lines of rows of one schema, in UTF-8; ``lines`` is valid until the next block is requested."""

    schema: RowSchema
    lines: memoryview
    row_count: int

    def __reduce__(self) -> tuple[object, ...]:
        """In a pickle of protocol 5 the lines are a buffer, which need not be copied."""
        extra = self.schema.names[len(RECORD.names) :] if self.schema.type == RECORD.type else ()
        return _line_block, (self.schema.type, extra, PickleBuffer(self.lines), self.row_count)

    def first(self, count: int) -> LineBlock:
        """A block of the first lines, at most ``count``."""
        if count >= self.row_count:
            return self
        content = bytes(self.lines)
        end = 0
        for _ in range(count):
            end = content.index(b"\n", end) + 1
        return LineBlock(self.schema, self.lines[:end], count)


def _line_block(
    row_type: str, extra: tuple[str, ...], lines: bytes | bytearray | memoryview, row_count: int
) -> LineBlock:
    """The LineBlock of a pickle. A memoryview is kept as it is, so that its owner can release it."""
    view = lines if isinstance(lines, memoryview) else memoryview(lines)
    return LineBlock(record_schema(frozenset(extra)) if row_type == RECORD.type else BATCH, view, row_count)


Block = LineBlock | RowBlock | Finding


def in_lines(
    blocks: Iterable[RowBlock | Finding], text: RowText, room: Callable[[], memoryview]
) -> Iterator[LineBlock | RowBlock | Finding]:
    """Blocks as lines where possible; ``room`` returns the memory that the lines are written into."""
    for block in blocks:
        yield from _lines(block, text, room)


def _lines(block: RowBlock | Finding, text: RowText, room: Callable[[], memoryview]) -> Iterator[Block]:
    """One block as lines where possible."""
    filled = memoryview(b"")

    def next_room() -> memoryview:
        nonlocal filled
        filled = room()
        return filled

    if isinstance(block, Finding) or block.location is None:
        yield block
    elif block.records is not None:
        row = 0
        made = text.record_lines(block.records, block.location, next_room, block.schema, block.log_start_offset)
        for lines in made:
            if lines.length:
                yield LineBlock(block.schema, filled[: lines.length], lines.row_count)
            else:
                yield block.of_records(block.records.rows(slice(row, row + 1)))
            row += lines.row_count
    elif block.batches is not None and have_last_offsets(block.batches):
        for lines in text.batch_lines(block.batches, block.location, next_room):
            yield LineBlock(BATCH, filled[: lines.length], lines.row_count)
    else:
        yield block
