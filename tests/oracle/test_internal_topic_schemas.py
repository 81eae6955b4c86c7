"""The schemas of the internal topics against a release's jars: its generated classes, its messages, its tools.

Where a newer release differs, the first test names every field that is missing, gone or changed.
"""

from __future__ import annotations

import base64
import json
import random
import re
import shutil
import struct
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from crc32c import crc32c

from format.internal_topics.decoder import INTERNAL_TOPICS, decode_control_value, decoder_for
from format.internal_topics.dump_log import dump_log_contents, dump_log_json, to_json_text
from format.internal_topics.reader import Cursor, reader_for
from format.internal_topics.schema import Message, MessageField, RecordType
from format.layout import CONTROL_KEY, RECORD_BATCH
from tests.conftest import unavailable
from tests.corpora import Corpus
from tests.format.internal_topics.known_messages import MESSAGES, VERSIONS, record_types, records_of
from tests.format.internal_topics.message_encoder import encode
from tests.oracle.kafka_lab import KafkaLab
from tests.record_encoder import encode_unsigned_varint, encode_varint

pytestmark = pytest.mark.oracle

VERSION = "4.3.1"
#: The release that the schemas describe; its jars may be missing.
NEWEST = "4.4.0"
#: Messages of the scanned packages that are no record of a topic.
ELSEWHERE = {"AbortedTxn", "ControlRecordTypeSchema", "DefaultPrincipalData", "ProducerSnapshot"}
FLAGS = {
    "__consumer_offsets": "--offsets-decoder",
    "__transaction_state": "--transaction-log-decoder",
    "__share_group_state": "--share-group-state-decoder",
    "__cluster_metadata": "--cluster-metadata-decoder",
    "__remote_log_metadata": "--remote-log-metadata-decoder",
}
CONTROL_WORDS = {
    "LEADER_CHANGE": " LeaderChange: ",
    "SNAPSHOT_HEADER": " SnapshotHeader ",
    "SNAPSHOT_FOOTER": " SnapshotFooter ",
    "KRAFT_VERSION": " KRaftVersion ",
    "KRAFT_VOTERS": " KRaftVoters ",
}
METADATA_PREFIX = re.compile(
    r"\| offset: (\d+) \w+: -?\d+ keySize: -?\d+ valueSize: -?\d+ sequence: -?\d+ headerKeys: \[\]"
)
DumpLog = Callable[..., "subprocess.CompletedProcess[bytes]"]


@pytest.fixture(params=[VERSION, NEWEST])
def release(request: pytest.FixtureRequest) -> str:
    """Each of both releases."""
    version: str = request.param
    missing = KafkaLab().missing(version)
    if missing is not None and version == NEWEST:
        pytest.skip(f"the jars of Kafka {version} are missing: run .ci/kafka-jars {version}")
    return version


def run_message_schemas(version: str, *arguments: str) -> str:
    """One run of MessageSchemas.java on the jars of a release."""
    lab = KafkaLab()
    missing = lab.missing(version)
    if missing is not None:
        unavailable(missing)
    libraries = lab.home / f"kafka-{version}" / "libs"
    source = Path(__file__).with_name("MessageSchemas.java")
    command = [str(lab.java), "-Dfile.encoding=UTF-8", "-Dstdout.encoding=UTF-8", "-Dsun.stdout.encoding=UTF-8"]
    done = subprocess.run(
        [*command, "-cp", f"{libraries}/*", str(source), *arguments], capture_output=True, timeout=300, check=False
    )
    if done.returncode and b"release version" in done.stderr + done.stdout:
        unavailable(f"this java is too old for {source.name}")
    assert done.returncode == 0, done.stderr.decode()[-3000:]
    return done.stdout.decode("utf-8")


# -- schemas -------------------------------------------------------------------------------------------------


def flattened(fields: tuple[MessageField, ...], version: int, prefix: str) -> Iterator[str]:
    """One line for each field of a version: what it is called, what it is, and where Kafka writes it."""
    present = [each for each in fields if version in each.versions]
    for order, each in enumerate(present):
        parts = [f"{prefix}.{each.name}", each.type, f"place {order}"]
        if version in each.nullable:
            parts.append("nullable")
        if each.tag is not None:
            parts.append(f"tag {each.tag} default {json.dumps({} if each.type == 'struct' else each.default)}")
        yield " ".join(parts)
        yield from flattened(each.fields, version, f"{prefix}.{each.name}")


def ours(message: Message) -> Iterator[str]:
    for version in message.versions:
        name = f"{message.name} v{version}"
        yield f"{name} {'flexible' if version in message.flexible else 'not flexible'}"
        for line in flattened(message.fields, version, name):
            yield line if version in message.flexible or " tag " not in line else f"{line} in a version without tags"


def kafkas_fields(schema: dict[str, Any], prefix: str) -> Iterator[str]:
    present = sorted(schema["fields"], key=lambda each: each["order"])
    for order, each in enumerate(present):
        parts = [f"{prefix}.{each['name']}", each["type"], f"place {order}"]
        if each["nullable"]:
            parts.append("nullable")
        if "tag" in each:
            parts.append(f"tag {each['tag']} default {json.dumps(each['default'])}")
        yield " ".join(parts)
        if "struct" in each:
            yield from kafkas_fields(each["struct"], f"{prefix}.{each['name']}")


def kafkas(message: dict[str, Any]) -> Iterator[str]:
    for version, schema in message["versions"].items():
        name = f"{message['name']} v{version}"
        yield f"{name} {'flexible' if schema['flexible'] else 'not flexible'}"
        yield from kafkas_fields(schema, name)


def kinds_of(version: str) -> list[tuple[str, RecordType]]:
    """The record types of a release, as the schemas have them."""
    if version == NEWEST:
        return list(record_types())
    return [(topic, kind) for topic in INTERNAL_TOPICS for kind in decoder_for(topic, (4, 3)).record_types.values()]


def test_schemas(release: str) -> None:
    asked = json.loads(run_message_schemas(release, "schemas"))
    kinds = kinds_of(release)
    retired = {each.name for _, kind in kinds if kind.until for each in (kind.key, kind.value) if each is not None}
    messages = {each.name: each for _, kind in kinds for each in (kind.key, kind.value) if each is not None}
    elsewhere = {
        name: each for name, each in MESSAGES.items() if name not in {kind.value.name for _, kind in record_types()}
    }
    expected = {line for each in asked["messages"] if each["name"] not in ELSEWHERE for line in kafkas(each)}
    found = {line for name, each in (elsewhere | messages).items() if name not in retired for line in ours(each)}
    assert len(asked["messages"]) > 80
    assert sorted(expected - found) == [], "Kafka has these, the schemas do not"
    assert sorted(found - expected) == [], "the schemas have these, Kafka does not"


@pytest.mark.parametrize("version", ["3.9.1", "4.0.0", "4.2.0"])
def test_metadata_records_of_earlier_releases(version: str) -> None:
    """What the schema says that came later, the jars of these releases lack."""
    if (missing := KafkaLab().missing(version)) is not None:
        pytest.skip(missing)
    release = tuple(map(int, version.split(".")[:2]))
    asked = json.loads(run_message_schemas(version, "schemas"))
    expected = {line for each in asked["messages"] if each["topic"] == "__cluster_metadata" for line in kafkas(each)}
    kinds = decoder_for("__cluster_metadata", release).record_types.values()
    assert {line for kind in kinds if kind.until is None for line in ours(kind.value)} == expected


def test_record_types(release: str) -> None:
    asked = json.loads(run_message_schemas(release, "schemas"))
    expected = {
        (
            each["topic"],
            each["id"],
            each["name"],
            each.get("newRecordKey"),
            each.get("newRecordValue") or each.get("newMetadataRecord"),
        )
        for each in asked["types"]
    }
    found = {
        (topic, kind.id, kind.name, None if kind.key is None else kind.key.name, kind.value.name)
        for topic, kind in kinds_of(release)
        if not kind.until
    }
    assert found == expected


# -- messages ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def kafkas_messages() -> list[dict[str, Any]]:
    """Other random messages than those that ship, with the text of Kafka's JSON converters."""
    version = VERSION if KafkaLab().missing(NEWEST) else NEWEST
    lines = run_message_schemas(version, "messages", "20260617", "8").split("\n")
    rows = [json.loads(line) for line in lines if line]
    return [row for row in rows if row["name"] in MESSAGES]


def test_messages(kafkas_messages: list[dict[str, Any]]) -> None:
    seen = set()
    for row in kafkas_messages:
        raw = bytes.fromhex(row["hex"])
        cursor = Cursor(raw, "value")
        data = reader_for(MESSAGES[row["name"]], row["version"])(cursor)
        assert to_json_text(data) == row["json"], f"{row['name']} v{row['version']}"
        assert (cursor.position, cursor.problems) == (len(raw), [])
        assert encode(MESSAGES[row["name"]], row["version"], data) == raw
        seen.add((row["name"], row["version"]))
    assert len(seen) > len(VERSIONS) - 6


# -- kafka-dump-log ------------------------------------------------------------------------------------------


def dumped(kafka_lab: DumpLog, topic: str, paths: list[Path]) -> dict[str, list[str]]:
    """What kafka-dump-log prints after each record's metadata, by file."""
    files = ",".join(map(str, paths))
    done = kafka_lab(VERSION, FLAGS[topic], "--files", files)
    assert done.returncode == 0, done.stderr.decode()[-2000:]
    found: dict[str, list[str]] = {}
    current: list[str] = []
    for line in done.stdout.decode("utf-8").split("\n"):
        if line.startswith("Dumping "):
            current = found.setdefault(line.removeprefix("Dumping "), [])
        elif line.startswith("| "):
            metadata = METADATA_PREFIX.match(line)
            assert metadata is not None, line
            current.append(f"{metadata[1]}{line[metadata.end() :]}")
    return found


def ours_of(topic: str, path: Path) -> list[str]:
    decoder = decoder_for(topic, (4, 3))
    lines = []
    for offset, is_control, key, value in records_of(path):
        if is_control:
            decoded = decode_control_value(CONTROL_KEY.struct.unpack_from(key or b"")[1], value)
            if decoded.record_type in CONTROL_WORDS:
                lines.append(f"{offset}{CONTROL_WORDS[decoded.record_type]}{dump_log_json(decoded)}")
            else:
                assert decoded.data is not None
                epoch = decoded.data["coordinatorEpoch"]
                lines.append(f"{offset} endTxnMarker: {decoded.record_type} coordinatorEpoch: {epoch}")
            continue
        key_text, payload = dump_log_contents(decoder, key, value, offset)
        shown = "" if key_text is None else f" key: {key_text}"
        lines.append(f"{offset}{shown}" + ("" if payload is None else f" payload: {payload}"))
    return lines


def test_every_internal_topic_of_a_corpus(corpus: Corpus, kafka_lab: DumpLog, tmp_path: Path) -> None:
    by_topic: dict[str, list[Path]] = {}
    for number, each in enumerate(corpus.files(".log", ".checkpoint")):
        name = "__cluster_metadata" if each.suffix == ".checkpoint" else each.parent.name.rsplit("-", 1)[0]
        if name in FLAGS:
            copy = tmp_path / str(number) / each.name  # the tool may write beside what it reads
            copy.parent.mkdir()
            shutil.copy(each, copy)
            by_topic.setdefault(name, []).append(copy)
    for topic, paths in by_topic.items():
        theirs = dumped(kafka_lab, topic, paths)
        for path in paths:
            assert ours_of(topic, path) == theirs[str(path)]


def batch(records: list[tuple[bytes | None, bytes | None]]) -> bytes:
    """One uncompressed v2 batch at offset 0."""
    body = b""
    for delta, parts in enumerate(records):
        record = b"\0" + encode_varint(0) + encode_varint(delta)
        for part in parts:
            record += encode_varint(-1) if part is None else encode_varint(len(part)) + part
        record += encode_varint(0)
        body += encode_varint(len(record)) + record
    count = len(records)
    length = RECORD_BATCH.size_bytes + len(body) - RECORD_BATCH.offset_of("leader_epoch")
    header = RECORD_BATCH.struct.pack(0, length, 0, 2, 0, 0, count - 1, 0, 0, -1, -1, -1, count)
    checked = header[RECORD_BATCH.offset_of("attributes") :] + body
    at = RECORD_BATCH.offset_of("crc")
    return header[:at] + struct.pack(">I", crc32c(checked)) + checked


def coordinator_records(topic: str, by_name: dict[str, list[bytes]]) -> Iterator[tuple[bytes, bytes | None]]:
    decoder = decoder_for(topic)
    for kind in decoder.record_types.values():
        if kind.until:
            continue
        assert kind.key is not None
        keys = by_name[f"{kind.key.name} 0"]
        type_id = kind.id.to_bytes(2, "big")
        for version in kind.value.versions:
            for number, value in enumerate(by_name[f"{kind.value.name} {version}"]):
                yield type_id + keys[number], version.to_bytes(2, "big") + value
        yield type_id + keys[0], None
        yield type_id + keys[0] + b"left over", b"\0\0" + by_name[f"{kind.value.name} 0"][0] + b"left over"
    yield b"\x7f\xff", b"a type that nobody knows"
    yield type_id + keys[0], b"\x00\x7f a version that nobody knows"


def groups_with_blobs(by_name: dict[str, list[bytes]], dice: random.Random) -> Iterator[tuple[bytes, bytes]]:
    """Metadata of classic groups whose members' blobs are whole, cut short, followed by more, and newer."""
    group = reader_for(MESSAGES["GroupMetadataValue"], 3)
    for raw in by_name["GroupMetadataValue 3"]:
        data = group(Cursor(raw, "value")) | {"protocolType": "consumer"}
        for member in data["members"]:
            for name, message in (
                ("subscription", "ConsumerProtocolSubscription"),
                ("assignment", "ConsumerProtocolAssignment"),
            ):
                version = dice.randrange(6)
                blob = version.to_bytes(2, "big") + dice.choice(by_name[f"{message} {min(version, 3)}"])
                cut = dice.choice([len(blob), len(blob), 1, len(blob) - 1])
                member[name] = bytes_text(blob[:cut] + dice.choice([b"", b"", b"tail"]))
        yield b"\x00\x02\x00\x01g", b"\x00\x03" + encode(MESSAGES["GroupMetadataValue"], 3, data)


def bytes_text(raw: bytes) -> str:
    return base64.b64encode(raw).decode()


def framed_records(topic: str, by_name: dict[str, list[bytes]]) -> Iterator[tuple[None, bytes]]:
    decoder = decoder_for(topic)
    for kind in decoder.record_types.values():
        if kind.until:
            continue
        for version in kind.value.versions:
            frame = b"\x01" + encode_unsigned_varint(kind.id) + encode_unsigned_varint(version)
            for value in by_name.get(f"{kind.value.name} {version}", ()):
                yield None, frame + value


def remote_records(dice: random.Random) -> Iterator[tuple[None, bytes]]:
    """Plausible ones, as Kafka makes objects of them that refuse most random content."""

    def uuid() -> str:
        return bytes_text(dice.randbytes(16))[:21].translate(str.maketrans("+/", "-_")) + "A"

    for _ in range(12):
        partition = {"name": "plants", "id": uuid(), "partition": dice.randrange(9)}
        segment_id = {"topicIdPartition": partition, "id": uuid()}
        start = dice.randrange(2**40)
        when = {"brokerId": dice.randrange(9), "eventTimestampMs": dice.randrange(2**41)}
        custom = dice.choice([None, bytes_text(dice.randbytes(dice.randrange(5)))])
        epochs = [{"leaderEpoch": dice.randrange(2**31), "offset": dice.randrange(99)} for _ in range(4)]
        state = {"customMetadata": custom, "remoteLogSegmentState": dice.randrange(4)}
        segment: dict[str, Any] = {
            "startOffset": start,
            "endOffset": start + dice.randrange(99),
            "maxTimestampMs": dice.randrange(2**41),
            "segmentLeaderEpochs": epochs,
            "segmentSizeInBytes": dice.randrange(2**31),
            **when,
            **state,
            **dice.choice([{}, {"txnIndexEmpty": True}]),
        }
        delete = {"topicIdPartition": partition, "remotePartitionDeleteState": dice.randrange(3), **when}
        for type_id, name, content in (
            (0, "RemoteLogSegmentMetadataRecord", {"remoteLogSegmentId": segment_id, **segment}),
            (0, "RemoteLogSegmentMetadataRecord", {"remoteLogSegmentId": segment_id, **segment, "startOffset": -1}),
            (0, "RemoteLogSegmentMetadataRecord", {"remoteLogSegmentId": segment_id, **segment, "endOffset": -1}),
            (1, "RemoteLogSegmentMetadataUpdateRecord", {"remoteLogSegmentId": segment_id, **when, **state}),
            (2, "RemotePartitionDeleteMetadataRecord", delete),
            (3, "RemoteLogSegmentMetadataSnapshotRecord", {"segmentId": uuid(), **segment}),
        ):
            yield None, bytes([1, type_id, 0]) + encode(MESSAGES[name], 0, content)


@pytest.mark.parametrize("topic", FLAGS)
def test_a_segment_of_everything(
    topic: str, kafkas_messages: list[dict[str, Any]], kafka_lab: DumpLog, tmp_path: Path
) -> None:
    by_name: dict[str, list[bytes]] = {}
    for row in kafkas_messages:
        by_name.setdefault(f"{row['name']} {row['version']}", []).append(bytes.fromhex(row["hex"]))
    dice = random.Random(topic)
    records: list[tuple[bytes | None, bytes | None]] = []
    if topic == "__remote_log_metadata":
        records += remote_records(dice)
    elif topic == "__cluster_metadata":
        records += framed_records(topic, by_name)
        records += [(None, b"\x01\x14\x00\x00left over"), (None, b"\x01\x7f\x00")]
    else:
        records += coordinator_records(topic, by_name)
        if topic == "__consumer_offsets":
            records += groups_with_blobs(by_name, dice)
    path = tmp_path / f"{0:020d}.log"
    path.write_bytes(batch(records))
    theirs = dumped(kafka_lab, topic, [path])[str(path)]
    found = ours_of(topic, path)
    assert len(found) == len(theirs) == len(records)
    for mine, kafka in zip(found, theirs, strict=True):
        assert mine == kafka
