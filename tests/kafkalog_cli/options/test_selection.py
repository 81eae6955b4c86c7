"""Ranges of offsets and times as they are given on a command line."""

from __future__ import annotations

import pytest

from format.scan.selection import EVERYTHING, Selection
from kafkalog_cli.main import main
from kafkalog_cli.options.selection import RangeOptions


def test_both_ends_are_included():
    assert RangeOptions().selection == EVERYTHING
    assert RangeOptions(3, 5, 1000, 2000).selection == Selection(3, 6, 1000, 2001)
    assert RangeOptions(to_offset=0).selection == Selection(to_offset=1)


@pytest.mark.parametrize("command", [("dump",), ("grep", "--all"), ("extract", "--output", "out")])
@pytest.mark.parametrize(
    "words",
    [
        ("--from-offset", "9", "--to-offset", "8"),
        ("--to-offset", "8", "--from-offset", "9"),
        ("--from-time", "now", "--to-time", "-2h"),
        ("--to-time", "2020-01-01", "--from-time", "2020-01-02"),
    ],
)
def test_a_range_that_ends_before_it_starts_is_a_usage_error(command, words, data_dir, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    source = data_dir / "kafka-4.3-single" / "node-1" / "sensor-0"
    assert main([*command, *words, str(source)]) == 2
    assert "the range is empty" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
