"""kafkalog compaction as a user runs it, and against what a real broker's cleaner left."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from format.columns import CLEANER
from format.layout import RECORD_BATCH
from tests.oracle.compaction_trial import offsets_in, predicted
from tests.running import Run

Kafkalog = Callable[..., Run]


@pytest.fixture
def kafkalog(run_kafkalog_many: Callable[..., list[Run]]) -> Kafkalog:
    """One run of the program, in a fork: quicker than a process of its own."""
    return lambda *arguments: run_kafkalog_many([("compaction", "--format", "jsonl", *arguments)])[0]


@pytest.fixture
def sample(data_dir: Path) -> Path:
    return data_dir / "trials" / "compaction"


@pytest.fixture
def truth(sample: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((sample / "truth" / "compaction.json").read_text())
    return found


def test_equals_what_the_cleaner_left(sample: Path, truth: dict[str, Any]) -> None:
    judged = predicted(sample / "node-1", truth["now"])
    assert set(judged) == set(truth["left"])
    cleaned = 0
    for name, log in judged.items():
        edge = log.range.first_uncleanable_offset
        kept = offsets_in(sample / "node-1" / name)
        if log.blocked_by is None:
            assert log.cleaned is not None
            cleaned += log.cleaned.record_count > log.cleaned.kept_records
            columns = log.cleaned.kept_offsets
            kept = [*chain.from_iterable(each.tolist() for each in columns), *(each for each in kept if each >= edge)]
        assert kept == truth["left"][name], name
    assert cleaned > 3


def test_rows(kafkalog: Kafkalog, sample: Path, truth: dict[str, Any]) -> None:
    run = kafkalog("--at", str(truth["now"]), sample / "node-1").check(0)
    rows = run.rows("cleaner")
    assert {tuple(row)[1:] for row in rows} == {CLEANER.names}
    assert "The cleaner would clean" in run.stderr
    assert any(row["blocked_by"] for row in rows)
    for row in rows:
        if row["would_keep_bytes"] is not None:
            assert row["would_keep_bytes"] + row["would_free_bytes"] == row["clean_bytes"] + row["dirty_bytes"]


def test_what_if(kafkalog: Kafkalog, sample: Path, truth: dict[str, Any]) -> None:
    at = ("--at", str(truth["now"]), sample / "node-1")
    lazy = kafkalog("--min-cleanable-dirty-ratio", "1", *at).check(0).rows("cleaner")
    assert all(row["blocked_by"] for row in lazy)
    young = kafkalog("--min-compaction-lag-ms", str(2**62), *at).check(0).rows("cleaner")
    assert {row["bound_by"] for row in young if row["dirty_bytes"] == 0} & {"min_compaction_lag"}
    kafkalog("--min-cleanable-dirty-ratio", "2", *at).check(2)


def test_a_batch_that_cannot_be_read_stops_the_cleaner(
    kafkalog: Kafkalog, sample: Path, truth: dict[str, Any], tmp_path: Path
) -> None:
    rows = kafkalog("--at", str(truth["now"]), sample / "node-1").rows("cleaner")
    name = next(f"{row['topic']}-{row['partition']}" for row in rows if row["blocked_by"] is None)
    copy = tmp_path / "node-1"
    shutil.copytree(sample / "node-1", copy)
    path = min((copy / name).glob("*.log"))
    content = bytearray(path.read_bytes())
    content[RECORD_BATCH.size_bytes] ^= 0x55  # the length of the first record
    path.write_bytes(content)
    run = kafkalog("--at", str(truth["now"]), copy / name)
    assert [row["blocked_by"] for row in run.rows("cleaner")] == ["damaged_batch"]
    assert run.rows("finding")
