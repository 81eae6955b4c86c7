"""Rows of batches and records as lines, written by the kernel straight into a buffer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, lru_cache
from itertools import repeat
from pickle import PickleBuffer
from typing import Any

import msgspec
import numpy as np

from format.columns import (
    BATCH,
    DECODED,
    DECODED_COLUMNS,
    EXTRA_RECORD_COLUMNS,
    RECORD,
    Column,
    Fill,
    RowSchema,
    record_schema,
)
from format.findings import Finding
from format.kernel.compiled import KERNEL_IS_COMPILED
from format.kernel.memory import PIECE_BYTES
from format.kernel.tables import BATCH_COLUMNS, RECORD_COLUMNS
from format.kernel.text import CHARACTER_WORDS, EXPANSIONS, FIELDS, LITERALS, put_batches, put_records
from format.location import Location
from format.log.batch_table import BatchTable
from format.log.record_table import RecordTable
from format.rows.line_style import LINE_FORMATS, LineStyle
from format.rows.record_rows import BELOW_LOG_START, CONSTANT, RowBlock, filled

_ASCII = 128
_MAX_I64 = 2**63 - 1
_MOST_FIELD_BYTES = 32  # of one field of a batch
_BARE = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./:@%+,-"


class _Program(msgspec.Struct, frozen=True):
    """The kernel's description of a line: pieces of text, and the fields between them."""

    pieces: bytes
    fields: memoryview
    record_fields: memoryview  # the kind and column of each field that comes from the record
    literals: memoryview
    most_bytes: int  # of all fields of a row that come from its batch


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


class RowText:
    """Makes lines in one style."""

    def __init__(self, style: LineStyle) -> None:
        self._style = style
        self._tables = _character_tables(style.unsafe_ranges)
        self._status = np.zeros(1, np.int64)
        self._bounds = np.zeros(len(RECORD.columns) + len(EXTRA_RECORD_COLUMNS) + 3, np.int64)
        self._program = lru_cache(16)(self._make_program)

    @classmethod
    def of(cls, style: LineStyle | None) -> RowText | None:
        """The lines of a style; None without one, or if the kernel is not compiled: then rows are written."""
        return None if style is None or not KERNEL_IS_COMPILED else cls(style)

    def __reduce__(self) -> tuple[type[RowText], tuple[LineStyle]]:
        """The state for a pickle: the style, from which the rest is made."""
        return RowText, (self._style,)

    def lines(self, block: RowBlock, room: Callable[[], memoryview]) -> Iterator[LineBlock | RowBlock]:
        """A block as lines, written into what ``room`` returns; it must hold a line of a batch.

        Rows without a table behind them stay rows, and so do records that may be too long for the room, and batches if
        a forged last offset does not fit in 64 bits.
        """
        records, batches = block.records, block.batches
        if block.location is not None and records is not None:
            yield from self._record_lines(block, block.location, records, room)
        elif block.location is not None and batches is not None and have_last_offsets(batches):
            yield from self._batch_lines(block.location, batches, room)
        else:
            yield block

    def _record_lines(
        self, block: RowBlock, location: Location, table: RecordTable, room: Callable[[], memoryview]
    ) -> Iterator[LineBlock | RowBlock]:
        program = self._program(block.schema, location, block.log_start_offset)
        scratch = bytearray(program.most_bytes)
        columns = memoryview(np.ascontiguousarray(table.columns))
        decoded, decoded_ends = self._decoded_texts(block.schema, table)
        batches = memoryview(np.ascontiguousarray(table.batches.columns))
        crc_valid = memoryview(np.ascontiguousarray(table.batches.crc_valid))
        first = 0
        while first < len(table):
            filled = room()
            row = put_records(
                filled, program.fields, program.record_fields, program.literals, program.pieces,
                self._tables, LINE_FORMATS.index(self._style.format_name),
                table.buffer, columns, batches, crc_valid, decoded, decoded_ends, first,
                scratch, memoryview(self._bounds), memoryview(self._status),
            )  # fmt: skip
            if row > first:
                yield LineBlock(block.schema, filled[: int(self._status[0])], row - first)
            else:
                yield block.part(slice(first, first + 1))
            first = max(row, first + 1)

    def _decoded_texts(self, schema: RowSchema, table: RecordTable) -> tuple[bytes, memoryview]:
        """The decoded columns of all records as text of a line, and where each record's text ends."""
        if DECODED_COLUMNS[0] not in schema.columns:
            return b"", memoryview(np.empty(0, np.int64))
        values = np.full((len(table), len(DECODED_COLUMNS)), None) if table.decoded is None else table.decoded
        words: list[Iterable[str]] = []
        for number, column in enumerate(DECODED_COLUMNS):
            words += self._words(schema, column, values[:, number].tolist())
        texts = [text.encode() for text in map("".join, zip(*words, strict=True))]
        ends = np.zeros(len(texts) + 1, np.int64)
        np.cumsum([len(text) for text in texts], out=ends[1:])
        return b"".join(texts), memoryview(ends)

    def _words(self, schema: RowSchema, column: Column, values: list[Any]) -> tuple[Iterable[str], ...]:
        """The label and the value of a decoded column as words of each line."""
        label, null = self._style.label(schema, column.name), self._style.null
        write = self._style.writers[column.type]
        if column.type != "json":  # names and ids repeat
            return (map(lru_cache(256)(lambda value: label + (null if value is None else write(value))), values),)
        joined = "".join(filter(None, values))
        if self._style.format_name == "csv" or not (joined.isascii() and joined.isprintable()):  # else nothing changes
            values = [None if value is None else write(value) for value in values]
        return repeat(label, len(values)), [null if value is None else value for value in values]

    def _batch_lines(
        self, location: Location, table: BatchTable, room: Callable[[], memoryview]
    ) -> Iterator[LineBlock]:
        program = self._program(BATCH, location, None)
        batches = memoryview(np.ascontiguousarray(table.columns))
        crc_valid = memoryview(np.ascontiguousarray(table.crc_valid))
        first = 0
        while first < len(table):
            filled = room()
            row = put_batches(
                filled, program.fields, program.literals, program.pieces, batches, crc_valid, first, program.most_bytes,
                memoryview(self._bounds), memoryview(self._status),
            )  # fmt: skip
            if row == first:
                raise ValueError(f"there is no room for a line of {program.most_bytes} bytes")
            yield LineBlock(BATCH, filled[: int(self._status[0])], row - first)
            first = row

    def _make_program(self, schema: RowSchema, location: Location, log_start_offset: int | None) -> _Program:
        style = self._style
        pieces = bytearray()
        fields: list[tuple[int, int, int, int]] = []
        start = 0
        pieces += style.start(schema).encode()
        for name in schema.names:
            fill = filled(schema, name)
            if fill.kind == DECODED:
                if name == DECODED_COLUMNS[0].name:  # all of them are one text
                    fields.append((start, len(pieces), FIELDS.index(DECODED), 0))
                    start = len(pieces)
                continue
            pieces += style.label(schema, name).encode()
            is_unknown = fill.kind == BELOW_LOG_START and log_start_offset is None
            if fill.kind == CONSTANT or is_unknown:
                value = None if is_unknown else getattr(location, str(fill.source))
                word = style.null if value is None else style.string(value) if isinstance(value, str) else str(value)
                pieces += word.encode()
                continue
            fields.append((start, len(pieces), FIELDS.index(fill.kind), _column_number(fill, log_start_offset)))
            start = len(pieces)
        pieces += style.end.encode()
        fields.append((start, len(pieces), FIELDS.index("end"), 0))
        literals: list[tuple[int, int]] = []
        for literal in _literal_words(style):
            literals.append((len(pieces), len(pieces) + len(literal)))
            pieces += literal
        pieces += bytes(PIECE_BYTES)  # past the last, as the kernel copies in blocks
        most_bytes = len(pieces) + _MOST_FIELD_BYTES * len(fields)
        first_of_record = FIELDS.index("record-number")
        record_fields = [(kind, column) for _, _, kind, column in fields if kind >= first_of_record]
        return _Program(
            bytes(pieces), _matrix(fields), _matrix(record_fields or [(0, 0)]), _matrix(literals), most_bytes
        )


def have_last_offsets(table: BatchTable) -> bool:
    """Whether every last offset fits in 64 bits; forged ones may not."""
    base, delta = table.base_offset, table.last_offset_delta
    fits = np.where(delta > 0, base <= _MAX_I64 - delta, base >= -_MAX_I64 - delta)
    return bool(fits.all())


def _column_number(fill: Fill, log_start_offset: int | None) -> int:
    if fill.kind == BELOW_LOG_START:
        return log_start_offset or 0
    if isinstance(fill.source, int):
        return fill.source
    names = RECORD_COLUMNS if fill.kind.startswith("record-") else BATCH_COLUMNS
    return names.index(fill.source) if fill.source else 0


def _matrix(rows: Sequence[tuple[int, ...]]) -> memoryview:
    return memoryview(np.array(rows, np.int64))


def _literal_words(style: LineStyle) -> Iterator[bytes]:
    own = {"null": style.null.encode(), "false": b"false", "true": b"true"}
    for name in LITERALS:
        yield own[name] if name in own else style.string(name).encode()


@cache
def _character_tables(unsafe_ranges: tuple[tuple[int, int], ...]) -> bytes:
    """How the kernel writes each byte, the words that it needs, and a bit for each character that is escaped."""
    json = bytearray(_ASCII) + bytes((1,)) * _ASCII  # what is not ASCII needs a closer look
    text = bytearray(json)
    for code in (*range(0x20), 0x7F):
        json[code], text[code] = ord("u"), ord("x")
    for character, letter in (('"', '"'), ("\\", "\\"), ("\n", "n"), ("\r", "r"), ("\t", "t")):
        json[ord(character)] = text[ord(character)] = ord(letter)
    json[0x08], json[0x0C] = ord("b"), ord("f")
    bare = bytearray(2 * _ASCII)
    for code in _BARE:
        bare[code] = 1
    is_unsafe = np.zeros(0x110000, np.uint8)
    for first, last in unsafe_ranges:
        is_unsafe[first : last + 1] = 1
    bits = np.packbits(is_unsafe, bitorder="little").tobytes()
    return b"".join((EXPANSIONS, json, text, bare, *CHARACTER_WORDS, bits))


def in_lines(
    blocks: Iterable[RowBlock | Finding], text: RowText | None, room: Callable[[], memoryview]
) -> Iterator[Block]:
    """Blocks as lines where possible, as they are without ``text``; ``room`` returns memory to write the lines into."""
    for block in blocks:
        yield from (block,) if text is None or isinstance(block, Finding) else text.lines(block, room)
