"""Decoding of the blobs that consumers of the classic protocol put into the metadata of their group.

Source: clients consumer/internals/ConsumerProtocol; kafka-dump-log decodes the same blobs.
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

#: The protocol type of consumer groups; other groups ("connect") have blobs in other formats.
CONSUMER_PROTOCOL_TYPE: Final = "consumer"
_BLOBS: Final = (("subscription", CONSUMER_PROTOCOL_SUBSCRIPTION), ("assignment", CONSUMER_PROTOCOL_ASSIGNMENT))


def with_decoded_members(group: dict[str, Any], cursor: Cursor) -> dict[str, Any]:
    """Decode the members' subscriptions and assignments in a GroupMetadataValue, in place, and return it.

    A blob that cannot be decoded remains in base64, and is a problem of the cursor. An empty blob, of a member without
    an assignment, remains too, and is not a problem.
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
    """Decode a version and a message; bytes after it are ignored, and ``outer`` counts the values for the limit.

    A newer version is decoded as the newest known one, as Kafka does, unless the message has partitions, whose layout
    may have changed. Raises UnknownVersion for these.
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
