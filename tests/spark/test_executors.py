"""The messages about executors with another version or Python, without packages, or without the compiled kernel."""

from __future__ import annotations

import sys
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'kafkalog[spark]'")

from format.version import VERSION
from spark_jobs import session
from spark_jobs.session import WrongExecutor, check_executors, check_seen

_PYTHON = f"CPython {sys.version_info[0]}.{sys.version_info[1]}"
_GOOD: dict[str, Any] = {"host": "h1", "missing": [], "version": VERSION, "python": _PYTHON, "has_kernel": True}


def test_good_ones_are_not_mentioned(spark: Any, capsys: pytest.CaptureFixture[str]) -> None:
    check_executors(spark)
    check_seen([_GOOD])
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("other", "words"),
    [
        ({"missing": ["numpy", "format", "spark_jobs"]}, "the executor on h2 lacks numpy, kafkalog: give"),
        ({"version": "0.0.1"}, f"the executor on h2 has kafkalog 0.0.1, and this is {VERSION}"),
        ({"python": "CPython 3.9"}, f"the executor on h2 has CPython 3.9, and this is {_PYTHON}"),
    ],
)
def test_others_are_refused_with_a_remedy(other: dict[str, Any], words: str) -> None:
    with pytest.raises(WrongExecutor, match=words) as caught:
        check_seen([_GOOD, _GOOD | {"host": "h2"} | other])
    assert "--archive FILE" in caught.value.message


def test_the_remedy_on_a_connect_server_is_not_the_archive(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "is_remote_session", lambda session: True)
    monkeypatch.setattr(session, "VERSION", "0.0.2")
    with pytest.raises(WrongExecutor, match=r"has kafkalog .*for the Python of the Connect server") as caught:
        check_executors(spark)
    assert "--archive" not in caught.value.message


def test_spark_refuses_another_python_and_the_remedy_is_named(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker compares its Python with the version that the driver sends with each task."""
    monkeypatch.setattr(spark.sparkContext, "pythonVer", "3.7")
    here = ".".join(map(str, sys.version_info[:2]))
    with pytest.raises(WrongExecutor) as caught:
        check_executors(spark)
    assert caught.value.message.startswith(f"the executors have Python {here}, and this is 3.7: give executors")
    assert "--archive FILE" in caught.value.message


def test_a_missing_kernel_is_said_once(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(session, "KERNEL_IS_COMPILED", True)
    check_seen([_GOOD | {"host": host, "has_kernel": False} for host in ("h2", "h1", "h2")])
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "without the compiled kernel" in said
    assert "h1, h2" in said
    monkeypatch.setattr(session, "KERNEL_IS_COMPILED", False)  # nor has the driver
    check_seen([_GOOD | {"has_kernel": False}])
    assert capsys.readouterr().err == ""
