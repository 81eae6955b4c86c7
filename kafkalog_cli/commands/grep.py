"""kafkalog grep: the records whose key, value or header matches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby, islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer
from msgspec.structs import replace

from format.columns import FILE_MATCH, RowSchema, record_schema
from format.errors import InputError, UnreadableFile
from format.findings import Finding
from format.io.session import Session
from format.location import Location
from format.node.target import Target, targets_at
from format.verbs.grep.pattern import Pattern, any_of, bytes_pattern, regex_pattern, text_pattern
from kafkalog_cli.exit_codes import Condition
from kafkalog_cli.options.groups import option
from kafkalog_cli.options.output import DocumentOutput, Judging
from kafkalog_cli.options.parsers import COUNT, one_of, parse_hex, usage_errors
from kafkalog_cli.options.reading import AsKind, Following, Tiering, check_path
from kafkalog_cli.options.selection import ExtraColumns, Isolation, RowOptions
from kafkalog_cli.options.values import ValueOptions
from kafkalog_cli.options.work import Guards, Work
from kafkalog_cli.render.records import Highlight
from kafkalog_cli.render.text import escape_bytes, printable
from kafkalog_cli.runner import Run

if TYPE_CHECKING:
    from format.rows.line_blocks import LineBlock
    from format.verbs.grep.grep import Criteria, Found, FoundRows, LogSearched
    from format.verbs.grep.record_search import Places
    from format.verbs.grep.replicas import ReplicatedRecord
    from kafkalog_cli.record_marks import RecordMarks

EXAMPLES = (
    ("kafkalog grep 4711 /var/kafka/orders-0", "records with 4711 in the key, the value or a header"),
    ("kafkalog grep --in key --regex '^user-[0-9]+$' /var/kafka", "by a regular expression that is the whole key"),
    ("kafkalog grep --header trace-id 5f2c /var/kafka/orders-0", "in the values of one header"),
    ("kafkalog grep -e refund -e chargeback -l /var/kafka", "the .log files with one of two texts"),
    ("kafkalog grep --bytes 00000003 --in value -c /var/kafka/orders-*", "bytes, as hexadecimal digits, counted"),
    ("kafkalog grep -C 3 4711 /var/kafka/orders-0", "with the three records before and after each"),
    ("kafkalog grep --value-as auto --in value c-4900 /var/kafka/orders-0", "also in values that are decoded"),
    ("kafkalog grep --follow --in key user-4711 /var/kafka", "new records of one key, as they are written"),
    (
        "kafkalog grep --all --producer-id 4001 --from-time -2h /var/kafka",
        "everything that a producer wrote in the last two hours",
    ),
)

PLACES = ("key", "value", "header", "any")


class Around(msgspec.Struct, frozen=True):
    """Records around each match, and more columns."""

    context: Annotated[
        int | None, option("Also show N records before and after each match. -m does not count them.", "-C", **COUNT)
    ] = None
    before: Annotated[
        int | None, option("Also show N records before each match.", "--before-context", "-B", **COUNT)
    ] = None
    after: Annotated[int | None, option("Also show N records after each match.", "--after-context", "-A", **COUNT)] = (
        None
    )
    extra: ExtraColumns = msgspec.field(default_factory=ExtraColumns)
    values: ValueOptions = msgspec.field(default_factory=ValueOptions)

    @property
    def is_wanted(self) -> bool:
        return any(each is not None for each in (self.context, self.before, self.after))


class WantedRecords(msgspec.Struct, frozen=True):
    """The conditions that records must meet, and how many of them are shown."""

    words: Annotated[
        list[str],
        typer.Argument(
            metavar="[PATTERN] PATH...",
            help="The text to look for, unless -e, --bytes or --all is given; then log directories, partition "
            "directories or .log files.",
            show_default=False,
        ),
    ]
    patterns: Annotated[
        list[str] | None,
        option("Look for this PATTERN; with several, for any of them.", "--pattern", "-e", metavar="PATTERN"),
    ] = None
    regex: Annotated[bool, option("PATTERN is a regular expression; ^ and $ match the ends of a field.")] = False
    hex_bytes: Annotated[
        Any, option("Look for these bytes instead of a PATTERN.", "--bytes", metavar="HEX", parser=parse_hex)
    ] = None
    everything: Annotated[bool, option("No PATTERN: all records that the other options select.", "--all")] = False
    ignore_case: Annotated[bool, option("Ignore the case of letters.", "-i")] = False
    in_places: Annotated[
        list[str] | None, option("Where to look; may be repeated.", "--in", show_default="any", **one_of(*PLACES))
    ] = None
    header: Annotated[
        list[str] | None,
        option(
            "Look in the values of this header, and elsewhere only with --in; may be repeated. With --all: select the "
            "records that have this header.",
            metavar="NAME",
        ),
    ] = None
    invert: Annotated[bool, option("Select the records that do not match.", "-v")] = False
    tombstones: Annotated[bool, option("Only records whose value is null.")] = False
    producer_id: Annotated[int | None, option("Only records of this producer.", **COUNT)] = None
    producer_epoch: Annotated[int | None, option("Only records with this producer epoch.", **COUNT)] = None
    rows: RowOptions = msgspec.field(default_factory=RowOptions)
    isolation: Isolation = msgspec.field(default_factory=Isolation)
    around: Around = msgspec.field(default_factory=Around)
    following: Following = msgspec.field(default_factory=Following)
    tiering: Tiering = msgspec.field(default_factory=Tiering)

    @property
    def is_only_range(self) -> bool:
        """Whether all records of the range are selected: if there are none, the range is empty."""
        narrowing = (self.header, self.producer_id, self.producer_epoch)
        return self.everything and not self.tombstones and all(each is None for each in narrowing)


class PerFile(msgspec.Struct, frozen=True):
    """Whether rows are files instead of records."""

    count: Annotated[
        bool,
        option(
            "Show the number of matching records in each partition, and not the records; with --format jsonl, csv or "
            "logfmt in each .log file.",
            "-c",
        ),
    ] = False
    files_with_matches: Annotated[
        bool, option("Show the .log files with a match; each is read only up to its first match.", "-l")
    ] = False


def grep(
    wanted: WantedRecords,
    per_file: PerFile,
    as_kind: AsKind,
    output: DocumentOutput,
    judging: Judging,
    guards: Guards,
    work: Work,
) -> None:
    """Find records by text, bytes or a regular expression in keys, values and headers, by producer, time and offset.

    All conditions must hold. A match is within one key, one value, or the name or value of one header: within its
    bytes, or, of keys and values that are decoded (--value-as), within their JSON text. A record that several replicas
    have is shown once, with their nodes; --format jsonl, csv and logfmt have a row for each. Batches whose CRC is wrong
    are not searched; each is a finding.
    """
    from format.scan.selected_logs import selected_bytes
    from format.verbs.dump import empty_range_words
    from format.verbs.grep import grep as verb
    from format.verbs.grep.replicas import found_in_replicas
    from kafkalog_cli.following import followed
    from kafkalog_cli.record_marks import RecordMarks

    around = wanted.around
    if around.is_wanted and (per_file.count or per_file.files_with_matches):
        raise typer.BadParameter("-A, -B and -C show records: leave out --count and --files-with-matches")
    if per_file.count and per_file.files_with_matches:
        raise typer.BadParameter("give one of --count and --files-with-matches")
    if per_file.count and wanted.rows.limit is not None:
        raise typer.BadParameter("--count counts every match: leave out --limit")
    if around.extra.names and (per_file.count or per_file.files_with_matches):
        raise typer.BadParameter("--with adds columns to rows of records: leave out --count and --files-with-matches")
    wanted.following.check(
        {
            "--count": per_file.count,
            "--files-with-matches": per_file.files_with_matches,
            "--to-offset": wanted.rows.range.to_offset,
            "--to-time": wanted.rows.range.to_time,
            "--read-committed": wanted.isolation.read_committed,
            "--output": output.output_file,
            "--remote": wanted.tiering.remote,
            "--jobs": work.sharing.jobs,
            "-A, -B, -C": around.is_wanted,
        }
    )
    pattern, paths = _pattern_and_paths(wanted, work.session)
    if wanted.everything and (wanted.in_places or (wanted.invert and not wanted.header)):
        raise typer.BadParameter("--in and --invert need something to look for, and --all looks for nothing")
    criteria = verb.Criteria(
        pattern,
        _places(wanted.in_places or [], wanted.header or []),
        wanted.isolation.of(wanted.rows.range),
        wanted.producer_id,
        wanted.producer_epoch,
        wanted.tombstones,
        wanted.invert,
    )
    targets = targets_at(map(work.session.path, paths), as_kind.kind)
    is_per_file = per_file.count or per_file.files_with_matches
    schema_of = verb.context_schema if around.is_wanted else record_schema
    schema = FILE_MATCH if is_per_file else schema_of(around.extra.names | around.values.columns)
    shown = {FILE_MATCH.type: ("topic", "partition", "record_count", "path")}
    limit = wanted.rows.limit
    with (
        Run("grep", output, judging, paths=paths, main_schema=schema, columns=shown) as run,
        wanted.tiering.joined(run, targets := run.readable(targets), guards.limits),
    ):
        for target in targets:
            _check_searchable(target)
        run.highlight(_highlight(criteria))
        marks = RecordMarks(targets, guards.limits, shows_visibility=not wanted.following.follow)
        decoding = around.values.decoding(run, targets, guards.limits)
        search = verb.Search(
            criteria, run.raw_style, guards.limits, extra_columns=around.extra.names, decoding=decoding
        )
        records = schema_of(search.columns)
        if wanted.following.follow:
            found: Iterator[Found] = followed(run, targets, lambda terms: verb.follow_grep(targets, search, terms))
            _show_records(run, found, records, limit, marks)
            return
        progress = run.progress(lambda: selected_bytes(targets, criteria.selection))
        search = replace(search, jobs=work.process_count, advance=progress.advance)
        if is_per_file:
            searched = verb.searched_logs(targets, search, first_only=per_file.files_with_matches)
            _show_files(run, searched, per_file.files_with_matches, limit)
        elif around.is_wanted:
            context = verb.Context(
                *(around.context or 0 if each is None else each for each in (around.before, around.after))
            )
            _show_records(run, verb.found_with_context(targets, search, context, limit), records, None, marks)
        elif run.shows_records:
            _show_replicas(run, found_in_replicas(targets, search), records, limit, marks)
        else:
            _show_records(run, verb.found_lines(targets, search), records, limit, marks)
        if wanted.is_only_range and Condition.NOTHING_FOUND in run.summary.conditions:
            run.say_at_end(empty_range_words(targets, criteria.selection, guards.limits))


# -- the question ----------------------------------------------------------------------------------------------


def _pattern_and_paths(wanted: WantedRecords, session: Session) -> tuple[Pattern | None, list[str]]:
    from os.path import exists

    if (wanted.hex_bytes is not None) + wanted.everything + bool(wanted.patterns) > 1:
        raise typer.BadParameter("give one of -e, --bytes and --all")
    if wanted.hex_bytes is not None or wanted.everything:
        if wanted.regex or wanted.ignore_case:
            raise typer.BadParameter("--regex and --ignore-case go with a PATTERN, not with --bytes or --all")
        paths = [check_path(session, word) for word in wanted.words]
        return None if wanted.hex_bytes is None else bytes_pattern(wanted.hex_bytes), paths
    texts, paths = wanted.patterns or wanted.words[:1], wanted.words if wanted.patterns else wanted.words[1:]
    text = texts[0]
    if not paths:
        raise typer.BadParameter(f"no PATH after the PATTERN '{printable(text)}'; to list all records, give --all")
    if not wanted.patterns and len(paths) == 1 and exists(text) and not exists(paths[0]):
        given, pattern = printable(text), printable(paths[0])
        raise typer.BadParameter(f"'{pattern}' does not exist, and '{given}' does: the PATTERN comes before the PATH")
    paths = [check_path(session, path) for path in paths]
    make = regex_pattern if wanted.regex else text_pattern
    with usage_errors(ValueError):
        return any_of([make(each, ignore_case=wanted.ignore_case) for each in texts]), paths


def _places(in_places: list[str], headers: list[str]) -> Places:
    from format.verbs.grep.record_search import Places

    is_any = "any" in in_places or not (in_places or headers)
    if headers and (is_any or "header" in in_places):
        raise typer.BadParameter("--header looks in headers of that name, --in header and --in any in all: give one")
    return Places(
        is_any or "key" in in_places,
        is_any or "value" in in_places,
        is_any or "header" in in_places,
        frozenset(name.encode("utf-8", "surrogateescape") for name in headers),
    )


def _check_searchable(target: Target) -> None:
    from format.scan.selected_logs import LOG_KINDS

    try:
        found = target.kind
    except UnreadableFile:
        return  # the search reports it
    except InputError as error:
        raise typer.BadParameter(printable(f"{target.path}: {error.message}")) from None
    if found not in LOG_KINDS:
        raise typer.BadParameter(
            printable(
                f"{target.path}: a file of the kind {found.value} holds no records; give a .log file or a directory"
            )
        )


# -- the answer ----------------------------------------------------------------------------------------------


def _show_records(run: Run, found: Iterable[Found], schema: RowSchema, limit: int | None, marks: RecordMarks) -> None:
    from format.rows.line_blocks import LineBlock
    from kafkalog_cli.record_marks import marked_schema

    shown = 0
    parts: Iterator[LineBlock | FoundRows] = run.results(found)
    for item in parts:
        left = item.row_count if limit is None else min(item.row_count, limit - shown)
        if isinstance(item, LineBlock):
            lines = item.first(left)
            run.write_raw(lines.schema, lines.lines, lines.row_count)
        elif run.shows_records:
            rows = marks.marked(islice(item.rows, left), Path(item.location.path).parent)
            run.write(marked_schema(schema), rows)
        else:
            run.write(schema, islice(item.rows, left))
        shown += left
        if shown == limit:
            break
    if not shown:
        run.condition(Condition.NOTHING_FOUND)


def _show_replicas(
    run: Run, found: Iterator[ReplicatedRecord | Finding], schema: RowSchema, limit: int | None, marks: RecordMarks
) -> None:
    """Show each record once for all of its replicas."""
    from kafkalog_cli.record_marks import marked_schema

    shown_schema = marked_schema(schema)
    is_found = False
    for item in islice(run.results(found), limit):
        is_found = True
        run.write(shown_schema, ((*item.row, marks.of(item.row, item.directories, item.differing)),))
    if not is_found:
        run.condition(Condition.NOTHING_FOUND)


def _show_files(run: Run, searched: Iterable[LogSearched | Finding], only_names: bool, limit: int | None) -> None:
    found = shown = 0
    logs = run.results(searched)
    for item in _by_partition(logs) if run.shows_records and not only_names else logs:
        found += item.record_count
        if only_names and not item.record_count:
            continue
        if only_names and run.shows_records:
            run.write_raw(FILE_MATCH, f"{printable(str(item.path))}\n".encode(), 1)
        else:
            place = item.location
            counted = None if only_names else item.record_count
            run.write(FILE_MATCH, ((str(item.path), place.topic, place.partition, place.base_offset, counted),))
        shown += 1
        if shown == limit:
            break
    if not only_names:
        run.count("found_record", found)
    if not found:
        run.condition(Condition.NOTHING_FOUND)


def _by_partition(searched: Iterable[LogSearched]) -> Iterator[LogSearched]:
    """The sum of each partition directory that has a match, in place of its log files."""
    from format.verbs.grep.grep import LogSearched

    for directory, several in groupby(searched, key=lambda each: each.path.parent):
        logs = list(several)
        count = sum(each.record_count for each in logs)
        if count:
            place = logs[0].location
            yield LogSearched(directory, Location(str(directory), place.topic, place.partition), count)


def _highlight(criteria: Criteria) -> Highlight | None:
    """The matches in a key, a value, or the value of a header; None for a search for what does not match."""
    pattern, places = criteria.pattern, criteria.places
    if pattern is None or criteria.is_inverted:
        return None
    names = {f"header {escape_bytes(name)}" for name in places.header_names}
    names |= {name for name, is_searched in (("key", places.key), ("value", places.value)) if is_searched}
    return lambda name, field: (
        pattern.spans(field) if name in names or (places.headers and name.startswith("header ")) else ()
    )
