"""The words of kafka-dump-log."""

from __future__ import annotations

from typing import Any

import pytest

from format.internal_topics.decoder import decoder_for
from format.internal_topics.dump_log import dump_log_contents, dump_log_json, java_double, to_json_text
from tests.format.internal_topics.known_messages import MESSAGES, bytes_of, shipped
from tests.format.internal_topics.message_encoder import encode


def contents(topic: str, key: bytes | None, value: bytes | None) -> tuple[str | None, str | None]:
    decoder = decoder_for(topic)
    return dump_log_contents(decoder, key, value, 12)


@pytest.mark.parametrize("row", shipped("broker_records.json"), ids=lambda row: f"{row['file']}@{row['offset']}")
def test_what_brokers_wrote(row: dict[str, Any]) -> None:
    found = contents(row["topic"], bytes_of(row, "key"), bytes_of(row, "value"))
    assert found == (row["key_text"], row["payload_text"])


def test_text_is_escaped_as_jackson_does() -> None:
    assert to_json_text('a"\\/\b\f\n\r\t\x00\x1f\x7f\x85\u2028é🚀') == (
        '"a\\"\\\\/\\b\\f\\n\\r\\t\\u0000\\u001F\x7f\x85\u2028é🚀"'
    )
    assert to_json_text({"b": [1, True, None, -1.5], "_taggedFields": {"1": ""}, "a": {}}) == (
        '{"b":[1,true,null,-1.5],"a":{}}'
    )


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0.0, "0.0"),
        (-0.0, "-0.0"),
        (1.0, "1.0"),
        (-12.5, "-12.5"),
        (100.0, "100.0"),
        (0.001, "0.001"),
        (0.0005, "5.0E-4"),
        (0.012345, "0.012345"),
        (9999999.0, "9999999.0"),
        (1e7, "1.0E7"),
        (12345678.0, "1.2345678E7"),
        (123456789.125, "1.23456789125E8"),
        (1e300, "1.0E300"),
        (1.7976931348623157e308, "1.7976931348623157E308"),
        (1.5e-10, "1.5E-10"),
    ],
)
def test_doubles_are_javas(number: float, text: str) -> None:
    assert java_double(number) == text


def test_what_kafka_cannot_decode() -> None:
    key = bytes.fromhex("0001 0001 67 0001 74 00000003")
    assert contents("__consumer_offsets", b"\x00\x63", b"") == ("Unknown record type 99 at offset 12, skipping.", None)
    assert contents("__consumer_offsets", key, b"\x00\x09") == (
        "Error at offset 12, skipping. Found an unknown record version 9 for 1 type",
        None,
    )
    key_text, payload = contents("__consumer_offsets", key, b"\x00\x03\x00")
    assert key_text is not None
    assert key_text.startswith("Error at offset 12, skipping. ")
    assert payload is None
    assert contents("__cluster_metadata", None, bytes.fromhex("01 63 00")) == (
        None,
        "Error at 12, skipping. org.apache.kafka.common.errors.UnsupportedVersionException: Unknown metadata id 99",
    )
    assert contents("__cluster_metadata", None, bytes.fromhex("01 14 00 00 ff ff")) == (
        None,
        "Error at 12, skipping. Found 2 byte(s) of garbage after 20",
    )
    assert contents("__cluster_metadata", None, bytes.fromhex("8201 14 00 00")) == (
        None,
        (
            "Error at 12, skipping. Could not deserialize metadata record due to unknown frame version 130"
            "(only frame version 1 is supported)"
        ),
    )
    payload = contents("__cluster_metadata", None, bytes.fromhex("01 02 00 7f"))[1]
    assert payload is not None
    assert payload.startswith("Error at 12, skipping. ")


def test_what_is_not_decoded_has_no_text() -> None:
    decoder = decoder_for("__consumer_offsets")
    with pytest.raises(ValueError, match="not decoded"):
        dump_log_json(decoder.decode_key(b"\x00\x63"))


# The objects that these records become, as storage-api prints them; the oracle test compares with Kafka itself.
PARTITION = {"name": "t", "id": "AAAAAAAAAAAAAAAAAAAAAQ", "partition": 4}
SEGMENT_ID = {"topicIdPartition": PARTITION, "id": "AAAAAAAAAAAAAAAAAAAAAg"}
ID_TEXT = "RemoteLogSegmentId{topicIdPartition=AAAAAAAAAAAAAAAAAAAAAQ:t-4, id=AAAAAAAAAAAAAAAAAAAAAg}"
SEGMENT = {
    "startOffset": 10,
    "endOffset": 20,
    "brokerId": 1,
    "maxTimestampMs": 30,
    "eventTimestampMs": 40,
    "segmentLeaderEpochs": [{"leaderEpoch": 2, "offset": 15}, {"leaderEpoch": 1, "offset": 10}],
    "segmentSizeInBytes": 50,
    "customMetadata": "AQI=",
    "remoteLogSegmentState": 1,
}


def remote(message: Any, type_id: int, content: dict[str, Any]) -> str | None:
    return contents("__remote_log_metadata", None, bytes([1, type_id, 0]) + encode(message, 0, content))[1]


def test_remote_log_metadata() -> None:
    assert remote(MESSAGES["RemoteLogSegmentMetadataRecord"], 0, {"remoteLogSegmentId": SEGMENT_ID} | SEGMENT) == (
        f"RemoteLogSegmentMetadata{{remoteLogSegmentId={ID_TEXT}, startOffset=10, endOffset=20, brokerId=1, "
        "maxTimestampMs=30, eventTimestampMs=40, segmentLeaderEpochs={1=10, 2=15}, segmentSizeInBytes=50, "
        "customMetadata=Optional[CustomMetadata{2 bytes}], state=COPY_SEGMENT_FINISHED, txnIdxEmpty=false}"
    )
    update = {
        "remoteLogSegmentId": SEGMENT_ID,
        "brokerId": 1,
        "eventTimestampMs": 40,
        "customMetadata": None,
        "remoteLogSegmentState": 3,
    }
    assert remote(MESSAGES["RemoteLogSegmentMetadataUpdateRecord"], 1, update) == (
        f"RemoteLogSegmentMetadataUpdate{{remoteLogSegmentId={ID_TEXT}, customMetadata=Optional.empty, "
        "state=DELETE_SEGMENT_FINISHED, eventTimestampMs=40, brokerId=1}"
    )
    delete = {"topicIdPartition": PARTITION, "brokerId": 1, "eventTimestampMs": 40, "remotePartitionDeleteState": 0}
    assert remote(MESSAGES["RemotePartitionDeleteMetadataRecord"], 2, delete) == (
        "RemotePartitionDeleteMetadata{topicPartition=AAAAAAAAAAAAAAAAAAAAAQ:t-4, state=DELETE_PARTITION_MARKED, "
        "eventTimestampMs=40, brokerId=1}"
    )


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        ({"startOffset": -1}, "Unexpected start offset = -1. StartOffset for a remote segment cannot be negative"),
        (
            {"endOffset": 9},
            "Unexpected end offset = 9. EndOffset for a remote segment cannot be less than startOffset = 10",
        ),
        ({"segmentLeaderEpochs": []}, "segmentLeaderEpochs can not be null or empty"),
        ({"remoteLogSegmentState": 4}, "state can not be null"),
    ],
)
def test_remote_log_metadata_that_kafka_refuses(changed: dict[str, Any], text: str) -> None:
    content = {"remoteLogSegmentId": SEGMENT_ID} | SEGMENT | changed
    expected = f"Error at offset 12, skipping. {text}"
    assert remote(MESSAGES["RemoteLogSegmentMetadataRecord"], 0, content) == expected
    snapshot = remote(
        MESSAGES["RemoteLogSegmentMetadataSnapshotRecord"], 3, {"segmentId": SEGMENT_ID["id"]} | SEGMENT | changed
    )
    if "startOffset" in changed or "endOffset" in changed:  # of which Kafka is less careful there
        assert snapshot is not None
        assert snapshot.startswith("RemoteLogSegmentMetadataSnapshot{")
    else:
        assert snapshot == expected
