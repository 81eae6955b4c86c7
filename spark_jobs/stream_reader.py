"""The data source as a stream: logs that grow, read on from the offset in Spark's checkpoint."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
from msgspec.structs import replace
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from format import layout
from format.errors import FileChanged, KafkaLogError, UnreadableFile
from format.files import partition_metadata
from format.files.meta_properties import node_id_in
from format.io.session import is_remote, is_there
from format.io.source import FileSource
from format.location import Location
from format.node.log_dir import Checkpoints, Kind, TopicPartition
from format.node.partition import Partition, key_of_directory, parse_partition_dir, read_partition
from format.node.target import Target
from format.scan.selected_logs import every_log_of
from format.scan.selection import Selection
from format.verbs.groups.replicas import log_end_of
from format.wording import listed
from spark_jobs import planning
from spark_jobs.log_views import ServedLog
from spark_jobs.view_options import (
    LATEST,
    BadOption,
    ReadOptions,
    resolved_paths,
    rows_without_traceback,
    without_traceback,
)
from spark_jobs.view_reader import KafkaLogReader, PackedPartitions, Query, Share, served

#: By broker (its id, or the path of its log directory) and topic: ``id``, and the next offset by partition number.
StreamOffset = dict[str, dict[str, dict[str, Any]]]

_TOPIC_ID = "id"


class StreamPlace(msgspec.Struct, frozen=True):
    """The place of a partition in offsets. ``broker`` is its id, or the path of a log directory without one."""

    broker: str
    topic: str
    number: str
    topic_id: str

    def next_offset(self, offset: StreamOffset) -> int | None:
        """The next offset of this partition; None where the stream does not have it, or has a topic with another id."""
        topic = offset.get(self.broker, {}).get(self.topic, {})
        known = topic.get(self.number)
        return None if known is None or self._is_other(topic) else int(known)

    def put_offset(self, offset: StreamOffset, number: int) -> None:
        """Set the next offset of this partition."""
        topic = offset.setdefault(self.broker, {}).setdefault(self.topic, {})
        if self._is_other(topic):
            topic.clear()
        topic[_TOPIC_ID] = self.topic_id or topic.get(_TOPIC_ID, "")
        topic[self.number] = number

    def _is_other(self, topic: dict[str, Any]) -> bool:
        """Whether a topic of the offset has another id. An id may be missing: brokers write it after the directory."""
        known = topic.get(_TOPIC_ID, "")
        return bool(known and self.topic_id and known != self.topic_id)


def in_order(offset: StreamOffset) -> StreamOffset:
    """An offset with sorted keys, as Spark compares offsets as text."""
    return {
        broker: {topic: dict(sorted(numbers.items())) for topic, numbers in sorted(topics.items())}
        for broker, topics in sorted(offset.items())
    }


#: How often and how long to wait for a segment that the cleaner is just replacing.
_SWAP_TRIES, _SWAP_WAIT_S = 50, 0.1
#: A directory whose time is so old when it is listed has another time when it changes again.
_SETTLED_NS = 2 * 10**9
#: The views that a stream can read: what is appended to a log is rows of its own in them.
_STREAMED = ("records", "batches", "findings")


class DataLost(KafkaLogError):
    """Records that are gone before the stream has read them."""


class _Listing(msgspec.Struct, frozen=True):
    """What each trigger needs of the listing of a partition directory.

    ``mtime_ns`` is the time of the directory, which changes when a file is created or removed in it; 0 where that
    cannot be seen.
    """

    mtime_ns: int
    topic_id: str
    first_base_offset: int
    last_base_offset: int
    last_log: Path | None


class _Replica(msgspec.Struct, frozen=True):
    """A partition at the paths of the stream: its first offset, the end of what may be read, and the log end."""

    path: Path
    key: TopicPartition
    broker_id: int | None
    topic_id: str
    first_offset: int
    end_offset: int
    log_end_offset: int | None = None

    @property
    def place(self) -> StreamPlace:
        """The place of its offset."""
        broker = self.path.parent if self.broker_id is None else self.broker_id
        return StreamPlace(str(broker), self.key[0], str(self.key[1]), self.topic_id)

    @property
    def name(self) -> str:
        return f"{self.key[0]}-{self.key[1]}"


class KafkaLogStreamReader(DataSourceStreamReader):
    """The reader of a stream: the driver finds what was appended, and ``read`` runs in each task."""

    def __init__(self, options: ReadOptions, schema: pa.Schema, names: Sequence[str] = ()) -> None:
        if options.view not in _STREAMED:
            raise BadOption(f"readStream reads the views {listed(_STREAMED)}, not the view {options.view}")
        if options.ending:
            raise BadOption("a stream has no endingOffsets")
        if options.ignore_missing:
            raise BadOption("a stream has failOnDataLoss=false in place of ignoreMissingFiles")
        if options.is_committed:
            what = "the last stable offset is known only after all headers of a log are read, at each trigger anew"
            raise BadOption(f"a stream reads with isolationLevel=read_uncommitted: {what}")
        if options.max_offsets is not None and find_spec("pyspark.sql.streaming.datasource") is None:
            raise BadOption("maxOffsetsPerTrigger needs Spark 4.2 or later")
        self._options = replace(options, ignore_missing=not options.fails_on_loss)
        self._reader = KafkaLogReader(replace(self._options, starting={}), schema, names)
        self._listings: dict[str, _Listing] = {}
        # The last log of a directory, its size, and its end offset.
        self._ends: dict[str, tuple[str, int, int | None]] = {}
        self._last: StreamOffset = {}

    @without_traceback
    def initialOffset(self) -> StreamOffset:  # noqa: N802 (Spark's name)
        """The offset at which a new query begins: of the first records in the logs, unless an option sets it.

        Raises BadOption where the option names a partition that is not there: what was meant would be read whole.
        """
        begun: StreamOffset = {}
        named = {key for key in self._options.starting if key[0]}
        for replica in self._replicas():
            named.discard(replica.key)
            given = self._options.selection(Location(str(replica.path), *replica.key)).from_offset
            if given == LATEST:
                given = replica.end_offset
            replica.place.put_offset(begun, replica.first_offset if given is None else max(given, replica.first_offset))
        for topic, number in sorted(named):
            raise BadOption(f"startingOffsets: there is no partition {topic}-{number} at the paths")
        self._last = in_order(begun)
        return self._last

    @without_traceback
    def latestOffset(self, start: StreamOffset | None = None, limit: Any = None) -> StreamOffset:  # noqa: N802
        """The ends of all partitions, never before ``start``. Spark before 4.2 passes neither start nor limit."""
        most = None if start is None else getattr(limit, "max_rows", None)
        self._last = self._moved(self._last if start is None else start, most)
        return self._last

    def getDefaultReadLimit(self) -> Any:  # noqa: N802 (Spark's name)
        """The limit of maxOffsetsPerTrigger."""
        from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

        most = self._options.max_offsets
        return ReadAllAvailable() if most is None else ReadMaxRows(most)

    @without_traceback
    def partitions(self, start: StreamOffset, end: StreamOffset) -> list[InputPartition]:
        """The tasks that read the records between two offsets. Raises DataLost where some of them are gone."""
        log_dirs: dict[str, int | None] = {}
        planned = planning.plan_view(
            self._grown_between(start, end, log_dirs),
            lambda log: log.path,
            self._cut,
            parallelism=os.cpu_count() or 2,
            cut=planning.Cut(self._options.range_bytes, self._options.least_tasks),
        )
        query = planning.packed(Query(planning.Brokers(sorted(log_dirs.items(), key=lambda each: -len(each[0])))))
        return PackedPartitions(planned.tasks, lambda task: Share(task, query))

    def _grown_between(
        self, start: StreamOffset, end: StreamOffset, log_dirs: dict[str, int | None]
    ) -> Iterator[ServedLog]:
        """The logs with records between two offsets. The brokers of their log directories are put in a dict."""
        for replica in self._replicas(with_ends=False):
            begin, to = replica.place.next_offset(start), replica.place.next_offset(end)
            if to is None or begin == to:
                continue
            first = replica.first_offset
            log_dirs[str(replica.path.parent)] = replica.broker_id
            if begin is not None and to < begin:
                self._require_log_up_to(begin, replica.name, to)
                continue
            if begin is not None and begin < first:
                self._lose(
                    f"{replica.name}: offsets {begin} to {min(first, to) - 1} were deleted before they were read"
                )
            yield from self._grown_logs(replica, first if begin is None else begin, to)

    @rows_without_traceback
    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The records of one task."""
        if isinstance(partition, Share):
            try:
                yield from self._reader.rows_of(partition.items, partition.query)
            except UnreadableFile as error:
                if error.location is not None and not is_there(planning.path_of(error.location.path)):
                    self._lose(f"{error.location.path} was deleted before it was read")
                raise

    # -- on the driver -------------------------------------------------------------------------------------------

    def _moved(self, start: StreamOffset, most: int | None) -> StreamOffset:
        """``start`` moved to the ends of all partitions; by at most ``most`` offsets, shared out by what is new."""
        moved = in_order(start)
        total = 0

        def found() -> Iterator[tuple[StreamPlace, int, int]]:
            nonlocal total
            for replica in self._replicas():
                place = replica.place
                known = place.next_offset(start)
                if known is not None and replica.log_end_offset is not None:
                    self._require_log_up_to(known, replica.name, replica.log_end_offset)
                begin = replica.first_offset if known is None else known
                count = max(replica.end_offset - begin, 0)
                total += count
                yield place, begin, count

        for place, begin, count in planning.PackedStream(found()):
            allowed = count if most is None or total <= most else min(-(-count * most // total), count)
            place.put_offset(moved, begin + allowed)
        return in_order(moved)

    def _require_log_up_to(self, read: int, name: str, log_end: int) -> None:
        """Lose records where a log now ends before the offset up to which it was read.

        What is appended there has offsets that the stream has passed, and is not read.
        """
        if log_end < read:
            what = "it was truncated, or is being copied again"
            self._lose(f"{name} ends at offset {log_end} and was read up to {read}: {what}")

    def _lose(self, words: str) -> None:
        """Raise DataLost, unless failOnDataLoss is false."""
        if self._options.fails_on_loss:
            raise DataLost(f"{words}; with failOnDataLoss=false the stream goes on without these records")

    def _grown_logs(self, replica: _Replica, begin: int, to: int) -> Iterator[ServedLog]:
        selection = Selection(begin, to)
        try:
            partition = _listed(replica.path)
        except FileChanged:
            self._lose(f"{replica.name} was deleted before it was read")
            return
        for log in every_log_of(partition):
            base_offset = log.location.base_offset or 0
            if self._options.wants(log.location) and not selection.excludes_segment(base_offset, log.next_base_offset):
                yield replace(served(log, base_offset, begin, to), is_increment=True)

    def _cut(self, log: ServedLog) -> tuple[ServedLog, ...]:
        """The log, to be read in parts, unless little of it is at or after the first offset."""
        if log.from_offset is not None:
            with FileSource(log.path) as source:
                position = log.whole_range(source, Selection(log.from_offset)).start
                if source.size_bytes - position <= 2 * (self._options.range_bytes or planning.SMALLEST_RANGE_BYTES):
                    return ()
        return (log,)

    def _replicas(self, *, with_ends: bool = True) -> Iterator[_Replica]:
        """The selected partitions. Without ``with_ends``, their end offsets are 0."""
        for path in resolved_paths(self._options):
            target = Target(path)
            if target.kind is Kind.PARTITION:
                if self._is_wanted(path.absolute()):
                    broker_id = node_id_in(path.absolute().parent / layout.META_PROPERTIES)
                    yield from self._replica(path.absolute(), broker_id, target.checkpoints_around(), with_ends)
            elif target.kind is Kind.LOG_DIR:
                for log_dir in target.log_dirs:
                    broker_id = node_id_in(log_dir.path / layout.META_PROPERTIES)
                    for each in filter(self._is_wanted, log_dir.partitions):
                        yield from self._replica(each, broker_id, log_dir.checkpoints(), with_ends)
            else:
                raise BadOption(f"a stream reads log directories and partitions; {path} is neither")

    def _is_wanted(self, path: Path) -> bool:
        parsed = parse_partition_dir(path.name)
        if parsed is None or parsed[2] is not None:  # a mark, such as delete
            return False
        return self._options.wants_partition(Location(str(path), parsed[0], parsed[1]))

    def _replica(
        self, path: Path, broker_id: int | None, checkpoints: Checkpoints, with_ends: bool
    ) -> Iterator[_Replica]:
        key = key_of_directory(path)
        try:
            listing = self._listing(path)
        except FileChanged:  # deleted since the log directory was listed
            return
        if listing is not None and key is not None:
            log_end = self._log_end_of(path, listing) if with_ends else None
            end = 0 if log_end is None else self._end_of(key, log_end, checkpoints)
            first = listing.first_base_offset
            if not self._options.reads_below_log_start:
                first = max(first, checkpoints.offset(layout.LOG_START_OFFSET_CHECKPOINT, key) or 0)
            yield _Replica(path, key, broker_id, listing.topic_id, first, end, log_end)

    def _listing(self, path: Path) -> _Listing | None:
        """The listing of a partition, made anew if its directory has changed; None for one without a log.

        A directory that changed just before it was listed may change again without another time.
        """
        now_ns = time.time_ns()
        mtime_ns = 0
        if not is_remote(path):
            with contextlib.suppress(OSError):  # listing it reports that it is gone
                mtime_ns = os.stat(path).st_mtime_ns
        known = self._listings.get(str(path))
        if known is not None and known.mtime_ns == mtime_ns != 0:
            return known
        partition = _listed(path)
        if all(segment.log is None for segment in partition.segments):
            return None
        first, last = partition.segments[0], partition.segments[-1]
        settled_ns = mtime_ns if now_ns - mtime_ns > _SETTLED_NS else 0
        made = _Listing(settled_ns, _topic_id(partition), first.base_offset, last.base_offset, last.log)
        self._listings[str(path)] = made
        return made

    def _end_of(self, key: TopicPartition, end: int, checkpoints: Checkpoints) -> int:
        """The offset at which reading ends: the high watermark if there is a checkpoint of it, else the log end."""
        watermarks = checkpoints.by_name.get(layout.REPLICATION_OFFSET_CHECKPOINT)
        if watermarks is None or self._options.reads_to_log_end:
            return end
        return min(end, watermarks.get(key, 0))

    def _log_end_of(self, path: Path, listing: _Listing) -> int | None:
        """The log end offset; None where it cannot be read.

        It is read again only if the size of the last log has changed.
        """
        if listing.last_log is None:
            return listing.last_base_offset
        try:
            size_bytes = listing.last_log.stat().st_size
        except OSError:
            return None
        name = listing.last_log.name
        known = self._ends.get(str(path))
        if known is None or known[:2] != (name, size_bytes):
            known = self._ends[str(path)] = name, size_bytes, log_end_of(_listed(path))
        return known[2]


class RefusedStream(DataSourceStreamReader):
    """A stream that cannot be: Spark names the reason only if it is raised after the reader is made."""

    def __init__(self, reason: KafkaLogError) -> None:
        self._reason = reason

    def initialOffset(self, *_: Any) -> Any:  # noqa: N802 (Spark's name)
        """Raises the reason."""
        raise self._reason

    latestOffset = read = initialOffset  # noqa: N815


def _listed(path: Path) -> Partition:
    """The partition, listed again while the cleaner is replacing a segment."""
    partition = read_partition(path)
    for _ in range(_SWAP_TRIES):
        if not any(each.leftover == "swap" for each in partition.leftovers):
            break
        time.sleep(_SWAP_WAIT_S)
        partition = read_partition(path)
    return partition


def _topic_id(partition: Partition) -> str:
    if partition.metadata is None:
        return ""
    try:
        return partition_metadata.read(partition.metadata).topic_id or ""
    except KafkaLogError:
        return ""
