"""Every driver gives the same results, in the same order, and counts the same bytes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from format.errors import WorkerDied
from format.findings import Finding
from format.scan.drivers import ForkedDriver, LogByLog, SerialDriver, open_driver, open_units, scan_logs
from format.scan.protocol import LogUnit
from format.scan.selection import Selection
from tests.format.scan.toy import Seen, Toy, log_of

JOBS = (1, 2, 3)


@pytest.fixture(autouse=True)
def small_work_is_shared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("format.scan.drivers.is_worth_sharing", lambda *_: True)


@pytest.fixture
def logs(tmp_path: Path) -> list[LogUnit]:
    """Sound logs, damaged ones, one with nothing in it and one that fits into a chunk."""
    return [
        log_of(tmp_path / "a-0"),
        log_of(tmp_path / "b-0", damage_at=1500),
        log_of(tmp_path / "c-0", 0),
        log_of(tmp_path / "d-0", 2),
        log_of(tmp_path / "e-0", damage_at=8),
        log_of(tmp_path / "f-0"),
    ]


def size_of(logs: list[LogUnit]) -> int:
    return sum(each.path.stat().st_size for each in logs)


def test_the_same_in_the_same_order(logs: list[LogUnit]) -> None:
    by_one, *others = ([*scan_logs(Toy(), logs, jobs=jobs)] for jobs in JOBS)
    assert [offset for name, offset in by_one if name == "a-0"] == [*range(0, 120, 3)]
    assert len(by_one) > 150
    assert others == [by_one] * len(others)


def test_every_byte_counts_once(logs: list[LogUnit]) -> None:
    for jobs in JOBS:
        done: list[int] = []
        for _ in scan_logs(Toy(), logs, jobs=jobs, advance=done.append):
            assert sum(done) <= size_of(logs)
        assert sum(done) == size_of(logs), jobs
        assert min(done) > 0


def test_workers_make_the_parts_of_sound_ranges_only(tmp_path: Path) -> None:
    sound, damaged = log_of(tmp_path / "a-0"), log_of(tmp_path / "b-0", damage_at=2500)
    with open_driver(Toy(), [sound, damaged], 2) as driver:
        assert isinstance(driver, ForkedDriver)
        assert os.getpid() not in {each.pid for each in driver.parts(sound)}
        parts = [*driver.parts(damaged)]
    here = [each.pid == os.getpid() for each in parts]
    assert here == sorted(here)
    assert here[0] is False
    assert here[-1] is True
    offsets = [offset for each in parts for offset in each.offsets.tolist()]
    assert offsets == [offset for each in SerialDriver(Toy()).parts(damaged) for offset in each.offsets.tolist()]


def test_state_of_a_range_ends_with_it(tmp_path: Path) -> None:
    log = log_of(tmp_path / "a-0")
    with open_driver(Toy(), [log], 2) as driver:
        assert {each.numbers_of_range for each in driver.parts(log)} == {0}
    assert len({each.numbers_of_range for each in SerialDriver(Toy()).parts(log)}) > 5


def test_the_file_is_known_as_it_was_opened(logs: list[LogUnit]) -> None:
    for jobs in (1, 2):
        with open_driver(Toy(), logs, jobs) as driver:
            for log in logs:
                parts = driver.parts(log)
                assert parts.state is None
                list(parts)
                assert parts.state is not None
                assert parts.state.size_bytes == log.path.stat().st_size


def test_a_fold_that_ends_early_takes_no_more_of_its_log(logs: list[LogUnit]) -> None:
    for jobs in JOBS:
        done: list[int] = []
        found = [*scan_logs(Toy(most=2), logs, jobs=jobs, advance=done.append)]
        assert [offset for name, offset in found if name in ("a-0", "f-0")] == [0, 3, 0, 3]
        assert sum(done) == size_of(logs)


def test_a_selection_that_ends_is_read_in_order(tmp_path: Path) -> None:
    log = log_of(tmp_path / "a-0")
    with open_driver(Toy(Selection(to_offset=9)), [log], 2) as driver:
        assert isinstance(driver, SerialDriver)
    with open_driver(Toy(Selection(from_offset=9)), [log], 2) as driver:
        assert isinstance(driver, ForkedDriver)


def test_a_log_that_was_not_planned_or_comes_out_of_order_is_read_here(logs: list[LogUnit]) -> None:
    with open_driver(Toy(), [logs[0], logs[5]], 2) as driver:
        for log in (logs[1], logs[0], logs[0], logs[5]):
            expected = [each.offsets.tolist() for each in SerialDriver(Toy()).parts(log)]
            assert [each.offsets.tolist() for each in driver.parts(log)] == expected
        assert [each.pid for each in driver.parts(logs[0])] == [os.getpid()] * len(
            [*SerialDriver(Toy()).parts(logs[0])]
        )


def test_logs_that_were_passed_over(logs: list[LogUnit]) -> None:
    with open_driver(Toy(), logs, 2) as driver:
        driver.parts(logs[0]).close()
        next(driver.parts(logs[1])).offsets.tolist()
        assert sum(len(each.offsets) for each in driver.parts(logs[5])) == 40


def test_a_file_that_cannot_be_opened_is_a_finding(logs: list[LogUnit]) -> None:
    gone = LogUnit(logs[0].path.with_name("00000000000000000099.log"), logs[0].location)
    for jobs in JOBS:
        found = [*scan_logs(Toy(), [logs[0], gone, logs[3]], jobs=jobs)]
        assert [each.code for each in found if isinstance(each, Finding)] == ["file-changed"]
        assert len(found) == 40 + 1 + 2


def test_a_worker_that_is_killed_ends_the_run(tmp_path: Path) -> None:
    log = log_of(tmp_path / "a-0")
    seen: list[object] = []
    with pytest.raises(WorkerDied, match="killed by signal 9"):
        seen.extend(scan_logs(Toy(dies_at=60), [log], jobs=2))
    assert seen == [("a-0", offset) for offset in range(0, 3 * len(seen), 3)]
    assert len(seen) <= 20


def test_small_logs_are_folded_by_workers(tmp_path: Path) -> None:
    small = [log_of(tmp_path / f"s{number:02}-0", 2) for number in range(40)]
    logs = [*small[:30], log_of(tmp_path / "large-0"), *small[30:]]
    folded_here: list[int] = []
    found = [*scan_logs(Toy(on_folded=folded_here.append), logs, jobs=2)]
    assert folded_here == [*range(1, 41)], "the large log only"
    assert found == [*scan_logs(Toy(), logs)]


def test_units_that_are_passed_over_or_come_out_of_order(tmp_path: Path) -> None:
    logs = [log_of(tmp_path / f"{name}-0", 2) for name in "abcdef"]
    with open_units(Toy(), LogByLog(Toy()).results, [(log, [log]) for log in logs], 2) as results:
        assert next(results(logs[1])) == ("b-0", 0)
        assert [*results(logs[3])] == [("d-0", 0), ("d-0", 3)]
        assert [*results(logs[3])] == [("d-0", 0), ("d-0", 3)], "a second time, in this process"
        assert [*results(logs[5])] == [("f-0", 0), ("f-0", 3)]


def test_a_worker_that_is_killed_as_it_folds(tmp_path: Path) -> None:
    logs = [log_of(tmp_path / f"{name}-0", 1 + (name == "c")) for name in "abcd"]
    seen: list[object] = []
    with pytest.raises(WorkerDied, match="killed by signal 9"):
        seen.extend(scan_logs(Toy(dies_at=3), logs, jobs=2))
    assert seen in ([], [("a-0", 0)], [("a-0", 0), ("b-0", 0)])


def test_a_part_is_what_was_sent(tmp_path: Path) -> None:
    log = log_of(tmp_path / "a-0", 2)
    with open_driver(Toy(), [log], 2) as driver:
        (part,) = driver.parts(log)
    assert isinstance(part, Seen)
    part.offsets[0] = 7  # a copy of its own, that may be changed
