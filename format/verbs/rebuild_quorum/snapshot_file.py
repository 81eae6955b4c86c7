"""Writing a KRaft snapshot: a batch of control records, the metadata records, and the footer.

Source: raft RecordsSnapshotWriter, snapshot Snapshots. Offsets in a snapshot count its records.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from format.internal_topics.encoder import encode_control_record, unsigned_varint
from format.log.encode_batches import BatchHeader, encode_batch

#: The most bytes of values in a batch; readers take up to 8 MiB (raft KafkaRaftClient.MAX_BATCH_SIZE_BYTES).
_BATCH_BYTES = 256 * 1024
_CONTROL = 0x20
_NO_KEY = b"\x01"  # -1 as a zigzag varint
ControlValue = tuple[str, dict[str, Any]]


class SnapshotId(msgspec.Struct, frozen=True):
    """The offset after the last record that a snapshot contains, and the leader epoch of that record."""

    end_offset: int
    epoch: int

    @property
    def file_name(self) -> str:
        return f"{self.end_offset:020}-{self.epoch:010}.checkpoint"


class _Batches:
    """Batches of one epoch and time, one after the other."""

    def __init__(self, epoch: int, timestamp: int) -> None:
        self.content = bytearray()
        self._epoch, self._timestamp, self._next_offset = epoch, timestamp, 0

    def add(self, records: Sequence[tuple[bytes | None, bytes]], attributes: int = 0) -> None:
        count = len(records)
        encoded = b"".join(_record(delta, key, value) for delta, (key, value) in enumerate(records))
        header = BatchHeader(
            self._next_offset, count - 1, count, self._timestamp, self._timestamp, self._epoch, attributes
        )
        self.content += encode_batch(header, encoded)
        self._next_offset += count


def encode_snapshot(
    snapshot: SnapshotId,
    controls: Iterable[ControlValue],
    values: Iterable[bytes],
    *,
    last_timestamp: int,
    timestamp: int,
) -> bytes:
    """A snapshot of these metadata records. ``last_timestamp`` (ms) is that of the last record in the log.

    ``controls`` are the records about the quorum, written after the header.
    """
    batches = _Batches(snapshot.epoch, timestamp)
    first: list[ControlValue] = [("SNAPSHOT_HEADER", {"lastContainedLogTimestamp": last_timestamp}), *controls]
    batches.add([encode_control_record(*each) for each in first], _CONTROL)
    pending: list[tuple[bytes | None, bytes]] = []
    size_bytes = 0
    for value in values:
        if pending and size_bytes + len(value) > _BATCH_BYTES:
            batches.add(pending)
            pending, size_bytes = [], 0
        pending.append((None, value))
        size_bytes += len(value)
    if pending:
        batches.add(pending)
    batches.add([encode_control_record("SNAPSHOT_FOOTER", {})], _CONTROL)
    return bytes(batches.content)


def _record(offset_delta: int, key: bytes | None, value: bytes) -> bytes:
    """One v2 record without headers, at the time of its batch (clients DefaultRecord)."""
    key_part = _NO_KEY if key is None else unsigned_varint(len(key) << 1) + key
    body = b"\x00\x00" + unsigned_varint(offset_delta << 1) + key_part + unsigned_varint(len(value) << 1) + value
    body += b"\x00"
    return unsigned_varint(len(body) << 1) + body
