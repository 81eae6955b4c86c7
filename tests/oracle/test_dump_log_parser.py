"""The parser of kafka-dump-log's output, on output that releases 3.9.1 and 4.3.1 really printed (``captured/``)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.oracle.dump_log_parser import DumpedFile, UnparsedOutput, comparable, parse_dump_log, printed_text

CAPTURED = Path(__file__).parent / "captured"
NODE = "kafka-4.3-single/node-1"
SEGMENT = "00000000000000000000"


@pytest.fixture(params=["4.3.1", "3.9.1"])
def version(request: pytest.FixtureRequest) -> str:
    return request.param


def captured(version: str, name: str) -> dict[str, DumpedFile]:
    return parse_dump_log((CAPTURED / f"{version}-{name}.txt").read_bytes())


def test_batches_of_a_shallow_dump(version: str) -> None:
    users = captured(version, "shallow")[f"{NODE}/users-0/{SEGMENT}.log"]
    assert users.heading == "Log starting offset: 0"
    assert users.records == []
    assert users.entries == []
    assert [batch["position"] for batch in users.batches] == [0, 13423, 14371, 20496, 21880, 27278]
    assert users.batches[2] == {
        "base_offset": 250,
        "last_offset": 473,
        "record_count": 112,
        "base_sequence": -1,
        "last_sequence": -1,
        "producer_id": -1,
        "producer_epoch": -1,
        "leader_epoch": 0,
        "is_transactional": False,
        "is_control": False,
        "delete_horizon_ms": 1795350504391,
        "position": 14371,
        "timestamp_type": "CreateTime",
        "timestamp": 1795250500502,
        "size_bytes": 6125,
        "magic": 2,
        "codec": "lz4",
        "crc": 1597001428,
        "crc_valid": True,
    }
    assert users.batches[3]["delete_horizon_ms"] is None


def test_log_append_time(version: str) -> None:
    clicks = captured(version, "shallow")[f"{NODE}/clicks-snappy-0/{SEGMENT}.log"]
    assert [batch["timestamp_type"] for batch in clicks.batches] == ["LogAppendTime"] * 2


def test_indexes(version: str) -> None:
    files = captured(version, "shallow")
    assert files[f"{NODE}/users-0/{SEGMENT}.index"].entries == [
        {"offset": 249, "position": 13423},
        {"offset": 499, "position": 20496},
        {"offset": 749, "position": 27278},
    ]
    assert files[f"{NODE}/users-0/{SEGMENT}.timeindex"].entries == [
        {"timestamp": 1795250496994, "offset": 224},
        {"timestamp": 1795250500502, "offset": 473},
        {"timestamp": 1795250504017, "offset": 727},
    ]
    assert files[f"{NODE}/sensor-0/{SEGMENT}.index"].entries == []
    assert files[f"{NODE}/__transaction_state-3/{SEGMENT}.index"].entries == []
    assert files[f"{NODE}/sensor-0/{SEGMENT}.timeindex"].entries == [{"timestamp": 1795164089963, "offset": 14}]


def test_transactions(version: str) -> None:
    files = captured(version, "transactions")
    payments = files[f"{NODE}/payments-0/{SEGMENT}.log"]
    assert [batch["is_control"] for batch in payments.batches[:2]] == [False, True]
    assert all(batch["is_transactional"] for batch in payments.batches[:2])
    marker = payments.records[30]
    assert (marker["offset"], marker["position"]) == (30, 4276)
    assert marker["control"] == "endTxnMarker: COMMIT coordinatorEpoch: 0"
    assert (marker["key"], marker["value"]) == (None, None)
    assert files["kafka-4.3/node-1/payments-0/" + SEGMENT + ".txnindex"].entries == [
        {"version": 0, "producer_id": 6, "first_offset": 9, "last_offset": 49, "last_stable_offset": 50},
        {"version": 0, "producer_id": 1001, "first_offset": 227, "last_offset": 271, "last_stable_offset": 272},
    ]
    producers = files[f"{NODE}/payments-0/00000000000000000176.snapshot"].entries
    assert [each["current_txn_first_offset"] for each in producers] == [None, None, None, 111]
    assert producers[3] == {
        "producer_id": 12,
        "producer_epoch": 0,
        "coordinator_epoch": -1,
        "current_txn_first_offset": 111,
        "timestamp": 1795250496445,
        "first_sequence": 0,
        "last_sequence": 24,
        "last_offset": 135,
        "offset_delta": 24,
        "batch_timestamp": 1795250496445,
    }


def test_records_with_line_breaks_and_null_keys(version: str) -> None:
    records = captured(version, "edge-cases")[f"{NODE}/edge.cases_1-0/{SEGMENT}.log"].records
    assert [record["key"] for record in records] == [None] * 4
    assert [record["value"] for record in records] == [None, "", "v", "日本語\n\x1b[31mred\x1b[0m \u202e"]
    assert [record["header_keys"] for record in records] == [",h"] * 4
    assert [(record["key_bytes"], record["value_bytes"]) for record in records] == [
        (-1, -1),
        (-1, 0),
        (-1, 1),
        (-1, 26),
    ]
    assert [record["position"] for record in records] == [0, 73, 146, 220]


def test_messages_of_magic_0(version: str) -> None:
    legacy = captured(version, "legacy")[f"kafka-0.8-to-2.8/data/legacy-0/{SEGMENT}.log"]
    assert legacy.batches[1] == {
        "last_offset": 1,
        "position": 172,
        "timestamp_type": "NoTimestampType",
        "timestamp": -1,
        "size_bytes": 268,
        "magic": 0,
        "codec": "none",
        "crc": 684462444,
        "crc_valid": True,
    }
    assert legacy.records[0]["key"] == "k21938"
    assert legacy.records[0]["value"].startswith('{"v": "0.8.2.2", "codec": "none", "i": 0, "text": "日本 cart')
    assert (legacy.records[0]["crc"], legacy.records[0]["crc_valid"]) == (746113200, True)


def test_the_raft_log_and_its_snapshots(version: str) -> None:
    files = captured(version, "metadata")
    log = files[f"{NODE}/__cluster_metadata-0/{SEGMENT}.log"]
    assert log.records[0]["control"].startswith({"4.3.1": "LeaderChange: {", "3.9.1": "controlType: "}[version])
    snapshot = files[f"{NODE}/__cluster_metadata-0/00000000000000000062-0000000001.checkpoint"]
    assert snapshot.heading == "Snapshot end offset: 62, epoch: 1"
    assert [batch["record_count"] for batch in snapshot.batches] == [1, 9, 1]
    assert "SnapshotHeader" in snapshot.records[0]["control"]
    assert "SnapshotFooter" in snapshot.records[-1]["control"]


def test_a_torn_tail(version: str) -> None:
    torn = captured(version, "torn")[f"torn/{SEGMENT}.log"]
    assert len(torn.batches) == 1
    assert torn.invalid_bytes == 3009


def record_line(rest: str) -> bytes:
    batch = (
        "baseOffset: 0 lastOffset: 0 count: 1 baseSequence: -1 lastSequence: -1 producerId: -1 producerEpoch: -1"
        " partitionLeaderEpoch: 0 isTransactional: false isControl: false deleteHorizonMs: OptionalLong.empty"
        " position: 0 CreateTime: 1 size: 73 magic: 2 compresscodec: none crc: 1 isvalid: true"
    )
    return f"Dumping a.log\nLog starting offset: 0\n{batch}\n| offset: 0 CreateTime: 1 {rest}\n".encode()


def test_a_key_that_holds_the_word_before_a_payload() -> None:
    rest = "keySize: 13 valueSize: 1 sequence: -1 headerKeys: [] key: é payload: b payload: c"
    record = parse_dump_log(record_line(rest))["a.log"].records[0]
    assert (record["key"], record["value"]) == ("é payload: b", "c")


def test_a_key_alone() -> None:
    rest = "keySize: 3 valueSize: -1 sequence: -1 headerKeys: [x] key: abc"
    record = parse_dump_log(record_line(rest))["a.log"].records[0]
    assert (record["key"], record["value"], record["header_keys"]) == ("abc", None, "x")


@pytest.mark.parametrize(
    "output",
    [
        b"nonsense\n",
        b"Dumping a.index\nnonsense\n",
        b"Dumping a.log\nLog starting offset: 0\nnonsense\n",
        record_line("keySize: 3 valueSize: -1 sequence: -1 headerKeys: [] nonsense"),
    ],
)
def test_unknown_output_is_refused(output: bytes) -> None:
    with pytest.raises(UnparsedOutput):
        parse_dump_log(output)


def test_text_of_bytes_that_are_not_utf_8() -> None:
    assert printed_text(None) is None
    assert printed_text("é".encode()) == "é"
    assert printed_text(b"a\xff\xfe\xfdb") == "a\ufffdb"
    assert comparable("\ufffd\ufffdx\ufffd") == "\ufffdx\ufffd"
