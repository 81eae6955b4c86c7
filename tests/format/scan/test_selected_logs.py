"""The logs below a path: those that cannot be read are findings, for every verb that reads records."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from format.findings import Finding
from format.node.target import Target
from format.rewriting.publication import Publication
from format.scan.protocol import LogUnit
from format.scan.selected_logs import selected_bytes, selected_logs
from format.scan.selection import EVERYTHING
from format.state.cluster_context import ClusterContext, ContextTerms
from format.verbs.compaction.compaction import Compaction, CompactionTerms
from format.verbs.diff.diff import diff
from format.verbs.extract import Extraction, ParquetFormat, extract, extract_sources
from format.verbs.grep.grep import Criteria, grep
from format.verbs.producers import Producers, ProducerTerms
from format.verbs.retention import Retention, RetentionTerms
from format.verbs.txns.txns import Transactions, TransactionTerms
from format.verbs.verify.verify import Level, Verification, verify
from tests.building import batches, write_segment
from tests.dumping import dump


@pytest.fixture
def log_dir(tmp_path: Path) -> Path:
    """A log directory with a sound partition, one behind a link, and logs that are a link and a pipe."""
    elsewhere, log_dir = tmp_path / "elsewhere", tmp_path / "data"
    write_segment(elsewhere / "moved-0", 0, batches(2))
    write_segment(log_dir / "orders-0", 0, batches(2))
    (log_dir / "moved-0").symlink_to(elsewhere / "moved-0")
    (log_dir / "orders-0" / f"{6:020d}.log").symlink_to(elsewhere / "moved-0" / f"{0:020d}.log")
    os.mkfifo(log_dir / "orders-0" / f"{9:020d}.log")
    (log_dir / "meta.properties").write_text("version=1\n")
    return log_dir


def dumped(path: Path) -> Iterable[object]:
    return dump(path)


def grepped(path: Path) -> Iterable[object]:
    return grep(path, Criteria())


def extracted(path: Path) -> Iterable[object]:
    terms = Extraction(ParquetFormat())
    sources = extract_sources([path], terms)
    with Publication(path.parent / "output", []) as publication:
        return list(extract(sources, publication, terms))


def retained(path: Path) -> Iterable[object]:
    return Retention(ClusterContext(ContextTerms()), RetentionTerms(0)).of_target(Target(path))


def compacted(path: Path) -> Iterable[object]:
    return Compaction(ClusterContext(ContextTerms()), CompactionTerms(0, every_log=True)).of_target(Target(path))


def transactions(path: Path) -> Iterable[object]:
    return Transactions((Target(path),)).read(TransactionTerms(0))


def verified_by_headers(path: Path) -> Iterable[object]:
    return verify(path, Verification(Level.HEADERS))


def producers(path: Path) -> Iterable[object]:
    return Producers((Target(path),)).read(ProducerTerms())


@pytest.mark.parametrize(
    "read", [dumped, grepped, extracted, retained, compacted, transactions, producers, verified_by_headers]
)
def test_what_is_not_read_is_reported(log_dir: Path, read: Callable[[Path], Iterable[object]]) -> None:
    found = [each for each in read(log_dir) if isinstance(each, Finding)]
    partition = log_dir / "orders-0"
    assert [(each.code, each.location.path) for each in found] == [
        ("file-unreadable", str(log_dir / "moved-0")),
        ("file-unreadable", str(partition / f"{6:020d}.log")),
        ("file-unreadable", str(partition / f"{9:020d}.log")),
    ]
    assert found[1].location.topic == "orders"


@pytest.mark.parametrize("read", [dumped, grepped, retained, compacted, transactions, producers])
def test_a_directory_without_logs_is_reported(tmp_path: Path, read: Callable[[Path], Iterable[object]]) -> None:
    (tmp_path / "orders-0").mkdir()
    (tmp_path / "meta.properties").write_text("version=1\n")
    assert [each.code for each in read(tmp_path) if isinstance(each, Finding)] == ["nothing-to-read"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root lists everything")
def test_a_directory_without_permission_does_not_stop_the_others(log_dir: Path) -> None:
    forbidden = log_dir / "forbidden-0"
    forbidden.mkdir(mode=0)
    items = list(selected_logs(Target(log_dir), EVERYTHING))
    assert [each.location.topic for each in items if isinstance(each, Finding)][:2] == [None, "forbidden"]
    assert [each.path.parent.name for each in items if isinstance(each, LogUnit)] == ["orders-0"]


def test_a_partition_that_vanished_does_not_stop_the_others(log_dir: Path) -> None:
    write_segment(log_dir / "alpha-3", 0, batches(1))
    target = Target(log_dir)
    assert target.log_dirs[0].partitions[0].name == "alpha-3"
    (log_dir / "alpha-3" / f"{0:020d}.log").unlink()
    (log_dir / "alpha-3").rmdir()
    items = list(selected_logs(target, EVERYTHING))
    gone = [each for each in items if isinstance(each, Finding) and each.code == "file-changed"]
    assert [(each.location.topic, each.location.partition) for each in gone] == [("alpha", 3)]
    assert [each.path.parent.name for each in items if isinstance(each, LogUnit)] == ["orders-0"]


def test_all_brokers_below_a_directory(tmp_path: Path) -> None:
    for name in ("kafka-1", "kafka-2"):
        write_segment(tmp_path / name / "orders-0", 0, batches(2))
        (tmp_path / name / "meta.properties").write_text("version=1\n")
    logs = [each for each in selected_logs(Target(tmp_path), EVERYTHING) if isinstance(each, LogUnit)]
    assert [each.path.parent.parent.name for each in logs] == ["kafka-1", "kafka-2"]
    assert selected_bytes([Target(tmp_path)], EVERYTHING) == sum(each.path.stat().st_size for each in logs)


def test_a_comparison_names_what_is_not_read(log_dir: Path, tmp_path: Path) -> None:
    write_segment(tmp_path / "other" / "orders-0", 0, batches(2))
    partition = log_dir / "orders-0"
    found = list(diff([Target(partition), Target(tmp_path / "other" / "orders-0")]))
    links = [each for each in found if isinstance(each, Finding) and each.code == "file-unreadable"]
    assert [Path(each.location.path).name for each in links] == [f"{6:020d}.log", f"{9:020d}.log"]
