"""Batch headers and CRCs: single headers, tables of consecutive headers, and CRCs computed from the bytes."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import numpy as np
from numpy.typing import NDArray

from format import layout
from format.codecs.checksums import crc32_of, crc32c_function, crc32c_of, crc_tables
from format.io.source import Source
from format.kernel.checks import check_crcs
from format.kernel.compiled import KERNEL_IS_COMPILED
from format.kernel.headers import hop
from format.log.batch_table import BATCH_COLUMN, BatchTable, HeaderTable
from format.wording import counted_plainly

_WINDOW_BYTES = 1024 * 1024
_READ_BYTES = 64 * 1024
HEADER_BYTES = layout.RECORD_BATCH.size_bytes
MAGIC_AT = layout.RECORD_BATCH.offset_of("magic")
_LAST_DELTA = slice(layout.RECORD_BATCH.offset_of("last_offset_delta"), layout.RECORD_BATCH.offset_of("base_timestamp"))
CRC_BYTES = layout.RECORD_BATCH.offset_of("attributes") - layout.RECORD_BATCH.offset_of("crc")


class Header(msgspec.Struct, frozen=True):
    """The place and the offsets of a batch, by its header; ``is_wrapper`` marks a compressed v0/v1 message.

    The header of a wrapper has only its last offset, which is the value of both fields.
    """

    position: int
    size_bytes: int
    magic: int
    base_offset: int
    last_offset: int
    is_wrapper: bool

    @property
    def end_position(self) -> int:
        return self.position + self.size_bytes

    def is_followed_by(self, other: Header) -> bool:
        """Whether the offsets of the other batch start where those of this one end."""
        return not other.is_wrapper and other.base_offset == self.last_offset + 1


def read_header(source: Source, position: int) -> Header | None:
    """Read the header at a position; None if the bytes cannot be a header of any format."""
    header = source.read_at(position, HEADER_BYTES)
    if len(header) < layout.MESSAGE_V0.size_bytes:
        return None
    base_offset, length = layout.LOG_ENTRY.struct.unpack_from(header)
    magic = header[MAGIC_AT]
    size_bytes = layout.LOG_ENTRY.size_bytes + length
    if magic > 2 or base_offset < 0 or length < layout.MIN_MESSAGE_LENGTH:
        return None
    if magic == 2:
        if size_bytes < HEADER_BYTES or len(header) < HEADER_BYTES:
            return None
        delta = int.from_bytes(header[_LAST_DELTA], "big", signed=True)
        return Header(position, size_bytes, magic, base_offset, base_offset + delta, False)
    attributes = header[layout.MESSAGE_V0.offset_of("attributes")]
    if attributes > 0x0F or (magic == 1 and length < layout.MIN_V1_MESSAGE_LENGTH):
        return None
    return Header(position, size_bytes, magic, base_offset, base_offset, bool(attributes & layout.CODEC_MASK))


def no_batch_words(stop: str, header: memoryview) -> str:
    """The reason why no batch starts with these bytes; ``stop`` is one of the kernel's HOP_STOPS."""
    if stop == "more-bytes":
        return f"the file ends after {counted_plainly(len(header), 'byte')} of a batch header"
    if stop == "bad-magic":
        magic = int.from_bytes(header[MAGIC_AT : MAGIC_AT + 1], "big", signed=True)
        return f"no batch starts here: its magic would be {magic}"
    _, length = layout.LOG_ENTRY.struct.unpack_from(header)
    return f"no batch starts here: its length would be {length}"


def has_right_crc(source: Source, position: int, size_bytes: int, magic: int) -> bool:
    """Whether the stored CRC of a batch or message matches its bytes, which are read in windows."""
    stored_at, covered_from, is_v2 = crc_fields(magic)
    stored = int.from_bytes(source.read_at(position + stored_at, CRC_BYTES), "big")
    return crc_in_file(source, position + covered_from, position + size_bytes, is_v2=is_v2) == stored


def crc_in_file(source: Source, start: int, stop: int, *, is_v2: bool) -> int | None:
    """The CRC of the bytes from ``start`` to ``stop``, which are read in windows; None if the file is shorter."""
    crc_of, crc = crc32c_of if is_v2 else crc32_of, 0
    while start < stop:
        part = source.read_at(start, min(_WINDOW_BYTES, stop - start))
        if not part:
            return None
        crc = crc_of(part, crc)
        start += len(part)
    return crc


def crc_fields(magic: int) -> tuple[int, int, bool]:
    """The position of the CRC in a batch, the first byte that it covers, and whether it is a CRC-32C (v2)."""
    if magic < 2:
        return layout.MESSAGE_V0.offset_of("crc"), layout.MESSAGE_V0.offset_of("magic"), False
    return layout.RECORD_BATCH.offset_of("crc"), layout.RECORD_BATCH.offset_of("attributes"), True


def headers_in(buffer: memoryview, position: int) -> HeaderTable:
    """The consecutive batches from the start of a buffer on, as far as it has their headers.

    ``position`` is the position of the buffer in the file. The last batch may not be whole.
    """
    most = len(buffer) // layout.MESSAGE_V0.size_bytes + 1
    columns, status = np.empty((most, len(BATCH_COLUMN)), np.int64), np.array((0, 0, -1), np.int64)
    count = hop(buffer, 0, len(buffer), position, memoryview(columns), 0, memoryview(status))
    return HeaderTable(columns[:count])


def header_tables(source: Source, start: int, stop: int) -> Iterator[HeaderTable]:
    """The whole batches between two positions, up to the first bytes that are not a header. CRCs are not checked."""
    while start < stop:
        table = headers_in(memoryview(source.read_at(start, min(_READ_BYTES, stop - start))), start)
        table = table.rows(slice(0, int(np.searchsorted(table.end_position, stop, "right"))))
        if not len(table):
            return
        yield table
        start = int(table.end_position[-1])


#: Up to this size the kernel computes the CRC of a batch faster than a library can be called.
_SMALL_BATCH_BYTES = 1024
#: The first byte that the CRC covers; the last one is the end of the batch.
_CRC_START_V2 = layout.RECORD_BATCH.offset_of("attributes")
_CRC_START_LEGACY = layout.MESSAGE_V0.offset_of("magic")


def checked_crcs(table: HeaderTable | BatchTable, buffer: memoryview, buffer_position: int) -> NDArray[np.int8]:
    """Which CRCs are right (1, else 0); all batches must be whole in ``buffer``, which starts at ``buffer_position``.

    The CRC of v2 is a CRC-32C from the attributes on (KIP-98), that of v0 and v1 a CRC-32 from the magic on.
    """
    valid = np.full(len(table), -1, np.int8)
    large: slice | NDArray[np.intp] = slice(None)
    if KERNEL_IS_COMPILED:
        columns, view = memoryview(table.columns), memoryview(valid)
        if not check_crcs(buffer, buffer_position, columns, _SMALL_BATCH_BYTES, crc_tables(), view):
            return valid
        large = np.flatnonzero(table.size_bytes > _SMALL_BATCH_BYTES)
    starts = table.position[large] - buffer_position
    ends = (starts + table.size_bytes[large]).tolist()
    is_v2 = table.magic[large] == 2
    crc32c = crc32c_function()
    if is_v2.all():
        crcs = [crc32c(buffer[at:end]) for at, end in zip((starts + _CRC_START_V2).tolist(), ends, strict=True)]
    else:
        crcs = [
            crc32c(buffer[start + _CRC_START_V2 : end]) if v2 else crc32_of(buffer[start + _CRC_START_LEGACY : end])
            for start, end, v2 in zip(starts.tolist(), ends, is_v2.tolist(), strict=True)
        ]
    valid[large] = table.crc[large] == np.array(crcs, np.int64)
    return valid
