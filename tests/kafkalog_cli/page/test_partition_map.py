"""The map of a log directory: the area of a partition is what its logs use, and each state has a colour."""

from __future__ import annotations

import re
from typing import Any

from kafkalog_cli.page.page import STATES, map_of
from kafkalog_cli.render.table import human_size
from tests.corpora import REPOSITORY


def row(topic: str, state: str, **sizes: int) -> dict[str, Any]:
    known = {"path": f"/k/{topic}-0", "topic": topic, "partition": 0, "notes": None, "record_count": 3}
    return {**known, "state": state, **sizes}


def test_preallocated_indexes_take_no_room() -> None:
    """The two indexes of an active segment are 20 MiB, of which some bytes are used."""
    rows = [
        row("new", "sound", size_bytes=20 * 2**20 + 70, log_size_bytes=70),
        row("old", "sound", size_bytes=3 * 2**20, log_size_bytes=3 * 2**20 - 9),
    ]
    drawn = str(map_of(rows, "/k"))
    sizes = [int(each) for each in re.findall(r'"size":(\d+)', drawn)]
    assert sizes == [70, 3 * 2**20 - 9]
    assert f"new-0: {human_size(70)}, 3 records, sound" in drawn


def test_each_state_has_its_colours() -> None:
    style = (REPOSITORY / "kafkalog_cli/page/templates/page.css").read_text()
    for state in STATES:
        assert style.count(f"--{state}:") == style.count(f"--on-{state}:") == 2, state
