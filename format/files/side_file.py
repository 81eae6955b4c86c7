"""What all side files share: opening, bounded reading, lines of text, and problems that do not stop the reading.

A side file is every file of a log directory but the log itself: indexes, snapshots, checkpoints, properties.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import NamedTuple

from format.errors import InvalidCheckpoint, LimitExceeded
from format.findings import Finding, Severity, finding
from format.io.source import FileSource, Source
from format.limits import DEFAULT_LIMITS, Limits
from format.location import Location
from format.value_class import value_class

PathOrSource = str | os.PathLike[str] | Source

#: A file has at most this many problems of one kind, so that their number cannot exhaust memory; one more sums up.
MAX_PROBLEMS = 100
_CHUNK_BYTES = 64 * 1024
_INTEGER = re.compile(r"([+-]?)0*([0-9]{1,19})")
INT32_RANGE = (-(2**31), 2**31 - 1)
INT64_RANGE = (-(2**63), 2**63 - 1)


@value_class
class Problem:
    """Something in a file that contradicts the format while the rest of it can still be read.

    ``position`` and ``length`` are bytes in the file; ``code`` is the finding code that reports it.
    """

    position: int
    length: int
    message: str
    code: str


class Line(NamedTuple):
    """One line of a text file: its number from 1, its first byte and its bytes without the terminator."""

    number: int
    position: int
    content: bytes


@contextmanager
def opened(path_or_source: PathOrSource) -> Iterator[Source]:
    """The source to read from: a path is opened and closed again, a source is left open.

    Raises UnreadableFile for a path that is not a readable regular file.
    """
    if isinstance(path_or_source, (str, os.PathLike)):
        with FileSource(path_or_source) as source:
            yield source
    else:
        yield path_or_source


def check_size(source: Source, limits: Limits = DEFAULT_LIMITS) -> None:
    """Raises LimitExceeded for a file that is larger than ``limits.max_side_file_bytes``."""
    if source.size_bytes > limits.max_side_file_bytes:
        raise LimitExceeded(
            f"the file has {source.size_bytes} bytes, over the limit of {limits.max_side_file_bytes}",
            Location(source.path),
        )


def lines(source: Source, limits: Limits = DEFAULT_LIMITS) -> Iterator[Line]:
    r"""The lines of a text file, ended by \n, \r or \r\n as Java's BufferedReader ends them; read in chunks.

    Raises LimitExceeded for too large a file, too many lines, and a line over ``limits.max_line_bytes``.
    """
    check_size(source, limits)
    buffer, position, number, next_read = b"", 0, 0, 0
    while True:
        chunk = source.read_at(next_read, max(_CHUNK_BYTES, len(buffer)))
        next_read += len(chunk)
        pieces = (buffer + chunk).splitlines(keepends=True)
        # The last piece may go on in the next chunk, be it only with the \n of a \r\n.
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
    """The line as UTF-8; raises InvalidCheckpoint where it is not."""
    try:
        return line.content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise invalid_line(source, line, "UTF-8 text", f"byte 0x{line.content[error.start]:02x}") from error


def decode_integer(text: str, least: int, most: int) -> int | None:
    """A decimal integer as Java's parseInt and parseLong read it, in ASCII digits; None for anything else."""
    if len(text) < 19 and text.isascii() and text.isdigit():
        value = int(text)  # nearly always
    else:
        match = _INTEGER.fullmatch(text)
        if match is None:
            return None
        value = int(match[1] + match[2])
    return value if least <= value <= most else None


def invalid_line(source: Source, line: Line, expected: str, actual: str | None = None) -> InvalidCheckpoint:
    """The error for a line that is not what it should be; without ``actual`` the line itself is shown."""
    found = shown(line.content) if actual is None else actual
    return InvalidCheckpoint(
        f"line {line.number}: expected {expected}, found {found}",
        Location(source.path, position=line.position, length=len(line.content)),
    )


def shown(content: bytes | str, most: int = 60) -> str:
    """Content quoted for a message: escaped to ASCII and cut short."""
    text = content.decode("utf-8", "surrogateescape") if isinstance(content, bytes) else content
    quoted = ascii(text[:most])
    return quoted if len(text) <= most else f"{quoted} and {len(text) - most} more characters"


def problem_findings(
    problems: Iterable[Problem], location: Location, *, severity: Severity | None = None
) -> Iterator[Finding]:
    """Findings for the problems that the reader of a side file noted; ``severity`` is the highest that they get."""
    for problem in problems:
        place = location.at(position=problem.position, length=problem.length)
        found = finding(problem.code, place, problem.message)
        yield found if severity is None else replace(found, severity=min(found.severity, severity))
