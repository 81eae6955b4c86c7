"""A report of tables: each finding with its broker, what no run checked, and tables that are none."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install 'kafkalog[arrow]'")

import pyarrow as pa
import pyarrow.parquet as pq

import kafkalog
from format.columns import BATCH, FINDING, GROUP_OFFSET, PARTITION, RowSchema
from format.errors import UnreadableFile
from format.findings import Finding, finding
from format.location import Location
from format.rows.arrow_columns import arrow_schema, rows_batch
from format.rows.finding_rows import finding_of_row, finding_row
from format.rows.table_set import WRITTEN_RUN, directory_of, is_table_set, table_name
from format.verbs.ls.partition_listing import PartitionListing
from format.verbs.report.table_report import TableReport
from format.verbs.report.terms import Report, ReportTerms
from format.verbs.verify.verify import verify
from tests.building import batches, write_segment
from tests.kafkalog_cli.page.reports import NOW_MS, damaged_node, report_of
from tests.running import Run

pytestmark = pytest.mark.slow


def _write(root: Path, schema: RowSchema, broker_id: int | None, command: str, rows: list[Any]) -> Path:
    path = root / table_name(schema) / directory_of(broker_id) / f"{command}.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_batches([rows_batch(schema, rows)]), path)
    return path


def _ran(root: Path, broker_id: int, command: str, *, complete: bool = True) -> None:
    counts = json.dumps({"partitions": 1, "records": 7})
    conditions = "" if complete else "incomplete"
    row = (command, "1", NOW_MS + broker_id, NOW_MS, 0, complete, conditions, "", counts)
    _write(root, WRITTEN_RUN, broker_id, command, [row])


def _found(path: str) -> Finding:
    place = Location(f"{path}/{0:020d}.log", "t", 0, 0, 70, 9, 3)
    return finding("batch-crc-mismatch", place, "the CRC does not match", lost_offsets=(3, 5))


def _report(root: Path) -> Report:
    made = TableReport([str(root)], ReportTerms(NOW_MS))
    for _ in made.findings():
        pass
    return made.finish()


def test_brokers_with_directories_of_the_same_name_are_kept_apart(tmp_path: Path) -> None:
    for broker_id in (1, 2):
        _ran(tmp_path, broker_id, "verify")
        _ran(tmp_path, broker_id, "ls")
        rows = [finding_row(_found("/var/kafka/t-0"))] if broker_id == 2 else []
        _write(tmp_path, FINDING, broker_id, "verify", rows)
        _write(tmp_path, FINDING, broker_id, "ls", rows)  # a finding that both commands report counts once
        listing = PartitionListing("/var/kafka/t-0", "t", 0, None, size_bytes=900, log_size_bytes=800, batch_count=2)
        _write(tmp_path, PARTITION, broker_id, "ls", [listing.row()])
    report = _report(tmp_path)
    partitions = report.tables["report_partition"].objects()
    assert [(row["path"], row["node_id"], row["state"], row["record_count"]) for row in partitions] == [
        ("broker 2:/var/kafka/t-0", 2, "fatal", None),
        ("broker 1:/var/kafka/t-0", 1, "sound", None),
    ]
    (row,) = report.tables["finding"].objects()
    assert row["path"] == f"broker 2:/var/kafka/t-0/{0:020d}.log"
    (summary,) = report.tables["finding_summary"].objects()
    assert summary["places"].startswith("t-0 of broker 2")
    (usage,) = report.tables["topic_usage"].objects()
    assert (usage["partition_count"], usage["replica_count"], usage["size_bytes"]) == (1, 2, 1800)
    assert (usage["finding_count"], usage["batch_count"], usage["record_count"]) == (1, 4, None)
    assert report.counts["records"] == 14
    assert report.missing["divergence"].startswith("Not checked: no run of kafkalog scan diff")
    assert not report.is_incomplete


def test_findings_of_other_commands_stand_in_for_verify(tmp_path: Path) -> None:
    for command in ("ls", "dump"):
        _ran(tmp_path, 1, command, complete=command == "ls")
        _write(tmp_path, FINDING, 1, command, [finding_row(_found("/k/t-0"))])
    report = _report(tmp_path)
    assert report.severities["fatal"] == 1
    assert report.is_incomplete
    assert "broker 1: no run of kafkalog scan verify is here" in report.not_checked


def test_what_consumers_note_with_their_offsets_is_left_out(tmp_path: Path) -> None:
    _ran(tmp_path, 1, "groups")
    row = tuple("secret" if column.type == "string" else None for column in GROUP_OFFSET.columns)
    _write(tmp_path, GROUP_OFFSET, 1, "groups", [row])
    (offset,) = _report(tmp_path).tables["group_offset"].objects()
    assert (offset["group"], offset["metadata"]) == ("secret", None)


def _events(report: Report, *kinds: str) -> list[tuple[Any, ...]]:
    rows = report.tables["timeline_event"].objects()
    return sorted(tuple(row.values()) for row in rows if row["kind"] in kinds)


def test_the_time_line_has_damage_and_leader_epochs_as_in_a_report_of_the_directory(
    data_dir: Path, tmp_path: Path
) -> None:
    node = damaged_node(data_dir / "kafka-4.3-single" / "node-1", tmp_path)
    direct = report_of(node)
    tables = tmp_path / "tables"
    _ran(tables, 1, "verify")
    _write(tables, FINDING, 1, "verify", [finding_row(each) for each in verify(node)])
    for number, log in enumerate(sorted(node.glob("*/*.log"), reverse=True)):  # the order of files does not count
        path = tables / table_name(BATCH) / directory_of(1) / f"ls-{number:02d}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        batches = kafkalog.open(log).batches().table()  # with times, where tables of a run have milliseconds
        table = batches.cast(arrow_schema(BATCH, batches.schema.names))
        pq.write_table(table.append_column("path", pa.array([str(log)] * table.num_rows, pa.string())), path)
    report = _report(tables)
    expected = _events(direct, "damage", "leader_epoch")
    assert {event[1] for event in expected} == {"damage", "leader_epoch"}
    assert _events(report, "damage", "leader_epoch") == expected
    damaged = [row["timestamp"] for row in report.tables["damaged_place"].objects()]
    assert damaged == [row["timestamp"] for row in direct.tables["damaged_place"].objects()]
    assert any(damaged)


def test_bytes_by_offset_of_a_log_with_large_offsets(tmp_path: Path) -> None:
    """Offsets in a segment are relative to its base offset."""
    base_offset = 3 * 2**31
    log = write_segment(tmp_path / "node" / "t-0", base_offset, batches(4, base_offset))
    tables = tmp_path / "tables"
    _ran(tables, 1, "ls")
    listing = PartitionListing(str(log.parent), "t", 0, None, first_offset=base_offset, log_size_bytes=800)
    _write(tables, PARTITION, 1, "ls", [listing.row()])
    rows = kafkalog.open(log).batches().table()
    rows = rows.cast(arrow_schema(BATCH, rows.schema.names))
    path = tables / table_name(BATCH) / directory_of(1) / "ls.parquet"
    path.parent.mkdir(parents=True)
    pq.write_table(rows.append_column("path", pa.array([str(log)] * rows.num_rows, pa.string())), path)
    found = _report(tables).tables["bytes_by_offset"].objects()
    assert sum(each["size_bytes"] for each in found) == log.stat().st_size


def test_findings_survive_the_way_through_rows(data_dir: Path, tmp_path: Path) -> None:
    found = list(verify(damaged_node(data_dir / "kafka-4.3-single" / "node-1", tmp_path)))
    assert len(found) > 2
    assert [repr(finding_of_row(finding_row(each))) for each in found] == list(map(repr, found))


def _break_json(path: Path) -> None:
    table = pq.read_table(path, partitioning=None)
    at = table.schema.get_field_index("lost_offsets")
    pq.write_table(table.set_column(at, table.schema.field(at), [["{"]]), path)


def _break_code(path: Path) -> None:
    table = pq.read_table(path, partitioning=None)
    at = table.schema.get_field_index("code")
    pq.write_table(table.set_column(at, table.schema.field(at), [["of-tomorrow"]]), path)


def _break_type(path: Path) -> None:
    table = pq.read_table(path, partitioning=None)
    at = table.schema.get_field_index("topic")
    pq.write_table(table.set_column(at, "topic", [[7]]), path)


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (_break_json, "no JSON"),
        (_break_code, "of-tomorrow"),
        (_break_type, "the column topic is of the type int64"),
        (lambda path: path.write_bytes(b"PAR1 and no more"), "cannot be read as Parquet"),
    ],
)
def test_tables_that_are_none(tmp_path: Path, spoil: Callable[[Path], None], words: str) -> None:
    _ran(tmp_path, 1, "verify")
    spoil(_write(tmp_path, FINDING, 1, "verify", [finding_row(_found("/k/t-0"))]))
    with pytest.raises(UnreadableFile, match=words):
        _report(tmp_path)


def test_the_command(run_kafkalog_many: Callable[..., list[Run]], data_dir: Path, tmp_path: Path) -> None:
    tables, broken = tmp_path / "tables", tmp_path / "broken"
    _ran(tables, 1, "verify")
    _ran(broken, 1, "verify")
    (broken / "runs" / "broker_id=1" / "verify.parquet").write_bytes(b"")
    node = data_dir / "kafka-4.3-single" / "node-1"
    assert is_table_set(tables)
    assert not is_table_set(node)
    clean, mixed, unread, with_bytes = run_kafkalog_many(
        [
            ("report", tables, "--format", "json"),
            ("report", tables, node, "--format", "json"),
            ("report", broken, "--format", "json"),
            ("report", tables, "--format", "json", "--with-bytes"),
        ]
    )
    assert json.loads(clean.check(0).stdout)["tables"]["run"]["total"] == 1
    assert "is a report set, and other paths are not" in mixed.check(2).stderr
    assert "cannot be read as Parquet" in unread.check(3).stderr
    assert "--with-bytes" in with_bytes.check(2).stderr
