"""Shared parts of the readers of side files: opening, bounded reading, lines of text, and problems.

A side file is a file of a log directory other than a log: an index, snapshot, checkpoint or properties file.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Concatenate, NamedTuple, ParamSpec, Protocol, TypeVar

import msgspec
from msgspec.structs import replace

from format.errors import InvalidCheckpoint, KafkaLogError, LimitExceeded, UnknownVersion
from format.findings import Finding, Severity, finding, finding_of
from format.io.source import FileSource, Source
from format.limits import DEFAULT_LIMITS, Limits
from format.location import Location
from format.wording import counted_plainly

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


class HasProblems(Protocol):
    """A side file that was read."""

    @property
    def problems(self) -> tuple[Problem, ...]: ...


FileT = TypeVar("FileT", bound=HasProblems)
OtherT = ParamSpec("OtherT")


def read_reported(
    found: list[Finding],
    location: Location,
    read: Callable[Concatenate[Path, OtherT], FileT],
    path: Path | None,
    *others: OtherT.args,
    **named: OtherT.kwargs,
) -> FileT | None:
    """A side file, None if there is none or it cannot be read; findings about it are added to ``found``."""
    if path is None:
        return None
    try:
        known = read(path, *others, **named)
    except KafkaLogError as error:
        found.append(finding_of(error, location))
        return None
    found += problem_findings(known.problems, location)
    return known


CURRENT_VERSION = 0


class CheckpointReader:
    """Reads the first two lines when it is made, then the entry lines, and compares the count with their number.

    ``version`` is None for an empty file, and ``entry_count`` without a second line.

    An empty file has no entries: brokers create it at start and fill it later. A file that ends after its version also
    has no entries for a broker, but gets a problem. All methods raise InvalidCheckpoint (with the number of the line
    in the message and its position in the location), UnknownVersion and LimitExceeded.
    """

    def __init__(self, source: Source, limits: Limits) -> None:
        self._source = source
        self._lines = lines(source, limits)
        self._problems: list[Problem] = []
        self._problem_count = 0
        self._last_problem_line = Line(0, 0, b"")
        version_line = next(self._lines, None)
        self.version = self._integer(version_line, f"the version, {CURRENT_VERSION}", INT32_RANGE[0])
        if self.version not in (None, CURRENT_VERSION):
            message = f"line 1: version {self.version}, only {CURRENT_VERSION} is known"
            raise UnknownVersion(message, Location(source.path))
        self._count_line = next(self._lines, None)
        self.entry_count = self._integer(self._count_line, "the number of entries", 0)
        if version_line is not None and self.entry_count is None:
            self.add_problem(version_line, "the file ends after the version; a broker reads it as one without entries")

    def _integer(self, line: Line | None, expected: str, least: int) -> int | None:
        if line is None:
            return None
        value = decode_integer(decode_text(self._source, line), least, INT32_RANGE[1])
        if value is None:
            raise invalid_line(self._source, line, expected)
        return value

    def entries(self, word_count: int, expected: str) -> Iterator[tuple[Line, list[str]]]:
        """The entry lines and their words; ``expected`` describes the words, for the error if the count is wrong."""
        number = 0
        for number, line in enumerate(self._lines, start=1):
            if number > (self.entry_count or 0):
                count = counted_plainly(self.entry_count or 0, "entry")
                raise invalid_line(self._source, line, f"the end of the file after {count}, as line 2 says")
            # A broker accepts white space between words and after them, but not before them.
            # bytes.split() splits at ASCII white space only, as Java's \s does.
            text = decode_text(self._source, line)
            words = [word.decode("utf-8") for word in line.content.split()]
            if len(words) != word_count or not text.startswith(words[0]):
                raise invalid_line(self._source, line, expected)
            yield line, words
        if self._count_line is not None and number != self.entry_count:
            raise InvalidCheckpoint(
                f"line 2: expected the number of entries, which is {number}, found {self.entry_count}",
                Location(self._source.path, position=self._count_line.position, length=len(self._count_line.content)),
            )

    def integer(self, line: Line, word: str, expected: str, most: int, least: int = 0) -> int:
        """Decode a word of an entry as an integer from ``least`` to ``most``."""
        value = decode_integer(word, least, most)
        if value is None:
            raise invalid_line(self._source, line, expected)
        return value

    @property
    def problems(self) -> tuple[Problem, ...]:
        """The problems so far: the first hundred, and one that counts the others."""
        more, line = self._problem_count - MAX_PROBLEMS, self._last_problem_line
        if more <= 0:
            return tuple(self._problems)
        text = f"{counted_plainly(more, 'more problem')}, the last on line {line.number}"
        return (*self._problems, Problem(line.position, len(line.content), text, InvalidCheckpoint.code))

    def add_problem(self, line: Line, message: str) -> None:
        """Add a problem of a line that can be read nevertheless."""
        self._problem_count += 1
        self._last_problem_line = line
        if self._problem_count <= MAX_PROBLEMS:
            text = f"line {line.number}: {message}"
            self._problems.append(Problem(line.position, len(line.content), text, InvalidCheckpoint.code))


def write_checkpoint(checkpoint: Any, words_of: Callable[[Any], tuple[object, ...]]) -> bytes:
    """Encode a checkpoint that was read, or entries with the current version.

    A version of None without entries makes an empty file.
    """
    version = getattr(checkpoint, "version", CURRENT_VERSION)
    entries = list(getattr(checkpoint, "entries", checkpoint))
    if version is None and not entries:
        return b""
    head = [str(version or 0), str(len(entries))]
    return "".join(f"{line}\n" for line in (*head, *(" ".join(map(str, words_of(each))) for each in entries))).encode()


_WHITE_SPACE = " \t\f"
_ESCAPE = re.compile(r"\\(u.{0,4}|.|$)", re.DOTALL)
_UNICODE_ESCAPE = re.compile(r"u[0-9a-fA-F]{4}")
_LETTER_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_NEEDS_BACKSLASH = {letter: f"\\{name}" for name, letter in _LETTER_ESCAPES.items()}
_NEEDS_BACKSLASH |= {character: f"\\{character}" for character in "\\=:#!"}


class Property(msgspec.Struct, frozen=True):
    """A name and a value, and the line where they start."""

    name: str
    value: str
    line: Line


class JavaProperties(msgspec.Struct, frozen=True):
    """All properties in the order of the file, including repeated names, and the comments with their marks."""

    comments: tuple[str, ...]
    properties: tuple[Property, ...]

    def last(self, name: str) -> Property | None:
        """The property with a name; the last one if there are several, as for Java."""
        return next((each for each in reversed(self.properties) if each.name == name), None)


def decode_properties(source: Source, limits: Limits) -> JavaProperties:
    r"""Decode the properties of a file. Raises LimitExceeded, and InvalidCheckpoint for a malformed \u escape."""
    comments: list[str] = []
    properties: list[Property] = []
    started: Line | None = None  # the first line of the current logical line
    logical = ""
    for line in lines(source, limits):
        text = line.content.decode("latin-1").lstrip(_WHITE_SPACE)
        if not logical:
            if not text:
                # Java joins an empty line to an empty continued line; the result is empty either way.
                continue
            if text[0] in "#!":
                comments.append(text)
                continue
            started = line
        is_continued = (len(text) - len(text.rstrip("\\"))) % 2 == 1
        logical += text[:-1] if is_continued else text
        if len(logical) > limits.max_line_bytes:
            raise LimitExceeded(
                f"line {line.number}, with the lines that it continues, has more than {limits.max_line_bytes} bytes",
                Location(source.path, position=line.position),
            )
        if not is_continued and started is not None:
            properties.append(_property(source, started, logical))
            logical = ""
    if started is not None and logical:  # the last line ends with a backslash, which Java ignores
        properties.append(_property(source, started, logical))
    return JavaProperties(tuple(comments), tuple(properties))


def _property(source: Source, line: Line, logical: str) -> Property:
    end = _name_end(logical)
    rest = logical[end:].lstrip(_WHITE_SPACE)
    if rest[:1] in ("=", ":"):
        rest = rest[1:].lstrip(_WHITE_SPACE)
    return Property(_unescaped(source, line, logical[:end]), _unescaped(source, line, rest), line)


def _name_end(logical: str) -> int:
    is_escaped = False
    for at, character in enumerate(logical):
        if not is_escaped and character in "=: \t\f":
            return at
        is_escaped = character == "\\" and not is_escaped
    return len(logical)


def _unescaped(source: Source, line: Line, text: str) -> str:
    def replacement(match: re.Match[str]) -> str:
        escape = match[1]
        if not escape.startswith("u"):
            return _LETTER_ESCAPES.get(escape, escape)
        if _UNICODE_ESCAPE.fullmatch(escape) is None:
            raise invalid_line(source, line, "four hexadecimal digits after \\u", ascii(match[0]))
        return chr(int(escape[1:], 16))

    unescaped = _ESCAPE.sub(replacement, text)
    # Two escapes may be a surrogate pair.
    return unescaped.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def encode_property(name: str, value: str) -> str:
    r"""``name=value`` as Properties.store writes it to a byte stream: ASCII, with \uXXXX for other characters."""
    return f"{_escaped(name, every_space=True)}={_escaped(value, every_space=False)}"


def _escaped(text: str, *, every_space: bool) -> str:
    parts = []
    encoded = text.encode("utf-16-be", "surrogatepass")
    for at in range(0, len(encoded), 2):
        unit = int.from_bytes(encoded[at : at + 2], "big")
        character = chr(unit)
        if character == " ":
            parts.append("\\ " if every_space or at == 0 else " ")
        elif character in _NEEDS_BACKSLASH:
            parts.append(_NEEDS_BACKSLASH[character])
        elif 0x20 <= unit <= 0x7E:
            parts.append(character)
        else:
            parts.append(f"\\u{unit:04X}")
    return "".join(parts)


class JsonObject(msgspec.Struct, frozen=True):
    """The fields of an object, and its line. ``repeated`` are the names that occur twice, of which the last counts."""

    source: Source
    line: Line
    fields: dict[str, Any]
    repeated: tuple[str, ...] = ()

    def integer(self, name: str, least: int, most: int) -> int:
        """A field that must be an integer from ``least`` to ``most``; raises InvalidCheckpoint."""
        value = self.fields.get(name)
        if type(value) is not int or not least <= value <= most:
            raise self.invalid(name, f"an integer from {least} to {most}")
        return value

    def text(self, name: str) -> str:
        """A field that must be a string; raises InvalidCheckpoint."""
        value = self.fields.get(name)
        if not isinstance(value, str):
            raise self.invalid(name, "a string")
        return value

    def objects(self, name: str) -> list[JsonObject] | None:
        """A field that must be a list of objects or null (None); raises InvalidCheckpoint."""
        value = self.fields.get(name)
        if value is None and name in self.fields:
            return None
        if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
            raise self.invalid(name, "a list of objects")
        return [JsonObject(self.source, self.line, each) for each in value]

    def invalid(self, name: str, expected: str) -> InvalidCheckpoint:
        """The error for a field that is not as expected."""
        actual = _shown_value(self.fields[name]) if name in self.fields else "no such field"
        return invalid_line(self.source, self.line, f"{name} to be {expected}", actual)


def _shown_value(value: Any) -> str:
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list):
        return "a list"
    return shown(value) if isinstance(value, str) else shown(str(value)).strip("'")


def decode_json_object(source: Source, line: Line) -> JsonObject:
    """Decode the object on a line. Raises InvalidCheckpoint for a line that is not one."""
    repeated: list[str] = []

    def object_of(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        fields: dict[str, Any] = {}
        for name, value in pairs:
            if name in fields:
                repeated.append(name)
            fields[name] = value
        return fields

    try:
        value = json.loads(decode_text(source, line), object_pairs_hook=object_of, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:  # includes deep nesting, and integers of thousands of digits
        raise invalid_line(source, line, "JSON") from error
    if not isinstance(value, dict):
        raise invalid_line(source, line, "a JSON object")
    return JsonObject(source, line, value, tuple(sorted(set(repeated))))


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")
