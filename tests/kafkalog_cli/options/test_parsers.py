"""The options' parsers: what they take, what they refuse, and that every refusal is a usage error."""

from __future__ import annotations

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st

from kafkalog_cli.options import parsers as options
from kafkalog_cli.options.groups import option

MIB = 1024 * 1024


@pytest.mark.parametrize(
    ("text", "expected"),
    [("1", 1), ("1048576", MIB), ("256MiB", 256 * MIB), ("256M", 256 * MIB), ("256 mib", 256 * MIB),
     ("256MB", 256_000_000), ("1k", 1024), ("1KB", 1000), ("2GiB", 2048 * MIB), ("1T", 1024 * 1024 * MIB), ("7B", 7),
     ("7 b", 7)],
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


@pytest.mark.parametrize(("text", "expected"), [("0", 0), ("9223372036854775807", 2**63 - 1)])
def test_counts(text, expected):
    assert options.parse_count(text) == expected


@pytest.mark.parametrize("text", ["", "-1", "+1", " 1", "1_0", "1.0", "٣", "9223372036854775808", "0x10"])
def test_no_count(text):
    with pytest.raises(typer.BadParameter):
        options.parse_count(text)


@pytest.mark.parametrize(("text", "expected"), [("-1", -1), ("0", 0), ("+7", 7), ("9223372036854775807", 2**63 - 1)])
def test_limits(text, expected):
    assert options.parse_limit(text) == expected


@pytest.mark.parametrize("text", ["", "-", "-2", "--1", "-+1", " 1", "1_0", "٣", "9223372036854775808", "9" * 5000])
def test_no_limit(text):
    with pytest.raises(typer.BadParameter, match="from -1 to"):
        options.parse_limit(text)


@pytest.mark.parametrize("parser", [options.parse_size, options.parse_count, options.parse_limit])
def test_a_default_that_is_a_number_is_not_parsed(parser):
    assert option("A number.", parser=parser).parser(5) == 5
    assert option("A number.", parser=parser).parser("6") == 6


def test_a_positive_number_is_not_zero():
    assert options.parse_positive("1") == 1
    for text in ("0", "-1"):
        with pytest.raises(typer.BadParameter, match="from 1 to"):
            options.parse_positive(text)


def test_times_are_refused_as_usage():
    assert options.parse_moment("2024-05-01") == 1714521600000
    with pytest.raises(typer.BadParameter, match="is not a time"):
        options.parse_moment("soon")


def test_one_of():
    option = options.one_of("a", "bc")
    assert option["parser"]("bc") == "bc"
    assert option["metavar"] == "a|bc"
    assert option["autocompletion"]("b") == ["bc"]
    with pytest.raises(typer.BadParameter, match="not one of a, bc"):
        option["parser"]("b")


@given(st.text())
def test_every_parser_refuses_as_usage_or_takes(text):
    for parse in (
        options.parse_size,
        options.parse_count,
        options.parse_limit,
        options.parse_positive,
        options.parse_rate,
        options.parse_hex,
        options.parse_moment,
    ):
        try:
            parse(text)
        except typer.BadParameter:
            continue


def test_rates():
    assert options.parse_rate("50") == 50_000_000
    assert options.parse_rate("0.5") == 500_000
    assert options.parse_rate("10MiB") == 10 * 1024 * 1024
    for wrong in ("", "0", "-1", "fast", "0.0"):
        with pytest.raises(typer.BadParameter, match="is not a rate: give megabytes per second, or a size"):
            options.parse_rate(wrong)
