"""dump --last reads the end of each partition."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.building import batches, write_segment
from tests.running import Run

COUNTS = (1, 4, 9, 10, 17, 1000)


@pytest.mark.slow
@pytest.mark.parametrize("options", [(), ("--records",), ("--records", "--read-committed")])
def test_the_last_rows_are_the_end_of_all_rows(
    tmp_path: Path, data_dir: Path, run_kafkalog_many: Callable[..., list[Run]], options: tuple[str, ...]
) -> None:
    write_segment(tmp_path / "a-0", 0, batches(3))
    write_segment(tmp_path / "a-0", 9, batches(2, 9, codec=4))
    write_segment(tmp_path / "b-0", 0, batches(2))
    for path in (tmp_path, data_dir / "trials" / "transactions" / "node-1" / "payments-0"):
        words = ("dump", *options, "--format", "jsonl")
        everything, *ends = run_kafkalog_many(
            [(*words, path), *((*words, "--last", str(count), path) for count in COUNTS)]
        )
        rows = [row for row in everything.check(0, 1).rows() if row["type"] in ("batch", "record")]
        assert len(rows) >= 3
        for count, last in zip(COUNTS, ends, strict=True):
            expected = []
            for topic in dict.fromkeys(row["topic"] for row in rows):
                expected += [row for row in rows if row["topic"] == topic][-count:]
            assert [row for row in last.check(0, 1).rows() if row["type"] in ("batch", "record")] == expected


def test_either_end(tmp_path: Path, run_kafkalog_many: Callable[..., list[Run]]) -> None:
    write_segment(tmp_path / "a-0", 0, batches(3))
    (run,) = run_kafkalog_many([("dump", "--last", "1", "--limit", "1", tmp_path)])
    assert "give one of --last and --limit" in run.check(2).stderr
