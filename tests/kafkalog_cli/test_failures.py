"""What each kind of exception makes of a run, and the words for it."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest
import typer

from format.errors import (
    InputError,
    InvalidRecord,
    LimitExceeded,
    NotALogDir,
    OutputError,
    OutputExists,
    OutputInsideSource,
    UnreadableFile,
    UnsupportedError,
)
from format.findings import FINDING_CODES
from format.location import Location
from kafkalog_cli.exit_codes import Condition
from kafkalog_cli.failures import HungUp, Terminated, advice_for, condition_of, report
from kafkalog_cli.output import ReaderGone

PLACE = Location("/kafka/t-0/0.log", position=61)


@pytest.mark.parametrize(
    ("error", "condition"),
    [
        (KeyboardInterrupt(), Condition.INTERRUPTED),
        (Terminated(), Condition.TERMINATED),
        (HungUp(), Condition.HUNG_UP),
        (ReaderGone(), Condition.READER_GONE),
        (OutputExists("x", PLACE), Condition.REFUSED),
        (OutputInsideSource("x", PLACE), Condition.REFUSED),
        (OutputError("x", PLACE), Condition.OUTPUT_FAILED),
        (InvalidRecord("x", PLACE), Condition.DAMAGE),
        (UnreadableFile("x", PLACE), Condition.INCOMPLETE),
        (UnsupportedError("x", PLACE), Condition.INCOMPLETE),
        (LimitExceeded("x", PLACE), Condition.INCOMPLETE),
        (OSError(errno.EIO, "x"), Condition.INCOMPLETE),
        (NotALogDir("x", PLACE), Condition.USAGE),
        (InputError("x", PLACE), Condition.USAGE),
        (typer.BadParameter("x"), Condition.USAGE),
        (KeyError("x"), Condition.BUG),
    ],
    ids=lambda each: type(each).__name__ if isinstance(each, BaseException) else each.value,
)
def test_conditions(error: BaseException, condition: Condition) -> None:
    assert condition_of(error) is condition


def test_a_message_names_the_place_and_what_to_try(capsys: pytest.CaptureFixture[str]) -> None:
    report(LimitExceeded("too large", PLACE))
    first, second = capsys.readouterr().err.splitlines()
    assert first.startswith("kafkalog: /kafka/t-0/0.log")
    assert "too large" in first
    assert second == f"  {advice_for(LimitExceeded('too large', PLACE))}"


def test_advice_comes_from_the_table_of_findings_where_it_has_the_code() -> None:
    error = InvalidRecord("x", PLACE)
    assert advice_for(error) == FINDING_CODES[error.code].next_step
    assert "log directory" in advice_for(NotALogDir("x", PLACE))


def test_the_advice_for_an_output_without_its_directory_is_to_make_that(tmp_path: Path) -> None:
    missing = tmp_path / "to day" / "logs"
    assert (
        advice_for(OutputError("x", Location(str(missing / "t-0"))))
        == f"Make the directory first: mkdir -p '{missing}'"
    )
    assert "free space" in advice_for(OutputError("x", Location(str(tmp_path / "t-0"))))
    assert "free space" in advice_for(OutputError("x", Location("<stdout>")))


def test_an_error_of_the_system_has_its_words(capsys: pytest.CaptureFixture[str]) -> None:
    report(OSError(errno.EACCES, "Permission denied", "/x\x1b"))
    assert capsys.readouterr().err == "kafkalog: /x\\x1b: Permission denied\n"


def test_nothing_is_said_to_a_reader_that_has_gone(capsys: pytest.CaptureFixture[str]) -> None:
    report(ReaderGone())
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("is_debugging", [False, True])
def test_a_bug_asks_for_a_report(
    is_debugging: bool, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KAFKALOG_DEBUG", "1" if is_debugging else "0")
    report(KeyError("a\nb"))
    words = capsys.readouterr().err
    assert words.startswith("kafkalog: internal error: KeyError: 'a\\nb'\n")
    assert ("This is a bug" in words) is not is_debugging
