"""The remote segments of tiered logs, by the records of __remote_log_metadata (KIP-405)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
import numpy as np
from msgspec.structs import replace

from format.errors import KafkaLogError
from format.findings import Finding, finding_of
from format.internal_topics.decoder import decoder_for
from format.limits import Limits
from format.log.read_records import record_tables
from format.node.partition import Partition
from format.scan.drivers import SerialDriver, with_last_finding
from format.scan.protocol import Depth, Needs, OpenedRange
from format.scan.read_log import selected_chunks
from format.scan.selected_logs import every_log_of
from format.scan.selection import EVERYTHING

TOPIC = "__remote_log_metadata"
_DECODER = decoder_for(TOPIC)
#: The states of a remote segment (storage RemoteLogSegmentState), and of a partition that is deleted.
STATES = {0: "copy started", 1: "copied", 2: "delete started", 3: "deleted"}
COPIED, DELETED = 1, 3


class RemoteLogSegment(msgspec.Struct, frozen=True):
    """One remote segment in its latest state: ``state`` is a number (STATES), ``event_timestamp`` is in ms."""

    topic: str
    topic_id: str
    partition: int
    segment_id: str
    start_offset: int
    end_offset: int
    size_bytes: int
    max_timestamp: int
    event_timestamp: int
    state: int

    @property
    def state_words(self) -> str:
        return STATES.get(self.state, f"state {self.state}")


class RemoteSegments(msgspec.Struct):
    """The remote segments by topic id, partition and segment id, and findings for records that could not be read."""

    by_id: dict[tuple[str, int, str], RemoteLogSegment] = msgspec.field(default_factory=dict)
    findings: list[Finding] = msgspec.field(default_factory=list)

    def take(self, record_type: str, data: dict[str, Any]) -> None:
        """Apply one record.

        An update without a first record of its segment is ignored: retention deleted that record.
        """
        if record_type == "REMOTE_LOG_SEGMENT_METADATA_RECORD":
            place, segment_id = _id_of(data)
            self.by_id[place["id"], place["partition"], segment_id] = RemoteLogSegment(
                topic=place["name"],
                topic_id=place["id"],
                partition=place["partition"],
                segment_id=segment_id,
                start_offset=data["startOffset"],
                end_offset=data["endOffset"],
                size_bytes=data["segmentSizeInBytes"],
                max_timestamp=data["maxTimestampMs"],
                event_timestamp=data["eventTimestampMs"],
                state=data["remoteLogSegmentState"],
            )
        elif record_type == "REMOTE_LOG_SEGMENT_METADATA_UPDATE_RECORD":
            place, segment_id = _id_of(data)
            key = place["id"], place["partition"], segment_id
            known = self.by_id.get(key)
            if known is not None:
                state, at = data["remoteLogSegmentState"], data["eventTimestampMs"]
                self.by_id[key] = replace(known, state=state, event_timestamp=at)
        elif record_type == "REMOTE_PARTITION_DELETE_METADATA_RECORD" and data["remotePartitionDeleteState"] == 2:
            place = data["topicIdPartition"]
            for key in [key for key in self.by_id if key[:2] == (place["id"], place["partition"])]:
                self.by_id[key] = replace(self.by_id[key], state=DELETED)


def _id_of(data: dict[str, Any]) -> tuple[dict[str, Any], str]:
    identity = data["remoteLogSegmentId"]
    return identity["topicIdPartition"], identity["id"]


class _Records(msgspec.Struct, frozen=True):
    """The decoded records of the topic, as a walk."""

    limits: Limits

    @property
    def needs(self) -> Needs:
        return Needs(Depth.RECORDS, EVERYTHING, self.limits)

    def parts(self, opened: OpenedRange) -> Iterator[tuple[str, dict[str, Any]] | Finding]:
        """Type and data of each record in log order, and findings."""
        for item in selected_chunks(opened, self.needs):
            if isinstance(item, Finding):
                yield item
                continue
            which = item.readable & ~item.chunk.table.is_control
            for table in record_tables(item.chunk, which=which, limits=self.limits, location=item.location):
                yield from (finding_of(problem.error, item.location) for problem in table.problems)
                for row in np.arange(len(table)).tolist():
                    place = item.location.at(offset=int(table.offset[row]))
                    try:
                        decoded = None if _DECODER is None else _DECODER.decode_value(None, table.value(row))
                    except KafkaLogError as error:
                        yield finding_of(error, place)
                        continue
                    if decoded is not None and decoded.raw is not None:
                        yield decoded.newer(place)
                    elif decoded is not None and decoded.data is not None and decoded.record_type is not None:
                        yield decoded.record_type, decoded.data


def read_remote_segments(partitions: Iterable[Partition], limits: Limits) -> RemoteSegments:
    """The remote segments in the records of these partitions of the topic."""
    found = RemoteSegments()
    walk = _Records(limits)
    for partition in partitions:
        for log in every_log_of(partition):
            with SerialDriver(walk) as driver:
                for part in with_last_finding(log, driver.parts(log)):
                    if isinstance(part, Finding):
                        found.findings.append(part)
                    else:
                        found.take(*part)
    return found
