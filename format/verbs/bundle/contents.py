"""What a bundle holds of its sources: the list of files, how much of each is kept, and the batch headers of logs."""

from __future__ import annotations

import hashlib
import io
import os
import stat
import tarfile
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import IO, Any

import msgspec
import numpy as np
from msgspec.structs import asdict
from numpy.typing import NDArray

from format import layout
from format.errors import KafkaLogError, OutputError
from format.files import time_index
from format.io.bundles import schemas
from format.io.session import absolute, entries_of, is_there
from format.io.source import FileSource, os_reason
from format.limits import Limits
from format.location import Location
from format.log.batch_chunk import BatchRange, HeaderChunk
from format.log.batch_table import HeaderTable
from format.log.control_records import control_batch_content
from format.log.read_records import record_tables
from format.log.walker import batch_chunks, header_chunks
from format.node.log_dir import Kind, kind_of_file
from format.node.partition import is_temporary, location_of_file, parse_partition_dir
from format.node.target import Target
from format.verbs.bundle.secrets import Names


class SourceFile(msgspec.Struct, frozen=True):
    """A file or directory of a source that was not read yet; ``error`` is why a directory cannot be listed."""

    path: Path
    type: schemas.FileType
    status: os.stat_result
    kept: schemas.Kept | None = None
    error: str | None = None


class InnerPaths:
    """The paths of files in a bundle: relative as the sources were given, or absolute without the first slash.

    Absolute paths are used where a relative one leads up, or two would be equal. With ``names``, sources and log
    directories get numbers, and the names below them are replaced.
    """

    def __init__(self, targets: Sequence[Target], names: Names | None = None) -> None:
        self._names = names
        self._roots: list[tuple[Path, str]] = []
        if names is not None:
            self._roots = _numbered(targets)
            return
        relative = {_top(target): _as_given(_given_top(target)) for target in targets}
        is_plain = all(relative.values()) and len(set(relative.values())) == len(relative)
        for top, inner in relative.items():
            self._roots.append((top, inner if inner and is_plain else _as_given(top) or ""))
        self._roots.sort(key=lambda root: -len(root[0].parts))

    def of(self, path: Path) -> str:
        """The path of a file at or below a source. Bytes that are not UTF-8 are escaped, as Parquet takes none."""
        return self._of(absolute(path)).encode("utf-8", "backslashreplace").decode("utf-8")

    def _of(self, place: Path) -> str:
        for top, inner in self._roots:
            if place.parts[: len(top.parts)] == top.parts:
                below = place.parts[len(top.parts) :]
                if self._names is not None:
                    below = tuple(self._names.file(name) for name in below)
                return "/".join((inner, *below))
        return _as_given(place) or ""


def _numbered(targets: Sequence[Target]) -> list[tuple[Path, str]]:
    """The sources and the log directories below them with their numbered names, the deepest first."""
    roots: dict[Path, str] = {}
    for number, target in enumerate(targets, 1):
        source = roots.setdefault(_top(target), f"source-{number}")
        for count, log_dir in enumerate(target.log_dirs, 1):
            roots.setdefault(absolute(log_dir.path), f"{source}/log-dir-{count}")
    return sorted(roots.items(), key=lambda root: -len(root[0].parts))


def _top(target: Target) -> Path:
    """The directory with which paths of a source begin: for a partition its log directory."""
    place = absolute(target.path)
    return place if target.kind is Kind.LOG_DIR else place.parent


def _given_top(target: Target) -> Path:
    return target.path if target.kind is Kind.LOG_DIR else target.path.parent


def _as_given(path: Path) -> str | None:
    """A path without leading slashes and colons; None if it is empty or leads up."""
    parts = [part.strip("/").removesuffix(":") for part in path.parts]
    parts = [part for part in parts if part]
    return None if not parts or ".." in parts else "/".join(parts)


def source_files(target: Target) -> Iterator[SourceFile]:
    """All files at and below a target in order; for a partition also the own files of its log directory."""
    if target.kind is not Kind.LOG_DIR:
        yield from _around(absolute(target.path).parent)
    yield from _walk(absolute(target.path))


def _around(directory: Path) -> Iterator[SourceFile]:
    """The files that verbs read around a partition: checkpoints, and the metadata log."""
    for found in _listed(directory):
        name = found.path.name
        if found.path == directory or name in layout.LOG_DIR_FILES:
            yield found
        elif found.type != schemas.DIRECTORY:
            continue
        elif name == layout.REMOTE_INDEX_CACHE:
            yield found
        elif name == layout.METADATA_PARTITION:
            yield from _walk(found.path)


def _walk(top: Path) -> Iterator[SourceFile]:
    waiting = [top]
    while waiting:
        directory = waiting.pop()
        below = []
        for found in _listed(directory):
            if found.type == schemas.DIRECTORY and found.path != directory:
                below.append(found.path)
            else:
                yield found
        waiting += reversed(below)


def _listed(directory: Path) -> Iterator[SourceFile]:
    """A directory, and then its entries by name."""
    try:
        status = directory.lstat()
    except OSError:
        return  # a live broker deleted it
    try:
        with entries_of(directory) as entries:
            found = sorted(entries, key=lambda entry: entry.name)
    except OSError as error:
        yield SourceFile(directory, schemas.DIRECTORY, status, error=os_reason(error))
        return
    yield SourceFile(directory, schemas.DIRECTORY, status)
    for entry in found:
        path = directory / entry.name
        try:
            status = entry.stat(follow_symlinks=False)
        except OSError:
            continue  # a live broker deleted it
        kind = _type_of(path, status)
        yield SourceFile(path, kind, status, kept_of(path) if kind == schemas.FILE else None)


def _type_of(path: Path, status: os.stat_result) -> schemas.FileType:
    if stat.S_ISREG(status.st_mode):
        return schemas.FILE
    if stat.S_ISDIR(status.st_mode):
        return schemas.DIRECTORY
    if stat.S_ISLNK(status.st_mode):
        return schemas.LINK_TO_DIRECTORY if os.path.isdir(path) else schemas.LINK
    return schemas.OTHER


def kept_of(path: Path) -> schemas.Kept | None:
    """How much of a file is kept, from its name and the directory's."""
    name, parent = path.name, path.parent.name
    parsed = parse_partition_dir(parent)
    is_internal = parsed is not None and parsed[0] in schemas.WHOLE_TOPICS
    if is_temporary(name) or name in layout.LOG_DIR_FILES:
        return schemas.KEPT_WHOLE
    kind = kind_of_file(name)
    if kind is None:
        return None
    if kind is Kind.KRAFT_SNAPSHOT:
        return schemas.KEPT_WHOLE if is_internal and layout.KRAFT_SNAPSHOT_FILE.match(name) else None
    segment = layout.SEGMENT_FILE.match(name)
    if kind is Kind.LOG:
        if segment is None:
            return None
        return schemas.KEPT_WHOLE if is_internal else schemas.KEPT_HEADERS
    has_suffix = kind in (Kind.OFFSET_INDEX, Kind.TIME_INDEX, Kind.TRANSACTION_INDEX, Kind.PRODUCER_SNAPSHOT)
    if has_suffix and segment is None and parent != layout.REMOTE_INDEX_CACHE:
        return None
    return schemas.KEPT_WHOLE


def kept_without_names(each: SourceFile) -> schemas.Kept | None:
    """How much of a file is kept where names are redacted: nothing that may have names in it."""
    parsed = parse_partition_dir(each.path.parent.name)
    is_internal = parsed is not None and parsed[0] in schemas.WHOLE_TOPICS
    name = each.path.name
    if each.kept is None or name == layout.BOOTSTRAP_CHECKPOINT or is_temporary(name):
        return None
    if is_internal and kind_of_file(name) is Kind.LOG:
        return schemas.KEPT_HEADERS
    return None if is_internal and kind_of_file(name) is Kind.KRAFT_SNAPSHOT else each.kept


_ROW_GROUP = 64 * 1024
#: The most records of an outline; batches of brokers have some thousands.
_MOST_OUTLINED = 1024 * 1024
_COMPRESSION = {"compression": "zstd", "compression_level": 3}


#: The zstd level. It is fixed, so that the same content gives the same bytes.
_LEVEL = 9
Write = Callable[[bytes], object]


class NewMember(io.RawIOBase):
    """A member of the archive while it is written; a binary stream."""

    def __init__(self, name: str, file: IO[bytes]) -> None:
        self.name = name
        self.size_bytes = 0
        self._file = file
        self._start = file.tell()
        self._digest = hashlib.sha256()

    def writable(self) -> bool:
        return True

    def write(self, content: Any, /) -> int:
        """Add bytes. Raises OutputError where they cannot be stored."""
        piece = memoryview(content).cast("B")
        self._digest.update(piece)
        try:
            self._file.write(piece)
        except OSError as error:
            raise OutputError(
                f"cannot write a temporary file: {error.strerror}", Location(tempfile.gettempdir())
            ) from error
        self.size_bytes += len(piece)
        return len(piece)

    @property
    def sha256(self) -> str:
        return self._digest.hexdigest()

    def copy_to(self, archive: tarfile.TarFile) -> None:
        """Write the member into an archive; its header does not depend on the user or the time."""
        info = tarfile.TarInfo(self.name)
        info.size = self.size_bytes
        info.mode = 0o644
        self._file.seek(self._start)
        archive.addfile(info, self._file)


class NewArchive(msgspec.Struct):
    """Members in files without names. Members that are written one after another share one file."""

    directory: str | None = None
    _members: list[NewMember] = msgspec.field(default_factory=list)
    _shared: IO[bytes] | None = None

    def stream(self, name: str) -> NewMember:
        """A member that is written at the same time as others."""
        return self._add(NewMember(name, self._temporary()))

    def file(self, name: str) -> NewMember:
        """A member that is finished before the next call of this method."""
        if self._shared is None:
            self._shared = self._temporary()
        self._shared.seek(0, io.SEEK_END)
        return self._add(NewMember(name, self._shared))

    def _add(self, member: NewMember) -> NewMember:
        self._members.append(member)
        return member

    def _temporary(self) -> IO[bytes]:
        try:
            return tempfile.TemporaryFile(dir=self.directory)
        except OSError as error:
            raise OutputError(
                f"cannot create a temporary file: {error.strerror}", Location(self.directory or "")
            ) from error

    def drop(self, member: NewMember) -> None:
        """Leave out a member whose source cannot be read."""
        self._members.remove(member)

    def write(self, manifest: dict[str, Any], write: Write) -> None:
        """Write the manifest, which lists all members, and the members by name, compressed with zstd."""
        import zstandard

        members = sorted(self._members, key=lambda each: each.name)
        listed = [{"name": each.name, "size_bytes": each.size_bytes, "sha256": each.sha256} for each in members]
        first = NewMember(schemas.MANIFEST, io.BytesIO())
        first.write(schemas.json_line({**manifest, "members": listed}))
        sink: Any = SimpleNamespace(write=write)
        compressor = zstandard.ZstdCompressor(level=_LEVEL, write_checksum=True)
        with (
            compressor.stream_writer(sink, closefd=False) as packed,
            tarfile.open(
                fileobj=packed, mode="w|", format=tarfile.PAX_FORMAT, encoding="utf-8", errors="surrogateescape"
            ) as archive,
        ):
            for each in (first, *members):
                each.copy_to(archive)


class LogPlace(msgspec.Struct, frozen=True):
    """A log, and its path, topic and partition in the bundle."""

    path: Path
    inner: str
    topic: str | None
    partition: int | None


class _Rows(msgspec.Struct, frozen=True):
    """Some batches of one log that are to be written: header bytes, and the content of control batches by row."""

    log: LogPlace
    position: NDArray[np.int64]
    magic: NDArray[np.int64]
    headers: NDArray[np.uint8]
    inner: NDArray[np.int64] | None
    content: dict[int, bytes]


class _Outlined(msgspec.Struct):
    """The batches of a log whose records' offsets and timestamps are kept.

    These are the first one, if it is a compressed message, whose header lacks its first offset; the first with the
    largest timestamp; and the first with the timestamp of the last time index entry, which differs in a damaged log.
    """

    indexed_timestamp: int | None = None
    indexed: int | None = None
    first: int | None = None
    latest: int | None = None
    latest_timestamp: int = -1
    ends: dict[int, int] = msgspec.field(default_factory=dict)

    def see(self, table: HeaderTable, is_first: bool) -> None:
        """Look for such batches among the next ones."""
        if is_first and table.is_wrapper[0]:
            self.first = int(table.position[0])
            self.ends[self.first] = int(table.end_position[0])
        row = int(table.max_timestamp.argmax())
        timestamp = int(table.max_timestamp[row])
        if timestamp > self.latest_timestamp:
            self.latest, self.latest_timestamp = int(table.position[row]), timestamp
            self.ends[self.latest] = int(table.end_position[row])
        if self.indexed is None and self.indexed_timestamp is not None:
            for row in np.flatnonzero(table.max_timestamp == self.indexed_timestamp)[:1].tolist():
                self.indexed = int(table.position[row])
                self.ends[self.indexed] = int(table.end_position[row])

    @property
    def positions(self) -> list[int]:
        return sorted({each for each in (self.first, self.latest, self.indexed) if each is not None})


class HeaderWriter:
    """Writes the headers of logs, one after another, into the members of a bundle."""

    def __init__(self, batches: NewMember, outlines: NewMember, damage: NewMember, limits: Limits) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        self.batch_count = 0
        self._limits = limits
        self._damage = damage
        self._schema, outline = schemas.batch_schema(), schemas.outline_schema()
        numbers = [each.name for each in self._schema if pa.types.is_integer(each.type)]
        self._batches = pq.ParquetWriter(
            pa.PythonFile(batches, "w"),
            self._schema,
            use_dictionary=["path", "topic"],
            column_encoding={name: "DELTA_BINARY_PACKED" for name in numbers if name != "crc"},
            store_schema=True,
            **_COMPRESSION,
        )
        self._outlines = pq.ParquetWriter(pa.PythonFile(outlines, "w"), outline, **_COMPRESSION)
        self._outline_schema = outline
        self._waiting: list[_Rows] = []
        self._waiting_rows = 0
        self._waiting_outlines: list[dict[str, Any]] = []
        self._waiting_values = 0

    def add(self, log: LogPlace, source: FileSource, wrong_crcs: frozenset[int]) -> None:
        """Read the headers of a log. Raises KafkaLogError where it cannot be read to its end.

        ``wrong_crcs`` are the positions of batches with a wrong CRC. An outline without records says that the records
        of one can be read all the same, by those who check no CRCs.
        """
        outlined = _Outlined(_indexed_timestamp(log.path))
        is_first = True
        for chunk in header_chunks(source, limits=self._limits):
            headers = chunk.headers
            if len(headers):
                self._add_chunk(log, source, chunk)
                outlined.see(headers, is_first)
                for row in np.flatnonzero(np.isin(headers.position, list(wrong_crcs))).tolist():
                    position, end = int(headers.position[row]), int(headers.end_position[row])
                    if self._records_in(log, source, position, end, checks_crc=False) is not None:
                        self._write_outline(log, position, [], [])
                is_first = False
            if chunk.damage is not None:
                self._damage.write(schemas.RecordedDamage(path=log.inner, **asdict(chunk.damage)).line())
        for position in outlined.positions:
            records = self._records_in(log, source, position, outlined.ends[position])
            if records is not None:
                self._write_outline(log, position, *records)

    def _add_chunk(self, log: LogPlace, source: FileSource, chunk: HeaderChunk) -> None:
        table = chunk.headers
        content = {
            row: whole
            for row in np.flatnonzero(table.is_control).tolist()
            if (whole := control_batch_content(chunk, row, source, self._limits)) is not None
        }
        headers, inner = _headers_of(chunk, source), self._inner_offsets(table, source)
        rows = _Rows(log, table.position.copy(), table.magic.copy(), headers, inner, content)
        self._waiting.append(rows)
        self._waiting_rows += len(rows.position)
        self.batch_count += len(rows.position)
        if self._waiting_rows >= _ROW_GROUP:
            self._flush()

    def _inner_offsets(self, table: HeaderTable, source: FileSource) -> NDArray[np.int64] | None:
        """First offset and number of the records in compressed v0/v1 messages, -1 for all other batches."""
        if not table.is_wrapper.any():
            return None
        found = np.full((len(table), 2), -1, np.int64)
        place = BatchRange(int(table.position[0]), int(table.end_position[-1]))
        for whole in batch_chunks(source, place, limits=self._limits):
            is_opened = whole.table.is_wrapper & (whole.table.record_count > 0)
            rows = np.flatnonzero(is_opened & (whole.table.last_offset == whole.headers.last_offset))
            places = np.searchsorted(table.position, whole.table.position[rows])
            found[places] = np.column_stack((whole.table.base_offset[rows], whole.table.record_count[rows]))
        return found

    def _records_in(
        self, log: LogPlace, source: FileSource, position: int, end: int, *, checks_crc: bool = True
    ) -> tuple[list[int], list[int]] | None:
        """The offsets and timestamps of the records in a batch; None where they cannot be read, or are too many."""
        if end - position > self._limits.max_decompressed_bytes:
            return None
        offsets: list[int] = []
        timestamps: list[int] = []
        location = location_of_file(log.path)
        place = BatchRange(position, end)
        try:
            for chunk in batch_chunks(source, place, check_crc=checks_crc, limits=self._limits):
                if chunk.damage is not None or (checks_crc and not chunk.table.crc_valid.all()):
                    return None
                for records in record_tables(chunk, limits=self._limits, location=location):
                    if records.problems:
                        return None
                    offsets += records.offset.tolist()
                    timestamps += records.timestamp.tolist()
        except KafkaLogError:
            return None  # verify reports it
        return (offsets, timestamps) if len(offsets) <= _MOST_OUTLINED else None

    def _write_outline(self, log: LogPlace, position: int, offsets: list[int], timestamps: list[int]) -> None:
        self._waiting_outlines.append(
            {"path": log.inner, "position": position, "offsets": offsets, "timestamps": timestamps}
        )
        self._waiting_values += len(offsets)
        if len(self._waiting_outlines) >= _ROW_GROUP // 16 or self._waiting_values >= _MOST_OUTLINED:
            self._flush_outlines()

    def _flush(self) -> None:
        import pyarrow as pa

        if not self._waiting:
            return
        logs: dict[LogPlace, int] = {}  # each with its place among them: there may be tens of thousands
        topics: dict[str, int] = {}
        for each in self._waiting:
            logs.setdefault(each.log, len(logs))
            if each.log.topic is not None:
                topics.setdefault(each.log.topic, len(topics))
        counts = [len(each.position) for each in self._waiting]
        codes = np.repeat(np.array([logs[each.log] for each in self._waiting], np.int32), counts)
        topic_codes = np.array([-1 if each.topic is None else topics[each.topic] for each in logs], np.int32)[codes]
        numbers = np.array([-1 if each.partition is None else each.partition for each in logs], np.int64)[codes]
        magic = np.concatenate([each.magic for each in self._waiting])
        inner = np.concatenate(
            [
                np.full((len(each.position), 2), -1, np.int64) if each.inner is None else each.inner
                for each in self._waiting
            ]
        )
        content: list[bytes | None] = []
        for each in self._waiting:
            content += (
                [each.content.get(row) for row in range(len(each.position))]
                if each.content
                else [None] * len(each.position)
            )
        columns = {
            "path": pa.DictionaryArray.from_arrays(pa.array(codes), pa.array([each.inner for each in logs])),
            "topic": pa.DictionaryArray.from_arrays(
                pa.array(topic_codes, mask=topic_codes < 0), pa.array(list(topics), pa.string())
            ),
            "partition": pa.array(numbers, pa.int32(), mask=numbers < 0),
            "position": pa.array(np.concatenate([each.position for each in self._waiting])),
            **schemas.columns_of(np.concatenate([each.headers for each in self._waiting]), magic),
            "inner_first_offset": pa.array(inner[:, 0], mask=inner[:, 0] < 0),
            "inner_count": pa.array(inner[:, 1], mask=inner[:, 0] < 0),
            "content": pa.array(content, pa.binary()),
        }
        arrays = [columns[name] for name in self._schema.names]
        self._batches.write_table(pa.Table.from_arrays(arrays, schema=self._schema), row_group_size=2 * _ROW_GROUP)
        self._waiting, self._waiting_rows = [], 0

    def _flush_outlines(self) -> None:
        import pyarrow as pa

        if self._waiting_outlines:
            self._outlines.write_table(pa.Table.from_pylist(self._waiting_outlines, schema=self._outline_schema))
        self._waiting_outlines, self._waiting_values = [], 0

    def close(self) -> None:
        """Write the rest, and finish the Parquet files."""
        self._flush()
        self._flush_outlines()
        self._batches.close()
        self._outlines.close()


def _indexed_timestamp(log: Path) -> int | None:
    """The timestamp of the last entry of the time index beside a log; None where there is none, or it is damaged."""
    path = log.with_suffix(layout.TIME_INDEX_SUFFIX)
    base_offset = location_of_file(log).base_offset
    if log.suffix != layout.LOG_SUFFIX or base_offset is None or not is_there(path):
        return None
    return time_index.last_timestamp(path, base_offset)


def _headers_of(chunk: HeaderChunk, source: FileSource) -> NDArray[np.uint8]:
    """The header bytes of a chunk, a row for each batch; shorter headers are filled up with zeros."""
    table = chunk.headers
    found = np.zeros((len(table), schemas.MOST_HEADER_BYTES), np.uint8)
    window = b"" if chunk.window is None else chunk.window
    content = np.frombuffer(window, np.uint8)
    starts = table.position - chunk.buffer_position
    for magic, one in enumerate(schemas.LAYOUTS):
        is_one = table.magic == magic
        rows = np.flatnonzero(is_one & (starts + one.size_bytes <= len(content)))
        found[rows, : one.size_bytes] = content[starts[rows][:, None] + np.arange(one.size_bytes)]
        for row in np.flatnonzero(is_one & (starts + one.size_bytes > len(content))).tolist():
            header = source.read_at(int(table.position[row]), one.size_bytes)
            found[row, : len(header)] = np.frombuffer(header, np.uint8)
    return found
