"""Records that lie where the default partitioner would not write them any more, since partitions were added."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import msgspec
import numpy as np

from format.checks.records import misplaced_rows
from format.errors import KafkaLogError
from format.findings import Finding
from format.io.session import path_of
from format.limits import Limits
from format.log.read_records import record_tables
from format.log.record_table import RecordTable
from format.node.partition import read_partition
from format.scan.protocol import Depth, Needs, OpenedRange
from format.scan.read_log import selected_chunks
from format.scan.selected_logs import every_log_of
from format.scan.selection import Selection
from format.state.cluster_image import ClusterImage
from format.state.log_headers import log_parts
from format.state.metadata_log import MetadataRecord, read_metadata
from format.timestamps import iso_time
from format.verbs.doctor.diagnosis import Draft, command
from format.verbs.doctor.evidence import Evidence
from format.verbs.ls.partition_listing import PartitionListing
from format.wording import counted

#: How long a producer may take to learn of new partitions (metadata.max.age.ms).
_UNAWARE_MS = 5 * 60 * 1000
#: So many different keys in their places prove the default partitioner.
_PROVING_KEYS = 16
_MOST_PATHS = 8


class _Growth(msgspec.Struct, frozen=True):
    """The one time at which partitions were added to a topic, and how many it had before and has since."""

    at_ms: int
    before: int
    after: int


class _Placement(msgspec.Struct):
    """What the keyed records of a topic show. ``is_default`` is False once one is where the partitioner never wrote."""

    growth: _Growth
    is_default: bool = True
    keyed: int = 0
    misplaced: int = 0
    first: tuple[str, int] | None = None  # the path and the offset of the first one that is misplaced
    paths: list[str] = msgspec.field(default_factory=list)
    proving: set[bytes] = msgspec.field(default_factory=set)

    def take(self, table: RecordTable, listing: PartitionListing) -> None:
        """Take the next records of a partition."""
        number, growth = listing.partition or 0, self.growth
        table = table.rows(table.key_length >= 0)
        early, late = table.timestamp < growth.at_ms, table.timestamp > growth.at_ms + _UNAWARE_MS
        was_wrong, is_wrong = np.zeros(len(table), np.bool_), np.zeros(len(table), np.bool_)
        was_wrong[misplaced_rows(table, number, growth.before)] = number < growth.before
        was_wrong |= number >= growth.before
        is_wrong[misplaced_rows(table, number, growth.after)] = True
        impossible = np.where(early, was_wrong, np.where(late, is_wrong, was_wrong & is_wrong))
        self.is_default = not (impossible.any() or (table.timestamp < 0).any())
        self.keyed += len(table)
        self.misplaced += int(is_wrong.sum())
        if is_wrong.any():
            self.first = self.first or (listing.path, int(table.offset[is_wrong][0]))
            self.paths += [listing.path] if listing.path not in self.paths else []
        for row in np.flatnonzero(late | (early & (growth.before > 1))).tolist():
            if len(self.proving) >= _PROVING_KEYS:
                break
            self.proving.add(table.key(row) or b"")


class _KeyScan(msgspec.Struct, frozen=True):
    """Reads the records of logs."""

    limits: Limits

    @property
    def needs(self) -> Needs:
        return Needs(Depth.RECORDS, Selection(), limits=self.limits)

    def parts(self, opened: OpenedRange) -> Iterator[RecordTable | Finding]:
        for item in selected_chunks(opened, self.needs):
            if isinstance(item, Finding):
                yield item
                continue
            batches = item.chunk.table
            yield from record_tables(
                item.chunk, which=item.readable & ~batches.is_control, limits=self.limits, location=item.location
            )


def misplaced(evidence: Evidence) -> Iterator[Draft]:
    """Topics whose keys lie in other partitions since some were added, where logs are read whole.

    Said only where all records are where the default partitioner put them at their time: else a producer chose places
    in another way.
    """
    image = evidence.context.image
    if image is None or not evidence.reads_records or evidence.is_bundled:
        return
    listings = list(evidence.longest_replicas())
    for topic_id, growth in _grown_topics(evidence).items():
        topic = image.names[topic_id]
        own = [each for each in listings if each.topic == topic and each.topic_id in (None, topic_id)]
        found = _placement(own, growth, evidence.limits)
        if found is None or found.first is None:
            continue
        here = "" if len(own) == growth.after else f" in the {counted(len(own), 'partition')} here"
        words = f"{found.misplaced:,} of {counted(found.keyed, 'keyed record')}{here} lie where a producer would not "
        words += f"write them since partitions were added at {iso_time(growth.at_ms)} ({growth.before:,} before, "
        words += f"{growth.after:,} since): a key may be in two partitions, and out of order."
        path, offset = found.first
        follow = command("verify", "--partitioner", "murmur2", "--partitions", str(growth.after),
                         *found.paths[:_MOST_PATHS])  # fmt: skip
        yield Draft("partitions-added", topic, words, path, offset, follow, weight=found.misplaced)


def _placement(listings: Sequence[PartitionListing], growth: _Growth, limits: Limits) -> _Placement | None:
    """What the records of a topic show; None where they do not prove the default partitioner."""
    found = _Placement(growth)
    for each in listings:
        try:
            for log in every_log_of(read_partition(path_of(each.path))):
                for item in log_parts(_KeyScan(limits), log):
                    if isinstance(item, Finding):
                        continue  # verify reports it
                    found.take(item, each)
                    if not found.is_default:
                        return None
        except KafkaLogError:
            return None
    return found if len(found.proving) >= _PROVING_KEYS else None


def _grown_topics(evidence: Evidence) -> dict[str, _Growth]:
    """By id, the topics to which partitions were added once since the metadata log begins."""
    source, state = evidence.context.source, evidence.context.state
    if source is None or state is None or state.is_damaged:
        return {}
    created: dict[str, int] = {}
    added: dict[str, dict[int, int]] = {}  # by topic id: the partitions before, by the time of the addition

    def watch(image: ClusterImage, record: MetadataRecord) -> Callable[[], None] | None:
        if record.record_type == "TOPIC_RECORD":
            created[record.data["topicId"]] = record.timestamp
        elif record.record_type == "PARTITION_RECORD":
            topic_id = record.data["topicId"]
            count = sum(key[0] == topic_id for key in image.partitions)
            if count and created.get(topic_id) != record.timestamp:
                added.setdefault(topic_id, {}).setdefault(record.timestamp, count)
        return None

    read_metadata(source.partition, None, evidence.limits, watch)
    image = state.image
    return {
        topic_id: _Growth(*next(iter(times.items())), image.partition_count(image.names[topic_id]))
        for topic_id, times in added.items()
        if len(times) == 1 and topic_id in image.names
    }
