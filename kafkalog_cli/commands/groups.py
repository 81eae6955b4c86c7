"""kafkalog groups: committed offsets, lag and members of groups."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import msgspec

from format.columns import GROUP, GROUP_COMMIT, GROUP_OFFSET
from format.node.target import targets_at
from format.wording import counted
from kafkalog_cli.exit_codes import Condition
from kafkalog_cli.options.groups import option
from kafkalog_cli.options.output import DocumentOutput, EveryRow, Judging
from kafkalog_cli.options.reading import AsOf, Paths
from kafkalog_cli.options.work import Guards, Work
from kafkalog_cli.output import open_output
from kafkalog_cli.render.table import ShownColumns, TableColumns
from kafkalog_cli.runner import Run

if TYPE_CHECKING:
    from format.verbs.groups.group_list import GroupList, GroupSelection
    from format.verbs.groups.groups import GroupsReading

EXAMPLES = (
    ("kafkalog groups /var/kafka", "every group: members, state, committed offsets, lag"),
    ("kafkalog groups --group billing /disk1/kafka /disk2/kafka", "one group, over all log directories of a node"),
    ("kafkalog groups --at 2026-11-08T08:43 /var/kafka", "the state of the groups at that time"),
    ("kafkalog groups --history --group billing --topic orders /var/kafka", "each commit, aborted ones too"),
    ("kafkalog groups --format csv --output groups.csv nodes/", "the offsets of all groups, over several nodes"),
    (
        "kafkalog groups --group billing --reset-csv reset.csv /var/kafka",
        "what kafka-consumer-groups --reset-offsets --from-file takes",
    ),
)

_COLUMNS: TableColumns = {
    "group": ShownColumns(
        (
            "group", "protocol", "state", "member_count", "committed_partitions", "total_lag",
            "last_commit_timestamp", "commits_per_hour", "record_count", "size_bytes", "coordinator_partition",
        ),
        first_to_go=("coordinator_partition", "record_count", "commits_per_hour", "size_bytes", "committed_partitions"),
        deciding=("total_lag",),
    ),
    "group_offset": ShownColumns(
        (
            "group", "topic", "partition", "offset", "log_end_offset", "lag", "out_of_range", "commit_timestamp",
            "pending_offset", "record_offset", "metadata",
        ),
        first_to_go=("metadata", "record_offset", "pending_offset", "log_end_offset"),
        deciding=("out_of_range", "lag"),
    ),
    "group_commit": (
        "group", "topic", "partition", "offset", "commit_timestamp", "outcome", "producer_id", "record_offset",
    ),
}  # fmt: skip


class ListedGroups(msgspec.Struct, frozen=True):
    """Which groups and topics are listed: their last offsets or every commit, and a CSV file to reset them."""

    group: Annotated[
        list[str] | None, option("Only this group; may be repeated.", metavar="GROUP", show_default="all")
    ] = None
    topic: Annotated[
        list[str] | None, option("Only offsets of this topic; may be repeated.", metavar="TOPIC", show_default="all")
    ] = None
    history: Annotated[bool, option("Show every commit in the log, not only the last offsets.")] = False
    every_row: EveryRow = False
    reset_csv: Annotated[
        str | None,
        option(
            "Also write the committed offsets to a new file, for kafka-consumer-groups --reset-offsets --from-file.",
            metavar="FILE",
        ),
    ] = None

    @property
    def narrowing(self) -> GroupSelection:
        from format.verbs.groups.group_list import GroupSelection

        return GroupSelection(frozenset(self.group or ()), frozenset(self.topic or ()))


def groups(
    paths: Paths,
    listed: ListedGroups,
    as_of: AsOf,
    output: DocumentOutput,
    judging: Judging,
    guards: Guards,
    work: Work,
) -> None:
    """Show the committed offsets, the lag and the members of each group.

    Groups of all protocols (classic, consumer, share, streams) are read from __consumer_offsets and
    __share_group_state. Of a partition that several nodes hold, the replica with the highest log end offset is read.
    The lag is known where the log of the partition is at the paths too. The exit status is 1 if there is no such group,
    and 3 if the partition of __consumer_offsets that would hold it is not at the paths.
    """
    from format.verbs.groups.answers import next_command
    from format.verbs.groups.group_list import GroupTerms
    from format.verbs.groups.groups import CommitHistory, GroupsReading, LogRecords

    terms = GroupTerms(listed.narrowing, as_of.at, listed.history, guards.limits)
    schema = GROUP_COMMIT if listed.history else GROUP_OFFSET
    with Run("groups", output, judging, paths=paths, main_schema=schema, columns=_COLUMNS) as run:
        reading = GroupsReading(run.readable(targets_at(map(work.session.path, paths))), terms)
        progress = run.progress(lambda: reading.size_bytes)
        history = CommitHistory(terms.narrowing)
        if not listed.history:
            run.hold()
        for item in reading.read(jobs=work.process_count, advance=progress.advance):
            if not isinstance(item, LogRecords):
                run.finding(item)
            elif listed.history:
                run.write(GROUP_COMMIT, history.rows_of(item))
        if listed.history:
            run.write(GROUP_COMMIT, history.rest())
        found = reading.groups()
        run.findings(reading.replicas.unread_ends)
        _show(run, reading, found, listed, as_of)
        run.not_checked(*reading.not_checked(found))
        if listed.reset_csv is not None:
            _write_reset_csv(run, found, listed.reset_csv, paths)
        if found.dead_count:
            run.say_at_end(next_command(found, paths))


def _show(run: Run, reading: GroupsReading, found: GroupList, listed: ListedGroups, as_of: AsOf) -> None:
    from format.verbs.groups.answers import unread_words
    from format.verbs.groups.group_list import group_gravity, is_up_to_date, offset_gravity

    if len(found):
        unread = reading.unread_count
        more = f" There may be later commits: {unread_words(unread)}." if unread else ""
        run.conclude(f"{found.sentences()}{more}", as_of.words)
    else:
        run.conclude(_nothing_found(run, reading, found, listed.narrowing), as_of.words)
    if not run.is_readable:
        run.write(GROUP, found.group_rows())
        run.write(GROUP_OFFSET, found.offset_rows() if not listed.history else ())
        return
    run.write(GROUP, sorted(found.group_rows(), key=group_gravity))
    if listed.history:
        return
    is_whole = listed.every_row or listed.group or listed.topic
    offsets = [row for row in found.offset_rows() if is_whole or not is_up_to_date(row)]
    run.write(GROUP_OFFSET, sorted(offsets, key=offset_gravity))
    left_out = found.offset_count - len(offsets)
    run.count(GROUP_OFFSET.type, left_out)
    if left_out:
        run.conclude(f"Not listed: {counted(left_out, 'offset')} without lag (--every-row lists them).")


def _nothing_found(run: Run, reading: GroupsReading, found: GroupList, narrowing: GroupSelection) -> str:
    """That there is no such group, or that its partition was not read, which proves nothing; adds the condition."""
    from format.verbs.groups.answers import NO_COORDINATORS, none_at_all, none_of, none_of_topics

    if not reading.replicas.has_coordinators:
        run.condition(Condition.INCOMPLETE)
        return NO_COORDINATORS
    wanted = narrowing.groups
    is_unread = bool(reading.unread_count)
    if narrowing.topics and (not wanted or wanted & set(found.names())):
        words = none_of_topics(narrowing, reading.topics(), reading.unread_count)
    elif wanted:
        words = none_of(wanted, found.names(), reading.coordinators)
        is_unread |= bool(reading.coordinators.unknown(wanted))
    else:
        words = found.sentences() if found.dead_count else none_at_all(reading.coordinators, reading.unread_count)
    run.condition(Condition.INCOMPLETE if is_unread else Condition.NOTHING_FOUND)
    return words


def _write_reset_csv(run: Run, found: GroupList, path: str, sources: list[str]) -> None:
    from format.verbs.groups.answers import ResetCsv, reset_commands

    output = open_output(path, sources)
    try:
        written = ResetCsv(found.group_rows())
        for line in written.lines(found.offset_rows()):
            output.write_text(line)
            run.count("reset_csv_line")
        output.publish()
    finally:
        output.discard()
    for reason, count in written.left_out.items():
        run.not_checked(f"--reset-csv leaves out {counted(count, 'group')}: {reason}")
    for line in reset_commands(written.written, path):
        run.say_at_end(line)
