"""--jobs, --max-rate and --cache-friendly change how the work is done, never what comes of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from kafkalog_cli.options.work import Pacing, Sharing, Work
from tests.corpora import Corpus
from tests.running import Run, Word

pytestmark = pytest.mark.long

HOW = (
    ("--jobs", "1"),
    ("--jobs", "3"),
    ("--max-rate", "10GB"),
    ("--cache-friendly",),
    ("--max-rate", "5000", "--jobs", "2"),
)


@pytest.mark.parametrize(
    "command", [("verify",), ("dump", "--records"), ("dump",), ("grep", "e"), ("grep", "e", "--count")]
)
def test_the_output_is_the_same_however_it_is_made(
    command: tuple[str, ...], shipped_corpus: Corpus, run_kafkalog_many: Callable[[Iterable[Iterable[Word]]], list[Run]]
) -> None:
    log_dir = shipped_corpus.log_dirs[0]
    plain, *others = run_kafkalog_many([(*command, "--format", "jsonl", *how, log_dir) for how in ((), *HOW)])
    assert plain.summary["complete"]
    for other in others:
        assert (other.code, other.stdout) == (plain.code, plain.stdout), other.arguments


@pytest.mark.parametrize(
    "command",
    [
        ("recompress", "--codec", "gzip"),
        ("salvage",),
        ("rebuild-index", "--with-log"),
        ("redact", "--mode", "fill"),
        ("extract", "--to", "jsonl"),
    ],
    ids=lambda command: command[0],
)
def test_what_is_written_is_the_same_however_it_is_made(
    command: tuple[str, ...],
    shipped_corpus: Corpus,
    tmp_path: Path,
    run_kafkalog_many: Callable[[Iterable[Iterable[Word]]], list[Run]],
) -> None:
    log_dir = shipped_corpus.log_dirs[0]
    hows = [(), *(how for how in HOW if command[0] == "recompress" or "--jobs" not in how)]
    targets = [tmp_path / str(number) for number in range(len(hows))]
    runs = run_kafkalog_many(
        [(*command, *how, "--quiet", "--output", target, log_dir) for how, target in zip(hows, targets, strict=True)]
    )
    plain, *others = (content_of(run.check(0) and target) for run, target in zip(runs, targets, strict=True))
    assert plain
    assert others == [plain] * len(others)


def content_of(directory: Path) -> dict[str, bytes]:
    return {str(each.relative_to(directory)): each.read_bytes() for each in directory.rglob("*") if each.is_file()}


def test_a_rate_is_kept_by_one_process() -> None:
    assert Work(Sharing(8), Pacing(1_000_000)).process_count == 1
    assert Work(Sharing(8), Pacing(cache_friendly=True)).process_count == 8
    assert Work().process_count >= 1
