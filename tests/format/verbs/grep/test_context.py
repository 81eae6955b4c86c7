"""grep -C: what is shown around matches, against a naive loop over all records."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from format.findings import Finding
from format.verbs.grep.grep import Context, Criteria, FoundRows, Search, context_schema, found_with_context
from format.verbs.grep.pattern import text_pattern
from tests.building import batch, write_segment
from tests.properties.cutting import Cuts, cut

pytestmark = pytest.mark.slow

Shown = list[tuple[int, bool]]


def expected(offsets: list[int], matches: set[int], context: Context, most: int | None = None) -> Shown:
    """The offsets shown, and which of them match."""
    if most is not None and most < len(matches):
        offsets = [each for each in offsets if each < sorted(matches)[most]]
        matches = set(sorted(matches)[:most])
    shown = []
    for number, offset in enumerate(offsets):
        around = offsets[max(number - context.after, 0) : number + context.before + 1]
        if matches.intersection(around):
            shown.append((offset, offset in matches))
    return shown


def found(path: Path, context: Context, needle: str, most: int | None = None) -> Shown:
    names = context_schema(frozenset()).names
    at, mark = names.index("offset"), names.index("is_match")
    shown: Shown = []
    for item in found_with_context([path], Search(Criteria(text_pattern(needle))), context, most):
        assert not isinstance(item, Finding)
        assert isinstance(item, FoundRows)
        rows = list(item.rows)
        assert len(rows) == item.row_count
        shown += [(row[at], row[mark]) for row in rows]
    return shown


@pytest.mark.parametrize("seed", range(6))
def test_what_lies_around_a_match(tmp_path: Path, seed: int) -> None:
    random = Random(seed)
    path = tmp_path / "orders-0"
    offsets: list[int] = []
    matches: set[int] = set()
    made: list[bytes] = []
    next_offset = first_offset = 0
    for _ in range(30):
        if made and random.random() < 0.2:  # a segment may have fewer records than are shown around a match
            write_segment(path, first_offset, made)
            first_offset, made = next_offset, []
        count = random.randrange(1, 7)
        values = [random.choice((b"needle", *(b"hay",) * 9)) for _ in range(count)]
        made.append(batch(next_offset, values))
        offsets += range(next_offset, next_offset + count)
        matches |= {next_offset + number for number, value in enumerate(values) if value == b"needle"}
        next_offset += count + random.randrange(3)
    write_segment(path, first_offset, made)
    assert matches
    most = random.randrange(1, len(matches) + 1)
    for context in (Context(), Context(2, 0), Context(random.randrange(9), random.randrange(9))):
        assert found(path, context, "needle") == expected(offsets, matches, context)
        assert found(path, context, "needle", most) == expected(offsets, matches, context, most)
        with cut(Cuts(random.randrange(64, 500), 3, random.randrange(1, 9))):
            assert found(path, context, "needle") == expected(offsets, matches, context)
    assert found(path, Context(3, 3), "no such text") == []
