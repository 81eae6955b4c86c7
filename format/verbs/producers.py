"""producers: the totals of each producer on each partition, from batch headers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from format import layout
from format.columns import PRODUCER
from format.errors import InputError
from format.findings import Finding
from format.limits import DEFAULT_LIMITS, Limits
from format.log.batch_table import BatchTable
from format.node.log_dir import Checkpoints
from format.node.offsets import offsets_of
from format.node.partition import Partition, parse_partition_dir
from format.node.target import Target, link_words
from format.offset_ranges import merged
from format.scan.progress import Advance, no_progress
from format.scan.selected_logs import every_log_of
from format.sorted_values import distinct_values
from format.state.log_headers import Headers, HeaderScan, LogTotals, log_parts
from format.state.producers import ProducerState, SequenceBroke, last_sequence_of, rows_by_producer
from format.verbs.txns.replicas import LongestReplicas, ReplicaScan
from format.wording import counted, did_you_mean, shell_line

#: Among how many batches before it a repeated batch is looked for: a client sends it again within seconds.
_REMEMBERED = 4096
_MIX = np.uint64(0x9E3779B97F4A7C15)


class ProducerTotals(msgspec.Struct):
    """The totals of one producer.

    ``repeated_batch_count``: batches with the CRC, size, times and record count of one of the few thousand before them.
    It is counted for batches without a producer id, which sequences do not tell apart.
    """

    first_offset: int
    first_sequence: int
    first_timestamp: int
    last_offset: int = -1
    last_sequence: int = layout.NO_SEQUENCE
    last_timestamp: int = layout.NO_TIMESTAMP
    totals: LogTotals = msgspec.field(default_factory=LogTotals)
    transactional_batch_count: int = 0
    record_count: int = 0
    gap_count: int = 0
    duplicate_count: int = 0
    repeated_batch_count: int = 0
    epochs: set[int] = msgspec.field(default_factory=set)
    _remembered: NDArray[np.uint64] = msgspec.field(default_factory=lambda: np.zeros(0, np.uint64))

    def add(self, table: BatchTable) -> None:
        """Add batches of this producer, in log order."""
        row = len(table) - 1
        self.last_offset = table.last_offset_of(row)
        self.last_sequence = last_sequence_of(table, row)
        self.last_timestamp = int(table.max_timestamp[-1])
        self.totals.add(table, None)
        self.transactional_batch_count += int(np.count_nonzero(table.is_transactional))
        self.record_count += table.sums.record_count
        self.epochs.update(distinct_values(table.producer_epoch).tolist())

    def count_repeated(self, table: BatchTable) -> None:
        """Count the batches that repeat one of those before them, in log order."""
        known = self._remembered
        for start in range(0, len(table), _REMEMBERED):
            marks = _marks(table.rows(slice(start, start + _REMEMBERED)))
            both = np.concatenate((known, marks))
            self.repeated_batch_count += (
                len(both) - len(distinct_values(both)) - len(known) + len(distinct_values(known))
            )
            known = both[-_REMEMBERED:]
        self._remembered = known

    @property
    def size_bytes(self) -> int:
        return sum(self.totals.codec_bytes)

    @property
    def epochs_text(self) -> str | None:
        """The epochs as ranges, such as ``0-3,7``; None for a producer without an id."""
        return ranges_text(sorted(self.epochs - {layout.NO_PRODUCER_EPOCH})) or None


def _marks(table: BatchTable) -> NDArray[np.uint64]:
    """A number for each batch that is equal for equal CRCs, sizes, times and record counts."""
    mark = np.zeros(len(table), np.uint64)
    for column in (table.crc, table.size_bytes, table.base_timestamp, table.max_timestamp, table.record_count):
        mark = (mark ^ column.astype(np.uint64)) * _MIX
        mark ^= mark >> np.uint64(29)
    return mark


def ranges_text(numbers: list[int]) -> str:
    """Rising numbers as ranges, such as ``0-3,7``."""
    ranges = merged((number, number) for number in numbers)
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in ranges)


def add_batches(totals: dict[int, ProducerTotals], table: BatchTable) -> None:
    """Add the next batches of a log to the totals by producer id; NO_PRODUCER_ID stands for none."""
    for producer_id, rows in rows_by_producer(table, np.flatnonzero(~table.is_control)):
        own = table.rows(rows)
        known = totals.get(producer_id)
        if known is None:
            started = own.max_timestamp[0] if own.has_delete_horizon_at(0) else own.base_timestamp[0]
            known = ProducerTotals(int(own.base_offset[0]), int(own.base_sequence[0]), int(started))
            totals[producer_id] = known
        known.add(own)
        if producer_id == layout.NO_PRODUCER_ID:
            known.count_repeated(own)


class RecordPlace(msgspec.Struct, frozen=True):
    """The partition and the offset of a record."""

    topic: str
    partition: int
    offset: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}:{self.offset}"


def record_place(text: str) -> RecordPlace:
    """The place in a text such as ``orders-0:4711``. Raises ValueError for other text."""
    name, _, offset = text.rpartition(":")
    parsed = parse_partition_dir(name)
    if parsed is None or parsed[2] is not None or not (offset.isascii() and offset.isdigit() and len(offset) < 20):
        raise ValueError(f"'{text}' is not a record: give TOPIC-PARTITION:OFFSET, such as orders-0:4711")
    return RecordPlace(parsed[0], parsed[1], int(offset))


def producer_of(targets: Iterable[Target], place: RecordPlace, limits: Limits = DEFAULT_LIMITS) -> int:
    """The producer id of the batch with this record, -1 for a producer without one.

    Raises InputError where no partition of this name is at the targets, and where none of its replicas has the offset.
    """
    from format.verbs.find.find import find_offset  # few runs need it

    is_there = False
    names = set()
    targets = list(targets)
    for target in targets:
        for partition in target.partitions():
            names.add(partition.name)
            if (partition.topic, partition.number) != (place.topic, place.partition) or partition.mark is not None:
                continue
            is_there = True
            match = find_offset(partition, place.offset, visibility_limit=0, limits=limits).match
            if match is not None:  # reading the partition reports what cannot be read
                return layout.NO_PRODUCER_ID if match.batch is None else match.batch.producer_id
    if not is_there:
        name = f"{place.topic}-{place.partition}"
        linked = link_words(targets, name)
        suggested = "" if linked else did_you_mean(name, sorted(names))
        raise InputError(
            f"{place}: there is no partition {name} at the paths{linked}{'.' * bool(suggested)}{suggested}"
        )
    raise InputError(f"{place}: no replica at the paths has a batch with this offset")


class ProducerTerms(msgspec.Struct, frozen=True):
    """The options: which producers are shown, and as of when; ``at_ms`` None reads the logs to their ends."""

    at_ms: int | None = None
    producer_id: int | None = None
    transactional_id: str | None = None
    topics: frozenset[str] = frozenset()
    limits: Limits = DEFAULT_LIMITS

    @property
    def who(self) -> str:
        """The selected producer in words, such as "producer 4"; empty where all are shown."""
        ids = "" if self.producer_id is None else f"producer {self.producer_id}"
        if self.transactional_id is None:
            return ids
        return f"{ids or 'a producer'} with the transactional id {self.transactional_id}"


@dataclass(slots=True)
class PartitionProducers:
    """The producers of one replica of a partition; ``progress`` are leader epoch and log end offset."""

    partition: Partition
    totals: dict[int, ProducerTotals] = field(default_factory=dict)
    state: ProducerState = field(init=False)
    progress: tuple[int, int] = (-1, 0)

    def __post_init__(self) -> None:
        self.state = ProducerState.of_topic(self.partition.topic)

    def feed(self, headers: Headers) -> None:
        """Add the next batches."""
        table = headers.table
        if not len(table):
            return
        add_batches(self.totals, table)
        for event in self.state.feed(table, headers.markers):
            if isinstance(event, SequenceBroke):
                known = self.totals[event.producer_id]
                known.gap_count += event.is_gap
                known.duplicate_count += not event.is_gap
        epoch, end = self.progress
        self.progress = (max(epoch, int(table.leader_epoch[-1])), max(end, table.last_offset_of(len(table) - 1) + 1))


def _replica(
    partition: Partition, checkpoints: Checkpoints, at_ms: int | None, limits: Limits, advance: Advance
) -> Iterator[PartitionProducers | Finding]:
    """Findings about a partition, and its producers."""
    found = PartitionProducers(partition)
    scan = HeaderScan(limits)
    logs = every_log_of(partition, offsets_of(partition, checkpoints))
    for item in chain.from_iterable(log_parts(scan, log, advance) for log in logs):
        if isinstance(item, Finding):
            yield item
        else:
            found.feed(item.up_to(at_ms))
    yield found


class Producers(LongestReplicas[PartitionProducers]):
    """The producers in the longest replica of each partition, and the transactional ids."""

    def read(self, terms: ProducerTerms, *, jobs: int = 1, advance: Advance = no_progress) -> Iterator[Finding]:
        """Read all partitions at the targets by their headers, and __transaction_state by its records.

        Yields findings. Raises NotALogDir for a path without partitions.
        """
        yield from self.read_by(ReplicaScan(_replica, terms.at_ms, terms.limits), terms.topics, jobs, advance)


def producer_rows(result: Producers, terms: ProducerTerms) -> Iterator[tuple[Any, ...]]:
    """The selected producers as rows of columns.PRODUCER: by partition, in the order of their first offsets."""
    for found in result.in_order():
        for producer_id, known in sorted(found.totals.items(), key=lambda item: item[1].first_offset):
            has_id = producer_id != layout.NO_PRODUCER_ID
            name = result.ids.id_of_producer(producer_id) if has_id else None
            if terms.producer_id is not None and producer_id != terms.producer_id:
                continue
            if terms.transactional_id is not None and name != terms.transactional_id:
                continue
            yield (
                producer_id,
                name,
                found.partition.topic,
                found.partition.number,
                known.epochs_text,
                known.first_offset,
                known.last_offset,
                known.first_sequence,
                known.last_sequence,
                known.gap_count if has_id else None,
                known.duplicate_count if has_id else None,
                known.totals.batch_count,
                known.record_count,
                known.size_bytes // known.totals.batch_count,
                known.totals.codecs_text,
                None if known.first_timestamp < 0 else known.first_timestamp,
                None if known.last_timestamp < 0 else known.last_timestamp,
                known.size_bytes,
                known.transactional_batch_count,
                known.totals.magics_text,
                str(found.partition.path),
                None if has_id else known.repeated_batch_count,
            )


def producer_sentence(rows: Sequence[tuple[Any, ...]], partition_count: int, who: str = "") -> str:
    """How many producers and batches the rows of columns.PRODUCER have; batches without an id are no one producer's.

    ``who``: the selected producer, if one was asked for.

    The sequences that have gaps or duplicates are counted, and the first of them is named. Gaps are no loss where
    compaction may have made them, so the sentence says that.
    """
    if who and not rows:
        return f"No batch of {who} in {counted(partition_count, 'partition')}."
    column = PRODUCER.names.index
    known = [row for row in rows if row[column("producer_id")] != layout.NO_PRODUCER_ID]
    unknown = [row for row in rows if row[column("producer_id")] == layout.NO_PRODUCER_ID]
    places = {(row[column("topic")], row[column("partition")]) for row in rows}
    where = f"to {len(places):,} of {counted(partition_count, 'partition')}"
    words = []
    if known or not unknown:
        ids = {row[column("producer_id")] for row in known}
        batches = counted(sum(row[column("batch_count")] for row in known), "batch")
        words.append(f"{counted(len(ids), 'producer')} wrote {batches}")
    if unknown:
        batches = counted(sum(row[column("batch_count")] for row in unknown), "batch")
        who = "others" if known else "producers"
        words.append(f"{who} without an id, whose number is not known, wrote {batches}")
        repeated = sum(row[column("repeated_batch_count")] for row in unknown)
        if repeated:
            repeat = "repeats" if repeated == 1 else "repeat"
            where += f"; {repeated:,} of those without an id {repeat} an earlier batch, by CRC, size, times and count"
    sentence = f"{' and '.join(words)} {where}."
    return sentence[:1].upper() + sentence[1:] + _broken_words([row for row in known if has_broken_sequences(row)])


def has_broken_sequences(row: tuple[Any, ...]) -> bool:
    """Whether a row of columns.PRODUCER counts gaps or duplicates in the sequences."""
    return bool(row[PRODUCER.names.index("gap_count")] or row[PRODUCER.names.index("duplicate_count")])


def _broken_words(broken: list[tuple[Any, ...]]) -> str:
    if not broken:
        return ""
    first = dict(zip(PRODUCER.names, broken[0], strict=True))
    counts = (("gap", first["gap_count"]), ("duplicate", first["duplicate_count"]))
    found = " and ".join(counted(count, noun) for noun, count in counts if count)
    others = len(broken) - 1
    more = f", and those of {counted(others, 'more row')} are broken, too" if others else ""
    compacted = " (compaction makes gaps, too)" if any(row[PRODUCER.names.index("gap_count")] for row in broken) else ""
    place = f"{first['topic']}-{first['partition']}"
    return f" The sequences of producer {first['producer_id']} on {place} have {found}{more}{compacted}."


def next_command(rows: Sequence[tuple[Any, ...]], terms: ProducerTerms, paths: Iterable[str]) -> str:
    """A line with the command that shows more of the rows of columns.PRODUCER; empty where there is none."""
    column = PRODUCER.names.index
    if any(row[column("duplicate_count")] or row[column("repeated_batch_count")] for row in rows):
        topics = sorted({row[column("topic")] for row in rows}) if terms.topics else ()
        words = ["producers", "--duplicates", *(word for topic in topics for word in ("--topic", topic))]
        return f"What was written twice: {shell_line(('kafkalog', *words, *paths))}"
    if rows and terms.producer_id is not None and terms.producer_id != layout.NO_PRODUCER_ID:
        words = ["grep", "--all", "--producer-id", str(terms.producer_id)]
        return f"Its records: {shell_line(('kafkalog', *words, *paths))}"
    return ""
