"""The tables of a report: what the verbs say of the same directories, and sums that come out even."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from format.columns import FINDING
from format.errors import InputError
from format.findings import Finding, finding
from format.io.source import FileSource
from format.location import Location
from format.node.target import Target
from format.scan.read_log import chunks_with_crcs
from format.state.cluster_context import ContextTerms, read_context
from format.verbs.boot.boot import boot
from format.verbs.boot.one_log import log_load
from format.verbs.boot.steps import BootTerms
from format.verbs.ls.ls import ListTerms, ls
from format.verbs.ls.partition_listing import PartitionListing
from format.verbs.report.filling import KeptFindings
from format.verbs.report.report import ReportRun
from format.verbs.report.terms import Report, ReportTable, ReportTerms
from format.verbs.verify.verify import verify
from tests.building import batch, batches, write_segment
from tests.corpora import Corpus
from tests.kafkalog_cli.page.reports import NOW_MS, damaged_node, report_of
from tests.running import Run

pytestmark = pytest.mark.slow


def _rows(report: Report, name: str) -> list[dict[str, Any]]:
    return report.tables[name].objects()


def test_partitions_and_findings_are_those_of_ls_and_verify(corpus: Corpus) -> None:
    if corpus.is_shared:
        pytest.skip("the corpora that ship have the same kinds of files")
    report = report_of(*corpus.log_dirs)
    terms = ListTerms(context=read_context([Target(path) for path in corpus.log_dirs], ContextTerms()))
    listed = [
        each for path in corpus.log_dirs for each in ls(Target(path), terms) if isinstance(each, PartitionListing)
    ]
    names = [name for name in PartitionListing.__struct_fields__ if name != "notes"]
    rows = {row["path"]: {name: row[name] for name in names} for row in _rows(report, "report_partition")}
    assert rows == {each.path: {name: getattr(each, name) for name in names} for each in listed}
    found = [each for path in corpus.log_dirs for each in verify(Target(path))]
    assert report.tables[FINDING.type].total == len(found)
    assert sum(report.severities.values()) == len(found)
    summary = {(row["severity"], row["code"]): row["count"] for row in _rows(report, "finding_summary")}
    assert summary == {key: _count(found, key) for key in summary}


def test_partitions_have_the_configs_of_their_topics_and_strays_are_noted(data_dir: Path, tmp_path: Path) -> None:
    node = shutil.copytree(data_dir / "kafka-4.3-single" / "node-1", tmp_path / "node-1")
    (node / "orders-0").rename(node / "orders-7")
    rows = {(row["topic"], row["partition"]): row for row in _rows(report_of(node), "report_partition")}
    assert rows["orders", 7]["notes"] == "stray: the metadata log does not assign it to node 1"
    assert rows["orders", 7]["configs"]["segment.bytes"] == "1048576"
    assert rows["orders", 1]["notes"] is None


def _count(found: list[Finding], key: tuple[str, str]) -> int:
    return sum((each.severity.label, each.code) == key for each in found)


def test_sums_come_out_even(data_dir: Path) -> None:
    report = report_of(data_dir / "kafka-4.3-single" / "node-1")
    partitions = _rows(report, "report_partition")
    log_bytes = sum(row["log_size_bytes"] for row in partitions)
    records = sum(row["record_count"] for row in partitions)
    for name in ("bytes_by_time", "batch_sizes"):
        assert sum(row["size_bytes"] for row in _rows(report, name)) == log_bytes, name
        assert sum(row["record_count"] for row in _rows(report, name)) == records, name
    batch_count = sum(row["batch_count"] for row in partitions)
    assert sum(row["batch_count"] for row in _rows(report, "batch_sizes")) == batch_count > 0
    usage = _rows(report, "topic_usage")
    assert sum(row["log_size_bytes"] for row in usage) == log_bytes
    assert sum(int(pair.split(":")[1]) for row in usage if row["codecs"] for pair in row["codecs"].split(",")) == (
        log_bytes
    )
    by_path = {row["path"]: row for row in partitions}
    for path in {row["path"] for row in _rows(report, "bytes_by_offset")}:
        ranges = [row for row in _rows(report, "bytes_by_offset") if row["path"] == path]
        assert sum(row["size_bytes"] for row in ranges) == by_path[path]["log_size_bytes"]
        assert ranges[0]["first_offset"] == by_path[path]["first_offset"]
        assert ranges[-1]["first_offset"] < by_path[path]["log_end_offset"]


@pytest.mark.parametrize(
    ("command", "row_type"),
    [
        ("txns", "transaction"),
        ("groups", "group"),
        ("groups", "group_offset"),
        ("retention", "retention_total"),
        ("diff", "replica"),
        ("boot", "boot_step"),
        ("metadata", "topic"),
        ("compaction", "cleaner"),
    ],
)
def test_answers_are_those_of_the_verbs(
    run_kafkalog_many: Callable[..., list[Run]], data_dir: Path, command: str, row_type: str
) -> None:
    folder = {"diff": "kafka-4.3", "groups": "groups"}.get(command, "kafka-4.3-single")
    paths = sorted((data_dir / folder).glob("node-*"))
    wanted = run_kafkalog_many([(command, "--format", "jsonl", *paths)])[0].rows(row_type)
    found = _rows(report_of(*paths), row_type)
    assert wanted
    left_out = {
        "transaction": {"is_hanging", "duration_ms"},  # depend on the time
        "retention_total": {"deletable_bytes", "deletable_count", "next_deletable_at", "retained"},
        "group_offset": {"metadata"},  # never shown
        "cleaner": {name for name in wanted[0] if name.startswith("would_")}  # would read the records
        | {"tombstone_count", "delete_horizon", "record_count", "key_count", "is_map_full", "is_estimate"},
    }.get(row_type, set())
    if row_type == "transaction":
        wanted = [row for row in wanted if row["state"] != "committed"]
    for rows in (wanted, found):
        for row in rows:
            for name in {"type", *left_out}:
                row.pop(name, None)
    key = str
    assert sorted(found, key=key) == sorted(wanted, key=key)


def test_a_start_recovers_from_what_verify_has_read(
    data_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = damaged_node(data_dir / "kafka-4.3-single" / "node-1", tmp_path)
    for name in (".kafka_cleanshutdown", "recovery-point-offset-checkpoint"):
        (node / name).unlink()
    legacy = next((data_dir / "kafka-0.8-to-2.8").rglob("*-0"))
    shutil.copytree(legacy, node / "mixed-0")
    wanted = [step.row() for step in boot([node], BootTerms()).steps]
    read: set[str] = set()

    def noted(source: FileSource, *terms: Any) -> Any:
        if source.size_bytes:
            read.add(Path(source.path).parent.name)
        return chunks_with_crcs(source, *terms)

    monkeypatch.setattr(log_load, "chunks_with_crcs", noted)
    assert report_of(node).tables["boot_step"].rows == wanted
    assert sum(row[0] == "recover" for row in wanted) > 10
    read.discard("__cluster_metadata-0")  # verify itself asks whether a broker refuses to start
    assert read == {"orders-0", "payments-0", "mixed-0"}, "damage, and offsets that only opened messages have"


def test_rows_without_room_are_counted_and_not_made() -> None:
    made: list[int] = []

    def row_of(item: int) -> tuple[int, ...]:
        made.append(item)
        return (item,)

    table = ReportTable(FINDING, most=3)
    table.add((0,))
    table.extend_by(row_of, [1, 2, 3, 4])
    table.extend_by(row_of, [5])
    assert (table.rows, table.total, made) == ([(0,), (1,), (2,)], 6, [1, 2])


def places_of(finding: dict[str, Any]) -> str:
    first, last = finding["lost_offsets"]
    return f"{first:,} to {last:,}"


@pytest.mark.parametrize(
    ("losses", "words"),
    [
        ([], "orders-0"),
        ([(2006, 2006)], "orders-0 (offset 2006 lost)"),
        ([(2006, 2083), (9, 9)], "orders-0 (offsets 2006 to 2083 and 9 lost)"),
        ([(1, 2), (4, 5), (7, 8)], "orders-0 (offsets 1 to 2, 4 to 5 and 1 more range lost)"),
        ([(each, each) for each in range(501)], "orders-0 (offsets 0, 1 and others lost)"),
    ],
)
def test_a_place_has_all_its_losses(losses: list[tuple[int, int]], words: str) -> None:
    kept = KeptFindings()
    where = Location("/data/orders-0", "orders", 0)
    lost_offsets: list[tuple[int, int] | None] = [*losses] or [None]
    for each in lost_offsets:
        kept.add(finding("batch-crc-mismatch", where, "text", lost_offsets=each))
    assert kept.sentence() == f"Damage: fatal batch-crc-mismatch in {words}."


def test_damage_has_its_place_in_time_and_offset(data_dir: Path, tmp_path: Path) -> None:
    report = report_of(damaged_node(data_dir / "kafka-4.3-single" / "node-1", tmp_path))
    places = {(row["topic"], row["code"]): row for row in _rows(report, "damaged_place")}
    place = places["orders", "batch-crc-mismatch"]
    found = next(row for row in _rows(report, "finding") if row["code"] == "batch-crc-mismatch")
    assert [place["first_offset"], place["last_offset"]] == found["lost_offsets"]
    orders = next(row for row in _rows(report, "report_partition") if (row["topic"], row["partition"]) == ("orders", 0))
    assert orders["state"] == "fatal"
    first = [(row["topic"], row["state"] == "sound") for row in _rows(report, "report_partition")][:3]
    assert first == [("orders", False), ("payments", False), ("__cluster_metadata", True)]
    summary = {row["code"]: row["places"] for row in _rows(report, "finding_summary")}
    assert summary["batch-crc-mismatch"] == f"orders-0 (offsets {places_of(found)} lost)"
    assert orders["first_timestamp"] <= place["timestamp"] <= orders["max_timestamp"]
    events = [row for row in _rows(report, "timeline_event") if row["kind"] == "damage"]
    assert (place["timestamp"], "orders") in {(row["timestamp"], row["topic"]) for row in events}
    assert any(row["path"] == orders["path"] for row in _rows(report, "bytes_by_offset")), "damaged ones are kept"


def test_several_processes_give_the_same(data_dir: Path) -> None:
    node = data_dir / "kafka-4.3-single" / "node-1"
    assert report_of(node, jobs=3).tables == report_of(node).tables


def test_the_time_line_has_epochs_segments_and_metadata(data_dir: Path) -> None:
    report = report_of(data_dir / "kafka-4.3-single" / "node-1")
    kinds = {row["kind"] for row in _rows(report, "timeline_event")}
    assert kinds >= {"leader_epoch", "segment", "metadata", "transaction"}
    times = [row["timestamp"] for row in _rows(report, "timeline_event")]
    assert times == sorted(times)


def test_bytes_only_where_they_are_asked_for(data_dir: Path, tmp_path: Path) -> None:
    node = damaged_node(data_dir / "kafka-4.3-single" / "node-1", tmp_path)
    assert "file_bytes" not in report_of(node).tables
    shown = _rows(report_of(node, with_bytes=True), "file_bytes")
    content = Path(shown[0]["path"]).read_bytes()
    assert bytes.fromhex(shown[0]["hex"]) == content[shown[0]["position"] :][:64]


def test_a_partition_by_itself(data_dir: Path) -> None:
    report = report_of(data_dir / "kafka-4.3-single" / "node-1" / "orders-0")
    assert [row["topic"] for row in _rows(report, "report_partition")] == ["orders"]
    assert "groups: this" not in report.not_checked
    assert any(words.startswith("differences between replicas: ") for words in report.not_checked)


def test_a_file_is_refused(data_dir: Path) -> None:
    log = next((data_dir / "kafka-4.3-single" / "node-1" / "orders-0").glob("*.log"))
    with pytest.raises(InputError, match="whole logs"):
        ReportRun([Target(log)], ReportTerms(NOW_MS))


def test_impossible_times_and_offsets(tmp_path: Path) -> None:
    content = [*batches(50), batch(150, timestamp=2**62), batch(153, timestamp=-1, max_timestamp=-1), batch(2**60)]
    write_segment(tmp_path / "odd-0", 0, content)
    report = report_of(tmp_path)
    assert max(row["timestamp"] for row in _rows(report, "bytes_by_time")) >= 2**61
    assert max(row["last_offset"] for row in _rows(report, "bytes_by_offset")) < 2**31


def test_skew(tmp_path: Path) -> None:
    for number, count in enumerate((1, 1, 10)):
        write_segment(tmp_path / f"uneven-{number}", 0, batches(count))
    row = _rows(report_of(tmp_path), "topic_usage")[0]
    assert (row["largest_partition"], row["skew"]) == (2, 2.5)


def test_the_largest_and_the_damaged_partitions_are_shown_by_offset(tmp_path: Path) -> None:
    for number in range(12):
        content = [batch(base, [b"v" * (10 + 7 * number % 60)]) for base in range(3)]
        if number in (3, 8):
            content[1] = content[1][:-1] + bytes([content[1][-1] ^ 1])
        write_segment(tmp_path / f"t-{number}", 0, content)
    report = report_of(tmp_path)
    shown = {row["partition"] for row in _rows(report, "bytes_by_offset")}
    sizes = {row["partition"]: row["log_size_bytes"] for row in _rows(report, "report_partition")}
    sound = sorted(set(sizes) - {3, 8}, key=lambda number: -sizes[number])
    assert shown == {3, 8, *sound[:4]}


def test_places_have_their_node_where_there_are_several(data_dir: Path, tmp_path: Path) -> None:
    source = data_dir / "kafka-4.3-single" / "node-1"
    first, second = (damaged_node(source, tmp_path / name) for name in ("a", "b"))
    meta = second / "meta.properties"
    meta.write_text(meta.read_text().replace("node.id=1", "node.id=2"))
    for paths in ((first, second), (first / "orders-0", second / "orders-0")):
        report = report_of(*paths)
        summary = {row["code"]: row["places"] for row in _rows(report, "finding_summary")}
        assert re.findall(r"orders-0 of node [12]", summary["batch-crc-mismatch"]) == [
            "orders-0 of node 1",
            "orders-0 of node 2",
        ]
    alone = {row["code"]: row["places"] for row in _rows(report_of(second), "finding_summary")}
    assert "of node" not in alone["batch-crc-mismatch"]


def test_a_node_without_an_id_is_named_by_its_directory(data_dir: Path, tmp_path: Path) -> None:
    source = data_dir / "kafka-4.3-single" / "node-1"
    first, second = (damaged_node(source, tmp_path / name) for name in ("a", "b"))
    (second / "meta.properties").unlink()
    summary = {row["code"]: row["places"] for row in _rows(report_of(first, second), "finding_summary")}
    assert f"orders-0 of {second}" in summary["batch-crc-mismatch"]
