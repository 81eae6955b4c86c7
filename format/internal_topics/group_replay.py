"""The replay of the group records of __consumer_offsets: which record contradicts what earlier ones made of its group.

Source: group-coordinator GroupMetadataManager (replay), ClassicGroup (add), of Kafka 4.3. A broker replays all records
of the partition in log order, from its start. At a record that contradicts the state of its group, the load of the
partition ends. The old coordinator, which is the default before Kafka 4.0, ignores all record types of the new
protocols.

Offset commits are not replayed. A commit makes an empty classic group where there is no group: where only commits came
before, a broker also refuses each record of a share group, and a tombstone of a consumer or streams group. So the
replay finds less than a broker, and nothing that a broker does not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import msgspec
import numpy as np

from format import layout
from format.errors import KafkaLogError
from format.findings import Finding, Judgement, Severity, finding
from format.internal_topics.decoder import read_message
from format.internal_topics.reader import INVALID, Cursor
from format.internal_topics.schema import schema_of
from format.location import Location
from format.log.record_table import RecordTable

#: The codes of findings about single records. What they end, ``GroupChanges.ends_at`` says.
REPLAY_CODES = (INVALID, "version-unknown")
_GROUP_METADATA = 2
_CONSUMER, _SHARE, _STREAMS = "consumer", "share", "streams"
_CLASSIC, _SIMPLE = "classic", "simple classic"
_GROUP, _MEMBER, _TARGET_EPOCH, _TARGET, _CURRENT, _OTHER = range(6)
#: The protocol of each record type, and what the record is of its group.
_TYPES = {
    3: (_CONSUMER, _GROUP), 4: (_CONSUMER, _OTHER), 5: (_CONSUMER, _MEMBER), 6: (_CONSUMER, _TARGET_EPOCH),
    7: (_CONSUMER, _TARGET), 8: (_CONSUMER, _CURRENT), 16: (_CONSUMER, _OTHER),
    10: (_SHARE, _MEMBER), 11: (_SHARE, _GROUP), 12: (_SHARE, _TARGET_EPOCH), 13: (_SHARE, _TARGET),
    14: (_SHARE, _CURRENT), 15: (_SHARE, _OTHER),
    17: (_STREAMS, _GROUP), 19: (_STREAMS, _MEMBER), 20: (_STREAMS, _TARGET_EPOCH), 21: (_STREAMS, _TARGET),
    22: (_STREAMS, _CURRENT), 23: (_STREAMS, _OTHER),
}  # fmt: skip
_IS_REPLAYED = np.zeros(256, bool)
_IS_REPLAYED[[_GROUP_METADATA, *_TYPES]] = True
_LEFT = -1  # an epoch after its tombstone: of a member, or of the target assignment
_STATIC_VERSION = 3  # the first version of a classic group with instance ids
_NULL = 0xFFFF
#: What a classic group is, in ``GroupChange.number``.
_PLAIN, _WITHOUT_PROTOCOL, _TWICE = range(3)

_CONSEQUENCE = (
    "a broker with the group coordinator of Kafka 4.0 and later ends the load of the partition here: no group of it "
    "can be used"
)


class GroupChange(NamedTuple):
    """One group record. ``number`` is the epoch in an assignment, and what kind of classic group it is."""

    offset: int
    position: int
    length: int
    type: int
    group: bytes
    member: bytes
    is_tombstone: bool
    number: int


class GroupChanges(msgspec.Struct):
    """The group records of a part of a log, and the first offset at which a broker's load ends, or which is damaged."""

    changes: list[GroupChange] = msgspec.field(default_factory=list)
    ends_at: int | None = None

    def take(self, table: RecordTable, found: Iterable[Finding]) -> None:
        """Add the records of a table; ``found`` is what the check of each record by itself found in it."""
        for each in found:
            if each.severity >= (Severity.ERROR if each.code == INVALID else Severity.WARNING):
                self.end(each.location.offset or 0)
        if table.problems and len(table):
            self.end(int(table.offset[0]))
        if self.ends_at is None or (len(table) and int(table.offset[0]) < self.ends_at):
            self.changes += group_changes(table)

    def end(self, offset: int) -> None:
        """Note that the log cannot be read from an offset on."""
        self.ends_at = offset if self.ends_at is None else min(self.ends_at, offset)


def group_changes(table: RecordTable) -> list[GroupChange]:
    """The group records of a table, which is of __consumer_offsets, without its control records."""
    rows = np.flatnonzero((table.key_length >= 4) & ~table.batches.is_control[table.batch])  # a type, and a length
    if not len(rows):
        return []
    source = np.frombuffer(table.buffer, np.uint8)
    start = table.key_start[rows]
    rows = rows[(source[start] == 0) & _IS_REPLAYED[source[start + 1]]]
    batches = table.batch[rows]
    columns = (rows, table.offset[rows], table.batches.position[batches], table.batches.size_bytes[batches])
    return [_change(table, *each) for each in zip(*(column.tolist() for column in columns), strict=True)]


def _change(table: RecordTable, row: int, offset: int, position: int, length: int) -> GroupChange:
    key, value = table.key(row) or b"", table.value(row)
    record_type, end = key[1], 4 + int.from_bytes(key[2:4])
    number = 0
    if record_type == _GROUP_METADATA:
        number = _classic_kind(value)
    elif _TYPES[record_type][1] in (_CURRENT, _TARGET_EPOCH):
        number = _LEFT if value is None else int.from_bytes(value[2:6], signed=True)
    return GroupChange(offset, position, length, record_type, key[4:end], key[end + 2 :], value is None, number)


def _classic_kind(value: bytes | None) -> int:
    version = int.from_bytes(value[:2]) if value is not None else -1
    message = schema_of(layout.CONSUMER_OFFSETS_TOPIC).messages["GroupMetadataValue"]
    if value is None or version not in message.versions or _has_one_member(value, version):
        return _PLAIN
    try:
        fields = read_message(Cursor(value[2:], "value"), message, version)
    except KafkaLogError:
        return _PLAIN  # reported by the check of each record by itself
    members = fields["members"]
    if not members:
        return _PLAIN if fields["protocolType"] else _WITHOUT_PROTOCOL
    if version < _STATIC_VERSION:
        return _PLAIN
    instances = [each["groupInstanceId"] for each in members if each["groupInstanceId"] is not None]
    return _TWICE if len(set(instances)) < len(instances) else _PLAIN


def _has_one_member(value: bytes, version: int) -> bool:
    """Whether a value plainly has one member, which contradicts nothing: such values need no decoder."""
    if version != _STATIC_VERSION:  # what brokers write since 2.3
        return False
    end = 4 + int.from_bytes(value[2:4]) + 4  # the version, the protocol type and the generation
    for _ in range(2):  # the protocol and the leader, of which null has the length -1
        length = int.from_bytes(value[end : end + 2])
        end += 2 + (0 if length == _NULL else length)
    return value[end + 8 : end + 12] == b"\0\0\0\1"  # after the time of the state


class _Group(msgspec.Struct):
    """What the replay needs to know of one group: the epoch of each member, and which members have a target.

    A broker makes each group with the target epoch 0: even one that never had a record of it needs its tombstone.
    """

    protocol: str
    members: dict[bytes, int] = msgspec.field(default_factory=dict)
    targets: set[bytes] = msgspec.field(default_factory=set)
    target_epoch: int = 0


class GroupReplay:
    """Replays the group records of one partition, from its start, up to the first contradiction.

    ``stop`` is for what cannot be read: what comes after is not judged, as earlier records of its group may be missing.
    """

    def __init__(self) -> None:
        self._groups: dict[bytes, _Group] = {}
        self._is_exact = True

    def stop(self) -> None:
        """Judge nothing from here on."""
        self._is_exact = False
        self._groups.clear()

    def feed(self, part: GroupChanges, location: Location) -> Iterator[Finding]:
        """The finding about the first contradiction, if it is in this part of the log."""
        if not self._is_exact:
            return
        for change in part.changes:
            if part.ends_at is not None and change.offset >= part.ends_at:
                continue
            wrong = self._take(change)
            if wrong is not None:
                self.stop()
                name = change.group.decode(errors="replace")
                message = f"the record at offset {change.offset}: group {name}: {wrong}; {_CONSEQUENCE}"
                place = location.at(position=change.position, length=change.length, offset=change.offset)
                yield finding(INVALID, place, message, judgement=Judgement(severity=Severity.ERROR))
                return
        if part.ends_at is not None:
            self.stop()

    def _take(self, change: GroupChange) -> str | None:
        """Apply one record; what it contradicts, or None."""
        if change.type == _GROUP_METADATA:
            return self._take_classic(change)
        protocol, what = _TYPES[change.type]
        group = self._groups.get(change.group)
        if group is not None and group.protocol == _SIMPLE and protocol != _SHARE:
            group = self._groups[change.group] = _Group(protocol)
        if group is None:
            if change.is_tombstone:
                return None
            group = self._groups[change.group] = _Group(protocol)
        if group.protocol != protocol:
            return f"a record of a {protocol} group, but the group is a {group.protocol} one"
        if change.is_tombstone:
            return self._take_tombstone(change, group, what)
        if what == _MEMBER:
            group.members.setdefault(change.member, 0)
        elif what == _CURRENT:
            group.members[change.member] = change.number
        elif what == _TARGET:
            group.targets.add(change.member)
        elif what == _TARGET_EPOCH:
            group.target_epoch = change.number
        return None

    def _take_classic(self, change: GroupChange) -> str | None:
        """A classic group takes the place of any other."""
        if change.is_tombstone:
            self._groups.pop(change.group, None)
            return None
        self._groups[change.group] = _Group(_SIMPLE if change.number == _WITHOUT_PROTOCOL else _CLASSIC)
        return "two members with the same groupInstanceId" if change.number == _TWICE else None

    def _take_tombstone(self, change: GroupChange, group: _Group, what: int) -> str | None:
        if what == _GROUP:
            if group.members:
                return "a tombstone of a group that still has members"
            if group.targets and group.protocol != _STREAMS:
                return "a tombstone of a group that still has target assignments"
            if group.target_epoch != _LEFT:
                return "a tombstone of a group whose target assignment epoch has no tombstone yet"
            del self._groups[change.group]
        elif what == _TARGET_EPOCH:
            if group.targets:
                return "a tombstone of the target assignment epoch of a group that still has target assignments"
            group.target_epoch = _LEFT
        elif what == _TARGET:
            group.targets.discard(change.member)
        elif change.member in group.members and what in (_MEMBER, _CURRENT):
            if what == _CURRENT:
                group.members[change.member] = _LEFT
            elif group.members[change.member] != _LEFT:
                return "a tombstone of a member whose current assignment has no tombstone yet"
            elif change.member in group.targets:
                return "a tombstone of a member that still has a target assignment"
            else:
                del group.members[change.member]
        return None
