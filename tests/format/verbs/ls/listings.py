"""What ls lists, in a form that tests compare."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

from format.findings import Finding
from format.node.target import Target
from format.verbs.ls.ls import ListTerms, ls
from format.verbs.ls.partition_listing import PartitionListing

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")

LEDGER = Path("kafka-4.3") / "node-1" / "ledger-0"

USERS = Path("kafka-4.3-single") / "node-1" / "users-0"

SENSOR = Path("kafka-4.3-single") / "node-1" / "sensor-0"

LEGACY = Path("kafka-0.8-to-2.8") / "data" / "legacy-0"


def listed(path: Path | Target, **wishes: Any) -> list[Any]:
    return list(ls(path, ListTerms(**wishes)))


def of_type(items: list[Any], kind: type) -> list[Any]:
    return [each for each in items if isinstance(each, kind)]


def codes(items: list[Any]) -> list[str]:
    return sorted(each.code for each in of_type(items, Finding))


def the_partition(items: list[Any]) -> PartitionListing:
    (found,) = of_type(items, PartitionListing)
    return found


def copied(source: Path, target: Path) -> Path:
    """A copy that may be changed, without the modes of what may be read-only."""
    target.mkdir(parents=True)
    for each in source.iterdir():
        (target / each.name).write_bytes(each.read_bytes())
    return target


def batches(content: bytes) -> list[dict[str, int]]:
    """The batches of a sound log by an independent walk over their first bytes."""
    found, at = [], 0
    while at < len(content):
        base_offset, length, _, magic = struct.unpack_from(">qiiB", content, at)
        batch = {
            "position": at,
            "end": at + 12 + length,
            "magic": magic,
            "last_offset": base_offset,
            "max_timestamp": -1,
        }
        if magic == 2:
            batch["codec"] = content[at + 22] & 7
            batch["last_offset"] += struct.unpack_from(">i", content, at + 23)[0]
            batch["max_timestamp"] = struct.unpack_from(">q", content, at + 35)[0]
        else:
            batch["codec"] = content[at + 17] & 7
            if magic == 1:
                batch["max_timestamp"] = struct.unpack_from(">q", content, at + 18)[0]
        found.append(batch)
        at += 12 + length
    return found
