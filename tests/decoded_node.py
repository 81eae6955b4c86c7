"""A log directory with a schema registry's topic, and a topic whose values name its schemas.

The values of ``orders-0`` are Avro, encoded by hand, by the schemas 7 and 8 of one subject.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from format.log.encode_batches import BatchHeader, encode_batch
from tests.building import BASE_TIMESTAMP, batch, write_indexed_segment
from tests.format.decoding.registry_log import schema as registered
from tests.record_encoder import NewRecord, encode_record

SUBJECT = "orders-value"
FIRST, SECOND = 7, 8
SCHEMAS = {
    FIRST: {
        "type": "record",
        "name": "Order",
        "fields": [{"name": "id", "type": "long"}, {"name": "customer", "type": "string"}],
    },
    SECOND: {
        "type": "record",
        "name": "Order",
        "fields": [
            {"name": "id", "type": "long"},
            {"name": "customer", "type": "string"},
            {"name": "is_paid", "type": "boolean", "default": False},
        ],
    },
}
#: A value that is cut off in the middle of its text.
CUT = b"\0\0\0\0\x07\x02\x3aAna"


def order(number: int, customer: str, *, is_paid: bool | None = None, schema_id: int | None = None) -> bytes:
    """A value as Confluent's serializer writes it; by the second schema with ``is_paid``."""
    text = customer.encode()
    own = FIRST if is_paid is None else SECOND
    content = _zigzag(number) + _zigzag(len(text)) + text + (b"" if is_paid is None else bytes((is_paid,)))
    return b"\0" + (own if schema_id is None else schema_id).to_bytes(4, "big") + content


def _zigzag(number: int) -> bytes:
    number = (number << 1) ^ (number >> 63)
    found = bytearray()
    while number > 0x7F:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes((*found, number))


def schemas_log() -> bytes:
    """The log of the registry's topic."""
    records = []
    for version, (schema_id, schema) in enumerate(SCHEMAS.items(), 1):
        key, value = registered(SUBJECT, version, schema_id, json.dumps(schema))
        records.append((json.dumps(key).encode(), json.dumps(value).encode()))
    return b"".join(
        encode_batch(
            BatchHeader(number, 0, 1, base_timestamp=BASE_TIMESTAMP, max_timestamp=BASE_TIMESTAMP),
            encode_record(NewRecord(0, 0, key, value, ())),
        )
        for number, (key, value) in enumerate(records)
    )


#: The values of orders-0: by the first schema, by the second one, a text, cut off, null, and of a schema nobody has.
VALUES: tuple[bytes | None, ...] = (
    order(4711, "Ana"),
    order(4712, "Zoë", is_paid=True),
    b"plain text",
    CUT,
    None,
    order(1, "Bo", schema_id=99),
)


def write_node(directory: Path, values: Iterable[bytes | None] = VALUES, *, topic: str = "orders") -> Path:
    """A log directory with the registry's topic and ``orders-0``; returns the latter."""
    write_indexed_segment(directory / "_schemas-0", 0, [schemas_log()])
    partition = directory / f"{topic}-0"
    write_indexed_segment(partition, 0, [batch(0, values, producer_id=4001, producer_epoch=3, base_sequence=0)])
    return partition
