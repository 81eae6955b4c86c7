"""producers --duplicates: the records that repeat the key and value of one shortly before them, and who wrote both.

Equal keys and values are a fact, whatever the reason. Only an equal sequence of the same producer and epoch proves that
a record was written twice by mistake. Records of aborted transactions do not count.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from functools import partial
from hashlib import blake2b
from typing import Any

import msgspec
import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from format.columns import REPEATED_RECORDS
from format.findings import Finding, finding_of
from format.layout import INTERNAL_TOPIC_PREFIX, NO_PRODUCER_ID
from format.limits import DEFAULT_LIMITS, Limits
from format.log.batch_table import Int64Column
from format.log.read_records import record_tables
from format.log.record_table import RecordTable
from format.node.log_dir import Checkpoints
from format.node.offsets import offsets_of
from format.node.partition import Partition
from format.scan.progress import Advance, no_progress
from format.scan.protocol import Depth, Needs, OpenedRange
from format.scan.read_log import selected_chunks
from format.scan.selected_logs import every_log_of
from format.scan.selection import CommittedView, Selection
from format.state.log_headers import log_parts
from format.verbs.producers import ProducerTerms
from format.verbs.txns.partition_transactions import committed_view
from format.verbs.txns.replicas import LongestReplicas, ReplicaScan
from format.wording import counted, offset_range, shell_word, span

#: With how many records before it a record is compared, in each partition: about 100 MiB.
REMEMBERED = 1 << 18
#: So many runs of repeated records are kept of a partition; all of them are counted.
MOST_RUNS = 10_000
_SLICE = 1 << 14
_MAX_OFFSET = 2**63 - 1
_OFFSET, _TIMESTAMP, _PRODUCER, _EPOCH, _SEQUENCE, _BATCH, _IN_BATCH = range(7)
#: The kinds of repeats, the most telling first.
SEQUENCE, BATCH, NEW_PRODUCER, NEW_EPOCH, SAME_PRODUCER, OTHER_PRODUCER, UNKNOWN = KINDS = (
    "sequence", "batch", "new_producer", "new_epoch", "same_producer", "other_producer", "unknown_producer",
)  # fmt: skip


class RecordDigests(msgspec.Struct, frozen=True):
    """What is compared of consecutive records: a digest of each key and value, and columns of numbers.

    ``progress`` is the leader epoch and the end offset of the last batch.
    """

    digests: list[bytes]
    columns: Int64Column
    progress: tuple[int, int]


class MarkScan(msgspec.Struct, frozen=True):
    """Reads the marks of records up to the time ``at_ms``, or of all where it is None."""

    at_ms: int | None = None
    limits: Limits = DEFAULT_LIMITS

    @property
    def needs(self) -> Needs:
        return Needs(
            Depth.RECORDS, Selection(to_timestamp=None if self.at_ms is None else self.at_ms + 1), limits=self.limits
        )

    def parts(self, opened: OpenedRange) -> Iterator[RecordDigests | Finding]:
        """The marks of a range in log order, and findings about damage."""
        needs = self.needs
        for item in selected_chunks(opened, needs):
            if isinstance(item, Finding):
                yield item
                continue
            batches = item.chunk.table
            progress = (int(batches.leader_epoch[-1]), int(batches.last_offset[-1]) + 1) if len(batches) else (-1, 0)
            for table in record_tables(item.chunk, which=item.readable, limits=self.limits, location=item.location):
                for problem in table.problems:
                    yield finding_of(problem.error, item.location)
                keep = needs.selection.records(table) & (table.offset >= item.least_offset)
                yield _marks(table.rows(keep), progress)


def _marks(table: RecordTable, progress: tuple[int, int]) -> RecordDigests:
    buffer, digests = table.buffer, []
    places = (table.key_start, table.key_length, table.value_start, table.value_length)
    for key, key_bytes, value, value_bytes in zip(*(column.tolist() for column in places), strict=True):
        digest = blake2b(b"%d,%d:" % (key_bytes, value_bytes), digest_size=16)  # a null length is -1
        if key_bytes > 0:
            digest.update(buffer[key : key + key_bytes])
        if value_bytes > 0:
            digest.update(buffer[value : value + value_bytes])
        digests.append(digest.digest())
    batches, batch = table.batches, table.batch
    is_v2 = batches.magic[batch] == 2
    columns = (
        table.offset,
        table.timestamp,
        np.where(is_v2, batches.producer_id[batch], NO_PRODUCER_ID),
        np.where(is_v2, batches.producer_epoch[batch], -1),
        np.where(is_v2, table.sequence, -1),
        (batches.crc[batch].astype(np.int64) & 0xFFFFFFFF) | batches.size_bytes[batch].astype(np.int64) << 32,
        table.offset - batches.base_offset[batch],
    )
    return RecordDigests(digests, np.stack(columns, axis=1).astype(np.int64), progress)


class RepeatedRun(msgspec.Struct):
    """Consecutive records that repeat consecutive earlier ones, in the same order, by one producer each.

    ``first`` and ``earlier`` are the marks of the first record and of the one that it repeats, the others the last
    offsets of both. Numbers count the records of the partition.
    """

    number: int
    earlier_number: int
    first: list[int]
    earlier: list[int]
    last_offset: int
    earlier_last_offset: int
    has_equal_sequence: bool
    has_equal_batch: bool
    record_count: int = 1

    @property
    def producer(self) -> tuple[int, int]:
        return self.first[_PRODUCER], self.first[_EPOCH]

    @property
    def earlier_producer(self) -> tuple[int, int]:
        return self.earlier[_PRODUCER], self.earlier[_EPOCH]

    @property
    def time_apart_ms(self) -> int | None:
        """The time from the earlier record to its repeat; None if either has none."""
        times = self.first[_TIMESTAMP], self.earlier[_TIMESTAMP]
        return None if min(times) < 0 else times[0] - times[1]

    def continues(self, last: RepeatedRun) -> bool:
        """Whether this run of one record is the next one of another run."""
        count = last.record_count
        return (
            self.number == last.number + count
            and self.earlier_number == last.earlier_number + count
            and self.producer == last.producer
            and self.earlier_producer == last.earlier_producer
            and self.has_equal_sequence == last.has_equal_sequence
            and self.has_equal_batch == last.has_equal_batch
        )


class PartitionRepeats(msgspec.Struct):
    """The repeats in one replica of a partition, fed with marks in log order.

    ``spans`` has the first and the last offset of each producer id and epoch. ``is_cut``: records within the window
    were forgotten, as there are more of them than are remembered.
    """

    partition: Partition
    within_ms: int
    progress: tuple[int, int] = (-1, 0)
    runs: list[RepeatedRun] = msgspec.field(default_factory=list)
    run_count: int = 0
    record_count: int = 0
    is_cut: bool = False
    spans: dict[tuple[int, int], tuple[int, int]] = msgspec.field(default_factory=dict)
    _known: dict[bytes, int] = msgspec.field(default_factory=dict)
    _digests: deque[bytes] = msgspec.field(default_factory=deque)
    _marks: NDArray[np.int64] = msgspec.field(default_factory=lambda: np.zeros((REMEMBERED, 7), np.int64))
    _newest_ms: int = -1
    _last: RepeatedRun | None = None

    def feed(self, marks: RecordDigests) -> None:
        """Take the next records."""
        self.progress = max(self.progress[0], marks.progress[0]), max(self.progress[1], marks.progress[1])
        for start in range(0, len(marks.digests), _SLICE):
            self._feed(marks.digests[start : start + _SLICE], marks.columns[start : start + _SLICE])

    def complete(self) -> None:
        """Free what is needed only to take more records."""
        self._known, self._marks = {}, np.zeros((0, 7), np.int64)
        self._digests.clear()

    def _feed(self, digests: list[bytes], columns: Int64Column) -> None:
        self._note_producers(columns)
        self._newest_ms = max(self._newest_ms, int(columns[:, _TIMESTAMP].max()))
        self._forget(len(self._digests) + len(digests) - REMEMBERED)
        first, known, marks = self.record_count, self._known, self._marks
        self.record_count += len(digests)
        marks[np.arange(first, self.record_count) % REMEMBERED] = columns
        self._digests.extend(digests)
        pairs = []
        for number, digest in enumerate(digests, first):
            earlier = known.get(digest)
            if earlier is not None:
                pairs.append((number, earlier))
            known[digest] = number
        if not pairs:
            return
        numbers = np.array(pairs)
        later, before = marks[numbers[:, 0] % REMEMBERED], marks[numbers[:, 1] % REMEMBERED]
        times = later[:, _TIMESTAMP], before[:, _TIMESTAMP]
        # Two records of one offset are damage, which has a finding.
        near = (later[:, _OFFSET] > before[:, _OFFSET]) & (
            (np.abs(times[0] - times[1]) <= self.within_ms) | (np.minimum(*times) < 0)
        )
        for (number, earlier), own, other in zip(
            numbers[near].tolist(), later[near].tolist(), before[near].tolist(), strict=True
        ):
            self._add(number, earlier, own, other)

    def _add(self, number: int, earlier_number: int, own: list[int], other: list[int]) -> None:
        has_id = own[_PRODUCER] != NO_PRODUCER_ID
        is_same = own[_PRODUCER : _SEQUENCE + 1] == other[_PRODUCER : _SEQUENCE + 1]
        run = RepeatedRun(
            number, earlier_number, own, other, own[_OFFSET], other[_OFFSET],
            has_id and is_same and own[_SEQUENCE] >= 0,
            not has_id and own[_BATCH:] == other[_BATCH:] and own[_PRODUCER] == other[_PRODUCER],
        )  # fmt: skip
        last = self._last
        if last is not None and run.continues(last):
            last.record_count += 1
            last.last_offset, last.earlier_last_offset = run.last_offset, run.earlier_last_offset
            return
        self._last = run
        self.run_count += 1
        if len(self.runs) < MOST_RUNS:
            self.runs.append(run)

    def _note_producers(self, columns: Int64Column) -> None:
        owner = columns[:, [_PRODUCER, _EPOCH]]
        edges = np.flatnonzero(np.concatenate(([True], (owner[1:] != owner[:-1]).any(axis=1))))
        for start, end in zip(edges.tolist(), [*edges[1:].tolist(), len(owner)], strict=True):
            key = int(owner[start, 0]), int(owner[start, 1])
            first = int(columns[start, _OFFSET])
            self.spans[key] = self.spans.get(key, (first, first))[0], int(columns[end - 1, _OFFSET])

    def _forget(self, count: int) -> None:
        if count <= 0:
            return
        oldest = self.record_count - len(self._digests)
        times = self._marks[np.arange(oldest, oldest + count) % REMEMBERED, _TIMESTAMP]
        self.is_cut = self.is_cut or int(times.max()) >= self._newest_ms - self.within_ms
        for number in range(oldest, oldest + count):
            digest = self._digests.popleft()
            if self._known[digest] == number:
                del self._known[digest]

    def kind_of(self, run: RepeatedRun) -> str:
        """The kind of a run, one of KINDS, after all records were taken."""
        if run.has_equal_sequence:
            return SEQUENCE
        if run.has_equal_batch:
            return BATCH
        (own, epoch), (other, earlier_epoch) = run.producer, run.earlier_producer
        if NO_PRODUCER_ID in (own, other):
            return UNKNOWN
        if own == other:
            return SAME_PRODUCER if epoch <= earlier_epoch else NEW_EPOCH
        began_after = self.spans[run.producer][0] > self.spans[run.earlier_producer][1]
        return NEW_PRODUCER if began_after else OTHER_PRODUCER


def _replica(
    partition: Partition, checkpoints: Checkpoints, at_ms: int | None, limits: Limits, advance: Advance,
    *, within_ms: int, with_internal: bool,
) -> Iterator[PartitionRepeats | Finding]:  # fmt: skip
    """Findings about a partition, and its repeats; internal topics repeat themselves all the time."""
    if not with_internal and (partition.topic or "").startswith(INTERNAL_TOPIC_PREFIX):
        return
    found = PartitionRepeats(partition, within_ms)
    view = committed_view(partition.path, limits, checkpoints)
    served = CommittedView(view.log_start_offset, _MAX_OFFSET, view.aborted)
    for log in every_log_of(partition, offsets_of(partition, checkpoints)):
        for item in log_parts(MarkScan(at_ms, limits), replace(log, committed=served), advance):
            if isinstance(item, Finding):
                yield item
            else:
                found.feed(item)
    found.complete()
    yield found


class RepeatedRecords(LongestReplicas[PartitionRepeats]):
    """The repeats in the longest replica of each partition, and the transactional ids."""

    def read(
        self, terms: ProducerTerms, within_ms: int, *, jobs: int = 1, advance: Advance = no_progress
    ) -> Iterator[Finding]:
        """Read the records of all partitions at the targets. Yields findings. Raises NotALogDir as ``Producers``."""
        scan = ReplicaScan(
            partial(_replica, within_ms=within_ms, with_internal=bool(terms.topics)), terms.at_ms, terms.limits
        )
        yield from self.read_by(scan, terms.topics, jobs, advance)

    def shown(self, terms: ProducerTerms) -> Iterator[tuple[PartitionRepeats, list[tuple[str, RepeatedRun]]]]:
        """The partitions by name, each with its selected runs: the most telling kind first, then by offset."""
        for found in self.in_order():
            runs = [(found.kind_of(run), run) for run in found.runs if self._is_wanted(run, terms)]
            yield found, sorted(runs, key=lambda item: KINDS.index(item[0]))

    def _is_wanted(self, run: RepeatedRun, terms: ProducerTerms) -> bool:
        producers = run.producer[0], run.earlier_producer[0]
        if terms.producer_id is not None and terms.producer_id not in producers:
            return False
        return terms.transactional_id is None or terms.transactional_id in map(self.id_of, producers)

    def id_of(self, producer_id: int) -> str | None:
        """The transactional id of a producer, as far as it is known."""
        return None if producer_id == NO_PRODUCER_ID else self.ids.id_of_producer(producer_id)

    def not_checked(self) -> list[str]:
        """Notes about what is missing from the answer."""
        words = []
        for found in self.partitions.values():
            if found.is_cut:
                words.append(f"{found.partition.name}: repeats further back than {REMEMBERED:,} records")
            if found.run_count > len(found.runs):
                words.append(
                    f"{found.partition.name}: {counted(found.run_count - len(found.runs), 'further run')} of repeats"
                )
        return words


def repeated_rows(result: RepeatedRecords, terms: ProducerTerms) -> Iterator[tuple[Any, ...]]:
    """The selected runs as rows of columns.REPEATED_RECORDS."""
    for found, runs in result.shown(terms):
        for kind, run in runs:
            yield _row(result, found, kind, run)


def _row(result: RepeatedRecords, found: PartitionRepeats, kind: str, run: RepeatedRun) -> tuple[Any, ...]:
    (producer_id, epoch), (earlier_id, earlier_epoch) = run.producer, run.earlier_producer
    values = {
        "topic": found.partition.topic,
        "partition": found.partition.number,
        "kind": kind,
        "is_duplicate": kind == SEQUENCE,
        "record_count": run.record_count,
        "first_offset": run.first[_OFFSET],
        "last_offset": run.last_offset,
        "earlier_first_offset": run.earlier[_OFFSET],
        "earlier_last_offset": run.earlier_last_offset,
        "time_apart_ms": run.time_apart_ms,
        "producer_id": producer_id,
        "producer_epoch": epoch,
        "first_sequence": run.first[_SEQUENCE],
        "transactional_id": result.id_of(producer_id),
        "first_timestamp": _or_none(run.first[_TIMESTAMP]),
        "earlier_producer_id": earlier_id,
        "earlier_producer_epoch": earlier_epoch,
        "earlier_first_sequence": run.earlier[_SEQUENCE],
        "earlier_transactional_id": result.id_of(earlier_id),
        "earlier_first_timestamp": _or_none(run.earlier[_TIMESTAMP]),
        "path": str(found.partition.path),
        "command": dump_command(found, run),
    }
    return tuple(values[name] for name in REPEATED_RECORDS.names)


def _or_none(number: int) -> int | None:
    return None if number < 0 else number


def dump_command(found: PartitionRepeats, run: RepeatedRun) -> str:
    """The command that shows the earlier records, what is between them, and the repeats."""
    return (
        f"kafkalog dump --records --from-offset {run.earlier[_OFFSET]} --to-offset {run.last_offset} "
        f"{shell_word(str(found.partition.path))}"
    )


#: The most sentences of partitions.
_MOST_SENTENCES = 10


def repeat_sentences(result: RepeatedRecords, terms: ProducerTerms, within: str) -> list[str]:
    """A sentence for each partition with repeats, of its most telling run; or one that there is none."""
    found = [(each, runs) for each, runs in result.shown(terms) if runs]
    if not found:
        count = sum(each.record_count for each in result.partitions.values())
        place = counted(len(result.partitions), "partition")
        if terms.who:
            read = f"Of {counted(count, 'record')} read in {place}, none of {terms.who}"
            return [f"{read} repeats one at most {within} before it, or is repeated so."]
        return [f"None of the {counted(count, 'record')} read in {place} repeats one at most {within} before it."]
    found.sort(key=lambda item: KINDS.index(item[1][0][0]))
    sentences = []
    for number, (each, runs) in enumerate(found[:_MOST_SENTENCES]):
        run = _largest(runs)
        sentences.append(_sentence(each, runs, run))
        if not number:
            sentences[0] += f" To see them: {dump_command(each, run)}"
    if len(found) > _MOST_SENTENCES:
        more = len(found) - _MOST_SENTENCES
        sentences.append(f"{counted(more, 'more partition')} {'has' if more == 1 else 'have'} repeats; see the rows.")
    return sentences


def _largest(runs: Sequence[tuple[str, RepeatedRun]]) -> RepeatedRun:
    """The largest run of the most telling kind."""
    return max((run for kind, run in runs if kind == runs[0][0]), key=lambda run: run.record_count)


def _sentence(found: PartitionRepeats, runs: Sequence[tuple[str, RepeatedRun]], run: RepeatedRun) -> str:
    (own, epoch), (other, earlier_epoch) = run.producer, run.earlier_producer
    who = {
        SEQUENCE: f"by producer {own} with the same sequence: duplicates, which a broker should have dropped",
        BATCH: "in equal batches without a producer id, as by a retry",
        NEW_PRODUCER: f"by producers {other} and {own}, which began after it, as after a restart",
        NEW_EPOCH: f"by producer {own} in epochs {earlier_epoch} and {epoch}",
        SAME_PRODUCER: f"by producer {own} with different sequences, so by its application",
        OTHER_PRODUCER: f"by producers {other} and {own}",
        UNKNOWN: "by producers without an id" if own == other else "once by a producer without an id",
    }[runs[0][0]]
    apart = run.time_apart_ms
    apart_words = "" if apart is None else f", {abs(apart) / 1000:g} s apart"
    name, records = found.partition.name, counted(run.record_count, "record")
    if run.first[_OFFSET] <= run.earlier_last_offset:  # one record again and again, or a few in turn
        sentence = f"{records} of {name} repeat the one {counted(run.number - run.earlier_number, 'record')} before"
        sentence += f"{apart_words}, {who}: {offset_range(run.first[_OFFSET], run.last_offset)}."
    else:
        sentence = (
            f"{records} of {name} {'was' if run.record_count == 1 else 'were'} written twice{apart_words}, {who}: "
        )
        sentence += (
            f"offsets {span(run.earlier[_OFFSET], run.earlier_last_offset)} and "
            f"{span(run.first[_OFFSET], run.last_offset)}."
        )
    rest = sum(each.record_count for _, each in runs) - run.record_count
    return sentence + (
        f" {counted(rest, 'more record')} there {'repeats' if rest == 1 else 'repeat'} another." * bool(rest)
    )
