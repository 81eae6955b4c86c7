"""kafkalog boot: whether a broker starts on some log directories, and what it does to each file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from format.columns import BOOT_STEP
from format.errors import InputError, UnreadableFile
from format.files.meta_properties import ids_in, is_of_zookeeper, node_id_in
from format.io.session import Session, is_there
from format.layout import META_PROPERTIES
from format.node.log_dir import Kind, directory_around, list_directory
from format.node.target import Target, each_once, kind_of, targets_at
from format.wording import counted, shell_line
from kafkalog_cli.exit_codes import Condition
from kafkalog_cli.options.groups import option
from kafkalog_cli.options.output import DocumentOutput, Judging
from kafkalog_cli.options.parsers import COUNT, one_of
from kafkalog_cli.options.reading import existing_paths
from kafkalog_cli.options.work import Pacing
from kafkalog_cli.render.table import ShownColumns
from kafkalog_cli.render.text import printable
from kafkalog_cli.runner import Run

if TYPE_CHECKING:
    from format.verbs.boot.steps import BootTerms, KnownMetadata

PROCESS_ROLES = ("broker", "controller", "broker,controller")
KAFKA_VERSIONS = ("3.9", "4.0", "4.1", "4.2", "4.3", "4.4")

EXAMPLES = (
    ("kafkalog boot /var/kafka", "would a broker start here, and what would it do"),
    ("kafkalog boot /disk1/kafka /disk2/kafka", "all log directories of one node, in the order of log.dirs"),
    (
        "kafkalog boot --metadata /copy/of/controller /var/kafka",
        "by the later metadata of another node: which logs are stray",
    ),
    (
        "kafkalog boot --node-id 3 --kafka-version 3.9 /var/kafka",
        "for Kafka 3.9, with the node.id of its configuration",
    ),
    ("kafkalog boot --every-file --format jsonl /var/kafka", "a row for each file, also for those that stay"),
)

_COLUMNS = {
    "boot_step": ShownColumns(
        ("action", "path", "offset", "bytes", "lost_offsets", "broker_message", "reason"), as_paragraphs=True
    )
}


class Starting(msgspec.Struct, frozen=True):
    """The log directories of a node, and the broker that starts on them."""

    paths: Annotated[list[str], existing_paths("The log directories of one node, in the order of log.dirs.")]
    kafka_version: Annotated[
        str | None,
        option(
            "The release of the broker.",
            show_default=f"{KAFKA_VERSIONS[-1]} or later; 3.9 for a node that ran with ZooKeeper",
            **one_of(*KAFKA_VERSIONS),
        ),
    ] = None
    node_id: Annotated[
        int | None,
        option("The node.id of the broker's configuration.", show_default="the node.id of meta.properties", **COUNT),
    ] = None
    metadata: Annotated[
        str | None,
        option(
            "Take topics and replicas from the metadata log of another node, which has later metadata: a log directory "
            "or a partition.",
            metavar="PATH",
            show_default="the metadata log in the log directories",
        ),
    ] = None
    process_roles: Annotated[
        str | None,
        option(
            "The process.roles of the node's configuration.",
            show_default="as its metadata log says",
            **one_of(*PROCESS_ROLES),
        ),
    ] = None
    every_file: Annotated[bool, option("Show every step, also for each partition and file that stays as it is.")] = (
        False
    )

    def terms(self, session: Session) -> BootTerms:
        """The terms for the verb."""
        from format.verbs.boot.boot import LAST_WITH_ZOOKEEPER, NEWEST
        from format.verbs.boot.steps import BootTerms

        if self.kafka_version is not None:
            major, minor = map(int, self.kafka_version.split("."))
        elif is_of_zookeeper(map(session.path, self.paths)):
            major, minor = LAST_WITH_ZOOKEEPER
        else:
            major, minor = NEWEST
        return BootTerms(
            version=(major, minor),
            is_release_known=self.kafka_version is not None,
            every_file=self.every_file,
            is_broker=None if self.process_roles is None else "broker" in self.process_roles,
            later=None if self.metadata is None else _later_metadata(*map(session.path, (self.metadata, *self.paths))),
        )


def boot(starting: Starting, output: DocumentOutput, pacing: Pacing) -> None:
    """Predict whether a broker starts on these log directories, and what it does to each file.

    The start is simulated in the order of the broker, refusals first. Nothing is written. A loss is given in offsets
    between the log start offset and the high watermark, and is one of this replica. The exit status is 1 where the node
    would refuse to start, not serve a partition (a stray, too) or lose records, and 3 where that cannot be predicted or
    it is not known what is lost.
    """
    from format.verbs.boot.boot import boot as booted
    from format.verbs.boot.sentence import listed_steps, otherwise, sentence

    paths = [each.path for each in each_once(targets_at(map(pacing.session.path, starting.paths)))]
    _check_log_dirs(paths)
    if starting.node_id is None:
        _check_one_node(paths)
    terms = starting.terms(pacing.session)
    with Run("boot", output, Judging(), paths=starting.paths, main_schema=BOOT_STEP, columns=_COLUMNS) as run:
        result = booted(paths, terms, starting.node_id)
        run.conclude(printable(sentence(result, terms)))
        is_folded = run.is_readable and not terms.every_file
        steps, more = listed_steps(result) if is_folded else (result.steps, "")
        run.write(BOOT_STEP, (step.row() for step in steps))
        run.count(BOOT_STEP.type, len(result.steps) - len(steps))
        if is_folded:
            run.conclude(more, otherwise(result))
        run.findings(result.findings)
        run.not_checked(*result.not_checked)
        if result.is_refused or result.loses or result.has_unserved:
            run.condition(Condition.DAMAGE)
        if result.is_unknown or result.unread or result.may_lose:
            run.condition(Condition.INCOMPLETE)


def _check_log_dirs(paths: list[Path]) -> None:
    """Raise a usage error for a partition or a file: a broker starts on whole log directories."""
    for path in paths:
        try:
            kind = kind_of(path)
        except (InputError, UnreadableFile) as error:
            if len(paths) == 1 and path.is_file():
                raise typer.BadParameter(str(error)) from None  # a path given by mistake
            continue  # a broker may start on a directory that holds nothing of Kafka
        is_alone = not is_there(directory_around(path) / META_PROPERTIES)
        if kind is Kind.PARTITION and is_alone and not list_directory(path):
            continue  # a disk that is not mounted, with the name of a partition, such as kafka-1
        if kind is not Kind.LOG_DIR:
            raise typer.BadParameter(f"{path} is not a log directory: give the directory that holds the partitions")
        target = Target(path)
        below = [(str(each.path), ids_in(each.meta_properties)) for each in target.log_dirs if each.path != target.path]
        if below:
            found, node = counted(len(below), "log directory"), below[0][1][:2]
            of_node = {ids[2]: name for name, ids in reversed(below) if ids[:2] == node}  # without copies of one
            names = shell_line(sorted(of_node.values()))
            raise typer.BadParameter(f"{path} has {found} below it: give those of one node, such as {names}")


def _check_one_node(paths: list[Path]) -> None:
    """Raise a usage error for the log directories of several nodes."""
    seen: dict[int, Path] = {}
    for path in paths:
        node_id = node_id_in(path / META_PROPERTIES)  # the broker's words on a damaged one are part of the answer
        if node_id is not None:
            seen.setdefault(node_id, path)
    if len(seen) > 1:
        found = " and ".join(f"{path} of node {node_id}" for node_id, path in seen.items())
        raise typer.BadParameter(
            f"{found}: several directories are taken for the log.dirs of one node. Ask for one node at a time, or give "
            "the node.id of the configuration with --node-id"
        )


def _later_metadata(path: Path, *log_dirs: Path) -> KnownMetadata:
    """The metadata of another node. Raises a usage error where it is of another cluster, damaged, or not later."""
    from format.state.metadata_log import read_metadata
    from format.state.quorum import best_copy, read_metadata_copies
    from format.verbs.boot.steps import KnownMetadata

    given = best_copy(read_metadata_copies([Target(path)])).copy
    state = read_metadata(given.source.partition)
    if state.is_damaged:
        raise typer.BadParameter(f"{path}: its metadata cannot be read whole: {state.findings[0].message}")
    try:
        own = best_copy(read_metadata_copies([Target(each) for each in log_dirs])).copy
    except InputError:
        own = None  # a broker without a controller's metadata log
    if own is not None and own.cluster_id and given.cluster_id and own.cluster_id != given.cluster_id:
        raise typer.BadParameter(f"{path} is of the cluster {given.cluster_id}, not of {own.cluster_id}")
    if own is not None and own.end > given.end:
        raise typer.BadParameter(
            f"{path}: its metadata log ends at offset {given.end[1]} of epoch {given.end[0]}, before that of the "
            f"node, which ends at {own.end[1]} of epoch {own.end[0]}: give later metadata"
        )
    return KnownMetadata(given.path, state.image, state.last_timestamp)
