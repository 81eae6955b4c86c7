"""Sequences of group records of __consumer_offsets: those that contradict earlier ones of their group, and sound ones.

Each record is right by itself. The names say what a broker has to see; what it does is tried, not taken from here.
"""

from __future__ import annotations

import struct

from format.internal_topics.decoder import decoder_for
from tests.format.internal_topics.message_encoder import encode

_TIMESTAMP = 1_790_000_000_000
_GROUP = "odd"
#: The record types of the protocols: group, member, target epoch, target, current assignment.
PROTOCOLS = {"consumer": (3, 5, 6, 7, 8), "share": (11, 10, 12, 13, 14), "streams": (17, 19, 20, 21, 22)}
_EMPTY: dict[str, object] = {
    "epoch": 1, "metadataHash": 0, "instanceId": None, "rackId": None, "clientId": "c", "clientHost": "h",
    "subscribedTopicNames": ["orders"], "subscribedTopicRegex": None, "rebalanceTimeoutMs": 1000,
    "serverAssignor": None, "topologyEpoch": 0, "processId": "p", "userEndpoint": None, "assignmentEpoch": 1,
    "memberEpoch": 1, "previousMemberEpoch": 0, "state": 0,
}  # fmt: skip

Content = tuple[bytes | None, bytes | None]


def group_record(kind: int, member: str | None = None, *, gone: bool = False, **data: object) -> Content:
    """A record of a type of the group, or of a member of it; a tombstone if it is gone."""
    decoder = decoder_for("__consumer_offsets")
    names = [_GROUP] if member is None else [_GROUP, member]
    key = struct.pack(">h", kind) + b"".join(struct.pack(">h", len(each)) + each.encode() for each in names)
    if gone:
        return key, None
    value = decoder.record_types[kind].value
    words = {each.name: _EMPTY.get(each.name, []) for each in value.fields if each.tag is None}
    return key, struct.pack(">h", 0) + encode(value, 0, words | data)


def _classic(*, protocol_type: str = "consumer", gone: bool = False) -> Content:
    decoder = decoder_for("__consumer_offsets")
    key = struct.pack(">hh", 2, len(_GROUP)) + _GROUP.encode()
    if gone:
        return key, None
    words = {
        "protocolType": protocol_type, "generation": 1, "protocol": None, "leader": None,
        "currentStateTimestamp": _TIMESTAMP, "members": [],
    }  # fmt: skip
    return key, struct.pack(">h", 3) + encode(decoder.record_types[2].value, 3, words)


def _commit() -> Content:
    key = struct.pack(">hh", 1, len(_GROUP)) + _GROUP.encode() + struct.pack(">h", 6) + b"orders" + bytes(4)
    return key, struct.pack(">hqihq", 3, 7, -1, 0, _TIMESTAMP)


def _cases_of(protocol: str) -> dict[str, tuple[Content, ...]]:
    group_type, member_type, target_epoch_type, target_type, current_type = PROTOCOLS[protocol]
    group, member, current = group_record(group_type), group_record(member_type, "m"), group_record(current_type, "m")
    target_epoch, target = group_record(target_epoch_type), group_record(target_type, "m")
    no_group, no_member = group_record(group_type, gone=True), group_record(member_type, "m", gone=True)
    no_target_epoch, no_target = group_record(target_epoch_type, gone=True), group_record(target_type, "m", gone=True)
    no_current = group_record(current_type, "m", gone=True)
    whole = (member, group, target, target_epoch, current)
    removal = (no_current, no_target, no_member, no_target_epoch, no_group)
    return {
        "whole life": (*whole, *removal),
        "two lives": (*whole, *removal, *whole),
        "life with a second member": (*whole, group_record(member_type, "n"), *removal[:3]),
        "group tombstone alone": (group, no_group),
        "group tombstone with members": (group, member, no_group),
        "group tombstone with targets": (group, target, no_group),
        "group tombstone with targets after that of the target epoch": (group, no_target_epoch, target, no_group),
        "group tombstone with a target epoch": (group, target_epoch, no_group),
        "target epoch -1, then a group tombstone": (
            group, group_record(target_epoch_type, assignmentEpoch=-1), no_group
        ),
        "target epoch tombstone with targets": (group, target, no_target_epoch),
        "member tombstone after an assignment": (group, member, current, no_member),
        "member tombstone without any assignment": (group, member, no_member),
        "member tombstone after epoch -1": (group, member, group_record(current_type, "m", memberEpoch=-1), no_member),
        "member tombstone with a target": (group, member, target, no_current, no_member),
        "assignment of an unknown member": (group, current),
        "member after its assignment": (group, current, member, no_current, no_member, no_group),
        "targets without a group": (target, target_epoch),
        "tombstones of nothing": removal,
        "tombstones of members of another": (group, *(
            group_record(kind, "other", gone=True) for kind in (member_type, target_type, current_type)
        )),
        "after an empty classic group": (_classic(), group),
        "after a classic group without a protocol": (_classic(protocol_type=""), group),
        "after the tombstone of a classic group": (_classic(), _classic(gone=True), *whole),
        "tombstone after an empty classic group": (_classic(), no_member),
        "tombstone after a classic group without a protocol": (_classic(protocol_type=""), no_member, group),
        "a classic group in its place": (*whole, _classic(), no_group),
        "a classic tombstone in its place": (*whole, _classic(gone=True), no_group),
    }  # fmt: skip


def contradictions() -> dict[str, tuple[Content, ...]]:
    """The sequences by name."""
    found = {f"{protocol}: {name}": each for protocol in PROTOCOLS for name, each in _cases_of(protocol).items()}
    for first, second in (("share", "consumer"), ("streams", "consumer"), ("streams", "share"), ("share", "streams")):
        found[f"{second} record in a {first} group"] = (
            group_record(PROTOCOLS[first][0]),
            group_record(PROTOCOLS[second][4], "m"),
        )
        found[f"{second} tombstone in a {first} group"] = (
            group_record(PROTOCOLS[first][0]),
            group_record(PROTOCOLS[second][3], "m", gone=True),
        )
    found["share state after a consumer group"] = (group_record(3), group_record(15))
    found["tombstone of share state after a consumer group"] = (group_record(3), group_record(15, gone=True))
    for protocol, (group_type, *_) in PROTOCOLS.items():
        found[f"{protocol} group after a commit"] = (_commit(), group_record(group_type))
        found[f"{protocol} tombstone after a commit"] = (_commit(), group_record(group_type, gone=True))
    found["topology after a consumer group"] = (group_record(3), group_record(23))
    return found
