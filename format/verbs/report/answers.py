"""What the verbs that answer questions add to a report. Each reads little beside the logs: headers, side files, records
of internal topics. What a question lacks to be answered is noted in ``not_checked``.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

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
from format.node.target import Target
from format.rows.record_rows import Row
from format.scan.progress import no_progress
from format.scan.selected_logs import partitions_to_read
from format.state.cluster_context import ClusterContext
from format.value_class import value_class
from format.verbs.boot.boot import boot
from format.verbs.boot.sentence import sentence as boot_sentence
from format.verbs.boot.steps import BootTerms
from format.verbs.compaction.compaction import Compaction, CompactionTerms, LogCompaction
from format.verbs.compaction.producers import KnownProducers
from format.verbs.diff.diff import PartitionResult, diff
from format.verbs.diff.sentence import overview as diff_overview
from format.verbs.diff.sentence import sentence as diff_sentence
from format.verbs.groups.groups import GroupsReading, GroupTerms
from format.verbs.groups.sentence import sentences as group_sentences
from format.verbs.metadata.metadata import MetadataTerms, metadata
from format.verbs.report.survey import Survey, ended_counts
from format.verbs.report.terms import Report, ReportTerms
from format.verbs.report.timeline import Timeline
from format.verbs.retention.retention import Retention, RetentionTerms
from format.verbs.txns.coordinator_records import coordinator_records
from format.verbs.txns.sentences import sentences as transaction_sentences
from format.verbs.txns.terms import TransactionTerms
from format.verbs.txns.transaction_rows import OpenTransaction, ended_rows, open_row, open_transactions

_MOST_CHANGES = 1_000
_MOST_ABORTED = 500
_MOST_SENTENCES = 5


@value_class
class Asked:
    """What all answers are made from, and where they go."""

    report: Report
    targets: Sequence[Target]
    terms: ReportTerms
    context: ClusterContext
    survey: Survey

    @property
    def timeline(self) -> Timeline:
        return self.survey.timeline


@contextmanager
def _answering(asked: Asked, question: str) -> Iterator[None]:
    """The work on one question: what lacks for it is noted, and the others go on."""
    try:
        yield
    except (InputError, KafkaLogError) as error:
        asked.report.note([f"{question}: {error.message}"])


def answer_transactions(asked: Asked) -> None:
    """Open transactions, those that aborted last, and totals by partition."""
    report, result = asked.report, asked.survey.transactions
    terms = TransactionTerms(asked.terms.now_ms, limits=asked.terms.limits)
    with _answering(asked, "transactional ids"):
        _read_coordinators(asked)
    opened = open_transactions(result, terms)
    table = report.table(TRANSACTION)
    for each in opened:
        table.add(open_row(each, terms))
        _note_open(asked, each)
    for row in deque(ended_rows(result, terms, is_aborted=True), maxlen=_MOST_ABORTED):
        table.add(row)
        _note_aborted(asked, dict(zip(TRANSACTION.names, row, strict=True)))
    totals = report.table(TRANSACTION_TOTAL)
    totals.extend(_transaction_totals(asked, opened))
    if totals.total:
        report.sentences += transaction_sentences(result, opened, terms)
    if not result.ids.partitions:
        report.note(["transactional ids, time-outs and what hangs: no __transaction_state is here"])


def _read_coordinators(asked: Asked) -> None:
    ids, limits = asked.survey.transactions.ids, asked.terms.limits
    for target in asked.targets:
        for found in partitions_to_read(target, limits):
            if not isinstance(found, Finding) and found[0].topic == TRANSACTION_STATE_TOPIC:
                if found[0].number is not None:
                    ids.partitions.add(found[0].number)
                for item in coordinator_records(found[0], None, limits, no_progress):
                    if not isinstance(item, Finding):  # verify reports what is wrong
                        item.feed_to(ids)


def _note_open(asked: Asked, each: OpenTransaction) -> None:
    known = each.transaction
    where = Location(str(each.found.partition.path), each.topic, each.partition, offset=known.first_offset)
    name = each.transactional_id or f"producer {known.producer_id}"
    words = f"{name} begins a transaction that {'hangs' if each.is_hanging else 'is open'}"
    severity = Severity.ERROR if each.is_hanging else Severity.WARNING
    asked.timeline.transaction(where, known.start_timestamp, words, severity)


def _note_aborted(asked: Asked, values: dict[str, Any]) -> None:
    where = Location(values["path"], values["topic"], values["partition"], offset=values["first_offset"])
    name = values["transactional_id"] or f"producer {values['producer_id']}"
    asked.timeline.transaction(where, values["last_timestamp"], f"a transaction of {name} is aborted")


def _transaction_totals(asked: Asked, opened: Sequence[OpenTransaction]) -> Iterator[Row]:
    """Rows of columns.TRANSACTION_TOTAL of the partitions with transactions."""
    partitions = asked.survey.transactions.partitions
    for (topic, number), found in sorted(partitions.items(), key=lambda item: (str(item[0][0]), item[0][1] or 0)):
        committed, aborted = ended_counts(found, asked.survey.partitions[found.partition.path])
        mine = [each for each in opened if each.found is found]
        hanging = sum(each.is_hanging is True for each in mine)
        if committed or aborted or mine:
            end = found.log_end_offset
            yield topic, number, len(mine), hanging, committed, aborted, found.last_stable_offset, end


def answer_groups(asked: Asked) -> None:
    """Groups, and their offsets with the largest lag first."""
    report = asked.report
    with _answering(asked, "groups"):
        reading = GroupsReading(asked.targets, GroupTerms(limits=asked.terms.limits))
        for _ in reading.read(jobs=asked.terms.jobs):
            pass  # verify reports what is wrong
        found = reading.groups()
        report.note(reading.not_checked(found))
        if not len(found):
            return
        report.sentences.append(group_sentences(found.overview()))
        lag = GROUP.names.index("total_lag")
        report.table(GROUP).extend(sorted(found.group_rows(), key=lambda row: -(row[lag] or 0)))
        lag, note = GROUP_OFFSET.names.index("lag"), GROUP_OFFSET.names.index("metadata")
        rows = sorted(found.offset_rows(), key=lambda row: -(row[lag] or 0))
        # What a consumer notes with an offset is free text of its application: no name, and so it is left out.
        report.table(GROUP_OFFSET).extend((*row[:note], None, *row[note + 1 :]) for row in rows)


def answer_metadata(asked: Asked) -> None:
    """The cluster's image, and the changes that led to it, the last ones."""
    report = asked.report
    changes: deque[Row] = deque(maxlen=_MOST_CHANGES)
    count = 0

    def take(row: Row) -> None:
        nonlocal count
        count += 1
        changes.append(row)

    with _answering(asked, "topics, configs and changes of the cluster"):
        result = metadata(list(asked.targets), MetadataTerms(history=True, limits=asked.terms.limits), take)
        report.sentences.append(result.sentence())
        report.note(result.not_checked())
        for schema, rows in result.rows():
            if schema in (IMAGE, TOPIC, ASSIGNMENT, BROKER):
                report.table(schema).extend(rows)
        where = Location(str(result.source.partition.path), "__cluster_metadata", 0)
        for row in changes:
            values = dict(zip(METADATA_CHANGE.names, row, strict=True))
            asked.timeline.metadata(
                where.at(offset=values["offset"]), values["timestamp"], f"{values['record_type']}: {values['subject']}"
            )
    table = report.table(METADATA_CHANGE)
    table.extend(changes)
    table.total = count


def answer_boot(asked: Asked) -> None:
    """What a start of each node would do. ``boot`` takes the log directories of one node together."""
    nodes: dict[int | None, list[Path]] = {}
    for target in asked.targets:
        for log_dir in target.log_dirs:
            node_id = asked.context.node_id_at(log_dir.path)
            nodes.setdefault(node_id, []).append(log_dir.path)
    terms = BootTerms(limits=asked.terms.limits, read_logs=asked.survey.read_logs)
    for node_id, paths in nodes.items():
        for together in [paths] if node_id is not None else [[path] for path in paths]:
            name = f"node {node_id}" if node_id is not None else str(together[0])
            with _answering(asked, f"the start of {name}"):
                result = boot(together, terms)
                asked.report.sentences.append(f"Start of {name}: {boot_sentence(result, terms)}")
                asked.report.table(BOOT_STEP).extend(step.row() for step in result.steps)
                asked.report.note(result.not_checked)


def answer_replicas(asked: Asked, keys: Callable[[], bool]) -> None:
    """Where replicas part; ``keys`` says whether any partition is here more than once."""
    if not keys():
        asked.report.note(["replicas against each other: no partition is here twice"])
        return
    kinds: list[str] = []
    sentences = 0
    with _answering(asked, "replicas against each other"):
        for item in diff(asked.targets, limits=asked.terms.limits, jobs=asked.terms.jobs):
            if not isinstance(item, PartitionResult):
                continue
            kinds.append(item.kind)
            asked.report.note(item.not_checked)
            if item.kind == "identical":
                asked.report.table(DIVERGENCE).total += 1
                continue
            asked.report.table(DIVERGENCE).add(item.row())
            asked.report.table(REPLICA).extend(item.replica_rows())
            if sentences < _MOST_SENTENCES:
                sentences += 1
                asked.report.sentences.append(diff_sentence(item))
        if kinds:
            asked.report.sentences.append(diff_overview(kinds))


def answer_retention(asked: Asked) -> None:
    """What retention deletes next, by topic."""
    times = asked.survey.header_times()
    terms = RetentionTerms(asked.terms.now_ms, asked.terms.limits, with_offsets=False, header_times=times)
    judged = Retention(asked.context, terms)
    with _answering(asked, "retention"):
        for target in asked.targets:
            for _ in judged.of_target(target):
                pass
    asked.report.table(RETENTION_TOTAL).extend(judged.total_rows())
    asked.report.note(judged.not_checked())
    if judged.totals:
        words = judged.sentence()
        asked.report.sentences.append(f"Retention: {words[:1].lower()}{words[1:]}")


def answer_compaction(asked: Asked) -> None:
    """Where the cleaner stands and what it waits for; its records are not read."""
    known = {
        path: KnownProducers({}, each.first_open_offset, each.log_end_offset)
        for path, each in asked.survey.partitions.items()
        if each.last_log is not None
    }
    terms = CompactionTerms(asked.terms.now_ms, asked.terms.limits, reads_records=False, known=known)
    judged = Compaction(asked.context, terms)
    with _answering(asked, "compaction"):
        for target in asked.targets:
            asked.report.table(CLEANER).extend(
                each.row() for each in judged.of_target(target) if isinstance(each, LogCompaction)
            )
    asked.report.note(judged.not_checked())
    if judged.logs:
        waits = ", ".join(f"{count:,} for {reason}" for reason, count in sorted(judged.blocked.items()))
        asked.report.sentences.append(f"The cleaner waits: {waits}." if waits else "Nothing keeps the cleaner waiting.")
        asked.report.note(["what the cleaner would free: kafkalog compaction reads the records for it"])
