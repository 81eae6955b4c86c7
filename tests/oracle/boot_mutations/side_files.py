"""Side files of segments: indexes, transaction indexes, producer snapshots, what interrupted work left behind."""

from __future__ import annotations

import shutil
import struct
from collections.abc import Callable
from pathlib import Path

from tests.oracle.boot_mutations.node import Named, Node, cut, flip, garbage, zero


def indexes() -> Named:
    damages: dict[str, Callable[[Path], object]] = {
        "missing": lambda path: path.unlink(),
        "empty": lambda path: path.write_bytes(b""),
        "odd": lambda path: path.write_bytes(path.read_bytes() + b"\x01\x02\x03"),
        "zeros": lambda path: path.write_bytes(bytes(max(24, path.stat().st_size))),
        "garbage": lambda path: path.write_bytes(garbage(240)),
        "cut": lambda path: cut(path, path.stat().st_size // 2),
        "past the end": lambda path: path.write_bytes(struct.pack(">ii", 10, 2**30)),
        "below zero": lambda path: path.write_bytes(struct.pack(">ii", 10, -5)),
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


def transaction_indexes() -> Named:
    def entry(version: int, first: int, last: int, stable: int) -> bytes:
        return struct.pack(">hqqqq", version, 1, first, last, stable)

    contents = {
        "missing": None,
        "empty": b"",
        "low last offset": entry(0, 0, -5, 0),
        "version 9": entry(9, 10, 20, 21),
        "version 9 in the first byte": entry(0x0900, 10, 20, 21),
        "version -1": entry(-1, 10, 20, 21),
        "version 9 after a low last offset": entry(0, 0, -5, 0) + entry(0x0909, 10, 20, 21),
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


def producer_snapshots() -> Named:
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


def leftovers() -> Named:
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
