"""Progress: silent where nobody looks, there and gone again where somebody does."""

from __future__ import annotations

import io
from contextlib import closing, redirect_stderr

import pytest
import typer

from format.io.session import Session
from kafkalog_cli import progress as progress_module
from kafkalog_cli import runner
from kafkalog_cli.main import main
from kafkalog_cli.options.output import Judging, RowOutput
from kafkalog_cli.progress import Progress, TerminalProgress, open_progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def terminal(monkeypatch):
    """Where standard error goes inside ``redirect_stderr``; pytest would undo a change made here."""
    stream = Terminal()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(progress_module, "_DELAY_S", 0)
    monkeypatch.setattr(progress_module, "_INTERVAL_S", 0)
    return stream


def test_silent_without_a_terminal():
    with redirect_stderr(io.StringIO()):
        assert type(open_progress("verify", 10)) is Progress


@pytest.mark.parametrize("term", ["dumb", ""])
def test_silent_on_a_dumb_terminal(terminal, monkeypatch, term):
    monkeypatch.setenv("TERM", term)
    with redirect_stderr(terminal):
        assert type(open_progress("verify", 10)) is Progress


def test_silent_when_not_wanted_or_without_standard_error(terminal):
    with redirect_stderr(terminal):
        assert type(open_progress("verify", 10, is_wanted=False)) is Progress
    with redirect_stderr(None):
        assert type(open_progress("verify", 10)) is Progress


def test_bytes_rate_and_time_left(terminal):
    with redirect_stderr(terminal):
        with closing(open_progress("ver[red]ify", 4 * 1024 * 1024)) as progress:
            assert isinstance(progress, TerminalProgress)
            progress.advance(1024 * 1024)
            progress.advance(1024 * 1024)
            progress.hide()
            progress.advance(1)
        shown = terminal.getvalue()
        progress.advance(10**9)
    assert "ver[red]ify" in shown
    assert "2.0/4.0 MiB" in shown
    assert shown.endswith("\x1b[2K"), "the bar stays on the screen"
    assert terminal.getvalue() == shown


def test_short_work_shows_nothing(terminal, monkeypatch):
    monkeypatch.setattr(progress_module, "_DELAY_S", 60)
    with redirect_stderr(terminal), closing(open_progress("verify", None)) as progress:
        progress.advance(1)
    assert terminal.getvalue() == ""


def test_an_unknown_total(terminal):
    with redirect_stderr(terminal), closing(open_progress("verify", None)) as progress:
        progress.advance(3)
    assert "verify" in terminal.getvalue()


def test_bytes_are_counted_only_where_they_are_shown(terminal):
    with redirect_stderr(io.StringIO()):
        assert type(open_progress("verify", lambda: pytest.fail("counted"))) is Progress
    with redirect_stderr(terminal), closing(open_progress("verify", lambda: 2 * 1024 * 1024)) as progress:
        progress.advance(1024 * 1024)
    assert "1.0/2.0 MiB" in terminal.getvalue()


def test_verify_tells_how_far_it_is(terminal, data_dir, tmp_path):
    source = data_dir / "kafka-4.3-single" / "node-1" / "orders-0"
    with redirect_stderr(terminal):
        assert main(["verify", str(source), "--output", str(tmp_path / "findings")]) == 0
    assert "112.6/112.6 KiB" in terminal.getvalue()


def test_what_tasks_list_in_a_store_is_not_listed_here_for_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    totals: list[object] = []

    def opened(description: str, total_bytes: object, *, is_wanted: bool) -> Progress:
        totals.append(total_bytes)
        return Progress()

    monkeypatch.setattr(runner, "open_progress", opened)
    given = [(None, []), (object(), []), (None, ["s3://bucket/node"]), (object(), ["s3://bucket/node"])]
    for cluster, addresses in given:
        session = Session()
        session.cluster = cluster
        if addresses:
            session.stores.give(addresses)
        with pytest.raises(typer.Exit), runner.Run("verify", RowOutput(session=session), Judging()) as run:
            run.progress(_no_total)
    assert totals == [_no_total, _no_total, _no_total, None]


def _no_total() -> int:
    raise AssertionError
