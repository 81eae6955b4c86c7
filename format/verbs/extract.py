"""extract: the records of logs as files that other programs read, one directory per topic and partition.

The records come from the scan of dump, which runs in this process, since most of the time goes into writing. On a
cluster each partition is a unit, written by the task that reads it. Files are Parquet, by Arrow, or lines of text. Each
is read back.
"""

from __future__ import annotations

import contextlib
import io
import os
import shutil
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import msgspec
from msgspec.structs import asdict, replace

from format.columns import EXTRACTED_FILE, RECORD, RowSchema
from format.decoding.decoder import Decoding
from format.errors import InputError, KafkaLogError, OutputError
from format.files import meta_properties
from format.findings import Finding
from format.io.session import is_remote
from format.limits import DEFAULT_LIMITS, MIB, Limits
from format.location import Location
from format.node.log_dir import Kind, LogDir
from format.node.partition import Partition, location_of_file, parse_partition_dir, read_partition
from format.node.target import Surroundings, Target, each_once, require_one_cluster, targets_at
from format.rewriting.publication import FileEntry, NewFile, Publication, is_as_written
from format.rewriting.sources import job_of
from format.rows.finding_rows import finding_as_json, finding_from_json
from format.rows.line_blocks import LineBlock, RowText, in_lines
from format.rows.line_style import LineStyle
from format.rows.record_rows import PART_BYTES, Row, RowBlock, bounded_parts
from format.scan.cluster import Cluster, cluster_of
from format.scan.progress import Advance, no_progress
from format.scan.protocol import Driver, LogUnit, own_room
from format.scan.selected_logs import selected_bytes
from format.scan.selection import EVERYTHING, Selection
from format.verbs.dump import DumpTerms, dumped_rows

if TYPE_CHECKING:
    import pyarrow as pa


#: Columns that are not in a Parquet file, because the names of its directories hold them.
PARTITION_COLUMNS = ("topic", "partition")
_ROW_GROUP_BYTES = 32 * MIB
#: Integer columns that are stored as differences, because their values seldom repeat.
_DELTA_COLUMNS = ("offset", "timestamp", "sequence", "batch_base_offset", "position", "size_bytes")
_PLAIN_COLUMNS = (*_DELTA_COLUMNS, "value", "headers", "value_decoded")
#: The name that Hive gives the partition of rows without a value.
NO_PARTITION = "__HIVE_DEFAULT_PARTITION__"
Key = tuple[str | None, int | None]


class ExtractedFile(msgspec.Struct):
    """One row of columns.EXTRACTED_FILE, which documents the fields: a file of the output."""

    path: str
    topic: str | None
    partition: int | None
    record_count: int = 0
    size_bytes: int = 0
    first_offset: int | None = None
    last_offset: int | None = None

    def count(self, block: RowBlock) -> None:
        """Add records that were written."""
        offsets = block.record_table.offset
        self.record_count += len(offsets)
        self.first_offset = int(offsets[0]) if self.first_offset is None else self.first_offset
        self.last_offset = int(offsets[-1])

    def row(self) -> Row:
        return EXTRACTED_FILE.row_of(self)


class Writes(Protocol):
    """The place of new files: a publication, or the directory of one task."""

    def create(self, relative_path: str) -> NewFile:
        """A new file. Raises OutputError."""
        ...

    def place_of(self, relative_path: str) -> Path:
        """Where a file is now."""
        ...


# -- text ----------------------------------------------------------------------------------------------------


class LineWriter(Protocol):
    """Writes rows, or lines that are formatted already, to the file that it was opened for."""

    def write(self, schema: RowSchema, rows: Iterable[Row], /) -> None: ...

    def write_raw(self, schema: RowSchema, lines: memoryview, row_count: int, /) -> None: ...


class TextFormat(msgspec.Struct, frozen=True):
    """JSON lines or CSV; ``open_writer`` makes the writer of a file. With a style, the kernel makes the lines.

    At most about ``portion_bytes`` of records are written at once, as in Parquet.
    """

    suffix: str
    open_writer: Callable[[NewFile], LineWriter]
    style: LineStyle | None = None
    portion_bytes: int = PART_BYTES

    def open(self, publication: Writes, file: ExtractedFile) -> _TextFile:
        return _TextFile(publication, file, self)


class _TextFile:
    """An open text file. The publication reads it back when it is finished, and compares its SHA-256."""

    def __init__(self, publication: Writes, file: ExtractedFile, terms: TextFormat) -> None:
        self.file = file
        self._new = publication.create(file.path)
        self._writer = terms.open_writer(self._new)
        self._text = RowText.of(terms.style)
        self._room = own_room()

    def write(self, block: RowBlock) -> None:
        for part in in_lines((block,), self._text, self._room):
            if isinstance(part, LineBlock):
                self._writer.write_raw(part.schema, part.lines, part.row_count)
            elif isinstance(part, RowBlock):
                self._writer.write(part.schema, part.rows)
        self.file.count(block)

    @property
    def size_bytes(self) -> int:
        return self._new.size_bytes

    def close(self) -> None:
        self._new.close()
        self.file.size_bytes = self._new.size_bytes

    def discard(self) -> None:
        self._new.discard()


# -- Parquet -------------------------------------------------------------------------------------------------


class ParquetFormat(msgspec.Struct, frozen=True):
    """Parquet compressed with zstd, in row groups of about ``row_group_bytes`` before compression."""

    suffix: str = "parquet"
    row_group_bytes: int = _ROW_GROUP_BYTES
    schema: RowSchema = RECORD

    @property
    def portion_bytes(self) -> int:
        return min(PART_BYTES, self.row_group_bytes)

    def open(self, publication: Writes, file: ExtractedFile) -> _ParquetFile:
        return _ParquetFile(publication, file, self)


class _ParquetFile:
    """An open Parquet file, with a digest of its columns for the read-back."""

    def __init__(self, publication: Writes, file: ExtractedFile, terms: ParquetFormat) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        from format.rows.arrow_columns import ColumnsDigest, schema_with_times

        self.file = file
        self._place = publication.place_of(file.path)
        self._new = publication.create(file.path)
        marks = {name: str(getattr(file, name)) for name in PARTITION_COLUMNS if getattr(file, name) is not None}
        columns = [name for name in terms.schema.names if name not in PARTITION_COLUMNS]
        self._plain_schema = schema_with_times(terms.schema, columns)
        self._schema = self._plain_schema.with_metadata({f"kafkalog.{name}": value for name, value in marks.items()})
        self._sink = _Sink(self._new)
        self._writer = pq.ParquetWriter(
            pa.PythonFile(self._sink, mode="w"),
            self._schema,
            compression="zstd",
            use_dictionary=[name for name in columns if name not in _PLAIN_COLUMNS],
            column_encoding=dict.fromkeys(_DELTA_COLUMNS, "DELTA_BINARY_PACKED"),
        )
        self._digest = ColumnsDigest()
        self._row_group_bytes = terms.row_group_bytes
        self._pending: list[pa.RecordBatch] = []
        self._pending_bytes = 0

    def write(self, block: RowBlock) -> None:
        from format.rows.arrow_columns import batch_with_times, block_batches

        self.file.count(block)
        for plain in block_batches(block, self._schema.names):
            batch = batch_with_times(plain, self._plain_schema)
            self._digest.update(batch)
            self._pending.append(batch)
            self._pending_bytes += batch.nbytes
            if self._pending_bytes >= self._row_group_bytes:
                self._write_row_group()

    def _write_row_group(self) -> None:
        import pyarrow as pa

        if self._pending:
            table = pa.Table.from_batches([each.replace_schema_metadata(None) for each in self._pending])
            self._writer.write_table(table.cast(self._schema), row_group_size=len(table))
            self._pending, self._pending_bytes = [], 0

    @property
    def size_bytes(self) -> int:
        """The approximate size of the file so far."""
        return self._new.size_bytes

    def close(self) -> None:
        """Finish the file and read it back. Raises OutputError."""
        self._write_row_group()
        self._writer.close()
        self._new.close()
        self.file.size_bytes = self._new.size_bytes
        self._read_back()

    def _read_back(self) -> None:
        """Compare every value in every column with what was written; the publication compares the bytes."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        from format.rows.arrow_columns import ColumnsDigest

        found = ColumnsDigest()
        location = Location(str(self._place))
        try:
            with pq.ParquetFile(self._place) as parquet:
                for group in range(parquet.num_row_groups):
                    for batch in parquet.iter_batches(row_groups=[group]):
                        found.update(batch)
        except (pa.ArrowException, OSError) as error:
            raise OutputError(f"what was written cannot be read back: {error}", location) from error
        if found != self._digest:
            raise OutputError("what was read back is not what was written", location)

    def discard(self) -> None:
        self._sink.is_discarded = True
        self._writer.close()
        self._new.discard()


FileFormat = TextFormat | ParquetFormat
RecordFile = _TextFile | _ParquetFile


class _Sink(io.RawIOBase):
    """A NewFile as a Python file for Arrow."""

    is_discarded = False  # if so, ignore what Arrow writes when it closes the file

    def __init__(self, new: NewFile) -> None:
        super().__init__()
        self._new = new

    def writable(self) -> bool:
        return True

    def write(self, content: Any) -> int:
        if self.is_discarded:
            return len(bytes(content))
        return self._new.write(bytes(content))  # Arrow may reuse its buffer


class Extraction(msgspec.Struct):
    """The options of one run.

    ``left_out`` lists what is left out on purpose, ``unread`` has findings about what cannot be read. ``surroundings``
    are shared by all sources: a log directory is listed once, and not for each of its partitions.
    """

    file_format: FileFormat
    selection: Selection = EVERYTHING
    limits: Limits = DEFAULT_LIMITS
    records_per_file: int | None = None
    bytes_per_file: int | None = None
    extra_columns: frozenset[str] = frozenset()
    advance: Advance = no_progress
    decoding: Decoding | None = None
    left_out: list[str] = msgspec.field(default_factory=list)
    unread: list[Finding] = msgspec.field(default_factory=list)
    surroundings: Surroundings = msgspec.field(default_factory=Surroundings)


class ExtractSource(msgspec.Struct, frozen=True):
    """The source of one topic and partition: a partition directory, or a log file."""

    key: Key
    path: Path
    kind: Kind
    broker_id: int | None = None  # None where the records of all brokers go to one directory

    @property
    def directory(self) -> str:
        """The directory of the records in the output."""
        topic, partition = (NO_PARTITION if each is None else each for each in self.key)
        broker = "" if self.broker_id is None else f"broker_id={self.broker_id}/"
        return f"{broker}topic={topic}/partition={partition}"

    def target(self, terms: Extraction) -> Target:
        """The source as a path of a command."""
        return Target(self.path, self.kind, terms.surroundings)

    def bytes_to_read(self, terms: Extraction) -> int:
        """Bytes of the logs that may have selected records."""
        return selected_bytes([self.target(terms)], terms.selection)

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
    dump_terms = DumpTerms(
        True, terms.selection, terms.limits, extra_columns=terms.extra_columns, decoding=terms.decoding
    )
    file_format, number = terms.file_format, 0
    opened: RecordFile | None = None
    try:
        for source in unit.sources:
            for block in dumped_rows(source.target(terms), dump_terms, advance=terms.advance):
                if isinstance(block, Finding):
                    yield block
                    continue
                for part in bounded_parts(block.record_table, file_format.portion_bytes):
                    first = 0
                    while first < len(part):
                        if opened is None:
                            path = f"{unit.directory}/part-{number:05d}.{file_format.suffix}"
                            opened = file_format.open(publication, ExtractedFile(path, *unit.sources[0].key))
                            number += 1
                        file, end = opened.file, len(part)
                        if terms.records_per_file is not None:
                            end = min(end, first + terms.records_per_file - file.record_count)
                        opened.write(block.of_records(part.rows(slice(first, end))))
                        first = end
                        is_full = terms.bytes_per_file is not None and opened.size_bytes >= terms.bytes_per_file
                        if is_full or file.record_count == terms.records_per_file:
                            opened.close()
                            opened = None
                            yield file
        if opened is not None:
            opened.close()
            file, opened = opened.file, None
            yield file
    finally:
        if opened is not None:
            opened.discard()
    yield PartitionDone()


class ExtractScan(msgspec.Struct, frozen=True):
    """extract as a scan of units; all tasks can reach ``directory``, and write below it."""

    walk: ClassVar[None] = None  # a unit is read as a whole, by the task that writes it

    directory: Path
    terms: Extraction

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
        return NewFile(relative_path, self.place_of(relative_path), self._enter)

    def _enter(self, entry: FileEntry) -> None:
        path = self.place_of(entry.path)
        if not is_as_written(path, entry):
            raise OutputError("what was read back is not what was written", Location(str(path)))
        self.entries.append(entry)

    def place_of(self, relative_path: str) -> Path:
        return self._directory / relative_path


def extract_sources(paths: Sequence[Path], terms: Extraction) -> list[ExtractSource]:
    """The partitions and logs at these paths, in order; left out and unread ones are noted in ``terms``.

    Raises InputError for a path without records, for paths of two clusters, and if a partition would come from two
    directories.
    """
    found: list[ExtractSource] = []
    targets = each_once(targets_at(paths))
    require_one_cluster(targets)
    for target in targets:
        path, kind = target.path, target.kind
        if kind is Kind.LOG_DIR:
            terms.unread += target.link_findings()
            for log_dir in target.log_dirs:
                terms.unread += log_dir.unread_findings()
                found += _sources_in(log_dir, terms)
        elif kind is Kind.PARTITION:
            found.append(ExtractSource((target.partition.topic, target.partition.number), path, kind))
        elif kind is Kind.LOG:
            location = location_of_file(path)
            found.append(ExtractSource((location.topic, location.partition), path, kind))
        else:
            raise InputError(
                "holds no records to extract: give log directories, partitions or .log files", Location(str(path))
            )
    found = _by_broker(found)
    _require_one_directory_each(found)
    return found


def _sources_in(log_dir: LogDir, terms: Extraction) -> Iterator[ExtractSource]:
    broker_id = meta_properties.node_id_in(log_dir.meta_properties)
    for directory in log_dir.partitions:
        topic, number, mark = parse_partition_dir(directory.name) or (None, None, None)
        if mark is None:
            yield ExtractSource((topic, number), directory, Kind.PARTITION, broker_id)
        else:
            terms.left_out.append(f"{directory.name}: marked {mark}; give it by itself to extract it")


def _by_broker(sources: list[ExtractSource]) -> list[ExtractSource]:
    """The sources; each broker gets a directory of its own if several brokers have the same partition."""
    brokers: dict[Key, set[int]] = {}
    for source in sources:
        if source.broker_id is not None:
            brokers.setdefault(source.key, set()).add(source.broker_id)
    if all(len(each) < 2 for each in brokers.values()):
        return [replace(each, broker_id=None) for each in sources]
    return sources


def _require_one_directory_each(sources: list[ExtractSource]) -> None:
    directories: dict[str, str] = {}
    for source in sources:
        real = str(source.path) if is_remote(source.path) else os.path.realpath(source.path)
        directory = os.path.dirname(real) if source.kind is Kind.LOG else real
        other = directories.setdefault(source.directory, directory)
        if other != directory:
            topic, partition = source.key
            name = "files outside partition directories" if topic is None else f"{topic}-{partition}"
            raise InputError(f"{name} would come from two directories, here and {other}", Location(str(source.path)))


def extract(
    sources: Sequence[ExtractSource], publication: Publication, terms: Extraction
) -> Iterator[Finding | ExtractedFile]:
    """Write the selected records into the open publication and finish it; yields files and findings.

    Records of batches with a wrong CRC are left out. Raises OutputError.
    """
    yield from terms.unread
    by_directory: dict[str, list[ExtractSource]] = {}
    for source in sources:
        by_directory.setdefault(source.directory, []).append(source)
    units = [ExtractUnit(directory, tuple(each)) for directory, each in by_directory.items()]
    files: list[ExtractedFile] = []
    cluster = cluster_of(sources[0].path) if sources else None
    left = [each for each in units if not publication.is_step_finished(each.directory)]
    made = (item for unit in left for item in extract_unit(unit, publication, terms))
    if cluster is not None:
        made = _on(cluster, left, publication, terms)
    with contextlib.closing(made):  # the cluster's directory is removed before the output is published
        for unit in units:
            if publication.is_step_finished(unit.directory):
                result = publication.step_result(unit.directory)
                yield from map(finding_from_json, result["findings"])
                done = [ExtractedFile(**values) for values in result["files"]]
                yield from done
                files += done
                terms.advance(sum(each.bytes_to_read(terms) for each in unit.sources))
                continue
            findings: list[Finding] = []
            for item in made:
                if isinstance(item, PartitionDone):
                    break
                if isinstance(item, Finding):
                    findings.append(item)
                else:
                    files.append(item)
                yield item
            publication.finish_step(
                unit.directory,
                {
                    "files": [asdict(each) for each in files if each.path.startswith(f"{unit.directory}/")],
                    "findings": [finding_as_json(each) for each in findings],
                },
            )
    publication.finish({"files_of_records": [asdict(each) for each in files]})


def _on(
    cluster: Cluster, units: Sequence[ExtractUnit], publication: Publication, terms: Extraction
) -> Generator[Finding | ExtractedFile | PartitionDone, None, None]:
    """Extract partitions on a cluster: its tasks write to directories of their own, from which files are moved."""
    sent = replace(terms, advance=no_progress, left_out=[], unread=[])  # without what stays here
    scan = ExtractScan(publication.path.absolute(), sent)
    try:
        for item in cluster.results(scan, units, terms.advance):
            if isinstance(item, PartitionDone):
                publication.move_in(scan.tasks / item.task, item.entries)
            yield item
    finally:
        shutil.rmtree(scan.tasks, ignore_errors=True)


def extract_job(paths: Sequence[Path], sources: Sequence[ExtractSource], **options: Any) -> dict[str, Any]:
    """The description of a run, for its manifest and for resuming."""
    return job_of("extract", options, paths, (file for each in sources for file in each.files))
