"""What is known of a cluster and its configs beside the logs themselves: the metadata log, options, server.properties.

For verbs that judge logs by the configs of their topics.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from pathlib import Path

from format import layout
from format.errors import InputError, KafkaLogError
from format.files import meta_properties
from format.findings import Finding, finding_of
from format.limits import DEFAULT_LIMITS, Limits
from format.location import Location
from format.node.checkpoints import Checkpoints
from format.node.log_dir import Kind, directory_around
from format.node.partition import Partition
from format.node.target import Target
from format.state.cluster_image import ClusterImage
from format.state.metadata_log import MetadataState, Until, read_metadata
from format.state.metadata_source import metadata_source
from format.state.topic_configs import TopicConfigs, configs_of_topic, read_broker_properties
from format.value_class import state_class, value_class
from format.wording import counted


@value_class
class ContextTerms:
    """Where configs come from besides the metadata log below the paths; ``until`` is for an earlier state of it."""

    metadata: Path | None = None
    broker_properties: Path | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    until: Until = field(default_factory=Until)
    limits: Limits = DEFAULT_LIMITS


@state_class
class ClusterContext:
    """The image of the cluster, None without a metadata log, and the configs around it."""

    terms: ContextTerms
    state: MetadataState | None = None
    properties: dict[str, str] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    cluster_id: str | None = None
    _unknown_topics: set[str] = field(default_factory=set)
    _nodes: dict[Path, tuple[int | None, str | None]] = field(default_factory=dict)

    @property
    def image(self) -> ClusterImage | None:
        return None if self.state is None else self.state.image

    def node_id_of(self, partition: Partition) -> int | None:
        """The node that a partition's directory belongs to, from meta.properties."""
        return self._node_at(directory_around(partition.path))[0]

    def node_id_at(self, log_dir: Path) -> int | None:
        """The node that a log directory belongs to, from meta.properties."""
        return self._node_at(log_dir)[0]

    def is_at_another_cluster(self, log_dir: Path) -> bool:
        """Whether a log directory belongs to another cluster than that of the metadata log."""
        cluster_id = self._node_at(log_dir)[1]
        return cluster_id is not None and self.cluster_id is not None and cluster_id != self.cluster_id

    def _node_at(self, log_dir: Path) -> tuple[int | None, str | None]:
        if log_dir not in self._nodes:
            try:
                found = meta_properties.read(log_dir / layout.META_PROPERTIES, self.terms.limits)
                self._nodes[log_dir] = found.node_id, found.cluster_id
            except KafkaLogError:
                self._nodes[log_dir] = None, None
        return self._nodes[log_dir]

    def configs_of(self, partition: Partition, checkpoints: Checkpoints) -> TopicConfigs:
        """The configs of a partition's topic on the partition's node; ``checkpoints`` are those around it."""
        topic, image = partition.topic, self.image
        is_described = image is not None and topic is not None and image.topic_id(topic) is not None
        if topic is not None and topic != layout.CLUSTER_METADATA_TOPIC and not is_described:
            self._unknown_topics.add(topic)
        cleaned = checkpoints.by_name.get(layout.CLEANER_OFFSET_CHECKPOINT, {})
        return configs_of_topic(
            partition.topic,
            self.node_id_of(partition),
            self.image,
            self.properties,
            self.terms.options,
            is_cleaned=any(name == topic for name, _ in cleaned),
        )

    def none_compacted(self) -> str:
        """The sentence that no log here is compacted, as far as that is known."""
        if not self._unknown_topics:
            return "No log here is compacted."
        return "No log here is known to be compacted: the configs of topics are not at hand (--metadata PATH)."

    @property
    def unknown_topic_count(self) -> int:
        """How many of the topics that were asked for are not in the metadata log here."""
        return len(self._unknown_topics)

    def compacted_topics(self) -> frozenset[str]:
        """The names of the topics that are compacted according to the metadata log."""
        if self.image is None:
            return frozenset()
        found = {
            topic: configs_of_topic(topic, None, self.image, self.properties, self.terms.options)
            for topic in self.image.names.values()
        }
        return frozenset(topic for topic, configs in found.items() if configs.is_compacted)

    def is_only_replica(self, partition: Partition) -> bool:
        """Whether a partition has only this one replica according to the metadata."""
        if self.image is None or partition.key is None:
            return False
        state = self.image.partition_of(*partition.key)
        return state is not None and state.replicas == (self.node_id_of(partition),)

    def not_checked(self) -> Iterator[str]:
        """What is not known and replaced by defaults, in words."""
        if self.image is None:
            yield "the configs of topics: there is no metadata log here (--metadata PATH), so Kafka's defaults are used"
        elif self._unknown_topics:
            topics = f"{counted(len(self._unknown_topics), 'topic')}, such as {min(self._unknown_topics)}"
            yield f"the configs of {topics}: the metadata log here does not have them, so Kafka's defaults are used"
        if self.terms.broker_properties is None:
            yield "the broker's server.properties (--broker-properties FILE): Kafka's defaults are used instead"


def read_context(targets: Sequence[Target], terms: ContextTerms, known: MetadataState | None = None) -> ClusterContext:
    """The context of some paths. Raises InputError for a metadata path that was given and has none.

    ``known`` is the state at the end of a metadata log that the caller has read.
    """
    context = ClusterContext(terms)
    if terms.broker_properties is not None:
        context.properties, context.findings = read_broker_properties(terms.broker_properties, terms.limits)
    if terms.metadata is not None:
        source, _ = metadata_source([Target(terms.metadata)], terms.limits)
    else:
        places = _log_dir_targets(targets)
        if not places:
            return context
        try:
            source, _ = metadata_source(places, terms.limits)
        except InputError:
            return context
    context.cluster_id = source.cluster_id
    if known is not None and known.path == source.partition.path:
        context.state = known
        return context
    try:
        context.state = read_metadata(source.partition, terms.until, terms.limits)
    except KafkaLogError as error:
        context.findings.append(finding_of(error, Location(str(source.partition.path))))
        return context
    context.findings += context.state.findings
    return context


def _log_dir_targets(targets: Iterable[Target]) -> list[Target]:
    """The log directories among the targets, and those around partitions, each once; partitions without one."""
    found: list[Target] = []
    around: dict[Path, Target] = {}
    for target in targets:
        if target.kind is Kind.PARTITION:
            directory = directory_around(target.path)
            known = directory in around
            log_dir = around.setdefault(directory, Target(directory))
            if not _is_log_dir(log_dir):
                found.append(target)
            elif not known:
                found.append(log_dir)
        elif target.kind is Kind.LOG_DIR:
            found.append(target)
    return found


def _is_log_dir(target: Target) -> bool:
    try:
        return target.kind is Kind.LOG_DIR
    except InputError:
        return False
