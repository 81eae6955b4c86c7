"""Any value of a row has a form in every format."""

from __future__ import annotations

import json
from enum import Enum

import numpy as np
import pytest

from kafkalog_cli.render.text import json_value
from tests.kafkalog_cli.render.rendering import MATCH, rendered


class Kind(Enum):
    LOG = "log"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (np.int64(5), 5),
        (np.bool_(True), True),
        (np.float64(0.5), 0.5),
        (float("nan"), "nan"),
        (Kind.LOG, "log"),
        ((1, b"\xff"), [1, {"base64": "/w=="}]),
        ({"a": None, 1: memoryview(b"x")}, {"a": None, "1": "x"}),
        (2**70, 2**70),
        (True, True),
        (1j, "1j"),
    ],
)
def test_any_value_has_a_json_form(value, expected):
    assert json.loads(json_value(value)) == expected


def test_numpy_scalars_in_number_columns():
    row = ("t", np.int32(1), np.int64(-5), np.int64(0), np.int64(0), 61, None)
    for format_name, shown in (
        ("jsonl", '"offset":-5,'),
        ("logfmt", " offset=-5 "),
        ("csv", "t,1,-5,"),
        ("table", "-5"),
    ):
        assert shown in rendered(format_name, (MATCH, [row]))[0].decode()
