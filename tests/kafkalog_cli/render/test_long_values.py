"""A line in pieces has the bytes of a line that is made as a whole, and takes no more memory for long values."""

from __future__ import annotations

import random

import pytest

from format.columns import RECORD
from kafkalog_cli.render import text
from tests.kafkalog_cli.render.rendering import rendered

#: What values are made of: plain text, characters with escapes, bytes that are not UTF-8, and the start of a sequence.
PARTS = (
    b"plain",
    b"\x1b",
    b'"',
    b"\\",
    b",",
    "é\u202e\U0001f600\U000e0001".encode(),
    b"\xff",
    b"\xed\xa0\x80",
    b"\xe2\x80",
)
FORMATS = ("jsonl", "logfmt", "csv")


def value_of(seed: int) -> bytes:
    chance = random.Random(seed)
    parts = chance.sample(PARTS, chance.randint(1, len(PARTS)))
    return b"".join(chance.choice(parts) for _ in range(chance.randint(1, 60)))


def row(key: bytes | None, value: bytes | None, headers: list[tuple[bytes, bytes | None]]) -> tuple[object, ...]:
    kinds = {"string": "word", "bool": True}
    row: list[object] = [kinds.get(column.type, 7) for column in RECORD.columns]
    for name, each in (("topic", "t"), ("key", key), ("value", value), ("headers", headers)):
        row[RECORD.names.index(name)] = each
    return tuple(row)


@pytest.mark.parametrize("format_name", FORMATS)
def test_pieces_joined_are_the_line(format_name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [row(b"k", b"=v", []), row(None, b"-", [(b"h", None)]), row(b"k", b"", [])]
    for seed in range(300):
        headers: list[tuple[bytes, bytes | None]] = [(value_of(seed + 3), None), (b"", value_of(seed + 2))]
        rows.append(row(value_of(seed), value_of(seed + 1), headers[: seed % 3]))
    whole = rendered(format_name, (RECORD, rows))
    monkeypatch.setattr(text, "LONG_BYTES", 0)
    monkeypatch.setattr(text, "_PIECE_BYTES", 3)
    assert rendered(format_name, (RECORD, rows)) == whole


@pytest.mark.slow
@pytest.mark.parametrize("format_name", FORMATS)
def test_no_piece_of_a_long_value_is_long(format_name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pieces: list[int] = []
    long = b"\x1b" * 3_000_000
    monkeypatch.setattr("kafkalog_cli.output.OutputStream.write", lambda self, lines: pieces.append(len(lines)))
    monkeypatch.setattr("kafkalog_cli.output.OutputStream.write_text", lambda self, text: pieces.append(len(text)))
    rendered(format_name, (RECORD, [row(long, b"\xff" + long, [(b"h", long)])]))
    assert sum(pieces) > 20_000_000
    assert max(pieces) < 1_000_000
