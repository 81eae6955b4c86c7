"""Readers for the tests, written apart from the renderers: the text format, and what may stand on a screen."""

from __future__ import annotations

import json
import re
import unicodedata
from typing import Any

# Format characters that are visible or shape visible ones; all other Cf characters hide or turn text.
_VISIBLE_CF = {*range(0x600, 0x606), 0x6DD, 0x70F, 0x890, 0x891, 0x8E2, 0x110BD, 0x110CD, *range(0x13430, 0x13460)}
_ZERO_WIDTH = {0x34F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x3164, 0xFFA0, *range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0)}


def is_dangerous(character: str) -> bool:
    """Whether a character may move a cursor, hide, or turn text around; by Unicode's own categories."""
    code = ord(character)
    category = unicodedata.category(character)
    if category in ("Cc", "Cs", "Zl", "Zp") or code in _ZERO_WIDTH:
        return True
    return category == "Cf" and code not in _VISIBLE_CF


def assert_screen_safe(output: bytes) -> None:
    """Valid UTF-8, and nothing dangerous but the LF at the ends of lines."""
    text = output.decode("utf-8")
    bad = [hex(ord(each)) for each in text if each != "\n" and is_dangerous(each)]
    assert not bad, f"raw on the screen: {bad[:10]}"


_ESCAPE = re.compile(r'\\(?:([nrt\\"])|x([0-9a-f]{2})|u([0-9a-f]{4})|U([0-9a-f]{8}))')
_NAMED = {"n": b"\n", "r": b"\r", "t": b"\t", "\\": b"\\", '"': b'"'}


def unescape(text: str) -> bytes:
    """The bytes behind the escaped text form."""
    out = b""
    at = 0
    while at < len(text):
        if text[at] != "\\":
            out += text[at].encode("utf-8")
            at += 1
            continue
        match = _ESCAPE.match(text, at)
        assert match, f"no escape: {text[at : at + 12]}"
        named, byte, short, long = match.groups()
        if named:
            out += _NAMED[named]
        elif byte:
            out += bytes([int(byte, 16)])
        else:
            out += chr(int(short or long, 16)).encode("utf-8", "surrogatepass")
        at = match.end()
    return out


_NAME = re.compile(r" ([a-z_]+)=")
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"')


def read_text_line(line: str, json_columns: set[str]) -> tuple[str, dict[str, Any]]:
    """The type and the words of a line of the text format: None, bytes, or a JSON value for ``json_columns``."""
    kind, space, rest = line.partition(" ")
    rest = space + rest
    words: dict[str, Any] = {}
    at = 0
    while at < len(rest):
        name = _NAME.match(rest, at)
        assert name, f"no name at {rest[at : at + 20]!r}"
        at = name.end()
        if rest[at] == "-" and (at + 1 == len(rest) or rest[at + 1] == " "):
            words[name[1]] = None
            at += 1
        elif name[1] in json_columns:
            words[name[1]], at = json.JSONDecoder().raw_decode(rest, at)
        elif rest[at] == '"':
            quoted = _QUOTED.match(rest, at)
            assert quoted, "an open quote"
            words[name[1]] = unescape(quoted[1])
            at = quoted.end()
        else:
            end = rest.find(" ", at)
            end = len(rest) if end < 0 else end
            words[name[1]] = rest[at:end].encode()
            at = end
    return kind, words


def from_json(value: Any) -> bytes | None:
    """The bytes behind a JSON value of a bytes column."""
    if isinstance(value, dict):
        import base64

        assert list(value) == ["base64"]
        return base64.b64decode(value["base64"], validate=True)
    return None if value is None else value.encode("utf-8", "surrogateescape")
