"""kafkalog sql as a user runs it: formats, files, errors, what is read, and that nothing is written."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from pathlib import Path

import pytest

from tests.building import batch, batches, write_segment
from tests.corpora import REPOSITORY
from tests.decoded_node import write_node
from tests.running import Run

pytest.importorskip("datafusion")
import pyarrow.parquet as pq

Kafkalog = Callable[..., Run]


@pytest.fixture
def kafkalog(run_kafkalog_many: Callable[..., list[Run]]) -> Kafkalog:
    """One run in a fork. No test of this process may ask the engine itself: its threads do not survive a fork."""
    return lambda *arguments: run_kafkalog_many([("sql", *arguments)])[0]


@pytest.fixture
def orders(data_dir: Path) -> Path:
    return data_dir / "kafka-4.3-single" / "node-1" / "orders-0"


def test_rows_in_every_format(kafkalog: Kafkalog, orders: Path) -> None:
    question = "SELECT offset, timestamp AS at, codec FROM records WHERE offset IN (0, 311) ORDER BY offset"
    rows = kafkalog("--format", "jsonl", question, orders).check(0).rows()
    assert rows == [
        {"type": "row", "offset": 0, "at": 1793522462329, "codec": "none"},
        {"type": "row", "offset": 311, "at": 1793695373700, "codec": "snappy"},
    ]
    assert kafkalog("--format", "csv", question, orders).check(0).stdout == (
        "offset,at,codec\n0,1793522462329,none\n311,1793695373700,snappy\n"
    )
    assert "311  2026-11-03T08:42:53.700Z  snappy\n" in kafkalog(question, orders).check(0).stdout
    assert "row offset=0 at=1793522462329 codec=none\n" in kafkalog("--format", "logfmt", question, orders).stdout


def test_an_answer_without_rows_has_a_header_in_csv(kafkalog: Kafkalog, orders: Path) -> None:
    run = kafkalog("--format", "csv", "SELECT offset, key FROM records WHERE topic = 'nope'", orders).check(0)
    assert run.stdout == "offset,key\n"


@pytest.mark.slow
def test_several_statements_from_a_file_and_from_standard_input(
    kafkalog: Kafkalog, run_kafkalog: Callable[..., Run], orders: Path, tmp_path: Path
) -> None:
    text = "SELECT count(*) AS records FROM records;\n-- and\nSELECT count(*) AS batches FROM batches;"
    (tmp_path / "q.sql").write_text(text, encoding="utf-8")
    expected = [{"type": "row", "records": 1264}, {"type": "row", "batches": 12}]
    assert kafkalog("--format", "jsonl", f"@{tmp_path / 'q.sql'}", orders).check(0).rows() == expected
    run = run_kafkalog("sql", "--format", "jsonl", "-", orders, stdin=text.encode()).check(0)
    assert run.rows() == expected
    assert "CSV has one table" in kafkalog("--format", "csv", text, orders).check(2).stderr
    assert "cannot be read" in kafkalog(f"@{tmp_path / 'none'}", orders).check(2).stderr


def test_a_parquet_file(
    kafkalog: Kafkalog, orders: Path, tmp_path: Path, source_snapshot: Callable[[Path], None]
) -> None:
    source_snapshot(orders)
    file = tmp_path / "a.parquet"
    question = "SELECT offset, timestamp, key, value, headers FROM records WHERE offset < 200"
    assert f"published: {file}" in kafkalog(question, orders, "--output", file).check(0).stderr
    table = pq.read_table(file)
    assert table["offset"].to_pylist() == list(range(200))
    assert str(table.schema.field("timestamp").type) == "timestamp[ms, tz=UTC]"
    kafkalog(question, orders, "--output", file).check(5)
    kafkalog(question, orders, "--output", orders / "x.parquet").check(5)
    assert [each.name for each in tmp_path.iterdir()] == ["a.parquet"]


def test_columns_of_the_question_have_a_form_in_every_format(
    run_kafkalog_many: Callable[..., list[Run]], tmp_path: Path
) -> None:
    """Dates, decimals, times in lists or after the year 9999, and columns that the plan calls not null."""
    past_9999 = 2**63 - 1
    log = write_segment(tmp_path / "t-0", 0, [batch(0, [b"v"], timestamp=past_9999)])
    question = (
        "SELECT date '2024-02-29' AS day, 1.10::decimal(5, 2) AS price, [timestamp] AS list, "
        "named_struct('at', timestamp) AS struct, timestamp - to_timestamp_millis(0) AS since, "
        "to_timestamp_micros(1500) AS at FROM records"
    )
    file = tmp_path / "a.parquet"
    lines, table, parquet, interval = run_kafkalog_many(
        [
            ("sql", "--format", "jsonl", question, log),
            ("sql", "--format", "csv", question, log),
            ("sql", question, log, "--output", file),
            ("sql", "SELECT interval '1 month' AS i FROM records", log, "--output", tmp_path / "i.parquet"),
        ]
    )
    assert lines.check(0).rows() == [
        {
            "type": "row",
            "day": "2024-02-29",
            "price": "1.10",
            "list": [past_9999],
            "struct": {"at": past_9999},
            "since": past_9999,
            "at": 1,
        }
    ]
    cells = '2024-02-29,1.10,[9223372036854775807],"{""at"":9223372036854775807}",9223372036854775807,1'
    assert table.check(0).stdout.splitlines()[1] == cells
    parquet.check(0)
    assert pq.read_table(file, columns=["day", "price"]).to_pylist() == [
        {"day": date(2024, 2, 29), "price": Decimal("1.10")}
    ]
    assert "a column has no form in Parquet" in interval.check(2).stderr


def test_a_record_of_any_time_and_what_asks_for_a_date(
    run_kafkalog_many: Callable[..., list[Run]], tmp_path: Path
) -> None:
    """A producer that counts microseconds writes times after the year 9999, which are no dates."""
    dates = "timestamp BETWEEN '1678-01-01' AND '2262-01-01'"
    log = write_segment(
        tmp_path / "t-0", 0, [batch(n, [b"v"], timestamp=time) for n, time in enumerate((0, 10**13, 10**16))]
    )
    compared, *refused, left_out = run_kafkalog_many(
        [
            ("sql", "--format", "jsonl", question, log)
            for question in (
                "SELECT count(*) AS n FROM records WHERE timestamp > '2262-01-01'::timestamp(3)",
                "SELECT date_trunc('day', timestamp) AS day FROM records",
                "SELECT timestamp::text FROM records",
                "SELECT timestamp + interval '1 day' FROM records",
                f"SELECT count(date_trunc('day', timestamp)) AS n FROM records WHERE {dates}",
            )
        ]
    )
    assert [each.check(0).rows("row")[0]["n"] for each in (compared, left_out)] == [2, 1]
    for each in refused:
        assert f"a timestamp is no date: add {dates}" in each.check(2).stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    "statement",
    [
        "COPY records TO '{0}'",
        "COPY (SELECT 1) TO '{0}' STORED AS CSV",
        "EXPLAIN ANALYZE COPY records TO '{0}' STORED AS CSV",
        "CREATE EXTERNAL TABLE t STORED AS CSV LOCATION '/etc/passwd'",
        "CREATE TABLE t AS SELECT 1",
        "CREATE VIEW v AS SELECT 1",
        "INSERT INTO records SELECT * FROM records",
        "DELETE FROM records",
        "DROP TABLE records",
        "SET datafusion.execution.batch_size = 1",
        "PREPARE p AS SELECT 1",
        "SELECT * FROM '/etc/passwd'",
        "SELECT * FROM read_csv('/etc/passwd')",
    ],
)
def test_nothing_is_written_and_no_other_file_is_read(
    statement: str, run_kafkalog_many: Callable[..., list[Run]], orders: Path, tmp_path: Path
) -> None:
    target = tmp_path / "written"
    (run,) = run_kafkalog_many([("sql", statement.format(target), orders)])
    run.check(2)
    assert run.stdout == ""
    assert not target.exists()


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("SELECT nope FROM records", "line 1, column 8: there is no column nope"),
        ("SELECT 1;\nSELECT *\nFROM nope", "line 3, column 6: there is no table nope"),
        ("SELECT offset, offset FROM records", "unique"),
        ("SELECT a.offset, b.offset FROM records a, records b", "two columns of the answer are called offset"),
        ("SELECT 1 / 0", "ivide by zero"),
        ("SELECT json_value('{}', 'a')", "'a' is not a path in JSON"),
        ("SELECT count(*) FROM records WHERE value LIKE '%a'", "text(value)"),
        ("SELECT octet_length(value) FROM records", "takes text, not bytes: give text(value); size(value)"),
        ("SELECT count(*) FROM records r TABLESAMPLE SYSTEM (1)", "TABLESAMPLE is not supported"),
        ("SELECT 1 FROM records WHERE timestamp > '2300-01-01'", "is written as '2300-01-01'::timestamp(3)"),
        ("SELECT 1 FROM records WHERE timestamp > 17", "a time is compared with text, such as"),
        ("SELECT 1 FROM records WHERE timestamp IN (1, 2)", "a time is compared with text, such as"),
        ("SELECT 1 FROM records WHERE timestamp > 'noon'", "kafkalog: Error parsing timestamp from 'noon'"),
        ("SHOW TABLES", "kafkalog sql --tables lists the tables"),
        ("", "there is no statement"),
    ],
)
def test_errors_in_sql(statement: str, words: str, kafkalog: Kafkalog, data_dir: Path) -> None:
    run = kafkalog(statement, data_dir / "kafka-4.3-single" / "node-1").check(2)
    assert words in run.stderr
    assert "internal error" not in run.stderr


def test_a_column_called_type_has_no_place_in_json_lines(kafkalog: Kafkalog, orders: Path) -> None:
    assert "called type" in kafkalog("--format", "jsonl", "SELECT 1 AS type", orders).check(2).stderr
    assert kafkalog("--format", "csv", "SELECT 1 AS type", orders).check(0).stdout == "type\n1\n"


def test_damage_is_never_silent(kafkalog: Kafkalog, damaged: Path) -> None:
    for question in (
        "SELECT count(*) AS n FROM records",
        "SELECT max(value) AS n FROM records",
        "SELECT crc_valid FROM batches",
    ):
        run = kafkalog("--format", "jsonl", question, damaged).check(1)
        assert [row["code"] for row in run.rows("finding")] == ["batch-crc-mismatch"]
    assert kafkalog("--format", "jsonl", "SELECT count(*) AS n FROM records", damaged).rows("row")[0]["n"] == 27
    run = kafkalog("--format", "jsonl", "SELECT code FROM findings", damaged).check(1)
    assert not run.rows("finding")  # the rows of the answer say it
    assert run.summary["findings"]


def test_headers_alone_are_read_where_no_crc_is_asked_for(kafkalog: Kafkalog, damaged: Path) -> None:
    run = kafkalog("--format", "jsonl", "SELECT count(*) AS n FROM batches", damaged).check(0)
    assert run.rows() == [{"type": "row", "n": 4}]
    assert run.summary["not_checked"] == ["the CRCs of batches: select crc_valid"]


def test_only_what_can_match_is_read(kafkalog: Kafkalog, data_dir: Path, tmp_path: Path, damaged: Path) -> None:
    """A damaged partition that no condition allows is not read, nor is one that ends before the offsets."""
    node = damaged.parent
    base = "SELECT count(*) AS n FROM records WHERE "
    for condition in (
        "topic = 'x'",
        "topic = 't' AND partition = 1",
        "topic IN ('a', 'b')",
        "offset < 0",
        "partition > 5",
    ):
        assert kafkalog("--format", "jsonl", base + condition, node).check(0).rows() == [{"type": "row", "n": 0}], (
            condition
        )
    for condition in ("topic = 't'", "topic LIKE 't%'", "partition = 0 OR topic = 'x'"):
        kafkalog(base + condition, node).check(1)


def test_a_limit_stops_reading(kafkalog: Kafkalog, tmp_path: Path) -> None:
    log = write_segment(tmp_path / "t-0", 0, batches(12_000, values=3))
    content = bytearray(log.read_bytes())
    content[-3] ^= 1
    log.write_bytes(content)
    run = kafkalog("--format", "jsonl", "SELECT offset FROM records LIMIT 3", log.parent).check(0)
    assert [row["offset"] for row in run.rows("row")] == [0, 1, 2]
    kafkalog("SELECT offset FROM records ORDER BY offset LIMIT 3", log.parent).check(1)


def test_two_clusters_are_said(kafkalog: Kafkalog, tmp_path: Path) -> None:
    """A count by topic adds up topics that only have the same name."""
    for each in ("one", "two"):
        write_segment(tmp_path / each / "t-0", 0, [batch(0)])
        (tmp_path / each / "meta.properties").write_text(f"version=1\ncluster.id={each}\nnode.id=1\n")
    question = "SELECT topic, count(*) AS n FROM batches GROUP BY topic"
    both = kafkalog(question, tmp_path).check(0).stderr
    assert f"{tmp_path}/one is of the cluster one and {tmp_path}/two of two: " in both
    assert "cluster" not in kafkalog(question, tmp_path / "one").check(0).stderr


def test_decoded_values(kafkalog: Kafkalog, tmp_path: Path) -> None:
    """By the registry's topic beside them; where no decoded column is asked for, nothing is decoded."""
    orders = write_node(tmp_path)
    question = "SELECT offset, value_decoded, value_format, value_schema_id FROM records ORDER BY offset"
    run = kafkalog("--format", "jsonl", question, orders)
    assert [tuple(row.values())[1:] for row in run.rows("row")][:3] == [
        (0, '{"id":4711,"customer":"Ana"}', "avro", "7"),
        (1, '{"id":4712,"customer":"Zoë","is_paid":true}', "avro", "8"),
        (2, '"plain text"', "string", None),
    ]
    assert {row["code"] for row in run.rows("finding")} == {"value-undecodable"}
    found = "SELECT offset FROM records WHERE json_value(value_decoded, '$.customer') = 'Ana'"
    assert [row["offset"] for row in kafkalog("--format", "jsonl", found, tmp_path).rows("row")] == [0]
    raw = kafkalog("--format", "jsonl", "--value-as", "raw", question, orders).check(0)
    assert {row["value_decoded"] for row in raw.rows("row")} == {None}
    assert not kafkalog("--format", "jsonl", "SELECT value FROM records", orders).check(0).rows("finding")


def test_paths_that_hold_no_answer_are_refused(kafkalog: Kafkalog, orders: Path, tmp_path: Path) -> None:
    assert "no such file" in kafkalog("SELECT 1", tmp_path / "none").check(2).stderr
    kafkalog("SELECT count(*) FROM records", next(orders.glob("*.index"))).check(2)
    kafkalog("SELECT * FROM topics", orders).check(2)
    assert "at least one PATH" in kafkalog("SELECT 1").check(2).stderr


def test_the_tables(kafkalog: Kafkalog) -> None:
    rows = kafkalog("--tables", "--format", "jsonl").check(0).rows("table_column")
    assert list(dict.fromkeys(row["table"] for row in rows)) == [
        *("records", "batches", "segments", "partitions", "index_entries", "findings", "transactions", "groups"),
        *("group_offsets", "producers", "topics", "configs"),
    ]


@pytest.mark.slow
def test_the_api_hands_out_the_same_answers(damaged: Path) -> None:
    """In a process of its own: an engine that was used here would not survive the forks of other tests."""
    code = f"""
import json, kafkalog
log = kafkalog.open({str(damaged)!r})
answer = log.sql("SELECT count(*) AS n, max(offset) AS last FROM records WHERE offset >= 5")
before = list(answer.findings), answer.is_complete
for _ in range(2):
    rows = answer.table().to_pylist()
kinds = [each.code for each in answer.findings]
frame = log.sql("SELECT offset FROM records").frame
try:
    log.sql("SELECT nope FROM records")
except kafkalog.InputError as error:
    said = str(error)
print(json.dumps([before, rows, kinds, answer.is_complete, frame.limit(2).to_pydict(), said]))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=REPOSITORY)
    before, rows, kinds, is_complete, frame, said = json.loads(done.stdout)
    assert before == [[], False]
    assert rows == [{"n": 22, "last": 35}]
    assert (kinds, is_complete) == (["batch-crc-mismatch"], False)
    assert frame == {"offset": [0, 1]}
    assert "there is no column nope" in said


_NEVER = "log_start_offset = 300 AND log_end_offset = 4 AND log_end_offset IN (100)"


@pytest.mark.parametrize(
    ("question", "topics"),
    [
        ("SELECT topic FROM partitions WHERE log_end_offset = 4 AND log_end_offset = 5", []),
        (f"SELECT topic FROM partitions WHERE {_NEVER}", []),
        (f"SELECT topic FROM partitions WHERE {_NEVER} UNION SELECT topic FROM records WHERE topic < '__d'",
         ["__cluster_metadata", "__consumer_offsets"]),
    ],
)  # fmt: skip
def test_conditions_that_contradict_each_other(
    kafkalog: Callable[..., Run], data_dir: Path, question: str, topics: list[str]
) -> None:
    """The engine passes on FALSE as it is, and cannot pass it on beside another condition."""
    done = kafkalog(question, data_dir / "kafka-4.3-single" / "node-1", "--format", "jsonl")
    assert done.code == 0
    assert sorted(row["topic"] for row in done.rows("row")) == topics


@pytest.mark.parametrize(("condition", "count"), [("headers <> []", 20), ("headers IN ([]) AND partition = 0", 3)])
def test_lists_are_compared(kafkalog: Callable[..., Run], data_dir: Path, condition: str, count: int) -> None:
    question = f"SELECT count(*) AS n FROM records WHERE topic = 'edge.cases_1' AND {condition}"
    done = kafkalog(question, data_dir / "kafka-4.3-single" / "node-1", "--format", "jsonl")
    assert (done.code, [row["n"] for row in done.rows("row")]) == (0, [count])
