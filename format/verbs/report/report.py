"""report: one pass of verify over the logs, which fills most tables, and the answers of other verbs."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import msgspec
from msgspec.structs import replace

from format import columns
from format.errors import InputError, KafkaLogError
from format.findings import Finding, Severity
from format.io.source import FileSource
from format.layout import TRANSACTION_STATE_TOPIC
from format.limits import Limits
from format.node.log_dir import Checkpoints, Kind, LogDir, directory_around
from format.node.offsets import unread_heads_words
from format.node.partition import Partition
from format.node.target import Target
from format.rows.record_rows import Row
from format.state.cluster_context import ClusterContext, TopicConfigs, read_context
from format.state.metadata_log import MetadataState
from format.verbs.boot.boot import boot
from format.verbs.boot.steps import BootTerms, Step
from format.verbs.bundle.verify_bundle import NOT_CHECKED, findings_now, findings_then, verified_counts
from format.verbs.compaction.compaction import Compaction, CompactionTerms, KnownProducers, LogCompaction
from format.verbs.diff.diff import LeftOut, PartitionResult, diff
from format.verbs.doctor.diagnose import conclude
from format.verbs.doctor.evidence import Evidence, held_by_future, rows_by_name
from format.verbs.groups.answers import unread_words
from format.verbs.groups.group_list import GroupTerms
from format.verbs.groups.groups import GroupsReading
from format.verbs.ls.ls import known_by, log_dir_listing, sizes_of
from format.verbs.ls.partition_listing import KnownLog, PartitionTerms, list_partition
from format.verbs.metadata.metadata import MetadataResult, MetadataTerms, metadata
from format.verbs.report import filling
from format.verbs.report.survey import ReportSurvey, SurveyedPartition
from format.verbs.report.terms import Report, ReportTerms
from format.verbs.retention import ConfiguredLog, Retention, RetentionTerms, configured_logs
from format.verbs.txns import txns
from format.verbs.verify.verify import Coverage, VerifyTerms, compacted_topics_at, verify, verify_nodes

_MOST_CHANGES = 1_000

_SHOWN_BYTES = 64
_MOST_SHOWN_PLACES = 200
_MOST_ABORTED = 500


class MetadataReading(msgspec.Struct):
    """The metadata at some paths; ``error`` says why there is none. ``change_count`` includes dropped changes."""

    result: MetadataResult | None = None
    error: InputError | KafkaLogError | None = None
    changes: deque[Row] = msgspec.field(default_factory=lambda: deque(maxlen=_MOST_CHANGES))
    change_count: int = 0

    def take(self, change: Row) -> None:
        """Add a row of columns.METADATA_CHANGE."""
        self.change_count += 1
        self.changes.append(change)

    @property
    def sound_state(self) -> MetadataState | None:
        """The state at the end of a log that was read without findings; None otherwise.

        Changes are read from the oldest snapshot on. From the newest one, as others read a state, the image of a
        damaged log may be more complete.
        """
        return None if self.result is None or self.result.state.findings else self.result.state


def read_changes(targets: Sequence[Target], limits: Limits) -> MetadataReading:
    """Read the metadata log at some paths, from the oldest snapshot on."""
    found = MetadataReading()
    try:
        found.result = metadata(list(targets), MetadataTerms(limits=limits), found.take)
    except (InputError, KafkaLogError) as error:
        found.error = error
    return found


class _Answers(msgspec.Struct):
    """Adds the answers of other verbs to a report.

    Each reads little beside the logs: headers, side files, and records of internal topics. Questions that cannot be
    answered are noted in ``not_checked``. Findings are left out: verify reports them. ``damaged`` are directories of
    damaged logs.
    """

    report: Report
    targets: Sequence[Target]
    terms: ReportTerms
    context: ClusterContext
    survey: ReportSurvey
    evidence: Evidence
    damaged: frozenset[Path] = frozenset()
    _logs: list[ConfiguredLog] = msgspec.field(default_factory=list)

    @contextmanager
    def _answering(self, question: str) -> Iterator[None]:
        """Note an error in the answer of one question, and go on with the others."""
        try:
            yield
        except (InputError, KafkaLogError) as error:
            self.report.note([f"{question}: {error.message}"])

    def _configured_logs(self, takes: Callable[[Partition, TopicConfigs], bool]) -> Iterator[ConfiguredLog]:
        """The logs for which ``takes`` is true, listed once for all answers."""
        if not self._logs:
            for target in self.targets:
                found = configured_logs(target, self.context, self.terms.limits, lambda partition, configs: True)
                self._logs.extend(each for each in found if isinstance(each, ConfiguredLog))
        return (each for each in self._logs if takes(each.partition, each.configs))

    def boot(self) -> None:
        """Add the simulated start of each node; ``boot`` takes the log directories of one node together."""
        nodes: dict[object, list[Path]] = {}
        for log_dir in (each for target in self.targets for each in target.log_dirs):
            node_id = self.context.node_id_at(log_dir.path)
            nodes.setdefault(log_dir.path if node_id is None else f"node {node_id}", []).append(log_dir.path)
        terms = BootTerms(is_release_known=False, limits=self.terms.limits, read_logs=self.survey.read_logs)
        for name, paths in nodes.items():
            with self._answering(f"the start of {name}"):
                result = boot(paths, terms)
                self.report.table(columns.BOOT_STEP).extend_by(Step.row, result.steps)
                self.report.note(result.not_checked)

    def replicas(self, partitions: Sequence[filling.FoundPartition]) -> None:
        """Add the differences of replicas, where a live partition is here more than once."""
        report, keys = self.report, [(each.listing.topic, each.listing.partition) for each in partitions
                                     if each.listing.mark is None]  # fmt: skip
        if len(set(keys)) == len(keys):
            report.note(["differences between replicas: no partition has two replicas here"])
            return
        results: list[PartitionResult] = []
        left_out = LeftOut()
        with self._answering("differences between replicas"):
            for item in diff(self.targets, context=self.context, limits=self.terms.limits, jobs=self.terms.jobs):
                if isinstance(item, Finding):
                    report.later_findings.append(item)
                if not isinstance(item, PartitionResult):
                    continue
                results.append(item)
                left_out.take(item)
                report.note(item.not_checked)
                report.is_incomplete |= not item.is_complete
                if item.kind == "identical":
                    report.table(columns.DIVERGENCE).total += 1
                    continue
                report.differing.update(each.path for each in item.replicas)
                report.table(columns.DIVERGENCE).add(item.row())
                report.table(columns.REPLICA).extend(item.replica_rows())
            self.evidence.differences = results
            report.note(left_out.not_checked())

    def transactions(self) -> None:
        """Add open transactions, the last aborted ones, and totals by partition."""
        report, result, limits = self.report, self.survey.transactions, self.terms.limits
        terms = txns.TransactionTerms(self.terms.now_ms, limits=limits)
        with self._answering("transactional ids"):
            deque(result.read(replace(terms, topics=frozenset((TRANSACTION_STATE_TOPIC,)))), maxlen=0)
        self.evidence.opened = opened = txns.open_transactions(result, terms)
        aborted = deque(txns.ended_rows(result, terms, is_aborted=True), maxlen=_MOST_ABORTED)
        for row in (*(txns.open_row(each, terms) for each in opened), *aborted):
            report.table(columns.TRANSACTION).add(row)
            self.survey.timeline.transaction(dict(zip(columns.TRANSACTION.names, row, strict=True)))
        report.table(columns.TRANSACTION_TOTAL).extend(self._transaction_totals(opened))
        if not result.ids.partitions:
            report.note(["transactional ids, timeouts and hanging transactions: no __transaction_state is here"])

    def _transaction_totals(self, opened: Sequence[txns.OpenTransaction]) -> Iterator[Row]:
        """Rows of columns.TRANSACTION_TOTAL of the partitions with transactions."""
        for found in self.survey.transactions.in_order():
            seen, (committed, aborted) = self.survey.partitions[found.partition.path], found.ended_counts()
            committed, aborted = committed + seen.committed_count, aborted + seen.aborted_count
            if committed or aborted or any(each.found is found for each in opened):
                yield txns.total_row(found, opened, committed, aborted)

    def groups(self) -> None:
        """Add the groups and their offsets, the largest lag first, after the offsets that are out of range."""
        report = self.report
        with self._answering("groups"):
            reading = GroupsReading(self.targets, GroupTerms(limits=self.terms.limits), self.context)
            deque(reading.read(jobs=self.terms.jobs), maxlen=0)
            found = reading.groups()
            report.note(reading.not_checked(found))
            if not len(found):
                if reading.unread_count:
                    words = unread_words(reading.unread_count)
                    report.note([f"groups: {words}"])
                    report.missing[columns.GROUP.type] = f"Not checked: {words}."
                return
            lag = columns.GROUP.names.index("total_lag")
            report.table(columns.GROUP).extend(sorted(found.group_rows(), key=lambda row: -(row[lag] or 0)))
            self.evidence.groups = list(rows_by_name(columns.GROUP.names, found.group_rows()))
            offset_rows = list(found.offset_rows())
            self.evidence.group_offsets = list(rows_by_name(columns.GROUP_OFFSET.names, offset_rows))
            lag, outside = map(columns.GROUP_OFFSET.names.index, ("lag", "out_of_range"))
            rows = sorted(offset_rows, key=lambda row: (row[outside] is None, -(row[lag] or 0)))
            report.table(columns.GROUP_OFFSET).extend(map(filling.without_metadata, rows))

    def retention(self) -> None:
        """Add what retention deletes next, by topic."""
        times = self.survey.header_times()
        terms = RetentionTerms(
            self.terms.now_ms, self.terms.limits, with_offsets=False, with_rows=False, header_times=times
        )
        judged = Retention(self.context, terms)
        with self._answering("retention"):
            deque(judged.of_logs(self._configured_logs(judged.takes)), maxlen=0)
            self.evidence.held = list(held_by_future(self.evidence, self._configured_logs(judged.takes)))
        self.report.table(columns.RETENTION_TOTAL).extend(judged.total_rows())
        self.report.note(judged.not_checked())

    def compaction(self) -> None:
        """Add the cleaner's checkpoints and what it waits for; no records are read."""
        known = {
            path: KnownProducers({}, each.first_open_offset, each.log_end_offset)
            for path, each in self.survey.partitions.items()
            if each.last_log is not None
        }
        terms = CompactionTerms(
            self.terms.now_ms, self.terms.limits, reads_records=False, known=known, damaged=self.damaged
        )
        judged = Compaction(self.context, terms)
        with self._answering("compaction"):
            found = judged.of_logs(self._configured_logs(judged.takes))
            self.evidence.cleaners = [each for each in found if isinstance(each, LogCompaction)]
            self.report.table(columns.CLEANER).extend(each.row() for each in self.evidence.cleaners)
        self.report.note(judged.not_checked())
        if judged.logs:
            self.report.note(["what the cleaner would free: kafkalog compaction reads the records for it"])

    def metadata(self, reading: MetadataReading) -> None:
        """Add the cluster's image, and the last changes of its metadata."""
        report, result = self.report, reading.result
        if result is None:
            words = "" if reading.error is None else reading.error.message
            report.note([f"topics, configs and changes of the cluster: {words}"])
        else:
            report.note(result.not_checked())
            for schema, rows in result.rows():
                if schema in (columns.IMAGE, columns.TOPIC, columns.ASSIGNMENT, columns.BROKER):
                    report.table(schema).extend(rows)
            for row in reading.changes:
                values = dict(zip(columns.METADATA_CHANGE.names, row, strict=True))
                self.survey.timeline.metadata(str(result.source.partition.path), values)
        table = report.table(columns.METADATA_CHANGE)
        table.extend(reading.changes)
        table.total = reading.change_count


@dataclass(slots=True)
class ReportRun:
    """One report while it is made: ``findings`` yields the findings of verify, and ``finish`` returns the report."""

    targets: Sequence[Target]
    terms: ReportTerms
    coverage: Coverage = field(default_factory=Coverage)
    kept: filling.KeptFindings = field(default_factory=filling.KeptFindings)
    _context: ClusterContext | None = None
    _metadata: MetadataReading | None = None
    _survey: ReportSurvey = field(init=False)
    _evidence: Evidence = field(init=False)

    def __post_init__(self) -> None:
        """Raises InputError for a path that is no log directory and no partition."""
        for target in self.targets:
            target.require_partitions("a report is about whole logs")
        self._survey = ReportSurvey(self.terms.limits, txns.Transactions(tuple(self.targets)))
        self._evidence = Evidence(self.targets, self.terms.now_ms, self.terms.limits, reads_records=True)
        self._evidence.is_bundled = bool(self.terms.bundles)

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
            self._survey.begin(partial(_partition_at, [target], self.terms))
            verified = verify(target, terms, watch=self._survey.see)
            yield from map(self._taken, verified)
            self.coverage.add(verified.coverage)
        self._survey.finish()
        yield from map(self._taken, verify_nodes(self.targets, terms))

    def _compacted_topics(self) -> Mapping[str, bool]:
        """What verify is told of topics; where the metadata log is read for that, it is the report's context."""
        if not all(target.kind is Kind.LOG_DIR for target in self.targets):
            return compacted_topics_at(self.targets, self.terms.limits)
        with suppress(KafkaLogError):  # verify reports it
            self._context = self._read_context()
        return {} if self._context is None else self._context.compacted_topics()

    def _read_context(self) -> ClusterContext:
        self._metadata = self._read_changes()
        return read_context(self.targets, self.terms.context, self._metadata.sound_state)

    def _read_changes(self) -> MetadataReading:
        named = self.terms.context.metadata
        return read_changes(self.targets if named is None else [Target(named)], self.terms.limits)

    def _bundled_findings(self, compacted_topics: Mapping[str, bool]) -> Iterator[Finding]:
        """The findings of bundles; the survey gets them before the batches."""
        terms = self.terms
        for bundle in terms.bundles:
            own = [target for target in self.targets if str(target.path).startswith(f"{bundle.path}/")]
            verify_terms = VerifyTerms(limits=terms.limits, compacted_topics=compacted_topics, advance=terms.advance)
            self._survey.begin(partial(_partition_at, own, terms))
            then = list(map(self._taken, findings_then(bundle, own)))
            yield from map(self._taken, findings_now(own, then, verify_terms, self._survey.see))
            self._survey.finish()
            yield from then
            for name, count in verified_counts(bundle, own):
                setattr(self.coverage, name, getattr(self.coverage, name) + count)

    def _taken(self, found: Finding) -> Finding:
        self.kept.add(found)
        self._evidence.take(found)
        self._survey.find(found)
        return found

    def finish(self) -> Report:
        """The report, after the findings were consumed."""
        terms, survey = self.terms, self._survey
        context = self._context or self._read_context()
        survey.transactions.context = context
        report = Report(terms.now_ms, [str(target.path) for target in self.targets])
        damaged = frozenset() if terms.bundles else self.kept.damaged_logs()
        evidence = self._evidence
        evidence.context = context
        answers = _Answers(report, self.targets, terms, context, survey, evidence, damaged)
        log_dirs = [_log_dir_row(log_dir, terms) for target in self.targets for log_dir in target.log_dirs]
        partitions = list(self._partitions(context))
        evidence.partitions = [each.listing for each in partitions]
        answers.boot()
        answers.replicas(partitions)
        report.later_findings = [each for each in report.later_findings if not self.kept.has(each)]
        for found in report.later_findings:
            self._taken(found)
        answers.transactions()
        answers.groups()
        answers.retention()
        answers.compaction()
        answers.metadata(self._metadata or self._read_changes())
        conclude(report, evidence)
        report.table(columns.LOG_DIR).extend(log_dirs)
        filling.add_partitions(report, terms.now_ms, partitions)
        filling.add_histograms(report, survey)
        owners = dict(self._owners(context))
        self.kept.owners = owners if len(set(owners.values())) > 1 else {}
        report.counts = self.coverage.counts
        report.counts["log_dirs"] = len(log_dirs)
        filling.add_findings(report, self.kept)
        if terms.with_bytes:
            report.table(columns.FILE_BYTES, _MOST_SHOWN_PLACES).extend(_bytes_at(self.kept.shown()))
        if terms.bundles:
            report.note([NOT_CHECKED])
        if self.coverage.remote_heads:
            report.note([unread_heads_words(self.coverage.remote_heads)])
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

    def _partitions(self, context: ClusterContext) -> Iterator[filling.FoundPartition]:
        """Each partition as ls lists it, with the totals of the survey; verify reports those that cannot be listed."""
        for target in self.targets:
            paths = [target.path] if target.kind is Kind.PARTITION else []
            for path in paths or [path for log_dir in target.log_dirs for path in log_dir.partitions]:
                with suppress(KafkaLogError):
                    partition, checkpoints = _partition_at([target], self.terms, path)
                    yield self._partition(partition, directory_around(path), checkpoints, context)

    def _partition(
        self, partition: Partition, log_dir: Path, checkpoints: Checkpoints, context: ClusterContext
    ) -> filling.FoundPartition:
        seen = self._survey.partitions.get(partition.path) or SurveyedPartition(partition.path)
        totals = seen.totals
        last_base = partition.segment(partition.segment_count - 1).base_offset if partition.segment_count else None
        log_end = None if totals.last_offset is None else totals.last_offset + 1
        ends = [each for each in (last_base, log_end) if each is not None]
        listed = list_partition(
            partition.path,
            checkpoints,
            PartitionTerms(scan=False, segments=False, limits=self.terms.limits),
            listed=lambda: partition,
            known=KnownLog(totals, max(ends, default=None)),
        )  # verify reports its findings
        return filling.FoundPartition(known_by(context, listed.listing, log_dir), context.node_id_at(log_dir), seen)


def _partition_at(targets: Sequence[Target], terms: ReportTerms, path: Path) -> tuple[Partition, Checkpoints]:
    """A partition at or below a target, as it was listed for verify, and its checkpoints. Raises LookupError."""
    for target in targets:
        if path == target.path:
            return target.partition, target.checkpoints_around(terms.limits)
        for log_dir in target.log_dirs:
            if log_dir.path == path.parent:
                return log_dir.listed_partition(path), log_dir.checkpoints(terms.limits)
    raise LookupError(path)


def _log_dir_row(log_dir: LogDir, terms: ReportTerms) -> Row:
    checkpoints = log_dir.checkpoints(terms.limits)
    sizes = [sizes_of(log_dir, each) for each in log_dir.partitions]
    return log_dir_listing(log_dir, checkpoints, sizes, terms.limits, []).row()  # verify reports its findings


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
