"""A .timeindex against batches: messages without timestamps, appended while the broker noted its own time."""

from __future__ import annotations

from pathlib import Path

import pytest

from format.checks.side_files import TimeIndexCheck
from format.files import time_index
from format.location import Location
from format.timestamps import iso_time
from tests.format.state.tables import row, table_of

APPENDED = 1_700_000_000_000


@pytest.mark.parametrize(
    ("magic", "code"), [(0, "time-index-imprecise"), (1, "time-index-mismatch"), (2, "time-index-mismatch")]
)
@pytest.mark.parametrize("is_cut", [False, True])
def test_times_that_the_messages_lack(tmp_path: Path, magic: int, code: str, is_cut: bool) -> None:
    path = tmp_path / f"{0:020d}.timeindex"
    path.write_bytes(time_index.write(([APPENDED], [1])))
    check = TimeIndexCheck(time_index.read(path, 0), Location(str(path)))
    rows = [row(0, -1, magic=magic, max_timestamp=-1), row(1, -1, magic=1, max_timestamp=-1), row(2, -1, magic=1)]
    for each in [[part] for part in rows] if is_cut else [rows]:
        check.feed(table_of(each))
    assert [each.code for each in check.findings(None, is_closed=True)] == [code]


@pytest.mark.parametrize(
    ("entry", "code"),
    [
        ((APPENDED + 9, 12), None),  # a damaged batch may have that time
        ((APPENDED, 12), "time-index-mismatch"),  # the intact one of offset 12 has a later one
        ((APPENDED + 5, 11), None),  # the damaged batch
    ],
)
def test_past_damage_an_intact_batch_with_a_later_time_shows_an_entry_to_be_wrong(
    tmp_path: Path, entry: tuple[int, int], code: str | None
) -> None:
    path = tmp_path / f"{0:020d}.timeindex"
    path.write_bytes(time_index.write(([entry[0]], [entry[1]])))
    check = TimeIndexCheck(time_index.read(path, 0), Location(str(path)))
    check.feed(table_of([row(10, -1, max_timestamp=APPENDED), row(12, -1, max_timestamp=APPENDED + 5)]))
    found = list(check.findings(10, is_closed=False))
    assert [each.code for each in found] == ([] if code is None else [code])
    assert all(each.message.endswith(f"it is {iso_time(APPENDED + 5)} or larger") for each in found)


@pytest.mark.parametrize(
    ("entry", "codes"), [((APPENDED, 11), ["time-index-mismatch"]), ((-1, 11), []), ((-1, 10), [])]
)
def test_an_entry_in_no_batch_and_one_that_no_broker_writes(
    tmp_path: Path, entry: tuple[int, int], codes: list[str]
) -> None:
    path = tmp_path / f"{0:020d}.timeindex"
    path.write_bytes(time_index.write(([entry[0]], [entry[1]])))
    index = time_index.read(path, 0)
    assert bool(index.problems) == (entry[0] < 0)  # reported once, by the reader of the file
    check = TimeIndexCheck(index, Location(str(path)))
    check.feed(table_of([row(10, -1, max_timestamp=APPENDED), row(12, -1, max_timestamp=APPENDED)]))
    assert [each.code for each in check.findings(None, is_closed=False)] == codes
