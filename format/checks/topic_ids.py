"""Checks of the topic ids in the partition.metadata files of a log directory: one id for each topic."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from format import layout
from format.errors import KafkaLogError
from format.files import partition_metadata
from format.findings import Finding, finding
from format.io.session import is_remote, is_there
from format.limits import Limits
from format.location import Location
from format.node.log_dir import LogDir
from format.node.partition import parse_partition_dir


def check_topic_ids(log_dir: LogDir, limits: Limits) -> Iterator[Finding]:
    """Findings for topics with the same id, and for partitions of one topic with different ids.

    If the metadata log is in the same directory, its records decide, and the start of a broker is judged by them.
    Remote stores are not checked: a request for each partition would be too slow.
    """
    if is_remote(log_dir.path) or any(topic == layout.CLUSTER_METADATA_TOPIC for topic, _ in log_dir.topic_partitions):
        return
    id_of_topic: dict[str, str] = {}
    topic_of_id: dict[str, str] = {}
    for directory in log_dir.partitions:
        parsed = parse_partition_dir(directory.name)
        path = directory / layout.PARTITION_METADATA
        if parsed is None or parsed[2] is not None:
            continue
        topic, number, _ = parsed
        topic_id = _topic_id(path, limits)
        if topic_id is None:
            continue
        location = Location(str(path), topic, number)
        first_id = id_of_topic.setdefault(topic, topic_id)
        first_topic = topic_of_id.setdefault(topic_id, topic)
        if first_topic != topic:
            yield finding(
                "topic-id-conflict",
                location,
                f"the topic id {topic_id} is also the topic id of {first_topic}",
                actual=topic_id,
            )
        elif first_id != topic_id:
            yield finding(
                "topic-id-conflict",
                location,
                f"the topic id is {topic_id}, but another partition of the topic has {first_id}",
                expected=first_id,
                actual=topic_id,
            )


def _topic_id(path: Path, limits: Limits) -> str | None:
    """The id in a partition.metadata; None for a file that is missing or cannot be decoded, which others report."""
    try:
        return partition_metadata.read(path, limits).topic_id if is_there(path) else None
    except KafkaLogError:
        return None
