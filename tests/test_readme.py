"""The README says what the program does."""

from __future__ import annotations

import pytest

from tests.readme_tour import README, rewritten

pytestmark = pytest.mark.slow


def test_the_tour_shows_what_the_commands_print() -> None:
    """After a change to the output: ``python -m tests.readme_tour``, and read what it wrote."""
    readme = README.read_text(encoding="utf-8")
    assert readme.count("```console") >= 4
    assert rewritten(readme) == readme
