"""How much a look-up reads, and how many files it opens."""

from __future__ import annotations

import os
import resource
import struct
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from format import layout
from format.codecs.checksums import crc32c_of
from format.verbs.find import time_index_lookup
from tests.building import BASE_TIMESTAMP, batch
from tests.format.verbs.find.lookups import Seen, batch_of, by_max, by_offset, by_time, write_indexed

pytestmark = pytest.mark.slow


def stamped(template: bytes, count: int, timestamp: int) -> Iterator[bytes]:
    """The same v2 batch again and again, offsets and timestamps (a second apart) going on."""
    content = bytearray(template)
    records = struct.unpack_from(">i", content, 57)[0]
    for number in range(count):
        struct.pack_into(">q", content, 0, number * records)
        moment = timestamp + number * 1000
        struct.pack_into(">qq", content, 27, moment, moment + records - 1)
        struct.pack_into(">I", content, 17, crc32c_of(memoryview(content)[21:]))
        yield bytes(content)


@pytest.mark.parametrize(
    ("values", "value_bytes", "count"), [(100, 600, 1000), (3, 300, 30_000)], ids=["60 KB batches", "1 KB batches"]
)
@pytest.mark.parametrize("is_closed", [True, False])
def test_little_is_read(tmp_path: Path, values: int, value_bytes: int, count: int, is_closed: bool) -> None:
    """Of tens of megabytes a look-up reads some kilobytes and the batch found."""
    template = batch(0, [b"x" * value_bytes] * values)
    partition = tmp_path / "topic-0"
    path = partition / f"{0:020d}.log"
    partition.mkdir()
    size_bytes = len(template)
    with path.open("wb") as log:
        log.writelines(stamped(template, count, BASE_TIMESTAMP))
    step = max(1, -(-4097 // size_bytes))  # batches between two index entries
    numbers = np.arange(step, count, step)
    last_deltas = (numbers + 1) * values - 1
    positions = np.stack([last_deltas, numbers * size_bytes], axis=1).astype(">i4").tobytes()
    times = np.empty(len(numbers), [("timestamp", ">i8"), ("relative_offset", ">i4")])
    times["timestamp"], times["relative_offset"] = BASE_TIMESTAMP + numbers * 1000 + values - 1, last_deltas
    last = struct.pack(">qi", BASE_TIMESTAMP + (count - 1) * 1000 + values - 1, count * values - 1)
    stamps = times.tobytes()
    stamps += last if is_closed and not stamps.endswith(last) else b""
    padding = b"" if is_closed else bytes(1_200_000)
    path.with_suffix(".index").write_bytes(positions + padding)
    path.with_suffix(".timeindex").write_bytes(stamps + padding)
    assert path.stat().st_size > 25_000_000
    end = count * values
    for offset in (0, 1, end // 3, end // 2, end - 1, end):
        lookup = by_offset(partition, offset)
        assert (lookup.offset, lookup.codes) == (offset if offset < end else None, [])
        assert 0 < lookup.found.bytes_read < 64 * 1024 + size_bytes
    for number in (0, 1, count // 3, count - 1):
        lookup = by_time(partition, BASE_TIMESTAMP + number * 1000)
        assert (lookup.offset, lookup.codes) == (number * values, [])
        assert 0 < lookup.found.bytes_read < 64 * 1024 + size_bytes
    lookup = by_max(partition)
    assert (lookup.offset, lookup.codes) == (end - 1, [])
    assert 0 < lookup.found.bytes_read < 64 * 1024 + size_bytes


def test_few_files_are_open(tmp_path: Path) -> None:
    """Of many segments, only that which is looked into has its files open."""
    partition = tmp_path / "topic-0"
    for base_offset in range(0, 300, 3):
        write_indexed(
            partition,
            base_offset,
            [batch_of([], base_offset=base_offset, last_offset=base_offset + 2, max_timestamp=5)],
        )
    write_indexed(partition, 300, [batch(300)])
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    free = [os.dup(0) for _ in range(12)]  # other tests of this process may have left any number open
    for each in free:
        os.close(each)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(free) + 1, hard))
    try:
        answers = [by_offset(partition, 0), by_time(partition, 6), by_max(partition)]
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    nearest = answers[0].found.nearest
    assert nearest is not None
    assert [nearest.location.offset, *(each.offset for each in answers)] == [300, None, 300, 302]


_NEWEST = 1_000_000


def closed_segments(partition: Path) -> Path:
    """Two closed segments whose timestamps rise, and an active one; the log of the first is returned."""
    for first in (0, 8, 16):
        batches = [
            batch_of([(offset, 1000 + offset)], base_offset=offset, last_offset=offset, value=b"x" * 60)
            for offset in range(first, first + 8)
        ]
        write_indexed(partition, first, batches, interval_bytes=180, is_closed=first < 16)
    return partition / f"{0:020d}{layout.LOG_SUFFIX}"


def shown(lookup: Seen) -> str:
    return f"{lookup.steps} {lookup.findings} {lookup.found}"


def test_a_sound_end_needs_no_scan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    closed_segments(tmp_path / "topic-0")
    answers: list[bool] = []
    look = time_index_lookup.confirms_last_entry

    def spied(*values: object) -> bool:
        answers.append(look(*values))  # type: ignore[arg-type]
        return answers[-1]

    monkeypatch.setattr(time_index_lookup, "confirms_last_entry", spied)
    assert by_max(tmp_path / "topic-0").answer == (23, 1023)
    assert answers[:2] == [True, True]


def test_every_byte_of_the_last_headers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever byte of the last three headers is changed or cut off, both give the same."""
    log = closed_segments(tmp_path / "topic-0")
    content = log.read_bytes()
    size_bytes = len(content) // 8
    changed = [
        content[:at] + bytes((content[at] ^ bits,)) + content[at + 1 :]
        for batch in (5, 6, 7)
        for at in range(batch * size_bytes, batch * size_bytes + layout.RECORD_BATCH.size_bytes)
        for bits in (0x01, 0x80)
    ]
    for each in (content, *changed, content[:-1], content[: -size_bytes + 30], content + content[-size_bytes:]):
        log.write_bytes(each)
        quick = [shown(by_max(log.parent)), shown(by_time(log.parent, _NEWEST))]
        with monkeypatch.context() as patched:
            patched.setattr(time_index_lookup, "confirms_last_entry", lambda *values: False)
            assert [shown(by_max(log.parent)), shown(by_time(log.parent, _NEWEST))] == quick
