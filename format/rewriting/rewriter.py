"""The base class of the writing verbs: what a batch becomes, how it is read back, and what is reported."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from format.errors import KafkaLogError, Refused, UnreadableFile
from format.findings import Finding
from format.io.source import FileSource, PatchedSource
from format.layout import MAX_RELATIVE_OFFSET
from format.limits import DEFAULT_LIMITS, Limits
from format.location import Location
from format.log.batch_chunk import BatchChunk
from format.node.log_dir import LogDir
from format.node.partition import Partition
from format.node.partition_surroundings import surroundings_findings
from format.rewriting.carried_files import topic_ids_of
from format.rewriting.index_builder import DEFAULT_INTERVAL_BYTES
from format.rewriting.intact_batches import KeptBatches, SegmentScan
from format.rewriting.read_back import Became, compare_with_source
from format.rewriting.repairs import Repair
from format.rewriting.sources import WriteSources
from format.rewriting.written_batches import NewBatches
from format.rewriting.written_segments import RewritingResult, SegmentResult
from format.scan.cost import size_of
from format.scan.progress import Advance, no_progress
from format.scan.protocol import Cost

#: The bytes that are read at once; more would leave the processor's cache before they are used.
CHUNK_BYTES = 2 * 1024 * 1024
#: Codes of damage at the end of a log that loses no record.
HARMLESS_DAMAGE = ("tail-zeros",)
#: How often a byte of a log counts as progress: after reading, after comparing, and after verifying the output.
PASSES = 3


class WriteTerms(msgspec.Struct, frozen=True, kw_only=True):
    """The options that all writing verbs share; ``advance`` is called with the bytes done since the last call.

    ``jobs`` is the number of processes; the output is the same for any number.
    """

    limits: Limits = DEFAULT_LIMITS
    interval_bytes: int = DEFAULT_INTERVAL_BYTES
    jobs: int = 1
    advance: Advance = no_progress


class Portion(NamedTuple):
    """Some new batches of a chunk; ``digest`` is that of their content, for a verb that reads back by digests.

    ``error`` is why the batch of the chunk's ``row`` could not be rebuilt. That batch was copied as it is, or left out
    where ``batches`` is None.
    """

    batches: NewBatches | None
    error: KafkaLogError | None = None
    row: int = -1
    digest: bytes | None = None


class SourceLog(msgspec.Struct, frozen=True, eq=False):
    """A log of the source; ``next_base_offset`` is the base offset of the segment after it, None for the last."""

    path: Path
    location: Location
    base_offset: int
    next_base_offset: int | None

    def first_possible(self, after_offset: int | None) -> int:
        """The least offset that the first batch can have; ``after_offset`` is the last offset of the log before it."""
        return self.base_offset if after_offset is None else max(self.base_offset, after_offset + 1)

    def size_bytes(self) -> int:
        """The size of the file; 0 if it is unknown."""
        return size_of(self.path)

    @property
    def last_possible(self) -> int:
        """The largest offset that a batch of this log can have."""
        return self.base_offset + MAX_RELATIVE_OFFSET if self.next_base_offset is None else self.next_base_offset - 1


class FirstLook(msgspec.Struct, frozen=True):
    """The scan of a log that is not plainly sound: all its batches, and which of them are kept.

    ``after_offset`` is the last offset before the log. ``is_live``: a broker is writing its end. ``repairs`` were made
    in the source that was scanned, ``repairable`` are others that could be.
    """

    log: SourceLog
    source: FileSource | PatchedSource
    scan: SegmentScan
    after_offset: int | None
    is_live: bool
    repairs: tuple[Repair, ...] = ()
    repairable: tuple[Repair, ...] = ()

    @property
    def bytes_not_kept(self) -> int:
        """The bytes of the log that belong to no kept batch."""
        scan = self.scan
        return int(self.source.size_bytes - (scan.end_position - scan.position)[scan.is_kept].sum())


class Rewriter:
    """What a verb makes of the batches of a log, and what it reports; each writing verb has a subclass.

    ``portions`` and ``read_back`` have no side effects, so that any process can call them. The ``report_*`` methods add
    findings to the result of a segment that is not plainly sound.
    """

    #: Whether logs are written; otherwise only their indexes are.
    writes_log = True
    #: Whether bytes that belong to no kept batch are copied too, without being indexed.
    copies_damage = False
    #: Whether batches with a right CRC whose offsets do not fit their place go into a file of their own.
    keeps_misplaced = False
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
    #: Whether the files of partitions and of the log directory beside the logs are written.
    writes_side_files = True
    #: The size from which a new segment is begun, in bytes; None for the largest that an index can address.
    segment_bytes: int | None = None
    chunk_bytes = CHUNK_BYTES
    #: How often a byte of a log counts as progress before the output is verified.
    passes = PASSES - 1
    #: The processor time of making and comparing new batches.
    cost = Cost(batch_s=1e-6, byte_s=1e-9, compressed_byte_s=1e-9)

    def __init__(self, terms: WriteTerms) -> None:
        self.terms = terms

    @property
    def shares_making(self) -> bool:
        """Whether making new batches takes so long that other processes should do that, not only compare."""
        return False

    # -- what becomes of batches -------------------------------------------------------------------------------

    def portions(self, chunk: BatchChunk, is_kept: NDArray[np.bool_], location: Location) -> Iterator[Portion]:
        """What the kept batches of a chunk become, in order. Raises Refused where the run must end."""
        raise NotImplementedError

    def read_back(
        self,
        source: FileSource | PatchedSource,
        became: Sequence[Became],
        kept: KeptBatches | None,
        location: Location,
        advance: Advance,
    ) -> None:
        """Compare what was written with its source; with ``kept`` None, all batches of these ranges were kept.

        Raises ReadBackMismatch, UnreadableFile.
        """
        compare_with_source(source, became, kept, self.terms.limits, self.chunk_bytes, location, advance)

    # -- what is reported of a segment -------------------------------------------------------------------------

    def report_unreadable(self, error: UnreadableFile, log: SourceLog, result: SegmentResult) -> None:
        """Report a log that could not be opened or read to its end: it is left out."""
        raise NotImplementedError

    def report_look(self, look: FirstLook, result: SegmentResult) -> None:
        """Report what the scan of a whole log found, and set ``result.lost_bytes``."""
        raise NotImplementedError

    def report_chunk(
        self, look: FirstLook, chunk: BatchChunk, is_kept: NDArray[np.bool_], result: SegmentResult
    ) -> None:
        """Report about a chunk before it is written."""

    def report_error(self, portion: Portion, chunk: BatchChunk, location: Location, result: SegmentResult) -> None:
        """Report a batch that could not be rebuilt."""

    def refusal(self, result: SegmentResult) -> Refused | None:
        """Why the run ends here and publishes nothing; None where it goes on."""
        return None

    # -- partitions --------------------------------------------------------------------------------------------

    def is_left_out(self, partition: Partition) -> bool:
        """Whether nothing of a partition goes into the output."""
        return False

    def is_copied_whole(self, partition: Partition) -> bool:
        """Whether the segments of a partition are copied with their indexes."""
        return False

    def begin_partition(self, partition: Partition) -> Iterator[Finding]:
        """Findings about a partition before its segments. Raises Refused."""
        return surroundings_findings(partition)

    def end_partition(self, partition: Partition, last_offset: int | None) -> Iterator[Finding]:
        """Findings about a partition after its segments, which count as losses."""
        return iter(())

    def keeps_snapshots(self, result: RewritingResult, lost_bytes: int) -> bool:
        """Whether the source's producer snapshots fit the output, whose logs lack ``lost_bytes`` bytes."""
        return True

    # -- the run -----------------------------------------------------------------------------------------------

    def topic_ids(self, sources: WriteSources) -> dict[str, str]:
        """Ids of topics by name, for partitions whose own partition.metadata cannot be read."""
        if sources.log_dir is None:
            return {}
        return topic_ids_of(iter(sources.partitions.values()), self.terms.limits)

    def node_id(self, sources: WriteSources) -> int | None:
        """The node's id, for a meta.properties that cannot be read."""
        return None

    def directory_id(self, sources: WriteSources, node_id: int) -> str | None:
        """The log directory's id on a node with this id, for a meta.properties without one."""
        return None

    def log_dir(self, log_dir: LogDir, result: RewritingResult) -> LogDir:
        """The log directory with those of its own files that go into the output."""
        return log_dir

    def is_whole(self, result: RewritingResult) -> bool:
        """Whether the output has every record of the source, so that checkpoints and the clean-shutdown file fit."""
        return True

    def manifest(self, result: RewritingResult) -> dict[str, Any]:
        """The entries of the manifest besides the job and the files."""
        raise NotImplementedError
