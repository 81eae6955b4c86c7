"""The archive of the JVM's classes: where it may lie, and that only a whole one of a whole job is used."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from spark_jobs import class_archive
from spark_jobs.class_archive import class_archive_options, want_class_archive

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'kafkalog[spark]'")

_JAVA = Path("/usr/bin/java")
_HEAD = b"\xa8\xab\x0b\xf0"


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(class_archive, "_being_made", None)
    return tmp_path / "kafkalog"


def _to_be_written(options: str) -> Path:
    option, _, path = options.strip().partition("=")
    assert option == "-XX:ArchiveClassesAtExit"
    return Path(path)


def test_what_one_session_wrote_the_next_one_uses(cache: Path) -> None:
    written = _to_be_written(class_archive_options(_JAVA, 17))
    assert written.parent == cache
    want_class_archive()
    written.write_bytes(bytes(4096))  # the JVM is at it
    assert class_archive_options(_JAVA, 17) == ""
    written.write_bytes(_HEAD + bytes(4096))
    option, _, used = class_archive_options(_JAVA, 17).strip().partition("=")
    assert option == "-XX:SharedArchiveFile"
    assert Path(used).read_bytes() == _HEAD + bytes(4096)
    assert [each.name for each in cache.iterdir()] == [Path(used).name]
    assert _to_be_written(class_archive_options(_JAVA, 18)).name.split(".")[0] != Path(used).stem  # another Java


def test_a_session_that_did_no_whole_job_leaves_nothing(cache: Path) -> None:
    written = _to_be_written(class_archive_options(_JAVA, 17))
    written.write_bytes(_HEAD + bytes(4096))
    _to_be_written(class_archive_options(_JAVA, 17))
    assert list(cache.iterdir()) == []


def test_what_was_begun_long_ago_is_removed(cache: Path) -> None:
    written = _to_be_written(class_archive_options(_JAVA, 17))
    want_class_archive()
    written.write_bytes(bytes(4096))
    long_ago = time.time() - 3600
    os.utime(written, (long_ago, long_ago))
    other = cache / "spark-00000000.jsa.7.unfinished"  # of a Java or Spark that is not there any more
    other.write_bytes(bytes(4096))
    assert _to_be_written(class_archive_options(_JAVA, 17))
    assert list(cache.iterdir()) == [other]  # another session may be at it
    os.utime(other, (long_ago, long_ago))
    assert _to_be_written(class_archive_options(_JAVA, 17))
    assert list(cache.iterdir()) == []


def test_a_later_java_makes_it_by_itself(cache: Path) -> None:
    options = class_archive_options(_JAVA, 21).split()
    assert options[0] == "-XX:+AutoCreateSharedArchive"
    assert options[1].startswith(f"-XX:SharedArchiveFile={cache}/")


def test_a_place_that_others_may_write_to_is_not_used(cache: Path) -> None:
    cache.mkdir()
    cache.chmod(0o777)
    assert class_archive_options(_JAVA, 17) == ""
    cache.chmod(0o700)
    assert class_archive_options(_JAVA, 17) != ""
    cache.rmdir()
    elsewhere = cache.with_name("elsewhere")
    elsewhere.mkdir(mode=0o700)
    cache.symlink_to(elsewhere)
    assert class_archive_options(_JAVA, 17) == ""


@pytest.mark.parametrize("place", [os.devnull, "a b", 'a"b', "$HOME"])
def test_a_place_that_cannot_be_had_or_named_is_not_used(
    cache: Path, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache.parent / place) if place != os.devnull else place)
    assert class_archive_options(_JAVA, 17) == ""
