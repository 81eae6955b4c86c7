"""Rows of JSON lines held against the JSON Schema that ships."""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from typing import Any

from jsonschema import Draft202012Validator

from kafkalog_cli.command_table import SCHEMA_FILE


@cache
def schema() -> dict[str, Any]:
    """The file in the package."""
    found: dict[str, Any] = json.loads(files("kafkalog_cli").joinpath(SCHEMA_FILE).read_text(encoding="utf-8"))
    return found


_VALID: set[Any] = set()


def _shape(value: Any) -> Any:
    """What a schema of types tells values apart by; equal for rows that differ in values only."""
    if isinstance(value, dict):
        return tuple((name, _shape(each)) for name, each in value.items())
    if isinstance(value, list):
        return min(len(value), 3), frozenset(map(_shape, value))
    return type(value)


def check_rows(rows: Iterable[dict[str, Any]]) -> None:
    """Fails for a row that the schema does not allow, or that has a key of which the schema says nothing.

    One row of each shape is validated.
    """
    for row in rows:
        shape = row["type"], _shape(row)
        if shape in _VALID:
            continue
        definition = schema()["$defs"][row["type"]]
        errors = list(Draft202012Validator({**definition, "$defs": schema()["$defs"]}).iter_errors(row))
        assert not errors, f"{errors[0].message} at {errors[0].json_path} of a row {row['type']}"
        unknown = set() if definition.get("additionalProperties") else row.keys() - definition["properties"].keys()
        assert not unknown, f"the schema of {row['type']} does not know {', '.join(unknown)}"
        _VALID.add(shape)
