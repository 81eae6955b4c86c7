"""Records of coordinators' topics that no broker writes, under right CRCs: one case for each partition of a node.

Each partition begins with a sound record of the group or transactional id ``before``, and ends with one of ``after``.
Between them are the records of the case.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from format.internal_topics.schema import Message
from format.layout import CONTROL_BIT, CONTROL_KEY, END_TRANSACTION_MARKER, TRANSACTIONAL_BIT
from format.log.encode_batches import BatchHeader, encode_batch
from tests.format.internal_topics.known_messages import MESSAGES
from tests.format.internal_topics.message_encoder import encode
from tests.oracle.contradicting_group_records import contradictions
from tests.record_encoder import NewRecord, encode_record

OFFSETS, TRANSACTIONS, SHARES = "__consumer_offsets", "__transaction_state", "__share_group_state"
BEFORE, AFTER = "before", "after"
TIMESTAMP = 1_790_000_000_000
_GROUP, _MEMBER = "odd", "member-1"
_PRODUCER = 4242

Content = tuple[bytes | None, bytes | None]


@dataclass(frozen=True)
class Batch:
    """Records of one batch, and what its header says of them."""

    records: tuple[Content, ...]
    producer_id: int = -1
    attributes: int = 0


@dataclass(frozen=True)
class Case:
    """One partition; ``name`` is that of the case."""

    topic: str
    name: str
    batches: tuple[Batch, ...] = field(default=())

    def __str__(self) -> str:
        return f"{self.topic}/{self.name}"

    def log(self, before: str, after: str) -> bytes:
        """The whole log, between sound records of two names."""
        sound = {OFFSETS: sound_commit, TRANSACTIONS: sound_id, SHARES: sound_share}[self.topic]
        out, offset = [], 0
        for each in (Batch((sound(before),)), *self.batches, Batch((sound(after),))):
            out.append(encoded(each, offset))
            offset += max(len(each.records), 1)
        return b"".join(out)


def encoded(batch: Batch, offset: int) -> bytes:
    """A batch at an offset."""
    count = len(batch.records)
    records = b"".join(
        encode_record(NewRecord(number, 0, key, value)) for number, (key, value) in enumerate(batch.records)
    )
    epoch, sequence = (-1, -1) if batch.producer_id < 0 or batch.attributes & CONTROL_BIT else (0, 0)
    epoch = 0 if batch.attributes & CONTROL_BIT else epoch
    header = BatchHeader(
        offset, count - 1, count, TIMESTAMP, TIMESTAMP, 0, batch.attributes, batch.producer_id, epoch, sequence
    )
    return encode_batch(header, records)


def _key(kind: int, message: Message, **data: object) -> bytes:
    return struct.pack(">h", kind) + encode(message, 0, data)


def _value(message: Message, version: int, **data: object) -> bytes:
    return struct.pack(">h", version) + encode(message, version, data)


def commit_key(group: str = _GROUP, topic: str = "orders", partition: int = 0) -> bytes:
    return _key(1, MESSAGES["OffsetCommitKey"], group=group, topic=topic, partition=partition)


def commit_value(version: int = 3, **data: object) -> bytes:
    words = {"offset": 7, "leaderEpoch": -1, "metadata": "", "commitTimestamp": TIMESTAMP, "expireTimestamp": -1}
    return _value(MESSAGES["OffsetCommitValue"], version, **(words | data))


def sound_commit(group: str) -> Content:
    return commit_key(group), commit_value()


def id_key(name: str) -> bytes:
    return _key(0, MESSAGES["TransactionLogKey"], transactionalId=name)


def id_value(version: int = 1, **data: object) -> bytes:
    words = {
        "producerId": _PRODUCER, "producerEpoch": 0, "transactionTimeoutMs": 60000, "transactionStatus": 4,
        "transactionPartitions": [], "transactionLastUpdateTimestampMs": TIMESTAMP,
        "transactionStartTimestampMs": TIMESTAMP,
    }  # fmt: skip
    return _value(MESSAGES["TransactionLogValue"], version, **(words | data))


def sound_id(name: str) -> Content:
    return id_key(name), id_value(producerId=_PRODUCER + len(name))


def share_key(group: str = _GROUP, kind: int = 0) -> bytes:
    return _key(kind, MESSAGES["ShareSnapshotKey"], groupId=group, topicId="AAAAAAAAAAAAAAAAAAAAAQ", partition=0)


def share_value(**data: object) -> bytes:
    words = {
        "snapshotEpoch": 0, "stateEpoch": 0, "leaderEpoch": 0, "startOffset": 3, "createTimestamp": TIMESTAMP,
        "writeTimestamp": TIMESTAMP, "stateBatches": [],
    }  # fmt: skip
    return _value(MESSAGES["ShareSnapshotValue"], 0, **(words | data))


def update_value(**data: object) -> bytes:
    words = {"snapshotEpoch": 0, "leaderEpoch": 0, "startOffset": 3, "stateBatches": []}
    return _value(MESSAGES["ShareUpdateValue"], 0, **(words | data))


def sound_share(group: str) -> Content:
    return share_key(group), share_value()


def _classic_member(**data: object) -> dict[str, object]:
    words = {
        "memberId": _MEMBER, "groupInstanceId": None, "clientId": "c", "clientHost": "/127.0.0.1",
        "rebalanceTimeout": 60000, "sessionTimeout": 45000, "subscription": "AAAAAAAAAAAAAA==", "assignment": "",
    }  # fmt: skip
    return words | data


def classic_value(version: int = 3, **data: object) -> bytes:
    words = {
        "protocolType": "consumer", "generation": 1, "protocol": "range", "leader": _MEMBER,
        "currentStateTimestamp": TIMESTAMP, "members": [_classic_member()],
    }  # fmt: skip
    return _value(MESSAGES["GroupMetadataValue"], version, **(words | data))


_GROUP_KEY = _key(2, MESSAGES["GroupMetadataKey"], group=_GROUP)
_CONSUMER_KEY = _key(3, MESSAGES["ConsumerGroupMetadataKey"], groupId=_GROUP)
_CONSUMER_VALUE = _value(MESSAGES["ConsumerGroupMetadataValue"], 0, epoch=1)
_MEMBER_KEY = _key(5, MESSAGES["ConsumerGroupMemberMetadataKey"], groupId=_GROUP, memberId=_MEMBER)
_MEMBER_VALUE = _value(
    MESSAGES["ConsumerGroupMemberMetadataValue"], 0, instanceId=None, rackId=None, clientId="c", clientHost="h",
    subscribedTopicNames=["orders"], subscribedTopicRegex=None, rebalanceTimeoutMs=1000, serverAssignor=None,
)  # fmt: skip
_TARGET_EPOCH_KEY = _key(6, MESSAGES["ConsumerGroupTargetAssignmentMetadataKey"], groupId=_GROUP)
_TARGET_EPOCH_VALUE = _value(MESSAGES["ConsumerGroupTargetAssignmentMetadataValue"], 0, assignmentEpoch=1)
_TARGET_KEY = _key(7, MESSAGES["ConsumerGroupTargetAssignmentMemberKey"], groupId=_GROUP, memberId=_MEMBER)
_TARGET_VALUE = _value(MESSAGES["ConsumerGroupTargetAssignmentMemberValue"], 0, topicPartitions=[])
_CURRENT_KEY = _key(8, MESSAGES["ConsumerGroupCurrentMemberAssignmentKey"], groupId=_GROUP, memberId=_MEMBER)


def _current_value(**data: object) -> bytes:
    words: dict[str, object] = {
        "memberEpoch": 1, "previousMemberEpoch": 0, "state": 0, "assignedPartitions": [],
        "partitionsPendingRevocation": [],
    }  # fmt: skip
    return _value(MESSAGES["ConsumerGroupCurrentMemberAssignmentValue"], 0, **(words | data))


def _marker(kind: int = 1, value: bytes | None = END_TRANSACTION_MARKER.struct.pack(0, 3)) -> Batch:
    return Batch(((CONTROL_KEY.struct.pack(0, kind), value),), _PRODUCER, CONTROL_BIT | TRANSACTIONAL_BIT)


def _in_transaction(*records: Content) -> Batch:
    return Batch(records, _PRODUCER, TRANSACTIONAL_BIT)


_COMMIT = commit_value()
_COMMIT_4 = commit_value(4)
_LONG = "x" * 32767

#: Of the keys and values of any coordinator.
_OFFSETS: dict[str, Content | tuple[Batch, ...]] = {
    "nothing odd": sound_commit(_GROUP),
    "null key": (None, _COMMIT),
    "empty key": (b"", _COMMIT),
    "key of one byte": (b"\0", _COMMIT),
    "key without content": (b"\0\1", _COMMIT),
    "unknown record type": (struct.pack(">h", 99) + commit_key()[2:], _COMMIT),
    "unknown record type 18": (struct.pack(">h", 18) + commit_key()[2:], _COMMIT),
    "unknown record type, null value": (struct.pack(">h", 99), None),
    "unknown record type, value of garbage": (struct.pack(">h", 24), b"\xff" * 3),
    "record type -1": (struct.pack(">h", -1) + commit_key()[2:], _COMMIT),
    "legacy commit": (struct.pack(">h", 0) + commit_key()[2:], struct.pack(">hqhq", 0, 7, 0, TIMESTAMP)),
    "legacy commit with a value of version 3": (struct.pack(">h", 0) + commit_key()[2:], _COMMIT),
    "cut key": (commit_key()[:-1], _COMMIT),
    "key with a negative length": (b"\0\1\xff\xff", _COMMIT),
    "key with a length past its end": (b"\0\1\x7f\xffa", _COMMIT),
    "key with more behind": (commit_key() + b"more", _COMMIT),
    "key that is not UTF-8": (b"\0\1\0\1\xff\0\1t\0\0\0\0", _COMMIT),
    "key with an empty group": (commit_key(""), _COMMIT),
    "key with a long group": (commit_key(_LONG), _COMMIT),
    "key with partition -5": (commit_key(partition=-5), _COMMIT),
    "null value": (commit_key(), None),
    "empty value": (commit_key(), b""),
    "value of one byte": (commit_key(), b"\0"),
    "value of version 5": (commit_key(), b"\0\5" + _COMMIT[2:]),
    "value of version -1": (commit_key(), b"\xff\xff" + _COMMIT[2:]),
    "cut value": (commit_key(), _COMMIT[:-1]),
    "value with more behind": (commit_key(), _COMMIT + b"more"),
    "value with null metadata": (commit_key(), struct.pack(">hqihq", 3, 7, -1, -1, TIMESTAMP)),
    "value with long metadata": (commit_key(), commit_value(metadata=_LONG)),
    "value with longer metadata": (
        commit_key(),
        struct.pack(">hqi", 4, 7, -1) + b"\x81\x80\x02" + b"x" * 32768 + bytes(9),
    ),
    "value with metadata that is not UTF-8": (commit_key(), struct.pack(">hqih", 3, 7, -1, 1) + b"\xff" + bytes(8)),
    "offset -1": (commit_key(), commit_value(offset=-1)),
    "offset -2^63": (commit_key(), commit_value(offset=-(2**63))),
    "timestamp -1": (commit_key(), commit_value(commitTimestamp=-1)),
    "timestamp 2^63-1": (commit_key(), commit_value(commitTimestamp=2**63 - 1)),
    "value of version 1": (commit_key(), commit_value(1)),
    "value of version 4": (commit_key(), _COMMIT_4),
    "version 4 without tagged fields": (commit_key(), _COMMIT_4[:-1]),
    "version 4 with a topic id": (commit_key(), commit_value(4, topicId="AAAAAAAAAAAAAAAAAAAAAQ")),
    "version 4 with a short topic id": (commit_key(), _COMMIT_4[:-1] + b"\1\0\x10abc"),
    "version 4 with a topic id of a wrong size": (commit_key(), _COMMIT_4[:-1] + b"\1\0\5" + b"i" * 16),
    "version 4 with an unknown tagged field": (commit_key(), _COMMIT_4[:-1] + b"\1\x63\2ab"),
    "version 4 with a cut unknown tagged field": (commit_key(), _COMMIT_4[:-1] + b"\1\x63\x09ab"),
    "version 4 with a tagged field twice": (
        commit_key(), _COMMIT_4[:-1] + b"\2" + 2 * (b"\0\x10" + b"i" * 16)
    ),
    "version 4 with 2^31 tagged fields": (commit_key(), _COMMIT_4[:-1] + b"\xff\xff\xff\xff\x07"),
    "version 4 with a count of six bytes": (commit_key(), _COMMIT_4[:-1] + b"\xff\xff\xff\xff\xff\x07"),
    "group": (_GROUP_KEY, classic_value()),
    "group tombstone": (_GROUP_KEY, None),
    "group of version 4": (_GROUP_KEY, classic_value(4)),
    "group of version 5": (_GROUP_KEY, b"\0\5" + classic_value(4)[2:]),
    "group without members": (_GROUP_KEY, classic_value(members=[])),
    "group of an unknown protocol": (_GROUP_KEY, classic_value(protocolType="nobody", protocol="knows")),
    "group without a protocol": (_GROUP_KEY, classic_value(protocol=None)),
    "group with a protocol type that is empty": (_GROUP_KEY, classic_value(protocolType="", protocol="")),
    "group with a subscription of garbage": (
        _GROUP_KEY, classic_value(members=[_classic_member(subscription="////")])
    ),
    "group with an empty subscription": (_GROUP_KEY, classic_value(members=[_classic_member(subscription="")])),
    "group with -1 members": (_GROUP_KEY, classic_value(members=[])[:-4] + b"\xff" * 4),
    "group with 1,000,000 members": (_GROUP_KEY, classic_value(members=[])[:-4] + struct.pack(">i", 1_000_000)),
    "group with a cut member": (_GROUP_KEY, classic_value()[:-1]),
    "group with one member twice": (_GROUP_KEY, classic_value(members=[_classic_member()] * 2)),
    "group with one instance twice": (
        _GROUP_KEY, classic_value(members=[_classic_member(groupInstanceId="i")] * 2)
    ),
    "group of generation -5": (_GROUP_KEY, classic_value(generation=-5)),
    "group with timeouts of -1": (
        _GROUP_KEY, classic_value(members=[_classic_member(rebalanceTimeout=-1, sessionTimeout=-1)])
    ),
    "consumer group": (_CONSUMER_KEY, _CONSUMER_VALUE),
    "consumer group of version 1": (_CONSUMER_KEY, b"\0\1" + _CONSUMER_VALUE[2:]),
    "consumer group cut": (_CONSUMER_KEY, _CONSUMER_VALUE[:4]),
    "consumer group after a classic one": (
        Batch(((_GROUP_KEY, classic_value()), (_CONSUMER_KEY, _CONSUMER_VALUE))),
    ),
    "classic group after a consumer one": (
        Batch(((_CONSUMER_KEY, _CONSUMER_VALUE), (_GROUP_KEY, classic_value()))),
    ),
    "tombstones of nothing": (
        Batch(tuple((each, None) for each in (
            _CONSUMER_KEY, _MEMBER_KEY, _TARGET_EPOCH_KEY, _TARGET_KEY, _CURRENT_KEY, _GROUP_KEY,
        ))),
    ),
    "tombstone of a group with members": (
        Batch(((_CONSUMER_KEY, _CONSUMER_VALUE), (_MEMBER_KEY, _MEMBER_VALUE), (_CONSUMER_KEY, None))),
    ),
    "tombstone of a member with an assignment": (
        Batch(((_CONSUMER_KEY, _CONSUMER_VALUE), (_MEMBER_KEY, _MEMBER_VALUE),
               (_CURRENT_KEY, _current_value()), (_MEMBER_KEY, None))),
    ),
    "tombstone of a member with a target": (
        Batch(((_CONSUMER_KEY, _CONSUMER_VALUE), (_MEMBER_KEY, _MEMBER_VALUE),
               (_TARGET_KEY, _TARGET_VALUE), (_CURRENT_KEY, None), (_MEMBER_KEY, None))),
    ),
    "tombstone of a target epoch with targets": (
        Batch(((_CONSUMER_KEY, _CONSUMER_VALUE), (_TARGET_KEY, _TARGET_VALUE), (_TARGET_EPOCH_KEY, None))),
    ),
    "tombstone of a group with a target epoch": (
        Batch(((_CONSUMER_KEY, _CONSUMER_VALUE), (_TARGET_EPOCH_KEY, _TARGET_EPOCH_VALUE), (_CONSUMER_KEY, None))),
    ),
    "member in state 77": (
        Batch(((_CONSUMER_KEY, _CONSUMER_VALUE), (_MEMBER_KEY, _MEMBER_VALUE),
               (_CURRENT_KEY, _current_value(state=77)))),
    ),
    "member with a partition twice": (
        Batch(((_CONSUMER_KEY, _CONSUMER_VALUE), (_MEMBER_KEY, _MEMBER_VALUE), (_CURRENT_KEY, _current_value(
            assignedPartitions=[{"topicId": "AAAAAAAAAAAAAAAAAAAAAQ", "partitions": [0, 0]}] * 2
        )))),
    ),
    "member of a group without a record": (Batch(((_MEMBER_KEY, _MEMBER_VALUE),)),),
    "share group after a consumer one": (
        Batch(((_CONSUMER_KEY, _CONSUMER_VALUE),
               (_key(11, MESSAGES["ShareGroupMetadataKey"], groupId=_GROUP),
                _value(MESSAGES["ShareGroupMetadataValue"], 0, epoch=1, metadataHash=0)))),
    ),
    "streams group after a consumer one": (
        Batch(((_CONSUMER_KEY, _CONSUMER_VALUE),
               (_key(17, MESSAGES["StreamsGroupMetadataKey"], groupId=_GROUP),
                _value(MESSAGES["StreamsGroupMetadataValue"], 0, epoch=1, metadataHash=0)))),
    ),
    "commit in a transaction without an end": (_in_transaction(sound_commit(_GROUP)),),
    "commit in a transaction that commits": (_in_transaction(sound_commit(_GROUP)), _marker()),
    "marker without a transaction": (_marker(),),
    "cut value in an aborted transaction": (_in_transaction((commit_key(), _COMMIT[:-1])), _marker(0)),
}  # fmt: skip
_OFFSETS |= {name: (Batch(records),) for name, records in contradictions().items()}

_ID = id_key(_GROUP)
_IDS: dict[str, Content | tuple[Batch, ...]] = {
    "nothing odd": sound_id(_GROUP),
    "null key": (None, id_value()),
    "empty key": (b"", id_value()),
    "key of one byte": (b"\0", id_value()),
    "cut key": (_ID[:-1], id_value()),
    "key with more behind": (_ID + b"more", id_value()),
    "unknown record type": (struct.pack(">h", 9) + _ID[2:], id_value()),
    "record type -1": (struct.pack(">h", -1) + _ID[2:], id_value()),
    "key that is not UTF-8": (b"\0\0\0\1\xff", id_value()),
    "empty id": (id_key(""), id_value()),
    "null value": (_ID, None),
    "empty value": (_ID, b""),
    "value of one byte": (_ID, b"\0"),
    "value of version 2": (_ID, b"\0\2" + id_value()[2:]),
    "value of version -1": (_ID, b"\xff\xff" + id_value()[2:]),
    "value of version 0": (_ID, id_value(0)),
    "cut value": (_ID, id_value()[:-2]),
    "cut value of version 0": (_ID, id_value(0)[:-2]),
    "value with more behind": (_ID, id_value() + b"more"),
    "status 8": (_ID, id_value(transactionStatus=8)),
    "status -1": (_ID, id_value(transactionStatus=-1)),
    "status 8, version 0": (_ID, id_value(0, transactionStatus=8)),
    "ongoing without partitions": (_ID, id_value(transactionStatus=1)),
    "ongoing with null partitions": (_ID, id_value(transactionStatus=1, transactionPartitions=None)),
    "ongoing with null partitions, version 0": (_ID, id_value(0, transactionStatus=1, transactionPartitions=None)),
    "empty with null partitions": (_ID, id_value(transactionStatus=0, transactionPartitions=None)),
    "dead": (_ID, id_value(transactionStatus=6)),
    "epoch fence": (_ID, id_value(transactionStatus=7)),
    "prepared to commit": (
        _ID, id_value(transactionStatus=2, transactionPartitions=[{"topic": "gone", "partitionIds": [3]}])
    ),
    "producer -1": (_ID, id_value(producerId=-1)),
    "producer epoch -5": (_ID, id_value(producerEpoch=-5)),
    "a timeout of -1": (_ID, id_value(transactionTimeoutMs=-1)),
    "timestamps of -1": (
        _ID, id_value(transactionLastUpdateTimestampMs=-1, transactionStartTimestampMs=-1)
    ),
    "a partition of -1": (
        _ID, id_value(transactionStatus=1, transactionPartitions=[{"topic": "t", "partitionIds": [-1]}])
    ),
    "client transaction version 2": (_ID, id_value(clientTransactionVersion=2)),
    "client transaction version 77": (_ID, id_value(clientTransactionVersion=77)),
    "client transaction version -1": (_ID, id_value(clientTransactionVersion=-1)),
    "an unknown tagged field": (_ID, id_value()[:-1] + b"\1\x63\2ab"),
    "a cut tagged field": (_ID, id_value()[:-1] + b"\1\0\x08abc"),
    "1,000,000 partitions": (_ID, id_value(0)[:17] + struct.pack(">i", 1_000_000) + id_value(0)[21:]),
    "a control batch": (_marker(),),
}  # fmt: skip

_SHARE = share_key()
_UPDATE = share_key(kind=1)
_STATES = [{"firstOffset": 3, "lastOffset": 5, "deliveryState": 0, "deliveryCount": 1}]
_SHARES: dict[str, Content | tuple[Batch, ...]] = {
    "nothing odd": sound_share(_GROUP),
    "null key": (None, share_value()),
    "empty key": (b"", share_value()),
    "cut key": (_SHARE[:-1], share_value()),
    "key with more behind": (_SHARE + b"more", share_value()),
    "unknown record type": (struct.pack(">h", 2) + _SHARE[2:], share_value()),
    "record type -1": (struct.pack(">h", -1) + _SHARE[2:], share_value()),
    "empty group": (share_key(""), share_value()),
    "null value": (_SHARE, None),
    "null value of an update": (_UPDATE, None),
    "update without a snapshot": (_UPDATE, update_value()),
    "update": (Batch(((_SHARE, share_value()), (_UPDATE, update_value(stateBatches=_STATES)))),),
    "empty value": (_SHARE, b""),
    "value of version 1": (_SHARE, b"\0\1" + share_value()[2:]),
    "cut value": (_SHARE, share_value()[:-1]),
    "value with more behind": (_SHARE, share_value() + b"more"),
    "null state batches": (_SHARE, share_value()[:-2] + b"\0\0"),
    "a delivery state of 77": (
        Batch(((_SHARE, share_value(stateBatches=[_STATES[0] | {"deliveryState": 77}])),)),
    ),
    "a delivery count of -1": (
        Batch(((_SHARE, share_value(stateBatches=[_STATES[0] | {"deliveryCount": -1}])),)),
    ),
    "state batches that overlap": (Batch(((_SHARE, share_value(stateBatches=_STATES * 2)),)),),
    "update with state batches that overlap": (
        Batch(((_SHARE, share_value(stateBatches=_STATES)), (_UPDATE, update_value(stateBatches=_STATES * 2)))),
    ),
    "state batches that go back": (
        Batch(((_SHARE, share_value(stateBatches=[_STATES[0] | {"firstOffset": 9}])),)),
    ),
    "update with state batches that go back": (
        Batch(((_SHARE, share_value(stateBatches=_STATES)),
               (_UPDATE, update_value(stateBatches=[_STATES[0] | {"firstOffset": 9}])))),
    ),
    "start offset -5": (_SHARE, share_value(startOffset=-5)),
    "start offset past the batches": (_SHARE, share_value(startOffset=99, stateBatches=_STATES)),
    "leader epoch -5": (_SHARE, share_value(leaderEpoch=-5)),
    "an unknown tagged field": (_SHARE, share_value()[:-1] + b"\1\x63\2ab"),
    "a marker": (_marker(),),
}  # fmt: skip


def cases() -> list[Case]:
    """All of them, in a fixed order."""
    return [
        Case(topic, name, content if isinstance(content[0], Batch) else (Batch((content,)),))  # type: ignore[arg-type]
        for topic, table in ((OFFSETS, _OFFSETS), (TRANSACTIONS, _IDS), (SHARES, _SHARES))
        for name, content in table.items()
    ]


def partitions() -> Iterator[tuple[Case, int]]:
    """Each case with the partition of its topic that holds it."""
    counts: dict[str, int] = {}
    for case in cases():
        number = counts.get(case.topic, 0)
        counts[case.topic] = number + 1
        yield case, number


def named(word: str, number: int, count: int, place: Callable[[str, int], int]) -> str:
    """A name that begins so and whose hash belongs to the partition of this number."""
    return next(name for each in range(10**6) if place(name := f"{word}-{each}", count) == number)
