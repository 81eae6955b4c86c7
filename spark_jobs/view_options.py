"""The options of the data source ``kafkalog``, with the names and values of Spark's own sources, and their parser."""

from __future__ import annotations

import fnmatch
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from functools import wraps
from itertools import product
from pathlib import Path
from typing import Annotated, Any, ParamSpec, TypeVar

import msgspec

from format import layout
from format.decoding.plain import KINDS
from format.decoding.schemas import SchemaOf, schema_of_topic
from format.errors import InputError, KafkaLogError, UnreadableFile
from format.io.session import entries_of, is_remote, is_there
from format.io.source import os_reason
from format.location import Location
from format.node.partition import looks_like_partition
from format.scan.selection import Selection
from format.wording import did_you_mean, listed
from spark_jobs.planning import path_of

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")
VIEW_NAMES = ("records", "batches", "segments", "index_entries", "offsets", "transactions", "findings")
_PATTERN = re.compile(r"[*?\[{]")
_PATTERN_OF_ADDRESS = re.compile(r"[*\[{]")  # the query of an address begins with a question mark
_BRACES = re.compile(r"\{([^{}]*)\}")
_SIZE = re.compile(r"(?P<number>[0-9]{1,18})\s*(?:(?P<unit>[kmgt])(?P<binary>i)?)?b?")
#: Properties of a table in Spark's catalog, which Spark passes among the options.
_OF_CATALOG = frozenset(
    {
        *("owner", "location", "provider", "comment", "collation", "external", "is_managed_location"),
        *("serialization.format", "transient_lastddltime"),
    }
)
#: The options that select topics, of which one may be given.
_OF_TOPICS = ("subscribe", "subscribePattern", "assign", "topics")
#: The views that an option is for, where it does nothing in the others.
_VIEWS_OF = {
    "startingOffsets": ("records", "batches", "findings"),
    **dict.fromkeys(("endingOffsets", "startingTimestamp", "endingTimestamp"), ("records", "batches")),
    "mode": ("records", "batches"),
    "pathGlobFilter": ("records", "batches", "index_entries"),
    "level": ("batches",),
    "at": ("transactions",),
    **dict.fromkeys(("includeValue", "includeHeaders", "includeDetails", "includeControl"), ("records",)),
    **dict.fromkeys(("columnNameOfCorruptRecord", "isolationLevel", "kafka.isolation.level"), ("records",)),
    **dict.fromkeys(("valueAs", "keyAs", "schemas", "schemaOf"), ("records",)),
}
#: Options of Spark's Kafka source that mean nothing here, and what to use. All others of kafka.* are of a client.
_OF_KAFKA = {
    "kafka.bootstrap.servers": "give the path of the logs to load()",
    "startingoffsetsbytimestamp": "use startingTimestamp",
    "endingoffsetsbytimestamp": "use endingTimestamp",
    "startingoffsetsbytimestampstrategy": "use startingTimestamp",
    "minoffsetspertrigger": "use the interval of the trigger",
    "maxtriggerdelay": "use the interval of the trigger",
    "maxrecordsperpartition": "use rangeBytes or minPartitions",
    "groupidprefix": "leave it out, as no offsets are committed",
    "kafka.group.id": "leave it out, as no offsets are committed",
}
_OF_CLIENT = "leave it out, as no broker is asked"
#: What fits into a BIGINT.
_Number = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
_PartitionNumber = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]
#: The offset at which a stream starts, for the log end.
LATEST = -1
#: What Spark puts before an option among the properties of a table.
_OF_TABLE = "option."


class BadOption(InputError):
    """An option of the data source that is unknown, or has an invalid value."""


def without_traceback(call: Callable[_Arguments, _Result]) -> Callable[_Arguments, _Result]:
    """A function that Spark calls, whose KafkaLogErrors have lost their tracebacks: Spark prints these with them."""

    @wraps(call)
    def run(*args: _Arguments.args, **kwargs: _Arguments.kwargs) -> _Result:
        try:
            return call(*args, **kwargs)
        except KafkaLogError as error:
            reason = error
        raise reason.with_traceback(None) from None

    return run


def rows_without_traceback(read: Callable[_Arguments, Iterator[_Result]]) -> Callable[_Arguments, Iterator[_Result]]:
    """A generator of the rows of a task, whose KafkaLogErrors have lost their tracebacks."""

    @wraps(read)
    def run(*args: _Arguments.args, **kwargs: _Arguments.kwargs) -> Iterator[_Result]:
        rows = read(*args, **kwargs)
        yield from iter(without_traceback(lambda: next(rows, None)), None)

    return run


class ReadOptions(msgspec.Struct, frozen=True):
    """The options of one read.

    ``starting`` and ``ending`` are offsets by topic and partition; the key ("", -1) stands for all other partitions. A
    stream may start at LATEST. Timestamps are epoch milliseconds.
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
    topic_pattern: str | None = None
    assigned: frozenset[tuple[str, int]] | None = None
    partitions: frozenset[int] | None = None
    starting: Mapping[tuple[str, int], int] = msgspec.field(default_factory=dict)
    ending: Mapping[tuple[str, int], int] = msgspec.field(default_factory=dict)
    starting_timestamp: int | None = None
    ending_timestamp: int | None = None
    value: bool = True
    headers: bool = False
    details: bool = False
    control: bool = False
    corrupt_column: str | None = None
    range_bytes: int | None = None
    least_tasks: int = 1
    reads_bodies: bool = True
    is_committed: bool = False
    reads_below_log_start: bool = False
    reads_to_log_end: bool = False
    fails_on_loss: bool = True
    max_offsets: int | None = None
    at_ms: int | None = None
    value_as: str | None = None
    key_as: str | None = None
    schemas: str | None = None
    schema_of: Mapping[str, SchemaOf] = msgspec.field(default_factory=dict)

    @property
    def decodes(self) -> bool:
        """Whether keys and values are decoded: any of the options for it is given, and not only raw is asked for."""
        kinds = {self.value_as, self.key_as} - {None, "raw"}
        return bool(kinds) or self.schemas is not None or bool(self.schema_of)

    def wants_topic(self, topic: str | None) -> bool:
        """Whether a topic is selected by its name."""
        if self.topics is not None and topic not in self.topics:
            return False
        return self.topic_pattern is None or re.fullmatch(self.topic_pattern, topic or "") is not None

    def wants_partition(self, location: Location) -> bool:
        """Whether the partition at a location is selected."""
        if not self.wants_topic(location.topic):
            return False
        if self.assigned is not None and (location.topic, location.partition) not in self.assigned:
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
    given = _given(options)
    topics = [name for name in _OF_TOPICS if name in given]
    if len(topics) > 1:
        raise BadOption(f"the options {' and '.join(topics)} both select topics: give one of {', '.join(_OF_TOPICS)}")
    fields = {field: read(name, given[name]) for name, (field, read) in OPTIONS.items() if field and name in given}
    read_options = ReadOptions(_paths(given), **fields)
    others = [name for name in ("includeValue", "includeHeaders", "includeDetails") if name in given]
    if others and read_options.columns:
        raise BadOption(f"the option columns already selects the columns: leave out {', '.join(others)}")
    for name in given:
        views = _VIEWS_OF.get(name, VIEW_NAMES)
        if read_options.view not in views:
            fitting = f"view{'s' if len(views) > 1 else ''} {listed(views)}"
            raise BadOption(f"the option {name} is for the {fitting}, not for {read_options.view}")
    if {"isolationLevel", "kafka.isolation.level"} <= given.keys():
        raise BadOption("the options isolationLevel and kafka.isolation.level are the same: give one of them")
    _refuse_reversed(read_options)
    for name, is_set in (
        ("includeControl", read_options.control),
        ("includeBelowLogStart", read_options.reads_below_log_start),
        ("upTo", read_options.reads_to_log_end),
    ):
        if read_options.is_committed and is_set:
            raise BadOption(f"consumers with read_committed get no such records: leave out {name} or isolationLevel")
    return read_options


def _refuse_reversed(options: ReadOptions) -> None:
    """Raise BadOption where a range ends before it begins, as the program does."""
    every = ("", -1)
    for key in (*options.starting, *options.ending):
        first = options.starting.get(key, options.starting.get(every))
        end = options.ending.get(key, options.ending.get(every))
        if first is not None and end is not None and first > end:
            of_what = "" if key == every else f" of {key[0]}-{key[1]}"
            raise BadOption(f"the range{of_what} is empty: startingOffsets lies past endingOffsets")
    first, end = options.starting_timestamp, options.ending_timestamp
    if first is not None and end is not None and first > end:
        raise BadOption("the range is empty: startingTimestamp lies past endingTimestamp")


def _given(options: Mapping[str, str]) -> dict[str, str]:
    """The options by their names in OPTIONS. Raises BadOption where one is unknown.

    When a table of the catalog is made, Spark passes its options twice, once with a prefix, among its properties. All
    other properties are the user's own.
    """
    spelled = {name.lower(): name for name in OPTIONS}
    lower = {name.lower(): value for name, value in options.items()}
    is_table = "provider" in lower
    found: dict[str, str] = {}
    for name, value in lower.items():
        plain = name.removeprefix(_OF_TABLE) if is_table else name
        if plain in spelled:
            found[spelled[plain]] = value
        elif plain in _OF_KAFKA or plain.startswith("kafka."):
            instead = _OF_KAFKA.get(plain, _OF_CLIENT)
            raise BadOption(f"the option {plain} is of Spark's Kafka source, not of this one: {instead}")
        elif plain == "location":
            found[plain] = value
        elif plain not in _OF_CATALOG and (not is_table or name.startswith(_OF_TABLE)):
            meant = did_you_mean(plain, OPTIONS)
            raise BadOption(f"there is no option {plain}.{meant} The options are {', '.join(OPTIONS)}")
    return found


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


def _word(*words: str) -> Callable[[str, str], str]:
    """A parser of one of some words; case does not count."""

    def read(name: str, value: str) -> str:
        for word in words:
            if value.lower() == word.lower():
                return word
        raise BadOption(f"the option {name} is {value}; it may be {', '.join(words)}")

    return read


def _is(wanted: str, *words: str) -> Callable[[str, str], bool]:
    """A parser of one of some words, true for the one that is wanted."""
    read = _word(*words)
    return lambda name, value: read(name, value) == wanted


def _text(name: str, value: str) -> str:
    if not value:
        raise BadOption(f"the option {name} is empty")
    return value


def _number(name: str, value: str) -> int:
    try:
        return msgspec.json.decode(value.strip(), type=_Number)
    except msgspec.MsgspecError:
        raise BadOption(f"the option {name} is {value}; it must be a whole number of at most 64 bits") from None


def _count(name: str, value: str) -> int:
    count = _number(name, value)
    if count < 1:
        raise BadOption(f"the option {name} is {count}; it must be at least 1")
    return count


def _size(name: str, value: str) -> int:
    """A number of bytes, such as 8388608 or 8MiB."""
    match = _SIZE.fullmatch(value.strip().lower())
    if match is None or not int(match["number"]):
        raise BadOption(f"the option {name} is {value}; it must be a number of bytes, such as 8388608 or 8MiB")
    power = " kmgt".index(match["unit"] or " ")
    return int(match["number"]) * int((1024 if match["binary"] else 1000) ** power)


def _listed(name: str, value: str) -> tuple[str, ...]:
    return tuple(each.strip() for each in value.split(",") if each.strip())


def _some(name: str, value: str) -> tuple[str, ...]:
    names = _listed(name, value)
    if not names:
        raise BadOption(f"the option {name} names nothing")
    return names


def _set(name: str, value: str) -> frozenset[str]:
    return frozenset(_some(name, value))


def _numbers(name: str, value: str) -> frozenset[int]:
    words = _some(name, value)
    if not all(each.isascii() and each.isdigit() for each in words):
        raise BadOption(f"the option {name} is {value}; it must be numbers from 0 on, separated by commas")
    return frozenset(map(int, words))


#: The offsets of words, as Spark's Kafka source numbers them.
_WORDS = {"earliest": -2, "latest": LATEST}


def _offsets(*words: str) -> Callable[[str, str], dict[tuple[str, int], int]]:
    """A parser of offsets by topic and partition. These words may be given, or their numbers; the first is no bound."""
    codes = {word: _WORDS[word] for word in words}

    def read(name: str, text: str) -> dict[tuple[str, int], int]:
        value = text.strip()
        try:
            if value.startswith("{"):
                by_topic = msgspec.json.decode(value, type=dict[str, dict[_PartitionNumber, _Number]])
                found = {(topic, n): offset for topic, each in by_topic.items() for n, offset in each.items()}
            else:
                found = {("", -1): codes[value.lower()] if value.lower() in codes else _number(name, value)}
        except (msgspec.MsgspecError, BadOption):
            may_be = f'{", ".join(codes)}, a number, or {{"t": {{"0": 1}}}}'
            raise BadOption(f"the option {name} is {value}; it may be {may_be}") from None
        for offset in found.values():
            if offset < 0 and offset not in codes.values():
                negative = " and ".join(f"{code}, {word}" for word, code in codes.items())
                raise BadOption(f"the option {name} has the offset {offset}; of negative ones there is {negative}")
        return {key: offset for key, offset in found.items() if offset != codes[words[0]]}

    return read


def _pattern(name: str, value: str) -> str:
    try:
        re.compile(value)
    except re.error as error:
        raise BadOption(f"the option {name} is {value}, which is no regular expression: {error}") from None
    return value


def _assigned(name: str, value: str) -> frozenset[tuple[str, int]]:
    """Partitions by topic, as JSON."""
    try:
        found = msgspec.json.decode(value, type=dict[str, list[_PartitionNumber]])
    except msgspec.MsgspecError:
        raise BadOption(f'the option {name} is {value}; it must be partitions by topic, as {{"t": [0, 1]}}') from None
    return frozenset((topic, number) for topic, numbers in found.items() for number in numbers)


def _schema_of(name: str, value: str) -> dict[str, SchemaOf]:
    """The schemas of topics: TOPIC=FILE[:MESSAGE], separated by commas."""
    try:
        return dict(map(schema_of_topic, _listed(name, value)))
    except ValueError as error:
        raise BadOption(f"the option {name}: {error}") from None


_is_true = _is("true", "true", "false")
_is_committed = _is("read_committed", "read_uncommitted", "read_committed")
#: Every option, with the field of ReadOptions that it sets, and its parser. Case does not count. See docs/spark.md.
OPTIONS: dict[str, tuple[str | None, Callable[[str, str], Any]]] = {
    "view": ("view", _word(*VIEW_NAMES)),
    "level": ("reads_bodies", _is("crc", "headers", "crc")),
    "columns": ("columns", _some),
    "path": (None, _text),
    "paths": (None, _text),
    "recursiveFileLookup": ("recursive", _is_true),
    "pathGlobFilter": ("glob", _text),
    "ignoreCorruptFiles": ("ignore_corrupt", _is_true),
    "ignoreMissingFiles": ("ignore_missing", _is_true),
    "mode": ("mode", _word("PERMISSIVE", "FAILFAST", "DROPMALFORMED")),
    "subscribe": ("topics", _set),
    "subscribePattern": ("topic_pattern", _pattern),
    "assign": ("assigned", _assigned),
    "topics": ("topics", _set),
    "partitions": ("partitions", _numbers),
    "startingOffsets": ("starting", _offsets("earliest", "latest")),
    "endingOffsets": ("ending", _offsets("latest")),
    "startingTimestamp": ("starting_timestamp", _number),
    "endingTimestamp": ("ending_timestamp", _number),
    "includeValue": ("value", _is_true),
    "includeHeaders": ("headers", _is_true),
    "includeDetails": ("details", _is_true),
    "includeControl": ("control", _is_true),
    "columnNameOfCorruptRecord": ("corrupt_column", _text),
    "at": ("at_ms", _number),
    "valueAs": ("value_as", _word(*KINDS)),
    "keyAs": ("key_as", _word(*KINDS)),
    "schemas": ("schemas", _text),
    "schemaOf": ("schema_of", _schema_of),
    "rangeBytes": ("range_bytes", _size),
    "minPartitions": ("least_tasks", _count),
    "isolationLevel": ("is_committed", _is_committed),
    "kafka.isolation.level": ("is_committed", _is_committed),
    "includeBelowLogStart": ("reads_below_log_start", _is_true),
    "upTo": ("reads_to_log_end", _is("logEnd", "highWatermark", "logEnd")),
    "failOnDataLoss": ("fails_on_loss", _is_true),
    "maxOffsetsPerTrigger": ("max_offsets", _count),
}


def resolved_paths(options: ReadOptions) -> list[Path]:
    """The paths of the options; with recursiveFileLookup the partitions below them.

    Raises UnreadableFile where a directory cannot be listed, and BadOption where nothing fits a pattern.
    """
    places = [found for each in options.paths for found in _fitting(path_of(each))]
    if not options.recursive:
        return places
    return [found for place in places for found in (_partitions_below(place) if place.is_dir() else (place,))]


def _fitting(place: Path) -> list[Path]:
    """The directories and logs that fit a path with ``*``, ``?``, ``[ab]`` or ``{a,b}``, as Spark's own sources have.

    A path that exists as it is written is no pattern.
    """
    pattern = _PATTERN_OF_ADDRESS if is_remote(place) else _PATTERN
    if pattern.search(str(place)) is None or (not is_remote(place) and is_there(place)):
        return [place]
    found: dict[Path, None] = {}
    for written in _without_braces(str(place)):
        whole = path_of(written)
        steps: list[str] = []
        while pattern.search(str(whole)) and whole != whole.parent:
            steps.insert(0, whole.name)
            whole = whole.parent
        found |= dict.fromkeys(_below(whole, steps))
    if not found:
        raise BadOption(f"no directory and no log fits the path {place}")
    return list(found)


def _without_braces(text: str) -> Iterator[str]:
    """The texts that a text with alternatives, as ``node-{1,2}``, stands for."""
    pieces = _BRACES.split(text)  # every second one is the inside of braces
    choices = [piece.split(",") if number % 2 else [piece] for number, piece in enumerate(pieces)]
    return map("".join, product(*choices))


def _below(place: Path, steps: list[str]) -> Iterator[Path]:
    """The paths below a directory whose names fit the steps, each a name or a pattern."""
    if not steps:
        if layout.SEGMENT_FILE.match(place.name) or place.is_dir():
            yield place
        return
    if _PATTERN.search(steps[0]) is None:
        if is_there(place / steps[0]):
            yield from _below(place / steps[0], steps[1:])
        return
    for name in _names(place, only_directories=len(steps) > 1):
        if fnmatch.fnmatchcase(name, steps[0]) and not name.startswith("."):
            yield from _below(place / name, steps[1:])


def _partitions_below(place: Path) -> Iterator[Path]:
    if looks_like_partition(place):
        yield place
        return
    for name in _names(place, only_directories=True):
        yield from _partitions_below(place / name)


def _names(place: Path, *, only_directories: bool) -> list[str]:
    try:
        with entries_of(place) as entries:
            found = [each.name for each in entries if not only_directories or each.is_dir(follow_symlinks=False)]
    except OSError as error:
        raise UnreadableFile(f"cannot list: {os_reason(error)}", Location(str(place))) from error
    return sorted(found)
