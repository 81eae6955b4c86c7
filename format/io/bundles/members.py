"""The names of the members of a bundle, and how JSON is written in them."""

from __future__ import annotations

import json
from typing import Any, Final, Literal

from format import layout

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

#: The bytes of the largest control batch that is in a bundle whole.
MOST_CONTROL_BYTES = 1024
#: Kafka's own topics whose logs are in a bundle whole.
WHOLE_TOPICS = (
    *layout.COORDINATOR_TOPICS,
    layout.CLUSTER_METADATA_TOPIC,
)

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
