"""Checkpoints and partition metadata as a broker reads them, with its messages about files that it refuses."""

from __future__ import annotations

import base64
import re
from pathlib import Path

from format.errors import FileChanged, UnreadableFile
from format.files.side_file import INT32_RANGE, INT64_RANGE, decode_integer
from format.kafka_uuid import ZERO_UUID
from format.layout import LEADER_EPOCH_CHECKPOINT
from format.limits import Limits
from format.verbs.boot.broker_files import PartitionFiles, leads_nowhere, opened, stop_at_pipe
from format.verbs.boot.one_log.log_load import LoadedLog
from format.verbs.boot.steps import Action, FailsLogDir, StopsStart
from format.wording import counted

_BLANKS = re.compile(r"[ \t\n\x0b\f\r]+")
_AFTER_NAME = re.compile(r":[ \t\n\x0b\f\r]+")
_LINE_ENDS = re.compile(r"\r\n|\r|\n")
#: A checkpoint that claims more entries takes more memory than a broker has.
_MOST_ENTRIES = 500_000_000
_UUID_BYTES = 16
_UUID_TEXT = 22
_CLASS = "LeaderEpochFileCache"
#: The characters that are shown of a line or word that cannot be read.
_MOST_SHOWN = 40


class BadText(Exception):
    """A file that the broker's reader refuses: its message, and what kind of error that is to the broker.

    An I/O error fails the log directory; a fatal one, such as running out of memory, is not caught at all.
    """

    def __init__(self, text: str, *, is_io_error: bool = True, is_fatal: bool = False) -> None:
        super().__init__(text)
        self.text = text
        self.is_fatal = is_fatal
        self.is_io_error = is_io_error


def _malformed(kind: str, path: Path, line: str) -> BadText:
    """The refusal of a line. It is shown to some length: after a power failure a file may be one line of zeros."""
    return BadText(f"Malformed line in {kind} file [{path}]: {line[:_MOST_SHOWN]}")


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
    entries = _entries(path, 3, limits)
    return {(words[0], _number(words[1], INT32_RANGE)): _number(words[2], INT64_RANGE) for words in entries}


def read_epochs(path: Path, limits: Limits) -> list[tuple[int, int]]:
    """A leader epoch checkpoint: (epoch, start offset) in the file's order. Raises BadText, UnreadableFile."""
    return [(_number(words[0], INT32_RANGE), _number(words[1], INT64_RANGE)) for words in _entries(path, 2, limits)]


def _number(word: str, range_: tuple[int, int]) -> int:
    number = decode_integer(word, *range_)
    if number is None:
        raise BadText(f'For input string: "{word}"'[:_MOST_SHOWN], is_io_error=False)
    return number


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
    entries = []
    for line in lines[2:]:
        words = _split(_BLANKS, line)
        if len(words) != width:
            raise _malformed("checkpoint", path, line)
        entries.append(words)
    if len(entries) != count:
        raise BadText(f"Expected [{count}] entries in checkpoint file [{path}], but found only [{len(entries)}]")
    return entries


def _integer(line: str, path: Path) -> int:
    number = decode_integer(line, *INT32_RANGE)
    if number is None:
        raise _malformed("checkpoint", path, line)
    return number


def _split(separator: re.Pattern[str], line: str) -> list[str]:
    """A line split as Java does: no empty words at the end, but one before a leading separator."""
    words = separator.split(line)
    while len(words) > 1 and words[-1] == "":
        words.pop()
    return words


def read_topic_id(path: Path, limits: Limits) -> str:
    """The topic id of a partition.metadata file, in Kafka's 22 characters. Raises BadText, UnreadableFile."""
    lines = read_lines(path, limits)
    version = decode_integer(_value(lines, 0, path), *INT32_RANGE)
    if version is None:
        raise _malformed("partition metadata", path, lines[0])
    if version < 0:
        raise BadText(f"Unrecognized version of partition metadata file ({path}): {version}")
    text = _value(lines, 1, path)
    if len(text) > _UUID_TEXT + 2:
        words = f"Input string with prefix `{text[:24]}` is too long to be decoded as a base64 UUID"
        raise BadText(words, is_io_error=False)
    content = _java_base64(text)
    if len(content) != _UUID_BYTES:
        words = (
            f"Input string `{text}` decoded as {len(content)} bytes, which is not equal to the expected 16 bytes of "
        )
        raise BadText(f"{words}a base64-encoded UUID", is_io_error=False)
    topic_id = base64.urlsafe_b64encode(content).rstrip(b"=").decode("ascii")
    if topic_id == ZERO_UUID:
        raise BadText(f"Invalid topic ID in partition metadata file ({path})")
    return topic_id


def _value(lines: list[str], number: int, path: Path) -> str:
    if number >= len(lines):
        raise BadText('Cannot invoke "java.lang.CharSequence.length()" because "this.text" is null', is_io_error=False)
    parts = _split(_AFTER_NAME, lines[number])
    if len(parts) != 2:
        raise _malformed("partition metadata", path, lines[number])
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


class EpochCache:
    """The epochs in the broker's memory: read from the checkpoint, then adjusted to the log."""

    def __init__(self, files: PartitionFiles, limits: Limits) -> None:
        """Read the checkpoint. Raises FailsLogDir, or StopsStart, where the broker cannot."""
        self._files = files
        self.entries: list[tuple[int, int]] = []
        path = files.path / LEADER_EPOCH_CHECKPOINT
        if LEADER_EPOCH_CHECKPOINT in (*files.folders, *files.dangling):
            stop_at_pipe(path, "CheckpointFile")
            text = f"Error while reading checkpoint file {path}"
            raise FailsLogDir(text, "LeaderEpochCheckpointFile", path, "it is no regular file")
        if LEADER_EPOCH_CHECKPOINT not in files.present:
            files.create(LEADER_EPOCH_CHECKPOINT)
            return
        try:
            for epoch, offset in read_epochs(path, limits):
                if epoch < 0 or offset < 0:
                    text = "Received invalid partition leader epoch entry EpochEntry"
                    raise StopsStart(text, _CLASS, path, "an epoch or offset is negative")
                self._assign(epoch, offset)
        except BadText as error:
            kind = FailsLogDir if error.is_io_error else StopsStart
            reason = "the leader epochs cannot be read; if the file is deleted, a broker starts and creates it"
            raise kind(error.text, "LeaderEpochCheckpointFile", path, reason) from error

    @property
    def latest_epoch(self) -> int:
        return self.entries[-1][0] if self.entries else -1

    def _assign(self, epoch: int, offset: int) -> None:
        """Add an entry, after removing the last entries whose epoch or offset is not below its own."""
        if self.entries and self.entries[-1][0] == epoch and offset >= self.entries[-1][1]:
            return
        while self.entries and (self.entries[-1][0] >= epoch or self.entries[-1][1] >= offset):
            self.entries.pop()
        self.entries.append((epoch, offset))

    def settle(self, log: LoadedLog) -> None:
        """Add the epochs that recovery saw, and drop those that begin at or past the end of the log."""
        for epoch, offset in log.epochs:
            if epoch > self.latest_epoch:
                self._assign(epoch, offset)
        gone = [each for each in self.entries if each[1] >= log.log_end]
        if log.is_cleared:
            gone = self.entries
        is_empty = log.log_end == log.log_start and not log.is_cleared
        if not gone or is_empty or LEADER_EPOCH_CHECKPOINT not in self._files.present:
            return
        self.entries = [each for each in self.entries if each not in gone]
        reason = f"{counted(len(gone), 'leader epoch')} at or past the end of the log: dropped"
        self._files.step(Action.TRUNCATE, LEADER_EPOCH_CHECKPOINT, reason, offset=log.log_end, kafka_class=_CLASS)
