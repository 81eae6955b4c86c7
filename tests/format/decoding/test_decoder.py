"""Decoding by a kind that is given, and by what the bytes prove."""

from __future__ import annotations

import json
import pickle
import struct
from uuid import UUID

import pytest

from format.decoding.decoder import Decoded, Decoding


def value_as(kind: str, data: bytes) -> Decoded:
    found = Decoding(value_as=kind).topic("orders")["value"].decoded(data, ())
    assert found is not None
    return found


UUID_TEXT = "0190b7a3-58c8-7d9c-9c3a-3b0f0c1d2e3f"


@pytest.mark.parametrize(
    ("kind", "data", "text"),
    [
        ("string", 'naïve "x"\n'.encode(), '"naïve \\"x\\"\\n"'),
        ("string", b"", '""'),
        ("json", b' { "a" : [1.10, 1e400, 123456789012345678901234567890] }\n', None),
        ("int", struct.pack(">i", -5), "-5"),
        ("long", struct.pack(">q", -(2**63)), "-9223372036854775808"),
        ("double", struct.pack(">d", 0.1), "0.1"),
        ("double", struct.pack(">d", float("nan")), '"NaN"'),
        ("double", struct.pack(">d", float("-inf")), '"-Infinity"'),
        ("uuid", UUID_TEXT.encode(), f'"{UUID_TEXT}"'),
        ("uuid", UUID(UUID_TEXT).bytes, f'"{UUID_TEXT}"'),
    ],
)
def test_plain_kinds(kind: str, data: bytes, text: str | None) -> None:
    text = '{"a":[1.10,1e400,123456789012345678901234567890]}' if text is None else text
    assert value_as(kind, data) == Decoded(text, kind)
    json.loads(text)


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (rb'{"n":"Zo\u00eb","\u00e4":1}', '{"n":"Zoë","ä":1}'),
        (rb'"\\u00eb \\\u00eb"', r'"\\u00eb \\ë"'),
        (rb'"\uD83D\ude00"', '"😀"'),
        (rb'"\u0022\u005c\u0000\n\u2028"', r'"\u0022\u005c\u0000\n\u2028"'),
    ],
)
def test_json_has_letters_as_they_are_read(data: bytes, text: str) -> None:
    """Not what needs an escape, or cannot be seen."""
    assert value_as("json", data) == Decoded(text, "json")
    assert json.loads(text) == json.loads(data)


@pytest.mark.parametrize(
    ("kind", "data", "reason"),
    [
        ("string", b"a\xff", "not UTF-8 at byte 1"),
        ("json", b"{1}", "not JSON"),
        ("json", b'"\xff"', "not UTF-8 at byte 1"),
        ("json", b"NaN", "not JSON"),
        ("json", rb'"\u00zz"', "not JSON"),
        ("json", rb'"\ud83d"', "not JSON"),
        ("json", b"[" * 100_000 + b"]" * 100_000, "nested too deeply"),
        ("int", b"abc", "an int has 4 bytes, not 3"),
        ("long", b"", "a long has 8 bytes, not 0"),
        ("double", b"123456789", "a double has 8 bytes, not 9"),
        ("uuid", UUID_TEXT.replace("-", "").encode(), "not a UUID"),
        ("uuid", b"\xff" * 36, "not a UUID"),
    ],
)
def test_what_is_not_of_the_kind_stays_raw_with_a_reason(kind: str, data: bytes, reason: str) -> None:
    found = value_as(kind, data)
    assert (found.text, found.format) == (None, "raw")
    assert reason in (found.reason or "")


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b'{"a": 1}', Decoded('{"a":1}', "json")),
        (b"[1, 2]", Decoded("[1,2]", "json")),
        (b"{a", Decoded('"{a"', "string")),
        (b"42", Decoded('"42"', "string")),
        ("größer\t\n".encode(), Decoded('"größer\\t\\n"', "string")),
        (b"\x00\x00\x00\x00\x07", Decoded(None, "raw")),
        (b"a\x00b", Decoded(None, "raw")),
        ("a\u202eb".encode(), Decoded(None, "raw")),
        (b"\xff\xfe", Decoded(None, "raw")),
    ],
)
def test_auto_takes_json_and_printable_text(data: bytes, expected: Decoded) -> None:
    assert value_as("auto", data) == expected


def test_raw() -> None:
    decoder = Decoding(key_as="raw").topic("orders")
    assert decoder["key"].decoded(b"abc", ()) == Decoded(None, "raw")


def test_a_decoding_can_be_pickled() -> None:
    again = pickle.loads(pickle.dumps(Decoding(key_as="int", value_as="json")))
    assert again.topic("orders")["key"].decoded(b"\x00\x00\x00\x07", ()) == Decoded("7", "int")
