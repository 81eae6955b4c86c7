"""The JSON Schema of the rows: it is what the columns make, and it tells right rows from wrong ones."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from docs.generate.row_schemas import SCHEMA_PATH, row_schemas
from format.columns import SCHEMAS
from tests.corpora import DATA_DIR
from tests.row_schemas import check_rows, schema
from tests.running import Run

RunMany = Callable[..., list[Run]]


@pytest.mark.slow
def test_the_file_is_what_the_columns_make(run_kafkalog_many: RunMany) -> None:
    assert SCHEMA_PATH.read_text(encoding="utf-8") == row_schemas(), "regenerate with: python -m docs.generate"
    [printed] = run_kafkalog_many([("help", "schema")])
    assert json.loads(printed.check(0).stdout) == schema()
    Draft202012Validator.check_schema(schema())
    assert {each.type for each in SCHEMAS} | {"summary"} < set(schema()["$defs"])


@pytest.mark.slow
def test_a_line_is_exactly_one_of_the_rows(run_kafkalog_many: RunMany) -> None:
    node = DATA_DIR / "kafka-4.3-single" / "node-1"
    validator = Draft202012Validator(schema())
    words = ("dump", "--records", "--format", "jsonl")
    for run in run_kafkalog_many([(*words, node / "payments-0"), (*words, node / "__consumer_offsets-2")]):
        for row in (*run.rows()[:40], run.summary):
            validator.validate(row)
            assert not validator.is_valid({**row, "type": "other"})


@pytest.mark.parametrize(
    "change",
    [{"partition": "0"}, {"timestamp": 1.5}, {"headers": [["key"]]}, {"key": {"base65": ""}}, {"new": 1}],
    ids=lambda change: next(iter(change)),
)
def test_a_wrong_row_is_seen(run_kafkalog_many: RunMany, change: dict[str, Any]) -> None:
    [run] = run_kafkalog_many(
        [
            (
                "dump",
                "--records",
                DATA_DIR / "kafka-4.3-single" / "node-1" / "orders-0",
                "--limit",
                "1",
                "--format",
                "jsonl",
            )
        ]
    )
    [row] = run.rows()
    check_rows([row])
    with pytest.raises(AssertionError):
        check_rows([row | change])
    row.pop("sequence")
    with pytest.raises(AssertionError, match="'sequence' is a required property"):
        check_rows([row])
