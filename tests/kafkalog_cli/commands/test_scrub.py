"""kafkalog scrub as a user runs it: its sentences, exit codes, state, metrics, and what it refuses."""

from __future__ import annotations

import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.building import batch, batches, write_segment
from tests.corpora import REPOSITORY
from tests.running import Run

Kafkalog = Callable[..., Run]


@pytest.fixture
def kafkalog(run_kafkalog_many: Callable[..., list[Run]]) -> Kafkalog:
    """One run of the program, in a fork: quicker than a process of its own."""
    return lambda *arguments: run_kafkalog_many([arguments])[0]


@pytest.fixture
def node(tmp_path: Path) -> Path:
    node = tmp_path / "node"
    for base_offset in (0, 30, 60):
        write_segment(node / "orders-0", base_offset, batches(10, base_offset))
    (node / "orders-0" / "partition.metadata").write_text(f"version: 0\ntopic_id: {'B' * 21}A\n")
    return node


def damage(node: Path) -> Path:
    log = node / "orders-0" / f"{30:020d}.log"
    content = bytearray(log.read_bytes())
    content[-20] ^= 1
    log.write_bytes(content)
    return log


def test_passes(kafkalog: Kafkalog, node: Path, tmp_path: Path) -> None:
    state = tmp_path / "scrub.db"
    first = kafkalog("scrub", node, "--state", state, "--once", "--format", "text").check(0)
    assert first.stdout == "3 segments verified (3.1 KiB) of 3. No damage.\n"
    again = kafkalog("scrub", node, "--state", state, "--once", "--format", "text").check(0)
    assert again.stdout == "Nothing is due: all 3 segments were verified within the period.\n"
    damage(node)
    found = kafkalog("scrub", node, "--state", state, "--once", "--period", "0", "--format", "jsonl").check(1)
    assert [row["code"] for row in found.rows("finding")] == ["batch-crc-mismatch"]
    assert (found.summary["counts"]["segments"], found.summary["counts"]["due_segments"]) == (3, 3)
    still = kafkalog("scrub", node, "--state", state, "--once", "--format", "text").check(1)
    assert "Nothing is due" in still.stdout
    assert "1 finding of earlier passes still open." in still.stdout


def test_links_are_no_part_of_a_pass_and_said(kafkalog: Kafkalog, node: Path, tmp_path: Path) -> None:
    """A broker reads what they point to."""
    [partition] = [each for each in node.iterdir() if each.is_dir()]
    (node / "linked-0").symlink_to(partition)
    (partition / f"{10**9:020d}.log").symlink_to("elsewhere")
    state, metrics = tmp_path / "s.db", tmp_path / "s.prom"
    run = kafkalog("scrub", "--once", "--state", state, "--metrics", metrics, "--format", "jsonl", node).check(3)
    found = [row["path"] for row in run.rows("finding") if row["code"] == "file-unreadable"]
    assert found == [str(node / "linked-0"), str(partition / f"{10**9:020d}.log")]
    assert "kafkalog_scrub_last_run_unread_paths 2\n" in metrics.read_text()
    status = kafkalog("scrub", "--status", "--state", state, "--format", "text").check(3)
    assert "The last pass did not read 2 paths: links, or directories not listed.\n" in status.stdout


def test_status_and_metrics(kafkalog: Kafkalog, node: Path, tmp_path: Path) -> None:
    state, metrics = tmp_path / "scrub.db", tmp_path / "scrub.prom"
    log = damage(node)
    kafkalog("scrub", node, "--state", state, "--once", "--metrics", metrics).check(1)
    text = metrics.read_text()
    assert f'kafkalog_scrub_segments{{path="{node}"}} 3\n' in text
    assert 'kafkalog_scrub_findings{severity="fatal",code="batch-crc-mismatch"} 1\n' in text
    assert "kafkalog_scrub_last_run_complete 1\n" in text
    status = kafkalog("scrub", "--status", "--state", state, "--format", "text").check(1)
    assert status.stdout.startswith("All 3 segments were verified within 21 days.\nOpen: 1 finding.\n")
    overdue = kafkalog("scrub", "--status", "--state", state, "--period", "0", "--format", "jsonl").check(1)
    (row,) = overdue.rows("scrub_directory")
    assert (row["segment_count"], row["overdue_count"], row["finding_count"]) == (3, 3, 1)
    history = kafkalog("scrub", "--status", "--history", "--state", state, "--format", "jsonl").check(1)
    (past,) = history.rows("scrubbed_finding")
    assert (past["path"], past["gone_at"]) == (str(log), None)


def test_compare(kafkalog: Kafkalog, node: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    shutil.copytree(node, other)
    states = [tmp_path / "one.db", tmp_path / "two.db"]
    for place, state in zip((node, other), states, strict=True):
        kafkalog("scrub", place, "--state", state, "--once").check(0)
    equal = kafkalog("scrub", "--compare", *states, "--format", "text").check(0)
    assert equal.stdout == "1 partition compared, as far as both states verified them: no difference.\n"
    write_segment(other / "orders-0", 30, [*batches(9, 30), batch(57, [b"VALUE-%d" % each for each in range(3)])])
    kafkalog("scrub", other, "--state", states[1], "--once", "--period", "0").check(1)
    different = kafkalog("scrub", "--compare", *states, "--format", "jsonl")
    assert different.code == 0  # the changed segment is known by the digest before it changed
    kafkalog("scrub", other, "--state", tmp_path / "new.db", "--once").check(0)
    different = kafkalog("scrub", "--compare", states[0], tmp_path / "new.db", "--format", "jsonl").check(1)
    (row,) = different.rows("scrub_difference")
    assert row["first_offset"] <= 57 <= row["last_offset"]
    assert row["path_1"] == f"{node}/orders-0/{30:020d}.log"


def test_verify_since(kafkalog: Kafkalog, node: Path, tmp_path: Path) -> None:
    state = tmp_path / "scrub.db"
    kafkalog("scrub", node, "--state", state, "--once").check(0)
    log = node / "orders-0" / f"{30:020d}.log"
    times = log.stat()
    damage(node)
    os.utime(log, ns=(times.st_atime_ns, times.st_mtime_ns))
    connection = sqlite3.connect(state)
    with connection:  # as if the disk had changed it
        connection.execute("UPDATE segments SET ctime_ns = ? WHERE base_offset = 30", (log.stat().st_ctime_ns,))
    connection.close()
    unread = kafkalog("verify", node, "--level", "crc", "--since", state, "--format", "jsonl").check(0)
    assert unread.rows("finding") == []
    assert "CRCs and records of the logs that are verified by --since" in unread.summary["not_checked"]
    os.utime(log)
    read = kafkalog("verify", node, "--level", "crc", "--since", state, "--format", "jsonl").check(1)
    assert [row["code"] for row in read.rows("finding")] == ["batch-crc-mismatch"]


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["NODE"], 2, "no --state"),
        (["--state", "DB", "--once"], 2, "no PATH"),
        (["NODE", "--status", "--state", "DB"], 2, "read only states"),
        (["NODE", "--state", "NODE/scrub.db", "--once"], 5, "nothing is written"),
        (["NODE", "--state", "DB", "--once", "--metrics", "NODE/m.prom"], 5, "nothing is written"),
        (["NODE", "--state", "s3://bucket/scrub.db", "--once"], 2, "is an address; a new file can only"),
        (["NODE", "--state", "DB", "--once", "--metrics", "s3://bucket/m"], 2, "s3://bucket/m: is an address"),
        (["NODE", "--state", "", "--once"], 2, "'': this is no file for a state"),
        (["NODE", "--state", "OTHER", "--once"], 2, "this is no file for a state"),
        (["NODE", "--state", "OTHER/", "--once"], 2, "this is no file for a state"),
        (["--status", "--state", "s3://bucket/scrub.db"], 2, "a state is read on a file system of this host"),
        (["--status", "--state", "DB"], 2, "there is no state file"),
        (["NODE", "--state", "DB", "--once", "--history"], 2, "--history goes with --status"),
        (["--status", "--state", "DB", "--once"], 2, "--once does not go with --status"),
        (["--compare", "DB", "DB", "--metrics", "m.prom"], 2, "--metrics does not go with --compare"),
        (["s3://bucket/node", "--state", "DB", "--once"], 2, "scrub reads disks"),
        (["NODE", "--state", "DB", "--once", "--period", "nan"], 2, "'nan' is not a number from 0 to"),
        (["NODE", "--state", "DB", "--once", "--period", "inf"], 2, "'inf' is not a number from 0 to"),
    ],
)
def test_refusals(
    kafkalog: Kafkalog, node: Path, tmp_path: Path, arguments: list[str], code: int, words: str, monkeypatch: Any
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    monkeypatch.chdir(other)
    names = {"NODE": str(node), "DB": str(tmp_path / "scrub.db"), "OTHER": str(other)}
    given = [re.sub("|".join(names), lambda match: names[match[0]], each) for each in arguments]
    run = kafkalog("scrub", *given).check(code)
    assert words in run.stderr
    assert not list(other.iterdir()), "a file .lock there would be a broker's"
    assert sorted(each.name for each in node.iterdir()) == ["orders-0"]


def test_a_name_that_is_not_utf8_has_no_place_in_the_state(kafkalog: Kafkalog, node: Path, tmp_path: Path) -> None:
    odd = node.rename(node.with_name(os.fsdecode(b"node-\xff")))
    run = kafkalog("scrub", odd, "--state", tmp_path / "scrub.db", "--once").check(2)
    assert "the state takes no name that is not UTF-8" in run.stderr


def test_goes_on_until_it_is_stopped(node: Path, tmp_path: Path) -> None:
    state = tmp_path / "scrub.db"
    command = [sys.executable, "-m", "kafkalog_cli", "scrub", str(node), "--state", str(state), "--format", "jsonl"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=REPOSITORY, text=True) as process:
        for _ in range(600):
            if state.exists() and state.stat().st_size:
                break
            time.sleep(0.1)
        time.sleep(1)
        try:
            assert process.poll() is None
            process.send_signal(signal.SIGTERM)
            assert process.wait(60) == 0
        finally:
            process.kill()
