"""Hostile bytes in keys, values, headers and names through the real commands and formats: nothing gets out raw."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from format.log.encode_batches import BatchHeader, encode_batch
from tests.building import BASE_TIMESTAMP
from tests.json_rows import to_bytes, to_headers
from tests.kafkalog_cli.hostile import HOSTILE_BYTES
from tests.kafkalog_cli.reading import assert_screen_safe
from tests.record_encoder import NewRecord, encode_record
from tests.running import Run

FORMATS = ("table", "text", "jsonl", "csv", "logfmt")
RunMany = Callable[[Iterable[Iterable[str | Path]]], list[Run]]


@pytest.fixture(scope="module")
def log_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log of hostile records under a hostile name, with hostile neighbours and damage that quotes them."""
    root = tmp_path_factory.mktemp("hostile") / os.fsdecode("a\x1b[2J\n\u202e=1+1".encode() + b"\xff")
    partition = root / "t-0"
    partition.mkdir(parents=True)
    records = [
        NewRecord(number, number, content, content[::-1], ((content, content), (content, None)))
        for number, content in enumerate(HOSTILE_BYTES)
    ]
    header = BatchHeader(0, len(records) - 1, len(records), BASE_TIMESTAMP, BASE_TIMESTAMP + len(records) - 1)
    batch = encode_batch(header, b"".join(encode_record(each) for each in records), codec=4)
    (partition / f"{0:020d}.log").write_bytes(batch + b"\x1b[31m garbage")
    for content in HOSTILE_BYTES:
        if content and b"/" not in content and b"\0" not in content and len(content) < 100:
            with open(os.fsencode(partition) + b"/" + content + b".x", "wb"):
                pass
    (root / "replication-offset-checkpoint").write_bytes(b"0\n1\n\x1b[2J\xe2\x80\xae 0 many\n")
    (root / "meta.properties").write_bytes(b"version=1\ncluster.id=\x1b]0;title\x07\nnode.id=\xe2\x80\xae\n")
    (partition / "leader-epoch-checkpoint").write_bytes(b"0\n1\n=1+1 \x1b[2J\n")
    (partition / "partition.metadata").write_bytes(b"version: 0\ntopic_id: \x1b[2J\n")
    (partition / "quorum-state").write_bytes(b'{"\x1b[2J": "\x9b", "leaderId": "\\u001b[2J"}')
    return root


def commands(log_dir: Path) -> list[list[str | Path]]:
    partition = log_dir / "t-0"
    return [
        ["ls", log_dir],
        ["ls", "--segments", partition],
        ["verify", log_dir],
        ["dump", partition],
        ["dump", "--records", partition],
        ["dump", log_dir / "meta.properties"],
        ["dump", log_dir / "replication-offset-checkpoint"],
        ["dump", partition / "leader-epoch-checkpoint"],
        ["dump", partition / "partition.metadata"],
        ["dump", partition / "quorum-state"],
        ["find", partition, "--offset", "3", "--explain"],
        ["find", partition, "--offset", "10000"],
        ["dump", partition / os.fsdecode(b"\x1b[2J\xff.log")],
        ["grep", "--all", partition],
        ["grep", "--all", "--explain", partition],
        ["recompress", "--explain", "--codec", "zstd", partition],
        ["recompress", "--estimate", partition],
    ]


def assert_harmless(run: Run, form: str) -> None:
    """Both streams of a run: nothing that a terminal obeys, and no formula in a cell of CSV."""
    run.check(0, 1, 2, 3)
    assert_screen_safe(run.stderr.encode("utf-8", "surrogateescape"))
    if form == "csv":
        assert_cells_are_no_formulas(run.stdout)
    else:
        assert_screen_safe(run.stdout.encode("utf-8", "surrogateescape"))


@pytest.mark.parametrize("form", FORMATS)
def test_nothing_gets_out_raw(log_dir: Path, form: str, run_kafkalog_many: RunMany) -> None:
    words = [[*each, "--format", form] for each in commands(log_dir)]
    for run in run_kafkalog_many(words):
        assert_harmless(run, form)
        if form == "jsonl":
            for line in run.stdout.splitlines():
                json.loads(line)


@pytest.mark.parametrize("form", FORMATS)
def test_nothing_gets_out_raw_of_commands_that_write(
    log_dir: Path, form: str, tmp_path: Path, run_kafkalog_many: RunMany
) -> None:
    words: list[list[str | Path]] = [
        ["salvage", log_dir], ["rebuild-index", log_dir], ["redact", log_dir],
        ["recompress", "--skip-damaged", "--codec", "gzip", log_dir],
        ["extract", "--to", "csv", log_dir], ["extract", "--to", "jsonl", log_dir],
    ]  # fmt: skip
    hostile = tmp_path / os.fsdecode(b"=1+1\x1b[2J\xe2\x80\xae\xff")
    hostile.mkdir()
    runs = run_kafkalog_many(
        [*each, "--format", form, "--output", hostile / str(number)] for number, each in enumerate(words)
    )
    for run in runs:
        assert_harmless(run, form)
    (written,) = (hostile / "4").rglob("*.csv")
    content = written.read_bytes().decode("utf-8", "surrogateescape")
    assert_cells_are_no_formulas(content)


def assert_cells_are_no_formulas(content: str) -> None:
    for row in csv.reader(io.StringIO(content, newline="")):
        for cell in row:
            assert not cell.startswith(("=", "+", "@", "\t", "\r")), cell
            # A minus sign may begin a number, which a spreadsheet takes for one.
            assert not cell.startswith("-") or cell[1:].isdigit() or cell == "-", cell
            assert "\x1b" not in cell
            assert "\x00" not in cell


def test_every_byte_comes_back_from_json(log_dir: Path, run_kafkalog: Callable[..., Run]) -> None:
    rows = run_kafkalog("dump", "--records", "--format", "jsonl", log_dir / "t-0").rows("record")
    assert len(rows) == len(HOSTILE_BYTES)
    for row, content in zip(rows, HOSTILE_BYTES, strict=True):
        assert to_bytes(row["key"]) == content
        assert to_bytes(row["value"]) == content[::-1]
        assert to_headers(row["headers"]) == [(content, content), (content, None)]
