"""Indexes that mislead and damage in the log: the answer is right all the same, or a finding says why not."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from tests.building import BASE_TIMESTAMP, batch
from tests.format.verbs.find.lookups import (
    Seen,
    batch_of,
    by_max,
    by_offset,
    by_time,
    write_indexed,
)

pytestmark = pytest.mark.long


def indexed_partition(tmp_path: Path) -> Path:
    """Three segments whose timestamps wander, the last of them active."""
    partition = tmp_path / "topic-0"
    moments = iter([5, 3, 9, 7, 12, 11, 20, 14, 15, 30, 22, 25, 28, 41, 33, 36, 50, 44, 47, 48, 60])
    offset = 0
    for number in range(3):
        base_offset, batches = offset, []
        for _ in range(7):
            moment = 1000 + next(moments)
            records = [(offset, moment), (offset + 1, moment - 1)]
            batches.append(batch_of(records, base_offset=offset, last_offset=offset + 1, value=b"x" * 60))
            offset += 2
        write_indexed(partition, base_offset, batches, interval_bytes=180, is_closed=number < 2)
    return partition


def test_every_index_byte(tmp_path: Path) -> None:
    """Whatever byte of an index is changed, the answers stay right."""
    partition = indexed_partition(tmp_path)

    def answers() -> list[Seen]:
        found = [by_offset(partition, offset) for offset in (0, 9, 13, 27, 31, 40)]
        return [*found, *(by_time(partition, moment) for moment in range(1002, 1063, 9)), by_max(partition)]

    expected = [each.answer for each in answers()]
    codes = set()
    for path in sorted([*partition.glob("*.index"), *partition.glob("*.timeindex")]):
        content = path.read_bytes()
        for at in range(min(len(content), len(content.rstrip(b"\0")) + 13)):
            mask = (0x01, 0xFF, 0x80)[at % 3]
            path.write_bytes(content[:at] + bytes([content[at] ^ mask]) + content[at + 1 :])
            now = answers()
            assert [each.answer for each in now] == expected, (path.name, at, mask)
            codes |= {code for each in now for code in each.codes}
        path.write_bytes(content)
    assert codes == {"offset-index-mismatch", "time-index-mismatch", "time-index-imprecise", "index-invalid"}


@pytest.mark.parametrize("is_closed", [True, False])
def test_entries_behind_a_torn_end_are_not_wrong(tmp_path: Path, is_closed: bool) -> None:
    partition = tmp_path / "topic-0"
    moments = (1005, 1003, 1009, 1007, 1012, 1011, 1020)
    batches = [
        batch_of(
            [(2 * number, moment), (2 * number + 1, moment - 1)], base_offset=2 * number, last_offset=2 * number + 1
        )
        for number, moment in enumerate(moments)
    ]
    write_indexed(partition, 0, batches, interval_bytes=80, is_closed=is_closed)
    (log,) = partition.glob("*.log")
    content = log.read_bytes()
    starts = [sum(map(len, batches[:number])) for number in range(len(batches) + 1)]
    for size in range(starts[1] + 1, len(content)):
        log.write_bytes(content[:size])
        if size in starts:
            continue  # no byte of a torn batch is left to see
        found = [by_offset(partition, 3), by_offset(partition, 13), by_max(partition)]
        found += [by_time(partition, moment) for moment in (1001, 1008, 1020)]
        assert {code for each in found for code in each.codes} == {"tail-torn"}, size


def test_every_truncation_of_an_index(tmp_path: Path) -> None:
    partition = indexed_partition(tmp_path)
    moments = range(1001, 1063, 12)
    expected = [by_time(partition, moment).answer for moment in moments]
    for path in sorted([*partition.glob("*.index"), *partition.glob("*.timeindex")]):
        content = path.read_bytes()
        for length in range(0, min(len(content), 60), 3):
            path.write_bytes(content[:length])
            assert [by_time(partition, moment).answer for moment in moments] == expected, (path.name, length)
            assert by_offset(partition, 21).offset == 21
        path.write_bytes(content)


def test_an_entry_into_a_value(tmp_path: Path) -> None:
    """An index entry that points to the image of a batch inside a record's value is not followed."""
    partition = tmp_path / "topic-0"
    phantom = batch(6, [b"phantom"] * 10)
    carrier = batch(4, [b"x", phantom])
    log = [batch(0, [b"a"] * 4), carrier, batch(6, [b"b"] * 6), batch(12, [b"c"] * 6)]
    path = write_indexed(partition, 0, log)
    position = len(log[0]) + carrier.index(phantom)
    path.with_suffix(".index").write_bytes(struct.pack(">ii", 8, position))
    lookup = by_offset(partition, 9)
    assert (lookup.offset, lookup.codes) == (9, ["offset-index-mismatch"])
    assert lookup.match.location.position == len(log[0] + carrier)
    (found,) = lookup.findings
    assert (found.location.path, found.location.position) == (str(path.with_suffix(".index")), 0)
    assert "is wrong" in lookup.detail("offset_index")


def test_a_time_index_that_was_cut_short(tmp_path: Path) -> None:
    """A closed segment's index without its last entry would hide the segment's end."""
    partition = tmp_path / "topic-0"
    path = write_indexed(partition, 0, [batch(offset, [b"x" * 100]) for offset in range(40)], interval_bytes=500)
    write_indexed(partition, 40, [batch(40)])
    index = path.with_suffix(".timeindex")
    index.write_bytes(index.read_bytes()[:-24])
    lookup = by_time(partition, BASE_TIMESTAMP + 39)
    assert (lookup.offset, lookup.codes) == (39, ["time-index-mismatch"])


def flip(path: Path, position: int, mask: int = 0x10) -> None:
    content = bytearray(path.read_bytes())
    content[position] ^= mask
    path.write_bytes(content)


def test_a_batch_with_a_wrong_crc(tmp_path: Path) -> None:
    """It is reported; a record that can still be read is found, another is not."""
    partition = tmp_path / "topic-0"
    log = [batch(0), batch(3), batch(6)]
    path = write_indexed(partition, 0, log)
    flip(path, len(log[0] + log[1]) - 2)  # in the last record's value
    lookup = by_offset(partition, 4)
    assert (lookup.offset, lookup.codes) == (4, ["batch-crc-mismatch"])
    assert by_offset(partition, 6).codes == []
    flip(path, len(log[0]) + 61, 0xFF)  # the first record's length
    lookup = by_offset(partition, 4)
    assert lookup.codes == ["batch-crc-mismatch"]  # what cannot be decoded follows from the CRC
    assert "cannot be read" in lookup.reason
    assert by_offset(partition, 6).offset == 6
    assert by_time(partition, BASE_TIMESTAMP + 4).codes != []


def test_damage_over_the_offset(tmp_path: Path) -> None:
    """An offset in a range that cannot be read is damaged, not compacted."""
    partition = tmp_path / "topic-0"
    log = [batch(0), batch(3), batch(6), batch(9)]
    path = write_indexed(partition, 0, log)
    flip(path, len(log[0]) + 16, 0xFF)  # the magic
    lookup = by_offset(partition, 4)
    assert lookup.codes == ["log-framing-broken"]
    assert lookup.reason.startswith("offset 4 is in a batch with a damaged header: ")
    lookup = by_offset(partition, 7)
    assert (lookup.offset, lookup.codes) == (7, ["log-framing-broken"])
    flip(path, len(log[0] + log[1]) - 1, 0xFF)  # its CRC is wrong, too
    assert by_offset(partition, 4).reason.startswith("offset 4 is lost")


def test_an_entry_of_a_damaged_batch_is_not_wrong(tmp_path: Path) -> None:
    """The log is damaged there, and rebuild-index, which was advised, would not help."""
    log = [batch(number * 3) for number in range(10)]
    path = write_indexed(tmp_path / "t-0", 0, log, interval_bytes=2 * len(log[0]))
    entries = struct.iter_unpack(">ii", path.with_suffix(".index").read_bytes())
    offset, position = [each for each in entries if each[1]][1]
    flip(path, position + 16, 0xFF)  # the magic
    flip(path, position + 20, 0xFF)
    lookup = by_offset(tmp_path / "t-0", offset + 1)
    assert lookup.offset == offset + 1
    assert lookup.codes == ["log-framing-broken"]


def test_a_base_offset_that_was_hit(tmp_path: Path) -> None:
    """The base offset lies outside the CRC: a batch out of order does not hide the one that has the offset."""
    partition = tmp_path / "topic-0"
    log = [batch(0), batch(3), batch(6), batch(9)]
    path = write_indexed(partition, 0, log)
    write_indexed(partition, 12, [batch(12)])
    flip(path, len(log[0]) + 7, 3 ^ 6)  # offsets 3 to 5 become 6 to 8
    lookup = by_offset(partition, 7)
    assert (lookup.offset, lookup.codes) == (7, ["offset-not-increasing"])
    assert lookup.match.location.position == len(log[0] + log[1])
    flip(path, len(log[0]) + 4, 0x01)
    assert by_offset(partition, 7).codes == ["offset-out-of-segment"]
    assert by_offset(partition, 10).offset == 10


def test_a_largest_timestamp_that_no_record_has(tmp_path: Path) -> None:
    partition = tmp_path / "topic-0"
    write_indexed(partition, 0, [batch(0, max_timestamp=BASE_TIMESTAMP + 500)])
    lookup = by_max(partition)
    assert lookup.codes == ["max-timestamp-mismatch"]
    assert "none of its records has it" in lookup.reason


def test_the_largest_timestamp_that_a_broker_stores_for_records_from_before_1970(tmp_path: Path) -> None:
    """It is -1, "no timestamp": a broker answers that there is no such record, and nothing is wrong with the batch."""
    partition = tmp_path / "topic-0"
    write_indexed(partition, 0, [batch(0, timestamp=-5000, max_timestamp=-1)])
    lookup = by_max(partition)
    assert lookup.codes == []
    assert "none of its records has it" in lookup.reason


def test_each_finding_is_reported_once(tmp_path: Path) -> None:
    """The same damage is passed when the largest timestamp and when the record is looked for."""
    partition = tmp_path / "topic-0"
    log = [batch(offset) for offset in range(0, 90, 3)]
    path = write_indexed(partition, 0, log, without=(".index", ".timeindex"))
    flip(path, len(log[0]) * 20 + 16, 0xFF)
    lookup = by_time(partition, BASE_TIMESTAMP + 70)
    assert lookup.reason.endswith("the next one is at offset 70")
    assert lookup.codes == ["log-framing-broken"]
