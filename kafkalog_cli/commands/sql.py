"""kafkalog sql: questions in SQL over the logs, their side files, and what the verbs find."""

from __future__ import annotations

import io
import sys
import time
from collections import deque
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from format.columns import TABLE_COLUMN
from format.errors import BadQuery
from format.findings import Finding
from format.io.session import Session
from format.node.target import clusters_of, targets_at
from kafkalog_cli.failures import needing
from kafkalog_cli.options.groups import option
from kafkalog_cli.options.output import Format, Judging, Output
from kafkalog_cli.options.parsers import SIZE
from kafkalog_cli.options.reading import check_paths
from kafkalog_cli.options.values import ValueOptions
from kafkalog_cli.options.work import Guards, Pacing
from kafkalog_cli.output import OutputStream, open_output
from kafkalog_cli.render.formats import READABLE
from kafkalog_cli.render.text import printable
from kafkalog_cli.runner import Run, say_published

if TYPE_CHECKING:
    from format.verbs.sql.query import QueryAnswer

EXAMPLES = (
    ("kafkalog sql 'SELECT topic, count(*) FROM records GROUP BY topic' /var/kafka", "the records of each topic"),
    (
        "kafkalog sql 'SELECT * FROM records WHERE offset BETWEEN 10 AND 12' /var/kafka/orders-0",
        "a range of offsets; nothing else is read",
    ),
    ("kafkalog sql @questions.sql --format jsonl /var/kafka", "statements from a file"),
    ("kafkalog sql 'SELECT * FROM batches' --output batches.parquet /var/kafka", "the answer as a Parquet file"),
    ("kafkalog sql --tables", "the tables and their columns"),
)
#: Findings that the readers of tables met and that are not written yet, each with whether it is a row already.
Found = deque[tuple[Finding, bool]]
_PARQUET = ".parquet"
#: Rows of several answers have several columns; these formats hold one table.
_OF_ONE_TABLE = "csv"


def _check_words(context: typer.Context, words: list[str] | None) -> list[str] | None:
    """The statements, and the paths that exist. Raises a usage error."""
    return words and [words[0], *(check_paths(context, words[1:]) or ())]


class Question(msgspec.Struct, frozen=True):
    """The statements, and the paths that they are about."""

    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="SQL PATH...",
            help="One or more SELECT statements with ; between them, @FILE to read them from a file, or - for standard "
            "input; then log directories, partition directories, or single logs; also addresses.",
            callback=_check_words,
            show_default=False,
        ),
    ] = None
    tables: Annotated[bool, option("Show the tables and their columns.")] = False
    memory: Annotated[
        int | None,
        option(
            "Memory of the engine for groups, sorting and joins; what needs more goes to temporary files.",
            show_default="192MiB",
            **SIZE,
        ),
    ] = None
    session: Session = msgspec.field(default_factory=Session)

    @property
    def paths(self) -> list[str]:
        return list(self.words or ())[1:]

    def text(self) -> str:
        """The statements. Raises a usage error for a file that cannot be read."""
        given = (self.words or [""])[0]
        if given != "-" and not given.startswith("@"):
            return given
        try:
            return sys.stdin.read() if given == "-" else Path(given[1:]).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "not UTF-8"
            raise typer.BadParameter(printable(f"{given}: cannot be read: {reason}")) from None


class AnswerOutput(Output, frozen=True):
    """The answers on standard output or in a new file. All their columns are shown, as the question chose them."""

    format_name: Format = None
    file: Annotated[
        str | None,
        option(
            "Write to a new file instead of standard output; one that ends in .parquet is Parquet.",
            "--output",
            metavar="FILE",
        ),
    ] = None

    @property
    def is_parquet(self) -> bool:
        return self.file is not None and self.file.lower().endswith(_PARQUET)

    @property
    def output_file(self) -> str | None:
        return None if self.is_parquet else self.file

    @property
    def chosen_columns(self) -> tuple[str, ...] | None:
        return ("all",) if self.format_name in (None, *READABLE) else None


def sql(
    question: Question, output: AnswerOutput, judging: Judging, values: ValueOptions, guards: Guards, pacing: Pacing
) -> None:
    """Answer questions in SQL over records, batches, segments, indexes, findings, transactions, groups and metadata.

    Conditions on topic, partition, offset and timestamp read only what can match, and only the columns that are asked
    for are decoded. value_decoded and key_decoded are JSON. Nothing can be changed: there is only SELECT. Damage that
    is met is a finding. It needs DataFusion: pip install 'kafkalog[sql]'.
    """
    if question.tables:
        _show_tables(output, judging)
        return
    if len(question.words or ()) < 2:
        raise typer.BadParameter("give the statement and at least one PATH, or --tables")
    text = question.text()
    with needing("sql needs DataFusion", "sql"):
        from format.verbs.sql.query import DEFAULT_MEMORY_BYTES, Database, Notes, TableSources
        from format.verbs.sql.statements import statements_of

    with Run("sql", output, judging, paths=question.paths) as run:
        statements = statements_of(text)
        if not statements:
            raise BadQuery("there is no statement")
        if len(statements) > 1 and (output.is_parquet or run.format_name == _OF_ONE_TABLE):
            kind = "a Parquet file" if output.is_parquet else "CSV"
            raise BadQuery(f"{kind} has one table, and there are {len(statements)} statements")
        targets = tuple(run.readable(targets_at(map(pacing.session.path, question.paths))))
        clusters = clusters_of(targets, guards.limits)
        if len(clusters) > 1:
            (one, first), (other, second) = clusters[:2]
            words = f"{first} is of the cluster {one} and {second} of {other}: topics with one name are two there, and"
            run.say_now(printable(f"{words} the column path tells their rows apart"))
        advance = run.progress_of_logs(targets)
        decoding = cache(lambda: values.by_options(targets, guards.limits))
        if values.is_asked:
            decoding()  # what is wrong with the options is said before anything is read
        sources = TableSources(targets, time.time_ns() // 1_000_000, decoding, guards.limits, advance)
        found: Found = deque()
        notes = Notes(lambda *item: found.append(item), run.not_checked)
        database = Database(sources, notes, question.memory or DEFAULT_MEMORY_BYTES)
        answers = [database.query(each) for each in statements]
        for answer in answers:
            if output.is_parquet:
                _write_parquet(run, found, answer, str(output.file), question.paths)
            else:
                _show(run, found, answer)


def _show(run: Run, found: Found, answer: QueryAnswer) -> None:
    from format.rows.arrow_columns import row_schema_of, rows_of_batch

    schema = row_schema_of("row", answer.schema)
    if run.format_name == "jsonl" and "type" in schema.names:
        raise BadQuery("a column called type has no place in JSON lines: give it another name with AS")
    run.write(schema, ())
    for number, batch in enumerate(answer.batches()):
        if number == 0:
            run.flush()  # the time before the first row does not count as waiting for the others
        run.write(schema, rows_of_batch(batch))
        _take_findings(run, found)
    _take_findings(run, found)


def _take_findings(run: Run, found: Found) -> None:
    while found:
        each, is_row = found.popleft()
        if is_row:
            run.judge(each)
        else:
            run.finding(each)


class _Sink(io.RawIOBase):
    """What Arrow writes a file to."""

    def __init__(self, output: OutputStream) -> None:
        self._output = output

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        view = memoryview(data)
        self._output.write(view)
        return view.nbytes


def _write_parquet(run: Run, found: Found, answer: QueryAnswer, path: str, sources: list[str]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    output = open_output(path, sources)
    try:
        sink = pa.PythonFile(_Sink(output), mode="w")
        try:
            file = pq.ParquetWriter(sink, answer.schema, compression="zstd")
        except pa.ArrowNotImplementedError as error:
            raise BadQuery(f"a column has no form in Parquet: {error}") from None
        with file as writer:
            for batch in answer.batches():
                writer.write_batch(batch)
                run.count("row", batch.num_rows)
                _take_findings(run, found)
        _take_findings(run, found)
        output.publish()
    finally:
        output.discard()
    say_published(run, path)


def _show_tables(output: AnswerOutput, judging: Judging) -> None:
    from format.verbs.sql.tables import SQL_TYPES, TABLES

    with Run("sql", output, judging, main_schema=TABLE_COLUMN) as run:
        for name, table in TABLES.items():
            rows = [(name, each.name, SQL_TYPES[each.type], each.meaning) for each in table.schema.columns]
            run.write(TABLE_COLUMN, rows)
