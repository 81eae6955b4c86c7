"""Publishing: a directory that appears whole or not at all, and only where nothing is."""

from __future__ import annotations

import errno
import hashlib
import json
import os
from contextlib import suppress
from pathlib import Path

import pytest

from format.errors import OutputError, OutputExists, OutputInsideSource
from format.layout import MANIFEST
from format.rewriting.publication import JOURNAL, Publication

pytestmark = pytest.mark.slow


def publish(target: Path, sources: list[Path] | None = None, **options: object) -> Publication:
    with Publication(target, sources or [], job={"command": "test"}, **options) as publication:  # type: ignore[arg-type]
        if not publication.is_step_finished("a"):
            publication.write_file("t-0/a.log", b"aaa")
            publication.finish_step("a", {"rows": 1})
        if not publication.is_step_finished("b"):
            publication.write_file("t-0/b.log", b"bb")
            with publication.create("t-0/c.log", write_beside=True) as file:
                for number in range(3):
                    file.write(bytes([number]) * 200_000)
                file.finish_writing()
                assert publication.place_of("t-0/c.log").stat().st_size == 600_000
            publication.finish_step("b")
        publication.finish({"lost": []})
    return publication


def content_of(directory: Path) -> dict[str, bytes]:
    return {str(p.relative_to(directory)): p.read_bytes() for p in sorted(directory.rglob("*")) if p.is_file()}


def test_the_manifest_holds_size_and_sha256_of_every_file(tmp_path: Path) -> None:
    publish(tmp_path / "out")
    assert sorted(content_of(tmp_path / "out")) == [MANIFEST, "t-0/a.log", "t-0/b.log", "t-0/c.log"]
    manifest = json.loads((tmp_path / "out" / MANIFEST).read_text())
    assert manifest["files"][0] == {"path": "t-0/a.log", "size_bytes": 3, "sha256": hashlib.sha256(b"aaa").hexdigest()}
    assert manifest["job"] == {"command": "test"}
    assert manifest["lost"] == []
    assert os.listdir(tmp_path) == ["out"]


def test_an_empty_directory_may_be_the_target(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    publish(tmp_path / "out")
    assert (tmp_path / "out" / "t-0" / "a.log").read_bytes() == b"aaa"


@pytest.mark.parametrize("what", ["file", "directory", "dangling link to nowhere"])
def test_an_existing_target_is_refused(tmp_path: Path, what: str) -> None:
    target = tmp_path / "out"
    if what == "file":
        target.write_bytes(b"")
    elif what == "directory":
        target.mkdir()
        (target / "x").write_bytes(b"")
    else:
        target.symlink_to(tmp_path / "nowhere" / "else")
    with pytest.raises(OutputError) as error:
        publish(target)
    assert isinstance(error.value, OutputExists) == (what != "dangling link to nowhere")
    assert os.listdir(tmp_path) == ["out"]


@pytest.mark.parametrize("relation", ["is", "lies inside", "contains", "lies inside by a link", "inside a log dir"])
def test_a_target_that_touches_a_source_is_refused(tmp_path: Path, relation: str) -> None:
    source = tmp_path / "a" / "source-0"
    source.mkdir(parents=True)
    (tmp_path / "link").symlink_to(source)
    (tmp_path / "a" / "meta.properties").write_bytes(b"")
    target = {
        "is": source,
        "lies inside": source / "out",
        "contains": tmp_path / "a",
        "lies inside by a link": tmp_path / "link" / "out",
        "inside a log dir": tmp_path / "a" / "out",
    }[relation]
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(OutputInsideSource):
        publish(target, [source])
    assert sorted(tmp_path.rglob("*")) == before


def test_a_small_part_does_not_keep_the_buffer_that_it_lies_in(tmp_path: Path) -> None:
    with Publication(tmp_path / "out", []) as publication, publication.create("x") as file:
        buffer = bytearray(b"abc" * 1000)
        file.write(memoryview(buffer)[3:6])
        buffer.clear()  # a BufferError where somebody still looks at it
        file.close()
        assert publication.place_of("x").read_bytes() == b"abc"


def test_a_missing_parent_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="no directory"):
        publish(tmp_path / "not-there" / "out")


@pytest.mark.parametrize("path", ["../x", "/x", "", MANIFEST, JOURNAL])
def test_no_file_leaves_the_directory(tmp_path: Path, path: str) -> None:
    with Publication(tmp_path / "out", []) as publication, pytest.raises(ValueError, match="publication"):
        publication.create(path)


def test_an_error_publishes_nothing_and_removes_what_was_written(tmp_path: Path) -> None:
    with suppress(RuntimeError), Publication(tmp_path / "out", []) as publication:
        publication.write_file("x", b"x")
        raise RuntimeError
    assert os.listdir(tmp_path) == []


def test_without_finish_nothing_is_published(tmp_path: Path) -> None:
    with Publication(tmp_path / "out", []) as publication:
        publication.write_file("x", b"x")
    assert os.listdir(tmp_path) == []


def test_a_file_that_changed_after_it_was_written_is_noticed(tmp_path: Path) -> None:
    with Publication(tmp_path / "out", []) as publication:
        publication.write_file("x", b"x")
        publication.place_of("x").write_bytes(b"y")
        with pytest.raises(OutputError, match="read back"):
            publication.finish()
    assert os.listdir(tmp_path) == []


def interrupted(target: Path) -> Path:
    """Leave a partial directory behind with one finished step, one file of the next, and a torn journal line."""
    job = {"command": "test"}
    with suppress(RuntimeError), Publication(target, [], job=job, keep_partial=True) as publication:
        publication.write_file("t-0/a.log", b"aaa")
        publication.finish_step("a", {"rows": 1})
        publication.write_file("t-0/b.log", b"half")
        raise RuntimeError
    [partial] = target.parent.iterdir()
    with (partial / JOURNAL).open("ab") as journal:
        journal.write(b'{"step": "b", "fil')
    return partial


def test_a_resumed_run_takes_finished_steps_and_gives_the_same_output(tmp_path: Path) -> None:
    (tmp_path / "1").mkdir()
    (tmp_path / "2").mkdir()
    publish(tmp_path / "1" / "out")
    interrupted(tmp_path / "2" / "out")
    publication = publish(tmp_path / "2" / "out", resume=True)
    assert publication.is_resumed
    assert publication.step_result("a") == {"rows": 1}
    assert content_of(tmp_path / "1" / "out") == content_of(tmp_path / "2" / "out")
    assert os.listdir(tmp_path / "2") == ["out"]


def test_a_finished_file_that_hashes_wrong_is_written_again(tmp_path: Path) -> None:
    partial = interrupted(tmp_path / "out")
    (partial / "t-0" / "a.log").write_bytes(b"aab")
    publish(tmp_path / "out", resume=True)
    assert (tmp_path / "out" / "t-0" / "a.log").read_bytes() == b"aaa"


def test_another_job_is_not_resumed(tmp_path: Path) -> None:
    partial = interrupted(tmp_path / "out")
    with Publication(tmp_path / "out", [], job={"command": "other"}, resume=True) as publication:
        assert not publication.is_resumed
        publication.finish()
    assert partial.exists()


def test_a_partial_directory_in_use_is_left_alone(tmp_path: Path) -> None:
    job = {"command": "test"}
    with Publication(tmp_path / "out", [], job=job) as first:
        first.write_file("x", b"x")
        first.finish_step("x")
        with pytest.raises(OutputError, match="another run"):
            publish(tmp_path / "out", resume=True)
        first.finish()
    assert (tmp_path / "out" / "x").read_bytes() == b"x"


def test_a_run_at_work_keeps_what_it_has_not_finished(tmp_path: Path) -> None:
    with Publication(tmp_path / "out", [], job={"command": "test"}) as first:
        with first.create("t-0/large.log") as file:
            file.write(bytes(2_000_000))
            with pytest.raises(OutputError, match="another run"):
                publish(tmp_path / "out", resume=True)
        first.finish_step("large")
        first.finish()
    assert (tmp_path / "out" / "t-0" / "large.log").read_bytes() == bytes(2_000_000)


def test_a_run_that_is_about_to_publish_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rename = Publication._rename

    def interrupted_by_another(self: Publication) -> None:
        monkeypatch.setattr(Publication, "_rename", rename)
        with pytest.raises(OutputError, match="another run"):
            publish(tmp_path / "out", resume=True)
        rename(self)

    monkeypatch.setattr(Publication, "_rename", interrupted_by_another)
    publish(tmp_path / "out")
    assert sorted(content_of(tmp_path / "out")) == [MANIFEST, "t-0/a.log", "t-0/b.log", "t-0/c.log"]
    assert os.listdir(tmp_path) == ["out"]


def test_an_abandoned_directory_is_taken_up_beside_one_in_use(tmp_path: Path) -> None:
    partial = interrupted(tmp_path / "out")
    with Publication(tmp_path / "out", [], job={"command": "test"}) as other:
        other.write_file("x", b"x")
        publication = publish(tmp_path / "out", resume=True)
        assert publication.is_resumed
        assert not partial.exists()
        assert (other.path / "x").read_bytes() == b"x"


def test_a_run_that_died_just_before_it_published_is_taken_up(tmp_path: Path) -> None:
    partial = interrupted(tmp_path / "out")
    (partial / MANIFEST).write_text(json.dumps({"job": {"command": "test"}}))
    (partial / JOURNAL).unlink()
    assert publish(tmp_path / "out", resume=True).is_resumed


def test_the_journal_of_another_release_is_not_taken_up(tmp_path: Path) -> None:
    partial = interrupted(tmp_path / "out")
    lines = (partial / JOURNAL).read_text().split("\n")
    (partial / JOURNAL).write_text("\n".join([json.dumps({"job": {"command": "test"}}), *lines[1:]]))
    assert not publish(tmp_path / "out", resume=True).is_resumed


def test_short_writes_are_gone_on_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.write
    publish(tmp_path / "whole")
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", lambda fd, data: real(fd, memoryview(data)[: max(1, len(data) // 2)]))
        publish(tmp_path / "short")
    assert content_of(tmp_path / "short") == content_of(tmp_path / "whole")


@pytest.mark.parametrize(
    ("call", "number"),
    [
        *(("write", number) for number in range(1, 11)),
        *(("fsync", number) for number in range(1, 9)),
        *(("open", number) for number in range(1, 11)),
        ("rename", 1),
        ("mkdir", 1),
        ("mkdir", 2),
    ],
)
def test_a_failing_call_leaves_the_target_absent_or_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, number: int
) -> None:
    real, calls = getattr(os, call), [0]

    def failing(*arguments: object, **keywords: object) -> object:
        calls[0] += 1
        if calls[0] == number:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(*arguments, **keywords)

    with monkeypatch.context() as patch:
        patch.setattr(os, call, failing)
        failed = True
        with suppress(OutputError):
            publish(tmp_path / "out")
            failed = False
    assert failed == (calls[0] >= number)
    assert os.listdir(tmp_path) == ([] if failed else ["out"])
