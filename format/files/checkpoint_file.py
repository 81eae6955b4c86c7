"""The text format of checkpoints: a version, a count, then one entry per line (server-common CheckpointFile)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from format.errors import InvalidCheckpoint, UnknownVersion
from format.files.side_file import (
    INT32_RANGE,
    MAX_PROBLEMS,
    Line,
    Problem,
    decode_integer,
    decode_text,
    invalid_line,
    lines,
)
from format.io.source import Source
from format.limits import Limits
from format.location import Location
from format.wording import counted_plainly

CURRENT_VERSION = 0


class CheckpointHead(msgspec.Struct, frozen=True):
    """The first two lines. ``version`` is None for an empty file, and ``entry_count`` without a second line."""

    version: int | None
    entry_count: int | None


class CheckpointReader:
    """Reads the head when it is made, then the entry lines, and compares the count with their number.

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
        version = self._integer(version_line, f"the version, {CURRENT_VERSION}", INT32_RANGE[0])
        if version is not None and version != CURRENT_VERSION:
            raise UnknownVersion(f"line 1: version {version}, only {CURRENT_VERSION} is known", Location(source.path))
        self._count_line = next(self._lines, None)
        count = self._integer(self._count_line, "the number of entries", 0)
        if version_line is not None and count is None:
            self.add_problem(version_line, "the file ends after the version; a broker reads it as one without entries")
        self.head = CheckpointHead(version, count)

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
            if number > (self.head.entry_count or 0):
                count = counted_plainly(self.head.entry_count or 0, "entry")
                raise invalid_line(self._source, line, f"the end of the file after {count}, as line 2 says")
            # A broker accepts white space between words and after them, but not before them.
            # bytes.split() splits at ASCII white space only, as Java's \s does.
            text = decode_text(self._source, line)
            words = [word.decode("utf-8") for word in line.content.split()]
            if len(words) != word_count or not text.startswith(words[0]):
                raise invalid_line(self._source, line, expected)
            yield line, words
        if self._count_line is not None and number != self.head.entry_count:
            raise InvalidCheckpoint(
                f"line 2: expected the number of entries, which is {number}, found {self.head.entry_count}",
                Location(self._source.path, position=self._count_line.position, length=len(self._count_line.content)),
            )

    def integer(self, line: Line, word: str, expected: str, most: int) -> int:
        """Decode a word of an entry as an integer from 0 to ``most``."""
        value = decode_integer(word, 0, most)
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


def write_checkpoint(version: int | None, entry_lines: Iterable[str]) -> bytes:
    """Encode a checkpoint; a version of None without entries makes an empty file."""
    all_lines = list(entry_lines)
    if version is None and not all_lines:
        return b""
    return "".join(f"{line}\n" for line in [str(version or 0), str(len(all_lines)), *all_lines]).encode("utf-8")
