"""What is wrong with how a node is used: by groups, by producers that retry or choose partitions, and of its disks."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec
import numpy as np

from format import layout
from format.checks.records import misplaced_rows
from format.errors import KafkaLogError
from format.findings import Finding
from format.io.session import is_on_disk, path_of
from format.limits import Limits
from format.log.batch_table import BatchTable
from format.log.read_records import record_tables
from format.log.record_table import RecordTable
from format.node.partition import Partition, read_partition
from format.scan.protocol import Depth, Needs
from format.scan.selected_logs import every_log_of
from format.state.cluster_image import ClusterImage
from format.state.log_headers import HeaderScan, log_chunks, log_parts
from format.state.metadata_log import MetadataRecord, read_metadata
from format.timestamps import iso_time
from format.verbs.doctor.diagnosis import Draft, command
from format.verbs.doctor.evidence import Evidence, directory_of
from format.verbs.ls.partition_listing import PartitionListing
from format.wording import counted, span

#: How much later than a commit the newest record must be for a group to count as stopped, and how large its lag.
_STOPPED_MS = 10 * 60 * 1000
_BEHIND_LAG = 1_000
#: More commits an hour than these for each partition are unusual: clients commit every five seconds by default.
_MANY_COMMITS = 3_600
_MANY_COMMIT_BYTES = 8 * 2**20


def out_of_range(evidence: Evidence) -> Iterator[Draft]:
    """Committed offsets outside of their logs."""
    members = {each["group"]: each["member_count"] for each in evidence.groups}
    for row in evidence.group_offsets:
        is_past_end = row["out_of_range"] == "past_log_end"
        if row["out_of_range"] is None or row["offset"] is None:
            continue
        if is_past_end and evidence.is_live:
            continue  # the commit may be newer than what was read of the log
        if not is_past_end and not members.get(row["group"]):
            continue
        place = f"{row['topic']}-{row['partition']}"
        bound = f"past its log end {row['log_end_offset']}" if is_past_end else "before its log start"
        at_hand = "" if _is_leader_here(evidence, row["topic"], row["partition"]) else " at the paths"
        words = f"Group {row['group']} has committed offset {row['offset']} of {place}, {bound}{at_hand}: its "
        words += "consumers continue where auto.offset.reset says."
        yield Draft("group-out-of-range", f"group {row['group']}", words, row["path"], row["record_offset"],
                    _follow(evidence, row["group"]))  # fmt: skip


def _is_leader_here(evidence: Evidence, topic: str, partition: int) -> bool:
    image = evidence.context.image
    state = None if image is None else image.partition_of(topic, partition)
    return state is not None and state.leader in evidence.node_ids


def behind(evidence: Evidence) -> Iterator[Draft]:
    """Groups with a large lag that stopped to commit, or have read less than half of a partition."""
    if evidence.is_live:
        return
    furthest: dict[str, dict[str, Any]] = {}
    for row in evidence.group_offsets:
        if row["group"] not in furthest or (row["lag"] or 0) > (furthest[row["group"]]["lag"] or 0):
            furthest[row["group"]] = row
    newest = evidence.newest_timestamp
    for row in evidence.groups:
        group, lag, last = row["group"], row["total_lag"] or 0, row["last_commit_timestamp"]
        most = furthest.get(group)
        if lag < _BEHIND_LAG or last is None or most is None:
            continue
        kept = (most["log_end_offset"] or 0) - (evidence.log_start(most["topic"], most["partition"]) or 0)
        if newest - last < _STOPPED_MS and 2 * (most["lag"] or 0) < kept:
            continue
        share = "all" if most["lag"] == lag else f"{most['lag']:,} of them"
        words = f"It is {counted(lag, 'record')} behind, {share} on {most['topic']}-{most['partition']}. "
        words += f"It committed last at {iso_time(last)}; the newest record here is of {iso_time(newest)}."
        yield Draft("group-behind", f"group {group}", words, most["path"], most["record_offset"],
                    _follow(evidence, group), weight=lag)  # fmt: skip


def committing_often(evidence: Evidence) -> Iterator[Draft]:
    """Groups that commit much more often than clients do by default, in much of a coordinator's log."""
    for row in evidence.groups:
        each_hour = (row["commits_per_hour"] or 0) / max(row["committed_partitions"], 1)
        if each_hour < _MANY_COMMITS or (row["size_bytes"] or 0) < _MANY_COMMIT_BYTES:
            continue
        place = f"{layout.CONSUMER_OFFSETS_TOPIC}-{row['coordinator_partition']}"
        words = f"Group {row['group']} made {counted(row['commit_count'], 'commit')} for "
        words += (
            f"{counted(row['committed_partitions'], 'partition')}, {row['commits_per_hour']:,} an hour, which take "
        )
        words += f"{counted(row['size_bytes'], 'byte')} of {place}: let it commit less often."
        path = next((each.path for each in evidence.partitions if each.path.endswith(f"/{place}")), None)
        follow = _follow(evidence, row["group"])
        yield Draft("group-commits", place, words, path, None, follow, weight=row["size_bytes"])


def _follow(evidence: Evidence, group: str) -> str:
    return command("groups", *(str(each.path) for each in evidence.targets), "--group", group)


#: Among how many batches before it, and for how long, an equal one is looked for: a client gives up after two minutes.
_REMEMBERED = 4096
_RETRIED_MS = 5 * 60 * 1000
_MOST_PAIRS = 2


class _Pair(msgspec.Struct, frozen=True):
    """The first and last offsets of two equal batches."""

    earlier: tuple[int, int]
    later: tuple[int, int]
    record_count: int


def repeated_batches(evidence: Evidence) -> Iterator[Draft]:
    """Partitions with equal batches, where logs are read whole."""
    if not evidence.reads_records or evidence.is_bundled:
        return
    compacted = evidence.context.compacted_topics()
    for each in evidence.longest_replicas():
        topic = each.topic or ""
        if compacted.get(topic) or each.cleaner_offset is not None or (each.batch_count or 0) < 2:
            continue
        try:
            pairs = list(_equal_batches(read_partition(path_of(each.path)), evidence.limits))
        except KafkaLogError:
            continue  # verify reports it
        if not pairs:
            continue
        count = sum(pair.record_count for pair in pairs)
        verb = "is" if count == 1 else "are"
        words = (
            f"{counted(count, 'record')} {verb} there twice, in equal batches without a producer id, as after a retry: "
        )
        words += "; ".join(f"{span(*pair.earlier)} and {span(*pair.later)}" for pair in pairs[:_MOST_PAIRS])
        words += f"; and {counted(len(pairs) - _MOST_PAIRS, 'more pair')}" if len(pairs) > _MOST_PAIRS else ""
        follow = command("producers", "--duplicates", "--topic", topic, each.path)
        yield Draft("records-twice", f"{topic}-{each.partition}", f"{words}.", each.path, pairs[0].earlier[0], follow,
                    weight=count)  # fmt: skip


def _equal_batches(partition: Partition, limits: Limits) -> Iterator[_Pair]:
    """Pairs of equal batches.

    The times in a batch must differ: a producer that sends one record again and again within a millisecond makes equal
    batches too, but none that begins before the one before it ends.
    """
    known = BatchTable.empty()
    for log in every_log_of(partition):
        for item in log_parts(HeaderScan(limits), log):
            if isinstance(item, Finding):
                continue  # verify reports it
            table = BatchTable.concatenated([known, item.table])
            newest = np.maximum.accumulate(table.max_timestamp)
            _, group, counts = np.unique(table.crc, return_inverse=True, return_counts=True)
            may_be = (counts[group] > 1) & (table.magic == 2) & ~table.is_control
            may_be &= (table.producer_id == layout.NO_PRODUCER_ID) & (table.max_timestamp > table.base_timestamp)
            seen: dict[tuple[int, ...], int] = {}
            for row in np.flatnonzero(may_be & (newest - table.base_timestamp <= _RETRIED_MS)).tolist():
                columns = table.crc, table.size_bytes, table.base_timestamp, table.max_timestamp, table.record_count
                earlier = seen.setdefault(tuple(int(column[row]) for column in columns), row)
                if earlier != row and row >= len(known):
                    yield _Pair(_offsets(table, earlier), _offsets(table, row), int(table.record_count[row]))
            known = table.rows(slice(max(len(table) - _REMEMBERED, 0), None))


def _offsets(table: BatchTable, row: int) -> tuple[int, int]:
    return int(table.base_offset[row]), table.last_offset_of(row)


#: A file system is nearly full with less than this share free; it matters to a log directory that is a tenth of it.
_FREE_SHARE = 0.02
_OWN_SHARE = 0.1
_MUCH = 64 * 2**20
_MOST_NAMED = 3


def full_disks(evidence: Evidence) -> Iterator[Draft]:
    """File systems of this host that are nearly full, with the topics that take most of them."""
    seen: set[int] = set()
    for log_dir in evidence.log_dirs:
        path = str(log_dir.path)
        if not is_on_disk(log_dir.path):
            continue
        try:
            status = os.statvfs(log_dir.path)
        except OSError:
            continue  # verify reports that the directory cannot be read
        sizes: dict[str, int] = {}
        for each in evidence.partitions:
            if each.path.startswith(f"{path}/"):
                name = f"{each.topic or each.path}{'' if each.mark is None else ' (-' + each.mark + ')'}"
                sizes[name] = sizes.get(name, 0) + (each.log_size_bytes or 0)  # indexes are sparse
        total, free, own = status.f_blocks * status.f_frsize, status.f_bavail * status.f_frsize, sum(sizes.values())
        is_its = log_dir.broker_lock.is_held or own >= _OWN_SHARE * total
        if status.f_fsid in seen or status.f_flag & os.ST_RDONLY or not is_its or free >= _FREE_SHARE * total:
            continue
        seen.add(status.f_fsid)
        largest = sorted(sizes, key=lambda name: -sizes[name])[:_MOST_NAMED]
        most = ", ".join(f"{name} {counted(sizes[name], 'byte')}" for name in largest)
        words = f"The file system has {counted(free, 'byte')} of {counted(total, 'byte')} free. The logs take "
        words += f"{counted(own, 'byte')}, most of them: {most}."
        yield Draft("disk-full", path, words, path, None, command("ls", "--sort", "size", path), weight=own)


def leftovers(evidence: Evidence) -> Iterator[Draft]:
    """Log directories in which directories that are no replicas any more take much room."""
    own: dict[str, int] = {}
    left: dict[str, list[tuple[int, str]]] = {}
    for each in evidence.partitions:
        path, size = str(directory_of(each)), each.log_size_bytes or 0  # without indexes, which are sparse
        own[path] = own.get(path, 0) + size
        if each.mark in ("delete", "stray"):
            left.setdefault(path, []).append((size, each.path))
    for path, found in left.items():
        size = sum(each for each, _ in found)
        if size < _MUCH or size < own[path] // 10:
            continue
        count, largest = counted(len(found), "directory"), max(found)[1]
        words = f"{count} marked -delete or -stray take{'s' if len(found) == 1 else ''} {counted(size, 'byte')} of "
        words += f"{counted(own[path], 'byte')}."
        yield Draft("leftovers", path, words, largest, None, command("ls", "--sort", "size", path), weight=size,
                    node=evidence.node_of(path))  # fmt: skip


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
                for item in log_chunks(log, Needs(Depth.RECORDS, limits=limits)):
                    if isinstance(item, Finding):
                        continue  # verify reports it
                    which = item.readable & ~item.chunk.table.is_control
                    for table in record_tables(item.chunk, which=which, limits=limits, location=item.location):
                        found.take(table, each)
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
