"""A base offset, which no CRC covers, with one bit flipped: the batch with the false one is found, and no other."""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from format.files import offset_index, time_index
from format.io.source import FileSource
from format.layout import MAX_RELATIVE_OFFSET
from format.limits import DEFAULT_LIMITS
from format.location import Location
from format.log.after_damage.longest_chain import Rival
from format.log.after_damage.offset_range import OffsetRange
from format.log.encode_batches import encode_message
from format.rewriting.index_builder import IndexedOffsets
from format.rewriting.intact_batches import SegmentScan, scan_segment
from format.verbs.verify.verify import verify
from tests.building import BASE_TIMESTAMP, batch, batches, wrapper, write_segment

Log = list[bytes]
_START = 100
#: All bits of the lowest byte, in which a small change is, and one of each other byte.
BITS = (*range(56, 64), *range(0, 56, 9))


def idempotent(count: int, values: int, *, key: bytes | None = None) -> Log:
    producer = {"producer_id": 7, "producer_epoch": 0}
    return [
        batch(number * values, [b"v"] * values, key=key, base_sequence=number * values, **producer)
        for number in range(count)
    ]


def messages(magic: int) -> Log:
    return [encode_message(magic, offset, b"k", b"v", timestamp=BASE_TIMESTAMP + offset) for offset in range(8)]


def compacted() -> Log:
    places = ((0, 2), (5, 3), (9, 1), (20, 4), (40, 2), (42, 2), (60, 1))
    return [batch(offset, [b"v"] * count) for offset, count in places]


def base_offset_of(content: bytes) -> int:
    (offset,) = struct.unpack_from(">q", content)
    return int(offset)


def with_bit_flipped(content: bytes, bit: int) -> bytes:
    changed = bytearray(content)
    changed[bit // 8] ^= 1 << (bit % 8)
    return bytes(changed)


def scan(path: Path) -> SegmentScan:
    with FileSource(path) as source:
        indexed = IndexedOffsets(Location(str(path), "t", 0, int(path.stem)), DEFAULT_LIMITS)
        offsets = OffsetRange(int(path.stem), int(path.stem) + MAX_RELATIVE_OFFSET)
        return scan_segment(source, offsets, DEFAULT_LIMITS, indexed=indexed)


def judged(directory: Path, log: Log, number: int) -> Counter[str]:
    """What is concluded for each bit of the base offset of one batch."""
    found: Counter[str] = Counter()
    start = _START if base_offset_of(log[0]) > _START else 0
    first_offset = int(scan(write_segment(directory, start, log)).table.base_offset[number])
    for bit in BITS:
        path = write_segment(directory, start, [*log[:number], with_bit_flipped(log[number], bit), *log[number + 1 :]])
        result = scan(path)
        dropped = np.flatnonzero(~result.is_kept).tolist()
        right = int(result.placement.right_offset[number])
        if not dropped:
            found["kept"] += 1
        elif dropped != [number]:
            found["not known" if (result.placement.rival[dropped] != Rival.NONE).all() else "wrong"] += 1
        else:
            found["proven" if right == first_offset else "dropped" if right < 0 else "wrong"] += 1
    return found


ORDINARY: dict[str, Callable[[], Log]] = {
    "single records": lambda: batches(8, values=1),
    "three records": lambda: batches(8),
    "ten records": lambda: batches(4, values=10),
    "two batches": lambda: batches(2, values=5),
    "idempotent": lambda: idempotent(6, 3),
    "v0": lambda: messages(0),
    "v1": lambda: messages(1),
    "compressed v1": lambda: [wrapper(1, _START + 3 * number) for number in range(6)],
}


@pytest.mark.parametrize("name", ORDINARY)
def test_where_all_offsets_are_there_the_false_one_is_proven(tmp_path: Path, name: str) -> None:
    log = ORDINARY[name]()
    for number in sorted({0, len(log) // 2} - {len(log) - 1}):
        assert judged(tmp_path / "t-0", log, number) == {"proven": len(BITS)}, number


@pytest.mark.parametrize("name", ORDINARY)
def test_the_last_batch_is_proven_by_an_index_or_a_sequence(tmp_path: Path, name: str) -> None:
    log = ORDINARY[name]()
    last = len(log) - 1
    found = judged(tmp_path / "t-0", log, last)
    assert set(found) == ({"proven"} if name == "idempotent" else {"kept", "dropped"})
    end = base_offset_of(log[last])
    start = _START if end > _START else 0
    entries = np.array([BASE_TIMESTAMP + end]), np.array([end - start])
    (tmp_path / "t-0" / f"{start:020d}.timeindex").write_bytes(time_index.write(entries))
    found = judged(tmp_path / "t-0", log, last)
    # An offset that the index names may also be one of the batch at its false offset.
    assert set(found) <= {"proven", "kept"}
    assert found["proven"] >= len(BITS) - (name == "compressed v1")


def test_a_sequence_proves_nothing_in_a_log_that_may_be_compacted(tmp_path: Path) -> None:
    """The batch of another producer may have been removed before the last one."""
    log = idempotent(6, 3, key=b"k")
    log[5] = struct.pack(">q", 18) + log[5][8:]
    assert scan(write_segment(tmp_path / "t-0", 0, log)).is_kept.all()
    assert not [each for each in verify(tmp_path / "t-0") if each.severity > 1]


def test_verify_names_a_last_batch_with_a_false_offset(tmp_path: Path) -> None:
    log = idempotent(6, 3)
    log[5] = struct.pack(">q", 18) + log[5][8:]
    write_segment(tmp_path / "t-0", 0, log)
    [found] = [each for each in verify(tmp_path / "t-0") if each.severity > 1]
    assert (found.code, found.location.offset, found.expected, found.actual) == ("batch-invalid", 18, 15, 18)


def test_of_a_compacted_log_nothing_is_said_that_is_not_known(tmp_path: Path) -> None:
    log = compacted()
    for number in range(len(log)):
        found = judged(tmp_path / "t-0", log, number)
        assert not set(found) & {"wrong"}, number
        assert found["dropped"] >= len(BITS) / 3


def test_an_offset_index_decides_where_there_is_room_for_both(tmp_path: Path) -> None:
    """Either of two batches fits elsewhere; the entry for the right one says which."""
    log = [batch(0, [b"v"] * 2), batch(30, [b"v"] * 4), batch(40, [b"v"] * 4), batch(90, [b"v"])]
    path = write_segment(tmp_path / "t-0", 0, log)
    positions = np.cumsum([0, *map(len, log)])
    false = struct.pack(">q", 42) + log[1][8:]
    write_segment(tmp_path / "t-0", 0, [log[0], false, *log[2:]])
    assert (scan(path).placement.rival != Rival.NONE).sum() == 1
    entries = np.array([43]), positions[2:3]
    path.with_suffix(".index").write_bytes(offset_index.write((entries[0], entries[1])))
    found = scan(path)
    assert found.is_kept.tolist() == [True, False, True, True]
    assert (found.placement.rival == Rival.NONE).all()
