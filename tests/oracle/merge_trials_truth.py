"""What is true of the replicas of a partition, read by a few lines that share nothing with the program.

``frames`` splits segments into batches (v2) and outermost messages (v0, v1). A ``Truth`` knows the batches of each
replica before it was wounded, and says what a merge of the wounded replicas has to keep, and what it may call lost.
"""

from __future__ import annotations

import gzip
import struct
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

import lz4.frame
import zstandard

_DECOMPRESS: dict[int, Callable[[bytes], bytes]] = {
    0: bytes,
    1: gzip.decompress,
    3: lz4.frame.decompress,
    4: lambda body: zstandard.ZstdDecompressor().decompressobj().decompress(body),
}
Replicas = dict[int, Path]  # the partition directory on each node


@dataclass(frozen=True)
class Frame:
    """One batch or outermost message: where it lies, its offsets, its bytes."""

    segment: str
    position: int
    base: int  # of messages: behind the last offset of the frame before
    last: int
    content: bytes

    @property
    def magic(self) -> int:
        return self.content[16]

    @property
    def epoch(self) -> int:
        return int.from_bytes(self.content[12:16], "big", signed=True) if self.magic == 2 else -1

    @property
    def attributes(self) -> int:
        return int.from_bytes(self.content[21:23], "big")

    @property
    def producer_id(self) -> int:
        return int.from_bytes(self.content[43:51], "big", signed=True)

    @property
    def is_transactional(self) -> bool:
        return self.magic == 2 and bool(self.attributes & 0x10)

    @property
    def is_control(self) -> bool:
        return self.magic == 2 and bool(self.attributes & 0x20)

    @property
    def record_count(self) -> int:
        """The records of a v2 batch, or of messages without gaps."""
        return int.from_bytes(self.content[57:61], "big") if self.magic == 2 else self.last - self.base + 1

    def offsets(self) -> list[int]:
        """The offsets of the records of a v2 batch; snappy is never asked for."""
        body = _DECOMPRESS[self.attributes & 7](self.content[61:])
        found, at = [], 0
        for _ in range(int.from_bytes(self.content[57:61], "big")):
            size, at = _varint(body, at)
            _, delta_at = _varint(body, at + 1)  # behind the attributes and the difference in time
            found.append(self.base + _varint(body, delta_at)[0])
            at += size
        return found

    def marker(self) -> str:
        """What a control batch says."""
        at = 61
        _, at = _varint(self.content, at)
        at += 1
        for _ in range(3):  # differences in time and offset, size of the key
            _, at = _varint(self.content, at)
        return {0: "abort", 1: "commit"}.get(int.from_bytes(self.content[at + 2 : at + 4], "big"), "other")


def _varint(content: bytes, at: int) -> tuple[int, int]:
    """A signed number, and the place behind it."""
    value = shift = 0
    while True:
        byte = content[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return (value >> 1) ^ -(value & 1), at


def frames(directory: Path) -> list[Frame]:
    """All batches of a partition whose segments are undamaged."""
    found: list[Frame] = []
    for path in sorted(directory.glob("*.log")):
        found += split(path.read_bytes(), found[-1].last + 1 if found else int(path.stem), path.name)
    return found


def split(content: bytes, start: int, segment: str = "") -> list[Frame]:
    """The batches of some bytes, which begin at an offset."""
    found: list[Frame] = []
    at = 0
    while at < len(content):
        assert at + 17 <= len(content), f"{segment} is torn at {at}"
        offset, size = struct.unpack_from(">qi", content, at)
        end = at + 12 + size
        assert size > 0, f"{segment} is damaged at {at}"
        assert end <= len(content), f"{segment} is torn at {at}"
        if content[at + 16] == 2:
            base, last = offset, offset + int.from_bytes(content[at + 23 : at + 27], "big")
        else:
            base, last = start, offset
        found.append(Frame(segment, at, base, last, content[at:end]))
        at, start = end, last + 1
    return found


Ranges = list[tuple[int, int]]  # inclusive, ascending


def joined(ranges: Iterable[tuple[int, int]]) -> Ranges:
    """The union."""
    found: Ranges = []
    for first, last in sorted(ranges):
        if found and first <= found[-1][1] + 1:
            found[-1] = found[-1][0], max(found[-1][1], last)
        elif first <= last:
            found.append((first, last))
    return found


def without(ranges: Ranges, taken: Ranges) -> Ranges:
    """The offsets of some ranges that others do not hold."""
    found = ranges
    for first, last in taken:
        found = [
            part for low, high in found
            for part in ((low, min(high, first - 1)), (max(low, last + 1), high)) if part[0] <= part[1]
        ]  # fmt: skip
    return found


def holds(ranges: Ranges, offset: int) -> bool:
    return any(first <= offset <= last for first, last in ranges)


@dataclass
class Truth:
    """A partition before it was wounded: the batches of each replica, and those that are right."""

    topic: str
    before: dict[int, list[Frame]]
    right: dict[bytes, Frame] = field(default_factory=dict)
    foreign: set[bytes] = field(default_factory=set)
    is_compacted: bool = False

    @classmethod
    def of(cls, topic: str, replicas: Replicas) -> Truth:
        """Of replicas whose first one has the right branch; where they are compacted, all have it."""
        before = {node: frames(path) for node, path in replicas.items()}
        found = cls(topic, before, is_compacted=topic.startswith("compacted"))
        sides = list(before.values())
        for each in sides if found.is_compacted else sides[:1]:
            found.right |= {frame.content: frame for frame in each}
        found.foreign = {frame.content for each in sides for frame in each} - found.right.keys()
        return found

    def intact(self, after: Replicas) -> dict[int, list[bool]]:
        """Which batches of each replica are where they were, byte for byte."""
        found = {}
        for node, known in self.before.items():
            contents: dict[str, bytes] = {}
            flags = []
            for frame in known:
                if frame.segment not in contents:
                    path = after[node] / frame.segment
                    contents[frame.segment] = path.read_bytes() if path.exists() else b""
                here = contents[frame.segment][frame.position : frame.position + len(frame.content)]
                flags.append(here == frame.content)
            found[node] = flags
        return found

    def kept(self, after: Replicas) -> dict[bytes, Frame]:
        """The right batches that one replica at least still has."""
        return {
            frame.content: frame
            for node, flags in self.intact(after).items()
            for frame, is_intact in zip(self.before[node], flags, strict=True)
            if is_intact and frame.content in self.right
        }

    def known(self, after: Replicas) -> Ranges:
        """Offsets of which some replica shows the batch, or that none was there."""
        found = []
        for node, flags in self.intact(after).items():
            behind = None  # the intact batch before
            for frame, is_intact in zip(self.before[node], flags, strict=True):
                if not is_intact or frame.content not in self.right:
                    behind = None
                    continue
                found.append((frame.base if behind is None else behind.last + 1, frame.last))
                behind = frame
        return joined(found)

    def shows_the_branch(self, after: Replicas) -> bool:
        """Whether the wounded replicas show which branch is right: by an epoch after those of the other one."""
        intact = self.intact(after)
        whole = {
            node: [frame for frame, is_intact in zip(self.before[node], flags, strict=True) if is_intact]
            for node, flags in intact.items()
        }
        if not any(frame.content in self.foreign for frame in chain.from_iterable(whole.values())):
            return True
        latest = max(
            frame.epoch for frame in chain.from_iterable(self.before.values()) if frame.content in self.foreign
        )
        for node, path in after.items():
            entries = path / "leader-epoch-checkpoint"
            lines = entries.read_text().splitlines()[2:] if entries.exists() else []
            if any(int(line.split()[0]) > latest for line in lines) or any(each.epoch > latest for each in whole[node]):
                return True
        return False

    @property
    def everything(self) -> Ranges:
        """All offsets of the right branch."""
        return joined([(min(each.base for each in self.right.values()), max(e.last for e in self.right.values()))])


def committed(batches: Iterable[Frame]) -> tuple[list[Frame], int]:
    """The data batches that read_committed gives of a log, and the last stable offset, as a broker has them."""
    data: list[Frame] = []
    open_since: dict[int, int] = {}
    aborted: list[tuple[int, int, int]] = []
    end = 0
    for frame in batches:
        end = frame.last + 1
        if frame.is_control:
            first = open_since.pop(frame.producer_id, None)
            if first is not None and frame.marker() == "abort":
                aborted.append((frame.producer_id, first, frame.last))
            continue
        data.append(frame)
        if frame.is_transactional:
            open_since.setdefault(frame.producer_id, frame.base)
    stable = min(open_since.values(), default=end)
    return [
        frame for frame in data
        if frame.last < stable and not (frame.is_transactional and any(
            frame.producer_id == producer and first <= frame.base <= last for producer, first, last in aborted))
    ], stable  # fmt: skip


def newest_by_key(keys: dict[int, str | None]) -> Iterator[int]:
    """The offsets of the newest record of each key."""
    return iter({key: offset for offset, key in sorted(keys.items()) if key is not None}.values())
