"""What the diagnoses are made of: the results of other verbs, as objects."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec

from format.columns import SEGMENT_RETENTION
from format.errors import KafkaLogError
from format.files.meta_properties import ids_in, is_of_zookeeper
from format.findings import FINDING_CODES, Finding, Severity
from format.io.session import is_there, path_of
from format.layout import CLEAN_SHUTDOWN, INTERNAL_TOPIC_PREFIX
from format.limits import DEFAULT_LIMITS, Limits
from format.node.log_dir import LogDir, directory_around
from format.node.partition import parse_partition_dir
from format.node.target import Target
from format.state.cluster_context import ClusterContext, ContextTerms, named_nodes, read_context
from format.state.cluster_image import ClusterImage
from format.timestamps import FUTURE_MARGIN_MS
from format.verbs.boot.broker_files import note_read_only
from format.verbs.compaction.compaction import DAMAGED_BATCH, LogCompaction
from format.verbs.diff.diff import PartitionResult
from format.verbs.ls.partition_listing import PartitionListing
from format.verbs.retention import ConfiguredLog, Retention, RetentionTerms
from format.verbs.txns.txns import OpenTransaction
from format.verbs.verify.intact_replicas import ReplicasAtHand
from format.verbs.verify.verify import log_dirs_of_nodes
from format.wording import counted

#: By the code of a finding about what was not read: the noun that is counted, and what is said of it.
_UNREAD = {
    "file-changed": ("file", " that changed meanwhile"),
    "file-unreadable": ("path", " not read: kafkalog verify names the reason"),
    "limit-exceeded": ("place", " over a limit of this program"),
    "log-head-remote": ("log", " whose head is in remote storage"),
    "nothing-to-read": ("directory", " without a log"),
    "unsupported": ("place", " that this program does not support"),
    **dict.fromkeys(
        ("magic-unknown", "codec-unknown", "version-unknown", "attributes-unknown"),
        ("place", " in a format that this program does not know"),
    ),
}
#: The findings that a copy of a running broker's files has, beside those that cannot be read.
_OF_OTHER_MOMENTS = frozenset(
    ("checkpoint-mismatch", "index-orphan", "log-head-missing", "offset-index-mismatch",
     "offset-not-increasing", "offset-out-of-segment", "replica-missing", "replica-stray", "segment-missing",
     "segment-overlap", "snapshot-mismatch", "tail-torn", "time-index-mismatch", "transaction-index-mismatch")
)  # fmt: skip
#: The most findings that are kept; a log with more is in the first ones already.
_MOST_FINDINGS = 100_000


class Evidence(msgspec.Struct, dict=True):
    """The results of one look at some targets.

    ``partitions`` are those that ls lists. ``findings`` are those from warnings up. ``group_offsets`` and ``groups``
    have rows of columns.GROUP_OFFSET and GROUP by name, ``held`` those of columns.SEGMENT_RETENTION of segments that a
    future timestamp keeps. ``is_bundled``: the targets are in bundles. ``bootstrap_server`` is written into commands.
    """

    targets: Sequence[Target]
    now_ms: int
    limits: Limits = DEFAULT_LIMITS
    context: ClusterContext = msgspec.field(default_factory=lambda: ClusterContext(ContextTerms()))
    reads_records: bool = False
    is_bundled: bool = False
    partitions: list[PartitionListing] = msgspec.field(default_factory=list)
    findings: list[Finding] = msgspec.field(default_factory=list)
    differences: list[PartitionResult] = msgspec.field(default_factory=list)
    opened: list[OpenTransaction] = msgspec.field(default_factory=list)
    groups: list[dict[str, Any]] = msgspec.field(default_factory=list)
    group_offsets: list[dict[str, Any]] = msgspec.field(default_factory=list)
    held: list[dict[str, Any]] = msgspec.field(default_factory=list)
    cleaners: list[LogCompaction] = msgspec.field(default_factory=list)
    unread: dict[str, int] = msgspec.field(default_factory=dict)  # findings about what was not read, by code
    bootstrap_server: str = "localhost:9092"
    _taken: set[tuple[str, str, int | None, int | None]] = msgspec.field(default_factory=set)
    _topics_of: dict[str, dict[str, str]] = msgspec.field(default_factory=dict)

    def take(self, found: Finding) -> None:
        """Add a finding, unless it is a mere fact, another finding is its cause, or another verb found it, too."""
        key = found.code, found.location.path, found.location.position, found.location.offset
        if key in self._taken or (found.severity < Severity.WARNING and not found.is_incomplete):
            return
        if len(self._taken) < _MOST_FINDINGS:
            self._taken.add(key)
        if found.is_incomplete and not is_unreadable_here(found):
            self.unread[found.code] = self.unread.get(found.code, 0) + 1
        if found.severity >= Severity.WARNING and found.caused_by is None and len(self.findings) < _MOST_FINDINGS:
            self.findings.append(found)

    @property
    def is_all_read(self) -> bool:
        """Whether nothing at the targets was left unread; what is in remote storage is not there."""
        return not self.unread.keys() - {"log-head-remote", "nothing-to-read"}

    @cached_property
    def log_dirs(self) -> list[LogDir]:
        """The log directories at the targets."""
        return [log_dir for target in self.targets for log_dir in target.log_dirs]

    @cached_property
    def _directories(self) -> set[str]:
        """The log directories at the targets, and those of the partitions."""
        return {str(each.path) for each in self.log_dirs} | {str(directory_of(each)) for each in self.partitions}

    def log_dir_of(self, path: str) -> str:
        """The log directory that a path is or lies in; without one, the directory that the path is in."""
        place = path
        while place and place not in self._directories:
            place = place.rpartition("/")[0]
        return place or path.rpartition("/")[0] or "."

    def stopped_cleanly(self, path: str) -> bool:
        """Whether the broker of a path stopped cleanly, by the mark in its log directory."""
        return is_there(path_of(self.log_dir_of(path)) / CLEAN_SHUTDOWN)

    def log_dirs_of_node(self, path: str) -> list[str]:
        """The log directories at the targets that the node of a path uses: boot and verify judge all together."""
        own = self.log_dir_of(path)
        return self._of_nodes.get(own, [own])

    @cached_property
    def _of_nodes(self) -> dict[str, list[str]]:
        return log_dirs_of_nodes(self.log_dirs, self.limits)

    def _nodes(self, paths: Iterable[str]) -> dict[str, tuple[int | None, str | None]]:
        """By log directory, its node id and cluster id; without one, that of another directory with the node id."""
        found = {path: (self.context.node_id_at(Path(path)), self.context.cluster_id_at(Path(path))) for path in paths}
        known = {node_id: cluster_id for node_id, cluster_id in found.values() if cluster_id is not None}
        return {path: (node_id, cluster_id or known.get(node_id)) for path, (node_id, cluster_id) in found.items()}

    @cached_property
    def foreign(self) -> dict[str, str]:
        """The log directories of another cluster than that of the metadata log, or else of the first one, in words."""
        source = self.context.source
        expected, whose = None if source is None else source.cluster_id, "the metadata log at the paths"
        found: dict[str, str] = {}
        for path in dict.fromkeys(str(each.path) for each in self.log_dirs):
            cluster_id = self.context.cluster_id_at(path_of(path))
            if expected is None:
                expected, whose = cluster_id, path
            elif cluster_id not in (None, expected):
                found[path] = whose
        return found

    @cached_property
    def misnamed(self) -> dict[str, tuple[int, int]]:
        """The log directories with a wrong node.id, each with that and the id of the only node that registered it.

        A broker registers the ids of its log directories whenever it starts.
        """
        image, found = self.context.image, {}
        registered = (
            {} if image is None else {key: set(each.get("logDirs") or ()) for key, each in image.brokers.items()}
        )
        for log_dir in self.log_dirs:
            node_id, _, directory_id = ids_in(log_dir.meta_properties, self.limits)
            owners = [owner for owner, ids in registered.items() if directory_id in ids]
            if node_id is None or len(owners) != 1 or owners[0] == node_id:
                continue
            if not self.context.is_at_another_cluster(log_dir.path):
                found[str(log_dir.path)] = node_id, owners[0]
        return found

    @cached_property
    def node_names(self) -> dict[str, str]:
        """By log directory, its node in words; empty for a single node, whose name says nothing."""
        paths = self._directories
        nodes = self._nodes(sorted(paths))
        ids = {path: node_id for path, (node_id, _) in nodes.items()}
        if len(set(nodes.values())) < 2 and (len(paths) < 2 or None not in ids.values()):
            return {}
        counts = Counter(ids.values())
        return {
            path: path if each is None else f"node {each}" + (f" ({path})" if counts[each] > 1 else "")
            for path, each in ids.items()
        }

    def node_of(self, path: str) -> str:
        """The node, in words, of a path in or of a log directory; empty for a single node."""
        return self.node_names.get(self.log_dir_of(path), "")

    def subject_of(self, path: str, topic: str | None, partition: int | None) -> str:
        """A partition with its mark, and its node where there are several; else the name of the file or directory."""
        name = path.rpartition("/")[2] if topic is None else f"{topic}-{partition}"
        parsed = None if topic is None else parse_partition_dir(path.rpartition("/")[2])
        name += "" if parsed is None or parsed[2] is None else f" (-{parsed[2]})"
        node = self.node_of(path)
        return node if node == path else f"{name} on {node}" if node and name != node else name

    @cached_property
    def is_live(self) -> bool:
        """Whether a broker may run on one of the log directories: two of its files are never of one moment."""
        return any(each.broker_lock.may_be_held for each in self.log_dirs)

    @cached_property
    def future_ms(self) -> int:
        """A timestamp past this is in the future. A running broker goes on to write after the look has begun."""
        now_ms = max(self.now_ms, time.time_ns() // 1_000_000) if self.is_live else self.now_ms
        return now_ms + FUTURE_MARGIN_MS

    @cached_property
    def newest_timestamp(self) -> int:
        """The newest time of a record that is not in the future; -1 for none."""
        times = [each.max_timestamp for each in self.partitions if each.max_timestamp is not None]
        return max((each for each in times if each <= self.now_ms), default=-1)

    def others(self, path: str) -> Iterator[PartitionListing]:
        """The other replicas of the partition at a path, those of one topic id."""
        own = self._by_path.get(path)
        if own is None or own.topic is None or own.mark is not None:
            return
        for each in self._by_key.get((own.topic, own.partition), ()):
            if each is not own and (None in (each.topic_id, own.topic_id) or each.topic_id == own.topic_id):
                yield each

    def was_deleted(self, each: PartitionListing) -> bool:
        """Whether the topic of a stray directory was deleted: the node's own metadata, which is older, may have it yet.

        The newest metadata no longer tells if its last snapshot was made since.
        """
        image = self.context.image
        if image is None or each.topic_id is None or each.topic_id in image.names:
            return False
        return each.topic_id in image.removed_topics or each.topic_id in self._own_topics(self.log_dir_of(each.path))

    def _own_topics(self, log_dir: str) -> dict[str, str]:
        """The topics by id in the metadata log of the node that a log directory is of."""
        if log_dir not in self._topics_of:
            own = [Target(path_of(each)) for each in self._of_nodes.get(log_dir, [log_dir])]
            image = None
            with suppress(KafkaLogError):  # verify reports it
                image = read_context(own, ContextTerms(limits=self.limits)).image
            self._topics_of[log_dir] = {} if image is None else image.names
        return self._topics_of[log_dir]

    def twins(self, path: str) -> list[str]:
        """The other directories of the partition at a path that are of a node with the same id."""
        own = self.context.node_id_at(Path(self.log_dir_of(path)))
        return [each.path for each in self.others(path) if self.context.node_id_at(directory_of(each)) == own]

    def is_only_replica(self, path: str, topic: str | None, partition: int | None) -> bool:
        """Whether the metadata has no other replica of the partition at a path, and that on the node of the path."""
        image = self.context.image
        state = None if image is None or topic is None or partition is None else image.partition_of(topic, partition)
        return state is not None and list(state.replicas) == [self.context.node_id_at(Path(self.log_dir_of(path)))]

    def longest_replicas(self) -> Iterator[PartitionListing]:
        """The longest replica of each partition, without internal topics and what is marked."""
        for (topic, _), replicas in self._by_key.items():
            if topic is not None and not topic.startswith(INTERNAL_TOPIC_PREFIX):
                yield max(replicas, key=lambda each: each.log_end_offset or 0)

    def replicas_of(self, topic: str, partition: int) -> Sequence[PartitionListing]:
        """The replicas of a partition."""
        return self._by_key.get((topic, partition), ())

    def log_start(self, topic: str, partition: int) -> int | None:
        """The least log start offset of the replicas of a partition."""
        own = self.replicas_of(topic, partition)
        return min((each.log_start_offset for each in own if each.log_start_offset is not None), default=None)

    def log_end(self, path: str) -> int | None:
        """The log end offset of the replica at a path."""
        own = self._by_path.get(path)
        return None if own is None else own.log_end_offset

    def has_segments(self, path: str) -> bool:
        """Whether the replica at a path has a segment, as far as known."""
        own = self._by_path.get(path)
        return own is None or own.segment_count != 0

    @cached_property
    def _by_path(self) -> dict[str, PartitionListing]:
        return {each.path: each for each in self.partitions}

    @cached_property
    def _by_key(self) -> dict[tuple[str | None, int | None], list[PartitionListing]]:
        found: dict[tuple[str | None, int | None], list[PartitionListing]] = {}
        for each in self.partitions:
            if each.mark is None:
                found.setdefault((each.topic, each.partition), []).append(each)
        return found

    def is_cleaned(self, path: str) -> bool:
        """Whether a path is a compacted log of several segments in which no damage stops the cleaner."""
        return any(str(each.partition.path) == path and each.blocked_by != DAMAGED_BATCH for each in self.cleaners)

    @cached_property
    def node_ids(self) -> set[int]:
        """The nodes that are here."""
        paths = {each.path for each in self.log_dirs} | {directory_of(each) for each in self.partitions}
        return {node_id for node_id in map(self.context.node_id_at, paths) if node_id is not None}

    def not_known(self) -> Iterator[str]:
        """What is relevant and was not at hand, in few words."""
        image = self.context.image
        if self.foreign:
            yield "groups and transactions: the paths are of several clusters"
        if image is None:
            yield f"leaders, other replicas and configs: {self.context.why_none}"
            own = [each.path for each in self.log_dirs if each.meta_properties is not None and each.partitions]
            if own and not self.is_live and not self.is_bundled and not is_of_zookeeper(own, self.limits):
                yield "whether a start that finds none keeps the partitions: kafkalog boot"
        else:
            assigned = {each for state in image.partitions.values() for each in state.replicas}
            missing = sorted((assigned | set(image.brokers)) - self.node_ids)
            if missing:
                yield f"what {named_nodes(missing)} {'has' if len(missing) == 1 else 'have'}, not here"
            for node_id, count in sorted(Counter(self._in_other_log_dirs(image)).items()):
                yield f"{counted(count, 'partition')} that node {node_id} should have, in no log directory here"
        yield from note_read_only(each.path for each in self.log_dirs)
        if self.is_live:
            yield "what the running broker has not written yet"
        elif self._may_be_of_other_moments():
            yield "whether the files are of one moment: copying them from a running broker leaves some of this, too"
        for code, count in sorted(self.unread.items()):
            noun, rest = _UNREAD.get(code, ("finding", f" of the kind {code}"))
            yield f"{counted(count, noun)}{rest}"

    def _in_other_log_dirs(self, image: ClusterImage) -> Iterator[int]:
        """The node of each replica that the metadata has, and that is in no log directory of its node here.

        A broker with several log directories has it in another one, or has lost it; one that runs may be making it.
        """
        if self.is_live:
            return
        ids = {self.context.node_id_at(each.path) for each in self.log_dirs}
        nodes = {node_id for node_id in ids if node_id is not None}
        missing = [each.location for each in self.findings if each.code in ("replica-missing", "file-unreadable")]
        reported = {(each.topic, each.partition) for each in missing}
        for (topic_id, number), state in image.partitions.items():
            key = image.names.get(topic_id), number
            here = {self.context.node_id_at(directory_of(each)) for each in self._by_key.get(key, ())}
            if key not in reported:
                yield from nodes.intersection(state.replicas) - here

    def _may_be_of_other_moments(self) -> bool:
        """Whether findings of a log directory may come from copying it while its broker ran."""
        unclean = {str(each.path) for each in self.log_dirs if each.clean_shutdown is None}
        return not self.is_bundled and any(
            each.code in _OF_OTHER_MOMENTS and self.log_dir_of(each.location.path) in unclean for each in self.findings
        )

    def looked_at(self) -> str:
        """What was looked at, in words, such as ``3 nodes, 25 partitions (29 replicas): headers, …``."""
        dirs = self.log_dirs
        nodes = set(self._nodes(str(each.path) for each in dirs).values())
        is_known = nodes and None not in (node_id for node_id, _ in nodes)
        places = counted(len(nodes), "node") if is_known else counted(len(dirs), "log directory")
        keys = {(each.topic, each.partition) for each in self.partitions}
        count = sum(each.mark is None for each in self.partitions)  # a copy under way or to be deleted is no replica
        replicas = f" ({count:,} replicas)" if count > len(keys) else ""
        read = "records and all files beside them" if self.reads_records else "headers, checkpoints, metadata"
        more = "" if self.reads_records else " (--deep reads records and indexes)"
        if self.is_bundled:
            read, more = "headers, and the findings from when the bundle was made", ""
        where = f"{places}, " if dirs else ""
        return f"{where}{counted(len(keys), 'partition')}{replicas}: {read}{more}"

    @cached_property
    def replicas_at_hand(self) -> ReplicasAtHand:
        """The replicas at the targets, read where one of them is damaged."""
        return ReplicasAtHand(self.targets, self.limits, self.context)

    @cached_property
    def damaged(self) -> set[str]:
        """The partition directories with findings that are errors."""
        return {place_of(each) for each in self.findings if each.severity >= Severity.ERROR}


def is_unreadable_here(found: Finding) -> bool:
    """Whether a path on this machine cannot be read, and not because it is a link or in a bundle."""
    code = "file-unreadable"
    return found.code == code and found.next_step == FINDING_CODES[code].next_step


def directory_of(listing: PartitionListing) -> Path:
    """The log directory of a partition."""
    return directory_around(path_of(listing.path))


def place_of(found: Finding) -> str:
    """The partition directory that a finding is about, or the path of any other file."""
    path = found.location.path
    if parse_partition_dir(path.rpartition("/")[2]) is not None:
        return path
    folder = path.rpartition("/")[0]
    if found.location.topic is None:  # of no partition: a directory such as broker-1 may hold the log directory
        return path
    return folder if parse_partition_dir(folder.rpartition("/")[2]) is not None else path


def held_by_future(evidence: Evidence, logs: Iterable[ConfiguredLog]) -> Iterator[dict[str, Any]]:
    """Rows of columns.SEGMENT_RETENTION of some logs that have timestamps in the future."""
    late = {each.path for each in evidence.partitions if (each.max_timestamp or 0) > evidence.future_ms}
    own = [each for each in logs if str(each.partition.path) in late]
    if not own:
        return
    judged = Retention(evidence.context, RetentionTerms(evidence.now_ms, evidence.limits))
    rows = (item for item in judged.of_logs(own) if not isinstance(item, Finding))
    yield from rows_by_name(SEGMENT_RETENTION.names, rows)


def rows_by_name(names: Sequence[str], rows: Iterable[tuple[Any, ...]]) -> Iterator[dict[str, Any]]:
    """Rows as objects."""
    return (dict(zip(names, row, strict=True)) for row in rows)
