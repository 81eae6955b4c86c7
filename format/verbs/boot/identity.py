"""Reads the meta.properties of all log directories of a node, and compares them as a broker does.

Source: metadata MetaPropertiesEnsemble, MetaProperties; core KafkaRaftServer.initializeLogDirs.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from format.errors import KafkaLogError
from format.files.meta_properties import has_metadata_log
from format.files.side_file import INT32_RANGE, decode_integer, decode_properties
from format.io.session import is_there
from format.kafka_uuid import canonical_uuid, is_reserved, is_uuid
from format.layout import META_PROPERTIES, METADATA_PARTITION
from format.limits import Limits
from format.verbs.boot.broker_files import exists, opened, stop_at_pipe
from format.verbs.boot.steps import Action, NotKnown, Step, StopsStart

_ENSEMBLE = "MetaPropertiesEnsemble"
_SERVER = "KafkaRaftServer.initializeLogDirs"
_MOST_META_BYTES = 4096


class DirIdentity(msgspec.Struct, frozen=True):
    """What a broker reads from one meta.properties."""

    version: int
    cluster_id: str | None
    node_id: int | None
    directory_id: str | None


class NodeIdentity(msgspec.Struct):
    """The identity of a node; ``offline`` are the log directories without which the broker goes on, and why.

    ``new`` are those that a broker with ZooKeeper takes for new ones: others have a meta.properties.
    ``may_be_zookeeper``: there is a metadata log, and all files are those of a node that runs, or ran, with ZooKeeper.
    """

    cluster_id: str | None = None
    node_id: int | None = None
    directory_ids: dict[Path, str | None] = msgspec.field(default_factory=dict)
    offline: dict[Path, Step] = msgspec.field(default_factory=dict)
    is_zookeeper: bool = False
    may_be_zookeeper: bool = False
    without_directory_id: list[Path] = msgspec.field(default_factory=list)
    new: list[Path] = msgspec.field(default_factory=list)


class _Unreadable(Exception):
    """Why a meta.properties cannot be read, in the broker's words."""


def read_identity(
    log_dirs: list[Path], metadata_dir: Path, node_id: int | None, version: tuple[int, int], limits: Limits
) -> NodeIdentity:
    """The identity that all directories agree on. Raises StopsStart where they do not, or none can be read.

    Raises NotKnown where this user may not read what the broker's user may.
    """
    missing: list[Path] = []
    failed: dict[Path, str] = {}
    found: dict[Path, DirIdentity] = {}
    for log_dir in log_dirs:
        path = log_dir / META_PROPERTIES
        if is_there(log_dir) and not log_dir.is_dir():
            failed[log_dir] = "it is not a directory"
        elif not exists(path):
            missing.append(log_dir)
        else:
            stop_at_pipe(path, "PropertiesUtils.readPropertiesFile")
            try:
                found[log_dir] = _read(path, limits)
            except _Unreadable as error:
                failed[log_dir] = str(error)
    found = dict(sorted(found.items()))
    identity = NodeIdentity(directory_ids={path: each.directory_id for path, each in found.items()})
    is_old = all(each.version == 0 for each in found.values())
    has_metadata = any(map(has_metadata_log, log_dirs))
    identity.is_zookeeper = version < (4, 0) and is_old and not has_metadata
    identity.may_be_zookeeper = bool(found) and is_old and has_metadata
    # A broker in ZooKeeper mode writes a file that is missing, and goes on without a directory whose file is bad.
    goes_on = identity.is_zookeeper and (found or not failed)
    first, reasons = log_dirs[0] / META_PROPERTIES, "; ".join(failed.values())
    if not found and not goes_on:
        if identity.is_zookeeper and not missing and all(_names_broker(log_dir) for log_dir in failed):
            raise StopsStart(
                "Shutdown broker because none of the specified log dirs from", "LogManager", first, reasons
            )
        reasons = reasons or "there is no meta.properties, as in a directory that is not mounted"
        raise StopsStart("No readable meta.properties files found.", _ENSEMBLE, first, reasons)
    _agree(identity, found, node_id)
    for log_dir, text in failed.items():
        identity.offline[log_dir] = Step(
            Action.REFUSE, log_dir, reason=f"{text}: the directory is taken as failed", kafka_class=_ENSEMBLE,
            broker_message=f"Error while reading meta.properties file {log_dir / META_PROPERTIES}",
        )  # fmt: skip
    if identity.is_zookeeper:
        identity.new = missing if found else []
        _check_cluster_ids(found)
    else:
        _check_metadata_dir(log_dirs, metadata_dir, failed)
        _check_complete(missing, found)
        identity.without_directory_id = [path for path, each in found.items() if each.directory_id is None]
    return identity


def _check_metadata_dir(log_dirs: list[Path], metadata_dir: Path, failed: dict[Path, str]) -> None:
    """Raise StopsStart where the directory of the metadata log failed, or another one has a metadata log."""
    if metadata_dir in failed:
        text = f"Encountered I/O error in metadata log directory {metadata_dir}. Cannot continue."
        raise StopsStart(text, _ENSEMBLE, metadata_dir / META_PROPERTIES, failed[metadata_dir])
    for log_dir in log_dirs:
        path = log_dir / METADATA_PARTITION
        if log_dir != metadata_dir and is_there(path):
            text = (
                f"Found unexpected metadata location in data directory `{path}` (the configured metadata directory is "
                f"{metadata_dir})."
            )
            reason = "the metadata log lies in a directory that is not the metadata log directory"
            raise StopsStart(text, _SERVER, path, reason)


def _check_cluster_ids(found: dict[Path, DirIdentity]) -> None:
    """Raise StopsStart for a cluster id that no ZooKeeper has."""
    for log_dir, each in found.items():
        if each.cluster_id == "":
            path = log_dir / META_PROPERTIES
            raise StopsStart(f"Invalid cluster.id in: {path}", _ENSEMBLE, path, "the cluster id is empty")


def _names_broker(log_dir: Path) -> bool:
    """Whether a meta.properties that cannot be read has the key of brokers with ZooKeeper."""
    path = log_dir / META_PROPERTIES
    if not path.is_file():
        return False
    with opened(path) as source:
        return b"broker.id" in source.read_at(0, min(source.size_bytes, _MOST_META_BYTES))


def _read(path: Path, limits: Limits) -> DirIdentity:
    try:
        with opened(path) as source:
            properties = decode_properties(source, limits)
    except KafkaLogError as error:
        if isinstance(error.__cause__, PermissionError):
            raise NotKnown(error.message, path) from error
        raise _Unreadable(error.message) from error
    values = {each.name: each.value for each in properties.properties}
    text = values.get("version", "0")
    version = decode_integer(text.strip(), *INT32_RANGE)
    if version is None:
        raise _Unreadable(f"Invalid meta.properties version string '{text}'")
    if version not in (0, 1):
        raise _Unreadable(f"Unknown meta.properties version number {version}")
    name = "broker.id" if version == 0 else "node.id"
    node_id = None
    if name in values:
        node_id = decode_integer(values[name], *INT32_RANGE)
        if node_id is None:
            raise _Unreadable(f"Unable to read {name} as a base-10 number.")
    elif version == 1:
        raise _Unreadable("Failed to find node.id")
    cluster_id = values.get("cluster.id")
    directory_id = values.get("directory.id")
    if directory_id is not None:
        if not is_uuid(directory_id):
            raise _Unreadable("Unable to read directory.id as a Uuid")
        directory_id = canonical_uuid(directory_id)
    if version == 1 and cluster_id is None:
        raise _Unreadable("cluster.id was not found.")
    return DirIdentity(version, cluster_id, node_id, directory_id)


def _agree(identity: NodeIdentity, found: dict[Path, DirIdentity], node_id: int | None) -> None:
    """Set the ids, on which the files and a configured node id must agree. Raises StopsStart where they do not."""
    identity.node_id = node_id
    seen: dict[str, Path] = {}
    for log_dir, each in found.items():
        path, directory_id = log_dir / META_PROPERTIES, each.directory_id
        identity.cluster_id = identity.cluster_id or each.cluster_id
        identity.node_id = each.node_id if identity.node_id is None else identity.node_id
        text = reason = ""
        if each.cluster_id not in (None, identity.cluster_id):
            text = f"Invalid cluster.id in: {path}. Expected {identity.cluster_id}, but read {each.cluster_id}"
            reason = "the log directories belong to different clusters"
        elif each.node_id not in (None, identity.node_id):
            text = f"Stored node id {each.node_id} doesn't match previous node id {identity.node_id} in {path}."
            reason = "the log directory belongs to another node"
        elif directory_id is not None and is_reserved(directory_id):
            text = f"directory ID {directory_id} found in {log_dir}"
            reason = "the directory id is one that Kafka reserves"
        elif directory_id is not None and seen.setdefault(directory_id, log_dir) != log_dir:
            earlier = f"It was the ID of {seen[directory_id]}, but also of {log_dir}"
            text = f"Duplicate directory ID Optional[{directory_id}] found. {earlier}"
            reason = "two log directories have the same directory id, as after a copy"
        if text:
            raise StopsStart(text, _ENSEMBLE, path, reason)


def _check_complete(missing: list[Path], found: dict[Path, DirIdentity]) -> None:
    """Raise StopsStart where a directory has no meta.properties, or one without a node id or cluster id."""
    if missing:
        how = "have you run `kafka-storage.sh` to format the directory?"
        text = f"No `meta.properties` found in {missing[0]} ({how})"
        reason = "the directory was never formatted, or is not mounted"
        raise StopsStart(text, _SERVER, missing[0] / META_PROPERTIES, reason)
    for log_dir, each in found.items():
        for value, words in ((each.node_id, "node ID"), (each.cluster_id, "cluster ID")):
            if value is None:
                text, reason = f"Error: {words} not found in {log_dir}", f"meta.properties has no {words}"
                raise StopsStart(text, _SERVER, log_dir / META_PROPERTIES, reason)
