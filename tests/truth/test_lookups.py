"""``find`` against the brokers' own answers, and against ``dump``."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from tests.corpora import Corpus
from tests.running import Run

Row = dict[str, Any]
RunKafkalog = Callable[..., Run]
RunMany = Callable[[Iterable[Iterable[str | Path]]], list[Run]]

#: The broker went on compacting this topic after it had answered.
COMPACTED = "users-0"
NOTHING = [-1, -1]


def answer(run: Run) -> list[int | None]:
    """[offset, timestamp] of the one match; [-1, -1] for none, which must exit with 1."""
    matches = run.check(0, 1).rows("match")
    assert run.code == (0 if matches else 1), run.arguments
    assert len(matches) <= 1, run.arguments
    return [matches[0]["offset"], matches[0]["timestamp"]] if matches else NOTHING


def records_of(run_many: RunMany, partition: Path) -> list[Row]:
    (run,) = run_many([("dump", "--records", "--format", "jsonl", partition)])
    return run.check(0).rows("record")


def answered_partitions(corpus: Corpus) -> list[tuple[Path, dict[str, Any]]]:
    lookups = corpus.truth_json("lookups")
    found = [(each, lookups[each.name]) for each in corpus.partitions() if each.name in lookups]
    assert found
    return found


def test_timestamps(witnessed_corpus: Corpus, run_kafkalog_many: RunMany) -> None:
    questions: list[tuple[Path, int, list[int]]] = []
    for partition, lookups in answered_partitions(witnessed_corpus):
        answers = {int(timestamp): found for timestamp, found in lookups["for_timestamp"].items()}
        if partition.name == COMPACTED:
            answers = answers_after_compaction(answers, records_of(run_kafkalog_many, partition))
        questions += [(partition, timestamp, found) for timestamp, found in answers.items()]
    assert any(found == NOTHING for _, _, found in questions)
    runs = run_kafkalog_many(
        ("find", partition, "--timestamp", str(timestamp), "--format", "jsonl") for partition, timestamp, _ in questions
    )
    for (partition, timestamp, found), run in zip(questions, runs, strict=True):
        assert answer(run) == found, (partition, timestamp)


def answers_after_compaction(answers: dict[int, list[int]], records: list[Row]) -> dict[int, list[int]]:
    """The broker's answers with the records gone that it has compacted away since: the next one that is left."""
    now: dict[int, list[int]] = {}
    for timestamp, (offset, found_timestamp) in answers.items():
        left = [row for row in records if row["timestamp"] >= timestamp and row["offset"] >= offset >= 0]
        now[timestamp] = [left[0]["offset"], left[0]["timestamp"]] if left else NOTHING
        if any(row["offset"] == offset for row in records):
            assert now[timestamp] == [offset, found_timestamp]
    return now


def test_the_largest_timestamp(witnessed_corpus: Corpus, run_kafkalog_many: RunMany) -> None:
    asked = answered_partitions(witnessed_corpus)
    runs = run_kafkalog_many(("find", partition, "--max-timestamp", "--format", "jsonl") for partition, _ in asked)
    for (partition, lookups), run in zip(asked, runs, strict=True):
        expected = lookups["max_timestamp"]
        if partition.name == COMPACTED:
            records = records_of(run_kafkalog_many, partition)
            largest = max(row["timestamp"] for row in records)
            expected = [next(row["offset"] for row in records if row["timestamp"] == largest), largest]
        assert answer(run) == expected, partition


def test_offsets(corpus: Corpus, run_kafkalog_many: RunMany) -> None:
    """Some offsets of every partition, the first and the last too, are found where ``dump`` says they are."""
    chosen: list[tuple[Path, Row]] = []
    partitions = list(corpus.partitions())
    dumps = run_kafkalog_many(("dump", "--records", "--format", "jsonl", each) for each in partitions)
    for partition, run in zip(partitions, dumps, strict=True):
        start = log_start_offset(partition)
        rows = [row for row in run.check(0).rows("record") if row["offset"] >= start]
        if rows:
            sample = random.Random(partition.name).sample(rows, min(4, len(rows)))
            chosen += [(partition, row) for row in (rows[0], *sample, rows[-1])]
    runs = run_kafkalog_many(
        ("find", partition, "--offset", str(row["offset"]), "--format", "jsonl") for partition, row in chosen
    )
    for (partition, row), run in zip(chosen, runs, strict=True):
        (match,) = run.check(0).rows("match")
        keys = ("topic", "partition", "offset", "timestamp", "segment_base_offset", "position", "leader_epoch")
        assert {key: match[key] for key in keys} == {key: row[key] for key in keys}, partition


def log_start_offset(partition: Path) -> int:
    """From the checkpoint of the log directory; 0 for a partition that it does not name."""
    topic, _, number = partition.name.rpartition("-")
    for line in (partition.parent / "log-start-offset-checkpoint").read_text().splitlines()[2:]:
        words = line.split()
        if words[:2] == [topic, number]:
            return int(words[2])
    return 0


def test_in_a_process_of_its_own(data_dir: Path, run_kafkalog: RunKafkalog) -> None:
    """The runs above share a process; these are a user's."""
    partition = data_dir / "kafka-4.3-single" / "node-1" / "payments-0"
    assert answer(run_kafkalog("find", partition, "--max-timestamp", "--format", "jsonl")) == [136, 1795250496450]
    assert answer(run_kafkalog("find", partition, "--offset", "30", "--format", "jsonl"))[0] == 30
    assert answer(run_kafkalog("find", partition, "--timestamp", "1795250496451", "--format", "jsonl")) == NOTHING


def test_past_the_end(data_dir: Path, run_kafkalog: RunKafkalog) -> None:
    partition = data_dir / "kafka-4.3-single" / "node-1" / "payments-0"
    (row,) = run_kafkalog("find", partition, "--offset", "176", "--format", "jsonl").check(1).rows("match")
    assert (row["offset"], row["position"], row["visibility"]) == (176, None, "past_end")
