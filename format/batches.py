"""Record batches as columns: hop from header to header through a segment, check CRCs, go on past damage.

A batch here is a v2 record batch or an outermost v0/v1 message; one row of a BatchTable each.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from format import kernel, layout
from format.checksums import crc32_of, crc32c_of
from format.errors import CorruptDataError
from format.limits import DEFAULT_LIMITS, Limits
from format.resynchronise import find_next_batch
from format.source import Source

Int64Column = NDArray[np.int64]

_COLUMN = {name: number for number, name in enumerate(kernel.BATCH_COLUMNS)}
_STOP_NAMES = kernel.STOPS
#: What is read at once where whole batches are wanted, and where only headers are.
BODY_CHUNK_BYTES = 4 * 1024 * 1024
HEADER_CHUNK_BYTES = 64 * 1024
_TABLE_ROWS = 16 * 1024
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

    def _has(self, bit: int, least_magic: int) -> NDArray[np.bool_]:
        has: NDArray[np.bool_] = ((self.attributes & bit) != 0) & (self.magic >= least_magic)
        return has

    @property
    def has_delete_horizon(self) -> NDArray[np.bool_]:
        return self._has(layout.DELETE_HORIZON_BIT, 2)


@dataclass(frozen=True, slots=True)
class Damage:
    """Bytes of a log that belong to no readable batch.

    ``code`` is a finding code; ``next_base_offset`` is that of the intact batch after the damage, None when
    nothing intact follows; ``after_offset`` the last offset read before it.
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
    """

    table: BatchTable
    buffer: memoryview | None
    buffer_position: int
    damage: Damage | None = None


def batch_chunks(
    source: Source,
    start: int = 0,
    end: int | None = None,
    *,
    with_bodies: bool = True,
    check_crc: bool = True,
    limits: Limits = DEFAULT_LIMITS,
    chunk_bytes: int | None = None,
) -> Iterator[BatchChunk]:
    """The batches of ``source[start:end]`` in chunks of bounded size, damage between them located.

    ``start`` must be a batch boundary. Without bodies only headers are read (and no CRC is checked). After damage
    the next batch is found by its header and CRC. Raises only what the source raises.
    """
    walker = _Walker(source, source.size_bytes if end is None else min(end, source.size_bytes), limits)
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
        self._status = np.zeros(2, np.int64)
        self._scratch = np.empty((_TABLE_ROWS, len(_COLUMN)), np.int64)

    def _hop(self, buffer: memoryview, position: int) -> tuple[Int64Column, str, int]:
        """Rows of the headers in the buffer, why it stopped, and the file position of the next header."""
        count = kernel.hop(
            buffer, 0, len(buffer), position, memoryview(self._scratch), 0, memoryview(self._status)
        )
        return self._scratch[:count].copy(), _STOP_NAMES[self._status[0]], position + int(self._status[1])

    def headers(self, start: int, chunk_bytes: int) -> Iterator[BatchChunk]:
        position = start
        while position < self.end:
            buffer = memoryview(self.source.read_at(position, min(chunk_bytes, self.end - position)))
            columns, stop, next_position = self._hop(buffer, position)
            at_end = position + len(buffer) >= self.end
            damage = None
            if next_position > self.end:  # the last row's batch is cut off, or its length is wrong
                columns, next_position = columns[:-1], int(columns[-1, _COLUMN["position"]])
                self._remember(columns)
                damage = self._damage(next_position, "the batch ends past the end of the file")
            elif stop in ("bad-length", "bad-magic") or (stop == "more-bytes" and at_end):
                self._remember(columns)
                damage = self._damage(next_position, _reason(stop, buffer[next_position - position :]))
            else:
                self._remember(columns)
            if len(columns) or damage:
                yield BatchChunk(BatchTable(columns), None, position, damage)
            position = next_position if damage is None else damage.position + damage.length

    def bodies(self, start: int, chunk_bytes: int, check_crc: bool) -> Iterator[BatchChunk]:
        position = start
        want = chunk_bytes
        while position < self.end:
            buffer = memoryview(self.source.read_at(position, min(want, self.end - position)))
            want = chunk_bytes
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
                    want = last_size  # one batch larger than a chunk: read it whole
                    continue
                else:
                    stop = "more-bytes"
                    at_end = False
            table = BatchTable(columns)
            if check_crc:
                compute_crc_valid(table, buffer, position)
            broken = stop in ("bad-length", "bad-magic", "past-end", "too-large") or (stop == "more-bytes" and at_end)
            if broken:
                if stop == "past-end":
                    reason = "the batch ends past the end of the file"
                elif stop == "too-large":
                    reason = f"the batch claims more than {self.limits.max_decompressed_bytes} bytes"
                else:
                    reason = _reason(stop, buffer[next_position - position :])
                if check_crc and len(table) and table.crc_valid[-1] == 0:
                    # Its CRC is wrong and nothing follows where its length says: the length itself is suspect.
                    table = table.rows(slice(0, -1))
                    next_position = int(columns[-1, _COLUMN["position"]])
                    reason = "the batch's CRC is wrong and no batch follows where its length points"
                self._remember(table.columns)
                damage = self._damage(next_position, reason)
            else:
                self._remember(table.columns)
            if len(table) or damage:
                yield BatchChunk(table, buffer, position, damage)
            position = next_position if damage is None else damage.position + damage.length

    def _remember(self, columns: Int64Column) -> None:
        if len(columns):
            last = columns[-1]
            self.last_offset = int(last[_COLUMN["base_offset"]]) + int(last[_COLUMN["last_offset_delta"]])

    def _damage(self, position: int, reason: str) -> Damage:
        """Look for the next intact batch after ``position`` and describe what lies between."""
        after = self.last_offset
        found = find_next_batch(
            self.source, position + 1, self.end, min_base_offset=0 if after is None else after + 1, limits=self.limits
        )
        if found is not None:
            return Damage(
                "log-framing-broken", position, found.position - position, reason, after, found.base_offset, False
            )
        code = "tail-torn"
        # Fewer zeros may be the first bytes of a torn batch: those of a small base offset.
        if self.end - position >= layout.LOG_ENTRY.size_bytes and self._is_zero(position):
            code, reason = "tail-zeros", "nothing but zero bytes up to the end of the file"
        return Damage(code, position, self.end - position, reason, after, None, True)

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
    rows = zip(
        (table.position - buffer_position).tolist(),
        table.size_bytes.tolist(),
        table.magic.tolist(),
        table.crc.tolist(),
        strict=True,
    )
    for row, (start, size_bytes, magic, crc) in enumerate(rows):
        stop = start + size_bytes
        if magic == 2:
            valid[row] = crc32c_of(buffer[start + _CRC_START_V2 : stop]) == crc
        else:
            valid[row] = crc32_of(buffer[start + _CRC_START_LEGACY : stop]) == crc


def read_batch_table(source: Source, *, check_crc: bool = False, limits: Limits = DEFAULT_LIMITS) -> BatchTable:
    """All batches of a source as one table; raises CorruptDataError at the first damage. For small, trusted files."""
    tables = []
    for chunk in batch_chunks(source, with_bodies=check_crc, check_crc=check_crc, limits=limits):
        if chunk.damage is not None:
            raise CorruptDataError(chunk.damage.reason)
        tables.append(chunk.table)
    return BatchTable.concatenated(tables)
