"""Where nothing may be missing, a test is skipped only because it does not apply."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import pytest

from tests.conftest import must_not_skip
from tests.oracle import boot_trials, salvage_trials

MISSING = ("pyarrow is not installed: pip install 'kafkalog[spark]'", "no pyspark or no Java", "could not import 'x'")
DOES_NOT_APPLY = ("root may read everything", "this corpus has no coordinator's topic")


@pytest.mark.parametrize("is_spark", [False, True])
def test_what_fails_a_run(is_spark: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    mine, other = ("KAFKALOG_REQUIRE_SPARK", "KAFKALOG_NO_SKIP")[:: 1 if is_spark else -1]
    marks = {"spark"} if is_spark else {"slow"}
    monkeypatch.setenv(other, "1")
    monkeypatch.delenv(mine, raising=False)
    assert not any(must_not_skip(marks, reason) for reason in (*MISSING, *DOES_NOT_APPLY))
    monkeypatch.setenv(mine, "1")
    assert all(must_not_skip(marks, reason) for reason in MISSING)
    assert not any(must_not_skip(marks, reason) for reason in DOES_NOT_APPLY)


def test_a_run_as_a_user_has_it_may_lack_the_corpus_and_kafka(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKALOG_NO_SKIP", "own")
    assert must_not_skip({"slow"}, MISSING[0])
    assert not must_not_skip({"shared"}, MISSING[0])
    assert not must_not_skip({"oracle", "slow"}, MISSING[0])


@pytest.mark.parametrize("trials", [boot_trials, salvage_trials])
def test_trials_without_the_shared_folder_say_so(
    trials: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["trials"])
    monkeypatch.setattr(trials, "SHARED_CORPUS", tmp_path / "corpus")
    with pytest.raises(SystemExit, match="node-1 is absent; the environment variable KAFKALOG_SHARED names the shared"):
        trials.main()
