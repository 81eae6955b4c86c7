"""A log directory of a few partitions, to change."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.format.verbs.ls.listings import SENSOR, copied


@pytest.fixture
def log_dir(data_dir: Path, tmp_path: Path) -> Path:
    """A log directory with one partition of six segments, shut down cleanly."""
    directory = tmp_path / "data"
    copied(data_dir / SENSOR, directory / "sensor-0")
    (directory / "meta.properties").write_text("version=1\nnode.id=7\ncluster.id=abc\n")
    (directory / ".kafka_cleanshutdown").touch()
    return directory
