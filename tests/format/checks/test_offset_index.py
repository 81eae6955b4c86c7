"""An .index against batches, some of which are damaged: what intact batches show, and what they cannot."""

from __future__ import annotations

from pathlib import Path

import pytest

from format.files import offset_index
from format.findings import Finding, Severity
from format.verbs.verify.verify import verify
from tests.building import batches, write_segment

BATCH = len(batches(1)[0])


def index_findings(tmp_path: Path, entries: list[tuple[int, int]], damaged: int | None = 2) -> list[Finding]:
    """The findings of verify for six batches of three records, one of them damaged, and an index of these entries."""
    content = batches(6)
    if damaged is not None:
        content[damaged] = content[damaged][:70] + b"\xff" + content[damaged][71:]
    path = write_segment(tmp_path / "orders-0", 0, content)
    offsets, positions = zip(*entries, strict=True)
    path.with_suffix(".index").write_bytes(offset_index.write((list(offsets), list(positions))))
    return [each for each in verify(tmp_path / "orders-0") if each.location.path.endswith(".index")]


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ((8, 2 * BATCH), None),  # the damaged batch
        ((11, 3 * BATCH), None),
        ((14, 2 * BATCH + 5), None),  # in the midst of the damaged batch
        ((11, 3 * BATCH + 5), "where no batch starts"),
        ((9, 4 * BATCH), "would miss records"),
        ((13, 3 * BATCH), None),  # starts or ends no batch that is intact
    ],
)
def test_an_entry_past_damage_is_held_against_intact_batches(
    tmp_path: Path, entry: tuple[int, int], words: str | None
) -> None:
    found = index_findings(tmp_path, [entry])
    assert [words in each.message for each in found if words is not None] == ([] if words is None else [True])
    assert bool(found) == (words is not None)


def test_an_entry_of_an_append_that_ends_in_damage_is_not_called_imprecise(tmp_path: Path) -> None:
    assert index_findings(tmp_path, [(8, BATCH)]) == []
    assert [each.code for each in index_findings(tmp_path, [(7, BATCH)], damaged=None)] == ["offset-index-imprecise"]


def test_entries_that_damage_moved_are_one_finding_with_its_cause(tmp_path: Path) -> None:
    entries = [(number * 3 + 2, number * BATCH + 7) for number in range(3, 6)]
    (found,) = index_findings(tmp_path, entries)
    assert found.message.startswith("entries 0 to 2 point to positions")
    assert found.caused_by is not None
    assert found.caused_by.code == "batch-crc-mismatch"


def test_an_entry_that_cannot_be_is_reported_once(tmp_path: Path) -> None:
    assert [each.code for each in index_findings(tmp_path, [(2, 0), (-5, -7)], damaged=None)] == ["index-invalid"]


def test_a_last_entry_past_the_end_hides_the_active_segment(tmp_path: Path) -> None:
    (found,) = index_findings(tmp_path, [(2**20, 0)], damaged=None)
    assert (found.code, found.severity) == ("offset-index-mismatch", Severity.ERROR)
    assert "serves nothing of this segment" in found.message
