"""txns: which transactions are open, which of them hold back the last stable offset, and how others ended.

Source: KIP-98, KIP-664, KIP-890; tools TransactionsCommand for what counts as hanging.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from format import layout
from format.columns import TRANSACTION
from format.findings import Finding, Judgement, finding
from format.limits import DEFAULT_LIMITS, MIB, Limits
from format.location import Location
from format.node.log_dir import Checkpoints
from format.node.partition import Partition
from format.node.target import Target, require_one_cluster
from format.scan.drivers import SerialDriver
from format.scan.follow import Broken, CaughtUp, FollowDriver, FollowTerms, Grown
from format.scan.followed_partition import FollowedPartition
from format.scan.progress import Advance, no_progress
from format.state.log_headers import Headers, HeaderScan
from format.state.producers import Transaction
from format.timestamps import iso_time
from format.verbs.txns.partition_transactions import (
    ENDED_COLUMNS,
    NONE,
    PartitionTransactions,
    read_partition_transactions,
    take_snapshot,
)
from format.verbs.txns.replicas import CoordinatorScan, LongestReplicas, ReplicaScan, TransactionalIds
from format.wording import counted, shell_word

#: Of a two-phase commit (KIP-939). Source: TransactionMetadata.isDistributedTwoPhaseCommitTxn.
_NO_TIMEOUT_MS = 2**31 - 1
#: transaction.max.timeout.ms of brokers by default: a transaction that is silent for longer may hang.
MAX_TRANSACTION_TIMEOUT_MS = 15 * 60 * 1000


class TransactionTerms(msgspec.Struct, frozen=True):
    """Which transactions are shown, as of when, and how the commands that abort them are written.

    ``now_ms`` is the time at which transactions are judged as hanging. ``at_ms`` None reads the logs to their ends.
    """

    now_ms: int
    at_ms: int | None = None
    only_open: bool = False
    only_hanging: bool = False
    producer_id: int | None = None
    transactional_id: str | None = None
    topics: frozenset[str] = frozenset()
    max_timeout_ms: int = MAX_TRANSACTION_TIMEOUT_MS
    bootstrap_server: str = "localhost:9092"
    before_3_0: bool = False
    limits: Limits = DEFAULT_LIMITS

    @property
    def as_of_ms(self) -> int:
        return self.now_ms if self.at_ms is None else self.at_ms


def _replica(
    partition: Partition, checkpoints: Checkpoints, at_ms: int | None, limits: Limits, advance: Advance
) -> Iterator[PartitionTransactions | Finding]:
    """Findings about a partition, and its transactions; __transaction_state itself has none."""
    if partition.topic != layout.TRANSACTION_STATE_TOPIC:
        found = PartitionTransactions.of_partition(partition, checkpoints)
        yield from read_partition_transactions(found, at_ms, limits, SerialDriver(HeaderScan(limits), advance))
        yield found


class Transactions(LongestReplicas[PartitionTransactions]):
    """The transactions in the longest replica of each partition, and the records of the coordinators."""

    def read(self, terms: TransactionTerms, *, jobs: int = 1, advance: Advance = no_progress) -> Iterator[Finding]:
        """Read all partitions at the targets by their headers, and __transaction_state by its records.

        Yields findings. Raises NotALogDir for a path without partitions.
        """
        yield from self.read_by(ReplicaScan(_replica, terms.at_ms, terms.limits), terms.topics, jobs, advance)

    def not_checked(self, opened: list[OpenTransaction]) -> list[str]:
        """Notes about what is missing from the answer."""
        words = []
        if not self.ids.partitions:
            words.append("transactional ids, timeouts and which transactions hang: no __transaction_state was read")
        elif any(each.is_hanging is None for each in opened):
            words.append("whether transactions hang whose producers are in no partition of __transaction_state here")
        if self.skipped:
            words.append(f"{self.skipped} directories marked delete, future or stray")
        return words


Row = tuple[Any, ...]
_COLUMN = {name: number for number, name in enumerate(ENDED_COLUMNS)}
_ROWS_AT_ONCE = 1024


class OpenTransaction(msgspec.Struct, frozen=True):
    """An open transaction, its partition, and the state of its coordinator.

    ``is_coordinator_done``: no coordinator has this transaction under way, None where that is not known. It hangs then,
    as Kafka's tool counts, once its producer was silent for longer than the limit: after ``hangs_after_ms``.
    """

    found: PartitionTransactions
    transaction: Transaction
    transactional_id: str | None
    coordinator_state: str | None
    timeout_ms: int | None
    coordinator_epoch: int
    is_coordinator_done: bool | None
    hangs_after_ms: int
    as_of_ms: int

    @property
    def is_hanging(self) -> bool | None:
        """Whether no coordinator will end it; None where that is not known."""
        return False if self.as_of_ms <= self.hangs_after_ms else self.is_coordinator_done

    @property
    def topic(self) -> str | None:
        return self.found.partition.topic

    @property
    def partition(self) -> int | None:
        return self.found.partition.number

    @property
    def holds_last_stable_offset(self) -> bool:
        """Whether no other transaction of the partition began before it."""
        return self.transaction.first_offset == self.found.state.first_open_offset()

    def abort_command(self, terms: TransactionTerms) -> str | None:
        """The command that aborts it; None where its coordinator will end it, or no topic and partition are known.

        Brokers before 3.0 do not look the producer up by the first offset. For an unknown coordinator the tool takes
        epoch 0, below which no leader's epoch is (TransactionsCommand).
        """
        known = self.transaction
        if self.is_hanging is False or self.topic is None or self.partition is None:
            return None
        which = f"--start-offset {known.first_offset}"
        if terms.before_3_0:
            which = f"--producer-id {known.producer_id} --producer-epoch {known.producer_epoch} "
            which += f"--coordinator-epoch {max(self.coordinator_epoch, 0)}"
        return (
            f"kafka-transactions.sh --bootstrap-server {shell_word(terms.bootstrap_server)} abort "
            f"--topic {shell_word(self.topic)} --partition {self.partition} {which}"
        )


def open_transactions(result: Transactions, terms: TransactionTerms) -> list[OpenTransaction]:
    """The open transactions that the terms select, the oldest first."""
    found = [
        _opened(result, partition, transaction, terms)
        for partition in result.partitions.values()
        for transaction in partition.state.open.values()
    ]
    if any(each.is_coordinator_done is None for each in found) and result.has_all_coordinators(terms.limits):
        found = [replace(each, is_coordinator_done=each.is_coordinator_done is not False) for each in found]
    return sorted((each for each in found if _is_wanted(each, terms)), key=_by_age)


def _by_age(each: OpenTransaction) -> tuple[Any, ...]:
    return each.transaction.start_timestamp, str(each.topic), each.partition or 0, each.transaction.first_offset


def _is_wanted(each: OpenTransaction, terms: TransactionTerms) -> bool:
    if terms.only_hanging and not each.is_hanging:
        return False
    if terms.producer_id is not None and each.transaction.producer_id != terms.producer_id:
        return False
    return terms.transactional_id is None or each.transactional_id == terms.transactional_id


def _opened(
    result: Transactions, found: PartitionTransactions, transaction: Transaction, terms: TransactionTerms
) -> OpenTransaction:
    producer_id = transaction.producer_id
    state = result.ids.state_of_producer(producer_id)
    last_timestamp, coordinator_epoch = found.last_of_producer.get(producer_id, (layout.NO_TIMESTAMP, NONE))
    place = (found.partition.topic, found.partition.number)
    name = result.ids.id_of_producer(producer_id)
    is_done = None if state is None else place not in state.partitions
    if is_done and result.may_lack_records_of(name, terms.limits):
        is_done = None
    return OpenTransaction(
        found,
        transaction,
        name,
        None if state is None else state.state,
        None if state is None else state.timeout_ms,
        coordinator_epoch,
        is_done,
        last_timestamp + terms.max_timeout_ms,
        terms.as_of_ms,
    )


def hanging_findings(opened: list[OpenTransaction], terms: TransactionTerms) -> Iterator[Finding]:
    """A finding for each transaction that hangs."""
    for each in opened:
        if each.is_hanging:
            known = each.transaction
            yield finding(
                "transaction-hanging",
                Location(str(each.found.partition.path), each.topic, each.partition, offset=known.first_offset),
                f"producer {known.producer_id} has a transaction open from offset {known.first_offset} on, and no "
                "coordinator will end it",
                judgement=Judgement(next_step=f"To abort it: {each.abort_command(terms)}"),
            )


def _duration(start: int | None, end: int) -> int | None:
    """The time between; None where it is not known, or a clock was wrong: it would end before it begins."""
    return None if start is None or end < start else end - start


def open_row(each: OpenTransaction, terms: TransactionTerms) -> Row:
    """An open transaction as a row of columns.TRANSACTION."""
    known, found = each.transaction, each.found
    waiting_records, waiting_bytes = found.waiting(known)
    start = _or_none(known.start_timestamp)
    return (
        each.topic,
        each.partition,
        known.producer_id,
        known.producer_epoch,
        each.transactional_id,
        "open",
        each.coordinator_state,
        known.first_offset,
        _or_none(known.last_offset),
        start,
        _or_none(known.last_timestamp),
        each.timeout_ms,
        known.record_count,
        known.size_bytes,
        each.is_hanging,
        each.abort_command(terms),
        _duration(start, terms.as_of_ms),
        each.holds_last_stable_offset,
        found.last_stable_offset,
        waiting_records,
        waiting_bytes,
        _or_none(each.coordinator_epoch),
        str(found.partition.path),
        found.segment_of.get(known.producer_id) if known.position is not None else None,
        known.position,
    )


def transaction_rows(result: Transactions, opened: Iterable[OpenTransaction], terms: TransactionTerms) -> Iterator[Row]:
    """The open transactions, then the aborted and the committed ones that the terms select."""
    yield from (open_row(each, terms) for each in opened)
    for is_aborted in (True, False):
        yield from ended_rows(result, terms, is_aborted=is_aborted)


def ended_rows(result: Transactions, terms: TransactionTerms, *, is_aborted: bool) -> Iterator[Row]:
    """The aborted or committed transactions that the terms select, partition by partition in log order."""
    if terms.only_open or terms.only_hanging:
        return
    producers = None if terms.transactional_id is None else result.ids.producers_of(terms.transactional_id)
    for found in result.in_order():
        last_ends = _last_ends(found)
        for table in found.ended:
            wanted = table[:, _COLUMN["is_aborted"]] == is_aborted
            if terms.producer_id is not None:
                wanted &= table[:, _COLUMN["producer_id"]] == terms.producer_id
            if producers is not None:
                wanted &= np.isin(table[:, _COLUMN["producer_id"]], list(producers))
            yield from _rows_of(result, found, table[wanted], last_ends, "aborted" if is_aborted else "committed")


def ended_totals(result: Transactions, opened: Sequence[OpenTransaction]) -> Iterator[Row]:
    """Rows of columns.TRANSACTION_TOTAL for the partitions in which transactions ended."""
    for found in result.in_order():
        if any(map(len, found.ended)):
            yield total_row(found, opened, *found.ended_counts())


def total_row(found: PartitionTransactions, opened: Sequence[OpenTransaction], committed: int, aborted: int) -> Row:
    """A row of columns.TRANSACTION_TOTAL; of the open transactions those of the partition are counted."""
    own = [each for each in opened if each.found is found]
    hanging = sum(each.is_hanging is True for each in own)
    topic, number = found.partition.topic, found.partition.number
    stable, end = found.last_stable_offset, found.log_end_offset
    return topic, number, len(own), hanging, committed, aborted, stable, end


def _last_ends(found: PartitionTransactions) -> dict[int, int]:
    """Producer id -> the offset of its last end marker, unless it has begun another transaction since."""
    ends: dict[int, int] = {}
    for table in found.ended:
        ends.update(
            zip(table[:, _COLUMN["producer_id"]].tolist(), table[:, _COLUMN["last_offset"]].tolist(), strict=True)
        )
    return {producer_id: offset for producer_id, offset in ends.items() if producer_id not in found.state.open}


def _rows_of(
    result: Transactions, found: PartitionTransactions, table: NDArray[np.int64], last_ends: dict[int, int], state: str
) -> Iterator[Row]:
    stable, path = found.last_stable_offset, str(found.partition.path)
    topic, number = found.partition.topic, found.partition.number
    for first in range(0, len(table), _ROWS_AT_ONCE):
        for row in table[first : first + _ROWS_AT_ONCE].tolist():
            (
                producer_id, epoch, first_offset, last_offset, position, start, end, count, size, coordinator_epoch, _,
                segment,
            ) = row  # fmt: skip
            is_last = last_ends.get(producer_id) == last_offset
            coordinator = result.ids.state_of_producer(producer_id) if is_last else None
            yield (
                topic,
                number,
                producer_id,
                epoch,
                result.ids.id_of_producer(producer_id),
                state,
                None if coordinator is None else coordinator.state,
                _or_none(first_offset),
                last_offset,
                _or_none(start),
                _or_none(end),
                None if coordinator is None else coordinator.timeout_ms,
                count,
                size,
                False,
                None,
                _duration(_or_none(start), end),
                False,
                stable,
                None,
                None,
                _or_none(coordinator_epoch),
                path,
                segment if position >= 0 else None,
                _or_none(position),
            )


def _or_none(number: int) -> int | None:
    return None if number < 0 else number


#: How many transactions get a sentence.
MOST_SAID = 3


def sentences(result: Transactions, opened: list[OpenTransaction], terms: TransactionTerms) -> Iterator[str]:
    """A sentence for the first few that hang or hold a last stable offset, or one that says there is none.

    - "holds the last stable offset": no other transaction of the partition began before it.
    - "none will end it", and the command to abort it: every coordinator is known, none has it under way, and its
      producer was silent for longer than the limit.
    - "No open transaction in 4 partitions": of those that were read as a whole. Where only hanging ones are asked for,
      "none of them hangs" needs every coordinator; else it says what is not known, or from when on they count as
      hanging.
    """
    shown = [each for each in opened if each.holds_last_stable_offset or each.is_hanging]
    shown.sort(key=lambda each: not each.is_hanging)  # hanging ones first: these need a command
    for each in shown[:MOST_SAID]:
        yield _of_one(each, terms)
    if len(shown) > MOST_SAID:
        count = len(shown) - MOST_SAID
        holds, hangs = ("holds", "hangs") if count == 1 else ("hold", "hang")
        words = f"{counted(count, 'more transaction')} {holds} a last stable offset, or {hangs}; see the rows"
        more_hang = any(each.is_hanging for each in shown[MOST_SAID:])
        yield f"{words} (--columns all shows the command to abort it)." if more_hang else f"{words}."
    if not opened:
        yield _none(result, terms)


def _none(result: Transactions, terms: TransactionTerms) -> str:
    """The sentence that there is none; for hanging transactions with the number of open ones."""
    damaged = sum(each.is_damaged for each in result.partitions.values())
    whole = counted(len(result.partitions) - damaged, "partition")
    whole += f"; {counted(damaged, 'partition')} cannot be read as a whole" if damaged else ""
    if not terms.only_hanging:
        who = "" if terms.transactional_id is None else f" of {terms.transactional_id}"
        if terms.producer_id is not None:
            who += f" of producer {terms.producer_id}"
        return f"No open transaction{who} in {whole}."
    others = open_transactions(result, replace(terms, only_hanging=False))
    if not others:
        return f"No hanging or open transaction in {whole}."
    unknown = sum(each.is_hanging is None for each in others)
    due = [each.hangs_after_ms for each in others if each.is_coordinator_done]
    if unknown:
        hanging = f"whether {unknown:,} of them hang is not known"
    elif due:
        counts = "1 counts" if len(due) == 1 else f"{len(due):,} count"
        hanging = f"no coordinator has all of them under way: {counts} as hanging from {iso_time(min(due))} on"
    elif any(each.is_coordinator_done is None for each in others):
        hanging = "none of them was silent for as long as --max-timeout"
    else:
        hanging = "none of them hangs: their coordinators have them under way"
    place = counted(len(result.partitions), "partition")
    return f"{counted(len(others), 'open transaction')} in {place}, and {hanging} (--open shows what is open)."


def _of_one(each: OpenTransaction, terms: TransactionTerms) -> str:
    known = each.transaction
    who = f"producer {known.producer_id} epoch {known.producer_epoch}"
    if each.transactional_id is not None:
        who = f"{each.transactional_id} ({who})"
    since = f" since {iso_time(known.start_timestamp)}" if known.start_timestamp >= 0 else ""
    records, size_bytes = each.found.waiting(known)
    held = f"holds the last stable offset of {each.found.partition.name} at {each.found.last_stable_offset}"
    if not each.holds_last_stable_offset:
        held = f"has an open transaction in {each.found.partition.name} from offset {known.first_offset} on"
    elif each.found.last_stable_offset != known.first_offset:  # the checkpoint of the high watermark is older
        held = f"has the oldest open transaction of {each.found.partition.name}, from offset {known.first_offset} on,"
    words = (
        f"{who} {held}{since}, "
        f"with {counted(known.record_count, 'record')} of its own; consumers with read_committed wait for "
        f"{counted(records, 'record')} ({counted(size_bytes, 'byte')})."
    )
    if each.is_coordinator_done:
        state = "" if each.coordinator_state is None else f" (its state: {each.coordinator_state})"
        words += f" No coordinator has it under way{state}"
        if each.is_hanging:
            words += ", so none will end it."
        else:
            due = iso_time(each.hangs_after_ms)
            words += f": its end has not reached this log, or it hangs; Kafka's tool counts it so from {due} on."
    elif each.is_coordinator_done is None and each.coordinator_state is not None:
        words += " The log of its coordinator could not be read as a whole, and may have it under way (the last known "
        words += f"state: {each.coordinator_state}): find out before you abort it."
    elif each.coordinator_state is not None and each.timeout_ms is not None:
        words += f" Its coordinator has it in state {each.coordinator_state}, "
        if each.timeout_ms != _NO_TIMEOUT_MS:
            words += f"timeout {each.timeout_ms / 1000:,.10g} s."
        else:
            ended_by = "; its client has to end it" if each.coordinator_state == "Ongoing" else ""
            words += f"without a timeout, as this is a two-phase commit{ended_by}."
    elif each.is_hanging is None:
        words += " Whether a coordinator will end it is not known: find out before you abort it."
    command = each.abort_command(terms)
    if each.is_hanging and command is not None:
        words += f"\nTo abort it: {command}"
    return words


_STEP_BYTES = 4 * MIB
_LAST_OFFSET = ENDED_COLUMNS.index("last_offset")
_LAST_OFFSET_OF_ROW = TRANSACTION.names.index("last_offset")


class _Followed(msgspec.Struct):
    """A partition: transactions that ended before ``shown_to``, and those of ``shown_open``, were shown before.

    ``shown_open`` has the producer id and the first offset of each.
    """

    found: PartitionTransactions
    shown_to: int = 0
    shown_open: set[tuple[int, int]] = msgspec.field(default_factory=set)


def follow_transactions(
    targets: Sequence[Target], terms: TransactionTerms, follow: FollowTerms
) -> Iterator[Row | Finding | CaughtUp]:
    """Rows of columns.TRANSACTION: first the open transactions, then each transaction when it ends.

    With ``only_open``, each transaction when it begins. The headers of the logs are read from their start, on which the
    state at their end depends. Raises InputError as ``Target.kind`` does, and for targets of two clusters.
    """
    require_one_cluster(targets, terms.limits)
    run = _Run(terms, TransactionalIds())
    follow = replace(follow, from_start=True, limits=terms.limits, step_bytes=_STEP_BYTES)
    driver = FollowDriver(targets, follow)
    yield from driver.begin()
    for event in driver.events():
        if isinstance(event, Grown):
            yield from run.take(event)
        elif isinstance(event, Broken):
            run.broke(event.partition)
            yield event.finding
        elif isinstance(event, CaughtUp):
            yield from run.news()
            yield event
        else:
            yield event


class _Run:
    """The state of all partitions, and what was shown of them."""

    def __init__(self, terms: TransactionTerms, ids: TransactionalIds) -> None:
        self._terms = terms
        self._ids = ids
        self._partitions: dict[Path, _Followed] = {}
        self._changed: dict[Path, None] = {}
        self._cut: dict[Path, _Followed] = {}  # what was shown of partitions that are read again
        self._is_first = True

    def take(self, event: Grown) -> Iterator[Finding]:
        """Feed the next batches of a partition; yields findings."""
        path, partition = event.partition.path, event.partition.listed
        if partition.topic == layout.TRANSACTION_STATE_TOPIC:
            if partition.number is not None:
                self._ids.partitions.add(partition.number)
            for found_records in event.parts(CoordinatorScan(limits=self._terms.limits)):
                if isinstance(found_records, list):
                    self._ids.feed(found_records)
                else:
                    yield found_records
            return
        if self._terms.topics and partition.topic not in self._terms.topics:
            return
        if path not in self._partitions:
            found = PartitionTransactions.of_partition(partition, Checkpoints())
            yield from take_snapshot(found, self._terms.limits)
            before = self._cut.pop(path, None)
            self._partitions[path] = _Followed(found) if before is None else replace(before, found=found)
        base_offset = event.log.location.base_offset
        for item in event.parts(HeaderScan(self._terms.limits)):
            if isinstance(item, Headers):
                self._partitions[path].found.feed(item, base_offset or 0, None)
                self._changed[path] = None
                if self._is_first:
                    self._partitions[path].found.ended.clear()
            else:
                yield item

    def broke(self, partition: FollowedPartition) -> None:
        """Read a partition again from its start, since its end has changed and the state depends on the whole log."""
        known = self._partitions.pop(partition.path, None)
        if known is not None:
            self._cut[partition.path] = replace(known, shown_to=min(known.shown_to, partition.next_offset))
        partition.restart()

    def news(self) -> Iterator[Row]:
        """The rows of transactions that changed since the last call."""
        terms = replace(self._terms, now_ms=time.time_ns() // 1_000_000)
        for path in self._changed:
            followed = self._partitions.get(path)
            if followed is not None:
                yield from self._news_of(followed, terms)
        self._changed.clear()
        self._is_first = False

    def _news_of(self, followed: _Followed, terms: TransactionTerms) -> Iterator[Row]:
        found = followed.found
        partition = found.partition
        result = Transactions(ids=self._ids, partitions={(partition.topic, partition.number): found})
        found.ended = [table[table[:, _LAST_OFFSET] >= followed.shown_to] for table in found.ended]
        if not self._is_first:
            rows = [*ended_rows(result, terms, is_aborted=True), *ended_rows(result, terms, is_aborted=False)]
            yield from sorted(rows, key=_end_of)
        found.ended.clear()
        followed.shown_to = max(followed.shown_to, found.log_end_offset)
        opened = open_transactions(result, terms)
        for each in opened:
            key = each.transaction.producer_id, each.transaction.first_offset
            if (self._is_first or terms.only_open) and key not in followed.shown_open:
                yield open_row(each, terms)
        followed.shown_open = {(each.transaction.producer_id, each.transaction.first_offset) for each in opened}


def _end_of(row: Row) -> int:
    offset: int = row[_LAST_OFFSET_OF_ROW]
    return offset
