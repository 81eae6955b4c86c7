"""A session that does not start: the reason is in the message."""

from __future__ import annotations

import errno
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.building import batches, write_segment
from tests.corpora import REPOSITORY
from tests.ports import free_ports


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("--master", "lokal"), "Spark did not start: Master must either be yarn or start with"),
        (("--master", "yarn"), "either HADOOP_CONF_DIR or YARN_CONF_DIR must be set"),
        (("--master", "local[1]", "--archive", "/none/env.tar.gz"), "/none/env.tar.gz"),
    ],
    ids=["lokal", "yarn", "archive"],
)
def test_the_reason_is_that_of_the_jvm(words: tuple[str, ...], reason: str, tmp_path: Path) -> None:
    first = first_words(tmp_path, words)
    assert reason in first
    assert first.startswith("kafkalog: Spark did not start: ")
    assert "; its log is " in first


@pytest.mark.slow
def test_a_master_that_says_nothing(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:  # Spark tries for a minute
        first = first_words(tmp_path, ("--master", f"spark://127.0.0.1:{listening.getsockname()[1]}"))
    assert "All masters are unresponsive" in first


@pytest.mark.parametrize(
    ("master", "what"),
    [
        ("spark://127.0.0.1:{port}", "Spark master"),
        ("spark://127.0.0.1:{port},localhost:{port}", "Spark master"),
        ("k8s://https://127.0.0.1:{port}", "Kubernetes API server"),
        ("k8s://127.0.0.1:{port}", "Kubernetes API server"),
        ("sc://127.0.0.1:{port}", "Spark Connect server"),
        ("sc://127.0.0.1:{port}/;token=secret,x", "Spark Connect server"),
    ],
)
def test_a_master_that_is_not_there(master: str, what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
    place = master.format(port=free_ports(1)[0])
    first = first_words(tmp_path, ("--master", place))
    shown = place.partition("/;")[0]
    assert first == f"kafkalog: no {what} answers at {shown}: [Errno {errno.ECONNREFUSED}] Connection refused"


def first_words(folder: Path, words: tuple[str, ...]) -> str:
    """The first line of the messages of a scan that cannot start."""
    write_segment(folder / "t-0", 0, batches(1))
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY), "TMPDIR": str(folder)}
    for name in ("HADOOP_CONF_DIR", "YARN_CONF_DIR"):
        environment.pop(name, None)
    done = subprocess.run(
        [sys.executable, "-m", "kafkalog_cli", "scan", "verify", str(folder / "t-0"), *words],
        capture_output=True,
        text=True,
        timeout=200,
        env=environment,
        check=False,
    )
    assert done.returncode == 3
    assert "Traceback" not in done.stderr
    return done.stderr.splitlines()[0]
