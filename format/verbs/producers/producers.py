"""producers: the totals of each producer on each partition, from batch headers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import msgspec

from format.columns import PRODUCER
from format.findings import Finding
from format.layout import NO_PRODUCER_ID
from format.limits import DEFAULT_LIMITS, Limits
from format.node.partition import Partition
from format.scan.drivers import SerialDriver, results_of
from format.scan.progress import Advance, no_progress
from format.scan.selected_logs import every_log_of
from format.state.header_scan import Headers, HeaderScan
from format.state.producer_events import SequenceBroke
from format.state.producers import ProducerState
from format.verbs.producers.producer_totals import ProducerTotals, add_batches
from format.verbs.txns.replicas import Replicas, ReplicaScan, ReplicaUnit
from format.wording import counted


class ProducerTerms(msgspec.Struct, frozen=True):
    """The options: which producers are shown, and as of when; ``at_ms`` None reads the logs to their ends."""

    at_ms: int | None = None
    producer_id: int | None = None
    transactional_id: str | None = None
    topics: frozenset[str] = frozenset()
    limits: Limits = DEFAULT_LIMITS


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
        self.progress = (
            max(epoch, int(table.leader_epoch[-1])),
            max(end, table.last_offset_of(len(table) - 1) + 1),
        )


class ProducerScan(ReplicaScan[PartitionProducers], frozen=True):
    """Reads the producers of partitions."""

    def replica(self, unit: ReplicaUnit, advance: Advance) -> Iterator[PartitionProducers | Finding]:
        """Findings about a partition, and its producers."""
        found = PartitionProducers(unit.partition)
        scan = HeaderScan(self.limits)
        driver = SerialDriver(scan, advance)
        for item in chain.from_iterable(results_of(scan, log, driver) for log in every_log_of(unit.partition)):
            if isinstance(item, Finding):
                yield item
            else:
                found.feed(item.up_to(self.at_ms))
        yield found


class Producers(Replicas[PartitionProducers]):
    """The producers in the longest replica of each partition, and the transactional ids."""

    def read(self, terms: ProducerTerms, *, jobs: int = 1, advance: Advance = no_progress) -> Iterator[Finding]:
        """Read all partitions at the targets by their headers, and __transaction_state by its records.

        Yields findings. Raises NotALogDir for a path without partitions.
        """
        yield from self.read_by(ProducerScan(terms.at_ms, terms.limits), terms.topics, jobs, advance)


def producer_rows(result: Producers, terms: ProducerTerms) -> Iterator[tuple[Any, ...]]:
    """The selected producers as rows of columns.PRODUCER: by partition, in the order of their first offsets."""
    for _, found in sorted(result.partitions.items(), key=lambda item: (str(item[0][0]), item[0][1] or 0)):
        for producer_id, known in sorted(found.totals.items(), key=lambda item: item[1].first_offset):
            has_id = producer_id != NO_PRODUCER_ID
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
                known.batch_count,
                known.record_count,
                known.size_bytes // known.batch_count,
                known.codecs_text,
                None if known.first_timestamp < 0 else known.first_timestamp,
                None if known.last_timestamp < 0 else known.last_timestamp,
                known.size_bytes,
                known.transactional_batch_count,
                ",".join(map(str, sorted(known.magics))),
                str(found.partition.path),
                None if has_id else known.repeated_batch_count,
            )


def producer_sentence(rows: Sequence[tuple[Any, ...]], partition_count: int) -> str:
    """How many producers and batches the rows of columns.PRODUCER have; batches without an id are no one producer's."""
    column = PRODUCER.names.index
    known = [row for row in rows if row[column("producer_id")] != NO_PRODUCER_ID]
    unknown = [row for row in rows if row[column("producer_id")] == NO_PRODUCER_ID]
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
    return sentence[:1].upper() + sentence[1:]
