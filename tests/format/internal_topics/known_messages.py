"""Every message of the tables by Kafka's name, and the shipped bytes of them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from format.internal_topics.control_values import CONTROL_MESSAGES
from format.internal_topics.decoder import INTERNAL_TOPICS, decoder_for
from format.internal_topics.schema import Message, RecordType
from format.internal_topics.schemas.consumer_protocol import (
    CONSUMER_PROTOCOL_ASSIGNMENT,
    CONSUMER_PROTOCOL_SUBSCRIPTION,
)
from tests.corpora import DATA_DIR


def record_types() -> Iterator[tuple[str, RecordType]]:
    """Every record type with its topic."""
    for topic in INTERNAL_TOPICS:
        decoder = decoder_for(topic)
        assert decoder is not None
        for each in decoder.record_types.values():
            yield topic, each


def _messages() -> Iterator[Message]:
    for _, record_type in record_types():
        if record_type.key is not None:
            yield record_type.key
        yield record_type.value
    yield from CONTROL_MESSAGES.values()
    yield CONSUMER_PROTOCOL_ASSIGNMENT
    yield CONSUMER_PROTOCOL_SUBSCRIPTION


MESSAGES = {each.name: each for each in _messages()}
VERSIONS = [
    (name, version)
    for name, each in sorted(MESSAGES.items())
    for version in range(each.versions.lowest, each.versions.highest + 1)
]


def shipped(name: str) -> list[dict[str, Any]]:
    """One of the files of tests/_data/internal_topics; its README says what is in it."""
    rows: list[dict[str, Any]] = json.loads((DATA_DIR / "internal_topics" / name).read_text(encoding="utf-8"))
    return rows


def bytes_of(row: dict[str, Any], name: str) -> bytes | None:
    return None if row[name] is None else bytes.fromhex(row[name])
