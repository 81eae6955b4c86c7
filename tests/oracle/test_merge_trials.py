"""The judge of the trials of merging, and a few wounded partitions that are merged and served by a real broker."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.oracle.broker import Broker
from tests.oracle.kafka_lab import KafkaLab
from tests.oracle.merge_trials import MergeSet, lost_ranges, merge_words
from tests.oracle.merge_trials_replicas import writable_copy
from tests.oracle.merge_trials_truth import Frame, Ranges, Replicas, Truth, committed, frames, joined, without
from tests.oracle.merge_trials_wounds import wound
from tests.oracle.record_reader import Kept, RecordReader, Served, kept_records
from tests.running import run_many

pytestmark = pytest.mark.slow

VERSION = "4.3.1"
_ORIGINAL = Path(__file__).parents[1] / "_data" / "kafka-4.3-single" / "node-1"
_TOPICS = ("orders", "payments", "users", "clicks-zstd", "clicks-gzip", "sensor")


@pytest.fixture(scope="module")
def original_records() -> dict[str, Kept]:
    return kept_records(_ORIGINAL)


def wounded(topic: str, seed: int, work: Path, records: dict[str, Kept]) -> MergeSet:
    """Three copies of a partition, wounded."""
    name = f"{topic}-0"
    after: Replicas = {}
    for node in (2, 3, 4):
        after[node] = work / f"node-{node}" / name
        writable_copy(_ORIGINAL / name, after[node])
    truth = Truth.of(topic, dict.fromkeys(after, _ORIGINAL / name))
    truth.is_compacted = topic == "users"
    wounds = wound(random.Random(f"{seed} {topic}"), after, truth.before)
    return MergeSet(topic, truth, records[name].records, after, wounds, work / topic / name)


def merged_rightly(each: MergeSet, change: Callable[[list[Frame]], list[Frame]] = lambda batches: batches) -> Ranges:
    """Write what a merge has to keep, in one segment; what is lost."""
    kept = sorted(each.truth.kept(each.after).values(), key=lambda frame: frame.base)
    lost = without(each.truth.everything, joined((frame.base, frame.last) for frame in kept))
    shutil.rmtree(each.result, ignore_errors=True)
    each.result.mkdir(parents=True)
    kept = change(kept)
    (each.result / f"{kept[0].base:020d}.log").write_bytes(b"".join(frame.content for frame in kept))
    return [(low, high) for low, high in lost if low < kept[-1].last]


@pytest.mark.parametrize("topic", ["orders", "users", "sensor"])
def test_the_judge_accepts_what_is_right(tmp_path: Path, original_records: dict[str, Kept], topic: str) -> None:
    some_lost = False
    for seed in range(12):
        each = wounded(topic, seed, tmp_path / str(seed), original_records)
        lost = merged_rightly(each)
        each.judge(int(bool(lost)), lost)
        assert each.wrong == {}, (seed, each.wounds)
        some_lost = some_lost or bool(lost)
    assert some_lost or topic == "sensor"


def damaged_set(work: Path, records: dict[str, Kept]) -> MergeSet:
    """One of which some batches are lost in the middle."""
    for seed in range(100):
        each = wounded("orders", seed, work / str(seed), records)
        if merged_rightly(each):
            return each
    raise AssertionError("no wounds hit all replicas")


def test_the_judge_sees_what_is_wrong(tmp_path: Path, original_records: dict[str, Kept]) -> None:
    each = damaged_set(tmp_path, original_records)
    lost = merged_rightly(each)

    def kinds(change: Callable[[list[Frame]], list[Frame]], reported: Ranges = lost, code: int = 1) -> set[str]:
        merged_rightly(each, change)
        each.wrong = {}
        each.judge(code, reported)
        return set(each.wrong)

    assert kinds(lambda batches: batches) == set()
    assert kinds(lambda batches: [*batches[:3], *batches[4:]]) == {"missing", "silent loss"}
    assert kinds(lambda batches: batches, code=0) == {"exit status"}
    assert kinds(lambda batches: batches, []) == {"silent loss", "exit status"}
    assert kinds(lambda batches: batches, [*lost[1:], (lost[0][0], lost[0][1] - 1)]) == {"silent loss"}
    assert kinds(lambda batches: batches, joined([*lost, (0, lost[0][1])])) == {"false alarm"}
    assert "order" in kinds(lambda batches: [*batches, batches[0]])

    def with_another(batches: list[Frame]) -> list[Frame]:
        content = bytearray(batches[2].content)
        content[-1] ^= 1
        batches[2] = Frame("", 0, batches[2].base, batches[2].last, bytes(content))
        return batches

    assert {"bytes", "missing"} <= kinds(with_another)
    foreign = frames(_ORIGINAL / "orders-0")[2]
    each.truth.foreign = {foreign.content}
    each.truth.right.pop(foreign.content, None)
    assert "another branch" in kinds(lambda batches: sorted([*batches, foreign], key=lambda frame: frame.base))


def test_the_judge_sees_a_deleted_key_that_came_back(tmp_path: Path, original_records: dict[str, Kept]) -> None:
    each = wounded("users", 1, tmp_path, original_records)
    rows = dict(each.rows)
    tombstone = next(o for o in sorted(rows, reverse=True) if rows[o]["value"] is not None)
    older = next(o for o in sorted(rows) if o < tombstone and rows[o]["value"] is not None)
    rows[older] = {**rows[older], "key": rows[tombstone]["key"]}
    rows[tombstone] = {**rows[tombstone], "value": None}
    each.rows = rows
    for node in each.after:
        shutil.rmtree(each.after[node])
        writable_copy(_ORIGINAL / "users-0", each.after[node])
    merged_rightly(each)
    each.judge(0, [])
    assert each.wrong == {}
    merged_rightly(each, lambda batches: [frame for frame in batches if tombstone not in frame.offsets()])
    each.judge(0, [])
    assert "revived" in each.wrong


def test_the_judge_sees_what_a_broker_serves_otherwise(tmp_path: Path, original_records: dict[str, Kept]) -> None:
    each = wounded("payments", 1, tmp_path, original_records)
    for node in each.after:
        shutil.rmtree(each.after[node])
        writable_copy(_ORIGINAL / "payments-0", each.after[node])
    merged_rightly(each)
    each.judge(0, [])
    kept = original_records["payments-0"]
    end = each.end + 1
    stable = committed(each.merged)[1]
    assert stable < end
    readable = [offset for offset in kept.committed if offset < stable]
    assert readable

    def kinds(**changes: Any) -> set[str]:
        served = Served(
            **{"end": end, "start": 0, "stable": stable, "records": kept.records, "committed": readable, **changes}
        )
        each.wrong = {}
        each.judge_served(served, 0)
        return set(each.wrong)

    assert kinds() == set()
    first = min(kept.records)
    assert kinds(records={offset: row for offset, row in kept.records.items() if offset != first}) == {"served"}
    assert kinds(records={**kept.records, first: {**kept.records[first], "timestamp": 1}}) == {"served"}
    assert kinds(records={**kept.records, end: kept.records[first]}) == {"written"}
    assert kinds(committed=readable[1:]) == {"committed"}
    assert kinds(committed=sorted(kept.records)) == {"committed"}
    assert kinds(stable=end) == {"committed"}
    assert kinds(problem="no leader") == {"not served"}


@pytest.mark.oracle
def test_a_broker_serves_merged_replicas(tmp_path: Path, original_records: dict[str, Kept]) -> None:
    lab = KafkaLab()
    if (missing := lab.missing(VERSION)) is not None:
        from tests.conftest import unavailable

        unavailable(missing)
    sets = [wounded(topic, seed, tmp_path / str(seed), original_records) for seed, topic in enumerate(_TOPICS)]
    runs = run_many([merge_words(each.after.values(), each.result.parent) for each in sets])
    log_dir = tmp_path / "node-1"
    writable_copy(_ORIGINAL, log_dir)
    for each, run in zip(sets, runs, strict=True):
        each.judge(run.check(0, 1).code, lost_ranges(run), run.rows("merged_range"))
        shutil.rmtree(log_dir / each.result.name)
        shutil.copytree(each.result, log_dir / each.result.name)
    with Broker(lab, VERSION, log_dir, tmp_path / "work") as broker, RecordReader(lab, VERSION, tmp_path) as reader:
        served = reader.read(broker.address, [each.result.name for each in sets])
    for each in sets:
        each.judge_served(served.get(each.result.name), 0)
    assert {each.topic: each.wrong for each in sets if each.wrong} == {}
