"""``kafkalog redact``: what it says and exits with."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from tests.building import batches, write_segment
from tests.decoded_node import write_node
from tests.running import Run, Word

pytestmark = pytest.mark.long

RunMany = Callable[[Iterable[Iterable[Word]]], list[Run]]


def partition_of(tmp_path: Path, content: bytes | None = None) -> Path:
    partition = tmp_path / "orders-0"
    partition.mkdir()
    (partition / f"{0:020d}.log").write_bytes(b"".join(batches(10)) if content is None else content)
    return partition


def run_one(run_many: RunMany, *words: Word) -> Run:
    (run,) = run_many([("redact", *words, "--format", "jsonl")])
    return run


def test_a_copy(tmp_path: Path, run_kafkalog_many: RunMany) -> None:
    """Under a random key, which is not kept: two copies differ."""
    partition = partition_of(tmp_path)
    logs = []
    for name in ("one", "two"):
        run = run_one(run_kafkalog_many, partition, "--output", tmp_path / name).check(0)
        assert run.summary["counts"]["records"] == 30
        assert "published" in run.stderr
        logs.append((tmp_path / name / "orders-0" / f"{0:020d}.log").read_bytes())
    assert len(logs[0]) == len(logs[1]) == (partition / f"{0:020d}.log").stat().st_size
    assert logs[0] != logs[1]
    (verified,) = run_kafkalog_many([("verify", tmp_path / "one" / "orders-0", "--fail-on", "warning")])
    verified.check(0)


def test_a_key_file(tmp_path: Path, run_kafkalog_many: RunMany) -> None:
    partition = partition_of(tmp_path)
    key = tmp_path / "key"
    key.write_bytes(b"0123456789abcdef")
    for name in ("one", "two"):
        run_one(run_kafkalog_many, partition, "--output", tmp_path / name, "--key-file", key).check(0)
    manifests = [json.loads((tmp_path / name / "manifest.json").read_text()) for name in ("one", "two")]
    assert manifests[0] == manifests[1]


def test_usage_errors(tmp_path: Path, run_kafkalog_many: RunMany) -> None:
    partition = partition_of(tmp_path)
    short = tmp_path / "short"
    short.write_bytes(b"0123456789abcde")
    key = tmp_path / "key"
    key.write_bytes(b"0123456789abcdef")
    output = ("--output", tmp_path / "out")
    for words in (
        ("--key-file", short),
        ("--key-file", tmp_path / "nowhere"),
        ("--key-file", tmp_path),
        ("--mode", "fill", "--key-file", key),
        ("--resume",),
        ("--mode", "shred"),
    ):
        run_one(run_kafkalog_many, partition, *output, *words).check(2)
    assert not (tmp_path / "out").exists()
    run_one(run_kafkalog_many, partition, "--output", partition / "out").check(5)
    run_one(run_kafkalog_many, partition / f"{0:020d}.log", *output, "--resume", "--mode", "fill").check(0)


def test_damage(tmp_path: Path, run_kafkalog_many: RunMany) -> None:
    made = batches(3)
    broken = bytearray(made[1])
    broken[-1] ^= 1
    partition = partition_of(tmp_path, made[0] + bytes(broken) + made[2])
    run = run_one(run_kafkalog_many, partition, "--output", tmp_path / "out").check(1)
    assert [row["code"] for row in run.rows("finding")] == ["batch-crc-mismatch"]
    assert run.summary["counts"]["lost_bytes"] == len(broken)
    assert (tmp_path / "out" / "orders-0").is_dir()


def test_the_metadata_log_is_left_out(data_dir: Path, tmp_path: Path, run_kafkalog_many: RunMany) -> None:
    source = data_dir / "kafka-4.3-single" / "node-1"
    run = run_one(run_kafkalog_many, source, "--output", tmp_path / "out").check(0)
    assert any("__cluster_metadata-0" in each for each in run.summary["not_checked"])
    assert not (tmp_path / "out" / "__cluster_metadata-0").exists()
    assert not (tmp_path / "out" / "bootstrap.checkpoint").exists()
    assert (tmp_path / "out" / "__consumer_offsets-0").is_dir()


@pytest.mark.parametrize(
    ("terms", "kept"),
    [
        (("--from-offset", "1100", "--to-offset", "1110"), [(1095, 1101), (1102, 1263)]),
        (("--from-offset", "5", "--to-offset", "30"), [(0, 77)]),
        (("--from-time", "2026-11-08T08:43:00"), [(1102, 1263)]),
    ],
)
def test_a_range_keeps_the_batches_with_a_record_in_it(run_kafkalog, data_dir, tmp_path, terms, kept):
    source = data_dir / "kafka-4.3-single" / "node-1" / "orders-0"
    output = tmp_path / "out"
    run = run_kafkalog("redact", source, "--output", output, *terms, "--format", "jsonl").check(0)
    rows = run_kafkalog("dump", "--format", "jsonl", output / "orders-0").check(0).rows("batch")
    assert run.summary["counts"]["records"] == sum(row["record_count"] for row in rows)
    assert [(row["base_offset"], row["last_offset"]) for row in rows] == kept
    assert not list(output.rglob("*.snapshot"))
    assert run_kafkalog("verify", "--format", "jsonl", output).check(0).summary["findings"]["error"] == 0


def test_fields_of_avro(tmp_path: Path, run_kafkalog_many: RunMany) -> None:
    """By the schemas that lie beside the partition; with the schemas of another place they are read from the copy."""
    node = tmp_path / "node"
    source = write_node(node)
    run = run_one(run_kafkalog_many, source, "--output", tmp_path / "out", "--keep-fields", "id,customer").check(3)
    assert {row["actual"]["schema_id"]: row["offset"] for row in run.rows("finding")} == {7: 3, 99: 5}
    assert run.summary["counts"]["wholly_replaced_values"] == 9
    assert "--keep-fields" not in run.stderr
    run = run_one(run_kafkalog_many, source, "--output", tmp_path / "few", "--keep-fields", "customer,client.id").check(
        3
    )
    assert "--keep-fields: no key or value has client.id.\n" in run.stderr
    words = ("dump", "--records", "--value-as", "auto", "--format", "jsonl", "--schemas", node)
    (copy,) = run_kafkalog_many([(*words, tmp_path / "out" / "orders-0")])
    decoded = [row["value_decoded"] for row in copy.rows("record")]
    assert decoded[0] == {"id": 4711, "customer": "Ana"}
    assert (decoded[1]["id"], decoded[1]["customer"]) == (4712, "Zoë")
    run_one(run_kafkalog_many, source, "--output", tmp_path / "no", "--value-as", "avro").check(2)
    run_one(run_kafkalog_many, source, "--output", tmp_path / "no", "--keep-fields", "id", "--schemas", source).check(2)
    assert not (tmp_path / "no").exists()


def test_a_range_without_a_segment_is_refused(run_kafkalog, tmp_path):
    write_segment(tmp_path / "t-0", 100, batches(3, 100))
    run_kafkalog("redact", tmp_path / "t-0", "--output", tmp_path / "out", "--to-offset", "1").check(2)
    assert not (tmp_path / "out").exists()
