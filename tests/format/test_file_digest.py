"""The digest of a file is that of its bytes in order, whether a thread takes them or not."""

from __future__ import annotations

import hashlib
import random
import threading

import pytest

from format.file_digest import FileDigest


@pytest.mark.parametrize("beside", [False, True])
def test_pieces_of_every_size_in_order(beside: bool) -> None:
    rng = random.Random(4)
    pieces = [rng.randbytes(size) for size in (1, 300_000, 5, 0, 131_072, 131_071, 2_000_000, 400_000, 7, 200_000)]
    digest, expected = FileDigest(beside=beside), hashlib.sha256()
    for piece in pieces:
        digest.update(memoryview(piece))
        expected.update(piece)
    assert digest.hexdigest() == expected.hexdigest()
    digest.close()
    assert not [each for each in threading.enumerate() if each.name.startswith("digest")]


def test_no_more_than_two_pieces_wait() -> None:
    digest = FileDigest(beside=True)
    content = memoryview(bytes(4 << 20))
    for _ in range(6):
        digest.update(content)
        assert len(digest._waiting) <= 2
    digest.close()
    assert not [each for each in threading.enumerate() if each.name.startswith("digest")]
