"""What makes a release: archives that come out the same again, and the parts that need no package index."""

from __future__ import annotations

import os
import shutil
import tarfile
from pathlib import Path

import pytest

from release import artifacts
from release.__main__ import STEPS
from release.artifacts import Workplace, needed_glibc, unpack, write_archive
from tests.corpora import REPOSITORY


def folder_of(parent: Path, time: int, mode: int) -> Path:
    """The same files in another order of making, with other times and modes."""
    folder = parent / "kafkalog-1.0"
    names = ["b.txt", "a/c.txt", "a/program"]
    for name in names if time % 2 else reversed(names):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
        path.chmod(mode | (0o111 if name.endswith("program") else 0))
        os.utime(path, (time, time))
    (folder / "link").symlink_to("b.txt")
    return folder


def test_an_archive_of_the_same_files_has_the_same_bytes(tmp_path: Path) -> None:
    made = []
    for number, (time, mode) in enumerate([(1_000_000_001, 0o600), (1_700_000_000, 0o644)]):
        archive = tmp_path / f"{number}.tar.gz"
        write_archive(folder_of(tmp_path / str(number), time, mode), archive, 1_600_000_000)
        made.append(archive.read_bytes())
    assert made[0] == made[1]
    with tarfile.open(tmp_path / "0.tar.gz") as tar:
        assert {member.name: oct(member.mode) for member in tar.getmembers() if member.isfile()} == {
            "kafkalog-1.0/a/c.txt": "0o644",
            "kafkalog-1.0/a/program": "0o755",
            "kafkalog-1.0/b.txt": "0o644",
        }
        assert {member.mtime for member in tar.getmembers()} == {1_600_000_000}


def test_an_archive_unpacks_to_what_was_packed(tmp_path: Path) -> None:
    archive = tmp_path / "made.tar.gz"
    write_archive(folder_of(tmp_path / "before", 1, 0o644), archive, 5)
    folder = unpack(archive, tmp_path / "after")
    assert folder == tmp_path / "after/kafkalog-1.0"
    assert (folder / "a/c.txt").read_text() == "a/c.txt"
    assert (folder / "link").readlink() == Path("b.txt")


def test_a_step_without_its_input_ends_with_a_sentence(tmp_path: Path) -> None:
    place = Workplace(tmp_path / "scratch", tmp_path)
    with pytest.raises(SystemExit, match=r"must hold one file kafkalog-\*\.tar\.gz"):
        STEPS["wheel"](place)


@pytest.mark.skipif(shutil.which("objdump") is None, reason="objdump is not installed")
def test_the_glibc_that_a_folder_needs_is_the_newest_that_a_file_names(tmp_path: Path) -> None:
    assert needed_glibc(tmp_path) == "0.0"
    shutil.copy(shutil.which("true") or "", tmp_path)
    (tmp_path / "text").write_text("GLIBC_9.9")
    major, minor = map(int, needed_glibc(tmp_path).split("."))
    assert (2, 0) < (major, minor) < (9, 9)


def test_the_documentation_names_every_step() -> None:
    text = (REPOSITORY / "docs/packaging.md").read_text(encoding="utf-8")
    assert [name for name in STEPS if f"| `{name}` |" not in text] == []


def test_libraries_of_the_compiler_that_alone_need_a_newer_glibc_are_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    needed = {"libstdc++.so.6": (2, 36), "libgcc_s.so.1": (2, 17), "libpython3.11.so.1.0": (2, 17)}
    monkeypatch.setattr(artifacts, "_glibc_of", lambda path: needed.get(path.name, (0, 0)))
    inside = tmp_path / "_internal"
    inside.mkdir()
    for name in needed:
        (inside / name).touch()
    assert artifacts.leave_newer_libraries_out(tmp_path) == ["libstdc++.so.6"]
    assert sorted(each.name for each in inside.iterdir()) == ["libgcc_s.so.1", "libpython3.11.so.1.0"]
    assert needed_glibc(tmp_path) == "2.17"


def test_the_standalone_build_has_its_extras_and_the_script_of_charts() -> None:
    recipe = (REPOSITORY / "release/standalone.spec").read_text()
    looked_for = (REPOSITORY / "kafkalog_cli/page/charts.py").read_text()
    assert f'SHIPPED = Path(__file__).with_name("{artifacts.CHARTS}")' in looked_for
    assert '(os.environ["CHART_LIBRARY"], "kafkalog_cli/page")' in recipe
    installing = (REPOSITORY / "docs/installing.md").read_text(encoding="utf-8")
    section = installing.partition("## A host without Python")[2].partition("\n## ")[0]
    assert [name for name in artifacts.EXTRAS if f"`{name}`" not in section] == []
