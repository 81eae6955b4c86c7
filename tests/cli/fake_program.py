"""kafkalog with one command that belongs to the tests: the framework, without any command of the program."""

from __future__ import annotations

import os
import signal
import sys
import time
from typing import Annotated

import typer

from format.columns import MATCH
from format.errors import ChecksumMismatch, LimitExceeded, NotALogDir, UnreadableFile
from format.findings import Severity, finding
from format.location import Location
from kafkalog_cli import main as program
from kafkalog_cli.exit_codes import Condition
from kafkalog_cli.lazy_group import CommandEntry
from kafkalog_cli.options import (
    FailOn,
    Format,
    FromTime,
    Level,
    Limit,
    MaxZstdWindow,
    OutputFile,
    Paths,
    Quiet,
    limits_of,
    one_of,
)
from kafkalog_cli.runner import Run

EXAMPLES = (("kafkalog fake /data", "everything"), ("kafkalog fake --limit 3 /data", "three rows"))

ENDINGS = (
    "well", "crc", "input", "not-a-log-dir", "limit", "os-error", "bug", "system-exit", "usage",
    "nothing-found", "finding", "info", "not-checked", "sleep", "stacktrace",
)  # fmt: skip


def fake(
    paths: Paths,
    format_name: Format = None,
    output: OutputFile = None,
    quiet: Quiet = False,
    fail_on: FailOn = Severity.ERROR,
    limit: Limit = 3,
    level: Level = "full",
    from_time: FromTime = None,
    max_zstd_window: MaxZstdWindow = None,
    verify_like: Annotated[bool, typer.Option("--verify-like")] = False,
    end: Annotated[str, typer.Option(**one_of(*ENDINGS))] = "well",
) -> None:
    """Make rows out of nothing, and end as --end says."""
    limits = limits_of(max_zstd_window_bytes=max_zstd_window)
    with Run(
        "fake",
        format_name=format_name,
        output=output,
        quiet=quiet,
        paths=paths,
        main_schema=MATCH,
        table_columns={"match": ("topic", "offset", "timestamp")},
        fail_on=fail_on,
        shows_summary=verify_like,
    ) as run:
        run.progress(100).advance(50)
        run.write(MATCH, (("orders", 0, number, 1714564800000, 0, 61 * number, None) for number in range(limit or 0)))
        run.count("zstd_window", limits.max_zstd_window_bytes)
        if from_time is not None:
            run.count("from_time", from_time)
        finish(run, paths[0], end)
        run.not_checked(f"nothing below {level}") if level != "full" else None


def finish(run: Run, path: str, end: str) -> None:
    """End a run in one of the ways of ENDINGS."""
    where = Location(path, position=61)
    match end:
        case "crc":
            raise ChecksumMismatch("the CRC is wrong", where)
        case "input":
            raise UnreadableFile("cannot open: Permission denied", where)
        case "not-a-log-dir":
            raise NotALogDir("nothing here", where)
        case "limit":
            raise LimitExceeded("too large", where)
        case "os-error":
            os.listdir(os.path.join(path, "no\x1b[2Jsuch"))
        case "bug" | "stacktrace":
            raise KeyError("a\x1b[2Jb\nc")
        case "system-exit":
            sys.exit(0)
        case "usage":
            raise typer.BadParameter("these two exclude each other")
        case "nothing-found":
            run.condition(Condition.NOTHING_FOUND)
        case "finding":
            run.finding(finding("batch-crc-mismatch", where, "bad", expected=-1, actual=b"\xff", lost_offsets=(4, 7)))
        case "info":
            run.finding(finding("offset-gap", where, "a gap"))
        case "not-checked":
            run.findings([finding("file-unreadable", where, "no")] * 2)
        case "sleep":
            sys.stderr.write("ready\n")
            sys.stderr.flush()
            time.sleep(30)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)
    program.KafkalogGroup.entries = (CommandEntry("fake", "tests.cli.fake_program", "Make rows.", "Test"),)
    sys.exit(program.main())
