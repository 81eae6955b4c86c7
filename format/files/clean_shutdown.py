"""The clean-shutdown mark (.kafka_cleanshutdown): if it exists, a broker does not recover the logs.

A broker deletes it at start. Older brokers write an empty file, newer ones the broker epoch as JSON (KIP-966, storage
CleanShutdownFileHandler). A file that cannot be read still counts, without an epoch.
"""

from __future__ import annotations

import json

import msgspec

from format.errors import InvalidCheckpoint, LimitExceeded, UnknownVersion
from format.files.side_file import INT32_RANGE, INT64_RANGE, Line, PathOrSource, Problem, decode_json_object, opened
from format.limits import DEFAULT_LIMITS, Limits
from format.location import Location

CURRENT_VERSION = 0


class CleanShutdown(msgspec.Struct, frozen=True):
    """The content of the mark, None if it is empty; content that a broker cannot read is a problem."""

    path: str
    version: int | None
    broker_epoch: int | None
    problems: tuple[Problem, ...]


def read(path_or_source: PathOrSource, limits: Limits = DEFAULT_LIMITS) -> CleanShutdown:
    """Read the mark, which must exist. Raises UnreadableFile, and LimitExceeded past ``limits.max_line_bytes``."""
    with opened(path_or_source) as source:
        if source.size_bytes == 0:
            return CleanShutdown(source.path, None, None, ())
        if source.size_bytes > limits.max_line_bytes:
            raise LimitExceeded(
                f"the file has {source.size_bytes} bytes, over the limit of {limits.max_line_bytes} for a line",
                Location(source.path),
            )
        line = Line(1, 0, source.read_at(0, source.size_bytes))
        try:
            content = decode_json_object(source, line)
            version = content.integer("version", *INT32_RANGE) if "version" in content.fields else CURRENT_VERSION
            broker_epoch = content.integer("brokerEpoch", *INT64_RANGE)
        except InvalidCheckpoint as error:
            problem = Problem(0, source.size_bytes, error.message, error.code)
            return CleanShutdown(source.path, None, None, (problem,))
        problems: tuple[Problem, ...] = ()
        if version != CURRENT_VERSION:
            message = f"version {version}, only {CURRENT_VERSION} is known"
            problems = (Problem(0, source.size_bytes, message, UnknownVersion.code),)
        return CleanShutdown(source.path, version, broker_epoch, problems)


def write(entries: CleanShutdown) -> bytes:
    """Encode the mark: empty without a version, as older brokers write it, else JSON without a newline."""
    if entries.version is None:
        return b""
    content = {"version": entries.version, "brokerEpoch": entries.broker_epoch}
    return json.dumps(content, separators=(",", ":")).encode("ascii")
