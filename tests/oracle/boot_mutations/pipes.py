"""Pipes (FIFOs) under the names of files: whoever opens one to read or to write waits for the other end."""

from __future__ import annotations

import itertools
import os
from pathlib import Path

from tests.oracle.boot_mutations.node import (
    CLEAN_MARK,
    CLEANER,
    HIGH_WATERMARK,
    LOG_START,
    METADATA,
    RECOVERY_POINT,
    Named,
    Node,
)


def _pipe(path: Path) -> None:
    path.unlink(missing_ok=True)
    os.mkfifo(path)


def pipes() -> Named:
    """A pipe under the name of each file of a partition, of the metadata log and of a log directory."""
    sides = {
        "the first log": ("orders-0", "*.log", 0),
        "the active log": ("orders-0", "*.log", -1),
        "the only log": ("users-0", "*.log", -1),
        "the first index": ("orders-0", "*.index", 0),
        "the active index": ("orders-0", "*.index", -1),
        "the active time index": ("orders-0", "*.timeindex", -1),
        "the newest snapshot": ("orders-0", "*.snapshot", -1),
        "leader-epoch-checkpoint": ("orders-0", "leader-epoch-checkpoint", 0),
        "partition.metadata": ("orders-0", "partition.metadata", 0),
        "the newest metadata snapshot": (METADATA, "*.checkpoint", -1),
        "the metadata log": (METADATA, "*.log", -1),
        "the snapshot of the metadata log": (METADATA, "*.snapshot", -1),
        "quorum-state": (METADATA, "quorum-state", 0),
        "leader-epoch-checkpoint of the metadata log": (METADATA, "leader-epoch-checkpoint", 0),
    }
    for (words, (place, pattern, which)), clean in itertools.product(sides.items(), (True, False)):

        def changed(
            node: Node, place: str = place, pattern: str = pattern, which: int = which, clean: bool = clean
        ) -> None:
            _pipe(sorted(node.partition(place).glob(pattern))[which])
            if not clean:
                node.unclean()

        yield f"{words} is a pipe, {'clean' if clean else 'unclean'}", changed
    for name in (
        RECOVERY_POINT,
        LOG_START,
        HIGH_WATERMARK,
        CLEANER,
        "meta.properties",
        "bootstrap.checkpoint",
        CLEAN_MARK,
        ".lock",
    ):
        yield f"{name} is a pipe", lambda node, name=name: _pipe(node.first / name)
    for name in (f"{500:020}.log.swap", f"{500:020}.log.cleaned", f"{500:020}.snapshot", f"{500:020}.index",
                 f"{0:020}.txnindex", "leader-epoch-checkpoint.tmp", "notes.txt"):  # fmt: skip
        yield f"a pipe {name} in a partition", lambda node, name=name: _pipe(node.partition("orders-0") / name)
    for name in (f"{RECOVERY_POINT}.tmp", "notes.txt"):
        yield f"a pipe {name} in the log directory", lambda node, name=name: _pipe(node.first / name)
    yield "quorum-state.tmp is a pipe", lambda node: _pipe(node.partition(METADATA) / "quorum-state.tmp")
