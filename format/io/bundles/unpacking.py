"""Opening of a bundle: unpacks it into an unnamed file, and compares every byte with the manifest.

A bundle comes from elsewhere and may be hostile. No file is created with the name of a member. The members must be the
members of the manifest, in the same order and with the same sizes and hashes, and their total size is bounded.
"""

from __future__ import annotations

import hashlib
import os
import tarfile
from collections.abc import Iterator
from typing import Any, Protocol

import msgspec
import numpy as np

from format.errors import InputError
from format.io.bundles.bundle import Bundle, Fragment, LogContents
from format.io.bundles.schemas import (
    BATCHES,
    DAMAGE,
    FILE_LIST,
    FINDINGS,
    KEPT_HEADERS,
    KEPT_WHOLE,
    MANIFEST,
    OUTLINES,
    REPORT,
    WHOLE,
    BundledEntry,
    BundleManifest,
    ListedMember,
    RecordedDamage,
    RegionReader,
    Spool,
    SpooledRange,
    batch_schema,
    bytes_of,
    is_plain_path,
    lines_of,
    manifest_of,
    outline_schema,
    size_of,
)
from format.layout import LOG_ENTRY
from format.limits import MIB, MOST_CONTROL_BYTES
from format.location import Location

_BLOCK = 512
_MOST_EXTENDED_BYTES = 64 * 1024
#: Programs fill an archive up to a multiple of 10 KiB, at most to one of 1 MiB.
_MOST_PADDING_BYTES = 1 << 20


class Stream(Protocol):
    """Decompressed bytes, read once."""

    def read(self, size: int, /) -> bytes: ...


class ArchiveMember(msgspec.Struct, frozen=True):
    """A member of an archive. Its content, of ``size_bytes``, must be read before the next member."""

    name: str
    size_bytes: int
    stream: Stream

    def pieces(self, piece_bytes: int = 1 << 20) -> Iterator[bytes]:
        """The content in pieces. Raises InputError if the archive ends too early."""
        left = self.size_bytes
        while left:
            piece = _exactly(self.stream, min(left, piece_bytes))
            left -= len(piece)
            yield piece
        _exactly(self.stream, -self.size_bytes % _BLOCK)


def _exactly(stream: Stream, size: int) -> bytes:
    """Read ``size`` bytes. Raises InputError at an early end, and for bytes that cannot be decompressed."""
    parts: list[bytes] = []
    while size > 0:
        part = _some(stream, size)
        if not part:
            raise InputError("the archive ends too early: it is cut off")
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def _some(stream: Stream, size: int) -> bytes:
    """Read at most ``size`` bytes, none at the end. Raises InputError for bytes that cannot be decompressed."""
    try:
        return stream.read(min(size, 1 << 20))
    except Exception as error:  # errors of zstandard
        raise InputError(f"the archive is damaged: {error}") from error


def _read_padding(stream: Stream) -> None:
    """Read the zeros that fill a tar archive up, to the end of the zstd frame: only there its checksum is compared."""
    left = _MOST_PADDING_BYTES
    while part := _some(stream, left):
        left -= len(part)
        if part.strip(b"\0") or not left:
            raise InputError("the archive goes on after its end")


def members_of(stream: Stream) -> Iterator[ArchiveMember]:
    """The members in order. Raises InputError for anything but regular files with plain headers."""
    long_name: str | None = None
    while True:
        block = _exactly(stream, _BLOCK)
        if not block.strip(b"\0"):
            _read_padding(stream)
            return
        try:
            info = tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")
        except (tarfile.HeaderError, ValueError) as error:
            raise InputError("this is not a tar archive, or a damaged one") from error
        if info.size < 0:
            raise InputError("the archive has a member with a negative size")
        if info.type == tarfile.XHDTYPE and long_name is None:
            if info.size > _MOST_EXTENDED_BYTES:
                raise InputError("the archive has a name that is too long")
            long_name = _name_in(_exactly(stream, info.size))
            _exactly(stream, -info.size % _BLOCK)
            continue
        if info.type not in (tarfile.REGTYPE, tarfile.AREGTYPE):
            raise InputError(f"the archive has a member that is not a regular file: {info.name!r}")
        yield ArchiveMember(info.name if long_name is None else long_name, info.size, stream)
        long_name = None


def _name_in(records: bytes) -> str:
    """The path in the records of a pax header. Each record is its length, a space, a key, ``=``, a value and LF."""
    name = None
    while records:
        digits, _, _ = records.partition(b" ")
        try:
            size = int(digits)
        except ValueError:
            size = 0
        record, records = records[:size], records[size:]
        key, is_there, value = record[len(digits) + 1 : -1].partition(b"=")
        if size <= len(digits) or not record.endswith(b"\n") or not is_there:
            raise InputError("the archive has a damaged extended header")
        if key == b"path":
            name = value.decode("utf-8", "surrogateescape")
        elif key != b"hdrcharset":  # the character set of a name that is not UTF-8, which is decoded the same way
            raise InputError("the archive has an extended header that no bundle has")
    if name is None:
        raise InputError("the archive has an extended header without a name")
    return name


_TABLES = (BATCHES, DAMAGE, FILE_LIST, FINDINGS, OUTLINES)
_MOST_MANIFEST_BYTES = 64 * MIB
#: A bundle may unpack to _MOST_RATIO times its size, or to _LEAST_BOUND if that is more. Real bundles reach 60 times.
_MOST_RATIO = 300
_LEAST_BOUND = 1024 * MIB
_WINDOW_BYTES = 128 * MIB
_ROWS = 64 * 1024
#: The bytes of a row group of batch headers, and the values of one of outlines.
_MOST_GROUP_BYTES = 96 * MIB
_MOST_OUTLINE_VALUES = 8 * 1024 * 1024
_OUTLINE_ROWS = 64
#: The memory of what is known of a place in a log, apart from its texts.
_PLACE_BYTES = 600
#: The zeros at the ends of whole files that are not stored, in sum: reading them takes time.
_MOST_ZEROS = 1024 * 1024 * MIB


def open_bundle(path: str) -> Bundle:
    """Open the bundle in a file. Raises InputError for a file that is not a bundle, is damaged, or may be hostile."""
    try:
        return _unpacked(path)
    except InputError as error:
        raise InputError(f"not a sound bundle: {error.message}", error.location or Location(path)) from error


def _unpacked(path: str) -> Bundle:
    import zstandard

    try:
        with (
            open(path, "rb") as file,
            zstandard.ZstdDecompressor(max_window_size=_WINDOW_BYTES).stream_reader(file) as stream,
        ):
            size_bytes = os.fstat(file.fileno()).st_size
            members = members_of(stream)
            manifest, listed = _manifest(next(members, None))
            bundle = Bundle(path, Spool(), manifest)
            regions = _taken(members, listed, bundle.spool, max(_LEAST_BOUND, _MOST_RATIO * size_bytes))
    except OSError as error:
        raise InputError(f"cannot read: {error.strerror or error}") from error
    _read_file_list(bundle, regions)
    _read_logs(bundle, regions)
    _check_logs(bundle)
    bundle.finding_lines = regions[FINDINGS]
    bundle.index()
    return bundle


def _manifest(member: ArchiveMember | None) -> tuple[BundleManifest, list[ListedMember]]:
    """The manifest without its list of members, and that list."""
    if member is None or member.name != MANIFEST:
        raise InputError(f"its first member is not {MANIFEST}")
    if member.size_bytes > _MOST_MANIFEST_BYTES:
        raise InputError(f"its manifest is larger than {_MOST_MANIFEST_BYTES} bytes")
    manifest = manifest_of(b"".join(member.pieces()))
    listed, manifest.members = manifest.members, []
    return manifest, listed


def _taken(
    members: Iterator[ArchiveMember], expected: list[ListedMember], spool: Spool, most_bytes: int
) -> dict[str, SpooledRange]:
    """Copy all members to the spool, and check them against the manifest; return their regions by name."""
    total = sum(each.size_bytes for each in expected)
    if total > most_bytes:
        raise InputError(f"it would unpack to {total} bytes, more than the {most_bytes} that a bundle of its size may")
    if total > spool.free_bytes():
        raise InputError(f"it unpacks to {total} bytes, for which the temporary directory has no room")
    names = [each.name for each in expected]
    if names != sorted(set(names)) or MANIFEST in names:
        raise InputError("its manifest lists members twice or out of order")
    regions: dict[str, SpooledRange] = {}
    for each in expected:
        name = each.name
        if name not in (*_TABLES, REPORT) and not (name.startswith(WHOLE) and is_plain_path(name)):
            raise InputError(f"its manifest has a member that no bundle has: {name!r}")
        member = next(members, None)
        if member is None:
            raise InputError(f"the member {name} is missing")
        if (member.name, member.size_bytes) != (name, each.size_bytes):
            raise InputError(f"there is a member {member.name!r} of {member.size_bytes} bytes where {name!r} should be")
        digest, start = hashlib.sha256(), spool.end
        for piece in member.pieces():
            digest.update(piece)
            spool.append(piece)
        if digest.hexdigest() != each.sha256:
            raise InputError(f"the member {name} does not have the SHA-256 in the manifest: it was changed")
        regions[name] = SpooledRange(start, member.size_bytes)
    extra = next(members, None)
    if extra is not None:
        raise InputError(f"the member {extra.name!r} is not in the manifest")
    missing = [name for name in _TABLES if name not in regions]
    if missing:
        raise InputError(f"the member {missing[0]} is missing")
    return regions


def _read_file_list(bundle: Bundle, regions: dict[str, SpooledRange]) -> None:
    zeros = 0
    for entry in lines_of(bundle.spool, regions[FILE_LIST], BundledEntry, FILE_LIST):
        bundle.add(entry)
        if entry.kept == KEPT_WHOLE:
            region = regions.get(WHOLE + entry.path)
            if region is None or region.size_bytes != entry.stored_bytes:
                raise InputError(f"the file list lists {entry.path!r} as stored, but the bundle does not contain it")
            bundle.whole[entry.path] = region
            zeros += entry.size_bytes - region.size_bytes
    if zeros > _MOST_ZEROS:
        raise InputError(f"its files end with {zeros} zeros, more than the {_MOST_ZEROS} that those of a bundle may")
    if len(bundle.whole) != sum(name.startswith(WHOLE) for name in regions):
        raise InputError("it contains files that its file list does not list")


def _read_logs(bundle: Bundle, regions: dict[str, SpooledRange]) -> None:
    damage: dict[str, dict[int, RecordedDamage]] = {}
    for each in lines_of(bundle.spool, regions[DAMAGE], RecordedDamage, DAMAGE):
        entry = bundle.entries.get(each.path)
        if entry is None or each.position + each.length > entry.size_bytes:
            raise InputError(f"its damage has a place past the end of {each.path!r}")
        bundle.budget.take(DAMAGE, _PLACE_BYTES + size_of(each.path, each.reason))
        damage.setdefault(entry.path, {})[each.position] = each
    outlines = _outlines(bundle, regions[OUTLINES])
    fragments: dict[str, list[Fragment]] = {}
    last: tuple[str, int] = ("", -1)
    for path, batch in _runs(bundle, regions[BATCHES]):
        entry = bundle.entries.get(path)
        if entry is None or entry.kept != KEPT_HEADERS:
            raise InputError(f"it has batch headers of {path!r}, which are not in its file list")
        bundle.budget.take(BATCHES, _PLACE_BYTES)
        found = _fragment(bundle.spool, batch, entry, last[1] if path == last[0] else -1)
        if path in fragments and path != last[0]:
            raise InputError(f"the batch headers of {path!r} are not together")
        fragments.setdefault(path, []).append(found[0])
        last = path, found[1]
    for path in fragments.keys() | damage.keys() | outlines.keys():
        bundle.logs[path] = LogContents(
            tuple(fragments.get(path, ())), dict(sorted(damage.get(path, {}).items())), outlines.get(path, {})
        )


def _check_logs(bundle: Bundle) -> None:
    """Raise InputError for bytes of a log that are neither in a batch nor damage: bundle records all of them."""
    for path, entry in bundle.entries.items():
        if entry.kept != KEPT_HEADERS:
            continue
        log = bundle.logs.get(path, LogContents())
        end = 0
        for fragment in log.fragments:
            positions, lengths = (
                np.frombuffer(bundle.spool.read(each.start, each.size_bytes), np.int64)
                for each in (fragment.positions, fragment.lengths)
            )
            ends = positions + lengths
            before = np.append(end, ends[:-1])
            for row in np.flatnonzero(positions != before).tolist():
                _check_damaged(log, path, int(before[row]), int(positions[row]))
            end = int(ends[-1])
        _check_damaged(log, path, end, entry.size_bytes)


def _check_damaged(log: LogContents, path: str, start: int, end: int) -> None:
    while start < end:
        damage = log.damage.get(start)
        if damage is None:
            raise InputError(f"it has neither a batch header nor damage at position {start} of {path!r}")
        start += damage.length


def _outlines(bundle: Bundle, region: SpooledRange) -> dict[str, dict[int, SpooledRange]]:
    found: dict[str, dict[int, SpooledRange]] = {}
    for batch in _record_batches(bundle, OUTLINES, region, outline_schema(), _OUTLINE_ROWS):
        for row in range(len(batch)):
            path, position = (batch.column(name)[row].as_py() for name in ("path", "position"))
            numbers = [batch.column(name)[row].values for name in ("offsets", "timestamps")]
            if path is None or position is None or None in numbers or len(numbers[0]) != len(numbers[1]):
                raise InputError("it has an incomplete outline of a batch")
            if path not in bundle.entries or any(each.null_count for each in numbers):
                raise InputError("it has an outline of no batch")
            bundle.budget.take(OUTLINES, _PLACE_BYTES)
            content = np.concatenate([each.to_numpy() for each in numbers]).astype(np.int64)
            found.setdefault(path, {})[position] = bundle.spool.append(content.tobytes())
    return found


def _record_batches(bundle: Bundle, member: str, region: SpooledRange, schema: Any, rows: int = _ROWS) -> Iterator[Any]:
    """The Arrow record batches of a Parquet member. Raises InputError if it cannot be read, or has other columns.

    Columns of bytes are read as dictionaries: a value that many rows refer to is then in memory once.
    """
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise InputError(f"bundles need pyarrow ({error}): pip install 'kafkalog[arrow]'") from error
    try:
        plain = [each.name for each in schema if each.type in (pa.string(), pa.binary())]
        stream = pa.PythonFile(RegionReader(bundle.spool, region), "r")
        with pq.ParquetFile(stream, pre_buffer=False, read_dictionary=plain) as file:
            for name in plain:
                number = schema.get_field_index(name)
                one = schema.field(number)
                schema = schema.set(number, one.with_type(pa.dictionary(pa.int32(), one.type)))
            if not file.schema_arrow.remove_metadata().equals(schema):
                raise InputError(f"{member} has other columns than this program writes")
            _check_groups(member, file.metadata)
            yield from file.iter_batches(rows, use_threads=False)
    except KeyError as error:
        raise InputError(f"{member} has other columns than this program writes") from error
    except (pa.ArrowException, OSError, ValueError) as error:
        raise InputError(f"{member} cannot be read: {' '.join(str(error).split())[:200]}") from error


def _check_groups(member: str, metadata: Any) -> None:
    """Raise InputError for Parquet files with parts that would take more memory than those of a bundle."""
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        values = max(group.column(column).num_values for column in range(group.num_columns))
        if group.num_rows > 2 * _ROWS or group.total_byte_size > _MOST_GROUP_BYTES or values > _MOST_OUTLINE_VALUES:
            raise InputError(f"{member} would unpack to more than that of a bundle may")


def _runs(bundle: Bundle, region: SpooledRange) -> Iterator[tuple[str, Any]]:
    """The batch headers, split where the path changes: each path with its rows."""
    for batch in _record_batches(bundle, BATCHES, region, batch_schema()):
        column = batch.column("path")
        if column.null_count or not len(batch):
            raise InputError("it has batch headers without a path")
        codes = np.asarray(column.indices.to_numpy(zero_copy_only=False))
        starts = np.flatnonzero(np.append(True, codes[1:] != codes[:-1])).tolist()
        for start, end in zip(starts, [*starts[1:], len(codes)], strict=True):
            yield column.dictionary[int(codes[start])].as_py(), batch.slice(start, end - start)


def _fragment(spool: Spool, batch: Any, entry: BundledEntry, after: int) -> tuple[Fragment, int]:
    """Write headers of one log to the spool; return their fragment and the position of the last one."""
    content, sizes = bytes_of(batch)
    positions = np.asarray(batch.column("position").to_numpy(zero_copy_only=False), np.int64)
    lengths = np.asarray(batch.column("length").to_numpy(zero_copy_only=False), np.int64) + LOG_ENTRY.size_bytes
    rises = int(positions[0]) > after and bool((positions[1:] >= positions[:-1] + lengths[:-1]).all())
    if not rises or (lengths < sizes).any() or int(positions[-1] + lengths[-1]) > entry.size_bytes:
        raise InputError(f"its batch headers do not fit into {entry.path!r}")
    whole = batch.column("content")
    if whole.null_count < len(whole):
        if any(len(each.as_buffer()) > MOST_CONTROL_BYTES for each in whole.dictionary):
            raise InputError("it has a control batch larger than any that a bundle has")
        content, sizes = _with_whole(content, sizes, whole.to_pylist(), lengths)
    starts = np.append(0, np.cumsum(sizes))
    inner = _inner_offsets(batch)
    return (
        Fragment(
            int(positions[0]),
            len(positions),
            spool.append(np.ascontiguousarray(positions).tobytes()),
            spool.append(lengths.tobytes()),
            spool.append(starts.tobytes()),
            spool.append(content),
            None if inner is None else spool.append(inner.tobytes()),
        ),
        int(positions[-1]),
    )


def _inner_offsets(batch: Any) -> Any | None:
    """First offset and number of the records in compressed messages, -1 for unknown; None where all are."""
    columns = [batch.column(name) for name in ("inner_first_offset", "inner_count")]
    if all(each.null_count == len(each) for each in columns):
        return None
    first, count = (np.asarray(each.fill_null(-1).to_numpy(zero_copy_only=False), np.int64) for each in columns)
    magic = np.asarray(batch.column("magic").to_numpy(zero_copy_only=False))
    stated = np.asarray(batch.column("base_offset").fill_null(-1).to_numpy(zero_copy_only=False), np.int64)
    is_known = (first >= 0) & (count > 0)
    is_impossible = (magic > 1) | (first > stated) | (count - 1 > stated - first)
    if ((first >= 0) != (count > 0)).any() or (is_known & is_impossible).any():
        raise InputError("it has offsets of records that do not fit a message's header")
    return np.ascontiguousarray(np.column_stack((first, count)))


def _with_whole(content: bytearray, sizes: Any, whole: list[bytes | None], lengths: Any) -> tuple[bytearray, Any]:
    """The same bytes and sizes, with whole control batches in place of their headers."""
    made, at = bytearray(), 0
    sizes = sizes.copy()
    for row, (each, size) in enumerate(zip(whole, sizes.tolist(), strict=True)):
        header = content[at : at + size]
        at += size
        if each is not None and (len(each) != lengths[row] or each[:size] != header):
            raise InputError("it has a control batch that does not fit its header")
        made += header if each is None else each
        sizes[row] = size if each is None else len(each)
    return made, sizes
