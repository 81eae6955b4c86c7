"""report of report sets: one page from the tables that scans wrote about many brokers."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from format import columns, layout
from format.errors import UnreadableFile
from format.findings import Finding
from format.location import Location
from format.log.batch_table import BATCH_COLUMN, BatchTable, Int64Column
from format.rows.finding_rows import finding_of_row
from format.rows.record_rows import Row
from format.rows.table_set import WRITTEN_RUN, TableFile, TableSet
from format.timestamps import iso_time
from format.verbs.ls.partition_listing import PartitionListing
from format.verbs.report import filling
from format.verbs.report.survey import LARGEST, MOST_DAMAGED, BytesByOffset, ReportSurvey, SurveyedPartition
from format.verbs.report.terms import Report, ReportTerms
from format.verbs.verify.verify import Coverage
from format.wording import counted

if TYPE_CHECKING:
    import pyarrow as pa


_READ = (
    *("topic", "partition", "position", "codec", "size_bytes", "base_offset", "last_offset", "record_count", "magic"),
    *("base_timestamp", "max_timestamp", "leader_epoch", "crc_valid"),
)
#: The columns of rows that are read.
BATCH_ROWS = (
    columns.Column("path", "string", "the file"),
    *(each for each in columns.BATCH.columns if each.name in _READ),
)
#: Columns with the same name and meaning in both; a null in a row becomes -1.
_SAME = (
    *("position", "size_bytes", "base_offset", "record_count", "magic", "base_timestamp", "max_timestamp"),
    "leader_epoch",
)


def batch_tables(batch: pa.RecordBatch) -> Iterator[tuple[Location, BatchTable]]:
    """The location of each log, and its batches, from rows with the columns BATCH_ROWS."""
    if not batch.num_rows or not {column.name for column in BATCH_ROWS} <= set(batch.schema.names):
        return
    values = np.full((batch.num_rows, len(BATCH_COLUMN)), -1, np.int64)
    for name in _SAME:
        values[:, BATCH_COLUMN[name]] = _numbers(batch, name)
    values[:, BATCH_COLUMN["last_offset_delta"]] = (
        _numbers(batch, "last_offset") - values[:, BATCH_COLUMN["base_offset"]]
    )
    values[:, BATCH_COLUMN["attributes"]] = _codecs(batch)
    crc_valid = _numbers(batch, "crc_valid").astype(np.int8)
    paths = batch.column("path").dictionary_encode()
    numbers: NDArray[np.int32] = paths.indices.to_numpy(zero_copy_only=False)
    starts = np.concatenate(([0], np.flatnonzero(np.diff(numbers)) + 1, [len(numbers)])).tolist()
    for start, end in pairwise(starts):
        path = str(paths[start].as_py())
        topic, partition = batch.column("topic")[start].as_py(), batch.column("partition")[start].as_py()
        file = layout.SEGMENT_FILE.match(path.rpartition("/")[2])
        base_offset = None if file is None else int(file["base_offset"])
        yield Location(path, topic, partition, base_offset), BatchTable(values[start:end], crc_valid[start:end])


def _numbers(batch: pa.RecordBatch, name: str) -> Int64Column:
    values: Int64Column = batch.column(name).cast("int64").fill_null(-1).to_numpy(zero_copy_only=False)
    return values


def _codecs(batch: pa.RecordBatch) -> Int64Column:
    """The number of each row's codec; 0 for one that is unknown."""
    names = batch.column("codec").dictionary_encode()
    known = {name: number for number, name in enumerate(layout.CODEC_BITS_NAMES)}
    numbers = np.array([known.get(name, 0) for name in names.dictionary.to_pylist()] or [0], np.int64)
    rows: NDArray[np.int64] = names.indices.fill_null(0).to_numpy(zero_copy_only=False)
    return numbers[rows]


#: The tables that are shown unchanged, by the command that writes them.
_SHOWN: dict[str, tuple[columns.RowSchema, ...]] = {
    "ls": (columns.LOG_DIR,),
    "diff": (columns.DIVERGENCE, columns.REPLICA),
    "txns": (columns.TRANSACTION,),
    "groups": (columns.GROUP, columns.GROUP_OFFSET),
    "retention": (columns.RETENTION_TOTAL,),
    "compaction": (columns.CLEANER,),
    "metadata": (columns.BROKER, columns.TOPIC, columns.ASSIGNMENT, columns.METADATA_CHANGE),
}
#: Tables below another table of the same verb, which already has the note that the verb was not run.
_SECOND = (columns.REPLICA, columns.GROUP_OFFSET, columns.ASSIGNMENT, columns.METADATA_CHANGE)


@dataclass(slots=True)
class TableReport:
    """One report while it is made: ``findings`` yields the findings of the tables, and ``finish`` returns the report.

    Raises UnreadableFile for tables that cannot be read.
    """

    places: Sequence[Path]
    terms: ReportTerms
    kept: filling.KeptFindings = field(default_factory=filling.KeptFindings)
    _sets: list[TableSet] = field(init=False)
    _survey: ReportSurvey = field(init=False)
    _commands: set[str] = field(default_factory=set)
    _has_brokers: bool = False

    def __post_init__(self) -> None:
        self._sets = [TableSet(each) for each in self.places]
        self._survey = ReportSurvey(self.terms.limits)
        self._has_brokers = len({file.broker_id for _, file in self._files(WRITTEN_RUN)}) > 1

    def _files(self, schema: columns.RowSchema) -> Iterator[tuple[TableSet, TableFile]]:
        """The files of a table, in the order of broker ids."""
        for each in self._sets:
            for file in sorted(each.of_table(schema), key=_broker_of):
                yield each, file

    def _rows(self, schema: columns.RowSchema) -> Iterator[tuple[TableFile, Row]]:
        for tables, file in self._files(schema):
            for row in tables.rows(file, schema):
                yield file, self._placed(schema, row, file.broker_id)

    def _placed(self, schema: columns.RowSchema, row: Row, broker_id: int | None) -> Row:
        """The row with the broker id in its path, where several brokers may have directories of the same name."""
        if "path" not in schema.names:
            return row
        at = schema.names.index("path")
        return (*row[:at], self._path(row[at], broker_id), *row[at + 1 :])

    def _path(self, path: Any, broker_id: int | None) -> Any:
        return path if path is None or broker_id is None or not self._has_brokers else f"broker {broker_id}:{path}"

    # -- findings --------------------------------------------------------------------------------------------

    def findings(self) -> Iterator[Finding]:
        """The findings of ``scan verify``; for a broker without it, those of other commands."""
        for tables in self._sets:
            files = sorted(tables.of_table(columns.FINDING), key=_broker_of)
            for _, of_broker in groupby(files, key=_broker_of):
                listed = list(of_broker)
                chosen = [file for file in listed if file.command == "verify"] or listed
                seen: set[str] = set()
                for file in chosen:
                    for row in tables.rows(file, columns.FINDING):
                        try:
                            found = finding_of_row(self._placed(columns.FINDING, row, file.broker_id))
                        except (TypeError, ValueError) as error:
                            raise UnreadableFile(str(error), Location(file.path)) from error
                        if len(chosen) > 1:
                            if repr(found) in seen:
                                continue
                            seen.add(repr(found))
                        self.kept.add(found)
                        if self._has_brokers:
                            self.kept.owners[filling.directory_of(found)] = _broker_name(file.broker_id)
                        self._survey.find(found)
                        yield found

    # -- the report ------------------------------------------------------------------------------------------

    def finish(self) -> Report:
        """The report, after the findings were consumed."""
        report = Report(self.terms.now_ms, [str(each) for each in self.places])
        report.counts = Coverage().counts
        self._add_runs(report)
        for schemas in _SHOWN.values():
            differing: set[tuple[Any, Any]] = set()
            for schema in schemas:
                self._add_table(report, schema, differing)
        partitions = self._partitions()
        self._see_segments()
        has_batches = self._see_batches(partitions)
        if not has_batches:
            report.note(["records, codecs by bytes, bytes by time, offset and size: kafkalog scan ls --batches"])
        filling.add_partitions(report, self.terms.now_ms, partitions, has_records=has_batches)
        filling.add_histograms(report, self._survey)
        self._fill_counts(report, partitions)
        filling.add_findings(report, self.kept)
        report.missing[columns.DIAGNOSIS.type] = "No diagnoses: kafkalog doctor needs the directories themselves."
        report.sentences += filter(None, [self.kept.sentence()])
        return report

    def _add_runs(self, report: Report) -> None:
        """Add the runs, their counts, and their notes on what was not checked."""
        table = report.table(columns.RUN)
        counted_runs: set[tuple[str, int]] = set()
        brokers: dict[int | None, list[str]] = {}
        for file, row in self._rows(WRITTEN_RUN):
            run = dict(zip(WRITTEN_RUN.names, row, strict=True))
            table.add((*row, file.broker_id))
            command = str(run["command"])
            self._commands.add(command)
            brokers.setdefault(file.broker_id, []).append(command)
            name = f"{command} of {_broker_name(file.broker_id)}"
            if not run["complete"]:
                report.is_incomplete = True
                report.note([f"{name}, {iso_time(run['started'])}: {run['conditions'] or 'not complete'}"])
            report.note(f"{name}: {each}" for each in filter(None, str(run["not_checked"] or "").split("; ")))
            # A run about several brokers has the same row for each of them.
            if command == "verify" and (command, run["started"]) not in counted_runs:
                counted_runs.add((command, run["started"]))
                for key, count in json.loads(run["counts"] or "{}").items():
                    if key in report.counts:
                        report.counts[key] += count
        report.sentences.append(
            f"Made from the tables of {counted(table.total, 'run')} about {counted(len(brokers), 'broker')}."
        )
        for broker_id, commands in brokers.items():
            missing = [each for each in ("verify", "ls") if each not in commands]
            if missing:
                report.note([f"{_broker_name(broker_id)}: no run of kafkalog scan {' and '.join(missing)} is here"])
        self._note_missing(report)

    def _note_missing(self, report: Report) -> None:
        """Mark the tables that no run has written as missing, not empty."""
        for command, schemas in _SHOWN.items():
            if command not in self._commands:
                words = f"Not checked: no run of kafkalog scan {command} is in these tables."
                report.missing |= {each.type: "" if each in _SECOND else words for each in schemas}
                if command != "ls":
                    report.note([f"{command}: no run of kafkalog scan {command} is here"])
        report.missing[columns.BOOT_STEP.type] = "Not checked: kafkalog boot needs the directories themselves."
        report.missing[columns.TRANSACTION_TOTAL.type] = ""  # the note on the transactions themselves is enough
        report.note(["what a broker's start would do: kafkalog boot needs the directories themselves"])

    def _add_table(self, report: Report, schema: columns.RowSchema, differing: set[tuple[Any, Any]]) -> None:
        """Add the rows of a table; equal rows of several runs or replicas are added once.

        ``differing`` takes the partitions whose replicas differ, and names them for the table of replicas.
        """
        seen: set[str] = set()
        for _, row in self._rows(schema):
            values = dict(zip(schema.names, row, strict=True))
            if schema is columns.TRANSACTION and values["state"] == "committed":
                continue
            if schema is columns.GROUP_OFFSET:
                row = filling.without_metadata(row)
            table = report.table(schema)
            if len(table.rows) < table.most:
                key = repr(_without_place(schema, row))
                if key in seen:
                    continue
                seen.add(key)
            table.add(row)
            if schema is columns.TRANSACTION:
                self._survey.timeline.transaction(values)
            elif schema is columns.DIVERGENCE and values["kind"] != "identical":
                differing.add((values["topic"], values["partition"]))
            elif schema is columns.REPLICA and (values["topic"], values["partition"]) in differing:
                report.differing.add(str(values["path"]))
            elif schema is columns.METADATA_CHANGE:
                self._survey.timeline.metadata(str(values.get("path") or ""), values)

    def _partitions(self) -> list[filling.FoundPartition]:
        found: list[filling.FoundPartition] = []
        for file, row in self._rows(columns.PARTITION):
            listing = PartitionListing(**dict(zip(columns.PARTITION.names, row, strict=True)))
            seen = self._survey.partition(Path(listing.path))
            seen.by_offset = None
            found.append(filling.FoundPartition(listing, file.broker_id, seen))
        return found

    def _see_segments(self) -> None:
        """Add segments to the time line."""
        for _, row in self._rows(columns.SEGMENT):
            values = dict(zip(columns.SEGMENT.names, row, strict=True))
            base_offset, timestamp = values["segment_base_offset"], values["first_timestamp"]
            if base_offset and timestamp is not None and values["leftover"] is None:
                where = Location(values["path"], values["topic"], values["partition"], base_offset)
                self._survey.timeline.segment(where, timestamp)

    def _see_batches(self, partitions: list[filling.FoundPartition]) -> bool:
        """Add up the batches; returns whether there are any."""
        for seen, start in _by_offset(partitions):
            seen.by_offset = BytesByOffset(start)
        has_any = False
        for tables, file in self._files(columns.BATCH):
            for batch in tables.batches(file, BATCH_ROWS):
                for log, table in batch_tables(batch):
                    has_any = True
                    self._survey.add(replace(log, path=self._path(log.path, file.broker_id)), table)
        self._survey.finish()
        return has_any

    def _fill_counts(self, report: Report, partitions: list[filling.FoundPartition]) -> None:
        """Fill the counts that no run of verify has given."""
        if "verify" not in self._commands:
            listings = [each.listing for each in partitions]
            report.counts["partitions"] = len(listings)
            report.counts["segments"] = sum(each.segment_count or 0 for each in listings)
            report.counts["batches"] = sum(each.batch_count or 0 for each in listings)
            report.counts["bytes"] = sum(each.log_size_bytes or 0 for each in listings)
            report.counts["records"] = sum(each.seen.record_count for each in partitions)
        report.counts["log_dirs"] = report.table(columns.LOG_DIR).total


def _broker_of(file: TableFile) -> int:
    return -1 if file.broker_id is None else file.broker_id


def _broker_name(broker_id: int | None) -> str:
    return "a broker without an id, or several together" if broker_id is None else f"broker {broker_id}"


def _without_place(schema: columns.RowSchema, row: Row) -> Row:
    """The columns by which rows differ: replicas of a partition have the same transactions."""
    if schema is not columns.TRANSACTION:
        return row
    names = ("topic", "partition", "producer_id", "producer_epoch", "state", "first_offset", "last_offset")
    return tuple(row[schema.names.index(name)] for name in names)


def _by_offset(partitions: list[filling.FoundPartition]) -> Iterator[tuple[SurveyedPartition, int]]:
    """The partitions whose bytes are added up by offset, damaged and large ones, with their first offsets."""
    known = [each for each in partitions if each.listing.first_offset is not None]
    damaged = sorted((each for each in known if each.seen.places), key=lambda each: -len(each.seen.places))
    sound = [each for each in known if not each.seen.places]
    sound.sort(key=lambda each: -(each.listing.log_size_bytes or 0))
    for each in (*damaged[:MOST_DAMAGED], *sound[:LARGEST]):
        yield each.seen, each.listing.first_offset or 0
