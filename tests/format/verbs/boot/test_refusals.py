"""What verify says of a log directory on which a broker would not start, or would not serve what lies there."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable

import pytest

from format.findings import Finding, Severity
from format.limits import DEFAULT_LIMITS
from format.verbs.boot.boot import refusal_findings
from format.verbs.verify.verify import verify
from tests.oracle.boot_mutations.node import Node

pytestmark = pytest.mark.slow


def found(node: Node) -> list[Finding]:
    return list(refusal_findings(node.first, DEFAULT_LIMITS))


def foreign_id(node: Node) -> None:
    path = node.partition("orders-1") / "partition.metadata"
    path.write_text(re.sub("topic_id: .*", "topic_id: AAAAAAAAAAAAAAAAAAAAAg", path.read_text()))


def zeros_behind(node: Node) -> None:
    log = node.segments("orders-1")[-1]
    log.write_bytes(log.read_bytes() + bytes(100))


def unreadable_without_metadata(node: Node) -> None:
    shutil.rmtree(node.partition("__cluster_metadata-0"))
    (node.partition("orders-1") / "leader-epoch-checkpoint").write_bytes(b"x\n")


@pytest.mark.parametrize(
    ("damage", "codes"),
    [
        (lambda node: None, []),
        (Node.unclean, []),
        (lambda node: (node.first / "lost+found").mkdir(), ["boot-refused"]),
        (lambda node: (node.partition("orders-1") / "partition.metadata").write_bytes(b""), ["boot-refused"]),
        (lambda node: (node.partition("orders-1") / "leader-epoch-checkpoint").write_bytes(b"x\n"), ["boot-refused"]),
        (unreadable_without_metadata, ["boot-unserved"]),
        (zeros_behind, ["boot-refused"]),
        (foreign_id, ["replica-stray", "replica-missing"]),
        (lambda node: shutil.rmtree(node.partition("orders-1")), ["replica-missing"]),
        (lambda node: (node.first / "meta.properties").unlink(), ["boot-refused"]),
    ],
)
def test_the_findings(node: Node, damage: Callable[[Node], object], codes: list[str]) -> None:
    damage(node)
    findings = found(node)
    assert [each.code for each in findings] == codes
    assert all(each.severity is Severity.ERROR for each in findings)


def test_a_directory_without_a_metadata_log_is_not_accused(node: Node) -> None:
    shutil.rmtree(node.partition("__cluster_metadata-0"))
    assert found(node) == []
    (node.first / "meta.properties").unlink()
    (node.first / "bootstrap.checkpoint").unlink()  # else it is one of KRaft
    assert found(node) == []


def test_a_partition_that_another_directory_has_is_not_missed(node: Node) -> None:
    shutil.rmtree(node.partition("orders-1"))
    path = node.first / "meta.properties"
    path.write_text(re.sub("(?m)^directory.id=.*$", "directory.id=bbbbbbbbbbbbbbbbbbbbbQ", path.read_text()))
    (unserved,) = found(node)  # the node registered one directory, which has another id
    assert (unserved.code, unserved.location.topic) == ("boot-unserved", None)


def test_verify_says_it(node: Node) -> None:
    (node.first / "lost+found").mkdir()
    assert "boot-refused" in {each.code for each in verify(node.first)}
