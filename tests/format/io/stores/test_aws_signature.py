"""Signatures are those of the examples in Amazon's documentation of signature version 4."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from format.io.stores.aws_credentials import Credentials
from format.io.stores.aws_signature import Scope, encoded_path, encoded_query, signed_headers

pytestmark = pytest.mark.slow

_EXAMPLE = Credentials("AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY")
_MOMENT = datetime(2013, 5, 24, tzinfo=UTC)
_HOST = {"Host": "examplebucket.s3.amazonaws.com"}


def _signature(target: str, **headers: str) -> str:
    signed = signed_headers("GET", target, {**_HOST, **headers}, _EXAMPLE, Scope("us-east-1"), _MOMENT)
    return signed["authorization"].rpartition("=")[2]


def test_the_signature_of_a_ranged_read() -> None:
    expected = "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"
    assert _signature("/test.txt", Range="bytes=0-9") == expected


def test_the_signature_of_a_listing() -> None:
    expected = "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"
    assert _signature(f"/?{encoded_query([('prefix', 'J'), ('max-keys', '2')])}") == expected


def test_names_are_encoded_once() -> None:
    assert encoded_path("/a b/ü+~.log") == "/a%20b/%C3%BC%2B~.log"
    assert encoded_query([("prefix", "a/b c"), ("delimiter", "/")]) == "delimiter=%2F&prefix=a%2Fb%20c"


def test_a_session_token_is_signed() -> None:
    credentials = Credentials("a", "b", "token")
    signed = signed_headers("GET", "/", {"host": "h"}, credentials, Scope("r"), _MOMENT)
    assert signed["x-amz-security-token"] == "token"
    assert "x-amz-security-token" in signed["authorization"]
