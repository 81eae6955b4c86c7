"""Transactional ids as __transaction_state describes them: the latest record of each, and the producers it had.

Source: transaction-coordinator TransactionStateManager, TransactionLog.
"""

from __future__ import annotations

import struct
from functools import cache
from typing import TYPE_CHECKING

import msgspec

from format.errors import KafkaLogError
from format.layout import TRANSACTION_STATE_TOPIC

if TYPE_CHECKING:
    from format.internal_topics.decoder import Decoder

#: The version and the producer id, with which a value of every version begins.
_PRODUCER = struct.Struct(">hq")


class CoordinatorState(msgspec.Struct, frozen=True):
    """The latest state of one transactional id. Timestamps are ms, -1 for none."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    state: str
    timeout_ms: int
    start_timestamp: int
    partitions: frozenset[tuple[str, int]]


class TransactionalIds(msgspec.Struct):
    """The transactional ids in the records fed so far.

    The record of a key with the highest leader epoch and offset counts, so the replicas of a partition may be fed one
    after the other. ``partitions`` are the numbers of the partitions that were fed.
    """

    partitions: set[int] = msgspec.field(default_factory=set)
    _latest: dict[bytes, tuple[int, int, bytes | None]] = msgspec.field(default_factory=dict)
    _key_of_producer: dict[int, tuple[int, int, bytes]] = msgspec.field(default_factory=dict)
    _decoded: dict[bytes, CoordinatorState | None] = msgspec.field(default_factory=dict)
    _names: dict[bytes, str | None] = msgspec.field(default_factory=dict)

    def feed(self, key: bytes, value: bytes | None, leader_epoch: int, offset: int) -> None:
        """Take one record."""
        known = self._latest.get(key)
        if known is None or known[:2] <= (leader_epoch, offset):
            self._latest[key] = (leader_epoch, offset, value)
            self._decoded.pop(key, None)
        if value is not None and len(value) >= _PRODUCER.size:
            producer_id = _PRODUCER.unpack_from(value)[1]
            seen = self._key_of_producer.get(producer_id)
            if seen is None or seen[:2] <= (leader_epoch, offset):
                self._key_of_producer[producer_id] = (leader_epoch, offset, key)

    def id_of_producer(self, producer_id: int) -> str | None:
        """The transactional id that a producer id has, or had as far as the records go back."""
        seen = self._key_of_producer.get(producer_id)
        return None if seen is None else self._name(seen[2])

    def state_of_producer(self, producer_id: int) -> CoordinatorState | None:
        """The state of the transactional id that has this producer id now; None for none."""
        seen = self._key_of_producer.get(producer_id)
        if seen is None:
            return None
        state = self._state(seen[2])
        return state if state is not None and state.producer_id == producer_id else None

    def producers_of(self, transactional_id: str) -> frozenset[int]:
        """The producer ids that a transactional id had, as far as the records go back."""
        return frozenset(
            producer_id
            for producer_id, (_, _, key) in self._key_of_producer.items()
            if self._name(key) == transactional_id
        )

    def _name(self, key: bytes) -> str | None:
        if key not in self._names:
            self._names[key] = _transactional_id(key)
        return self._names[key]

    def _state(self, key: bytes) -> CoordinatorState | None:
        if key not in self._decoded:
            self._decoded[key] = _decoded(key, self._latest[key][2])
        return self._decoded[key]


@cache
def _decoder() -> Decoder:
    from format.internal_topics.decoder import decoder_for  # not loaded where no __transaction_state is given

    return decoder_for(TRANSACTION_STATE_TOPIC)


def _transactional_id(key: bytes) -> str | None:
    try:
        data = _decoder().decode_key(key).data
    except KafkaLogError:
        return None
    return None if data is None else data["transactionalId"]


def _decoded(key: bytes, value: bytes | None) -> CoordinatorState | None:
    """The state of a record, None for a tombstone and for what cannot be decoded."""
    transactional_id = _transactional_id(key)
    if transactional_id is None:
        return None
    from format.internal_topics.decoder import TRANSACTION_STATUSES

    try:
        data = _decoder().decode_value(_decoder().decode_key(key), value).data
    except KafkaLogError:
        return None
    if data is None:
        return None
    status = data["transactionStatus"]
    return CoordinatorState(
        transactional_id,
        data["producerId"],
        data["producerEpoch"],
        TRANSACTION_STATUSES[status] if 0 <= status < len(TRANSACTION_STATUSES) else str(status),
        data["transactionTimeoutMs"],
        data["transactionStartTimestampMs"],
        frozenset(
            (each["topic"], number) for each in data["transactionPartitions"] or () for number in each["partitionIds"]
        ),
    )
