"""The result of a decoder: a decoded key, value or control record, and its problems."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from format.findings import Finding, Judgement, Severity, finding
from format.location import Location

#: The code of a finding for bytes that contradict the schema, and of the errors that the decoders raise.
INVALID: Final = "internal-record-invalid"


class Problem(msgspec.Struct, frozen=True):
    """An invalid or unknown part that did not stop the decoding; ``position`` is the byte in the key or value."""

    code: str  # of format.findings.FINDING_CODES
    severity: Severity
    message: str
    part: str  # "key" or "value"
    position: int

    def finding(self, location: Location) -> Finding:
        """The finding that reports the problem for the record at ``location``."""
        return finding(self.code, location, f"{self.part}: {self.message}", judgement=Judgement(severity=self.severity))


class Decoded(msgspec.Struct, frozen=True):
    """A key, value or control record.

    ``name`` is Kafka's name of the message ("OffsetCommitKey"), ``record_type`` the name of the record type
    ("OFFSET_COMMIT"); both are None if the type number ``type_id`` is unknown. ``data`` has Kafka's field names in
    Kafka's order, with JSON values: bytes are base64, UUIDs are Kafka's 22 characters, and a float that is not finite
    is its name. Tagged fields with their default are left out, and unknown tagged fields are in "_taggedFields" ({tag:
    base64}).

    ``part`` is "key", "value" or "control". ``data`` is None for a tombstone (``is_tombstone``), and for a newer type
    or version that cannot be decoded, whose bytes are in ``raw``.
    """

    topic: str
    part: str
    name: str | None
    record_type: str | None
    type_id: int | None
    version: int | None
    data: dict[str, Any] | None
    problems: tuple[Problem, ...] = ()
    raw: bytes | None = None
    is_tombstone: bool = False

    def newer(self, location: Location) -> Finding:
        """The finding about a record of a type or version that is newer than this program: what it says is missing."""
        words = "; ".join(each.message for each in self.problems)
        return finding("version-unknown", location, f"the record is newer than this program: {words}")
