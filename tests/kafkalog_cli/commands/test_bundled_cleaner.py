"""compaction and report of a bundle: a cleaner that damage stops is stopped there as on the directory."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from format.layout import RECORD_BATCH
from tests.building import batch, write_segment
from tests.running import Run, Word

pytest.importorskip("pyarrow.parquet")

RunMany = Callable[[Iterable[Iterable[Word]]], list[Run]]
AT = ("--at", "2026-11-22T00:00:00Z")
JSON = ("--format", "jsonl")


def flipped(content: bytes, position: int) -> bytes:
    return content[:position] + bytes([content[position] ^ 0x55]) + content[position + 1 :]


def node_with(folder: Path, topic: str, middle: bytes) -> Path:
    """A log directory with one log, whose cleaner has cleaned up to offset 10."""
    node = folder / "node"
    parts = [batch(number * 3, [b"value" * 9] * 3, codec=4) for number in range(10)]
    write_segment(node / f"{topic}-0", 0, [*parts[:5], middle, *parts[6:]])
    write_segment(node / f"{topic}-0", 30, [batch(30)])
    (node / "cleaner-offset-checkpoint").write_text(f"0\n1\n{topic} 0 10\n")
    return node


SOUND = batch(15, [b"value" * 9] * 3)
RESEALED = batch(15, [b"value" * 9] * 3, record_count=7)
CASES = {
    "sound": (SOUND, "dirty_ratio"),
    "the length of a record": (flipped(SOUND, RECORD_BATCH.size_bytes), "damaged_batch"),
    "a byte of a value": (flipped(SOUND, len(SOUND) - 3), "dirty_ratio"),
    "a CRC that fits": (RESEALED, "damaged_batch"),
    "no batch": (b"no batch at all" * 9, "damaged_batch"),
}


@pytest.mark.slow
@pytest.mark.parametrize("topic", ["orders", "__consumer_offsets"])
@pytest.mark.parametrize("case", CASES)
def test_damage_stops_the_cleaner(run_kafkalog_many: RunMany, tmp_path: Path, topic: str, case: str) -> None:
    middle, expected = CASES[case]
    node, bundle = node_with(tmp_path, topic, middle), tmp_path / "b.tar.zst"
    words = ("--every-log", *AT, *JSON)
    made, there, again = run_kafkalog_many(
        [
            ("bundle", node, "--output", bundle, "--no-report", "--jobs", "1"),
            ("compaction", *words, node),
            ("compaction", *words, bundle),
        ]
    )
    made.check(0, 1, 3)
    one, other = there.rows("cleaner")[0], again.rows("cleaner")[0]
    assert one["blocked_by"] == other["blocked_by"] == expected
    assert [row["position"] for row in there.rows("finding")] == [row["position"] for row in again.rows("finding")]
    assert (there.code != 0) == (again.code != 0) == (case != "sound")
    if topic != "orders":
        assert json.dumps({**one, "path": ""}) == json.dumps({**other, "path": ""})
