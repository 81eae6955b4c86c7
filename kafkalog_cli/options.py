"""The options that more than one command has, each defined once, as types for the commands' signatures.

Every value is parsed here by a plain function, so that a wrong one is a usage error before any work begins. A
parser passes on what is no string: a default comes parsed already.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from format.findings import Severity
from format.io.remote_path import is_remote
from format.node.log_dir import Kind
from kafkalog_cli.render import FORMATS
from kafkalog_cli.render.escape import printable
from kafkalog_cli.times import parse_time

if TYPE_CHECKING:
    from format.limits import Limits

LEVELS = ("headers", "crc", "records", "full")

_MAX_INT64 = 2**63 - 1
_COUNT = re.compile(r"[0-9]{1,19}")
_SIZE = re.compile(r"([0-9]{1,19}) ?([kmgt]i?b?|b)?", re.IGNORECASE)
_RATE = re.compile(r"[0-9]{1,9}(\.[0-9]{1,6})?")
#: The two ends of each range, by the name of either.
_RANGES = {name: ends for ends in (("from_offset", "to_offset"), ("from_time", "to_time")) for name in ends}
_SIZE_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}


# -- parsers -------------------------------------------------------------------------------------------------


def parse_count(text: Any) -> int:
    """A whole number from 0 to 2^63 - 1."""
    if not isinstance(text, str):
        return int(text)
    if not _COUNT.fullmatch(text) or int(text) > _MAX_INT64:
        raise typer.BadParameter(f"{_shown(text)} is no whole number from 0 to {_MAX_INT64}")
    return int(text)


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
    match = _SIZE.fullmatch(text.strip())
    if not match:
        raise typer.BadParameter(f"{_shown(text)} is no size: give bytes, or a number with KiB, MiB, GiB, KB, MB or GB")
    unit = (match[2] or "").lower()
    base = 1000 if re.fullmatch("[kmgt]b", unit) else 1024
    size_bytes: int = int(match[1]) * pow(base, _SIZE_POWERS[unit[:1].replace("b", "")])
    if not 0 < size_bytes <= _MAX_INT64:
        raise typer.BadParameter(f"{_shown(text)} is out of range")
    return size_bytes


def parse_rate(text: Any) -> int:
    """A rate in bytes per second: a number of megabytes (of 1000 * 1000 bytes), or any size."""
    if isinstance(text, str) and _RATE.fullmatch(text):
        rate = int(float(text) * 1_000_000)
        if rate > 0:
            return rate
        raise typer.BadParameter(f"{_shown(text)} is no rate")
    return parse_size(text)


def parse_moment(text: Any) -> int:
    """A time, as ``times.parse_time`` takes it, in epoch milliseconds."""
    if not isinstance(text, str):
        return int(text)
    try:
        return parse_time(text)
    except ValueError as error:
        raise typer.BadParameter(printable(str(error))) from None


def parse_severity(text: Any) -> Severity:
    """A severity by its name."""
    if isinstance(text, Severity):
        return text
    for severity in Severity:
        if text == severity.label:
            return severity
    raise typer.BadParameter(f"{_shown(text)} is none of {', '.join(each.label for each in Severity)}")


def one_of(*names: str) -> dict[str, Any]:
    """Keywords for typer.Option: one of these words, also for shell completion."""

    def parse(text: Any) -> str:
        if text not in names:
            raise typer.BadParameter(f"{_shown(text)} is none of {', '.join(names)}")
        return str(text)

    return {"parser": parse, "metavar": "|".join(names), "autocompletion": _completion(names)}


def check_range(context: typer.Context, parameter: typer.CallbackParam, value: int | None) -> int | None:
    """One end of a range of offsets or times, when it does not lie on the wrong side of the other end."""
    first, last = _RANGES[str(parameter.name)]
    given = context.params | {parameter.name: value}
    start, end = given.get(first), given.get(last)
    if start is not None and end is not None and start > end:
        options = (f"--{name.replace('_', '-')}" for name in (first, last))
        raise typer.BadParameter(f"the range is empty: {' lies past '.join(options)}")
    return value


def check_paths(paths: list[str] | None) -> list[str] | None:
    """The paths, when all of them are there: a mistyped one stops everything before the work begins."""
    for path in paths or ():
        check_path(path)
    return paths


def check_path(path: str) -> str:
    """The path, when it is there; what is there but cannot be read is left for the operation to say."""
    if is_remote(path):
        raise typer.BadParameter(
            f"{_shown(path)}: other file systems are read by kafkalog scan, as in: kafkalog scan verify {_shown(path)}"
        )
    try:
        os.lstat(path)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG):
            raise typer.BadParameter(f"{_shown(path)}: {os.strerror(error.errno)}") from None
    return path


def check_level(codec: str | None, level: int | None) -> None:
    """Refuse a level that the codec does not have."""
    from format.codecs import COMPRESSION_LEVELS
    from format.layout import CODEC_NAMES

    if level is None:
        return
    number = CODEC_NAMES.index(codec) if codec else -1
    if number not in COMPRESSION_LEVELS:
        raise typer.BadParameter(f"--level goes with --codec gzip, lz4 or zstd, not with {codec or 'none given'}")
    lowest, highest, default = COMPRESSION_LEVELS[number]
    if not (lowest <= level <= highest or level == default):
        raise typer.BadParameter(f"{codec} has levels {lowest} to {highest}, not {level}")


def limits_of(
    max_decompressed_bytes: int | None = None,
    max_record_bytes: int | None = None,
    max_zstd_window_bytes: int | None = None,
) -> Limits:
    """The limits with those that were given on the command line put in place of the defaults."""
    from dataclasses import replace

    from format.limits import DEFAULT_LIMITS

    given = {
        "max_decompressed_bytes": max_decompressed_bytes,
        "max_record_bytes": max_record_bytes,
        "max_zstd_window_bytes": max_zstd_window_bytes,
    }
    return replace(DEFAULT_LIMITS, **{name: value for name, value in given.items() if value is not None})


def jobs_of(jobs: int | None, max_rate: int | None = None) -> int:
    """How many processes to use: what was asked for, else as many as there are processors for this one.

    One keeps to a rate that was set.
    """
    if max_rate is not None:
        return 1
    if jobs is not None:
        return jobs
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def reading(max_rate: int | None, cache_friendly: bool) -> AbstractContextManager[None]:
    """The context in which many files, or large ones, are read as it was asked for."""
    from format.io.freed_memory import keep_freed_memory
    from format.io.read_policy import ReadPolicy, reading_by

    keep_freed_memory()
    policy = ReadPolicy(max_rate, spares_cache=cache_friendly) if max_rate is not None or cache_friendly else None
    return reading_by(policy)


def _shown(text: str) -> str:
    return f"'{printable(text)}'"


def _completion(names: tuple[str, ...]) -> Callable[[str], list[str]]:
    def complete(incomplete: str) -> list[str]:
        return [name for name in names if name.startswith(incomplete)]

    return complete


# -- what is read --------------------------------------------------------------------------------------------

Paths = Annotated[
    list[str],
    typer.Argument(
        metavar="PATH...",
        help="A log directory, a partition directory (TOPIC-PARTITION), or one file of any kind.",
        callback=check_paths,
        show_default=False,
    ),
]
PartitionPath = Annotated[
    str,
    typer.Argument(
        metavar="PARTITION",
        help="A partition directory (TOPIC-PARTITION).",
        callback=check_path,
        show_default=False,
    ),
]
AsKind = Annotated[
    str | None,
    typer.Option(
        "--as",
        help="Read the path as this kind, whatever its name says.",
        **(one_of(*(kind.value for kind in Kind)) | {"metavar": "KIND"}),
    ),
]

# -- what is chosen ------------------------------------------------------------------------------------------

FromOffset = Annotated[
    int | None,
    typer.Option("--from-offset", metavar="N", parser=parse_count, callback=check_range, help="From this offset on."),
]
ToOffset = Annotated[
    int | None,
    typer.Option(
        "--to-offset", metavar="N", parser=parse_count, callback=check_range, help="Up to this offset, itself included."
    ),
]
FromTime = Annotated[
    int | None,
    typer.Option(
        "--from-time",
        metavar="T",
        parser=parse_moment,
        callback=check_range,
        help="From this time on: epoch milliseconds, ISO-8601 (UTC unless it says otherwise), or relative (-2h, now).",
    ),
]
ToTime = Annotated[
    int | None,
    typer.Option(
        "--to-time", metavar="T", parser=parse_moment, callback=check_range, help="Up to this time, itself included."
    ),
]
Limit = Annotated[
    int | None, typer.Option("--limit", metavar="N", parser=parse_positive, help="Stop after so many rows.")
]

# -- how deep, how strict ------------------------------------------------------------------------------------

Level = Annotated[
    str,
    typer.Option(
        "--level", help="How deep to check; each level includes those before it.", show_default=True, **one_of(*LEVELS)
    ),
]
FailOn = Annotated[
    Severity,
    typer.Option(
        "--fail-on",
        metavar="info|warning|error|fatal",
        parser=parse_severity,
        autocompletion=_completion(tuple(each.label for each in Severity)),
        help="The severity from which on a finding makes the exit status 1.",
        show_default="error",
    ),
]

# -- guards --------------------------------------------------------------------------------------------------

MaxDecompressedBytes = Annotated[
    int | None,
    typer.Option(
        "--max-decompressed-bytes",
        metavar="SIZE",
        parser=parse_size,
        help="What one batch may take when decompressed, such as 512MiB.",
        show_default="256MiB",
    ),
]
MaxRecordBytes = Annotated[
    int | None,
    typer.Option(
        "--max-record-bytes", metavar="SIZE", parser=parse_size, help="What one record may take.", show_default="64MiB"
    ),
]
MaxZstdWindow = Annotated[
    int | None,
    typer.Option(
        "--max-zstd-window",
        metavar="SIZE",
        parser=parse_size,
        help="The window that a zstd frame may ask for.",
        show_default="8MiB",
    ),
]

# -- beside a broker that runs -------------------------------------------------------------------------------

MaxRate = Annotated[
    int | None,
    typer.Option(
        "--max-rate",
        metavar="MB/S",
        parser=parse_rate,
        help="Read no more than so many megabytes in a second, by one process.",
    ),
]
CacheFriendly = Annotated[
    bool,
    typer.Option(
        "--cache-friendly", help="Leave the page cache as it was: let go at once of what was not in it before."
    ),
]

# -- how it comes out ----------------------------------------------------------------------------------------

Format = Annotated[
    str | None,
    typer.Option(
        "--format", help="How rows are written.", show_default="table on a terminal, else text", **one_of(*FORMATS)
    ),
]
OutputFile = Annotated[
    str | None,
    typer.Option("--output", metavar="FILE", help="Write to a new file instead of standard output."),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no summary on standard error.")]
Jobs = Annotated[
    int | None,
    typer.Option(
        "--jobs",
        metavar="N",
        parser=parse_positive,
        help="How many processes share large work.",
        show_default="the number of processors",
    ),
]
