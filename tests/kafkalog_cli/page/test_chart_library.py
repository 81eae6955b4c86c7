"""The script of the charts, and the cache that keeps it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kafkalog_cli.page import charts as library

pytestmark = pytest.mark.slow


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """The scripts that were made, with an empty cache."""
    scripts: list[str] = []

    def make() -> str:
        scripts.append(f"draw({len(scripts)}){library._END}")
        return scripts[-1]

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(library, "made_script", make)
    return scripts


def test_the_script_is_made_once(made: list[str]) -> None:
    assert library.chart_library() == library.chart_library() == made[0]
    assert len(made) == 1


def test_what_is_used_is_kept_and_the_rest_removed(made: list[str], tmp_path: Path) -> None:
    library.chart_library()
    (kept,) = (tmp_path / "kafkalog").iterdir()
    for path in (kept, kept.with_name("charts-0.0.1-1-1.js")):
        path.touch()
        os.utime(path, (1, 1))
    library.chart_library()
    assert kept.stat().st_mtime > 1
    kept.unlink()
    library.chart_library()
    assert list((tmp_path / "kafkalog").iterdir()) == [kept]


def test_a_script_that_was_cut_is_made_again(made: list[str], tmp_path: Path) -> None:
    library.chart_library()
    (kept,) = (tmp_path / "kafkalog").iterdir()
    kept.write_text(kept.read_text()[:-5])
    assert library.chart_library() == made[1] == kept.read_text()


def test_another_release_of_the_package_makes_another_script(
    made: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "package"
    package.mkdir()
    (package / "library.so").write_bytes(b"1")
    monkeypatch.setattr(library.vl_convert, "__path__", [str(package)])
    assert library.chart_library() == made[0]
    (package / "library.so").write_bytes(b"22")
    assert library.chart_library() == library.chart_library() == made[1]


def test_a_cache_that_others_can_write_is_not_used(made: list[str], tmp_path: Path) -> None:
    library.chart_library()
    (tmp_path / "kafkalog").chmod(0o777)
    assert library.chart_library() == made[1]


def test_a_cache_that_cannot_be_made(made: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert library.chart_library() == made[0]


def test_the_real_script_draws_and_names_its_libraries() -> None:
    script = library.chart_library()
    assert "vegaEmbed" in script
    assert script.startswith("/*! vega ")
    assert "</script" not in script


def test_a_build_that_has_the_script_makes_none(
    made: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shipped = tmp_path / library.SHIPPED.name
    shipped.write_text("draw()")
    monkeypatch.setattr(library, "SHIPPED", shipped)
    assert library.chart_library() == "draw()"
    assert made == []
