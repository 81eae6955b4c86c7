"""Timestamps as text: epoch milliseconds in ISO-8601, without an error for any number."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import lru_cache

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
DAY_MS = 24 * 60 * 60 * 1000
#: How far ahead of its clock a broker accepts timestamps by default (message.timestamp.after.max.ms).
FUTURE_MARGIN_MS = 60 * 60 * 1000
_LAST_MS = (datetime(9999, 12, 31, 23, 59, 59, 999_000, tzinfo=UTC) - EPOCH) // timedelta(milliseconds=1)


def iso_time(timestamp_ms: int) -> str:
    """Epoch milliseconds in ISO-8601, UTC; a negative number, or one past the year 9999, as the number itself."""
    if timestamp_ms < 0 or timestamp_ms > _LAST_MS:
        return str(timestamp_ms)
    seconds, milliseconds = divmod(timestamp_ms, 1000)
    return f"{_second(seconds)}.{milliseconds:03d}Z"


@lru_cache(1024)
def _second(seconds: int) -> str:
    moment = EPOCH + timedelta(seconds=seconds)
    return f"{moment:%Y-%m-%dT%H:%M:%S}"
