"""kafkalog salvage: what is lost is listed, and where the result is comes last."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from tests.building import batches, write_segment
from tests.running import Run

RunMany = Callable[..., list[Run]]


def test_the_exit_status_of_a_repair(tmp_path: Path, run_kafkalog_many: RunMany) -> None:
    """A proven field leaves nothing open; a bit that was flipped back is not proven."""
    log = batches(5)
    field, bit = (bytearray(log[2]) for _ in range(2))
    field[16] = 7  # the magic
    bit[70] ^= 1
    sources = [write_segment(tmp_path / name / "t-0", 0, [*log[:2], each, *log[3:]]).parent
               for name, each in (("field", field), ("bit", bit))]  # fmt: skip
    plain, *repaired = run_kafkalog_many(
        [
            ["salvage", source, "--output", tmp_path / f"out-{number}", "--format", "jsonl", *options]
            for number, (source, options) in enumerate(((sources[1], []), *((each, ["--repair"]) for each in sources)))
        ]
    )
    assert plain.check(1).summary["conditions"] == ["damage"]
    assert repaired[0].check(0).rows("finding")[0]["code"] == "batch-repaired"
    [row] = repaired[1].check(3).rows("finding")
    assert (row["code"], row["certainty"]) == ("batch-reconstructed", "reconstructed")
    assert (tmp_path / "out-2" / "t-0" / f"{0:020d}.log").read_bytes() == b"".join(log)


def test_where_the_result_is_comes_after_all_rows(damaged: Path, tmp_path: Path) -> None:
    words = [sys.executable, "-m", "kafkalog_cli", "salvage", damaged, "--format", "table"]
    reported = subprocess.run([*words, "--output", tmp_path / "out"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert reported.stdout.decode().splitlines()[-1] == f"published: {tmp_path / 'out'}"
    quiet = subprocess.run([*words, "--quiet", "--output", tmp_path / "other"], stderr=subprocess.PIPE)
    assert quiet.stderr == b""


def test_losses_are_counted(damaged: Path, tmp_path: Path, run_kafkalog_many: RunMany) -> None:
    [run] = run_kafkalog_many([["salvage", damaged, "--output", tmp_path / "out", "--format", "jsonl"]])
    assert run.check(1).summary["counts"]["losses"] == len(run.rows("finding")) == 1
    [row] = run.rows("written_segment")
    assert (row["batch_count"], row["lost_bytes"]) == (3, run.rows("finding")[0]["length"])
