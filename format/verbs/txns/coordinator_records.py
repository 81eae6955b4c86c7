"""The records of __transaction_state, read into the state of transactional ids."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import numpy as np

from format.findings import Finding, finding_of
from format.internal_topics.record_check import InternalRecordCheck
from format.layout import TRANSACTION_STATE_TOPIC
from format.limits import DEFAULT_LIMITS, Limits
from format.log.read_records import record_tables
from format.node.partition import Partition
from format.scan.drivers import SerialDriver, results_of, with_last_finding
from format.scan.progress import Advance
from format.scan.protocol import Depth, LogParts, LogUnit, Needs, OpenedRange
from format.scan.read_log import selected_chunks
from format.scan.selected_logs import every_log_of
from format.scan.selection import Selection
from format.state.transactional_ids import TransactionalIds


class CoordinatorRecords(msgspec.Struct, frozen=True):
    """Some consecutive records: the key, value, leader epoch and offset of each."""

    records: list[tuple[bytes, bytes | None, int, int]]

    def feed_to(self, ids: TransactionalIds) -> None:
        """Feed the records to the state of transactional ids."""
        for record in self.records:
            ids.feed(*record)


class CoordinatorScan(msgspec.Struct, frozen=True):
    """Reads the records up to the time ``at_ms``, or all where it is None."""

    at_ms: int | None = None
    limits: Limits = DEFAULT_LIMITS

    @property
    def needs(self) -> Needs:
        selection = Selection(to_timestamp=None if self.at_ms is None else self.at_ms + 1)
        return Needs(Depth.RECORDS, selection, limits=self.limits)

    def parts(self, opened: OpenedRange) -> Iterator[CoordinatorRecords | Finding]:
        """The records of a range in log order, and findings about damage."""
        needs = self.needs
        check = InternalRecordCheck.of_topic(TRANSACTION_STATE_TOPIC, opened.log.location)
        for item in selected_chunks(opened, needs):
            if isinstance(item, Finding):
                yield item
                continue
            for every in record_tables(item.chunk, which=item.readable, limits=self.limits, location=item.location):
                for problem in every.problems:
                    yield finding_of(problem.error, item.location)
                table = every.rows(needs.selection.records(every))
                odd = check.summary(table)
                yield from odd.findings
                epochs = table.batches.leader_epoch[table.batch]
                plain = ~table.batches.is_control[table.batch]
                keyed = ((row, table.key(row)) for row in np.flatnonzero(plain).tolist() if row not in odd.unreadable)
                yield CoordinatorRecords(
                    [
                        (key, table.value(row), int(epochs[row]), int(table.offset[row]))
                        for row, key in keyed
                        if key is not None
                    ]
                )

    def fold(
        self, log: LogUnit, parts: LogParts[CoordinatorRecords | Finding]
    ) -> Iterator[CoordinatorRecords | Finding]:
        yield from with_last_finding(log, parts)


def coordinator_records(
    partition: Partition, at_ms: int | None, limits: Limits, advance: Advance
) -> Iterator[CoordinatorRecords | Finding]:
    """The records of one partition in log order, and findings."""
    scan = CoordinatorScan(at_ms, limits)
    driver = SerialDriver(scan, advance)
    for log in every_log_of(partition):
        yield from results_of(scan, log, driver)
