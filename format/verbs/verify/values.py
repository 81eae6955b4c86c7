"""verify --values: keys and values that do not decode, counted by partition, schema and producer."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any

import msgspec

from format.decoding.decoder import Decoding
from format.findings import Finding
from format.limits import DEFAULT_LIMITS, MIB, Limits
from format.location import Location
from format.log.read_records import record_tables
from format.log.record_table import RecordTable
from format.node.target import Target
from format.rows.decoded_rows import DECODING_COST, UndecodableField, decoded_table, topic_decoder, undecodable_finding
from format.scan.drivers import scan_logs
from format.scan.progress import Advance, no_progress
from format.scan.protocol import Depth, LogParts, LogUnit, Needs, OpenedRange
from format.scan.read_log import selected_chunks
from format.scan.selected_logs import LOG_KINDS, selected_logs
from format.scan.selection import EVERYTHING
from format.timestamps import iso_time
from format.wording import counted, counted_plainly, listed, shell_line

_CHUNK_BYTES = MIB
_MOST_NAMED = 5
_MOST_PRODUCERS = 3


class UndecodableValues(msgspec.Struct):
    """Keys or values (``field``) of one log or partition that name one schema, wrote one producer, and do not decode.

    ``place``, ``timestamp`` and ``reason`` are those of the first.
    """

    field: str
    schema_id: int | str | None
    producer_id: int
    producer_epoch: int
    place: Location
    timestamp: int
    reason: str
    count: int = 0
    last_offset: int = -1

    @property
    def key(self) -> tuple[Any, ...]:
        """What is counted together."""
        where = self.place
        schema = str(self.schema_id)
        return where.topic, where.partition, self.field, schema, self.producer_id, self.producer_epoch

    def finding(self) -> Finding:
        """The finding about all of them, at the first."""
        what = (
            f"the {self.field}" if self.count == 1 else f"the {self.field}s of {counted_plainly(self.count, 'record')}"
        )
        actual = {
            "field": self.field,
            "schema_id": self.schema_id,
            "count": self.count,
            "last_offset": self.last_offset,
            "first_timestamp": None if self.timestamp < 0 else self.timestamp,
            "producer_id": self.producer_id,
            "producer_epoch": self.producer_epoch,
        }
        where = f"{self.place.topic}-{self.place.partition}:{self.place.offset}"
        found = undecodable_finding(
            self.place, what, self.schema_id, f"{self.reason} ({self.since}; by {self.producer})"
        )
        words = ("kafkalog", "dump", "--records", "--raw", where, os.path.dirname(self.place.path))
        step = f"Look at one: {shell_line(words)}" if self.place.topic is not None else ""
        return msgspec.structs.replace(found, actual=actual, next_step=step)

    @property
    def since(self) -> str:
        """Since when, in words."""
        place = "" if self.place.topic is None else f" of {self.place.topic}-{self.place.partition}"
        when = "" if self.timestamp < 0 else f", {iso_time(self.timestamp)}"
        return f"since offset {self.place.offset}{place}{when}"

    @property
    def producer(self) -> str:
        """Who wrote them, in words."""
        if self.producer_id < 0:
            return "a producer without an id"
        return f"producer {self.producer_id} with epoch {self.producer_epoch}"


class ValueCounts(msgspec.Struct):
    """How many keys and values were decoded, and how many stayed raw, as nothing says what they are."""

    decoded: int = 0
    raw: int = 0


class ValueScan(msgspec.Struct, frozen=True):
    """verify --values as a scan: the parts are counts of chunks, the fold adds them up for each log."""

    decoding: Decoding
    limits: Limits = DEFAULT_LIMITS

    @property
    def needs(self) -> Needs:
        return Needs(Depth.RECORDS, EVERYTHING, self.limits, _CHUNK_BYTES, DECODING_COST)

    def parts(self, opened: OpenedRange) -> Iterator[UndecodableValues | ValueCounts]:
        """The counts of each table of records; what verify finds is not found again."""
        for item in selected_chunks(opened, self.needs):
            if isinstance(item, Finding):
                continue
            decoder = topic_decoder(item.location, self.decoding)
            tables = record_tables(item.chunk, which=item.readable, limits=self.limits, location=item.location)
            for table in tables:
                if len(table):
                    read, undecodable = decoded_table(table, decoder)
                    yield _counts(read, len(undecodable))
                    yield from _added(_each(read, undecodable, item.location))

    def fold(
        self, log: LogUnit, parts: LogParts[UndecodableValues | ValueCounts]
    ) -> Iterator[UndecodableValues | ValueCounts]:
        """The sums of a log."""
        counts = ValueCounts()

        def undecodable() -> Iterator[UndecodableValues]:
            for part in parts:
                if isinstance(part, ValueCounts):
                    counts.decoded += part.decoded
                    counts.raw += part.raw
                else:
                    yield part

        yield from _added(undecodable())
        yield counts


def _counts(table: RecordTable, undecodable_count: int) -> ValueCounts:
    decoded = table.decoded
    if decoded is None:
        return ValueCounts()
    texts, formats = (sum(value is not None for value in decoded[:, at].flat) for at in ((0, 3), (2, 5)))
    return ValueCounts(texts, formats - texts - undecodable_count)


def _each(
    table: RecordTable, undecodable: Sequence[UndecodableField], location: Location
) -> Iterator[UndecodableValues]:
    batches = table.batches
    for each in undecodable:
        batch, offset = int(table.batch[each.row]), int(table.offset[each.row])
        is_v2 = int(batches.magic[batch]) == 2
        yield UndecodableValues(
            each.field,
            each.schema_id,
            int(batches.producer_id[batch]) if is_v2 else -1,
            int(batches.producer_epoch[batch]) if is_v2 else -1,
            location.at(position=int(batches.position[batch]), offset=offset),
            int(table.timestamp[each.row]),
            each.reason,
            1,
            offset,
        )


def _added(found: Iterable[UndecodableValues]) -> list[UndecodableValues]:
    """Sums of what is counted together, in the order of the first ones."""
    sums: dict[tuple[Any, ...], UndecodableValues] = {}
    for each in found:
        total = sums.setdefault(each.key, each)
        if total is not each:
            total.count += each.count
            total.last_offset = each.last_offset
    return list(sums.values())


def undecodable_values(
    targets: Iterable[Target], decoding: Decoding, limits: Limits, *, jobs: int = 1, advance: Advance = no_progress
) -> tuple[list[UndecodableValues], ValueCounts]:
    """The keys and values at some targets that do not decode, by partition, and the counts of the others."""
    logs = (
        log
        for target in targets
        if target.kind in LOG_KINDS
        for log in selected_logs(target, EVERYTHING)
        if isinstance(log, LogUnit)
    )
    found: list[UndecodableValues] = []
    counts = ValueCounts()
    for item in scan_logs(ValueScan(decoding, limits), logs, jobs=jobs, advance=advance):
        if isinstance(item, ValueCounts):
            counts.decoded += item.decoded
            counts.raw += item.raw
        elif isinstance(item, UndecodableValues):
            found.append(item)
    return _added(found), counts


def undecodable_words(found: Sequence[UndecodableValues]) -> str:
    """A line for each topic and schema with what does not decode: how many, since when, and who wrote it."""

    def kind(each: UndecodableValues) -> tuple[str, str, str]:
        return each.place.topic or "", each.field, str(each.schema_id)

    lines = []
    groups = [list(several) for _, several in groupby(sorted(found, key=kind), key=kind)]
    groups.sort(key=lambda several: -sum(each.count for each in several))
    for several in groups[:_MOST_NAMED]:
        first = min(several, key=lambda each: (each.timestamp, each.place.offset or 0))
        schema = "" if first.schema_id is None else f" by schema {first.schema_id}"
        what = counted(sum(each.count for each in several), first.field)
        producers = list(dict.fromkeys(each.producer for each in sorted(several, key=lambda each: -each.count)))
        named = producers[:_MOST_PRODUCERS]
        if len(producers) > _MOST_PRODUCERS:
            named.append(f"{len(producers) - _MOST_PRODUCERS} more")
        topic = "" if first.place.topic is None else f" of {first.place.topic}"
        lines.append(f"{what}{topic} cannot be decoded{schema}, {first.since}, by {listed(named)}.")
    if len(groups) > _MOST_NAMED:
        lines.append(f"Neither can keys and values of {len(groups) - _MOST_NAMED} more topics and schemas.")
    return "\n".join(lines)
