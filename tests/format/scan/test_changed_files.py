"""A file that is cut, replaced, renamed or removed while it is read: one finding, nothing twice, nothing made up."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from format.findings import Finding
from format.scan.drivers import scan_logs
from tests.building import batches
from tests.format.scan.toy import Toy, log_of

pytestmark = pytest.mark.long


@pytest.fixture(autouse=True)
def small_work_is_shared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("format.scan.drivers.is_worth_sharing", lambda *_: True)


def cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size * 2 // 3)


def cut_to_nothing(path: Path) -> None:
    os.truncate(path, 0)


def replace(path: Path) -> None:
    other = path.with_name("other")
    other.write_bytes(b"".join(batches(600)))
    os.replace(other, path)


def rename(path: Path) -> None:
    path.rename(path.with_name(path.name + ".deleted"))


CHANGES: list[Callable[[Path], object]] = [cut, cut_to_nothing, replace, rename, Path.unlink]


@pytest.mark.parametrize("jobs", [1, 2, 3])
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("after", [1, 200, 599, 600])
def test_a_change_while_a_log_is_read(tmp_path: Path, change: Callable[[Path], object], jobs: int, after: int) -> None:
    log, other = log_of(tmp_path / "a-0", 600), log_of(tmp_path / "b-0")

    left = [change]

    def on_folded(count: int) -> None:
        if count == after and left:
            left.pop()(log.path)

    found = [*scan_logs(Toy(on_folded=on_folded), [log, other], jobs=jobs)]
    findings = [each for each in found if isinstance(each, Finding)]
    assert [each.code for each in findings] == ["file-changed"]
    assert findings[0].is_incomplete
    before, rest = found[: found.index(findings[0])], found[found.index(findings[0]) + 1 :]
    assert before == [("a-0", offset) for offset in range(0, 3 * len(before), 3)]
    assert after <= len(before) <= 600
    assert rest == [("b-0", offset) for offset in range(0, 120, 3)]


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_log_that_grows_is_read_as_it_was(tmp_path: Path, jobs: int) -> None:
    log = log_of(tmp_path / "a-0", 100)

    def grow(count: int) -> None:
        if count == 10:
            with open(log.path, "ab") as file:
                file.write(b"".join(batches(50, 300)))

    assert [*scan_logs(Toy(on_folded=grow), [log], jobs=jobs)] == [("a-0", offset) for offset in range(0, 300, 3)]


def test_a_log_that_goes_before_a_worker_opens_it(tmp_path: Path) -> None:
    """It was listed, so it is no silence."""
    logs = [log_of(tmp_path / f"{name}-0", 3) for name in "abcdefghij"]

    def remove(count: int) -> None:
        logs[9].path.unlink(missing_ok=True)

    for jobs in (1, 2):
        found = [*scan_logs(Toy(on_folded=remove), logs, jobs=jobs)]
        assert [each.code for each in found if isinstance(each, Finding)] == ["file-changed"]
        log_of(tmp_path / "j-0", 3)
