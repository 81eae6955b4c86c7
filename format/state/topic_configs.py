"""The configs that a topic has on a node, and which source each comes from.

Kafka looks in this order: the topic itself, the dynamic configs of the broker, those of all brokers, the broker's
server.properties, the default (core DynamicBrokerConfig, storage LogConfig).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from format.errors import KafkaLogError
from format.files.side_file import decode_properties
from format.findings import Finding, finding_of
from format.io.source import FileSource
from format.layout import (
    CONSUMER_OFFSETS_TOPIC,
    SHARE_GROUP_STATE_TOPIC,
    TRANSACTION_STATE_TOPIC,
)
from format.limits import DEFAULT_LIMITS, Limits
from format.state.cluster_image import BROKER_RESOURCE, ClusterImage

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
    CONSUMER_OFFSETS_TOPIC: {"cleanup.policy": "compact"},
    TRANSACTION_STATE_TOPIC: {"cleanup.policy": "compact"},
    SHARE_GROUP_STATE_TOPIC: {"cleanup.policy": "delete", "retention.ms": "-1"},
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
