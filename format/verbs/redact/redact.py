"""redact: copies logs with keys, values and headers replaced, and everything else unchanged.

Offsets, timestamps, sizes of records, nulls, producers, sequences, leader epochs and batch boundaries stay. A batch
that cannot be read to its last byte cannot be redacted: it is left out, with a finding. Control batches and the records
of coordinators keep their structure. The metadata log and the topic of tiered storage are left out.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any

import msgspec
import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from format import layout
from format.decoding.decoder import Decoding
from format.errors import InputError, UnreadableFile
from format.findings import Finding, finding, finding_of
from format.location import Location
from format.log.batch_chunk import BatchChunk
from format.node.partition import Partition
from format.rewriting.publication import Publication
from format.rewriting.read_back import Rewritten
from format.rewriting.rewriter import (
    HARMLESS_DAMAGE,
    Decision,
    Failure,
    FirstLook,
    NewBatches,
    Remark,
    Rewriter,
    RewritingResult,
    SegmentResult,
    SourceLog,
    WriteTerms,
    WrittenSegment,
)
from format.rewriting.run import rewrite
from format.rewriting.sources import WriteSources
from format.rows.decoded_rows import undecodable_finding
from format.scan.progress import Advance
from format.scan.protocol import Cost
from format.scan.selection import EVERYTHING, Selection
from format.verbs.redact.batches import ContentDigest, RecordRedaction, read_back, redact_chunk
from format.verbs.redact.fields import FieldRedaction, field_paths
from format.verbs.redact.internal_records import coordinator_redaction
from format.verbs.redact.replacements import Redactor
from format.verbs.verify.written_output import verify_output
from format.wording import are, counted_plainly

#: Topics whose records consist of names of hosts, users and settings; nothing useful would be left of them.
LEFT_OUT_TOPICS = (layout.CLUSTER_METADATA_TOPIC, "__remote_log_metadata")


#: Measured, for small records of Avro of which a field is kept.
_FIELDS_COST = Cost(batch_s=20e-6, byte_s=1e-6, compressed_byte_s=1e-6)


class Redaction(WriteTerms, frozen=True, kw_only=True):
    """The terms of one run."""

    redactor: Redactor
    with_header_names: bool = False
    selection: Selection = EVERYTHING
    keep_fields: tuple[str, ...] = ()  # such as customer.country
    decoding: Decoding = msgspec.field(default_factory=Decoding)  # of the keys and values with fields to keep

    def options(self) -> dict[str, Any]:
        """The options for the manifest."""
        options: dict[str, Any] = {
            "mode": self.redactor.mode.value,
            "header_names": self.with_header_names,
            "key_fingerprint": self.redactor.key_fingerprint,
            "index_interval_bytes": self.interval_bytes,
        }
        if self.keep_fields:
            options["keep_fields"] = list(self.keep_fields)
        if not self.selection.is_everything:
            names = ("from_offset", "to_offset", "from_timestamp", "to_timestamp")
            options["selection"] = {name: getattr(self.selection, name) for name in names}
        return options


def selected_sources(sources: WriteSources, selection: Selection) -> WriteSources:
    """The sources without the segments whose offsets all lie outside a selection, and without empty partitions."""
    if selection.is_everything:
        return sources
    partitions: dict[str, Partition] = {}
    for name, partition in sources.partitions.items():
        segments = [
            each
            for each in partition.segments
            if not selection.excludes_segment(each.base_offset, partition.next_base_offset(each))
        ]
        if segments:
            partitions[name] = dataclasses.replace(partition.with_segments(segments), snapshots={})
    if not partitions:
        raise InputError("no segment has an offset of the range", Location(str(sources.paths[0])))
    return replace(sources, partitions=partitions)


def redact(
    sources: WriteSources, publication: Publication, terms: Redaction, result: RewritingResult | None = None
) -> Iterator[Finding | WrittenSegment]:
    """Write the redacted copy into the open publication and finish it; yields segments, and findings on the way.

    Raises OutputError, and FileChanged where a log changes meanwhile; other damage of the sources is a finding.
    """
    result = result or RewritingResult()
    kept = {name: each for name, each in sources.partitions.items() if each.topic not in LEFT_OUT_TOPICS}
    result.left_out += [f"{name}: a topic that is left out" for name in sources.partitions if name not in kept]
    if sources.log_dir is not None and sources.log_dir.bootstrap_checkpoint is not None:
        result.left_out.append(f"{layout.BOOTSTRAP_CHECKPOINT}: holds metadata")
    rewriter = RedactingRewriter(terms)
    return rewrite(replace(sources, partitions=kept), publication, rewriter, verify_output, result)


class _FoundField(msgspec.Struct, frozen=True):
    """A remark: a key or value has this field, which is kept."""

    name: str


def _added(remarks: Iterable[Remark]) -> list[Remark]:
    """A remark for each thing, at the first place."""
    sums: dict[Any, Remark] = {}
    for each in remarks:
        known = sums.get(each.what)
        sums[each.what] = each if known is None else replace(known, count=known.count + each.count)
    return list(sums.values())


class RedactingRewriter(Rewriter):
    """Replaces the content of batches; those that cannot be read to the last byte are left out."""

    knows_all = True
    shares_making = True
    cost = Cost(batch_s=20e-6, byte_s=30e-9, compressed_byte_s=90e-9)

    def __init__(self, terms: Redaction) -> None:
        super().__init__(terms)
        self._redactor = terms.redactor
        self._options = terms.options()
        self._with_header_names = terms.with_header_names
        self._keep = field_paths(terms.keep_fields)
        self._decoding = terms.decoding
        if self._keep:
            self.cost = _FIELDS_COST
        self._selection = terms.selection
        self.makes_snapshots = terms.selection.is_everything
        self._redaction_of = lru_cache(16)(self._redaction)

    def _redaction(self, topic: str | None) -> RecordRedaction:
        replace_record = coordinator_redaction(topic, self._redactor)
        fields = FieldRedaction(self._keep, self._redactor, self._decoding, topic or "") if self._keep else None
        return RecordRedaction(self._redactor, self._with_header_names, replace_record, fields)

    def portions(
        self, chunk: BatchChunk, is_kept: NDArray[np.bool_], location: Location
    ) -> Iterator[NewBatches | Failure | Remark]:
        redaction = self._redaction_of(location.topic)
        if redaction.fields is not None:
            redaction.fields.taken_found()  # of a chunk that was given up
        made = redact_chunk(chunk, is_kept, redaction, limits=self.terms.limits, location=location)
        for problem in made.problems:
            yield Failure(problem.batch, problem.error, is_left_out=True)
        left_out = {problem.batch for problem in made.problems}
        yield from _added(
            Remark(
                (each.field, each.schema_id, each.reason),
                location.at(int(chunk.table.position[each.batch]), offset=each.offset),
            )
            for each in made.whole
            if each.batch not in left_out
        )
        if redaction.fields is not None:
            yield from (Remark(_FoundField(name), location) for name in redaction.fields.taken_found())
        digest = ContentDigest()
        digest.update(made.table, made.payloads)
        decisions = np.where(made.table.is_control, Decision.COPIED, Decision.REBUILT).astype(np.int8)
        yield NewBatches(b"".join(made.batches), made.table.base_offset, decisions, digest.value())

    def taken(self, chunk: BatchChunk, is_kept: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """The batches that may have a selected record."""
        return is_kept if self._selection.is_everything else is_kept & self._selection.batches(chunk.table)

    def read_back(self, written: Rewritten, advance: Advance) -> None:
        """Compare what was written with the digests of the new batches, since the source differs from both."""
        for each in written.became:
            read_back(each, limits=self.terms.limits)
            advance(each.end - each.start)

    def report_unreadable(self, error: UnreadableFile, log: SourceLog, result: SegmentResult) -> None:
        super().report_unreadable(error, log, result)
        result.lost_bytes += max(log.size_bytes(), 1)

    def report_look(self, look: FirstLook, result: SegmentResult) -> None:
        """A finding for all bytes that belong to no intact batch."""
        location = look.log.location
        for each in look.scan.bad:
            code = each.code
            place = location.at(each.position, each.length)
            if each.reaches_end and look.is_live:
                result.add(finding("live-tail", place, "the end is being written, and is left out"), False)
                continue
            if each.reaches_end and look.log.next_base_offset is not None and code == "tail-torn":
                code = "log-truncated"
            is_loss = code not in HARMLESS_DAMAGE
            result.add(
                finding(
                    code, place, f"{counted_plainly(each.length, 'byte')} {are(each.length)} left out: {each.reason}"
                ),
                is_loss,
            )
            if is_loss:
                result.lost_bytes += each.length
        for block in sorted(look.unreadable):
            result.add(finding("file-unreadable", location.at(block), "an I/O error at this block"), True)

    def report_failure(self, failure: Failure, chunk: BatchChunk, location: Location, result: SegmentResult) -> None:
        found = finding_of(failure.error, location)
        message = f"the batch is left out, since it cannot be redacted: {found.message}"
        result.add(finding(found.code, failure.error.location or location, message), True)
        result.lost_bytes += int(chunk.table.size_bytes[failure.row])

    def report_remarks(self, remarks: Sequence[Remark], result: SegmentResult) -> None:
        """A finding for each schema and reason of what does not decode, and the count of all that had no fields."""
        for each in _added(remarks):
            if isinstance(each.what, _FoundField):
                result.found_fields.append(each.what.name)
                continue
            field, schema_id, reason = each.what
            result.whole_count += each.count
            if reason is not None:
                what = f"the {field}" if each.count == 1 else f"the {field}s of {counted_plainly(each.count, 'record')}"
                found = undecodable_finding(each.place, what, schema_id, f"{reason}; replaced as a whole", each.count)
                result.add(found, False)

    def keeps_snapshots(self, result: RewritingResult, lost_bytes: int) -> bool:
        return not lost_bytes and self._selection.is_everything

    def is_whole(self, result: RewritingResult) -> bool:
        return not result.lost_bytes

    def manifest(self, result: RewritingResult) -> dict[str, Any]:
        """The job without the paths of the sources, which may name hosts and people."""
        return {"job": {"command": "redact", "options": self._options}, "left_out_bytes": result.lost_bytes}
