"""extract as a scan of units: one process reads and writes one topic and partition."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from format.errors import OutputError
from format.findings import Finding
from format.location import Location
from format.node.target import Target
from format.rewriting.publishing.journal import FileEntry
from format.rewriting.publishing.new_file import NewFile, output_error
from format.rewriting.publishing.publication import is_as_written
from format.rows.record_rows import RowBlock
from format.scan.protocol import Driver, LogUnit
from format.verbs.dump.dump import DumpTerms, dumped_rows
from format.verbs.extract.files import ExtractedFile, RecordFile, Writes
from format.verbs.extract.terms import Extraction, ExtractSource


class ExtractUnit(msgspec.Struct, frozen=True):
    """The sources of one directory of the output."""

    directory: str
    sources: tuple[ExtractSource, ...]


class PartitionDone(msgspec.Struct, frozen=True):
    """Comes at the end of a unit; ``task`` is the name of the task's directory, ``entries`` are the files in it."""

    task: str = ""
    entries: tuple[FileEntry, ...] = ()


def extract_unit(
    unit: ExtractUnit, publication: Writes, terms: Extraction
) -> Iterator[Finding | ExtractedFile | PartitionDone]:
    """Write the records of a unit; yields files and findings, and PartitionDone. Raises OutputError."""
    files = _PartitionFiles(unit, publication, terms)
    dump_terms = DumpTerms(
        records=True, selection=terms.selection, limits=terms.limits, extra_columns=terms.extra_columns
    )
    try:
        for source in unit.sources:
            for item in dumped_rows(Target(source.path, source.kind), dump_terms, advance=terms.advance):
                if isinstance(item, Finding):
                    yield item
                else:
                    files.take(item)
                yield from files.finished()
        files.end_file()
        yield from files.finished()
    finally:
        files.discard()
    yield PartitionDone()


class ExtractScan(msgspec.Struct, frozen=True):
    """extract as a scan of units; all tasks can reach ``directory``, and write below it."""

    directory: Path
    terms: Extraction

    @property
    def walk(self) -> None:
        """None: a unit is read as a whole, by the task that writes it."""
        return

    @property
    def tasks(self) -> Path:
        """The directory with one directory for each run of a task."""
        return self.directory / "tasks.partial"

    def place(self, unit: ExtractUnit) -> Path:
        """The first source."""
        return unit.sources[0].path

    def logs(self, unit: ExtractUnit) -> tuple[LogUnit, ...]:
        """None: a unit reads its logs itself."""
        return ()

    def results(self, unit: ExtractUnit, driver: Driver[Any]) -> Iterator[Finding | ExtractedFile | PartitionDone]:
        """The files and findings of a unit, and PartitionDone with the entries of the files."""
        task = os.urandom(8).hex()
        written = _TaskFiles(self.directory, self.tasks / task)
        for item in extract_unit(unit, written, self.terms):
            yield PartitionDone(task, tuple(written.entries)) if isinstance(item, PartitionDone) else item


class _TaskFiles:
    """The files that a task writes; each is read back when it is closed."""

    def __init__(self, place: Path, directory: Path) -> None:
        if not place.is_dir():
            raise OutputError(
                "the directory is not there on this host: all executors must see it", Location(str(place))
            )
        self._directory = directory
        self.entries: list[FileEntry] = []

    def create(self, relative_path: str) -> NewFile:
        """A new file. Raises OutputError."""
        path = self.place_of(relative_path)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise output_error("cannot create", path.parent, error) from error
        return NewFile(relative_path, path, self._enter)

    def _enter(self, entry: FileEntry) -> None:
        path = self.place_of(entry.path)
        if not is_as_written(path, entry):
            raise OutputError("what was read back is not what was written", Location(str(path)))
        self.entries.append(entry)

    def place_of(self, relative_path: str) -> Path:
        """The path of a file."""
        return self._directory / relative_path


class _PartitionFiles:
    """The files of one topic and partition, one open at a time."""

    def __init__(self, unit: ExtractUnit, publication: Writes, terms: Extraction) -> None:
        self.files: list[ExtractedFile] = []
        self._unit = unit
        self._publication = publication
        self._terms = terms
        self._open: RecordFile | None = None
        self._reported = 0

    def take(self, block: RowBlock) -> None:
        """Write the records of a block."""
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
        return ExtractedFile(f"{self._unit.directory}/{name}", *self._unit.sources[0].key)

    def end_file(self) -> None:
        """Finish the open file, if there is one."""
        if self._open is not None:
            self._open.close()
            self.files.append(self._open.file)
            self._open = None

    def finished(self) -> Iterator[ExtractedFile]:
        """The files that were finished since the last call."""
        yield from self.files[self._reported :]
        self._reported = len(self.files)

    def discard(self) -> None:
        if self._open is not None:
            self._open.discard()
            self._open = None
