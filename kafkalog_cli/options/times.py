"""Times of the command line: the ``T`` of the options.

Inside the program a time is an integer as in Kafka: milliseconds since 1970 in UTC, 64 bits, signed.
"""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime, timedelta

from format.timestamps import EPOCH

_MILLISECOND = timedelta(milliseconds=1)
_DIGITS = re.compile(r"[+-]?[0-9]{1,20}")
_RELATIVE = re.compile(r"(?P<sign>[+-])(?P<parts>(?:[0-9]{1,12}(?:ms|s|m|h|d|w))+)")
_PART = re.compile(r"([0-9]+)(ms|s|m|h|d|w)")
_UNIT_MS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
_MIN, _MAX = -(2**63), 2**63 - 1


def parse_time(text: str, now_ms: int | None = None) -> int:
    """Epoch milliseconds of a time as text: ``1714564800000``, ``2024-05-01T12:00``, ``-2h``, ``-1d12h``, ``now``.

    Digits alone are epoch milliseconds. ISO-8601 times are UTC unless they name an offset; fractions of a millisecond
    are cut off. Relative times count from ``now_ms``, by default the clock. Raises ValueError with a message for users.
    """
    text = text.strip()
    if _DIGITS.fullmatch(text):
        return _in_range(int(text), text)
    if text == "now":
        return _now_ms() if now_ms is None else now_ms
    relative = _RELATIVE.fullmatch(text)
    if relative:
        span_ms = sum(int(count) * _UNIT_MS[unit] for count, unit in _PART.findall(relative["parts"]))
        base_ms = _now_ms() if now_ms is None else now_ms
        return _in_range(base_ms - span_ms if relative["sign"] == "-" else base_ms + span_ms, text)
    try:
        moment = datetime.fromisoformat(text)
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        return (moment - EPOCH) // _MILLISECOND
    except (ValueError, OverflowError):
        raise ValueError(
            f"{text!r} is no time: give epoch milliseconds, an ISO-8601 time such as 2024-05-01T12:00 (UTC unless it "
            "says otherwise), a relative one such as -2h (units: ms s m h d w), or now"
        ) from None


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _in_range(timestamp_ms: int, text: str) -> int:
    if not _MIN <= timestamp_ms <= _MAX:
        raise ValueError(f"{text!r} is no time: it does not fit in 64 bits")
    return timestamp_ms
