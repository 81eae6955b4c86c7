"""One reading of the metadata log for a report: what it shares with the context, and when it must not."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from format.limits import DEFAULT_LIMITS
from format.node.target import Target
from format.state import cluster_context, metadata_log
from format.verbs.metadata import metadata as metadata_verb
from format.verbs.report.report import ReportRun, read_changes
from format.verbs.report.terms import ReportTerms
from tests.kafkalog_cli.page.reports import NOW_MS

pytestmark = pytest.mark.slow


@pytest.fixture
def node(data_dir: Path, tmp_path: Path) -> Path:
    """A copy of a node whose metadata log has snapshots, and begins at offset 0."""
    copy = tmp_path / "node-1"
    shutil.copytree(data_dir / "trials" / "metadata" / "node-1", copy)
    assert list(copy.glob("__cluster_metadata-0/*.checkpoint"))
    return copy


def _readings(node: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    """How often a report of a node reads the metadata log for an image, apart from the simulated starts."""
    count = 0

    def counted(*words: object, **options: object) -> object:
        nonlocal count
        count += 1
        return metadata_log.read_metadata(*words, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(cluster_context, "read_metadata", counted)
    monkeypatch.setattr(metadata_verb, "read_metadata", counted)
    run = ReportRun([Target(node)], ReportTerms(NOW_MS))
    list(run.findings())
    report = run.finish()
    assert report.tables["metadata_change"].total > 50
    assert report.tables["topic"].total > 1
    return count


def test_a_sound_log_is_read_once(node: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert read_changes([Target(node)], DEFAULT_LIMITS).sound_state is not None
    assert _readings(node, monkeypatch) == 1


def test_the_image_of_a_damaged_log_comes_from_the_newest_snapshot(node: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = node / "__cluster_metadata-0" / "00000000000000000000.log"
    content = bytearray(log.read_bytes())
    content[len(content) // 10] ^= 0xFF
    log.write_bytes(content)
    reading = read_changes([Target(node)], DEFAULT_LIMITS)
    assert reading.result is not None
    assert reading.result.state.findings
    assert reading.sound_state is None
    assert _readings(node, monkeypatch) == 2


def test_a_node_without_a_metadata_log_says_so(tmp_path: Path) -> None:
    (tmp_path / "orders-0").mkdir()
    reading = read_changes([Target(tmp_path)], DEFAULT_LIMITS)
    assert reading.sound_state is None
    assert reading.error is not None
    assert "no __cluster_metadata-0" in reading.error.message
