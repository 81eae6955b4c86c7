"""The scan of groups: reduces each range of a coordinator's log to what it changes in the state of groups."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from format.findings import Finding, finding_of
from format.internal_topics.group_replay import ChangesReader, GroupChanges
from format.internal_topics.record_check import InternalRecordCheck
from format.layout import CONSUMER_OFFSETS_TOPIC as OFFSETS_TOPIC
from format.limits import DEFAULT_LIMITS, Limits
from format.log.read_records import record_tables
from format.scan.drivers import with_last_finding
from format.scan.protocol import Cost, Depth, LogParts, LogUnit, Needs, OpenedRange
from format.scan.read_log import selected_chunks
from format.scan.selection import EVERYTHING
from format.state.group_records import COORDINATOR_TOPICS, GroupRecords, read_groups

# Measured: seconds for each batch, each byte, and each byte of compressed batches.
_COST = Cost(batch_s=1e-6, byte_s=4.5e-9, compressed_byte_s=10e-9)


class LogRecords(msgspec.Struct, frozen=True):
    """One record table of a coordinator's log, reduced to the state of groups."""

    log: LogUnit
    records: GroupRecords


class LogChanges(msgspec.Struct, frozen=True):
    """The group records of one record table, for the replay of its partition."""

    log: LogUnit
    changes: GroupChanges


class GroupsScan(msgspec.Struct, frozen=True):
    """groups as a scan: the parts are reduced record tables, which the caller adds to a state across logs.

    ``until`` leaves out records with a later timestamp; ``with_history`` keeps every commit.
    """

    until: int | None = None
    with_history: bool = False
    limits: Limits = DEFAULT_LIMITS

    @property
    def needs(self) -> Needs:
        return Needs(Depth.RECORDS, EVERYTHING, self.limits, cost=_COST)

    def parts(self, opened: OpenedRange) -> Iterator[GroupRecords | GroupChanges | Finding]:
        """The reduced record tables of a range, and findings about damage."""
        place = opened.log.location
        topic = place.topic if place.topic in COORDINATOR_TOPICS else next(iter(COORDINATOR_TOPICS))
        check = InternalRecordCheck.of_topic(topic, place)
        for item in selected_chunks(opened, self.needs):
            if isinstance(item, Finding):
                yield item
                continue
            for table in record_tables(item.chunk, which=item.readable, limits=self.limits, location=place):
                for problem in table.problems:
                    yield finding_of(problem.error)
                at_time = table if self.until is None else table.rows(table.timestamp <= self.until)
                found = check.summary(at_time).findings
                yield from found
                if self.until is None and place.topic == OFFSETS_TOPIC:
                    changes = ChangesReader()
                    changes.take(table, found)
                    if not changes.is_empty:
                        yield changes.result()
                records = read_groups(table, topic, until=self.until, with_history=self.with_history)
                if records is not None:
                    yield records

    def fold(
        self, log: LogUnit, parts: LogParts[GroupRecords | GroupChanges | Finding]
    ) -> Iterator[LogRecords | LogChanges | Finding]:
        """The parts as they come, with their log."""
        for part in with_last_finding(log, parts):
            if isinstance(part, GroupChanges):
                yield LogChanges(log, part)
            else:
                yield part if isinstance(part, Finding) else LogRecords(log, part)
