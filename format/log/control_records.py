"""Control records: transaction markers and the raft log's own (clients ControlRecordType, EndTransactionMarker)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from format import layout
from format.errors import CorruptDataError, InvalidRecord
from format.io.source import Source
from format.limits import Limits
from format.log.batch_chunk import BatchChunk
from format.log.read_records import record_tables
from format.log.walker import batch_chunks
from format.value_class import value_class

_CONTROL_INVALID = "control-record-invalid"
_HEADER_BYTES = layout.RECORD_BATCH.size_bytes
#: The record of an end marker as brokers write it, all but its type and coordinator epoch: the record's length,
#: attributes and deltas; the key's length, version and type; the value's length, version and epoch; no headers.
_PLAIN_RECORD = np.array([32, 0, 0, 0, 8, 0, 0, 0, 0, 12, 0, 0, 0, 0, 0, 0, 0], np.uint8)
_IS_FIXED = np.array([1, 1, 1, 1, 1, 1, 1, 0, 0, 1, 1, 1, 0, 0, 0, 0, 1], bool)
_TYPE_AT, _EPOCH_AT = 7, 12
_PLAIN_BYTES = _HEADER_BYTES + len(_PLAIN_RECORD)


@value_class
class ControlRecord:
    """A control record's type and, for an end-transaction marker, its coordinator epoch (else None).

    ``type_name`` is ``UNKNOWN`` for a type number that is newer than this program; that is no damage.
    """

    version: int
    type_number: int
    type_name: str
    coordinator_epoch: int | None = None

    @property
    def is_end_transaction(self) -> bool:
        return self.type_name in ("ABORT", "COMMIT")


def decode_control_record(key: bytes | None, value: bytes | None) -> ControlRecord:
    """A control record from its key and value.

    Raises InvalidRecord for a key or marker that is too short or has a negative version.
    """
    if key is None or len(key) < layout.CONTROL_KEY.size_bytes:
        raise InvalidRecord(
            f"a control record's key has {'no' if key is None else len(key)} bytes, "
            f"it needs {layout.CONTROL_KEY.size_bytes}",
            code=_CONTROL_INVALID,
        )
    version, number = layout.CONTROL_KEY.struct.unpack_from(key)
    if version < 0:
        raise InvalidRecord(f"a control record's key has version {version}", code=_CONTROL_INVALID)
    if not 0 <= number < len(layout.CONTROL_TYPES):
        return ControlRecord(version, number, "UNKNOWN")
    name = layout.CONTROL_TYPES[number]
    if name not in ("ABORT", "COMMIT"):
        return ControlRecord(version, number, name)
    marker = layout.END_TRANSACTION_MARKER
    if value is None or len(value) < marker.size_bytes:
        raise InvalidRecord(
            f"an end transaction marker has {'no' if value is None else len(value)} bytes, "
            f"it needs {marker.size_bytes}",
            code=_CONTROL_INVALID,
        )
    marker_version, coordinator_epoch = marker.struct.unpack_from(value)
    if marker_version < 0:
        raise InvalidRecord(f"an end transaction marker has version {marker_version}", code=_CONTROL_INVALID)
    return ControlRecord(version, number, name, coordinator_epoch)


def read_control_records(chunk: BatchChunk, source: Source, limits: Limits) -> dict[int, ControlRecord]:
    """The first control record of each control batch of a chunk that was read by headers, by row.

    Batches that are not whole in the chunk's window are read from the source, those that cannot be decoded left out.
    """
    rows = np.flatnonzero(chunk.table.is_control)
    if not len(rows):
        return {}
    found: dict[int, ControlRecord] = {}
    is_plain = np.zeros(len(rows), bool)
    if chunk.window is not None:
        is_plain = _decode_plain(chunk, chunk.window, rows, found)
    for row in rows[~is_plain].tolist():
        for control in _decode_batch(chunk, row, source, limits):
            found[row] = control
            break
    return found


def _decode_plain(
    chunk: BatchChunk, window: memoryview, rows: NDArray[np.intp], found: dict[int, ControlRecord]
) -> NDArray[np.bool_]:
    """Decode end markers that look as brokers write them, all at once; returns which rows those are."""
    table = chunk.table
    starts = table.position[rows] - chunk.buffer_position
    is_plain: NDArray[np.bool_] = (table.size_bytes[rows] == _PLAIN_BYTES) & (starts + _PLAIN_BYTES <= len(window))
    is_plain &= (table.codec[rows] == 0) & (table.record_count[rows] == 1)
    at = starts[is_plain, None] + np.arange(_HEADER_BYTES, _PLAIN_BYTES)
    records = np.frombuffer(window, np.uint8)[at]
    is_type = (records[:, _TYPE_AT] == 0) & (records[:, _TYPE_AT + 1] <= 1)
    is_marker = is_type & (records[:, _IS_FIXED] == _PLAIN_RECORD[_IS_FIXED]).all(axis=1)
    is_plain[is_plain] = is_marker
    types = records[is_marker, _TYPE_AT + 1].astype(np.int64)
    epochs = records[is_marker, _EPOCH_AT : _EPOCH_AT + 4].copy().view(">i4").astype(np.int64).reshape(-1)
    kinds, numbers = np.unique((types << 32) | (epochs & 0xFFFFFFFF), return_inverse=True)
    controls = [
        ControlRecord(0, kind >> 32, layout.CONTROL_TYPES[kind >> 32], _signed(kind & 0xFFFFFFFF))
        for kind in kinds.tolist()
    ]
    found.update(zip(rows[is_plain].tolist(), map(controls.__getitem__, numbers.tolist()), strict=True))
    return is_plain


def _signed(number: int) -> int:
    return number - 2**32 if number >= 2**31 else number


def _decode_batch(chunk: BatchChunk, row: int, source: Source, limits: Limits) -> Iterator[ControlRecord]:
    """The control records of one batch, read by itself."""
    start, end = int(chunk.table.position[row]), int(chunk.table.end_position[row])
    for whole in batch_chunks(source, start, end, check_crc=False, limits=limits):
        for records in record_tables(whole, which=whole.table.is_control, limits=limits):
            for number in range(len(records)):
                try:
                    yield decode_control_record(records.key(number), records.value(number))
                except CorruptDataError:
                    continue
