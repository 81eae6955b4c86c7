"""SHA-256 for pages."""

from __future__ import annotations

import hashlib

import pytest

from kafkalog_cli.page.light_digest import sha256

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("content", [b"", b"draw()", bytes(range(256)) * 5_000])
def test_the_digest_is_that_of_hashlib(content: bytes) -> None:
    assert sha256(content).digest() == hashlib.sha256(content).digest()
