"""Values of control records."""

from __future__ import annotations

import json
from typing import Any

import pytest

from format.errors import CorruptDataError, TruncatedData
from format.internal_topics.decoder import decode_control_value
from format.internal_topics.dump_log import dump_log_json
from format.internal_topics.schema import schema_of
from format.layout import CONTROL_TYPES
from tests.format.internal_topics.known_messages import shipped

RECORDS = shipped("broker_control_records.json")


def test_every_control_type_has_a_message() -> None:
    assert [each.name for each in schema_of("control_records").types.values()] == list(CONTROL_TYPES)
    assert {row["type"] for row in RECORDS} == set(range(2, len(CONTROL_TYPES)))


@pytest.mark.parametrize("row", RECORDS, ids=lambda row: f"{row['file']}@{row['offset']}")
def test_what_brokers_wrote(row: dict[str, Any]) -> None:
    raw = bytes.fromhex(row["value"])
    decoded = decode_control_value(row["type"], raw)
    assert decoded.record_type == CONTROL_TYPES[row["type"]]
    assert decoded.data == json.loads(row["text"])
    assert dump_log_json(decoded) == row["text"]
    assert decoded.problems == ()
    for length in range(len(raw)):
        with pytest.raises(TruncatedData):
            decode_control_value(row["type"], raw[:length])


def test_a_leader_change_with_directories() -> None:
    ids = bytes(15) + b"\x01"
    raw = bytes.fromhex("0001 00000003 02 00000002") + ids + bytes.fromhex("00 01 00")
    decoded = decode_control_value(2, raw)
    assert decoded.version == 1
    voter = {"voterId": 2, "voterDirectoryId": "AAAAAAAAAAAAAAAAAAAAAQ"}
    assert decoded.data == {"version": 1, "leaderId": 3, "voters": [voter], "grantingVoters": []}


@pytest.mark.parametrize(("type_number", "name"), [(0, "ABORT"), (1, "COMMIT")])
def test_transaction_markers(type_number: int, name: str) -> None:
    decoded = decode_control_value(type_number, bytes.fromhex("0000 00000007"))
    assert (decoded.name, decoded.record_type, decoded.data) == ("EndTxnMarker", name, {"coordinatorEpoch": 7})
    newer = decode_control_value(type_number, bytes.fromhex("0001 00000007"))
    assert newer.data == {"coordinatorEpoch": 7}
    assert [each.code for each in newer.problems] == ["version-unknown"]


@pytest.mark.parametrize(("type_number", "raw"), [(7, "0000"), (-1, "0000"), (3, "0001 00"), (2, "0002 00")])
def test_what_is_newer(type_number: int, raw: str) -> None:
    decoded = decode_control_value(type_number, bytes.fromhex(raw))
    assert decoded.data is None
    assert decoded.raw == bytes.fromhex(raw)
    assert [each.code for each in decoded.problems] == ["version-unknown"]


@pytest.mark.parametrize("raw", [None, b"", b"\x00"])
def test_no_value(raw: bytes | None) -> None:
    with pytest.raises(CorruptDataError):
        decode_control_value(2, raw)
