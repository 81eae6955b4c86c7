"""Odd files of partitions: links, directories and pipes under the names of files, and contents that nobody writes."""

from __future__ import annotations

import itertools
import os
import shutil
import struct
from collections.abc import Callable
from pathlib import Path

from format.codecs.checksums import crc32c_of
from tests.oracle.boot_mutations.node import (
    CLEAN_MARK,
    HIGH_WATERMARK,
    LOG_START,
    METADATA,
    RECOVERY_POINT,
    Named,
    Node,
    batch_positions,
    cut,
    flip,
    garbage,
    zero,
)

#: Names in orders-0 of the shared corpus; in the node of another release the active segment and the end are elsewhere.
_FIRST, _ACTIVE, _NEWEST = f"{0:020}", f"{1102:020}", f"{1264:020}"


def _place(folder: Path, name: str) -> Path:
    """A path in a partition directory, with the names of its own active segment and newest snapshot."""
    active, newest = (max((each.stem for each in folder.glob(f"*{end}")), default="") for end in (".log", ".snapshot"))
    if name.startswith(_ACTIVE):
        name = name.replace(_ACTIVE, active, 1)
    return folder / (name.replace(_NEWEST, newest, 1) if name.startswith(_NEWEST) else name)


def _linked(path: Path) -> None:
    """Move a file out of the log directory, and leave a link in its place."""
    target = path.parent.parent.parent / f"moved-{path.name}"
    path.rename(target)
    path.symlink_to(target)


def _dangling(path: Path) -> None:
    path.unlink()
    path.symlink_to(path.parent.parent.parent / f"nowhere-{path.name}")


def _far_dangling(path: Path) -> None:
    path.unlink()
    path.symlink_to(path.parent.parent.parent / "nowhere" / path.name)


def _looping(path: Path) -> None:
    path.unlink()
    path.symlink_to(path)


def _folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def _hard_linked(path: Path) -> None:
    os.link(path, path.parent.parent.parent / f"hard-{path.name}")


def file_kinds() -> Named:
    """Another kind of file under the name of each file of a partition."""
    names = {
        "first log": f"{_FIRST}.log",
        "active log": f"{_ACTIVE}.log",
        "first index": f"{_FIRST}.index",
        "active index": f"{_ACTIVE}.index",
        "time index": f"{_ACTIVE}.timeindex",
        "newest snapshot": f"{_NEWEST}.snapshot",
        "epochs": "leader-epoch-checkpoint",
        "topic id": "partition.metadata",
    }
    kinds = {"link": _linked, "dangling link": _dangling, "loop": _looping, "folder": _folder}
    for (what, name), (kind, apply) in itertools.product(names.items(), kinds.items()):
        for clean in (True, False):

            def changed(
                node: Node, name: str = name, apply: Callable[[Path], None] = apply, clean: bool = clean
            ) -> None:
                apply(_place(node.partition("orders-0"), name))
                if not clean:
                    node.unclean()

            yield f"{what} is a {kind}, {'clean' if clean else 'unclean'}", changed

    def damaged_link(node: Node) -> None:
        log = node.segments("orders-0")[0]
        flip(log, batch_positions(log)[1][0] + 70)
        node.set_offset(RECOVERY_POINT, "orders-0", 0)
        _linked(log)
        node.unclean()

    yield "a damaged log behind a link, unclean", damaged_link

    def closed_snapshot(node: Node, apply: Callable[[Path], None]) -> None:
        apply(_place(node.partition("orders-0"), f"{_ACTIVE}.snapshot"))
        node.set_offset(RECOVERY_POINT, "orders-0", 0)
        node.unclean()

    for kind, apply in kinds.items():
        yield f"the older snapshot is a {kind}, unclean from 0", lambda node, apply=apply: closed_snapshot(node, apply)
    yield "active log has another name, too", lambda node: _hard_linked(node.segments("orders-0")[-1])

    def same_log_twice(node: Node) -> None:
        os.link(node.segments("orders-0")[0], node.partition("orders-0") / f"{600:020}.log")

    yield "the first log under a second name", same_log_twice
    yield (
        "a link to a log under a second name",
        lambda node: (node.partition("orders-0") / f"{600:020}.log").symlink_to(f"{_FIRST}.log"),
    )
    for suffix in (".log", ".index", ".timeindex", ".txnindex", ".snapshot", ".log.swap", ".log.cleaned"):
        yield (
            f"a folder {suffix} of another offset",
            lambda node, suffix=suffix: (node.partition("orders-0") / f"{500:020}{suffix}").mkdir(),
        )
    yield "a folder in place of a txnindex", lambda node: (node.partition("payments-0") / f"{_FIRST}.txnindex").mkdir()


def node_file_kinds() -> Named:
    """Another kind of file under the name of each file of a log directory or of the metadata log."""

    def newest(node: Node) -> Path:
        return sorted(node.partition(METADATA).glob("*.checkpoint"))[-1]

    def link(path: Path) -> None:
        target = path.parent / f"real-{path.stem}"
        path.rename(target)
        path.symlink_to(target.name)

    kinds = {"link": link, "dangling link": _dangling, "folder": _folder}
    for name in (RECOVERY_POINT, LOG_START, HIGH_WATERMARK, "bootstrap.checkpoint", "meta.properties", CLEAN_MARK):
        for kind, apply in kinds.items():
            yield f"{name} is a {kind}", lambda node, name=name, apply=apply: apply(node.first / name)
    for name in ("quorum-state", f"{_FIRST}.log", "leader-epoch-checkpoint", "partition.metadata"):
        for kind, apply in kinds.items():
            yield (
                f"{name} of the metadata is a {kind}",
                lambda node, name=name, apply=apply: apply(node.partition(METADATA) / name),
            )
    snapshots = {**kinds, "loop": _looping, "link into a missing folder": _far_dangling}
    for kind, apply in snapshots.items():
        yield (
            f"the producer snapshot of the metadata is a {kind}",
            lambda node, apply=apply: apply(max(node.partition(METADATA).glob("*.snapshot"))),
        )
    for kind, apply in kinds.items():
        yield f"the newest metadata snapshot is a {kind}", lambda node, apply=apply: apply(newest(node))
    yield ".lock is a folder", lambda node: (node.first / ".lock").mkdir()
    yield ".lock holds bytes", lambda node: (node.first / ".lock").write_bytes(b"pid 1\n")
    yield ".lock is a dangling link", lambda node: (node.first / ".lock").symlink_to(node.work / "nowhere" / "lock")
    for name in (RECOVERY_POINT, HIGH_WATERMARK, "meta.properties", LOG_START):
        yield f"{name}.tmp is there", lambda node, name=name: (node.first / f"{name}.tmp").write_bytes(b"0\n")
        yield f"{name}.tmp is a folder", lambda node, name=name: (node.first / f"{name}.tmp").mkdir()

    def log_dir_is_a_link(node: Node) -> None:
        node.first.rename(node.work / "far")
        node.first.symlink_to(node.work / "far")

    yield "the log directory is a link", log_dir_is_a_link


def odd_segments() -> Named:
    """Segments that are empty, misnamed, doubled or out of reach."""

    def at(node: Node, base: int, suffix: str = ".log") -> Path:
        return _place(node.partition("orders-0"), f"{base:020}{suffix}")

    def variants(name: str, change: Callable[[Node], object]) -> Named:
        for state in ("clean", "unclean", "unclean from 0"):

            def apply(node: Node, state: str = state) -> None:
                change(node)
                if state != "clean":
                    node.unclean()
                if state == "unclean from 0":
                    node.set_offset(RECOVERY_POINT, "orders-0", 0)

            yield f"{name}, {state}", apply

    def renamed(which: int, to: int) -> Callable[[Node], None]:
        def apply(node: Node) -> None:
            stem = node.segments("orders-0")[which].stem
            for path in sorted(node.partition("orders-0").glob(f"{stem}.*")):
                path.rename(path.with_name(f"{to:020}{path.suffix}"))

        return apply

    def empty_between(node: Node, *, index: bool) -> None:
        at(node, 600).write_bytes(b"")
        if index:
            at(node, 600, ".index").write_bytes(b"")
            at(node, 600, ".timeindex").write_bytes(b"")

    yield from variants("an empty segment between", lambda node: empty_between(node, index=True))
    yield from variants("an empty log between, no index", lambda node: empty_between(node, index=False))
    yield from variants("an empty segment at the end", lambda node: at(node, 1264).write_bytes(b""))
    yield from variants("an empty segment past the end", lambda node: at(node, 5000).write_bytes(b""))
    yield from variants("active segment named one too high", renamed(-1, 1103))
    yield from variants("active segment named one too low", renamed(-1, 1101))
    yield from variants("first segment named one too high", renamed(0, 1))
    yield from variants("a copy of the first segment at 600", lambda node: shutil.copy(at(node, 0), at(node, 600)))
    yield from variants("a copy of the active at 1264", lambda node: shutil.copy(at(node, 1102), at(node, 1264)))
    yield from variants("an empty one at 2^63-1", lambda node: at(node, 2**63 - 1).write_bytes(b""))
    yield from variants("an empty one at 2^63-2", lambda node: at(node, 2**63 - 2).write_bytes(b""))
    yield from variants("an empty one at 2^32", lambda node: at(node, 2**32).write_bytes(b""))
    yield from variants("first log in zeros", lambda node: zero(at(node, 0)))
    yield from variants(
        "active log in zeros", lambda node: at(node, 1102).write_bytes(bytes(at(node, 1102).stat().st_size))
    )
    for size in (1, 11, 12, 16, 17, 26, 60, 61, 62):
        yield from variants(f"active log cut to {size}", lambda node, size=size: cut(at(node, 1102), size))
    yield from variants("active log is one byte", lambda node: at(node, 1102).write_bytes(b"\0"))

    def foreign_active(node: Node) -> None:
        shutil.copy(node.segments("users-0")[-1], at(node, 1102))

    yield from variants("active log of another partition", foreign_active)

    def swapped_order(node: Node) -> None:
        one, two = at(node, 0).read_bytes(), at(node, 1102).read_bytes()
        at(node, 0).write_bytes(two)
        at(node, 1102).write_bytes(one)

    yield from variants("the two logs exchanged", swapped_order)


def odd_side_files() -> Named:
    """Indexes, snapshots and epochs of sizes and contents that nobody writes."""

    def either(name: str, change: Callable[[Path], object]) -> Named:
        for clean in (True, False):

            def apply(node: Node, clean: bool = clean) -> None:
                change(node.partition("orders-0"))
                if not clean:
                    node.unclean()

            yield f"{name}, {'clean' if clean else 'unclean'}", apply

    def padded(name: str, size: int) -> Callable[[Path], None]:
        def change(folder: Path) -> None:
            path = _place(folder, name)
            path.write_bytes(path.read_bytes() + bytes(size - path.stat().st_size))

        return change

    for stem, which in ((_FIRST, "first"), (_ACTIVE, "active")):
        for suffix in (".index", ".timeindex"):
            for size in (131_072, 131_073, 65_536, 65_537, 10_485_760):
                yield from either(f"{suffix[1:]} {which} of {size} bytes", padded(f"{stem}{suffix}", size))
    falling = struct.pack(">iiiiii", 300, 40_000, 200, 20_000, 100, 10_000)
    yield from either("index with falling entries", lambda each: (each / f"{_FIRST}.index").write_bytes(falling))
    below = struct.pack(">ii", -100, 100)
    yield from either("active index below its base", lambda each: _place(each, f"{_ACTIVE}.index").write_bytes(below))
    middle = struct.pack(">ii", 50, 33)
    yield from either(
        "active index into the midst of a batch", lambda each: _place(each, f"{_ACTIVE}.index").write_bytes(middle)
    )
    late = struct.pack(">qi", 2**62, 50)
    yield from either("a time of the far future", lambda each: _place(each, f"{_ACTIVE}.timeindex").write_bytes(late))

    def snapshot(entries: list[tuple[int, ...]], *, version: int = 1, count: int | None = None) -> bytes:
        body = struct.pack(">i", len(entries) if count is None else count)
        body += b"".join(struct.pack(">qhiqiqiq", *each) for each in entries)
        return struct.pack(">hI", version, crc32c_of(memoryview(body))) + body

    producer = (7, 0, 3, 1200, 3, 1_700_000_000_000, 0, -1)
    contents = {
        "of version 2": snapshot([producer], version=2),
        "of version 0": snapshot([producer], version=0),
        "with one producer twice": snapshot([producer, producer]),
        "with a count too high": snapshot([producer], count=2),
        "with a count below zero": snapshot([producer], count=-1),
        "with a huge count": snapshot([producer], count=2**31 - 1),
        "with a producer id below zero": snapshot([(-5, *producer[1:])]),
        "with an open transaction of long ago": snapshot([(*producer[:-1], 5)]),
        "with an open transaction past the end": snapshot([(*producer[:-1], 99_999)]),
        "of no producer": snapshot([]),
        "in zeros": bytes(194),
        "of one byte": b"\0",
    }
    for words, content in contents.items():
        yield from either(
            f"newest snapshot {words}",
            lambda each, content=content: _place(each, f"{_NEWEST}.snapshot").write_bytes(content),
        )

    def foreign(each: Path) -> None:
        shutil.copy(max((each.parent / "payments-0").glob("*.snapshot")), _place(each, f"{_NEWEST}.snapshot"))

    yield from either("newest snapshot of another partition", foreign)
    yield from either("a snapshot of a short name", lambda each: (each / "5.snapshot").write_bytes(snapshot([])))
    epochs = {
        "with one epoch twice": b"0\n2\n0 0\n0 500\n",
        "with two at one offset": b"0\n2\n0 0\n3 0\n",
        "with the largest epoch": b"0\n2\n0 0\n2147483647 1264\n",
        "with an epoch too large": b"0\n2\n0 0\n2147483648 1264\n",
        "with an offset below zero": b"0\n1\n0 -1\n",
        "with blanks behind": b"0\n1\n0 0 \n",
        "with a blank before": b"0\n1\n 0 0\n",
        "with two blanks": b"0\n1\n0  0\n",
        "with no end of line": b"0\n1\n0 0",
        "with a byte order mark": b"\xef\xbb\xbf0\n1\n0 0\n",
        "of garbage behind": b"0\n1\n0 0\n\x00\x00",
        "that falls twice": b"0\n4\n0 0\n9 100\n5 200\n6 50\n",
        "only past the end": b"0\n1\n7 99999\n",
        "at the end exactly": b"0\n2\n0 0\n7 1264\n",
        "of a thousand": b"0\n1000\n" + b"".join(b"%d %d\n" % (each, each) for each in range(1000)),
    }
    for words, content in epochs.items():
        yield from either(
            f"epochs {words}",
            lambda each, content=content: (each / "leader-epoch-checkpoint").write_bytes(content),
        )
    yield from either("epochs.tmp is a folder", lambda each: (each / "leader-epoch-checkpoint.tmp").mkdir())


def swaps() -> Named:
    """Leftovers of the cleaner in all combinations, with and without what they are to replace."""
    stems = (_FIRST, _ACTIVE)
    kept = {"both": stems, "none": (), "the first": stems[:1], "the active": stems[1:]}
    marked: dict[str, tuple[tuple[str, str], ...]] = {
        "swap of the first": ((_FIRST, ".swap"),),
        "swap of both": ((_FIRST, ".swap"), (_ACTIVE, ".swap")),
        "swap of the active": ((_ACTIVE, ".swap"),),
        "cleaned of the first": ((_FIRST, ".cleaned"),),
        "deleted of both": ((_FIRST, ".deleted"), (_ACTIVE, ".deleted")),
        "swap of the first, cleaned of the active": ((_FIRST, ".swap"), (_ACTIVE, ".cleaned")),
        "swap and deleted of the first": ((_FIRST, ".swap"), (_FIRST, ".deleted")),
        "swap and cleaned of the first": ((_FIRST, ".swap"), (_FIRST, ".cleaned")),
    }
    number = 0
    for (words, marks), (kept_words, kept_stems) in itertools.product(marked.items(), kept.items()):
        for suffixes in ((".log", ".index", ".timeindex"), (".log",)):
            number += 1
            clean = number % 3 != 0

            def apply(
                node: Node,
                marks: tuple[tuple[str, str], ...] = marks,
                kept_stems: tuple[str, ...] = kept_stems,
                suffixes: tuple[str, ...] = suffixes,
                clean: bool = clean,
            ) -> None:
                folder = node.partition("orders-0")
                for stem, mark in marks:
                    for suffix in suffixes:
                        source = _place(folder, f"{stem}{suffix}")
                        shutil.copy(source, f"{source}{mark}")
                gone = [(stem, suffix) for stem in stems for suffix in (".index", ".timeindex", ".log")]
                for path in [_place(folder, stem + suffix) for stem, suffix in gone if stem not in kept_stems]:
                    path.unlink()
                if not clean:
                    node.unclean()

            files = "whole" if len(suffixes) == 3 else "logs only"
            yield f"{words}, {files}, with {kept_words} left, {'clean' if clean else 'unclean'}", apply

    def one(name: str, content: bytes = b"") -> Callable[[Node], None]:
        return lambda node: _place(node.partition("orders-0"), name).write_bytes(content) and None

    for name in (f"{_FIRST}.log.swap", f"{_ACTIVE}.log.swap", f"{700:020}.log.swap"):
        yield f"empty {name}", one(name)
        yield f"garbage in {name}", one(name, garbage(300))
        yield f"twenty bytes in {name}", one(name, bytes(8) + b"\0\0\1\0" + bytes(8))
    for name in (
        f"{_FIRST}.snapshot.swap", f"{_FIRST}.txnindex.swap", f"{_FIRST}.log.swap.swap", f"{_FIRST}.log.cleaned.swap",
        f"{_FIRST}.log.swap.deleted", f"{_FIRST}.log.deleted.cleaned", f"{_FIRST}.timeindex.swap",
        f"{_NEWEST}.snapshot.deleted", f"{_FIRST}.log.delete", "-5.log.swap", f"{2**63}.log.cleaned",
        "leader-epoch-checkpoint.swap", "partition.metadata.deleted", ".swap", ".deleted", ".cleaned",
    ):  # fmt: skip
        yield f"a file {name}", one(name, b"x")
