"""kafkalog metadata as a user runs it: rows, the sentence, exit codes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from format.columns import ASSIGNMENT, METADATA_CHANGE, SCHEMA_VERSION, TOPIC
from format.verbs.metadata.changes import KINDS
from kafkalog_cli.commands.metadata import CHANGE_KINDS
from tests.building import BASE_TIMESTAMP
from tests.format.decoding.registry_log import deletion, registry_batches, schema, write_node
from tests.running import Run

Kafkalog = Callable[..., Run]


@pytest.fixture
def kafkalog(run_kafkalog_many: Callable[..., list[Run]]) -> Kafkalog:
    """One run of the program, in a fork: quicker than a process of its own."""
    return lambda *arguments: run_kafkalog_many([("metadata", *arguments)])[0]


@pytest.fixture
def node(data_dir: Path) -> Path:
    return data_dir / "trials" / "metadata" / "node-1"


def test_rows(kafkalog: Kafkalog, node: Path) -> None:
    run = kafkalog("--format", "jsonl", node).check(0)
    assert {tuple(row)[1:] for row in run.rows("topic")} == {TOPIC.names}
    assert {tuple(row)[1:] for row in run.rows("assignment")} == {ASSIGNMENT.names}
    [image] = run.rows("image")
    assert image["node_id"] == 1
    assert image["last_offset"] > image["start_offset"] > 0
    for kind in ("broker", "config", "feature", "acl", "quota", "credential"):
        assert run.rows(kind)
    assert run.summary["not_checked"]
    assert run.stderr.startswith("The metadata of cluster ")


def test_one_topic(kafkalog: Kafkalog, node: Path) -> None:
    run = kafkalog("--format", "jsonl", "--topic", "orders", node).check(0)
    assert {row["topic"] for row in run.rows("assignment")} == {"orders"}
    assert not run.rows("broker")
    run = kafkalog("--topic", "order", node).check(1)
    assert "There is no topic order in the metadata." in run.stdout


def test_history(kafkalog: Kafkalog, node: Path) -> None:
    run = kafkalog("--format", "jsonl", "--history", node).check(0)
    changes = run.rows("metadata_change")
    assert {tuple(row)[1:] for row in changes} == {METADATA_CHANGE.names}
    assert [row["offset"] for row in changes] == sorted(row["offset"] for row in changes)
    middle = changes[len(changes) // 2]["timestamp"]
    later = (
        kafkalog("--format", "jsonl", "--history", "--from-time", str(middle), node).check(0).rows("metadata_change")
    )
    assert later == [row for row in changes if row["timestamp"] >= middle]
    none = kafkalog("--history", "--from-time", "2027-01-01", node).check(0)
    assert none.stdout.splitlines()[1] == "Nothing changed from 2027-01-01T00:00:00.000Z on."


def test_changes_of_one_kind(kafkalog: Kafkalog, node: Path) -> None:
    options = ("--history", "--kind", "broker", "--kind", "acl")
    run = kafkalog("--format", "jsonl", *options, node).check(0)
    assert {row["subject"].split()[0] for row in run.rows("metadata_change")} == {"broker", "acl"}
    run = kafkalog("--format", "table", *options, node).check(0)
    words = run.stdout.splitlines()[-1]
    assert "ALLOW User:alice READ TOPIC orders LITERAL *" in words
    assert words.endswith("· broker 3 registered, away 05:22:41–05:23:04 · broker 2 registered.")
    kafkalog("--kind", "broker", node).check(2)
    kafkalog("--history", "--kind", "brokers", node).check(2)
    assert frozenset(CHANGE_KINDS) == KINDS.keys()


def test_people_read_what_is_odd_and_the_rest_counted(kafkalog: Kafkalog, node: Path) -> None:
    run = kafkalog("--format", "table", node).check(0)
    lines = run.stdout.splitlines()
    assert lines[0].startswith("The metadata of cluster ")
    assert "orders             1 " in run.stdout
    assert "users              1 " not in run.stdout  # has a leader, and its replicas are in sync
    assert "retention.ms" not in run.stdout
    assert (
        "Not listed: 2 partitions in sync, 8 configs, 6 features, 2 ACLs, 2 quotas and 1 credential "
        "(--every-row lists them)."
    ) in lines
    assert run.stdout.count("--every-row") == 1
    every = kafkalog("--format", "table", "--every-row", node).check(0).stdout
    assert "users              1 " in every
    assert "retention.ms" in every
    assert "Not listed" not in every
    topic = kafkalog("--format", "table", "--topic", "users", node).check(0).stdout
    assert "cleanup.policy" in topic
    assert "Not listed" not in topic


def test_people_read_a_history_by_subject(kafkalog: Kafkalog, node: Path) -> None:
    folded = kafkalog("--format", "table", "--history", node).check(0).stdout.splitlines()
    assert len(folded) < 50
    assert folded[-1].startswith("91 changes from 2026-11-22T05:22:13.174Z to 2026-11-22T05:23:25.717Z: ")
    every = kafkalog("--format", "table", "--history", "--every-row", node).check(0).stdout.splitlines()
    assert len(every) > 91


def test_no_such_topic(kafkalog: Kafkalog, node: Path) -> None:
    """Where the exit status is that of nothing found, as the help says."""
    run = kafkalog("--format", "jsonl", "--topic", "no-such-topic", node).check(1)
    assert "There is no topic no-such-topic in the metadata." in run.stderr
    assert "The exit status is 1 if the topic of --topic is not there." in " ".join(
        kafkalog("--help").check(0).stdout.split()
    )


def test_before_the_first_record(kafkalog: Kafkalog, node: Path) -> None:
    run = kafkalog("--format", "jsonl", "--at", "2001-01-01", node).check(0)
    assert not run.rows("topic")
    assert "holds no record up to that point" in run.stderr


def test_mistakes(kafkalog: Kafkalog, node: Path, data_dir: Path) -> None:
    kafkalog("--from-time", "now", node).check(2)
    run = kafkalog(data_dir / "kafka-4.3" / "node-2").check(2)
    assert "there is no __cluster_metadata-0" in run.stderr


def test_a_quorum_of_one_has_committed_its_last_records(kafkalog: Kafkalog, data_dir: Path) -> None:
    run = kafkalog("--format", "jsonl", data_dir / "kafka-4.3-single" / "node-1").check(0)
    assert run.summary["not_checked"] == []


@pytest.fixture
def registry(tmp_path: Path) -> Path:
    records = [
        ({"keytype": "CONFIG", "subject": None, "magic": 0}, {"compatibilityLevel": "FULL"}),
        schema("orders-value", 1, 1, '"int"'),
        schema("orders-value", 2, 2, '"long"', references=[{"name": "T", "subject": "t", "version": 3}]),
        schema("a-key", 1, 3, "{}", "JSON"),
        deletion("orders-value", 1),
    ]
    return write_node(tmp_path / "node", registry_batches(records))


def test_schemas(kafkalog: Kafkalog, registry: Path) -> None:
    run = kafkalog("--format", "jsonl", "--schemas", registry).check(0)
    rows = run.rows("schema_version")
    assert {tuple(row)[1:] for row in rows} == {SCHEMA_VERSION.names}
    assert [(row["subject"], row["version"], row["id"], row["kind"], row["state"]) for row in rows] == [
        ("a-key", 1, 3, "json-schema", "active"),
        ("orders-value", 1, 1, "avro", "deleted"),
        ("orders-value", 2, 2, "avro", "active"),
    ]
    assert rows[2]["references"] == [{"name": "T", "subject": "t", "version": 3}]
    assert {row["compatibility"] for row in rows} == {"FULL"}
    assert run.stderr.startswith("The schema registry has 2 subjects with 3 versions, of which 1 deleted.")
    shown = kafkalog("--format", "table", "--schemas", registry).check(0).stdout
    assert f"Which values they decode: kafkalog verify --values {registry}" in run.stderr
    assert "deleted" in shown
    assert "guid" not in shown


def test_schemas_as_of_a_time(kafkalog: Kafkalog, registry: Path) -> None:
    run = kafkalog("--format", "jsonl", "--schemas", "--at", str(BASE_TIMESTAMP + 2000), registry).check(0)
    assert {row["state"] for row in run.rows("schema_version")} == {"active"}
    run = kafkalog("--schemas", "--at", "2001-01-01", registry).check(2)
    assert "there are no schemas here" in run.stderr


def test_what_schemas_cannot_be_used_with(kafkalog: Kafkalog, registry: Path, node: Path, tmp_path: Path) -> None:
    for option in (("--history",), ("--topic", "orders"), ("--at-offset", "5")):
        run = kafkalog("--schemas", *option, registry).check(2)
        assert f"{option[0]} cannot be used with --schemas" in " ".join(run.stderr.split())
    assert "there are no schemas here" in kafkalog("--schemas", node).check(2).stderr
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "a.avsc").write_text('"int"')
    assert "but no records of _schemas" in kafkalog("--schemas", tmp_path / "files").check(2).stderr


def test_damage_in_the_topic_of_the_registry(kafkalog: Kafkalog, registry: Path) -> None:
    log = registry / "_schemas-0" / "00000000000000000000.log"
    content = bytearray(log.read_bytes())
    content[len(content) // 2] ^= 1
    log.write_bytes(content)
    run = kafkalog("--format", "jsonl", "--schemas", registry).check(1)
    assert [row["code"] for row in run.rows("finding")] == ["batch-crc-mismatch"]
    assert run.rows("schema_version")
