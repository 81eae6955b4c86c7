"""Random conditions select what the engine selects when it has the whole tables in memory: nothing is left out early.

Conditions on what may be null, and lists, are where the two may differ: SQL's null is neither in a list nor not in it.

    python -m tests.format.verbs.sql.conditions [--seed N] [--count N] [PATH]

A process that has run the engine must not fork, as its threads are not in the child: no test imports this.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterable
from random import Random

import pyarrow as pa
from datafusion import SessionConfig, SessionContext

from kafkalog import Log
from tests.corpora import DATA_DIR

COLUMNS = {
    "records": "topic partition offset timestamp key producer_id codec segment_base_offset is_below_log_start",
    "batches": "topic partition base_offset last_offset max_timestamp codec record_count producer_id crc_valid",
    "segments": "topic partition segment_base_offset last_offset size_bytes max_timestamp",
    "partitions": "topic partition log_start_offset log_end_offset segment_count",
    "index_entries": "topic partition kind offset position timestamp segment_base_offset",
    "producers": "topic partition producer_id first_offset last_offset record_count",
}


class Questions:
    """Random questions about tables, with values that are in them, near them and far away."""

    def __init__(self, tables: dict[str, pa.Table], seed: int) -> None:
        self._tables = tables
        self._random = Random(seed)

    def question(self) -> str:
        table = self._random.choice(list(self._tables))
        names = self._random.sample(self._tables[table].column_names, 3)
        asked = self._random.choice((", ".join(names), "count(*)"))
        return f"SELECT {asked} FROM {table} WHERE {self._condition(self._tables[table])}"

    def _condition(self, table: pa.Table, depth: int = 0) -> str:
        kind = self._random.random()
        if depth > 3 or kind < 0.4:
            return self._comparison(table)
        if kind > 0.9:
            return f"NOT ({self._condition(table, depth + 1)})"
        joined = "AND" if kind < 0.65 else "OR"
        return f"({self._condition(table, depth + 1)} {joined} {self._condition(table, depth + 1)})"

    def _comparison(self, table: pa.Table) -> str:
        choice = self._random.choice
        name = choice(table.column_names)
        kind = table.schema.field(name).type
        may_not = choice(("", "NOT "))
        values = [self._value(table, name) for _ in range(self._random.randint(1, 6))]
        in_list = f"{name} {may_not}IN ({', '.join(values)})"
        if len(values) > 3:
            return in_list  # the engine passes on a longer list as such
        found = [f"{name} IS {may_not}NULL", in_list]
        if pa.types.is_boolean(kind):
            return choice([*found, f"{may_not}{name}"])
        found += [f"{name} {sign} {values[0]}" for sign in ("=", "<>", "<", ">=")]
        found += [f"{values[-1]} > {name}", f"{name} {may_not}BETWEEN {values[0]} AND {values[-1]}"]
        if pa.types.is_integer(kind):
            found += [f"{name} % 3 = 1", f"-{name} < {values[0]}", f"coalesce({name}, 0) >= {values[0]}"]
        elif pa.types.is_timestamp(kind):
            found += [f"date_trunc('day', {name}) = date_trunc('day', {values[0]})", f"{name} > '2026-11-03'"]
        elif pa.types.is_string(kind):
            found += [f"{name} LIKE '%e%'", f"upper({name}) > {values[0]}", f"starts_with({name}, 'o')"]
        return choice(found)

    def _value(self, table: pa.Table, name: str) -> str:
        column = table.column(name).drop_null()
        kind = column.type
        value = column[self._random.randrange(len(column))].as_py() if len(column) else None
        if pa.types.is_integer(kind):
            near = (value or 0) + self._random.choice((0, 0, 1, -1, 10))
            return str(self._random.choice((near, near, near, -1, 2**40, 2**63 - 1)))
        if pa.types.is_timestamp(kind):
            return "TIMESTAMP '1969-12-31T23:59:59.999'" if value is None else f"TIMESTAMP '{value.isoformat()}'"
        if pa.types.is_boolean(kind):
            return self._random.choice(("true", "false"))
        if isinstance(value, bytes):
            return f"X'{value.hex()}'"
        return "'" + str(value).replace("'", "''") + "'"


def counted(batches: Iterable[pa.RecordBatch]) -> Counter[tuple[str, ...]]:
    """The rows without their order."""
    return Counter(tuple(map(repr, row.values())) for batch in batches for row in batch.to_pylist())


def tables_in_memory(log: Log) -> dict[str, pa.Table]:
    """The columns of each table, which conditions are about."""
    found = {}
    for name, columns in COLUMNS.items():
        answer = log.sql(f"SELECT {', '.join(columns.split())} FROM {name}")
        found[name] = pa.Table.from_batches(answer, schema=answer.schema)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=120)
    parser.add_argument("path", nargs="?", default=DATA_DIR / "kafka-4.3-single" / "node-1")
    options = parser.parse_args()
    log = Log(options.path)
    tables = tables_in_memory(log)
    config = SessionConfig().with_target_partitions(1).set("datafusion.sql_parser.dialect", "PostgreSQL")
    memory = SessionContext(config)
    for name, table in tables.items():
        memory.register_record_batches(name, [table.to_batches()])
    questions = Questions(tables, options.seed)
    wrong = selected = 0
    for _ in range(options.count):
        question = questions.question()
        expected = counted(memory.sql(question).collect())
        found = counted(log.sql(question))
        selected += bool(expected)
        if found != expected:
            wrong += 1
            print(f"{question}\n  {expected.total()} rows in memory, {found.total()} here")
    print(f"{options.count} questions, {selected} with rows, {wrong} wrong")
    return min(wrong, 1)


if __name__ == "__main__":
    sys.exit(main())
