"""Whether records are in the partition that Kafka's default partitioner chooses for their keys."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from format import layout
from format.findings import Finding, finding
from format.kernel.partitioner import find_misplaced_record
from format.location import Location
from format.log.batch_table import batch_location
from format.log.partitioner import partition_for_key
from format.log.record_table import RecordTable


def is_placed_by_key(location: Location) -> bool:
    """Whether the default partitioner applies to a log: its partition is known, and the topic is not internal.

    Internal topics are partitioned in other ways: by group id, by transactional id, or by a plug-in.
    """
    return location.partition is not None and not (location.topic or "").startswith(layout.INTERNAL_TOPIC_PREFIX)


def check_key_placement(table: RecordTable, location: Location, partition_count: int) -> Iterator[Finding]:
    """A finding for each batch with keys of other partitions, given the partition count: for the first such record.

    Source: clients BuiltInPartitioner.partitionForKey, since 0.8 the default of the Java clients.
    """
    partition = location.partition
    if partition is None or not len(table):
        return
    records, batches = (memoryview(np.ascontiguousarray(each.columns)) for each in (table, table.batches))
    batch_column = table.batch
    row = find_misplaced_record(table.buffer, records, batches, partition, partition_count, 0)
    while row >= 0:
        batch, offset = int(batch_column[row]), int(table.offset[row])
        place = batch_location(location, table.batches, batch)
        own = partition_for_key(table.key(row) or b"", partition_count)
        yield finding(
            "record-misplaced",
            place.at(place.position, place.length, offset),
            f"the key of the record at offset {offset} belongs in partition {own} of {partition_count}",
            expected=own,
            actual=partition,
        )
        next_batch = int(np.searchsorted(batch_column, batch, side="right"))
        row = find_misplaced_record(table.buffer, records, batches, partition, partition_count, next_batch)
