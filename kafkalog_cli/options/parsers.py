"""Parsers of option values: plain functions, so that a wrong value is a usage error before any work begins.

A parser returns a value that is not a string unchanged, as defaults are parsed already.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import typer

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


def parse_count(text: Any) -> int:
    """A whole number from 0 to 2^63 - 1."""
    if not isinstance(text, str):
        return int(text)
    if not re.fullmatch(_COUNT, text) or int(text) > _MAX_INT64:
        raise typer.BadParameter(f"{shown(text)} is not a whole number from 0 to {_MAX_INT64}")
    return int(text)


def parse_limit(text: Any) -> int:
    """A whole number from -1, which means without a limit, to 2^63 - 1."""
    if not isinstance(text, str):
        return int(text)
    number = integer_of(text, -1, _MAX_INT64)
    if number is None:
        raise typer.BadParameter(f"{shown(text)} is not a whole number from -1 to {_MAX_INT64}")
    return number


def parse_positive(text: Any) -> int:
    """A whole number from 1 to 2^63 - 1."""
    number = parse_count(text)
    if number == 0:
        raise typer.BadParameter("must be at least 1")
    return number


def parse_size(text: Any) -> int:
    """Bytes: ``1048576``, ``256MiB`` or ``256M`` (powers of 1024), ``256MB`` (powers of 1000)."""
    if not isinstance(text, str):
        return int(text)
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


def parse_rate(text: Any) -> int:
    """A rate in bytes per second: a number of megabytes (of 1000 * 1000 bytes), or any size."""
    rate = 0
    if isinstance(text, str) and re.fullmatch(_RATE, text):
        rate = int(float(text) * 1_000_000)
    elif not isinstance(text, str) or re.fullmatch(_SIZE, text.strip()):
        rate = parse_size(text)
    if rate <= 0:
        raise typer.BadParameter(f"{shown(text)} is not a rate: give megabytes per second, or a size such as 500KiB")
    return rate


def parse_moment(text: Any) -> int:
    """A time, as ``times.parse_time`` takes it, in epoch milliseconds."""
    if not isinstance(text, str):
        return int(text)
    from kafkalog_cli.options.times import parse_time

    try:
        return parse_time(text)
    except ValueError as error:
        raise typer.BadParameter(printable(str(error))) from None


def parse_hex(text: Any) -> Any:
    """Bytes from hexadecimal digits, which may have spaces between them."""
    if not isinstance(text, str):
        return text
    try:
        found = bytes.fromhex(text.removeprefix("0x"))
    except ValueError:
        found = b""
    if not found:
        raise typer.BadParameter("give bytes as pairs of hexadecimal digits, such as 00ff or '00 ff'")
    return found


def one_of(*names: str) -> dict[str, Any]:
    """Keywords for typer.Option: one of these words, also for shell completion."""

    def parse(text: Any) -> str:
        if text not in names:
            from format.wording import did_you_mean

            hint = "; 'kafkalog extract --to parquet' writes Parquet files" if text == "parquet" else ""
            meant = did_you_mean(str(text), names) if not hint else ""
            raise typer.BadParameter(f"{shown(text)} is not one of {', '.join(names)}{hint}{meant and f'.{meant}'}")
        return str(text)

    return {"parser": parse, "metavar": "|".join(names), "autocompletion": completion_of(names)}


def completion_of(names: tuple[str, ...]) -> Callable[[str], list[str]]:
    """The function that typer calls for shell completion: the names that begin with what is typed."""

    def complete(incomplete: str) -> list[str]:
        return [name for name in names if name.startswith(incomplete)]

    return complete


def shown(text: str) -> str:
    """The text of a value in quotes, safe for a screen, for messages."""
    return f"'{printable(text)}'"


def parse_columns(text: Any) -> str:
    """Names of columns with commas between them, each a column of some row type, or ``all``."""
    from format.columns import SCHEMAS

    known = {name for schema in SCHEMAS for name in schema.names} | {"all"}
    names = [name.strip() for name in str(text).split(",")]
    for name in names:
        if name not in known:
            raise typer.BadParameter(f"{shown(name)} is not a column of any row")
    return ",".join(names)
