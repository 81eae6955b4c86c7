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
_WITH_UNIT = re.compile(r"(?P<number>[0-9]{1,20})(?P<unit>ms|s)")
#: Numbers that are probably meant as a year, or as seconds of 1990 to 2199.
_YEARS = range(1970, 2200)
_SECONDS = range(631_152_000, 7_258_118_400)
_RELATIVE = re.compile(r"(?P<sign>[+-])(?P<parts>(?:[0-9]{1,12}(?:ms|s|m|h|d|w))+)")
_PART = re.compile(r"([0-9]+)(ms|s|m|h|d|w)")
_UNIT_MS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
_MIN, _MAX = -(2**63), 2**63 - 1


def parse_time(text: str, now_ms: int | None = None) -> int:
    """Epoch milliseconds of a time as text: ``1714564800000``, ``2024-05-01T12:00``, ``-2h``, ``-1d12h``, ``now``.

    Digits alone are epoch milliseconds, but a number that looks like a year, a day or seconds is refused. With a unit,
    as in ``1714564800s`` and ``5000ms``, any number is accepted. ISO-8601 times are UTC unless they name an offset;
    fractions of a millisecond are cut off. Relative times count from ``now_ms``, by default the clock. Raises
    ValueError with a message for users.
    """
    text = text.strip()
    if _DIGITS.fullmatch(text):
        return _in_range(_unambiguous(int(text), text), text)
    with_unit = _WITH_UNIT.fullmatch(text)
    if with_unit:
        return _in_range(int(with_unit["number"]) * _UNIT_MS[with_unit["unit"]], text)
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
            f"{text!r} is not a time: give epoch milliseconds, seconds as in 1714564800s, ISO-8601 as in "
            "2024-05-01T12:00 (UTC unless it names an offset), a relative time as in -2h (units: ms s m h d w), or now"
        ) from None


def _unambiguous(number: int, text: str) -> int:
    """A number without a unit as milliseconds. Raises ValueError for one that looks like a year, a day or seconds.

    As milliseconds, all the refused numbers are in the first 84 days of 1970.
    """
    if number in _SECONDS:
        meant = f"{number}s for seconds"
    elif number in _YEARS:
        meant = f"{number}-01-01 for the year"
    else:
        try:
            day = datetime.strptime(text, "%Y%m%d") if len(text) == 8 else None
        except ValueError:
            day = None
        if day is None or day.year not in _YEARS:
            return number
        meant = f"{day:%Y-%m-%d} for the day"
    raise ValueError(f"{text!r} can be read in several ways: write {meant}, or {number}ms for milliseconds of 1970")


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _in_range(timestamp_ms: int, text: str) -> int:
    if not _MIN <= timestamp_ms <= _MAX:
        raise ValueError(f"{text!r} is not a time: it does not fit in 64 bits")
    return timestamp_ms
