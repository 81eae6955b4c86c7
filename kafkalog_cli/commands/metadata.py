"""kafkalog metadata: the cluster as its metadata log describes it, and what changed when."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from kafkalog_cli.options.output import DocumentOutput, Judging
from kafkalog_cli.options.parsers import parse_count, parse_moment
from kafkalog_cli.options.reading import AsOf, Reading
from kafkalog_cli.options.work import Guards, Pacing

if TYPE_CHECKING:
    from format.limits import Limits
    from format.verbs.metadata.metadata import MetadataTerms

EXAMPLES = (
    ("kafkalog metadata /var/kafka", "topics, replicas, leaders, brokers, configs and ACLs, as this node knows them"),
    ("kafkalog metadata --topic orders /var/kafka", "one topic: its id, configs, replicas and leaders"),
    ("kafkalog metadata --at 2026-11-08T08:40 /var/kafka", "the state at that time"),
    ("kafkalog metadata --history --from-time -2h /var/kafka", "what changed in the last two hours"),
)

_TABLE_COLUMNS = {
    "image": ("node_id", "last_offset", "last_timestamp", "leader", "leader_epoch", "voters", "start_offset"),
    "topic": ("topic", "topic_id", "partition_count", "replication_factor", "configs"),
    "assignment": ("topic", "partition", "leader", "leader_epoch", "replicas", "isr"),
    "broker": ("node_id", "role", "fenced", "leader", "rack", "endpoints"),
    "config": ("resource_type", "resource_name", "name", "value"),
    "acl": (
        "permission_type", "principal", "operation", "resource_type", "resource_name", "pattern_type", "host",
    ),
    "metadata_change": ("offset", "timestamp", "subject", "before", "after"),
}  # fmt: skip


class Moment(msgspec.Struct, frozen=True):
    """The record up to which the metadata is read, and the topics and changes of interest."""

    as_of: AsOf = msgspec.field(default_factory=AsOf)
    at_offset: Annotated[
        int | None,
        typer.Option(
            "--at-offset", metavar="N", parser=parse_count, help="Show the state after the record at this offset."
        ),
    ] = None
    topic: Annotated[
        list[str] | None,
        typer.Option("--topic", metavar="TOPIC", help="Only this topic; may be repeated.", show_default="all"),
    ] = None
    history: Annotated[
        bool, typer.Option("--history", help="Show each change since the log begins, in place of the state.")
    ] = False
    from_time: Annotated[
        int | None,
        typer.Option(
            "--from-time", metavar="T", parser=parse_moment, help="With --history: only changes since this time."
        ),
    ] = None

    def terms(self, limits: Limits) -> MetadataTerms:
        """The terms for the verb."""
        from format.state.metadata_log import Until
        from format.verbs.metadata.metadata import MetadataTerms

        until = Until(
            **({} if self.at_offset is None else {"offset": self.at_offset}),
            **({} if self.as_of.at is None else {"timestamp": self.as_of.at}),
        )
        topics = frozenset(self.topic) if self.topic else None
        return MetadataTerms(until, topics, self.from_time, limits)


def metadata(
    reading: Reading,
    moment: Moment,
    output: DocumentOutput,
    judging: Judging,
    guards: Guards,
    pacing: Pacing,
) -> None:
    """Show the cluster as the metadata log describes it: topics, replicas, brokers, configs, features, ACLs, quotas.

    The newest snapshot and the log after it are read, from __cluster_metadata-0 of a broker or a controller; of several
    nodes, the longest log. Secrets are not shown. The exit status is 1 if the topic of --topic
    is not there.
    """
    from format.columns import ASSIGNMENT, METADATA_CHANGE
    from format.verbs.metadata.metadata import metadata as metadata_at
    from format.wording import did_you_mean
    from kafkalog_cli.exit_codes import Condition
    from kafkalog_cli.runner import Run

    if moment.from_time is not None and not moment.history:
        raise typer.BadParameter("--from-time needs --history")
    main_schema = METADATA_CHANGE if moment.history else ASSIGNMENT
    with (
        Run(
            "metadata",
            output,
            judging,
            paths=reading.paths,
            main_schema=main_schema,
            table_columns=_TABLE_COLUMNS,
        ) as run,
    ):

        def write_change(row: tuple[Any, ...]) -> None:
            run.write(METADATA_CHANGE, (row,))

        terms = moment.terms(guards.limits)
        result = metadata_at(reading.targets(), terms, write_change if moment.history else None)
        run.say_now(result.sentence())
        if not moment.history:
            for schema, rows in result.rows():
                run.write(schema, rows)
        run.findings(result.state.findings)
        if moment.history and not run.summary.counts.get(METADATA_CHANGE.type):
            run.say_now(_unchanged_words(moment.from_time))
        for words in result.not_checked():
            run.not_checked(words)
        missing = result.missing_topics()
        for topic in missing:
            known = result.state.image.names.values()
            run.say_now(f"There is no topic {topic} in the metadata.{did_you_mean(topic, known)}")
        if missing and not moment.history:
            run.condition(Condition.NOTHING_FOUND)


def _unchanged_words(from_time: int | None) -> str:
    from format.timestamps import iso_time

    return "Nothing changed." if from_time is None else f"Nothing changed from {iso_time(from_time)} on."
