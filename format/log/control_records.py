"""Control records: transaction markers and the raft log's own (clients ControlRecordType, EndTransactionMarker)."""

from __future__ import annotations

from dataclasses import dataclass

from format import layout
from format.errors import InvalidRecord

_CONTROL_INVALID = "control-record-invalid"


@dataclass(frozen=True, slots=True)
class ControlRecord:
    """A control record's type and, for an end-transaction marker, its coordinator epoch (else None).

    ``type_name`` is ``UNKNOWN`` for a type number that is newer than this program; that is no damage.
    """

    version: int
    type_number: int
    type_name: str
    coordinator_epoch: int | None = None

    @property
    def is_end_transaction(self) -> bool:
        return self.type_name in ("ABORT", "COMMIT")


def decode_control_record(key: bytes | None, value: bytes | None) -> ControlRecord:
    """A control record from its key and value.

    Raises InvalidRecord for a key or marker that is too short or has a negative version.
    """
    if key is None or len(key) < layout.CONTROL_KEY.size_bytes:
        raise InvalidRecord(
            f"a control record's key has {'no' if key is None else len(key)} bytes, "
            f"it needs {layout.CONTROL_KEY.size_bytes}",
            code=_CONTROL_INVALID,
        )
    version, number = layout.CONTROL_KEY.struct.unpack_from(key)
    if version < 0:
        raise InvalidRecord(f"a control record's key has version {version}", code=_CONTROL_INVALID)
    if not 0 <= number < len(layout.CONTROL_TYPES):
        return ControlRecord(version, number, "UNKNOWN")
    name = layout.CONTROL_TYPES[number]
    if name not in ("ABORT", "COMMIT"):
        return ControlRecord(version, number, name)
    marker = layout.END_TRANSACTION_MARKER
    if value is None or len(value) < marker.size_bytes:
        raise InvalidRecord(
            f"an end transaction marker has {'no' if value is None else len(value)} bytes, "
            f"it needs {marker.size_bytes}",
            code=_CONTROL_INVALID,
        )
    marker_version, coordinator_epoch = marker.struct.unpack_from(value)
    if marker_version < 0:
        raise InvalidRecord(f"an end transaction marker has version {marker_version}", code=_CONTROL_INVALID)
    return ControlRecord(version, number, name, coordinator_epoch)
