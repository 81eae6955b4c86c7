"""The metadata records of one copy that are in effect, in order and as they lie in its snapshot and its log."""

from __future__ import annotations

from copy import deepcopy

import msgspec

from format.errors import Refused
from format.findings import Finding, Severity
from format.limits import Limits
from format.location import Location
from format.scan.protocol import LogUnit
from format.scan.selected_logs import log_of_segment
from format.state.cluster_image import ClusterImage
from format.state.metadata_copies import MetadataCopy
from format.state.metadata_log import MetadataRecord, MetadataReplay, metadata_records
from format.verbs.metadata.rows import Read, subject_of

#: What a record is about, in words, and the id of its topic.
SubjectKey = tuple[str, str | None]
_FILLER = "NO_OP_RECORD"


class SurvivingRecords(msgspec.Struct):
    """The values of the records, and the image that they give.

    ``versions`` has the highest version of each record type, which all nodes of the cluster can read. ``subjects`` are
    what the records from ``since`` on are about, each with the function that reads its state; there are none where that
    is None. ``before`` is the image before these records, None where a snapshot contains some of them.
    """

    since: int | None = None
    values: list[bytes] = msgspec.field(default_factory=list)
    image: ClusterImage = msgspec.field(default_factory=ClusterImage)
    versions: dict[str, int] = msgspec.field(default_factory=dict)
    last_timestamp: int = 0
    subjects: dict[SubjectKey, Read] = msgspec.field(default_factory=dict)
    before: ClusterImage | None = None

    def take(self, image: ClusterImage, record: MetadataRecord) -> None:
        """Keep a record that is applied next."""
        if record.is_control or record.record_type == _FILLER:
            return
        self.values.append(record.value)
        self.versions[record.record_type] = max(record.version, self.versions.get(record.record_type, 0))
        if self.since is not None and record.offset >= self.since:
            if not self.subjects:
                self.before = deepcopy(image)
            _, subject, read = subject_of(image, record)
            self.subjects[subject, record.data.get("topicId")] = read


def surviving_records(copy: MetadataCopy, limits: Limits, since: int | None = None) -> SurvivingRecords:
    """The records of a copy up to its end; those of a metadata transaction that has no end are not in effect.

    Raises Refused where one cannot be read.
    """
    found = SurvivingRecords()
    replay = MetadataReplay(found.image, watch=found.take)
    partition, snapshot = copy.source.partition, copy.sound_snapshot
    start, end = 0, copy.end[1]
    if snapshot is not None:
        start = snapshot.end_offset
        found.since = 0 if since is not None and start > since else None
        log = LogUnit(snapshot.path, partition.location(snapshot.path))
        for record in _records(log, 0, None, limits):
            if record.record_type == "SNAPSHOT_HEADER":
                found.last_timestamp = record.data.get("lastContainedLogTimestamp", 0)
            replay.take(record, is_snapshot=True)
        if found.since is not None:
            found.before = None
    found.since = since
    for segment in partition.segments:
        segment_log, next_base = log_of_segment(partition, segment), partition.next_base_offset(segment)
        if segment_log is not None and segment.base_offset < end and (next_base is None or next_base > start):
            for record in _records(segment_log, start, end, limits):
                replay.take(record)
    if replay.first_contradiction is not None:
        offset, text = replay.first_contradiction
        raise Refused(f"the record at offset {offset} contradicts those before it: {text}", Location(str(copy.path)))
    found.last_timestamp = max(found.last_timestamp, replay.last_timestamp or 0)
    return found


def _records(log: LogUnit, start: int, end: int | None, limits: Limits) -> list[MetadataRecord]:
    """The records of a file from ``start`` to before ``end``; None for all. Raises Refused."""
    found: list[MetadataRecord] = []
    for item in metadata_records(log, start, limits):
        if isinstance(item, MetadataRecord):
            if end is not None and item.offset >= end:
                break
            found.append(item)
        elif _matters(item, end):
            raise Refused(f"a record cannot be read: {item.message}", item.location)
    return found


def _matters(found: Finding, end: int | None) -> bool:
    """Whether a finding is about records that count; a copy ends at the first damage of its log."""
    offset = found.location.offset
    if found.is_incomplete and (end is None or offset is None or offset < end):
        return True
    return found.severity >= Severity.ERROR and (end is None or (offset is not None and offset < end))
