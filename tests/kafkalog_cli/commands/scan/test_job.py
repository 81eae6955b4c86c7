"""How a job of scan ends when it is interrupted."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.corpora import REPOSITORY
from tests.kafkalog_cli.commands.scan.spark_at_hand import needs_spark


@needs_spark
@pytest.mark.parametrize("after_s", [1.5, 4, 7])
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
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=60)
    if process.returncode == 0:  # it was over, or came to its end as the signal came
        assert b"complete=true exit_code=0" in out
    else:
        assert process.returncode == 130
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
