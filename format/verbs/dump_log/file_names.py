"""File names, parsed as java.io.File and kafka-dump-log parse them."""

from __future__ import annotations

import os
import re

from format.files.side_file import INT64_RANGE
from format.io.session import is_remote
from format.verbs.dump_log.stops import KafkaStops

_LONG = re.compile(r"[+-]?[0-9]{1,40}")


def split_files(value: str) -> list[str]:
    """The files in the value of --files, split at commas; trailing empty names are dropped, as in String.split."""
    if value == "":
        return [""]
    parts = value.split(",")
    while parts and parts[-1] == "":
        parts.pop()
    return parts


def normalised(path: str) -> str:
    """The path as java.io.File normalises it: without doubled or trailing slashes. An address stays as it is."""
    if is_remote(path):
        return path
    joined = re.sub("/+", "/", path)
    return joined if joined == "/" else joined.removesuffix("/")


def name_of(path: str) -> str:
    """The last part of a path."""
    return path.rsplit("/", 1)[-1]


def stem_of(path: str) -> str:
    """The name up to its first dot."""
    return name_of(path).split(".")[0]


def sibling(path: str, suffix: str) -> str:
    """The path of the file beside it with the same stem and another suffix."""
    return os.path.join(os.path.dirname(path), stem_of(path) + suffix)


def java_long(text: str) -> int:
    """Long.parseLong; raises KafkaStops for text that is not a long."""
    if not _LONG.fullmatch(text) or not INT64_RANGE[0] <= int(text) <= INT64_RANGE[1]:
        raise KafkaStops(f'java.lang.NumberFormatException: For input string: "{text}"')
    return int(text)


def path_line(path: str, rest: str, *, before: str = "") -> bytes:
    """A line that contains a path, with the path's bytes as the user gave them."""
    return before.encode() + os.fsencode(path) + rest.encode() + b"\n"
