"""``dump --records`` against what independent clients read from the same brokers, and against what was sent."""

from __future__ import annotations

import base64
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from tests.corpora import Corpus, sent_to_legacy
from tests.json_rows import to_bytes, to_headers
from tests.running import Run

Row = dict[str, Any]
RunMany = Callable[[Iterable[Iterable[str | Path]]], list[Run]]

#: The broker went on compacting this topic after the clients had read it.
COMPACTED = "users-0"
MAGIC_OF_BROKER = {"0.8.2.2": 0, "0.10.2.2": 1, "1.1.1": 2, "2.8.2": 2}


def from_base64(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)


def true_record(row: Row) -> Row:
    """A record as a client saw it."""
    return {
        "offset": row["offset"],
        "timestamp": row["timestamp"],
        "timestamp_type": row["timestamp_type"],
        "leader_epoch": row["leader_epoch"],
        "key": from_base64(row["key"]),
        "value": from_base64(row["value"]),
        "headers": [(key.encode(), from_base64(value)) for key, value in row["headers"]],
    }


def our_record(row: Row) -> Row:
    """The same of one that we read."""
    return {
        **{name: row[name] for name in ("offset", "timestamp", "timestamp_type", "leader_epoch")},
        "key": to_bytes(row["key"]),
        "value": to_bytes(row["value"]),
        "headers": to_headers(row["headers"]),
    }


def dump_partitions(run_many: RunMany, partitions: list[Path]) -> list[list[Row]]:
    """The records of each partition but the control records, which no client sees."""
    runs = run_many([("dump", "--records", "--format", "jsonl", each) for each in partitions])
    return [[row for row in run.check(0).rows("record") if not row["is_control"]] for run in runs]


def test_every_partition(witnessed_corpus: Corpus, run_kafkalog_many: RunMany) -> None:
    corpus = witnessed_corpus
    watermarks = corpus.truth_json("watermarks")
    seen = [each for each in corpus.partitions() if corpus.true_records(each.name) is not None]
    assert seen
    for partition, rows in zip(seen, dump_partitions(run_kafkalog_many, seen), strict=True):
        expected = [true_record(row) for row in corpus.true_records(partition.name) or []]
        bounds = watermarks[partition.name]
        visible = range(bounds["log_start_offset"], bounds["high_watermark"])
        actual = [our_record(row) for row in rows if row["offset"] in visible]
        topic, _, number = partition.name.rpartition("-")
        assert {(row["topic"], row["partition"]) for row in rows} == {(topic, int(number))}
        if partition.name == COMPACTED:
            check_survivors(actual, expected)
        else:
            assert [row["offset"] for row in actual] == [row["offset"] for row in expected], partition
            for ours, client in zip(actual, expected, strict=True):
                assert ours == client, partition


def check_survivors(actual: list[Row], expected: list[Row]) -> None:
    """Compaction invents nothing, keeps the order, and keeps the latest record of every key."""
    sent = {row["offset"]: row for row in expected}
    offsets = [row["offset"] for row in actual]
    assert offsets == sorted(set(offsets))
    for row in actual:
        assert row == sent[row["offset"]]
    latest = {row["key"]: row["offset"] for row in expected}
    assert set(latest.values()) <= set(offsets)
    assert len(actual) <= offsets[-1], "nothing was compacted, so this checks nothing"


def test_the_partition_of_every_format(legacy_corpus: Corpus, run_kafkalog_many: RunMany) -> None:
    (rows,) = dump_partitions(run_kafkalog_many, legacy_corpus.replicas("legacy-0"))
    sent = sent_to_legacy(legacy_corpus)
    assert [row["offset"] for row in rows] == list(range(len(sent)))
    for row, (broker, codec, key, value) in zip(rows, sent, strict=True):
        assert (to_bytes(row["key"]), to_bytes(row["value"])) == (key, value)
        assert (row["magic"], row["codec"]) == (MAGIC_OF_BROKER[broker], codec)
    kinds = Counter((row["magic"], row["codec"]) for row in rows)
    assert set(kinds) == {
        *((magic, codec) for magic in (0, 1, 2) for codec in ("none", "gzip", "snappy", "lz4")),
        (2, "zstd"),
    }
    for row in rows:
        assert (row["timestamp"] is None) == (row["magic"] == 0)
        assert (row["timestamp_type"] == "NoTimestampType") == (row["magic"] == 0)
        assert (row["headers"] is None) == (row["magic"] < 2)
