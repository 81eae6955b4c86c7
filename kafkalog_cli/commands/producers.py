"""kafkalog producers: the producers that wrote to each partition, and how they wrote."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from format.columns import PRODUCER, REPEATED_RECORDS
from format.layout import NO_PRODUCER_ID
from format.node.target import Target, targets_at
from format.scan.progress import Advance
from kafkalog_cli.exit_codes import Condition
from kafkalog_cli.options.groups import option
from kafkalog_cli.options.output import DocumentOutput, Judging
from kafkalog_cli.options.parsers import parse_duration
from kafkalog_cli.options.reading import AsOf, Paths, Writers, parse_place, say_absent_topics, unknown_id_words
from kafkalog_cli.options.work import Guards, Work
from kafkalog_cli.render.table import ShownColumns
from kafkalog_cli.runner import Run

if TYPE_CHECKING:
    from format.verbs.producers import ProducerTerms, RecordPlace

EXAMPLES = (
    ("kafkalog producers /var/kafka/orders-0", "who wrote to a partition, with which batches and codecs"),
    ("kafkalog producers --producer-id 1004 /var/kafka", "all partitions that one producer wrote to"),
    ("kafkalog producers --record orders-0:4711 /var/kafka", "the same for the producer that wrote one record"),
    ("kafkalog producers --duplicates --within 1m /var/kafka", "records that were written twice, and by whom"),
    (
        "kafkalog producers --transactional-id billing-3 /backup/node-1 /backup/node-2",
        "the same for a transactional id",
    ),
)

_COLUMNS = {
    "producer": ShownColumns(
        (
            "topic", "partition", "producer_id", "transactional_id", "first_offset", "last_offset", "record_count",
            "gap_count", "duplicate_count", "epochs", "codecs", "batch_count", "mean_batch_bytes",
            "first_timestamp", "last_timestamp", "first_sequence", "last_sequence",
        ),
        deciding=("producer_id", "transactional_id", "gap_count", "duplicate_count"),
    ),
    "repeated_records": ShownColumns(
        (
            "topic", "partition", "kind", "record_count", "earlier_first_offset", "first_offset",
            "earlier_producer_id", "producer_id", "time_apart_ms", "first_timestamp", "transactional_id", "command",
        ),
        deciding=("kind", "earlier_producer_id", "producer_id"),
        first_to_go=("command", "transactional_id", "first_timestamp", "time_apart_ms"),
    ),
}  # fmt: skip


#: Longer than a client tries to send a record by default (delivery.timeout.ms, 2 minutes), and a restart takes.
_WITHIN_MS = 5 * 60_000


class Asked(msgspec.Struct, frozen=True):
    """The record whose producer is shown; whether repeated records are shown instead, and how close they are."""

    record: Annotated[
        Any,
        option(
            "Only the producer that wrote this record, with everything that it wrote at the paths.",
            metavar="TOPIC-P:OFFSET",
            parser=parse_place,
            show_default=False,
        ),
    ] = None
    duplicates: Annotated[
        bool, option("Show the records that repeat the key and value of one shortly before them, and who wrote both.")
    ] = False
    within: Annotated[
        int | None,
        option(
            "With --duplicates: the most time between both.",
            metavar="DURATION",
            parser=parse_duration,
            show_default="5m",
        ),
    ] = None


def producers(
    paths: Paths, asked: Asked, wanted: Writers, output: DocumentOutput, judging: Judging, guards: Guards, work: Work
) -> None:
    """Show who wrote to each partition: producers with their epochs, sequences, gaps, duplicates, batches and codecs.

    Only batch headers are read, and for transactional ids the records of __transaction_state, at the paths or beside
    a partition.
    Of several replicas of a partition, the one with the newest leader epoch is shown, and of these the longest. In a
    compacted partition, gaps in the sequences are normal. With --duplicates the records are read.
    """
    from format.verbs import producers as verb

    if asked.record is not None and wanted.producer_id is not None:
        raise typer.BadParameter("--record and --producer-id exclude each other")
    if asked.within is not None and not asked.duplicates:
        raise typer.BadParameter("--within is for --duplicates")
    schema = REPEATED_RECORDS if asked.duplicates else PRODUCER
    with Run("producers", output, judging, paths=paths, main_schema=schema, columns=_COLUMNS) as run:
        targets = run.readable(targets_at(map(work.session.path, paths)))
        run.hold()
        producer_id = wanted.producer_id
        if asked.record is not None:
            producer_id = verb.producer_of(targets, asked.record, guards.limits)
        terms = verb.ProducerTerms(
            at_ms=wanted.as_of.at,
            producer_id=producer_id,
            transactional_id=wanted.transactional_id,
            topics=wanted.topics,
            limits=guards.limits,
        )
        advance = run.progress_of_logs(targets)
        if asked.duplicates:
            within_ms = _WITHIN_MS if asked.within is None else asked.within
            _show_repeats(run, targets, terms, within_ms, work.process_count, advance)
            return
        result = verb.Producers(tuple(targets))
        run.findings(result.read(terms, jobs=work.process_count, advance=advance))
        rows = list(verb.producer_rows(result, terms))
        say_absent_topics(run, result, terms.topics)
        unknown = unknown_id_words(run, result, terms.transactional_id, guards.limits)
        if unknown is not None:
            run.conclude(unknown, wanted.as_of.words)
        else:
            if terms.who and not rows:
                run.condition(Condition.NOTHING_FOUND)
            wrote = "" if asked.record is None or producer_id is None else _wrote_words(asked.record, producer_id, rows)
            run.conclude(wrote, verb.producer_sentence(rows, len(result.partitions), terms.who), wanted.as_of.words)
        if run.is_readable:
            rows.sort(key=lambda row: (not verb.has_broken_sequences(row), row[0] == NO_PRODUCER_ID))
        run.write(PRODUCER, rows, only=run.few(PRODUCER, lambda row: row[0] != NO_PRODUCER_ID))
        run.say_at_end(verb.next_command(rows, terms, paths))
        if not result.ids.partitions:
            run.not_checked("transactional ids: no __transaction_state was read")
        if result.skipped:
            run.not_checked(f"{result.skipped} directories marked delete, future or stray")


def _show_repeats(
    run: Run, targets: list[Target], terms: ProducerTerms, within_ms: int, jobs: int, advance: Advance
) -> None:
    """The repeated records of all partitions, and a sentence for each that has some."""
    from format.verbs.repeated_records import RepeatedRecords, repeat_sentences, repeated_rows

    result = RepeatedRecords(tuple(targets))
    run.findings(result.read(terms, within_ms, jobs=jobs, advance=advance))
    say_absent_topics(run, result, terms.topics)
    unknown = unknown_id_words(run, result, terms.transactional_id, terms.limits)
    sentences = [unknown] if unknown else repeat_sentences(result, terms, f"{within_ms / 1000:g} s")
    run.conclude(*sentences, AsOf(terms.at_ms).words)
    run.write(REPEATED_RECORDS, repeated_rows(result, terms))
    run.not_checked(*result.not_checked())


def _wrote_words(place: RecordPlace, producer_id: int, rows: list[tuple[Any, ...]]) -> str:
    """Which producer wrote a record, with its transactional id where one of its rows has it."""
    if producer_id == NO_PRODUCER_ID:
        return (
            f"{place} was written without a producer id, as were all batches below: which client it was is not known."
        )
    at = PRODUCER.names.index("transactional_id")
    known = next((f" (transactional id {row[at]})" for row in rows if row[at]), "")
    return f"{place} was written by producer {producer_id}{known}."
