"""Reading the values of JSON lines output back: bytes and headers, which the output keeps lossless."""

from __future__ import annotations

import base64
from typing import Any


def to_bytes(printed: str | dict[str, str] | None) -> bytes | None:
    """The bytes behind a printed key, value or header: a string is UTF-8, an object holds base64."""
    if printed is None:
        return None
    if isinstance(printed, str):
        return printed.encode("utf-8")
    assert list(printed) == ["base64"]
    return base64.b64decode(printed["base64"], validate=True)


def to_headers(printed: list[list[Any]] | None) -> list[tuple[bytes, bytes | None]]:
    """The headers behind a printed list of pairs; null, for a format without headers, is the empty list."""
    pairs = [(to_bytes(key), to_bytes(value)) for key, value in printed or []]
    return [(key, value) for key, value in pairs if key is not None]
