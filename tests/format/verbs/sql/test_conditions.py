"""Random conditions in SQL select what they should: see tests.format.verbs.sql.conditions."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.corpora import REPOSITORY

pytest.importorskip("datafusion", reason="datafusion is not installed: pip install 'kafkalog[sql]'")

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("seed", [1, *(pytest.param(each, marks=pytest.mark.long) for each in (2, 3, 4, 5))])
def test_conditions_select_what_the_engine_selects_in_memory(seed: int) -> None:
    command = [sys.executable, "-m", "tests.format.verbs.sql.conditions", "--seed", str(seed)]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert int(done.stdout.split()[2]) > 50, "hardly a question has rows"
