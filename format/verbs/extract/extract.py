"""extract: the records of logs as files that other programs read, one directory per topic and partition.

The records come from dump's scan, which runs in this process: most of the time goes into writing.

``topic=TOPIC/partition=N/part-00000.SUFFIX``, as Hive, Spark, DuckDB and Arrow name partitions. The path comes from the
names of the source's directories and never from a record.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from format.errors import InputError, KafkaLogError
from format.findings import Finding
from format.limits import DEFAULT_LIMITS, Limits
from format.location import Location
from format.node.file_location import location_of_file
from format.node.log_dir import Kind, LogDir
from format.node.partition import Partition, parse_partition_dir, read_partition
from format.node.target import Target
from format.rewriting.publishing.publication import Publication
from format.rewriting.sources import job_of
from format.rows.finding_json import finding_as_json, finding_from_json
from format.rows.record_rows import RowBlock
from format.scan.progress import Advance, no_progress
from format.scan.selected_logs import selected_bytes
from format.scan.selection import EVERYTHING, Selection
from format.value_class import value_class
from format.verbs.dump.dump import DumpTerms, dumped_rows
from format.verbs.extract.files import ExtractedFile, FileFormat, RecordFile

#: The name that Hive gives the partition of rows without a value.
NO_PARTITION = "__HIVE_DEFAULT_PARTITION__"

Key = tuple[str | None, int | None]


@dataclass(slots=True)
class Extraction:
    """The terms of one run.

    ``left_out`` lists what is left out on purpose, ``unread`` what exists but cannot be read.
    """

    file_format: FileFormat
    selection: Selection = EVERYTHING
    limits: Limits = DEFAULT_LIMITS
    records_per_file: int | None = None
    bytes_per_file: int | None = None
    advance: Advance = no_progress
    left_out: list[str] = field(default_factory=list)
    unread: list[Finding] = field(default_factory=list)


@value_class
class ExtractSource:
    """The source of one topic and partition: a partition directory, or a log file."""

    key: Key
    path: Path
    kind: Kind

    def bytes_to_read(self, selection: Selection) -> int:
        """Bytes of the logs that may hold what is selected."""
        return selected_bytes([Target(self.path, self.kind)], selection)

    @property
    def files(self) -> list[Path]:
        """The paths to read: the file, or the directory and the files of its segments."""
        if self.kind is Kind.LOG:
            return [self.path]
        return [self.path, *(file for each in self._partition.segments for file in each.files.values())]

    @property
    def _partition(self) -> Partition:
        """The partition; empty if the directory cannot be listed, which is reported when it is read."""
        try:
            return read_partition(self.path)
        except KafkaLogError:
            return Partition(self.path)


def extract_sources(paths: Sequence[Path], terms: Extraction) -> list[ExtractSource]:
    """The partitions and logs at these paths, in order; what is left out is noted in ``terms``.

    Raises InputError for a path without records, and if records would be extracted twice: a partition from two
    directories, or a file together with the directory that contains it.
    """
    found: list[ExtractSource] = []
    for path in paths:
        target = Target(path)
        kind = target.kind
        if kind is Kind.LOG_DIR:
            terms.unread += target.link_findings()
            for log_dir in target.log_dirs:
                terms.unread += log_dir.unread_findings()
                found += _sources_in(log_dir, terms)
        elif kind is Kind.PARTITION:
            partition = read_partition(path)
            found.append(ExtractSource((partition.topic, partition.number), path, kind))
        elif kind is Kind.LOG:
            location = location_of_file(path)
            found.append(ExtractSource((location.topic, location.partition), path, kind))
        else:
            raise InputError(
                "holds no records to extract: give log directories, partitions or .log files", Location(str(path))
            )
    _check_for_doubles(found)
    return found


def _sources_in(log_dir: LogDir, terms: Extraction) -> Iterator[ExtractSource]:
    for directory in log_dir.partitions:
        topic, number, mark = parse_partition_dir(directory.name) or (None, None, None)
        if mark is None:
            yield ExtractSource((topic, number), directory, Kind.PARTITION)
        else:
            terms.left_out.append(f"{directory.name}: marked {mark}; give it by itself to extract it")


def _check_for_doubles(sources: list[ExtractSource]) -> None:
    directories: dict[Key, str] = {}
    seen: set[str] = set()
    for source in sources:
        real = os.path.realpath(source.path)
        directory = os.path.dirname(real) if source.kind is Kind.LOG else real
        other = directories.setdefault(source.key, directory)
        if other != directory:
            topic, partition = source.key
            name = "files outside partition directories" if topic is None else f"{topic}-{partition}"
            raise InputError(f"{name} would come from two directories, here and {other}", Location(str(source.path)))
        if real in seen or (source.kind is Kind.LOG and directory in seen):
            raise InputError("the log is given twice", Location(str(source.path)))
        if source.kind is Kind.PARTITION and any(os.path.dirname(each) == real for each in seen):
            raise InputError("the directory is given, and a file in it too", Location(str(source.path)))
        seen.add(real)


def extract(
    sources: Sequence[ExtractSource], publication: Publication, terms: Extraction
) -> Iterator[Finding | ExtractedFile]:
    """Write the selected records into the open publication and finish it; yields files and findings.

    Records of batches with a wrong CRC are left out. Raises OutputError.
    """
    yield from terms.unread
    files: list[ExtractedFile] = []
    by_key: dict[Key, list[ExtractSource]] = {}
    for source in sources:
        by_key.setdefault(source.key, []).append(source)
    for key, of_partition in by_key.items():
        step = directory_of(key)
        if publication.is_step_finished(step):
            result = publication.step_result(step)
            yield from map(finding_from_json, result["findings"])
            made = [ExtractedFile(**values) for values in result["files"]]
            yield from made
            terms.advance(sum(each.bytes_to_read(terms.selection) for each in of_partition))
        else:
            made = yield from _extract_partition(key, of_partition, publication, terms)
        files += made
    publication.finish({"files_of_records": [each.as_json() for each in files]})


def _extract_partition(
    key: Key, sources: Sequence[ExtractSource], publication: Publication, terms: Extraction
) -> Generator[Finding | ExtractedFile, None, list[ExtractedFile]]:
    """Extract one topic and partition as one step of the publication; returns the files written."""
    work = _PartitionWork(key, publication, terms)
    asked = DumpTerms(records=True, selection=terms.selection, limits=terms.limits)
    findings: list[Finding] = []
    try:
        for source in sources:
            for item in dumped_rows(source.path, asked, kind=source.kind, advance=terms.advance):
                if isinstance(item, Finding):
                    findings.append(item)
                    yield item
                else:
                    work.take(item)
                yield from work.finished()
        work.end_file()
        yield from work.finished()
    finally:
        work.discard()
    publication.finish_step(
        directory_of(key),
        {"files": [each.as_json() for each in work.files], "findings": [finding_as_json(each) for each in findings]},
    )
    return work.files


def extract_job(paths: Sequence[Path], sources: Sequence[ExtractSource], **options: Any) -> dict[str, Any]:
    """The description of a run, for its manifest and for resuming."""
    return job_of("extract", options, paths, (file for each in sources for file in each.files))


def directory_of(key: Key) -> str:
    """The directory of a topic and partition in the output."""
    topic, partition = (NO_PARTITION if each is None else each for each in key)
    return f"topic={topic}/partition={partition}"


class _PartitionWork:
    """The files of one topic and partition, one open at a time."""

    def __init__(self, key: Key, publication: Publication, terms: Extraction) -> None:
        self.files: list[ExtractedFile] = []
        self._key = key
        self._publication = publication
        self._terms = terms
        self._open: RecordFile | None = None
        self._told = 0

    def take(self, block: RowBlock) -> None:
        for portion in self._terms.file_format.portions(block):
            self._write(portion)

    def _write(self, portion: object) -> None:
        file_format, terms = self._terms.file_format, self._terms
        rest = portion
        while len(rest):  # type: ignore[arg-type]
            if self._open is None:
                self._open = file_format.open(self._publication, self._next_file())
            part = rest
            if terms.records_per_file is not None:
                part, rest = file_format.split(rest, terms.records_per_file - self._open.file.record_count)
            else:
                rest = ()
            self._open.write(part)
            is_full = self._open.file.record_count == terms.records_per_file
            if is_full or (terms.bytes_per_file is not None and self._open.size_bytes >= terms.bytes_per_file):
                self.end_file()

    def _next_file(self) -> ExtractedFile:
        name = f"part-{len(self.files):05d}.{self._terms.file_format.suffix}"
        return ExtractedFile(f"{directory_of(self._key)}/{name}", *self._key)

    def end_file(self) -> None:
        """Finish the open file, if there is one."""
        if self._open is not None:
            self._open.close()
            self.files.append(self._open.file)
            self._open = None

    def finished(self) -> Iterator[ExtractedFile]:
        """The files that were finished since the last call."""
        yield from self.files[self._told :]
        self._told = len(self.files)

    def discard(self) -> None:
        if self._open is not None:
            self._open.discard()
            self._open = None
