"""metadata: the image of the cluster at the end of a metadata log, or at an earlier offset or time, as rows.

The values of secret configs are hidden: of passwords and keys, and of all broker configs not known to be harmless. A
broker treats a config that it does not know as sensitive (KafkaConfigSchema); it may be that of a plug-in.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any

import msgspec

from format import columns
from format.errors import KafkaLogError
from format.layout import COORDINATOR_TOPICS
from format.limits import DEFAULT_LIMITS, Limits
from format.node.partition_surroundings import unread_findings
from format.node.target import Target
from format.state.cluster_image import (
    BROKER_RESOURCE,
    METADATA_VERSION,
    TOPIC_RESOURCE,
    ClusterImage,
    PartitionKey,
    PartitionState,
    quota_entity,
)
from format.state.metadata_log import (
    MetadataRecord,
    MetadataSource,
    MetadataState,
    Until,
    Watch,
    reaches_back,
    read_metadata,
)
from format.state.quorum import metadata_source
from format.timestamps import iso_time
from format.wording import counted, listed

HIDDEN = "(hidden)"

_SECRET = re.compile(
    r"password|passwd|secret|jaas|credential|token|api.?key|private|keystore\.(key|certificate)|"
    r"truststore\.certificates|basic\.auth",
    re.IGNORECASE,
)
#: The beginnings of the names of Kafka's own dynamic broker configs.
_KNOWN_BROKER_CONFIGS = re.compile(
    r"(listener\.name\.[^.]+\.)?(log\.|num\.|background\.|compression\.|message\.|min\.insync|unclean\.|leader\.|"
    r"follower\.|replica\.|max\.|ssl\.|sasl\.|principal\.builder|metric\.reporters|transaction\.|producer\.id|"
    r"remote\.|auto\.|listeners|advertised\.listeners|listener\.security|connections?\.|controller\.|group\.|"
    r"share\.|streams\.|offsets\.|quota\.|broker\.|default\.|delete\.|queued\.|request\.|socket\.|cordoned\.)"
)


def is_secret(resource_type: int, name: str) -> bool:
    """Whether the value of a config must not be shown."""
    if _SECRET.search(name):
        return True
    return resource_type == BROKER_RESOURCE and not _KNOWN_BROKER_CONFIGS.match(name)


def shown_value(resource_type: int, name: str, value: str | None) -> str | None:
    """The value of a config, or HIDDEN."""
    return HIDDEN if value is not None and is_secret(resource_type, name) else value


CONFIG_RESOURCES: Mapping[int, str] = {2: "topic", 4: "broker", 8: "broker-logger", 16: "client-metrics", 32: "group"}
ACL_RESOURCES: Mapping[int, str] = {
    0: "UNKNOWN", 1: "ANY", 2: "TOPIC", 3: "GROUP", 4: "CLUSTER", 5: "TRANSACTIONAL_ID", 6: "DELEGATION_TOKEN",
    7: "USER",
}  # fmt: skip
ACL_PATTERNS: Mapping[int, str] = {0: "UNKNOWN", 1: "ANY", 2: "MATCH", 3: "LITERAL", 4: "PREFIXED"}
ACL_OPERATIONS: Mapping[int, str] = {
    0: "UNKNOWN", 1: "ANY", 2: "ALL", 3: "READ", 4: "WRITE", 5: "CREATE", 6: "DELETE", 7: "ALTER", 8: "DESCRIBE",
    9: "CLUSTER_ACTION", 10: "DESCRIBE_CONFIGS", 11: "ALTER_CONFIGS", 12: "IDEMPOTENT_WRITE", 13: "CREATE_TOKENS",
    14: "DESCRIBE_TOKENS", 15: "TWO_PHASE_COMMIT",
}  # fmt: skip
ACL_PERMISSIONS: Mapping[int, str] = {0: "UNKNOWN", 1: "ANY", 2: "DENY", 3: "ALLOW"}
SECURITY_PROTOCOLS: Mapping[int, str] = {0: "PLAINTEXT", 1: "SSL", 2: "SASL_PLAINTEXT", 3: "SASL_SSL"}
SCRAM_MECHANISMS: Mapping[int, str] = {1: "SCRAM-SHA-256", 2: "SCRAM-SHA-512"}
METADATA_VERSIONS: Mapping[int, str] = {
    1: "3.0-IV1", 2: "3.1-IV0", 3: "3.2-IV0", 4: "3.3-IV0", 5: "3.3-IV1", 6: "3.3-IV2", 7: "3.3-IV3", 8: "3.4-IV0",
    9: "3.5-IV0", 10: "3.5-IV1", 11: "3.5-IV2", 12: "3.6-IV0", 13: "3.6-IV1", 14: "3.6-IV2", 15: "3.7-IV0",
    16: "3.7-IV1", 17: "3.7-IV2", 18: "3.7-IV3", 19: "3.7-IV4", 20: "3.8-IV0", 21: "3.9-IV0", 22: "4.0-IV0",
    23: "4.0-IV1", 24: "4.0-IV2", 25: "4.0-IV3", 26: "4.1-IV0", 27: "4.1-IV1", 28: "4.2-IV0", 29: "4.2-IV1",
    30: "4.3-IV0", 31: "4.4-IV0", 32: "4.4-IV1", 33: "4.4-IV2",
}  # fmt: skip


def name_of(names: Mapping[int, str], number: int) -> str:
    """The name of a number, or the number as text where it is newer than this program."""
    return names.get(number, str(number))


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


_ASSIGNED = {name: columns.ASSIGNMENT.names.index(name) for name in columns.ASSIGNMENT.names}
#: Columns that are empty for a partition about which there is nothing to say.
_ODD_COLUMNS = ("adding_replicas", "removing_replicas", "eligible_leader_replicas", "last_known_elr")


def is_usual(row: Row) -> bool:
    """Whether a partition of columns.ASSIGNMENT has a leader, all replicas in sync, and nothing under way."""
    return (
        row[_ASSIGNED["leader"]] is not None
        and len(row[_ASSIGNED["isr"]]) >= len(row[_ASSIGNED["replicas"]])
        and row[_ASSIGNED["leader_recovery_state"]] == "RECOVERED"
        and not any(row[_ASSIGNED[name]] for name in _ODD_COLUMNS)
    )


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


#: Records that are not part of the cluster's state: fillers, and the frame of a snapshot.
_LEFT_OUT = ("NO_OP_RECORD", "SNAPSHOT_HEADER", "SNAPSHOT_FOOTER")

Read = Callable[[ClusterImage], Any]


def history(write: Callable[[Row], None], topics: Topics, since: int | None) -> Watch:
    """What ``read_metadata`` calls before it applies a record, to write ``metadata_change`` rows of topics.

    It notes the state of the subjects, and returns the function that is called afterwards and writes the changes.
    """

    def watch(image: ClusterImage, record: MetadataRecord) -> Callable[[], None] | None:
        if record.record_type in _LEFT_OUT or (since is not None and record.timestamp < since):
            return None
        found = [(subject, read, read(image)) for topic, subject, read in _subjects_of(image, record)
                 if topics is None or topic in topics]  # fmt: skip

        def after() -> None:
            for subject, read, before in found:
                old, new = changed_fields(before, read(image))
                if old is not None or new is not None:  # else the image does not have the subject
                    write((record.offset, record.timestamp, record.record_type, subject, old, new))

        return after

    return watch


def changed_fields(before: Any, after: Any) -> tuple[Any, Any]:
    """The fields in which two states differ; both as a whole where one of them has no fields."""
    if not isinstance(before, dict) or not isinstance(after, dict):
        return before, after
    names = [name for name in {**before, **after} if before.get(name) != after.get(name)]
    return {name: before.get(name) for name in names}, {name: after.get(name) for name in names}


Subject = tuple[str | None, str, Read]


def _subjects_of(image: ClusterImage, record: MetadataRecord) -> Iterator[Subject]:
    """The subject of a record, and what else it changes."""
    subject = subject_of(image, record)
    yield subject
    if record.record_type == "REMOVE_TOPIC_RECORD":
        topic_id = record.data["topicId"]
        yield from (_partition_subject(image, key) for key in sorted(image.partitions) if key[0] == topic_id)
        name = image.names.get(topic_id, "")
        yield from (_config_subject(TOPIC_RESOURCE, name, config) for config in sorted(image.topic_configs(name)))
    elif record.record_type == "CLEAR_ELR_RECORD":
        for key, state in sorted(image.partitions.items()):
            has_any = state.eligible_leader_replicas or state.last_known_elr
            if has_any and record.data["topicName"] in ("", image.names.get(key[0])):
                yield _partition_subject(image, key)


def subject_of(image: ClusterImage, record: MetadataRecord) -> Subject:
    """The topic that a record is about, its subject in words, and how to read the subject's state."""
    data = record.data
    match record.record_type:
        case "TOPIC_RECORD" | "REMOVE_TOPIC_RECORD":
            topic_id = data["topicId"]
            name = data.get("name") or image.names.get(topic_id, topic_id)
            return name, f"topic {name}", lambda now: _topic(now, topic_id)
        case "PARTITION_RECORD" | "PARTITION_CHANGE_RECORD":
            return _partition_subject(image, (data["topicId"], data["partitionId"]))
        case "CLEAR_ELR_RECORD":
            name = data["topicName"]
            return name or None, f"topic {name}" if name else "all topics", lambda now: None
        case "CONFIG_RECORD":
            return _config_subject(data["resourceType"], data["resourceName"], data["name"])
    return (None, *_subject_without_topic(record.record_type, data))


def _partition_subject(image: ClusterImage, key: PartitionKey) -> Subject:
    name = image.names.get(key[0], key[0])
    return name, f"partition {name}-{key[1]}", lambda now: _partition(now, key)


def _config_subject(kind: int, owner: str, name: str) -> Subject:
    return (
        owner if kind == TOPIC_RESOURCE else None,
        f"config {name} of {name_of(CONFIG_RESOURCES, kind)} {owner or '(default)'}",
        lambda now: shown_value(kind, name, now.configs.get((kind, owner), {}).get(name)),
    )


def _subject_without_topic(kind: str, data: dict[str, Any]) -> tuple[str, Read]:
    match kind:
        case "ACCESS_CONTROL_ENTRY_RECORD" | "REMOVE_ACCESS_CONTROL_ENTRY_RECORD":
            acl_id = data["id"]
            return f"acl {acl_id}", lambda now: acl_fields(now.acls[acl_id]) if acl_id in now.acls else None
        case "CLIENT_QUOTA_RECORD":
            entity = quota_entity(data)
            words = ", ".join(f"{of} {name if name is not None else '(default)'}" for of, name in entity)
            return f"quota {data['key']} of {words}", lambda now: now.quotas.get(entity, {}).get(data["key"])
        case "FEATURE_LEVEL_RECORD":
            return f"feature {data['name']}", lambda now: now.features.get(data["name"])
        case "USER_SCRAM_CREDENTIAL_RECORD" | "REMOVE_USER_SCRAM_CREDENTIAL_RECORD":
            scram = data["name"], data["mechanism"]
            mechanism = name_of(SCRAM_MECHANISMS, scram[1])
            return f"credential {mechanism} of {scram[0]}", lambda now: "set" if scram in now.scram_users else None
        case "DELEGATION_TOKEN_RECORD" | "REMOVE_DELEGATION_TOKEN_RECORD":
            return "delegation token", lambda now: _token(now, data["tokenId"])
        case "REGISTER_CONTROLLER_RECORD" | "UNREGISTER_CONTROLLER_RECORD":
            number = data["controllerId"]
            return f"controller {number}", lambda now: dict(now.controllers.get(number, {})) or None
        case "PRODUCER_IDS_RECORD":
            return "producer ids", lambda now: now.next_producer_id
        case "LEADER_CHANGE":
            return "leader of the quorum", _leader
        case "KRAFT_VERSION":
            return "feature kraft.version", lambda now: now.features.get("kraft.version")
        case "KRAFT_VOTERS":
            return "voters", lambda now: None if now.voters is None else sorted(now.voters)
    broker = data.get("brokerId", data.get("id"))
    if broker is not None:
        return f"broker {broker}", lambda now: dict(now.brokers.get(broker, {})) or None
    return kind.lower(), lambda now: None


def _topic(image: ClusterImage, topic_id: str) -> dict[str, Any] | None:
    if topic_id not in image.names:
        return None
    partitions = sum(each == topic_id for each, _ in image.partitions)
    return {"topic": image.names[topic_id], "topic_id": topic_id, "partition_count": partitions}


def _partition(image: ClusterImage, key: tuple[str, int]) -> dict[str, Any] | None:
    state = image.partitions.get(key)
    if state is None:
        return None
    return {name: value for name, value in partition_fields(state).items() if name != "partition_epoch"}


def _token(image: ClusterImage, token: str) -> dict[str, Any] | None:
    found = image.tokens.get(token)
    return None if found is None else {"owner": found["owner"], "expires": found["expirationTimestamp"]}


def _leader(image: ClusterImage) -> dict[str, int] | None:
    return None if image.leader is None else {"leader": image.leader[0], "leader_epoch": image.leader[1]}


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
    holders: tuple[str, ...] = ()  # the others that have the first records that are missing here

    def rows(self) -> Iterator[tuple[columns.RowSchema, Iterator[Row]]]:
        """The rows of the image, kind by kind; with ``topics`` only those about these topics."""
        image, topics = self.state.image, self.terms.topics
        if topics is None:
            yield columns.IMAGE, iter((self._image_row(),))
        yield columns.TOPIC, topic_rows(image, topics, self.marked_topics)
        yield columns.ASSIGNMENT, assignment_rows(image, topics)
        yield columns.CONFIG, config_rows(image, topics)
        if topics is None:
            yield columns.BROKER, broker_rows(image)
            yield columns.FEATURE, feature_rows(image)
        yield columns.ACL, acl_rows(image, topics)
        if topics is None:
            yield columns.QUOTA, quota_rows(image)
            yield columns.CREDENTIAL, credential_rows(image)

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
            f"The metadata{cluster} at offset {state.last_offset}{when}: {counted(len(image.names), 'topic')}, "
            f"{counted(len(image.partitions), 'partition')}, {counted(len(image.brokers), 'broker')}"
        )
        found = [each for each in odd if each]
        if state.is_damaged:
            text += "; records may be missing"
            text += f" (the first of them: see {listed(self.holders)})" if self.holders else ""
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
    source, others = metadata_source(targets, terms.limits, terms.until, is_history=write_change is not None)
    watch = None if write_change is None else history(write_change, terms.topics, terms.since)
    state = read_metadata(source.partition, terms.until, terms.limits, watch)
    state.findings[:0] = unread_findings(source.partition)
    return MetadataResult(
        source, others, state, terms, _marked_topics(targets, terms.limits), _holders(others, state, terms.limits)
    )


def _holders(others: list[MetadataSource], state: MetadataState, limits: Limits) -> tuple[str, ...]:
    """The other copies that have the first records that are lost by damage in an image."""
    lost = min((each.lost_offsets for each in state.findings if each.lost_offsets is not None), default=None)
    if lost is None:
        return ()
    until, found = Until(lost[1]), []
    for each in others:
        if each.unread is None and reaches_back(each.partition, until, limits):
            other = read_metadata(each.partition, until, limits)
            if other.last_offset == lost[1] and not other.is_damaged:
                found.append(str(each.partition.path))
    return tuple(found)


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
