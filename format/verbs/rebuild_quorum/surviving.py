"""The metadata records of one copy that are in effect, in order and as they lie in its snapshot and its log."""

from __future__ import annotations

from copy import deepcopy

import msgspec

from format.errors import Refused
from format.findings import Finding
from format.limits import Limits
from format.location import Location
from format.state.cluster_image import ClusterImage
from format.state.metadata_log import MetadataRecord, MetadataReplay
from format.state.quorum import CopyRecord, MetadataCopy, records_of_copy
from format.verbs.metadata.metadata import Read, subject_of

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
    is_in_snapshot = since is not None and copy.sound_snapshot is not None and copy.sound_snapshot.end_offset > since
    for item in records_of_copy(copy, limits):
        if isinstance(item, Finding):
            raise Refused(f"a record cannot be read: {item.message}", item.location)
        record = item.record
        if not item.is_snapshot:
            found.since = since
        elif is_in_snapshot:
            found.since = 0
        if item.is_snapshot and record.record_type == "SNAPSHOT_HEADER":
            found.last_timestamp = record.data.get("lastContainedLogTimestamp", 0)
        replay.take(record, is_snapshot=item.is_snapshot)
    if is_in_snapshot:
        found.before = None
    if replay.first_contradiction is not None:
        offset, text = replay.first_contradiction
        raise Refused(f"the record at offset {offset} contradicts those before it: {text}", Location(str(copy.path)))
    found.last_timestamp = max(found.last_timestamp, replay.last_timestamp or 0)
    return found


def records_after_damage(copy: MetadataCopy, image: ClusterImage, since: int, limits: Limits) -> SurvivingRecords:
    """The records from ``since`` on that a node would drop, as far as they can be read, applied to an image."""
    found = SurvivingRecords(since, image=deepcopy(image))
    replay = MetadataReplay(found.image, watch=found.take)
    for item in records_of_copy(copy, limits, is_past_damage=True):
        if isinstance(item, CopyRecord) and not item.is_snapshot and item.record.offset >= since:
            replay.take(item.record)
    return found
