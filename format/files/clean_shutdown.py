"""The clean-shutdown mark (.kafka_cleanshutdown): if it exists, a broker does not recover the logs.

A broker deletes it at start. Older brokers write an empty file, newer ones the broker epoch as JSON (KIP-966, storage
CleanShutdownFileHandler). A file that cannot be read still counts, without an epoch.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from pathlib import Path

import msgspec

from format.errors import InvalidCheckpoint, KafkaLogError, LimitExceeded, UnknownVersion
from format.files.side_file import INT32_RANGE, INT64_RANGE, Line, PathOrSource, Problem, decode_json_object, opened
from format.io.session import is_there
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


def broker_epoch_at(path: Path, limits: Limits) -> int:
    """The broker epoch in the mark at a path; -1 if there is none, or the file cannot be read."""
    if not is_there(path):
        return -1
    try:
        epoch = read(path, limits).broker_epoch
    except KafkaLogError:
        return -1
    return -1 if epoch is None else epoch


def left_behind(epochs: Mapping[str, int], in_use: Collection[str], registered: int) -> dict[str, str]:
    """The log directories of a node that its last start did not use, each with one that it used.

    ``epochs`` are the broker epochs of their marks, ``in_use`` are those with logs, and with the epoch ``registered``
    the node registered last. A start removes all marks soon after that; one that failed before leaves them all.
    """
    found = {}
    for path, stopped in epochs.items():
        used = next((each for each in epochs if each in in_use and epochs[each] != stopped), None)
        if 0 <= stopped < registered and used is not None:
            found[path] = used
    return found


def write(entries: CleanShutdown) -> bytes:
    """Encode the mark: empty without a version, as older brokers write it, else JSON without a newline."""
    if entries.version is None:
        return b""
    content = {"version": entries.version, "brokerEpoch": entries.broker_epoch}
    return json.dumps(content, separators=(",", ":")).encode("ascii")
