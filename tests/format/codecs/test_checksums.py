"""The checksums against their published check values."""

from __future__ import annotations

import pytest

from format.codecs.checksums import crc32_of, crc32c_of

#: Both are the published check values of "123456789" (the catalogue of CRC algorithms), and of 32 zeros (RFC 3720).
CRC32_CHECK, CRC32C_CHECK, CRC32C_OF_ZEROS = 0xCBF43926, 0xE3069283, 0x8A9136AA


def test_check_values() -> None:
    assert crc32_of(b"123456789") == CRC32_CHECK
    assert crc32c_of(b"123456789") == CRC32C_CHECK
    assert crc32c_of(bytes(32)) == CRC32C_OF_ZEROS
    assert crc32_of(b"") == crc32c_of(b"") == 0


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview, lambda raw: memoryview(b"ab" + raw + b"c")[2:-1]])
def test_any_buffer(kind: object) -> None:
    assert callable(kind)
    assert crc32_of(kind(b"123456789")) == CRC32_CHECK
    assert crc32c_of(kind(b"123456789")) == CRC32C_CHECK
