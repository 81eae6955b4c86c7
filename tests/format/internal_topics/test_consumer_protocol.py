"""Subscriptions and assignments inside the metadata of classic groups."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from format.internal_topics.decoder import decoder_for
from format.internal_topics.reader import INVALID
from tests.format.internal_topics.known_messages import MESSAGES
from tests.format.internal_topics.message_encoder import encode

TOPICS = {"topics": ["orders"], "userData": None}
OWNED = {"ownedPartitions": [{"topic": "orders", "partitions": [1, 2]}]}
ASSIGNED = {"assignedPartitions": [{"topic": "orders", "partitions": [0]}], "userData": "AQI="}


def decode(protocol_type: str, subscription: bytes, assignment: bytes) -> tuple[dict[str, Any], list[str]]:
    member = {
        "memberId": "m",
        "groupInstanceId": None,
        "clientId": "c",
        "clientHost": "/h",
        "rebalanceTimeout": 1,
        "sessionTimeout": 2,
        "subscription": base64.b64encode(subscription).decode(),
        "assignment": base64.b64encode(assignment).decode(),
    }
    group = {
        "protocolType": protocol_type,
        "generation": 1,
        "protocol": None,
        "leader": None,
        "currentStateTimestamp": -1,
        "members": [member],
    }
    decoder = decoder_for("__consumer_offsets")
    key = decoder.decode_key(bytes.fromhex("0002 0001 67"))
    decoded = decoder.decode_value(key, b"\x00\x03" + encode(MESSAGES["GroupMetadataValue"], 3, group))
    assert decoded.data is not None
    found = decoded.data["members"][0]
    assert list(found) == list(member)
    return found, [each.code for each in decoded.problems]


def subscription(version: int, content: dict[str, Any]) -> bytes:
    return version.to_bytes(2, "big") + encode(MESSAGES["ConsumerProtocolSubscription"], min(version, 3), content)


ASSIGNMENT = b"\x00\x01" + encode(MESSAGES["ConsumerProtocolAssignment"], 1, ASSIGNED)


@pytest.mark.parametrize(
    ("version", "content"),
    [
        (0, TOPICS),
        (1, TOPICS | OWNED),
        (2, TOPICS | OWNED | {"generationId": 5}),
        (3, TOPICS | OWNED | {"generationId": 5, "rackId": "r1"}),
        (4, TOPICS | {"ownedPartitions": [], "generationId": 5, "rackId": None}),
    ],
)
def test_every_version(version: int, content: dict[str, Any]) -> None:
    member, problems = decode("consumer", subscription(version, content), ASSIGNMENT)
    assert member["subscription"] == content
    assert member["assignment"] == ASSIGNED
    assert problems == []


def test_a_newer_version_with_partitions_stays() -> None:
    blob = subscription(4, TOPICS | OWNED | {"generationId": 5, "rackId": None})
    member, problems = decode("consumer", blob, b"\x00\x04" + ASSIGNMENT[2:])
    assert member["subscription"] == base64.b64encode(blob).decode()
    assert isinstance(member["assignment"], str)
    assert problems == ["version-unknown", "version-unknown"]


def test_a_tail_is_ignored() -> None:
    member, problems = decode("consumer", subscription(0, TOPICS) + b"tail", ASSIGNMENT)
    assert member["subscription"] == TOPICS
    assert problems == []


def test_other_protocols_keep_their_bytes() -> None:
    blob = subscription(0, TOPICS)
    member, problems = decode("connect", blob, b"")
    assert member["subscription"] == base64.b64encode(blob).decode()
    assert problems == []


@pytest.mark.parametrize("blob", [b"\x00", b"\xff\xff", b"\x00\x00\x7f\xff\xff\xff", b"\x00\x00\x00\x00\x00\x01"])
def test_what_cannot_be_decoded_stays(blob: bytes) -> None:
    member, problems = decode("consumer", blob, ASSIGNMENT)
    assert member["subscription"] == base64.b64encode(blob).decode()
    assert member["assignment"] == ASSIGNED
    assert problems == [INVALID]


def test_a_member_without_an_assignment_yet() -> None:
    member, problems = decode("consumer", subscription(0, TOPICS), b"")
    assert member["assignment"] == ""
    assert problems == []
