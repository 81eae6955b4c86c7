"""The compiled template in the user's cache."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("jinja2")

from jinja2 import DictLoader, Environment
from jinja2.environment import Environment as CompilingEnvironment

from kafkalog_cli.page.compiled_template import compiled_templates

pytestmark = pytest.mark.slow


@pytest.fixture
def compilations(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The sources that were compiled."""
    found: list[str] = []
    compile_source = CompilingEnvironment.compile

    def noted(self: Environment, source: str, *values: object, **named: object) -> object:
        found.append(source)
        return compile_source(self, source, *values, **named)  # type: ignore[call-overload]

    monkeypatch.setattr(CompilingEnvironment, "compile", noted)
    return found


def _rendered(source: str) -> str:
    environment = Environment(loader=DictLoader({"page": source}), bytecode_cache=compiled_templates(), autoescape=True)
    return environment.get_template("page").render(name="<b>")


def test_a_template_is_compiled_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compilations: list[str]) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert [_rendered("one {{ name }}") for _ in range(2)] == ["one &lt;b&gt;"] * 2
    assert compilations == ["one {{ name }}"]


def test_another_source_and_a_file_cut_short_are_compiled_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compilations: list[str]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    _rendered("one {{ name }}")
    assert _rendered("two {{ name }}") == "two &lt;b&gt;"
    (kept,) = (tmp_path / "kafkalog").iterdir()
    content = kept.read_bytes()
    for size in (0, len(content) // 2, len(content) - 1):
        kept.write_bytes(content[:size])
        compilations.clear()
        assert _rendered("two {{ name }}") == "two &lt;b&gt;"
        assert len(compilations) == 1


def test_a_cache_that_cannot_be_used_costs_no_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    _rendered("one {{ name }}")
    (kept,) = (tmp_path / "kafkalog").iterdir()
    kept.unlink()
    kept.mkdir()
    assert _rendered("one {{ name }}") == "one &lt;b&gt;"
    monkeypatch.setattr("tempfile.NamedTemporaryFile", _full_disk)
    assert _rendered("two {{ name }}") == "two &lt;b&gt;"


def _full_disk(*_: object, **__: object) -> object:
    raise OSError(28, "No space left on device")
