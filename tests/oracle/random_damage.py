"""Damage at random: some of the mutations on one copy of a node, and wounds in any of its files."""

from __future__ import annotations

import random
import struct
from collections.abc import Iterable, Sequence

from tests.oracle.boot_mutations.node import Mutation, Node, flip
from tests.oracle.boot_mutations.table import mutations


def random_mutations(numbers: Iterable[int]) -> list[Mutation]:
    """Copies that are damaged at random, as mutations; the number of each decides what is done to it."""
    chosen = [each for each in mutations() if each.kind != "untouched"]
    return [Mutation("random", str(number), lambda node, number=number: damage(node, random.Random(number), chosen))
            for number in numbers]  # fmt: skip


def damage(node: Node, rng: random.Random, chosen: Sequence[Mutation]) -> list[str]:
    """One to three mutations of those chosen, and up to four wounds in any files. Returns what was done."""
    done = []
    for mutation in rng.sample(chosen, rng.choice((1, 1, 2, 3))):
        try:
            mutation.apply(node)
        except (OSError, LookupError, ValueError, AssertionError, struct.error):
            continue  # another one has taken away what it needs
        done.append(str(mutation))
    for _ in range(rng.choice((0, 1, 2, 4))):
        files = sorted(each for each in node.first.rglob("*") if each.is_file() and each.stat().st_size)
        if not files:
            break
        path = rng.choice(files)
        size = path.stat().st_size
        how = rng.choice(("flip", "zero", "cut", "garbage"))
        if how == "flip":
            flip(path, rng.randrange(size))
        else:
            content = bytearray(path.read_bytes())
            at = rng.randrange(size)
            if how == "cut":
                del content[at:]
            else:
                part = bytes(200) if how == "zero" else rng.randbytes(200)
                content[at : at + 200] = part[: size - at]
            path.write_bytes(content)
        done.append(f"{how} {path.relative_to(node.first)}")
    return done
