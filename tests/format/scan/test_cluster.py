"""What a cluster gets to scan is listed when it asks for it: there may be very many units."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from format.errors import UnreadableFile
from format.findings import Finding
from format.io.session import Session
from format.node.target import Target
from format.scan.drivers import scan_logs
from format.scan.protocol import LogUnit
from format.scan.selected_logs import selected_logs
from format.scan.selection import EVERYTHING
from tests.building import batches, write_segment
from tests.format.scan.toy import Toy, log_of


class Asking:
    """A cluster whose results are the units themselves, each as soon as it asks for the next one."""

    def results(self, scan: Any, units: Iterable[Any], advance: object) -> Iterator[Any]:
        yield from units


@pytest.fixture
def session() -> Session:
    made = Session()
    made.cluster = Asking()
    return made


@pytest.fixture
def log_dir(tmp_path: Path) -> Path:
    for number in range(5):
        write_segment(tmp_path / "data" / f"orders-{number}", 0, batches(2))
    (tmp_path / "data" / "meta.properties").write_text("version=1\n")
    return tmp_path / "data"


def kept_by(target: Target) -> int:
    return sum(len(each._read_partitions) for each in target.log_dirs)


def test_logs_are_listed_one_after_the_other_and_not_kept(session: Session, log_dir: Path) -> None:
    target = Target(session.path(log_dir))
    listed: list[LogUnit | Finding] = []

    def logs() -> Iterator[LogUnit | Finding]:
        for log in selected_logs(target, EVERYTHING):
            listed.append(log)
            yield log

    for count, unit in enumerate(scan_logs(Toy(), logs()), start=1):
        assert listed[-1] is unit
        assert (len(listed), kept_by(target)) == (count, 0)
    session.cluster = None
    assert len(listed) == 5
    assert [*selected_logs(target, EVERYTHING)] == listed
    assert kept_by(target) == 5


def test_an_error_of_listing_is_raised_after_the_results_before_it(session: Session, tmp_path: Path) -> None:
    def logs() -> Iterator[LogUnit | Finding]:
        yield log_of(session.path(tmp_path / "a-0"))
        raise UnreadableFile("cannot list")

    results = scan_logs(Toy(), logs())
    assert isinstance(next(results), LogUnit)
    with pytest.raises(UnreadableFile, match="cannot list"):
        next(results)
