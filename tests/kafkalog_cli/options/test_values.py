"""--value-as, --key-as, --schemas and --schema-of: what each command shows of decoded keys and values."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from tests.building import batch, write_segment
from tests.decoded_node import FIRST, SCHEMAS, order, schemas_log, write_node
from tests.kafkalog_cli.terminals import Terminal, run_on_terminal
from tests.running import Run, Word

RunMany = Callable[[Iterable[Iterable[Word]]], list[Run]]
JSON = ("--format", "jsonl")
AUTO = ("--value-as", "auto")


@pytest.fixture
def partition(tmp_path: Path) -> Path:
    return write_node(tmp_path / "node")


def test_rows_without_and_with_decoding(partition: Path, run_kafkalog_many: RunMany) -> None:
    plain, raw, auto, text, csv, logfmt = run_kafkalog_many(
        [
            ("dump", "--records", partition, *JSON),
            ("dump", "--records", partition, *JSON, "--value-as", "raw", "--key-as", "raw"),
            ("dump", "--records", partition, *JSON, *AUTO),
            ("dump", "--records", partition, "--format", "text", *AUTO),
            ("dump", "--records", partition, "--format", "csv", *AUTO),
            ("dump", "--records", partition, "--format", "logfmt", *AUTO),
        ]
    )
    assert plain.check(0).stdout == raw.check(0).stdout
    before, after = plain.rows("record"), auto.check(3).rows("record")
    assert [{name: row[name] for name in before[0]} for row in after] == before
    assert after[0]["value_decoded"] == {"id": 4711, "customer": "Ana"}
    assert (after[1]["value_schema_id"], after[1]["value_format"]) == (8, "avro")
    assert [row["offset"] for row in auto.rows("finding")] == [3, 5]
    assert auto.summary["not_checked"] == ["value-undecodable: 2 findings"]
    lines = text.check(3).stdout.splitlines()
    assert any(line.endswith('k  [value avro, schema 7]  {"id":4711,"customer":"Ana"}') for line in lines)
    assert any("[value not decoded, schema 7]  \\x00" in line for line in lines)
    assert any(line.endswith("k  plain text") for line in lines)
    assert ',"{""id"":4711,""customer"":""Ana""}",7,avro' in csv.check(3).stdout
    assert 'value_decoded={"id":4711,"customer":"Ana"} value_schema_id=7 value_format=avro' in logfmt.check(3).stdout


def test_the_last_rows_and_the_first(partition: Path, run_kafkalog_many: RunMany) -> None:
    last, first = run_kafkalog_many(
        [
            ("dump", "--records", "--last", "3", partition, *JSON, *AUTO),
            ("dump", "--records", "--limit", "2", partition, *JSON, *AUTO),
        ]
    )
    assert [(row["offset"], row["value_schema_id"]) for row in last.check(3).rows("record")] == [
        (3, 7),
        (4, None),
        (5, 99),
    ]
    assert [row["value_decoded"]["id"] for row in first.check(0).rows("record")] == [4711, 4712]
    assert first.rows("finding") == []  # of the offsets 3 and 5, which are not shown


def test_grep_matches_what_values_say(partition: Path, run_kafkalog_many: RunMany) -> None:
    words = ('"is_paid":true', partition, *JSON)
    raw, auto, inverted, in_key, regex, counted, context, several = run_kafkalog_many(
        [
            ("grep", *words),
            ("grep", *words, *AUTO),
            ("grep", *words, *AUTO, "--invert"),
            ("grep", *words, *AUTO, "--in", "key"),
            ("grep", "--regex", '^{"id":471[0-9].*}$', partition, *JSON, *AUTO),
            ("grep", *words, *AUTO, "--count"),
            ("grep", *words, *AUTO, "-C", "1"),
            ("grep", "-e", "nothing", "-e", "4712", partition, *JSON, *AUTO),
        ]
    )
    assert raw.code == 1
    assert in_key.check(1).rows("record") == []
    assert [row["offset"] for row in auto.check(3).rows("record")] == [1]
    assert [row["offset"] for row in inverted.rows("record")] == [0, 2, 3, 4, 5]
    assert [row["offset"] for row in regex.rows("record")] == [0, 1]
    assert [row["record_count"] for row in counted.rows("file_match")] == [1]
    assert [(row["offset"], row["is_match"]) for row in context.rows("record")] == [(0, False), (1, True), (2, False)]
    assert context.rows("record")[0]["value_decoded"] == {"id": 4711, "customer": "Ana"}
    assert [row["offset"] for row in several.rows("record")] == [1]


@pytest.mark.slow
def test_worker_processes_give_the_same(tmp_path: Path, run_kafkalog_many: RunMany) -> None:
    write_segment(tmp_path / "_schemas-0", 0, [schemas_log()])
    content = [
        batch(first, [order(number, f"customer {number}" * 9) for number in range(first, first + 500)])
        for first in range(0, 60_000, 500)
    ]
    write_segment(tmp_path / "orders-0", 0, content)
    one, two, found, also = run_kafkalog_many(
        [
            ("dump", "--records", tmp_path / "orders-0", *JSON, *AUTO, "--jobs", "1"),
            ("dump", "--records", tmp_path / "orders-0", *JSON, *AUTO, "--jobs", "3"),
            ("grep", '"id":59999,', tmp_path / "orders-0", *JSON, *AUTO, "--jobs", "1"),
            ("grep", '"id":59999,', tmp_path / "orders-0", *JSON, *AUTO, "--jobs", "3"),
        ]
    )
    assert one.check(0).stdout == two.check(0).stdout
    assert len(one.rows("record")) == 60_000
    assert found.check(0).stdout == also.check(0).stdout
    assert [row["offset"] for row in found.rows("record")] == [59_999]


def test_schemas_of_another_place_and_of_files(tmp_path: Path, run_kafkalog_many: RunMany) -> None:
    partition = write_node(tmp_path / "node", [order(1, "Ana"), order(2, "Bo")[5:]])
    (tmp_path / "node/_schemas-0").rename(tmp_path / "registry-0")
    files = tmp_path / "files"
    files.mkdir()
    (files / "order.avsc").write_text(json.dumps(SCHEMAS[FIRST]), encoding="utf-8")
    alone, named, by_file, by_message, misspelt = run_kafkalog_many(
        [
            ("dump", "--records", partition, *JSON, *AUTO),
            ("dump", "--records", partition, *JSON, "--schemas", tmp_path / "registry-0"),
            ("dump", "--records", partition, *JSON, "--schemas", files, "--schema-of", "orders=order.avsc"),
            ("dump", "--records", partition, *JSON, "--schemas", files, "--schema-of", "orders=order.avsc:Other"),
            ("dump", "--records", partition, "--schemas", files, "--schema-of", "orders=ordr.avsc"),
        ]
    )
    assert {row["value_format"] for row in alone.check(0).rows("record")} == {"raw"}
    assert named.rows("record")[0]["value_decoded"] == {"id": 1, "customer": "Ana"}
    assert by_file.rows("record")[1]["value_decoded"] == {"id": 2, "customer": "Bo"}
    assert "order.avsc has no messages" in " ".join(by_message.check(2).stderr.replace("│", " ").split())
    assert "there is no file ordr.avsc in the directory of schemas" in misspelt.check(2).stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("dump", "{}", *AUTO), "give --records too"),
        (("dump", "{}", "--raw"), "give --records too"),
        (("dump", "--records", "{}", "--value-as", "avor"), "avor"),
        (("dump", "--records", "{}", "--schemas", "nowhere"), "nowhere"),
        (("dump", "--records", "{}", "--schemas", "{}"), "no schema can be read there"),
        (("dump", "--records", "{}", "--schema-of", "orders"), "TOPIC=FILE"),
        (("dump", "--records", "{}", "--schema-of", "orders=x.avsc"), "in the directory of --schemas: give that too"),
        (("verify", "{}", *AUTO), "are decoded with --values: give it too"),
        (("verify", "{}", "--schemas", "."), "are decoded with --values: give it too"),
        (("verify", "{}", "--values", "--level", "crc"), "values are not read at --level crc"),
        (("verify", "{}", "--values", "--follow"), "--values"),
    ],
)
def test_usage_errors(partition: Path, run_kafkalog_many: RunMany, words: tuple[str, ...], message: str) -> None:
    (run,) = run_kafkalog_many([[each.format(partition) for each in words]])
    assert message in " ".join(run.check(2).stderr.replace("│", " ").split())


@pytest.mark.parametrize("words", [("dump", "--records", *AUTO), ("sql", "SELECT value FROM records")])
def test_an_error_of_a_path_names_no_option(tmp_path: Path, run_kafkalog_many: RunMany, words: tuple[str, ...]) -> None:
    text = tmp_path / "notes.txt"
    text.write_text("no log\n")
    (run,) = run_kafkalog_many([[*words, text]])
    assert run.check(2).stderr.startswith(f"kafkalog: {text}: a text file")


def test_protobuf_without_its_library(
    partition: Path, monkeypatch: pytest.MonkeyPatch, run_kafkalog_many: RunMany
) -> None:
    for name in [each for each in sys.modules if each.startswith("google.protobuf")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "google.protobuf", None)
    (run,) = run_kafkalog_many([("dump", "--records", partition, "--value-as", "protobuf")])
    assert "pip install 'kafkalog[decode]'" in " ".join(run.check(2).stderr.replace("│", " ").split())


def test_a_terminal_decodes_where_there_are_schemas(partition: Path, tmp_path: Path) -> None:
    seen = run_on_terminal(["dump", "--records", str(partition)], Terminal(), tmp_path)
    lines = seen.screen(80)
    at = lines.index("orders-0 @ 0  2023-11-14T22:13:20.000Z  k  [value avro, schema 7]")
    assert lines[at + 1] == '    {"id": 4711, "customer": "Ana"}'
    raw = run_on_terminal(["dump", "--records", "--value-as", "raw", str(partition)], Terminal(), tmp_path)
    assert raw.code == 0
    assert "avro" not in raw.text
    found = run_on_terminal(["find", "orders-0:1", str(partition.parent)], Terminal(), tmp_path)
    assert '    {"id": 4712, "customer": "Zoë", "is_paid": true}' in found.screen(80)
    (partition.parent / "_schemas-0/00000000000000000000.log").unlink()
    without = run_on_terminal(["dump", "--records", str(partition)], Terminal(), tmp_path)
    assert without.code == 0
    assert "avro" not in without.text


def test_extract_has_the_columns(partition: Path, tmp_path: Path, run_kafkalog_many: RunMany) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed: pip install 'kafkalog[arrow]'")
    plain, run, lines = run_kafkalog_many(
        [
            ("extract", partition, "--output", tmp_path / "plain", *JSON),
            ("extract", partition, "--output", tmp_path / "parquet", *AUTO, *JSON),
            ("extract", partition, "--output", tmp_path / "lines", "--to", "jsonl", *AUTO, *JSON),
        ]
    )
    (file,) = (tmp_path / "parquet").rglob("*.parquet")
    rows = parquet.ParquetFile(file).read().to_pylist()
    assert [row["value_decoded"] and json.loads(row["value_decoded"]) for row in rows][:3] == [
        {"id": 4711, "customer": "Ana"},
        {"id": 4712, "customer": "Zoë", "is_paid": True},
        "plain text",
    ]
    assert [row["value_schema_id"] for row in rows] == ["7", "8", None, "7", None, "99"]
    (file,) = (tmp_path / "lines").rglob("*.jsonl")
    written = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    assert written[0]["value_decoded"] == {"id": 4711, "customer": "Ana"}
    (file,) = (tmp_path / "plain").rglob("*.parquet")
    assert "value_decoded" not in parquet.ParquetFile(file).schema_arrow.names
    assert plain.code == 0
    assert [row["offset"] for row in run.check(3).rows("finding")] == [3, 5]
    assert lines.code == 3


def test_redact_keeps_fields_of_json(tmp_path: Path, run_kafkalog_many: RunMany) -> None:
    values = [
        b'{"state":"paid","customer":"Annika"}',
        b'\0\0\0\0\7{"customer":"Boris","state":"open"}',
        order(1, "Carl"),
        None,
    ]
    partition = write_node(tmp_path / "node", values)
    words = ("redact", partition, "--output", tmp_path / "copy", "--keep-fields", "state")
    run, wrong, shown = run_kafkalog_many(
        [
            (*words, *JSON),
            ("redact", partition, "--output", tmp_path / "other", "--keep-fields", "state,"),
            ("dump", "--records", tmp_path / "copy/orders-0", *JSON),
        ]
    )
    run.check(0)
    assert "give names with commas" in wrong.check(2).stderr
    first, second, third, fourth = [row["value"] for row in shown.check(0).rows("record")]
    assert first.startswith('{"state":"paid",')
    assert second.startswith("\0\0\0\0\7{")
    assert second.endswith(',"state":"open"}')
    assert not {word for word in ("Annika", "Boris", "customer", "Carl") if word in f"{first}{second}{third}"}
    assert fourth is None
    manifest = json.loads(next((tmp_path / "copy").glob("*manifest*")).read_text(encoding="utf-8"))
    assert manifest["job"]["options"]["keep_fields"] == ["state"]


def test_raw_turns_a_terminal_off(partition: Path, tmp_path: Path) -> None:
    seen = run_on_terminal(["dump", "--records", "--raw", str(partition)], Terminal(), tmp_path)
    assert seen.code == 0
    assert "avro" not in seen.text
