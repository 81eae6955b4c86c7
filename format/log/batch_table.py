"""Record batches as columns: hop from header to header through a segment, check CRCs, go on past damage.

A batch here is a v2 record batch or an outermost v0/v1 message; one row of a BatchTable each.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from types import FunctionType
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from format import kernel, layout
from format.codecs.checksums import crc32_of, crc32c_function, crc_tables
from format.errors import CorruptDataError
from format.io.source import Source
from format.limits import DEFAULT_LIMITS, Limits
from format.log.chain_trust import ChainTrust
from format.log.resynchronise import BatchSearch, FoundBatch, has_right_crc, read_header

if TYPE_CHECKING:
    from format.log.legacy_messages import OpenedWrappers

Int64Column = NDArray[np.int64]

_COLUMN = {name: number for number, name in enumerate(kernel.BATCH_COLUMNS)}
_MAY_DIFFER = [_COLUMN[name] for name in ("position", "size_bytes", "crc")]
_STOP_NAMES = kernel.STOPS
#: What is read at once where whole batches are wanted, and where only headers are.
BODY_CHUNK_BYTES = 4 * 1024 * 1024
HEADER_CHUNK_BYTES = 64 * 1024
_TABLE_ROWS = 32 * 1024
#: Whether the kernel is the compiled one. The plain one is right, but where numpy or a library can do it is faster.
KERNEL_IS_COMPILED = not isinstance(kernel.hop, FunctionType)
#: Up to this size the kernel computes a batch's CRC in less time than it takes to call a library for it.
_SMALL_BATCH_BYTES = 1024
_MAGIC_AT = layout.RECORD_BATCH.offset_of("magic")
#: The CRC covers a batch from here to its end.
_CRC_START_V2 = layout.RECORD_BATCH.offset_of("attributes")
_CRC_START_LEGACY = layout.MESSAGE_V0.offset_of("magic")


class BatchTable:
    """Batches in log order: ``columns`` is int64, one row a batch (kernel.BATCH_COLUMNS).

    ``crc_valid`` is int8: 1 valid, 0 not, -1 not computed. Offsets are logical, positions are bytes in the file.
    """

    __slots__ = ("columns", "crc_valid")

    def __init__(self, columns: Int64Column, crc_valid: NDArray[np.int8] | None = None) -> None:
        self.columns = columns
        self.crc_valid = np.full(len(columns), -1, np.int8) if crc_valid is None else crc_valid

    def __len__(self) -> int:
        return len(self.columns)

    @classmethod
    def empty(cls) -> BatchTable:
        return cls(np.empty((0, len(_COLUMN)), np.int64))

    @classmethod
    def concatenated(cls, tables: list[BatchTable]) -> BatchTable:
        if not tables:
            return cls.empty()
        return cls(np.concatenate([t.columns for t in tables]), np.concatenate([t.crc_valid for t in tables]))

    def rows(self, which: slice | NDArray[np.bool_] | NDArray[np.intp]) -> BatchTable:
        """A table of the rows that a slice, mask or index array picks."""
        return BatchTable(self.columns[which], self.crc_valid[which])

    def same_headers(self, other: BatchTable) -> NDArray[np.bool_]:
        """Which rows of two tables of one length say the same, codec, length and CRC aside, wherever they lie."""
        differ = self.columns != other.columns
        differ[:, _MAY_DIFFER] = False
        differ[:, _COLUMN["attributes"]] = (self.attributes ^ other.attributes) & ~layout.CODEC_MASK != 0
        same: NDArray[np.bool_] = ~differ.any(axis=1)
        return same

    @property
    def position(self) -> Int64Column:
        return self.columns[:, _COLUMN["position"]]

    @property
    def size_bytes(self) -> Int64Column:
        """Bytes on disk, the header included."""
        return self.columns[:, _COLUMN["size_bytes"]]

    @property
    def magic(self) -> Int64Column:
        return self.columns[:, _COLUMN["magic"]]

    @property
    def base_offset(self) -> Int64Column:
        """Of a compressed v0/v1 wrapper, the offset of its last inner message until the wrapper is opened."""
        return self.columns[:, _COLUMN["base_offset"]]

    @property
    def last_offset_delta(self) -> Int64Column:
        return self.columns[:, _COLUMN["last_offset_delta"]]

    @property
    def last_offset(self) -> Int64Column:
        """Base offset plus last offset delta; wraps for a forged base offset near 2**63 (checked elsewhere)."""
        return self.base_offset + self.last_offset_delta

    def last_offset_of(self, row: int) -> int:
        """That of one batch, for loops over many: a column that is computed is so whole, whenever it is asked for."""
        one = slice(row, row + 1)
        return int((self.base_offset[one] + self.last_offset_delta[one])[0])

    @property
    def record_count(self) -> Int64Column:
        """-1 for a compressed v0/v1 wrapper that was not opened."""
        return self.columns[:, _COLUMN["record_count"]]

    @property
    def attributes(self) -> Int64Column:
        return self.columns[:, _COLUMN["attributes"]]

    @property
    def crc(self) -> Int64Column:
        return self.columns[:, _COLUMN["crc"]]

    @property
    def leader_epoch(self) -> Int64Column:
        """-1 for v0 and v1, which have none."""
        return self.columns[:, _COLUMN["leader_epoch"]]

    @property
    def base_timestamp(self) -> Int64Column:
        """ms; the delete horizon where has_delete_horizon; -1 for v0."""
        return self.columns[:, _COLUMN["base_timestamp"]]

    @property
    def max_timestamp(self) -> Int64Column:
        return self.columns[:, _COLUMN["max_timestamp"]]

    @property
    def producer_id(self) -> Int64Column:
        return self.columns[:, _COLUMN["producer_id"]]

    @property
    def producer_epoch(self) -> Int64Column:
        return self.columns[:, _COLUMN["producer_epoch"]]

    @property
    def base_sequence(self) -> Int64Column:
        return self.columns[:, _COLUMN["base_sequence"]]

    @property
    def end_position(self) -> Int64Column:
        """The byte after the batch."""
        return self.position + self.size_bytes

    @property
    def codec(self) -> Int64Column:
        """Codec number, 0-7; names in layout.CODEC_NAMES."""
        return self.attributes & layout.CODEC_MASK

    @property
    def is_append_time(self) -> NDArray[np.bool_]:
        return self._has(layout.TIMESTAMP_TYPE_BIT, 1)

    @property
    def is_transactional(self) -> NDArray[np.bool_]:
        return self._has(layout.TRANSACTIONAL_BIT, 2)

    @property
    def is_control(self) -> NDArray[np.bool_]:
        return self._has(layout.CONTROL_BIT, 2)

    @property
    def is_wrapper(self) -> NDArray[np.bool_]:
        """Which rows are compressed v0/v1 messages."""
        wrapper: NDArray[np.bool_] = (self.magic < 2) & (self.codec > 0)
        return wrapper

    def _has(self, bit: int, least_magic: int) -> NDArray[np.bool_]:
        has: NDArray[np.bool_] = ((self.attributes & bit) != 0) & (self.magic >= least_magic)
        return has

    @property
    def has_delete_horizon(self) -> NDArray[np.bool_]:
        return self._has(layout.DELETE_HORIZON_BIT, 2)


@dataclass(frozen=True, slots=True)
class Damage:
    """Bytes of a log that belong to no readable batch.

    ``code`` is a finding code, that of a limit for a batch that was left out whole; ``next_base_offset`` is that of
    the intact batch after the damage, None when nothing intact follows; ``after_offset`` the last offset read before.
    """

    code: str
    position: int
    length: int
    reason: str
    after_offset: int | None = None
    next_base_offset: int | None = None
    reaches_end: bool = False


@dataclass(frozen=True, slots=True)
class BatchChunk:
    """Some consecutive batches; ``buffer`` (None when only headers were asked for) holds their bytes.

    ``buffer[0]`` lies at ``buffer_position`` in the file. ``damage`` lies after the last row, before the next chunk.
    ``opened`` keeps compressed v0/v1 messages that were opened once, by the first's row, for whoever needs them again.
    """

    table: BatchTable
    buffer: memoryview | None
    buffer_position: int
    damage: Damage | None = None
    opened: dict[int, OpenedWrappers] = field(default_factory=dict, compare=False)

    @property
    def covered_bytes(self) -> int:
        """From where the chunk starts to where the next one does; the buffer may hold some of that one too."""
        if self.damage is not None:
            return self.damage.position + self.damage.length - self.buffer_position
        return int(self.table.end_position[-1]) - self.buffer_position if len(self.table) else 0


def batch_chunks(
    source: Source,
    start: int = 0,
    end: int | None = None,
    *,
    after_offset: int | None = None,
    with_bodies: bool = True,
    check_crc: bool = True,
    limits: Limits = DEFAULT_LIMITS,
    chunk_bytes: int | None = None,
) -> Iterator[BatchChunk]:
    """The batches of ``source[start:end]`` in chunks of bounded size, damage between them located.

    ``start`` must be a batch boundary; ``after_offset`` is the last offset before it, if known. Without bodies only
    headers are read (and no CRC is checked). After damage the next batch is found by its header and CRC. Raises only
    what the source raises.
    """
    walker = _Walker(source, source.size_bytes if end is None else min(end, source.size_bytes), limits)
    walker.last_offset = after_offset
    if with_bodies:
        return walker.bodies(start, chunk_bytes or BODY_CHUNK_BYTES, check_crc)
    return walker.headers(start, chunk_bytes or HEADER_CHUNK_BYTES)


class _Walker:
    """The state of one walk: where the next header is expected, and the last offset seen before it."""

    def __init__(self, source: Source, end: int, limits: Limits) -> None:
        self.source = source
        self.end = end
        self.limits = limits
        self.last_offset: int | None = None
        self._trust = ChainTrust(source, end, limits)
        self._search = BatchSearch(source, end, limits)
        self._status = np.zeros(3, np.int64)
        self._scratch = np.empty((_TABLE_ROWS, len(_COLUMN)), np.int64)

    def _hop(self, buffer: memoryview, position: int) -> tuple[Int64Column, str, int]:
        """Rows of the headers in the buffer, why it stopped, and the file position of the next header."""
        count = kernel.hop(buffer, 0, len(buffer), position, memoryview(self._scratch), 0, memoryview(self._status))
        return self._scratch[:count].copy(), _STOP_NAMES[self._status[0]], position + int(self._status[1])

    def headers(self, start: int, chunk_bytes: int) -> Iterator[BatchChunk]:
        position = start
        last_row_at = start  # where the last batch lies that was told
        self._status[2] = 0
        while position < self.end:
            buffer = memoryview(self.source.read_at(position, min(chunk_bytes, self.end - position)))
            columns, stop, next_position = self._hop(buffer, position)
            at_end = position + len(buffer) >= self.end
            reason = ""
            if next_position > self.end:  # the last row's batch is cut off, or its length is wrong
                columns, next_position = columns[:-1], int(columns[-1, _COLUMN["position"]])
                reason = "the batch ends past the end of the file"
            elif stop == "suspicious" and not self._is_intact(next_position):
                reason = "no batch starts here: its offset or attributes cannot be, and its CRC is wrong"
            elif stop in ("bad-length", "bad-magic") or (stop == "more-bytes" and at_end):
                reason = _reason(stop, buffer[next_position - position :])
            damage = None
            if reason:
                columns, next_position = self._retreated(columns, next_position, last_row_at)
            self._remember(columns)
            if reason:
                damage = self._damage(next_position, reason)
            if len(columns):
                last_row_at = int(columns[-1, _COLUMN["position"]])
            if len(columns) or damage:
                yield BatchChunk(BatchTable(columns), None, position, damage)
            position = next_position if damage is None else damage.position + damage.length
            if damage is not None:
                self._status[2] = damage.next_base_offset or 0
            elif stop == "suspicious":
                yield self._one_header(position)
                last_row_at, position = position, position + int(self._scratch[0, _COLUMN["size_bytes"]])

    def _one_header(self, position: int) -> BatchChunk:
        """The batch at a position, whatever its offset is; the offsets after it are held against its own."""
        self._status[2] = -1
        buffer = memoryview(self.source.read_at(position, layout.RECORD_BATCH.size_bytes))
        kernel.hop(buffer, 0, len(buffer), position, memoryview(self._scratch[:1]), 0, memoryview(self._status))
        columns = self._scratch[:1].copy()
        self._remember(columns)
        self._status[2] = max(int(columns[0, _COLUMN["base_offset"]]), 0)
        return BatchChunk(BatchTable(columns), None, position)

    def _is_intact(self, position: int) -> bool:
        """Whether there is a batch with a right CRC, its base offset and attributes aside."""
        header = self.source.read_at(position, layout.RECORD_BATCH.size_bytes)
        size_bytes = layout.LOG_ENTRY.size_bytes + int.from_bytes(header[8:12], "big", signed=True)
        magic = header[layout.RECORD_BATCH.offset_of("magic")]
        least = layout.RECORD_BATCH.size_bytes if magic == 2 else layout.MESSAGE_V0.size_bytes
        if size_bytes < least or position + size_bytes > self.end:
            return False
        return has_right_crc(self.source, position, size_bytes, magic)

    def _retreated(self, columns: Int64Column, damaged_from: int, last_row_at: int) -> tuple[Int64Column, int]:
        """The rows before damage without those that may have led to it by a wrong length, and where that leaves it.

        No CRC was looked at so far; it is for these. The batch that was told last is not taken back.
        """
        while True:
            position = int(columns[-1, _COLUMN["position"]]) if len(columns) else last_row_at
            header = read_header(self.source, position) if position < damaged_from else None
            if header is None or has_right_crc(self.source, position, header.size_bytes, header.magic):
                return columns, damaged_from
            if self._trust.trusts(position):
                return columns, damaged_from
            damaged_from = position
            if not len(columns):
                return columns, damaged_from
            columns = columns[:-1]

    def bodies(self, start: int, chunk_bytes: int, check_crc: bool) -> Iterator[BatchChunk]:
        position = start
        want = chunk_bytes
        rest: memoryview | None = None  # what a full table left of a buffer
        self._status[2] = -1
        while position < self.end:
            buffer = memoryview(self.source.read_at(position, min(want, self.end - position))) if rest is None else rest
            want = chunk_bytes
            is_rest, rest = rest is not None, None
            columns, stop, next_position = self._hop(buffer, position)
            buffer_end = position + len(buffer)
            at_end = buffer_end >= self.end
            damage = None
            if next_position > buffer_end and len(columns):  # the last batch goes on after the buffer
                last_position, last_size = (int(n) for n in columns[-1, :2])
                columns, next_position = columns[:-1], last_position
                if last_position + last_size > self.end:
                    stop = "past-end"
                elif last_size > self.limits.max_decompressed_bytes + layout.RECORD_BATCH.size_bytes:
                    stop = "too-large"
                elif not len(columns):
                    if not is_rest:
                        want = max(last_size, chunk_bytes)  # one batch larger than a chunk: read it whole
                    continue
                else:
                    stop = "more-bytes"
                    at_end = False
            table = BatchTable(columns)
            distrusted = None
            if check_crc:
                compute_crc_valid(table, buffer, position)
                if not table.crc_valid.all():
                    distrusted = self._first_distrusted(table)
            if distrusted is not None:
                next_position = int(table.position[distrusted])
                table = table.rows(slice(0, distrusted))
                self._remember(table.columns, table.crc_valid)
                damage = self._damage(next_position, "the batch's CRC is wrong, and so is its length")
            elif stop in ("bad-length", "bad-magic", "past-end", "too-large") or (stop == "more-bytes" and at_end):
                if stop == "past-end":
                    reason = "the batch ends past the end of the file"
                elif stop == "too-large":
                    reason = f"the batch claims more than {self.limits.max_decompressed_bytes} bytes"
                else:
                    reason = _reason(stop, buffer[next_position - position :])
                self._remember(table.columns, table.crc_valid)
                damage = self._too_large(next_position, reason) if stop == "too-large" else None
                damage = damage or self._damage(next_position, reason)
            else:
                self._remember(table.columns, table.crc_valid)
                if stop == "table-full":
                    rest = buffer[next_position - position :]
            if len(table) or damage:
                yield BatchChunk(table, buffer, position, damage)
            position = next_position if damage is None else damage.position + damage.length

    def _first_distrusted(self, table: BatchTable) -> int | None:
        """The first batch with a wrong CRC after which the log does not go on where its length points."""
        is_wrong = table.crc_valid == 0
        leads_on = table.base_offset[1:] == table.last_offset[:-1] + 1
        leads_on &= (table.magic[1:] == 2) | (table.codec[1:] == 0)
        for row in np.flatnonzero(is_wrong & ~np.append(leads_on, False)).tolist():
            if not self._trust.trusts(int(table.position[row])):
                return int(row)
        return None

    def _remember(self, columns: Int64Column, crc_valid: NDArray[np.int8] | None = None) -> None:
        """Note the last offset of the last row whose offsets can be believed."""
        row = len(columns) - 1
        if crc_valid is not None and row >= 0 and crc_valid[row] == 0:
            good = np.flatnonzero(crc_valid)
            row = int(good[-1]) if len(good) else -1
        if row >= 0:
            last = columns[row]
            self.last_offset = int(last[_COLUMN["base_offset"]]) + int(last[_COLUMN["last_offset_delta"]])

    def _too_large(self, position: int, reason: str) -> Damage | None:
        """A batch over the limit that the log goes on after: left out, not damaged; None where it does not."""
        header = read_header(self.source, position)
        if header is None or not self._trust.leads_on(header):
            return None
        after, self.last_offset = self.last_offset, header.last_offset
        return Damage("limit-exceeded", position, header.size_bytes, f"{reason}; it was left out", after)

    def _damage(self, position: int, reason: str) -> Damage:
        """Look for the next intact batch after ``position`` and describe what lies between."""
        after = self.last_offset
        found = self._search.next_after(position, 0 if after is None else after + 1)
        if found is not None:
            if found.proof:
                reason = f"{reason}; {found.proof}"
            first = self._first_offset_of(found)
            return Damage("log-framing-broken", position, found.position - position, reason, after, first, False)
        code = "tail-torn" if self._is_torn(position) else "log-framing-broken"
        # Fewer zeros may be the first bytes of a torn batch: those of a small base offset.
        if self.end - position >= layout.LOG_ENTRY.size_bytes and self._is_zero(position):
            code, reason = "tail-zeros", "nothing but zero bytes up to the end of the file"
        return Damage(code, position, self.end - position, reason, after, None, True)

    def _is_torn(self, position: int) -> bool:
        """Whether what lies up to the end of the file is the beginning of a batch, as a write that was cut off leaves.

        What no header begins like was not cut off but overwritten.
        """
        header = self.source.read_at(position, min(layout.RECORD_BATCH.size_bytes, self.end - position))
        if len(header) < layout.LOG_ENTRY.size_bytes:
            return True
        base_offset, length = layout.LOG_ENTRY.struct.unpack_from(header)
        least_offset = 0 if self.last_offset is None else self.last_offset + 1
        if length < layout.MIN_MESSAGE_LENGTH or base_offset < least_offset:
            return False
        end_position = position + layout.LOG_ENTRY.size_bytes + length
        return end_position > self.end and (len(header) <= _MAGIC_AT or header[_MAGIC_AT] <= 2)

    def _first_offset_of(self, found: FoundBatch) -> int:
        """The batch's first offset; that of a compressed v0/v1 message lies inside it."""
        from format.log.legacy_messages import open_wrappers

        (chunk,) = _Walker(self.source, found.end_position, self.limits).bodies(found.position, found.size_bytes, False)
        open_wrappers(chunk, limits=self.limits)
        return int(chunk.table.base_offset[0])

    def _is_zero(self, position: int) -> bool:
        while position < self.end:
            part = self.source.read_at(position, min(1 << 20, self.end - position))
            if not part or part.count(0) != len(part):
                return False
            position += len(part)
        return True


def _reason(stop: str, header: memoryview) -> str:
    if stop == "more-bytes":
        return f"the file ends after {len(header)} bytes of a batch header"
    length = int.from_bytes(header[8:12], "big", signed=True)
    if stop == "bad-magic":
        magic = int.from_bytes(header[16:17], "big", signed=True)
        return f"no batch starts here: its magic would be {magic}"
    return f"no batch starts here: its length would be {length}"


def compute_crc_valid(table: BatchTable, buffer: memoryview, buffer_position: int) -> None:
    """Fill ``table.crc_valid`` from the batches' bytes, which must lie whole in ``buffer``.

    CRC-32C from the attributes on for v2 (KIP-98), CRC-32 from the magic on for v0 and v1.
    """
    valid = table.crc_valid
    large: slice | NDArray[np.intp] = slice(None)
    if KERNEL_IS_COMPILED:
        columns, view = memoryview(table.columns), memoryview(valid)
        if not kernel.check_crcs(buffer, buffer_position, columns, _SMALL_BATCH_BYTES, crc_tables(), view):
            return
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


def whole_batches(content: bytes | bytearray | memoryview, position: int, count: int) -> BatchTable:
    """The ``count`` batches that these bytes are, one after the other, the first at ``position``; no CRC is looked at.

    Raises CorruptDataError where the headers say that they are anything else.
    """
    columns, status = np.empty((count, len(_COLUMN)), np.int64), np.array((0, 0, -1), np.int64)
    found = kernel.hop(memoryview(content), 0, len(content), position, memoryview(columns), 0, memoryview(status))
    if (found, status[1]) != (count, len(content)):
        raise CorruptDataError(f"these bytes are not {count} batches: the headers lead to byte {status[1]}")
    return BatchTable(columns)


def read_batch_table(source: Source, *, check_crc: bool = False, limits: Limits = DEFAULT_LIMITS) -> BatchTable:
    """All batches of a source as one table; raises CorruptDataError at the first damage. For small, trusted files."""
    tables = []
    for chunk in batch_chunks(source, with_bodies=check_crc, check_crc=check_crc, limits=limits):
        if chunk.damage is not None:
            raise CorruptDataError(chunk.damage.reason)
        tables.append(chunk.table)
    return BatchTable.concatenated(tables)
