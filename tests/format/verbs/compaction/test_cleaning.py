"""A run of the cleaner on built logs, against a loop over the records as the cleaner's source describes it."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from format.location import Location
from format.log.encode_batches import BatchHeader, encode_batch
from format.scan.protocol import LogUnit
from format.verbs.compaction.cleaning import Cleaned, CleanedSegment, CleaningTerms, clean
from tests.building import write_segment
from tests.record_encoder import NewRecord, encode_record

BATCHES_OF_A_SEGMENT = 6
NOW = 1_800_000_000_000

Record = tuple[int, bytes | None, bytes | None]


def drawn_batches(seed: int) -> list[list[Record]]:
    draw = random.Random(seed)
    batches: list[list[Record]] = []
    offset = 0
    for _ in range(3 * BATCHES_OF_A_SEGMENT):
        records: list[Record] = []
        for _ in range(draw.randrange(1, 6)):
            key = None if draw.random() < 0.1 else b"key-%d" % draw.randrange(12)
            records.append((offset, key, None if draw.random() < 0.2 else b"v" * draw.randrange(80)))
            offset += 1
        batches.append(records)
    return batches


def encoded(records: list[Record]) -> bytes:
    base = records[0][0]
    content = b"".join(encode_record(NewRecord(at - base, at - base, key, value, ())) for at, key, value in records)
    last = records[-1][0] - base
    return encode_batch(
        BatchHeader(
            base_offset=base, last_offset_delta=last, record_count=len(records), base_timestamp=NOW - 10_000,
            max_timestamp=NOW - 10_000 + last,
        ),
        content,
        codec=0,
    )  # fmt: skip


def cleaned(directory: Path, batches: list[list[Record]], first_dirty: int, most_keys: int) -> Cleaned:
    segments = []
    for start in range(0, len(batches), BATCHES_OF_A_SEGMENT):
        some = batches[start : start + BATCHES_OF_A_SEGMENT]
        path = write_segment(directory, some[0][0][0], [encoded(each) for each in some])
        unit = LogUnit(path, Location(str(path)), None, next_base_offset=2**62)
        segments.append(CleanedSegment(unit, some[0][0][0], some[-1][-1][0] + 1, NOW))
    end = batches[-1][-1][0] + 1
    return clean(segments, CleaningTerms(NOW, first_dirty, end, 1000, 0, most_keys, with_offsets=True))


def expected(batches: list[list[Record]], first_dirty: int, most_keys: int) -> tuple[list[int], int, bool]:
    """The offsets that stay, where the next run begins, and whether the map was full."""
    latest: dict[bytes, int] = {}
    covered = -1
    is_full = False
    for records in batches:
        if records[-1][0] < first_dirty:
            continue
        for offset, key, _ in records:
            if key is None or offset < first_dirty or is_full:
                continue
            if len(latest) >= most_keys:
                is_full = True
            else:
                latest[key] = offset
        if is_full:
            break
        covered = records[-1][0]
    rewritten = [each for at in range(0, len(batches), BATCHES_OF_A_SEGMENT)
                 for batch in batches[at : at + BATCHES_OF_A_SEGMENT] for each in batch
                 if batches[at][0][0] < covered + 1]  # fmt: skip
    kept = [
        offset
        for offset, key, _ in rewritten
        if offset > covered or (key is not None and offset >= latest.get(key, -1))
    ]
    return kept, covered + 1, is_full


@pytest.mark.parametrize("seed", range(12))
def test_equals_the_loop(tmp_path: Path, seed: int) -> None:
    batches = drawn_batches(seed)
    first_dirty = batches[BATCHES_OF_A_SEGMENT][0][0] if seed % 3 == 0 else 0
    fullness = 0
    for most_keys in (1000, 7, 3):
        kept, end_offset, is_full = expected(batches, first_dirty, most_keys)
        found = cleaned(tmp_path / str(most_keys), batches, first_dirty, most_keys)
        assert [each for column in found.kept_offsets for each in column.tolist()] == kept
        assert (found.end_offset, found.is_full) == (end_offset, is_full)
        assert found.kept_records == len(kept)
        fullness += is_full
    assert fullness == 2


def test_a_map_that_may_be_full_takes_all_tables_of_a_chunk(tmp_path: Path) -> None:
    batches = [[(n, b"a", b"v" * 900_000) for n in range(3)], [(3, b"b", b"v"), (4, b"b", b"w")]]
    found = cleaned(tmp_path, batches, 0, 3)
    assert (found.is_full, found.key_count, found.end_offset) == (False, 2, 5)
    assert [each for column in found.kept_offsets for each in column.tolist()] == [2, 4]


def test_bytes_of_a_batch_made_anew(tmp_path: Path) -> None:
    """What is predicted is what the program's own encoder makes of the records that stay."""
    first = [(0, b"a", b"x" * 70), (1, b"b", b"y"), (2, b"a", b"z" * 300)]
    batches = [first, [(3, b"b", b"w")]]
    found = cleaned(tmp_path, batches, 0, 1000)
    records = encode_record(NewRecord(2, 0, b"a", b"z" * 300, ()))
    header = BatchHeader(base_offset=0, last_offset_delta=2, record_count=1, base_timestamp=1, max_timestamp=1)
    anew = encode_batch(header, records, codec=0)
    assert found.kept_bytes == len(anew) + len(encoded(batches[1]))
    assert found.read_bytes == sum(len(encoded(each)) for each in batches)


def test_only_a_record_without_a_value_is_a_tombstone(tmp_path: Path) -> None:
    found = cleaned(tmp_path, [[(0, b"a", b""), (1, b"b", None)]], 0, 1000)
    assert (found.kept_records, found.tombstone_count) == (2, 1)
