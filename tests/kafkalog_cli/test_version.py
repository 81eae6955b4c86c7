"""What --version says."""

from __future__ import annotations

import tomllib

import pytest

from format.kernel.compiled import COMPILED_MODULES
from kafkalog_cli.main import VERSION, kernel_kind, version_text
from tests.corpora import REPOSITORY


@pytest.mark.parametrize(
    ("plain", "kind"),
    [
        ([], "compiled"),
        (["checks", "text"], "compiled, but plain Python for checks, text"),
        (list(COMPILED_MODULES), "plain Python"),
    ],
)
def test_the_kernel_is_named_by_what_is_compiled(monkeypatch, plain, kind):
    monkeypatch.setattr("kafkalog_cli.main.plain_modules", lambda: plain)
    assert kernel_kind() == kind


def test_the_lines_of_the_version():
    with (REPOSITORY / "pyproject.toml").open("rb") as file:
        assert tomllib.load(file)["project"]["version"] == VERSION
    first, second, third = version_text().split("\n")
    assert first == f"kafkalog {VERSION}"
    assert second == f"kernel: {kernel_kind()}"
    assert third.startswith("python: ")
