"""Adds the answers of other verbs to a report.

Each reads little beside the logs: headers, side files, and records of internal topics. Questions that cannot be
answered are noted in ``not_checked``.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from format.columns import (
    ASSIGNMENT,
    BOOT_STEP,
    BROKER,
    CLEANER,
    DIVERGENCE,
    GROUP,
    GROUP_OFFSET,
    IMAGE,
    METADATA_CHANGE,
    REPLICA,
    RETENTION_TOTAL,
    TOPIC,
    TRANSACTION,
    TRANSACTION_TOTAL,
)
from format.errors import InputError, KafkaLogError
from format.findings import Finding, Severity
from format.layout import TRANSACTION_STATE_TOPIC
from format.location import Location
from format.node.partition import Partition
from format.node.target import Target
from format.rows.record_rows import Row
from format.scan.progress import no_progress
from format.scan.selected_logs import partitions_to_read
from format.state.cluster_context import ClusterContext
from format.state.topic_configs import TopicConfigs
from format.verbs.boot.boot import boot
from format.verbs.boot.sentence import sentence as boot_sentence
from format.verbs.boot.steps import BootTerms, Step
from format.verbs.compaction.compaction import Compaction, CompactionTerms, LogCompaction
from format.verbs.compaction.producers import KnownProducers
from format.verbs.groups.groups import GroupsReading, GroupTerms
from format.verbs.groups.sentence import sentences as group_sentences
from format.verbs.report.metadata_reading import MetadataReading
from format.verbs.report.survey import Survey, ended_counts
from format.verbs.report.terms import Report, ReportTerms
from format.verbs.report.timeline import Timeline
from format.verbs.retention import ConfiguredLog, Retention, RetentionTerms, configured_logs
from format.verbs.txns.coordinator_records import coordinator_records
from format.verbs.txns.sentences import sentences as transaction_sentences
from format.verbs.txns.terms import TransactionTerms
from format.verbs.txns.transaction_rows import OpenTransaction, ended_rows, open_row, open_transactions
from format.wording import counted

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
    from format.verbs.diff.diff import MissingReplicas, PartitionResult, diff  # few reports need these
    from format.verbs.diff.diff import overview as diff_overview
    from format.verbs.diff.diff import sentence as diff_sentence

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
