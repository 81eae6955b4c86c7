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
from tests.format.verbs.diff.building_replicas import ModelReplica, plain


def test_severities():
    assert [options.parse_severity(each.label) for each in Severity] == list(Severity)
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
    "sql": ("--tables",),
    "verify": (),
    "scrub": ("--once", "--state", "{}.db"),
    "recompress": ("--codec", "gzip", "--output", "{}"),
    "recompress --estimate": (),
    "recompress --explain": ("--codec", "gzip"),
    "salvage": ("--output", "{}"),
    "rebuild-quorum": ("--dry-run", "--force"),
    "rebuild-index": ("--output", "{}"),
    "extract": ("--to", "csv", "--output", "{}"),
    "redact": ("--mode", "fill", "--output", "{}"),
    "txns": (),
    "producers": (),
    "metadata": (),
    "quorum": (),
    "groups": (),
    "compaction": (),
    "retention": (),
    "diff": ("{copy}",),
    "doctor": ("--deep",),
    "report": ("--format", "json", "--output", "{}"),
    "bundle": ("--no-report", "--output", "{}.tar.zst"),
}
#: Commands that answer from a whole log directory.
OF_A_LOG_DIR = {"metadata", "quorum", "groups", "rebuild-quorum"}


def test_every_command_with_the_option_is_here():
    app = get_command(program.app)
    with_option = {
        entry.name
        for entry in COMMANDS
        if any("--fail-on" in each.opts for each in app.get_command(None, entry.name).params)
    }
    assert with_option == {name.split()[0] for name in RUNS} | {"dump-log"}


def test_help_names_only_the_conditions_that_a_command_knows():
    app = get_command(program.app)
    helps = {
        entry.name: each.help
        for entry in COMMANDS
        for each in app.get_command(None, entry.name).params
        if "--fail-on" in each.opts
    }
    named = {name: {each.name for each in options.FAIL_CONDITIONS if each.name in help} for name, help in helps.items()}
    assert {name: words for name, words in named.items() if words} == {
        "txns": {"hanging"}, "groups": {"out-of-range", "lag"}, "verify": {"misplaced"}, "diff": {"diverged"},
        "doctor": {"hanging", "out-of-range", "diverged"},
    }  # fmt: skip


@pytest.mark.parametrize("command", RUNS)
def test_every_command_judges_by_the_severity_that_was_given(command, data_dir, tmp_path, monkeypatch):
    """INFO is not the default, and is 0: a command takes it neither for another nor for nothing given."""
    judged = []
    monkeypatch.setattr("os.nice", lambda by: by)  # scrub would make the rest of the tests wait
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
    assert program.main([*command.split(), str(source), *words, "--fail-on", "info"]) == 0
    assert judged
    assert set(judged) == {Severity.INFO}


def test_dump_log_judges_by_the_severity_that_was_given(tmp_path, monkeypatch):
    judged = []
    monkeypatch.setattr(
        "kafkalog_cli.commands.dump_log.conditions_of", lambda found, fail_on: judged.append(fail_on) or frozenset()
    )
    log = write_segment(tmp_path / "t-0", 0, [*batches(2), b"\x01"])
    assert program.main(["dump-log", "--files", str(log), "--fail-on", "info"]) == 0
    assert judged == [Severity.INFO]


def test_info_fails_a_run_that_error_lets_pass(tmp_path):
    """INFO is 0, which is no reason to take it for nothing given."""
    partition = tmp_path / "t-0"
    write_segment(partition, 0, [*batches(1), batch(base_offset=1000)])
    codes = [program.main(["verify", str(partition), *words]) for words in ((), ("--fail-on", "info"))]
    assert codes == [0, 1]


def test_values_are_a_list_or_repeated():
    severity, conditions = options.parse_fail_on(["error,warning", "lag:20", "out-of-range"])
    assert severity is Severity.WARNING
    assert [(each.name, each.least) for each in conditions] == [("lag", 20), ("out-of-range", 0)]
    judging = options.Judging(["hanging"])
    assert (judging.fail_on, judging.is_on("hanging"), judging.is_on("lag")) == (Severity.ERROR, True, False)
    assert (judging.is_met_by_diagnosis("transaction-hangs"), judging.is_met_by_diagnosis("replicas-diverge")) == (
        True,
        False,
    )
    assert not options.Judging(["lag:1"]).is_met_by_diagnosis("")


@pytest.mark.parametrize("text", ["lag", "lag:", "lag:-1", "lag:x", "hanging:1", "hanging,", "", "late"])
def test_no_value(text):
    with pytest.raises(typer.BadParameter):
        options.parse_fail_on([text])


@pytest.mark.parametrize("condition", options.FAIL_CONDITIONS, ids=lambda each: each.name)
@pytest.mark.parametrize("command", [name for name in RUNS if " " not in name])
def test_a_command_that_cannot_know_a_condition_names_the_one_that_can(command, condition, tmp_path, capsys):
    word = f"{condition.name}:1" if condition.takes_number else condition.name
    write_segment(tmp_path / "t-0", 0, batches(1))
    words = [each.format(tmp_path / "out", copy=tmp_path) for each in RUNS[command]]
    code = program.main([command, str(tmp_path / "t-0"), *words, "--fail-on", word, "-q"])
    refusal = f"kafkalog {condition.command} does" in " ".join(capsys.readouterr().err.split())
    is_diagnosed = command == "doctor" and condition.diagnosis != ""
    assert refusal == (command != condition.command and not is_diagnosed)
    assert not refusal or code == 2


def code_of(*words):
    return program.main([*map(str, words), "--quiet"])


def test_the_lag_of_a_group_fails_a_run(data_dir):
    node = data_dir / "kafka-4.3-single" / "node-1"
    assert [code_of("groups", node, "--fail-on", each) for each in ("lag:234", "lag:235", "out-of-range")] == [1, 0, 0]


@pytest.mark.parametrize("word", ["lag:0", "out-of-range"])
def test_an_unknown_lag_is_no_lag_within_bounds(word, data_dir, tmp_path):
    """The logs of the topics are not at hand."""
    node = data_dir / "kafka-4.3-single" / "node-1"
    for each in node.glob("__consumer_offsets-*"):
        shutil.copytree(each, tmp_path / "node" / each.name)
    assert code_of("groups", tmp_path / "node") == 0
    assert code_of("groups", tmp_path / "node", "--fail-on", word) == 3


@pytest.mark.parametrize(
    ("name", "values", "is_met", "is_unknown"),
    [
        ("lag", {"total_lag": 0, "partitions_without_lag": 0}, False, False),
        ("lag", {"total_lag": 1, "partitions_without_lag": 2}, True, True),
        ("lag", {"total_lag": None, "partitions_without_lag": 1}, False, True),
        ("out-of-range", {"partitions_out_of_range": 1, "partitions_without_lag": 0}, True, False),
        ("out-of-range", {"partitions_out_of_range": 0, "partitions_without_lag": 0}, False, False),
        ("hanging", {"state": "open", "is_hanging": None}, False, True),
        ("hanging", {"state": "open", "is_hanging": False}, False, False),
        ("hanging", {"state": "committed", "is_hanging": None}, False, False),
        ("diverged", {"kind": "diverged"}, True, False),
        ("diverged", {"kind": "behind"}, False, False),
    ],
)
def test_rows_that_meet_a_condition_or_leave_it_open(name, values, is_met, is_unknown):
    (condition,) = [each for each in options.FAIL_CONDITIONS if each.name == name]
    assert (condition.is_met_by(values), condition.is_unknown(values)) == (is_met, is_unknown)


def test_misplaced_needs_a_partitioner(data_dir):
    assert code_of("verify", data_dir / "kafka-4.3-single" / "node-1" / "sensor-0", "--fail-on", "misplaced") == 2


def test_misplaced_records_fail_a_run(tmp_path):
    partitions = [tmp_path / "t-0", tmp_path / "t-1"]
    for each in partitions:
        write_segment(each, 0, batches(1))  # all have the same key
    words = ("--partitioner", "murmur2", "--partitions", "2")
    codes = {code_of("verify", each, *words, "--fail-on", "misplaced") for each in partitions}
    assert codes == {0, 1}
    assert {code_of("verify", each, *words) for each in partitions} == {0}


def test_only_diverged_replicas_fail_a_run_that_asks_for_them(tmp_path):
    ModelReplica(plain(4)).write(tmp_path / "a")
    ModelReplica(plain(3)).write(tmp_path / "behind")
    ModelReplica([*plain(2), *plain(2, first=6, epoch=1, tag="b")]).write(tmp_path / "diverged")
    paths = {name: tmp_path / name / "orders-0" for name in ("behind", "diverged")}
    codes = {name: code_of("diff", tmp_path / "a" / "orders-0", path) for name, path in paths.items()}
    assert codes == {"behind": 1, "diverged": 1}
    words = ("--fail-on", "diverged")
    codes = {name: code_of("diff", tmp_path / "a" / "orders-0", path, *words) for name, path in paths.items()}
    assert codes == {"behind": 0, "diverged": 1}


@pytest.mark.parametrize(("word", "code"), [("hanging", 1), ("error", 0)])
def test_a_hanging_transaction_fails_a_run(word, code, tmp_path, monkeypatch):
    leave = Run.__exit__

    def leave_with_a_finding(self, kind, error, trace):
        if error is None:
            self.finding(finding("transaction-hanging", Location("x"), "it hangs"))
        return leave(self, kind, error, trace)

    monkeypatch.setattr(Run, "__exit__", leave_with_a_finding)
    write_segment(tmp_path / "t-0", 0, batches(1))
    assert code_of("txns", tmp_path / "t-0", "--fail-on", word) == code
