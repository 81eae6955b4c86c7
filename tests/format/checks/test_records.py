"""verify --partitioner murmur2: keys held against Kafka's default partitioner, on what real producers wrote."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from format.checks.records import Misplaced, misplaced_records
from format.location import Location
from format.log.read_records import record_tables
from format.log.record_table import partition_for_key
from format.log.walker import batch_chunks
from format.verbs.verify.verify import VerifyTerms, verify
from tests.building import batch
from tests.running import Run
from tests.sources import BytesSource

ORDERS = [f"kafka-4.3-single/node-1/orders-{number}" for number in range(3)]


def misplaced(path: Path, partition_count: int | None, jobs: int = 1) -> list[tuple[int | None, object, object]]:
    found = list(verify(path, VerifyTerms(partition_counts=partition_count, jobs=jobs)))
    assert all(each.code == "record-misplaced" for each in found)
    return [(each.location.offset, each.expected, each.actual) for each in found]


@pytest.mark.parametrize("name", ORDERS)
def test_what_a_java_producer_wrote_to_three_partitions_is_where_it_belongs(name: str, data_dir: Path) -> None:
    assert misplaced(data_dir / name, 3) == []
    assert misplaced(data_dir / name, None) == []
    others = misplaced(data_dir / name, 4)
    assert len(others) > 5
    assert all(own != actual == int(name[-1]) for _, own, actual in others)


def test_control_records_keys_of_null_and_kafkas_own_topics_are_left_alone(data_dir: Path) -> None:
    for number in range(4):
        assert misplaced(data_dir / f"kafka-4.3-single/node-1/__transaction_state-{number}", 7) == []
    log = batch(0, [b"a", b"b"], key=None)
    assert list(placed(log, partition=0, partition_count=1000)) == []


def test_every_misplaced_record_of_a_batch_is_counted() -> None:
    """One key, so that all records of a batch belong in one partition; the message names the first and the last."""
    own = partition_for_key(b"key", 50)
    log = batch(0, [b"a", b"b", b"c"], key=b"key") + batch(3, [b"d"], key=b"key")
    (first, three), (second, one) = placed(log, partition=own + 1, partition_count=50)
    assert (three, one, three + one) == (Misplaced(3, 0, 2), Misplaced(1, 3, 3), Misplaced(4, 0, 3))
    assert first.message.startswith("the keys of 3 records, offsets 0 to 2, belong in other partitions")
    assert second.message == f"the key of the record at offset 3 belongs in partition {own} of 50"


def test_the_first_misplaced_record_of_each_batch_is_reported() -> None:
    keys = [f"key-{number}".encode() for number in range(6)]
    own = [partition_for_key(key, 50) for key in keys]
    assert len(set(own)) > 1
    log = b"".join(batch(number, [b"value"], key=key) for number, key in enumerate(keys))
    found = [each for each, _ in placed(log, partition=own[0], partition_count=50)]
    wrong = [(number, each) for number, each in enumerate(own) if each != own[0]]
    assert [(each.location.offset, each.expected) for each in found] == wrong


def placed(log: bytes, *, partition: int, partition_count: int):  # type: ignore[no-untyped-def]
    location = Location("orders-0/log", "orders", partition)
    for chunk in batch_chunks(BytesSource(log)):
        for table in record_tables(chunk):
            yield from misplaced_records(table, location, partition_count)


def test_the_command(data_dir: Path, run_kafkalog_many: Callable[..., list[Run]]) -> None:
    def run_kafkalog(*arguments: str | Path) -> Run:
        return run_kafkalog_many([arguments])[0]

    partition = data_dir / ORDERS[1]
    assert run_kafkalog("verify", "--partitioner", "murmur2", "--partitions", "3", partition).code == 0
    wrong = run_kafkalog(
        "verify",
        "--partitioner",
        "murmur2",
        "--partitions",
        "5",
        "--fail-on",
        "warning",
        "--format",
        "jsonl",
        partition,
    )
    assert wrong.code == 1
    assert "record-misplaced" in wrong.stdout
    records = {each for found in wrong.rows("finding") for each in [found["offset"]]}
    assert wrong.summary["counts"]["misplaced_records"] > len(records) > 0
    assert f"{wrong.summary['counts']['misplaced_records']:,} records in another partition" in wrong.stderr
    refused = (
        ("--partitions", "3"),
        ("--partitioner", "murmur2", "--partitions", "0"),
        ("--level", "crc", "--partitioner", "murmur2", "--partitions", "3"),
    )
    for run in run_kafkalog_many(("verify", *words, partition) for words in refused):
        run.check(2)
    node = partition.parent
    several = run_kafkalog("verify", "--partitioner", "murmur2", "--partitions", "3", node)
    assert several.code == 2, "other topics have other numbers of partitions"
    assert "--partitions: is for one topic, and there are" in several.stderr


def test_the_number_of_partitions_is_that_of_the_metadata_log(
    data_dir: Path, tmp_path: Path, run_kafkalog_many: Callable[..., list[Run]]
) -> None:
    node = shutil.copytree(data_dir / "kafka-4.3-single" / "node-1", tmp_path / "node-1")
    (node / "orders-1").rename(node / "orders-1.away")
    shutil.copytree(node / "orders-2", node / "orders-1")
    words = ("verify", "--partitioner", "murmur2", "--format", "jsonl")
    whole, moved, alone = run_kafkalog_many(
        [
            (*words, *(data_dir / name for name in ORDERS)),
            (*words, node / "orders-1"),
            (*words, shutil.copytree(node / "orders-0", tmp_path / "alone" / "orders-0")),
        ]
    )
    assert whole.check(0).summary["counts"]["misplaced_records"] == 0
    keyed = moved.summary["counts"]["misplaced_records"]
    assert keyed == moved.summary["counts"]["records"] > 1000
    assert "there is no metadata log at or around the paths: give --partitions N" in alone.check(2).stderr
