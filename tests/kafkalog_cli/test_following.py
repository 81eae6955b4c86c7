"""--follow as users have it: in a process of its own, ended by signals."""

from __future__ import annotations

import ctypes
import json
import operator
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from kafkalog_cli.following import stopped_by_signals
from tests.building import batch, write_segment
from tests.corpora import REPOSITORY
from tests.running import run_many

pytestmark = pytest.mark.slow


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return write_segment(tmp_path / "t-0", 0, [batch(0), batch(3)])


@contextmanager
def following(*words: str | Path) -> Iterator[subprocess.Popen[str]]:
    """A run that follows, once it has begun; killed at the end."""
    command = [sys.executable, "-m", "kafkalog_cli", *map(str, words)]
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=REPOSITORY,
        bufsize=1,
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL),  # ignored where the tests run under nohup
    )
    assert process.stderr is not None
    try:
        line = process.stderr.readline()
        assert line == "kafkalog: following 1 partition, until Ctrl-C.\n", line + process.stderr.read()
        yield process
    finally:
        process.kill()
        process.communicate()


def rows_of(process: subprocess.Popen[str], count: int) -> list[dict[str, Any]]:
    assert process.stdout is not None
    return [json.loads(process.stdout.readline()) for _ in range(count)]


def append(path: Path, content: bytes) -> None:
    with path.open("ab") as file:
        file.write(content)


def test_rows_come_at_once_and_ctrl_c_ends_the_run(log: Path) -> None:
    with following("dump", "--records", "--follow", "--last", "1", "--format", "jsonl", log.parent) as process:
        assert [row["offset"] for row in rows_of(process, 1)] == [5]
        started = time.monotonic()
        append(log, batch(6))
        assert [row["offset"] for row in rows_of(process, 3)] == [6, 7, 8]
        assert time.monotonic() - started < 60  # what it takes on an idle host is measured by the trial with a broker
        process.send_signal(signal.SIGINT)
        summary = rows_of(process, 1)[0]
        assert process.wait(120) == 0
    assert (summary["type"], summary["counts"], summary["complete"]) == ("summary", {"record": 4}, True)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_the_exit_status_is_that_of_the_findings(log: Path, number: signal.Signals) -> None:
    bad = bytearray(batch(6))
    bad[-1] ^= 1
    with following("verify", "-f", "--format", "jsonl", log.parent) as process:
        append(log, bytes(bad) + batch(9))
        assert [row["code"] for row in rows_of(process, 1)] == ["batch-crc-mismatch"]
        process.send_signal(number)
        summary = rows_of(process, 1)[0]
        assert process.wait(120) == 1
    assert summary["counts"]["batches"] == 2
    assert any("indexes" in words for words in summary["not_checked"])


def test_grep_ends_at_its_limit(log: Path) -> None:
    with following("grep", "--follow", "--limit", "2", "--format", "logfmt", "needle", log.parent) as process:
        append(log, batch(6, [b"hay", b"needle 1", b"needle 2", b"needle 3"]))
        output, _ = process.communicate(timeout=120)
        assert process.returncode == 0
    assert output.count("needle") == 2


def test_grep_that_found_nothing(log: Path) -> None:
    with following("grep", "--follow", "needle", log.parent) as process:
        process.send_signal(signal.SIGINT)
        assert process.wait(120) == 1


def test_a_reader_that_goes_ends_the_run(log: Path) -> None:
    with following("dump", "--follow", log.parent) as process:
        assert process.stdout is not None
        process.stdout.close()
        assert process.wait(120) == 141


def test_tables_are_drawn_as_rows_come(log: Path) -> None:
    with following("dump", "--follow", "--format", "table", log.parent) as process:
        append(log, batch(6))
        assert process.stdout is not None
        assert "base_offset" in process.stdout.readline()
        assert " 6 " in process.stdout.readline()


REFUSED = {
    ("dump", "--to-offset", "3"): "--to-offset and --follow",
    ("dump", "--jobs", "2"): "--jobs and --follow",
    ("dump", "--output", "x"): "--output and --follow",
    ("dump", "--read-committed"): "--read-committed and --follow",
    ("dump", "--last", "3", "--from-offset", "1"): "give one of --last, --from-offset and --from-time",
    ("grep", "--count", "x"): "--count and --follow",
    ("grep", "--files-with-matches", "x"): "--files-with-matches and --follow",
    ("verify", "--jobs", "2"): "--jobs and --follow",
    ("txns", "--at", "now"): "--at and --follow",
    ("txns", "--hanging"): "--hanging and --follow",
}


def test_options_that_make_no_sense_with_it(log: Path) -> None:
    runs = run_many([*words, "--follow", log.parent] for words in REFUSED)
    for run, words in zip(runs, REFUSED.values(), strict=True):
        assert words in " ".join(run.check(2).stderr.split())


def test_files_are_not_followed(log: Path) -> None:
    for run in run_many([*words, "--follow", log] for words in (["dump"], ["grep", "x"], ["verify"], ["txns"])):
        assert "not single files" in " ".join(run.check(2).stderr.split())


def test_a_signal_right_before_a_wait_ends_the_wait() -> None:
    """Python runs no handler between the two calls; scrub then waited for ten minutes."""
    arrives = partial(ctypes.CDLL(None)["raise"], signal.SIGTERM)
    with stopped_by_signals() as stopping:
        waits = partial(select.select, [stopping.wake_fd], [], [], 20.0)
        calls: list[Callable[[], Any]] = [arrives, waits]
        _, (ready, _, _) = map(operator.call, calls)
        assert ready == [stopping.wake_fd]
        assert stopping.is_asked()
