"""kafkalog report as a user runs it: exit codes, the file that appears, and the document."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from html import unescape
from pathlib import Path

import pytest

from tests.corpora import REPOSITORY
from tests.kafkalog_cli.page.reports import damaged_node
from tests.running import Run

pytestmark = pytest.mark.slow


def test_page_and_document(
    run_kafkalog: Callable[..., Run],
    run_kafkalog_many: Callable[..., list[Run]],
    data_dir: Path,
    tmp_path: Path,
    source_snapshot: Callable[[Path], None],
) -> None:
    """Pages are made in processes of their own: the renderer of charts has threads, which no fork survives."""
    node = data_dir / "kafka-4.3-single" / "node-1"
    damaged = damaged_node(node, tmp_path)
    source_snapshot(damaged)
    page = tmp_path / "page.html"
    made = run_kafkalog("report", damaged, "--output", page).check(1)
    assert made.stdout == ""
    assert page.read_text().startswith("<!doctype html>")
    assert "Exit status 1" in made.stderr
    again, inside, document, mild, file = run_kafkalog_many(
        [
            ("report", node, "--output", page, "--format", "json"),
            ("report", damaged, "--output", damaged / "page.html", "--format", "json"),
            ("report", node, "--format", "json"),
            ("report", damaged, "--format", "json", "--with-bytes", "--quiet"),
            ("report", node / "orders-0" / "00000000000000000000.log", "--format", "json"),
        ]
    )
    again.check(5)
    assert "the file exists" in again.stderr
    inside.check(5)
    data = json.loads(document.check(0).stdout)
    assert data["type"] == "report"
    assert data["counts"]["partitions"] == len(data["tables"]["report_partition"]["rows"])
    assert data["findings"]["fatal"] == 0
    assert data["sentences"][0].endswith(" 1 info finding.")
    assert json.loads(mild.check(1).stdout)["tables"]["file_bytes"]["rows"]
    assert mild.stderr == ""
    file.check(2)
    assert "whole logs" in file.stderr


def test_the_page_opens_with_the_diagnoses_of_doctor(
    run_kafkalog: Callable[..., Run],
    run_kafkalog_many: Callable[..., list[Run]],
    data_dir: Path,
    tmp_path: Path,
) -> None:
    sound = data_dir / "kafka-4.3-single" / "node-1"
    damaged = damaged_node(sound, tmp_path)
    for node, code in ((damaged, 1), (sound, 0)):
        doctor, text, document = run_kafkalog_many(
            [
                ("doctor", "--deep", node, "--format", "jsonl"),
                ("doctor", "--deep", node, "--format", "text"),
                ("report", node, "--format", "json"),
            ]
        )
        rows = doctor.check(code).rows("diagnosis")
        assert json.loads(document.check(code).stdout)["diagnoses"] == [
            {name: value for name, value in row.items() if name != "type"} for row in rows
        ]
        assert len(rows) == 2 * code
        page = run_kafkalog("report", node).check(code).stdout
        first = page[page.index('<section id="diagnoses">') : page.index('<section id="findings">')]
        words = [unescape(" ".join(re.sub("<[^>]*>", " ", each).split())) for each in first.split("<article")]
        for row, said in zip(rows, words[1:], strict=True):
            evidence = f"Evidence {row['evidence_path']} at offset {row['evidence_offset']:,} Next {row['command']}"
            assert f"{row['rank']} {row['severity']} {row['subject']} {row['sentence']} {evidence}" in said
        *_, closing = text.stdout.rstrip().partition("doctor: ")
        assert closing.splitlines()[0].lower() in words[-1].lower()
        assert closing.startswith("nothing wrong found in ") == (not rows)


def test_a_missing_library_is_named(run_kafkalog: Callable[..., Run], data_dir: Path, tmp_path: Path) -> None:
    (tmp_path / "jinja2.py").write_text("raise ImportError('none here')\n")
    node = data_dir / "kafka-4.3-single" / "node-1"
    run = run_kafkalog("report", node, env={"PYTHONPATH": os.pathsep.join((str(tmp_path), str(REPOSITORY)))}).check(2)
    assert "pip install 'kafkalog[report]'" in run.stderr
