"""verify --values: what does not decode, counted by partition, schema and producer."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from format.decoding.decoder import Decoding
from format.decoding.schemas import find_schemas
from format.limits import DEFAULT_LIMITS
from format.node.target import Target
from format.verbs.verify.values import undecodable_values, undecodable_words
from tests.building import batch, write_segment
from tests.decoded_node import CUT, order, schemas_log
from tests.running import Run, Word

RunMany = Callable[[Iterable[Iterable[Word]]], list[Run]]


def node(directory: Path) -> Path:
    """Two partitions in which the producers 1 and 2 wrote values that are cut off, in two segments of one."""
    write_segment(directory / "_schemas-0", 0, [schemas_log()])
    first = directory / "orders-0"
    write_segment(
        first,
        0,
        [
            batch(0, [order(1, "Ana"), CUT, CUT], producer_id=1, producer_epoch=0, base_sequence=0),
            batch(3, [CUT, order(2, "Bo", schema_id=99)], producer_id=2, producer_epoch=5, base_sequence=0),
        ],
    )
    write_segment(first, 5, [batch(5, [CUT, b"text"], producer_id=1, producer_epoch=0, base_sequence=3)])
    write_segment(directory / "orders-1", 0, [batch(0, [CUT])])
    return directory


def test_counts(tmp_path: Path) -> None:
    target = Target(node(tmp_path))
    decoding = Decoding(schemas=find_schemas([target]))
    found, counts = undecodable_values([target], decoding, DEFAULT_LIMITS)
    rows = [
        (each.place.partition, each.schema_id, each.producer_id, each.producer_epoch, each.count, each.place.offset)
        for each in found
    ]
    assert rows == [(0, 7, 1, 0, 3, 1), (0, 7, 2, 5, 1, 3), (0, 99, 2, 5, 1, 4), (1, 7, -1, -1, 1, 0)]
    assert found[0].last_offset == 5
    assert counts.raw == 0
    # Keys and values of orders, and of the registry's topic.
    assert counts.decoded == 8 + 2 + 2 * 2
    words = undecodable_words(found)
    assert words.splitlines()[0].startswith(
        "5 values of orders cannot be decoded by schema 7, since offset 0 of orders-1, 2023-11-14T22:13:20.000Z, by "
    )
    assert "producer 1 with epoch 0" in words
    assert "1 value of orders cannot be decoded by schema 99, since offset 4 of orders-0" in words
    assert undecodable_values([target], decoding, DEFAULT_LIMITS, jobs=3) == (found, counts)


def test_the_command(tmp_path: Path, run_kafkalog_many: RunMany) -> None:
    (run,) = run_kafkalog_many([("verify", "--values", node(tmp_path), "--format", "jsonl")])
    found = [row for row in run.check(3).rows("finding") if row["code"] == "value-undecodable"]
    assert [(row["partition"], row["offset"], row["actual"]["count"]) for row in found] == [
        (0, 1, 3), (0, 3, 1), (0, 4, 1), (1, 0, 1),
    ]  # fmt: skip
    assert found[0]["actual"]["producer_id"] == 1
    command = found[0]["next_step"].removeprefix("Look at one: kafkalog ").split()
    (shown,) = run_kafkalog_many([(*command, "--format", "jsonl")])
    assert [row["offset"] for row in shown.rows("record")] == [1]
    assert run.summary["counts"]["undecodable_values"] == 6
    assert "cannot be decoded by schema 7" in run.stderr


def test_damage_does_not_stop_it(tmp_path: Path, run_kafkalog_many: RunMany) -> None:
    log = node(tmp_path) / "orders-0/00000000000000000000.log"
    content = bytearray(log.read_bytes())
    content[-3] ^= 1
    log.write_bytes(content)
    (run,) = run_kafkalog_many([("verify", "--values", tmp_path, "--format", "jsonl")])
    codes = [row["code"] for row in run.check(1).rows("finding")]
    assert codes.count("batch-crc-mismatch") == 1
    assert run.summary["counts"]["undecodable_values"] == 4
