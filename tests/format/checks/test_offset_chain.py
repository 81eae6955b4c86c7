"""The chain of offsets: what does not follow, wherever the tables are cut."""

from __future__ import annotations

import random

import numpy as np
import pytest

from format.checks.offset_chain import OffsetChain
from format.findings import Finding, Severity
from format.kernel.tables import BATCH_COLUMNS
from format.location import Location
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
            table.columns[rnd.randrange(len(rows)), BATCH_COLUMNS.index(column)] += rnd.choice((-1, 1))
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
    monkeypatch.setattr("format.checks.offset_chain.KERNEL_IS_COMPILED", False)
    assert quick == all_found()


@pytest.mark.parametrize(("last", "words"), [(3, "offset 3 is in no batch"), (4, "offsets 3 to 4 are in no batch")])
def test_a_gap_is_counted_in_its_message(last: int, words: str) -> None:
    chain = OffsetChain()
    chain.start_segment(0, None)
    assert not [*chain.feed(table_of([(0, 2), (last + 1, 8)], 0), Location("t-0/0.log"), keyless_offset=0)]
    [found] = chain.end_segment(Location("t-0/0.log"))
    assert found.message.startswith(words)


@pytest.mark.parametrize(
    ("keyless_offset", "severity"), [(None, Severity.INFO), (0, Severity.WARNING), (7, Severity.INFO)]
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
