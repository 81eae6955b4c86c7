"""Escapes: complete against Unicode's own tables, and lossless."""

from __future__ import annotations

import json

import pytest
from hypothesis import given

from kafkalog_cli.render.text import (
    UNSAFE_RANGES,
    escape_bytes,
    escape_json,
    escape_text,
    printable,
    shown_on_terminal,
)
from tests.kafkalog_cli.hostile import HOSTILE_TEXTS, byte_strings, texts
from tests.kafkalog_cli.reading import assert_screen_safe, is_dangerous, unescape


def test_every_dangerous_code_point_is_escaped_in_every_form():
    for code in range(0x110000):
        character = chr(code)
        if is_dangerous(character):
            for escaped in (escape_text(character), printable(character), escape_json(f'"{character}"').strip('"')):
                assert escaped.isascii(), hex(code)
                assert escaped.startswith("\\"), hex(code)


def test_letters_of_every_script_stay():
    for text in ("plain", "Grüße", "日本語", "العربية", "עברית", "हिन्दी", "😀", "e\u0301", "a\u00a0b"):
        assert escape_text(text) == printable(text) == text


def test_the_ranges_are_sorted_and_apart():
    flat = [bound for pair in UNSAFE_RANGES for bound in pair]
    assert flat == sorted(flat)


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("a\nb\t\r\\", "a\\nb\\t\\r\\\\"),
        ("\x1b[2J", "\\x1b[2J"),
        ("\x7f", "\\x7f"),
        ("\x85", "\\u0085"),
        ("\u202e", "\\u202e"),
        ("\U000e0041", "\\U000e0041"),
        ("\udcff", "\\xff"),
        ("\ud800", "\\ud800"),
        ("\\x41", "\\\\x41"),
    ],
)
def test_text_form(text, escaped):
    assert escape_text(text) == escaped


def test_a_message_keeps_its_single_backslash():
    assert printable("C:\\x\n") == "C:\\x\\n"


@given(byte_strings)
def test_bytes_can_be_read_back(value):
    assert unescape(escape_bytes(value)) == value
    assert_screen_safe(escape_bytes(value).encode())


@given(texts)
def test_json_strings_can_be_read_back(text):
    from kafkalog_cli.render.text import json_string

    literal = json_string(text)
    assert json.loads(literal) == text
    assert_screen_safe(literal.encode())


@pytest.mark.parametrize("text", [*HOSTILE_TEXTS, "\ud800", "\ud800\udc00"])
def test_nothing_crashes(text):
    assert_screen_safe(printable(text).encode())
    assert_screen_safe(escape_text(text).encode())


def test_lines_on_a_terminal_keep_their_ends_and_tabs():
    lines = "a\tb \\ ü\x1b]52;c;QQ==\x07\n\u202e\x9b2J\n".encode() + b"\xff\n"
    shown = "a\tb \\ ü\\x1b]52;c;QQ==\\x07\n\\u202e\\u009b2J\n\\xff\n"
    assert shown_on_terminal(lines).decode() == shown
    assert shown_on_terminal(memoryview(lines)).decode() == shown
