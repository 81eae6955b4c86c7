"""A segment: the files of one base offset in a partition directory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from format import layout
from format.errors import KafkaLogError
from format.io.source import FileSource


class NamedFiles(Mapping[str, Path]):
    """Files of one directory by suffix. Paths are made on access, since a listing of many files needs few of them."""

    __slots__ = ("_directory", "_names", "_paths")

    def __init__(self, directory: Path, names: dict[str, str]) -> None:
        self._directory = directory
        self._names = names
        self._paths: dict[str, Path] = {}

    def __reduce__(self) -> tuple[type[NamedFiles], tuple[Path, dict[str, str]]]:
        """Pickled without the paths, which are made again."""
        return NamedFiles, (self._directory, self._names)

    @property
    def names(self) -> Mapping[str, str]:
        """The names of the files by suffix."""
        return self._names

    def __getitem__(self, suffix: str) -> Path:
        path = self._paths.get(suffix)
        if path is None:
            path = self._paths[suffix] = self._directory / self._names[suffix]
        return path

    def __contains__(self, suffix: object) -> bool:
        return suffix in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


class Segment(msgspec.Struct, frozen=True):
    """The files with the same base offset (and the same leftover mark, if any).

    ``files`` maps the suffixes ``.log``, ``.index``, ``.timeindex``, ``.txnindex`` and ``.snapshot`` to the existing
    files. ``leftover`` is ``deleted``, ``cleaned`` or ``swap`` (storage LogFileUtils), None for a live segment.
    """

    directory: Path
    base_offset: int
    leftover: str | None = None
    files: Mapping[str, Path] = msgspec.field(default_factory=dict)
    is_remote: bool = False  # in the remote storage of a tiered log

    @property
    def log(self) -> Path | None:
        return self.files.get(layout.LOG_SUFFIX)

    @property
    def offset_index(self) -> Path | None:
        return self.files.get(layout.OFFSET_INDEX_SUFFIX)

    @property
    def time_index(self) -> Path | None:
        return self.files.get(layout.TIME_INDEX_SUFFIX)

    @property
    def transaction_index(self) -> Path | None:
        return self.files.get(layout.TRANSACTION_INDEX_SUFFIX)

    @property
    def producer_snapshot(self) -> Path | None:
        return self.files.get(layout.PRODUCER_SNAPSHOT_SUFFIX)


#: The message about a file that should be a segment's log.
NOT_A_SEGMENT_NAME = "the name of a segment is its base offset in 20 digits and .log; this file has another name"


def missing_indexes(segment: Segment) -> list[str]:
    """The suffixes of the indexes that a segment needs and lacks.

    A segment whose log is empty needs none: a broker makes them at the first append (storage LazyIndex).
    """
    missing = [each for each in (layout.OFFSET_INDEX_SUFFIX, layout.TIME_INDEX_SUFFIX) if each not in segment.files]
    if layout.OFFSET_INDEX_SUFFIX in missing and _is_empty(segment.log):
        missing.remove(layout.OFFSET_INDEX_SUFFIX)
    if layout.TIME_INDEX_SUFFIX in missing and not needs_time_index(segment):
        missing.remove(layout.TIME_INDEX_SUFFIX)
    return missing


def _is_empty(log: Path | None) -> bool:
    try:
        return log is not None and log.stat(follow_symlinks=False).st_size == 0
    except OSError:
        return False


def needs_time_index(segment: Segment) -> bool:
    """Whether a segment needs a time index: not if its log is empty, or has messages of format 0, without timestamps.

    Brokers before 0.10.1 write no time indexes. A log that cannot be read needs a time index.
    """
    if segment.log is None:
        return True
    try:
        with FileSource(segment.log) as source:
            if source.size_bytes < layout.MESSAGE_V0.size_bytes:
                return source.size_bytes > 0
            fields = layout.MESSAGE_V0.struct.unpack(source.read_at(0, layout.MESSAGE_V0.size_bytes))
    except KafkaLogError:
        return True
    message = dict(zip(layout.MESSAGE_V0.names, fields, strict=True))
    return bool(message["length"] <= 0 or message["magic"] != 0)


def segment_file_name(base_offset: int, suffix: str) -> str:
    """The name of a segment's file: the base offset in 20 digits, and the suffix (storage LogFileUtils)."""
    return f"{base_offset:020d}{suffix}"
