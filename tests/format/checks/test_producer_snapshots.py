"""Producer snapshots against the state of a log: heads that are gone, producers that expired and came back."""

from __future__ import annotations

from pathlib import Path

import pytest

from format.checks.side_files import check_producer_snapshot
from format.files import producer_snapshot
from format.limits import DEFAULT_LIMITS, Limits
from format.location import Location
from format.state.producers import ProducerState
from tests.format.state.tables import table_of
from tests.format.state.test_producers import COMMIT, data, marker

#: Producer 1 has a batch and a marker in the log, of producer 2 only the marker is left.
ROWS = [data(10, 1, 4, transactional=True), marker(11, 1), marker(12, 2)]
WHOLE = {1: (0, 4, 10, 0, 11, 7, -1), 2: (0, 9, 6, 2, 12, 7, -1)}


def messages(
    tmp_path: Path,
    entries: dict[int, tuple[int, ...]],
    first_offset: int = 10,
    rows: list[dict[str, int]] = ROWS,
    *,
    is_compacted: bool = False,
) -> list[str]:
    path = tmp_path / f"{13:020d}.snapshot"
    columns = tuple(map(list, zip(*((key, *values) for key, values in entries.items()), strict=True)))
    path.write_bytes(producer_snapshot.write(columns))
    state = ProducerState()
    state.feed(table_of(rows), dict.fromkeys(range(len(rows) - 2, len(rows)), COMMIT))
    found = check_producer_snapshot(
        path,
        13,
        state,
        Location(str(path)),
        first_offset=first_offset,
        is_compacted=is_compacted,
        limits=DEFAULT_LIMITS,
    )
    return [each.message for each in found]


def test_what_went_with_the_head_cannot_be_compared(tmp_path: Path) -> None:
    assert messages(tmp_path, WHOLE) == []


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ((4, 0, 12, 0, 11, 7, -1), []),  # aborted batches of later epochs were removed
        ((2, 4, 10, 0, 11, 9, -1), []),  # and the content of a marker of a later coordinator
        ((1, 4, 10, 0, 11, 7, -1), ["producer 1 has producer_epoch 1 in the snapshot, but 2 in the log"]),
        ((2, 4, 10, 0, 11, 6, -1), ["producer 1 has coordinator_epoch 6 in the snapshot, but 7 in the log"]),
    ],
)
def test_in_a_compacted_log_only_a_lower_epoch_contradicts_it(
    tmp_path: Path, values: tuple[int, ...], expected: list[str]
) -> None:
    rows = [data(10, 1, 4, 2, transactional=True), marker(11, 1, 2)]
    assert messages(tmp_path, {1: values}, rows=rows, is_compacted=True) == expected
    assert messages(tmp_path, {1: values}, rows=rows) != []


def test_a_producer_that_expired_and_came_back(tmp_path: Path) -> None:
    assert messages(tmp_path, WHOLE | {1: (0, 4, 10, 0, 11, -1, -1)}) == []


def test_an_open_transaction_below_the_log_start_that_old_releases_forgot(tmp_path: Path) -> None:
    rows = [data(9, 3, 0, transactional=True), *ROWS]
    assert messages(tmp_path, WHOLE, 10, rows) == []
    (message,) = messages(tmp_path, WHOLE, 9, rows)
    assert message == "producer 3 has an open transaction in the log and is not in the snapshot"


@pytest.mark.parametrize(
    "values",
    [
        (0, 4, 11, 0, 11, 7, -1),  # 0.11: the marker as a batch of one record
        (0, 4, 10, 0, 10, 7, -1),  # 1.0 to 2.4: the timestamp of the last data batch
    ],
)
def test_what_old_releases_wrote_after_a_marker(tmp_path: Path, values: tuple[int, ...]) -> None:
    assert messages(tmp_path, WHOLE | {1: values}) == []


@pytest.mark.parametrize(
    ("producer_id", "values", "name"),
    [
        (1, (1, 4, 10, 0, 11, 7, -1), "producer_epoch"),
        (1, (0, 5, 10, 0, 11, 7, -1), "last_sequence"),
        (1, (0, 4, 10, 0, 11, 6, -1), "coordinator_epoch"),
        (2, (0, 9, 10, 2, 12, 7, -1), "last_offset"),  # within the log, where no batch of it lies
        (2, (0, 9, 6, 2, 13, 7, -1), "timestamp"),
        (1, (0, 4, 11, 1, 11, 7, -1), "last_offset"),
    ],
)
def test_what_contradicts_the_log(tmp_path: Path, producer_id: int, values: tuple[int, ...], name: str) -> None:
    found = messages(tmp_path, WHOLE | {producer_id: values})
    assert any(f"has {name}" in each for each in found)


def test_a_snapshot_over_the_limit_is_a_finding(tmp_path: Path) -> None:
    path = tmp_path / f"{13:020d}.snapshot"
    path.write_bytes(bytes(100))
    found = check_producer_snapshot(
        path, 13, ProducerState(), Location(str(path)),
        first_offset=10, is_compacted=False, limits=Limits(max_side_file_bytes=99),
    )  # fmt: skip
    assert [each.code for each in found] == ["limit-exceeded"]
