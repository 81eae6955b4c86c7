"""The blobs that consumers of the classic protocol put into their group's metadata, decoded where they can be.

Source: clients consumer/internals/ConsumerProtocol; kafka-dump-log shows them in the same places.
"""

from __future__ import annotations

import base64
from typing import Any, Final

from format.errors import CorruptDataError, LimitExceeded, UnknownVersion
from format.findings import Severity
from format.internal_topics.cursor import Cursor
from format.internal_topics.decoded import INVALID
from format.internal_topics.reader import reader_for
from format.internal_topics.schema import Message
from format.internal_topics.schemas.consumer_protocol import (
    CONSUMER_PROTOCOL_ASSIGNMENT,
    CONSUMER_PROTOCOL_SUBSCRIPTION,
)

#: The protocol type of a group of consumers; other groups ("connect") have blobs of their own.
CONSUMER_PROTOCOL_TYPE: Final = "consumer"
_BLOBS: Final = (("subscription", CONSUMER_PROTOCOL_SUBSCRIPTION), ("assignment", CONSUMER_PROTOCOL_ASSIGNMENT))


def with_decoded_members(group: dict[str, Any], cursor: Cursor) -> dict[str, Any]:
    """A GroupMetadataValue whose members' subscriptions and assignments are decoded, in place.

    A blob that cannot be decoded stays as it is, in base64, and becomes a problem of the cursor; an empty one, of a
    member without an assignment yet, stays without a word.
    """
    if group["protocolType"] != CONSUMER_PROTOCOL_TYPE:
        return group
    for number, member in enumerate(group["members"]):
        for name, message in _BLOBS:
            blob = base64.b64decode(member[name])
            if not blob:
                continue
            try:
                member[name] = _decode_blob(blob, message, cursor)
            except (CorruptDataError, LimitExceeded, UnknownVersion) as error:
                where = f"members[{number}].{name}"
                if isinstance(error, UnknownVersion):
                    cursor.warn(error.code, f"{where} stays undecoded: {error.message}", Severity.INFO)
                    continue
                cursor.warn(INVALID, f"{where} stays undecoded: {error.message}", Severity.WARNING)
    return group


def _decode_blob(blob: bytes, message: Message, outer: Cursor) -> dict[str, Any]:
    """A version and the message, whose tail is ignored; counts against the limit of the value around it.

    A newer version is read as the newest known as long as it holds no partitions, whose layout may have changed:
    that is how far Kafka's generated classes go. Raises UnknownVersion past that.
    """
    cursor = Cursor(blob, outer.part, outer.values_left)
    version = cursor.read_int16()
    if version < 0:
        raise CorruptDataError(f"version {version} at byte 0")
    found = reader_for(message, min(version, message.versions.highest))(cursor)
    outer.values_left = cursor.values_left
    if version > message.versions.highest and (found.get("ownedPartitions") or found.get("assignedPartitions")):
        raise UnknownVersion(f"{message.name} in version {version} is not known")
    for problem in cursor.problems:
        outer.warn(problem.code, f"in a member's {message.name}: {problem.message}", problem.severity)
    return found
