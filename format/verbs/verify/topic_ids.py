"""The topic ids of directories of several nodes, held against the newest metadata at hand, or against each other.

A node that was away while a topic was deleted and made again keeps the old directory: intact, but of another topic.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path

import msgspec

from format.errors import KafkaLogError
from format.files import meta_properties
from format.files.meta_properties import MetaProperties
from format.findings import AS_THE_TABLE_SAYS, Certainty, Finding, Judgement, Severity, finding
from format.io.session import is_remote, is_there
from format.layout import CLUSTER_METADATA_TOPIC, META_PROPERTIES, PARTITION_METADATA
from format.limits import Limits
from format.location import Location
from format.node.log_dir import Kind, directory_around
from format.node.partition import parse_partition_dir
from format.node.target import Target
from format.state.cluster_context import ClusterContext, ContextTerms, read_context, topic_id_in

_AT_START = "a broker that starts here renames the directory to -stray, and does not serve it"
_KEEP = "Keep the directory if records of the deleted topic are needed; else nothing: a broker renames it by itself."


class _Directory(msgspec.Struct, frozen=True):
    """A live partition directory that has a topic id, and the meta.properties around it."""

    path: Path
    topic: str
    number: int
    topic_id: str
    owner: MetaProperties

    @property
    def log_dir(self) -> Path:
        return directory_around(self.path)

    def finding(
        self, code: str, message: str, expected: str | None, judgement: Judgement = AS_THE_TABLE_SAYS
    ) -> Finding:
        where = Location(str(self.path), self.topic, self.number)
        return finding(code, where, message, expected=expected, actual=self.topic_id, judgement=judgement)


def check_topic_ids_of_nodes(targets: Iterable[Target], limits: Limits, told: Collection[str] = ()) -> list[Finding]:
    """Findings for directories of another topic id than the newest metadata, or than another node, has for the name.

    ``told`` are the partition directories whose topic ids were judged by the metadata beside them. Copies of one log
    directory are of different times, and not judged; nor are remote stores, where each file is a request.
    """
    targets = [each for each in targets if each.kind in (Kind.LOG_DIR, Kind.PARTITION) and not is_remote(each.path)]
    found = list(_without_copies(_directories(targets, limits)))
    log_dirs = {log_dir.path for target in targets for log_dir in target.log_dirs} | {each.log_dir for each in found}
    if len(log_dirs) < 2 or not found:
        return []
    metadata = _Metadata(targets, limits)
    first: dict[tuple[str | None, str], _Directory] = {}
    findings = []
    for each in found:
        other = first.setdefault((each.owner.cluster_id, each.topic), each)
        if str(each.path) in told or metadata.confirms(each):
            continue
        against = metadata.against(each)
        if against is not None:
            findings.append(against)
        elif other.topic_id != each.topic_id:
            findings.append(_by_other(each, other))
    return findings


def _directories(targets: Iterable[Target], limits: Limits) -> Iterator[_Directory]:
    owners: dict[Path, MetaProperties | None] = {}
    for target in targets:
        paths = (target.path,) if target.kind is Kind.PARTITION else (p for d in target.log_dirs for p in d.partitions)
        for path in paths:
            parsed = parse_partition_dir(path.name)
            if parsed is None or parsed[2] is not None or parsed[0] == CLUSTER_METADATA_TOPIC:
                continue
            log_dir, file = directory_around(path), path / PARTITION_METADATA
            if log_dir not in owners:
                owners[log_dir] = _owner(log_dir, limits)
            owner, topic_id = owners[log_dir], topic_id_in(file if is_there(file) else None, limits)
            if topic_id is not None and owner is not None and owner.node_id is not None:
                yield _Directory(path, parsed[0], parsed[1], topic_id, owner)


def _owner(log_dir: Path, limits: Limits) -> MetaProperties | None:
    try:
        return meta_properties.read(log_dir / META_PROPERTIES, limits)
    except KafkaLogError:
        return None  # of which cluster and node it is, is not known


def _without_copies(directories: Iterable[_Directory]) -> Iterator[_Directory]:
    """The directories, without those of a node of which the same partition is in two: one of them is a copy."""
    found = list(directories)
    logs: dict[tuple[str | None, int | None, str, int], set[Path]] = {}
    for each in found:
        key = each.owner.cluster_id, each.owner.node_id, each.topic, each.number
        logs.setdefault(key, set()).add(each.log_dir)
    copied = {log_dir for log_dirs in logs.values() if len(log_dirs) > 1 for log_dir in log_dirs}
    return (each for each in found if each.log_dir not in copied)


class _Metadata:
    """The newest metadata at hand, and what it says of topic ids; nothing, where it is damaged or there is none."""

    def __init__(self, targets: Sequence[Target], limits: Limits) -> None:
        self._limits = limits
        self._context = _context(targets, limits)
        state, image = self._context.state, self._context.image
        self._image = None if state is None or image is None or state.is_damaged or image.problem else image
        self._ids = {} if self._image is None else {name: topic_id for topic_id, name in self._image.names.items()}
        self._older: dict[Path, Collection[tuple[str, str]]] = {}  # by log directory, the ids and names there

    def confirms(self, each: _Directory) -> bool:
        """Whether a directory has the topic id of its name."""
        return self._ids.get(each.topic) == each.topic_id and not self._is_elsewhere(each)

    def against(self, each: _Directory) -> Finding | None:
        """What the metadata says against a topic id; None if nothing, or if it may be older than the directory.

        A simulated start judges the directories beside the metadata.
        """
        if self._image is None or self._is_elsewhere(each) or self._is_beside(each):
            return None
        known = self._ids.get(each.topic)
        has = f"has the id {known}" if known else "does not exist any more"
        words = f"the topic id is {each.topic_id}, but by {self._context.source_words} the topic {each.topic} {has}"
        if each.topic_id in self._image.removed_topics or self._was_known(each):
            again = "it was deleted and made again" if known else "it was deleted"
            judgement = Judgement(next_step=_KEEP)
            return each.finding("replica-stray", f"{words}: {again}; {_AT_START}", known, judgement)
        if known is None:
            return None  # a topic that is newer than the metadata
        return each.finding("topic-id-conflict", f"{words}; which of the two is newer is not known here", known)

    def _is_elsewhere(self, each: _Directory) -> bool:
        return self._context.is_at_another_cluster(each.log_dir)

    def _is_beside(self, each: _Directory) -> bool:
        return self._context.source is not None and self._context.source.partition.path.parent == each.log_dir

    def _was_known(self, each: _Directory) -> bool:
        """Whether the older metadata beside a directory has its topic id, so that the topic was deleted since."""
        if each.log_dir not in self._older:
            image = _context([Target(each.log_dir)], self._limits).image
            self._older[each.log_dir] = frozenset() if image is None else frozenset(image.names.items())
        return (each.topic_id, each.topic) in self._older[each.log_dir]


def _context(targets: Sequence[Target], limits: Limits) -> ClusterContext:
    terms = ContextTerms(limits=limits)
    try:
        return read_context(targets, terms)
    except KafkaLogError:
        return ClusterContext(terms)  # verifying the paths reports it


def _by_other(each: _Directory, other: _Directory) -> Finding:
    """That two directories differ, of which neither is known to be right."""
    words = f"the topic id is {each.topic_id}, in {other.path} it is {other.topic_id}: one of the two is of a deleted "
    words += f"topic, and no metadata at hand says which; in that one {_AT_START}"
    certainty = Certainty.PROVEN if each.owner.cluster_id else Certainty.POSSIBLE
    severity = None if each.owner.cluster_id else Severity.WARNING  # they may be of two clusters
    return each.finding("topic-id-conflict", words, other.topic_id, Judgement(severity=severity, certainty=certainty))
