"""Damaged and odd copies of a single KRaft node, on which a broker is then started: each mutation makes one."""

from __future__ import annotations

import os
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


def mutations() -> list[Mutation]:
    """All of them, in a fixed order."""
    families = (
        _untouched, _directory_names, _two_directories, _partition_metadata, _meta_properties, _tails, _middles,
        _indexes, _transaction_indexes, _producer_snapshots, _leftovers, _offset_checkpoints, _leader_epochs,
        _quorum_states, _metadata_logs, _bootstraps, _missing, _marked_directories, _segment_files, _log_starts,
    )  # fmt: skip
    found = [Mutation(family.__name__.strip("_").replace("_", "-"), name, apply) for family in families
             for name, apply in family()]  # fmt: skip
    assert len({str(each) for each in found}) == len(found), "two mutations of one name"
    return found


Named = Iterator[tuple[str, Callable[[Node], object]]]


def _untouched() -> Named:
    yield "clean", lambda node: None
    yield "unclean", lambda node: node.unclean()
    yield "mark-of-garbage", lambda node: (node.first / CLEAN_MARK).write_bytes(b"\x00garbage")
    yield "mark-empty", lambda node: (node.first / CLEAN_MARK).write_bytes(b"")

    def mark_is_a_directory(node: Node) -> None:
        node.unclean()
        (node.first / CLEAN_MARK).mkdir()

    yield "mark-is-a-directory", mark_is_a_directory


def _directory_names() -> Named:
    names = (
        "lost+found", "backup", "orders", "-0", "orders-", "orders-x", "orders--1", "orders-0.bak", "orders-0-delete",
        ".hidden", "remote-log-index-cache", "a b-0", "snapshots-old", "new-0", "orders-99999999999", "orders-00",
        "orders-7", f"orders-0.{UNIQUE}-delete", f"orders-0.{UNIQUE}-future", f"orders-0.{UNIQUE}-stray",
        f"orders.{UNIQUE}-delete", f"orders-0.{UNIQUE[:5]}-delete", f"orders-0.{UNIQUE}-deleted", "orders-0-future",
        "orders-+0", "orders-٣", "__cluster_metadata-1", f"__cluster_metadata-0.{UNIQUE}-delete", "..-0", "...-0",
        f"{'a' * 249}-0", f"{'a' * 250}-0", "é-0", f"orders-x.{UNIQUE}-stray", f"a-1-2.{UNIQUE}-future",
        "orders-0 ", f"orders-0.{UNIQUE}-delete-0",
    )  # fmt: skip
    for name in names:
        yield f"dir {ascii(name) if len(name) < 99 else len(name)}", lambda node, name=name: (node.first / name).mkdir()
    for name in ("lost+found", "orders-7", ".DS_Store", "notes.txt"):
        yield f"file {name}", lambda node, name=name: (node.first / name).write_text("x")
    yield "link to a partition", lambda node: (node.first / "orders-0b").symlink_to(node.partition("orders-0"))
    yield "link that dangles", lambda node: (node.first / "backup").symlink_to(node.work / "nowhere")
    yield "link to a file", lambda node: (node.first / "backup").symlink_to(node.first / "meta.properties")

    def moved_and_linked(node: Node) -> None:
        shutil.move(node.partition("orders-0"), node.work / "orders-0")
        node.partition("orders-0").symlink_to(node.work / "orders-0")

    yield "partition that is a link", moved_and_linked


def _two_directories() -> Named:
    yield "empty second", lambda node: node.second()
    yield "same partition", lambda node: shutil.copytree(node.partition("orders-1"), node.second() / "orders-1")

    def split(node: Node) -> None:
        shutil.move(node.partition("orders-1"), node.second() / "orders-1")

    yield "partition moved", split

    def same_empty(node: Node) -> None:
        (node.second() / "orders-1").mkdir()

    yield "same partition, empty there", same_empty

    def same_future(node: Node) -> None:
        for target in (node.first, node.second()):
            shutil.copytree(node.partition("orders-1"), target / f"orders-1.{UNIQUE}-future")

    yield "same future twice", same_future
    yield (
        "future there",
        lambda node: shutil.copytree(node.partition("orders-1"), node.second() / f"orders-1.{UNIQUE}-future"),
    )
    yield "same directory id", lambda node: node.second(meta=node.meta())
    yield (
        "other cluster id",
        lambda node: node.second(
            meta=re.sub(
                "(?m)^cluster.id=.*$", f"cluster.id={OTHER_ID}", re.sub("(?m)^directory.id.*\n", "", node.meta())
            )
        ),
    )
    yield (
        "other node id",
        lambda node: node.second(
            meta=re.sub("(?m)^node.id=.*$", "node.id=7", re.sub("(?m)^directory.id.*\n", "", node.meta()))
        ),
    )
    yield "no meta.properties", lambda node: node.second(meta=None)
    yield "garbage in meta.properties", lambda node: node.second(meta="version=1\nnode.id=zzz\n")
    yield "no directory id", lambda node: node.second(meta=re.sub("(?m)^directory.id.*\n", "", node.meta()))
    yield (
        "reserved directory id",
        lambda node: node.second(meta=re.sub("(?m)^directory.id=.*$", f"directory.id={OTHER_ID}", node.meta())),
    )
    yield "metadata log there too", lambda node: shutil.copytree(node.partition(METADATA), node.second() / METADATA)
    yield "lost+found there", lambda node: (node.second() / "lost+found").mkdir()

    def unreadable_partition(node: Node) -> None:
        there = node.second() / "orders-1"
        shutil.move(node.partition("orders-1"), there)
        (there / "partition.metadata").write_bytes(b"")

    yield "partition moved, its metadata empty", unreadable_partition

    def io_error_there(node: Node) -> None:
        there = node.second() / "orders-1"
        shutil.move(node.partition("orders-1"), there)
        (there / "leader-epoch-checkpoint").write_bytes(b"garbage\n")

    yield "partition moved, its epochs garbage", io_error_there

    def version_0(node: Node) -> None:
        cluster = re.search("(?m)^cluster.id=.*$", node.meta())
        assert cluster is not None
        node.second(meta=f"version=0\nbroker.id=1\n{cluster[0]}\n")

    yield "version 0 there", version_0


def _partition_metadata() -> Named:
    contents: dict[str, bytes | None] = {
        "missing": None,
        "empty": b"",
        "line ends": b"\n",
        "version only": b"version: 0\n",
        "version without an end": b"version: 0",
        "torn id": b"version: 0\ntopic_id: 7jUN",
        "no id": b"version: 0\ntopic_id:",
        "zeros": bytes(43),
        "garbage": b"garbage",
        "binary": b"\xff\xfe\xfd\xfc" * 10,
        "version 1": b"version: 1\ntopic_id: %s",
        "version -1": b"version: -1\ntopic_id: %s",
        "version x": b"version: x\ntopic_id: %s",
        "crlf": b"version: 0\r\ntopic_id: %s\r\n",
        "a line after": b"version: 0\ntopic_id: %s\nmore: 1\n",
        "zero id": b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA",
        "foreign id": b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAg",
        "metadata id": b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ",
        "id too long": b"version: 0\ntopic_id: %sAAAA",
        "id not base64": b"version: 0\ntopic_id: !!!!!!!!!!!!!!!!!!!!!!",
        "three words": b"version: 0 1\ntopic_id: %s",
        "other names": b"a: 0\nb: %s",
        "tabs": b"version:\t0\ntopic_id:\t%s",
    }

    def write(content: bytes | None, partition: str) -> Callable[[Node], None]:
        def apply(node: Node) -> None:
            path = node.partition(partition) / "partition.metadata"
            topic_id = path.read_bytes().split()[-1]
            path.unlink()
            if content is not None:
                path.write_bytes(content.replace(b"%s", topic_id))

        return apply

    for name, content in contents.items():
        yield name, write(content, "orders-1")
    for name in ("missing", "empty", "foreign id", "garbage"):
        yield f"{name}, metadata log", write(contents[name], METADATA)

    def other_topic(node: Node) -> None:
        shutil.copy(node.partition("users-0") / "partition.metadata", node.partition("orders-1"))

    yield "id of another topic", other_topic

    def another_partition(node: Node) -> None:
        shutil.copytree(node.partition("orders-1"), node.partition("orders-7"))

    yield "partition that is not assigned", another_partition

    def as_directory(node: Node) -> None:
        (node.partition("orders-1") / "partition.metadata").unlink()
        (node.partition("orders-1") / "partition.metadata").mkdir()

    yield "is a directory", as_directory
    yield "tmp beside it", lambda node: (node.partition("orders-1") / "partition.metadata.tmp").write_text("x")

    def unclean_missing(node: Node) -> None:
        node.unclean()
        (node.partition("orders-1") / "partition.metadata").unlink()

    yield "missing, unclean", unclean_missing


def _meta_properties() -> Named:
    def edit(pattern: str, replacement: str) -> Callable[[Node], None]:
        def apply(node: Node) -> None:
            text, count = re.subn(pattern, replacement, node.meta())
            assert count, pattern
            (node.first / "meta.properties").write_text(text)

        return apply

    yield "missing", lambda node: (node.first / "meta.properties").unlink()
    yield "empty", lambda node: (node.first / "meta.properties").write_bytes(b"")
    yield "zeros", lambda node: zero(node.first / "meta.properties")
    yield "garbage", lambda node: (node.first / "meta.properties").write_bytes(garbage(100))
    yield "other cluster id", edit("(?m)^cluster.id=.*$", f"cluster.id={OTHER_ID}")
    yield "other node id", edit("(?m)^node.id=.*$", "node.id=7")
    yield "no cluster id", edit("(?m)^cluster.id=.*\n", "")
    yield "no node id", edit("(?m)^node.id=.*\n", "")
    yield "no directory id", edit("(?m)^directory.id=.*\n", "")
    yield "bad directory id", edit("(?m)^directory.id=.*$", "directory.id=x")
    yield "other directory id", edit("(?m)^directory.id=.*$", "directory.id=bbbbbbbbbbbbbbbbbbbbbQ")
    yield "reserved directory id", edit("(?m)^directory.id=.*$", f"directory.id={OTHER_ID}")
    yield "version 0", edit("(?m)^version=1$", "version=0")
    yield "version 2", edit("(?m)^version=1$", "version=2")
    yield "no version", edit("(?m)^version=1\n", "")
    yield "version x", edit("(?m)^version=1$", "version=x")
    yield "node id x", edit("(?m)^node.id=.*$", "node.id=x")
    yield "node id with a blank", edit("(?m)^node.id=.*$", "node.id=1 ")
    yield "one more property", edit(r"\Z", "more=1\n")
    yield "torn", lambda node: cut(node.first / "meta.properties", 50)

    def is_a_directory(node: Node) -> None:
        (node.first / "meta.properties").unlink()
        (node.first / "meta.properties").mkdir()

    yield "is a directory", is_a_directory
    yield (
        "version 0 of a broker",
        lambda node: (node.first / "meta.properties").write_text(
            re.sub("node.id", "broker.id", re.sub("(?m)^version=1$", "version=0", node.meta()))
        ),
    )


_TAIL_PARTITIONS = ("orders-0", "users-0", "payments-0", "sensor-0", "clicks-zstd-0")


def _tails() -> Named:
    chosen = random.Random(15)
    for number in range(40):
        name = _TAIL_PARTITIONS[number % len(_TAIL_PARTITIONS)]
        how = ("cut", "cut-at-batch", "zeros", "garbage")[number // len(_TAIL_PARTITIONS) % 4]
        clean = number % 3 == 0
        share = chosen.random()

        def apply(node: Node, name: str = name, how: str = how, clean: bool = clean, share: float = share) -> None:
            log = node.segments(name)[-1]
            size = log.stat().st_size
            if how == "cut":
                cut(log, int(size * share))
            elif how == "cut-at-batch":
                positions = [position for position, *_ in batch_positions(log)]
                cut(log, positions[int(len(positions) * share)])
            else:
                added = int(share * 300) + 1
                with log.open("ab") as file:
                    file.write(bytes(added) if how == "zeros" else garbage(added, int(share * 1e6)))
            if not clean:
                node.unclean()
                if share < 0.5:
                    node.set_offset(RECOVERY_POINT, name, 0)

        yield f"{number} {name} {how} {'clean' if clean else 'unclean'}", apply


def _middles() -> Named:
    chosen = random.Random(16)
    for number in range(48):
        name = (*_TAIL_PARTITIONS, "orders-2")[number % 6]
        how = ("flip-body", "flip-header", "zero-batch", "zero-tail")[number // 6 % 4]
        point = ("none", "zero", "active", "end")[number // 12 % 4]
        clean = number % 4 == 3
        first_share, second_share = chosen.random(), chosen.random()

        def apply(
            node: Node,
            name: str = name,
            how: str = how,
            point: str = point,
            clean: bool = clean,
            shares: tuple[float, float] = (first_share, second_share),
        ) -> None:
            segments = node.segments(name)
            log = segments[int(len(segments) * shares[0])]
            found = batch_positions(log)
            position, size, *_ = found[int(len(found) * shares[1])]
            if how == "flip-body":
                flip(log, position + 21 + int(shares[0] * (size - 22)))
            elif how == "flip-header":
                flip(log, position + int(shares[0] * 21))
            elif how == "zero-batch":
                overwrite(log, position, bytes(size))
            else:
                overwrite(log, position, bytes(log.stat().st_size - position))
            if not clean:
                node.unclean()
            offsets = node.checkpoint(RECOVERY_POINT)
            key = name.replace("-", " ") if name.count("-") == 1 else " ".join(name.rsplit("-", 1))
            if point == "none":
                del offsets[key]
                node.set_checkpoint(RECOVERY_POINT, offsets)
            elif point == "zero":
                node.set_offset(RECOVERY_POINT, name, 0)
            elif point == "active":
                node.set_offset(RECOVERY_POINT, name, int(segments[-1].stem))

        yield f"{number} {name} {how} point {point} {'clean' if clean else 'unclean'}", apply


def _indexes() -> Named:
    damages: dict[str, Callable[[Path], object]] = {
        "missing": lambda path: path.unlink(),
        "empty": lambda path: path.write_bytes(b""),
        "odd": lambda path: path.write_bytes(path.read_bytes() + b"\x01\x02\x03"),
        "zeros": lambda path: path.write_bytes(bytes(max(24, path.stat().st_size))),
        "garbage": lambda path: path.write_bytes(garbage(240)),
        "cut": lambda path: cut(path, path.stat().st_size // 2),
        "past the end": lambda path: path.write_bytes(struct.pack(">ii", 10, 2**30)),
        "high offset": lambda path: path.write_bytes(struct.pack(">ii", 2**30, 0)),
    }
    for suffix in (".index", ".timeindex"):
        for which in (0, -1):
            for name, damage in damages.items():
                for clean in (True, False):

                    def apply(
                        node: Node,
                        suffix: str = suffix,
                        which: int = which,
                        damage: Callable[[Path], object] = damage,
                        clean: bool = clean,
                    ) -> None:
                        damage(node.segments("orders-0")[which].with_suffix(suffix))
                        if not clean:
                            node.unclean()

                    where = "first" if which == 0 else "active"
                    yield f"{suffix[1:]} {where} {name} {'clean' if clean else 'unclean'}", apply

    def all_missing(node: Node) -> None:
        for path in node.first.glob("*/*index"):
            path.unlink()

    yield "all missing", all_missing

    def orphans(node: Node) -> None:
        for suffix in (".index", ".timeindex", ".txnindex"):
            (node.partition("orders-0") / f"{5:020}{suffix}").write_bytes(b"")

    yield "orphans", orphans

    def missing_beside_damage(node: Node, *, damage_first: bool) -> None:
        first, active = node.segments("orders-0")
        flip(first if damage_first else active, 200)
        first.with_suffix(".index").unlink()

    yield "missing beside a damaged batch", lambda node: missing_beside_damage(node, damage_first=True)
    yield "missing, damage in the active segment", lambda node: missing_beside_damage(node, damage_first=False)


def _transaction_indexes() -> Named:
    def entry(version: int, first: int, last: int, stable: int) -> bytes:
        return struct.pack(">hqqqq", version, 1, first, last, stable)

    contents = {
        "missing": None,
        "empty": b"",
        "low last offset": entry(0, 0, -5, 0),
        "version 9": entry(9, 10, 20, 21),
        "garbage": garbage(68),
        "odd": entry(0, 10, 20, 21) + b"xyz",
        "short": b"xyz",
        "falling": entry(0, 10, 20, 21) + entry(0, 10, 12, 13),
    }
    for name, content in contents.items():
        for clean in (True, False):

            def apply(node: Node, content: bytes | None = content, clean: bool = clean) -> None:
                path = node.segments("payments-0")[0].with_suffix(".txnindex")
                if content is None:
                    path.unlink(missing_ok=True)
                else:
                    path.write_bytes(content)
                if not clean:
                    node.unclean()

            yield f"{name} {'clean' if clean else 'unclean'}", apply


def _producer_snapshots() -> Named:
    damages: dict[str, Callable[[Path], object]] = {
        "missing": lambda path: path.unlink(),
        "empty": lambda path: path.write_bytes(b""),
        "zeros": zero,
        "garbage": lambda path: path.write_bytes(garbage(100)),
        "flipped": lambda path: flip(path, path.stat().st_size - 1),
        "bytes after": lambda path: path.write_bytes(path.read_bytes() + b"x"),
    }
    for name, damage in damages.items():
        for clean in (True, False):
            for which in ("newest", "all"):

                def apply(
                    node: Node, damage: Callable[[Path], object] = damage, clean: bool = clean, which: str = which
                ) -> None:
                    found = sorted(node.partition("orders-0").glob("*.snapshot"))
                    for path in found[-1:] if which == "newest" else found:
                        damage(path)
                    if not clean:
                        node.unclean()

                yield f"{which} {name} {'clean' if clean else 'unclean'}", apply

    def extra(offset: int, *, damaged: bool = False) -> Callable[[Node], None]:
        def apply(node: Node) -> None:
            found = sorted(node.partition("orders-0").glob("*.snapshot"))
            path = node.partition("orders-0") / f"{offset:020}.snapshot"
            shutil.copy(found[-1], path)
            if damaged:
                flip(path, 20)

        return apply

    for offset in (0, 50, 1101, 1103, 1263, 1265, 99999):
        yield f"one more at {offset}", extra(offset)
    yield "a damaged one at 1200", extra(1200, damaged=True)


def _leftovers() -> Named:
    def copy(name: str, suffix: str, *, which: int, files: str = "*", unclean: bool = False) -> Callable[[Node], None]:
        def apply(node: Node) -> None:
            stem = node.segments(name)[which].stem
            for path in sorted(node.partition(name).glob(f"{stem}.{files}")):
                if path.suffix != ".snapshot":
                    shutil.copy(path, path.with_name(path.name + suffix))
            if unclean:
                node.unclean()

        return apply

    for suffix in (".deleted", ".cleaned", ".swap"):
        for which, where in ((0, "first"), (-1, "active")):
            yield f"{suffix[1:]} of the {where} segment", copy("orders-0", suffix, which=which)
            yield f"{suffix[1:]} of the {where} log only", copy("orders-0", suffix, which=which, files="log")
            yield f"{suffix[1:]} of the {where} segment, unclean", copy("orders-0", suffix, which=which, unclean=True)

    def renamed(suffix: str, which: int) -> Callable[[Node], None]:
        def apply(node: Node) -> None:
            stem = node.segments("users-0")[which].stem
            for path in sorted(node.partition("users-0").glob(f"{stem}.*")):
                if path.suffix != ".snapshot":
                    path.rename(path.with_name(path.name + suffix))

        return apply

    for suffix in (".deleted", ".cleaned", ".swap"):
        yield f"first segment renamed to {suffix}", renamed(suffix, 0)
        yield f"active segment renamed to {suffix}", renamed(suffix, -1)

    def swap_and_cleaned(node: Node) -> None:
        copy("orders-0", ".swap", which=-1)(node)
        copy("orders-0", ".cleaned", which=0)(node)

    yield "swap past a cleaned", swap_and_cleaned

    def swap_below_cleaned(node: Node) -> None:
        copy("orders-0", ".swap", which=0)(node)
        copy("orders-0", ".cleaned", which=-1)(node)

    yield "swap below a cleaned", swap_below_cleaned
    for name in ("00000000000000000005.log.tmp", "core.1234", "abc.swap", "abc.cleaned", "abc.deleted", "x.snapshot",
                 "00000000000000000000.log.bak", "notes", "leader-epoch-checkpoint.tmp", "5.swap"):  # fmt: skip
        yield f"file {name}", lambda node, name=name: (node.partition("orders-0") / name).write_bytes(b"x")
    yield (
        "snapshot deleted",
        lambda node: (node.partition("orders-0") / "00000000000000000100.snapshot.deleted").write_bytes(b"x"),
    )
    yield "a folder inside", lambda node: (node.partition("orders-0") / "folder").mkdir()


def _offset_checkpoints() -> Named:
    contents: dict[str, bytes | None] = {
        "missing": None,
        "empty": b"",
        "version only": b"0\n",
        "garbage": b"\x00\xffgarbage\n",
        "words": b"hello\nworld\n",
        "version 1": b"1\n0\n",
        "wrong count": b"0\n3\norders 0 5\n",
        "negative count": b"0\n-1\n",
        "huge count": b"0\n2000000000\n",
        "none": b"0\n0\n",
        "word for an offset": b"0\n1\norders 0 x\n",
        "two words": b"0\n1\norders 0\n",
        "negative offset": b"0\n1\norders 0 -5\n",
        "high offset": b"0\n1\norders 0 99999999\n",
        "middle offset": b"0\n1\norders 0 500\n",
        "unknown partitions": b"0\n2\nnowhere 0 5\nnowhere 1 6\n",
        "repeated": b"0\n2\norders 0 5\norders 0 600\n",
    }
    for checkpoint in (RECOVERY_POINT, LOG_START, HIGH_WATERMARK, CLEANER):
        short = checkpoint.removesuffix("-checkpoint").removesuffix("-offset")
        for name, content in contents.items():
            for clean in (True, False):
                if not clean and checkpoint != RECOVERY_POINT and name not in ("garbage", "middle offset"):
                    continue

                def apply(
                    node: Node, checkpoint: str = checkpoint, content: bytes | None = content, clean: bool = clean
                ) -> None:
                    path = node.first / checkpoint
                    if content is None:
                        path.unlink()
                    else:
                        path.write_bytes(content)
                    if not clean:
                        node.unclean()

                yield f"{short} {name} {'clean' if clean else 'unclean'}", apply


def _leader_epochs() -> Named:
    contents: dict[str, bytes | None] = {
        "missing": None,
        "empty": b"",
        "version only": b"0\n",
        "none": b"0\n0\n",
        "garbage": b"garbage\n",
        "zeros": bytes(8),
        "not utf-8": b"\xff\xfe\n",
        "version 1": b"1\n1\n0 0\n",
        "wrong count": b"0\n3\n0 0\n",
        "word": b"0\n1\n0 x\n",
        "three words": b"0\n1\n0 0 0\n",
        "past the end": b"0\n2\n0 0\n5 99999\n",
        "at the end": b"0\n2\n0 0\n5 1264\n",
        "falling": b"0\n2\n5 0\n3 100\n",
        "below start": b"0\n2\n0 50\n1 100\n",
        "negative": b"0\n1\n-1 0\n",
        "blank line after": b"0\n1\n0 0\n\n",
        "two epochs": b"0\n2\n0 0\n1 500\n",
    }
    for name, content in contents.items():
        for clean in (True, False):

            def apply(node: Node, content: bytes | None = content, clean: bool = clean) -> None:
                path = node.partition("orders-0") / "leader-epoch-checkpoint"
                if content is None:
                    path.unlink()
                else:
                    path.write_bytes(content)
                if not clean:
                    node.unclean()
                    node.set_offset(RECOVERY_POINT, "orders-0", 0)

            yield f"{name} {'clean' if clean else 'unclean'}", apply


def _quorum_states() -> Named:
    sound = (
        '{"clusterId":"","leaderId":1,"leaderEpoch":1,"votedId":-1,"appliedOffset":0,"currentVoters":[{"voterId":1}],'
        '"data_version":0}'
    )
    contents: dict[str, bytes | None] = {
        "missing": None,
        "empty": b"",
        "zeros": bytes(125),
        "garbage": b"garbage",
        "torn": sound[:60].encode(),
        "array": b"[]",
        "no version": sound.replace(',"data_version":0', "").encode(),
        "version 2": sound.replace('"data_version":0', '"data_version":2').encode(),
        "version 1": b'{"leaderId":1,"leaderEpoch":1,"votedId":-1,"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA",'
        b'"data_version":1}',
        "low epoch": sound.replace('"leaderEpoch":1', '"leaderEpoch":0').encode(),
        "high epoch": sound.replace('"leaderEpoch":1', '"leaderEpoch":9').encode(),
        "other voters": sound.replace('"voterId":1', '"voterId":7').encode(),
        "other leader": sound.replace('"leaderId":1', '"leaderId":7').encode(),
        "no leader": sound.replace('"leaderId":1', '"leaderId":-1').encode(),
        "no leader epoch": sound.replace('"leaderEpoch":1,', "").encode(),
        "words": sound.replace('"leaderEpoch":1', '"leaderEpoch":"x"').encode(),
        "voted for another": sound.replace('"votedId":-1', '"votedId":7')
        .replace('"leaderId":1', '"leaderId":-1')
        .encode(),
        "an unknown field": sound.replace("{", '{"more":1,', 1).encode(),
        "a line after": sound.encode() + b"\nmore\n",
        "negative epoch": sound.replace('"leaderEpoch":1', '"leaderEpoch":-2').encode(),
    }
    for name, content in contents.items():

        def apply(node: Node, content: bytes | None = content) -> None:
            path = node.partition(METADATA) / "quorum-state"
            path.unlink()
            if content is not None:
                path.write_bytes(content)

        yield name, apply


def _metadata_logs() -> Named:
    def newest(node: Node) -> Path:
        return sorted(node.partition(METADATA).glob("*.checkpoint"))[-1]

    def log(node: Node) -> Path:
        return node.segments(METADATA)[0]

    yield "newest snapshot zeroed", lambda node: zero(newest(node))
    yield "newest snapshot empty", lambda node: newest(node).write_bytes(b"")
    yield "newest snapshot cut", lambda node: cut(newest(node), newest(node).stat().st_size // 2)
    yield "newest snapshot garbage", lambda node: newest(node).write_bytes(garbage(500))
    yield "newest snapshot flipped", lambda node: flip(newest(node), newest(node).stat().st_size // 2)
    yield "newest snapshot flipped late", lambda node: flip(newest(node), newest(node).stat().st_size - 20)
    yield "newest snapshot without its footer", lambda node: cut(newest(node), newest(node).stat().st_size - 80)
    yield "newest snapshot missing", lambda node: newest(node).unlink()
    yield "oldest snapshot zeroed", lambda node: zero(sorted(node.partition(METADATA).glob("*.checkpoint"))[0])
    yield "all snapshots missing", lambda node: [p.unlink() for p in node.partition(METADATA).glob("*.checkpoint")]
    yield "all snapshots zeroed", lambda node: [zero(p) for p in node.partition(METADATA).glob("*.checkpoint")]
    yield "part snapshot", lambda node: shutil.copy(newest(node), f"{newest(node)}.part")
    yield "deleted snapshot", lambda node: newest(node).rename(f"{newest(node)}.deleted")
    yield (
        "snapshot past the end",
        lambda node: shutil.copy(newest(node), newest(node).with_name(f"{5000:020}-{1:010}.checkpoint")),
    )
    yield (
        "snapshot of a later epoch",
        lambda node: shutil.copy(newest(node), newest(node).with_name(f"{1020:020}-{7:010}.checkpoint")),
    )
    yield "log missing", lambda node: log(node).unlink()
    yield (
        "log missing, no snapshots",
        lambda node: [p.unlink() for p in node.partition(METADATA).iterdir() if p.suffix in (".log", ".checkpoint")],
    )
    yield "log empty", lambda node: log(node).write_bytes(b"")
    yield "log zeroed", lambda node: zero(log(node))
    yield "directory missing", lambda node: shutil.rmtree(node.partition(METADATA))
    yield "directory empty", lambda node: [p.unlink() for p in node.partition(METADATA).iterdir()]
    yield "index missing", lambda node: [p.unlink() for p in node.partition(METADATA).glob("*index")]
    yield "epochs garbage", lambda node: (node.partition(METADATA) / "leader-epoch-checkpoint").write_bytes(b"x\n")
    yield "epochs missing", lambda node: (node.partition(METADATA) / "leader-epoch-checkpoint").unlink()
    yield (
        "producer snapshot garbage",
        lambda node: [p.write_bytes(b"x") for p in node.partition(METADATA).glob("*.snapshot")],
    )
    for share in (0.1, 0.5, 0.9, 0.985, 0.999):
        yield f"log cut at {share}", lambda node, share=share: cut(log(node), int(log(node).stat().st_size * share))
        yield (
            f"log flipped at {share}",
            lambda node, share=share: flip(log(node), int(log(node).stat().st_size * share)),
        )
    yield "log with garbage behind", lambda node: log(node).write_bytes(log(node).read_bytes() + garbage(77))
    yield "log with zeros behind", lambda node: log(node).write_bytes(log(node).read_bytes() + bytes(77))

    def head_gone(node: Node, *, with_snapshot: bool) -> None:
        """The log as it is once segments before a snapshot were deleted."""
        snapshot = next(p for p in sorted(node.partition(METADATA).glob("*.checkpoint")) if int(p.name[:20]) > 600)
        start = int(snapshot.name[:20])
        data = log(node).read_bytes()
        at = next(position for position, _, base, _ in batch_positions(log(node)) if base >= start)
        base = next(base for _, _, base, _ in batch_positions(log(node)) if base >= start)
        for path in node.partition(METADATA).glob(f"{0:020}.*"):
            path.unlink()
        (node.partition(METADATA) / f"{base:020}.log").write_bytes(data[at:])
        for path in node.partition(METADATA).glob("*.checkpoint"):
            if int(path.name[:20]) < base or not with_snapshot:
                path.unlink()

    yield "head deleted, snapshots kept", lambda node: head_gone(node, with_snapshot=True)
    yield "head deleted, no snapshots", lambda node: head_gone(node, with_snapshot=False)


def _bootstraps() -> Named:
    def path(node: Node) -> Path:
        return node.first / "bootstrap.checkpoint"

    yield "missing", lambda node: path(node).unlink()
    yield "empty", lambda node: path(node).write_bytes(b"")
    yield "zeros", lambda node: zero(path(node))
    yield "garbage", lambda node: path(node).write_bytes(garbage(300))
    yield "flipped", lambda node: flip(path(node), 150)
    yield "flipped early", lambda node: flip(path(node), 40)
    yield "flipped in the base offset", lambda node: flip(path(node), 3)
    for size in (30, 61, 90, 150, 250):
        yield f"cut at {size}", lambda node, size=size: cut(path(node), size)

    def new_cluster(node: Node) -> None:
        for each in node.partition(METADATA).iterdir():
            each.unlink()
        zero(path(node))

    yield "zeros, metadata log empty", new_cluster


def _missing() -> Named:
    for name in ("orders-0", "users-0", "__consumer_offsets-2", "__transaction_state-0"):
        yield f"partition {name}", lambda node, name=name: shutil.rmtree(node.partition(name))

        def emptied(node: Node, name: str = name) -> None:
            for each in node.partition(name).iterdir():
                each.unlink()

        yield f"all files of {name}", emptied

    def all_partitions(node: Node) -> None:
        for each in node.first.iterdir():
            if each.is_dir() and each.name != METADATA:
                shutil.rmtree(each)

    yield "all partitions but the metadata log", all_partitions

    def emptied_disk(node: Node) -> None:
        for each in node.first.iterdir():
            shutil.rmtree(each) if each.is_dir() else each.unlink()

    yield "everything", emptied_disk
    yield "the log directory", lambda node: shutil.rmtree(node.first)

    def log_dir_is_a_file(node: Node) -> None:
        shutil.rmtree(node.first)
        node.first.write_text("x")

    yield "the log directory, a file in its place", log_dir_is_a_file


def _marked_directories() -> Named:
    def marked(mark: str, *, keep: bool, damage: str = "") -> Callable[[Node], None]:
        def apply(node: Node) -> None:
            target = node.first / f"orders-1.{UNIQUE}-{mark}"
            (shutil.copytree if keep else shutil.move)(node.partition("orders-1"), target)
            if damage == "log":
                flip(target / f"{0:020}.log", 100)
            elif damage == "empty":
                for each in target.iterdir():
                    each.unlink()
            elif damage == "metadata":
                (target / "partition.metadata").write_bytes(b"")
            elif damage == "no metadata":
                (target / "partition.metadata").unlink()
            elif damage == "epochs":
                (target / "leader-epoch-checkpoint").write_bytes(b"x\n")
            if damage:
                node.unclean()

        return apply

    for mark in ("delete", "future", "stray"):
        for keep in (True, False):
            for damage in ("", "log", "empty", "metadata", "no metadata", "epochs"):
                what = "beside" if keep else "instead of"
                yield f"{mark} {what} the partition, {damage or 'sound'}", marked(mark, keep=keep, damage=damage)


def _segment_files() -> Named:
    yield "first segment's log missing", lambda node: node.segments("orders-0")[0].unlink()
    yield "active segment's log missing", lambda node: node.segments("orders-0")[-1].unlink()
    yield "all logs missing", lambda node: [p.unlink() for p in node.segments("orders-0")]
    yield "first segment's log empty", lambda node: node.segments("orders-0")[0].write_bytes(b"")
    yield "active segment's log empty", lambda node: node.segments("orders-0")[-1].write_bytes(b"")

    def renamed(to: int, which: int, *, clean: bool = True) -> Callable[[Node], None]:
        def apply(node: Node) -> None:
            stem = node.segments("orders-0")[which].stem
            for path in sorted(node.partition("orders-0").glob(f"{stem}.*")):
                if path.suffix != ".snapshot":
                    path.rename(path.with_name(f"{to:020}{path.suffix}"))
            if not clean:
                node.unclean()
                node.set_offset(RECOVERY_POINT, "orders-0", 0)

        return apply

    for to, which in ((5, 0), (1000, -1), (1300, -1), (1110, -1)):
        yield f"segment {which} renamed to {to}", renamed(to, which)
        yield f"segment {which} renamed to {to}, unclean", renamed(to, which, clean=False)
    for name in ("abc.log", "5.log", ".log", "00000000000000000000.log.gz", "-5.log", "00000000000000099999.log"):
        yield f"file {name}", lambda node, name=name: (node.partition("orders-0") / name).write_bytes(b"")
    for name in ("abc.index", "abc.snapshot", "5.index", "-5.timeindex", "99999999999999999999.index"):
        yield f"file {name}", lambda node, name=name: (node.partition("orders-0") / name).write_bytes(b"")

    def log_is_a_directory(node: Node) -> None:
        node.segments("orders-0")[-1].unlink()
        (node.partition("orders-0") / f"{1102:020}.log").mkdir()

    yield "log is a directory", log_is_a_directory

    def log_is_a_pipe(node: Node) -> None:
        log = node.segments("orders-0")[-1]
        log.unlink()
        os.mkfifo(log)

    yield "log is a pipe", log_is_a_pipe

    def log_is_a_link(node: Node) -> None:
        log = node.segments("orders-0")[-1]
        log.rename(node.work / "moved.log")
        log.symlink_to(node.work / "moved.log")

    yield "log is a link", log_is_a_link

    def appended_to_itself(node: Node) -> None:
        log = node.segments("orders-1")[-1]
        log.write_bytes(log.read_bytes() * 2)
        node.unclean()
        node.set_offset(RECOVERY_POINT, "orders-1", 0)

    yield "log appended to itself, unclean", appended_to_itself

    def middle_cut_out(node: Node) -> None:
        log = node.segments("orders-1")[-1]
        found = batch_positions(log)
        data = log.read_bytes()
        log.write_bytes(data[: found[3][0]] + data[found[6][0] :])

    yield "batches cut out of the middle", middle_cut_out

    def swapped(node: Node) -> None:
        log = node.segments("orders-1")[-1]
        found = batch_positions(log)
        data = log.read_bytes()
        one, two, three = found[3][0], found[4][0], found[5][0]
        log.write_bytes(data[:one] + data[two:three] + data[one:two] + data[three:])
        node.unclean()
        node.set_offset(RECOVERY_POINT, "orders-1", 0)

    yield "batches swapped, unclean", swapped

    def foreign_batch(node: Node) -> None:
        log, other = node.segments("orders-1")[-1], node.segments("clicks-gzip-0")[-1]
        log.write_bytes(log.read_bytes() + other.read_bytes()[: batch_positions(other)[0][1]])
        node.unclean()
        node.set_offset(RECOVERY_POINT, "orders-1", 0)

    yield "batch of another log behind, unclean", foreign_batch

    def magic(value: int, *, clean: bool) -> Callable[[Node], None]:
        def apply(node: Node) -> None:
            log = node.segments("orders-1")[-1]
            overwrite(log, batch_positions(log)[4][0] + 16, bytes([value]))
            if not clean:
                node.unclean()
                node.set_offset(RECOVERY_POINT, "orders-1", 0)

        return apply

    for value in (0, 1, 3, 255):
        yield f"magic {value} clean", magic(value, clean=True)
        yield f"magic {value} unclean", magic(value, clean=False)


def _log_starts() -> Named:
    for offset in (0, 1, 500, 1101, 1102, 1103, 1264, 1265, 99999, -1):
        for clean in (True, False):

            def apply(node: Node, offset: int = offset, clean: bool = clean) -> None:
                node.set_offset(LOG_START, "orders-0", offset)
                if not clean:
                    node.unclean()

            yield f"{offset} {'clean' if clean else 'unclean'}", apply

    def beyond_a_cut(node: Node) -> None:
        node.set_offset(LOG_START, "orders-0", 1200)
        cut(node.segments("orders-0")[-1], 100)
        node.unclean()

    yield "past what recovery leaves", beyond_a_cut
