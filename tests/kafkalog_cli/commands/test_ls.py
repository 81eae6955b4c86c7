"""kafkalog ls as a user runs it: formats, what a table shows, exit codes, several paths."""

from __future__ import annotations

import csv
import fcntl
import io
import os
import pty
import shutil
import struct
import subprocess
import sys
import termios
from collections.abc import Callable
from pathlib import Path

import pytest

from format.columns import LOG_DIR, PARTITION, SCHEMAS, SEGMENT
from format.verbs.ls.disk_usage import GROUPINGS
from format.verbs.ls.ls import SORT_KEYS
from kafkalog_cli.commands import ls as command
from tests.corpora import REPOSITORY
from tests.kafkalog_cli.reading import assert_screen_safe
from tests.running import Run

Kafkalog = Callable[..., Run]


@pytest.fixture
def kafkalog(run_kafkalog_many: Callable[..., list[Run]]) -> Kafkalog:
    """One run of the program, in a fork: quicker than a process of its own."""
    return lambda *arguments: run_kafkalog_many([arguments])[0]


def on_a_terminal(width: int, *arguments: str | Path) -> tuple[int, str]:
    """The exit code, and what a terminal of so many columns shows of standard output and error."""
    parent, child = pty.openpty()
    fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", 50, width, 0, 0))
    environment = {key: value for key, value in os.environ.items() if key not in ("COLUMNS", "LINES")}
    environment |= {"TERM": "xterm", "NO_COLOR": "1", "PYTHONPATH": str(REPOSITORY), "PYTHONIOENCODING": "utf-8"}
    command = [sys.executable, "-m", "kafkalog_cli", *map(str, arguments)]
    with subprocess.Popen(command, stdin=child, stdout=child, stderr=child, env=environment, cwd=REPOSITORY) as process:
        os.close(child)
        shown = b""
        while True:
            try:
                part = os.read(parent, 65536)
            except OSError:  # Linux ends a terminal so
                break
            if not part:
                break
            shown += part
    os.close(parent)
    return process.returncode, shown.decode().replace("\r\n", "\n")


@pytest.fixture
def log_dir(data_dir: Path, tmp_path: Path) -> Path:
    """A log directory with one partition of six segments, shut down cleanly."""
    partition = tmp_path / "data" / "sensor-0"
    partition.mkdir(parents=True)
    for each in (data_dir / "kafka-4.3-single" / "node-1" / "sensor-0").iterdir():
        (partition / each.name).write_bytes(each.read_bytes())
    (partition.parent / "meta.properties").write_text("version=1\nnode.id=7\ncluster.id=abc\n")
    (partition.parent / ".kafka_cleanshutdown").touch()
    return partition.parent


def torn(log_dir: Path) -> None:
    path = log_dir / "sensor-0" / "00000000000000000075.log"
    path.write_bytes(path.read_bytes() + b"\0\0\0\0\0\0\0")


def cut_off(log_dir: Path) -> None:
    path = log_dir / "sensor-0" / "00000000000000000015.log"
    path.write_bytes(path.read_bytes()[:-5])


def linked(log_dir: Path) -> None:
    (log_dir / "sensor-0" / "00000000000000000099.log").symlink_to("00000000000000000000.log")


def marked(log_dir: Path) -> None:
    (log_dir / f"sensor-1.{'0' * 32}-stray").mkdir()


def test_rows_and_summary(kafkalog: Kafkalog, data_dir: Path):
    done = kafkalog("ls", "--format", "jsonl", "--segments", data_dir / "kafka-4.3-single" / "node-1").check(0)
    rows = done.rows()
    assert rows[0]["type"] == "log_dir"
    for schema in (LOG_DIR, PARTITION, SEGMENT):
        of_type = done.rows(schema.type)
        assert {tuple(row) for row in of_type} == {("type", *schema.names)}
        assert done.summary["counts"][schema.type] == len(of_type)
    assert done.summary["complete"] is True
    assert done.summary["not_checked"] == []
    ledger = next(row for row in done.rows("partition") if row["topic"] == "orders" and row["partition"] == 0)
    assert (ledger["log_end_offset"], ledger["high_watermark"], ledger["segment_count"]) == (1264, 1264, 2)


@pytest.mark.parametrize(
    ("change", "options", "code", "conditions"),
    [
        (marked, [], 0, []),
        (marked, ["--fail-on", "info"], 1, ["damage"]),
        (torn, [], 0, []),
        (torn, ["--no-scan", "--fail-on", "info"], 0, []),
        (torn, ["--fail-on", "warning"], 1, ["damage"]),
        (cut_off, [], 1, ["damage"]),
        (linked, [], 3, ["incomplete"]),
    ],
)
def test_exit_codes(kafkalog: Kafkalog, log_dir: Path, change, options, code, conditions):
    change(log_dir)
    done = kafkalog("ls", "--format", "jsonl", *options, log_dir).check(code)
    assert done.summary["conditions"] == conditions
    assert len(done.rows("partition")) == 1 + (change is marked)


def test_without_a_scan_the_summary_says_so(kafkalog: Kafkalog, log_dir: Path):
    done = kafkalog("ls", "--format", "jsonl", "--no-scan", log_dir).check(0)
    assert done.summary["not_checked"] == ["the logs and their indexes (--no-scan)"]
    assert done.rows("partition")[0]["batch_count"] is None


def test_one_bad_path_does_not_hide_the_others(kafkalog: Kafkalog, log_dir: Path):
    paths = sorted(log_dir.iterdir())  # what a shell makes of data/*
    done = kafkalog("ls", "--format", "jsonl", *paths).check(2)
    assert [row["topic"] for row in done.rows("partition")] == ["sensor"]
    assert done.stderr.count("dump shows what this file holds") == 2
    assert len(done.summary["not_checked"]) == 2
    kafkalog("ls", log_dir / "absent").check(2)
    kafkalog("ls", "--as", "sausage", log_dir).check(2)
    kafkalog("ls", "--sort", "sausage", log_dir).check(2)


def test_csv_holds_partitions_or_segments(kafkalog: Kafkalog, log_dir: Path):
    def table(*arguments: str | Path) -> list[list[str]]:
        return list(csv.reader(io.StringIO(kafkalog("ls", "--format", "csv", *arguments).check(0).stdout)))

    head, *rows = table(log_dir)
    assert head == list(PARTITION.names)
    assert len(rows) == 1
    for arguments in ((log_dir / "sensor-0",), ("--segments", log_dir)):
        head, *rows = table(*arguments)
        assert head == list(SEGMENT.names)
        assert [row[head.index("segment_base_offset")] for row in rows] == ["0", "15", "30", "45", "60", "75"]


def test_logfmt_is_a_line_for_each_row(run_kafkalog: Kafkalog, log_dir: Path):
    lines = run_kafkalog("ls", "--format", "logfmt", log_dir / "sensor-0").check(0).stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["partition"] + ["segment"] * 6
    assert " segment_base_offset=15 leftover=- size_bytes=1017 " in lines[2]


@pytest.mark.parametrize("width", [100, 160])
def test_a_table_fits_the_terminal_and_keeps_its_findings_for_the_end(log_dir: Path, width: int):
    cut_off(log_dir)
    marked(log_dir)
    code, shown = on_a_terminal(width, "ls", "--segments", log_dir)
    assert code == 1
    *blocks, _summary = shown.split("\n\n")
    heads = [block.split()[0] for block in blocks if block.split()[0] != "more"]
    assert heads == ["path", "topic", "segment_base_offset", "topic", "fatal"]
    lines = "\n".join(blocks).split("\n")
    assert max(len(line) for line in lines if not line.startswith("         /")) <= width  # a path is never cut
    assert ("max_timestamp" in blocks[1]) == (width == 160)
    assert shown.index("stray: not") < shown.index("Next: ") < shown.index("ls: 1 log dir")
    assert "partition-dir-marked" not in shown  # the notes say it
    assert "1 info finding" in shown


def test_a_table_shows_info_findings_that_decide_the_exit_code(kafkalog: Kafkalog, log_dir: Path):
    marked(log_dir)
    done = kafkalog("ls", "--format", "table", "--fail-on", "info", log_dir).check(1)
    assert "partition-dir-marked" in done.stdout


def test_hostile_names_reach_no_screen_raw(kafkalog: Kafkalog, log_dir: Path):
    for name in (b"\xff\x1b[2J", "\u202egpj.exe".encode(), b"a\nb"):
        with open(os.fsencode(log_dir / "sensor-0") + b"/" + name, "wb"):
            pass
    for format_name in ("table", "text", "logfmt", "csv", "jsonl"):
        done = kafkalog("ls", "--format", format_name, log_dir).check(0)
        assert_screen_safe(done.stdout.encode())
        assert_screen_safe(done.stderr.encode())
    assert "unexpected: " in done.rows("partition")[0]["notes"]


def test_the_commands_table_knows_only_columns_that_exist():
    names = {schema.type: schema.names for schema in SCHEMAS}
    for row_type, columns in command._COLUMNS.items():
        assert [name for name in names[row_type] if name in columns.names] == list(columns.names)


def test_the_sort_keys_are_those_of_the_operation():
    assert command.SORT_KEYS == SORT_KEYS
    assert command.GROUPINGS == GROUPINGS


def test_what_takes_the_space(kafkalog: Kafkalog, data_dir: Path) -> None:
    nodes = [data_dir / "kafka-4.3" / name for name in ("node-1", "node-2")]
    run = kafkalog("ls", "--by", "age", "--at", "2026-11-22", "--format", "jsonl", *nodes).check(0)
    rows = run.rows("disk_usage")
    assert {row["name"] for row in rows} == {"last day", None}
    assert sum(row["allocated_bytes"] for row in rows) == run.summary["counts"]["allocated_bytes"]
    assert sum(row["percent"] for row in rows) in (99, 100, 101)
    kafkalog("ls", "--by", "topic", nodes[0] / "meta.properties").check(2)


@pytest.mark.parametrize(
    "words", [("--sort", "size"), ("--no-scan",), ("--segments",), ("--remote", ".")], ids=" ".join
)
def test_sums_refuse_what_is_about_rows(kafkalog: Kafkalog, data_dir: Path, words: tuple[str, ...]) -> None:
    run = kafkalog("ls", "--by", "topic", *words, data_dir / "kafka-4.3" / "node-1").check(2)
    assert f"leave {words[0]} out" in run.stderr


@pytest.mark.parametrize("words", [(), ("--by", "topic")], ids=" ".join)
def test_only_ages_depend_on_the_time(kafkalog: Kafkalog, data_dir: Path, words: tuple[str, ...]) -> None:
    run = kafkalog("ls", *words, "--at", "+2d", data_dir / "kafka-4.3" / "node-1").check(2)
    assert "--at goes with --by age" in run.stderr


def test_what_recompression_would_save(kafkalog: Kafkalog, data_dir: Path) -> None:
    nodes = [data_dir / "kafka-4.3" / name for name in ("node-1", "node-2")]
    run = kafkalog("ls", "--by", "topic", "--estimate", "--format", "jsonl", *nodes).check(0)
    rows = run.rows("disk_usage")
    assert run.summary["counts"]["saved_bytes"] == sum(row["saved_bytes"] or 0 for row in rows) > 0
    assert "zstd would free " in run.stderr
    assert " on disk (" in run.stderr
    assert "most of it in topic payments: " in run.stderr
    for wrong in (["--estimate"], ["--by", "topic", "--codec", "lz4"], ["--by", "topic", "--whole"]):
        assert "--estimate" in kafkalog("ls", *wrong, *nodes).check(2).stderr
    kafkalog("ls", "--by", "topic", "--estimate", "--codec", "snappy", "--level", "3", *nodes).check(2)


def test_chosen_columns_are_those_of_tables_and_text(kafkalog: Kafkalog, data_dir: Path) -> None:
    node = data_dir / "kafka-4.3-single" / "node-1"
    words = ("ls", "--no-scan", "--columns", "topic,size_bytes", node)
    lines = kafkalog(*words).check(0).stdout.splitlines()
    assert lines == kafkalog(*words, "--format", "table").stdout.splitlines()
    assert any(line.split() == ["topic", "size_bytes"] for line in lines)
    for name in ("logfmt", "jsonl", "csv"):
        run = kafkalog("ls", "--columns", "topic", "--format", name, node).check(2)
        assert (run.stdout, "--columns" in run.stderr, name in run.stderr) == ("", True, True)


def test_partitions_with_notes_come_first_where_people_read(kafkalog: Kafkalog, data_dir: Path, tmp_path: Path) -> None:
    node = shutil.copytree(data_dir / "kafka-4.3-single" / "node-1", tmp_path / "node")
    (node / "users-0" / "00000000000000000000.timeindex").unlink()

    def topics(*words: str) -> list[str]:
        lines = kafkalog("ls", *words, node).check(0).stdout.split("\n\n")[1].splitlines()
        return [line.split()[0] for line in lines[1:]]

    by_name = sorted(topics())
    assert topics() == ["users", *(each for each in by_name if each != "users")]
    assert topics("--reverse") == by_name[::-1]
    listed = kafkalog("ls", "--format", "jsonl", node).check(0)
    assert [row["topic"] for row in listed.rows("partition")] == by_name
    _code, shown = on_a_terminal(80, "ls", node)
    head, *rows = shown.split("\n\n")[1].splitlines()
    assert head.split() == ["topic", "partition", "log_size_bytes", "log_end_offset", "notes"]
    assert [row.split()[0] for row in rows if "index-missing" in row] == ["users"]


def test_what_a_broker_will_delete_is_shown_on_a_narrow_terminal(data_dir: Path, tmp_path: Path) -> None:
    node = shutil.copytree(data_dir / "kafka-4.3-single" / "node-1", tmp_path / "node")
    assert "leftover_bytes" not in on_a_terminal(80, "ls", "--by", "topic", node)[1]
    log = node / "users-0" / "00000000000000000000.log"
    shutil.copy(log, f"{log}.deleted")
    head, *rows = on_a_terminal(80, "ls", "--by", "topic", node)[1].splitlines()
    assert "leftover_bytes" in head
    assert head.split()[:3] == ["name", "allocated_bytes", "percent"]
    end = head.index("leftover_bytes") + len("leftover_bytes")
    assert [row.split()[0] for row in rows if row[end - 3 : end] == "KiB"] == ["users"]
