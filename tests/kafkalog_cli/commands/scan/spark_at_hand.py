"""Whether Spark can run here, for the tests of scan, and a start that leaves nothing behind."""

from __future__ import annotations

import importlib.util
import os
import shutil
from typing import Any

import pytest

_HAS_SPARK = all(importlib.util.find_spec(name) for name in ("pyspark", "pyarrow", "pandas")) and bool(
    os.environ.get("JAVA_HOME") or shutil.which("java")
)

_without_spark = pytest.mark.skipif(not _HAS_SPARK, reason="no pyspark or no Java: pip install 'kafkalog[spark]'")


def needs_spark(test: Any) -> Any:
    """A slow test that is skipped where Spark cannot start."""
    return pytest.mark.slow(pytest.mark.spark(_without_spark(test)))


@pytest.fixture(autouse=True)
def no_class_archive(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests leave nothing in the user's cache, and no JVM that writes an archive when they are done."""
    monkeypatch.setenv("XDG_CACHE_HOME", os.devnull)
