"""A segment: the files of one base offset in a partition directory."""

from __future__ import annotations

from dataclasses import field
from pathlib import Path

from format import layout
from format.value_class import value_class


@value_class
class Segment:
    """The files that share a base offset (and a leftover mark, if any), by suffix.

    ``files`` maps ``.log``, ``.index``, ``.timeindex``, ``.txnindex`` and ``.snapshot`` to the path that is there.
    ``leftover`` is ``deleted``, ``cleaned`` or ``swap`` (storage LogFileUtils), None for a live segment.
    """

    directory: Path
    base_offset: int
    leftover: str | None = None
    files: dict[str, Path] = field(default_factory=dict)

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


def segment_file_name(base_offset: int, suffix: str) -> str:
    """``base_offset`` in 20 digits and the suffix (storage LogFileUtils.filenamePrefixFromOffset)."""
    return f"{base_offset:020d}{suffix}"
