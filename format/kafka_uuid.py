"""Kafka's Uuid as text: 16 bytes in URL-safe base64 without padding, 22 characters."""

from __future__ import annotations

import base64
import binascii
import re

ZERO_UUID = "AAAAAAAAAAAAAAAAAAAAAA"
_TEXT = re.compile(r"[A-Za-z0-9_-]{22}(?:==)?")
_RESERVED_BELOW = 100


def is_reserved(uuid: str) -> bool:
    """Whether an id, as a number, is below 100: Kafka reserves those (``DirectoryId.reserved``)."""
    return int.from_bytes(base64.urlsafe_b64decode(uuid + "=="), "big") < _RESERVED_BELOW


def is_uuid(text: str) -> bool:
    """Whether Kafka's ``Uuid.fromString`` accepts the text: 22 characters, with or without padding."""
    return _TEXT.fullmatch(text) is not None


def canonical_uuid(text: str) -> str:
    """The uuid as Kafka writes it: without padding, and with zeros in the four unused bits.

    Several texts stand for the same uuid, because only two bits of the last character count. Raises ValueError for a
    text that is not a uuid.
    """
    if not is_uuid(text):
        raise ValueError("not a uuid in URL-safe base64")
    try:
        return base64.urlsafe_b64encode(base64.urlsafe_b64decode(text[:22] + "==")).rstrip(b"=").decode("ascii")
    except binascii.Error as error:
        raise ValueError("not a uuid in URL-safe base64") from error
