"""salvage: copies every intact batch into a new directory, byte for byte, and lists what is lost.

A batch is intact when its CRC is right. The CRC does not cover the base offset: an intact batch whose offsets do not
fit its place goes into a file beside the partitions (``NAME.BASE_OFFSET.quarantine``), and its offsets count as lost.
So does a batch at which a broker stops when it rebuilds the state of the producers.
Indexes are rebuilt, and so is a producer snapshot for the end of the log: those of the source may cover lost batches.
The clean-shutdown mark is left out, so that a broker that starts on the output checks every batch.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from format import layout
from format.checks.directories import check_lost_log
from format.errors import UnreadableFile
from format.findings import Cause, Certainty, Finding, Judgement, Severity, finding, finding_of
from format.io.source import PatchedSource
from format.kafka_uuid import is_reserved
from format.limits import Limits
from format.location import Location
from format.log.batch_chunk import BatchChunk
from format.node.log_dir import Checkpoints, LogDir, directory_around, log_dir_around
from format.node.offsets import offsets_of
from format.node.partition import Partition
from format.rewriting.index_builder import IndexedOffsets
from format.rewriting.publishing.publication import Publication
from format.rewriting.rewriter import FirstLook, Portion, Rewriter, SourceLog, WriteTerms
from format.rewriting.run import rewrite
from format.rewriting.sources import WriteSources
from format.rewriting.written_batches import copied
from format.rewriting.written_segments import RewritingResult, SegmentResult, WrittenSegment
from format.rows.finding_rows import finding_as_json
from format.state.cluster_image import ClusterImage
from format.state.metadata_log import read_metadata
from format.verbs.boot.refusals import refusal_findings
from format.verbs.salvage.losses import SegmentLosses, offset_range
from format.verbs.verify.written_output import verify_output
from format.wording import offsets_are

_METADATA_PARTITION = f"{layout.CLUSTER_METADATA_TOPIC}-0"


def salvage(
    sources: WriteSources,
    publication: Publication,
    terms: WriteTerms | None = None,
    result: RewritingResult | None = None,
    *,
    repairs: bool = False,
) -> Iterator[Finding | WrittenSegment]:
    """Write the intact batches into the open publication and finish it; yields each segment, and findings on the way.

    With ``repairs``, batches of which only a field outside the CRC is wrong are written with the right one, if that is
    proven.
    Raises OutputError and FileChanged; a source that cannot be read is a finding.
    """
    result = result or RewritingResult()
    salvager = Salvager(terms or WriteTerms(), sources.log_dir, repairs=repairs)
    for found in salvager.missing_replicas(sources):
        result.findings.append(found)
        result.losses.append(found)
        yield found
    yield from rewrite(sources, publication, salvager, verify_output, result)


class Salvager(Rewriter):
    """Intact batches are copied; every gap between them is a loss.

    ``log_dir`` is the log directory to salvage as a whole, None where partitions were given.
    """

    keeps_misplaced = True
    wants_every_offset = True

    def __init__(self, terms: WriteTerms, log_dir: LogDir | None, *, repairs: bool = False) -> None:
        super().__init__(terms)
        self.repairs = repairs
        self._log_dir = log_dir
        self._checkpoints_of: dict[Path, Checkpoints] = {}  # by log directory
        self._checkpoints = Checkpoints()
        self._is_compacted = False
        self._torn_end: Cause | None = None  # the damage at the end of the last segment

    def portions(self, chunk: BatchChunk, is_kept: NDArray[np.bool_], location: Location) -> Iterator[Portion]:
        yield Portion(copied(chunk, np.flatnonzero(is_kept)))

    def report_unreadable(self, error: UnreadableFile, log: SourceLog, result: SegmentResult) -> None:
        lost = offset_range(log.first_possible(result.last_offset), log.next_base_offset)
        found = finding_of(error, log.location)
        message = f"nothing could be read: {found.message}"
        result.add(finding(found.code, log.location, message, lost_offsets=lost), True)

    def report_look(self, look: FirstLook, result: SegmentResult) -> None:
        if not isinstance(look.source, PatchedSource):
            raise TypeError("salvage reads around the blocks that the disk cannot read")
        losses = SegmentLosses(
            look.log.location,
            look.scan,
            look.source,
            look.log.next_base_offset,
            look.is_live,
            self._is_compacted,
            IndexedOffsets(look.log.location, self.terms.limits),
            look.repairable,
        )
        for each in look.repairs:
            place = look.log.location.at(each.position, each.size_bytes, each.first_offset)
            message = f"the batch is written with another {each.field.replace('_', ' ')}: {each.words}"
            result.add(finding("batch-repaired", place, message, expected=each.right, actual=each.wrong), False)
        losses.report(result)
        self._torn_end = losses.torn_end
        result.lost_bytes = losses.lost_bytes

    def missing_replicas(self, sources: WriteSources) -> Iterator[Finding]:
        """Findings for partitions that the metadata assigns here, that had records, and that are gone."""
        if sources.log_dir is None or not sources.is_whole:
            return
        for found in refusal_findings(sources.log_dir.path, self.terms.limits):
            if found.code == "replica-missing":
                yield found

    def begin_partition(self, partition: Partition) -> Iterator[Finding]:
        around = directory_around(partition.path)
        if around not in self._checkpoints_of:
            log_dir = self._log_dir or log_dir_around(partition.path)
            self._checkpoints_of[around] = Checkpoints() if log_dir is None else log_dir.checkpoints(self.terms.limits)
            # Problems of the checkpoints of a whole log directory are reported when these are carried over.
            if self._log_dir is None:
                yield from self._checkpoints_of[around].findings
        self._checkpoints = self._checkpoints_of[around]
        cleaned = self._checkpoints.offset(layout.CLEANER_OFFSET_CHECKPOINT, partition.key)
        self._is_compacted = partition.topic in layout.COORDINATOR_TOPICS or bool(cleaned)
        self._torn_end = None
        yield from super().begin_partition(partition)

    def end_partition(self, partition: Partition, last_offset: int | None) -> Iterator[Finding]:
        """A finding where a checkpoint or a producer snapshot shows that the log once ended later."""
        offsets = offsets_of(partition, self._checkpoints)
        if not partition.segments:
            yield from check_lost_log(offsets, partition)
            return
        end = partition.segments[-1].base_offset if last_offset is None else last_offset + 1
        claims = {
            "a producer snapshot": offsets.newest_snapshot or 0,
            f"the {layout.REPLICATION_OFFSET_CHECKPOINT}": offsets.committed_end or 0,
            f"the {layout.RECOVERY_POINT_CHECKPOINT}": offsets.recovery_point or 0,
        }
        if offsets.is_clean_shutdown and offsets.recovery_point is not None:  # where the log ended
            claims = {f"the {layout.RECOVERY_POINT_CHECKPOINT}": offsets.recovery_point}
        what, offset = max(claims.items(), key=lambda each: each[1])
        if offset > end:
            yield finding(
                "checkpoint-mismatch",
                partition.location(),
                f"{what} shows that the log reached offset {offset}, but what is left ends at {end}: "
                f"{offsets_are(end, offset - 1)} lost",
                lost_offsets=(end, offset - 1),
                judgement=Judgement(severity=Severity.FATAL, certainty=Certainty.LIKELY, caused_by=self._torn_end),
            )

    def topic_ids(self, sources: WriteSources) -> dict[str, str]:
        """The ids of topics by name: those of the metadata log here, else of another partition of the topic."""
        found = super().topic_ids(sources)
        if sources.log_dir is None:
            return found
        image = _image_in(sources.partitions.get(_METADATA_PARTITION), self.terms.limits)
        return {**found, **{name: topic_id for topic_id, name in image.names.items()}}

    def node_id(self, sources: WriteSources) -> int | None:
        """The one node with replicas of all partitions here, or the only node of the cluster; None if unclear."""
        image = _image_in(sources.partitions.get(_METADATA_PARTITION), self.terms.limits)
        here = {each.key for each in sources.partitions.values() if each.mark is None}
        hosts = [
            set(state.replicas)
            for (topic_id, number), state in image.partitions.items()
            if (image.names.get(topic_id), number) in here
        ]
        nodes = set.intersection(*hosts) if hosts else set(image.brokers)
        return nodes.pop() if len(nodes) == 1 else None

    def directory_id(self, sources: WriteSources, node_id: int) -> str | None:
        """The id of the log directory to which the metadata assigns most of the partitions here."""
        image = _image_in(sources.partitions.get(_METADATA_PARTITION), self.terms.limits)
        here = {each.key for each in sources.partitions.values() if each.mark is None}
        assigned = Counter(
            image.directory_of(topic_id, number, node_id)
            for topic_id, number in image.partitions
            if (image.names.get(topic_id), number) in here
        )
        ids = [each for each, _ in assigned.most_common() if each is not None and not is_reserved(each)]
        return ids[0] if ids else None

    def keeps_snapshots(self, result: RewritingResult, lost_bytes: int) -> bool:
        return False

    def is_whole(self, result: RewritingResult) -> bool:
        return False

    def manifest(self, result: RewritingResult) -> dict[str, Any]:
        return {
            "segments": [each.as_json() for each in result.segments],
            "lost_bytes": result.lost_bytes,
            "losses": [finding_as_json(each) for each in result.losses],
            "repaired": [finding_as_json(each) for each in result.findings if each.code == "batch-repaired"],
        }


def _image_in(metadata: Partition | None, limits: Limits) -> ClusterImage:
    """The cluster's metadata as far as the metadata log and its newest snapshot can be read."""
    return ClusterImage() if metadata is None else read_metadata(metadata, limits=limits).image
