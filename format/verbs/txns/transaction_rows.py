"""Transactions as rows: open ones first, the oldest first; then the aborted, then the committed ones."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from format import layout
from format.findings import Finding, Judgement, finding
from format.location import Location
from format.state.producer_events import Transaction
from format.verbs.txns.partition_transactions import ENDED_COLUMNS, NONE, PartitionTransactions
from format.verbs.txns.terms import TransactionTerms
from format.verbs.txns.txns import Transactions

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
        """The command that aborts it; None where its coordinator will end it, or no topic and partition are known."""
        known = self.transaction
        if self.is_hanging is False or self.topic is None or self.partition is None:
            return None
        epochs = (known.producer_epoch, self.coordinator_epoch)
        return terms.abort_command(self.topic, self.partition, known.first_offset, known.producer_id, epochs)


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
    return OpenTransaction(
        found,
        transaction,
        result.ids.id_of_producer(producer_id),
        None if state is None else state.state,
        None if state is None else state.timeout_ms,
        coordinator_epoch,
        None if state is None else place not in state.partitions,
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


def ended_rows(result: Transactions, terms: TransactionTerms, *, is_aborted: bool) -> Iterator[Row]:
    """The aborted or committed transactions that the terms select, partition by partition in log order."""
    if terms.only_open or terms.only_hanging:
        return
    producers = None if terms.transactional_id is None else result.ids.producers_of(terms.transactional_id)
    for _, found in sorted(result.partitions.items(), key=lambda item: (str(item[0][0]), item[0][1] or 0)):
        last_ends = _last_ends(found)
        for table in found.ended:
            wanted = table[:, _COLUMN["is_aborted"]] == is_aborted
            if terms.producer_id is not None:
                wanted &= table[:, _COLUMN["producer_id"]] == terms.producer_id
            if producers is not None:
                wanted &= np.isin(table[:, _COLUMN["producer_id"]], list(producers))
            yield from _rows_of(result, found, table[wanted], last_ends, "aborted" if is_aborted else "committed")


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
