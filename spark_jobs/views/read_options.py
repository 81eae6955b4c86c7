"""The options of the data source ``kafkalog``, parsed: names and values as Spark's own sources have them."""

from __future__ import annotations

import fnmatch
import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import field
from pathlib import Path

from format.errors import InputError, UnreadableFile
from format.io import remote_files
from format.io.remote_path import entries_of, path_of
from format.io.source import os_reason
from format.location import Location
from format.node.partition import looks_like_partition
from format.scan.selection import Selection
from format.value_class import value_class

MODES = ("PERMISSIVE", "FAILFAST", "DROPMALFORMED")
VIEW_NAMES = ("records", "batches", "segments", "index_entries", "offsets", "transactions", "findings")
LEVELS = ("headers", "crc")
ENDS = ("highwatermark", "logend")
_SIZE = re.compile(r"(?P<number>[0-9]{1,18})\s*(?:(?P<unit>[kmgt])(?P<binary>i)?)?b?")
#: Every option, in lower case as Spark passes them, and what it means.
OPTIONS: dict[str, str] = {
    "view": "records, batches, segments, index_entries, offsets, transactions or findings; default records",
    "level": "headers: the view batches reads headers only, and computes no CRC; default crc",
    "path": "a log directory, a partition directory or a file",
    "paths": "several of them, as a JSON list",
    "recursivefilelookup": "true: look for partitions and log files at any depth below the path",
    "pathglobfilter": "only .log files whose name fits, such as 0000000000000*.log",
    "ignorecorruptfiles": "true: leave out files that cannot be read",
    "ignoremissingfiles": "true: leave out files that vanished since the work was planned",
    "mode": "PERMISSIVE, FAILFAST or DROPMALFORMED",
    "topics": "only these topics, separated by commas",
    "partitions": "only these partition numbers, separated by commas",
    "startingoffsets": 'earliest, an offset, or JSON as {"topic": {"0": 23}}; -2 is earliest; a stream: latest, too',
    "endingoffsets": "latest, an offset, or JSON likewise; not included; -1 is latest",
    "startingtimestamp": "only records with at least this timestamp, in ms",
    "endingtimestamp": "only records with a smaller timestamp, in ms",
    "includevalue": "false: no column value, and no bytes of it from the worker",
    "includeheaders": "true: a column headers",
    "includedetails": "true: columns about the record's batch and place",
    "includecontrol": "true: control records (transaction markers) too, which clients never see",
    "columnnameofcorruptrecord": "a STRING column of this name that says what is damaged, in rows of their own",
    "rangebytes": "how much of a large log one task reads, such as 8MiB",
    "upto": "a stream reads up to highWatermark (default), or to logEnd, what may be truncated included",
    "failondataloss": "false: a stream goes on where records are gone that it was to read; default true",
    "maxoffsetspertrigger": "how many offsets a stream reads at once, of all partitions together; Spark 4.2 or later",
}
#: Properties of a table in Spark's catalog, which come among the options. Its location is the path where there is none.
_OF_CATALOG = frozenset(
    {
        *("owner", "location", "provider", "comment", "collation", "external", "is_managed_location"),
        *("serialization.format", "transient_lastddltime"),
    }
)


class BadOption(InputError):
    """An option of the data source that is unknown, or whose value cannot be."""


@value_class
class ReadOptions:
    """The options of one read. ``starting`` and ``ending`` are by topic and partition, ("", -1) standing for all."""

    paths: tuple[str, ...]
    view: str = "records"
    recursive: bool = False
    glob: str | None = None
    ignore_corrupt: bool = False
    ignore_missing: bool = False
    mode: str = "PERMISSIVE"
    topics: frozenset[str] | None = None
    partitions: frozenset[int] | None = None
    starting: Mapping[tuple[str, int], int] = field(default_factory=dict)
    ending: Mapping[tuple[str, int], int] = field(default_factory=dict)
    starting_timestamp: int | None = None
    ending_timestamp: int | None = None
    value: bool = True
    headers: bool = False
    details: bool = False
    control: bool = False
    corrupt_column: str | None = None
    range_bytes: int | None = None
    reads_bodies: bool = True
    starts_at_latest: bool = False
    reads_to_log_end: bool = False
    fails_on_loss: bool = True
    max_offsets: int | None = None

    def wants_partition(self, location: Location) -> bool:
        """Whether a partition is asked for."""
        if self.topics is not None and location.topic not in self.topics:
            return False
        return self.partitions is None or location.partition in self.partitions

    def wants(self, location: Location) -> bool:
        """Whether a file is asked for, by its topic, partition and name."""
        if not self.wants_partition(location):
            return False
        return self.glob is None or fnmatch.fnmatchcase(os.path.basename(location.path), self.glob)

    def selection(self, location: Location) -> Selection:
        """The offsets and times wanted of a partition."""
        key = (location.topic or "", -1 if location.partition is None else location.partition)
        return Selection(
            self.starting.get(key, self.starting.get(("", -1))),
            self.ending.get(key, self.ending.get(("", -1))),
            self.starting_timestamp,
            self.ending_timestamp,
        )


def parse_options(options: Mapping[str, str]) -> ReadOptions:
    """The options as Spark gives them; raises BadOption, which says what is wrong and what may be."""
    given = {name.lower(): value for name, value in options.items()}
    for name in given:
        if name not in OPTIONS and name not in _OF_CATALOG:
            raise BadOption(f"there is no option {name}; the options are {', '.join(OPTIONS)}")
    paths = [given["path"]] if given.get("path") else []
    if given.get("paths"):
        paths += json.loads(given["paths"])
    if not paths and given.get("location"):
        paths = [given["location"]]
    if not paths:
        raise BadOption(
            "no path: give it to load(), or as the option path; Spark passes none for a table of its catalog: "
            "SELECT … FROM table WITH (path = '…')"
        )
    starts_at_latest = given.get("startingoffsets", "").strip().lower() == "latest"
    if starts_at_latest:
        del given["startingoffsets"]
    return ReadOptions(
        tuple(paths),
        _one_of(given, "view", VIEW_NAMES, "records", str.lower),
        _is_true(given, "recursivefilelookup", False),
        given.get("pathglobfilter"),
        _is_true(given, "ignorecorruptfiles", False),
        _is_true(given, "ignoremissingfiles", False),
        _one_of(given, "mode", MODES, "PERMISSIVE", str.upper),
        _listed(given.get("topics")),
        _numbers(given, "partitions"),
        _offsets(given, "startingoffsets", "earliest", -2),
        _offsets(given, "endingoffsets", "latest", -1),
        _number(given, "startingtimestamp"),
        _number(given, "endingtimestamp"),
        _is_true(given, "includevalue", True),
        _is_true(given, "includeheaders", False),
        _is_true(given, "includedetails", False),
        _is_true(given, "includecontrol", False),
        given.get("columnnameofcorruptrecord"),
        _size(given, "rangebytes"),
        reads_bodies=_one_of(given, "level", LEVELS, "crc", str.lower) == "crc",
        starts_at_latest=starts_at_latest,
        reads_to_log_end=_one_of(given, "upto", ENDS, "highwatermark", str.lower) == "logend",
        fails_on_loss=_is_true(given, "failondataloss", True),
        max_offsets=_number(given, "maxoffsetspertrigger"),
    )


def _one_of(given: Mapping[str, str], name: str, words: tuple[str, ...], default: str, form: type | object) -> str:
    value = form(given.get(name, default))  # type: ignore[operator]
    if value not in words:
        raise BadOption(f"the option {name} is {given[name]}; it may be {', '.join(words)}")
    return str(value)


def _is_true(given: Mapping[str, str], name: str, default: bool) -> bool:
    return _one_of(given, name, ("true", "false"), str(default).lower(), str.lower) == "true"


def _number(given: Mapping[str, str], name: str) -> int | None:
    if name not in given:
        return None
    try:
        return int(given[name])
    except ValueError:
        raise BadOption(f"the option {name} is {given[name]}; it must be a whole number") from None


def _size(given: Mapping[str, str], name: str) -> int | None:
    """A number of bytes, such as 8388608 or 8MiB."""
    if name not in given:
        return None
    match = _SIZE.fullmatch(given[name].strip().lower())
    if match is None or not int(match["number"]):
        raise BadOption(f"the option {name} is {given[name]}; it must be a number of bytes, such as 8388608 or 8MiB")
    power = " kmgt".index(match["unit"] or " ")
    return int(match["number"]) * int((1024 if match["binary"] else 1000) ** power)


def _listed(value: str | None) -> frozenset[str] | None:
    return None if value is None else frozenset(each.strip() for each in value.split(",") if each.strip())


def _numbers(given: Mapping[str, str], name: str) -> frozenset[int] | None:
    words = _listed(given.get(name))
    try:
        return None if words is None else frozenset(map(int, words))
    except ValueError:
        raise BadOption(f"the option {name} is {given[name]}; it must be numbers separated by commas") from None


def _offsets(given: Mapping[str, str], name: str, everything: str, code: int) -> dict[tuple[str, int], int]:
    value = given.get(name, everything).strip()
    if value == everything:
        return {}
    try:
        if not value.startswith("{"):
            return {("", -1): int(value)}
        by_topic = json.loads(value)
        found = {(topic, int(n)): int(offset) for topic, each in by_topic.items() for n, offset in each.items()}
    except (ValueError, AttributeError, TypeError):
        raise BadOption(
            f'the option {name} is {value}; it may be {everything}, a number, or {{"t": {{"0": 1}}}}'
        ) from None
    return {key: offset for key, offset in found.items() if offset != code}


def resolved_paths(options: ReadOptions) -> list[Path]:
    """The log directories, partitions and files that the paths stand for."""
    remote_files.know(options.paths)
    places = [path_of(each) for each in options.paths]
    if not options.recursive:
        return places
    return [found for place in places for found in (_partitions_below(place) if place.is_dir() else (place,))]


def _partitions_below(place: Path) -> Iterator[Path]:
    if looks_like_partition(place):
        yield place
        return
    try:
        with entries_of(place) as entries:
            names = sorted(entry.name for entry in entries if entry.is_dir(follow_symlinks=False))
    except OSError as error:
        raise UnreadableFile(f"cannot list: {os_reason(error)}", Location(str(place))) from error
    for name in names:
        yield from _partitions_below(place / name)
