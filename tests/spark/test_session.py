"""A session that does not start: the reason is in the message."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.building import batches, write_segment
from tests.corpora import REPOSITORY


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("--master", "lokal"), "Spark did not start: Master must either be yarn or start with"),
        (("--master", "yarn"), "either HADOOP_CONF_DIR or YARN_CONF_DIR must be set"),
        pytest.param(  # Spark tries for a minute
            ("--master", "spark://127.0.0.1:1"), "All masters are unresponsive", marks=pytest.mark.slow
        ),
        (("--master", "local[1]", "--archive", "/none/env.tar.gz"), "/none/env.tar.gz"),
    ],
    ids=["lokal", "yarn", "nobody", "archive"],
)
def test_the_reason_is_that_of_the_jvm(words: tuple[str, ...], reason: str, tmp_path: Path) -> None:
    write_segment(tmp_path / "t-0", 0, batches(1))
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY), "TMPDIR": str(tmp_path)}
    for name in ("HADOOP_CONF_DIR", "YARN_CONF_DIR"):
        environment.pop(name, None)
    done = subprocess.run(
        [sys.executable, "-m", "kafkalog_cli", "scan", "verify", str(tmp_path / "t-0"), *words],
        capture_output=True,
        text=True,
        timeout=200,
        env=environment,
        check=False,
    )
    assert done.returncode == 3
    first = done.stderr.splitlines()[0]
    assert reason in first
    assert first.startswith("kafkalog: Spark did not start: ")
    assert "; its log is " in first
    assert "Traceback" not in done.stderr
