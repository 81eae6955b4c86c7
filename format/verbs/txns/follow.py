"""txns --follow: the transactions that are open now, and each one that begins or ends from now on."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
from msgspec.structs import replace

from format.columns import TRANSACTION
from format.findings import Finding
from format.layout import TRANSACTION_STATE_TOPIC
from format.limits import MIB
from format.node.log_dir import Checkpoints
from format.node.target import Target
from format.scan.follow import Broken, CaughtUp, FollowDriver, FollowTerms, Grown
from format.scan.followed_partition import FollowedPartition
from format.state.header_scan import Headers, HeaderScan
from format.state.transactional_ids import TransactionalIds
from format.verbs.txns.coordinator_records import CoordinatorRecords, CoordinatorScan
from format.verbs.txns.partition_transactions import ENDED_COLUMNS, PartitionTransactions, take_snapshot
from format.verbs.txns.terms import TransactionTerms
from format.verbs.txns.transaction_rows import Row, ended_rows, open_row, open_transactions
from format.verbs.txns.txns import Transactions

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
    state at their end depends. Raises InputError as ``Target.kind`` does.
    """
    run = _Run(terms, TransactionalIds())
    follow = replace(follow, from_start=True, limits=terms.limits, step_bytes=_STEP_BYTES)
    with FollowDriver(targets, follow) as driver:
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
        if partition.topic == TRANSACTION_STATE_TOPIC:
            if partition.number is not None:
                self._ids.partitions.add(partition.number)
            for found_records in event.parts(CoordinatorScan(limits=self._terms.limits)):
                if isinstance(found_records, CoordinatorRecords):
                    found_records.feed_to(self._ids)
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
