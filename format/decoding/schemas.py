"""Schemas: those of a registry as its topic ``_schemas`` holds them, or files in a directory."""

from __future__ import annotations

import heapq
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import Any, Protocol

import msgspec

from format.decoding.avro import AvroSchema, names_in, schema_json
from format.decoding.leaves import Leaf
from format.decoding.plain import InvalidSchema, json_text
from format.decoding.registry import TOPIC, Registry, RegistryRecord, RegistryRecords, SchemaVersion, context_of
from format.errors import InputError, KafkaLogError
from format.files.meta_properties import ids_in
from format.findings import Finding, finding, finding_of
from format.io.session import is_on_disk
from format.io.source import read_whole
from format.limits import DEFAULT_LIMITS, Limits
from format.location import Location
from format.node.log_dir import Kind, LogDir, log_dir_around
from format.node.partition import Partition, location_of_directory, parse_partition_dir, read_partition
from format.node.target import Target
from format.scan.selected_logs import every_log_of
from format.state.log_headers import log_parts
from format.wording import did_you_mean, installing

_FILE_KINDS = {".avsc": "avro", ".proto": "protobuf", ".json": "json-schema"}
_MOST_FILES = 10_000
_MOST_REFERENCES = 1_000
_SCHEMA_OF = re.compile(r"(?P<topic>[^=]+)=(?P<file>.+?)(?::(?P<message>[A-Za-z_][\w.]*))?")


class SchemaOf(msgspec.Struct, frozen=True):
    """The schema of a topic's values: a file in the directory of schemas, and of Protobuf's messages the one meant."""

    file: str
    message: str | None = None


def schema_of_topic(text: str) -> tuple[str, SchemaOf]:
    """A topic and its schema from ``TOPIC=FILE[:MESSAGE]``. Raises ValueError."""
    found = _SCHEMA_OF.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is not TOPIC=FILE or TOPIC=FILE:MESSAGE")
    return found["topic"], SchemaOf(found["file"], found["message"])


class Parsed(Protocol):
    """A schema that can be used: ``names`` are the full names of what a subject may be named after."""

    kind: str
    names: tuple[str, ...]

    def text_of(self, data: bytes, start: int = 0) -> str:
        """The value after a frame that ends at byte ``start``, as JSON text. Raises Undecodable."""

    def bare_text_of(self, data: bytes, start: int = 0) -> str:
        """The value from byte ``start`` on that has no frame. Raises Undecodable."""

    def leaves_of(self, data: bytes, start: int, *, is_framed: bool) -> list[Leaf] | None:
        """The parts of a value that was decoded, in order; None for JSON, which has no bytes of its own for them.

        ``is_framed`` tells which of the other two functions decoded it. Raises Undecodable.
        """


class JsonSchema:
    """A JSON Schema: values are JSON, and are not held against it."""

    kind = "json-schema"
    names: tuple[str, ...] = ()

    def text_of(self, data: bytes, start: int = 0) -> str:
        """The value from byte ``start`` on, on one line. Raises Undecodable."""
        return json_text(data[start:])

    bare_text_of = text_of

    def leaves_of(self, data: bytes, start: int, *, is_framed: bool) -> None:
        """None: the value is JSON."""


class Schemas:
    """Schemas at hand, and findings about records or files that could not be read. Pickled without what it parsed.

    ``compatibility`` is that of a subject by registry and subject, or of all others under the subject None.
    """

    def __init__(
        self,
        versions: Iterable[SchemaVersion] = (),
        files: Mapping[str, str] | None = None,
        findings: Sequence[Finding] = (),
        compatibility: Mapping[tuple[str, str | None], str] | None = None,
    ) -> None:
        self.versions = tuple(versions)
        self.files = dict(files or {})
        self.findings = tuple(findings)
        self.compatibility = dict(compatibility or {})
        self._by_id: dict[int | str, list[SchemaVersion]] = {}
        self._by_place: dict[tuple[str, str, int], SchemaVersion] = {}
        self._parsed: dict[SchemaOf | tuple[str, str, int], Parsed | InvalidSchema] = {}
        for each in self.versions:
            self._by_id.setdefault(each.id, []).append(each)
            self._by_id.setdefault(each.guid, []).append(each)
            self._by_place[each.registry, each.subject, each.version] = each

    def __bool__(self) -> bool:
        """Whether there is any schema."""
        return bool(self.versions or self.files)

    def __reduce__(self) -> tuple[type[Schemas], tuple[Any, ...]]:
        return Schemas, (self.versions, self.files, self.findings, self.compatibility)

    def with_id(self, schema_id: int | str) -> Sequence[SchemaVersion]:
        """The versions with an id or a GUID."""
        return self._by_id.get(schema_id, ())

    def parsed(self, version: SchemaVersion) -> Parsed:
        """The schema of a version. Raises InvalidSchema."""
        place = version.registry, version.subject, version.version
        return self._parsed_once(place, lambda: self._parse(version))

    def parsed_file(self, named: SchemaOf) -> Parsed:
        """The schema in a file. Raises InvalidSchema."""
        return self._parsed_once(named, lambda: self._parse_file(named))

    def _parsed_once(self, place: SchemaOf | tuple[str, str, int], parse: Callable[[], Parsed]) -> Parsed:
        if place not in self._parsed:
            try:
                self._parsed[place] = parse()
            except InvalidSchema as error:
                self._parsed[place] = error
        found = self._parsed[place]
        if isinstance(found, InvalidSchema):
            raise found
        return found

    def _parse(self, version: SchemaVersion) -> Parsed:
        references = self._references(version)
        if version.kind == "avro":
            return AvroSchema(version.text, [text for _, text in references])
        if version.kind == "protobuf":
            return _protobuf(version.text, dict(references))
        if version.kind == "json-schema":
            return JsonSchema()
        raise InvalidSchema(f"schemas of the type {version.kind} are not known to this program")

    def _references(self, version: SchemaVersion) -> list[tuple[str, str]]:
        """The names and texts of the schemas that a schema needs, each after those that it needs itself."""
        found: dict[str, str] = {}
        under_way: set[str] = set()

        def add(user: SchemaVersion, depth: int) -> None:
            for each in user.references:
                if each.name in found or each.name in under_way:
                    continue
                if len(found) + depth > _MOST_REFERENCES:
                    raise InvalidSchema(f"the schema needs more than {_MOST_REFERENCES:,} others")
                subject = each.subject
                if user.context != "." and context_of(subject) == ".":
                    subject = f":{user.context}:{subject}"
                other = self._by_place.get((user.registry, subject, each.version))
                if other is None:
                    raise InvalidSchema(f"the schema needs version {each.version} of {subject}, which is not there")
                under_way.add(each.name)
                add(other, depth + 1)
                found[each.name] = other.text

        try:
            add(version, 0)
        except RecursionError:
            raise InvalidSchema("the references of the schema are nested too deeply") from None
        return list(found.items())

    def _parse_file(self, named: SchemaOf) -> Parsed:
        text = self.files.get(named.file)
        kind = _FILE_KINDS.get(PurePosixPath(named.file).suffix)
        if text is None or kind is None:
            raise InvalidSchema(f"there is no file of a schema with the name {named.file}")
        if kind == "avro":
            return AvroSchema(text, lookup=self._avro_types().get)
        if kind == "protobuf":
            protos = {name: each for name, each in self.files.items() if name.endswith(".proto")}
            return _protobuf(text, protos, named.message)
        return JsonSchema()

    def _avro_types(self) -> dict[str, str]:
        """The texts of the files of Avro, by the types that each defines: the file where it is outermost, if any."""
        found: dict[str, str] = {}
        for name, text in self.files.items():
            if name.endswith(".avsc"):
                with suppress(InvalidSchema, RecursionError):
                    for number, each in enumerate(names_in(schema_json(text))):
                        found[each] = found.get(each, text) if number else text
        return found


def _protobuf(text: str, imports: Mapping[str, str], message: str | None = None) -> Parsed:
    try:
        from format.decoding.protobuf import ProtobufSchema
    except ImportError:
        raise InvalidSchema(f"Protobuf needs {installing('decode')}") from None
    return ProtobufSchema(text, imports, message)


def find_schemas(targets: Iterable[Target], until_ms: int | None = None, limits: Limits = DEFAULT_LIMITS) -> Schemas:
    """The schemas of the registries whose topic is at some paths or beside them, as of a time (ms); empty for none."""
    found: dict[Path, tuple[Partition, LogDir | None]] = {}
    findings: list[Finding] = []
    for target in targets:
        around = None
        if target.kind is not Kind.LOG_DIR:
            around = log_dir_around(target.path if target.kind is Kind.PARTITION else target.path.parent)
        for log_dir in target.log_dirs or (() if around is None else (around,)):
            for path in log_dir.partitions:
                parsed = parse_partition_dir(path.name)
                if parsed is not None and parsed[0] == TOPIC and parsed[2] is None:
                    try:
                        found[path] = read_partition(path), log_dir
                    except KafkaLogError as error:
                        findings.append(finding_of(error, location_of_directory(path)))
    return _of_partitions(found.values(), until_ms, limits, findings)


def schemas_for(targets: Iterable[Target], given: Target | None, limits: Limits = DEFAULT_LIMITS) -> Schemas:
    """The schemas at the path that was given for them, or without one those of ``find_schemas``. Raises InputError."""
    if given is None:
        return find_schemas(targets, limits=limits)
    found = schemas_at([given], limits=limits)
    if not found:  # not a registry's topic: what was found in it is no damage
        raise InputError(f"no schema can be read there: {found.findings[0].message}", Location(str(given.path)))
    return found


def check_files(schemas: Schemas, schema_of: Mapping[str, SchemaOf]) -> None:
    """Raises InputError where the file of a topic's schema is not among the files of schemas, or has no messages."""
    for each in schema_of.values():
        if each.file not in schemas.files:
            meant = did_you_mean(each.file, schemas.files)
            raise InputError(f"there is no file {each.file} in the directory of schemas.{meant}")
        if each.message is not None and not each.file.endswith(".proto"):
            raise InputError(f"{each.file} has no messages, as a .proto file has: leave out :{each.message}")


def schemas_at(targets: Iterable[Target], until_ms: int | None = None, limits: Limits = DEFAULT_LIMITS) -> Schemas:
    """The schemas at paths that were given for them: partitions with any name, nodes, bundles, directories of files.

    Raises InputError for a path without schemas.
    """
    found: list[Schemas] = []
    for target in targets:
        try:
            kind: Kind | None = target.kind
        except InputError:
            if not (is_on_disk(target.path) and target.path.is_dir()):
                raise
            kind = None
        if kind is None:
            found.append(_of_files(target.path, limits))
        elif kind is Kind.PARTITION:
            found.append(_of_partitions([(target.partition, log_dir_around(target.path))], until_ms, limits))
        else:
            found.append(find_schemas([target], until_ms, limits))
        if not found[-1] and not found[-1].findings:
            words = f"there are no schemas here: no record of {TOPIC}, and no .avsc, .proto or .json file"
            raise InputError(words, Location(str(target.path)))
    return Schemas(
        (version for each in found for version in each.versions),
        {name: text for each in found for name, text in each.files.items()},
        [finding for each in found for finding in each.findings],
        {place: level for each in found for place, level in each.compatibility.items()},
    )


def _of_partitions(
    partitions: Iterable[tuple[Partition, LogDir | None]],
    until_ms: int | None,
    limits: Limits,
    findings: Sequence[Finding] = (),
) -> Schemas:
    """The schemas of partitions. Replicas, and partitions of one cluster, are one registry."""
    replicas: dict[str, dict[tuple[str | None, int | None], list[Partition]]] = {}
    for partition, log_dir in partitions:
        cluster = None if log_dir is None else ids_in(log_dir.meta_properties)[1]
        name = cluster or str(partition.path.parent)
        replicas.setdefault(name, {}).setdefault((partition.topic, partition.number), []).append(partition)
    versions: list[SchemaVersion] = []
    findings = list(findings)
    compatibility: dict[tuple[str, str | None], str] = {}
    for name, own in replicas.items():
        registry = Registry(name)
        for _, each in sorted(own.items(), key=lambda item: (item[0][0] or "", item[0][1] or 0)):
            registry.feed(_merged(each, findings, limits), until_ms)
        versions += registry.versions()
        findings += registry.findings
        compatibility |= {(name, subject): level for subject, level in registry.compatibility.items()}
    return Schemas(versions, findings=findings, compatibility=compatibility)


def _merged(replicas: Sequence[Partition], findings: list[Finding], limits: Limits) -> Iterator[RegistryRecord]:
    """The records of the replicas of a partition by offset, each once: what one of them has lost, another has."""
    last = -1
    streams = [_records(each, findings, limits) for each in replicas]
    for record in heapq.merge(*streams, key=lambda each: each.offset):
        if record.offset > last or len(replicas) == 1:
            yield record
        last = max(last, record.offset)


def _records(partition: Partition, findings: list[Finding], limits: Limits) -> Iterator[RegistryRecord]:
    for log in every_log_of(partition):
        for part in log_parts(RegistryRecords(limits), log):
            if isinstance(part, Finding):
                findings.append(part)
            else:
                yield part


def _of_files(directory: Path, limits: Limits) -> Schemas:
    """The files of schemas in a directory and below it, by their names there with slashes. Links are not followed."""
    files: dict[str, str] = {}
    findings: list[Finding] = []
    for folder, folders, names in os.walk(directory):
        folders.sort()
        for name in sorted(names):
            path = Path(folder, name)
            if path.suffix in _FILE_KINDS and path.is_file() and not path.is_symlink():
                place = Location(str(path))
                if len(files) == _MOST_FILES:
                    raise InputError(f"more than {_MOST_FILES:,} files of schemas", Location(str(directory)))
                try:
                    files[path.relative_to(directory).as_posix()] = read_whole(path, limits.max_side_file_bytes).decode(
                        "utf-8-sig"
                    )
                except UnicodeError:
                    findings.append(finding("file-unreadable", place, "not a schema: it is not UTF-8"))
                except KafkaLogError as error:
                    findings.append(finding_of(error, place))
    return Schemas(files=files, findings=findings)
