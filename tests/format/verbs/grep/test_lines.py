"""What grep shows is the same by rows, by lines and by several processes, damage included."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from format.columns import RECORD
from format.findings import Finding
from format.kernel.compiled import KERNEL_IS_COMPILED
from format.rows.line_blocks import LineBlock
from format.rows.record_rows import Row, record_rows
from format.scan.selection import Selection
from format.verbs.grep.grep import (
    Criteria,
    FoundRecords,
    FoundRows,
    LogSearched,
    Search,
    found_lines,
    grep,
    searched_logs,
)
from format.verbs.grep.pattern import Pattern, bytes_pattern, regex_pattern, text_pattern
from kafkalog_cli.output import OutputStream
from kafkalog_cli.render.formats import open_renderer
from kafkalog_cli.render.lines import LINE_STYLES
from tests.building import batch, write_segment
from tests.corpora import Corpus

pytestmark = pytest.mark.long

LINES = pytest.param("jsonl", marks=pytest.mark.skipif(not KERNEL_IS_COMPILED, reason="only a compiled kernel does it"))


@pytest.fixture(autouse=True)
def small_work_is_shared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("format.scan.drivers.is_worth_sharing", lambda *_: True)
    monkeypatch.setattr("format.verbs.grep.grep.GREP_CHUNK_BYTES", 700)


def partition_of(tmp_path: Path, *, damaged: bool) -> Path:
    """Three segments of batches that all have the word, every third record a number behind it."""
    partition = tmp_path / "orders-0"
    for base in (0, 300, 600):
        values = [[b"needle %d" % n if n % 3 == 0 else b"needle\n" for n in range(3)] for _ in range(40)]
        log = bytearray(
            b"".join(
                batch(base + 3 * number, each, codec=number % 5, headers=((b"n", b"%d" % number),))
                for number, each in enumerate(values)
            )
        )
        if damaged and base != 300:
            for position in (900, 2400, len(log) - 40):
                log[position] ^= 0x55
        write_segment(partition, base, [bytes(log)])
    return partition


CRITERIA = [
    Criteria(text_pattern("needle")),
    Criteria(regex_pattern("needle [0-9]|x")),
    Criteria(bytes_pattern(b"17")),
    Criteria(text_pattern("no such thing")),
    Criteria(regex_pattern("needle$"), is_inverted=True),
    Criteria(text_pattern("needle"), selection=Selection(from_offset=50)),
    Criteria(text_pattern("needle"), selection=Selection(from_offset=50, to_offset=330)),
]


@pytest.mark.parametrize("damaged", [False, True])
@pytest.mark.parametrize("style_name", [None, LINES])
@pytest.mark.parametrize("criteria", CRITERIA)
def test_the_same_by_rows_by_lines_and_by_processes(
    tmp_path: Path, criteria: Criteria, style_name: str | None, damaged: bool
) -> None:
    partition = partition_of(tmp_path, damaged=damaged)
    logs = sorted(partition.glob("*.log"))
    reported = [each for path in (partition, logs[2]) for each in grep(path, criteria)]
    style = LINE_STYLES[style_name] if style_name else None
    for jobs in (1, 2, 3):
        search = Search(criteria, style, jobs=jobs)
        shown = list(as_shown(found_lines((partition, logs[2]), search)))
        assert shown == list(as_given(reported, style_name)), jobs


@pytest.mark.parametrize("damaged", [False, True])
@pytest.mark.parametrize("first_only", [False, True])
@pytest.mark.parametrize("criteria", CRITERIA)
def test_the_same_counts_by_processes(tmp_path: Path, criteria: Criteria, first_only: bool, damaged: bool) -> None:
    """All counts; of the first match in a log only that there is one, and nothing of what follows it."""
    partition = partition_of(tmp_path, damaged=damaged)
    reported = list(grep(partition, criteria))
    totals = Counter(
        each.location.path for each in reported if isinstance(each, FoundRecords) for _ in each.records.offset
    )
    alone = [*map(as_count, searched_logs([partition], Search(criteria), first_only=first_only))]
    counts = {str(each[0]): each[2] for each in alone if not isinstance(each, Finding) and each[2]}
    assert counts.keys() == totals.keys()
    assert first_only or counts == totals
    findings = [each for each in reported if isinstance(each, Finding)]
    assert first_only or [each for each in alone if isinstance(each, Finding)] == findings
    for jobs in (2, 3):
        searched = searched_logs([partition], Search(criteria, jobs=jobs), first_only=first_only)
        assert [*map(as_count, searched)] == alone, jobs


@pytest.mark.skipif(not KERNEL_IS_COMPILED, reason="lines are made so only by a compiled kernel")
def test_the_first_lines(tmp_path: Path) -> None:
    search = Search(CRITERIA[0], LINE_STYLES["logfmt"])
    for item in found_lines([partition_of(tmp_path, damaged=False)], search):
        assert isinstance(item, LineBlock)
        lines = bytes(item.lines).splitlines(keepends=True)
        assert len(lines) == item.row_count
        for count in (1, 2, len(lines), len(lines) + 1):
            cut = item.first(count)
            assert (bytes(cut.lines), cut.row_count) == (b"".join(lines[:count]), min(count, len(lines)))


@pytest.mark.parametrize("pattern", [text_pattern("e"), regex_pattern("[a-z][0-9]|[ -~]$")])
def test_real_logs(corpus: Corpus, pattern: Pattern) -> None:
    log_dir = corpus.log_dirs[0]
    reported = list(as_given(grep(log_dir, Criteria(pattern)), None))
    assert list(as_shown(found_lines([log_dir], Search(Criteria(pattern), jobs=2)))) == reported
    assert reported


def as_given(reported: Iterable[Any], style_name: str | None) -> Iterable[Any]:
    """The rows, or lines, and the findings between them."""
    for item in reported:
        if isinstance(item, Finding):
            yield item
        elif isinstance(item, FoundRecords):
            rows = record_rows(item.records, item.location)
            yield from rows if style_name is None else rendered(style_name, rows)


def rendered(style_name: str, rows: Iterable[Row]) -> list[bytes]:
    """The lines that the renderer makes of records."""
    buffer = io.BytesIO()
    output = OutputStream(buffer, "<test>")
    open_renderer(style_name, output, aside=print).write(RECORD, rows)
    output.flush()
    return buffer.getvalue().splitlines()


def as_shown(shown: Iterable[Any]) -> Iterable[Any]:
    for item in shown:
        if isinstance(item, LineBlock):
            yield from bytes(item.lines).splitlines()
        elif isinstance(item, FoundRows):
            rows = list(item.rows)
            assert item.row_count == len(rows)
            yield from rows
        else:
            yield item


def as_count(item: LogSearched | Finding) -> Any:
    return item if isinstance(item, Finding) else (item.path, item.location, item.record_count)
