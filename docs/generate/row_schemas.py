"""The JSON Schema of the rows in JSON lines, made from ``format.columns``; the file ships with the command line."""

from __future__ import annotations

import json
from typing import Any

from format.columns import DECODED_COLUMNS, EXTRA_RECORD_COLUMNS, IS_MATCH, RECORD, SCHEMAS, Column, RowSchema
from format.findings import Severity
from kafkalog_cli.command_table import SCHEMA_FILE
from kafkalog_cli.exit_codes import Condition
from tests.corpora import REPOSITORY

SCHEMA_PATH = REPOSITORY / "kafkalog_cli" / SCHEMA_FILE

_NULL = {"type": "null"}
_BYTES = {
    "anyOf": [
        {"type": ["string", "null"]},
        {"type": "object", "required": ["base64"], "properties": {"base64": {"type": "string"}}, "maxProperties": 1},
    ]
}
#: A key or value of an internal topic or a control record.
_DECODED = {
    "type": "object",
    "required": ["type", "version"],
    "properties": {"type": {"type": "string"}, "version": {"type": "integer"}, "data": {}},
    "additionalProperties": False,
}
#: The JSON of each type of columns.
_TYPES: dict[str, dict[str, Any]] = {
    "int": {"type": ["integer", "null"]},
    "bool": {"type": ["boolean", "null"]},
    "string": {"type": ["string", "null"]},
    "timestamp": {"type": ["integer", "null"]},
    "bytes": {"$ref": "#/$defs/bytes"},
    "headers": {
        "anyOf": [
            _NULL,
            {
                "type": "array",
                "items": {"type": "array", "items": {"$ref": "#/$defs/bytes"}, "minItems": 2, "maxItems": 2},
            },
        ]
    },
    "any": {},
    "json": {},
}


#: A row of sql, whose columns the question names.
_ANSWER: dict[str, Any] = {
    "type": "object",
    "required": ["type"],
    "properties": {"type": {"const": "row"}},
    "additionalProperties": True,
}


def row_schemas() -> str:
    """The schema as the text of a file: ``$defs`` has one for each row type, and a line is one of them."""
    rows = {schema.type: _row(schema) for schema in SCHEMAS} | {"row": _ANSWER, "summary": _summary()}
    refs = [{"$ref": f"#/$defs/{name}"} for name in rows]
    whole = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A line of kafkalog --format jsonl",
        "description": "Every row has all its columns, of which any may be null. Later versions may add columns.",
        "oneOf": refs,
        "$defs": {"bytes": _BYTES, "decoded": _DECODED, **rows},
    }
    return json.dumps(whole, indent=1, ensure_ascii=False) + "\n"


def _row(schema: RowSchema) -> dict[str, Any]:
    more = (*EXTRA_RECORD_COLUMNS, *DECODED_COLUMNS, IS_MATCH) if schema is RECORD else ()
    columns = {column.name: _column(column, schema) for column in (*schema.columns, *more)}
    return {
        "type": "object",
        "required": ["type", *schema.names],
        "properties": {"type": {"const": schema.type}, **columns},
    }


def _column(column: Column, schema: RowSchema) -> dict[str, Any]:
    kind = _TYPES[column.type]
    if schema is RECORD and column.type == "bytes":
        kind = {"anyOf": [kind, {"$ref": "#/$defs/decoded"}]}
    unit = "; epoch milliseconds, UTC" if column.type == "timestamp" else ""
    return {"description": column.meaning + unit, **kind}


def _summary() -> dict[str, Any]:
    """The last line (``Summary.as_row``)."""
    counts = {"type": "object", "additionalProperties": {"type": "integer"}}
    properties: dict[str, Any] = {
        "command": {"type": "string"},
        "counts": counts,
        "findings": counts | {"propertyNames": {"enum": [each.label for each in Severity]}},
        "complete": {"type": "boolean"},
        "exit_code": {"type": "integer"},
        "conditions": {"type": "array", "items": {"enum": [each.label for each in Condition]}},
        "not_checked": {"type": "array", "items": {"type": "string"}},
    }
    return {
        "type": "object",
        "required": ["type", *properties],
        "properties": {"type": {"const": "summary"}, **properties},
    }


def write_row_schemas() -> bool:
    """Write the file anew; whether it has changed."""
    text = row_schemas()
    if SCHEMA_PATH.exists() and SCHEMA_PATH.read_text(encoding="utf-8") == text:
        return False
    SCHEMA_PATH.write_text(text, encoding="utf-8")
    return True
