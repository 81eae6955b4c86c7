"""Shared parts of the readers of side files: opening, bounded reading, lines of text, and problems.

A side file is a file of a log directory other than a log: an index, snapshot, checkpoint or properties file.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from format.errors import InvalidCheckpoint, LimitExceeded
from format.findings import Finding, Severity, finding
from format.io.source import FileSource, Source
from format.limits import DEFAULT_LIMITS, Limits
from format.location import Location

PathOrSource = str | os.PathLike[str] | Source

#: The most problems of one kind in a file, which bounds the memory for them; one more problem counts the others.
MAX_PROBLEMS = 100
_CHUNK_BYTES = 64 * 1024
#: Java takes the decimal digits of every script, but only those that are one char.
_INTEGER = re.compile(r"([+-]?)0*((?:(?![\U00010000-\U0010ffff])\d){1,40})")
INT32_RANGE = (-(2**31), 2**31 - 1)
INT64_RANGE = (-(2**63), 2**63 - 1)


class Problem(msgspec.Struct, frozen=True):
    """A part of a file that contradicts the format, while the rest of it can be read.

    ``position`` and ``length`` are in bytes; ``code`` is the code of the finding that reports it.
    """

    position: int
    length: int
    message: str
    code: str


class Line(NamedTuple):
    """One line of a text file: its number from 1, the position of its first byte, its bytes without the line end."""

    number: int
    position: int
    content: bytes


@contextmanager
def opened(path_or_source: PathOrSource) -> Iterator[Source]:
    """Open a path, and close it at the end of the context; a source is returned and left open.

    Raises UnreadableFile for a path that is not a readable regular file.
    """
    if isinstance(path_or_source, (str, os.PathLike)):
        with FileSource(path_or_source) as source:
            yield source
    else:
        yield path_or_source


def check_size(source: Source, limits: Limits = DEFAULT_LIMITS) -> None:
    """Raise LimitExceeded for a file that is larger than ``limits.max_side_file_bytes``."""
    if source.size_bytes > limits.max_side_file_bytes:
        raise LimitExceeded(
            f"the file has {source.size_bytes} bytes, over the limit of {limits.max_side_file_bytes}",
            Location(source.path),
        )


def lines(source: Source, limits: Limits = DEFAULT_LIMITS) -> Iterator[Line]:
    r"""The lines of a text file, which end with \n, \r or \r\n as for Java's BufferedReader; read in chunks.

    Raises LimitExceeded for too large a file, too many lines, and a line over ``limits.max_line_bytes``.
    """
    check_size(source, limits)
    buffer, position, number, next_read = b"", 0, 0, 0
    while True:
        chunk = source.read_at(next_read, max(_CHUNK_BYTES, len(buffer)))
        next_read += len(chunk)
        pieces = (buffer + chunk).splitlines(keepends=True)
        # The last piece may continue in the next chunk, if only with the \n of a \r\n.
        buffer = pieces.pop() if chunk and pieces else b""
        for piece in pieces:
            number += 1
            if number > limits.max_lines:
                raise LimitExceeded(
                    f"the file has more lines than the limit of {limits.max_lines}",
                    Location(source.path, position=position),
                )
            yield _line(source, number, position, piece, limits)
            position += len(piece)
        if not chunk:
            return
        if len(buffer) > limits.max_line_bytes + 2:
            _line(source, number + 1, position, buffer, limits)


def _line(source: Source, number: int, position: int, piece: bytes, limits: Limits) -> Line:
    content = piece.rstrip(b"\r\n")
    if len(content) > limits.max_line_bytes:
        raise LimitExceeded(
            f"line {number} is longer than the limit of {limits.max_line_bytes} bytes",
            Location(source.path, position=position),
        )
    return Line(number, position, content)


def decode_text(source: Source, line: Line) -> str:
    """Decode a line as UTF-8; raises InvalidCheckpoint."""
    try:
        return line.content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise invalid_line(source, line, "UTF-8 text", f"byte 0x{line.content[error.start]:02x}") from error


def decode_integer(text: str, least: int, most: int) -> int | None:
    """Decode a decimal integer, as Java's parseInt and parseLong do; None for other text."""
    if len(text) < 19 and text.isascii() and text.isdigit():
        value = int(text)  # the usual case
    else:
        match = _INTEGER.fullmatch(text)
        if match is None:
            return None
        value = int(match[1] + match[2])
    return value if least <= value <= most else None


def invalid_line(source: Source, line: Line, expected: str, actual: str | None = None) -> InvalidCheckpoint:
    """The error for a line that is not as expected; without ``actual`` the line itself is shown."""
    found = shown(line.content) if actual is None else actual
    return InvalidCheckpoint(
        f"line {line.number}: expected {expected}, found {found}",
        Location(source.path, position=line.position, length=len(line.content)),
    )


def shown(content: bytes | str, most: int = 60) -> str:
    """Content quoted for a message: escaped to ASCII, and the first ``most`` characters only."""
    text = content.decode("utf-8", "surrogateescape") if isinstance(content, bytes) else content
    quoted = ascii(text[:most])
    return quoted if len(text) <= most else f"{quoted} and {len(text) - most} more characters"


def problem_findings(
    problems: Iterable[Problem], location: Location, *, severity: Severity | None = None
) -> Iterator[Finding]:
    """The findings that report the problems of a side file; their severity is at most ``severity``."""
    for problem in problems:
        place = location.at(position=problem.position, length=problem.length)
        found = finding(problem.code, place, problem.message)
        yield found if severity is None else replace(found, severity=min(found.severity, severity))
