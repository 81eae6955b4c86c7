"""kafkalog quorum: the metadata quorum by the logs of its nodes: who can lead, what a majority has, what is lost."""

from __future__ import annotations

from kafkalog_cli.options.output import DocumentOutput, EveryRow, Judging
from kafkalog_cli.options.reading import Reading
from kafkalog_cli.options.work import Guards, Pacing
from kafkalog_cli.render.table import ShownColumns

EXAMPLES = (
    ("kafkalog quorum node-1 node-2", "what two of three controllers can do without the third"),
    ("kafkalog quorum node-*", "with the copies of brokers, and the changes that only their disks show"),
    ("kafkalog quorum /var/kafka/__cluster_metadata-0", "one metadata log: the voters, and what is known as committed"),
)

#: The most lost changes that are listed where people read them.
_MOST_CHANGES = 6
_COLUMNS = {
    "quorum_log": ShownColumns(
        (
            "node_id", "is_voter", "can_lead", "last_epoch", "log_end_offset", "shared_end_offset",
            "snapshot_end_offset", "voted_for", "dropped_from",
        ),
        first_to_go=("voted_for", "snapshot_end_offset"),
        deciding=("is_voter", "can_lead", "dropped_from"),
        on_request=("refusal", "directory_id", "roles"),
    ),
    "quorum_voter": ShownColumns(("node_id", "directory_id", "endpoints", "is_here"), deciding=("is_here",)),
    "lost_change": ShownColumns(
        ("kind", "topic", "partition", "epoch_on_disk", "epoch_in_metadata", "certainty", "node_id", "path"),
        first_to_go=("path", "node_id"),
    ),
}  # fmt: skip


def quorum(
    reading: Reading,
    output: DocumentOutput,
    judging: Judging,
    guards: Guards,
    pacing: Pacing,
    every_row: EveryRow = False,
) -> None:
    """Show the metadata quorum by the logs of any controllers and brokers: voters, ends, votes, who can lead.

    Each __cluster_metadata-0 at or below the paths is read with its CRCs. Records that only a minority has may never
    have been committed. Brokers' disks prove changes that the metadata lacks, by later leader epochs. The exit status
    is 1 if a majority cannot start or a change is lost, and 3 if a voter is not at the paths.
    """
    from format.columns import LOST_CHANGE, QUORUM, QUORUM_LOG
    from format.verbs.quorum import furthest_of_each
    from format.verbs.quorum import quorum as quorum_at
    from format.wording import counted
    from kafkalog_cli.exit_codes import Condition
    from kafkalog_cli.runner import Run

    with Run("quorum", output, judging, paths=reading.paths, main_schema=QUORUM_LOG, columns=_COLUMNS) as run:
        run.hold()
        result = quorum_at(run.readable(reading.targets()), guards.limits)
        listed = {each.row for each in furthest_of_each(result.lost.changes)[:_MOST_CHANGES]}
        for schema, rows in result.rows():
            if schema is QUORUM:
                run.write(schema, rows, only=lambda row: False)
            elif schema is LOST_CHANGE:
                run.write(schema, rows, only=lambda row: every_row or row in listed)
            else:
                run.write(schema, rows)
        left = len(result.lost.changes) - len(listed)
        if left > 0 and not every_row:
            run.say_at_end(f"Not listed: {counted(left, 'lost change')} (--every-row lists them).")
        run.findings(result.findings())
        run.conclude(*result.sentences())
        for words in result.not_checked():
            run.not_checked(words)
        if result.quorum.absent or result.quorum.voters is None:
            run.condition(Condition.INCOMPLETE)
