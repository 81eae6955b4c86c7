"""The conclusion of a run: before the rows where people read them, and on standard error elsewhere."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import typer

from format.columns import RETENTION_TOTAL
from format.findings import finding
from format.location import Location
from kafkalog_cli.options.output import Judging, RowOutput
from kafkalog_cli.runner import Run

ROWS = [(topic, 1, 1, 1, 0, 0, None, {}) for topic in ("orders", "users")]
Body = Callable[[Run], None]


def outputs(capfd: pytest.CaptureFixture[str], format_name: str, body: Body, *, quiet: bool = False) -> tuple[str, str]:
    with (
        pytest.raises(typer.Exit),
        Run("fake", RowOutput(format_name=format_name, quiet=quiet), Judging(), main_schema=RETENTION_TOTAL) as run,
    ):
        body(run)
    captured = capfd.readouterr()
    return captured.out, captured.err


def held(run: Run) -> None:
    run.hold()
    run.finding(finding("batch-crc-mismatch", Location("/logs/users-0"), "a gap"))
    run.write(RETENTION_TOTAL, iter(ROWS), only=lambda row: row[0] == "users")
    run.conclude("users is odd", "", "one \x1b topic is not shown")
    run.conclude("that was all")


@pytest.mark.parametrize("quiet", [False, True])
def test_people_read_the_conclusion_before_rows_and_findings(capfd: pytest.CaptureFixture[str], quiet: bool) -> None:
    out, _ = outputs(capfd, "table", held, quiet=quiet)
    assert out.startswith("users is odd\none \\x1b topic is not shown\n")
    assert out.index("a gap") < out.index("users  ") < out.index("that was all")
    assert "orders" not in out


def test_programs_get_all_rows_as_they_come(capfd: pytest.CaptureFixture[str]) -> None:
    out, err = outputs(capfd, "jsonl", held)
    assert [line.split('"')[3] for line in out.splitlines()] == [
        "finding", "retention_total", "retention_total", "summary",
    ]  # fmt: skip
    assert "users is odd" in err
    assert "users is odd" not in out
    assert outputs(capfd, "jsonl", held, quiet=True)[1] == ""


def test_the_answer_says_how_many_paths_it_lacks(capfd: pytest.CaptureFixture[str]) -> None:
    def body(run: Run) -> None:
        run.hold()
        for number in (0, 1):
            run.finding(finding("file-unreadable", Location(f"/logs/users-{number}"), "cannot list"))
        run.conclude("Nothing is odd.", "That was all.")
        run.conclude("Not listed: one.")

    out, _ = outputs(capfd, "text", body)
    assert out.startswith("Nothing is odd. Not read: 2 paths.\nThat was all.\n")
    assert out.count("Not read") == 1


def test_rows_that_are_not_shown_are_counted(capfd: pytest.CaptureFixture[str]) -> None:
    def body(run: Run) -> None:
        held(run)
        run.not_checked("the rest")

    assert "fake: 2 topics." in outputs(capfd, "table", body)[1]


def test_rows_without_a_conclusion_are_shown_at_the_end(capfd: pytest.CaptureFixture[str]) -> None:
    def body(run: Run) -> None:
        run.hold()
        run.write(RETENTION_TOTAL, iter(ROWS))
        raise OSError("the disk is gone")

    out, err = outputs(capfd, "table", body)
    assert "orders" in out
    assert "the disk is gone" in err
