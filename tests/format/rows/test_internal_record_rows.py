"""kafkalog dump --records on internal topics and control records: decoded, lossless where it cannot be."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from format.internal_topics.decoder import decoder_for
from format.log.control_records import decode_control_record
from tests.building import batch, write_segment
from tests.corpora import Corpus
from tests.json_rows import to_bytes
from tests.running import Run

RunMany = Callable[[Iterable[Iterable[str | Path]]], list[Run]]
OFFSETS = "__consumer_offsets"
CONTROL_BIT = 0x20


def rows_of(run_many: RunMany, *paths: Path, options: tuple[str, ...] = ()) -> list[dict[str, Any]]:
    runs = run_many([("dump", "--records", *options, "--format", "jsonl", path) for path in paths])
    return [row for run in runs for row in run.check(0).rows("record")]


def test_committed_offsets_are_what_the_broker_answered(corpus: Corpus, run_kafkalog_many: RunMany) -> None:
    partitions = [each for each in corpus.partitions() if each.name.startswith(OFFSETS + "-")]
    found: dict[str, dict[str, int]] = {}
    for row in rows_of(run_kafkalog_many, *partitions):
        key, value = row["key"], row["value"]
        if row["is_control"] or key["type"] != "OFFSET_COMMIT":
            continue
        assert value is None or value["type"] == "OFFSET_COMMIT"
        name = f"{key['data']['topic']}-{key['data']['partition']}"
        of_group = found.setdefault(key["data"]["group"], {})
        of_group.pop(name, None)
        if value is not None:
            of_group[name] = value["data"]["offset"]
    assert {group: offsets for group, offsets in found.items() if offsets} == (
        corpus.truth_json("groups") if partitions else {}
    )


@pytest.mark.slow
def test_every_internal_record_is_decoded_without_a_finding(corpus: Corpus, run_kafkalog_many: RunMany) -> None:
    partitions = [each for each in corpus.partitions() if each.name.startswith("__")]
    paths = [*partitions, *corpus.files(".checkpoint")]
    if not paths:
        pytest.skip("this corpus has no internal topics")
    runs = run_kafkalog_many([("dump", "--records", "--format", "jsonl", path) for path in paths])
    for run in runs:
        assert run.check(0).rows("finding") == []
        for row in run.rows("record"):
            parts = [part for part in (row["key"], row["value"]) if part is not None]
            assert parts
            for part in parts:
                assert {"type", "version"} <= set(part), row


def test_control_records_of_any_topic_are_decoded(data_dir: Path, run_kafkalog_many: RunMany) -> None:
    partition = data_dir / "kafka-4.3-single" / "node-1" / "payments-0"
    decoded = rows_of(run_kafkalog_many, partition)
    raw = rows_of(run_kafkalog_many, partition, options=("--raw",))
    markers = 0
    for one, other in zip(decoded, raw, strict=True):
        if not one["is_control"]:
            assert one == other
            continue
        markers += 1
        marker = decode_control_record(to_bytes(other["key"]), to_bytes(other["value"]))
        assert one["key"] == {"type": marker.type_name, "version": marker.version}
        assert one["value"] == {
            "type": marker.type_name,
            "version": 0,
            "data": {"coordinatorEpoch": marker.coordinator_epoch},
        }
    assert markers >= 3


def test_raw_leaves_the_bytes(data_dir: Path, run_kafkalog_many: RunMany) -> None:
    partition = data_dir / "kafka-4.3-single" / "node-1" / "__consumer_offsets-2"
    decoded = rows_of(run_kafkalog_many, partition)
    raw = rows_of(run_kafkalog_many, partition, options=("--raw",))
    assert len(raw) > 3
    decoder = decoder_for(OFFSETS)
    for row, other in zip(raw, decoded, strict=True):
        assert decoder.decode_key(to_bytes(row["key"])).data == other["key"]["data"]


def key_of(type_id: int, *texts: str) -> bytes:
    return struct.pack(">h", type_id) + b"".join(struct.pack(">h", len(text)) + text.encode() for text in texts)


def findings_of(run_many: RunMany, segment: Path, *codes: int) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    [run] = run_many([("dump", "--records", "--format", "jsonl", segment)])
    run.check(*codes)
    return run.rows("record"), run.rows("finding")


def test_records_of_newer_versions_stay_bytes_and_are_reported(tmp_path: Path, run_kafkalog_many: RunMany) -> None:
    newer_key, newer_value = key_of(999, "g"), struct.pack(">h", 77) + b"\xff"
    content = [
        batch(0, [b"value"], key=newer_key),
        batch(1, [newer_value], key=key_of(2, "group")),
        batch(2, [struct.pack(">hi", 0, 5)], key=struct.pack(">hh", 0, 99), attributes=CONTROL_BIT),
    ]
    rows, found = findings_of(run_kafkalog_many, write_segment(tmp_path / f"{OFFSETS}-0", 0, content), 3)
    assert to_bytes(rows[0]["key"]) == newer_key
    assert rows[0]["value"] is not None
    assert rows[1]["key"]["type"] == "GROUP_METADATA"
    assert to_bytes(rows[1]["value"]) == newer_value
    assert to_bytes(rows[2]["key"]) == struct.pack(">hh", 0, 99)
    assert {(each["code"], each["severity"]) for each in found} == {("version-unknown", "info")}
    assert {each["offset"] for each in found} == {0, 1, 2}


def test_what_contradicts_the_schema_stays_bytes_and_is_an_error(tmp_path: Path, run_kafkalog_many: RunMany) -> None:
    cut_key = key_of(1, "group")
    content = [
        batch(0, [b"\0\1"], key=cut_key),
        batch(1, [b"\0\1\0"], key=key_of(2, "group")),
        batch(2, [b"v"], key=None),
        batch(3, [b"v"], key=b"\0"),
    ]
    rows, found = findings_of(run_kafkalog_many, write_segment(tmp_path / f"{OFFSETS}-0", 0, content), 1)
    assert to_bytes(rows[0]["key"]) == cut_key
    assert rows[1]["key"]["data"] == {"group": "group"}
    assert to_bytes(rows[1]["value"]) == b"\0\1\0"
    assert [to_bytes(row["key"]) for row in rows[2:]] == [None, b"\0"]
    assert [each["code"] for each in found] == ["internal-record-invalid"] * 4
    assert [each["offset"] for each in found] == [0, 1, 2, 3]
    assert all(each["topic"] == OFFSETS and each["position"] is not None for each in found)


def test_a_limit_ends_findings_with_rows(tmp_path: Path, run_kafkalog_many: RunMany) -> None:
    content = [batch(number, [b"v"], key=key_of(999)) for number in range(600)]
    segment = write_segment(tmp_path / f"{OFFSETS}-0", 0, content)
    [run] = run_kafkalog_many([("dump", "--records", "--limit", "3", "--format", "jsonl", segment)])
    assert len(run.check(3).rows("record")) == 3
    assert len(run.rows("finding")) == 4  # the rows of a few records are made at once


def test_the_other_formats_show_decoded_objects(data_dir: Path, run_kafkalog_many: RunMany) -> None:
    partition = data_dir / "kafka-4.3-single" / "node-1" / "__transaction_state-0"
    runs = run_kafkalog_many(
        [("dump", "--records", "--format", name, partition) for name in ("logfmt", "csv", "table")]
    )
    for run in runs:
        assert "transactionalId" in run.check(0).stdout
