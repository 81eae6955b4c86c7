"""Rows of batches and records as lines of JSON or text, in the process that shows them or on their way to it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from format.columns import BATCH, RECORD, RowSchema
from format.findings import Finding
from format.rows.record_rows import RowBlock, record_block
from format.rows.row_text import RowText, have_last_offsets
from format.scan.workers import SLOT_BYTES, Outbox, SharedBytes


@dataclass(frozen=True, slots=True)
class LineBlock:
    """Whole lines of rows of one schema, in UTF-8; ``lines`` are to be used before the next block is asked for."""

    schema: RowSchema
    lines: memoryview
    row_count: int

    def first(self, count: int) -> LineBlock:
        """The first lines, at most so many."""
        if count >= self.row_count:
            return self
        content = bytes(self.lines)
        end = 0
        for _ in range(count):
            end = content.index(b"\n", end) + 1
        return LineBlock(self.schema, self.lines[:end], count)


@dataclass(frozen=True, slots=True)
class LinesFollow:
    """What a worker sends before the shared bytes of a LineBlock."""

    row_type: str
    row_count: int


Block = LineBlock | RowBlock | Finding


def in_lines(blocks: Iterable[RowBlock | Finding], text: RowText) -> Iterator[Block]:
    """Blocks in lines where that can be, in one buffer that is filled again and again."""
    buffer = memoryview(bytearray(SLOT_BYTES))
    for block in blocks:
        yield from _lines(block, text, lambda: buffer)


def send_lines(block: RowBlock | Finding, text: RowText, outbox: Outbox) -> None:
    """A block from a worker, in lines where that can be."""
    for item in _lines(block, text, outbox.room):
        if isinstance(item, LineBlock):
            outbox.send(LinesFollow(item.schema.type, item.row_count))
            outbox.send_room(len(item.lines))
        elif isinstance(item, RowBlock):
            outbox.send(RowBlock(item.schema, list(item.rows), item.location))
        else:
            outbox.send(item)


def received_lines(item: LinesFollow, items: Iterator[object]) -> Iterator[LineBlock]:
    """The lines that a worker told of: they come next."""
    shared = next(items)
    if not isinstance(shared, SharedBytes):
        raise TypeError(f"{shared!r} came for lines")
    yield LineBlock(RECORD if item.row_type == RECORD.type else BATCH, shared.view, item.row_count)
    shared.view.release()


def _lines(block: RowBlock | Finding, text: RowText, room: Callable[[], memoryview]) -> Iterator[Block]:
    """A block in lines where that can be; ``room`` gives what they are written into."""
    filled = memoryview(b"")

    def next_room() -> memoryview:
        nonlocal filled
        filled = room()
        return filled

    if isinstance(block, Finding) or block.location is None:
        yield block
    elif block.records is not None:
        row = 0
        for lines in text.record_lines(block.records, block.location, next_room):
            if lines.length:
                yield LineBlock(RECORD, filled[: lines.length], lines.row_count)
            else:
                yield record_block(block.records.rows(slice(row, row + 1)), block.location)
            row += lines.row_count
    elif block.batches is not None and have_last_offsets(block.batches):
        for lines in text.batch_lines(block.batches, block.location, next_room):
            yield LineBlock(BATCH, filled[: lines.length], lines.row_count)
    else:
        yield block
