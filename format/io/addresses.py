"""The parts of an address that are not part of a path: options behind it, and keys in it."""

from __future__ import annotations

import re

_S3_KEYS = re.compile(r"^(s3[an]?://)[^/@]*@", re.IGNORECASE)
_AZURE_KEY = re.compile(r"^(abfss?://[^/@:]*):[^/@]*@", re.IGNORECASE)


def without_query(address: str) -> str:
    """An address without its options, and without the keys before a bucket's or account's name."""
    address = re.sub(r"\?[A-Za-z_]+=.*$", "", address)
    return _S3_KEYS.sub(r"\1", _AZURE_KEY.sub(r"\1@", address))
