"""What all writing verbs have in common: the same output for any number of processes, and the same checks."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from format.errors import FileChanged, KafkaLogError
from format.findings import Finding
from format.rewriting import run as run_module
from format.rewriting import segment_rewriting
from format.rewriting.publication import Publication
from format.rewriting.read_back import ReadBackMismatch
from format.rewriting.rewriter import PASSES, Rewriter, RewritingResult, WriteTerms, WrittenSegment
from format.rewriting.segment_rewriting import OutputMark, SegmentOutput
from format.rewriting.sources import WriteSources, read_write_sources
from format.verbs.rebuild_index import IndexRebuilding, rebuild_index
from format.verbs.recompress.new_batches import PlanTerms, TargetFormat
from format.verbs.recompress.recompress import Recompression, recompress
from format.verbs.redact.redact import Redaction, redact
from format.verbs.redact.replacements import Mode, Redactor
from format.verbs.salvage import salvage
from tests.building import batches, damaged_at_random, mixed_log, write_segment
from tests.corpora import Corpus

pytestmark = pytest.mark.long

CHUNK_BYTES = 6000
Items = Iterator[Finding | WrittenSegment]
Verb = Callable[[WriteSources, Publication, RewritingResult, dict[str, Any]], Items]


def _recompress(
    sources: WriteSources, publication: Publication, result: RewritingResult, more: dict[str, Any]
) -> Items:
    terms = Recompression(plan=PlanTerms(TargetFormat(1)), skip_damaged=True, **more)
    return recompress(sources, publication, terms, result)


def _salvage(sources: WriteSources, publication: Publication, result: RewritingResult, more: dict[str, Any]) -> Items:
    return salvage(sources, publication, WriteTerms(**more), result)


def _redact(sources: WriteSources, publication: Publication, result: RewritingResult, more: dict[str, Any]) -> Items:
    terms = Redaction(redactor=Redactor(Mode.HASH, b"k" * 16), **more)
    return redact(sources, publication, terms, result)


def _rebuild_index(
    sources: WriteSources, publication: Publication, result: RewritingResult, more: dict[str, Any]
) -> Items:
    return rebuild_index(sources, publication, IndexRebuilding(with_log=True, **more), result)


VERBS: dict[str, Verb] = {
    "recompress": _recompress,
    "salvage": _salvage,
    "redact": _redact,
    "rebuild-index": _rebuild_index,
}


@pytest.fixture(autouse=True)
def small_chunks_are_shared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_module, "is_worth_sharing", lambda paths, cost: True)
    monkeypatch.setattr(Rewriter, "chunk_bytes", CHUNK_BYTES)


def outcome(verb: str, source: Path, target: Path, jobs: int = 1) -> dict[str, Any]:
    """Everything that a run leaves behind and reports."""
    sources = read_write_sources([source])
    reported: list[int] = []
    result = RewritingResult()
    items: list[Finding | WrittenSegment] = []
    error = None
    try:
        with Publication(target, [source], job=sources.job(verb)) as publication:
            more = {"jobs": jobs, "advance": reported.append}
            items.extend(VERBS[verb](sources, publication, result, more))
    except KafkaLogError as raised:
        error = str(raised)
    files = {str(each.relative_to(target)): each.read_bytes() for each in target.rglob("*") if each.is_file()}
    return {"items": items, "result": result, "error": error, "files": files, "bytes": sum(reported)}


def assert_alike(verb: str, source: Path, tmp_path: Path) -> dict[str, Any]:
    found = []
    for jobs in (1, 3):
        found.append(outcome(verb, source, tmp_path / "out", jobs))
        shutil.rmtree(tmp_path / "out", ignore_errors=True)
    assert found[1] == found[0]
    return found[0]


@pytest.mark.parametrize("verb", ["salvage", "redact", "rebuild-index"])
def test_processes_write_what_one_writes(verb: str, shipped_corpus: Corpus, tmp_path: Path) -> None:
    for log_dir in shipped_corpus.log_dirs:
        found = assert_alike(verb, log_dir, tmp_path)
        assert found["error"] is None
        assert found["files"]


@pytest.mark.parametrize("verb", ["salvage", "redact", "rebuild-index"])
def test_processes_write_what_one_writes_of_damaged_logs(verb: str, tmp_path: Path) -> None:
    chance, log = random.Random(7), mixed_log()
    lossy = 0
    for _ in range(15):
        content = damaged_at_random(log, chance)
        write_segment(tmp_path / "t-0", 0, [content])
        write_segment(tmp_path / "t-0", 1200, batches(20, 1200, values=40))
        found = assert_alike(verb, tmp_path / "t-0", tmp_path)
        assert found["error"] is None
        sizes = [each.stat().st_size for each in (tmp_path / "t-0").glob("*.log")]
        assert found["bytes"] == PASSES * sum(sizes)
        lossy += bool(found["result"].losses)
        if verb == "rebuild-index":
            assert found["files"][f"t-0/{0:020d}.log"] == content
    assert 3 < lossy < 15


@pytest.mark.parametrize("verb", VERBS)
def test_a_log_that_changes_between_two_reads_is_not_published(
    verb: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A byte of a sound batch changes after the first look: every verb checks its CRC once more."""
    content = bytearray(b"".join(batches(9)))
    content[-1] ^= 1  # so that the log is looked at as a whole first
    path = write_segment(tmp_path / "t-0", 0, [bytes(content)])
    scan_segment = segment_rewriting.scan_segment

    def changing(*arguments: Any, **named: Any) -> Any:
        scan = scan_segment(*arguments, **named)
        content[100] ^= 1
        path.write_bytes(content)
        return scan

    monkeypatch.setattr(segment_rewriting, "scan_segment", changing)
    sources = read_write_sources([tmp_path / "t-0"])
    with (
        pytest.raises(FileChanged, match="changed while it was read"),
        Publication(tmp_path / "out", [tmp_path / "t-0"]) as publication,
    ):
        list(VERBS[verb](sources, publication, RewritingResult(), {}))
    assert sorted(each.name for each in tmp_path.iterdir()) == ["t-0"]


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize("verb", VERBS)
def test_what_the_disk_gives_back_wrong_is_noticed(
    verb: str, jobs: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_segment(tmp_path / "t-0", 0, batches(100, values=30))
    finish_log = SegmentOutput.finish_log

    def spoilt(self: SegmentOutput) -> None:
        finish_log(self)
        [(path, _, end)] = self.ranges(OutputMark(0, 0), self.mark())
        content = bytearray(path.read_bytes())
        content[end - 1] ^= 1
        path.write_bytes(content)

    monkeypatch.setattr(SegmentOutput, "finish_log", spoilt)
    sources = read_write_sources([tmp_path / "t-0"])
    with pytest.raises(ReadBackMismatch), Publication(tmp_path / "out", [tmp_path / "t-0"]) as publication:
        list(VERBS[verb](sources, publication, RewritingResult(), {"jobs": jobs}))
    assert not (tmp_path / "out").exists()
