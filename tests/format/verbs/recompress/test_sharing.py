"""recompress by several processes writes what one writes, byte for byte, and reports what goes wrong in them."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from format.errors import KafkaLogError, WorkerDied
from format.findings import Finding
from format.layout import CODEC_NAMES
from format.log.batch_table import whole_batches
from format.rewriting import run as run_module
from format.rewriting.publication import Publication
from format.rewriting.read_back import ReadBackMismatch
from format.rewriting.rewriter import SegmentResult, WrittenSegment
from format.rewriting.segment_rewriting import SegmentRewriting
from format.rewriting.sources import read_write_sources
from format.scan.drivers import is_worth_sharing
from format.verbs.recompress import new_batches
from format.verbs.recompress import recompress as recompress_module
from format.verbs.recompress.new_batches import PlanTerms, TargetFormat
from format.verbs.recompress.recompress import Recompression, Recompressor, recompress
from tests.building import batch, batches, damaged_at_random, mixed_log, write_segment
from tests.corpora import REPOSITORY, Corpus

pytestmark = pytest.mark.long

CHUNK_BYTES = 6000


@pytest.fixture(autouse=True)
def small_chunks_are_shared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_module, "is_worth_sharing", lambda paths, cost: True)
    for name in ("CHUNK_BYTES", "BODY_CHUNK_BYTES"):
        monkeypatch.setattr(recompress_module, name, CHUNK_BYTES)


def outcome(source: Path, target: Path, jobs: int, codec: str, **terms: Any) -> dict[str, Any]:
    """All that a run writes and reports."""
    plan = {name: terms.pop(name) for name in ("force", "merge_bytes") if name in terms}
    wanted = TargetFormat(CODEC_NAMES.index(codec), terms.pop("level", None), terms.pop("magic", None))
    sources = read_write_sources([source])
    reported: list[int] = []
    run = Recompression(plan=PlanTerms(wanted, **plan), jobs=jobs, advance=reported.append, **terms)
    items: list[Finding | WrittenSegment] = []
    refusal = None
    try:
        with Publication(target, [source], job=sources.job("recompress")) as publication:
            items.extend(recompress(sources, publication, run))
    except KafkaLogError as error:
        refusal = str(error)
    files = {str(each.relative_to(target)): each.read_bytes() for each in target.rglob("*") if each.is_file()}
    return {"items": items, "refusal": refusal, "files": files, "bytes": sum(reported) if refusal is None else None}


def assert_alike(source: Path, tmp_path: Path, codec: str, **terms: Any) -> dict[str, Any]:
    found = []
    for jobs in (1, 3):
        found.append(outcome(source, tmp_path / "out", jobs, codec, **terms))
        shutil.rmtree(tmp_path / "out", ignore_errors=True)
    assert found[1] == found[0]
    return found[0]


@pytest.mark.parametrize("codec", CODEC_NAMES)
def test_every_corpus(shipped_corpus: Corpus, tmp_path: Path, codec: str) -> None:
    for log_dir in shipped_corpus.log_dirs:
        found = assert_alike(log_dir, tmp_path, codec, magic=2 if codec == "zstd" else None)
        assert found["refusal"] is None
        assert found["files"]


@pytest.mark.parametrize(
    "terms",
    [
        {"force": True, "level": 9},
        {"merge_bytes": 3000},
        {"segment_bytes": 2000},
        {"segment_bytes": 2000, "merge_bytes": 1000, "magic": 2},
        {"skip_damaged": True},
    ],
    ids=lambda terms: "-".join(terms),
)
def test_other_terms(shipped_corpus: Corpus, tmp_path: Path, terms: dict[str, Any]) -> None:
    for log_dir in shipped_corpus.log_dirs:
        assert assert_alike(log_dir, tmp_path, "gzip", **terms)["refusal"] is None


@pytest.mark.parametrize("skip_damaged", [False, True])
def test_damaged_logs(tmp_path: Path, skip_damaged: bool) -> None:
    chance, log = random.Random(5), mixed_log()
    refusals = 0
    for _ in range(25):
        write_segment(tmp_path / "t-0", 0, [damaged_at_random(log, chance)])
        write_segment(tmp_path / "t-0", 1200, batches(20, 1200, values=40))
        found = assert_alike(tmp_path / "t-0", tmp_path, "snappy", skip_damaged=skip_damaged)
        refusals += found["refusal"] is not None
    assert (refusals == 0) if skip_damaged else (5 < refusals < 25)


def test_offsets_that_only_another_segment_shows_to_be_wrong(tmp_path: Path) -> None:
    write_segment(tmp_path / "t-0", 0, [*batches(200), batch(10_000)])  # past where the next segment starts
    write_segment(tmp_path / "t-0", 600, batches(200, 600))
    for skip_damaged in (False, True):
        found = assert_alike(tmp_path / "t-0", tmp_path, "lz4", skip_damaged=skip_damaged)
        assert (
            any(isinstance(each, Finding) for each in found["items"]) == (found["refusal"] is not None) | skip_damaged
        )


def test_batches_larger_than_what_is_shared(tmp_path: Path) -> None:
    chance = random.Random(6)
    large = [batch(number, [chance.randbytes(9 << 20)]) for number in range(3)]
    write_segment(tmp_path / "t-0", 0, [*large, *batches(400, 3)])
    found = assert_alike(tmp_path / "t-0", tmp_path, "lz4")
    assert len(found["files"][f"t-0/{0:020d}.log"]) > 27 << 20


def sound_source(tmp_path: Path) -> Path:
    write_segment(tmp_path / "t-0", 0, batches(100, values=30))
    write_segment(tmp_path / "t-0", 3000, batches(100, 3000, values=30))
    return tmp_path / "t-0"


def test_a_wrong_new_batch_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recompressed = new_batches.recompressed

    def falsified(*arguments: Any) -> Any:
        made, error = recompressed(*arguments)
        if 600 in made.first_offsets:
            sizes_bytes = whole_batches(made.content, 0, len(made)).size_bytes
            contents = [bytes(each.content) for each in made.each(sizes_bytes)]
            contents[list(made.first_offsets).index(600)] = batch(600, [b"other"] * 30, codec=1)
            made = replace(made, content=b"".join(contents))
        return made, error

    monkeypatch.setattr(new_batches, "recompressed", falsified)
    with pytest.raises(ReadBackMismatch, match="600 differs in value"):
        list(running(sound_source(tmp_path), tmp_path / "out"))
    assert sorted(each.name for each in tmp_path.iterdir()) == ["t-0"]


def running(source: Path, target: Path, codec: str = "gzip", jobs: int = 2) -> Any:
    sources = read_write_sources([source])
    terms = Recompression(plan=PlanTerms(TargetFormat(CODEC_NAMES.index(codec))), jobs=jobs)
    with Publication(target, [source], job=sources.job("recompress")) as publication:
        yield from recompress(sources, publication, terms)


def test_a_process_that_is_killed_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def die(*_: object) -> object:
        os.kill(os.getpid(), signal.SIGKILL)

    monkeypatch.setattr(new_batches, "recompressed", die)
    with pytest.raises(WorkerDied, match="killed by signal 9"):
        list(running(sound_source(tmp_path), tmp_path / "out"))
    assert not (tmp_path / "out").exists()


def test_a_log_that_grows_meanwhile_is_taken_as_it_was_when_its_turn_came(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = sound_source(tmp_path)
    do = SegmentRewriting.do

    def grown(self: SegmentRewriting, result: SegmentResult) -> None:
        if result.last_offset is not None:  # of which the other processes know already
            with (source / f"{3000:020d}.log").open("ab") as log:
                log.write(batch(6000))
        do(self, result)

    monkeypatch.setattr(SegmentRewriting, "do", grown)
    segments = [each for each in running(source, tmp_path / "out") if isinstance(each, WrittenSegment)]
    assert [each.batch_count for each in segments] == [100, 101]


def test_a_killed_run_leaves_nobody_who_holds_the_partial_directory(tmp_path: Path) -> None:
    chance = random.Random(3)
    content = batches(1)
    for number in range(500):
        values = [bytes(chance.choices(b"abcdefgh ", k=400)) for _ in range(50)]
        content.append(batch(3 + 50 * number, values))
    write_segment(tmp_path / "t-0", 0, content)
    command = [sys.executable, "-m", "kafkalog_cli", "recompress", tmp_path / "t-0", "--output", tmp_path / "out"]
    command += ["--codec", "zstd", "--level", "19", "--jobs", "2", "--quiet"]
    first = subprocess.Popen([*command, "--keep-partial"], cwd=REPOSITORY, stdout=subprocess.DEVNULL)
    wait_for(lambda: any(each.stat().st_size for each in tmp_path.glob(".out.partial-*/t-0/*.log")))
    first.kill()
    first.wait()
    second = subprocess.run([*command, "--resume"], cwd=REPOSITORY, capture_output=True, check=False)
    assert second.returncode == 0, second.stderr
    assert (tmp_path / "out" / "manifest.json").is_file()


def wait_for(what: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not what():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def test_small_or_easy_work_is_not_shared(tmp_path: Path) -> None:
    path = write_segment(tmp_path / "t-0", 0, [batch(number, [bytes(1 << 20)]) for number in range(20)])

    def is_shared(codec: str, level: int | None = None) -> bool:
        terms = Recompression(plan=PlanTerms(TargetFormat(CODEC_NAMES.index(codec), level)), jobs=2)
        return is_worth_sharing([path], Recompressor(terms).cost)

    shared = [codec for codec in CODEC_NAMES if is_shared(codec)]
    assert shared == ["gzip"]
    assert is_shared("zstd", 19)
    assert is_shared("lz4", 17)
