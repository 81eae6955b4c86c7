"""Values that Confluent's serializers wrote, and what their deserializers returned (tests/_data/README.md)."""

from __future__ import annotations

import gzip
import json
from base64 import b64decode
from datetime import date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from format.decoding.decoder import Decoding
from format.decoding.schemas import Schemas, find_schemas
from format.node.target import targets_at
from tests.corpora import DATA_DIR
from tests.format.decoding.registry_log import registry_batches, write_node

_LINES = [
    json.loads(line) for line in gzip.decompress((DATA_DIR / "decoding" / "samples.jsonl.gz").read_bytes()).splitlines()
]
SAMPLES = [each for each in _LINES if "topic" in each]


def recorded_schemas(folder: Path) -> Schemas:
    """The schemas of all samples, from a registry's topic that is written into a folder."""
    records = [
        [None if part is None else part.encode() for part in each["registry"]] for each in _LINES if "registry" in each
    ]
    return find_schemas(targets_at([write_node(folder, registry_batches((key, value) for key, value in records))]))


@pytest.fixture(scope="module")
def schemas(tmp_path_factory: pytest.TempPathFactory) -> Schemas:
    return recorded_schemas(tmp_path_factory.mktemp("registry"))


def test_the_registry(schemas: Schemas) -> None:
    assert not schemas.findings
    assert len(schemas.versions) == 123
    assert {each.kind for each in schemas.versions if each.state == "deleted"} == {"avro", "protobuf", "json-schema"}


@pytest.mark.parametrize("topic", sorted({each["topic"] for each in SAMPLES}))
def test_values_say_what_the_deserializer_returned(schemas: Schemas, topic: str) -> None:
    decoder = Decoding(schemas=schemas).topic(topic)
    samples = [each for each in SAMPLES if each["topic"] == topic]
    assert len(samples) >= 3
    for each in samples:
        headers = [(name, b64decode(value)) for name, value in each["headers"]]
        found = decoder["value"].decoded(b64decode(each["value"]), headers)
        assert found is not None
        assert found.text is not None, found.reason
        assert is_same(json.loads(found.text), each["expected"]), (found.text, each["expected"])


def is_same(mine: Any, theirs: Any) -> bool:
    """Whether JSON says what was recorded, which has bytes, decimals, UUIDs and times with their types."""
    if isinstance(theirs, dict) and len(theirs) == 1 and not isinstance(mine, dict):
        [(kind, text)] = theirs.items()
        if kind == "bytes":
            return b64decode(mine) == b64decode(text)
        if kind == "Decimal":
            return Decimal(mine) == Decimal(text)
        read = {"datetime": datetime, "date": date, "time": time}.get(kind)
        return mine == text if read is None else read.fromisoformat(mine) == read.fromisoformat(text)
    if isinstance(theirs, dict):
        return (
            isinstance(mine, dict)
            and mine.keys() == theirs.keys()
            and all(is_same(mine[k], v) for k, v in theirs.items())
        )
    if isinstance(theirs, list):
        return len(mine) == len(theirs) and all(map(is_same, mine, theirs))
    if isinstance(theirs, float):
        return float(mine) == theirs or theirs != theirs
    return type(mine) is type(theirs) and bool(mine == theirs)
