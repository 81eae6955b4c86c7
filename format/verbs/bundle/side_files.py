"""Side files as a bundle without names has them: written anew from what was understood, and nothing else."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from format.errors import KafkaLogError
from format.files import (
    clean_shutdown,
    leader_epoch_checkpoint,
    meta_properties,
    offset_checkpoint,
    offset_index,
    partition_metadata,
    producer_snapshot,
    quorum_state,
    time_index,
    transaction_index,
)
from format.io.source import FileSource
from format.limits import Limits
from format.node.file_location import location_of_file
from format.node.log_dir import Kind, kind_of_file
from format.verbs.bundle.names import Names

_ID = re.compile(r"[\w.-]{0,64}", re.ASCII)
#: Modules of files that have only numbers and ids.
_TEXTS: dict[Kind | None, Any] = {
    Kind.LEADER_EPOCH_CHECKPOINT: leader_epoch_checkpoint,
    Kind.PARTITION_METADATA: partition_metadata,
    Kind.QUORUM_STATE: quorum_state,
    Kind.CLEAN_SHUTDOWN: clean_shutdown,
}
_INDEXES: dict[Kind | None, Any] = {
    Kind.OFFSET_INDEX: offset_index,
    Kind.TIME_INDEX: time_index,
    Kind.TRANSACTION_INDEX: transaction_index,
}


def understood(path: Path, names: Names, limits: Limits) -> bytes | None:
    """The content of a side file without comments, unknown fields and names; None where it cannot be understood."""
    kind = kind_of_file(path.name)
    try:
        if kind is Kind.LOCK:
            return b""
        if kind is Kind.OFFSET_CHECKPOINT:
            return _checkpoint(path, names, limits)
        if kind is Kind.META_PROPERTIES:
            return _properties(path, limits)
        if kind in _TEXTS:
            return _text(path, _TEXTS[kind], limits)
        return _numbers(path, kind, limits)
    except KafkaLogError:
        return None


def _checkpoint(path: Path, names: Names, limits: Limits) -> bytes:
    found = offset_checkpoint.read(path, limits).by_partition()
    lines = sorted(f"{names.topic(topic)} {number} {offset}" for (topic, number), offset in found.items())
    return "\n".join(("0", str(len(lines)), *lines, "")).encode()


def _properties(path: Path, limits: Limits) -> bytes | None:
    """The properties that Kafka has, with their values as they were understood."""
    found = meta_properties.read(path, limits)
    if _ID.fullmatch(found.cluster_id or "") is None:
        return None
    known = {
        "version": str(found.version),
        "cluster.id": found.cluster_id,
        "node.id" if found.version else "broker.id": None if found.node_id is None else str(found.node_id),
        "directory.id": found.directory_id,
    }
    there = {name for name, _ in found.properties}
    return meta_properties.write((name, value) for name, value in known.items() if name in there and value is not None)


def _text(path: Path, module: Any, limits: Limits) -> bytes | None:
    found = module.read(path, limits)
    if isinstance(found, quorum_state.QuorumState) and _ID.fullmatch(found.cluster_id or "") is None:
        return None
    if isinstance(found, clean_shutdown.CleanShutdown) and found.problems:
        return None
    content: bytes = module.write(found)
    return content


def _numbers(path: Path, kind: Kind | None, limits: Limits) -> bytes | None:
    """The whole content of an index or a snapshot, if its numbers are such as a broker writes."""
    base_offset = location_of_file(path).base_offset or 0
    with FileSource(path) as source:
        if kind is Kind.PRODUCER_SNAPSHOT:
            problems = producer_snapshot.read(source, limits).problems
        else:
            problems = _INDEXES[kind].read(source, base_offset, limits).problems
        return None if problems else source.read_at(0, source.size_bytes)
