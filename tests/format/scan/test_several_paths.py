"""Several paths of one command: shared as one, with the same results as path by path."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from format.errors import InputError
from format.findings import Finding
from format.node.target import targets_at
from format.rows.line_blocks import LineBlock
from format.scan.processes import SharedUnits
from format.verbs.dump import DumpTerms, dump_lines
from format.verbs.grep.grep import Criteria, Search, found_lines
from format.verbs.grep.pattern import text_pattern
from format.verbs.verify.verify import VerifyTerms, verify_all
from kafkalog_cli.render.lines import LINE_STYLES
from tests.building import batches, write_segment

STYLE = LINE_STYLES["jsonl"]


@pytest.fixture
def unit_counts(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of units that worker processes were given, each time that they were started."""
    counts: list[int] = []
    opened = SharedUnits.__init__

    def counting(self: SharedUnits[object], fold: object, size_bytes: dict[int, int], jobs: int) -> None:
        counts.append(len(size_bytes))
        opened(self, fold, size_bytes, jobs)  # type: ignore[arg-type]

    monkeypatch.setattr(SharedUnits, "__init__", counting)
    monkeypatch.setattr("format.scan.drivers.is_worth_sharing", lambda *_: True)
    return counts


@pytest.fixture
def paths(tmp_path: Path) -> list[Path]:
    """Partitions, one of them damaged and one given twice, and a file by itself."""
    found = [tmp_path / name for name in ("a-0", "b-0", "c-0")]
    for partition in found:
        for base_offset in (0, 9):
            write_segment(partition, base_offset, batches(3, base_offset))
    (found[1] / f"{0:020d}.log").write_bytes(b"".join(batches(3))[:-5])
    alone = shutil.copytree(found[0], tmp_path / "other" / "d-0") / f"{9:020d}.log"
    return [*found, found[0], alone]


def dumped(paths: list[Path], jobs: int) -> list[object]:
    blocks = dump_lines(targets_at(paths), DumpTerms(records=True), STYLE, jobs=jobs)
    return [bytes(each.lines) if isinstance(each, LineBlock) else each for each in blocks]


def grepped(paths: list[Path], jobs: int) -> list[object]:
    blocks = found_lines(targets_at(paths), Search(Criteria(text_pattern("value")), STYLE, jobs=jobs))
    return [bytes(each.lines) if isinstance(each, LineBlock) else each for each in blocks]


def verified(paths: list[Path], jobs: int) -> list[object]:
    found = verify_all(targets_at(paths), VerifyTerms(jobs=jobs))
    return [*found, found.coverage]


@pytest.mark.parametrize(("read", "units"), [(dumped, 9), (grepped, 9), (verified, 5)])
def test_they_are_shared_as_one(read: object, units: int, paths: list[Path], unit_counts: list[int]) -> None:
    """dump and grep share logs, verify shares partitions."""
    by_one = read(paths, 1)  # type: ignore[operator]
    assert unit_counts == []
    assert read(paths, 2) == by_one  # type: ignore[operator]
    assert unit_counts == [units]
    assert any(isinstance(each, Finding) for each in by_one)


@pytest.mark.parametrize("jobs", [1, 2])
def test_an_error_comes_after_the_results_of_the_paths_before_it(
    jobs: int, paths: list[Path], tmp_path: Path, unit_counts: list[int]
) -> None:
    found: list[object] = []
    blocks = dump_lines([paths[0], tmp_path / "nothing"], DumpTerms(records=True), STYLE, jobs=jobs)
    with pytest.raises(InputError):
        found.extend(blocks)
    assert sum(block.row_count for block in found if isinstance(block, LineBlock)) == 18
    assert len(unit_counts) == jobs - 1
