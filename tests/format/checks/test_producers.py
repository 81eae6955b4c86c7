"""Findings about producers at which a broker stops when it starts, and what is none of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from format.layout import CONTROL_BIT, CONTROL_KEY, TRANSACTIONAL_BIT
from format.log.encode_batches import BatchHeader, encode_batch
from tests.building import batch, write_segment
from tests.format.verbs.txns.transaction_logs import data, marker
from tests.record_encoder import NewRecord, encode_record
from tests.running import run_many


def plain(offset: int, producer: int) -> bytes:
    return batch(offset, [b"x"], producer_id=producer, producer_epoch=0, base_sequence=2)


def control(offset: int, producer: int, kind: int) -> bytes:
    attributes = TRANSACTIONAL_BIT | CONTROL_BIT if producer >= 0 else CONTROL_BIT
    header = BatchHeader(offset, 0, 1, 0, 0, 0, attributes, producer, 0 if producer >= 0 else -1)
    return encode_batch(header, encode_record(NewRecord(0, 0, CONTROL_KEY.struct.pack(0, kind), b"\0" * 6)))


def found(tmp_path: Path, *content: bytes) -> list[tuple[str, str, int]]:
    directory = tmp_path / "payments-0"
    write_segment(directory, 0, content)
    (run,) = run_many([("verify", "--format", "jsonl", "--quiet", directory)])
    rows = [row for row in run.rows("finding") if row["severity"] == "error"]
    return [(row["code"], row["message"].partition(":")[0], row["offset"]) for row in rows]


def test_a_batch_outside_of_an_open_transaction_of_its_producer(tmp_path: Path) -> None:
    content = (data(0, 7), data(2, 8), plain(4, 7), plain(5, 7), marker(6, 7, commit=True), plain(7, 7), plain(8, 9))
    message = "producer 7 wrote this batch outside of its transaction, which is open from offset 0 on"
    assert found(tmp_path, *content) == [("batch-invalid", message, 4)]


@pytest.mark.parametrize(("kind", "name"), [(2, "LEADER_CHANGE"), (99, "UNKNOWN"), (-1, "UNKNOWN")])
def test_a_control_record_of_a_producer_that_is_no_end_marker(tmp_path: Path, kind: int, name: str) -> None:
    message = f"a control record of producer 7 has the type {kind} ({name}), which is not an end marker"
    assert found(tmp_path, data(0, 7), control(2, 7, kind)) == [("control-record-invalid", message, 2)]


def test_control_records_without_a_producer_may_have_any_type(tmp_path: Path) -> None:
    codes = {code for code, *_ in found(tmp_path, control(0, -1, 2), control(1, -1, 99))}
    assert codes == {"batch-invalid"}  # only metadata logs have such batches
