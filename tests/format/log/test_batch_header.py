"""Headers read one by one, and the same headers as the kernel reads them."""

from __future__ import annotations

import struct
import zlib

import pytest

from format import layout
from format.log.batch_header import headers_in, read_header
from tests.sources import BytesSource


def message(magic: int, length: int) -> bytes:
    """A v0 or v1 message of a given length under the right CRC; too short a message lacks its last fields."""
    covered = (bytes([magic, 0]) + b"\xff" * 64)[: length - 4]
    return struct.pack(">qiI", 7, length, zlib.crc32(covered)) + covered


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("length", range(layout.MIN_MESSAGE_LENGTH - 2, layout.MIN_V1_MESSAGE_LENGTH + 3))
def test_one_header_is_what_the_kernel_reads(magic: int, length: int) -> None:
    """A message that is too short for its magic is no message, whatever its CRC says."""
    source = BytesSource(message(magic, length) + bytes(100))
    least = layout.MIN_V1_MESSAGE_LENGTH if magic == 1 else layout.MIN_MESSAGE_LENGTH
    header = read_header(source, 0)
    assert (header is not None) == (length >= least)
    assert len(headers_in(memoryview(source.read_at(0, 100)), 0)) == (length >= least)
