"""Reads checkpoints and partition metadata as a broker does, with its messages about files that it refuses.

The readers of ``format.files`` are stricter and report each problem; this one answers only what a start does.
Source: server-common CheckpointFile, storage OffsetCheckpointFile, LeaderEpochCheckpointFile,
PartitionMetadataReadBuffer.
"""

from __future__ import annotations

import base64
import re
from pathlib import Path

from format.errors import FileChanged, UnreadableFile
from format.files.side_file import INT32_RANGE, INT64_RANGE, decode_integer
from format.kafka_uuid import ZERO_UUID
from format.limits import Limits
from format.verbs.boot.followed import leads_nowhere, opened

_BLANKS = re.compile(r"[ \t\n\x0b\f\r]+")
_LINE_ENDS = re.compile(r"\r\n|\r|\n")
#: A checkpoint that claims more entries takes more memory than a broker has.
_MOST_ENTRIES = 500_000_000
_UUID_BYTES = 16
_UUID_TEXT = 22


class BadText(Exception):
    """A file that the broker's reader refuses: its message, and what kind of error that is to the broker.

    An I/O error fails the log directory; a fatal one, such as running out of memory, is not caught at all.
    """

    def __init__(self, text: str, *, is_io_error: bool = True, is_fatal: bool = False) -> None:
        super().__init__(text)
        self.text = text
        self.is_fatal = is_fatal
        self.is_io_error = is_io_error


def read_lines(path: Path, limits: Limits) -> list[str]:
    """The lines of a text file. Raises BadText if it is not UTF-8 or no file, UnreadableFile if it cannot be read."""
    try:
        opening = opened(path)
    except (UnreadableFile, FileChanged) as error:
        if path.is_dir():
            raise BadText("Is a directory") from error
        if leads_nowhere(path):
            raise BadText("NoSuchFileException") from error
        raise
    with opening as source:
        if source.size_bytes > limits.max_side_file_bytes:
            raise UnreadableFile(f"the file has {source.size_bytes} bytes, too many to read")
        data = source.read_at(0, source.size_bytes)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise BadText("MalformedInputException: Input length =") from error
    lines = _LINE_ENDS.split(text)
    return lines[:-1] if lines[-1] == "" else lines


def read_offsets(path: Path, limits: Limits) -> dict[tuple[str, int], int]:
    """An offset checkpoint, by topic and partition. Raises BadText, UnreadableFile."""
    found = {}
    for words in _entries(path, 3, limits):
        partition, offset = decode_integer(words[1], *INT32_RANGE), decode_integer(words[2], *INT64_RANGE)
        if partition is None or offset is None:
            wrong = words[1] if partition is None else words[2]
            raise BadText(f'For input string: "{wrong}"', is_io_error=False)
        found[words[0], partition] = offset
    return found


def read_epochs(path: Path, limits: Limits) -> list[tuple[int, int]]:
    """A leader epoch checkpoint: (epoch, start offset) in the file's order. Raises BadText, UnreadableFile."""
    found = []
    for words in _entries(path, 2, limits):
        epoch, offset = decode_integer(words[0], *INT32_RANGE), decode_integer(words[1], *INT64_RANGE)
        if epoch is None or offset is None:
            wrong = words[0] if epoch is None else words[1]
            raise BadText(f'For input string: "{wrong}"', is_io_error=False)
        found.append((epoch, offset))
    return found


def _entries(path: Path, width: int, limits: Limits) -> list[list[str]]:
    lines = read_lines(path, limits)
    if not lines:
        return []
    version = _integer(lines[0], path)
    if version != 0:
        raise BadText(f"Unrecognised version:{version}, expected version: 0 in checkpoint file at: {path}")
    if len(lines) == 1:
        return []
    count = _integer(lines[1], path)
    if count < 0:
        raise BadText(f"Illegal Capacity: {count}", is_io_error=False)
    if count > _MOST_ENTRIES:
        raise BadText("java.lang.OutOfMemoryError: Java heap space", is_io_error=False, is_fatal=True)
    entries = [_words(line) for line in lines[2:]]
    for words, line in zip(entries, lines[2:], strict=True):
        if len(words) != width:
            raise BadText(f"Malformed line in checkpoint file [{path}]: {line}")
    if len(entries) != count:
        raise BadText(f"Expected [{count}] entries in checkpoint file [{path}], but found only [{len(entries)}]")
    return entries


def _integer(line: str, path: Path) -> int:
    number = decode_integer(line, *INT32_RANGE)
    if number is None:
        raise BadText(f"Malformed line in checkpoint file [{path}]: {line}")
    return number


def _words(line: str) -> list[str]:
    """A line split at blanks as Java does: no empty words at the end, but one before a leading blank."""
    words = _BLANKS.split(line)
    while len(words) > 1 and words[-1] == "":
        words.pop()
    return words


def read_topic_id(path: Path, limits: Limits) -> str:
    """The topic id of a partition.metadata file, in Kafka's 22 characters. Raises BadText, UnreadableFile."""
    lines = read_lines(path, limits)
    version = decode_integer(_value(lines, 0, path), *INT32_RANGE)
    if version is None:
        raise BadText(f"Malformed line in partition metadata file [{path}]: {lines[0]}")
    if version < 0:
        raise BadText(f"Unrecognized version of partition metadata file ({path}): {version}")
    text = _value(lines, 1, path)
    if len(text) > _UUID_TEXT + 2:
        raise BadText(
            f"Input string with prefix `{text[:24]}` is too long to be decoded as a base64 UUID", is_io_error=False
        )
    content = _java_base64(text)
    if len(content) != _UUID_BYTES:
        raise BadText(
            f"Input string `{text}` decoded as {len(content)} bytes, which is not equal to the expected 16 bytes of "
            "a base64-encoded UUID",
            is_io_error=False,
        )
    topic_id = base64.urlsafe_b64encode(content).rstrip(b"=").decode("ascii")
    if topic_id == ZERO_UUID:
        raise BadText(f"Invalid topic ID in partition metadata file ({path})")
    return topic_id


def _value(lines: list[str], number: int, path: Path) -> str:
    if number >= len(lines):
        raise BadText('Cannot invoke "java.lang.CharSequence.length()" because "this.text" is null', is_io_error=False)
    parts = re.split(r":[ \t\n\x0b\f\r]+", lines[number])
    while len(parts) > 1 and parts[-1] == "":
        parts.pop()
    if len(parts) != 2:
        raise BadText(f"Malformed line in partition metadata file [{path}]: {lines[number]}")
    return parts[1]


def _java_base64(text: str) -> bytes:
    """Decode base64url as Java does: padding may be missing. Raises BadText."""
    bare = text.rstrip("=")
    strange = re.search(r"[^A-Za-z0-9_-]", bare)
    if strange is not None:
        raise BadText(f"Illegal base64 character {ord(strange[0]):x}", is_io_error=False)
    if len(bare) % 4 == 1:
        raise BadText("Last unit does not have enough valid bits", is_io_error=False)
    return base64.urlsafe_b64decode(bare + "=" * (-len(bare) % 4))
