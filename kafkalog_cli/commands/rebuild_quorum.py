"""kafkalog rebuild-quorum: metadata directories for new controllers, from a copy that is left."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from kafkalog_cli.options.groups import option
from kafkalog_cli.options.output import Judging, RowOutput
from kafkalog_cli.options.reading import check_if_given, existing_paths
from kafkalog_cli.options.work import Guards, Pacing
from kafkalog_cli.options.writing import local_directory

if TYPE_CHECKING:
    from format.verbs.rebuild_quorum.rebuild_quorum import Address

EXAMPLES = (
    ("kafkalog rebuild-quorum broker-* --dry-run", "what would be taken, and which changes would be lost"),
    ("kafkalog rebuild-quorum broker-* --output new", "new/node-ID for each controller of the lost quorum"),
    (
        "kafkalog rebuild-quorum broker-* --output new --voter 1@host-1:9093",
        "a quorum of one controller at this address",
    ),
    ("kafkalog rebuild-quorum broker-* --copy backup/broker-1 --dry-run", "what an older copy would lose"),
)
_VOTER = re.compile(r"(\d{1,10})@(\[[0-9A-Fa-f:.]+\]|[^\s@:\[\],]+):(\d{1,5})")
_COLUMNS = {
    "rebuilt_controller": ("node_id", "directory_id", "endpoints", "path"),
    "rebuild_change": ("action", "subject", "reason", "before", "after"),
}


def _check_voters(texts: list[str] | None) -> list[str] | None:
    for each in texts or ():
        _address(each)
    ids = [each.partition("@")[0] for each in texts or ()]
    if len(set(ids)) < len(ids):
        raise typer.BadParameter("a node id stands twice")
    return texts


def _address(text: str) -> Address:
    from format.verbs.rebuild_quorum.rebuild_quorum import Address

    match = _VOTER.fullmatch(text)
    if match is None or int(match[1]) >= 2**31 or not 0 < int(match[3]) < 2**16:
        raise typer.BadParameter(f"{text!r} is not ID@HOST:PORT")
    return Address(int(match[1]), match[2].strip("[]"), int(match[3]))


class RebuiltQuorum(msgspec.Struct, frozen=True):
    """The copies that are left, and the quorum to make of one of them."""

    paths: Annotated[
        list[str],
        existing_paths(
            "Log directories of all nodes that are left, controllers and brokers, or copies of their "
            "__cluster_metadata-0. Never written to."
        ),
    ]
    output: Annotated[
        str | None,
        option(
            "A new directory, with a directory node-ID for each voter; it appears only when it is complete.",
            metavar="DIR",
            callback=local_directory,
            show_default=False,
        ),
    ] = None
    voter: Annotated[
        list[str] | None,
        option(
            "A voter of the new quorum, with the address of its controller listener; may be repeated.",
            metavar="ID@HOST:PORT",
            callback=_check_voters,
            show_default="the voters of the lost quorum",
        ),
    ] = None
    copy: Annotated[
        str | None,
        option(
            "Take the metadata of this copy.",
            metavar="PATH",
            callback=check_if_given,
            show_default="the copy that reaches furthest",
        ),
    ] = None
    dry_run: Annotated[bool, option("Show what would be written and lost, and write nothing.")] = False
    force: Annotated[
        bool, option("Rebuild although a majority is intact, the copy has gaps, or files cannot be read.")
    ] = False

    @property
    def addresses(self) -> tuple[Address, ...]:
        return tuple(map(_address, self.voter or ()))


def rebuild_quorum(rebuilt: RebuiltQuorum, judging: Judging, output: RowOutput, guards: Guards, pacing: Pacing) -> None:
    """Write a metadata directory for each controller of a lost quorum, from the best copy of the metadata that is left.

    New controllers start on the directories under the ids of the lost ones, and brokers rejoin them. Changes that only
    other copies or brokers' disks show are lost, and named; leader epochs and producer ids that brokers have passed are
    raised. The exit status is 1 when a change is lost, and 5 when a majority of the voters is intact: start these.
    """
    from format.columns import REBUILD_CHANGE, REBUILT_CONTROLLER
    from format.node.target import targets_at
    from format.rewriting.publication import Publication
    from format.verbs.rebuild_quorum.rebuild_quorum import WantedQuorum, rebuilding, write_rebuilt
    from kafkalog_cli.exit_codes import Condition
    from kafkalog_cli.runner import Run, say_published

    if (rebuilt.output is None) != rebuilt.dry_run:
        raise typer.BadParameter("give either --output DIR or --dry-run")
    with Run(
        "rebuild-quorum", output, judging, paths=rebuilt.paths, main_schema=REBUILD_CHANGE, columns=_COLUMNS
    ) as run:
        paths = [pacing.session.path(each) for each in rebuilt.paths]
        copy = None if rebuilt.copy is None else pacing.session.path(rebuilt.copy)
        if copy is not None and not any(each in (copy, *copy.parents) for each in paths):
            paths.append(copy)
        wanted = WantedQuorum(copy=copy, voters=rebuilt.addresses, is_forced=rebuilt.force, limits=guards.limits)
        run.hold()
        plan = rebuilding(targets_at(paths), wanted)
        root = rebuilt.output or "DIR"
        if rebuilt.output is not None:
            job = {"command": "rebuild-quorum", "voters": rebuilt.voter or []}
            with Publication(rebuilt.output, paths, job=job) as publication:
                write_rebuilt(plan, publication)
                root = str(publication.target)
        run.conclude(*plan.sentences(), *plan.steps(pacing.session.path(root)))
        run.findings(plan.copy.findings)
        run.write(REBUILT_CONTROLLER, plan.rows(pacing.session.path(root)))
        run.write(REBUILD_CHANGE, plan.change_rows())
        for words in plan.not_checked:
            run.not_checked(words)
        if plan.lost:
            run.condition(Condition.DAMAGE)
        if rebuilt.output is not None:
            say_published(run, root)
