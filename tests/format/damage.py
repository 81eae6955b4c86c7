"""Systematic damage to a small file: every byte changed, every truncation."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from format.errors import KafkaLogError
from tests.sources import BytesSource

#: Each bit flipped, all flipped, and through ``_VALUES`` the bytes that mean something in text.
_MASKS = (0x01, 0x02, 0x04, 0x08, 0x10, 0x20, 0x40, 0x80, 0xFF)
_VALUES = b"\x00\x09\n\r -+#\\:=09{"


def single_byte_changes(content: bytes) -> Iterator[bytes]:
    """The content with one byte changed, for every byte and a choice of values."""
    for at, old in enumerate(content):
        for new in {old ^ mask for mask in _MASKS} | set(_VALUES) - {old}:
            yield content[:at] + bytes([new]) + content[at + 1 :]


def truncations(content: bytes) -> Iterator[bytes]:
    """Every shorter beginning of the content."""
    for length in range(len(content)):
        yield content[:length]


def outcomes(read: Callable[[BytesSource], Any], damaged: Iterator[bytes]) -> Iterator[tuple[bytes, Any]]:
    """What reading each damaged file gives: the result, or the KafkaLogError; any other exception passes through."""
    for content in damaged:
        try:
            yield content, read(BytesSource(content))
        except KafkaLogError as error:
            str(error)
            yield content, error
