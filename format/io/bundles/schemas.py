"""The JSON members of a bundle as types: the manifest, and the lines of the file list, of damage and of findings.

A bundle may be hostile. Each value has its type and bounds, and what is kept in memory is counted against a budget.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from sys import getsizeof
from typing import Annotated, Literal, TypeVar

import msgspec
from msgspec import Meta, Struct

from format.errors import InputError
from format.findings import FINDING_CODES, Cause, Certainty, Finding, Severity
from format.io.bundles.members import BUNDLE_FORMAT, FILE, KEPT_WHOLE, FileType, Kept, is_plain_path, json_line
from format.io.bundles.spooled import Region, Spool
from format.limits import MIB
from format.location import Location

#: How much memory the entries of a bundle may take.
_MOST_KEPT_BYTES = 224 * MIB
#: JSON with names that are not UTF-8 is first decoded without types, which takes a multiple of its size.
_MOST_UNTYPED_BYTES = 4 * MIB
#: The largest size of a file that Kafka itself can write: it has positions of 32 bits.
_MOST_FILE_BYTES = 2**31 - 1

Natural = Annotated[int, Meta(ge=0, le=2**63 - 1)]
Integer = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
Short = Annotated[str, Meta(max_length=64 * 1024)]
#: The offsets that are lost in a place: the first and the last.
Lost = tuple[Integer, Integer]
_Plain = int | float | bool | str | None
_Value = _Plain | list[_Plain] | dict[str, _Plain]
_T = TypeVar("_T")


class Budget(msgspec.Struct):
    """The memory that may still be taken by what is kept of a bundle."""

    left_bytes: int = _MOST_KEPT_BYTES

    def take(self, member: str, size_bytes: int) -> None:
        """Count bytes of a member that are kept. Raises InputError where a bundle would take too much memory."""
        self.left_bytes -= size_bytes
        if self.left_bytes < 0:
            raise InputError(f"{member} has more than fits into the {_MOST_KEPT_BYTES // MIB} MiB for one bundle")


class Source(Struct):
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


class Kind(Struct):
    """What tells a bundle of this version from other files."""

    kind: str
    format: int


class Manifest(Struct):
    """The first member: what was bundled, the counts of what verify checked, and all other members."""

    sources: Annotated[list[Source], Meta(max_length=10_000)]
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

    def __post_init__(self) -> None:
        _check_code(self.code)

    def line(self) -> bytes:
        """The damage as a line of JSON."""
        return json_line(msgspec.to_builtins(self))


class _Cause(Struct):
    """The cause of a finding, as ``format.findings.Cause``."""

    code: str
    path: Short
    position: Natural | None = None
    offset: Integer | None = None

    def __post_init__(self) -> None:
        _check_code(self.code)


class BundledFinding(Struct):
    """One line of the findings: the columns of FINDING; those that are None may be left out."""

    code: str
    severity: Literal["info", "warning", "error", "fatal"]
    path: Short
    message: Short
    certainty: Certainty
    topic: Short | None = None
    partition: Integer | None = None
    segment_base_offset: Integer | None = None
    position: Natural | None = None
    length: Integer | None = None
    offset: Integer | None = None
    expected: _Value = None
    actual: _Value = None
    next_step: Short = ""
    lost_offsets: Lost | None = None
    caused_by: _Cause | None = None

    def __post_init__(self) -> None:
        _check_code(self.code)

    def finding(self, root: str) -> Finding:
        """The finding, with paths below ``root``."""
        cause = self.caused_by
        where = (self.topic, self.partition, self.segment_base_offset, self.position, self.length, self.offset)
        return Finding(
            self.code,
            Severity[self.severity.upper()],
            Location(f"{root}/{self.path}", *where),
            self.message,
            self.certainty,
            self.expected,
            self.actual,
            self.next_step,
            self.lost_offsets,
            None if cause is None else Cause(cause.code, f"{root}/{cause.path}", cause.position, cause.offset),
        )


def _check_code(code: str) -> None:
    if code not in FINDING_CODES:
        raise ValueError(f"the finding code {code[:100]!r}, which this version does not know")


def manifest_of(content: bytes) -> Manifest:
    """The manifest. Raises InputError, also for that of another version."""
    about = decoded(content, Kind, "its manifest")
    if about.kind != "kafkalog-bundle":
        raise InputError("its manifest is not the manifest of a bundle")
    if about.format != BUNDLE_FORMAT:
        raise InputError(f"it has the format {about.format!r}, and this program reads {BUNDLE_FORMAT}")
    return decoded(content, Manifest, "its manifest")


def lines_of(spool: Spool, region: Region, kind: type[_T], where: str) -> Iterator[_T]:
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
