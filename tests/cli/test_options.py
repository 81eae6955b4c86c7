"""The options' parsers: what they take, what they refuse, and that every refusal is a usage error."""

from __future__ import annotations

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st

from format.findings import Severity
from format.limits import DEFAULT_LIMITS
from kafkalog_cli import options
from kafkalog_cli.main import main

MIB = 1024 * 1024


@pytest.mark.parametrize(
    ("text", "expected"),
    [("1", 1), ("1048576", MIB), ("256MiB", 256 * MIB), ("256M", 256 * MIB), ("256 mib", 256 * MIB),
     ("256MB", 256_000_000), ("1k", 1024), ("1KB", 1000), ("2GiB", 2048 * MIB), ("1T", 1024 * 1024 * MIB), ("7B", 7),
     ("7 b", 7), (5, 5)],
)  # fmt: skip
def test_sizes(text, expected):
    assert options.parse_size(text) == expected


@pytest.mark.parametrize(
    "text",
    ["", "0", "-1", "1.5MiB", "MiB", "1XB", "1e3", "1_000", "٣MiB", "9223372036854775808", "9000000000GiB", "1\x1b[2J"],
)
def test_no_size(text):
    with pytest.raises(typer.BadParameter) as refused:
        options.parse_size(text)
    assert "\x1b" not in str(refused.value)


@pytest.mark.parametrize(("text", "expected"), [("0", 0), ("9223372036854775807", 2**63 - 1), (3, 3)])
def test_counts(text, expected):
    assert options.parse_count(text) == expected


@pytest.mark.parametrize("text", ["", "-1", "+1", " 1", "1_0", "1.0", "٣", "9223372036854775808", "0x10"])
def test_no_count(text):
    with pytest.raises(typer.BadParameter):
        options.parse_count(text)


def test_a_positive_number_is_not_zero():
    assert options.parse_positive("1") == 1
    with pytest.raises(typer.BadParameter):
        options.parse_positive("0")


def test_severities():
    assert [options.parse_severity(each.label) for each in Severity] == list(Severity)
    assert options.parse_severity(Severity.INFO) is Severity.INFO
    for text in ("ERROR", "1", "", "worse"):
        with pytest.raises(typer.BadParameter):
            options.parse_severity(text)


def test_times_are_refused_as_usage():
    assert options.parse_moment("2024-05-01") == 1714521600000
    with pytest.raises(typer.BadParameter, match="is no time"):
        options.parse_moment("soon")


def test_one_of():
    option = options.one_of("a", "bc")
    assert option["parser"]("bc") == "bc"
    assert option["metavar"] == "a|bc"
    assert option["autocompletion"]("b") == ["bc"]
    with pytest.raises(typer.BadParameter, match="none of a, bc"):
        option["parser"]("b")


def test_limits():
    assert options.limits_of() == DEFAULT_LIMITS
    limits = options.limits_of(max_zstd_window_bytes=5, max_record_bytes=6)
    assert (limits.max_zstd_window_bytes, limits.max_record_bytes) == (5, 6)
    assert limits.max_decompressed_bytes == DEFAULT_LIMITS.max_decompressed_bytes


def test_a_path_that_is_not_there_is_a_usage_error(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    (tmp_path / "dangling").symlink_to("nowhere")
    there = [str(tmp_path), str(tmp_path / "file"), str(tmp_path / "dangling")]
    assert options.check_paths(there) == there
    for name in ("missing", "file/below", "x" * 300, "esc\x1b[2J"):
        with pytest.raises(typer.BadParameter) as refused:
            options.check_paths([*there, str(tmp_path / name)])
        assert "\x1b" not in str(refused.value)


@given(st.text())
def test_every_parser_refuses_as_usage_or_takes(text):
    for parse in (
        options.parse_size,
        options.parse_count,
        options.parse_positive,
        options.parse_severity,
        options.parse_moment,
    ):
        try:
            parse(text)
        except typer.BadParameter:
            continue


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
