"""Control records: transaction markers, and those of the raft log (clients ControlRecordType, EndTransactionMarker)."""

from __future__ import annotations

from contextlib import suppress
from functools import lru_cache
from struct import Struct

import msgspec
import numpy as np
from numpy.typing import NDArray

from format import layout
from format.errors import CorruptDataError, InvalidRecord, NotInBundle
from format.io.source import Source
from format.limits import MOST_CONTROL_BYTES, Limits
from format.log.batch_chunk import BatchChunk, BatchRange, HeaderChunk
from format.log.read_records import record_tables
from format.log.record_table import RecordTable
from format.log.walker import batch_chunks
from format.wording import counted_plainly

_CONTROL_INVALID = "control-record-invalid"
_HEADER_BYTES = layout.RECORD_BATCH.size_bytes
_ATTRIBUTES_AT = layout.RECORD_BATCH.offset_of("attributes")
_RECORDS_AT = _HEADER_BYTES - _ATTRIBUTES_AT
_COUNT_AT = layout.RECORD_BATCH.offset_of("record_count") - _ATTRIBUTES_AT
_ONE = (1).to_bytes(_RECORDS_AT - _COUNT_AT, "big")
#: The record of an end marker as brokers write it: the length, attributes and deltas of the record; the length, version
#: and type of the key; the length, version and coordinator epoch of the value; no headers.
_PLAIN_RECORD = Struct(">4s b h h b h i b")
_PLAIN_BYTES = _HEADER_BYTES + _PLAIN_RECORD.size


class ControlRecord(msgspec.Struct, frozen=True):
    """The type of a control record, and for an end transaction marker its coordinator epoch (else None).

    ``type_name`` is ``UNKNOWN`` for a type number that is newer than this program, which is not damage.
    """

    version: int
    type_number: int
    type_name: str
    coordinator_epoch: int | None = None

    @property
    def is_end_transaction(self) -> bool:
        return self.type_name in ("ABORT", "COMMIT")


def decode_control_record(key: bytes | None, value: bytes | None) -> ControlRecord:
    """Decode a control record from its key and value.

    Raises InvalidRecord for a key or marker that is too short or has a negative version.
    """
    if key is None or len(key) < layout.CONTROL_KEY.size_bytes:
        raise InvalidRecord(
            f"a control record has {_sized('key', key)}; the key needs {layout.CONTROL_KEY.size_bytes}",
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
            f"an end transaction marker has {_sized('value', value)}; the value needs {marker.size_bytes}",
            code=_CONTROL_INVALID,
        )
    marker_version, coordinator_epoch = marker.struct.unpack_from(value)
    if marker_version < 0:
        raise InvalidRecord(f"an end transaction marker has version {marker_version}", code=_CONTROL_INVALID)
    return ControlRecord(version, number, name, coordinator_epoch)


def _sized(name: str, content: bytes | None) -> str:
    return f"no {name}" if content is None else f"a {name} of {counted_plainly(len(content), 'byte')}"


def read_control_records(chunk: HeaderChunk, source: Source, limits: Limits) -> dict[int, ControlRecord]:
    """The first control record of each control batch of a chunk that was read without bodies, by row.

    Batches that are not whole in the chunk's window are read from the source. Batches that cannot be decoded are left
    out.
    """
    rows = np.flatnonzero(chunk.headers.is_control)
    if not len(rows):
        return {}
    found: dict[int, ControlRecord] = {}
    window, sizes = chunk.window or b"", chunk.headers.size_bytes[rows].tolist()
    starts = (chunk.headers.position[rows] - chunk.buffer_position).tolist()
    for row, start, size_bytes in zip(rows.tolist(), starts, sizes, strict=True):
        control = None
        if size_bytes == _PLAIN_BYTES and start + size_bytes <= len(window):
            control = _plain_marker(bytes(window[start + _ATTRIBUTES_AT : start + size_bytes]))
        if control is None:
            where = BatchRange(chunk.buffer_position + start, chunk.buffer_position + start + size_bytes)
            with suppress(NotInBundle):  # a bundle leaves out control batches with unexpected content
                for whole in batch_chunks(source, where, check_crc=False, limits=limits):
                    control = first_control_records(whole, whole.table.is_control, limits).get(0)
        if control is not None:
            found[row] = control
    return found


def first_control_records(chunk: BatchChunk, which: NDArray[np.bool_], limits: Limits) -> dict[int, ControlRecord]:
    """The first control record of each control batch among the batches ``which`` of a chunk that was read with bodies.

    The keys are row numbers among these batches. Batches whose control records cannot be decoded are left out: verify
    reports them.
    """
    control = chunk.table.is_control & which
    if not control.any():
        return {}
    row_among = np.cumsum(which) - 1
    found: dict[int, ControlRecord] = {}
    for table in record_tables(chunk, which=control, limits=limits):
        for row, batch in enumerate(table.batch.tolist()):
            with suppress(CorruptDataError):
                found.setdefault(int(row_among[batch]), decode_control_record(table.key(row), table.value(row)))
    return found


def plain_marker(source: Source, position: int, size_bytes: int) -> ControlRecord | None:
    """The end marker in a batch of a source; None unless it is as brokers write it. Its CRC is not checked."""
    if size_bytes != _PLAIN_BYTES:
        return None
    return _plain_marker(source.read_at(position, size_bytes)[_ATTRIBUTES_AT:])


def _plain_marker(content: bytes) -> ControlRecord | None:
    """The end marker in a batch, from its attributes on; None unless it is as brokers write it."""
    if content[1] & layout.CODEC_MASK or content[_COUNT_AT:_RECORDS_AT] != _ONE:
        return None
    return _marker(content[_RECORDS_AT:])


@lru_cache(maxsize=1024)
def _marker(record: bytes) -> ControlRecord | None:
    start, key_length, version, number, value_length, value_version, epoch, headers = _PLAIN_RECORD.unpack(record)
    is_plain = (start, key_length, version, value_length, value_version, headers) == (b"\x20\0\0\0", 8, 0, 12, 0, 0)
    if not is_plain or number not in (0, 1):
        return None
    return ControlRecord(version, number, layout.CONTROL_TYPES[number], epoch)


def control_batch_content(chunk: HeaderChunk, row: int, source: Source, limits: Limits) -> bytes | None:
    """The bytes of a control batch that contains only a broker's numbers and no other data; None for other batches.

    The CRC of a marker as brokers write it is not checked: all its bytes except the numbers are known.
    """
    position, size_bytes = int(chunk.headers.position[row]), int(chunk.headers.size_bytes[row])
    if size_bytes > MOST_CONTROL_BYTES:
        return None
    content = source.read_at(position, size_bytes)
    if size_bytes == _PLAIN_BYTES and _plain_marker(content[_ATTRIBUTES_AT:]) is not None:
        return content
    for whole in batch_chunks(source, BatchRange(position, position + size_bytes), limits=limits):
        if whole.damage is not None or not (whole.table.crc_valid == 1).all():
            return None
        for records in record_tables(whole, which=whole.table.is_control, limits=limits):
            if records.problems or not all(_is_plain(records, number) for number in range(len(records))):
                return None
    return content


def _is_plain(records: RecordTable, row: int) -> bool:
    """Whether a control record has the size of an end marker and no headers, so that it has no room for other data."""
    value = records.value(row)
    try:
        control = decode_control_record(records.key(row), value)
    except CorruptDataError:
        return False
    is_key = records.key_length[row] == layout.CONTROL_KEY.size_bytes and not records.header_count[row]
    return is_key and control.is_end_transaction and len(value or b"") == layout.END_TRANSACTION_MARKER.size_bytes
