"""The members of a bundle: their names, and the lines of the file list."""

from __future__ import annotations

import json
from dataclasses import asdict, fields
from typing import Any

from format import layout
from format.errors import InputError
from format.value_class import value_class

#: The version of the archive's layout.
BUNDLE_FORMAT = 1
SUFFIX = ".tar.zst"

MANIFEST = "manifest.json"
FILE_LIST = "files.jsonl"
BATCHES = "batches.parquet"
OUTLINES = "outlines.parquet"
DAMAGE = "damage.jsonl"
FINDINGS = "findings.jsonl"
REPORT = "report.html"
#: The prefix of the names of files that are in the bundle whole.
WHOLE = "files/"

#: Kafka's own topics whose logs are in a bundle whole.
WHOLE_TOPICS = (
    *layout.COORDINATOR_TOPICS,
    layout.CLUSTER_METADATA_TOPIC,
)

FILE, DIRECTORY, LINK, LINK_TO_DIRECTORY, OTHER = "file", "directory", "link", "link-to-directory", "other"
KEPT_WHOLE, KEPT_HEADERS = "whole", "headers"
_TYPES = (FILE, DIRECTORY, LINK, LINK_TO_DIRECTORY, OTHER)
_KEPT = (None, KEPT_WHOLE, KEPT_HEADERS)


@value_class
class BundledEntry:
    """One line of the file list: a file or directory of the source.

    ``path`` is the absolute path without its first slash. ``kept`` is ``whole``, ``headers`` for a log of which the
    bundle has only the batch headers, or None for a file that is only listed. A whole file is stored without the zeros
    at its end, in ``stored_bytes``. ``same_as`` is another name of the same file (a hard link). ``error`` is the reason
    why a file or directory could not be read. ``lock_holder`` is the process that held a ``.lock``, 0 if unknown.
    """

    path: str
    type: str
    size_bytes: int = 0
    allocated_bytes: int = 0
    mtime_ns: int = 0
    sha256: str | None = None
    kept: str | None = None
    stored_bytes: int | None = None
    link_count: int = 1
    same_as: str | None = None
    error: str | None = None
    lock_holder: int | None = None

    def line(self) -> bytes:
        """The entry as a line of JSON; fields with their default are left out."""
        defaults = {each.name: each.default for each in fields(self)}
        return json_line({name: value for name, value in asdict(self).items() if value != defaults[name]})


_FIELD_TYPES: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(("path", "type"), (str,)),
    **dict.fromkeys(("size_bytes", "allocated_bytes", "mtime_ns", "link_count"), (int,)),
    **{name: (str, type(None)) for name in ("sha256", "kept", "same_as", "error")},
    **{name: (int, type(None)) for name in ("stored_bytes", "lock_holder")},
}


def entry_of_line(line: bytes) -> BundledEntry:
    """The entry in a line of the file list.

    Raises InputError for a line that ``BundledEntry.line`` cannot have made.
    """
    values = object_of(line)
    if not {"path", "type"} <= values.keys() <= _FIELD_TYPES.keys():
        raise InputError("the file list has a line with unknown fields, or without a path")
    for name, value in values.items():
        if not isinstance(value, _FIELD_TYPES[name]) or isinstance(value, bool):
            raise InputError(f"the file list has a line with a wrong {name}")
        if isinstance(value, int) and not 0 <= value < 2**63:
            raise InputError(f"the file list has a line with {name} {value}")
    entry = BundledEntry(**values)
    if entry.type not in _TYPES or entry.kept not in _KEPT or not is_plain_path(entry.path):
        raise InputError(f"the file list has a line with an impossible path, type or kind: {entry.path!r}")
    if entry.kept == KEPT_WHOLE and not 0 <= (entry.stored_bytes or 0) <= entry.size_bytes:
        raise InputError(f"the file list gives {entry.path!r} more bytes than its size")
    return entry


def is_plain_path(path: str) -> bool:
    """Whether a path is relative and has no ``.``, ``..``, empty names or null characters."""
    return "\0" not in path and all(name not in ("", ".", "..") for name in path.split("/"))


def json_line(values: Any) -> bytes:
    """A value as a line of JSON in ASCII, which preserves names that are not UTF-8."""
    return json.dumps(values, separators=(",", ":"), sort_keys=False).encode() + b"\n"


def object_of(line: bytes) -> dict[str, Any]:
    """The JSON object in a line. Raises InputError."""
    try:
        values = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InputError("a member that should hold JSON does not") from error
    if not isinstance(values, dict):
        raise InputError("a member that should hold JSON objects does not")
    return values
