"""report: one pass of verify over the logs, which fills most tables, and the answers of other verbs."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TypeVar

from format.columns import FILE_BYTES, LOG_DIR
from format.errors import KafkaLogError
from format.findings import Finding, Severity
from format.io.source import FileSource
from format.node.log_dir import Checkpoints, Kind, LogDir, directory_around
from format.node.offsets import unread_heads_words
from format.node.partition import Partition
from format.node.target import Target
from format.rows.record_rows import Row
from format.state.cluster_context import ClusterContext, read_context
from format.verbs.ls.known_topics import known_by
from format.verbs.ls.ls import LogDirListing, log_dir_listing, sizes_of
from format.verbs.ls.partition_listing import KnownLog, PartitionListing, PartitionTerms, list_partition
from format.verbs.report.answers import (
    Inputs,
    answer_boot,
    answer_compaction,
    answer_groups,
    answer_metadata,
    answer_replicas,
    answer_retention,
    answer_transactions,
)
from format.verbs.report.filling import FoundPartition, add_findings, add_histograms, add_overview, add_partitions
from format.verbs.report.kept_findings import KeptFindings
from format.verbs.report.metadata_reading import MetadataReading, read_changes
from format.verbs.report.survey import Survey, SurveyedPartition
from format.verbs.report.terms import Report, ReportTerms
from format.verbs.report.timeline import Timeline
from format.verbs.txns.txns import Transactions
from format.verbs.verify.verify import Coverage, VerifyTerms, compacted_topics_at, verify, verify_nodes

_SHOWN_BYTES = 64
_MOST_SHOWN_PLACES = 200
_Listing = TypeVar("_Listing")


@dataclass(slots=True)
class ReportRun:
    """One report while it is made: ``findings`` yields the findings of verify, and ``finish`` returns the report."""

    targets: Sequence[Target]
    terms: ReportTerms
    coverage: Coverage = field(default_factory=Coverage)
    kept: KeptFindings = field(default_factory=KeptFindings)
    _context: ClusterContext | None = None
    _metadata: MetadataReading | None = None
    _survey: Survey = field(init=False)

    def __post_init__(self) -> None:
        """Raises InputError for a path that is no log directory and no partition."""
        for target in self.targets:
            target.require_partitions("a report is about whole logs")
        self._survey = Survey(self.terms.limits, Timeline(), Transactions(tuple(self.targets)))

    def findings(self) -> Iterator[Finding]:
        """Read everything once, as verify does; yields its findings."""
        compacted_topics = self._compacted_topics()
        if self.terms.bundles:
            yield from self._bundled_findings(compacted_topics)
            return
        terms = VerifyTerms(
            limits=self.terms.limits,
            compacted_topics=compacted_topics,
            jobs=self.terms.jobs,
            advance=self.terms.advance,
        )
        for target in self.targets:
            self._survey.begin(partial(_partition_at, target, self.terms))
            verified = verify(target, terms, watch=self._survey.see, kept_start=self._survey.kept_start)
            for found in verified:
                self._take(found)
                yield found
            self.coverage.add(verified.coverage)
        self._survey.finish()
        for found in verify_nodes(self.targets, terms):
            self._take(found)
            yield found

    def _compacted_topics(self) -> frozenset[str]:
        """The compacted topics for verify; where the metadata log is read for them, that is the report's context."""
        if not all(target.kind is Kind.LOG_DIR for target in self.targets):
            return compacted_topics_at(self.targets, self.terms.limits)
        with suppress(KafkaLogError):  # verify reports it
            self._context = self._read_context()
        return frozenset() if self._context is None else self._context.compacted_topics()

    def _read_context(self) -> ClusterContext:
        self._metadata = self._read_changes()
        return read_context(self.targets, self.terms.context, self._metadata.sound_state)

    def _read_changes(self) -> MetadataReading:
        named = self.terms.context.metadata
        return read_changes(self.targets if named is None else [Target(named)], self.terms.limits)

    def _bundled_findings(self, compacted_topics: frozenset[str]) -> Iterator[Finding]:
        """The findings of bundles; the survey gets each after the batches before it."""
        from format.verbs.bundle.verify_bundle import findings_now, findings_then, verified_counts
        from format.verbs.report.bundled_findings import FindingsInBundle

        terms = self.terms
        for bundle in terms.bundles:
            own = [target for target in self.targets if str(target.path).startswith(f"{bundle.path}/")]
            waiting = FindingsInBundle(list(findings_then(bundle, own)), self._survey)
            verify_terms = VerifyTerms(limits=terms.limits, compacted_topics=compacted_topics, advance=terms.advance)
            self._survey.begin(partial(_partition_of, own, terms))
            for found in findings_now(own, waiting.findings, verify_terms, waiting.see):
                self._take(found)
                yield found
            self._survey.finish()
            waiting.finish()
            for found in waiting.findings:
                self.kept.add(found)
                yield found
            for name, count in verified_counts(bundle):
                setattr(self.coverage, name, getattr(self.coverage, name) + count)

    def _take(self, found: Finding) -> None:
        self.kept.add(found)
        self._survey.find(found)

    def finish(self) -> Report:
        """The report, after the findings were consumed."""
        terms, survey = self.terms, self._survey
        context = self._context or self._read_context()
        survey.transactions.context = context
        report = Report(terms.now_ms, [str(target.path) for target in self.targets])
        damaged = frozenset() if terms.bundles else self.kept.damaged_logs()
        inputs = Inputs(report, self.targets, terms, context, survey, damaged)
        log_dirs = list(self._log_dirs())
        partitions = list(self._partitions(inputs))
        answer_boot(inputs)
        answer_replicas(inputs, lambda: _has_replicas(partitions))
        report.later_findings = [each for each in report.later_findings if not self.kept.has(each)]
        for found in report.later_findings:
            self._take(found)
        answer_transactions(inputs)
        answer_groups(inputs)
        answer_retention(inputs)
        answer_compaction(inputs)
        answer_metadata(inputs, self._metadata or self._read_changes())
        report.table(LOG_DIR).extend(each.row() for each in log_dirs)
        add_partitions(report, terms.now_ms, partitions)
        add_histograms(report, survey)
        owners = dict(self._owners(context))
        self.kept.owners = owners if len(set(owners.values())) > 1 else {}
        add_findings(report, self.kept)
        if terms.with_bytes:
            report.table(FILE_BYTES, _MOST_SHOWN_PLACES).extend(_bytes_at(self.kept.shown()))
        if terms.bundles:
            report.note(["CRCs, records and side files: their findings are those from when the bundle was made"])
        report.counts = self.coverage.counts
        if self.coverage.remote_heads:
            report.note([unread_heads_words(self.coverage.remote_heads)])
        report.counts["log_dirs"] = len(log_dirs)
        report.counts["lost_offsets"] = self.kept.lost_offsets
        add_overview(report, self.kept)
        return report

    def _owners(self, context: ClusterContext) -> Iterator[tuple[str, str]]:
        """Each log directory, or partition that was given by itself, and its node in words."""
        for target in self.targets:
            found = [(each.path, each.path) for each in target.log_dirs]
            if target.kind is Kind.PARTITION:
                found = [(target.path, directory_around(target.path))]
            for path, log_dir in found:
                node_id = context.node_id_at(log_dir)
                yield str(path), str(log_dir) if node_id is None else f"node {node_id}"

    def _log_dirs(self) -> Iterator[LogDirListing]:
        for target in self.targets:
            for log_dir in target.log_dirs:
                yield _listing(log_dir, self.terms)

    def _partitions(self, inputs: Inputs) -> Iterator[FoundPartition]:
        """Each partition as ls lists it, with the totals of the survey."""
        for target in self.targets:
            if target.kind is Kind.PARTITION:
                checkpoints = target.checkpoints_around(self.terms.limits)
                yield self._partition(target.partition, directory_around(target.path), checkpoints, inputs)
            for log_dir in target.log_dirs:
                checkpoints = log_dir.checkpoints(self.terms.limits)
                for path in log_dir.partitions:
                    try:
                        yield self._partition(log_dir.listed_partition(path), log_dir.path, checkpoints, inputs)
                    except KafkaLogError:
                        continue  # verify reports it

    def _partition(
        self, partition: Partition, log_dir: Path, checkpoints: Checkpoints, inputs: Inputs
    ) -> tuple[PartitionListing, int | None, SurveyedPartition]:
        seen = self._survey.partitions.get(partition.path) or SurveyedPartition(partition.path)
        totals = seen.totals
        last_base = partition.segment(partition.segment_count - 1).base_offset if partition.segment_count else None
        log_end = None if totals.last_offset is None else totals.last_offset + 1
        ends = [each for each in (last_base, log_end) if each is not None]
        listed = _returned(
            list_partition(
                partition.path,
                checkpoints,
                PartitionTerms(scan=False, segments=False, limits=self.terms.limits),
                listed=lambda: partition,
                known=KnownLog(totals, max(ends, default=None)),
            )
        )
        listing = known_by(inputs.context, listed, log_dir).listing
        return listing, inputs.context.node_id_at(log_dir), seen


def _partition_of(targets: Sequence[Target], terms: ReportTerms, path: Path) -> tuple[Partition, Checkpoints]:
    """A partition at or below one of some targets, and the checkpoints around it. Raises LookupError."""
    for target in targets:
        if path == target.path or any(log_dir.path == path.parent for log_dir in target.log_dirs):
            return _partition_at(target, terms, path)
    raise LookupError(path)


def _partition_at(target: Target, terms: ReportTerms, path: Path) -> tuple[Partition, Checkpoints]:
    """A partition at or below a target, as it was listed for verify, and its checkpoints. Raises LookupError."""
    if target.kind is Kind.PARTITION:
        return target.partition, target.checkpoints_around(terms.limits)
    for log_dir in target.log_dirs:
        if log_dir.path == path.parent:
            return log_dir.listed_partition(path), log_dir.checkpoints(terms.limits)
    raise LookupError(path)


def _listing(log_dir: LogDir, terms: ReportTerms) -> LogDirListing:
    checkpoints = log_dir.checkpoints(terms.limits)
    sizes = [sizes_of(log_dir, each) for each in log_dir.partitions]
    return _returned(log_dir_listing(log_dir, checkpoints, sizes, terms.limits))


def _returned(listing: Generator[Finding, None, _Listing]) -> _Listing:
    """The return value of a listing; its findings are dropped, since verify reports them."""
    while True:
        try:
            next(listing)
        except StopIteration as end:
            returned: _Listing = end.value
            return returned


def _has_replicas(partitions: Sequence[FoundPartition]) -> bool:
    """Whether a live partition is here more than once."""
    keys = [(each.topic, each.partition) for each, _, _ in partitions if each.mark is None]
    return len(set(keys)) < len(keys)


def _bytes_at(findings: Iterator[Finding]) -> Iterator[Row]:
    """Rows of columns.FILE_BYTES: the first bytes at the position of each finding."""
    for found in findings:
        where = found.location
        if where.position is None or found.severity < Severity.WARNING:
            continue
        try:
            with FileSource(Path(where.path)) as source:
                length = min(_SHOWN_BYTES, max(source.size_bytes - where.position, 0))
                content = bytes(source.read_at(where.position, length))
        except KafkaLogError:
            continue  # verify reports it
        text = "".join(chr(each) if 32 <= each < 127 else "." for each in content)
        yield where.path, where.position, content.hex(), text, found.code
