"""Topics of MirrorMaker and Connect.

The bytes of MirrorMaker were written by OffsetSync, Checkpoint and Heartbeat of connect-mirror 4.1.1, which also read
them back as what stands beside them.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from format.decoding.decoder import Decoding

_ORDERS = "00066f726465727300000007"
_ODD = "000b6772c3b6c39f652e22782200000000"  # größe."x", partition 0
_GROUP = "000762696c6c696e67"  # billing


def decoded(topic: str, key: str, value: str) -> tuple[Any, Any]:
    decoder = Decoding().topic(topic)
    found = decoder["key"].decoded(bytes.fromhex(key), ()), decoder["value"].decoded(bytes.fromhex(value), ())
    for each in found:
        assert each is not None
        assert each.format.startswith("mirror-"), each
    return tuple(json.loads(each.text) for each in found if each is not None and each.text)  # type: ignore[return-value]


@pytest.mark.parametrize("topic", ["mm2-offset-syncs.target.internal", "mm2-offset-syncs-target-internal"])
@pytest.mark.parametrize(
    ("value", "upstream", "offset"),
    [
        ("00" * 16, 0, 0),
        ("0000001cbe991a14000000000000002a", 123456789012, 42),
        ("ffffffffffffffff7fffffffffffffff", -1, 2**63 - 1),
    ],
)
def test_offset_syncs(topic: str, value: str, upstream: int, offset: int) -> None:
    expected = {"upstreamOffset": upstream, "offset": offset}
    assert decoded(topic, _ORDERS, value) == ({"topic": "orders", "partition": 7}, expected)
    assert decoded(topic, _ODD, value)[0] == {"topic": 'größe."x"', "partition": 0}


def test_checkpoints() -> None:
    value = "00000000001cbe991a14000000000000002a00066e6f74652001"
    assert decoded("source.checkpoints.internal", _GROUP + _ORDERS, value) == (
        {"group": "billing", "topic": "orders", "partition": 7},
        {"version": 0, "upstreamOffset": 123456789012, "offset": 42, "metadata": "note \u0001"},
    )


@pytest.mark.parametrize("topic", ["heartbeats", "source.heartbeats"])
def test_heartbeats(topic: str) -> None:
    assert decoded(topic, "0006736f757263650006746172676574", "00000000018bcfe5687b") == (
        {"sourceClusterAlias": "source", "targetClusterAlias": "target"},
        {"version": 0, "timestamp": 1700000000123},
    )


@pytest.mark.parametrize(
    "data",
    ["", "00", "00010000018bcfe5687b", "0000" + "00" * 9, "0000" + "00" * 7, "ffff" + "00" * 8],
)
def test_what_is_no_heartbeat_is_like_any_other_value(data: str) -> None:
    found = Decoding().topic("heartbeats")["value"].decoded(bytes.fromhex(data), ())
    assert found is not None
    assert found.format in ("raw", "string")
    text = Decoding().topic("heartbeats")["value"].decoded(b'{"a": 1}', ())
    assert text is not None
    assert (text.format, text.text) == ("json", '{"a":1}')


def test_connect() -> None:
    topics = {
        "connect-offsets": (
            b'["source",{"file":"a"}]',
            b'{"position": 5}',
            '["source",{"file":"a"}]',
            '{"position":5}',
        ),
        "connect-configs": (b"connector-source", b'{"properties":{}}', '"connector-source"', '{"properties":{}}'),
        "mm2-status.source.internal": (b"status-connector-x", b'{"state":"RUNNING"}', '"status-connector-x"', None),
    }
    for topic, (key, value, key_text, value_text) in topics.items():
        decoder = Decoding().topic(topic)
        found = decoder["key"].decoded(key, ()), decoder["value"].decoded(value, ())
        kind = topic if topic.startswith("connect") else "connect-status"
        assert [each.format for each in found if each is not None] == [kind, kind]
        assert found[0] is not None
        assert found[0].text == key_text
        assert value_text is None or (found[1] is not None and found[1].text == value_text)
    binary = Decoding().topic("connect-offsets")["value"].decoded(b"\x00\x01", ())
    assert binary is not None
    assert binary.format == "raw"
