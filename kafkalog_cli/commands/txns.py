"""kafkalog txns: open transactions, the records that wait behind them, and the transactions that ended."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import msgspec

from format.columns import TRANSACTION, TRANSACTION_TOTAL
from format.findings import Finding
from format.limits import Limits
from format.node.target import targets_at
from kafkalog_cli.options.groups import option
from kafkalog_cli.options.output import DocumentOutput, EveryRow, Judging
from kafkalog_cli.options.parsers import parse_count
from kafkalog_cli.options.reading import Following, Paths, Writers, say_absent_topics, unknown_id_words
from kafkalog_cli.options.work import Guards, Work
from kafkalog_cli.render.table import ShownColumns, TableColumns
from kafkalog_cli.runner import Run

if TYPE_CHECKING:
    from format.verbs.txns.txns import Row, TransactionTerms

EXAMPLES = (
    ("kafkalog txns /var/kafka", "who holds which last stable offset, and every transaction"),
    ("kafkalog txns --open /var/kafka/payments-0 /var/kafka/__transaction_state-*", "the open ones of one partition"),
    ("kafkalog txns --fail-on hanging --format jsonl node-1 node-2", "exit status 1 if a transaction hangs"),
    ("kafkalog txns --follow /var/kafka", "what is open now, and each transaction as it ends"),
    ("kafkalog txns --transactional-id billing-3 --at 2026-11-08T08:43 /var/kafka", "what a client did up to a time"),
)

_COLUMNS: TableColumns = {
    "transaction": ShownColumns(
        (
            "topic", "partition", "producer_id", "producer_epoch", "transactional_id", "state", "first_offset",
            "last_offset", "record_count", "start_timestamp", "is_hanging", "coordinator_state", "waiting_record_count",
            "abort_command",
        ),
        first_to_go=(
            "abort_command", "waiting_record_count", "coordinator_state", "producer_epoch", "start_timestamp",
            "last_offset", "record_count",
        ),
        deciding=("is_hanging",),
    ),
    "transaction_total": ("topic", "partition", "committed_count", "aborted_count", "open_count", "last_stable_offset"),
}  # fmt: skip
_MINUTE_MS = 60_000
_COMMITTED, _ABORTED = 4, 5  # in a row of columns.TRANSACTION_TOTAL


class WantedTransactions(msgspec.Struct, frozen=True):
    """Which transactions are shown."""

    open: Annotated[bool, option("Only open transactions.")] = False
    hanging: Annotated[bool, option("Only open transactions that no coordinator will end.")] = False
    every_row: EveryRow = False
    writers: Writers = msgspec.field(default_factory=Writers)
    following: Following = msgspec.field(default_factory=Following)

    @property
    def is_narrow(self) -> bool:
        """Whether it chooses some transactions, which are then shown one by one."""
        writers = self.writers
        return self.open or self.hanging or not (writers.producer_id is None and writers.transactional_id is None)


class Aborting(msgspec.Struct, frozen=True):
    """The limit for hanging transactions, and the form of the commands that abort them."""

    max_timeout: Annotated[
        int,
        option(
            "A transaction may hang if its producer was silent for longer than this: the broker's "
            "transaction.max.timeout.ms. With 0, every open transaction that no coordinator has under way.",
            metavar="MINUTES",
            parser=parse_count,
        ),
    ] = 15
    bootstrap_server: Annotated[str, option("The broker in the commands that abort.", metavar="HOST:PORT")] = (
        "localhost:9092"
    )
    before_3_0: Annotated[bool, option("Write the commands for brokers before 3.0.", "--before-3.0")] = False


def txns(
    paths: Paths,
    wanted: WantedTransactions,
    aborting: Aborting,
    output: DocumentOutput,
    judging: Judging,
    guards: Guards,
    work: Work,
) -> None:
    """Show which transactions hold the last stable offset, since when, and how to abort them; and those that ended.

    Batch headers and control batches are read, and the records of __transaction_state if it is at the paths, for
    transactional ids, timeouts and hanging transactions. Of several replicas of a partition, the one with the newest
    leader epoch is shown, and of these the longest. Open transactions come first, the oldest first. In tables and text,
    those that ended are counted by partition, unless --producer-id or --transactional-id chooses some.
    """
    from format.verbs.txns import txns as verb
    from kafkalog_cli.following import followed

    wanted.following.check(
        {
            "--at": wanted.writers.as_of.at,
            "--hanging": wanted.hanging,
            "--output": output.output_file,
            "--jobs": work.sharing.jobs,
        }
    )
    terms = _terms(wanted, aborting, guards.limits)
    with Run("txns", output, judging, paths=paths, main_schema=TRANSACTION, columns=_COLUMNS) as run:
        targets = run.readable(targets_at(map(work.session.path, paths)))
        if wanted.following.follow:
            items: Iterator[Row | Finding] = followed(
                run, targets, lambda following: verb.follow_transactions(targets, terms, following)
            )
            for row in run.results(items):
                run.write(TRANSACTION, (row,))
            return
        advance = run.progress_of_logs(targets)
        run.hold()
        result = verb.Transactions(tuple(targets))
        run.findings(result.read(terms, jobs=work.process_count, advance=advance))
        opened = verb.open_transactions(result, terms)
        say_absent_topics(run, result, terms.topics)
        unknown = unknown_id_words(run, result, terms.transactional_id, guards.limits)
        if unknown is not None:
            run.conclude(unknown, wanted.writers.as_of.words)
        elif result.partitions or not terms.topics:
            run.conclude(*verb.sentences(result, opened, terms), wanted.writers.as_of.words)
        if run.is_readable:
            opened.sort(key=lambda each: not each.is_hanging)
        run.write(TRANSACTION, (verb.open_row(each, terms) for each in opened))
        if run.is_readable and not (wanted.every_row or wanted.is_narrow):
            totals = list(verb.ended_totals(result, opened))
            run.count(TRANSACTION.type, sum(row[_COMMITTED] + row[_ABORTED] for row in totals))
            run.write(TRANSACTION_TOTAL, totals)
        else:
            for is_aborted in (True, False):
                run.write(TRANSACTION, verb.ended_rows(result, terms, is_aborted=is_aborted))
        run.count("open_transactions", len(opened))
        for number, found in enumerate(verb.hanging_findings(opened, terms)):
            if run.is_readable and number < verb.MOST_SAID:
                run.judge(found)  # a sentence has said it
            else:
                run.finding(found)
        run.not_checked(*result.not_checked(opened))


def _terms(wanted: WantedTransactions, aborting: Aborting, limits: Limits) -> TransactionTerms:
    from format.verbs.txns.txns import TransactionTerms

    return TransactionTerms(
        now_ms=time.time_ns() // 1_000_000,
        at_ms=wanted.writers.as_of.at,
        only_open=wanted.open,
        only_hanging=wanted.hanging,
        producer_id=wanted.writers.producer_id,
        transactional_id=wanted.writers.transactional_id,
        topics=wanted.writers.topics,
        max_timeout_ms=aborting.max_timeout * _MINUTE_MS,
        bootstrap_server=aborting.bootstrap_server,
        before_3_0=aborting.before_3_0,
        limits=limits,
    )
