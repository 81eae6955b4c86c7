"""kafkalog boot: whether a broker starts on some log directories, and what it does to each file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from format.value_class import value_class
from kafkalog_cli.options.judging import Judging
from kafkalog_cli.options.output import DocumentOutput
from kafkalog_cli.options.parsers import one_of, parse_count
from kafkalog_cli.options.reading import check_paths, place_of
from kafkalog_cli.options.work import Pacing
from kafkalog_cli.render.shown_columns import ShownColumns

if TYPE_CHECKING:
    from format.verbs.boot.steps import BootResult, BootTerms
    from kafkalog_cli.exit_codes import Condition

KAFKA_VERSIONS = ("3.9", "4.0", "4.1", "4.2", "4.3", "4.4")

EXAMPLES = (
    ("kafkalog boot /var/kafka", "would a broker start here, and what would it do"),
    ("kafkalog boot /disk1/kafka /disk2/kafka", "all log directories of one node, in the order of log.dirs"),
    (
        "kafkalog boot --node-id 3 --kafka-version 3.9 /var/kafka",
        "for Kafka 3.9, with the node.id of its configuration",
    ),
    ("kafkalog boot --every-file --format jsonl /var/kafka", "a row for each file, also for those that stay"),
)

_TABLE_COLUMNS = {
    "boot_step": ShownColumns(("action", "path", "offset", "bytes", "lost_offsets", "reason"), as_paragraphs=True)
}


@value_class
class Starting:
    """The log directories of a node, and the broker that starts on them."""

    paths: Annotated[
        list[str],
        typer.Argument(
            metavar="PATH...",
            help="The log directories of one node, in the order of log.dirs.",
            callback=check_paths,
            show_default=False,
        ),
    ]
    kafka_version: Annotated[
        str,
        typer.Option("--kafka-version", help="The release of the broker.", **one_of(*KAFKA_VERSIONS)),
    ] = KAFKA_VERSIONS[-1]
    node_id: Annotated[
        int | None,
        typer.Option(
            "--node-id",
            help="The node.id of the broker's configuration.",
            metavar="N",
            parser=parse_count,
            show_default="the node.id of meta.properties",
        ),
    ] = None
    every_file: Annotated[
        bool, typer.Option("--every-file", help="Also show each partition and each file that stays as it is.")
    ] = False

    @property
    def terms(self) -> BootTerms:
        from format.verbs.boot.steps import BootTerms

        major, minor = self.kafka_version.split(".")
        return BootTerms(version=(int(major), int(minor)), every_file=self.every_file)


def boot(starting: Starting, output: DocumentOutput, pacing: Pacing) -> None:
    """Predict whether a broker starts on these log directories, and what it does to each file.

    The start is simulated in the order of the broker, refusals first. Nothing is written. A loss is given in offsets
    between the log start offset and the high watermark. The exit status is 1 where the broker would refuse to start,
    not serve a partition or lose records, and 3 where that cannot be predicted.
    """
    from format.columns import BOOT_STEP
    from format.verbs.boot.boot import boot as booted
    from format.verbs.boot.sentence import sentence
    from kafkalog_cli.runner import Run

    _check_log_dirs(starting.paths)
    with (
        pacing.reading(),
        Run(
            "boot",
            output,
            Judging(),
            paths=starting.paths,
            main_schema=BOOT_STEP,
            table_columns=_TABLE_COLUMNS,
        ) as run,
    ):
        result = booted([place_of(path) for path in starting.paths], starting.terms, starting.node_id)
        run.say_now(sentence(result, starting.terms))
        run.write(BOOT_STEP, (step.row() for step in result.steps))
        for words in result.not_checked:
            run.not_checked(words)
        for condition in _conditions(result):
            run.condition(condition)


def _conditions(result: BootResult) -> list[Condition]:
    from kafkalog_cli.exit_codes import Condition

    conditions = []
    if result.is_refused or result.loses or result.has_unserved:
        conditions.append(Condition.DAMAGE)
    if result.is_unknown or result.unread:
        conditions.append(Condition.INCOMPLETE)
    return conditions


def _check_log_dirs(paths: list[str]) -> None:
    """Raise a usage error for a partition or a file: a broker starts on whole log directories."""
    from pathlib import Path

    from format.errors import InputError, UnreadableFile
    from format.node.log_dir import Kind
    from format.node.target import Target, kind_of
    from format.wording import counted

    for path in paths:
        try:
            kind = kind_of(path)
        except (InputError, UnreadableFile) as error:
            if len(paths) == 1 and Path(path).is_file():
                raise typer.BadParameter(str(error)) from None  # a path given by mistake
            continue  # a broker may start on a directory that holds nothing of Kafka
        if kind is not Kind.LOG_DIR:
            raise typer.BadParameter(f"{path} is not a log directory: give the directory that holds the partitions")
        target = Target(path)
        below = [str(each.path) for each in target.log_dirs if each.path != target.path]
        if below:
            found = counted(len(below), "log directory")
            raise typer.BadParameter(f"{path} has {found} below it: give those of one node, such as {below[0]}")
