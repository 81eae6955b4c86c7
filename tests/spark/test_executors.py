"""What is said of executors that have another version, lack packages, or run without the compiled kernel."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'kafkalog[spark]'")

from format.version import VERSION
from spark_jobs import executors
from spark_jobs.executors import WrongExecutor, check_executors, check_seen

_GOOD: dict[str, Any] = {"host": "h1", "missing": [], "version": VERSION, "has_kernel": True}


def test_good_ones_are_not_mentioned(spark: Any, capsys: pytest.CaptureFixture[str]) -> None:
    check_executors(spark)
    check_seen([_GOOD])
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("other", "words"),
    [
        ({"missing": ["numpy", "format"]}, "the executor on h2 lacks numpy, format"),
        ({"version": "0.0.1"}, "the executor on h2 has kafkalog 0.0.1"),
    ],
)
def test_others_are_refused_with_a_remedy(other: dict[str, Any], words: str) -> None:
    with pytest.raises(WrongExecutor, match=words) as caught:
        check_seen([_GOOD, _GOOD | {"host": "h2"} | other])
    assert "--archive FILE" in caught.value.message


def test_a_missing_kernel_is_said_once(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(executors, "KERNEL_IS_COMPILED", True)
    check_seen([_GOOD | {"host": host, "has_kernel": False} for host in ("h2", "h1", "h2")])
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "without the compiled kernel" in said
    assert "h1, h2" in said
    monkeypatch.setattr(executors, "KERNEL_IS_COMPILED", False)  # nor has the driver
    check_seen([_GOOD | {"has_kernel": False}])
    assert capsys.readouterr().err == ""
