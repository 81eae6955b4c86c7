"""kafkalog diff: where replicas of a partition differ, which one is right, and what each election would lose."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from format.columns import DIVERGENCE, REPLICA
from format.node.target import targets_at
from format.wording import counted
from kafkalog_cli.exit_codes import Condition
from kafkalog_cli.options.output import DocumentOutput, EveryRow, Judging
from kafkalog_cli.options.reading import ClusterMetadata, Paths
from kafkalog_cli.options.work import Guards, Work
from kafkalog_cli.render.table import ShownColumns
from kafkalog_cli.runner import Run

if TYPE_CHECKING:
    from format.verbs.diff.diff import PartitionResult
    from format.verbs.diff.replica_log import Matching

EXAMPLES = (
    ("kafkalog diff node-1/orders-0 node-2/orders-0", "two replicas of one partition"),
    ("kafkalog diff node-1 node-2 node-3", "all partitions that are in more than one of these log directories"),
    ("kafkalog diff backup/", "the same for all log directories below a directory"),
    (
        'kafkalog diff --format jsonl node-1 node-2 | jq -c \'select(.type == "divergence" and .kind == "diverged")\'',
        "only partitions that Kafka would truncate, or that it would leave different",
    ),
)

_COLUMNS = {
    "divergence": ShownColumns(
        (
            "topic", "partition", "kind", "offset", "node_ids", "elect_node_id", "lost_if_elected", "log_end_offset",
            "leader_epoch", "missing_node_ids", "damaged",
        ),
        first_to_go=("leader_epoch", "log_end_offset"),
        deciding=("damaged", "missing_node_ids"),
    ),
    "replica": ShownColumns(
        (
            "node_id", "path", "kind", "offset", "log_end_offset", "high_watermark", "leader_epoch", "truncate_to",
            "damaged",
        ),
        first_to_go=("truncate_to", "leader_epoch", "path"),
        deciding=("kind", "damaged"),
    ),
}  # fmt: skip


def diff(
    paths: Paths,
    metadata_log: ClusterMetadata,
    output: DocumentOutput,
    judging: Judging,
    guards: Guards,
    work: Work,
    every_row: EveryRow = False,
) -> None:
    """Compare replicas: where they differ, which one is right, what each election would lose.

    Replicas are compared by leader epoch, batch and content, and every CRC is computed. A replica that was recompressed
    or compacted is not reported as one that lost records. Partitions of log directories are matched by topic, number
    and topic id. Nothing is written. The exit status is 1 where a difference was found;
    with --fail-on diverged, only where replicas diverge.
    """
    from format.state.cluster_context import read_context
    from format.verbs.diff.diff import PartitionResult
    from format.verbs.diff.diff import diff as diff_of

    with Run("diff", output, judging, paths=paths, main_schema=DIVERGENCE, columns=_COLUMNS) as run:
        run.hold()
        targets = run.readable(targets_at(map(work.session.path, paths)), once=False)
        shown = _Shown(
            run,
            shows_partitions=output.chosen_columns is not None,
            shows_replicas=every_row,
            only_diverged=judging.is_on("diverged"),
        )
        progress = run.progress(lambda: shown.total_bytes)
        context = read_context(targets, metadata_log.terms(guards.limits))
        found: Iterator[PartitionResult | Matching] = run.results(
            diff_of(targets, context=context, limits=guards.limits, jobs=work.process_count, advance=progress.advance)
        )
        for item in found:
            if isinstance(item, PartitionResult):
                shown.take(item)
            else:
                shown.begin(item)
        shown.finish()
        if work.session.bundles:
            run.not_checked(
                "records: batches in a bundle are the same where headers and CRCs are; verify checked the CRCs then"
            )


class _Shown:
    """The output of diff: the conclusions first, where people read it, and then the replicas of what differs.

    Where several partitions differ, their replicas are only counted, unless all are asked for.
    """

    def __init__(self, run: Run, *, shows_partitions: bool, shows_replicas: bool, only_diverged: bool) -> None:
        """``only_diverged``: no other difference fails the run."""
        from format.verbs.diff.diff import LeftOut

        self._run = run
        self._shows_partitions, self._only_diverged = shows_partitions, only_diverged
        self._shows_replicas = shows_replicas
        self._kinds: list[str] = []
        self._odd: list[PartitionResult] = []
        self._with_other_starts: list[PartitionResult] = []
        self._unread_count = 0  # of replicas that are the same as far as they can be read
        self._left_out = LeftOut()
        self.total_bytes = 0

    def begin(self, matching: Matching) -> None:
        """Note the size of the replicas to compare, and the partitions that have only one replica."""
        self.total_bytes = sum(each.size_bytes for each in matching.groups)
        self._run.not_checked(*matching.not_checked())
        if not matching.groups:
            self._run.condition(Condition.INCOMPLETE)

    def take(self, result: PartitionResult) -> None:
        from format.verbs.diff.diff import has_other_starts

        run = self._run
        self._kinds.append(result.kind)
        self._left_out.take(result)
        differs = result.kind != "identical"
        self._unread_count += not differs and not result.is_read
        if differs or any(each.damaged for each in result.replicas):
            self._odd.append(result)
        elif has_other_starts(result):
            self._with_other_starts.append(result)
        run.write(DIVERGENCE, (result.row(),), only=lambda row: self._shows_partitions and differs)
        run.count(REPLICA.type, 0)
        if not (run.is_readable and differs):  # else they follow the conclusions
            run.write(REPLICA, result.replica_rows(), only=lambda row: False)
        run.count(result.kind)
        run.findings(result.findings)
        run.not_checked(*result.not_checked)
        if differs and not self._only_diverged:
            run.condition(Condition.DIFFERENCE_FOUND)
        if not result.is_complete:
            run.condition(Condition.INCOMPLETE)

    def finish(self) -> None:
        from format.verbs.diff.diff import MOST_SENTENCES, NOTHING_TO_COMPARE, gravity, overview, sentence

        run, kinds = self._run, self._kinds
        self._odd.sort(key=gravity)
        if len(kinds) == 1:
            self._odd += self._with_other_starts  # its sentence says it
        is_counted = len(kinds) > 1 or (kinds and not self._odd)
        counts = overview(kinds, len(self._with_other_starts), self._unread_count)
        run.conclude(
            counts if is_counted else "" if kinds else NOTHING_TO_COMPARE, *map(sentence, self._odd[:MOST_SENTENCES])
        )
        more = len(self._odd) - MOST_SENTENCES
        if more > 0:
            run.conclude(f"{counted(more, 'other partition')} with differences (--columns all lists them).")
        if run.is_readable and len(self._odd) > 1 and not self._shows_replicas:
            run.count(REPLICA.type, sum(len(each.replicas) for each in self._odd if each.kind != "identical"))
            run.conclude(
                f"Not listed: the replicas of {counted(len(self._odd), 'partition')} (--every-row lists them)."
            )
        elif run.is_readable:
            self._write_replicas()
        run.not_checked(*self._left_out.not_checked())

    def _write_replicas(self) -> None:
        from format.verbs.diff.diff import evidence

        run = self._run
        for result in self._odd:
            words = evidence(result)
            run.conclude(words and f"\n{words}")
            if result.kind != "identical":
                run.write(REPLICA, result.replica_rows())
