"""report: one pass of verify over the logs, which fills most tables, and the answers of other verbs."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from format.columns import (
    ASSIGNMENT,
    BOOT_STEP,
    BROKER,
    CLEANER,
    DIVERGENCE,
    FILE_BYTES,
    GROUP,
    GROUP_OFFSET,
    IMAGE,
    LOG_DIR,
    METADATA_CHANGE,
    REPLICA,
    RETENTION_TOTAL,
    TOPIC,
    TRANSACTION,
    TRANSACTION_TOTAL,
)
from format.errors import InputError, KafkaLogError
from format.findings import Finding, Severity
from format.io.source import FileSource
from format.layout import TRANSACTION_STATE_TOPIC
from format.limits import Limits
from format.location import Location
from format.node.checkpoints import Checkpoints
from format.node.log_dir import Kind, LogDir, directory_around
from format.node.offsets import unread_heads_words
from format.node.partition import Partition
from format.node.target import Target
from format.rows.record_rows import Row
from format.scan.progress import no_progress
from format.scan.protocol import LogUnit
from format.scan.selected_logs import partitions_to_read
from format.state.cluster_context import ClusterContext, TopicConfigs, read_context
from format.state.metadata_log import MetadataState
from format.verbs.boot.boot import boot
from format.verbs.boot.sentence import sentence as boot_sentence
from format.verbs.boot.steps import BootTerms, Step
from format.verbs.compaction.compaction import Compaction, CompactionTerms, KnownProducers, LogCompaction
from format.verbs.groups.groups import GroupsReading, GroupTerms
from format.verbs.groups.sentence import sentences as group_sentences
from format.verbs.ls.ls import LogDirListing, known_by, log_dir_listing, sizes_of
from format.verbs.ls.partition_listing import KnownLog, PartitionListing, PartitionTerms, list_partition
from format.verbs.metadata.metadata import MetadataResult, MetadataTerms, metadata
from format.verbs.report.filling import (
    FoundPartition,
    KeptFindings,
    add_findings,
    add_histograms,
    add_overview,
    add_partitions,
)
from format.verbs.report.survey import Survey, SurveyedPartition, Timeline, ended_counts
from format.verbs.report.terms import Report, ReportTerms
from format.verbs.retention.configured_logs import ConfiguredLog, configured_logs
from format.verbs.retention.retention import Retention, RetentionTerms
from format.verbs.txns.replicas import coordinator_records
from format.verbs.txns.txns import (
    OpenTransaction,
    Transactions,
    TransactionTerms,
    ended_rows,
    open_row,
    open_transactions,
)
from format.verbs.txns.txns import sentences as transaction_sentences
from format.verbs.verify.compacted_topics import compacted_topics_at
from format.verbs.verify.terms import Coverage, Verification
from format.verbs.verify.verify import verify, verify_nodes
from format.verbs.verify.walk import WalkedChunk
from format.wording import counted

_MOST_CHANGES = 1_000


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
        found.result = metadata(list(targets), MetadataTerms(history=True, limits=limits), found.take)
    except (InputError, KafkaLogError) as error:
        found.error = error
    return found


class FindingsInBundle:
    """Findings of one bundle: the survey gets each after the batches before it."""

    def __init__(self, findings: Sequence[Finding], survey: Survey) -> None:
        self.findings = findings
        self._survey = survey
        self._waiting: dict[str, deque[Finding]] = {}
        for found in sorted(findings, key=lambda each: each.location.position or 0):
            self._waiting.setdefault(found.location.path, deque()).append(found)

    def see(self, log: LogUnit, walked: WalkedChunk) -> None:
        """Pass a chunk of a segment to the survey, and the findings in it; chunks come in log order."""
        self._survey.see(log, walked)
        waiting, table = self._waiting.get(str(log.path)), walked.table
        end = int(table.end_position[-1]) if len(table) else 0
        if walked.damage is not None:
            end = max(end, walked.damage.position + 1)
        while waiting and (waiting[0].location.position or 0) < end:
            self._survey.find(waiting.popleft())

    def finish(self) -> None:
        """Pass the other findings to the survey, which are not about a place in a log."""
        for waiting in self._waiting.values():
            for found in waiting:
                self._survey.find(found)
        self._waiting.clear()


_MOST_ABORTED = 500
_MOST_SENTENCES = 5


class Inputs(msgspec.Struct, frozen=True):
    """The input of all answers, and the report that they are added to. ``damaged`` are directories of damaged logs."""

    report: Report
    targets: Sequence[Target]
    terms: ReportTerms
    context: ClusterContext
    survey: Survey
    damaged: frozenset[Path] = frozenset()
    logs: list[ConfiguredLog] = msgspec.field(default_factory=list)

    @property
    def timeline(self) -> Timeline:
        return self.survey.timeline

    def configured_logs(self, takes: Callable[[Partition, TopicConfigs], bool]) -> Iterator[ConfiguredLog]:
        """The logs for which ``takes`` is true, listed once for all answers; verify reports what cannot be listed."""
        if not self.logs:
            for target in self.targets:
                found = configured_logs(target, self.context, self.terms.limits, lambda partition, configs: True)
                self.logs.extend(each for each in found if isinstance(each, ConfiguredLog))
        return (each for each in self.logs if takes(each.partition, each.configs))


@contextmanager
def _answering(inputs: Inputs, question: str) -> Iterator[None]:
    """Note an error in the answer of one question, and go on with the others."""
    try:
        yield
    except (InputError, KafkaLogError) as error:
        inputs.report.note([f"{question}: {error.message}"])


def answer_transactions(inputs: Inputs) -> None:
    """Add open transactions, the last aborted ones, and totals by partition."""
    report, result = inputs.report, inputs.survey.transactions
    terms = TransactionTerms(inputs.terms.now_ms, limits=inputs.terms.limits)
    with _answering(inputs, "transactional ids"):
        _read_coordinators(inputs)
    opened = open_transactions(result, terms)
    table = report.table(TRANSACTION)
    for each in opened:
        table.add(open_row(each, terms))
        _note_open(inputs, each)
    for row in deque(ended_rows(result, terms, is_aborted=True), maxlen=_MOST_ABORTED):
        table.add(row)
        _note_aborted(inputs, dict(zip(TRANSACTION.names, row, strict=True)))
    totals = report.table(TRANSACTION_TOTAL)
    totals.extend(_transaction_totals(inputs, opened))
    if totals.total:
        report.sentences += transaction_sentences(result, opened, terms)
    if not result.ids.partitions:
        report.note(["transactional ids, timeouts and hanging transactions: no __transaction_state is here"])


def _read_coordinators(inputs: Inputs) -> None:
    ids, limits = inputs.survey.transactions.ids, inputs.terms.limits
    for target in inputs.targets:
        for found in partitions_to_read(target, limits):
            if not isinstance(found, Finding) and found[0].topic == TRANSACTION_STATE_TOPIC:
                if found[0].number is not None:
                    ids.partitions.add(found[0].number)
                for item in coordinator_records(found[0], None, limits, no_progress):
                    if not isinstance(item, Finding):  # verify reports findings
                        item.feed_to(ids)


def _note_open(inputs: Inputs, each: OpenTransaction) -> None:
    known = each.transaction
    where = Location(str(each.found.partition.path), each.topic, each.partition, offset=known.first_offset)
    name = each.transactional_id or f"producer {known.producer_id}"
    words = f"{name} begins a transaction that {'hangs' if each.is_hanging else 'is open'}"
    severity = Severity.ERROR if each.is_hanging else Severity.WARNING
    inputs.timeline.transaction(where, known.start_timestamp, words, severity)


def _note_aborted(inputs: Inputs, values: dict[str, Any]) -> None:
    where = Location(values["path"], values["topic"], values["partition"], offset=values["first_offset"])
    name = values["transactional_id"] or f"producer {values['producer_id']}"
    inputs.timeline.transaction(where, values["last_timestamp"], f"a transaction of {name} is aborted")


def _transaction_totals(inputs: Inputs, opened: Sequence[OpenTransaction]) -> Iterator[Row]:
    """Rows of columns.TRANSACTION_TOTAL of the partitions with transactions."""
    partitions = inputs.survey.transactions.partitions
    for (topic, number), found in sorted(partitions.items(), key=lambda item: (str(item[0][0]), item[0][1] or 0)):
        committed, aborted = ended_counts(found, inputs.survey.partitions[found.partition.path])
        still_open = [each for each in opened if each.found is found]
        hanging = sum(each.is_hanging is True for each in still_open)
        if committed or aborted or still_open:
            end = found.log_end_offset
            yield topic, number, len(still_open), hanging, committed, aborted, found.last_stable_offset, end


def answer_groups(inputs: Inputs) -> None:
    """Add the groups, and their offsets, both with the largest lag first, after the offsets that are out of range."""
    report = inputs.report
    with _answering(inputs, "groups"):
        reading = GroupsReading(inputs.targets, GroupTerms(limits=inputs.terms.limits), inputs.context)
        for _ in reading.read(jobs=inputs.terms.jobs):
            pass  # verify reports findings
        found = reading.groups()
        report.note(reading.not_checked(found))
        if not len(found):
            if reading.unread_count:
                words = f"{counted(reading.unread_count, 'log')} of coordinators cannot be read"
                report.note([f"groups: {words}"])
                report.missing[GROUP.type] = f"Not checked: {words}."
            return
        report.sentences.append(group_sentences(found.overview()))
        lag = GROUP.names.index("total_lag")
        report.table(GROUP).extend(sorted(found.group_rows(), key=lambda row: -(row[lag] or 0)))
        lag, outside, note = map(GROUP_OFFSET.names.index, ("lag", "out_of_range", "metadata"))
        rows = sorted(found.offset_rows(), key=lambda row: (row[outside] is None, -(row[lag] or 0)))
        # The metadata of a commit is free text of an application, so it is left out.
        report.table(GROUP_OFFSET).extend((*row[:note], None, *row[note + 1 :]) for row in rows)


def answer_metadata(inputs: Inputs, reading: MetadataReading) -> None:
    """Add the cluster's image, and the last changes of its metadata."""
    report, result = inputs.report, reading.result
    if result is None:
        words = "" if reading.error is None else reading.error.message
        report.note([f"topics, configs and changes of the cluster: {words}"])
    else:
        report.sentences.append(result.sentence())
        report.note(result.not_checked())
        for schema, rows in result.rows():
            if schema in (IMAGE, TOPIC, ASSIGNMENT, BROKER):
                report.table(schema).extend(rows)
        where = Location(str(result.source.partition.path), "__cluster_metadata", 0)
        for row in reading.changes:
            values = dict(zip(METADATA_CHANGE.names, row, strict=True))
            inputs.timeline.metadata(
                where.at(offset=values["offset"]), values["timestamp"], f"{values['record_type']}: {values['subject']}"
            )
    table = report.table(METADATA_CHANGE)
    table.extend(reading.changes)
    table.total = reading.change_count


def answer_boot(inputs: Inputs) -> None:
    """Add the simulated start of each node; ``boot`` takes the log directories of one node together."""
    nodes: dict[int | None, list[Path]] = {}
    for target in inputs.targets:
        for log_dir in target.log_dirs:
            node_id = inputs.context.node_id_at(log_dir.path)
            nodes.setdefault(node_id, []).append(log_dir.path)
    terms = BootTerms(limits=inputs.terms.limits, read_logs=inputs.survey.read_logs, earlier=inputs.survey.kept_start)
    for node_id, paths in nodes.items():
        for together in [paths] if node_id is not None else [[path] for path in paths]:
            name = f"node {node_id}" if node_id is not None else str(together[0])
            with _answering(inputs, f"the start of {name}"):
                result = boot(together, terms)
                inputs.report.sentences.append(f"Start of {name}: {boot_sentence(result, terms)}")
                inputs.report.table(BOOT_STEP).extend_by(Step.row, result.steps)
                inputs.report.note(result.not_checked)


def answer_replicas(inputs: Inputs, has_replicas: Callable[[], bool]) -> None:
    """Add the differences of replicas; ``has_replicas`` returns whether any partition is here more than once."""
    if not has_replicas():
        inputs.report.note(["differences between replicas: no partition has two replicas here"])
        return
    from format.verbs.diff.diff import PartitionResult, diff  # few reports need these
    from format.verbs.diff.sentence import MissingReplicas
    from format.verbs.diff.sentence import overview as diff_overview
    from format.verbs.diff.sentence import sentence as diff_sentence

    kinds: list[str] = []
    missing = MissingReplicas()
    sentences = 0
    with _answering(inputs, "differences between replicas"):
        terms = inputs.terms
        for item in diff(inputs.targets, context=inputs.context, limits=terms.limits, jobs=terms.jobs):
            if isinstance(item, Finding):
                inputs.report.later_findings.append(item)
            if not isinstance(item, PartitionResult):
                continue
            kinds.append(item.kind)
            missing.take(item)
            inputs.report.note(item.not_checked)
            inputs.report.is_incomplete |= not item.is_complete
            if item.kind == "identical":
                inputs.report.table(DIVERGENCE).total += 1
                continue
            inputs.report.differing.update(each.path for each in item.replicas)
            inputs.report.table(DIVERGENCE).add(item.row())
            inputs.report.table(REPLICA).extend(item.replica_rows())
            if sentences < _MOST_SENTENCES:
                sentences += 1
                inputs.report.sentences.append(diff_sentence(item))
        if kinds:
            inputs.report.sentences.append(diff_overview(kinds))
        inputs.report.note(missing.not_checked())


def answer_retention(inputs: Inputs) -> None:
    """Add what retention deletes next, by topic."""
    times = inputs.survey.header_times()
    terms = RetentionTerms(
        inputs.terms.now_ms, inputs.terms.limits, with_offsets=False, with_rows=False, header_times=times
    )
    judged = Retention(inputs.context, terms)
    with _answering(inputs, "retention"):
        deque(judged.of_logs(inputs.configured_logs(judged.takes)), maxlen=0)
    inputs.report.table(RETENTION_TOTAL).extend(judged.total_rows())
    inputs.report.note(judged.not_checked())
    if judged.totals:
        words = judged.sentence()
        inputs.report.sentences.append(f"Retention: {words[:1].lower()}{words[1:]}")


def answer_compaction(inputs: Inputs) -> None:
    """Add the cleaner's checkpoints and what it waits for; no records are read."""
    known = {
        path: KnownProducers({}, each.first_open_offset, each.log_end_offset)
        for path, each in inputs.survey.partitions.items()
        if each.last_log is not None
    }
    terms = CompactionTerms(
        inputs.terms.now_ms, inputs.terms.limits, reads_records=False, known=known, damaged=inputs.damaged
    )
    judged = Compaction(inputs.context, terms)
    with _answering(inputs, "compaction"):
        found = judged.of_logs(inputs.configured_logs(judged.takes))
        inputs.report.table(CLEANER).extend(each.row() for each in found if isinstance(each, LogCompaction))
    inputs.report.note(judged.not_checked())
    if judged.logs:
        waits = judged.waits()
        words = f"The cleaner is blocked: {waits}." if waits else "Nothing blocks the cleaner."
        inputs.report.sentences.append(judged.stuck_words() + words)
        inputs.report.note(["what the cleaner would free: kafkalog compaction reads the records for it"])


_SHOWN_BYTES = 64
_MOST_SHOWN_PLACES = 200


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
        verification = Verification(
            limits=self.terms.limits,
            coverage=self.coverage,
            jobs=self.terms.jobs,
            advance=self.terms.advance,
            watch=self._survey.see,
            kept_start=self._survey.kept_start,
            compacted_topics=compacted_topics,
        )
        for target in self.targets:
            self._survey.begin(partial(_partition_at, target, self.terms))
            for found in verify(target, verification):
                self._take(found)
                yield found
        self._survey.finish()
        for found in verify_nodes(self.targets, verification):
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

        terms = self.terms
        for bundle in terms.bundles:
            own = [target for target in self.targets if str(target.path).startswith(f"{bundle.path}/")]
            waiting = FindingsInBundle(list(findings_then(bundle, own)), self._survey)
            verification = Verification(
                limits=terms.limits,
                advance=terms.advance,
                watch=waiting.see,
                compacted_topics=compacted_topics,
            )
            self._survey.begin(partial(_partition_of, own, terms))
            for found in findings_now(own, waiting.findings, verification):
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
        listed = list_partition(
            partition.path,
            checkpoints,
            PartitionTerms(scan=False, segments=False, limits=self.terms.limits),
            listed=lambda: partition,
            known=KnownLog(totals, max(ends, default=None)),
        )  # verify reports its findings
        listing = known_by(inputs.context, listed.listing, log_dir)
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
    return log_dir_listing(log_dir, checkpoints, sizes, terms.limits, [])  # verify reports its findings


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
