"""The quorum-state of a KRaft node: its leader, its epoch and its vote (raft FileQuorumStateStore, KIP-595, KIP-853).

It is one line of JSON. Version 0 also has the voters; version 1 has the voted directory id instead, since the voters
are in the log. A node that cannot read it does not start.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec

from format.errors import InvalidCheckpoint, UnknownVersion
from format.files.side_file import (
    INT32_RANGE,
    INT64_RANGE,
    JsonObject,
    PathOrSource,
    Problem,
    decode_json_object,
    lines,
    opened,
    shown,
)
from format.kafka_uuid import canonical_uuid
from format.limits import DEFAULT_LIMITS, Limits
from format.location import Location

KNOWN_VERSIONS = (0, 1)
_FIELDS = {
    0: ("clusterId", "leaderId", "leaderEpoch", "votedId", "appliedOffset", "currentVoters", "data_version"),
    1: ("leaderId", "leaderEpoch", "votedId", "votedDirectoryId", "data_version"),
}
_MOST_ODD_FIELDS = 20


class QuorumState(msgspec.Struct, frozen=True):
    """The election state: -1 is no leader or no vote; fields that the version does not have are None.

    ``voted_directory_id`` is in version 1; ``cluster_id``, ``applied_offset`` and ``current_voters`` (node ids) are in
    version 0.
    """

    path: str
    data_version: int
    leader_id: int
    leader_epoch: int
    voted_id: int
    voted_directory_id: str | None
    cluster_id: str | None
    applied_offset: int | None
    current_voters: tuple[int, ...] | None
    problems: tuple[Problem, ...]


def read(path_or_source: PathOrSource, limits: Limits = DEFAULT_LIMITS) -> QuorumState:
    """Read the state. Raises UnreadableFile, LimitExceeded, UnknownVersion, InvalidCheckpoint if a node would stop."""
    with opened(path_or_source) as source:
        found = lines(source, limits)
        line = next(found, None)
        if line is None:
            raise InvalidCheckpoint("expected a line of JSON, found an empty file", Location(source.path))
        problems = []
        after = next(found, None)
        if after is not None:
            message = f"line {after.number}: expected the end of the file, found {shown(after.content)}"
            length = source.size_bytes - after.position
            problems.append(Problem(after.position, length, message, InvalidCheckpoint.code))
        return _decode(decode_json_object(source, line), problems)


def _decode(state: JsonObject, problems_after: list[Problem]) -> QuorumState:
    version = state.integer("data_version", *INT32_RANGE)
    length = len(state.line.content)
    if version not in KNOWN_VERSIONS:
        raise UnknownVersion(
            f"line 1: data_version {version}, only {KNOWN_VERSIONS[0]} and {KNOWN_VERSIONS[1]} are known",
            Location(state.source.path, position=0, length=length),
        )
    odd = [f"{shown(name)} occurs more than once; the last one counts" for name in state.repeated]
    odd += [
        f"{shown(name)} is not a field of version {version}" for name in state.fields if name not in _FIELDS[version]
    ]
    _check_fields_of_the_other_version(state, version)
    problems = [Problem(0, length, f"line 1: {text}", InvalidCheckpoint.code) for text in odd[:_MOST_ODD_FIELDS]]
    return QuorumState(
        path=state.source.path,
        data_version=version,
        leader_id=state.integer("leaderId", -1, INT32_RANGE[1]),
        leader_epoch=state.integer("leaderEpoch", -1, INT32_RANGE[1]),
        voted_id=state.integer("votedId", -1, INT32_RANGE[1]),
        voted_directory_id=_directory_id(state) if version > 0 else None,
        cluster_id=state.text("clusterId") if version == 0 else None,
        applied_offset=state.integer("appliedOffset", *INT64_RANGE) if version == 0 else None,
        current_voters=_voters(state) if version == 0 else None,
        problems=(*problems, *problems_after),
    )


def _directory_id(state: JsonObject) -> str:
    try:
        return canonical_uuid(state.text("votedDirectoryId"))
    except ValueError as error:
        raise state.invalid("votedDirectoryId", "16 bytes in URL-safe base64") from error


def _voters(state: JsonObject) -> tuple[int, ...]:
    voters = state.objects("currentVoters")
    if voters is None:
        raise state.invalid("currentVoters", "a list of objects")
    return tuple(voter.integer("voterId", 0, INT32_RANGE[1]) for voter in voters)


def _check_fields_of_the_other_version(state: JsonObject, version: int) -> None:
    """Raises InvalidCheckpoint for values that a node cannot read, though it does not use them."""
    if version == 0 and "votedDirectoryId" in state.fields:
        _directory_id(state)
    if version > 0:
        if "clusterId" in state.fields:
            state.text("clusterId")
        if "appliedOffset" in state.fields:
            state.integer("appliedOffset", *INT64_RANGE)
        if "currentVoters" in state.fields and state.objects("currentVoters"):
            raise state.invalid("currentVoters", f"empty in version {version}")


def write(entries: QuorumState) -> bytes:
    """Encode the state as FileQuorumStateStore does: compact JSON, fields in the order of the schema, no newline."""
    voters = None if entries.current_voters is None else [{"voterId": voter} for voter in entries.current_voters]
    state: dict[str, Any] = {
        "clusterId": entries.cluster_id,
        "leaderId": entries.leader_id,
        "leaderEpoch": entries.leader_epoch,
        "votedId": entries.voted_id,
        "votedDirectoryId": entries.voted_directory_id,
        "appliedOffset": entries.applied_offset,
        "currentVoters": voters,
        "data_version": entries.data_version,
    }
    fields = {name: state[name] for name in _FIELDS[entries.data_version]}
    return json.dumps(fields, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "surrogatepass")
