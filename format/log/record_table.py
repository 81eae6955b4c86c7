"""Records as columns, with the places of keys, values and headers; comparison of records; the partition of a key."""

from __future__ import annotations

import msgspec
import numpy as np
from numpy.typing import NDArray

from format import layout
from format.errors import KafkaLogError
from format.kernel.partitioner import hash_of_key
from format.kernel.records import index_headers
from format.kernel.search import find_other_record
from format.kernel.tables import RECORD_COLUMNS
from format.location import Location
from format.log.batch_table import BatchTable, Int64Column, TableColumn

#: The index of each column of a RecordTable, by name.
RECORD_COLUMN = {name: number for number, name in enumerate(RECORD_COLUMNS)}
_COLUMN = RECORD_COLUMN


class RecordProblem(msgspec.Struct, frozen=True):
    """A batch whose records cannot all be read: its row in the batch table, and the error.

    The records before the error are in the RecordTable.
    """

    batch: int
    error: KafkaLogError


class RecordTable(msgspec.Struct):
    """Records in log order: ``columns`` is int64, with a row for each record (RECORD_COLUMNS).

    Starts are indexes in ``buffer``; ``batch`` is the row of the record's batch in ``batches``. Timestamps are in ms,
    -1 for none. A batch of very many records spans several tables: ``is_cut`` means that the last batch continues in
    the next table, ``is_continued`` that the first batch started in the previous one. The properties are int64 columns.
    """

    batches: BatchTable
    buffer: memoryview
    columns: Int64Column
    problems: list[RecordProblem] = msgspec.field(default_factory=list)
    is_continued: bool = False
    is_cut: bool = False
    decoded: NDArray[np.object_] | None = None

    def __len__(self) -> int:
        return len(self.columns)

    batch = TableColumn(_COLUMN["batch"])
    offset = TableColumn(_COLUMN["offset"])
    timestamp = TableColumn(_COLUMN["timestamp"])
    attributes = TableColumn(_COLUMN["attributes"])  # the byte of the record (of the message for v0 and v1)
    start = TableColumn(_COLUMN["start"])
    size_bytes = TableColumn(_COLUMN["size_bytes"])  # of the uncompressed record, its length field included
    key_start = TableColumn(_COLUMN["key_start"])
    key_length = TableColumn(_COLUMN["key_length"])  # -1 for null
    value_start = TableColumn(_COLUMN["value_start"])
    value_length = TableColumn(_COLUMN["value_length"])  # -1 for null
    headers_start = TableColumn(_COLUMN["headers_start"])
    header_count = TableColumn(_COLUMN["header_count"])  # -1 for a format without headers

    @property
    def sequence(self) -> Int64Column:
        """The sequence of the record, -1 for none; 0 follows 2**31-1 (DefaultRecordBatch.incrementSequence)."""
        base = self.batches.base_sequence[self.batch]
        delta = self.offset - self.batches.base_offset[self.batch]
        return np.where(base < 0, layout.NO_SEQUENCE, (base + delta) & layout.MAX_RELATIVE_OFFSET)

    def rows(self, which: slice | NDArray[np.bool_] | NDArray[np.intp]) -> RecordTable:
        """A table of the rows that a slice, mask or index array selects, over the same buffer; without problems."""
        decoded = None if self.decoded is None else self.decoded[which]
        return RecordTable(self.batches, self.buffer, self.columns[which], decoded=decoded)

    def key(self, row: int) -> bytes | None:
        return self._bytes(row, "key_start", "key_length")

    def value(self, row: int) -> bytes | None:
        return self._bytes(row, "value_start", "value_length")

    def headers(self, row: int) -> list[tuple[bytes, bytes | None]] | None:
        """The headers in order, None if the format has none."""
        if int(self.columns[row, _COLUMN["header_count"]]) < 0:
            return None
        return [
            (
                bytes(self.buffer[key_start : key_start + key_length]),
                None if value_length < 0 else bytes(self.buffer[value_start : value_start + value_length]),
            )
            for key_start, key_length, value_start, value_length in self.header_spans(row)
        ]

    def header_spans(self, row: int) -> list[list[int]]:
        """For each header the start and length of its key, and of its value, in the buffer."""
        count = int(self.columns[row, _COLUMN["header_count"]])
        if count <= 0:
            return []
        start = int(self.columns[row, _COLUMN["headers_start"]])
        spans = np.empty((count, 4), np.int64)
        index_headers(self.buffer, start, len(self.buffer), count, memoryview(spans))
        found: list[list[int]] = spans.tolist()
        return found

    def _bytes(self, row: int, start_name: str, length_name: str) -> bytes | None:
        length = int(self.columns[row, _COLUMN[length_name]])
        if length < 0:
            return None
        start = int(self.columns[row, _COLUMN[start_name]])
        return bytes(self.buffer[start : start + length])


def located(error: KafkaLogError, place: Location) -> KafkaLogError:
    """Set the location of an error that has none; return the error."""
    if error.location is None:
        error.location = place
    return error


#: The fields of a record that are those of its batch.
OF_BATCH = ("is_append_time", "leader_epoch", "producer_id", "producer_epoch", "is_transactional", "is_control")


def differ_in_numbers(mine: RecordTable, theirs: RecordTable) -> NDArray[np.bool_]:
    """Which records differ in a number, a length, or a field of their batch; the tables must be of equal length."""
    are_other: NDArray[np.bool_] = (mine.offset != theirs.offset) | (mine.timestamp != theirs.timestamp)
    are_other |= (mine.key_length != theirs.key_length) | (mine.value_length != theirs.value_length)
    are_other |= np.maximum(mine.header_count, 0) != np.maximum(theirs.header_count, 0)
    are_other |= mine.sequence != theirs.sequence
    for name in OF_BATCH:
        are_other |= getattr(mine.batches, name)[mine.batch] != getattr(theirs.batches, name)[theirs.batch]
    return are_other


def next_other_bytes(mine: RecordTable, theirs: RecordTable, first: int) -> int:
    """The first row from ``first`` on whose key, value or headers differ in their bytes; -1 for none.

    The lengths of keys and values and the numbers of headers must be equal.
    """
    columns = memoryview(mine.columns), memoryview(theirs.columns)
    return find_other_record(mine.buffer, columns[0], theirs.buffer, columns[1], first)


def differing_records(mine: RecordTable, theirs: RecordTable) -> NDArray[np.bool_]:
    """Which records differ in content; the tables must be of equal length."""
    are_other = differ_in_numbers(mine, theirs)
    same = np.flatnonzero(~are_other)
    if not len(same):
        return are_other
    left, right = (mine, theirs) if len(same) == len(are_other) else (mine.rows(same), theirs.rows(same))
    row = -1
    while (row := next_other_bytes(left, right, row + 1)) >= 0:
        are_other[same[row]] = (left.key(row), left.value(row), left.headers(row) or []) != (
            right.key(row),
            right.value(row),
            right.headers(row) or [],
        )
    return are_other


def murmur2(key: bytes | bytearray | memoryview) -> int:
    """The 32-bit murmur2 hash of a key, signed as in Java (clients common/utils/Utils.murmur2)."""
    digest = hash_of_key(key, 0, len(key))
    return digest - (1 << 32) if digest >> 31 else digest


def partition_for_key(key: bytes | bytearray | memoryview, partition_count: int) -> int:
    """The partition that the default partitioner chooses for a key (clients BuiltInPartitioner.partitionForKey).

    A record without a key may go to any partition. Raises ValueError for a topic without partitions.
    """
    if partition_count < 1:
        raise ValueError(f"a topic has at least one partition, not {partition_count}")
    return (murmur2(key) & 0x7FFFFFFF) % partition_count
