"""A real standalone master and two workers: the findings through spark-submit, also when an executor is killed."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'kafkalog[spark]'")

from format.rows.finding_rows import finding_row
from format.verbs.verify.verify import verify
from tests.building import batches, write_segment
from tests.corpora import REPOSITORY
from tests.spark.clusters import Cluster, standalone_cluster

_KAFKALOG = (sys.executable, "-m", "kafkalog_cli")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with standalone_cluster(tmp_path_factory.mktemp("cluster")) as started:
        yield started


def _expected(path: Path) -> list[list[object]]:
    return [json.loads(json.dumps(list(finding_row(found)), default=str)) for found in verify(path)]


def _got(output: str) -> list[list[object]]:
    rows = [json.loads(line) for line in output.splitlines()]
    assert rows, "nothing was written"
    assert rows[-1]["type"] == "summary"
    return [list(row.values())[1:] for row in rows[:-1]]


def _finished(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    out, err = process.communicate(timeout=500)
    return process.returncode, out, err


def test_findings_through_spark_submit(cluster: Cluster, damaged_copy: Path, tmp_path: Path) -> None:
    """An executor is killed, and the other worker with its executors: their tasks run again on what is left."""
    log_dir = tmp_path / "kafka"
    shutil.copytree(damaged_copy, log_dir)
    for number in range(6):
        contents = batches(3000, values=20)
        contents[number * 100] = contents[number * 100][:-3] + b"xyz"
        write_segment(log_dir / f"t-{number}", 0, contents)
    job = str(REPOSITORY / "spark_jobs" / "jobs" / "scan.py")
    process = cluster.submit(job, "verify", str(log_dir), "--range-size", "20000", "--format", "jsonl")
    killed = None
    deadline = time.monotonic() + 240
    while killed is None and process.poll() is None and time.monotonic() < deadline:
        killed = _an_executor_with_a_worker(cluster)
        time.sleep(0.05)
    assert killed is not None, "no executor was seen"
    (other,) = (each for each in cluster.workers if each.pid != os.getpgid(killed))
    os.kill(killed, signal.SIGKILL)
    os.killpg(other.pid, signal.SIGKILL)
    other.wait(20)
    code, out, err = _finished(process)
    assert code == 1 and out, err[-3000:]  # noqa: PT018
    assert _got(out) == _expected(log_dir)


def _an_executor_with_a_worker(cluster: Cluster) -> int | None:
    """The process id of an executor of this cluster that has started a Python process."""
    commands: dict[int, str] = {}
    parents: dict[int, int] = {}
    for each in Path("/proc").iterdir():
        if each.name.isdigit():
            try:
                commands[int(each.name)] = (each / "cmdline").read_text(errors="replace").replace("\0", " ")
                parents[int(each.name)] = int((each / "stat").read_text().rsplit(") ", 1)[1].split()[1])
            except OSError:
                continue
    for pid, command in commands.items():
        if "pyspark.daemon" in command or "pyspark.worker" in command:
            parent = parents.get(pid, 0)
            of_ours = re.search(
                r"CoarseGrainedExecutorBackend.*--worker-url spark://Worker@127.0.0.1", commands.get(parent, "")
            )
            if of_ours and _is_below(parent, parents, os.getpid()):
                return parent
    return None


def _is_below(pid: int, parents: dict[int, int], ancestor: int) -> bool:
    while pid > 1:
        if pid == ancestor:
            return True
        pid = parents.get(pid, 0)
    return False


@pytest.mark.skipif(not os.environ.get("KAFKALOG_TEST_PACK"), reason="takes minutes: set KAFKALOG_TEST_PACK=1")
def test_a_packed_environment_is_all_that_executors_need(cluster: Cluster, damaged_copy: Path, tmp_path: Path) -> None:
    archive = Path(os.environ["KAFKALOG_TEST_PACK"])  # one that is there already, or 1
    if not archive.is_file():
        archive = tmp_path / "env.tar.gz"
        subprocess.run([*_KAFKALOG, "scan", "--pack", str(archive)], check=True, cwd=REPOSITORY)
    settings = ("spark.ui.enabled=false", "spark.driver.host=127.0.0.1", "spark.executor.memory=512m")
    words = [
        "scan",
        "verify",
        str(damaged_copy),
        "--format",
        "jsonl",
        "--master",
        cluster.url,
        "--archive",
        str(archive),
    ]
    command = [*_KAFKALOG, *words, *(f"--conf={each}" for each in settings)]
    environment = {name: value for name, value in cluster.environment.items() if name != "PYSPARK_PYTHON"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=REPOSITORY, timeout=500)
    assert done.returncode == 1, done.stderr[-3000:]
    assert _got(done.stdout) == _expected(damaged_copy)
