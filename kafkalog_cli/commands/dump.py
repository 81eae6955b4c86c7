"""kafkalog dump: any file of a log directory, decoded."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer
from msgspec.structs import replace

from format.columns import BATCH, RECORD, record_schema
from format.findings import Finding
from format.scan.progress import no_progress
from kafkalog_cli.options.groups import option
from kafkalog_cli.options.output import DocumentOutput, Judging
from kafkalog_cli.options.parsers import POSITIVE
from kafkalog_cli.options.reading import AsKind, Following, PlaceAndPaths, Tiering
from kafkalog_cli.options.selection import ExtraColumns, Isolation, RangeOptions, RowOptions
from kafkalog_cli.options.values import ValueOptions
from kafkalog_cli.options.work import Guards, Work
from kafkalog_cli.runner import Run

if TYPE_CHECKING:
    from format.rows.line_blocks import Block
    from format.verbs.producers import RecordPlace
    from kafkalog_cli.record_marks import RecordMarks

EXAMPLES = (
    ("kafkalog dump /var/kafka/orders-0", "every batch of a partition"),
    ("kafkalog dump --records orders-0:170418 /var/kafka", "one record"),
    ("kafkalog dump --records --limit 5 orders-0:170418 /var/kafka", "five records from an offset on"),
    ("kafkalog dump --records --from-time -2h --format jsonl /var/kafka/orders-0", "the last two hours as JSON lines"),
    ("kafkalog dump --records /var/kafka/__consumer_offsets-7", "an internal topic, decoded"),
    ("kafkalog dump --records --value-as auto --format jsonl /var/kafka/orders-0", "with values decoded beside them"),
    ("kafkalog dump --records --follow --last 10 /var/kafka/orders-0", "the last ten records, and new ones"),
    ("kafkalog dump 00000000000000000000.timeindex", "a side file's entries"),
)

#: The columns of a table of batches; a narrow terminal drops the last ones.
_COLUMNS = {
    BATCH.type: (
        "topic", "partition", "base_offset", "last_offset", "position", "size_bytes", "record_count", "codec",
        "max_timestamp", "crc_valid", "leader_epoch", "producer_id", "base_sequence", "producer_epoch", "magic",
    ),
}  # fmt: skip


class DumpDepth(msgspec.Struct, frozen=True):
    """Which rows of a log are shown, and how deep they are decoded."""

    records: Annotated[bool, option("Show the records of each batch.")] = False
    raw: Annotated[bool, option("With --records: show keys and values as bytes, also those of internal topics.")] = (
        False
    )
    last: Annotated[int | None, option("Show the last N rows of each partition or log.", **POSITIVE)] = None
    isolation: Isolation = msgspec.field(default_factory=Isolation)
    extra: ExtraColumns = msgspec.field(default_factory=ExtraColumns)
    values: ValueOptions = msgspec.field(default_factory=ValueOptions)
    following: Following = msgspec.field(default_factory=Following)
    tiering: Tiering = msgspec.field(default_factory=Tiering)


class DumpReading(msgspec.Struct, frozen=True):
    """What is read, and as what."""

    where: PlaceAndPaths
    as_kind: AsKind = msgspec.field(default_factory=AsKind)


def dump(
    depth: DumpDepth,
    rows: RowOptions,
    reading: DumpReading,
    output: DocumentOutput,
    judging: Judging,
    guards: Guards,
    work: Work,
) -> None:
    """Decode any kind of file: a log's batches or records, an index's entries, a snapshot, a checkpoint.

    The logs of a directory are shown in order. The start of a range is looked up in the indexes, which are checked
    first. Records of Kafka's internal topics and control records are decoded: key and value are then JSON objects.
    With --value-as and --key-as, and on a terminal that has schemas, other records are decoded, too.
    """
    from format.scan.selected_logs import selected_bytes
    from format.verbs.dump import DumpTerms, dump_lines, empty_range_words, follow_dump
    from kafkalog_cli.following import followed
    from kafkalog_cli.record_marks import RecordMarks

    if depth.last is not None and rows.limit is not None:
        raise typer.BadParameter("give one of --last and --limit")
    if depth.raw and not depth.records:
        raise typer.BadParameter("--raw shows the keys and values of records as bytes: give --records too")
    if depth.extra.names and not depth.records:
        raise typer.BadParameter("--with adds columns to rows of records: give --records too")
    if depth.values.is_asked and not depth.records:
        raise typer.BadParameter("keys and values are decoded in rows of records: give --records too")
    depth.following.check(
        {
            "--to-offset": rows.range.to_offset,
            "--to-time": rows.range.to_time,
            "--read-committed": depth.isolation.read_committed,
            "--output": output.output_file,
            "--remote": depth.tiering.remote,
            "--jobs": work.sharing.jobs,
        }
    )
    begins = (depth.last, rows.range.from_offset, rows.range.from_time)
    if depth.following.follow and sum(each is not None for each in begins) > 1:
        raise typer.BadParameter("with --follow give one of --last, --from-offset and --from-time")
    terms = DumpTerms(
        depth.records,
        depth.isolation.of(_range(rows, reading.where.place, depth)),
        guards.limits,
        decodes_internal=not depth.raw,
        last=depth.last,
        extra_columns=depth.extra.names,
    )
    schema = record_schema(depth.extra.names | depth.values.columns) if depth.records else None
    with (
        Run("dump", output, judging, paths=reading.where.paths, main_schema=schema, columns=_COLUMNS) as run,
        depth.tiering.joined(run, targets := reading.where.targets(run, reading.as_kind.kind), guards.limits),
    ):
        if depth.records and not (depth.raw and not depth.values.is_asked):
            terms = replace(terms, decoding=depth.values.decoding(run, targets, guards.limits))
        marks = RecordMarks(targets, guards.limits, shows_visibility=not depth.following.follow)
        style = run.raw_style
        items: Iterator[Block]
        if depth.following.follow:
            items = followed(
                run, targets, lambda following: follow_dump(targets, terms, style, following, limit=rows.limit)
            )
        else:
            advance = no_progress
            if output.output_file is not None:  # rows on the screen show progress by themselves
                advance = run.progress(lambda: selected_bytes(targets, terms.selection)).advance
            # --limit is for each replica of a place, so that the first one does not hide the others.
            groups = [targets] if reading.where.place is None else [[each] for each in targets]
            items = chain.from_iterable(
                dump_lines(group, terms, style, limit=rows.limit, jobs=work.process_count, advance=advance)
                for group in groups
            )
        for item in items:
            _show(run, item, marks)
        if not depth.following.follow and not any(run.summary.counts.values()):
            run.say_at_end(empty_range_words(targets, terms.selection, guards.limits) or "Nothing to show.")


def _range(rows: RowOptions, place: RecordPlace | None, depth: DumpDepth) -> RangeOptions:
    """The range of the rows. From a place it goes to the end only with --limit. Raises a usage error."""
    if place is None:
        return rows.range
    if rows.range != RangeOptions() or depth.last is not None or depth.following.follow:
        raise typer.BadParameter("TOPIC-P:OFFSET is a range of its own: give it without another, --last and --follow")
    return RangeOptions(place.offset, place.offset if rows.limit is None else None)


def _show(run: Run, item: Block, marks: RecordMarks) -> None:
    from format.rows.line_blocks import LineBlock
    from kafkalog_cli.record_marks import marked_schema

    if isinstance(item, Finding):
        run.finding(item)
    elif isinstance(item, LineBlock):
        run.write_raw(item.schema, item.lines, item.row_count)
    elif item.schema.type == RECORD.type and item.location is not None and run.shows_records:
        run.write(marked_schema(item.schema), marks.marked(item.rows, Path(item.location.path).parent))
    else:
        run.write(item.schema, item.rows)
