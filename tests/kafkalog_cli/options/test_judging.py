"""The severity that fails a run, for every command that has findings."""

from __future__ import annotations

import shutil

import pytest
import typer
from typer.main import get_command

from format.findings import Severity, finding
from format.location import Location
from kafkalog_cli import main as program
from kafkalog_cli.command_table import COMMANDS
from kafkalog_cli.options import output as options
from kafkalog_cli.runner import Run
from tests.building import batch, batches, write_segment


def test_severities():
    assert [options.parse_severity(each.label) for each in Severity] == list(Severity)
    assert options.parse_severity(Severity.INFO) is Severity.INFO
    for text in ("ERROR", "1", "", "worse"):
        with pytest.raises(typer.BadParameter):
            options.parse_severity(text)


def test_the_threshold_is_error_unless_given():
    assert options.Judging().fail_on is Severity.ERROR


#: For each command with --fail-on, the words of a run over a partition; {} is where something new may be written, and
#: {copy} another replica.
RUNS = {
    "ls": (),
    "dump": (),
    "find": ("--max-timestamp",),
    "grep": ("--all",),
    "verify": (),
    "recompress": ("--codec", "gzip", "--output", "{}"),
    "recompress --estimate": (),
    "recompress --explain": ("--codec", "gzip"),
    "salvage": ("--output", "{}"),
    "rebuild-index": ("--output", "{}"),
    "extract": ("--to", "csv", "--output", "{}"),
    "redact": ("--mode", "fill", "--output", "{}"),
    "txns": (),
    "producers": (),
    "metadata": (),
    "groups": (),
    "compaction": (),
    "retention": (),
    "diff": ("{copy}",),
    "doctor": ("--deep",),
    "report": ("--format", "json", "--output", "{}"),
    "bundle": ("--no-report", "--output", "{}.tar.zst"),
}
#: Commands that answer from a whole log directory.
OF_A_LOG_DIR = {"metadata", "groups"}


def test_every_command_with_the_option_is_here():
    app = get_command(program.app)
    with_option = {
        entry.name
        for entry in COMMANDS
        if any("--fail-on" in each.opts for each in app.get_command(None, entry.name).params)
    }
    assert with_option == {name.split()[0] for name in RUNS} | {"dump-log"}


@pytest.mark.parametrize("severity", Severity, ids=lambda each: each.label)
@pytest.mark.parametrize("command", RUNS)
def test_every_command_judges_by_the_severity_that_was_given(command, severity, data_dir, tmp_path, monkeypatch):
    judged = []
    monkeypatch.setattr(
        "kafkalog_cli.runner.conditions_of", lambda found, fail_on: judged.append(fail_on) or frozenset()
    )
    leave = Run.__exit__

    def leave_with_a_finding(self, kind, error, trace):
        if error is None:
            self.finding(finding("offset-gap", Location("x"), "a gap"))
        return leave(self, kind, error, trace)

    monkeypatch.setattr(Run, "__exit__", leave_with_a_finding)
    log_dir = data_dir / "kafka-4.3-single" / "node-1"
    source = log_dir if command in OF_A_LOG_DIR else log_dir / "sensor-0"
    copy = tmp_path / "copy" / source.name
    if "{copy}" in RUNS[command]:
        shutil.copytree(source, copy)
    words = [word.format(tmp_path / "out", copy=copy) for word in RUNS[command]]
    assert program.main([*command.split(), str(source), *words, "--fail-on", severity.label]) == 0
    assert judged
    assert set(judged) == {severity}


@pytest.mark.parametrize("severity", Severity, ids=lambda each: each.label)
def test_dump_log_judges_by_the_severity_that_was_given(severity, tmp_path, monkeypatch):
    judged = []
    monkeypatch.setattr(
        "kafkalog_cli.commands.dump_log.conditions_of", lambda found, fail_on: judged.append(fail_on) or frozenset()
    )
    log = write_segment(tmp_path / "t-0", 0, [*batches(2), b"\x01"])
    assert program.main(["dump-log", "--files", str(log), "--fail-on", severity.label]) == 0
    assert judged == [severity]


def test_info_fails_a_run_that_error_lets_pass(tmp_path):
    """INFO is 0, which is no reason to take it for nothing given."""
    partition = tmp_path / "t-0"
    write_segment(partition, 0, [*batches(1), batch(base_offset=1000)])
    codes = [program.main(["verify", str(partition), *words]) for words in ((), ("--fail-on", "info"))]
    assert codes == [0, 1]
