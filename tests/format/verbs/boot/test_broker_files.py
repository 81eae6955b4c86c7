"""boot where the files are closed to this user, or to the owner of the log directory: nothing is claimed."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from format.findings import Severity
from format.verbs.boot.boot import boot
from format.verbs.boot.broker_files import closed_to_the_owner
from format.verbs.boot.sentence import sentence
from format.verbs.boot.steps import Action, BootTerms
from format.verbs.verify.verify import verify
from tests.oracle.boot_mutations.node import Node, copied_node

pytestmark = pytest.mark.slow

TERMS = BootTerms()


@pytest.fixture
def node(data_dir: Path, tmp_path: Path) -> Node:
    """A writable copy of the single node that ships with the tests."""
    return copied_node(data_dir / "kafka-4.3-single" / "node-1", tmp_path / "work")


def test_an_unreadable_identity_is_no_refusal(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.open

    def refused(path: Any, *arguments: Any, **options: Any) -> int:
        if os.fspath(path).endswith("meta.properties"):
            raise PermissionError(13, "Permission denied")
        return real(path, *arguments, **options)

    monkeypatch.setattr(os, "open", refused)
    result = boot(node.log_dirs, TERMS)
    assert not result.is_refused
    (step,) = result.having(Action.UNKNOWN)
    assert (step.path.name, "Permission denied" in step.reason) == ("meta.properties", True)
    assert "cannot be predicted" in sentence(result, TERMS)


def test_a_closed_log_directory_is_no_refusal(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(_path: Any) -> list[str]:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "listdir", refused)
    result = boot(node.log_dirs, TERMS)
    assert [step.action for step in result.steps] == [Action.UNKNOWN]
    assert result.steps[0].reason == "the log directory cannot be listed: Permission denied"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_files_of_another_user_are_named(node: Node) -> None:
    os.chown(node.first, 1234, 1234)
    for path in node.first.rglob("*"):
        os.chown(path, 1234, 1234)
    assert not boot(node.log_dirs, TERMS).is_unknown
    log = node.first / "orders-0" / "00000000000000000000.log"
    for each in node.first.glob("*/*.log"):
        each.chmod(0o444)
    assert not boot(node.log_dirs, TERMS).is_unknown, "a copy that its owner made read-only"
    for each in node.first.glob("*/*.log"):
        each.chmod(0o644)
    log.chmod(0o444)
    assert boot(node.log_dirs, TERMS).is_unknown, "a broker opens each log to write"
    log.chmod(0o644)
    for each in (node.first / "meta.properties", log.parent / "leader-epoch-checkpoint"):
        os.chown(each, 0, 0)
    assert not boot(node.log_dirs, TERMS).is_unknown, "what a start only reads"
    os.chown(log, 0, 0)
    os.chown(log.with_suffix(".index"), 0, 0)
    [step] = boot(node.log_dirs, TERMS).having(Action.UNKNOWN)
    assert step.path.name == "orders-0"
    assert "user 1234, cannot open 00000000000000000000.index (user 0, mode 0644), and 1 more here" in step.reason
    [found] = [each for each in verify(node.first) if each.code == "boot-unserved"]
    assert (found.message, found.severity) == (step.reason, Severity.WARNING)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_a_log_directory_of_root_with_the_partitions_of_another_user(node: Node) -> None:
    """4.3.1, as the user of the partitions, could not make its .lock there."""
    partitions = sorted(path.parent for path in node.first.glob("*/*.log"))
    for path in partitions[1:]:
        os.chown(path, 1234, 1234)
    [closed] = [each for each in closed_to_the_owner([node.first]) if each.path == node.first]
    assert "the owner of most partitions here, user 1234, cannot open the directory (user 0, mode 0755)" in closed.text
    os.chown(node.first, 0, 4321)
    node.first.chmod(0o775)
    assert all(each.path != node.first for each in closed_to_the_owner([node.first])), "the user may be in that group"
    os.chown(node.first, 0, 0)
    assert any(each.path == node.first for each in closed_to_the_owner([node.first])), "hardly in root's"
    for path in partitions[1:]:
        os.chown(path, 0, 0)
    os.chown(partitions[0], 1234, 1234)
    assert closed_to_the_owner([node.first]) == [], "a broker that runs as root opens everything"


def test_modes_of_the_owner(node: Node) -> None:
    if os.geteuid() == 0:
        for path in (node.first, *node.first.rglob("*")):
            os.chown(path, 1234, 1234)
    log = node.first / "orders-0" / "00000000000000000000.log"
    log.chmod(0)
    steps = boot(node.log_dirs, TERMS).having(Action.UNKNOWN)
    assert any("cannot open 00000000000000000000.log" in step.reason for step in steps)


def test_a_link_that_leads_nowhere_hides_no_other_file(node: Node) -> None:
    if os.geteuid() == 0:
        for path in (node.first, *node.first.rglob("*")):
            os.chown(path, 1234, 1234)
    log = node.first / "orders-0" / "00000000000000000000.log"
    content = log.read_bytes()
    log.unlink()
    for number in range(20):
        if number == 10:  # so that links come before it in whatever order the directory is listed
            log.write_bytes(content)
            log.chmod(0)
        (log.parent / f"link-{number}").symlink_to("nowhere")
    [step] = boot(node.log_dirs, TERMS).having(Action.UNKNOWN)[-1:]
    assert "cannot open 00000000000000000000.log" in step.reason


def test_a_link_that_leads_nowhere_makes_no_copy_of_a_log_dir(node: Node) -> None:
    """A log that can be written shows that a log directory is no copy, whatever is listed before it."""
    if os.geteuid() == 0:
        for path in (node.first, *node.first.rglob("*")):
            os.chown(path, 1234, 1234)
    log = node.first / "orders-0" / "00000000000000000000.log"
    for each in node.first.rglob("*.log"):
        each.chmod(0o444)
    for number in range(20):
        if number == 10:  # so that links come before it in whatever order the directory is listed
            written = log.with_name("00000000000000000999.log")
            written.write_bytes(b"")
            if os.geteuid() == 0:
                os.chown(written, 1234, 1234)
        (log.parent / f"link-{number}.log").symlink_to("nowhere")
    [closed] = [each for each in closed_to_the_owner([node.first]) if each.path == log.parent]
    assert "cannot open 00000000000000000000.log" in closed.text
