"""Topics of Kafka's own ecosystem, by their names: those of MirrorMaker and of Connect.

MirrorMaker: connect-mirror OffsetSync, and connect-mirror-client Checkpoint and Heartbeat, whose structs have a fixed
layout. Connect: JSON or strings, as its internal converter writes them.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from typing import Any

import msgspec

from format.decoding.plain import Undecodable, is_printable, json_text, string_text, utf8

_encode = msgspec.json.Encoder().encode
_VERSION = 0
_SIZES = {"int16": ">h", "int32": ">i", "int64": ">q"}
#: The fields of the keys and values of MirrorMaker's topics. A version comes first where it is one.
_MIRROR_FIELDS: dict[str, tuple[tuple[tuple[str, str], ...], tuple[tuple[str, str], ...]]] = {
    "mirror-offset-syncs": (
        (("topic", "string"), ("partition", "int32")),
        (("upstreamOffset", "int64"), ("offset", "int64")),
    ),
    "mirror-checkpoints": (
        (("group", "string"), ("topic", "string"), ("partition", "int32")),
        (("version", "int16"), ("upstreamOffset", "int64"), ("offset", "int64"), ("metadata", "string")),
    ),
    "mirror-heartbeats": (
        (("sourceClusterAlias", "string"), ("targetClusterAlias", "string")),
        (("version", "int16"), ("timestamp", "int64")),
    ),
}
#: The usual names of these topics, and those that MirrorMaker gives its own.
_NAMES = {
    "mirror-offset-syncs": re.compile(r"mm2-offset-syncs[._-].+[._-]internal"),
    "mirror-checkpoints": re.compile(r".+[._-]checkpoints[._-]internal"),
    "mirror-heartbeats": re.compile(r"(.+[._-])?heartbeats"),
    "connect-offsets": re.compile(r"connect-offsets|mm2-offsets[._-].+[._-]internal"),
    "connect-configs": re.compile(r"connect-configs|mm2-configs[._-].+[._-]internal"),
    "connect-status": re.compile(r"connect-status|mm2-status[._-].+[._-]internal"),
}


def ecosystem_topic(topic: str) -> str | None:
    """What a topic is by its name, such as "mirror-checkpoints"; None for any other topic."""
    return next((name for name, pattern in _NAMES.items() if pattern.fullmatch(topic)), None)


def ecosystem_decoder(name: str, part: str) -> Callable[[bytes], str]:
    """The decoder of the keys or the values of such a topic to JSON text. It raises Undecodable."""
    if name not in _MIRROR_FIELDS:
        return _connect_text
    fields = _MIRROR_FIELDS[name][0 if part == "key" else 1]
    return lambda data: _mirror_text(data, fields)


def _mirror_text(data: bytes, fields: tuple[tuple[str, str], ...]) -> str:
    found: dict[str, Any] = {}
    at = 0
    for name, kind in fields:
        form = _SIZES["int16" if kind == "string" else kind]
        end = at + struct.calcsize(form)
        if end > len(data):
            raise Undecodable(f"it is cut off in {name}")
        (number,) = struct.unpack(form, data[at:end])
        at = end
        if kind != "string":
            found[name] = number
        elif not 0 <= number <= len(data) - at:
            raise Undecodable(f"it is cut off in {name}")
        else:
            found[name] = utf8(data[at : at + number])
            at += number
    if at != len(data):
        raise Undecodable(f"{len(data) - at} bytes follow")
    if found.get("version", _VERSION) != _VERSION:
        raise Undecodable(f"version {found['version']} is not known")
    return _encode(found).decode()


def _connect_text(data: bytes) -> str:
    try:
        return json_text(data)
    except Undecodable:
        if not is_printable(utf8(data)):
            raise
        return string_text(data)
