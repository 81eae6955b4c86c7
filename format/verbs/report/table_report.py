"""report of report sets: one page from the tables that scans wrote about many brokers."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from format.columns import (
    ASSIGNMENT,
    BATCH,
    BOOT_STEP,
    BROKER,
    CLEANER,
    DIVERGENCE,
    FINDING,
    GROUP,
    GROUP_OFFSET,
    LOG_DIR,
    METADATA_CHANGE,
    PARTITION,
    REPLICA,
    RETENTION_TOTAL,
    RUN,
    SEGMENT,
    TOPIC,
    TRANSACTION,
    TRANSACTION_TOTAL,
    RowSchema,
)
from format.errors import UnreadableFile
from format.findings import Finding
from format.location import Location
from format.rows.finding_rows import finding_of_row
from format.rows.record_rows import Row
from format.rows.table_set import WRITTEN_RUN, TableFile, TableSet
from format.timestamps import iso_time
from format.verbs.ls.partition_listing import PartitionListing
from format.verbs.report.batch_rows import BATCH_ROWS, batch_tables
from format.verbs.report.filling import FoundPartition, add_findings, add_histograms, add_overview, add_partitions
from format.verbs.report.histograms import BytesByOffset
from format.verbs.report.kept_findings import KeptFindings, directory_of
from format.verbs.report.survey import Survey, SurveyedPartition
from format.verbs.report.table_events import TableEvents
from format.verbs.report.terms import Report, ReportTerms
from format.verbs.report.timeline import Timeline
from format.verbs.txns.txns import Transactions
from format.verbs.verify.verify import Coverage
from format.wording import counted

#: The tables that are shown unchanged, by the command that writes them.
_SHOWN: dict[str, tuple[RowSchema, ...]] = {
    "ls": (LOG_DIR,),
    "diff": (DIVERGENCE, REPLICA),
    "txns": (TRANSACTION,),
    "groups": (GROUP, GROUP_OFFSET),
    "retention": (RETENTION_TOTAL,),
    "compaction": (CLEANER,),
    "metadata": (BROKER, TOPIC, ASSIGNMENT, METADATA_CHANGE),
}
#: Tables below another table of the same verb, which already has the note that the verb was not run.
_SECOND = (REPLICA, GROUP_OFFSET, ASSIGNMENT, METADATA_CHANGE)
#: The most undamaged partitions (the largest) and damaged ones whose bytes are shown by offset.
_LARGEST, _MOST_DAMAGED = 4, 60


@dataclass(slots=True)
class TableReport:
    """One report while it is made: ``findings`` yields the findings of the tables, and ``finish`` returns the report.

    Raises UnreadableFile for tables that cannot be read.
    """

    places: Sequence[Path]
    terms: ReportTerms
    kept: KeptFindings = field(default_factory=KeptFindings)
    _sets: list[TableSet] = field(init=False)
    _survey: Survey = field(init=False)
    _events: TableEvents = field(default_factory=TableEvents)
    _commands: set[str] = field(default_factory=set)
    _has_brokers: bool = False

    def __post_init__(self) -> None:
        self._sets = [TableSet(each) for each in self.places]
        self._survey = Survey(self.terms.limits, Timeline(), Transactions(()))
        self._has_brokers = len({file.broker_id for _, file in self._files(WRITTEN_RUN)}) > 1

    def _files(self, schema: RowSchema) -> Iterator[tuple[TableSet, TableFile]]:
        """The files of a table, in the order of broker ids."""
        for each in self._sets:
            for file in sorted(
                each.of_table(schema), key=lambda file: -1 if file.broker_id is None else file.broker_id
            ):
                yield each, file

    def _rows(self, schema: RowSchema) -> Iterator[tuple[TableFile, Row]]:
        for tables, file in self._files(schema):
            for row in tables.rows(file, schema):
                yield file, self._placed(schema, row, file.broker_id)

    def _placed(self, schema: RowSchema, row: Row, broker_id: int | None) -> Row:
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
            files = sorted(tables.of_table(FINDING), key=_broker_of)
            for _, of_broker in groupby(files, key=_broker_of):
                listed = list(of_broker)
                chosen = [file for file in listed if file.command == "verify"] or listed
                seen: set[str] = set()
                for file in chosen:
                    for row in tables.rows(file, FINDING):
                        try:
                            found = finding_of_row(self._placed(FINDING, row, file.broker_id))
                        except (TypeError, ValueError) as error:
                            raise UnreadableFile(str(error), Location(file.path)) from error
                        if len(chosen) > 1:
                            if repr(found) in seen:
                                continue
                            seen.add(repr(found))
                        self.kept.add(found)
                        if self._has_brokers:
                            self.kept.owners[directory_of(found)] = _broker_name(file.broker_id)
                        self._events.find(found, self._survey.find(found))
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
        add_partitions(report, self.terms.now_ms, partitions, has_records=has_batches)
        add_histograms(report, self._survey)
        add_findings(report, self.kept)
        self._fill_counts(report, partitions)
        add_overview(report, self.kept)
        return report

    def _add_runs(self, report: Report) -> None:
        """Add the runs, their counts, and their notes on what was not checked."""
        table = report.table(RUN)
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
        report.missing[BOOT_STEP.type] = "Not checked: kafkalog boot needs the directories themselves."
        report.missing[TRANSACTION_TOTAL.type] = ""  # the note on the transactions themselves is enough
        report.note(["what a broker's start would do: kafkalog boot needs the directories themselves"])

    def _add_table(self, report: Report, schema: RowSchema, differing: set[tuple[Any, Any]]) -> None:
        """Add the rows of a table; equal rows of several runs or replicas are added once.

        ``differing`` takes the partitions whose replicas differ, and names them for the table of replicas.
        """
        seen: set[str] = set()
        for _, row in self._rows(schema):
            values = dict(zip(schema.names, row, strict=True))
            if schema is TRANSACTION and values["state"] == "committed":
                continue
            if schema is GROUP_OFFSET:  # free text of applications
                at = schema.names.index("metadata")
                row = (*row[:at], None, *row[at + 1 :])
            table = report.table(schema)
            if len(table.rows) < table.most:
                key = repr(_without_place(schema, row))
                if key in seen:
                    continue
                seen.add(key)
            table.add(row)
            if schema is TRANSACTION:
                self._note_transaction(values)
            elif schema is DIVERGENCE and values["kind"] != "identical":
                differing.add((values["topic"], values["partition"]))
            elif schema is REPLICA and (values["topic"], values["partition"]) in differing:
                report.differing.add(str(values["path"]))
            elif schema is METADATA_CHANGE:
                where = Location(str(values.get("path") or ""), "__cluster_metadata", 0, offset=values["offset"])
                words = f"{values['record_type']}: {values['subject']}"
                self._survey.timeline.metadata(where, values["timestamp"], words)

    def _note_transaction(self, values: dict[str, Any]) -> None:
        where = Location(values["path"], values["topic"], values["partition"], offset=values["first_offset"])
        name = values["transactional_id"] or f"producer {values['producer_id']}"
        is_open = values["state"] == "open"
        words = f"{name} begins a transaction that is open" if is_open else f"a transaction of {name} is aborted"
        timestamp = values["start_timestamp" if is_open else "last_timestamp"]
        self._survey.timeline.transaction(where, timestamp, words)

    def _partitions(self) -> list[FoundPartition]:
        found: list[FoundPartition] = []
        for file, row in self._rows(PARTITION):
            listing = PartitionListing(**dict(zip(PARTITION.names, row, strict=True)))
            path = Path(listing.path)
            seen = self._survey.partitions.setdefault(path, SurveyedPartition(path))
            seen.by_offset = None
            found.append((listing, file.broker_id, seen))
        return found

    def _see_segments(self) -> None:
        """Add segments to the time line."""
        for _, row in self._rows(SEGMENT):
            values = dict(zip(SEGMENT.names, row, strict=True))
            base_offset, timestamp = values["segment_base_offset"], values["first_timestamp"]
            if base_offset and timestamp is not None and values["leftover"] is None:
                where = Location(values["path"], values["topic"], values["partition"], base_offset)
                self._survey.timeline.segment(where, timestamp)

    def _see_batches(self, partitions: list[FoundPartition]) -> bool:
        """Add up the batches; returns whether there are any."""
        survey = self._survey
        for seen, start in _by_offset(partitions):
            seen.by_offset = BytesByOffset(start)
        has_any = False
        for tables, file in self._files(BATCH):
            for batch in tables.batches(file, BATCH_ROWS):
                for log, table in batch_tables(batch):
                    has_any = True
                    where = replace(log, path=self._path(log.path, file.broker_id))
                    self._events.see(where, table)
                    directory = Path(where.path).parent
                    seen = survey.partitions.setdefault(directory, SurveyedPartition(directory, by_offset=None))
                    seen.totals.add(table, None)
                    seen.record_count += int(table.record_count.clip(0).sum())
                    if seen.by_offset is not None:
                        seen.by_offset.add(table, 0)
                    survey.by_time.add(survey.topics.setdefault(log.topic or log.path, len(survey.topics)), table)
                    survey.sizes.add(table)
        self._events.finish(survey.timeline)
        return has_any

    def _fill_counts(self, report: Report, partitions: list[FoundPartition]) -> None:
        """Fill the counts that no run of verify has given."""
        if "verify" not in self._commands:
            listings = [listing for listing, _, _ in partitions]
            report.counts["partitions"] = len(listings)
            report.counts["segments"] = sum(each.segment_count or 0 for each in listings)
            report.counts["batches"] = sum(each.batch_count or 0 for each in listings)
            report.counts["bytes"] = sum(each.log_size_bytes or 0 for each in listings)
            report.counts["records"] = sum(seen.record_count for _, _, seen in partitions)
        report.counts["log_dirs"] = report.table(LOG_DIR).total
        report.counts["lost_offsets"] = self.kept.lost_offsets


def _broker_of(file: TableFile) -> int:
    return -1 if file.broker_id is None else file.broker_id


def _broker_name(broker_id: int | None) -> str:
    return "a broker without an id, or several together" if broker_id is None else f"broker {broker_id}"


def _without_place(schema: RowSchema, row: Row) -> Row:
    """The columns by which rows differ: replicas of a partition have the same transactions."""
    if schema is not TRANSACTION:
        return row
    names = ("topic", "partition", "producer_id", "producer_epoch", "state", "first_offset", "last_offset")
    return tuple(row[schema.names.index(name)] for name in names)


def _by_offset(partitions: list[FoundPartition]) -> Iterator[tuple[SurveyedPartition, int]]:
    """The partitions whose bytes are added up by offset, damaged and large ones, with their first offsets."""
    known = [(listing, seen) for listing, _, seen in partitions if listing.first_offset is not None]
    damaged = sorted((each for each in known if each[1].places), key=lambda each: -len(each[1].places))
    sound = sorted((each for each in known if not each[1].places), key=lambda each: -(each[0].log_size_bytes or 0))
    for listing, seen in (*damaged[:_MOST_DAMAGED], *sound[:_LARGEST]):
        yield seen, listing.first_offset or 0
