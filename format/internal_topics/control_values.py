"""Decoding of the values of control records: transaction markers, and records of the raft layer.

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
from format.wording import counted_plainly

#: The message of the value of each control record type.
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
    """Decode the value of a control record, by the type number in its key.

    All values start with their version. For an unknown type or version, the result has ``raw`` and a problem; but a
    newer transaction marker is decoded as the newest known version, as brokers do. Raises TruncatedData and
    CorruptDataError (code "internal-record-invalid") for bytes that contradict the schema.
    """
    if raw is None or len(raw) < 2:
        found = "no value" if raw is None else counted_plainly(len(raw), "byte")
        raise TruncatedData(f"value: {found}, too short for a control record", code=INVALID)
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
        cursor.position = 0  # the version is the first field of the message
    fields = read_message(cursor, message, min(version, newest))
    return Decoded(topic, "control", message.name, type_name, type_number, version, fields, tuple(cursor.problems))
