"""Two damages in one node, logs of several formats, and what jobs and tools leave half done."""

from __future__ import annotations

import json
import random
import re
import shutil
import struct
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from tests.corpora import DATA_DIR
from tests.oracle.boot_mutations import checkpoints, directories, logs, metadata, side_files
from tests.oracle.boot_mutations.node import (
    CLEAN_MARK,
    HIGH_WATERMARK,
    LOG_START,
    METADATA,
    RECOVERY_POINT,
    UNIQUE,
    Named,
    Node,
    cut,
    flip,
    garbage,
    overwrite,
    zero,
)

_OLD_FORMATS = DATA_DIR / "kafka-0.8-to-2.8" / "data" / "legacy-0"
#: Families of which pairs are made: those that keep one log directory and leave the node something to start with.
_PAIRED = (
    directories.partition_metadata,
    directories.marked_directories,
    logs.tails,
    logs.middles,
    logs.segment_files,
    logs.log_starts,
    side_files.indexes,
    side_files.transaction_indexes,
    side_files.producer_snapshots,
    side_files.leftovers,
    checkpoints.offset_checkpoints,
    checkpoints.leader_epochs,
    metadata.metadata_logs,
)


def pairs() -> Named:
    """Two independent damages in one node, of two families."""
    chosen = random.Random(21)
    found = {family.__name__: list(family()) for family in _PAIRED}
    for number in range(40):
        first, second = chosen.sample(sorted(found), 2)
        one, two = chosen.choice(found[first]), chosen.choice(found[second])

        def apply(node: Node, both: tuple[Callable[[Node], object], ...] = (one[1], two[1])) -> None:
            for each in both:
                try:
                    each(node)
                except (FileNotFoundError, IndexError, StopIteration, KeyError):
                    continue  # the first one has taken away what it needs

        yield f"{number} {first} {one[0]} + {second} {two[0]}", apply


def old_formats() -> Named:
    """A log of formats 0, 1 and 2, in place of one that the node has."""

    def replaced(node: Node, *, clean: bool, point: int) -> Path:
        target = node.partition("orders-1")
        for each in target.iterdir():
            if each.name != "partition.metadata":
                each.unlink()
        for each in sorted(_OLD_FORMATS.iterdir()):
            shutil.copyfile(each, target / each.name)
        for checkpoint in (RECOVERY_POINT, HIGH_WATERMARK):
            node.set_offset(checkpoint, "orders-1", 3400)
        node.set_offset(RECOVERY_POINT, "orders-1", point)
        if not clean:
            node.unclean()
        return target / f"{0:020}.log"

    def ends_in_compressed(node: Node, start: int, size: int, end_offset: int, *, damaged: bool) -> None:
        """The active segment ends with a compressed message of format 0 or 1, which the last index entry leads to."""
        log = replaced(node, clean=True, point=end_offset)
        for each in log.parent.glob(f"{2200:020}.*"):
            each.unlink()
        for snapshot in log.parent.glob("*.snapshot"):
            snapshot.unlink()
        node.set_offset(HIGH_WATERMARK, "orders-1", end_offset)
        cut(log, start + size)
        entries = np.fromfile(log.with_suffix(".index"), ">i4").reshape(-1, 2)
        entries[entries[:, 1] <= start].tofile(log.with_suffix(".index"))
        log.with_suffix(".timeindex").write_bytes(b"")
        if damaged:
            for at in range(start + 60, start + size, 16):
                flip(log, at)

    for magic, codec, start, size, end_offset in (
        (0, "gzip", 36153, 6991, 400),
        (0, "snappy", 43144, 11352, 600),
        (0, "lz4", 54496, 14065, 800),
        (1, "gzip", 114186, 1597, 1200),
        (1, "snappy", 128846, 3018, 1400),
        (1, "lz4", 143303, 2392, 1600),
    ):
        for damaged in (False, True):
            yield (
                f"{'damaged' if damaged else 'sound'} {codec} of format {magic} at the end",
                partial(ends_in_compressed, start=start, size=size, end_offset=end_offset, damaged=damaged),
            )

    damages: dict[str, Callable[[Path], object]] = {"sound": lambda log: None}
    for magic, position in ((1, 68561), (2, 145695)):
        damages |= {
            f"flip behind the border to {magic}": lambda log, at=position: flip(log, at + 40),
            f"flip before the border to {magic}": lambda log, at=position: flip(log, at - 5),
            f"zeros over the border to {magic}": lambda log, at=position: overwrite(log, at - 30, bytes(60)),
            f"cut at the border to {magic}": lambda log, at=position: cut(log, at),
            f"cut 20 bytes behind the border to {magic}": lambda log, at=position: cut(log, at + 20),
            f"other magic at the border to {magic}": lambda log, at=position: overwrite(log, at + 16, b"\0"),
        }
    for name, damage in damages.items():
        for clean, point in ((True, 3400), (False, 0), (False, 2200)):

            def apply(
                node: Node, damage: Callable[[Path], object] = damage, clean: bool = clean, point: int = point
            ) -> None:
                damage(replaced(node, clean=clean, point=point))

            yield f"{name}, {'clean' if clean else 'unclean'}, recovery point {point}", apply


def kraft_pairs() -> Named:
    """The files of the metadata log, two at a time."""

    def newest(node: Node) -> Path:
        return sorted(node.partition(METADATA).glob("*.checkpoint"))[-1]

    singles: dict[str, Callable[[Node], object]] = {
        "newest snapshot missing": lambda node: newest(node).unlink(),
        "newest snapshot part": lambda node: newest(node).rename(f"{newest(node)}.part"),
        "newest snapshot damaged": lambda node: flip(newest(node), newest(node).stat().st_size // 2),
        "quorum-state missing": lambda node: (node.partition(METADATA) / "quorum-state").unlink(),
        "bootstrap missing": lambda node: (node.first / "bootstrap.checkpoint").unlink(),
        "log cut in the middle": lambda node: cut(node.segments(METADATA)[0], 40_000),
        "epochs missing": lambda node: (node.partition(METADATA) / "leader-epoch-checkpoint").unlink(),
        "partition.metadata missing": lambda node: (node.partition(METADATA) / "partition.metadata").unlink(),
    }
    names = list(singles)
    for number, one in enumerate(names):
        for two in names[number + 1 :]:
            if one.startswith("newest") and two.startswith("newest"):
                continue

            def apply(node: Node, one: str = one, two: str = two) -> None:
                singles[one](node)
                singles[two](node)

            yield f"{one}, {two}", apply


def several_directories() -> Named:
    """Log directories of one node that do not agree on how they were closed, or lie elsewhere."""

    def moved(node: Node, *names: str) -> Path:
        there = node.second()
        for name in names:
            shutil.move(node.partition(name), there / name)
        return there

    yield "clean there, unclean here", lambda node: ((moved(node, "orders-1") / CLEAN_MARK).touch(), node.unclean())
    yield "unclean there, clean here", lambda node: moved(node, "orders-1", "orders-0")

    def unclean_and_cut_there(node: Node) -> None:
        log = moved(node, "orders-1") / "orders-1" / f"{0:020}.log"
        cut(log, log.stat().st_size - 40)

    yield "unclean and cut there", unclean_and_cut_there

    def swapped(node: Node) -> None:
        moved(node, "orders-1")
        node.log_dirs[1], node.log_dirs[0] = node.log_dirs[0], node.log_dirs[1]

    yield "the metadata log in the second", swapped
    yield "the second is a file", lambda node: (shutil.rmtree(there := node.second()), there.write_text("x"))
    yield "the second is not there", lambda node: shutil.rmtree(node.second())
    yield "the second is a link", lambda node: (shutil.move(there := node.second(), node.work / "far"),
                                                there.symlink_to(node.work / "far"))  # fmt: skip

    def ids_swapped(node: Node) -> None:
        there = moved(node, "orders-1")
        one, two = node.meta(), (there / "meta.properties").read_text()
        (node.first / "meta.properties").write_text(two)
        (there / "meta.properties").write_text(one)

    yield "the ids of two are swapped", ids_swapped

    def future_further_on(node: Node, *, mark: bool, sound: bool) -> None:
        there = node.second() / f"orders-1.{UNIQUE}-future"
        shutil.copytree(node.partition("orders-1"), there)
        if not sound:
            cut(there / f"{0:020}.log", 40_000)
        if mark:
            (node.log_dirs[1] / CLEAN_MARK).touch()

    for mark in (True, False):
        for sound in (True, False):
            yield (
                f"a future replica there, {'whole' if sound else 'behind'}, {'clean' if mark else 'unclean'}",
                lambda node, mark=mark, sound=sound: future_further_on(node, mark=mark, sound=sound),
            )

    def failing_checkpoint_there(node: Node) -> None:
        (moved(node, "orders-1") / RECOVERY_POINT).write_bytes(b"garbage\n")

    yield "recovery points there garbage", failing_checkpoint_there

    def high_watermarks_there(node: Node) -> None:
        (moved(node, "orders-1") / HIGH_WATERMARK).write_bytes(b"garbage\n")

    yield "high watermarks there garbage", high_watermarks_there


def twins() -> Named:
    """Directories that share a topic id, or whose names read as another partition."""

    def copied(node: Node, name: str, to: str) -> Path:
        shutil.copytree(node.partition(name), node.first / to)
        return node.first / to

    for to in ("orders--1", "twin-1", "twin-7", "orders-01", f"orders-1.{UNIQUE}-stray", "Orders-1"):
        yield f"orders-1 copied to {to}", lambda node, to=to: copied(node, "orders-1", to)
        yield f"orders-1 moved to {to}", lambda node, to=to: shutil.move(node.partition("orders-1"), node.first / to)

    def damaged_twin(node: Node) -> None:
        flip(copied(node, "orders-1", "twin-1") / f"{0:020}.log", 300)
        node.unclean()

    yield "a damaged twin, unclean", damaged_twin


def remote_heads() -> Named:
    """A log whose head is gone while the checkpoint of log starts names it, as tiered storage leaves it."""
    for start in (0, 500, 1102, 1200):
        for clean in (True, False):
            for cache in (True, False):

                def apply(node: Node, start: int = start, clean: bool = clean, cache: bool = cache) -> None:
                    for each in node.partition("orders-0").glob(f"{0:020}.*"):
                        each.unlink()
                    node.set_offset(LOG_START, "orders-0", start)
                    if cache:
                        (node.first / "remote-log-index-cache").mkdir()
                    if not clean:
                        node.unclean()

                words = f"{'clean' if clean else 'unclean'}, {'a' if cache else 'no'} cache of remote indexes"
                yield f"log start {start}, {words}", apply


def half_done() -> Named:
    """What brokers and tools leave in the middle of something."""

    def preallocated(node: Node, *, clean: bool, size: int) -> None:
        log = node.segments("orders-0")[-1]
        cut(log, log.stat().st_size + size)
        for suffix in (".index", ".timeindex"):
            index = log.with_suffix(suffix)
            cut(index, 131_072 - 131_072 % (8 if suffix == ".index" else 12))
        if not clean:
            node.unclean()
            node.set_offset(RECOVERY_POINT, "orders-0", 1102)

    for size in (7, 100, 1_000_000):
        for clean in (True, False):
            words = f"{size} zeros behind the last batch and whole indexes, {'clean' if clean else 'unclean'}"
            yield words, lambda node, clean=clean, size=size: preallocated(node, clean=clean, size=size)

    def foreign_transactions(node: Node, *, clean: bool, damaged: bool) -> None:
        """A transaction index of another log, with offsets past this one's end."""
        path = node.segments("orders-0")[-1].with_suffix(".txnindex")
        path.write_bytes(struct.pack(">hqqqq", 0, 7, 5000, 5010, 5011) * 2 + (garbage(3) if damaged else b""))
        if not clean:
            node.unclean()

    for clean in (True, False):
        for damaged in (True, False):
            words = f"{'torn ' if damaged else ''}transaction index of another log, {'clean' if clean else 'unclean'}"
            yield words, lambda node, c=clean, d=damaged: foreign_transactions(node, clean=c, damaged=d)

    def marked(text: str) -> Callable[[Node], None]:
        return lambda node: (node.first / CLEAN_MARK).write_text(text) and None

    for epoch in (-1, 0, 12, 14, 2**40):
        yield f"clean mark of broker epoch {epoch}", marked(json.dumps({"version": 0, "brokerEpoch": epoch}))
    yield "clean mark of version 9", marked('{"version":9,"brokerEpoch":13}')
    yield "clean mark without an epoch", marked('{"version":0}')

    def rewritten(name: str, change: Callable[[bytes], bytes]) -> Callable[[Node], None]:
        return lambda node: (node.first / name).write_bytes(change((node.first / name).read_bytes())) and None

    def first_entry(new: Callable[[bytes], bytes]) -> Callable[[bytes], bytes]:
        def change(content: bytes) -> bytes:
            version, count, entry, *others = content.split(b"\n")
            return b"\n".join([version, count, new(entry), *others])

        return change

    changes: dict[str, Callable[[bytes], bytes]] = {
        "CRLF": lambda content: content.replace(b"\n", b"\r\n"),
        "CR": lambda content: content.replace(b"\n", b"\r"),
        "tabs": first_entry(lambda entry: entry.replace(b" ", b"\t")),
        "blanks before": first_entry(lambda entry: b"  " + entry),
        "blanks behind": first_entry(lambda entry: entry + b"  "),
        "a plus": first_entry(lambda entry: re.sub(rb" (\d+)$", rb" +\1", entry)),
        "zeros before": first_entry(lambda entry: re.sub(rb" (\d+)$", rb" 000\1", entry)),
        "a byte order mark": lambda content: b"\xef\xbb\xbf" + content,
        "a line of blanks at the end": lambda content: content + b"  \n",
        "no end of line": lambda content: content.rstrip(b"\n"),
        "count too low": lambda content: re.sub(
            rb"\n(\d+)\n", lambda found: b"\n%d\n" % (int(found[1]) - 1), content, count=1
        ),
        "an offset past 63 bits": first_entry(lambda entry: re.sub(rb" (\d+)$", rb" 9223372036854775808", entry)),
        "a partition below zero": first_entry(lambda entry: re.sub(rb" (\d+) (\d+)$", rb" -1 \2", entry)),
        "the first entry twice": lambda content: re.sub(
            rb"\n(\d+)\n(.*)", lambda found: b"\n%d\n%b\n%b" % (int(found[1]) + 1, found[2], found[2]), content, count=1
        ),
    }
    for name in (RECOVERY_POINT, HIGH_WATERMARK):
        for words, change in changes.items():
            yield f"{name.partition('-')[0]} points with {words}", rewritten(name, change)

    def damaged_swap(node: Node, *, clean: bool) -> None:
        log = node.segments("orders-0")[0]
        for suffix in (".log", ".index", ".timeindex"):
            shutil.copy(log.with_suffix(suffix), f"{log.with_suffix(suffix)}.swap")
        zero(Path(f"{log}.swap"))
        if not clean:
            node.unclean()

    yield "zeros in a .swap, clean", lambda node: damaged_swap(node, clean=True)
    yield "zeros in a .swap, unclean", lambda node: damaged_swap(node, clean=False)

    def indexes_of_a_swap_only(node: Node) -> None:
        index = node.segments("orders-0")[0].with_suffix(".index")
        index.rename(f"{index}.swap")

    yield "only the index under .swap", indexes_of_a_swap_only

    def snapshots_past_a_cut(node: Node) -> None:
        cut(node.segments("orders-0")[-1], 0)
        node.unclean()

    yield "snapshots past a log that lost its end", snapshots_past_a_cut
