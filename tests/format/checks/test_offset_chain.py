"""The chain of offsets: what does not follow, wherever the tables are cut."""

from __future__ import annotations

import random

import numpy as np
import pytest

from format.checks.batches import OffsetChain
from format.findings import Finding, Severity
from format.kernel.tables import BATCH_COLUMNS
from format.location import Location
from format.log.batch_chunk import Damage
from format.log.batch_table import BatchTable

Rows = list[tuple[int, int]]


def table_of(rows: Rows, first: int) -> BatchTable:
    """Batches of these base and last offsets, each of as many records as offsets."""
    fields = [
        {"position": 100 * (first + number), "size_bytes": 100, "magic": 2, "base_offset": base}
        | {"last_offset_delta": last - base, "record_count": last - base + 1}
        for number, (base, last) in enumerate(rows)
    ]
    return BatchTable(np.array([[each.get(name, 0) for name in BATCH_COLUMNS] for each in fields], np.int64))


def fed(segments: list[Rows], cuts: random.Random | None = None) -> tuple[list[Finding], OffsetChain]:
    """The findings of segments, each fed as one table, or as several of any length."""
    chain, found = OffsetChain(), []
    for rows in segments:
        chain.start_segment(rows[0][0], None)
        first = 0
        while first < len(rows):
            last = len(rows) if cuts is None else min(len(rows), first + cuts.randrange(1, 5))
            found += list(chain.feed(table_of(rows[first:last], first), Location("t-0/0.log")))
            first = last
        found += chain.end_segment(Location("t-0/0.log"))
    return found, chain


def test_a_segment_that_repeats_another_is_one_finding() -> None:
    found, chain = fed([[(0, 4), (5, 9), (10, 14)], [(5, 9), (10, 14)]])
    assert [(each.code, each.location.offset) for each in found] == [("offset-not-increasing", 5)]
    assert chain.log_end_offset == 15


def test_after_a_repeated_batch_the_log_goes_on_without_a_gap() -> None:
    found, _ = fed([[(0, 4), (5, 9), (10, 14), (5, 9), (15, 19)]])
    assert [(each.code, each.location.offset) for each in found] == [("offset-not-increasing", 5)]


def test_the_size_of_the_last_gap() -> None:
    assert fed([[(0, 4), (7, 9), (11, 14), (15, 16)]])[1].last_gap_count == 1
    assert fed([[(0, 4), (5, 9)]])[1].last_gap_count == 0
    chain = OffsetChain()
    chain.start_segment(0, None)
    list(chain.feed(table_of([(3, 4)], 0), Location("t-0/0.log")))
    list(chain.end_segment(Location("t-0/0.log")))
    assert chain.last_gap_count == 3


@pytest.mark.parametrize("seed", range(60))
def test_the_findings_do_not_depend_on_where_tables_are_cut(seed: int) -> None:
    rnd = random.Random(seed)
    segments: list[Rows] = []
    for _ in range(rnd.randrange(1, 4)):
        rows: Rows = []
        base = rnd.choice((0, 10, 30))
        for _ in range(rnd.randrange(1, 9)):
            last = base + rnd.randrange(4)
            rows.append((base, last))
            base = max(0, last + rnd.choice((1, 1, 1, 1, 3, 0, -2, -9, 40)))
        segments.append(rows)
    whole, chain = fed(segments)
    cut, cut_chain = fed(segments, rnd)
    assert sorted(cut, key=repr) == sorted(whole, key=repr)  # within a table they come check by check
    assert cut_chain.log_end_offset == chain.log_end_offset
    assert cut_chain.last_gap_count == chain.last_gap_count


@pytest.mark.parametrize("seed", range(80))
def test_the_quick_look_of_the_kernel_changes_nothing(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rnd = random.Random(seed)
    tables, base = [], rnd.choice((0, 3))
    for number in range(12):
        rows = []
        for _ in range(rnd.randrange(1, 4)):
            rows.append((base, base + rnd.randrange(3)))
            base = rows[-1][1] + rnd.choice((1,) * 30 + (0, 2, -3))
        table = table_of(rows, number)
        if rnd.random() < 0.2:
            column = rnd.choice(("magic", "leader_epoch", "record_count", "last_offset_delta"))
            columns = table.columns.copy()
            columns[rnd.randrange(len(rows)), BATCH_COLUMNS.index(column)] += rnd.choice((-1, 1))
            table = BatchTable(columns)
        tables.append(table)

    def all_found() -> list[object]:
        chain, found = OffsetChain(), list[object]()
        for number, table in enumerate(tables):
            if number % 4 == 0:
                found += chain.end_segment(Location("t-0/0.log"))
                chain.start_segment(int(table.base_offset[0]) - (seed + number) % 3, number * 40 if number else None)
            found += chain.feed(table, Location("t-0/0.log"), keyless_offset=2 if seed % 2 else None)
            found += [chain.last_offset, chain.first_offset, chain.has_gap(1, 9), chain.may_be_compacted(9)]
        return found

    quick = all_found()
    monkeypatch.setattr("format.checks.batches.KERNEL_IS_COMPILED", False)
    assert quick == all_found()


@pytest.mark.parametrize(("last", "words"), [(3, "offset 3 is in no batch"), (4, "offsets 3 to 4 are in no batch")])
def test_a_gap_is_counted_in_its_message(last: int, words: str) -> None:
    chain = OffsetChain()
    chain.start_segment(0, None)
    assert not [*chain.feed(table_of([(0, 2), (last + 1, 8)], 0), Location("t-0/0.log"), keyless_offset=0)]
    [found] = chain.end_segment(Location("t-0/0.log"))
    assert found.message.startswith(words)


@pytest.mark.parametrize(
    ("keyless_offset", "severity"),
    [(None, Severity.INFO), (0, Severity.WARNING), (2, Severity.WARNING), (3, Severity.INFO)],
)
def test_a_gap_is_a_loss_only_after_a_record_without_a_key(keyless_offset: int | None, severity: Severity) -> None:
    chain = OffsetChain()
    chain.start_segment(0, None)
    assert not [*chain.feed(table_of([(0, 2), (6, 8)], 0), Location("t-0/0.log"), keyless_offset=keyless_offset)]
    assert (chain.has_gap(2, 6), chain.has_gap(6, 8), chain.has_gap(0, 2)) == (True, False, False)
    found = list(chain.end_segment(Location("t-0/0.log")))
    assert [(each.code, each.severity, each.lost_offsets) for each in found] == [
        ("offset-gap", severity, (3, 5) if severity > Severity.INFO else None)
    ]
    assert chain.may_be_compacted() == (severity is Severity.INFO)
    assert not chain.may_be_compacted(5)
    assert (chain.has_gap(2, 6), chain.has_gap(6, 8), chain.has_gap(0, 2)) == (True, False, False)


def test_a_batch_after_one_that_ends_at_the_largest_offset() -> None:
    largest = 2**63 - 1
    found, _ = fed([[(largest - 1, largest)], [(largest, largest)]])
    assert [each.code for each in found] == ["offset-not-increasing"]


# -- each condition, with what is just on either side of it ----------------------------------------------------------

PLACE = Location("t-0/0.log")
DAMAGE = Damage("batch-invalid", 0, 1, "bad bytes")
Found = list[tuple[str, int | None]]


def found_in(chain: OffsetChain, rows: Rows, *, keyless_offset: int | None = None, **columns: dict[int, int]) -> Found:
    """The codes and offsets of the findings of one table; ``columns`` have values of some rows."""
    numbers = table_of(rows, 0).columns.copy()
    crc_valid = np.full(len(rows), -1, np.int8)
    for row, value in columns.pop("crc_valid", {}).items():
        crc_valid[row] = value
    for name, values in columns.items():
        for row, value in values.items():
            numbers[row, BATCH_COLUMNS.index(name)] = value
    table = BatchTable(numbers, crc_valid)
    found = [*chain.feed(table, PLACE, keyless_offset=keyless_offset), *chain.end_segment(PLACE)]
    return [(each.code, each.location.offset) for each in found]


def begun(
    base_offset: int | None = 0, next_base_offset: int | None = None, *, is_compacted: bool = False
) -> OffsetChain:
    chain = OffsetChain(is_compacted=is_compacted)
    chain.start_segment(base_offset, next_base_offset)
    return chain


def test_before_the_first_batch_nothing_is_known() -> None:
    chain = begun()
    assert (chain.log_end_offset, chain.first_offset, chain.last_gap_count) == (None, None, 0)
    assert found_in(chain, []) == []
    assert chain.log_end_offset is None
    assert [found_in(chain, [(2 * number, 2 * number + 1)]) for number in range(2)] == [[], []]
    assert (chain.log_end_offset, chain.first_offset) == (4, 0)


@pytest.mark.parametrize(
    ("base_offset", "next_offset", "rows", "found"),
    [
        (0, 5, [(5, 9)], []),
        (0, 5, [(7, 9)], [("offset-gap", 7)]),
        (10, 12, [(13, 14)], [("offset-gap", 13)]),
        (10, 10, [(12, 14)], [("file-name-mismatch", 12), ("segment-missing", 12)]),
        (None, 5, [(7, 9)], [("segment-missing", 7)]),
        (0, 0, [(0, 2)], []),
        (0, 1, [(1, 2)], []),
        (0, 1, [(2, 2)], [("offset-gap", 2)]),
    ],
)
def test_reading_resumes_in_a_segment(base_offset: int | None, next_offset: int, rows: Rows, found: Found) -> None:
    chain = OffsetChain()
    chain.resume(base_offset, next_offset)
    assert chain.log_end_offset == (next_offset or None)
    assert found_in(chain, rows) == found


def test_damage_explains_the_gap_after_it_and_no_other() -> None:
    chain = begun()
    assert found_in(chain, [(0, 2)]) == []
    chain.note_damage(DAMAGE)
    assert found_in(chain, [(6, 8), (10, 11)]) == [("offset-gap", 10)]
    assert found_in(chain, [(14, 15)]) == [("offset-gap", 14)]
    chain.note_damage(DAMAGE)
    assert found_in(chain, [(3, 5)]) == [("offset-not-increasing", 3)]
    assert chain.log_end_offset == 16


def test_gaps_of_earlier_tables_are_known() -> None:
    chain = begun()
    found_in(chain, [(0, 2), (6, 8)])
    found_in(chain, [(9, 11)])
    assert [chain.has_gap(after, 20) for after in (2, 5, 6, 9)] == [True, True, False, False]
    assert [chain.may_be_compacted(offset) for offset in (5, 6)] == [False, True]


def test_the_first_record_without_a_key_is_kept() -> None:
    chain = begun()
    found_in(chain, [(0, 2)], keyless_offset=1)
    [gap] = [*chain.feed(table_of([(5, 5)], 1), PLACE), *chain.end_segment(PLACE)]
    assert gap.lost_offsets == (3, 4)
    assert "at offset 1 " in gap.message


def test_a_batch_that_compaction_made_explains_the_gaps_from_it_on() -> None:
    chain = begun()
    assert found_in(chain, [(0, 2), (4, 8), (12, 13)], record_count={1: 2}) == []
    chain = begun()
    assert found_in(chain, [(0, 2), (3, 8), (12, 13)], record_count={1: 2}, crc_valid={1: 0}) == [("offset-gap", 12)]
    chain = begun(is_compacted=True)
    assert found_in(chain, [(0, 2), (6, 8), (10, 14)], record_count={2: 2}) == []
    assert chain.may_be_compacted(0)


def test_the_first_offset_of_an_old_compressed_message_is_not_known() -> None:
    unknown = {"record_count": {1: -1}, "magic": {1: 1}}
    assert found_in(begun(), [(0, 2), (6, 8)], **unknown) == []
    assert found_in(begun(), [(0, 2), (2, 8)], **unknown) == [("offset-not-increasing", 2)]
    assert found_in(begun(), [(3, 4)], record_count={0: -1}, magic={0: 1}) == []
    assert found_in(begun(None), [(-1, 3)]) == []


def test_a_batch_without_records_proves_compaction_if_its_bytes_are_right() -> None:
    empty = {"record_count": {0: 0}}
    assert found_in(begun(), [(3, 4)], **empty) == []
    assert found_in(begun(), [(3, 4)], **empty, crc_valid={0: 0}) == [("file-name-mismatch", 3)]
    assert found_in(begun(), [(0, 2), (6, 8)], record_count={1: 0}) == []
    assert found_in(begun(), [(0, 2), (6, 8)], record_count={1: 0}, crc_valid={1: 0}) == [("offset-gap", 6)]


@pytest.mark.parametrize(
    ("epoch", "severity", "words"),
    [
        (2, Severity.ERROR, "leader epoch 2 follows 3"),
        (0, Severity.ERROR, "leader epoch 0 follows 3"),
        (-1, Severity.WARNING, "the batch has no leader epoch and follows one of epoch 3"),
    ],
)
def test_a_leader_epoch_that_falls(epoch: int, severity: Severity, words: str) -> None:
    columns = table_of([(0, 2), (3, 5)], 0).columns.copy()
    columns[:, BATCH_COLUMNS.index("leader_epoch")] = 3, epoch
    [found] = begun().feed(BatchTable(columns), PLACE)
    assert (found.code, found.severity, found.message) == ("leader-epoch-decreasing", severity, words)


@pytest.mark.parametrize(("is_compacted", "found"), [(False, [("file-name-mismatch", 3)]), (True, [])])
def test_a_segment_that_starts_after_its_name(is_compacted: bool, found: Found) -> None:
    assert found_in(begun(is_compacted=is_compacted), [(3, 4)]) == found
    assert found_in(begun(3, is_compacted=is_compacted), [(3, 4)]) == []


MOST = 2**31 - 1


@pytest.mark.parametrize(
    ("base_offset", "next_base_offset", "rows", "outside"),
    [
        (5, None, [(3, 9)], [3]),
        (5, None, [(5, 9)], []),
        (0, 8, [(5, 7)], []),
        (0, 8, [(5, 8)], [5]),
        (0, None, [(0, MOST)], []),
        (0, None, [(0, MOST + 1)], [0]),
        (None, None, [(5, 9)], []),
        (None, None, [(5, 9), (3, 4)], [3]),
    ],
)
def test_offsets_outside_a_segment(
    base_offset: int | None, next_base_offset: int | None, rows: Rows, outside: list[int]
) -> None:
    found = found_in(begun(base_offset, next_base_offset), rows)
    assert [offset for code, offset in found if code == "offset-out-of-segment"] == outside


@pytest.mark.parametrize(
    ("next_base_offset", "rows", "outside"),
    [(None, [(MOST, MOST)], []), (None, [(MOST, MOST + 1)], [MOST]), (MOST + 1, [(MOST, MOST + 1)], [MOST])],
)
def test_later_tables_end_in_the_segment_too(next_base_offset: int | None, rows: Rows, outside: list[int]) -> None:
    chain = begun(0, next_base_offset)
    assert found_in(chain, [(0, MOST - 1)]) == []
    assert found_in(chain, rows) == [("offset-out-of-segment", each) for each in outside]


def test_the_message_says_which_offsets_a_segment_may_have() -> None:
    ends = []
    for next_base_offset in (None, 8):
        [found] = begun(5, next_base_offset).feed(table_of([(3, 6)], 0), PLACE)
        ends.append(found.message.rpartition("the offsets ")[2])
    assert ends == ["from 5 on", "from 5 to 7"]


def test_a_segment_that_is_missing_between_two() -> None:
    chain = begun()
    assert found_in(chain, [(0, 4)]) == []
    chain.start_segment(9, None)
    assert found_in(chain, [(9, 10), (12, 13)]) == [("segment-missing", 9), ("offset-gap", 12)]
    for base_offset in (14, None):
        chain.start_segment(base_offset, None)
        assert found_in(chain, [(chain.log_end_offset or 0,) * 2]) == []


@pytest.mark.parametrize(
    ("base_offset", "is_compacted", "is_damaged", "found"),
    [
        (7, False, False, [("segment-missing", 7)]),
        (6, False, False, [("segment-missing", 6)]),
        (5, False, False, []),
        (3, False, False, []),
        (None, False, False, []),
        (7, True, False, []),
        (7, False, True, []),
    ],
)
def test_a_last_segment_without_batches(
    base_offset: int | None, is_compacted: bool, is_damaged: bool, found: Found
) -> None:
    chain = begun(is_compacted=is_compacted)
    assert list(chain.end_findings(PLACE)) == []
    found_in(chain, [(0, 4)])
    assert list(chain.end_findings(PLACE)) == []
    chain.start_segment(base_offset, None)
    if is_damaged:
        chain.note_damage(DAMAGE)
    assert [(each.code, each.location.offset) for each in chain.end_findings(PLACE)] == found


def test_batches_before_the_offset_of_their_segment_are_no_missing_segment() -> None:
    chain = begun()
    found_in(chain, [(0, 4)])
    chain.start_segment(20, None)
    assert found_in(chain, [(5, 9)]) == [("offset-out-of-segment", 5)]
    assert list(chain.end_findings(PLACE)) == []
    chain = begun(None)
    found_in(chain, [(30, 34), (0, 4)], record_count={0: 2})  # compaction made the batch at 30
    chain.start_segment(30, None)
    assert list(chain.end_findings(PLACE)) == []


def test_what_is_expected_and_what_is_lost() -> None:
    [found] = begun().feed(table_of([(0, 4), (3, 9)], 0), PLACE)
    assert (found.expected, found.actual) == (5, 3)
    chain = begun()
    found_in(chain, [(0, 4)], keyless_offset=0)
    chain.start_segment(9, None)
    [missing, gap] = [*chain.feed(table_of([(9, 9), (12, 12)], 0), PLACE), *chain.end_segment(PLACE)]
    assert (missing.code, missing.severity, missing.lost_offsets) == ("segment-missing", Severity.ERROR, (5, 8))
    assert (gap.code, gap.severity, gap.lost_offsets) == ("offset-gap", Severity.WARNING, (10, 11))
