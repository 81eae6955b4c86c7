"""Every message of the schemas by Kafka's name, the shipped bytes of them, and the records of a segment."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from format.internal_topics.decoder import INTERNAL_TOPICS, decoder_for
from format.internal_topics.schema import RecordType, schema_of
from format.io.source import FileSource
from format.log.read_records import record_tables
from format.log.walker import batch_chunks
from tests.corpora import DATA_DIR


def record_types() -> Iterator[tuple[str, RecordType]]:
    """Every record type with its topic."""
    for topic in INTERNAL_TOPICS:
        decoder = decoder_for(topic)
        for each in decoder.record_types.values():
            yield topic, each


MESSAGES = {
    name: each
    for schema in (*INTERNAL_TOPICS, "control_records", "consumer_protocol")
    for name, each in schema_of(schema).messages.items()
}
VERSIONS = [(name, version) for name, each in sorted(MESSAGES.items()) for version in each.versions]


def shipped(name: str) -> list[dict[str, Any]]:
    """One of the files of tests/_data/internal_topics; its README says what is in it."""
    rows: list[dict[str, Any]] = json.loads((DATA_DIR / "internal_topics" / name).read_text(encoding="utf-8"))
    return rows


def bytes_of(row: dict[str, Any], name: str) -> bytes | None:
    return None if row[name] is None else bytes.fromhex(row[name])


def records_of(path: Path) -> Iterator[tuple[int, bool, bytes | None, bytes | None]]:
    """Offset, whether it is a control record, key and value of each record, in the file's order."""
    with FileSource(path) as source:
        for chunk in batch_chunks(source):
            is_control = chunk.table.is_control
            for table in record_tables(chunk):
                assert not table.problems
                for row in range(len(table)):
                    control = bool(is_control[int(table.batch[row])])
                    yield int(table.offset[row]), control, table.key(row), table.value(row)
