"""The image of a cluster as rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from format.layout import COORDINATOR_TOPICS
from format.state.cluster_image import METADATA_VERSION, TOPIC_RESOURCE, ClusterImage, PartitionState
from format.verbs.metadata.names import (
    ACL_OPERATIONS,
    ACL_PATTERNS,
    ACL_PERMISSIONS,
    ACL_RESOURCES,
    CONFIG_RESOURCES,
    METADATA_VERSIONS,
    SCRAM_MECHANISMS,
    SECURITY_PROTOCOLS,
    name_of,
)
from format.verbs.metadata.secret_configs import is_secret, shown_value

Row = tuple[Any, ...]
Topics = frozenset[str] | None  # None: all


def _is_wanted(name: str, topics: Topics) -> bool:
    return topics is None or name in topics


def shown_configs(image: ClusterImage, topic: str) -> dict[str, str | None]:
    """The configs that are set for a topic, secrets hidden."""
    configs = image.topic_configs(topic)
    return {name: shown_value(TOPIC_RESOURCE, name, value) for name, value in sorted(configs.items())}


def topic_rows(image: ClusterImage, topics: Topics, marked: frozenset[str] = frozenset()) -> Iterator[Row]:
    """A row for each topic by name; then removed topics whose directories (``marked``, topic ids) are still there."""
    counts = Counter(topic_id for topic_id, _ in image.partitions)
    factors: dict[str, int] = {}
    for (topic_id, _), state in image.partitions.items():
        factors[topic_id] = max(factors.get(topic_id, 0), len(state.replicas))
    for topic_id, name in sorted(image.names.items(), key=lambda item: item[1]):
        if _is_wanted(name, topics):
            yield (
                name, topic_id, counts[topic_id], factors.get(topic_id, 0), name in COORDINATOR_TOPICS, False,
                shown_configs(image, name),
            )  # fmt: skip
    for topic_id, name in sorted(image.removed_topics.items(), key=lambda item: item[1]):
        if topic_id in marked and _is_wanted(name, topics):
            yield name, topic_id, None, None, name in COORDINATOR_TOPICS, True, {}


def assignment_rows(image: ClusterImage, topics: Topics) -> Iterator[Row]:
    """A row for each partition, by topic and number."""
    named = [(image.names.get(topic_id, ""), number, topic_id) for topic_id, number in image.partitions]
    for name, number, topic_id in sorted(named):
        if _is_wanted(name, topics):
            state = image.partitions[topic_id, number]
            yield (name, topic_id, number, *partition_fields(state).values())


def partition_fields(state: PartitionState) -> dict[str, Any]:
    """The fields of a partition's state by column name."""
    return {
        "leader": None if state.leader < 0 else state.leader,
        "leader_epoch": state.leader_epoch,
        "partition_epoch": state.partition_epoch,
        "replicas": list(state.replicas),
        "isr": list(state.isr),
        "adding_replicas": list(state.adding_replicas),
        "removing_replicas": list(state.removing_replicas),
        "eligible_leader_replicas": _list_or_none(state.eligible_leader_replicas),
        "last_known_elr": _list_or_none(state.last_known_elr),
        "leader_recovery_state": "RECOVERING" if state.is_recovering else "RECOVERED",
        "directories": list(state.directories) or None,
    }


def _list_or_none(replicas: tuple[int, ...] | None) -> list[int] | None:
    return None if replicas is None else list(replicas)


def broker_rows(image: ClusterImage) -> Iterator[Row]:
    """A row for each broker and each controller, by node id."""
    leader = None if image.leader is None else image.leader[0]
    voters = set(image.voters or ())
    for number, broker in sorted(image.brokers.items()):
        yield (
            number, "broker", broker.get("rack"), broker["fenced"], broker.get("inControlledShutdown", False),
            broker["brokerEpoch"], broker["incarnationId"], None, None, _endpoints(broker["endPoints"]),
            broker.get("logDirs"), broker.get("cordonedLogDirs"),
        )  # fmt: skip
    numbers = set(image.controllers) | voters | ({leader} if leader is not None else set())
    for number in sorted(numbers):
        controller = image.controllers.get(number, {})
        voter = (image.voters or {}).get(number)
        endpoints = controller.get("endPoints") or (voter or {}).get("endpoints") or []
        yield (
            number, "controller", None, None, None, None, controller.get("incarnationId"),
            None if image.voters is None else number in voters, number == leader, _endpoints(endpoints),
            None if voter is None else [voter["voterDirectoryId"]], None,
        )  # fmt: skip


def _endpoints(endpoints: list[dict[str, Any]]) -> list[str]:
    shown = []
    for each in endpoints:
        protocol = name_of(SECURITY_PROTOCOLS, each["securityProtocol"]) if "securityProtocol" in each else None
        host = f"[{each['host']}]" if ":" in each["host"] else each["host"]
        suffix = f" ({protocol})" if protocol not in (None, each["name"]) else ""
        shown.append(f"{each['name']}://{host}:{each['port']}{suffix}")
    return shown


def config_rows(image: ClusterImage, topics: Topics) -> Iterator[Row]:
    """A row for each config that is set, secrets hidden; a resource name of null is the default for all brokers."""
    for (resource_type, resource), configs in sorted(image.configs.items()):
        if topics is not None and (resource_type != TOPIC_RESOURCE or resource not in topics):
            continue
        for name, value in sorted(configs.items()):
            yield (
                name_of(CONFIG_RESOURCES, resource_type), resource or None, name,
                shown_value(resource_type, name, value), is_secret(resource_type, name),
            )  # fmt: skip


def feature_rows(image: ClusterImage) -> Iterator[Row]:
    """A row for each finalized feature."""
    for name, level in sorted(image.features.items()):
        yield name, level, METADATA_VERSIONS.get(level) if name == METADATA_VERSION else None


def acl_rows(image: ClusterImage, topics: Topics) -> Iterator[Row]:
    """A row for each access control entry, by resource and principal."""
    rows = [(*acl_fields(acl).values(), acl_id) for acl_id, acl in image.acls.items()]
    for row in sorted(rows):
        if topics is None or (row[0] == "TOPIC" and _covers(row[1], row[2], topics)):
            yield row


def _covers(name: str, pattern: str, topics: frozenset[str]) -> bool:
    return name == "*" or name in topics or (pattern == "PREFIXED" and any(each.startswith(name) for each in topics))


def acl_fields(acl: dict[str, Any]) -> dict[str, str]:
    """The fields of an access control entry by column name, without its id."""
    return {
        "resource_type": name_of(ACL_RESOURCES, acl["resourceType"]),
        "resource_name": acl["resourceName"],
        "pattern_type": name_of(ACL_PATTERNS, acl["patternType"]),
        "principal": acl["principal"],
        "host": acl["host"],
        "operation": name_of(ACL_OPERATIONS, acl["operation"]),
        "permission_type": name_of(ACL_PERMISSIONS, acl["permissionType"]),
    }


def quota_rows(image: ClusterImage) -> Iterator[Row]:
    """A row for each quota, by entity and key."""
    rows = [(dict(entity), key, value) for entity, quotas in image.quotas.items() for key, value in quotas.items()]
    return iter(sorted(rows, key=lambda row: (str(row[0]), row[1])))


def credential_rows(image: ClusterImage) -> Iterator[Row]:
    """A row for each SCRAM credential and delegation token, without secrets."""
    for (user, mechanism), iterations in sorted(image.scram_users.items()):
        yield "scram", user, name_of(SCRAM_MECHANISMS, mechanism), iterations, None
    for token in sorted(image.tokens.values(), key=lambda each: (each["owner"], each["expirationTimestamp"])):
        yield "delegation_token", token["owner"], None, None, token["expirationTimestamp"]
