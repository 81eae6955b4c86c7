"""Where rows go, as a run reads it."""

from __future__ import annotations

from kafkalog_cli.options.output import DocumentOutput, Output, RowOutput
from kafkalog_cli.render.formats import FORMATS


def test_rows_go_to_standard_output_unless_a_file_is_given() -> None:
    outputs: list[Output] = [
        RowOutput(),
        DocumentOutput(),
        DocumentOutput(format_name="csv", output_file="out.csv", quiet=True),
    ]
    assert [(each.format_name, each.output_file, each.quiet) for each in outputs] == [
        (None, None, False),
        (None, None, False),
        ("csv", "out.csv", True),
    ]
    assert "csv" in FORMATS
