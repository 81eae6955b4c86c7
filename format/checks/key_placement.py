"""Whether records are in the partition that Kafka's default partitioner chooses for their keys."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

import msgspec
import numpy as np

from format import layout
from format.findings import Finding, finding
from format.kernel.partitioner import find_misplaced_record
from format.location import Location
from format.log.batch_table import batch_location
from format.log.record_table import RecordTable, partition_for_key


def is_placed_by_key(location: Location) -> bool:
    """Whether the default partitioner applies to a log: its partition is known, and the topic is not internal.

    Internal topics are partitioned in other ways: by group id, by transactional id, or by a plug-in.
    """
    return location.partition is not None and not (location.topic or "").startswith(layout.INTERNAL_TOPIC_PREFIX)


class Misplaced(msgspec.Struct, frozen=True):
    """Records of a partition whose keys belong in other ones: how many, and the offsets of the first and the last."""

    count: int
    first: int
    last: int

    def __add__(self, other: Misplaced) -> Misplaced:
        return Misplaced(self.count + other.count, min(self.first, other.first), max(self.last, other.last))


def misplaced_records(
    table: RecordTable, location: Location, partition_count: int
) -> Iterator[tuple[Finding, Misplaced]]:
    """For each batch with keys of other partitions, given their number, a finding and the records that it is about.

    Source: clients BuiltInPartitioner.partitionForKey, since 0.8 the default of the Java clients.
    """
    partition = location.partition
    if partition is None or not len(table):
        return
    records, batches = (memoryview(np.ascontiguousarray(each.columns)) for each in (table, table.batches))
    batch_column = table.batch
    rows = []
    row = find_misplaced_record(table.buffer, records, batches, partition, partition_count, 0)
    while row >= 0:
        rows.append(row)
        row = find_misplaced_record(table.buffer, records, batches, partition, partition_count, row + 1)
    for batch, group in groupby(rows, key=lambda each: int(batch_column[each])):
        own_rows = list(group)
        offsets = table.offset[own_rows]
        found = Misplaced(len(own_rows), int(offsets[0]), int(offsets[-1]))
        place = batch_location(location, table.batches, batch)
        own = partition_for_key(table.key(own_rows[0]) or b"", partition_count)
        words = f"the key of the record at offset {found.first} belongs"
        if found.count > 1:
            words = (
                f"the keys of {found.count} records, offsets {found.first} to {found.last}, belong in other "
                "partitions; the first"
            )
        yield (
            finding(
                "record-misplaced",
                place.at(place.position, place.length, found.first),
                f"{words} in partition {own} of {partition_count}",
                expected=own,
                actual=partition,
            ),
            found,
        )
