"""kafkalog producers: who wrote to partitions, and how."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafkalog_cli.options.as_of import Writers
from kafkalog_cli.options.guards import Guards
from kafkalog_cli.options.judging import Judging
from kafkalog_cli.options.output import DocumentOutput
from kafkalog_cli.options.reading import Paths, place_of
from kafkalog_cli.options.work import Work
from kafkalog_cli.render.shown_columns import ShownColumns
from kafkalog_cli.runner import Run
from kafkalog_cli.summary import counted

if TYPE_CHECKING:
    pass

EXAMPLES = (
    ("kafkalog producers /var/kafka/orders-0", "who wrote to a partition, with which batches and codecs"),
    ("kafkalog producers --producer-id 1004 /var/kafka", "all partitions that one producer wrote to"),
    ("kafkalog producers --transactional-id billing-3 /backup/node-1 /backup/node-2", "the same of a transactional id"),
)

_TABLE_COLUMNS = {
    "producer": ShownColumns(
        (
            "topic", "partition", "producer_id", "transactional_id", "epochs", "first_offset", "last_offset",
            "batch_count", "record_count", "mean_batch_bytes", "codecs", "gap_count", "duplicate_count",
            "first_timestamp", "last_timestamp", "first_sequence", "last_sequence",
        ),
        first_to_go=(
            "first_sequence", "last_sequence", "first_timestamp", "last_timestamp", "record_count", "duplicate_count"
        ),
    )
}  # fmt: skip


def producers(
    paths: Paths, wanted: Writers, output: DocumentOutput, judging: Judging, guards: Guards, work: Work
) -> None:
    """Who wrote here: producers with their epochs, sequences, gaps, duplicates, batches and codecs.

    Only batch headers are read, and __transaction_state where it is given, for transactional ids. Of several replicas
    of a partition the one that is furthest counts. A compacted partition has gaps in its sequences that nobody wrote.
    """
    from format.columns import PRODUCER
    from format.node.target import Target
    from format.scan.selected_logs import selected_bytes
    from format.scan.selection import EVERYTHING
    from format.verbs.producers.producers import Producers, ProducerTerms, producer_rows

    terms = ProducerTerms(
        at_ms=wanted.as_of.at,
        producer_id=wanted.producer_id,
        transactional_id=wanted.transactional_id,
        topics=wanted.topics,
        limits=guards.limits,
    )
    with (
        work.reading(),
        Run("producers", output, judging, paths=paths, main_schema=PRODUCER, table_columns=_TABLE_COLUMNS) as run,
    ):
        targets = [Target(place_of(path)) for path in paths]
        advance = run.progress(lambda: selected_bytes(targets, EVERYTHING)).advance
        result = Producers(tuple(targets))
        run.findings(result.read(terms, jobs=work.process_count, advance=advance))
        rows = list(producer_rows(result, terms))
        ids = {row[0] for row in rows}
        places = {(row[2], row[3]) for row in rows}
        run.say_now(
            f"{counted(len(ids), 'producer')} wrote {counted(sum(row[11] for row in rows), 'batch')} to "
            f"{len(places):,} of {counted(len(result.partitions), 'partition')}."
        )
        run.write(PRODUCER, rows)
        if not result.ids.partitions:
            run.not_checked("transactional ids: no __transaction_state was given")
        if result.skipped:
            run.not_checked(f"{result.skipped} directories marked delete, future or stray")
