"""A log that is cut, replaced, renamed or removed while a command reads it: the same verdict for any number of jobs.

One finding, an incomplete run, no record twice, none out of place, and nothing made up about the rest.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest

from format.findings import Finding
from format.node.log_dir import Kind
from format.node.target import Target
from format.rewriting.publication import NewFile, Publication
from format.rows.line_blocks import LineBlock
from format.rows.record_rows import Row, RowBlock
from format.scan.selected_logs import selected_bytes
from format.scan.selection import EVERYTHING
from format.verbs.dump import DumpTerms, dump_lines
from format.verbs.extract import Extraction, TextFormat, extract, extract_job, extract_sources
from format.verbs.grep.grep import Criteria, FoundRows, Search, found_lines, searched_logs
from format.verbs.grep.pattern import text_pattern
from format.verbs.ls.ls import ListTerms, ls
from format.verbs.verify.verify import VerifyTerms, verify
from format.verbs.verify.walk import Level
from kafkalog_cli.render.lines import LINE_STYLES
from tests.building import batch, batches, write_segment

pytestmark = pytest.mark.long

COUNT = 400  # batches of three records in each of the two segments
NAME = "00000000000000000000.log"
#: Offsets of the whole partition.
OFFSETS = [*range(2 * 3 * COUNT)]


@pytest.fixture(autouse=True)
def small_work_is_shared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("format.scan.drivers.is_worth_sharing", lambda *_: True)
    monkeypatch.setattr("format.verbs.dump.DUMP_CHUNK_BYTES", 2000)
    monkeypatch.setattr("format.verbs.grep.grep.GREP_CHUNK_BYTES", 2000)
    monkeypatch.setattr("format.verbs.verify.walk.WALK_CHUNK_BYTES", 2000)


@pytest.fixture
def partition(tmp_path: Path) -> Path:
    directory = tmp_path / "node" / "orders-0"
    write_segment(directory, 0, batches(COUNT))
    write_segment(directory, 3 * COUNT, batches(COUNT, 3 * COUNT))
    return directory


def cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def replace(path: Path) -> None:
    other = path.parent.parent / "other"
    shutil.copy(path, other)
    os.replace(other, path)


def rename(path: Path) -> None:
    path.rename(path.with_name(path.name + ".deleted"))


CHANGES = [cut, replace, rename, Path.unlink]
#: After how much of the two logs the change comes: at once, amid the first log, at its end.
MOMENTS = [0.01, 0.3, 0.49]


class Changing:
    """Takes progress, and changes a file once so much of the logs is done."""

    def __init__(self, partition: Path, change: Callable[[Path], object], moment: float) -> None:
        self.left_bytes = moment * selected_bytes([Target(partition, Kind.PARTITION)], EVERYTHING)
        self.path = partition / NAME
        self.change: Callable[[Path], object] | None = change

    def advance(self, length_bytes: int) -> None:
        self.left_bytes -= length_bytes
        if self.left_bytes <= 0 and self.change is not None:
            change, self.change = self.change, None
            change(self.path)


def check_finding(findings: list[Finding], partition: Path) -> None:
    assert [each.code for each in findings] == ["file-changed"]
    assert findings[0].is_incomplete
    assert findings[0].location.path == str(partition / NAME)


def check_offsets(offsets: list[int]) -> None:
    """The beginning of the first log, and all of the second."""
    first = [each for each in offsets if each < 3 * COUNT]
    assert first == OFFSETS[: len(first)]
    assert first
    assert offsets[len(first) :] == OFFSETS[3 * COUNT :]


with_changes = [
    pytest.mark.parametrize("jobs", [1, 2, 3]),
    pytest.mark.parametrize("moment", MOMENTS),
    pytest.mark.parametrize("change", CHANGES),
]


def each_change(test: Callable[..., None]) -> Callable[..., None]:
    for mark in with_changes:
        test = mark(test)
    return test


@each_change
@pytest.mark.parametrize("level", [Level.CRC, Level.FULL])
def test_verify(partition: Path, change: Callable[[Path], object], moment: float, jobs: int, level: Level) -> None:
    changing = Changing(partition, change, moment)
    verified = verify(partition, VerifyTerms(level, jobs=jobs, advance=changing.advance))
    found = [each for each in verified if each.code != "index-missing"]
    check_finding(found, partition)
    assert verified.coverage.segments == 2
    assert COUNT < verified.coverage.batches <= 2 * COUNT


@each_change
@pytest.mark.parametrize("style", [None, "jsonl"])
def test_dump(partition: Path, change: Callable[[Path], object], moment: float, jobs: int, style: str | None) -> None:
    changing = Changing(partition, change, moment)
    asked = None if style is None else LINE_STYLES[style]
    offsets: list[int] = []
    findings = []
    for item in dump_lines([partition], DumpTerms(records=True), asked, jobs=jobs, advance=changing.advance):
        if isinstance(item, Finding):
            findings.append(item)
        else:
            offsets += offsets_in(item)
    check_finding(findings, partition)
    check_offsets(offsets)


@each_change
def test_grep(partition: Path, change: Callable[[Path], object], moment: float, jobs: int) -> None:
    changing = Changing(partition, change, moment)
    search = Search(Criteria(text_pattern("value")), LINE_STYLES["jsonl"], jobs=jobs, advance=changing.advance)
    offsets: list[int] = []
    findings = []
    for item in found_lines([partition], search):
        if isinstance(item, Finding):
            findings.append(item)
        else:
            offsets += offsets_in(item)
    check_finding(findings, partition)
    check_offsets(offsets)


@each_change
def test_grep_count(partition: Path, change: Callable[[Path], object], moment: float, jobs: int) -> None:
    changing = Changing(partition, change, moment)
    search = Search(Criteria(text_pattern("value")), jobs=jobs, advance=changing.advance)
    items = [*searched_logs([partition], search)]
    check_finding([each for each in items if isinstance(each, Finding)], partition)
    first, second = (each.record_count for each in items if not isinstance(each, Finding))
    assert 0 < first <= 3 * COUNT
    assert second == 3 * COUNT


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("change", CHANGES)
def test_extract(partition: Path, tmp_path: Path, change: Callable[[Path], object], moment: float) -> None:
    sources = extract_sources([partition], [])
    changing = Changing(partition, change, moment)
    terms = Extraction(TextFormat("jsonl", _Offsets), advance=changing.advance)
    with Publication(tmp_path / "out", [partition], job=extract_job([partition], sources)) as publication:
        items = [*extract(sources, publication, terms)]
    check_finding([each for each in items if isinstance(each, Finding)], partition)
    (file,) = (tmp_path / "out").rglob("*.jsonl")
    check_offsets([int(each) for each in file.read_text().split()])


class _Offsets:
    """Writes the offset of each record."""

    def __init__(self, file: NewFile) -> None:
        self._file = file

    def write(self, schema: object, rows: Iterable[Row], /) -> None:
        for row in rows:
            self._file.write(b"%d\n" % row[2])

    def write_raw(self, schema: object, lines: memoryview, row_count: int, /) -> None:
        raise AssertionError("no lines are made without a style")


@pytest.mark.parametrize("change", CHANGES)
def test_ls(partition: Path, change: Callable[[Path], object]) -> None:
    """Where only headers are read, the file is looked at again after each mebibyte."""
    write_segment(partition, 0, [batch(number, [bytes(20_000)]) for number in range(200)])
    changing = Changing(partition, change, 0.3)
    found = [each for each in ls(partition, ListTerms(advance=changing.advance)) if isinstance(each, Finding)]
    changes = [each for each in found if each.code == "file-changed"]
    check_finding(changes, partition)


def offsets_in(item: LineBlock | RowBlock | FoundRows) -> Iterator[int]:
    if isinstance(item, LineBlock):
        return iter([json.loads(line)["offset"] for line in bytes(item.lines).splitlines()])
    return iter([row[2] for row in item.rows])
