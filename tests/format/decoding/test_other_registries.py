"""Values of the serializers of Apicurio and AWS Glue, decoded by the schema in a file (tests/_data/README.md)."""

from __future__ import annotations

import json
from base64 import b64decode
from uuid import UUID

import pytest

from format.decoding.decoder import Decoding
from format.decoding.schemas import SchemaOf, Schemas
from format.verbs.redact.fields import FieldRedaction, field_paths
from format.verbs.redact.replacements import Mode, Redactor
from tests.corpora import DATA_DIR

_SCHEMA, *_VALUES = map(json.loads, (DATA_DIR / "decoding" / "other-registries.jsonl").read_text().splitlines())
DECODING = Decoding(
    schemas=Schemas(files={"order.avsc": json.dumps(_SCHEMA["schema"])}), schema_of={"orders": SchemaOf("order.avsc")}
)


@pytest.mark.parametrize("number", range(len(_VALUES)))
def test_values_say_what_the_deserializer_returned(number: int) -> None:
    recorded = _VALUES[number]
    value = b64decode(recorded["value"])
    headers = [(name, b64decode(content)) for name, content in recorded["headers"]]
    found = DECODING.topic("orders")["value"].decoded(value, headers)
    assert found is not None
    assert (found.reason, json.loads(found.text or "")) == (None, recorded["expected"])
    assert found.format == "avro"
    if "apicurio" in recorded["serializer"]:
        assert found.schema_id == 0x0102030405
    else:
        assert found.schema_id == str(UUID(bytes=value[2:18]))


@pytest.mark.parametrize("number", range(len(_VALUES)))
def test_fields_that_are_kept(number: int) -> None:
    """The frame, and the headers that a reader needs, stay; what zlib has compressed has no place for other bytes."""
    recorded = _VALUES[number]
    value = b64decode(recorded["value"])
    headers = [(name, b64decode(content)) for name, content in recorded["headers"]]
    fields = FieldRedaction(field_paths(["id"]), Redactor(Mode.HASH, b"k" * 16), DECODING, "orders")
    found = fields.replaced("value", value, headers)
    assert (found.is_whole, found.headers) == ("ZLIB" in recorded["serializer"], tuple(name for name, _ in headers))
    if not found.is_whole:
        again = DECODING.topic("orders")["value"].decoded(found.content, headers)
        assert again is not None
        order = json.loads(again.text or "")
        assert order["id"] == recorded["expected"]["id"]
        assert order["customer"] != recorded["expected"]["customer"]
        assert len(order["customer"]) == len(recorded["expected"]["customer"])


def test_there_is_every_kind() -> None:
    assert len({each["serializer"] for each in _VALUES}) == 4
    assert len(_VALUES) == 12
