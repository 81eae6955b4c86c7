"""kafkalog scan as a user runs it: its usage errors, what it says where Spark is missing, and that it loads late."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from spark_jobs import session
from tests.corpora import REPOSITORY
from tests.running import Run

_HAS_SPARK = all(importlib.util.find_spec(name) for name in ("pyspark", "pyarrow", "pandas")) and bool(
    os.environ.get("JAVA_HOME") or shutil.which("java")
)
needs_spark = pytest.mark.skipif(not _HAS_SPARK, reason="no pyspark or no Java: pip install 'kafkalog[spark]'")


@pytest.fixture(autouse=True)
def no_class_archive(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests leave nothing in the user's cache, and no JVM that writes an archive when they are done."""
    monkeypatch.setenv("XDG_CACHE_HOME", os.devnull)


def test_wrong_words_are_usage_errors(run_kafkalog: Callable[..., Run], tmp_path: Path, data_dir: Path) -> None:
    log_dir = data_dir / "kafka-4.3-single" / "node-1"
    for words in (
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
    ):
        result = run_kafkalog(*words)
        assert result.code == 2, words


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "pyspark" else found(name))
    with pytest.raises(session.SparkMissing, match=r"need pyspark.*pip install 'kafkalog\[spark\]'"):
        session.require_spark()


def test_a_missing_or_old_java_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
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


def test_the_reason_of_a_failure_is_one_line() -> None:
    text = 'x\nTraceback (most recent call last):\n  File "a"\nValueError: why\n\nDriver stacktrace:\n\tat org.x'
    assert session.one_line_reason(Exception(text)) == "ValueError: why"
    lost = (
        "An error occurred while calling o63.count.\n: org.apache.spark.SparkException: Job aborted due to stage "
        "failure: Task 0 in stage 0.0 failed 1 times, most recent failure: Lost task 0.0 in stage 0.0 (TID 0) (h "
        "executor driver): org.apache.spark.SparkException: Python worker exited unexpectedly (crashed).\n\tat x"
    )
    assert session.one_line_reason(Exception(lost)) == "Python worker exited unexpectedly (crashed)."


@needs_spark
def test_scan_verify_prints_what_verify_prints(run_kafkalog: Callable[..., Run], data_dir: Path) -> None:
    log_dir = data_dir / "kafka-4.3-single" / "node-1"
    scanned = run_kafkalog("scan", "verify", log_dir, "--master", "local[2]", "--format", "jsonl")
    verified = run_kafkalog("verify", log_dir, "--format", "jsonl")
    assert scanned.code == verified.code
    got, expected = scanned.stdout.splitlines(), verified.stdout.splitlines()
    assert got[:-1] == expected[:-1]
    last, last_expected = json.loads(got[-1]), json.loads(expected[-1])
    assert last["counts"] == last_expected["counts"]
    assert scanned.stderr == ""  # nothing of the JVM's chatter


@needs_spark
def test_earlier_names_and_options_before_the_verb(run_kafkalog: Callable[..., Run], data_dir: Path) -> None:
    partition = data_dir / "kafka-4.3-single" / "node-1" / "orders-0"
    how = ("--master", "local[1]", "--format", "jsonl")
    for words, earlier in (
        (("ls", partition, *how), (*how, "inventory", partition)),
        (
            ("recompress", "--estimate", partition, "--codec", "none", *how),
            ("recompress-estimate", "--codec", "none", *how, partition),
        ),
    ):
        now, before = run_kafkalog("scan", *words), run_kafkalog("scan", *earlier)
        assert now.check(0).rows()
        assert (now.code, now.stdout) == (before.code, before.stdout)


@needs_spark
def test_an_estimate_says_what_was_not_measured(run_kafkalog: Callable[..., Run], data_dir: Path) -> None:
    partition = data_dir / "kafka-4.3-single" / "node-1" / "orders-0"
    words = ("scan", "recompress-estimate", partition, "--master", "local[1]", "--codec", "gzip", "--format", "jsonl")
    for sample, expected in (
        ("1GB", []),
        ("2KB", ["what lies outside the samples, of up to 2000 log bytes per topic"]),
    ):
        done = run_kafkalog(*words, "--sample", sample)
        assert json.loads(done.stdout.splitlines()[-1])["not_checked"] == expected


@needs_spark
@pytest.mark.parametrize("after_s", [1.5, 2.5, 4, 7])
def test_ctrl_c_stops_it(after_s: float, data_dir: Path) -> None:
    """Before the JVM has started, while it does, and after."""
    log_dir = data_dir / "kafka-4.3-single" / "node-1"
    process = subprocess.Popen(
        [sys.executable, "-m", "kafkalog_cli", "scan", "verify", str(log_dir)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=REPOSITORY,
        start_new_session=True,
    )
    time.sleep(after_s)
    is_over = process.poll() is not None
    if not is_over:
        os.killpg(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == (0 if is_over else 130)
    assert b"Traceback" not in err
    assert_ends(process.pid)


def assert_ends(session: int) -> None:
    """Nothing that was started in a session runs any more after a while."""
    for _ in range(100):
        left = [pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if session_of(pid) == session]
        if not left:
            return
        time.sleep(0.1)
    commands = [Path(f"/proc/{pid}/cmdline").read_bytes()[:200] for pid in left]
    os.killpg(session, signal.SIGKILL)
    raise AssertionError(f"still there: {commands}")


def session_of(pid: int) -> int | None:
    try:
        return os.getsid(pid)
    except ProcessLookupError:
        return None
