"""A .timeindex against batches: messages without timestamps, appended while the broker noted its own time."""

from __future__ import annotations

from pathlib import Path

import pytest

from format.checks.time_index import TimeIndexCheck
from format.files import time_index
from format.location import Location
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
