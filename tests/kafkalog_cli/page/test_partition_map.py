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
    drawn = map_of(rows, "/k")
    assert drawn is not None
    sizes = [int(each) for each in re.findall(r'"size":(\d+)', drawn.data)]
    assert sizes == [70, 3 * 2**20 - 9]
    assert f"new-0: {human_size(70)}, 3 records, sound" in drawn.data


def test_the_sentence_names_the_states() -> None:
    rows = [row(f"t{number}", "error", log_size_bytes=10) for number in range(5)]
    drawn = map_of([row("big", "sound", log_size_bytes=1000), row("new", "empty", log_size_bytes=0), *rows], "/k")
    assert drawn is not None
    assert drawn.sentence == (
        "/k: 7 partitions by the bytes of their logs, 1.0 KiB: 1 sound, 1 empty, 5 error (t0-0, t1-0, t2-0 and 2 more)."
        " The largest: big-0 1000 B, t0-0 10 B, t1-0 10 B, 4 more with 30 B."
    )


def test_each_state_has_its_colours() -> None:
    style = (REPOSITORY / "kafkalog_cli/page/templates/page.css").read_text()
    for state in STATES:
        assert style.count(f"--{state}:") == style.count(f"--on-{state}:") == 2, state
