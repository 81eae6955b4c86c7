"""The CRC of a range of bytes, both polynomials, against the libraries."""

from __future__ import annotations

import zlib

import crc32c
from hypothesis import given
from hypothesis import strategies as st

from format.codecs.checksums import crc_tables
from format.kernel.crc import LEGACY_TABLES, crc_of


@given(st.binary(max_size=200), st.integers(0, 50))
def test_agrees_with_the_libraries(content: bytes, start: int) -> None:
    start = min(start, len(content))
    tables, source = memoryview(crc_tables()), memoryview(content)
    assert crc_of(source, start, len(content), tables, 0) == crc32c.crc32c(content[start:])
    assert crc_of(source, start, len(content), tables, LEGACY_TABLES) == zlib.crc32(content[start:])
