"""metadata: the image of the cluster at the end of a metadata log, or at an earlier offset or time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress

import msgspec

from format.columns import (
    ACL,
    ASSIGNMENT,
    BROKER,
    CONFIG,
    CREDENTIAL,
    FEATURE,
    IMAGE,
    QUOTA,
    TOPIC,
    RowSchema,
)
from format.errors import KafkaLogError
from format.limits import DEFAULT_LIMITS, Limits
from format.node.partition_surroundings import unread_findings
from format.node.target import Target
from format.state.metadata_copies import metadata_source
from format.state.metadata_log import MetadataSource, MetadataState, Until, read_metadata
from format.timestamps import iso_time
from format.verbs.metadata.rows import (
    Row,
    acl_rows,
    assignment_rows,
    broker_rows,
    config_rows,
    credential_rows,
    feature_rows,
    history,
    quota_rows,
    topic_rows,
)
from format.wording import counted, listed


class MetadataTerms(msgspec.Struct, frozen=True):
    """The options: the last record of the state, the topics, and from when on changes are shown."""

    until: Until = msgspec.field(default_factory=Until)
    topics: frozenset[str] | None = None
    since: int | None = None
    limits: Limits = DEFAULT_LIMITS


class MetadataResult(msgspec.Struct):
    """An image, where it was read, and the ids of topics whose directories are marked to be deleted."""

    source: MetadataSource
    others: list[MetadataSource]
    state: MetadataState
    terms: MetadataTerms
    marked_topics: frozenset[str] = frozenset()

    def rows(self) -> Iterator[tuple[RowSchema, Iterator[Row]]]:
        """The rows of the image, kind by kind; with ``topics`` only those about these topics."""
        image, topics = self.state.image, self.terms.topics
        if topics is None:
            yield IMAGE, iter((self._image_row(),))
        yield TOPIC, topic_rows(image, topics, self.marked_topics)
        yield ASSIGNMENT, assignment_rows(image, topics)
        yield CONFIG, config_rows(image, topics)
        if topics is None:
            yield BROKER, broker_rows(image)
            yield FEATURE, feature_rows(image)
        yield ACL, acl_rows(image, topics)
        if topics is None:
            yield QUOTA, quota_rows(image)
            yield CREDENTIAL, credential_rows(image)

    def _image_row(self) -> Row:
        state, image = self.state, self.state.image
        leader, epoch = image.leader or (None, None)
        return (
            str(state.path),
            self.source.cluster_id,
            self.source.node_id,
            None if state.last_offset < 0 else state.last_offset,
            state.last_timestamp,
            None if state.snapshot is None else str(state.snapshot),
            state.start_offset,
            state.record_count,
            leader,
            epoch,
            None if image.voters is None else sorted(image.voters),
            image.next_producer_id,
        )

    def missing_topics(self) -> list[str]:
        """The topics that were asked for and are not in the image."""
        known = set(self.state.image.names.values()) | set(self.state.image.removed_topics.values())
        return sorted((self.terms.topics or frozenset()) - known)

    def not_checked(self) -> Iterator[str]:
        """Notes about what the metadata log of one node cannot show."""
        image = self.state.image
        if self.source.partition.segments and len(image.voters or image.controllers) != 1:
            yield "whether the quorum had committed the last records: its high watermark is not stored on disk"
        if self.others:
            names = ", ".join(str(source.partition.path) for source in self.others)
            yield f"other metadata logs: {names} (kafkalog quorum compares them)"

    def sentence(self) -> str:
        """The image in one sentence.

        It ends with what is odd: partitions without a leader, with replicas out of sync or being reassigned, fenced
        brokers. Only where there is none of these, there are partitions, and the log was read whole, every partition
        "has a leader, and all its replicas are in sync".
        """
        state, image = self.state, self.state.image
        if state.last_offset < 0:
            if state.findings:
                return "The metadata is not known: no record of its log can be read."
            return "The metadata holds no record up to that point."
        when = "" if state.last_timestamp is None else f" ({iso_time(state.last_timestamp)})"
        leaderless = sum(each.leader < 0 for each in image.partitions.values())
        behind = sum(len(each.isr) < len(each.replicas) for each in image.partitions.values())
        moving = sum(bool(each.adding_replicas or each.removing_replicas) for each in image.partitions.values())
        fenced = sum(bool(broker["fenced"]) for broker in image.brokers.values())
        odd = [counted(leaderless, "partition") + " without a leader" if leaderless else "",
               counted(behind, "partition") + " with replicas out of sync" if behind else "",
               counted(moving, "partition") + " being reassigned" if moving else "",
               counted(fenced, "broker") + " fenced" if fenced else ""]  # fmt: skip
        cluster = f" of cluster {self.source.cluster_id}" if self.source.cluster_id else ""
        text = (
            f"The metadata{cluster} at offset {state.last_offset:,}{when}: {counted(len(image.names), 'topic')}, "
            f"{counted(len(image.partitions), 'partition')}, {counted(len(image.brokers), 'broker')}"
        )
        found = [each for each in odd if each]
        if state.is_damaged:
            text += "; records may be missing"
        if found:
            return f"{text}; {listed(found)}."
        if state.is_damaged or not image.partitions:
            return f"{text}."
        return f"{text}; every partition has a leader, and all its replicas are in sync."


def metadata(
    targets: list[Target], terms: MetadataTerms, write_change: Callable[[Row], None] | None = None
) -> MetadataResult:
    """The metadata at some paths; changes go to ``write_change`` while the log is read.

    Raises InputError where there is no metadata log.
    """
    source, others = metadata_source(targets, terms.limits)
    watch = None if write_change is None else history(write_change, terms.topics, terms.since)
    state = read_metadata(source.partition, terms.until, terms.limits, watch)
    state.findings[:0] = unread_findings(source.partition)
    return MetadataResult(source, others, state, terms, _marked_topics(targets, terms.limits))


def _marked_topics(targets: list[Target], limits: Limits) -> frozenset[str]:
    """The ids of the topics with directories that are marked to be deleted."""
    marked = set()
    for target in targets:
        for log_dir in target.log_dirs:
            for path in log_dir.partitions:
                if path.name.endswith("-delete"):
                    with suppress(KafkaLogError):  # verify reports it
                        partition = log_dir.partition(path)
                        if partition.metadata is not None:
                            marked.add(partition.topic_id_file(partition.metadata, limits).topic_id)
    return frozenset(marked)
