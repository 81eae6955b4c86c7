"""The engine: DataFusion over the tables, which it asks for columns and rows by Arrow's interface of data sets.

DataFusion passes the columns that a query needs and the conditions on them to the data set, which reads no others. It
asks for no order, but there is one partition, whose batches come in log order whichever threads read them, so that
rows do where nothing sorts them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from datafusion import DataFrame, RuntimeEnvBuilder, SessionConfig, SessionContext, SQLOptions, udf

from format.errors import BadQuery
from format.findings import Finding
from format.limits import MIB
from format.location import Location
from format.rows.arrow_columns import batch_with_times, block_batches, rows_batch, schema_with_times
from format.verbs.sql.functions import json_values, sizes, texts
from format.verbs.sql.narrowing import Narrowing
from format.verbs.sql.statements import Statement, check_sampling, error_of
from format.verbs.sql.tables import TABLES, Table, TableScan, TableSources

__all__ = ["Database", "Notes", "QueryAnswer", "TableSources"]

#: The memory of the engine for sorting, grouping and joining; what needs more goes to temporary files.
DEFAULT_MEMORY_BYTES = 192 * MIB
#: The rows read and the bytes selected up to which the batches of a table grow. Between two batches the engine's groups
#: leave the processor's cache, so few are faster; the first ones are small, as a limit may need no more.
_MOST_ROWS, _MOST_BYTES = 256 * 1024, 8 * MIB
#: More rows than there are.
_EVERY_ROW = 2**63 - 1
#: What is said where a condition cannot be passed on: FALSE AND another one, as of conditions that contradict each
#: other, and a comparison that Arrow does not have, as of lists.
_NOT_PASSED_ON = ("'pyarrow.lib.BooleanScalar' and 'pyarrow._compute.Expression'", "has no kernel matching input types")
_READ_ONLY = SQLOptions().with_allow_ddl(False).with_allow_dml(False).with_allow_statements(False)


class Notes:
    """Where the readers of tables report: to ``on_finding`` each finding once, to ``on_unchecked`` what was not
    checked.

    Both are called in a thread of the engine; of a finding with whether it is a row already. ``error`` is what ended
    the reading, as the engine passes on only its words.
    """

    def __init__(self, on_finding: Callable[[Finding, bool], object], on_unchecked: Callable[[str], object]) -> None:
        self._on_finding, self._on_unchecked = on_finding, on_unchecked
        self.begin()

    def begin(self) -> None:
        """Forget what is known, for another reading."""
        self.error: BaseException | None = None
        self._known: set[tuple[str, Location]] = set()
        self._unchecked: set[str] = set()

    def found(self, finding: Finding, *, is_row: bool = False) -> None:
        """Report a finding, unless it is known."""
        if (finding.code, finding.location) not in self._known:
            self._known.add((finding.code, finding.location))
            self._on_finding(finding, is_row)

    def not_checked(self, words: str) -> None:
        """Report what was not checked, once."""
        if words not in self._unchecked:
            self._unchecked.add(words)
            self._on_unchecked(words)


class _Dataset(ds.Dataset):  # type: ignore[misc]
    """A table as the engine sees it: a data set with one fragment, which is the table itself."""

    def __init__(self, table: Table, sources: TableSources, notes: Notes) -> None:
        self._table, self._sources, self._notes = table, sources, notes
        self._schema = schema_with_times(table.schema)

    @property
    def schema(self) -> pa.Schema:
        return self._schema

    def get_fragments(self, filter: pc.Expression | None = None) -> Iterator[_Dataset]:
        yield self

    def scanner(
        self,
        schema: pa.Schema | None = None,
        columns: Sequence[str] | None = None,
        filter: pc.Expression | None = None,
        batch_size: int | None = None,
    ) -> _Scanner:
        if isinstance(filter, pa.Scalar):  # of conditions that contradict each other
            filter = pc.scalar(filter)
        if filter is not None:
            self._schema.empty_table().filter(filter)  # raises where Arrow does not have a comparison
        return _Scanner(self, self._schema.names if columns is None else list(columns), filter)

    def read(self, names: list[str], condition: pc.Expression | None) -> Iterator[pa.RecordBatch]:
        """These columns of the rows that a condition selects."""
        notes = self._notes
        try:
            narrowing = Narrowing(self._schema, condition)
            needed = narrowing.columns | set(names)
            made = [name for name in self._schema.names if name in needed]
            scan = TableScan(
                self._sources,
                frozenset(needed),
                narrowing,
                notes.not_checked,
                lambda found: notes.found(found, is_row=True),
                partial(block_batches, columns=made),
            )
            schema = pa.schema([self._schema.field(name) for name in made])

            def made_batches() -> Iterator[pa.RecordBatch]:
                for item in self._table.read(scan):
                    if isinstance(item, Finding):
                        notes.found(item)
                    else:
                        batch = rows_batch(self._table.schema, item) if isinstance(item, list) else item
                        yield batch.select(made)

            yield from _joined(
                made_batches(), lambda batch: narrowing.select(batch_with_times(batch, schema)).select(names)
            )
        except GeneratorExit:
            raise
        except BaseException as error:
            notes.error = error
            raise


class _Scanner:
    """One reading of a table, which begins when the first batch is asked for."""

    def __init__(self, dataset: _Dataset, names: list[str], condition: pc.Expression | None) -> None:
        self.projected_schema = pa.schema([dataset.schema.field(name) for name in names])
        self.to_batches = partial(dataset.read, names, condition)


def _joined(
    batches: Iterable[pa.RecordBatch], select: Callable[[pa.RecordBatch], pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """What is selected, in batches that grow, each to the rows of all read before it, up to a size; none is empty."""
    parts: list[pa.RecordBatch] = []
    read = size_bytes = before = 0
    for batch in batches:
        selected = select(batch)
        parts += [selected] if selected.num_rows else []
        read, size_bytes = read + batch.num_rows, size_bytes + selected.nbytes
        if parts and (read >= min(before, _MOST_ROWS) or size_bytes >= _MOST_BYTES):
            yield parts[0] if len(parts) == 1 else pa.concat_batches(parts)
            parts, read, size_bytes, before = [], 0, 0, before + read
    if parts:
        yield pa.concat_batches(parts)


class Database:
    """The tables over some sources, which SQL can ask for and cannot change."""

    def __init__(self, sources: TableSources, notes: Notes, memory_bytes: int = DEFAULT_MEMORY_BYTES) -> None:
        self.notes = notes
        config = SessionConfig().with_target_partitions(1).set("datafusion.execution.time_zone", "UTC")
        config.set("datafusion.sql_parser.dialect", "postgresql")  # in which offset is a name wherever it stands
        self.context = SessionContext(config, RuntimeEnvBuilder().with_fair_spill_pool(memory_bytes))
        for name, table in TABLES.items():
            self.context.register_dataset(name, _Dataset(table, sources, notes))
        self._register("json_value", json_values, [pa.string(), pa.string()], pa.string())
        self._register("text", texts, [pa.binary()], pa.string())
        self._register("size", sizes, [pa.binary()], pa.int64())

    def read_whole(self) -> None:
        """Keep all conditions in the engine from now on: below a limit, a table gets none of them."""
        for name in TABLES:
            whole = self.context.table(name).limit(_EVERY_ROW)
            self.context.deregister_table(name)
            self.context.register_view(name, whole)

    def _register(
        self, name: str, function: Callable[..., pa.Array], kinds: list[pa.DataType], returned: pa.DataType
    ) -> None:
        def call(*arrays: pa.Array) -> pa.Array:
            try:
                return function(*arrays)
            except BadQuery as error:
                self.notes.error = error
                raise

        self.context.register_udf(udf(call, kinds, returned, "immutable", name))

    def query(self, statement: Statement) -> QueryAnswer:
        """The answer to a statement, of which nothing is read yet. Raises BadQuery."""
        check_sampling(statement)
        try:
            frame = self.context.sql_with_options(statement.text, _READ_ONLY)
            # That a column is never null is what the plan says; its batches need not say it.
            schema = pa.schema([each.with_nullable(True) for each in frame.schema()])
        except Exception as error:
            raise error_of(error, statement) from None
        repeated = [name for name, count in Counter(schema.names).items() if count > 1]
        if repeated:
            raise BadQuery(f"two columns of the answer are called {repeated[0]}: give one another name with AS")
        return QueryAnswer(self, statement, frame, schema)


class QueryAnswer(msgspec.Struct, frozen=True):
    """The answer to a statement; each pass over its batches reads the sources anew."""

    database: Database
    statement: Statement
    frame: DataFrame
    schema: pa.Schema

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rows. Raises BadQuery, LimitExceeded, and what the readers of tables raise."""
        notes = self.database.notes
        try:
            for batch in self._stream():
                yield batch.to_pyarrow().cast(self.schema)
        except Exception as error:
            if notes.error is not None:
                raise notes.error from None
            raise error_of(error, self.statement) from None

    def _stream(self) -> Any:
        try:
            return self.frame.execute_stream()
        except Exception as error:
            if not any(words in str(error) for words in _NOT_PASSED_ON):
                raise
        self.database.read_whole()
        return self.database.query(self.statement).frame.execute_stream()
