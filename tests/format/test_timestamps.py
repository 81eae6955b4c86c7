"""Epoch milliseconds as ISO-8601, without an error for any number."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from format.timestamps import iso_time


@pytest.mark.parametrize("timestamp_ms", [0, 1, 999, 1_700_000_000_123, 253_402_300_799_999])
def test_a_date_is_that_of_the_library(timestamp_ms: int) -> None:
    seconds, milliseconds = divmod(timestamp_ms, 1000)
    expected = datetime.fromtimestamp(seconds, UTC).replace(microsecond=milliseconds * 1000)
    assert datetime.fromisoformat(iso_time(timestamp_ms)) == expected


@pytest.mark.parametrize("number", [-(2**63), -1, 253_402_300_800_000, 2**63 - 1])
def test_what_is_no_date_stays_a_number(number: int) -> None:
    assert iso_time(number) == str(number)
