"""The differences between two recordings, each with its command."""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from tests.recording.outcomes import Outcome, Recording

MOST_LINES = 12
#: Lines that are alike but for these are shown once where differences are grouped.
_NUMBER = re.compile(r"\d+|[0-9a-f]{16,}")
_PATH = re.compile(r"[\w.-]+(?:/[\w.#-]+)+")


@dataclass(frozen=True)
class Difference:
    """What one command did otherwise: the lines of a diff."""

    line: str
    what: str
    changes: tuple[str, ...]

    def __str__(self) -> str:
        shown = self.changes[:MOST_LINES]
        more = [f"  … {len(self.changes) - len(shown)} more lines"] * (len(shown) < len(self.changes))
        return "\n".join([f"{self.line}", f"  {self.what}", *(f"  {each[:400]}" for each in shown), *more])


def differences(before: Recording, after: Recording) -> Iterator[Difference]:
    """Every difference, in the order of the commands; a command whose inputs differ is not compared."""
    unlike = {path for path, _ in before.inputs.items() ^ after.inputs.items()}
    for path in sorted(unlike):
        yield Difference(path, "not the same input in both recordings: its commands are not compared", ())
    old, new = before.by_line(), after.by_line()
    for line in [*old, *(each for each in new if each not in old)]:
        if any(f"{word}/".startswith(f"{path}/") for path in unlike for word in line.split(" ")):
            continue
        if line not in new or line not in old:
            yield Difference(line, "only in the first recording" if line in old else "only in the second recording", ())
        else:
            yield from _differences_of(old[line], new[line])


def _differences_of(old: Outcome, new: Outcome) -> Iterator[Difference]:
    if old.code != new.code:
        yield Difference(old.line, f"exit code {old.code} became {new.code}", ())
    for name, first, second in (("stdout", old.stdout, new.stdout), ("stderr", old.stderr, new.stderr)):
        if first != second:
            yield Difference(old.line, name, tuple(_changed_lines(first, second)))
    for path in sorted({*old.files, *new.files}):
        first, second = old.files.get(path, "no file"), new.files.get(path, "no file")
        if first != second:
            yield Difference(old.line, f"file {path}", tuple(_changed_lines(first, second)))


def _changed_lines(first: str, second: str) -> Iterator[str]:
    """The lines that differ, with the lines around them left out."""
    old, new = first.split("\n"), second.split("\n")
    start = next((at for at, pair in enumerate(zip(old, new, strict=False)) if pair[0] != pair[1]), 0)
    old, new = old[start : start + 2000], new[start : start + 2000]
    for each in difflib.unified_diff(old, new, lineterm="", n=0):
        if not each.startswith(("---", "+++", "@@")):
            yield each


def groups(found: list[Difference]) -> list[tuple[int, Difference]]:
    """One difference for all that are alike but for numbers and paths, and how many there are, most first."""
    examples: dict[tuple[str, ...], Difference] = {}
    count: Counter[tuple[str, ...]] = Counter()
    for each in found:
        verb = each.line.split(" ")[1] if " " in each.line else each.line
        shape = (verb, *(_shape(text) for text in (each.what, *each.changes[:MOST_LINES])))
        examples.setdefault(shape, each)
        count[shape] += 1
    return [(number, examples[shape]) for shape, number in count.most_common()]


def _shape(text: str) -> str:
    return _NUMBER.sub("#", _PATH.sub("PATH", text))
