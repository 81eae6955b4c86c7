"""Addresses of remote files without what is not part of the path: the query with options, and access keys."""

from __future__ import annotations

import os
import re

_S3_KEYS = re.compile(r"^(s3[an]?://)[^/@]*@", re.IGNORECASE)
_AZURE_KEY = re.compile(r"^(abfss?://[^/@:]*):[^/@]*@", re.IGNORECASE)


def without_query(address: str) -> str:
    """The address without its query, and without access keys before the name of a bucket or account."""
    address = re.sub(r"\?[A-Za-z_]+=.*$", "", address)
    return _S3_KEYS.sub(r"\1", _AZURE_KEY.sub(r"\1@", address))


def has_listings(path: str | os.PathLike[str]) -> bool:
    """Whether directories can be listed where a path is; a web server has only single files."""
    return not os.fspath(path).lower().startswith(("http://", "https://"))
