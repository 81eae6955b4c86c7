"""kafkalog doctor as a user runs it: what it prints, its exit status, and commands that run as printed."""

from __future__ import annotations

import json
import shlex
import shutil
from pathlib import Path
from typing import Any

import pytest

from format.columns import DIAGNOSIS
from format.verbs.bundle.verify_bundle import NOT_CHECKED
from kafkalog_cli.commands import doctor
from kafkalog_cli.main import main
from tests.building import BASE_TIMESTAMP, batch, batches
from tests.format.verbs.diff.building_replicas import ModelReplica, plain
from tests.format.verbs.doctor.looking import node
from tests.format.verbs.groups.commit_logs import batches_of, commit
from tests.format.verbs.txns.transaction_logs import data
from tests.metadata_logs import write_metadata_log, write_node

WHOLE = "records and all files beside them."


class Printed:
    """One run: its exit status, and what it printed."""

    def __init__(self, capfd: pytest.CaptureFixture[str], *words: str | Path) -> None:
        capfd.readouterr()
        self.code = main(["doctor", *map(str, words)])
        self.out, self.err = capfd.readouterr()

    @property
    def rows(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.out.splitlines()]


def test_a_healthy_node_is_one_line(data_dir: Path, capfd: pytest.CaptureFixture[str]) -> None:
    run = Printed(capfd, data_dir / "kafka-4.3-single" / "node-1")
    assert (run.code, run.err) == (0, "")
    assert run.out == f"doctor: nothing wrong found in 1 node, 24 partitions: {WHOLE}\n"
    run = Printed(capfd, "--format", "jsonl", data_dir / "kafka-4.3-single" / "node-1")
    assert [each["type"] for each in run.rows] == ["summary"]
    assert run.rows[0]["complete"] is True


def test_nothing_wrong_in_the_rest_is_said_of_the_rest(
    data_dir: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    node = data_dir / "kafka-4.3-single" / "node-1"
    (tmp_path / "meta.properties").write_bytes((node / "meta.properties").read_bytes())
    (tmp_path / "sensor-0").symlink_to(node / "sensor-0")
    run = Printed(capfd, tmp_path)
    assert run.code == 3
    assert run.out.startswith("doctor: not all was read; nothing wrong found in the rest of 1 node, 0 partitions")


def test_replicas_that_diverge(data_dir: Path, capfd: pytest.CaptureFixture[str]) -> None:
    nodes = [data_dir / "kafka-4.3" / f"node-{number}" for number in (1, 2)]
    run = Printed(capfd, *nodes)
    assert run.code == 1
    head, rest = run.out.split("\n\n")
    lines = head.splitlines()
    assert lines[0].startswith("1  error   ledger-0: Its replicas diverge from offset 1250 on. Elect node 2")
    assert "node 1 loses 500 committed offsets (1250 to 1749)" in lines[0]
    assert lines[1] == f"           {nodes[1] / 'ledger-0'} at offset 1250"
    assert lines[2] == f"           next: kafkalog diff {nodes[0] / 'ledger-0'} {nodes[1] / 'ledger-0'}"
    assert rest.splitlines()[0] == f"doctor: 2 nodes, 2 partitions (3 replicas): {WHOLE}"
    assert rest.splitlines()[1].startswith("Not known: ")


def test_a_directory_that_is_to_be_deleted_is_no_replica(
    data_dir: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    orders = data_dir / "kafka-4.3-single" / "node-1" / "orders-0"
    for name in ("orders-0", f"orders-0.{32 * '0'}-delete"):
        shutil.copytree(orders, tmp_path / name)
    assert " in 1 log directory, 1 partition: " in Printed(capfd, tmp_path).out


def test_rows_and_deep(data_dir: Path, capfd: pytest.CaptureFixture[str]) -> None:
    nodes = [data_dir / "kafka-4.3" / f"node-{number}" for number in (1, 2)]
    run, deep = (Printed(capfd, "--format", "jsonl", *more, *nodes) for more in ((), ("--deep",)))
    assert run.code == deep.code == 1
    assert tuple(run.rows[0])[1:] == DIAGNOSIS.names
    assert run.rows[0] == deep.rows[0]
    assert run.rows[-1]["conditions"] == ["difference-found"]


def test_the_threshold(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    torn = node(tmp_path / "node-1", {"orders-0": {0: [b"".join(batches(4))[:-10]]}})
    assert Printed(capfd, torn).code == 0
    assert Printed(capfd, "--fail-on", "warning", torn).code == 1


def test_a_file_is_refused(data_dir: Path, capfd: pytest.CaptureFixture[str]) -> None:
    log = next((data_dir / "kafka-4.3-single" / "node-1" / "orders-0").glob("*.log"))
    run = Printed(capfd, log)
    assert run.code == 2
    assert "whole logs" in run.err


def sick_nodes(folder: Path) -> list[Path]:
    """Two nodes with a trouble of many kinds, in a directory whose name a shell would take apart."""
    content = bytearray(b"".join(batches(4)))
    content[90] ^= 1
    late = batch(3, timestamp=4_000_000_000_000)
    logs = {
        "damaged-0": {0: [bytes(content)]},
        "torn-0": {0: [b"".join(batches(4))[:-10]]},
        "short-0": {0: batches(4)},
        "open-0": {0: [data(0, 7, time=BASE_TIMESTAMP), batch(2, timestamp=BASE_TIMESTAMP + 10**7)]},
        "late-0": {0: [batch(0)], 3: [late], 6: [batch(6)]},
        "orders-0": {0: batches(2)},
        "twice-0": {0: [batch(number * 3, timestamp=BASE_TIMESTAMP) for number in range(2)]},
        "__consumer_offsets-7": {0: batches_of((commit("it's", 0, 99), None))},
    }
    return [
        node(folder / "node 1", logs, node_id=1, marks={"short-0": 90}, is_clean=False),
        node(folder / "node 2", {"damaged-0": {0: batches(4)}, "short-0": {0: batches(9)}}, node_id=2),
    ]


def test_commands_run_as_printed(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    run = Printed(capfd, "--deep", "--format", "jsonl", *sick_nodes(tmp_path / "a 'b'"))
    rows = run.rows[:-1]
    found = {row["code"] for row in rows}
    assert found >= {
        "records-damaged", "records-lost", "tail-torn", "transaction-open", "retention-held", "group-out-of-range",
        "records-twice",
    }  # fmt: skip
    for command in sorted({row["command"] for row in rows}):
        words = shlex.split(command)
        assert words[0] == "kafkalog"
        assert main(words[1:]) in (0, 1, 3), command


@pytest.mark.slow
def test_commands_for_a_bundle_run_as_printed(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["bundle", *map(str, sick_nodes(tmp_path)), "--output", "sick.tar.zst"]) in (0, 1)
    capfd.readouterr()
    rows = Printed(capfd, "--format", "jsonl", Path("sick.tar.zst")).rows
    assert NOT_CHECKED in rows[-1]["not_checked"]
    commands = {row["command"] for row in rows[:-1]}
    assert commands
    for command in sorted(commands):
        assert main(shlex.split(command)[1:]) in (0, 1, 3), command


def test_the_command_for_a_refused_start_gives_the_same_reason(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    log_dir = node(tmp_path / "node-1", {"orders-0": {0: batches(2)}}, node_id=1)
    (log_dir / "no-number-dir").mkdir()
    [row] = Printed(capfd, "--format", "jsonl", log_dir).rows[:-1]
    assert row["code"] == "start-refused"
    assert shlex.split(row["command"]) == ["kafkalog", "boot", str(log_dir)]
    assert main(shlex.split(row["command"])[1:]) == 1
    assert "'no-number-dir' is not in the form of" in capfd.readouterr().out


def test_conditions_of_fail_on(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """A condition is met by the diagnosis of its verb, whatever its severity, and by no other diagnosis."""
    commits = {0: batches_of((commit("billing", 0, 25), None))}
    group = node(tmp_path / "group", {"orders-0": {0: batches(4)}, "__consumer_offsets-7": commits})
    codes = {word: Printed(capfd, group, "--fail-on", word).code for word in ("error", "out-of-range", "hanging")}
    assert codes == {"error": 0, "out-of-range": 1, "hanging": 0}
    ModelReplica(plain(5), 15).write(tmp_path / "a")
    ModelReplica(plain(7), 21).write(tmp_path / "ahead")
    ModelReplica([*plain(3), *plain(2, first=9, epoch=1, tag="x")], 15).write(tmp_path / "other")
    codes = {name: Printed(capfd, tmp_path / "a", tmp_path / name).code for name in ("ahead", "other")}
    assert codes == {"ahead": 1, "other": 1}
    words = ("--fail-on", "diverged")
    codes = {name: Printed(capfd, tmp_path / "a", tmp_path / name, *words).code for name in ("ahead", "other")}
    assert codes == {"ahead": 0, "other": 1}


def damaged_at(*places: int) -> bytes:
    content = bytearray(b"".join(batches(4)))
    for place in places:
        content[place] ^= 1
    return bytes(content)


def test_a_command_for_two_damaged_replicas_is_shown_once(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Each lacks what the other one has: one merge mends both."""
    for node_id, place in ((1, 90), (2, len(damaged_at()) - 1)):
        node(tmp_path / f"node-{node_id}", {"orders-0": {0: [damaged_at(place)]}}, node_id=node_id)
    nodes = [tmp_path / "node-1", tmp_path / "node-2"]
    rows = [each for each in Printed(capfd, "--deep", "--format", "jsonl", *nodes).rows if each["type"] == "diagnosis"]
    merge = f"kafkalog salvage --merge {nodes[0]}/orders-0 {nodes[1]}/orders-0 --output orders-0.merged"
    assert [each["command"] for each in rows if each["code"] == "records-damaged"] == [merge, merge]
    printed = Printed(capfd, "--deep", *nodes).out
    assert (printed.count(merge), printed.count("next: the command of 1\n")) == (1, 1)


@pytest.mark.parametrize("replicas", [(1,), (1, 2)])
def test_salvage_waits_for_the_replicas_that_were_not_given(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], replicas: tuple[int, ...]
) -> None:
    here = write_node(tmp_path / "node-1", 1)
    ModelReplica(plain(12), damaged={4}).write(here)
    write_metadata_log(here, replicas=replicas, isr=replicas)
    rows = Printed(capfd, "--format", "jsonl", "--deep", here).rows
    [found] = [each for each in rows if each.get("code") == "records-damaged"]
    is_said = "Give their log directories too, before salvage" in found["sentence"]
    assert is_said == (len(replicas) > 1)
    assert found["command"].split()[1] == ("verify" if is_said else "salvage")


@pytest.mark.parametrize("width", [60, 80, 120])
def test_lines_fit_a_terminal(tmp_path: Path, capfd: pytest.CaptureFixture[str], width: int) -> None:
    """All but evidence and commands, which are copied."""
    from format.findings import Severity
    from format.verbs.doctor.diagnosis import Diagnosis

    words = "long words follow " * 20
    made = Diagnosis(12, Severity.WARNING, "verify", "orders-0", words, "/x" * 60, 12345, "kafkalog " + "x" * 99, "c")
    lines = list(doctor._lines(made, {made.command or "": 12}, width))
    assert lines[-3:] == [f"           {'/x' * 60} at offset 12345", f"           next: kafkalog {'x' * 99}", ""]
    assert max(map(len, lines[:-3])) <= width
    assert lines[0].startswith("12 warning orders-0: long words")
    assert all(line.startswith(" " * 11) for line in lines[1:-3])
