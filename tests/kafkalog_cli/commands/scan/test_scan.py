"""kafkalog scan as a user runs it: its usage errors, what it says where Spark is missing, and that it loads late."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from format.errors import ClusterFailed
from kafkalog_cli.exit_codes import Condition
from kafkalog_cli.failures import condition_of
from spark_jobs import session
from spark_jobs.session import with_retries
from tests.running import Run


def test_wrong_words_are_usage_errors(
    run_kafkalog_many: Callable[..., list[Run]], tmp_path: Path, data_dir: Path
) -> None:
    log_dir = data_dir / "kafka-4.3-single" / "node-1"
    wrong = (
        ("scan",),
        ("scan", "verify"),
        ("scan", "nothing", log_dir),
        ("scan", "verify", tmp_path / "absent"),
        ("scan", "extract", log_dir),
        ("scan", "grep", log_dir),
        ("scan", "verify", log_dir, "--from-offset", "1"),
        ("scan", "ls", log_dir, "--batches"),
        ("scan", "recompress", log_dir),
        ("scan", "recompress", "--estimate", log_dir, "--codec", "gzip", "--level", "10"),
        ("scan", "verify", log_dir, "--conf", "no-value"),
        ("scan", "--no-such-option", "verify", log_dir),
    )
    for words, run in zip(wrong, run_kafkalog_many(wrong), strict=True):
        assert run.code == 2, words


def test_options_of_one_host_are_refused_with_the_reason(
    run_kafkalog_many: Callable[..., list[Run]], data_dir: Path
) -> None:
    log_dir = data_dir / "kafka-4.3-single" / "node-1"
    options = (["--max-rate", "5"], ["--jobs", "2"], ["--follow"])
    *refused, unknown = run_kafkalog_many(
        [
            *(("scan", "grep", *option, "x", log_dir) for option in options),
            ("scan", "groups", "--remote", log_dir, log_dir),
        ]
    )
    for option, run in zip(options, refused, strict=True):
        assert run.check(2).stderr.startswith(f"kafkalog: {option[0]} does not go with scan")
    assert "no such option: --remote" in unknown.check(2).stderr


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "pyspark" else found(name))
    with pytest.raises(session.SparkMissing, match=r"need pyspark.*pip install 'kafkalog\[spark\]'"):
        session.require_spark()


def test_a_missing_or_old_java_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    monkeypatch.setattr(session, "spark_version", lambda: "4.0.0")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(session.SparkMissing, match="Java 17 or later: there is none"):
        session.require_spark()
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\n")
    java.chmod(0o755)
    (tmp_path / "release").write_text('JAVA_VERSION="11.0.2"\n')
    with pytest.raises(session.SparkMissing, match="is Java 11"):
        session.require_spark()
    (tmp_path / "release").write_text('JAVA_VERSION="17.0.1"\n')
    session.require_spark()


def test_a_spark_that_a_platform_brings_says_its_version_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """It lies on the path, and nothing is installed."""
    found = importlib.util.find_spec
    names = ("pyspark", "pyarrow", "pandas")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object() if name in names else found(name))
    monkeypatch.setitem(sys.modules, "pyspark", SimpleNamespace(__version__="3.4.1"))
    with pytest.raises(session.SparkMissing, match=r"this is 3\.4\.1"):
        session.require_spark()


def test_the_reason_of_a_failure_is_one_line() -> None:
    text = 'x\nTraceback (most recent call last):\n  File "a"\nValueError: why\n\nDriver stacktrace:\n\tat org.x'
    assert session.one_line_reason(Exception(text)) == "ValueError: why"
    lost = (
        "An error occurred while calling o63.count.\n: org.apache.spark.SparkException: Job aborted due to stage "
        "failure: Task 0 in stage 0.0 failed 1 times, most recent failure: Lost task 0.0 in stage 0.0 (TID 0) (h "
        "executor driver): org.apache.spark.SparkException: Python worker exited unexpectedly (crashed).\n\tat x"
    )
    reason = session.one_line_reason(Exception(lost))
    assert reason.startswith("Lost task 0.0 in stage 0.0")
    assert reason.endswith("org.apache.spark.SparkException: Python worker exited unexpectedly (crashed).")
    versions = (
        'x\nTraceback (most recent call last):\n  File "a"\n    raise\npyspark.errors.PySparkRuntimeError: Python in '
        "worker has different version: 3.9 than that in driver: 3.11.\nCheck the variables.\n\nDriver stacktrace:"
    )
    assert "3.9 than that in driver: 3.11" in session.one_line_reason(Exception(versions))


def test_why_a_python_of_an_executor_did_not_start() -> None:
    """As Spark 4.3 writes it where the Python of an archive finds no library of its own."""
    task = "Lost task 0.3 in stage 0.0 (TID 6) (10.0.0.7 executor 0)"
    why = "./environment/bin/python: error while loading shared libraries: libpython3.11.so.1.0: cannot open it"
    text = f"Job aborted: Task 0 failed 4 times, most recent failure: {task}: org.apache.spark.SparkException: \n"
    text += f"Error from python worker:\n  {why}\nPYTHONPATH was:\n  /opt/spark\n"
    assert session.one_line_reason(Exception(text)) == f"{task}: {why}"


def test_a_job_that_failed_is_no_usage_error() -> None:
    assert condition_of(ClusterFailed("a worker was lost")) is Condition.INCOMPLETE


def test_every_local_master_tries_a_task_again() -> None:
    for given, expected in (("local", "local[1, 3]"), ("local[4]", "local[4, 3]"), ("local[*]", "local[*, 3]")):
        assert with_retries(given) == expected
    for given in ("local[2, 5]", "spark://head:7077", "yarn", "local-cluster[2,1,1024]"):
        assert with_retries(given) == given
