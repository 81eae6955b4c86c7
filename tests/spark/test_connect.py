"""Through a Spark Connect server: the data source, and ``kafkalog scan`` with the same output as the plain command."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'kafkalog[spark]'")
if os.environ.get("KAFKALOG_REQUIRE_SPARK") != "1":
    pytest.importorskip(
        "grpc", reason="the client of Spark Connect is not installed: pip install 'kafkalog[spark-test]'"
    )

from tests.corpora import REPOSITORY
from tests.ports import free_ports
from tests.spark.clusters import connect_server

_SOURCE = """
import sys
from pyspark.sql import SparkSession
session = SparkSession.builder.remote(sys.argv[1]).getOrCreate()
assert not hasattr(session, "_jvm")
every = {"upTo": "logEnd", "includeBelowLogStart": "true"}
frame = session.read.format("kafkalog").options(**every).load(sys.argv[2])
print(frame.where("offset < 3").count(), frame.count(), frame.columns[:3])
session.sql(f"CREATE TEMPORARY VIEW b USING kafkalog OPTIONS (path '{sys.argv[2]}', view 'batches', level 'headers')")
print(session.sql("SELECT sum(record_count) FROM b WHERE NOT is_control").first()[0])
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with connect_server(tmp_path_factory.mktemp("connect")) as address:
        yield address


def _run(*words: str) -> tuple[int, str, str]:
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    done = subprocess.run(
        [sys.executable, *words], capture_output=True, text=True, timeout=400, env=environment, check=False
    )
    return done.returncode, done.stdout, done.stderr


def test_a_scan_prints_what_the_command_prints(server: str, damaged_copy: Path) -> None:
    words = ("verify", str(damaged_copy), "--format", "jsonl")
    expected = _run("-m", "kafkalog_cli", *words)
    assert expected[0] == 1
    scan = ("-m", "kafkalog_cli", "scan", *words, "--master", server, "--range-size", "3000")
    code, out, err = _run(*scan)
    assert (code, out) == expected[:2], err[-3000:]


def test_the_data_source(server: str, data_dir: Path) -> None:
    log_dir = str(data_dir / "kafka-4.3-single" / "node-1")
    code, out, err = _run("-c", _SOURCE, server, log_dir)
    assert code == 0, err[-3000:]
    counts, of_headers = out.splitlines()
    assert counts.split()[1] == of_headers
    assert counts.endswith("['key', 'value', 'topic']")


def test_an_archive_is_refused(data_dir: Path) -> None:
    words = ("scan", "verify", str(data_dir / "kafka-4.3-single" / "node-1"), "--archive", "env.tar.gz")
    code, _, err = _run("-m", "kafkalog_cli", *words, "--master", "sc://127.0.0.1:1")
    assert code == 2
    assert "a Connect server has the environment that it was started with" in err


def test_no_server_is_said_in_a_line(data_dir: Path) -> None:
    (port,) = free_ports(1)
    log_dir = str(data_dir / "kafka-4.3-single" / "node-1")
    code, _, err = _run("-m", "kafkalog_cli", "scan", "verify", log_dir, "--master", f"sc://127.0.0.1:{port}")
    assert code == 3
    assert f"no Spark Connect server answers at sc://127.0.0.1:{port}" in err
    assert "Traceback" not in err
