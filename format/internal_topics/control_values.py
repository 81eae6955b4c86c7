"""Values of control records in the logs and snapshots of the raft layer, and of transaction markers.

Source: clients record/ControlRecordType, ControlRecordUtils, EndTransactionMarker.
"""

from __future__ import annotations

from typing import Final

from format.errors import TruncatedData
from format.findings import Severity
from format.internal_topics.cursor import Cursor
from format.internal_topics.decoded import INVALID, Decoded
from format.internal_topics.decoder import read_message
from format.internal_topics.schema import Message
from format.internal_topics.schemas.control_records import (
    END_TXN_MARKER,
    KRAFT_VERSION_RECORD,
    LEADER_CHANGE_MESSAGE,
    SNAPSHOT_FOOTER_RECORD,
    SNAPSHOT_HEADER_RECORD,
    VOTERS_RECORD,
)
from format.layout import CONTROL_TYPES

#: The message of each control record type's value.
CONTROL_MESSAGES: Final[dict[str, Message]] = {
    "ABORT": END_TXN_MARKER,
    "COMMIT": END_TXN_MARKER,
    "LEADER_CHANGE": LEADER_CHANGE_MESSAGE,
    "SNAPSHOT_HEADER": SNAPSHOT_HEADER_RECORD,
    "SNAPSHOT_FOOTER": SNAPSHOT_FOOTER_RECORD,
    "KRAFT_VERSION": KRAFT_VERSION_RECORD,
    "KRAFT_VOTERS": VOTERS_RECORD,
}


def decode_control_value(type_number: int, raw: bytes | None, topic: str = "") -> Decoded:
    """A control record's value, by the type number of its key.

    Every value starts with its version. A type or version that is unknown gives ``raw`` and a problem; but a
    transaction marker that is newer than what is known is read as the newest known, as brokers do. Raises
    TruncatedData and CorruptDataError (code "internal-record-invalid") for bytes that contradict the schema.
    """
    if raw is None or len(raw) < 2:
        raise TruncatedData(f"value: {'no' if raw is None else len(raw)} bytes of a control record", code=INVALID)
    cursor = Cursor(raw, "value")
    version = cursor.read_int16()
    type_name = CONTROL_TYPES[type_number] if 0 <= type_number < len(CONTROL_TYPES) else None
    message = CONTROL_MESSAGES.get(type_name or "")
    newest = 0 if message is None else message.versions.highest
    if message is END_TXN_MARKER and version > newest:
        cursor.warn("version-unknown", f"{message.name} in version {version} is read as {newest}", Severity.INFO)
    elif message is None or version not in message.versions:
        unknown = f"control record type {type_number}" if message is None else f"{message.name} in version {version}"
        cursor.warn("version-unknown", f"{unknown} is not known", Severity.INFO)
        name = None if message is None else message.name
        problems = tuple(cursor.problems)
        return Decoded(topic, "control", name, type_name, type_number, version, None, problems, raw)
    if message is not END_TXN_MARKER:
        cursor.position = 0  # the version is the message's own first field
    fields = read_message(cursor, message, min(version, newest))
    return Decoded(topic, "control", message.name, type_name, type_number, version, fields, tuple(cursor.problems))
