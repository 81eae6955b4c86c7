"""The bytes that a run counts add up to those of its logs, whatever the verb and the number of processes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from format.findings import Finding
from format.node.target import Target as At
from format.rewriting.publication import Publication
from format.rewriting.sources import read_write_sources
from format.rows.record_rows import Row
from format.scan.progress import Advance, LogProgress
from format.scan.selected_logs import selected_bytes
from format.scan.selection import EVERYTHING, Selection
from format.verbs.dump import DumpTerms, dump_lines
from format.verbs.extract import Extraction, TextFormat, extract, extract_job, extract_sources
from format.verbs.grep.grep import Criteria, Search, found_lines
from format.verbs.grep.pattern import text_pattern
from format.verbs.ls.ls import ListTerms, ls
from format.verbs.recompress.estimate import explain_recompress
from format.verbs.recompress.new_batches import PlanTerms, TargetFormat
from kafkalog_cli.render.lines import LINE_STYLES
from tests.building import batches, write_segment


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two partitions, one of several segments and one damaged."""
    monkeypatch.setattr("format.scan.drivers.is_worth_sharing", lambda *_: True)
    monkeypatch.setattr("format.verbs.dump.DUMP_CHUNK_BYTES", 2000)
    monkeypatch.setattr("format.verbs.grep.grep.GREP_CHUNK_BYTES", 2000)
    node = tmp_path / "node"
    for base in (0, 300, 600):
        write_segment(node / "a-0", base, batches(100, base))
    damaged = bytearray(b"".join(batches(100)))
    damaged[5000] ^= 0x55
    write_segment(node / "b-0", 0, [bytes(damaged[:-7])])
    return node


Work = Callable[[Path, Selection, int, Advance], object]


def dumped(node: Path, selection: Selection, jobs: int, advance: Advance) -> object:
    return list(dump_lines([node], DumpTerms(True, selection), LINE_STYLES["logfmt"], jobs=jobs, advance=advance))


def dumped_some(node: Path, selection: Selection, jobs: int, advance: Advance) -> object:
    rows = dump_lines([node], DumpTerms(True, selection), None, limit=10_000, jobs=jobs, advance=advance)
    return [each if isinstance(each, Finding) else list(each.rows) for each in rows]  # type: ignore[union-attr]


def found(node: Path, selection: Selection, jobs: int, advance: Advance) -> object:
    search = Search(Criteria(text_pattern("1"), selection=selection), LINE_STYLES["logfmt"], jobs=jobs, advance=advance)
    return list(found_lines([node], search))


def extracted(node: Path, selection: Selection, jobs: int, advance: Advance) -> object:
    terms = Extraction(TextFormat("txt", _Nothing), selection, advance=advance)
    sources = extract_sources([node], terms)
    with Publication(node.parent / f"out-{jobs}", [node], job=extract_job([node], sources)) as publication:
        return list(extract(sources, publication, terms))


class _Nothing:
    def __init__(self, file: object) -> None: ...

    def write(self, schema: object, rows: Iterable[Row], /) -> None: ...

    def write_raw(self, schema: object, lines: memoryview, row_count: int, /) -> None: ...


@pytest.mark.slow
@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize(
    "selection", [EVERYTHING, Selection(from_offset=320), Selection(from_offset=320, to_offset=400)]
)
@pytest.mark.parametrize("work", [dumped, dumped_some, found, extracted])
def test_the_bytes_of_the_selected_logs(node: Path, work: Work, selection: Selection, jobs: int) -> None:
    done: list[int] = []
    assert work(node, selection, jobs, done.append)
    assert sum(done) == selected_bytes([At(node)], selection) > 0
    assert min(done) > 0


def test_the_bytes_of_all_logs_listed_and_explained(node: Path) -> None:
    total = selected_bytes([At(node)], EVERYTHING)
    assert total == sum(each.stat().st_size for each in node.glob("*-*/*.log"))
    for work in (
        lambda advance: list(ls(node, ListTerms(advance=advance))),
        lambda advance: list(
            explain_recompress(read_write_sources([node]), PlanTerms(TargetFormat(1)), advance=advance)
        ),
    ):
        done: list[int] = []
        assert work(done.append)  # type: ignore[no-untyped-call]
        assert sum(done) == total


def test_a_path_that_cannot_be_listed_has_no_bytes(tmp_path: Path) -> None:
    assert selected_bytes([At(tmp_path / "nothing")], EVERYTHING) == 0


def test_each_byte_counts_once() -> None:
    done: list[int] = []
    progress = LogProgress(done.append)
    for position in (10, 5, 10, 30):
        progress.reached(position)
    assert done == [10, 20]
