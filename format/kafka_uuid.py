"""Kafka's Uuid as text: 16 bytes in URL-safe base64 without padding, 22 characters."""

from __future__ import annotations

import base64
import binascii
import re

ZERO_UUID = "AAAAAAAAAAAAAAAAAAAAAA"
_TEXT = re.compile(r"[A-Za-z0-9_-]{22}(?:==)?")
_RESERVED_BELOW = 100


def is_reserved(uuid: str) -> bool:
    """Whether an id is one of the numbers below 100, which Kafka keeps for itself: their 16 bytes begin with zeros."""
    return int.from_bytes(base64.urlsafe_b64decode(uuid + "=="), "big") < _RESERVED_BELOW


def is_uuid(text: str) -> bool:
    """Whether the text is one that Kafka's Uuid.fromString takes: 22 characters, with or without padding."""
    return _TEXT.fullmatch(text) is not None


def canonical_uuid(text: str) -> str:
    """The same uuid as Kafka itself writes it: no padding, the four unused bits zero. ValueError for no uuid.

    Several texts name one uuid, because the last character carries only two bits of it.
    """
    if not is_uuid(text):
        raise ValueError("not a uuid in URL-safe base64")
    try:
        return base64.urlsafe_b64encode(base64.urlsafe_b64decode(text[:22] + "==")).rstrip(b"=").decode("ascii")
    except binascii.Error as error:
        raise ValueError("not a uuid in URL-safe base64") from error
