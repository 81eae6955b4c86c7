"""Parsers of option values: plain functions, so that a wrong value is a usage error before any work begins."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Any

import typer

from format.columns import DECODED_NAMES, SCHEMAS
from format.errors import InputError
from format.timestamps import EPOCH
from format.wording import did_you_mean
from kafkalog_cli.render.text import printable

_MAX_INT64 = 2**63 - 1
# Patterns are strings: `re` compiles and caches only those that are used.
_INTEGER = r"[+-]?[0-9]{1,19}"
_COUNT = r"[0-9]{1,19}"
_SIZE = r"([0-9]{1,19}) ?([kKmMgGtT][iI]?[bB]?|[bB])?"
_RATE = r"[0-9]{1,9}(\.[0-9]{1,6})?"
_SIZE_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}


def integer_of(text: str, lowest: int, highest: int) -> int | None:
    """A whole number between two bounds, both included, of at most 19 digits; None for any other text."""
    number = int(text) if re.fullmatch(_INTEGER, text) else None
    return number if number is not None and lowest <= number <= highest else None


@contextmanager
def usage_errors(kind: type[Exception], path: object = None, *, option: str | None = None) -> Iterator[None]:
    """The context in which errors of a kind become usage errors, with the path that they are about."""
    try:
        yield
    except kind as error:
        words = f"{path}: {error.message}" if isinstance(error, InputError) and path is not None else str(error)
        raise typer.BadParameter(printable(words), param_hint=option) from None


def parse_count(text: str, lowest: int = 0) -> int:
    """A whole number from 0, or another lowest one, to 2^63 - 1."""
    if not re.fullmatch(_COUNT, text) or not lowest <= int(text) <= _MAX_INT64:
        raise typer.BadParameter(f"{shown(text)} is not a whole number from {lowest} to {_MAX_INT64}")
    return int(text)


def parse_limit(text: str) -> int:
    """A whole number from -1, which means without a limit, to 2^63 - 1."""
    number = integer_of(text, -1, _MAX_INT64)
    if number is None:
        raise typer.BadParameter(f"{shown(text)} is not a whole number from -1 to {_MAX_INT64}")
    return number


def number_to(most: int) -> Callable[[Any], float]:
    """The parser of a number from 0 to ``most``, which may have a fraction."""

    def parse(text: str) -> float:
        try:
            number = float(text)
        except ValueError:
            number = -1.0
        if not 0 <= number <= most:
            raise typer.BadParameter(f"{shown(text)} is not a number from 0 to {most}")
        return number

    return parse


def parse_positive(text: str) -> int:
    """A whole number from 1 to 2^63 - 1."""
    return parse_count(text, 1)


def parse_size(text: str) -> int:
    """Bytes: ``1048576``, ``256MiB`` or ``256M`` (powers of 1024), ``256MB`` (powers of 1000)."""
    match = re.fullmatch(_SIZE, text.strip())
    if not match:
        raise typer.BadParameter(
            f"{shown(text)} is not a size: give bytes, or a number with KiB, MiB, GiB, KB, MB or GB"
        )
    unit = (match[2] or "").lower()
    base = 1000 if re.fullmatch("[kmgt]b", unit) else 1024
    size_bytes: int = int(match[1]) * pow(base, _SIZE_POWERS[unit[:1].replace("b", "")])
    if not 0 < size_bytes <= _MAX_INT64:
        raise typer.BadParameter(f"{shown(text)} is out of range")
    return size_bytes


def parse_rate(text: str) -> int:
    """A rate in bytes per second: a number of megabytes (of 1000 * 1000 bytes), or any size."""
    rate = 0
    if re.fullmatch(_RATE, text):
        rate = int(float(text) * 1_000_000)
    elif re.fullmatch(_SIZE, text.strip()):
        rate = parse_size(text)
    if rate <= 0:
        raise typer.BadParameter(f"{shown(text)} is not a rate: give megabytes per second, or a size such as 500KiB")
    return rate


def parse_moment(text: str) -> int:
    """A time, as ``parse_time`` takes it, in epoch milliseconds."""
    with usage_errors(ValueError):
        return parse_time(text)


def parse_duration(text: str) -> int:
    """A length of time in milliseconds, such as ``90s``, ``5m`` or ``1h30m``."""
    found = _RELATIVE.fullmatch(f"+{text.strip()}")
    if not found:
        raise typer.BadParameter(
            f"{shown(text)} is not a duration: give a number with ms, s, m, h, d or w, such as 90s"
        )
    return sum(int(count) * _UNIT_MS[unit] for count, unit in _PART.findall(found["parts"]))


def parse_hex(text: str) -> bytes:
    """Bytes from hexadecimal digits, which may have spaces between them."""
    try:
        found = bytes.fromhex(text.removeprefix("0x"))
    except ValueError:
        found = b""
    if not found:
        raise typer.BadParameter("give bytes as pairs of hexadecimal digits, such as 00ff or '00 ff'")
    return found


#: Keywords for an option: a number of rows or an offset, a number of at least 1, a size, a time.
COUNT: dict[str, Any] = {"metavar": "N", "parser": parse_count}
POSITIVE: dict[str, Any] = {"metavar": "N", "parser": parse_positive}
SIZE: dict[str, Any] = {"metavar": "SIZE", "parser": parse_size}
MOMENT: dict[str, Any] = {"metavar": "T", "parser": parse_moment}


def one_of(*names: str, metavar: str | None = None) -> dict[str, Any]:
    """Keywords for an option: one of these words, also for shell completion."""

    def parse(text: str) -> str:
        if text not in names:
            hint = "; 'kafkalog extract --to parquet' writes Parquet files" if text == "parquet" else ""
            meant = did_you_mean(text, names) if not hint else ""
            raise typer.BadParameter(f"{shown(text)} is not one of {', '.join(names)}{hint}{meant and f'.{meant}'}")
        return text

    return {"parser": parse, "metavar": metavar or "|".join(names), "autocompletion": completion_of(names)}


def completion_of(names: tuple[str, ...]) -> Callable[[str], list[str]]:
    """The function that typer calls for shell completion: the names that begin with what is typed."""

    def complete(incomplete: str) -> list[str]:
        return [name for name in names if name.startswith(incomplete)]

    return complete


def shown(text: str) -> str:
    """The text of a value in quotes, safe for a screen, for messages."""
    return f"'{printable(text)}'"


def parse_columns(text: str) -> str:
    """Names of columns with commas between them, each a column of some row type, or ``all``."""
    known = {name for schema in SCHEMAS for name in schema.names} | DECODED_NAMES | {"all"}
    names = [name.strip() for name in text.split(",")]
    for name in names:
        if name not in known:
            raise typer.BadParameter(f"{shown(name)} is not a column of any row")
    return ",".join(names)


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


def parse_time(text: str) -> int:
    """Epoch milliseconds of a time as text: ``1714564800000``, ``2024-05-01T12:00``, ``-2h``, ``-1d12h``, ``now``.

    Digits alone are epoch milliseconds, but a number that looks like a year, a day or seconds is refused. With a unit,
    as in ``1714564800s`` and ``5000ms``, any number is accepted. ISO-8601 times are UTC unless they name an offset;
    fractions of a millisecond are cut off. Raises ValueError with a message for users.
    """
    text = text.strip()
    if _DIGITS.fullmatch(text):
        return _in_range(_unambiguous(int(text), text), text)
    with_unit = _WITH_UNIT.fullmatch(text)
    if with_unit:
        return _in_range(int(with_unit["number"]) * _UNIT_MS[with_unit["unit"]], text)
    if text == "now":
        return _now_ms()
    relative = _RELATIVE.fullmatch(text)
    if relative:
        span_ms = parse_duration(relative["parts"])
        return _in_range(_now_ms() + (-span_ms if relative["sign"] == "-" else span_ms), text)
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


class Takes(Enum):
    """Whether a flag takes a value."""

    NOTHING = "nothing"
    VALUE = "value"
    OPTIONAL_VALUE = "optional value"


class FlagError(Exception):
    """A command line that jopt-simple refuses; the message is its own. ``unknown`` is a flag that does not exist."""

    def __init__(self, message: str, unknown: str | None = None) -> None:
        super().__init__(message)
        self.unknown = unknown


def parse_flags(words: Sequence[str], known: Mapping[str, Takes]) -> tuple[list[tuple[str, str | None]], list[str]]:
    """Parse a command line; ``known`` has the flags without dashes. Raises FlagError.

    Returns the flags in their order, each with its value (None for one that takes none or was not given one), and the
    other words.
    """
    flags: list[tuple[str, str | None]] = []
    other_words: list[str] = []
    at = 0
    while at < len(words):
        word = words[at]
        at += 1
        if word == "--":
            other_words += words[at:]
            break
        if not _looks_like_flag(word):
            other_words.append(word)
            continue
        name, equals, value = (word[2:] if word[:2] == "--" else word[1:]).partition("=")
        if name not in known:
            raise FlagError(f"{name if word[:2] == '--' else name[:1]} is not a recognized option", name)
        takes = known[name]
        if takes is Takes.NOTHING:
            flags.append((name, None))
        elif equals:
            flags.append((name, value))
        elif at < len(words) and (takes is Takes.VALUE or not _looks_like_flag(words[at])):
            flags.append((name, words[at]))
            at += 1
        elif takes is Takes.VALUE:
            raise FlagError(f"Option {name} requires an argument")
        else:
            flags.append((name, None))
    return flags, other_words


def _looks_like_flag(word: str) -> bool:
    return word.startswith("-") and word != "-"
