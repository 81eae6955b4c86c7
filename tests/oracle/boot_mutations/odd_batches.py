"""Batches under a right CRC that no client and no broker writes, at the end of a log that is recovered or loaded."""

from __future__ import annotations

from collections.abc import Callable

from format.layout import CONTROL_BIT, CONTROL_KEY, END_TRANSACTION_MARKER, TIMESTAMP_TYPE_BIT, TRANSACTIONAL_BIT
from format.log.encode_batches import BatchHeader, encode_batch, seal_batch
from tests.building import batch
from tests.oracle.boot_mutations.node import RECOVERY_POINT, Named, Node
from tests.record_encoder import NewRecord, encode_record

_END = 1264  # of orders-0
_PRODUCER = 424242
_COMMIT, _ABORT, _LEADER_CHANGE = 1, 0, 2
_VALUE = END_TRANSACTION_MARKER.struct.pack(0, 3)
_MARKED = TRANSACTIONAL_BIT | CONTROL_BIT


def _key(kind: int, version: int = 0) -> bytes:
    return CONTROL_KEY.struct.pack(version, kind)


def _marker(
    offset: int,
    key: bytes | None,
    value: bytes | None = _VALUE,
    *,
    producer: int = _PRODUCER,
    attributes: int = _MARKED,
    epoch: int = 0,
) -> bytes:
    header = BatchHeader(offset, 0, 1, 0, 0, 0, attributes, producer, epoch)
    return encode_batch(header, encode_record(NewRecord(0, 0, key, value)))


def _data(offset: int, count: int = 1, **fields: int) -> bytes:
    words = {"producer_id": _PRODUCER, "producer_epoch": 0, "base_sequence": 0, "attributes": TRANSACTIONAL_BIT}
    return batch(offset, [b"x"] * count, **(words | fields))


def _fields(**fields: int) -> bytes:
    """A plain batch with these fields of its header."""
    words = {"base_offset": _END, "timestamp": 0} | fields
    return batch(words.pop("base_offset"), [b"x"], **words)


_TAILS: dict[str, list[bytes]] = {
    "a marker without a key": [_marker(_END, None)],
    "a marker with a key of two bytes": [_marker(_END, b"\0\0")],
    "a marker with an empty key": [_marker(_END, b"")],
    "a marker of key version -1": [_marker(_END, _key(_COMMIT, -1))],
    "a marker of key version 99": [_marker(_END, _key(_COMMIT, 99))],
    "a marker of a type of KRaft": [_marker(_END, _key(_LEADER_CHANGE))],
    "a marker of an unknown type": [_marker(_END, _key(77))],
    "a marker of type -1": [_marker(_END, _key(-1))],
    "a marker without a value": [_marker(_END, _key(_COMMIT), None)],
    "a marker with an empty value": [_marker(_END, _key(_COMMIT), b"")],
    "a marker with a value of two bytes": [_marker(_END, _key(_COMMIT), b"\0\0")],
    "a marker of value version -1": [_marker(_END, _key(_COMMIT), b"\xff\xff\0\0\0\0")],
    "a marker of value version 99": [_marker(_END, _key(_COMMIT), b"\0\x63\0\0\0\0")],
    "a marker with more behind": [_marker(_END, _key(_COMMIT) + b"more", _VALUE + b"more")],
    "a marker that is not transactional": [_marker(_END, _key(_COMMIT), attributes=CONTROL_BIT)],
    "a marker without a producer": [_marker(_END, _key(_COMMIT), producer=-1, epoch=-1)],
    "garbage as control batch without a producer": [_marker(_END, b"", b"", producer=-1, epoch=-1)],
    "a marker of epoch -1": [_marker(_END, _key(_ABORT), epoch=-1)],
    "an abort without records": [_marker(_END, _key(_ABORT))],
    "a control batch without records": [
        encode_batch(BatchHeader(_END, 0, 0, 0, 0, 0, _MARKED, _PRODUCER, 0), b""),
        batch(_END + 1, [b"x"]),
    ],
    "a control batch of garbage": [
        seal_batch(BatchHeader(_END, 0, 1, 0, 0, 0, _MARKED, _PRODUCER, 0), b"\xff" * 9, codec=0)
    ],
    "a control batch of garbage in gzip": [
        seal_batch(BatchHeader(_END, 0, 1, 0, 0, 0, _MARKED, _PRODUCER, 0), b"\xff" * 9, codec=1)
    ],
    "a control batch of an unknown codec": [
        seal_batch(BatchHeader(_END, 0, 1, 0, 0, 0, _MARKED, _PRODUCER, 0), b"\xff" * 9, codec=6)
    ],
    "a data batch of garbage in gzip": [seal_batch(BatchHeader(_END, 0, 1, 0, 0), b"\xff" * 9, codec=1)],
    "a data batch of an unknown codec": [seal_batch(BatchHeader(_END, 0, 1, 0, 0), b"\xff" * 9, codec=7)],
    "a data batch of a producer in an unknown codec": [
        seal_batch(BatchHeader(_END, 0, 1, 0, 0, 0, 0, _PRODUCER, 0, 0), b"\xff" * 9, codec=7)
    ],
    "an open transaction": [_data(_END)],
    "plain data in an open transaction": [_data(_END), _data(_END + 1, attributes=0, base_sequence=1)],
    "plain data in an open transaction of another": [_data(_END), _data(_END + 1, attributes=0, producer_id=7)],
    "an aborted transaction": [_data(_END), _marker(_END + 1, _key(_ABORT))],
    "an aborted transaction twice": [
        _data(_END), _marker(_END + 1, _key(_ABORT)), _data(_END), _marker(_END + 1, _key(_ABORT)),
    ],
    "aborted transactions that go back": [
        _data(_END + 5), _marker(_END + 6, _key(_ABORT)), _data(_END), _marker(_END + 1, _key(_ABORT)),
    ],
    "a transaction that goes back": [_data(_END + 5), _data(_END, base_sequence=1), _marker(_END + 6, _key(_COMMIT))],
    "two transactions with one first offset": [
        _data(_END), _data(_END, producer_id=7), _marker(_END + 1, _key(_ABORT)),
        _marker(_END + 2, _key(_ABORT), producer=7),
    ],
    "an epoch that falls": [_data(_END, producer_epoch=5), _data(_END + 1, producer_epoch=2)],
    "a marker of a lower epoch": [_data(_END, producer_epoch=5), _marker(_END + 1, _key(_COMMIT), epoch=2)],
    "a marker of a lower coordinator epoch": [
        _data(_END), _marker(_END + 1, _key(_COMMIT)), _data(_END + 2, base_sequence=1),
        _marker(_END + 3, _key(_COMMIT), END_TRANSACTION_MARKER.struct.pack(0, 1)),
    ],
    "a gap of sequences": [_data(_END), _data(_END + 1, base_sequence=77)],
    "a producer without an epoch": [_data(_END, producer_epoch=-1)],
    "a producer without a sequence": [_data(_END, base_sequence=-1)],
    "the largest producer": [_data(_END, producer_id=2**63 - 1, producer_epoch=2**15 - 1, base_sequence=2**31 - 1)],
    "a producer of -2": [_data(_END, producer_id=-2)],
    "transactional without a producer": [_data(_END, producer_id=-1, producer_epoch=-1, base_sequence=-1)],
    "no records": [_fields(record_count=0)],
    "-1 records": [_fields(record_count=-1)],
    "2^31-1 records": [_fields(record_count=2**31 - 1)],
    "a last offset delta of -1": [_fields(last_offset_delta=-1)],
    "a last offset delta of -100": [_fields(last_offset_delta=-100)],
    "a last offset delta of 1000": [_fields(last_offset_delta=1000)],
    "a last offset delta of 2^31-1": [_fields(last_offset_delta=2**31 - 1)],
    "a negative time": [_fields(base_timestamp=-5, max_timestamp=-5)],
    "the largest time": [_fields(base_timestamp=2**63 - 1, max_timestamp=2**63 - 1)],
    "the smallest time": [_fields(base_timestamp=-(2**63), max_timestamp=-(2**63))],
    "LogAppendTime without a time": [_fields(attributes=TIMESTAMP_TYPE_BIT, base_timestamp=-1, max_timestamp=-1)],
    "attributes that nobody knows": [_fields(attributes=0x7F80)],
    "a leader epoch of -1": [_fields(leader_epoch=-1)],
    "a leader epoch of -5": [_fields(leader_epoch=-5)],
    "the largest leader epoch": [_fields(leader_epoch=2**31 - 1)],
    "leader epochs 9 and 4": [_fields(leader_epoch=9), _fields(base_offset=_END + 1, leader_epoch=4)],
    "the largest offset": [_fields(base_offset=2**63 - 1)],
    "the largest offset but one": [_fields(base_offset=2**63 - 2)],
    "offset -1": [_fields(base_offset=-1)],
    "2^31 past the segment": [_fields(base_offset=1102 + 2**31)],
    "2^31-1 past the segment": [_fields(base_offset=1102 + 2**31 - 1)],
}  # fmt: skip


def odd_batches() -> Named:
    """Batches behind the end of a log: after a crash with recovery of the active segment or of all, and clean."""

    def appended(content: bytes, state: str) -> Callable[[Node], None]:
        def apply(node: Node) -> None:
            with node.segments("orders-0")[-1].open("ab") as log:
                log.write(content)
            if state != "clean":
                node.unclean()
            if state == "unclean from 0":
                node.set_offset(RECOVERY_POINT, "orders-0", 0)

        return apply

    for name, content in _TAILS.items():
        for state in ("clean", "unclean"):
            yield f"{name}, {state}", appended(b"".join(content), state)
    for name in ("an aborted transaction twice", "plain data in an open transaction", "a marker of a type of KRaft"):
        yield f"{name}, unclean from 0", appended(b"".join(_TAILS[name]), "unclean from 0")
