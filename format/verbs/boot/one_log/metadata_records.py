"""Reads each record of the metadata log and of its newest snapshot as a node does, and stops where the node stops.

Source: raft RecordsIterator and KRaftControlRecordStateMachine, server-common AbstractApiMessageSerde, metadata
MetadataRecordSerde, FeaturesDelta and FeatureControlManager.
"""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from format import layout
from format.errors import CorruptDataError, KafkaLogError, LimitExceeded
from format.internal_topics.decoder import FRAME_VERSION, decoder_for
from format.internal_topics.reader import Cursor, reader_for
from format.internal_topics.record_check import odd_rows
from format.internal_topics.schema import Message, RecordType
from format.limits import Limits
from format.log.batch_ranges import BatchRange
from format.log.read_records import record_tables
from format.log.record_table import RecordTable
from format.log.walker import batch_chunks
from format.verbs.boot.followed import opened
from format.verbs.boot.steps import StopsStart

_Version = tuple[int, int]
#: The first and last level of metadata.version that a release supports (server-common MetadataVersion).
_METADATA_LEVELS = {(3, 9): (1, 21), (4, 0): (7, 25), (4, 1): (7, 27), (4, 2): (7, 29), (4, 3): (7, 30),
                    (4, 4): (7, 33)}  # fmt: skip
#: The last level that it can name: those between are not ready for use, and the controller refuses them in other words.
_LAST_NAMED = {(3, 9): 23, (4, 0): 26, (4, 1): 29, (4, 2): 30, (4, 3): 31, (4, 4): 34}
#: The releases that brought the levels of the other features, from level 1 on (server-common Feature).
_FEATURES: dict[str, tuple[_Version, ...]] = {
    "kraft.version": ((3, 9),),
    "transaction.version": ((4, 0), (4, 0)),
    "group.version": ((4, 0),),
    "eligible.leader.replicas.version": ((4, 0),),
    "share.version": ((4, 1), (4, 4)),
    "streams.version": ((4, 2),),
}
_METADATA_VERSION = "metadata.version"
_MOST_SHORT = 0x7FFF
_FRAME_BYTES = 3  # the frame version, the type and the version of a record
_CONTROL_TYPES = frozenset(range(2, 7))  # LEADER_CHANGE to KRAFT_VOTERS


class _Unreadable(Exception):
    """Why a node does not read a record: in its words, with the class that says so."""

    def __init__(self, text: str, kafka_class: str = "RecordsIterator", *, is_later: bool = False) -> None:
        super().__init__(text)
        self.text = text
        self.kafka_class = kafka_class
        self.is_later = is_later  # than all releases that this program knows: a later one may well read it


class RecordTerms(msgspec.Struct, frozen=True):
    """The release of the node, and the limits. Without a known release, what only a later one reads stops no node."""

    version: _Version
    limits: Limits
    is_release_known: bool = True


def check_records(path: Path, end: int, from_offset: int, terms: RecordTerms) -> None:
    """Read the records of a file up to a position, those of batches below an offset aside. Raises StopsStart.

    The CRCs were checked before. A batch that this program cannot read is left to the replay, which reports it.
    """
    with opened(path) as source:
        for chunk in batch_chunks(source, BatchRange(0, end), limits=terms.limits):
            which = chunk.table.last_offset >= from_offset
            for table in record_tables(chunk, which=which, limits=terms.limits):
                for row in _odd_rows(table, terms):
                    try:
                        _read(table, row, terms.version)
                    except _Unreadable as error:
                        if error.is_later and not terms.is_release_known:
                            continue
                        raise StopsStart(
                            error.text, error.kafka_class, path=path,
                            reason=f"the metadata record at offset {int(table.offset[row])} cannot be read",
                            position=int(table.batches.position[table.batch[row]]),
                        ) from error  # fmt: skip


def check_feature(name: str, level: int, version: _Version, path: Path, offset: int) -> None:
    """Raises StopsStart for the level of a feature that a release does not know."""
    if name == _METADATA_VERSION:
        lowest, highest = _METADATA_LEVELS[version]
        check_metadata_level(level, version, path)
    else:
        lowest, highest = 0, sum(since <= version for since in _FEATURES.get(name, ()))
    if not lowest <= level <= highest:
        known = f"supports {lowest} to {highest}" if highest else "has no such feature"
        reason = f"{name} has level {level} at offset {offset}, and a {_release(version)} broker {known}"
        raise StopsStart("Tried to apply FeatureLevelRecord", "FeatureControlManager", path=path, reason=reason)


def check_metadata_level(level: int, version: _Version, path: Path) -> None:
    """Raises StopsStart for a level of metadata.version that a release cannot name."""
    lowest, highest = _METADATA_LEVELS[version]
    if not lowest <= level <= _LAST_NAMED[version]:
        text = f"No MetadataVersion with feature level {level}"
        reason = f"metadata.version has level {level}, and a {_release(version)} broker supports {lowest} to {highest}"
        raise StopsStart(text, "MetadataVersion.fromFeatureLevel", path=path, reason=reason)


def _release(version: _Version) -> str:
    return ".".join(map(str, version))


def _odd_rows(table: RecordTable, terms: RecordTerms) -> list[int]:
    """The rows that are not plainly sound for the release."""
    batches = table.batches
    is_control = batches.is_control[table.batch]
    is_odd = is_control | (table.timestamp != batches.base_timestamp[table.batch]) | (table.header_count > 0)
    known, newest = _record_types(terms.version), _record_types()
    if later := [kind for kind, each in newest.items() if known.get(kind) is not each]:
        is_odd |= _is_of_types(table, later)
    rows = set(np.flatnonzero(is_odd).tolist()) | odd_rows(table, layout.CLUSTER_METADATA_TOPIC)
    return sorted(rows)


def _is_of_types(table: RecordTable, types: list[int]) -> NDArray[np.bool_]:
    """Whether a row may have one of some record types: the byte after that of the frame version is the type."""
    found: NDArray[np.bool_] = table.value_length >= _FRAME_BYTES
    rows = np.flatnonzero(found)
    found[rows] = np.isin(np.frombuffer(table.buffer, np.uint8)[table.value_start[rows] + 1], types)
    return found


def _read(table: RecordTable, row: int, version: _Version) -> None:
    """Read a record. Raises _Unreadable."""
    delta = int(table.timestamp[row]) - int(table.batches.base_timestamp[table.batch[row]])
    if delta:
        raise _Unreadable(f"Got timestamp delta of {delta}, but this is invalid")
    key, value = table.key(row), table.value(row)
    is_control = bool(table.batches.is_control[table.batch[row]])
    if is_control:
        _read_control(key, value)
    else:
        if key is not None:
            raise _Unreadable("Got key in the record when no key was expected")
        _read_data(_present(value, "value"), version)
    if table.header_count[row] > 0 and table.buffer[int(table.start[row] + table.size_bytes[row]) - 1]:
        raise _Unreadable("Got numHeaders of ")  # it takes the last byte for their number


def _present(content: bytes | None, part: str) -> bytes:
    if content is None:
        raise _Unreadable(f"Missing {part} in the record when a {part} was expected")
    if not content:
        raise _Unreadable(f"Got an unexpected empty {part} in the record")
    return content


def _read_control(key: bytes | None, value: bytes | None) -> None:
    key, _ = _present(key, "key"), _present(value, "value")
    kind = int.from_bytes(key[2:4], "big") if len(key) >= layout.CONTROL_KEY.size_bytes else None
    if kind is not None and kind not in _CONTROL_TYPES:
        raise _Unreadable("Unknown control record type", "ControlRecord", is_later=kind > max(_CONTROL_TYPES))


def _read_data(value: bytes, version: _Version) -> None:
    cursor = Cursor(value, "value")
    frame = _short(cursor, "frame version")
    if frame != FRAME_VERSION:
        unknown = "with" if frame == 0 else "due to unknown"
        text = f"Could not deserialize metadata record {unknown} frame version {frame}"
        raise _parse(text, is_later=frame > FRAME_VERSION)
    kind, number = _short(cursor, "type"), _short(cursor, "version")
    newest, record_type = _record_types(), _record_types(version).get(kind)
    if record_type is None or record_type.until is not None:
        raise _parse(f"Unknown metadata id {kind}", is_later=kind > max(newest))
    message = record_type.value
    known = message.versions.highest
    is_later = number > newest[kind].value.versions.highest
    failed = f"Failed to deserialize record with type {kind}"
    try:
        content = reader_for(message, max(message.versions.lowest, min(number, known)))(cursor)
    except (CorruptDataError, LimitExceeded) as error:
        raise _parse(failed, is_later=is_later) from error
    if number > known and _has_structs(message, content):
        # The classes of structs refuse versions that they do not know, a message does not.
        raise _parse(failed, is_later=is_later)
    if cursor.position < cursor.end:
        left = cursor.end - cursor.position
        raise _parse(f"Found {left} byte(s) of garbage after {kind}", is_later=is_later)


def _record_types(version: _Version | None = None) -> dict[int, RecordType]:
    return decoder_for(layout.CLUSTER_METADATA_TOPIC, version).record_types


def _has_structs(message: Message, content: dict[str, object]) -> bool:
    return any(each.element_type == "struct" and content.get(each.name) for each in message.fields)


def _short(cursor: Cursor, name: str) -> int:
    """Read an unsigned varint into an int of Java, which has a sign, and that into a short.

    So a long varint may be a sound number, or one below 0. Of a fifth byte, only four bits are kept.
    """
    bits = 0
    try:
        for count in range(5):
            byte = cursor.buffer[cursor.take(1)]
            bits |= (byte & 0x7F) << (7 * count)
            if byte < 0x80:
                break
        else:
            raise _parse(f"Error while reading {name}")
    except KafkaLogError as error:
        raise _parse(f"Error while reading {name}") from error
    if _MOST_SHORT < bits & 0xFFFFFFFF <= 0x7FFFFFFF:
        raise _parse(f"Value for {name} was too large.")
    return (bits + 0x8000 & 0xFFFF) - 0x8000


def _parse(text: str, *, is_later: bool = False) -> _Unreadable:
    return _Unreadable(text, "MetadataRecordSerde", is_later=is_later)
