"""What a writing verb makes of batches: new batches, written segments, results, and the base class of the verbs."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from enum import IntEnum
from typing import Any, NamedTuple

import msgspec
import numpy as np
from msgspec.structs import asdict
from numpy.typing import NDArray

from format import layout
from format.columns import WRITTEN_SEGMENT
from format.errors import KafkaLogError, UnreadableFile
from format.findings import Finding, finding_of
from format.io.source import FileSource, PatchedSource
from format.layout import MAX_RELATIVE_OFFSET
from format.limits import DEFAULT_LIMITS, Limits
from format.location import Location
from format.log.batch_chunk import BatchChunk
from format.log.encode_batches import batch_spans
from format.node.partition import Partition, segment_file_name
from format.node.partition_surroundings import surroundings_findings
from format.rewriting.carried_files import CarryTerms, topic_ids_of
from format.rewriting.index_builder import DEFAULT_INTERVAL_BYTES
from format.rewriting.intact_batches import Repair, SegmentScan
from format.rewriting.read_back import Rewritten, compare_with_source
from format.rewriting.sources import WriteSources
from format.rows.finding_rows import finding_as_json, finding_from_json
from format.rows.record_rows import Row
from format.scan.drivers import size_of
from format.scan.progress import Advance, no_progress
from format.scan.protocol import Cost, LogUnit

Int64Column = NDArray[np.int64]
_MAX_INT64 = 2**63 - 1
#: The bytes that are read at once; more would leave the processor's cache before they are used.
CHUNK_BYTES = 2 * 1024 * 1024
#: Codes of damage at the end of a log that loses no record.
HARMLESS_DAMAGE = ("tail-zeros",)
#: How often a byte of a log counts as progress: after reading, after comparing, and after verifying the output.
PASSES = 3


class Decision(IntEnum):
    """What is done with a batch."""

    COPIED = 0
    RECOMPRESSED = 1
    REBUILT = 2
    REFUSED = 3

    @property
    def word(self) -> str:
        """The word in rows and manifests, which never changes."""
        return self.name.lower()


class NewBatches(msgspec.Struct, frozen=True):
    """Whole batches, one after the other in ``content``, with the first offset and the Decision of each.

    ``digest`` is that of their content, for a verb that reads back by digests and makes one NewBatches of a chunk.
    """

    content: bytes | bytearray | memoryview
    first_offsets: Int64Column
    decisions: NDArray[np.int8]
    digest: bytes | None = None

    def __len__(self) -> int:
        return len(self.first_offsets)

    def each(self, sizes_bytes: Int64Column) -> Iterator[NewBatches]:
        """Every batch by itself; ``sizes_bytes`` has the size of each."""
        view, end = memoryview(self.content), 0
        for row, size_bytes in enumerate(sizes_bytes.tolist()):
            start, end = end, end + size_bytes
            yield NewBatches(view[start:end], self.first_offsets[row : row + 1], self.decisions[row : row + 1])


def joined(portions: Sequence[NewBatches]) -> NewBatches:
    """All batches of several portions as one."""
    if len(portions) == 1:
        return portions[0]
    return NewBatches(
        b"".join([each.content for each in portions]),
        np.concatenate([each.first_offsets for each in portions]),
        np.concatenate([each.decisions for each in portions]),
    )


def new_batches(
    content: bytes | bytearray | memoryview, first_offsets: Sequence[int] | Int64Column, decision: Decision
) -> NewBatches:
    return NewBatches(content, np.asarray(first_offsets, np.int64), np.full(len(first_offsets), decision, np.int8))


def batch_bytes(chunk: BatchChunk, row: int) -> memoryview:
    start = int(chunk.table.position[row]) - chunk.buffer_position
    return chunk.bodies[start : start + int(chunk.table.size_bytes[row])]


def copied(chunk: BatchChunk, rows: Sequence[int] | NDArray[np.intp]) -> NewBatches:
    buffer, which = chunk.bodies, np.asarray(rows, np.intp)
    starts, ends = batch_spans(chunk, which)
    content: bytes | memoryview
    if len(which) and (starts[1:] == ends[:-1]).all():
        content = buffer[int(starts[0]) : int(ends[-1])]
    else:
        content = b"".join([buffer[start:end] for start, end in zip(starts.tolist(), ends.tolist(), strict=True)])
    return new_batches(content, chunk.table.base_offset[which], Decision.COPIED)


class WrittenSegment(msgspec.Struct):
    """One row of columns.WRITTEN_SEGMENT, which documents the fields: what was written for one segment."""

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
        return WRITTEN_SEGMENT.row_of(self)


def written_segment(directory: str, topic: str | None, partition: int | None, base_offset: int) -> WrittenSegment:
    """A segment that is about to be written into ``directory`` of the output; its counts are 0."""
    path = f"{directory}/{segment_file_name(base_offset, layout.LOG_SUFFIX)}"
    return WrittenSegment(path, topic, partition, base_offset)


class SegmentResult(msgspec.Struct):
    """The result of one source segment: the segments that it became, and findings, each with whether it is a loss.

    ``last_offset`` is the last offset written so far; ``open_transactions`` are the first offsets of the transactions
    that are open there, by producer id. ``lost_bytes`` counts the bytes of the source that the output lacks.
    """

    last_offset: int | None
    open_transactions: dict[int, int] = msgspec.field(default_factory=dict)
    findings: list[tuple[Finding, bool]] = msgspec.field(default_factory=list)
    segments: list[WrittenSegment] = msgspec.field(default_factory=list)
    lost_bytes: int = 0
    record_count: int = 0
    whole_count: int = 0  # keys and values that were replaced as a whole, though fields were to be kept
    found_fields: list[str] = msgspec.field(default_factory=list)  # fields to keep that keys or values have
    is_read: bool = True  # False: the file could not be opened, or not read to its end

    def add(self, found: Finding, is_loss: bool) -> None:
        self.findings.append((found, is_loss))

    def as_json(self) -> dict[str, Any]:
        """The result in JSON values, for the journal."""
        return asdict(self) | {
            "findings": [{"finding": finding_as_json(found), "is_loss": is_loss} for found, is_loss in self.findings],
            "segments": [asdict(each) for each in self.segments],
        }

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> SegmentResult:
        """The result from which ``as_json`` made these values."""
        known = {
            "open_transactions": {int(producer): first for producer, first in values["open_transactions"].items()},
            "findings": [(finding_from_json(each["finding"]), each["is_loss"]) for each in values["findings"]],
            "segments": [WrittenSegment(**each) for each in values["segments"]],
        }
        return cls(**values | known)


class RewritingResult(msgspec.Struct):
    """The result of a whole run: the segments written, the findings, and those of them that are losses.

    ``left_out`` describes what was left out on purpose.
    """

    segments: list[WrittenSegment] = msgspec.field(default_factory=list)
    findings: list[Finding] = msgspec.field(default_factory=list)
    losses: list[Finding] = msgspec.field(default_factory=list)
    left_out: list[str] = msgspec.field(default_factory=list)
    lost_bytes: int = 0
    record_count: int = 0
    whole_count: int = 0
    found_fields: set[str] = msgspec.field(default_factory=set)

    def add(self, result: SegmentResult) -> None:
        self.segments += result.segments
        self.findings += [found for found, _ in result.findings]
        self.losses += [found for found, is_loss in result.findings if is_loss]
        self.lost_bytes += result.lost_bytes
        self.record_count += result.record_count
        self.whole_count += result.whole_count
        self.found_fields.update(result.found_fields)


class WriteTerms(msgspec.Struct, frozen=True, kw_only=True):
    """The options that all writing verbs share; ``advance`` is called with the bytes done since the last call.

    ``jobs`` is the number of processes; the output is the same for any number.
    """

    limits: Limits = DEFAULT_LIMITS
    interval_bytes: int = DEFAULT_INTERVAL_BYTES
    jobs: int = 1
    advance: Advance = no_progress


class Failure(NamedTuple):
    """Why the batch of a row of a chunk could not be rebuilt; it was copied as it is, or left out."""

    row: int
    error: KafkaLogError
    is_left_out: bool = False


class Remark(msgspec.Struct, frozen=True):
    """Something to report of the batches of a log that were made: ``what`` it is, where it was first, and how often."""

    what: Any
    place: Location
    count: int = 1


class SourceLog(LogUnit, frozen=True, eq=False):
    """A log of the source, of a segment that is rewritten."""

    def first_possible(self, after_offset: int | None) -> int:
        """The least offset that the first batch can have; ``after_offset`` is the last offset of the log before it."""
        return self.base_offset if after_offset is None else max(self.base_offset, after_offset + 1)

    @property
    def base_offset(self) -> int:
        return self.location.base_offset or 0

    @property
    def last_possible(self) -> int:
        """The largest offset that a batch of this log can have."""
        last = self.base_offset + MAX_RELATIVE_OFFSET if self.next_base_offset is None else self.next_base_offset - 1
        return min(last, _MAX_INT64 - 1)

    def size_bytes(self) -> int:
        """The size of the file; 0 if it is unknown."""
        return size_of(self.path)


class FirstLook(msgspec.Struct, frozen=True):
    """The scan of a log that is not plainly sound: all its batches, and which of them are kept.

    ``is_live``: a broker is writing its end. ``repairs`` were made in the source that was scanned, ``repairable`` are
    others that could be.
    """

    log: SourceLog
    source: FileSource | PatchedSource
    scan: SegmentScan
    is_live: bool
    repairs: tuple[Repair, ...] = ()
    repairable: tuple[Repair, ...] = ()

    @property
    def unreadable(self) -> Collection[int]:
        """The positions of blocks that the disk could not read, which are passed over."""
        return self.source.unreadable if isinstance(self.source, PatchedSource) else ()

    @property
    def bytes_not_kept(self) -> int:
        """The bytes of the log that belong to no kept batch."""
        return int(self.source.size_bytes - self.scan.kept.size_bytes.sum())


class Rewriter:
    """What a verb makes of the batches of a log, and what it reports; each writing verb has a subclass.

    ``portions`` and ``read_back`` have no side effects, so that any process can call them. The ``report_*`` methods add
    findings to the result of a segment that is not plainly sound.
    """

    #: Whether logs are written, and the files of partitions and of the log directory; otherwise only indexes are.
    writes_log = True
    #: Whether bytes that belong to no kept batch are copied too, without being indexed.
    copies_damage = False
    #: Whether batches with a right CRC whose offsets do not fit their place go into a file of their own.
    keeps_misplaced = False
    #: Whether the offsets of all batches were judged before: a gap before the last one makes it no false one.
    has_judged_offsets = False
    #: Whether a log in which offsets are missing is scanned as a whole, so that this can be reported.
    wants_every_offset = False
    #: Whether blocks that the disk cannot read are passed over.
    reads_around_errors = True
    #: Whether batches are repaired whose only wrong field no CRC covers, and is proven; such a log is read as a whole.
    repairs = False
    #: Whether the other files get only what is known to be Kafka's, not the bytes of the source.
    knows_all = False
    #: Whether producer snapshots are made: not where batches are left out on request, as no snapshot would fit.
    makes_snapshots = True
    #: Whether making new batches takes so long that other processes should do that, not only compare.
    shares_making = False
    #: The size from which a new segment is begun, in bytes; None for the largest that an index can address.
    segment_bytes: int | None = None
    chunk_bytes = CHUNK_BYTES
    #: How often a byte of a log counts as progress before the output is verified.
    passes = PASSES - 1
    #: The processor time of making and comparing new batches.
    cost = Cost(batch_s=1e-6, byte_s=1e-9, compressed_byte_s=1e-9)

    def __init__(self, terms: WriteTerms) -> None:
        self.terms = terms

    # -- what becomes of batches -------------------------------------------------------------------------------

    def taken(self, chunk: BatchChunk, is_kept: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Which of the kept batches of a chunk go into the output, as the user asked for."""
        return is_kept

    def portions(
        self, chunk: BatchChunk, is_kept: NDArray[np.bool_], location: Location
    ) -> Iterator[NewBatches | Failure | Remark]:
        """What the kept batches of a chunk become, in order: copies, unless a verb makes other ones.

        Raises Refused where the run must end.
        """
        yield copied(chunk, np.flatnonzero(is_kept))

    def read_back(self, written: Rewritten, advance: Advance) -> None:
        """Compare what was written with its source. Raises ReadBackMismatch, UnreadableFile."""
        compare_with_source(written, self.terms.limits, self.chunk_bytes, advance)

    # -- what is reported of a segment -------------------------------------------------------------------------

    def report_unreadable(self, error: UnreadableFile, log: SourceLog, result: SegmentResult) -> None:
        """Report a log that could not be opened or read to its end: it is left out."""
        result.add(finding_of(error, log.location), True)

    def report_look(self, look: FirstLook, result: SegmentResult) -> None:
        """Report what the scan of a whole log found, and set ``result.lost_bytes``."""
        raise NotImplementedError

    def report_chunk(
        self, look: FirstLook, chunk: BatchChunk, is_kept: NDArray[np.bool_], result: SegmentResult
    ) -> None:
        """Report about a chunk before it is written."""

    def report_failure(self, failure: Failure, chunk: BatchChunk, location: Location, result: SegmentResult) -> None:
        """Report a batch that could not be rebuilt."""

    def report_remarks(self, remarks: Sequence[Remark], result: SegmentResult) -> None:
        """Report what ``portions`` remarked of a log that was written."""

    def check(self, result: SegmentResult) -> None:
        """Raise Refused where what was reported ends the run, so that nothing is published."""

    # -- partitions --------------------------------------------------------------------------------------------

    def is_copied_whole(self, partition: Partition) -> bool:
        """Whether the segments of a partition are copied with their indexes."""
        return False

    def begin_partition(self, partition: Partition) -> Iterator[Finding]:
        """Findings about a partition before its segments. Raises Refused."""
        return surroundings_findings(partition)

    def end_partition(self, partition: Partition, last_offset: int | None) -> Iterator[Finding]:
        """Findings about a partition after its segments, which count as losses."""
        return iter(())

    # -- the run -----------------------------------------------------------------------------------------------

    def keeps_snapshots(self, result: RewritingResult, lost_bytes: int) -> bool:
        """Whether the source's producer snapshots fit the output, whose logs lack ``lost_bytes`` bytes."""
        return True

    def is_whole(self, result: RewritingResult) -> bool:
        """Whether the output has every record of the source, so that checkpoints and the clean-shutdown file fit."""
        return True

    def carry_terms(self, sources: WriteSources) -> CarryTerms:
        """How the files beside the logs are carried over."""
        limits = self.terms.limits
        topic_ids = {} if sources.log_dir is None else topic_ids_of(sources.partitions.values(), limits)
        return CarryTerms(limits, self.knows_all, topic_ids)

    def manifest(self, result: RewritingResult) -> dict[str, Any]:
        """The entries of the manifest besides the job, the segments and the files."""
        raise NotImplementedError
