"""kafkalog with one command that belongs to the tests: the framework, without any command of the program."""

from __future__ import annotations

import os
import signal
import sys
import time
from typing import Annotated

import msgspec
import typer

from format.columns import MATCH as WHOLE_MATCH
from format.columns import RowSchema
from format.errors import CorruptDataError, LimitExceeded, NotALogDir, UnreadableFile
from format.findings import finding
from format.location import Location
from kafkalog_cli import main as program
from kafkalog_cli.command_table import CommandEntry
from kafkalog_cli.exit_codes import Condition
from kafkalog_cli.options.groups import option
from kafkalog_cli.options.output import LEVELS, DocumentOutput, Judging
from kafkalog_cli.options.parsers import one_of, parse_moment, parse_positive
from kafkalog_cli.options.reading import Paths
from kafkalog_cli.options.work import Guards
from kafkalog_cli.runner import Run

EXAMPLES = (("kafkalog fake /data", "everything"), ("kafkalog fake --limit 3 /data", "three rows"))

MATCH = RowSchema("match", WHOLE_MATCH.columns[:7])  # a short row type
ENDINGS = (
    "well", "crc", "input", "not-a-log-dir", "limit", "os-error", "bug", "system-exit", "usage",
    "nothing-found", "finding", "info", "not-checked", "sentence", "sleep", "stacktrace",
)  # fmt: skip


class Faked(msgspec.Struct, frozen=True):
    """What is made up."""

    limit: Annotated[int | None, option("Rows.", parser=parse_positive, metavar="N")] = 3
    level: Annotated[str, option("A level.", **one_of(*LEVELS))] = "full"
    from_time: Annotated[int | None, option("A time.", parser=parse_moment)] = None
    verify_like: Annotated[bool, option("As verify.")] = False
    end: Annotated[str, option("The end.", **one_of(*ENDINGS))] = "well"


def fake(paths: Paths, output: DocumentOutput, judging: Judging, faked: Faked, guards: Guards) -> None:
    """Make rows out of nothing, and end as --end says."""
    with Run(
        "fake",
        output,
        judging,
        paths=paths,
        main_schema=MATCH,
        columns={"match": ("topic", "offset", "timestamp")},
        shows_summary=faked.verify_like,
    ) as run:
        run.progress(100).advance(50)
        rows = (("orders", 0, number, 1714564800000, 0, 61 * number, None) for number in range(faked.limit or 0))
        run.write(MATCH, rows)
        run.count("zstd_window", guards.limits.max_zstd_window_bytes)
        if faked.from_time is not None:
            run.count("from_time", faked.from_time)
        finish(run, paths[0], faked.end)
        run.not_checked(f"nothing below {faked.level}") if faked.level != "full" else None


def finish(run: Run, path: str, end: str) -> None:
    """End a run in one of the ways of ENDINGS."""
    where = Location(path, position=61)
    match end:
        case "crc":
            raise CorruptDataError("the CRC is wrong", where, code="batch-crc-mismatch")
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
        case "sentence":
            run.conclude("a sentence about the next row")
            run.count("bytes_read", 1_000_000)
            run.write(MATCH, [("orders", 0, 4711, 1714564800000, 0, 0, None)])
        case "sleep":
            sys.stderr.write("ready\n")
            sys.stderr.flush()
            time.sleep(30)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)
    program.KafkalogGroup.entries = (
        CommandEntry("fake", "Make rows.", "Test", other_module="tests.kafkalog_cli.fake_program"),
    )
    sys.exit(program.main())
