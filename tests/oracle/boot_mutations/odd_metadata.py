"""Records of the metadata log that no controller writes, under right CRCs, behind the end of the log."""

from __future__ import annotations

import struct
from collections.abc import Callable

from format.internal_topics.decoder import decoder_for
from format.layout import CLUSTER_METADATA_TOPIC, CONTROL_BIT
from format.log.encode_batches import BatchHeader, encode_batch
from tests.format.internal_topics.message_encoder import encode
from tests.oracle.boot_mutations.node import METADATA, Named, Node, batch_positions
from tests.record_encoder import NewRecord, encode_record, encode_unsigned_varint

_TIMESTAMP = 1_790_000_000_000
_ID = "AAAAAAAAAAAAAAAAAAAAAg"
_NO_OP, _TOPIC, _REMOVE_TOPIC, _FEATURE, _CONFIG, _BROKER, _PARTITION_CHANGE = 20, 2, 9, 12, 4, 0, 5


def _frame(kind: int, version: int, content: bytes, frame: int = 1) -> bytes:
    return b"".join(map(encode_unsigned_varint, (frame, kind, version))) + content


def _record(kind: int, version: int = 0, **data: object) -> bytes:
    decoder = decoder_for(CLUSTER_METADATA_TOPIC)
    return _frame(kind, version, encode(decoder.record_types[kind].value, version, data))


_SOUND = _record(_NO_OP)
_NEW_TOPIC = _record(_TOPIC, name="odd", topicId=_ID)

_VALUES: dict[str, bytes | None] = {
    "nothing odd": _SOUND,
    "null value": None,
    "empty value": b"",
    "frame version 0": _frame(_NO_OP, 0, b"\0", 0),
    "frame version 2": _frame(_NO_OP, 0, b"\0", 2),
    "frame version 70000": _frame(_NO_OP, 0, b"\0", 70000),
    "only a frame version": b"\1",
    "unknown type 99": _frame(99, 0, b"\0"),
    "type 70000": _frame(70000, 0, b"\0"),
    "type of a removed record": _frame(6, 0, b"\0"),
    "a type without a version": b"\1\x14",
    "a version of five bytes": b"\1\x14" + b"\xff\xff\xff\xff\x0f",
    "a version of five bytes, and fields": b"\1\x14" + b"\xff\xff\xff\xff\x0f" + b"\0",
    "a version of five bytes with a bit too many": b"\1\x14" + b"\xff\xff\xff\xff\x7f" + b"\0",
    "a version of six bytes": b"\1\x14" + b"\xff\xff\xff\xff\xff\x0f" + b"\0",
    "a frame version of five bytes": encode_unsigned_varint(2**32 - 2**16 + 1) + b"\x14\0\0",
    "a type of five bytes": b"\1" + encode_unsigned_varint(2**32 - 2**16 + _NO_OP) + b"\0\0",
    "a type below 0": b"\1" + encode_unsigned_varint(2**32 - 1) + b"\0\0",
    "no-op of version 1": _frame(_NO_OP, 1, b"\0"),
    "no-op of version 40000": _frame(_NO_OP, 40000, b"\0"),
    "no-op without tagged fields": _frame(_NO_OP, 0, b""),
    "no-op with more behind": _SOUND + b"more",
    "no-op with an unknown tagged field": _frame(_NO_OP, 0, b"\1\x63\2ab"),
    "no-op with a cut tagged field": _frame(_NO_OP, 0, b"\1\x63\x09ab"),
    "topic": _NEW_TOPIC,
    "topic cut": _NEW_TOPIC[:-1],
    "topic of version 1": _frame(_TOPIC, 1, _NEW_TOPIC[3:]),
    "topic with a null name": _frame(_TOPIC, 0, b"\0" + bytes(16) + b"\0"),
    "topic with an empty name": _record(_TOPIC, name="", topicId=_ID),
    "topic with a long name": _record(_TOPIC, name="x" * 32767, topicId=_ID),
    "topic with a longer name": _frame(_TOPIC, 0, b"\x81\x80\x02" + b"x" * 32768 + bytes(17)),
    "topic that is not UTF-8": _frame(_TOPIC, 0, b"\2\xff" + b"i" * 16 + b"\0"),
    "topic without a topic id": _record(_TOPIC, name="odd", topicId="AAAAAAAAAAAAAAAAAAAAAA"),
    "removal of a topic that is not there": _record(_REMOVE_TOPIC, topicId=_ID),
    "change of a partition that is not there": _record(_PARTITION_CHANGE, partitionId=0, topicId=_ID),
    "feature of level -5": _record(_FEATURE, name="metadata.version", featureLevel=-5),
    "feature of level 9999": _record(_FEATURE, name="metadata.version", featureLevel=9999),
    "unknown feature": _record(_FEATURE, name="odd.version", featureLevel=1),
    "config of an unknown kind": _record(_CONFIG, resourceType=77, resourceName="x", name="y", value="z"),
    "config without a name": _record(_CONFIG, resourceType=2, resourceName="", name="", value=None),
}
_RECORDS: dict[str, bytes] = {
    "a key": encode_record(NewRecord(0, 0, b"key", _SOUND)),
    "a header": encode_record(NewRecord(0, 0, None, _SOUND, ((b"h", b"v"),))),
    "attributes": encode_record(NewRecord(0, 0, None, _SOUND, (), 7)),
    "a timestamp delta": encode_record(NewRecord(0, 5, None, _SOUND)),
}


def _batch(node: Node, records: bytes, count: int = 1, attributes: int = 0, epoch: int | None = None) -> bytes:
    log = node.segments(METADATA)[-1]
    position, _, _, last = batch_positions(log)[-1]
    if epoch is None:
        epoch = struct.unpack_from(">i", log.read_bytes(), position + 12)[0]
    header = BatchHeader(last + 1, count - 1, count, _TIMESTAMP, _TIMESTAMP, epoch, attributes)
    return encode_batch(header, records)


def odd_metadata() -> Named:
    """One batch at the end of the metadata log, which a single controller then takes as committed."""

    def appended(records: bytes, count: int = 1, attributes: int = 0) -> Callable[[Node], None]:
        def apply(node: Node) -> None:
            content = _batch(node, records, count, attributes)
            with node.segments(METADATA)[-1].open("ab") as log:
                log.write(content)

        return apply

    for name, value in _VALUES.items():
        yield name, appended(encode_record(NewRecord(0, 0, None, value)))
    for name, record in _RECORDS.items():
        yield name, appended(record)
    for kind in (1, 2, 77):
        key = struct.pack(">hh", 0, kind)
        yield f"a control record of type {kind}", appended(encode_record(NewRecord(0, 0, key, b"")), 1, CONTROL_BIT)
    yield "a control record without a key", appended(encode_record(NewRecord(0, 0, None, b"")), 1, CONTROL_BIT)

    def in_snapshot(value: bytes) -> Callable[[Node], None]:
        """A batch before the last one of the newest snapshot, which has the footer."""

        def apply(node: Node) -> None:
            path = sorted(node.partition(METADATA).glob("*.checkpoint"))[-1]
            data = path.read_bytes()
            position, _, base, last = batch_positions(path)[-1]
            record = encode_record(NewRecord(0, 0, None, value))
            epoch = struct.unpack_from(">i", data, position + 12)[0]
            odd = encode_batch(BatchHeader(base, 0, 1, _TIMESTAMP, _TIMESTAMP, epoch), record)
            footer = (last + 1).to_bytes(8, "big") + data[position + 8 :]
            path.write_bytes(data[:position] + odd + footer)

        return apply

    for name in ("nothing odd", "unknown type 99", "no-op with more behind", "topic cut", "no-op of version 1"):
        content = _VALUES[name]
        assert content is not None
        yield f"snapshot: {name}", in_snapshot(content)
