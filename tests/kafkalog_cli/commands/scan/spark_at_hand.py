"""Whether Spark can run here, for the tests of scan."""

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
