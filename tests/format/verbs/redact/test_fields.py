"""Fields that are kept of JSON values stay byte for byte; nothing else of a value is left, and all stays JSON."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pytest

from format.decoding.decoder import Decoding
from format.verbs.redact.fields import FieldRedaction, field_paths
from format.verbs.redact.replacements import Mode, Redactor

KEEP = field_paths(["kept-name", "customer.country", "lines.sku"])
HASH, FILL = Redactor(Mode.HASH, b"k" * 16), Redactor(Mode.FILL)


def redacted(content: bytes, redactor: Redactor = HASH) -> bytes:
    fields = FieldRedaction(KEEP, redactor, Decoding(), "orders")
    key, value = (fields.replaced(field, content, ()).content for field in ("key", "value"))
    assert key == value
    assert len(value) == len(content)
    return value


def test_what_is_kept_and_what_is_not() -> None:
    content = json.dumps(
        {
            "kept-name": {"secret": ["all", "of", "it", {"x": 1}]},
            "customer": {"country": "CH", "name": 'Ana \u00e9"\\', "vip": True, "since": -12.5e300},
            "lines": [{"sku": "A-1", "price": 12}, {"sku": None, "kept-name": "secret"}],
            "empty": {},
            "none": None,
        }
    ).encode()
    found = json.loads(redacted(content))
    assert found["kept-name"] == {"secret": ["all", "of", "it", {"x": 1}]}
    assert found["customer"]["country"] == "CH"
    assert [each["sku"] for each in found["lines"]] == ["A-1", None]
    assert len(found) == 5
    for secret in (b"Ana", b"name", b"vip", b"true", b"since", b"12", b"price", b"empty", b"none"):
        assert secret not in redacted(content).replace(b"kept-name", b""), secret


def test_json_after_a_schema_id_keeps_the_id() -> None:
    content = b'\0\0\0\0\7{"kept-name":"yes","other":"no"}'
    found = redacted(content)
    assert found[:5] == content[:5]
    assert json.loads(found[5:])["kept-name"] == "yes"
    assert b"other" not in found


@pytest.mark.parametrize(
    "content",
    [b"", b"plain kept-name", b'{"kept-name": 1', b'{"kept-name": "\xff"}', b'"kept-name"', b"\0\0\0\0\7\2kept-name",
     b"[" * 100_000, b'\0\0\0\0\7"kept-name"'],
)  # fmt: skip
def test_what_is_no_json_object_or_array_is_replaced_whole(content: bytes) -> None:
    assert redacted(content) == HASH.replaced(content)


def test_numbers_stay_numbers() -> None:
    for text in ("0", "-0", "7", "10", "1.0", "-3.25", "1e10", "2E-308", "9223372036854775807", "1" * 300, "0.1e+5"):
        for redactor in (HASH, FILL):
            (found,) = json.loads(redacted(f"[{text}]".encode(), redactor))
            assert isinstance(found, (int, float))
            if len(text) == 19:
                assert found < 2**63


def test_equal_values_stay_equal() -> None:
    first, second = json.loads(redacted(b'[{"name":"Ana"},{"name":"Ana"}]'))
    assert first == second


def test_any_json() -> None:
    chance = Random(7)
    names = ["kept-name", "customer", "country", "lines", "other-name"]

    def value(depth: int = 0) -> Any:
        if depth > 4 or chance.random() < 0.4:
            return chance.choice([1, -3, 2.5, 1e10, True, False, None, "text", 'é"\\\n', 10**25, 0.0, "", float("nan")])
        count = chance.randrange(4)
        if chance.random() < 0.6:
            return {chance.choice(names): value(depth + 1) for _ in range(count)}
        return [value(depth + 1) for _ in range(count)]

    def kept(of: Any, path: tuple[bytes, ...] = ()) -> list[Any]:
        if path in KEEP:
            return [(path, json.dumps(of))]
        if isinstance(of, list):
            return [found for each in of for found in kept(each, path)]
        if not isinstance(of, dict):
            return []
        return [found for name, each in of.items() for found in kept(each, (*path, name.encode()))]

    for _ in range(2000):
        made = [value()]
        content = json.dumps(made, ensure_ascii=chance.random() < 0.5, indent=chance.choice([None, 1])).encode()
        found = json.loads(redacted(content, chance.choice([HASH, FILL])))
        assert kept(found) == kept(made)
        assert "other-name" not in json.dumps([each for each in [found] if not kept(found)])


def test_the_fields_that_were_found_are_known() -> None:
    fields = FieldRedaction(KEEP, HASH, Decoding(), "orders")
    fields.replaced("value", b'{"customer": {"name": "Ana"}, "lines": [{"sku": 1}], "other": {"kept-name": 2}}', ())
    assert fields.taken_found() == ["lines.sku"]
    assert fields.taken_found() == []
