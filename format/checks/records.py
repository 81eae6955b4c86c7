"""Records inside batches: can they be decoded, do they match their header, are they in the partition of their key?"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import groupby

import msgspec
import numpy as np
from numpy.typing import NDArray

from format import layout
from format.codecs import decompress_briefly
from format.errors import CorruptDataError, KafkaLogError
from format.findings import Finding, finding, finding_of
from format.kernel.checks import count_sound_batches, find_bad_header_key, find_wrong_offset
from format.kernel.partitioner import find_misplaced_record
from format.limits import Limits
from format.location import Location
from format.log.batch_chunk import BatchChunk
from format.log.batch_table import batch_location
from format.log.control_records import decode_control_record
from format.log.read_records import BatchGroup, BatchKind, inner_crcs
from format.log.record_table import RecordTable, partition_for_key
from format.timestamps import iso_time

_HEADER_BYTES = layout.RECORD_BATCH.size_bytes


class SoundRecords(msgspec.Struct, frozen=True):
    """The records of a group without findings: their number, and the first offset of a record without a key."""

    count: int
    keyless_offset: int | None


def sound_records(chunk: BatchChunk, group: BatchGroup, limits: Limits) -> SoundRecords | None:
    """The records of a group of batches, checked by the kernel; None if ``RecordCheck`` must check their tables.

    Compressed batches are checked one by one as soon as they are decompressed, while the bytes are in the CPU cache.
    """
    if group.kind is not BatchKind.V2:
        return None
    table, rows, buffer = chunk.table, group.rows, chunk.bodies
    columns = memoryview(np.ascontiguousarray(table.columns))
    spans = np.empty((len(rows), 3), np.int64)
    spans[:, 0] = rows
    spans[:, 1] = table.position[rows] - (chunk.buffer_position - _HEADER_BYTES)
    spans[:, 2] = table.end_position[rows] - chunk.buffer_position
    found = np.array((0, -1), np.int64)
    codecs = table.codec[rows]
    if not codecs.any():
        sound = count_sound_batches(buffer, memoryview(spans), columns, limits.max_record_bytes, memoryview(found))
        if sound < len(rows):
            return None
    else:
        span, view = memoryview(np.empty((1, 3), np.int64)), memoryview(found)
        for codec, (row, start, end) in zip(codecs.tolist(), spans.tolist(), strict=True):
            content: bytes | memoryview = buffer[start:end]
            if codec:
                try:
                    content = decompress_briefly(codec, content, limits)
                except KafkaLogError:
                    return None  # the full check reports it
            span[0, 0], span[0, 1], span[0, 2] = row, 0, len(content)
            if not count_sound_batches(content, span, columns, limits.max_record_bytes, view):
                return None
    count, keyless_offset = found.tolist()
    return SoundRecords(count, None if keyless_offset < 0 else keyless_offset)


def reading_findings(table: RecordTable, location: Location) -> Iterator[Finding]:
    """Findings that every reader of records gives: records that cannot be read, or whose offsets are wrong."""
    for problem in table.problems:
        yield finding_of(problem.error, location)
    if len(table):
        yield from check_record_offsets(table, location)


def check_record_offsets(table: RecordTable, location: Location, before: int = -1) -> Iterator[Finding]:
    """A finding for each batch with records whose offsets do not rise, or are not those of the batch.

    ``before`` is the offset of the last record of the table before, for a batch that continues from there.
    """
    batches = table.batches
    records, headers = (memoryview(np.ascontiguousarray(each.columns)) for each in (table, batches))
    row = find_wrong_offset(records, headers, 0, before if table.is_continued else -1)
    while row >= 0:
        batch, offset = int(table.batch[row]), int(table.offset[row])
        place = batch_location(location, batches, batch)
        yield finding(
            "record-offset-invalid",
            place.at(place.position, place.length, offset),
            f"record offset {offset} is out of order or outside the batch's offsets "
            f"{batches.base_offset[batch]} to {batches.last_offset[batch]}",
        )
        row = find_wrong_offset(records, headers, int(np.searchsorted(table.batch, batch, side="right")), -1)


class RecordCheck:
    """Checks the record tables of one log, in log order; a batch may span several tables."""

    def __init__(self, location: Location, limits: Limits) -> None:
        self._location = location
        self._limits = limits
        self._is_sound_so_far = True  # no table had findings, or those of the last group had none
        self._last_offset = 0  # of the batch that continues after the last table, with its largest timestamp so far
        self._largest_timestamp = 0

    def sound_records(self, chunk: BatchChunk, group: BatchGroup) -> SoundRecords | None:
        """The records of a group without findings; None if the tables of the group must be checked.

        After a group that needed this, the next one is not tried, so that a log with findings in every group is not
        decompressed twice.
        """
        if not self._is_sound_so_far:
            self._is_sound_so_far = True
            return None
        sound = sound_records(chunk, group, self._limits)
        self._is_sound_so_far = sound is not None
        return sound

    def findings(self, table: RecordTable) -> Iterator[Finding]:
        """Findings for one table of records, beginning with those of its reader."""
        for found in self._findings(table):
            self._is_sound_so_far = False
            yield found

    def _findings(self, table: RecordTable) -> Iterator[Finding]:
        location = self._location
        for problem in table.problems:
            yield finding_of(problem.error, location)
        if not len(table):
            return
        starts = np.flatnonzero(np.concatenate(([True], table.batch[1:] != table.batch[:-1])))
        yield from check_record_offsets(table, location, self._last_offset)
        self._last_offset = int(table.offset[-1])
        yield from self._max_timestamps(table, starts)
        yield from _check_fields(table, location, self._limits)

    def _max_timestamps(self, table: RecordTable, starts: NDArray[np.intp]) -> Iterator[Finding]:
        """Findings for batches whose max timestamp is not that of a record.

        A broker takes the largest of the records and -1, "no timestamp" (storage LogValidator): it stores -1 for those
        of batches whose records are all older than 1970.
        """
        batches = table.batches
        rows = table.batch[starts]
        largest = np.maximum.reduceat(table.timestamp, starts)
        if table.is_continued:
            largest[0] = max(int(largest[0]), self._largest_timestamp)
        self._largest_timestamp = int(largest[-1])
        damaged = {problem.batch for problem in table.problems}
        stored = batches.max_timestamp[rows]
        is_right = (stored == largest) | ((stored == layout.NO_TIMESTAMP) & (largest < layout.NO_TIMESTAMP))
        wrong = ~is_right & ~batches.is_append_time[rows] & (batches.magic[rows] > 0)
        if table.is_cut:
            wrong[-1] = False
        for number in np.flatnonzero(wrong).tolist():
            row = int(rows[number])
            if row in damaged:
                continue
            stated, proven = int(batches.max_timestamp[row]), int(largest[number])
            yield finding(
                "max-timestamp-mismatch",
                batch_location(self._location, batches, row),
                f"the header's max timestamp is {iso_time(stated)}, but the largest of the records is "
                f"{iso_time(proven)}",
                expected=proven,
                actual=stated,
            )


def _check_fields(table: RecordTable, location: Location, limits: Limits) -> Iterator[Finding]:
    """Findings for single records: attributes, size, header keys, control records, the CRC of an inner message."""
    batches = table.batches
    batch, offset = table.batch, table.offset
    yield from _per_batch(
        table, location, (table.attributes != 0) & (batches.magic[batch] == 2), "record-attributes-unknown",
        lambda row, of: f"the record at offset {offset[row]} has attributes {table.attributes[row]:#04x}",
    )  # fmt: skip
    yield from _per_batch(
        table, location, table.size_bytes > limits.max_record_bytes, "limit-exceeded",
        lambda row, of: f"the record at offset {offset[row]} has {table.size_bytes[row]} bytes, "
                        f"over the limit of {limits.max_record_bytes}",
    )  # fmt: skip
    yield from _check_header_keys(table, location)
    yield from _check_control_records(table, location)
    inner = np.flatnonzero(batches.is_wrapper[batch])
    for row in inner[~inner_crcs(table, inner)[1]].tolist():
        of = int(batch[row])
        yield finding(
            "message-invalid",
            batch_location(location, batches, of).at(
                int(batches.position[of]), int(batches.size_bytes[of]), int(offset[row])
            ),
            f"the inner message at offset {offset[row]} has a wrong CRC",
        )


def _check_header_keys(table: RecordTable, location: Location) -> Iterator[Finding]:
    rows = np.flatnonzero(table.header_count > 0)
    if not len(rows):
        return
    columns = np.ascontiguousarray(table.columns[rows])
    bad = find_bad_header_key(table.buffer, memoryview(columns), 0)
    while bad >= 0:
        row = int(rows[bad])
        of = int(table.batch[row])
        place = batch_location(location, table.batches, of)
        yield finding(
            "record-header-not-utf8",
            place.at(place.position, place.length, int(table.offset[row])),
            f"a header key of the record at offset {table.offset[row]} is not UTF-8",
        )
        bad = find_bad_header_key(table.buffer, memoryview(columns), bad + 1)


def _check_control_records(table: RecordTable, location: Location) -> Iterator[Finding]:
    batches = table.batches
    for row in np.flatnonzero(batches.is_control[table.batch]).tolist():
        of = int(table.batch[row])
        try:
            decode_control_record(table.key(row), table.value(row))
        except CorruptDataError as error:
            error.location = batch_location(location, batches, of)
            yield finding_of(error)


def _per_batch(
    table: RecordTable, location: Location, wrong: NDArray[np.bool_], code: str, message: Callable[[int, int], str]
) -> Iterator[Finding]:
    """One finding for the first ``wrong`` record of each batch; ``message`` takes the row and the batch of it."""
    rows = np.flatnonzero(wrong)
    if not len(rows):
        return
    of = table.batch[rows]
    first_of_batch = rows[np.concatenate(([True], of[1:] != of[:-1]))]
    for row in first_of_batch.tolist():
        batch = int(table.batch[row])
        place = batch_location(location, table.batches, batch)
        yield finding(code, place.at(place.position, place.length, int(table.offset[row])), message(row, batch))


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


def misplaced_rows(table: RecordTable, partition: int, partition_count: int) -> list[int]:
    """The rows of records with keys of other partitions, given their number."""
    rows: list[int] = []
    if not len(table):
        return rows
    records, batches = (memoryview(np.ascontiguousarray(each.columns)) for each in (table, table.batches))
    row = find_misplaced_record(table.buffer, records, batches, partition, partition_count, 0)
    while row >= 0:
        rows.append(row)
        row = find_misplaced_record(table.buffer, records, batches, partition, partition_count, row + 1)
    return rows


def misplaced_records(
    table: RecordTable, location: Location, partition_count: int
) -> Iterator[tuple[Finding, Misplaced]]:
    """For each batch with keys of other partitions, given their number, a finding and the records that it is about.

    Source: clients BuiltInPartitioner.partitionForKey, since 0.8 the default of the Java clients.
    """
    partition = location.partition
    if partition is None or not len(table):
        return
    batch_column, rows = table.batch, misplaced_rows(table, partition, partition_count)
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
