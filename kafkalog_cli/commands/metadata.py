"""kafkalog metadata: the cluster as its metadata log describes it, and what changed when."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from format.columns import ASSIGNMENT, METADATA_CHANGE, SCHEMA_VERSION
from format.limits import Limits
from format.timestamps import iso_time
from format.wording import counted, did_you_mean, listed, shell_line
from kafkalog_cli.exit_codes import Condition
from kafkalog_cli.options.groups import first_given, option
from kafkalog_cli.options.output import DocumentOutput, EveryRow, Judging
from kafkalog_cli.options.parsers import COUNT, MOMENT, one_of
from kafkalog_cli.options.reading import AsOf, Reading
from kafkalog_cli.options.work import Guards, Pacing
from kafkalog_cli.render.table import ShownColumns, TableColumns
from kafkalog_cli.runner import Run

if TYPE_CHECKING:
    from format.verbs.metadata.metadata import MetadataResult, MetadataTerms

EXAMPLES = (
    ("kafkalog metadata /var/kafka", "topics, replicas, leaders, brokers, configs and ACLs, as this node knows them"),
    ("kafkalog metadata --topic orders /var/kafka", "one topic: its id, configs, replicas and leaders"),
    ("kafkalog metadata --at 2026-11-08T08:40 /var/kafka", "the state at that time"),
    ("kafkalog metadata --history --from-time -2h /var/kafka", "what changed in the last two hours"),
    ("kafkalog metadata --history --kind partition --kind broker /var/kafka", "changes of leaders, ISRs and brokers"),
    ("kafkalog metadata --schemas /var/kafka", "subjects, versions and ids of the schema registry, from _schemas"),
)

CHANGE_KINDS = (
    "topic", "partition", "config", "broker", "controller", "quorum", "feature", "acl", "quota", "credential",
    "producer-ids",
)  # fmt: skip
_COLUMNS: TableColumns = {
    "image": ("node_id", "last_offset", "last_timestamp", "leader", "leader_epoch", "voters", "start_offset"),
    "topic": ShownColumns(
        ("topic", "topic_id", "partition_count", "replication_factor", "marked_deleted"),
        deciding=("marked_deleted",),
        on_request=("configs",),
    ),
    "assignment": ShownColumns(
        (
            "topic", "partition", "leader", "leader_epoch", "replicas", "isr", "eligible_leader_replicas",
            "last_known_elr", "adding_replicas", "removing_replicas", "leader_recovery_state",
        ),
        first_to_go=("leader_recovery_state", "leader_epoch"),
        deciding=("eligible_leader_replicas", "last_known_elr", "adding_replicas", "removing_replicas"),
    ),
    "broker": ShownColumns(
        ("node_id", "role", "fenced", "leader", "rack", "endpoints"),
        first_to_go=("rack",),
        deciding=("fenced",),
    ),
    "config": ("resource_type", "resource_name", "name", "value"),
    "acl": (
        "permission_type", "principal", "operation", "resource_type", "resource_name", "pattern_type", "host",
    ),
    "metadata_change": ("offset", "timestamp", "subject", "before", "after"),
    "schema_version": ShownColumns(
        ("subject", "version", "id", "kind", "state", "compatibility", "timestamp"),
        first_to_go=("timestamp", "compatibility"),
        deciding=("state",),
        on_request=("offset", "guid", "references", "registry", "schema"),
    ),
}  # fmt: skip


class Moment(msgspec.Struct, frozen=True):
    """The record up to which the metadata is read, and the topics and changes of interest."""

    as_of: AsOf = msgspec.field(default_factory=AsOf)
    at_offset: Annotated[int | None, option("Show the state after the record at this offset.", **COUNT)] = None
    topic: Annotated[
        list[str] | None, option("Only this topic; may be repeated.", metavar="TOPIC", show_default="all")
    ] = None
    history: Annotated[bool, option("Show each change since the log begins, in place of the state.")] = False
    from_time: Annotated[int | None, option("With --history: only changes since this time.", **MOMENT)] = None
    kind: Annotated[
        list[str] | None,
        option(
            "With --history: only changes of this kind; may be repeated.", show_default="all", **one_of(*CHANGE_KINDS)
        ),
    ] = None
    schemas: Annotated[bool, option("Show the subjects and schemas of the schema registry, from _schemas.")] = False
    every_row: EveryRow = False

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
    reading: Reading, moment: Moment, output: DocumentOutput, judging: Judging, guards: Guards, pacing: Pacing
) -> None:
    """Show the cluster as the metadata log describes it: topics, replicas, brokers, configs, features, ACLs, quotas.

    The newest snapshot and the log after it are read, from __cluster_metadata-0 of a broker or a controller; of several
    nodes, the longest log (kafkalog quorum compares them). Secrets are not shown. The exit status is 1 if the
    topic of --topic is not there. With --schemas, the topic _schemas of a schema registry is read instead.
    """
    from format.verbs.metadata.changes import SubjectChanges, kind_of
    from format.verbs.metadata.metadata import metadata as metadata_at

    needing_history = first_given({"--from-time": moment.from_time, "--kind": moment.kind})
    if needing_history is not None and not moment.history:
        raise typer.BadParameter(f"{needing_history} needs --history")
    if moment.schemas:
        _schemas(reading, moment, output, judging, guards)
        return
    main_schema = METADATA_CHANGE if moment.history else ASSIGNMENT
    with Run("metadata", output, judging, paths=reading.paths, main_schema=main_schema, columns=_COLUMNS) as run:
        changes = SubjectChanges()

        def take_change(row: tuple[Any, ...]) -> None:
            if moment.kind is None or kind_of(row[2], row[3]) in moment.kind:
                changes.take(row)
                run.write(METADATA_CHANGE, (row,), only=lambda row: moment.every_row)

        run.hold()
        result = metadata_at(
            run.readable(reading.targets()), moment.terms(guards.limits), take_change if moment.history else None
        )
        missing = result.missing_topics()
        known = result.state.image.names.values()
        absent = [f"There is no topic {topic} in the metadata.{did_you_mean(topic, known)}" for topic in missing]
        run.conclude(result.sentence(), *absent)
        run.findings(result.state.findings)
        if moment.history:
            if run.is_readable and not moment.every_row:
                run.conclude(*changes.lines(every_partition="partition" in (moment.kind or ())))
            since = "" if moment.from_time is None else f" from {iso_time(moment.from_time)} on"
            run.conclude(changes.sentence() if changes.count else f"Nothing changed{since}.")
        else:
            _write_image(run, result, is_whole=moment.every_row or moment.topic is not None)
        run.not_checked(*result.not_checked())
        if missing and not moment.history:
            run.condition(Condition.NOTHING_FOUND)


def _schemas(reading: Reading, moment: Moment, output: DocumentOutput, judging: Judging, guards: Guards) -> None:
    """Show the subjects of a schema registry."""
    from format.verbs.metadata.subjects import registry_schemas, registry_sentence, version_rows

    excluded = first_given({"--history": moment.history, "--topic": moment.topic, "--at-offset": moment.at_offset})
    if excluded is not None:
        raise typer.BadParameter(f"{excluded} cannot be used with --schemas")
    with Run("metadata", output, judging, paths=reading.paths, main_schema=SCHEMA_VERSION, columns=_COLUMNS) as run:
        found = registry_schemas(run.readable(reading.targets()), moment.as_of.at, guards.limits)
        run.conclude(registry_sentence(found))
        run.findings(found.findings)
        run.write(SCHEMA_VERSION, version_rows(found))
        if found.versions:
            words = ("kafkalog", "verify", "--values", *map(str, reading.paths))
            run.say_at_end(f"Which values they decode: {shell_line(words)}")
        else:
            run.condition(Condition.NOTHING_FOUND)


#: The types of rows that are only counted, unless every row is asked for, with what to call them.
_COUNTED = {
    "image": "", "assignment": "partition", "config": "config",
    "feature": "feature", "acl": "ACL", "quota": "quota", "credential": "credential",
}  # fmt: skip


def _write_image(run: Run, result: MetadataResult, *, is_whole: bool) -> None:
    """Write the rows of the image. Where people read them and do not ask for all, what is usual is counted."""
    from format.verbs.metadata.metadata import is_usual

    left_out: dict[str, int] = {}

    for schema, rows in result.rows():

        def is_shown(row: tuple[Any, ...], kind: str = schema.type) -> bool:
            if is_whole or kind not in _COUNTED or (kind == "assignment" and not is_usual(row)):
                return True
            left_out[kind] = left_out.get(kind, 0) + 1
            return False

        run.write(schema, rows, only=is_shown)
    words = [
        counted(count, _COUNTED[kind]) + " in sync" * (kind == "assignment")
        for kind, count in left_out.items()
        if _COUNTED[kind]
    ]
    if words:
        run.conclude(f"Not listed: {listed(words)} (--every-row lists them).")
