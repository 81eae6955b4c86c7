"""Parses the names of directories in a log directory as a broker does, which stops at a name that it cannot parse.

Source: storage LocalLog.parseTopicPartitionName.
"""

from __future__ import annotations

import re
from pathlib import Path

import msgspec

from format.files.side_file import INT32_RANGE, decode_integer
from format.layout import CLUSTER_METADATA_TOPIC, REMOTE_INDEX_CACHE
from format.verbs.boot.steps import StopsStart

_MARKED = re.compile(r"(\S+)-(\S+)\.(\S+)-(delete|future|stray)")
_MARKS = ("-delete", "-future", "-stray")


class LogName(msgspec.Struct, frozen=True):
    """Topic, partition and mark (delete, future or stray) of a directory that a broker loads as a log."""

    topic: str
    partition: int
    mark: str | None


def log_name(path: Path) -> LogName | None:
    """The parsed name of a directory; None for one that a broker ignores. Raises StopsStart for any other name."""
    name = path.name
    if name == REMOTE_INDEX_CACHE:
        return None
    mark = next((each for each in _MARKS if name.endswith(each)), None)
    stem = name
    if mark is not None:
        if _MARKED.fullmatch(name) is None:
            raise _unknown_name(path)
        stem = name[: name.rindex(".")]
    topic, dash, number = stem.rpartition("-")
    partition = decode_integer(number, *INT32_RANGE)
    if not dash or not topic or partition is None:
        raise _unknown_name(path)
    return None if topic == CLUSTER_METADATA_TOPIC else LogName(topic, partition, mark and mark[1:])


def _unknown_name(path: Path) -> StopsStart:
    return StopsStart(
        f"'{path.name}' is not in the form of topic-partition or topic-partition.uniqueId-delete (if marked for "
        "deletion).",
        "LocalLog.parseTopicPartitionName",
        path=path,
        reason="in a log directory, a broker stops at each directory whose name is not that of a partition",
    )
