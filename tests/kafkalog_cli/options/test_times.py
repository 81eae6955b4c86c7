"""Times as people give and read them."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from format.timestamps import iso_time
from kafkalog_cli.options import parsers
from kafkalog_cli.options.parsers import parse_time

NOW = 1_714_564_800_000


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0", 0),
        ("-1", -1),
        ("-2", -2),
        ("1714564800000", NOW),
        ("9223372036854775807", 2**63 - 1),
        ("-9223372036854775808", -(2**63)),
        ("2024-05-01", NOW - 12 * 3_600_000),
        ("2024-05-01T12:00", NOW),
        ("2024-05-01 12:00:00", NOW),
        ("2024-05-01T12:00:00Z", NOW),
        ("2024-05-01T14:00:00+02:00", NOW),
        ("2024-05-01T12:00:00.123", NOW + 123),
        ("2024-05-01T12:00:00.123999Z", NOW + 123),
        ("1969-12-31T23:59:59.999", -1),
        ("0001-01-01T00:00:00+14:00", -62135596800000 - 14 * 3_600_000),
        ("now", NOW),
        ("-2h", NOW - 7_200_000),
        ("+5m", NOW + 300_000),
        ("-1d12h", NOW - 129_600_000),
        ("-1w1s1ms", NOW - 604_801_001),
        (" -2h ", NOW - 7_200_000),
    ],
)
def test_parse(text, expected, monkeypatch):
    monkeypatch.setattr(parsers, "_now_ms", lambda: NOW)
    assert parse_time(text) == expected


@pytest.mark.parametrize(
    "text",
    ["", "yesterday", "2h", "-2y", "-h", "--2h", "2024-13-01", "2024-05-01T25:00", "9223372036854775808", "1e3", "٣",
     "-٣h", "1_000", "-999999999999w", "99999999999999999999999999", "2024-05-01T12:00\x1b[2J"],
)  # fmt: skip
def test_no_time(text):
    with pytest.raises(ValueError, match="is not a time"):
        parse_time(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1714564800s", NOW),
        ("5000ms", 5000),
        ("0s", 0),
        ("2026ms", 2026),
        ("20261122ms", 20_261_122),
        ("253402300799ms", 253_402_300_799),
    ],
)
def test_a_unit_takes_any_number(text, expected):
    assert parse_time(text) == expected


@pytest.mark.parametrize(
    ("text", "write"),
    [
        ("1970", "1970-01-01 for the year, or 1970ms for milliseconds of 1970"),
        ("2026", "2026-01-01 for the year, or 2026ms for milliseconds of 1970"),
        ("2199", "2199-01-01 for the year"),
        ("631152000", "631152000s for seconds, or 631152000ms"),
        ("1714564800", "1714564800s for seconds, or 1714564800ms"),
        ("7258118399", "7258118399s for seconds"),
        ("20261122", "2026-11-22 for the day, or 20261122ms for milliseconds of 1970"),
    ],
)
def test_a_number_that_may_be_no_milliseconds_is_refused(text, write):
    with pytest.raises(ValueError, match=f"'{text}' can be read in several ways: write {write}"):
        parse_time(text)


@pytest.mark.parametrize(
    "number", [1, 1000, 1969, 2200, 20_261_322, 19_691_231, 631_151_999, 7_258_118_400, 253_402_300_799]
)
def test_other_numbers_are_milliseconds(number):
    assert parse_time(str(number)) == number


def test_now_is_the_clock():
    before = datetime.now(UTC).timestamp() * 1000 - 1
    assert before <= parse_time("now") <= before + 60_000


@pytest.mark.parametrize(
    ("timestamp_ms", "expected"),
    [
        (NOW, "2024-05-01T12:00:00.000Z"),
        (0, "1970-01-01T00:00:00.000Z"),
        (253402300799999, "9999-12-31T23:59:59.999Z"),
        (253402300800000, "253402300800000"),
        (-1, "-1"),
        (-62135596800001, "-62135596800001"),
        (2**63 - 1, "9223372036854775807"),
        (-(2**63), "-9223372036854775808"),
    ],
)
def test_iso(timestamp_ms, expected):
    assert iso_time(timestamp_ms) == expected


@given(st.integers(0, 253402300799999))
def test_what_is_shown_can_be_given(timestamp_ms):
    assert parse_time(iso_time(timestamp_ms)) == timestamp_ms


@given(st.integers(-(2**63), 2**63 - 1))
def test_every_timestamp_can_be_shown(timestamp_ms):
    assert iso_time(timestamp_ms)


@given(st.text() | st.text("0123456789-+.:TZ ", max_size=26) | st.integers().map(str) | st.datetimes().map(str))
@example("1714564800000")
def test_any_text_is_a_time_or_a_value_error(text):
    try:
        timestamp_ms = parse_time(text)
    except ValueError:
        return
    assert -(2**63) <= timestamp_ms < 2**63
