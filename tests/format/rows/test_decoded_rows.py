"""Decoded columns: what every output has of them, and the findings about what does not decode."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from random import Random
from typing import Any

import pytest

from format.columns import DECODED_COLUMNS, DECODED_NAMES, RECORD, record_schema
from format.decoding.decoder import Decoding
from format.decoding.schemas import find_schemas
from format.findings import Finding
from format.location import Location
from format.log.record_table import RecordTable
from format.node.target import Target
from format.rows.decoded_rows import decoded_tables
from format.rows.record_rows import RowBlock, record_block
from format.verbs.dump import DumpTerms, dumped_rows
from tests.building import batch, write_segment
from tests.decoded_node import CUT, VALUES, order, write_node
from tests.dumping import dump

NAMES = [column.name for column in DECODED_COLUMNS]


def decoded(path: Path, decoding: Decoding) -> tuple[list[dict[str, Any]], list[Finding]]:
    rows: list[dict[str, Any]] = []
    findings: list[Finding] = []
    for item in dumped_rows(Target(path), DumpTerms(True, decoding=decoding)):
        if isinstance(item, Finding):
            findings.append(item)
        else:
            assert item.schema == record_schema(DECODED_NAMES)
            rows += [dict(zip(item.schema.names, row, strict=True)) for row in item.rows]
    return rows, findings


def test_values_with_the_schemas_beside_them(tmp_path: Path) -> None:
    partition = write_node(tmp_path)
    rows, findings = decoded(partition, Decoding(schemas=find_schemas([Target(partition)])))
    assert [row["value"] for row in rows] == list(VALUES)
    assert [(row["value_format"], row["value_schema_id"]) for row in rows] == [
        ("avro", 7), ("avro", 8), ("string", None), ("raw", 7), (None, None), ("raw", 99),
    ]  # fmt: skip
    texts = [row["value_decoded"] and json.loads(row["value_decoded"]) for row in rows]
    assert texts == [
        {"id": 4711, "customer": "Ana"},
        {"id": 4712, "customer": "Zoë", "is_paid": True},
        "plain text",
        None,
        None,
        None,
    ]
    assert {row["key_decoded"] for row in rows} == {'"k"'}
    assert [(each.code, each.location.offset, each.location.position) for each in findings] == [
        ("value-undecodable", 3, 0),
        ("value-undecodable", 5, 0),
    ]
    assert findings[0].actual == {"schema_id": 7, "count": 1}
    assert "schema 7" in findings[0].message
    assert findings[0].location.topic == "orders"


def test_without_decoding_nothing_changes(tmp_path: Path) -> None:
    partition = write_node(tmp_path)
    (block,) = dump(partition, records=True)
    assert isinstance(block, RowBlock)
    assert block.schema == RECORD


def test_one_finding_for_each_reason_of_a_batch(tmp_path: Path) -> None:
    """However the records are cut: 4, 8, 16 … at a time, and at the end of each batch."""
    partition = tmp_path / "plain-0"
    write_segment(partition, 0, [batch(0, [b"x"] * 4), batch(4, [b"abcd", b"xy", b"xyz"]), batch(7, [b"xy"] * 9)])
    rows, findings = decoded(partition, Decoding(value_as="int", key_as="raw"))
    assert len(rows) == 16
    assert [row["value_decoded"] for row in rows if row["value_decoded"] is not None] == [str(0x61626364)]
    found = [(each.location.offset, each.location.position) for each in findings]
    assert [offset for offset, _ in found] == [0, 5, 6, 7, 12]
    assert "the values of 4 records of a batch do not decode" in findings[0].message
    assert found[3][1] == found[4][1]


def test_parts_of_blocks_and_columns_agree_with_rows(tmp_path: Path) -> None:
    arrow_columns = pytest.importorskip("format.rows.arrow_columns", reason="pyarrow is not installed")
    partition = write_node(tmp_path)
    decoding = Decoding(schemas=find_schemas([Target(partition)]))
    for block in dumped_rows(Target(partition), DumpTerms(True, decoding=decoding)):
        if isinstance(block, Finding):
            continue
        rows = list(block.part(slice(0, None)).rows)
        assert list(block.part(slice(1, 2)).rows) == rows[1:2]
        for arrow in arrow_columns.block_batches(block, NAMES):
            for at, name in enumerate(NAMES, block.schema.names.index(NAMES[0])):
                assert arrow.column(name).to_pylist() == [None if row[at] is None else str(row[at]) for row in rows]
        assert [tuple(row) for row in pickle.loads(pickle.dumps(block)).rows] == rows


def test_records_of_kafka_itself_are_not_decoded_by_values(data_dir: Path) -> None:
    rows, findings = decoded(data_dir / "kafka-4.3-single/node-1/__consumer_offsets-2", Decoding(value_as="int"))
    assert rows
    assert not findings
    assert all(row[name] is None for row in rows for name in NAMES)


def test_control_records_are_not_decoded(data_dir: Path) -> None:
    rows, _ = decoded(data_dir / "kafka-4.3-single/node-1/payments-0", Decoding())
    controls = [row for row in rows if row["is_control"]]
    assert controls
    assert len(controls) < len(rows)
    assert all(row[name] is None for row in controls for name in NAMES)


def test_the_schemas_go_with_a_pickle(tmp_path: Path) -> None:
    partition = write_node(tmp_path, [order(1, "Ana"), CUT])
    decoding = Decoding(schemas=find_schemas([Target(partition)]))
    assert decoded(partition, pickle.loads(pickle.dumps(decoding))) == decoded(partition, decoding)


def test_a_table_without_records_gives_nothing(tmp_path: Path) -> None:
    partition = write_node(tmp_path)
    (block,) = dump(partition, records=True)
    assert isinstance(block, RowBlock)
    empty: RecordTable = block.record_table.rows(slice(0, 0))
    assert list(decoded_tables(empty, Location("x.log", "orders", 0, 0), Decoding())) == []
    assert list(record_block(empty, Location("x.log"), block.schema).rows) == []


@pytest.mark.parametrize("kind", ["auto", "avro"])
def test_all_of_one_schema_at_once_are_what_each_is_by_itself(tmp_path: Path, kind: str) -> None:
    """Also where another schema, another frame, or nothing lies between."""
    chance = Random(3)
    some = [*(each for each in VALUES if each), b"", b"\0", b"\0\0\0\0\x07", order(2**40, "x" * 300, is_paid=False)]
    values = [
        bytes(chance.choices(range(256), k=chance.randrange(12))) if chance.random() < 0.2 else chance.choice(some)
        for _ in range(3000)
    ]
    partition = write_node(tmp_path, [*values, None])
    decoding = Decoding(value_as=kind, key_as=kind, schemas=find_schemas([Target(partition)]))
    rows, findings = decoded(partition, decoding)
    decoder = decoding.topic("orders")
    reasons = set()
    for row, value in zip(rows, [*values, None], strict=True):
        alone = None if value is None else decoder["value"].decoded(value, ())
        got = row["value_decoded"], row["value_schema_id"], row["value_format"]
        assert got == ((None, None, None) if alone is None else (alone.text, alone.schema_id, alone.format)), value
        if alone is not None and alone.reason is not None:
            reasons.add((alone.schema_id, alone.reason))
    assert reasons
    assert all(any(reason in each.message for each in findings) for _, reason in reasons)


@pytest.mark.parametrize("kind", ["auto", "string"])
def test_strings_at_once_are_what_each_is_by_itself(tmp_path: Path, kind: str) -> None:
    chance = Random(7)
    some: list[bytes | None] = [bytes([byte]) for byte in range(256)]
    some += [b"a%cz" % byte for byte in range(256)]
    some += [None, b"", b"{}", b'{"a": 1}', b"[1, 2]", b"[x", b" {}", b"1e5", b"true", "Zoë".encode(), "é".encode()[:1]]
    some += [b"\0\0\0\0\x07", b"k" * 4096, b"k" * 4097, b"tab\tline\n", b'quote" back\\ slash/ del\x7f']
    values = [chance.choice(some) for _ in range(300)] + some
    partition = write_node(tmp_path, values)
    decoding = Decoding(value_as=kind, key_as=kind, schemas=find_schemas([Target(partition)]))
    decoder = decoding.topic("orders")
    rows, _ = decoded(partition, decoding)
    for row, value in zip(rows, values, strict=True):
        alone = None if value is None else decoder["value"].decoded(value, ())
        got = row["value_decoded"], row["value_schema_id"], row["value_format"]
        assert got == ((None, None, None) if alone is None else (alone.text, alone.schema_id, alone.format)), value


def test_an_id_of_another_topic_proves_nothing(tmp_path: Path) -> None:
    """A number may begin as a value of the schema 7 does, and be one by that schema."""
    partition = write_node(tmp_path, [order(5, ""), order(5, "")], topic="numbers")
    decoding = Decoding(schemas=find_schemas([Target(partition)]))
    rows, findings = decoded(partition, decoding)
    assert [(row["value_decoded"], row["value_schema_id"], row["value_format"]) for row in rows] == [
        (None, None, "raw")
    ] * 2
    assert not findings


def test_a_header_with_a_schema_comes_first(tmp_path: Path) -> None:
    """The value begins as one with the schema 7 in front; the header says that it is of the schema 8."""
    partition = write_node(tmp_path, [])
    value = order(0, "\0\0\7\2\6Ana", is_paid=True)[5:]
    header = (b"__value_schema_id", b"\0\0\0\0\x08")
    write_segment(partition, 0, [batch(0, [value, order(1, "Bo")], headers=(header,)), batch(2, [order(1, "Bo")])])
    rows, _ = decoded(partition, Decoding(schemas=find_schemas([Target(partition)])))
    assert [row["value_schema_id"] for row in rows] == [8, 8, 7]
    assert json.loads(rows[0]["value_decoded"])["customer"] == "\0\0\7\2\6Ana"
