"""The options of the data source ``kafkalog``, with the names and values of Spark's own sources, and their parser."""

from __future__ import annotations

import fnmatch
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
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
    "columns": "only these columns, separated by commas, in this order",
    "path": "a log directory, a partition directory or a file",
    "paths": "several of them, as a JSON list",
    "recursivefilelookup": "true: look for partitions at any depth below the path",
    "pathglobfilter": "only .log files whose name fits, such as 0000000000000*.log",
    "ignorecorruptfiles": "true: leave out files that cannot be read",
    "ignoremissingfiles": "true: leave out files that were removed after the work was planned",
    "mode": "PERMISSIVE, FAILFAST or DROPMALFORMED",
    "topics": "only these topics, separated by commas",
    "partitions": "only these partition numbers, separated by commas",
    "startingoffsets": 'earliest, an offset, or JSON as {"topic": {"0": 23}}; -2 is earliest; latest for a stream only',
    "endingoffsets": "latest, an offset, or JSON as above; not included; -1 is latest",
    "startingtimestamp": "only records with at least this timestamp, in ms",
    "endingtimestamp": "only records with a smaller timestamp, in ms",
    "includevalue": "false: no column value; values are not read into rows",
    "includeheaders": "true: adds the column headers",
    "includedetails": "true: adds the columns of the record's batch and file",
    "includecontrol": "true: includes control records (transaction markers), which consumers never receive",
    "columnnameofcorruptrecord": "a STRING column of this name describes damage, in rows of their own",
    "rangebytes": "the bytes of a large log that one task reads, such as 8MiB",
    "upto": "the end of a stream: highWatermark (default), or logEnd, which includes records that may be truncated",
    "failondataloss": "false: a stream continues where records are gone that it has not read; default true",
    "maxoffsetspertrigger": "the offsets that a stream reads at once, of all partitions together; Spark 4.2 or later",
}
#: Properties of a table in Spark's catalog, which Spark passes among the options.
_OF_CATALOG = frozenset(
    {
        *("owner", "location", "provider", "comment", "collation", "external", "is_managed_location"),
        *("serialization.format", "transient_lastddltime"),
    }
)


class BadOption(InputError):
    """An option of the data source that is unknown, or has an invalid value."""


@value_class
class ReadOptions:
    """The options of one read.

    ``starting`` and ``ending`` are offsets by topic and partition; the key ("", -1) stands for all other partitions.
    Timestamps are epoch milliseconds.
    """

    paths: tuple[str, ...]
    view: str = "records"
    columns: tuple[str, ...] = ()
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
        """Whether the partition at a location is selected."""
        if self.topics is not None and location.topic not in self.topics:
            return False
        return self.partitions is None or location.partition in self.partitions

    def wants(self, location: Location) -> bool:
        """Whether the file at a location is selected, by its topic, partition and name."""
        if not self.wants_partition(location):
            return False
        return self.glob is None or fnmatch.fnmatchcase(os.path.basename(location.path), self.glob)

    def selection(self, location: Location) -> Selection:
        """The offsets and times that are selected of a partition."""
        key = (location.topic or "", -1 if location.partition is None else location.partition)
        return Selection(
            self.starting.get(key, self.starting.get(("", -1))),
            self.ending.get(key, self.ending.get(("", -1))),
            self.starting_timestamp,
            self.ending_timestamp,
        )


def parse_options(options: Mapping[str, str]) -> ReadOptions:
    """The options from Spark's names and values. Raises BadOption, whose message names the valid values."""
    given = {name.lower(): value for name, value in options.items()}
    for name in given:
        if name not in OPTIONS and name not in _OF_CATALOG:
            raise BadOption(f"there is no option {name}; the options are {', '.join(OPTIONS)}")
    starts_at_latest = given.get("startingoffsets", "").strip().lower() == "latest"
    if starts_at_latest:
        del given["startingoffsets"]
    return ReadOptions(
        _paths(given),
        view=_one_of(given, "view", VIEW_NAMES, "records", str.lower),
        columns=_columns(given),
        recursive=_is_true(given, "recursivefilelookup", False),
        glob=given.get("pathglobfilter"),
        ignore_corrupt=_is_true(given, "ignorecorruptfiles", False),
        ignore_missing=_is_true(given, "ignoremissingfiles", False),
        mode=_one_of(given, "mode", MODES, "PERMISSIVE", str.upper),
        topics=_listed(given.get("topics")),
        partitions=_numbers(given, "partitions"),
        starting=_offsets(given, "startingoffsets", "earliest", -2),
        ending=_offsets(given, "endingoffsets", "latest", -1),
        starting_timestamp=_number(given, "startingtimestamp"),
        ending_timestamp=_number(given, "endingtimestamp"),
        value=_is_true(given, "includevalue", True),
        headers=_is_true(given, "includeheaders", False),
        details=_is_true(given, "includedetails", False),
        control=_is_true(given, "includecontrol", False),
        corrupt_column=given.get("columnnameofcorruptrecord"),
        range_bytes=_size(given, "rangebytes"),
        reads_bodies=_one_of(given, "level", LEVELS, "crc", str.lower) == "crc",
        starts_at_latest=starts_at_latest,
        reads_to_log_end=_one_of(given, "upto", ENDS, "highwatermark", str.lower) == "logend",
        fails_on_loss=_is_true(given, "failondataloss", True),
        max_offsets=_offsets_of_a_trigger(given),
    )


def _paths(given: Mapping[str, str]) -> tuple[str, ...]:
    """The option path, then the options paths; the location of a table of the catalog where there are none."""
    paths = [given["path"]] if given.get("path") else []
    if given.get("paths"):
        try:
            listed = json.loads(given["paths"])
        except ValueError:
            listed = None
        if not isinstance(listed, list) or not all(isinstance(each, str) and each for each in listed):
            raise BadOption(f'the option paths is {given["paths"]}; it must be a JSON list of paths, as ["/a", "/b"]')
        paths += listed
    if not paths and given.get("location"):
        paths = [given["location"]]
    if not paths:
        raise BadOption(
            "no path: give it to load(), or as the option path; Spark passes none for a table of its catalog: "
            "SELECT … FROM table WITH (path = '…')"
        )
    return tuple(paths)


def _one_of(
    given: Mapping[str, str], name: str, words: tuple[str, ...], default: str, form: Callable[[str], str]
) -> str:
    value = form(given.get(name, default))
    if value not in words:
        raise BadOption(f"the option {name} is {given[name]}; it may be {', '.join(words)}")
    return value


def _is_true(given: Mapping[str, str], name: str, default: bool) -> bool:
    return _one_of(given, name, ("true", "false"), str(default).lower(), str.lower) == "true"


def _number(given: Mapping[str, str], name: str) -> int | None:
    if name not in given:
        return None
    try:
        return int(given[name])
    except ValueError:
        raise BadOption(f"the option {name} is {given[name]}; it must be a whole number") from None


def _offsets_of_a_trigger(given: Mapping[str, str]) -> int | None:
    count = _number(given, "maxoffsetspertrigger")
    if count is not None and count < 1:
        raise BadOption(f"the option maxoffsetspertrigger is {count}; it must be at least 1")
    return count


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


def _columns(given: Mapping[str, str]) -> tuple[str, ...]:
    if "columns" not in given:
        return ()
    names = tuple(each.strip() for each in given["columns"].split(",") if each.strip())
    if not names:
        raise BadOption("the option columns names no column")
    others = [name for name in ("includevalue", "includeheaders", "includedetails") if name in given]
    if others:
        raise BadOption(f"the option columns says which columns there are: leave out {', '.join(others)}")
    return names


def _numbers(given: Mapping[str, str], name: str) -> frozenset[int] | None:
    words = _listed(given.get(name))
    try:
        return None if words is None else frozenset(map(int, words))
    except ValueError:
        raise BadOption(f"the option {name} is {given[name]}; it must be numbers separated by commas") from None


def _offsets(given: Mapping[str, str], name: str, everything: str, code: int) -> dict[tuple[str, int], int]:
    """Offsets by topic and partition. ``everything`` and ``code`` are the word and the number for no bound."""
    value = given.get(name, everything).strip()
    if value.lower() == everything:
        return {}
    try:
        if value.startswith("{"):
            by_topic = json.loads(value)
            found = {(topic, int(n)): int(offset) for topic, each in by_topic.items() for n, offset in each.items()}
        else:
            found = {("", -1): int(value)}
    except (ValueError, AttributeError, TypeError):
        raise BadOption(
            f'the option {name} is {value}; it may be {everything}, a number, or {{"t": {{"0": 1}}}}'
        ) from None
    for offset in found.values():
        if offset < 0 and offset != code:
            raise BadOption(f"the option {name} has the offset {offset}; the only negative one is {code}, {everything}")
    return {key: offset for key, offset in found.items() if offset != code}


def resolved_paths(options: ReadOptions) -> list[Path]:
    """The paths of the options; with recursiveFileLookup the partitions below them. Raises UnreadableFile."""
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
