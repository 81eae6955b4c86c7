"""The members of a bundle: names, JSON lines, Parquet columns, and the file that they are unpacked into."""

from __future__ import annotations

import io
import json
import os
import tempfile
from collections.abc import Iterator
from sys import getsizeof
from typing import Annotated, Any, Final, Literal, TypeVar

import msgspec
import numpy as np
from msgspec import Meta, Struct
from numpy.typing import NDArray

from format import layout
from format.errors import InputError
from format.findings import Integer, Lost, Natural, Short, check_code
from format.io.session import BUNDLE_MANIFEST
from format.limits import MIB

#: The version of the archive's layout.
BUNDLE_FORMAT = 1

MANIFEST = BUNDLE_MANIFEST
FILE_LIST = "files.jsonl"
BATCHES = "batches.parquet"
OUTLINES = "outlines.parquet"
DAMAGE = "damage.jsonl"
FINDINGS = "findings.jsonl"
REPORT = "report.html"
#: The prefix of the names of files that are in the bundle whole.
WHOLE = "files/"

#: Kafka's own topics whose logs are in a bundle whole.
WHOLE_TOPICS = (*layout.COORDINATOR_TOPICS, layout.CLUSTER_METADATA_TOPIC)

FileType = Literal["file", "directory", "link", "link-to-directory", "other"]
FILE: Final = "file"
DIRECTORY: Final = "directory"
LINK: Final = "link"
LINK_TO_DIRECTORY: Final = "link-to-directory"
OTHER: Final = "other"
#: How much of a file is kept.
Kept = Literal["whole", "headers"]
KEPT_WHOLE: Final = "whole"
KEPT_HEADERS: Final = "headers"


def is_plain_path(path: str) -> bool:
    """Whether a path is relative and has no ``.``, ``..``, empty names or null characters."""
    return "\0" not in path and all(name not in ("", ".", "..") for name in path.split("/"))


def json_line(values: Any) -> bytes:
    """A value as a line of JSON in ASCII, which preserves names that are not UTF-8."""
    return json.dumps(values, separators=(",", ":"), sort_keys=False).encode() + b"\n"


class SpooledRange(msgspec.Struct, frozen=True):
    """A range of bytes in a spool."""

    start: int
    size_bytes: int


class Spool:
    """An unnamed file in the directory for temporary files; it is deleted when the process ends."""

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile(prefix="kafkalog-bundle-")  # noqa: SIM115 - closed with the bundle
        self._end = 0

    def free_bytes(self) -> int:
        """The free space of the file system."""
        status = os.fstatvfs(self._file.fileno())
        return status.f_bavail * status.f_frsize

    @property
    def end(self) -> int:
        return self._end

    def append(self, content: bytes | bytearray | memoryview) -> SpooledRange:
        """Write bytes at the end. Raises InputError if that fails, for example without space."""
        region = SpooledRange(self._end, len(content))
        rest = memoryview(content)
        try:
            while rest:
                written = os.pwrite(self._file.fileno(), rest, self._end)
                self._end += written
                rest = rest[written:]
        except OSError as error:
            raise InputError(f"cannot unpack: {error.strerror}: {tempfile.gettempdir()}") from error
        return region

    def read(self, start: int, length: int) -> bytes:
        """Read a range that was written before."""
        parts = []
        while length > 0:
            part = os.pread(self._file.fileno(), length, start)
            if not part:
                raise OSError("the unpacked bundle was truncated")
            parts.append(part)
            start, length = start + len(part), length - len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def lines(self, region: SpooledRange, most_bytes: int = 1 << 20) -> Iterator[bytes]:
        """The lines of a region. Raises InputError for a line that is too long or cut off."""
        reader = io.BufferedReader(RegionReader(self, region), 1 << 16)
        while line := reader.readline(most_bytes):
            if not line.endswith(b"\n"):
                raise InputError("a member has a line that is too long, or cut off")
            yield line


class RegionReader(io.RawIOBase):
    """A region of a spool as a binary file."""

    def __init__(self, spool: Spool, region: SpooledRange) -> None:
        self._spool = spool
        self._region = region
        self._at = 0

    def readable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        base = (0, self._at, self._region.size_bytes)[whence]
        self._at = max(base + offset, 0)
        return self._at

    def tell(self) -> int:
        return self._at

    def readinto(self, buffer: object, /) -> int:
        """Read into a buffer, as many bytes as fit or are left; return their number."""
        target = memoryview(buffer).cast("B")  # type: ignore[arg-type]
        length = min(len(target), max(self._region.size_bytes - self._at, 0))
        if length:
            target[:length] = self._spool.read(self._region.start + self._at, length)
        self._at += length
        return length


#: How much memory the entries of a bundle may take.
_MOST_KEPT_BYTES = 224 * MIB
#: JSON with names that are not UTF-8 is first decoded without types, which takes a multiple of its size.
_MOST_UNTYPED_BYTES = 4 * MIB
#: The largest size of a file that Kafka itself can write: it has positions of 32 bits.
_MOST_FILE_BYTES = 2**31 - 1

_T = TypeVar("_T")


class Budget(msgspec.Struct):
    """The memory that may still be taken by what is kept of a bundle."""

    left_bytes: int = _MOST_KEPT_BYTES

    def take(self, member: str, size_bytes: int) -> None:
        """Count bytes of a member that are kept. Raises InputError where a bundle would take too much memory."""
        self.left_bytes -= size_bytes
        if self.left_bytes < 0:
            raise InputError(f"{member} has more than fits into the {_MOST_KEPT_BYTES // MIB} MiB for one bundle")


class BundledPath(Struct):
    """One of the paths that were bundled."""

    path: str

    def __post_init__(self) -> None:
        if not is_plain_path(self.path):
            raise ValueError(f"a source leads elsewhere: {self.path[:200]!r}")


class ListedMember(Struct, gc=False):
    """A member of the archive as the manifest lists it."""

    name: Short
    size_bytes: Natural
    sha256: Annotated[str, Meta(min_length=64, max_length=64)]


class BundleKind(Struct):
    """What tells a bundle of this version from other files."""

    kind: str
    format: int


class BundleManifest(Struct):
    """The first member: what was bundled, the counts of what verify checked, and all other members."""

    sources: Annotated[list[BundledPath], Meta(max_length=10_000)]
    members: list[ListedMember]
    verified: dict[str, Natural] = {}


class BundledEntry(Struct, omit_defaults=True, forbid_unknown_fields=True, gc=False):
    """One line of the file list: a file or directory of the source.

    ``path`` is the absolute path without its first slash. ``kept`` is ``whole``, ``headers`` for a log of which the
    bundle has only the batch headers, or None for a file that is only listed. A whole file is stored without the zeros
    at its end, in ``stored_bytes``. ``same_as`` is another name of the same file (a hard link). ``error`` is the reason
    why a file or directory could not be read. ``lock_holder`` is the process that held a ``.lock``, 0 if unknown.
    """

    path: str
    type: FileType
    size_bytes: Natural = 0
    allocated_bytes: Natural = 0
    mtime_ns: Natural = 0
    sha256: str | None = None
    kept: Kept | None = None
    stored_bytes: Natural | None = None
    link_count: Natural = 1
    same_as: str | None = None
    error: str | None = None
    lock_holder: Natural | None = None

    def __post_init__(self) -> None:
        if not is_plain_path(self.path):
            raise ValueError(f"an impossible path: {self.path[:200]!r}")
        if self.kept is not None and self.type != FILE:
            raise ValueError(f"content of {self.path[:200]!r}, which is no file")
        if self.kept == KEPT_WHOLE and (self.stored_bytes or 0) > self.size_bytes:
            raise ValueError(f"more bytes of {self.path[:200]!r} than its size")
        if self.kept == KEPT_WHOLE and self.size_bytes > max(_MOST_FILE_BYTES, self.stored_bytes or 0):
            raise ValueError(f"{self.path[:200]!r} as a whole file of {self.size_bytes} bytes")

    def line(self) -> bytes:
        """The entry as a line of JSON; fields with their default are left out."""
        return json_line(msgspec.to_builtins(self))


class RecordedDamage(Struct, gc=False):
    """One line of the damage: bytes of a log that belong to no readable batch, as ``format.log.batch_chunk.Damage``."""

    path: str
    position: Natural
    length: Annotated[int, Meta(ge=1, le=2**63 - 1)]
    code: str
    reason: Short
    after_offset: Integer | None = None
    next_base_offset: Integer | None = None
    reaches_end: bool = False
    lost_from: Integer | None = None
    lost_offsets: Lost | None = None
    readable: Lost | None = None
    is_cut: bool = False

    def __post_init__(self) -> None:
        check_code(self.code)

    def line(self) -> bytes:
        """The damage as a line of JSON."""
        return json_line(msgspec.to_builtins(self))


def manifest_of(content: bytes) -> BundleManifest:
    """The manifest. Raises InputError, also for that of another version."""
    about = decoded(content, BundleKind, "its manifest")
    if about.kind != "kafkalog-bundle":
        raise InputError("its manifest is not the manifest of a bundle")
    if about.format != BUNDLE_FORMAT:
        raise InputError(f"it has the format {about.format!r}, and this program reads {BUNDLE_FORMAT}")
    return decoded(content, BundleManifest, "its manifest")


def lines_of(spool: Spool, region: SpooledRange, kind: type[_T], where: str) -> Iterator[_T]:
    """The lines of a member, each of a type. Raises InputError for one that is not."""
    for number, line in enumerate(spool.lines(region), 1):
        yield decoded(line, kind, f"line {number} of its {where}")


def decoded(content: bytes, kind: type[_T], where: str) -> _T:
    """JSON as a value of a type. Raises InputError, which names ``where``.

    Names that are not UTF-8 have lone surrogates in JSON, which msgspec does not decode.
    """
    try:
        try:
            return msgspec.json.decode(content, type=kind)
        except msgspec.ValidationError:
            raise
        except msgspec.DecodeError:
            if b"\\ud" not in content.lower() or len(content) > _MOST_UNTYPED_BYTES:
                raise
            return msgspec.convert(json.loads(content), kind)
    except msgspec.ValidationError as error:
        raise InputError(f"{where} has what no bundle has: {error}") from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"{where} is not JSON: {str(error)[:200]}") from None


def size_of(*texts: str | None) -> int:
    """The memory of some texts."""
    return sum(getsizeof(each) for each in texts if each is not None)


#: The layouts of headers, by magic.
LAYOUTS = (layout.MESSAGE_V0, layout.MESSAGE_V1, layout.RECORD_BATCH)
MOST_HEADER_BYTES = max(each.size_bytes for each in LAYOUTS)
_FIELDS = {each.name: each.type for one in LAYOUTS for each in one.fields}
_IN_EVERY = frozenset.intersection(*(frozenset(one.names) for one in LAYOUTS))
_WIDEST = {**_FIELDS, "attributes": "i16"}  # 8 bits in messages, 16 in batches


def batch_schema() -> Any:
    """The Arrow schema of batch headers: the place of a batch, its header's fields, and a control batch's bytes.

    The header of a compressed v0/v1 message has neither the offset of its first record nor their number:
    ``inner_first_offset`` and ``inner_count`` have them, null for all others and for those that cannot be opened.
    """
    import pyarrow as pa

    columns = [
        pa.field("path", pa.dictionary(pa.int32(), pa.string()), nullable=False),
        pa.field("topic", pa.dictionary(pa.int32(), pa.string())),
        pa.field("partition", pa.int32()),
        pa.field("position", pa.int64(), nullable=False),
    ]
    for name, kind in _WIDEST.items():
        arrow_type = getattr(pa, ("uint" if kind[0] == "u" else "int") + kind[1:])()
        columns.append(pa.field(name, arrow_type, nullable=name not in _IN_EVERY))
    columns.append(pa.field("inner_first_offset", pa.int64()))
    columns.append(pa.field("inner_count", pa.int64()))
    columns.append(pa.field("content", pa.binary()))
    return pa.schema(columns)


def outline_schema() -> Any:
    """The Arrow schema of outlines: the offsets and timestamps of the records of some batches."""
    import pyarrow as pa

    return pa.schema(
        [
            pa.field("path", pa.string(), nullable=False),
            pa.field("position", pa.int64(), nullable=False),
            pa.field("offsets", pa.list_(pa.int64()), nullable=False),
            pa.field("timestamps", pa.list_(pa.int64()), nullable=False),
        ]
    )


def columns_of(headers: NDArray[np.uint8], magic: NDArray[np.int64]) -> dict[str, Any]:
    """The header fields of batches as Arrow arrays, by name.

    ``headers`` (uint8, batches x MOST_HEADER_BYTES) has the header of each batch; ``magic`` (int64) has its magic.
    """
    import pyarrow as pa

    columns: dict[str, Any] = {}
    views = []
    for number, one in enumerate(LAYOUTS):
        rows = np.flatnonzero(magic == number)
        part = np.ascontiguousarray(headers[rows, : one.size_bytes])
        views.append((rows, part.view(np.dtype(one.numpy_dtype())).reshape(-1)))
    for name, kind in _WIDEST.items():
        values = np.zeros(len(headers), np.dtype(kind[0] + str(int(kind[1:]) // 8)))
        is_there = np.zeros(len(headers), np.bool_)
        for (rows, view), one in zip(views, LAYOUTS, strict=True):
            if name in one.names:
                values[rows] = view[name]
                is_there[rows] = True
        columns[name] = pa.array(values, mask=None if is_there.all() else ~is_there)
    return columns


def bytes_of(batch: Any) -> tuple[bytearray, NDArray[np.int64]]:
    """The header bytes in an Arrow record batch, joined, and the size of each header. Raises InputError."""
    fields = {name: _numbers(batch, name) for name in _WIDEST}
    magic = fields["magic"]
    if not np.isin(magic, (0, 1, 2)).all():
        raise InputError("the batch headers have a magic byte other than 0, 1 and 2")
    sizes = np.array([one.size_bytes for one in LAYOUTS], np.int64)[magic]
    ends = np.cumsum(sizes)
    content = np.zeros(int(ends[-1]) if len(ends) else 0, np.uint8)
    for number, one in enumerate(LAYOUTS):
        rows = np.flatnonzero(magic == number)
        records = np.zeros(len(rows), np.dtype(one.numpy_dtype()))
        for name in one.names:
            records[name] = fields[name][rows]
        places = (ends - sizes)[rows][:, None] + np.arange(one.size_bytes)
        content[places] = records.view(np.uint8).reshape(len(rows), one.size_bytes)
    return bytearray(content.tobytes()), sizes


def _numbers(batch: Any, name: str) -> NDArray[Any]:
    column = batch.column(name)
    return np.asarray(column.fill_null(0).to_numpy(zero_copy_only=False))
