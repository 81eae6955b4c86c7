"""A copy of a node that is to be damaged, and the ways to damage a file."""

from __future__ import annotations

import random
import re
import shutil
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

CLEAN_MARK = ".kafka_cleanshutdown"

RECOVERY_POINT = "recovery-point-offset-checkpoint"

LOG_START = "log-start-offset-checkpoint"

HIGH_WATERMARK = "replication-offset-checkpoint"

CLEANER = "cleaner-offset-checkpoint"

METADATA = "__cluster_metadata-0"

UNIQUE = "0123456789abcdef0123456789abcdef"

OTHER_ID = "AAAAAAAAAAAAAAAAAAAAAQ"


@dataclass
class Node:
    """A writable copy of a node: its log directories, the first of which holds the metadata log."""

    work: Path
    log_dirs: list[Path] = field(default_factory=list)

    @property
    def first(self) -> Path:
        return self.log_dirs[0]

    def partition(self, name: str) -> Path:
        return self.first / name

    def segments(self, name: str) -> list[Path]:
        return sorted(self.partition(name).glob("*.log"))

    def unclean(self) -> None:
        (self.first / CLEAN_MARK).unlink()

    def checkpoint(self, name: str) -> dict[str, int]:
        lines = (self.first / name).read_text().splitlines()[2:]
        return {line.rsplit(" ", 1)[0]: int(line.rsplit(" ", 1)[1]) for line in lines}

    def set_checkpoint(self, name: str, offsets: dict[str, int]) -> None:
        lines = ["0", str(len(offsets)), *(f"{partition} {offset}" for partition, offset in offsets.items())]
        (self.first / name).write_text("\n".join(lines) + "\n")

    def set_offset(self, checkpoint: str, name: str, offset: int) -> None:
        topic, partition = name.rsplit("-", 1)
        self.set_checkpoint(checkpoint, self.checkpoint(checkpoint) | {f"{topic} {partition}": offset})

    def second(self, *, meta: str | None = "") -> Path:
        """One more log directory; ``meta`` "" stands for properties that fit the first one's."""
        path = self.work / f"node-{len(self.log_dirs) + 1}"
        path.mkdir()
        self.log_dirs.append(path)
        if meta == "":
            meta = re.sub("(?m)^directory.id=.*$", "directory.id=bbbbbbbbbbbbbbbbbbbbbQ", self.meta())
        if meta is not None:
            (path / "meta.properties").write_text(meta)
        return path

    def meta(self) -> str:
        return (self.first / "meta.properties").read_text()


@dataclass(frozen=True)
class Mutation:
    """One way to damage a copy: ``kind`` is the family under which the table counts it."""

    kind: str
    name: str
    apply: Callable[[Node], object]

    def __str__(self) -> str:
        return f"{self.kind}/{self.name}"


def copied_node(source: Path, work: Path) -> Node:
    """A fresh, writable copy of a node under ``work``."""
    if work.exists():
        shutil.rmtree(work)
    target = work / "node-1"
    shutil.copytree(source, target)
    for each in [target, *target.rglob("*")]:
        each.chmod(0o755 if each.is_dir() else 0o644)
    return Node(work, [target])


def batch_positions(log: Path) -> list[tuple[int, int, int, int]]:
    """(position, size, base offset, last offset) of each v2 batch of a sound segment."""
    data, found, at = log.read_bytes(), [], 0
    while at + 61 <= len(data):
        base, length = struct.unpack_from(">qi", data, at)
        delta = struct.unpack_from(">i", data, at + 23)[0]
        found.append((at, length + 12, base, base + delta))
        at += length + 12
    return found


def put(path: Path, content: bytes | None) -> None:
    """Give a file other content, or remove it for None."""
    if content is None:
        path.unlink()
    else:
        path.write_bytes(content)


def overwrite(path: Path, position: int, data: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(position)
        file.write(data)


def flip(path: Path, position: int) -> None:
    overwrite(path, position, bytes([path.read_bytes()[position] ^ 0x55]))


def cut(path: Path, size: int) -> None:
    with path.open("r+b") as file:
        file.truncate(size)


def zero(path: Path) -> None:
    path.write_bytes(bytes(path.stat().st_size))


def garbage(size: int, seed: int = 0) -> bytes:
    return random.Random(seed).randbytes(size)


Named = Iterator[tuple[str, Callable[[Node], object]]]
