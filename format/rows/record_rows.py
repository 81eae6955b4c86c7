"""From columns to rows: what one line of output holds, for batches and for records."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from format import layout
from format.columns import BATCH, RECORD, RowSchema
from format.location import Location
from format.log.batch_table import BatchTable
from format.log.record_table import RecordTable

Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class RowBlock:
    """Rows of one schema, in order, to be read once; ``records``, ``batches`` are the columns behind such rows."""

    schema: RowSchema
    rows: Iterable[Row]
    location: Location | None = None
    records: RecordTable | None = None
    batches: BatchTable | None = None

    def first(self, count: int) -> tuple[RowBlock, int]:
        """The first rows, at most so many, and how many they are."""
        if self.records is not None:
            records = self.records.rows(slice(0, count))
            return replace(self, rows=islice(self.rows, count), records=records), len(records)
        if self.batches is not None:
            batches = self.batches.rows(slice(0, count))
            return replace(self, rows=islice(self.rows, count), batches=batches), len(batches)
        rows = list(islice(self.rows, count))
        return replace(self, rows=rows), len(rows)


def timestamp_type_name(magic: int, attributes: int) -> str:
    """CreateTime, LogAppendTime, or NoTimestampType for v0."""
    if magic == 0:
        return layout.NO_TIMESTAMP_TYPE
    return layout.TIMESTAMP_TYPE_NAMES[bool(attributes & layout.TIMESTAMP_TYPE_BIT)]


def batch_rows(table: BatchTable, location: Location) -> Iterator[Row]:
    """One row of columns.BATCH per batch; fields that the batch's format has not are None."""
    columns = zip(
        table.position.tolist(),
        table.size_bytes.tolist(),
        table.magic.tolist(),
        table.base_offset.tolist(),
        table.last_offset_delta.tolist(),
        table.record_count.tolist(),
        table.attributes.tolist(),
        table.crc.tolist(),
        table.leader_epoch.tolist(),
        table.base_timestamp.tolist(),
        table.max_timestamp.tolist(),
        table.producer_id.tolist(),
        table.producer_epoch.tolist(),
        table.base_sequence.tolist(),
        table.crc_valid.tolist(),
        strict=True,
    )
    topic, partition, segment = location.topic, location.partition, location.base_offset
    for (
        position, size_bytes, magic, base_offset, last_delta, count, attributes, crc, leader_epoch, base_timestamp,
        max_timestamp, producer_id, producer_epoch, base_sequence, crc_valid,
    ) in columns:  # fmt: skip
        is_v2 = magic == 2
        has_horizon = is_v2 and bool(attributes & layout.DELETE_HORIZON_BIT)
        yield (
            topic,
            partition,
            segment,
            position,
            size_bytes,
            base_offset,
            base_offset + last_delta,
            None if count < 0 and not is_v2 else count,
            magic,
            layout.CODEC_BITS_NAMES[attributes & layout.CODEC_MASK],
            timestamp_type_name(magic, attributes),
            None if has_horizon or magic == 0 else base_timestamp,
            None if magic == 0 else max_timestamp,
            leader_epoch if is_v2 else None,
            producer_id if is_v2 else None,
            producer_epoch if is_v2 else None,
            base_sequence if is_v2 else None,
            bool(attributes & layout.TRANSACTIONAL_BIT) if is_v2 else None,
            bool(attributes & layout.CONTROL_BIT) if is_v2 else None,
            base_timestamp if has_horizon else None,
            crc,
            None if crc_valid < 0 else bool(crc_valid),
        )


def record_rows(table: RecordTable, location: Location) -> Iterator[Row]:
    """One row of columns.RECORD per record; fields that its format has not are None."""
    topic, partition, segment = location.topic, location.partition, location.base_offset
    buffer = table.buffer
    batch = table.batch
    of_batch = table.batches.columns[batch]
    batches = BatchTable(of_batch)
    columns = zip(
        table.offset.tolist(),
        table.timestamp.tolist(),
        table.size_bytes.tolist(),
        table.key_start.tolist(),
        table.key_length.tolist(),
        table.value_start.tolist(),
        table.value_length.tolist(),
        table.header_count.tolist(),
        table.sequence.tolist(),
        batches.magic.tolist(),
        batches.attributes.tolist(),
        batches.leader_epoch.tolist(),
        batches.producer_id.tolist(),
        batches.producer_epoch.tolist(),
        batches.base_offset.tolist(),
        batches.position.tolist(),
        strict=True,
    )
    for row, (
        offset, timestamp, size_bytes, key_start, key_length, value_start, value_length, header_count, sequence, magic,
        attributes, leader_epoch, producer_id, producer_epoch, base_offset, position,
    ) in enumerate(columns):  # fmt: skip
        is_v2 = magic == 2
        yield (
            topic,
            partition,
            offset,
            None if magic == 0 else timestamp,
            timestamp_type_name(magic, attributes),
            magic,
            layout.CODEC_BITS_NAMES[attributes & layout.CODEC_MASK],
            None if key_length < 0 else bytes(buffer[key_start : key_start + key_length]),
            None if value_length < 0 else bytes(buffer[value_start : value_start + value_length]),
            (table.headers(row) if header_count else []) if is_v2 else None,
            leader_epoch if is_v2 else None,
            producer_id if is_v2 else None,
            producer_epoch if is_v2 else None,
            sequence if is_v2 else None,
            bool(attributes & layout.TRANSACTIONAL_BIT) if is_v2 else None,
            bool(attributes & layout.CONTROL_BIT) if is_v2 else None,
            base_offset,
            segment,
            position,
            size_bytes,
        )


def batch_block(table: BatchTable, location: Location) -> RowBlock:
    return RowBlock(BATCH, batch_rows(table, location), location, batches=table)


def record_block(table: RecordTable, location: Location) -> RowBlock:
    return RowBlock(RECORD, record_rows(table, location), location, table)
