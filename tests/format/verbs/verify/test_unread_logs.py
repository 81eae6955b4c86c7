"""What cannot be read is unknown: beside that finding, none about a gap, an end or a file beside the log."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from format.findings import Finding, Severity
from format.verbs.ls.ls import ls
from format.verbs.verify.verify import VerifyTerms, verify
from tests.building import batch, forbid_reading, write_segment


def pipe(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log.unlink()
    os.mkfifo(log)


def link(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    elsewhere = log.parent.parent.parent / "elsewhere.log"
    shutil.move(log, elsewhere)
    log.symlink_to(elsewhere)


def alarms(found: object) -> list[str]:
    assert isinstance(found, list)
    findings = [each for each in found if isinstance(each, Finding) and each.severity >= Severity.WARNING]
    return [each.code for each in findings if each.code != "index-missing"]


@pytest.mark.parametrize("make_unread", [pipe, link, forbid_reading])
@pytest.mark.parametrize("number", [0, 1, 2])
def test_a_log_that_cannot_be_read(
    tmp_path: Path,
    number: int,
    make_unread: Callable[[Path, pytest.MonkeyPatch], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Records have no keys, so that the gap would be a loss; the checkpoint has the end of the log."""
    partition = tmp_path / "node" / "orders-0"
    logs = [
        write_segment(partition, 30 * each, [batch(30 * each + 3 * row, key=None) for row in range(10)])
        for each in range(3)
    ]
    for log in logs:
        log.with_suffix(".index").touch()
    (partition.parent / "replication-offset-checkpoint").write_text("0\n1\norders 0 90\n")
    assert alarms([*verify(partition, VerifyTerms())]) == []
    make_unread(logs[number], monkeypatch)
    found = [*verify(partition, VerifyTerms())]
    assert alarms(found) == ["file-unreadable"]
    [unread] = [each for each in found if each.code == "file-unreadable"]
    assert (unread.location.topic, unread.location.partition) == ("orders", 0)
    assert set(alarms([*ls(partition)])) == {"file-unreadable"}
