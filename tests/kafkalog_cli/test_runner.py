"""How a run of a command ends: exit code, summary, messages; and never a traceback."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import typer

from format.errors import WorkerDied
from kafkalog_cli.options.output import Judging, RowOutput
from kafkalog_cli.runner import Run
from tests.corpora import REPOSITORY
from tests.kafkalog_cli.reading import assert_screen_safe

pytestmark = pytest.mark.long

PROGRAM = [sys.executable, "-m", "tests.kafkalog_cli.fake_program", "fake"]


@dataclass
class Done:
    code: int
    stdout: bytes
    stderr: str

    @property
    def rows(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.stdout.decode().split("\n") if line]


def fake(*arguments: object, env: dict[str, str] | None = None, **keywords: Any) -> Done:
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY), **(env or {})}
    keywords.setdefault("stdout", subprocess.PIPE)
    done = subprocess.run(
        [*PROGRAM, *map(str, arguments)],
        stderr=subprocess.PIPE,
        cwd=REPOSITORY,
        env=environment,
        check=False,
        **keywords,
    )
    stderr = done.stderr.decode()
    assert_screen_safe(done.stderr)
    assert "KAFKALOG_DEBUG" in (env or {}) or "Traceback" not in stderr, stderr
    return Done(done.returncode, done.stdout or b"", stderr)


ENDINGS = [
    # (how it ends, exit code, conditions, complete, a word on standard error)
    ("well", 0, [], True, ""),
    ("nothing-found", 1, ["nothing-found"], True, ""),
    ("finding", 1, ["damage"], True, ""),
    ("info", 0, [], True, ""),
    ("not-checked", 3, ["incomplete"], False, ""),
    ("crc", 1, ["damage", "incomplete"], False, "position 61: the CRC is wrong\n  Compare with another replica"),
    ("input", 3, ["incomplete"], False, "cannot open: Permission denied\n  Run as the broker's user"),
    ("limit", 3, ["incomplete"], False, "too large\n  Raise the limit"),
    ("os-error", 3, ["incomplete"], False, "no\\x1b[2Jsuch: No such file or directory"),
    ("not-a-log-dir", 2, ["usage"], False, "nothing here\n  Give a log directory"),
    ("bug", 70, ["bug"], False, "internal error: KeyError: 'a\\x1b[2Jb\\nc'\n  This is a bug."),
    ("system-exit", 70, ["bug"], False, "internal error: SystemExit: 0"),
]


@pytest.mark.parametrize(
    ("end", "code", "conditions", "complete", "message"),
    ENDINGS,
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_json_lines_end_with_the_summary(tmp_path, end, code, conditions, complete, message):
    done = fake(tmp_path, "--format", "jsonl", "--end", end)
    assert done.code == code
    *rows, summary = done.rows
    assert summary["type"] == "summary"
    assert summary["command"] == "fake"
    assert summary["exit_code"] == code
    assert summary["conditions"] == conditions
    assert summary["complete"] is complete
    assert [row["type"] for row in rows[:3]] == ["match"] * 3
    assert summary["counts"]["match"] == 3
    assert message.replace("{path}", str(tmp_path)) in done.stderr
    assert (done.stderr == "") == (message == "")


@pytest.mark.parametrize("format_name", ["text", "table", "csv", "logfmt"])
@pytest.mark.parametrize(("end", "code"), [(end, code) for end, code, *_rest in ENDINGS])
def test_the_other_formats_end_with_the_same_code(tmp_path, format_name, end, code):
    done = fake(tmp_path, "--format", format_name, "--end", end)
    assert done.code == code
    assert b"summary" not in done.stdout
    assert ("Exit status" in done.stderr) == (code != 0)


@pytest.mark.parametrize("format_name", ["text", "table", "csv", "logfmt"])
def test_quiet_keeps_the_message_and_drops_the_summary(tmp_path, format_name):
    done = fake(tmp_path, "--format", format_name, "--end", "crc", "--quiet")
    assert done.code == 1
    assert done.stderr.startswith("kafkalog: ")
    assert "Exit status" not in done.stderr


def test_an_error_with_a_finding_code_is_a_finding_in_json_lines(tmp_path):
    done = fake(tmp_path, "--format", "jsonl", "--end", "crc")
    assert [row["code"] for row in done.rows if row["type"] == "finding"] == ["batch-crc-mismatch"]
    assert done.rows[-1]["not_checked"] == [f"everything after this error: {tmp_path} position 61: the CRC is wrong"]
    assert done.rows[-1]["findings"] == {"fatal": 1}


def test_a_result_like_summary_goes_where_the_rows_go(tmp_path):
    text = fake(tmp_path, "--verify-like", "--end", "finding", "--format", "logfmt")
    assert text.stdout.decode().splitlines()[-1] == (
        'summary command=fake counts={"match":3,"zstd_window":8388608,"finding":1} '
        'findings={"info":0,"warning":0,"error":0,"fatal":1} '
        'complete=true exit_code=1 conditions=["damage"] not_checked=[]'
    )
    assert text.stderr == ""
    table = fake(tmp_path, "--verify-like", "--format", "table")
    assert table.stdout.decode().endswith("\nComplete and clean.\n")
    assert table.stderr == ""


def test_fail_on_moves_the_threshold(tmp_path):
    assert fake(tmp_path, "--end", "info", "--fail-on", "info").code == 1
    assert fake(tmp_path, "--end", "info", "--fail-on", "warning").code == 0
    assert fake(tmp_path, "--end", "finding", "--fail-on", "fatal").code == 1
    assert fake(tmp_path, "--end", "not-checked", "--fail-on", "info").code == 3


def test_what_was_not_checked_is_said(tmp_path):
    done = fake(tmp_path, "--level", "crc", "--end", "not-checked", "--format", "jsonl")
    assert done.rows[-1]["not_checked"] == ["nothing below crc", "file-unreadable: 2 findings"]
    assert fake(tmp_path, "--level", "crc").code == 0


@pytest.mark.parametrize(
    "arguments",
    [
        ["/no/such/place"],
        [],
        ["{}", "--level", "x"],
        ["{}", "--from-time", "soon"],
        ["{}", "--end", "usage"],
        ["{}", "--limit", "0"],
        ["{}", "--nope"],
    ],
)
def test_usage_errors(tmp_path, arguments):
    done = fake(*(str(tmp_path) if each == "{}" else each for each in arguments), "--format", "jsonl")
    assert done.code == 2
    assert done.stdout == b"" or "usage" in arguments
    assert done.stderr.startswith("kafkalog: ")
    assert done.stderr.endswith("\n  See 'kafkalog fake --help'.\n")


def test_relative_times_begin_with_a_minus(tmp_path):
    (*_rows, summary) = fake(tmp_path, "--from-time", "-2h", "--format", "jsonl").rows
    assert abs(summary["counts"]["from_time"] - (time.time() * 1000 - 7_200_000)) < 60_000


def test_the_traceback_is_there_for_who_asks(tmp_path):
    done = fake(tmp_path, "--end", "bug", env={"KAFKALOG_DEBUG": "1"})
    assert done.code == 70
    assert "Traceback (most recent call last):" in done.stderr
    assert "raise KeyError" in done.stderr


# -- output that fails ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("format_name", ["text", "jsonl", "csv", "table", "logfmt"])
@pytest.mark.parametrize("limit", [1, 20_000])
def test_a_full_disk(tmp_path, format_name, limit):
    with open("/dev/full", "wb") as full:
        done = fake(tmp_path, "--format", format_name, "--limit", limit, stdout=full)
    assert done.code == 4
    assert done.stderr.startswith("kafkalog: <stdout>: cannot write: No space left on device\n")


def test_a_full_disk_under_help():
    with open("/dev/full", "wb") as full:
        done = fake("--help", stdout=full)
    assert done.code == 4
    assert done.stderr.startswith("kafkalog: <stdout>: cannot write: No space left on device\n")


def test_a_reader_of_help_that_goes_away_is_no_error():
    reader, writer = os.pipe()
    os.close(reader)
    done = fake("--help", stdout=writer)
    os.close(writer)
    assert (done.code, done.stderr) == (141, "")


def test_closed_standard_output(tmp_path):
    done = subprocess.run(
        ["sh", "-c", f'"$@" {tmp_path} >&-', "sh", *PROGRAM],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 4
    assert (
        done.stderr
        == "kafkalog: <stdout>: standard output is closed\n  Check the free space and the permissions there.\n"
    )


def test_closed_standard_error(tmp_path):
    done = subprocess.run(
        ["sh", "-c", f'"$@" {tmp_path} --end bug 2>&-', "sh", *PROGRAM],
        cwd=REPOSITORY,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 70


@pytest.mark.parametrize("format_name", ["text", "jsonl", "csv", "table", "logfmt"])
def test_a_reader_that_goes_away_is_no_error(tmp_path, format_name):
    command = [
        *PROGRAM,
        str(tmp_path),
        "--format",
        format_name,
        "--limit",
        "5000" if format_name in ("table", "text") else "200000",
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=REPOSITORY) as process:
        process.stdout.readline()
        process.stdout.close()
        stderr = process.stderr.read()
    assert stderr == b""
    assert process.returncode == 141


def test_output_to_a_file(tmp_path):
    source = tmp_path / "logs"
    source.mkdir()
    target = tmp_path / "out.jsonl"
    done = fake(source, "--format", "jsonl", "--output", target, "--end", "finding")
    assert (done.code, done.stdout, done.stderr) == (1, b"", "")
    assert json.loads(target.read_text().splitlines()[-1])["type"] == "summary"
    before = target.read_bytes()
    again = fake(source, "--output", target)
    assert again.code == 5
    assert "exists and is not empty" in again.stderr
    assert target.read_bytes() == before
    inside = fake(source, "--output", source / "out")
    assert inside.code == 5
    assert list(source.iterdir()) == []
    assert fake(source, "--output", tmp_path / "no" / "out").code == 4


def test_no_file_is_published_after_a_bug(tmp_path):
    assert fake("/", "--output", tmp_path.parent / (tmp_path.name + "-out"), "--end", "bug").code == 5
    source = tmp_path / "logs"
    source.mkdir()
    assert fake(source, "--output", tmp_path / "out", "--end", "bug").code == 70
    assert fake(source, "--output", tmp_path / "out", "--end", "usage").code == 2
    assert list(tmp_path.iterdir()) == [source]


# -- signals -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_signals(tmp_path, number, code):
    source = tmp_path / "logs"
    source.mkdir()
    command = [*PROGRAM, str(source), "--end", "sleep", "--output", str(tmp_path / "out")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=REPOSITORY) as process:
        assert process.stderr.readline() == b"ready\n"
        process.send_signal(number)
        stdout, stderr = process.communicate(timeout=20)
    assert process.returncode == code
    assert stderr == b"kafkalog: interrupted\n"
    assert stdout == b""
    assert list(tmp_path.iterdir()) == [source]


def test_a_second_hangup_does_not_disturb_and_nohup_prevents_the_first(tmp_path):
    source = tmp_path / "logs"
    source.mkdir()
    command = [*PROGRAM, str(source), "--end", "sleep", "--output", str(tmp_path / "out")]
    with subprocess.Popen(command, stderr=subprocess.PIPE, cwd=REPOSITORY) as process:
        assert process.stderr.readline() == b"ready\n"
        for _ in range(2):  # the kernel sends one, and the shell another
            process.send_signal(signal.SIGHUP)
        process.communicate(timeout=20)
    assert process.returncode == 129
    assert list(tmp_path.iterdir()) == [source]
    command = ["nohup", *command]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, cwd=REPOSITORY) as process:
        while process.stderr.readline() != b"ready\n":
            pass  # what nohup says
        process.send_signal(signal.SIGHUP)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.3)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=20)
    assert process.returncode == 143


def test_an_interrupted_stream_has_no_summary(tmp_path):
    command = [*PROGRAM, str(tmp_path), "--end", "sleep", "--format", "jsonl"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=REPOSITORY) as process:
        process.stderr.readline()
        process.send_signal(signal.SIGINT)
        stdout, _stderr = process.communicate(timeout=20)
    assert b"summary" not in stdout


# -- terminals -----------------------------------------------------------------------------------------------


def on_a_terminal(*arguments: object, columns: int = 100, env: dict[str, str] | None = None) -> tuple[int, str]:
    """The exit code and what a terminal of that width gets to see, standard error included."""
    master, slave = pty.openpty()
    environment = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "COLUMNS")}
    environment |= {"TERM": "xterm-256color", "COLUMNS": str(columns), **(env or {})}
    process = subprocess.Popen(
        [*PROGRAM, *map(str, arguments)], stdin=slave, stdout=slave, stderr=slave, cwd=REPOSITORY, env=environment
    )
    os.close(slave)
    seen = b""
    while select.select([master], [], [], 20)[0]:
        try:
            piece = os.read(master, 65536)
        except OSError:  # the last writer has gone
            break
        if not piece:
            break
        seen += piece
    os.close(master)
    return process.wait(20), seen.decode().replace("\r\n", "\n")


def test_a_terminal_gets_a_table_with_colours(tmp_path):
    code, seen = on_a_terminal(tmp_path, "--end", "finding")
    assert code == 1
    assert "\x1b[1;31mfatal" in seen
    assert "2024-05-01T12:00:00.000Z" in seen
    assert "Exit status 1" in seen


@pytest.mark.parametrize("env", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_a_terminal_without_colours(tmp_path, env):
    code, seen = on_a_terminal(tmp_path, "--end", "finding", env=env)
    assert code == 1
    assert "fatal" in seen
    assert "\x1b" not in seen


def test_a_table_fits_the_terminal(tmp_path):
    _code, seen = on_a_terminal(tmp_path, "--end", "finding", columns=90, env={"NO_COLOR": "1"})
    table = seen.partition("severity")[2].partition("fake:")[0]
    assert max(len(line) for line in f"severity{table}".splitlines()) <= 90


def test_a_sentence_stands_behind_the_rows_before_it(tmp_path):
    _code, seen = on_a_terminal(tmp_path, "--end", "sentence", env={"NO_COLOR": "1"})
    before, _sentence, after = seen.partition("a sentence about the next row")
    assert "2024-05-01T12:00" in before
    assert "4711" in after
    assert "4711" not in before


def test_a_sentence_that_has_scrolled_off_is_said_again(tmp_path):
    for lines, count in (("1", 2), ("24", 1)):
        _code, seen = on_a_terminal(tmp_path, "--end", "sentence", env={"LINES": lines})
        assert seen.count("a sentence about the next row") == count


def test_help_has_no_colour_codes_on_a_terminal():
    _code, seen = on_a_terminal("--help")
    assert "\x1b" not in seen


def test_other_formats_on_a_terminal_stay_plain(tmp_path):
    _code, seen = on_a_terminal(tmp_path, "--format", "jsonl")
    assert "\x1b" not in seen
    assert json.loads(seen.splitlines()[-1])["type"] == "summary"


def test_the_framework_reads_no_byte_of_a_source(tmp_path: Path, source_snapshot):
    (tmp_path / "00000000000000000000.log").write_bytes(b"x" * 100)
    source_snapshot(tmp_path)
    assert fake(tmp_path, "--output", tmp_path / "x").code == 5
    assert fake(tmp_path).code == 0


def test_a_worker_that_died_leaves_the_run_incomplete(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(typer.Exit) as leaving, Run("verify", RowOutput(format_name="jsonl"), Judging()):
        raise WorkerDied("a worker process was killed by signal 9 (Killed)")
    assert leaving.value.exit_code == 3
    out, err = capfd.readouterr()
    assert "killed by signal 9" in err
    assert '"code":"worker-died"' in out
    assert '"complete":false' in out
