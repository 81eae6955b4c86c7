"""When several processes pay."""

from __future__ import annotations

import os
from pathlib import Path

from format.limits import MIB
from format.scan.drivers import is_worth_sharing, size_of
from format.scan.protocol import Cost
from tests.building import batch, batches, write_segment

COST = Cost(batch_s=1e-6, byte_s=1e-9, compressed_byte_s=10e-9)


def test_much_to_do_is_shared(tmp_path: Path) -> None:
    """Whatever is in the largest log counts for all: its batches, its bytes, and whether they are compressed."""
    plain = write_segment(tmp_path / "plain-0", 0, [batch(0, [b"x" * 100_000], codec=0), *batches(2, 1)])
    packed = write_segment(tmp_path / "packed-0", 0, [batch(0, [os.urandom(100_000)], codec=4), *batches(2, 1)])
    small = write_segment(tmp_path / "small-0", 0, batches(3))
    assert not is_worth_sharing([plain, packed, small], COST)
    for path in (plain, packed):
        os.truncate(path, 40 * MIB)  # a hole: what its first batches say counts
    assert not is_worth_sharing([plain], COST)
    assert is_worth_sharing([packed, small], COST)
    assert is_worth_sharing([plain], Cost(1e-6, 10e-9, 10e-9))
    os.truncate(plain, 400 * MIB)
    assert is_worth_sharing([small, plain], COST)


def test_small_batches_cost_more(tmp_path: Path) -> None:
    path = write_segment(tmp_path / "small-0", 0, batches(500))
    os.truncate(path, 40 * MIB)
    assert is_worth_sharing([path], COST)
    assert not is_worth_sharing([path], Cost(1e-9, 1e-9, 1e-9))


def test_what_cannot_be_read_is_not_shared(tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.touch()
    os.truncate(empty, 40 * MIB)
    assert size_of(tmp_path / "nothing") == 0
    assert not is_worth_sharing([tmp_path / "nothing"], COST)
    assert not is_worth_sharing([tmp_path], COST)
    assert not is_worth_sharing([empty], Cost(1.0, 1.0, 1.0))
