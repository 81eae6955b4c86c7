"""A segment of the output while it is written: its log, and the indexes that belong to it."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from format import layout
from format.columns import WRITTEN_SEGMENT
from format.log.batch_table import BatchTable
from format.node.segment import segment_file_name
from format.rewriting.index_builder import AbortedEntry, SegmentIndexBuilder, transaction_index_bytes
from format.rewriting.publish import NewFile, Publication
from format.rows.record_rows import Row
from format.scan.progress import Advance as Advance
from format.scan.progress import no_progress as no_progress


@dataclass(slots=True)
class WrittenSegment:
    """What was written for one segment; the columns of WRITTEN_SEGMENT under their names."""

    path: str
    topic: str | None
    partition: int | None
    segment_base_offset: int
    source_bytes: int = 0
    size_bytes: int = 0
    batch_count: int = 0
    copied_count: int = 0
    recompressed_count: int = 0
    rebuilt_count: int = 0
    lost_bytes: int = 0
    index_entries: int = 0
    time_index_entries: int = 0
    aborted_txns: int = 0

    def row(self) -> Row:
        """The row of WRITTEN_SEGMENT."""
        return tuple(getattr(self, name) for name in WRITTEN_SEGMENT.names)

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(slots=True)
class SegmentWriter:
    """Writes the files of one segment in order; ``writes_log`` False writes its indexes alone.

    ``append`` takes batches with their positions in the new log. ``close`` writes the indexes and closes the files.
    """

    publication: Publication
    directory: str
    written: WrittenSegment
    interval_bytes: int
    writes_log: bool = True
    mtime_ns: int | None = None  # that of the source's log, which decides retention where it has no timestamps
    _log: NewFile | None = field(init=False, default=None)
    _indexes: SegmentIndexBuilder = field(init=False)

    def __post_init__(self) -> None:
        self._indexes = SegmentIndexBuilder(self.written.segment_base_offset, self.interval_bytes)
        if self.writes_log:
            self._log = self.publication.create(self.log_path, write_beside=True)
            self._log.mtime_ns = self.mtime_ns

    @property
    def log_path(self) -> str:
        return self._file(layout.LOG_SUFFIX)

    def _file(self, suffix: str) -> str:
        return f"{self.directory}/{segment_file_name(self.written.segment_base_offset, suffix)}"

    @property
    def size_bytes(self) -> int:
        """Bytes of the log so far."""
        return 0 if self._log is None else self._log.size_bytes

    def write(self, content: bytes | bytearray | memoryview) -> None:
        """The next bytes of the log."""
        if self._log is not None:
            self._log.write(content)

    def index(self, table: BatchTable) -> None:
        """The batches that these bytes are, with their positions in the new log."""
        self._indexes.feed(table)
        self.written.batch_count += len(table)

    def finish_log(self) -> None:
        """The log is whole: it may be flushed to the disk while it is read back."""
        if self._log is not None:
            self._log.finish_writing()

    def close(self, aborted: list[AbortedEntry]) -> WrittenSegment:
        """Close the log and write the indexes; raises OutputError, and InvalidIndex where the batches cannot be."""
        if self._log is not None:
            self._log.close()
            self.written.size_bytes = self._log.size_bytes
        offsets, times = self._indexes.offset_index(), self._indexes.time_index()
        self.publication.write_file(self._file(layout.OFFSET_INDEX_SUFFIX), offsets)
        self.publication.write_file(self._file(layout.TIME_INDEX_SUFFIX), times)
        if aborted:
            self.publication.write_file(self._file(layout.TRANSACTION_INDEX_SUFFIX), transaction_index_bytes(aborted))
        self.written.index_entries = len(offsets) // layout.OFFSET_INDEX_ENTRY.size_bytes
        self.written.time_index_entries = len(times) // layout.TIME_INDEX_ENTRY.size_bytes
        self.written.aborted_txns = len(aborted)
        return self.written

    def discard(self) -> None:
        """Close the log and remove it; a segment that is closed already stays."""
        if self._log is not None:
            self._log.discard()


def written_segment(
    directory: str, topic: str | None, partition: int | None, base_offset: int, **counts: int
) -> WrittenSegment:
    """The record of a segment that is to be written into ``directory`` of the output."""
    path = f"{directory}/{segment_file_name(base_offset, layout.LOG_SUFFIX)}"
    return WrittenSegment(path, topic, partition, base_offset, **counts)
