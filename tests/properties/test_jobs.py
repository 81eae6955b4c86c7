"""Commands print and write the same, to the byte, for one process and for several that share the work."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random

import pytest

from tests.properties.cases import (
    add_partitions,
    broken_case,
    check_same,
    laid_out,
    outcomes,
    seeds,
    sharing_commands,
    sound_case,
    unit_commands,
)
from tests.properties.cutting import Cuts, cut, shared, some_cuts
from tests.recording.damage import Case
from tests.recording.outcomes import Outcome


@pytest.mark.parametrize("make", [sound_case, broken_case])
@pytest.mark.parametrize("seed", seeds(1))
def test_several_processes_do_what_one_does(seed: int, make: Callable[[Random], Case]) -> None:
    random = Random(seed)
    case, sizes, jobs = make(random), some_cuts(random), random.choice((2, 3, 4))
    commands = list(sharing_commands(case))
    with laid_out(case) as folder, cut(sizes), shared(folder / "evidence"):
        alone = outcomes((*each, "--jobs", "1") for each in commands)
        assert not (folder / "evidence").exists()
        together = outcomes((*each, "--jobs", str(jobs)) for each in commands)
        assert (folder / "evidence").stat().st_size > 3
    check_same(map(_without_jobs, alone), map(_without_jobs, together), (case.steps, jobs, sizes))


@pytest.mark.parametrize("seed", seeds(1))
def test_partitions_that_several_processes_read_whole(seed: int) -> None:
    random = Random(seed)
    case, jobs, sizes = broken_case(random), random.choice((2, 3, 4)), Cuts(512, 100, 100)  # groups shares one log
    with laid_out(case) as folder, cut(sizes), shared(folder / "evidence"):
        add_partitions()
        commands = list(unit_commands())
        alone = outcomes((*each, "--jobs", "1") for each in commands)
        assert not (folder / "evidence").exists()
        together, sets = [], 0
        for each in commands:
            together += outcomes([(*each, "--jobs", str(jobs))])
            assert (folder / "evidence").stat().st_size > sets, each
            sets = (folder / "evidence").stat().st_size
    check_same(map(_without_jobs, alone), map(_without_jobs, together), (case.steps, jobs, sizes))


def _without_jobs(outcome: Outcome) -> Outcome:
    return replace(outcome, command=outcome.command[:-2])
