"""A .txnindex against the markers: what a leader, a follower and a log without its head have in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from format.checks.transaction_index import LogAround, SegmentTransactions, check_transaction_index
from format.files import transaction_index
from format.layout import TRANSACTION_INDEX_SUFFIX
from format.limits import DEFAULT_LIMITS
from format.location import Location
from format.node.partition import Segment
from format.state.producers import ProducerState
from tests.format.state.tables import table_of
from tests.format.state.test_producers import ABORT, data, marker

Entry = tuple[int, int, int, int]


def codes(
    tmp_path: Path, entries: list[Entry], rows: list[dict[str, int]], first_offset: int = 0, *, is_whole: bool = True
) -> list[str]:
    """The findings for a segment with these batches, markers all ABORT, whose index has these entries."""
    path = tmp_path / f"{0:020d}{TRANSACTION_INDEX_SUFFIX}"
    columns = [list(each) for each in zip(*entries, strict=True)]
    path.write_bytes(transaction_index.write((columns[0], columns[1], columns[2], columns[3])))
    transactions = SegmentTransactions()
    markers = {number: ABORT for number, each in enumerate(rows) if each["base_sequence"] == -1}
    transactions.add(ProducerState().feed(table_of(rows), markers))
    transactions.cover(table_of(rows))
    segment = Segment(tmp_path, 0, None, {TRANSACTION_INDEX_SUFFIX: path})
    found = check_transaction_index(
        segment,
        transactions,
        Location("orders-0/0.log", "orders", 0),
        LogAround(first_offset, is_compacted=False, is_whole=is_whole),
        DEFAULT_LIMITS,
    )
    return [each.code for each in found]


def written(base_offset: int, producer_id: int) -> dict[str, int]:
    return data(base_offset, producer_id, 0, transactional=True)


#: Producer 1 from 10 to its marker at 12; producer 2 begins at 20, producer 1 again at 15.
ROWS = [written(10, 1), marker(12, 1), written(15, 1), written(20, 2), written(25, 3)]


@pytest.mark.parametrize("stable", [13, 20])  # 20: the follower fetched the marker and producer 2's batch at once
def test_last_stable_offsets_of_leader_and_follower(tmp_path: Path, stable: int) -> None:
    assert codes(tmp_path, [(1, 10, 12, stable)], ROWS) == []


@pytest.mark.parametrize("stable", [12, 14, 15, 21, 25, 99])
def test_last_stable_offsets_of_nobody(tmp_path: Path, stable: int) -> None:
    assert codes(tmp_path, [(1, 10, 12, stable)], ROWS) == ["transaction-index-mismatch"]


def test_an_open_transaction_holds_it_back_on_a_follower_too(tmp_path: Path) -> None:
    rows = [written(8, 4), *ROWS]
    assert codes(tmp_path, [(1, 10, 12, 8)], rows) == []
    assert codes(tmp_path, [(1, 10, 12, 20)], rows) == ["transaction-index-mismatch"]


def test_a_transaction_that_began_in_the_head_that_is_gone(tmp_path: Path) -> None:
    assert codes(tmp_path, [(1, 4, 12, 13)], ROWS, first_offset=10) == []
    assert codes(tmp_path, [(1, 4, 12, 13)], ROWS, first_offset=3) == ["transaction-index-mismatch"]


def test_a_transaction_that_was_open_in_the_head_that_is_gone(tmp_path: Path) -> None:
    assert codes(tmp_path, [(1, 10, 12, 0)], ROWS, first_offset=10) == []
    assert codes(tmp_path, [(1, 10, 12, 0)], ROWS, first_offset=0) == ["transaction-index-mismatch"]


@pytest.mark.parametrize(
    ("entry", "rows", "is_right"),
    [
        ((1, 5, 12, 13), ROWS, True),  # its first batch may be among what damage took
        ((1, 11, 12, 13), ROWS, False),  # it began before that
        ((1, 10, 12, 7), ROWS, True),  # another one may have been open
        ((1, 10, 12, 13), ROWS[1:], True),  # the marker is there, its transaction is not
        ((1, 10, 12, 13), [ROWS[0], *ROWS[2:]], True),  # the marker is not there
        ((1, 10, 16, 17), ROWS, True),  # nothing is there
        ((9, 14, 15, 16), ROWS, False),  # an intact batch is there, and it is no marker
    ],
)
def test_beside_damage_only_what_intact_batches_contradict_is_wrong(
    tmp_path: Path, entry: Entry, rows: list[dict[str, int]], is_right: bool
) -> None:
    entries = [entry] if (entry[0], entry[2]) == (1, 12) else [(1, 10, 12, 13), entry]
    assert codes(tmp_path, entries, rows, is_whole=False) == ([] if is_right else ["transaction-index-mismatch"])
