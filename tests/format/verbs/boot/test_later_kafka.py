"""A metadata log of a later Kafka than this program knows, which starts with it."""

from __future__ import annotations

from pathlib import Path

import pytest

from format.internal_topics.decoder import decoder_for
from format.layout import CONTROL_BIT, CONTROL_KEY
from format.limits import DEFAULT_LIMITS
from format.verbs.boot.boot import boot, refusal_findings
from format.verbs.boot.quorum import check_records
from format.verbs.boot.steps import Action, BootTerms
from tests.building import batch, write_segment
from tests.format.internal_topics.message_encoder import UNKNOWN_TAGS, encode, zero_message
from tests.metadata_logs import topic_id_of, write_metadata_log, write_node
from tests.record_encoder import encode_unsigned_varint

_REMOVE_TOPIC, _FEATURE_LEVEL = 9, 12


def _framed(frame: int, number: int, version: int, content: bytes) -> bytes:
    return b"".join(map(encode_unsigned_varint, (frame, number, version))) + content


def _control(type_number: int) -> bytes:
    return batch(2, [bytes(4)], key=CONTROL_KEY.struct.pack(0, type_number), attributes=CONTROL_BIT, leader_epoch=1)


def _data(*values: bytes) -> bytes:
    """A batch for each value, as a node reads no records with a timestamp of their own."""
    return b"".join(batch(2 + number, [value], key=None, leader_epoch=1) for number, value in enumerate(values))


def _remove(topic: str) -> bytes:
    message = decoder_for("__cluster_metadata").record_types[_REMOVE_TOPIC].value
    return _framed(1, _REMOVE_TOPIC, 0, encode(message, 0, {"topicId": topic_id_of(topic)}))


def _node(folder: Path, odd: bytes) -> Path:
    """A log directory whose metadata log ends with an odd batch, and the log of a topic that it may not name."""
    node = write_node(folder, 1)
    log = write_metadata_log(node) / f"{0:020d}.log"
    log.write_bytes(log.read_bytes() + odd)
    write_segment(node / "orders-0", 0, [batch(0)])
    (node / "orders-0" / "partition.metadata").write_text(f"version: 0\ntopic_id: {topic_id_of('orders')}")
    write_segment(node / "extra-0", 0, [batch(0)])
    (node / "extra-0" / "partition.metadata").write_text(f"version: 0\ntopic_id: {topic_id_of('extra')}")
    return node


LATER = {
    "a later frame": _data(_framed(2, 2, 0, bytes(24))),
    "a later type": _data(_framed(1, 999, 0, bytes(24))),
    "a later version": _data(_framed(1, 2, 99, bytes(24))),
    "a later control record": _control(7),
    "what was made before it": _data(_framed(1, 2, 99, bytes(24)), _remove("extra")),
}
REFUSED = {
    "the frame of the preview": _data(_framed(0, 2, 0, bytes(24))),
    "a type that is no longer used": _data(_framed(1, 16, 0, bytes(24))),
    "a type that fits in no short": _data(_framed(1, 0x8001, 0, bytes(24))),
    "bytes after a known version": _data(_remove("orders") + b"\0"),
    "a marker of a transaction": _control(0),
}


@pytest.mark.parametrize("name", LATER)
def test_what_a_later_kafka_wrote_is_no_refusal(tmp_path: Path, name: str) -> None:
    """Nor does what it says of topics, which this program cannot read, make a stray of a log."""
    codes = [each.code for each in refusal_findings(_node(tmp_path, LATER[name]), DEFAULT_LIMITS)]
    assert not {"boot-refused", "replica-stray", "replica-missing"} & set(codes), codes


@pytest.mark.parametrize("name", REFUSED)
def test_what_no_kafka_reads_is_a_refusal(tmp_path: Path, name: str) -> None:
    codes = [each.code for each in refusal_findings(_node(tmp_path, REFUSED[name]), DEFAULT_LIMITS)]
    assert codes == ["boot-refused"], codes


def test_a_log_without_such_records_has_a_stray(tmp_path: Path) -> None:
    codes = [each.code for each in refusal_findings(_node(tmp_path, b""), DEFAULT_LIMITS)]
    assert "replica-stray" in codes, codes


@pytest.mark.parametrize("name", ["a later frame", "a later type", "a later control record"])
def test_a_release_that_is_known_refuses_them(tmp_path: Path, name: str) -> None:
    assert boot([_node(tmp_path, LATER[name])], BootTerms(version=(4, 3))).having(Action.REFUSE)


def test_unknown_tagged_fields_are_read_over_by_every_release(tmp_path: Path) -> None:
    types = decoder_for("__cluster_metadata").record_types
    values = [
        _framed(1, number, 0, encode(each.value, 0, zero_message(each.value, 0, tags=UNKNOWN_TAGS)))
        for number, each in types.items()
        if 0 in each.value.flexible and not each.until
    ]
    log = _node(tmp_path, _data(*values)) / "__cluster_metadata-0" / f"{0:020d}.log"
    check_records(log, log.stat().st_size, 0, BootTerms(version=(4, 4)))
    assert len(values) > 20


@pytest.mark.parametrize(("level", "action"), [(1, Action.REFUSE), (99, Action.UNKNOWN)])
def test_the_levels_of_features_count_in_a_start_and_not_in_a_verification(
    tmp_path: Path, level: int, action: Action
) -> None:
    """Which does not know the release."""
    message = decoder_for("__cluster_metadata").record_types[_FEATURE_LEVEL].value
    fields = encode(message, 0, {"name": "metadata.version", "featureLevel": level})
    node = _node(tmp_path, _data(_framed(1, _FEATURE_LEVEL, 0, fields)))
    codes = [each.code for each in refusal_findings(node, DEFAULT_LIMITS)]
    assert "boot-refused" not in codes
    (step,) = boot([node], BootTerms(is_release_known=False)).having(Action.REFUSE, Action.UNKNOWN)
    assert step.action is action
    assert f"metadata.version has level {level}" in step.reason
