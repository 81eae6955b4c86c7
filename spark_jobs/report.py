"""A report set: the rows and findings of commands as Parquet tables, in a directory for each table and broker.

``OUTPUT/findings/broker_id=1/verify.parquet``: copy report sets of several brokers into one directory to merge them.
A command that runs again on a broker replaces all its earlier tables of that broker; a table may become empty.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from operator import eq
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from format.columns import FINDING, RowSchema
from format.errors import KafkaLogError, OutputError, OutputExists, OutputInsideSource
from format.io.file_writer import check_apart
from format.io.session import RemotePath, entries_of, is_remote
from format.io.source import os_reason
from format.location import Location
from format.rows.arrow_columns import rows_batch
from format.rows.table_set import WRITTEN_RUN, directory_of, files_below, is_table_set, store_of_tables, table_name
from format.version import VERSION
from spark_jobs.planning import Brokers

_ROWS_IN_A_BATCH = 10_000
#: The condition of a run while its tables are moved into place.
UNFINISHED = "the tables were not all written: run the command again"


class ReportTables:
    """The tables of one run. ``finish`` moves them into place."""

    def __init__(
        self, output: Path, command: str, brokers: Brokers, place: Path, write_batches: Callable[[], None] | None
    ) -> None:
        self._write_batches = write_batches
        self._output = output
        self._command = command
        self._brokers = brokers
        self._place = place
        self._started_ms = time.time_ns() // 1_000_000
        self._tables: dict[tuple[str, int | None], _Table] = {}

    def add(self, schema: RowSchema, row: tuple[Any, ...]) -> None:
        """Add a row that the command writes to the table of its type."""
        at = schema.names.index("path") if "path" in schema.names else None
        self._table(schema, self._brokers.of_path(None if at is None else row[at])).add(row)

    def _table(self, schema: RowSchema, broker_id: int | None) -> _Table:
        key = (table_name(schema), broker_id)
        if key not in self._tables:
            self._tables[key] = _Table(schema, self._place / f"{len(self._tables)}.parquet")
        return self._tables[key]

    def finish(self, summary: Mapping[str, Any]) -> None:
        """Move the tables into place, replacing those of the command's last run. Raises OutputError.

        ``summary`` is that of the run, as JSON lines show it, for the table ``runs``.
        A listing without the table of batches removes the one of an earlier listing.
        """
        if self._write_batches is not None:
            self._write_batches()
        finished_ms = time.time_ns() // 1_000_000
        conditions, not_checked = ", ".join(summary["conditions"]), "; ".join(summary["not_checked"])
        words = conditions, not_checked, json.dumps(summary["counts"])
        for broker_id in self._brokers.ids:
            self._table(FINDING, broker_id)
            run = self._run(finished_ms, summary["exit_code"], summary["complete"], *words)
            self._table(WRITTEN_RUN, broker_id).add(run)
        try:
            for table in self._tables.values():
                table.close()
            self._put_all()
        except (OSError, pa.ArrowException) as error:
            reason = os_reason(error) if isinstance(error, OSError) else str(error)
            raise OutputError(f"cannot write the tables: {reason}", Location(str(self._output))) from error
        finally:
            self.discard()

    def _run(self, finished_ms: int, exit_code: int | None, is_complete: bool, *words: str) -> tuple[Any, ...]:
        """The row of this run; ``words`` are its conditions, what was not checked, and the counts."""
        return (self._command, VERSION, self._started_ms, finished_ms, exit_code, is_complete, *words)

    def _put_all(self) -> None:
        """Move the tables into place.

        No file system replaces several files at once. So the table of runs is written twice: first with a run that is
        not complete, for a reader who sees old and new tables together, and last with the run as it ended.
        """
        runs = table_name(WRITTEN_RUN)
        for broker_id in self._brokers.ids:
            begun = _Table(WRITTEN_RUN, self._place / f"begun-{len(self._tables)}.parquet")
            begun.add(self._run(self._started_ms, None, False, UNFINISHED, "", "{}"))
            begun.close()
            self._put(begun.path, runs, broker_id)
        self._empty_others()
        if self._command == "ls" and self._write_batches is None:
            self._remove_batches()
        for (name, broker_id), table in sorted(self._tables.items(), key=lambda each: each[0][0] == runs):
            self._put(table.path, name, broker_id)

    def _empty_others(self) -> None:
        """Empty the tables of earlier runs for which this run has no rows."""
        store, root = store_of_tables(self._output)
        for path in files_below(store, root):
            parts = path[len(root) :].strip("/").split("/")
            if len(parts) != 3 or parts[2] != f"{self._command}.parquet":
                continue
            for broker_id in self._brokers.ids:
                if parts[1] == directory_of(broker_id) and (parts[0], broker_id) not in self._tables:
                    with store.open_input_file(path) as file:
                        schema = pq.read_schema(file)
                    empty = self._place / f"empty-{parts[0]}-{directory_of(broker_id)}.parquet"
                    pq.write_table(schema.empty_table(), empty, compression="zstd")
                    self._put(empty, parts[0], broker_id)

    def _remove_batches(self) -> None:
        """Remove the batches of these brokers, which are of an earlier run than the segments."""
        store, root = store_of_tables(self._output)
        directories = [f"{root}/batches/{directory_of(broker_id)}/" for broker_id in self._brokers.ids]
        for path in files_below(store, f"{root}/batches"):
            if path.startswith(tuple(directories)):
                store.delete_file(path)

    def _put(self, made: Path, name: str, broker_id: int | None) -> None:
        target = f"{name}/{directory_of(broker_id)}/{self._command}.parquet"
        if isinstance(self._output, RemotePath):
            self._output.session.stores.upload(made, f"{self._output}/{target}")
            return
        store, root = store_of_tables(self._output)
        store.create_dir(f"{root}/{name}/{directory_of(broker_id)}", recursive=True)
        os.replace(made, f"{root}/{target}")

    def discard(self) -> None:
        """Remove tables that were not moved into place."""
        shutil.rmtree(self._place, ignore_errors=True)
        if not is_remote(self._output):
            with suppress(OSError):
                os.rmdir(self._output)  # fails unless it is empty


class _Table:
    """A Parquet file of rows that is being written."""

    def __init__(self, schema: RowSchema, path: Path) -> None:
        self.path = path
        self._schema = schema
        self._rows: list[tuple[Any, ...]] = []
        self._writer: pq.ParquetWriter | None = None

    def add(self, row: tuple[Any, ...]) -> None:
        self._rows.append(row)
        if len(self._rows) >= _ROWS_IN_A_BATCH:
            self._flush()

    def _flush(self) -> None:
        batch = rows_batch(self._schema, [_plain(self._schema, row) for row in self._rows])
        if self._writer is None:
            self._writer = pq.ParquetWriter(self.path, batch.schema, compression="zstd")
        if self._rows:
            self._writer.write_batch(batch)
        self._rows = []

    def close(self) -> None:
        self._flush()
        if self._writer is not None:
            self._writer.close()


def _plain(schema: RowSchema, row: tuple[Any, ...]) -> tuple[Any, ...]:
    """A row whose columns of bytes hold bytes: a decoded key or value becomes JSON."""
    return tuple(
        json.dumps(value, default=str).encode()
        if column.type == "bytes" and not isinstance(value, (bytes, bytearray, memoryview, type(None)))
        else value
        for column, value in zip(schema.columns, row, strict=True)
    )


def open_report(
    output: Path,
    command: str,
    paths: Sequence[Path],
    broker_id: int | None = None,
    write_batches: Callable[[], None] | None = None,
) -> ReportTables:
    """A report of a command about some paths. ``write_batches`` writes the table of all batches, None for none.

    Raises OutputInsideSource, OutputExists and OutputError.
    """
    check_output(output, paths)
    check_set(output)
    try:
        if is_remote(output):
            place = Path(tempfile.mkdtemp(prefix="kafkalog-report-"))
        else:
            os.makedirs(output, exist_ok=True)
            place = Path(tempfile.mkdtemp(prefix=".kafkalog-", dir=output))
    except OSError as error:
        raise OutputError(f"cannot create: {os_reason(error)}", Location(str(output))) from error
    return ReportTables(output, command, Brokers.of(paths, broker_id), place, write_batches)


def check_set(output: Path) -> None:
    """Raise OutputExists where the output directory holds anything else than a report set."""
    try:
        with entries_of(output) as entries:
            names = [each.name for each in entries if not each.name.startswith(".")]
    except (OSError, KafkaLogError):
        return  # there is no directory, or writing to it reports the error
    if names and not is_table_set(output):
        raise OutputExists(
            f"the directory holds {names[0]} and no tables of earlier runs: give a new directory, or a report set",
            Location(str(output)),
        )


def check_output(output: Path, sources: Sequence[Path]) -> None:
    """Raise OutputInsideSource where the output is, is inside, or contains one of the sources."""
    if is_remote(output):
        for source in filter(is_remote, sources):
            if all(map(eq, _key(output), _key(source))):  # as far as both go
                message = f"the output would lie in or around the source {source}, where nothing is written"
                raise OutputInsideSource(message, Location(str(output)))
        return
    check_apart(output, sources)


def _key(path: Path) -> tuple[str, ...]:
    """The parts of a remote path, with one name for s3, s3a and s3n."""
    return (path.parts[0].lower().replace("s3a:", "s3:").replace("s3n:", "s3:"), *path.parts[1:])
