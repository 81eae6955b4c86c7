"""Ordinary lines of a log, written in bulk by the kernel; the caller writes the lines of odd batches and records."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from format import layout
from format.codecs.checksums import crc32_of, crc_tables
from format.kernel.kafka_lines import (
    DUMP_LOG_3_9_1,
    DUMP_LOG_CONTENTS,
    DUMP_LOG_METADATA,
    DUMP_LOG_STOPS,
    write_dump_log,
)
from format.kernel.tables import RECORD_COLUMNS
from format.log.batch_table import BatchTable
from format.log.record_table import RecordTable
from format.verbs.dump_log.contents import prints_strings
from format.verbs.dump_log.options import DumpLogOptions, Release

_OUT_BYTES = 1024 * 1024
_LINE_BYTES = 1024
_DONE, _FULL, _ODD_BATCH, _ODD_RECORD = range(len(DUMP_LOG_STOPS))
_MAGIC_AT = layout.MESSAGE_V0.offset_of("magic")
_CRC_AT = layout.MESSAGE_V0.offset_of("crc")
_BATCH, _IS_BEGUN, _RECORD, _STOP = range(4)
_NO_RECORDS = np.empty((0, len(RECORD_COLUMNS)), np.int64)


class BulkLines:
    """The kernel's line writer for one set of options, and the buffer that it writes to."""

    def __init__(self, options: DumpLogOptions) -> None:
        self.wants = (
            (0 if options.skips_record_metadata else DUMP_LOG_METADATA)
            | (DUMP_LOG_CONTENTS if options.prints_contents else 0)
            | (DUMP_LOG_3_9_1 if options.emulate is Release.V3_9_1 else 0)
        )
        self.out = np.empty(_OUT_BYTES, np.uint8)
        self.tables = crc_tables()

    @staticmethod
    def serves(options: DumpLogOptions) -> bool:
        """Whether the kernel can print what the options ask for."""
        return not options.prints_contents or prints_strings(options)

    def start(
        self, table: BatchTable, first: int, last: int, records: RecordTable | None, record: int, *, is_begun: bool
    ) -> BulkWork:
        """Begin at batch ``first``, and at row ``record`` of ``records``.

        ``is_begun``: the first batch's own line is written already.
        """
        return BulkWork(self, table, last, records, np.array([first, is_begun, record, _DONE], np.int64))

    def room_for(self, size_bytes: int) -> None:
        """Make room for the line of a record of that size."""
        if len(self.out) < _LINE_BYTES + 2 * size_bytes:
            self.out = np.empty(_LINE_BYTES + 2 * size_bytes, np.uint8)


class BulkWork:
    """One pass over some batches. It stops at an odd batch or record; the caller writes that one and skips it."""

    def __init__(
        self, bulk: BulkLines, table: BatchTable, last: int, records: RecordTable | None, state: NDArray[np.int64]
    ) -> None:
        self._bulk = bulk
        self._table = table
        self._last = last
        self._columns = _NO_RECORDS if records is None else records.columns
        self._sizes = None if records is None else records.size_bytes
        self._buffer = memoryview(b"") if records is None else records.buffer
        self._state = state

    def next_lines(self) -> memoryview:
        """The lines up to the end, an odd batch or record, or a full buffer; valid until the next call."""
        state = self._state
        filled = write_dump_log(
            memoryview(self._table.columns),
            memoryview(self._table.crc_valid),
            self._buffer,
            memoryview(self._columns),
            self._bulk.tables,
            self._last,
            self._bulk.wants,
            memoryview(state),
            memoryview(self._bulk.out),
        )
        lines = memoryview(self._bulk.out[:filled])
        if state[_STOP] == _FULL and not filled and self._sizes is not None:
            self._bulk.room_for(int(self._sizes[state[_RECORD]]))
        return lines

    @property
    def is_done(self) -> bool:
        return bool(self._state[_STOP] == _DONE)

    @property
    def is_at_odd_batch(self) -> bool:
        return bool(self._state[_STOP] == _ODD_BATCH)

    @property
    def is_at_odd_record(self) -> bool:
        return bool(self._state[_STOP] == _ODD_RECORD)

    @property
    def batch(self) -> int:
        """The row of the next batch, or of the batch whose records are next."""
        return int(self._state[_BATCH])

    def skip_batch(self) -> None:
        """Go on with the next batch; the caller has written this one."""
        self._state[_BATCH] += 1
        self._state[_IS_BEGUN] = 0

    @property
    def record(self) -> int:
        """The row of the next record."""
        return int(self._state[_RECORD])

    @record.setter
    def record(self, row: int) -> None:
        self._state[_RECORD] = row


def inner_checks(records: RecordTable) -> list[tuple[int, bool]]:
    """The stored CRC of each v0 or v1 message, and whether it is correct."""
    buffer = records.buffer
    checks = []
    for start, size_bytes in zip(records.start.tolist(), records.size_bytes.tolist(), strict=True):
        crc = int.from_bytes(buffer[start + _CRC_AT : start + _MAGIC_AT], "big")
        checks.append((crc, crc32_of(buffer[start + _MAGIC_AT : start + size_bytes]) == crc))
    return checks
