"""Replaces keys, values and headers of record tables in place; their lengths stay, so nothing moves."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import numpy as np
from numpy.typing import NDArray

from format import layout
from format.codecs.checksums import crc32_of
from format.kernel.records import index_headers
from format.log.record_table import RecordTable
from format.verbs.redact.replacements import Redactor

Int64Column = NDArray[np.int64]
#: Returns the new key and value of a record (None for null), each as long as before.
ReplaceRecord = Callable[[bytes | None, bytes | None], tuple[bytes | None, bytes | None]]

_CRC_AT = layout.MESSAGE_V0.offset_of("crc")
_CRC_START = layout.MESSAGE_V0.offset_of("magic")


class RecordRedaction(msgspec.Struct, frozen=True):
    """How to redact records; ``replace_record`` is for structured keys and values, which None replaces whole."""

    redactor: Redactor
    with_header_names: bool = False
    replace_record: ReplaceRecord | None = None

    def apply(self, table: RecordTable, target: bytearray) -> None:
        """Replace keys, values and headers of the table's records in ``target``, a copy of the table's buffer.

        v0 and v1 messages get the CRC of their new content; a wrong CRC stays wrong by the same difference.
        """
        wrong_by = self._legacy_checksums(table, target)
        if self.replace_record is None:
            self._replace(table.buffer, target, table.key_start, table.key_length)
            self._replace(table.buffer, target, table.value_start, table.value_length)
        else:
            self._replace_records(table, target, self.replace_record)
        for row in np.flatnonzero(table.header_count > 0).tolist():
            self._replace_headers(table, target, row)
        for start, size_bytes, difference in wrong_by:
            crc = crc32_of(memoryview(target)[start + _CRC_START : start + size_bytes]) ^ difference
            target[start + _CRC_AT : start + _CRC_AT + 4] = crc.to_bytes(4, "big")

    def _replace(self, buffer: memoryview, target: bytearray, starts: Int64Column, lengths: Int64Column) -> None:
        replaced = self.redactor.replaced
        rows = lengths > 0
        for start, length in zip(starts[rows].tolist(), lengths[rows].tolist(), strict=True):
            end = start + length
            target[start:end] = replaced(bytes(buffer[start:end]))

    def _replace_records(self, table: RecordTable, target: bytearray, replace_record: ReplaceRecord) -> None:
        for row in range(len(table)):
            replaced = replace_record(table.key(row), table.value(row))
            starts = (int(table.key_start[row]), int(table.value_start[row]))
            lengths = (int(table.key_length[row]), int(table.value_length[row]))
            for new, start, length in zip(replaced, starts, lengths, strict=True):
                if length > 0:
                    if new is None or len(new) != length:
                        raise ValueError("a replaced key or value has to keep its length")
                    target[start : start + length] = new

    def _replace_headers(self, table: RecordTable, target: bytearray, row: int) -> None:
        count = int(table.header_count[row])
        spans = np.empty((count, 4), np.int64)
        index_headers(table.buffer, int(table.headers_start[row]), len(table.buffer), count, memoryview(spans))
        for key_start, key_length, value_start, value_length in spans.tolist():
            if self.with_header_names:
                name = bytes(table.buffer[key_start : key_start + key_length])
                target[key_start : key_start + key_length] = self.redactor.replaced_text(name)
            if value_length > 0:
                value = bytes(table.buffer[value_start : value_start + value_length])
                target[value_start : value_start + value_length] = self.redactor.replaced(value)

    @staticmethod
    def _legacy_checksums(table: RecordTable, target: bytearray) -> list[tuple[int, int, int]]:
        """Start and size of each v0 or v1 message, and the bits in which its stored CRC differs from the right one."""
        rows = table.batches.magic[table.batch] < 2
        found = []
        view = memoryview(target)
        for start, size_bytes in zip(table.start[rows].tolist(), table.size_bytes[rows].tolist(), strict=True):
            stored = int.from_bytes(view[start + _CRC_AT : start + _CRC_AT + 4], "big")
            found.append((start, size_bytes, stored ^ crc32_of(view[start + _CRC_START : start + size_bytes])))
        return found
