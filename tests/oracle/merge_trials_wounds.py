"""Wounds at random in the replicas of a partition: disjoint, or at one place of several of them."""

from __future__ import annotations

import random
from pathlib import Path

from tests.oracle.merge_trials_truth import Frame, Replicas

_PAGE = 4096
_SIDE_FILES = ("*.index", "*.timeindex", "*.txnindex", "*.snapshot", "leader-epoch-checkpoint", "partition.metadata")
_KINDS = {
    "flip": 6, "zero": 5, "overwrite": 5, "cut": 2, "remove segment": 1, "remove side files": 2, "swap": 2, "tear": 2,
}  # fmt: skip
#: Wounds that may hit the bytes of one place in several replicas.
_PLACED = ("flip", "zero", "overwrite", "swap")


def wound(rng: random.Random, replicas: Replicas, before: dict[int, list[Frame]]) -> list[str]:
    """One to six wounds. Returns what was done."""
    done: list[str] = []
    for _ in range(rng.randrange(1, 7)):
        kind = rng.choices(list(_KINDS), list(_KINDS.values()))[0]
        nodes = [rng.choice(list(replicas))]
        if kind in _PLACED and rng.random() < 0.4:
            nodes = rng.sample(list(replicas), rng.choice((2, 2, 3)))
        if kind in _PLACED:
            some = before[nodes[0]]
            offset = rng.choice(some).base
            for node in nodes:
                frame = next((each for each in before[node] if each.last >= offset), None)
                if frame is not None:
                    done += _at(rng, kind, replicas[node] / frame.segment, frame)
        else:
            done += _anywhere(rng, kind, replicas[nodes[0]])
    return done


def _at(rng: random.Random, kind: str, path: Path, frame: Frame) -> list[str]:
    content = bytearray(path.read_bytes()) if path.exists() else bytearray()
    at = frame.position + rng.randrange(len(frame.content))
    if at >= len(content):
        return []
    if kind == "flip":
        content[at] ^= 1 << rng.randrange(8)
    elif kind == "zero":
        at -= at % _PAGE
        size = min(_PAGE * rng.randrange(1, 3), len(content) - at)
        content[at : at + size] = bytes(size)
    elif kind == "overwrite":
        size = min(rng.choice((8, 100, 1000, 6000)), len(content) - at)
        content[at : at + size] = rng.randbytes(size)
    else:
        at -= at % _PAGE
        other = rng.randrange(max(1, len(content) // _PAGE)) * _PAGE
        if other == at or max(other, at) + _PAGE > len(content):
            return []
        content[at : at + _PAGE], content[other : other + _PAGE] = (
            content[other : other + _PAGE],
            content[at : at + _PAGE],
        )
    path.write_bytes(content)
    return [f"{kind} at {at} of {_name(path)}"]


def _anywhere(rng: random.Random, kind: str, directory: Path) -> list[str]:
    logs = sorted(directory.glob("*.log"))
    if kind == "remove side files":
        found = sorted(directory.glob(rng.choice(_SIDE_FILES)))
        for each in found:
            each.unlink()
        return [f"removed {_name(each)}" for each in found]
    if not logs:
        return []
    if kind == "remove segment":
        path = rng.choice(logs)
        if len(logs) == 1 and rng.random() < 0.7:
            return []
        for each in directory.glob(f"{path.stem}.*"):
            if each.suffix != ".snapshot":
                each.unlink()
        return [f"removed segment {_name(path)}"]
    path = logs[-1]
    size = path.stat().st_size
    if size < 100:
        return []
    new = size - rng.randrange(1, 60) if kind == "tear" else rng.randrange(size // 2, size)
    with path.open("r+b") as log:
        log.truncate(new)
    return [f"cut {_name(path)} from {size} to {new}"]


def _name(path: Path) -> str:
    return str(Path(*path.parts[-3:]))
