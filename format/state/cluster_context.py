"""What is known of a cluster beside the logs themselves: the metadata log, options, server.properties.

For verbs that judge logs by the configs of their topics, or by the other replicas of their partitions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from format import layout
from format.errors import InputError, KafkaLogError, UnreadableFile
from format.files import meta_properties, partition_metadata, quorum_state
from format.files.side_file import decode_properties
from format.findings import Finding, finding_of
from format.io.source import FileSource
from format.kafka_uuid import is_reserved
from format.limits import DEFAULT_LIMITS, Limits
from format.location import Location
from format.node.log_dir import Checkpoints, Kind, directory_around
from format.node.partition import Partition
from format.node.target import Target
from format.state.cluster_image import BROKER_RESOURCE, ClusterImage, PartitionState
from format.state.metadata_log import IN_ZOOKEEPER, MetadataSource, MetadataState, ran_with_zookeeper, read_metadata
from format.state.quorum import metadata_source
from format.timestamps import iso_time
from format.wording import counted, listed

#: The default of each topic config, and the names of the broker configs that it falls back to, with their unit in ms.
_CONFIGS: Mapping[str, tuple[str, tuple[tuple[str, int], ...]]] = {
    "cleanup.policy": ("delete", (("log.cleanup.policy", 1),)),
    "retention.ms": (
        "604800000",
        (("log.retention.ms", 1), ("log.retention.minutes", 60_000), ("log.retention.hours", 3_600_000)),
    ),
    "retention.bytes": ("-1", (("log.retention.bytes", 1),)),
    "segment.bytes": ("1073741824", (("log.segment.bytes", 1),)),
    "segment.index.bytes": ("10485760", (("log.index.size.max.bytes", 1),)),
    "delete.retention.ms": ("86400000", (("log.cleaner.delete.retention.ms", 1),)),
    "min.cleanable.dirty.ratio": ("0.5", (("log.cleaner.min.cleanable.ratio", 1),)),
    "min.compaction.lag.ms": ("0", (("log.cleaner.min.compaction.lag.ms", 1),)),
    "max.compaction.lag.ms": (str(2**63 - 1), (("log.cleaner.max.compaction.lag.ms", 1),)),
    "remote.storage.enable": ("false", ()),
    "local.retention.ms": ("-2", (("log.local.retention.ms", 1),)),
    "local.retention.bytes": ("-2", (("log.local.retention.bytes", 1),)),
}
#: Broker configs that the verbs ask for, and their defaults.
_BROKER_DEFAULTS: Mapping[str, str] = {
    "log.cleaner.dedupe.buffer.size": "134217728",
    "log.cleaner.io.buffer.load.factor": "0.9",
    "log.cleaner.threads": "1",
    "producer.id.expiration.ms": "86400000",
}
#: The policies with which brokers make their own topics (GroupCoordinatorService, TransactionCoordinator,
#: ShareCoordinatorService, TopicBasedRemoteLogMetadataManager).
_INTERNAL_TOPICS: Mapping[str, Mapping[str, str]] = {
    layout.CONSUMER_OFFSETS_TOPIC: {"cleanup.policy": "compact"},
    layout.TRANSACTION_STATE_TOPIC: {"cleanup.policy": "compact"},
    layout.SHARE_GROUP_STATE_TOPIC: {"cleanup.policy": "delete", "retention.ms": "-1"},
    "__remote_log_metadata": {"cleanup.policy": "delete", "retention.ms": "-1"},
}
_COMPACTED: Mapping[str, str] = {"cleanup.policy": "compact"}


class SetConfig(msgspec.Struct, frozen=True):
    """A value, and its source.

    ``option``, ``topic``, ``broker``, ``cluster``, ``properties``, ``default``; and of a topic that no metadata log
    describes: ``internal_topic`` for what brokers set for their own topics, ``cleaner_checkpoint`` for the policy of a
    topic that the cleaner has cleaned.
    """

    value: str
    source: str

    @property
    def number(self) -> int:
        """The value as a whole number. Raises ValueError if it is none."""
        return int(self.value)


class TopicConfigs(msgspec.Struct, frozen=True):
    """The configs of one topic on one node: those that are set, by name.

    ``concluded`` is what the source that it begins with shows of a topic that no metadata log describes.
    ``broker_layers`` are the configs of the broker, each with the name of its source; the first that has a key counts.
    """

    own: Mapping[str, str] = msgspec.field(default_factory=dict)
    broker_layers: tuple[tuple[str, Mapping[str, str]], ...] = ()
    options: Mapping[str, str] = msgspec.field(default_factory=dict)
    concluded: tuple[str, Mapping[str, str]] = ("", {})

    def get(self, name: str) -> SetConfig:
        """The value of a topic config."""
        default, broker_names = _CONFIGS[name]
        if name in self.options:
            return SetConfig(self.options[name], "option")
        if name in self.own:
            return SetConfig(self.own[name], "topic")
        if name in self.concluded[1]:
            return SetConfig(self.concluded[1][name], self.concluded[0])
        return self._of_broker(broker_names, default)

    def of_broker(self, name: str) -> SetConfig:
        """The value of a broker config."""
        return self._of_broker(((name, 1),), _BROKER_DEFAULTS[name])

    def _of_broker(self, names: tuple[tuple[str, int], ...], default: str) -> SetConfig:
        for source, layer in self.broker_layers:
            for name, unit in names:
                if name in layer:
                    return SetConfig(_scaled(layer[name], unit), source)
        return SetConfig(default, "default")

    def sources(self, names: Iterable[str]) -> str:
        """Where some topic configs come from, such as ``cleanup.policy=default,retention.ms=topic``."""
        return ",".join(f"{name}={self.get(name).source}" for name in names)

    @property
    def is_compacted(self) -> bool:
        return "compact" in self.policies

    @property
    def policies(self) -> frozenset[str]:
        """The cleanup policies: delete, compact, both or none."""
        return frozenset(each.strip() for each in self.get("cleanup.policy").value.lower().split(",") if each.strip())


def configs_of_topic(
    topic: str | None,
    node_id: int | None,
    image: ClusterImage | None,
    properties: Mapping[str, str],
    options: Mapping[str, str],
    *,
    is_cleaned: bool = False,
) -> TopicConfigs:
    """The configs of a topic on a node. ``image`` None: nothing is known of topics and dynamic configs.

    ``is_cleaned``: the cleaner's checkpoint names the topic, so it was compacted when that was written.
    """
    layers: list[tuple[str, Mapping[str, str]]] = []
    own: Mapping[str, str] = {}
    if image is not None:
        if node_id is not None:
            layers.append(("broker", image.configs.get((BROKER_RESOURCE, str(node_id)), {})))
        layers.append(("cluster", image.configs.get((BROKER_RESOURCE, ""), {})))
        own = image.topic_configs(topic) if topic is not None else {}
    layers.append(("properties", properties))
    concluded: tuple[str, Mapping[str, str]] = ("", {})
    if image is None or topic is None or image.topic_id(topic) is None:
        if topic is not None and topic in _INTERNAL_TOPICS:
            concluded = "internal_topic", _INTERNAL_TOPICS[topic]
        elif is_cleaned:
            concluded = "cleaner_checkpoint", _COMPACTED
    return TopicConfigs(own, tuple(layers), options, concluded)


def _scaled(value: str, unit: int) -> str:
    """A number of units in milliseconds; a negative number means no limit, whatever the unit."""
    try:
        number = int(value)
    except ValueError:
        return value
    return str(number * unit if number >= 0 else -1) if unit > 1 else value


def read_broker_properties(path: Path, limits: Limits = DEFAULT_LIMITS) -> tuple[dict[str, str], list[Finding]]:
    """The configs of a broker's server.properties; a finding where the file cannot be read."""
    try:
        with FileSource(path) as source:
            found = decode_properties(source, limits)
    except KafkaLogError as error:
        return {}, [finding_of(error)]
    return {each.name: each.value for each in found.properties}, []


NO_METADATA = "there is no metadata log here (--metadata PATH)"


class ContextTerms(msgspec.Struct, frozen=True):
    """Where configs come from besides the metadata log below the paths."""

    metadata: Path | None = None
    broker_properties: Path | None = None
    options: Mapping[str, str] = msgspec.field(default_factory=dict)
    limits: Limits = DEFAULT_LIMITS


class Assignment(msgspec.Struct, frozen=True):
    """The state of a partition in the newest metadata at hand; None where it is not known, for the reason ``unknown``.

    ``source`` names the metadata in words: the node that it is from, and the time of its last record.
    ``other_directory`` is the id of the log directory to which the metadata assigns the replica of the node, where that
    is another one than the replica lies in; else empty.
    """

    state: PartitionState | None = None
    source: str = ""
    unknown: str = ""
    other_directory: str = ""

    @property
    def leader(self) -> int | None:
        """The node id of the leader; None if there is none, or if it is not known."""
        return None if self.state is None or self.state.leader < 0 else self.state.leader

    @property
    def replicas(self) -> tuple[int, ...]:
        """The node ids to which the partition is assigned; empty if they are not known."""
        return () if self.state is None else self.state.replicas

    @property
    def complete_replicas(self) -> tuple[int, ...]:
        """The node ids of the replicas that have all committed records: the ISR and the ELR (KIP-966)."""
        if self.state is None:
            return ()
        return tuple(dict.fromkeys((*self.state.isr, *(self.state.eligible_leader_replicas or ()))))

    @property
    def last_members(self) -> str:
        """The ISR and the ELR in words, as ``ISR: none, ELR: node 3``; the ELR only where it has members."""
        if self.state is None:
            return ""
        eligible = self.state.eligible_leader_replicas
        return f"ISR: {named_nodes(self.state.isr)}" + (f", ELR: {named_nodes(eligible)}" if eligible else "")

    def is_leader(self, node_id: int | None) -> bool | None:
        """Whether this node is the leader; None if one of the two is not known."""
        return None if self.state is None or node_id is None else self.state.leader == node_id

    def at_epoch(self, leader_epoch: int | None) -> Assignment:
        """What is known beside a log that has this leader epoch: nothing, if the metadata is older than the log."""
        if self.state is None or leader_epoch is None or leader_epoch <= self.state.leader_epoch:
            return self
        epochs = f"its leader epoch is {self.state.leader_epoch}, that of the log {leader_epoch}"
        return Assignment(unknown=f"{self.source} is older than the log: {epochs}")

    def missing(self, node_ids: Iterable[int | None]) -> tuple[int, ...] | None:
        """The assigned replicas that are not among these nodes; None if the assigned ones are not known."""
        if self.state is None:
            return None
        present = set(node_ids)
        return tuple(each for each in self.state.replicas if each not in present)


def named_nodes(node_ids: Iterable[int]) -> str:
    """Node ids in words, as ``node 1``, ``nodes 1 and 3``, or ``none``."""
    ids = [str(each) for each in node_ids]
    return f"node{'s' if len(ids) > 1 else ''} {listed(ids)}" if ids else "none"


class ClusterContext(msgspec.Struct):
    """The image of the cluster, None without a metadata log, and the configs around it.

    ``source`` is the metadata log that the image is from, ``why_none`` the reason if there is none.
    """

    terms: ContextTerms
    state: MetadataState | None = None
    source: MetadataSource | None = None
    why_none: str = NO_METADATA
    properties: dict[str, str] = msgspec.field(default_factory=dict)
    findings: list[Finding] = msgspec.field(default_factory=list)
    _unknown_topics: dict[str, bool] = msgspec.field(default_factory=dict)  # whether the cleanup.policy shows elsewhere
    _nodes: dict[Path, tuple[int | None, str | None, str | None]] = msgspec.field(default_factory=dict)

    @property
    def image(self) -> ClusterImage | None:
        return None if self.state is None else self.state.image

    def node_id_of(self, partition: Partition) -> int | None:
        """The node that a partition's directory belongs to, from meta.properties."""
        return self._node_at(directory_around(partition.path))[0]

    def node_id_at(self, log_dir: Path) -> int | None:
        """The node that a log directory belongs to, from meta.properties."""
        return self._node_at(log_dir)[0]

    def cluster_id_at(self, log_dir: Path) -> str | None:
        """The cluster that a log directory belongs to, from meta.properties."""
        return self._node_at(log_dir)[1]

    def is_at_another_cluster(self, log_dir: Path) -> bool:
        """Whether a log directory belongs to another cluster than that of the metadata log."""
        cluster_id, known = self._node_at(log_dir)[1], None if self.source is None else self.source.cluster_id
        return cluster_id is not None and known is not None and cluster_id != known

    def assignment_of(self, partition: Partition, topic_id: str | None = None) -> Assignment:
        """What the metadata says of a partition, by its topic id, or by its name where there is no id.

        The id is read from the directory unless the caller has it.
        """
        unknown = self._why_unknown(partition)
        image, key = self.image, partition.key
        if unknown or image is None or key is None:
            return Assignment(unknown=unknown or "this is no directory of a topic's partition")
        topic_id = topic_id or topic_id_in(partition.metadata, self.terms.limits)
        if topic_id is not None:
            state = image.partitions.get((topic_id, key[1]))
        else:
            state = image.partition_of(*key)
        if state is None:
            what = f"topic {key[0]}" if topic_id is None else f"topic {key[0]} with the id {topic_id}"
            return Assignment(unknown=f"partition {key[1]} of the {what} is not in {self.source_words}")
        found = Assignment(state, self.source_words, other_directory=self._other_directory(partition, state))
        return found.at_epoch(latest_epoch_of(partition, self.terms.limits))

    def _other_directory(self, partition: Partition, state: PartitionState) -> str:
        """The directory id that the metadata has for a replica, if it is not that of the directory around it."""
        node_id, _, own = self._node_at(directory_around(partition.path))
        assigned = state.directory_of(node_id)
        if own is None or assigned is None or partition.mark is not None or is_reserved(assigned):
            return ""
        return assigned if assigned != own else ""

    @property
    def source_words(self) -> str:
        """The metadata in words, as ``the metadata of node 2 as of 2026-11-24T08:44:29.937Z``."""
        if self.state is None or self.source is None:
            return ""
        node_id, timestamp = self.source.node_id, self.state.last_timestamp
        of = f"of node {node_id}" if node_id is not None else f"in {self.source.partition.path}"
        return f"the metadata {of}" + ("" if timestamp is None else f" as of {iso_time(timestamp)}")

    def _why_unknown(self, partition: Partition) -> str:
        if self.state is None:
            return self.why_none if self.source is None else f"{self.source.partition.path} cannot be read"
        if self.is_at_another_cluster(directory_around(partition.path)):
            return f"{self.source_words} is that of another cluster"
        return f"{self.source_words} cannot be read as a whole" if self.state.is_damaged else ""

    @property
    def voters(self) -> tuple[int, ...] | None:
        """The node ids of the controllers that vote; None if they are not known.

        They are in the metadata log (KIP-853), or in quorum-state. Where both lack them, they are the controllers that
        have registered.
        """
        if self.image is None or self.source is None:
            return None
        if self.image.voters is not None:
            return tuple(sorted(self.image.voters))
        path = self.source.partition.quorum_state
        try:
            found = None if path is None else quorum_state.read(path, self.terms.limits).current_voters
        except KafkaLogError:
            found = None  # verify reports it
        return tuple(sorted(found or self.image.controllers)) or None

    def _node_at(self, log_dir: Path) -> tuple[int | None, str | None, str | None]:
        """The node id, cluster id and directory id in a meta.properties; None for what it does not have."""
        if log_dir not in self._nodes:
            self._nodes[log_dir] = meta_properties.ids_in(log_dir / layout.META_PROPERTIES, self.terms.limits)
        return self._nodes[log_dir]

    def configs_of(self, partition: Partition, checkpoints: Checkpoints) -> TopicConfigs:
        """The configs of a partition's topic on the partition's node; ``checkpoints`` are those around it."""
        topic, image = partition.topic, self.image
        if self.is_at_another_cluster(directory_around(partition.path)):
            image = None  # its topics of the same names are others
        is_described = image is not None and topic is not None and image.topic_id(topic) is not None
        cleaned = checkpoints.by_name.get(layout.CLEANER_OFFSET_CHECKPOINT, {})
        found = configs_of_topic(
            partition.topic,
            self.node_id_of(partition),
            image,
            self.properties,
            self.terms.options,
            is_cleaned=any(name == topic for name, _ in cleaned),
        )
        if topic is not None and topic != layout.CLUSTER_METADATA_TOPIC and not is_described:
            known = "cleanup.policy"
            self._unknown_topics[topic] = known in found.options or known in found.concluded[1]
        return found

    def compacted_words(self, log_count: int) -> str:
        """The sentence that besides this many logs none here is compacted, as far as that is known; empty if so."""
        unknown = sum(not is_known for is_known in self._unknown_topics.values())
        if not unknown:
            return "" if log_count else "No log here is compacted."
        why = (
            "the configs of topics are not at hand (--metadata PATH)" if self.why_none == NO_METADATA else self.why_none
        )
        what = f"Whether {counted(unknown, 'other topic')} {'is' if unknown == 1 else 'are'} compacted is not known"
        return f"{what if log_count else 'No log here is known to be compacted'}: {why}."

    @property
    def unknown_topic_count(self) -> int:
        """How many of the topics that were asked for are not in the metadata log here."""
        return len(self._unknown_topics)

    def compacted_topics(self) -> dict[str, bool]:
        """By the names of topics, whether they are compacted according to the metadata log, as far as that shows it."""
        if self.image is None or self.state is None:
            return {}
        found = {
            topic: configs_of_topic(topic, None, self.image, self.properties, self.terms.options).is_compacted
            for topic in self.image.names.values()
        }
        return {topic: is_so for topic, is_so in found.items() if is_so or not self.state.is_damaged}

    def is_only_replica(self, partition: Partition) -> bool:
        """Whether a partition has only this one replica according to the metadata."""
        if self.image is None or partition.key is None:
            return False
        state = self.image.partition_of(*partition.key)
        return state is not None and state.replicas == (self.node_id_of(partition),)

    def not_checked(self) -> Iterator[str]:
        """What is not known and replaced by defaults, in words."""
        if self.image is None:
            yield f"the configs of topics: {self.why_none}, so Kafka's defaults are used"
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
        except UnreadableFile as error:
            context.why_none = f"{finding_of(error).location.path} cannot be read"
            return context
        except InputError:
            if ran_with_zookeeper(places, terms.limits):
                context.why_none = IN_ZOOKEEPER
            return context
    context.source = source
    if known is not None and known.path == source.partition.path:
        context.state = known
        return context
    try:
        context.state = read_metadata(source.partition, limits=terms.limits)
    except KafkaLogError as error:
        context.findings.append(finding_of(error, Location(str(source.partition.path))))
        return context
    context.findings += context.state.findings
    return context


def topic_id_in(path: Path | None, limits: Limits) -> str | None:
    """The topic id in a partition.metadata; None where it is missing or cannot be read, which others report."""
    try:
        return None if path is None else partition_metadata.read(path, limits).topic_id
    except KafkaLogError:
        return None


def latest_epoch_of(partition: Partition, limits: Limits) -> int | None:
    """The last epoch in a leader-epoch-checkpoint; None without one, and for one that cannot be read."""
    path = partition.leader_epoch_checkpoint
    try:
        entries = () if path is None else partition.epochs_file(path, limits).entries
    except KafkaLogError:
        return None  # verify reports it
    return entries[-1].leader_epoch if entries else None


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
