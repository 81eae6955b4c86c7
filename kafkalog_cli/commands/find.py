"""kafkalog find: one record, by its offset, by time, or by the largest timestamp."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer
from msgspec.structs import replace

from format.columns import MATCH, STEP
from format.errors import InputError, UnreadableFile
from format.io.session import Session, is_remote
from format.limits import Limits
from format.node.partition import Partition
from format.node.target import Target
from format.timestamps import DAY_MS, iso_time
from format.verbs.find.lookup import FoundRecord, LookupResult
from format.wording import shell_word
from kafkalog_cli.exit_codes import Condition
from kafkalog_cli.options.groups import option, session_in
from kafkalog_cli.options.output import DocumentOutput, Judging
from kafkalog_cli.options.parsers import COUNT, MOMENT, SIZE
from kafkalog_cli.options.reading import ClusterMetadata, PlaceAndPaths, Tiering, check_place_and_paths
from kafkalog_cli.options.values import ValueOptions
from kafkalog_cli.options.work import Guards
from kafkalog_cli.render.table import ShownColumns
from kafkalog_cli.render.text import printable
from kafkalog_cli.runner import Run

if TYPE_CHECKING:
    from format.state.cluster_context import Assignment

EXAMPLES = (
    ("kafkalog find orders-0:170418 /var/kafka", "one record in each of its replicas, and who can see it"),
    ("kafkalog find /var/kafka/orders-0 --offset 170418", "the same in one partition"),
    ("kafkalog find /var/kafka/orders-0 --offset 170418 --explain", "the same, with every step of the search"),
    ("kafkalog find /var/kafka/orders-0 --timestamp 2024-05-01T12:00", "the first record at or after a time"),
    ("kafkalog find /var/kafka/orders-0 --max-timestamp", "the record with the largest timestamp"),
)

#: A longer time is not told in days.
_MOST_DAYS = 365_000
_COLUMNS = {
    "match": ShownColumns(
        (
            "topic", "partition", "offset", "visibility", "transaction_state", "timestamp", "segment_base_offset",
            "position", "producer_id", "leader_epoch",
        ),
        first_to_go=("leader_epoch", "producer_id", "transaction_state"),
        on_request=("is_leader", "leader", "isr", "eligible_leader_replicas"),  # the sentence says it
    ),
    "step": ShownColumns(("stage", "path", "position", "offset", "detail"), as_paragraphs=True),
}  # fmt: skip


def _one_path(context: typer.Context, words: list[str] | None) -> list[str] | None:
    """The words. Raises a usage error for several paths without a place, with what to give instead."""
    words = check_place_and_paths(context, words)
    paths = PlaceAndPaths(words or [], session_in(context)).paths
    if words != paths or len(paths) <= 1:
        return words
    around = {str(session_in(context).path(path).parent) for path in paths}
    instead = "run it once for each"
    if len(around) == 1 and all(path.endswith(".log") for path in paths):
        instead = f"to search all segments of a partition, give its directory: {shell_word(around.pop())}"
    raise typer.BadParameter(printable(f"find searches one partition, and {len(paths)} paths are given; {instead}"))


class Sought(msgspec.Struct, frozen=True):
    """What to look for, and where."""

    words: Annotated[
        list[str],
        typer.Argument(
            metavar="[TOPIC-P:OFFSET] PATH...",
            help="The place of a record, such as orders-0:4711, and the log directories in which its replicas are "
            "looked for; or, with --offset or a time, one partition directory (TOPIC-PARTITION) or a .log file of it.",
            callback=_one_path,
            show_default=False,
        ),
    ]
    offset: Annotated[int | None, option("Find the record with this offset.", **COUNT)] = None
    timestamp: Annotated[
        int | None,
        option(
            "Find the first record at or after this time: ISO-8601 (UTC unless it names an offset), epoch "
            "milliseconds, seconds (1714564800s), or relative (-2h, now).",
            **MOMENT,
        ),
    ] = None
    max_timestamp: Annotated[bool, option("Find the first record with the largest timestamp.")] = False
    explain: Annotated[bool, option("Show each step: segment, index entries, bytes scanned, match.")] = False
    cluster: ClusterMetadata = msgspec.field(default_factory=ClusterMetadata)
    tiering: Tiering = msgspec.field(default_factory=Tiering)
    values: ValueOptions = msgspec.field(default_factory=ValueOptions)
    visibility_limit: Annotated[
        int | None,
        option(
            "Read at most this much of the log to find out which consumers can see the record.",
            show_default="no limit; 256KiB at an address",
            **SIZE,
        ),
    ] = None
    past_high_watermark: Annotated[
        bool, option("By time, also find records at or past the high watermark, which brokers hide from consumers.")
    ] = False

    def most_visibility_bytes(self, path: Path) -> int | None:
        """The limit in bytes, None for no limit."""
        if self.visibility_limit is not None or not is_remote(path):
            return self.visibility_limit
        from format.verbs.find.find import REMOTE_VISIBILITY_BYTES

        return REMOTE_VISIBILITY_BYTES


def find(session: Session, sought: Sought, output: DocumentOutput, judging: Judging, guards: Guards) -> None:
    """Find a record as a broker does, and show its offset, timestamp, segment and position.

    In tables and text the record itself is shown, too, with --value-as and --key-as decoded.
    Index entries are checked before they are used. A wrong one is a finding, and the log is scanned instead.
    """
    where = PlaceAndPaths(sought.words, session)
    asked = (sought.offset is not None) + (sought.timestamp is not None) + sought.max_timestamp
    if asked + (where.place is not None) != 1:
        raise typer.BadParameter("give exactly one of TOPIC-P:OFFSET, --offset, --timestamp and --max-timestamp")
    if where.place is not None:
        sought = replace(sought, offset=where.place.offset)
    if sought.past_high_watermark and sought.offset is not None:
        raise typer.BadParameter("--past-high-watermark is for times: by its offset a record is found wherever it lies")
    schema = STEP if sought.explain else MATCH
    with (
        Run("find", output, judging, paths=where.paths, main_schema=schema, columns=_COLUMNS) as run,
        sought.tiering.joined(run, targets := where.targets(run), guards.limits),
    ):
        if sought.values.is_asked and (sought.explain or not run.shows_records):
            raise typer.BadParameter(
                "keys and values are decoded where the record is shown: in tables and text, without --explain and "
                "--columns; for other formats use dump --records TOPIC-P:OFFSET"
            )
        is_found = False
        for target in targets:
            partition = _opened(target.path)
            found = _looked_up(partition, sought, guards.limits)
            is_found |= found.match is not None
            standing_of = partial(
                _standing, partition, sought, [session.path(each) for each in where.paths], guards.limits
            )
            _show(run, found, partition, sought, guards.limits, standing_of, is_one_of_several=len(targets) > 1)
        if not is_found:
            run.condition(Condition.NOTHING_FOUND)


def _opened(path: Path) -> Partition:
    from format.verbs.find.find import partition_to_search

    try:
        return partition_to_search(path)
    except UnreadableFile:
        raise
    except InputError as error:
        raise typer.BadParameter(printable(f"{path}: {error.message}")) from None


def _looked_up(partition: Partition, sought: Sought, limits: Limits) -> LookupResult:
    from format.verbs.find.find import find_max_timestamp, find_offset, find_timestamp

    limit, is_past = sought.most_visibility_bytes(partition.path), sought.past_high_watermark
    if sought.offset is not None:
        return find_offset(partition, sought.offset, visibility_limit=limit, limits=limits)
    if sought.timestamp is None:
        return find_max_timestamp(partition, past_high_watermark=is_past, visibility_limit=limit, limits=limits)
    return find_timestamp(
        partition, sought.timestamp, past_high_watermark=is_past, visibility_limit=limit, limits=limits
    )


def _show(
    run: Run,
    found: LookupResult,
    partition: Partition,
    sought: Sought,
    limits: Limits,
    standing_of: Callable[[], tuple[Assignment, int | None]],
    *,
    is_one_of_several: bool,
) -> None:
    if sought.explain:
        run.write(STEP, (step.row() for step in found.steps))
    if found.error is not None:
        run.findings(found.findings)
        raise found.error
    match = found.match
    of_replica: tuple[Assignment, int | None] | tuple[()] = ()
    words = "" if match is not None else f"not found: {found.reason}"
    if found.visibility is not None:
        from format.verbs.find.visibility import standing, visibility_sentence

        assignment, node_id = of_replica = standing_of()
        if match is not None:
            words = visibility_sentence(match, partition.name, assignment, node_id)
        else:
            words = ". ".join(each for each in (words, standing(partition.name, assignment, node_id)) if each)
    if words and is_one_of_several:
        words = f"{partition.path}: {words}"
    run.conclude("" if match is None else _time_words(match, sought), words)
    if match is not None:
        if match.is_ahead_of_its_file:
            run.conclude(_future_words(match))
        if run.shows_records and not sought.explain:
            _show_record(run, match, partition, sought.values, limits)
    row = match or found.answer
    if row is not None:
        run.write(MATCH, (row.row(*of_replica),))
    run.findings(found.findings)
    run.count("bytes_read", found.bytes_read)
    run.not_checked(*found.not_checked)
    if match is not None and match.visibility_bytes_read:
        run.count("visibility_bytes_read", match.visibility_bytes_read)
    if match is not None and match.visibility_bytes_needed:
        run.not_checked(
            f"who can see the record: {match.visibility_bytes_needed} bytes of the log would have to be read "
            "(--visibility-limit)"
        )


def _show_record(run: Run, match: FoundRecord, partition: Partition, values: ValueOptions, limits: Limits) -> None:
    """Show the record itself, for people."""
    from format.rows.record_rows import RowBlock
    from format.scan.selection import Selection
    from format.verbs.dump import DumpTerms, dumped_rows

    offset = match.location.offset or 0
    decoding = values.decoding(run, [Target(partition.path)], limits)
    terms = DumpTerms(True, Selection(offset, offset + 1), limits, decodes_internal=True, decoding=decoding)
    for block in dumped_rows(partition.path, terms, may_stop=True):
        if isinstance(block, RowBlock):
            run.write(block.schema, block.rows)
        elif block.code == "value-undecodable":  # the look-up has reported all others
            run.finding(block)


def _standing(
    partition: Partition, sought: Sought, given: Sequence[Path], limits: Limits
) -> tuple[Assignment, int | None]:
    """What the newest metadata at the given paths says of the partition, and the node of the replica searched."""
    from format.state.cluster_context import Assignment, read_context

    if is_remote(partition.path) and sought.cluster.metadata is None:
        return Assignment(
            unknown="the metadata log at an address is not read unless it is named (--metadata PATH)"
        ), None
    own, terms = Target(partition.path), sought.cluster.terms(limits)
    try:  # another log directory of the node may have it
        context = read_context([own, *(Target(each) for each in given if not is_remote(each))], terms)
    except UnreadableFile:
        context = read_context([own], terms)  # the run has reported the other one
    return context.assignment_of(partition), context.node_id_of(partition)


def _time_words(match: FoundRecord, sought: Sought) -> str:
    """Which record a time found; empty for an offset."""
    if sought.offset is not None:
        return ""
    at = "without a timestamp" if match.timestamp is None else f"of {iso_time(match.timestamp)}"
    which = "with the largest timestamp"
    which = which if sought.timestamp is None else f"at or after {iso_time(sought.timestamp)}"
    return f"offset {match.location.offset}, {at}, is the first record {which}"


def _future_words(match: FoundRecord) -> str:
    days = ((match.timestamp or 0) - (match.file_written_at or 0)) // DAY_MS
    distance = f"{days:,} days" if days <= _MOST_DAYS else "thousands of years"
    return (
        f"the timestamp of offset {match.location.offset}, {iso_time(match.timestamp or 0)}, lies {distance} past "
        f"the last write of its file, {iso_time(match.file_written_at or 0)}: the clock of its producer was wrong, or "
        "this copy of the file has lost its time"
    )
