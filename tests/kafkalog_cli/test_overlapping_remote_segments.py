"""Remote segments that overlap: brokers that led in turn began their segments at different offsets."""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from pathlib import Path

import pytest

from format.internal_topics.encoder import encode_message, unsigned_varint
from format.internal_topics.schema import schema_of
from format.limits import DEFAULT_LIMITS
from format.node.partition import read_partition
from format.state.tiered_logs import TOPIC, read_remote_segments
from kafkalog_cli.main import main
from tests.building import BASE_TIMESTAMP, batch, batches, write_indexed_segment, write_segment

_ID = "CoCWAltOSB6aWFNGDEJxvQ"
#: Offsets of remote segments in the order in which they were copied. A batch has one record.
_COPIED = [(0, 9), (10, 24), (20, 29), (30, 45)]
_LOG_END = 50


def _segment_id(number: int) -> str:
    return f"{number}" * 21 + "A"


def _record(
    number: int, first: int, last: int, size_bytes: int, epochs: Sequence[tuple[int, int]] = ((0, 0),), state: int = 1
) -> bytes:
    """The record that a segment was copied."""
    kind = next(each for each in schema_of(TOPIC).types.values() if each.name == "REMOTE_LOG_SEGMENT_METADATA_RECORD")
    place = {"topicIdPartition": {"name": "orders", "id": _ID, "partition": 0}, "id": _segment_id(number)}
    data = {
        "remoteLogSegmentId": place, "startOffset": first, "endOffset": last, "brokerId": 1, "maxTimestampMs": 0,
        "eventTimestampMs": number,
        "segmentLeaderEpochs": [{"leaderEpoch": epoch, "offset": max(start, first)} for epoch, start in epochs],
        "segmentSizeInBytes": size_bytes, "customMetadata": None, "remoteLogSegmentState": state, "txnIndexEmpty": True,
    }  # fmt: skip
    return b"".join(map(unsigned_varint, (1, kind.id, 0))) + encode_message(kind.value, 0, data)


@pytest.mark.parametrize(("has_metadata", "local_start"), [(True, 40), (True, 30), (False, 40)])
def test_each_record_is_read_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], has_metadata: bool, local_start: int
) -> None:
    """A consumer gets them so from a real broker. Its disk has other segments again, of which one is longer."""
    content = batches(_LOG_END, values=1)
    partition, objects = tmp_path / "node" / "orders-0", tmp_path / "remote" / f"orders-0-{_ID}"
    partition.mkdir(parents=True)
    (partition / "partition.metadata").write_text(f"version: 0\ntopic_id: {_ID}")
    write_indexed_segment(partition, local_start, content[local_start:])
    records = []
    for number, (first, last) in enumerate(_COPIED):
        log = write_indexed_segment(objects, first, content[first : last + 1])
        log.with_suffix(".timeindex").write_bytes(struct.pack(">qi", BASE_TIMESTAMP + last, last - first))
        for path in list(objects.glob(f"{first:020d}.*")):
            path.rename(path.with_name(f"{first:020d}-{_segment_id(number)}{path.suffix}"))
        size_bytes = sum(map(len, content[first : last + 1]))
        records.append(batch(number, [_record(number, first, last, size_bytes)], key=None))
    if has_metadata:
        write_segment(tmp_path / "node" / f"{TOPIC}-0", 0, records)
    remote = str(tmp_path / "remote")
    main(["dump", "--records", str(partition), "--remote", remote, "--format", "jsonl"])
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row["offset"] for row in rows if row["type"] == "record"] == list(range(_LOG_END))
    assert main(["verify", str(partition), "--remote", remote, "--format", "jsonl"]) == 0
    found = [json.loads(line)["code"] for line in capsys.readouterr().out.splitlines() if '"finding"' in line]
    assert not found
    for offset in (8, 15, 22):
        sought = ["--timestamp", str(BASE_TIMESTAMP + offset), str(partition)]
        assert main(["find", *sought, "--remote", remote, "--format", "jsonl"]) == 0
        row, _ = map(json.loads, capsys.readouterr().out.splitlines())
        assert row["offset"] == offset


#: Of epoch 0 up to offset 19, then of epoch 1; the last segment is of a leader that was replaced, and copied late.
_EPOCHS = ((0, 0), (1, 20))
_LATE = {
    "the same first offset": [(0, 9, _EPOCHS[:1]), (10, 29, _EPOCHS), (30, 45, _EPOCHS[1:]), (10, 35, _EPOCHS[:1])],
    "an earlier one": [(0, 9, _EPOCHS[:1]), (20, 29, _EPOCHS[1:]), (30, 45, _EPOCHS[1:]), (10, 24, _EPOCHS[:1])],
    "a later one": [(0, 29, _EPOCHS), (30, 45, _EPOCHS[1:]), (15, 24, _EPOCHS[:1])],
}


@pytest.mark.parametrize("has_checkpoint", [True, False])
@pytest.mark.parametrize("name", _LATE)
def test_what_a_replaced_leader_copied_late_is_read_as_far_as_epochs_agree(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, has_checkpoint: bool
) -> None:
    """RemoteLogMetadataCache of 4.3.1 returns the segments of epoch 1 from offset 20 on."""
    partition, objects = tmp_path / "node" / "orders-0", tmp_path / "remote" / f"orders-0-{_ID}"
    partition.mkdir(parents=True)
    (partition / "partition.metadata").write_text(f"version: 0\ntopic_id: {_ID}")
    if has_checkpoint:
        (partition / "leader-epoch-checkpoint").write_text("0\n2\n0 0\n1 20\n")
    content = [batch(at, [b"right"], leader_epoch=int(at >= 20)) for at in range(_LOG_END)]
    write_indexed_segment(partition, 40, content[40:])
    records = []
    for number, (first, last, epochs) in enumerate(_LATE[name]):
        own = content[first : last + 1]
        if number == len(_LATE[name]) - 1:
            own = [batch(at, [b"right" if at < 20 else b"wrong"]) for at in range(first, last + 1)]
        log = write_indexed_segment(objects, first, own)
        for path in list(objects.glob(f"{first:020d}.*")):
            path.rename(path.with_name(f"{first:020d}-{_segment_id(number)}{path.suffix}"))
        assert not log.exists()
        records.append(batch(number, [_record(number, first, last, sum(map(len, own)), epochs)], key=None))
    write_segment(tmp_path / "node" / f"{TOPIC}-0", 0, records)
    main(["dump", "--records", str(partition), "--remote", str(tmp_path / "remote"), "--format", "jsonl"])
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    found = [(row["offset"], row["value"]) for row in rows if row["type"] == "record"]
    assert found == [(offset, "right") for offset in range(_LOG_END)]


def test_an_older_replica_of_the_topic_does_not_take_states_back(tmp_path: Path) -> None:
    records = [batch(at, [_record(7, 0, 9, 100, state=state)], key=None) for at, state in enumerate((1, 3))]
    for name, count in (("now", 2), ("backup", 1)):
        write_segment(tmp_path / name / f"{TOPIC}-0", 0, records[:count])
    replicas = [read_partition(tmp_path / name / f"{TOPIC}-0") for name in ("now", "backup")]
    (segment,) = read_remote_segments(replicas, DEFAULT_LIMITS).by_id.values()
    assert segment.state_words == "deleted"
