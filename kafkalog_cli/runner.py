"""One run of a command: its output, its findings and errors, its exit code, and its summary."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeVar

import typer

from format.columns import FINDING, WRITTEN_SEGMENT, RowSchema
from format.errors import InputError, KafkaLogError, UnreadableFile
from format.findings import FINDING_CODES, Finding, Severity, finding_of
from format.rows.finding_rows import finding_row
from kafkalog_cli.exit_codes import ROWS_ABOUT, SILENT, Condition, Summary, conditions_of, counted
from kafkalog_cli.failures import UsageError, condition_of, report, say
from kafkalog_cli.options.output import FailCondition, Judging, Output
from kafkalog_cli.output import open_output
from kafkalog_cli.progress import Progress, open_progress
from kafkalog_cli.render.formats import READABLE, open_renderer
from kafkalog_cli.render.lines import LINE_STYLES
from kafkalog_cli.render.records import Highlight
from kafkalog_cli.render.table import TableColumns, TableRenderer
from kafkalog_cli.render.text import printable

if TYPE_CHECKING:
    from format.node.target import Target
    from format.rewriting.publication import Publication
    from format.rewriting.rewriter import WrittenSegment
    from format.rows.line_style import LineStyle
    from format.verbs.report.terms import Report


class TableWriter(Protocol):
    """Takes the rows of a run, and publishes them at its end."""

    def add(self, schema: RowSchema, row: tuple[Any, ...]) -> None: ...

    def finish(self, summary: Mapping[str, Any]) -> None:
        """Publish, with a summary as JSON lines show it; raises OutputError."""
        ...

    def discard(self) -> None:
        """Remove what was not published."""
        ...


ItemT = TypeVar("ItemT")

_MOST_REPEATED_LINES = 6
#: The most rows of one type that say nothing odd and are shown where people read them, if there may be very many.
_MOST_ALIKE = 100
_LOST_BYTES = WRITTEN_SEGMENT.names.index("lost_bytes")


class Run:
    """The context in which the body of every command runs.

    It receives rows, findings and counts. On exit it writes the summary and raises ``typer.Exit`` with the exit code.
    Usage errors pass through; any other error becomes a message on standard error and a condition.
    """

    def __init__(
        self,
        command: str,
        output: Output,
        judging: Judging,
        *,
        paths: Sequence[str] = (),
        main_schema: RowSchema | None = None,
        columns: TableColumns | None = None,
        shows_summary: bool = False,
    ) -> None:
        """Open the output; raises what ``open_output`` raises, and a usage error for columns of what is no table.

        ``paths`` are the sources, inside which no output may lie. ``shows_summary``: the summary is a result, and in
        tables, text and logfmt is written with the rows.
        """
        self.summary = Summary(command)
        self.left_out: list[str] = []  # paths that ``readable`` left out
        self._session = output.session
        self._judging = judging
        self._fail_on, self._fail_conditions = judging.fail_on, judging.conditions
        self._is_quiet = output.quiet
        self._shows_summary = shows_summary
        if output.chosen_columns is not None and output.format_name not in (None, *READABLE):
            message = f"only table and text have chosen columns; {output.format_name} has all"
            raise typer.BadParameter(message, param_hint="--columns")
        self._output = open_output(output.output_file, paths)
        self.format_name = output.format_name or ("table" if self._output.is_terminal else "text")
        self._renderer = open_renderer(
            self.format_name,
            self._output,
            main_schema=main_schema,
            table_columns=columns or {},
            chosen_columns=output.chosen_columns,
            fail_on=judging.fail_on,
            aside=self._say_aside,
        )
        self._has_chosen_columns = output.chosen_columns is not None
        self._progress = Progress()
        self._is_paged = False  # whether rows went to a program on the terminal of standard error
        self._last_words: list[str] = []
        self._has_summary_in_words = False
        self._says_unread = True  # the next sentence of the answer
        self._alike: dict[str, int] = {}  # by row type the rows that ``few`` may leave out
        self._held: list[tuple[RowSchema, list[tuple[Any, ...]]]] | None = None
        self._conclusions: list[tuple[str, int, int]] = []  # each with the lines on the terminal before it, and its own
        open_tables = output.session.open_tables
        self._tables: TableWriter | None = None if open_tables is None else open_tables(command, paths)
        if shows_summary or main_schema is FINDING:
            self.summary.findings.update({severity.label: 0 for severity in Severity})

    # -- what a command calls --------------------------------------------------------------------------------

    def write(
        self,
        schema: RowSchema,
        rows: Iterable[tuple[Any, ...]],
        *,
        only: Callable[[tuple[Any, ...]], bool] | None = None,
    ) -> None:
        """Write rows, tuples in the order of the schema's columns; a generator is streamed.

        ``only`` chooses the rows that are shown where people read them. The others are counted.
        """
        kept = self._counted(schema, rows, only if self.is_readable else None)
        if self._held is not None:
            if not self._held or self._held[-1][0] != schema:
                self._held.append((schema, []))
            self._held[-1][1].extend(kept)
            return
        self._make_room()
        self._renderer.write(schema, kept)

    def few(self, schema: RowSchema, is_odd: Callable[[tuple[Any, ...]], bool]) -> Callable[[tuple[Any, ...]], bool]:
        """The ``only`` of ``write`` for rows of which there may be very many: the first ones, and all odd ones.

        The end of the run says how many are not listed.
        """

        def is_shown(row: tuple[Any, ...]) -> bool:
            if is_odd(row):
                return True
            known = self._alike[schema.type] = self._alike.get(schema.type, 0) + 1
            return known <= _MOST_ALIKE

        return is_shown

    def _counted(
        self, schema: RowSchema, rows: Iterable[tuple[Any, ...]], only: Callable[[tuple[Any, ...]], bool] | None
    ) -> Iterator[tuple[Any, ...]]:
        """The rows to show. Each is counted, and held against the conditions of --fail-on."""
        conditions = [each for each in self._fail_conditions if each.row_type == schema.type]
        number = 0
        try:
            for row in rows:
                number += 1
                if conditions:
                    self._judge_row(conditions, dict(zip(schema.names, row, strict=True)))
                if self._tables is not None:
                    self._tables.add(schema, row)
                if only is None or only(row):
                    yield row
                del row  # frees a long row before the next one is made
        finally:
            self.summary.count(schema.type, number)

    def _judge_row(self, conditions: list[FailCondition], values: Mapping[str, Any]) -> None:
        """Add a condition where a row meets one of --fail-on, or leaves it open."""
        for each in conditions:
            if each.is_met_by(values):
                self.condition(Condition.FAIL_ON_MET)
            elif each.is_unknown(values):
                self.condition(Condition.INCOMPLETE)

    @property
    def width(self) -> int | None:
        """The width of the terminal on which the rows are read; None where they go elsewhere."""
        return self._output.width

    @property
    def is_readable(self) -> bool:
        """Whether the rows are for people: in a table or in text."""
        return self.format_name in READABLE and self._tables is None

    @property
    def shows_records(self) -> bool:
        """Whether rows of records are for people, who also read their marks."""
        return self.is_readable and not self._has_chosen_columns and self._tables is None

    def highlight(self, matches: Highlight | None) -> None:
        """Mark these parts of keys, values and headers in records on a terminal."""
        if isinstance(self._renderer, TableRenderer):
            self._renderer.highlight(matches)

    @property
    def raw_style(self) -> LineStyle | None:
        """The style of lines for ``write_raw``, which is faster; None if rows go through a renderer, as with tables."""
        is_raw = self._tables is None and (self.format_name != "logfmt" or self._output.is_utf8)
        return LINE_STYLES.get(self.format_name) if is_raw else None

    def write_raw(self, schema: RowSchema, lines: bytes | memoryview, row_count: int) -> None:
        """Write whole lines, each with its LF, equal to what ``write`` would make of ``row_count`` rows."""
        self._make_room()
        self._renderer.write_raw(schema, lines, row_count)
        self.summary.count(schema.type, row_count)

    def finding(self, finding: Finding) -> None:
        """Write one finding as a row, count it, and add its conditions."""
        self.write(FINDING, (finding_row(finding),))
        self.judge(finding)

    def judge(self, finding: Finding) -> None:
        """Count a finding and add its conditions, without a row for it."""
        summary = self.summary
        summary.findings[finding.severity.label] = summary.findings.get(finding.severity.label, 0) + 1
        conditions = conditions_of(finding, self._fail_on)
        summary.conditions |= conditions
        if Condition.DAMAGE in conditions:
            summary.damaged_at(finding.location)
        if any(each.code == finding.code for each in self._fail_conditions):
            self.condition(Condition.FAIL_ON_MET)
        if finding.is_incomplete:
            summary.unchecked_codes[finding.code] = summary.unchecked_codes.get(finding.code, 0) + 1

    def judge_report(self, made: Report) -> None:
        """Add the conditions of a report's diagnoses, after those of its findings."""
        for found in made.later_findings:
            self.judge(found)
        for each in made.diagnoses:
            if self._judging.is_met_by_diagnosis(each.code):
                self.condition(Condition.FAIL_ON_MET)
            if each.question == "diff":
                if not self._judging.is_on("diverged"):
                    self.condition(Condition.DIFFERENCE_FOUND)
            elif each.severity >= self._fail_on:
                self.condition(Condition.DAMAGE)
        if made.is_incomplete:
            self.condition(Condition.INCOMPLETE)

    def findings(self, findings: Iterable[Finding]) -> None:
        """Write each finding as it arrives."""
        for each in findings:
            self.finding(each)

    def results(self, items: Iterable[ItemT | Finding]) -> Iterator[ItemT]:
        """The items that are no findings, as they arrive; findings among them are written."""
        for each in items:
            if isinstance(each, Finding):
                self.finding(each)
            else:
                yield each

    def results_of_each(
        self, targets: Sequence[Target], of_target: Callable[[Target], Iterable[ItemT | Finding]]
    ) -> Iterator[ItemT]:
        """The results for one target after another; the run continues without a target that gives an input error.

        Raises the last InputError where every target gives one: a command that read nothing has no answer.
        """
        left = len(targets)
        for target in targets:
            try:
                yield from self.results(of_target(target))
            except InputError as error:
                left -= 1
                if not left:
                    raise
                self._leave_out(str(target.path), error)

    def readable(self, targets: Sequence[Target], *, once: bool = True) -> list[Target]:
        """The targets without those whose directory this user or this machine cannot list, which are left out.

        With ``once``, none is read twice. Raises the error where no directory can be listed. Tasks of a cluster list
        what they read themselves.
        """
        from format.node.target import each_once

        if self._session.cluster is not None:
            return list({str(each.path): each for each in targets}.values())
        left: list[Target] = []
        unreadable: list[tuple[Target, UnreadableFile]] = []
        for each in targets:
            try:
                _ = each.kind
            except UnreadableFile as error:
                unreadable.append((each, error))
                continue
            except InputError:
                pass  # raised again where the target is read
            left.append(each)
        for each, refused in unreadable:
            if not left:
                raise refused
            self._leave_out(str(each.path), refused)
            self.left_out.append(printable(str(each.path)))
        return each_once(left) if once else left

    def condition(self, condition: Condition) -> None:
        """Add a condition that determines the exit code, such as NOTHING_FOUND."""
        self.summary.conditions.add(condition)

    def not_checked(self, *words: str) -> None:
        """Add to the list of what was not checked, such as a deeper level; does not change the exit code."""
        self.summary.not_checked.extend(words)

    @contextmanager
    def leaving_out(self, path: str) -> Iterator[None]:
        """The context of the work on one path. An input error in it is reported, and the run continues without it."""
        try:
            yield
        except InputError as error:
            self._leave_out(path, error)

    def _leave_out(self, path: str, error: InputError) -> None:
        report(error)
        self.condition(condition_of(error))
        self.not_checked(path)

    def count(self, name: str, number: int = 1) -> None:
        """Add to a counter of the summary. Rows are counted without it."""
        self.summary.count(name, number)

    def counts(self, counts: Mapping[str, int]) -> None:
        """Add to several counters."""
        for name, number in counts.items():
            self.count(name, number)

    def hold(self) -> None:
        """Hold back rows and findings until ``conclude`` is called, where people read them."""
        if self.is_readable:
            self._held = []

    def conclude(self, *sentences: str, replaces_summary: bool = False) -> None:
        """Print sentences of the answer, and then the rows that were held back for it; empty sentences are left out.

        In a table and in text they stand with the rows, else on standard error as a note. ``replaces_summary``: no
        summary follows, as they say the same. The first ones also say how many paths the answer lacks.
        """
        self._has_summary_in_words |= replaces_summary
        words = "\n".join(filter(None, sentences))
        unread = self.summary.unchecked_codes.get("file-unreadable", 0)
        if words and unread and self._says_unread and not replaces_summary:
            self._says_unread = False
            answer, *others = words.split("\n")
            words = "\n".join((f"{answer} Not read: {counted(unread, 'path')}.", *others))
        if words and self.is_readable and isinstance(self._renderer, TableRenderer):
            self._make_room()
            line_count = self._output.line_count
            self._renderer.say(words)
            self._conclusions.append((words, line_count, self._output.line_count - line_count))
        elif words:
            self.say_now(words)
        self._release()

    def _release(self) -> None:
        held, self._held = self._held or (), None
        for schema, rows in held:
            self._make_room()
            self._renderer.write(schema, iter(rows))

    def say_now(self, words: str) -> None:
        """Print a note on standard error now, after the rows so far; not in a quiet run."""
        if not self._is_quiet:
            if self.is_readable:
                self.flush()
            self._say_aside(words)

    def say_at_end(self, words: str) -> None:
        """Print a line on standard error after the last row; not in a quiet run, nor after a usage error.

        Empty ``words`` print nothing.
        """
        if words:
            self._last_words.append(words)

    def progress(self, total_bytes: int | Callable[[], int] | None = None) -> Progress:
        """The progress of the whole run, in bytes; call ``advance`` on it. Silent without a terminal, and in a pipe
        to a program on the terminal, such as a pager, from the first row on.

        ``total_bytes`` may be a function; it is called only if progress is shown, and not where tasks of a cluster
        list what is in a store, as this process would list all of it.
        """
        if callable(total_bytes) and self._session.cluster is not None and self._session.reads_addresses:
            total_bytes = None
        self._progress.close()
        self._progress = open_progress(
            self.summary.command, total_bytes, is_wanted=not self._is_quiet and not self._is_paged
        )
        return self._progress

    def progress_of_logs(self, targets: Sequence[Target]) -> Callable[[int], None]:
        """The function that advances the progress of reading all logs at some targets."""
        from format.scan.selected_logs import selected_bytes
        from format.scan.selection import EVERYTHING

        return self.progress(lambda: selected_bytes(targets, EVERYTHING)).advance

    def flush(self) -> None:
        """Show everything that was written so far, for a run that waits for more."""
        self._renderer.flush()
        self._output.flush()

    # -- the end -----------------------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self._progress.close()
        if isinstance(error, (UsageError, typer.Exit, typer.Abort)):
            self._discard()
            return
        if error is not None:
            self._end_with(error)
        if not self.summary.conditions.intersection(SILENT):
            try:
                self._finish(error)
            except BaseException as failure:
                self._end_with(failure)
        self._discard()
        raise typer.Exit(int(self.summary.exit_code)) from None

    def _discard(self) -> None:
        self._output.discard()
        if self._tables is not None:
            self._tables.discard()

    def _end_with(self, error: BaseException) -> None:
        report(error)
        if isinstance(error, KafkaLogError) and error.code in FINDING_CODES:
            self.summary.conditions |= conditions_of(finding_of(error), self._fail_on) | {Condition.INCOMPLETE}
            self.summary.not_checked.append(f"everything after this error: {error}")
        else:
            self.summary.conditions.add(condition_of(error))

    def _finish(self, error: BaseException | None) -> None:
        self._count_traffic()
        self._release()
        if self.format_name == "jsonl" and isinstance(error, KafkaLogError) and error.code in FINDING_CODES:
            self.finding(finding_of(error))  # in the other formats it is the message on standard error
        if self._tables is not None and error is None:
            self._tables.finish(self.summary.as_row())
        for name, count in self._alike.items():
            if count > _MOST_ALIKE:
                left = counted(count - _MOST_ALIKE, ROWS_ABOUT.get(name, name))
                self.conclude(f"Not listed: {left} (--format jsonl has all).")
        if self._output.is_terminal:
            self._repeat_what_has_scrolled_off()
        self._renderer.finish(self.summary, self._shows_summary)
        if Condition.BUG in self.summary.conditions:
            self._output.flush()  # show the rows so far, but publish no file
        else:
            self._output.publish()
        if self._is_quiet:
            return
        for words in () if self.summary.is_usage_error else self._last_words:
            say(words)
        if self.format_name == "jsonl":
            return
        if self._shows_summary and self.format_name in (*READABLE, "logfmt"):
            return
        if self.summary.is_usage_error or (self._has_summary_in_words and error is None):
            return  # the message of the error was printed
        if self.summary.is_remarkable or (self.format_name == "table" and self._output.is_terminal):
            say(self.summary.paragraph())

    def _repeat_what_has_scrolled_off(self) -> None:
        """Write a short conclusion above long tables again, as a terminal shows the end of its output."""
        self._renderer.flush()
        if self._conclusions:
            words, before, own = self._conclusions[0]
            if self._output.line_count - before >= get_terminal_size().lines and own <= _MOST_REPEATED_LINES:
                self.conclude(words)

    def _count_traffic(self) -> None:
        """Count the bytes that this process read from stores. What a cluster's tasks read is not counted."""
        if self._session.reads_addresses and self._session.cluster is None:
            self.count("fetched_bytes", self._session.fetched_bytes)

    def _make_room(self) -> None:
        if self._output.is_terminal:
            self._progress.hide()
        elif self._output.width is not None:
            self._is_paged = True
            self._progress.close()

    def _say_aside(self, line: str) -> None:
        self._progress.hide()
        say(line)


def show_written(run: Run, items: Iterable[Finding | WrittenSegment], *, counts_written: bool = True) -> None:
    """Write a row for each segment and finding as it arrives, and add up the counts of the summary.

    ``written_bytes`` is the sum of the logs; with ``counts_written`` False the caller counts it in another way.
    """
    for item in run.results(items):
        run.write(WRITTEN_SEGMENT, (item.row(),), only=run.few(WRITTEN_SEGMENT, lambda row: bool(row[_LOST_BYTES])))
        run.count("batches", item.batch_count)
        run.count("source_bytes", item.source_bytes)
        if counts_written:
            run.count("written_bytes", item.size_bytes)
        if item.lost_bytes:
            run.count("lost_bytes", item.lost_bytes)


def show_resumed(run: Run, publication: Publication, resume: bool) -> None:
    """With --resume, count the finished files that are reused, and print a line if there is no run to continue."""
    if not resume:
        return
    run.count("resumed_files", len(publication.files))
    if not publication.is_resumed:
        run.say_now("--resume: there is no unfinished run of the same command beside the output: starting a new one")


def say_published(run: Run, target: object) -> None:
    """Print the path of the result on standard error, after all rows."""
    run.say_at_end(f"published: {printable(str(target))}")
