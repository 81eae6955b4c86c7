"""A bounded number of the fuzzer's cases in every run; KAFKALOG_FUZZ_CASES and KAFKALOG_FUZZ_SECONDS set how many."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from format.kernel.compiled import KERNEL_IS_COMPILED
from tests.conftest import unavailable
from tests.faults import fuzz
from tests.faults.mutations import case

pytestmark = pytest.mark.long

CASES = int(os.environ.get("KAFKALOG_FUZZ_CASES", "600"))
SECONDS = float(os.environ.get("KAFKALOG_FUZZ_SECONDS", "10"))
TWINS = 20
#: Logs of many batches, and the number of batches in each.
MANY = 20
UNITS = 200


def test_nothing_breaks_the_reader() -> None:
    outcome = fuzz.run(CASES, SECONDS)
    assert outcome.cases > 0
    assert outcome.failures == [], fuzz.describe(outcome, 0.0)


def test_nothing_breaks_the_reader_of_many_batches() -> None:
    outcome = fuzz.run(MANY, SECONDS, which=fuzz.Cases(units=UNITS))
    assert outcome.failures == [], fuzz.describe(outcome, 0.0)
    assert outcome.mutations > outcome.cases * UNITS // 3


def test_both_twins_of_the_kernel_say_the_same() -> None:
    if not KERNEL_IS_COMPILED:
        unavailable("the kernel is not compiled here, so it has no twin")
    numbers = list(range(0, TWINS * fuzz.TWINS_ONE_IN, fuzz.TWINS_ONE_IN))
    assert fuzz.different_twins(numbers) == []
    assert fuzz.different_twins([0], fuzz.Cases(units=UNITS)) == []


def test_a_case_is_known_by_its_number() -> None:
    assert case(1, 5).files == case(1, 5).files
    assert case(1, 5).files != case(1, 6).files
    assert case(1, 5, UNITS).files == case(1, 5, UNITS).files


def test_the_fuzzer_sees_an_exception(tmp_path: Path, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    def break_down(*arguments: object, **more: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(fuzz, "verify", break_down)
    outcome = fuzz.run_range((0, 2, fuzz.Cases()))
    assert [number for number, _ in outcome.failures] == [0, 1]
    assert "ZeroDivisionError" in outcome.failures[0][1]
