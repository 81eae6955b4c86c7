"""The schemas of a registry, from the records of its topic.

The keys and values are JSON (schema-registry storage SchemaKey, SchemaValue, DeleteSubjectValue, ClearSubjectValue).
A version of a subject is deleted by its value or by DELETE_SUBJECT, and then still serves its id; it is purged
by a null or by CLEAR_SUBJECT. What the log still has of it is kept, for the values that name its id.
"""

from __future__ import annotations

import hashlib
from base64 import b64decode
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import TypeVar
from uuid import UUID

import msgspec
from msgspec.structs import replace

from format.errors import CorruptDataError, KafkaLogError, LimitExceeded
from format.findings import Finding, Judgement, Severity, finding, finding_of
from format.limits import DEFAULT_LIMITS, MIB, Limits
from format.location import Location
from format.log.read_records import record_tables
from format.scan.protocol import Depth, Needs, OpenedRange
from format.scan.read_log import selected_chunks
from format.scan.selection import EVERYTHING

TOPIC = "_schemas"
#: The names of kinds of schemas as the registry and as this program writes them.
_KINDS = {"AVRO": "avro", "PROTOBUF": "protobuf", "JSON": "json-schema"}
_MOST_TEXT_BYTES = 256 * MIB
_CONTEXT = ":."


class Reference(msgspec.Struct, frozen=True):
    """A schema that another one refers to: by a name of its own, a version of a subject."""

    name: str
    subject: str
    version: int


class SchemaVersion(msgspec.Struct, frozen=True):
    """A version of a subject. ``state`` is "active", "deleted", or "purged".

    ``kind`` is "avro", "protobuf" or "json-schema", or another word as the registry has it. ``offset`` and
    ``timestamp`` (ms) are those of the record that set the state. ``registry`` is the cluster or the directory of the
    topic.
    """

    subject: str
    version: int
    id: int
    guid: str
    kind: str
    text: str
    references: tuple[Reference, ...]
    state: str
    offset: int
    timestamp: int
    registry: str = ""

    @property
    def context(self) -> str:
        """The context of the subject: ids belong to it. It is "." for a subject without one."""
        return context_of(self.subject)


def context_of(subject: str) -> str:
    """The context that a subject names before its own name, such as ".lab" in ":.lab:orders-value"."""
    return subject[1:].partition(":")[0] if subject.startswith(_CONTEXT) else "."


def name_without_context(subject: str) -> str:
    """The name of a subject in its context."""
    return subject[1:].partition(":")[2] if subject.startswith(_CONTEXT) else subject


class RegistryRecord(msgspec.Struct, frozen=True):
    """A record of the topic, and where it is."""

    offset: int
    timestamp: int
    place: Location
    key: bytes | None
    value: bytes | None


class RegistryRecords(msgspec.Struct, frozen=True):
    """The records of the topic, as a walk; with findings for what cannot be read."""

    limits: Limits = DEFAULT_LIMITS

    @property
    def needs(self) -> Needs:
        return Needs(Depth.RECORDS, EVERYTHING, self.limits)

    def parts(self, opened: OpenedRange) -> Iterator[RegistryRecord | Finding]:
        """The records in log order."""
        for item in selected_chunks(opened, self.needs):
            if isinstance(item, Finding):
                yield item
                continue
            table = item.chunk.table
            wanted = item.readable & ~table.is_control
            for records in record_tables(item.chunk, which=wanted, limits=self.limits, location=item.location):
                yield from (finding_of(problem.error, item.location) for problem in records.problems)
                for row, offset, timestamp in zip(
                    range(len(records)), records.offset.tolist(), records.timestamp.tolist(), strict=True
                ):
                    place = item.location.at(position=int(table.position[records.batch[row]]), offset=offset)
                    yield RegistryRecord(offset, timestamp, place, records.key(row), records.value(row))


class _Key(msgspec.Struct):
    keytype: str
    magic: int = 0
    subject: str | None = None
    version: int = 0


class _Metadata(msgspec.Struct):
    tags: dict[str, list[str]] | None = None
    properties: dict[str, str] | None = None
    sensitive: list[str] | None = None


class _Rule(msgspec.Struct, rename="camel"):
    name: str | None = None
    doc: str | None = None
    kind: str | None = None
    mode: str | None = None
    type: str | None = None
    tags: list[str] | None = None
    params: dict[str, str] | None = None
    expr: str | None = None
    on_success: str | None = None
    on_failure: str | None = None
    disabled: bool = False


class _RuleSet(msgspec.Struct, rename="camel"):
    migration_rules: list[_Rule] | None = None
    domain_rules: list[_Rule] | None = None
    encoding_rules: list[_Rule] | None = None
    enable_at: str | None = None


class _SchemaValue(msgspec.Struct, rename="camel"):
    id: int
    schema: str
    schema_type: str | None = None
    references: tuple[Reference, ...] | None = None
    metadata: _Metadata | None = None
    rule_set: _RuleSet | None = None
    md5: str | None = None
    deleted: bool = False


class _SubjectValue(msgspec.Struct):
    subject: str
    version: int = 0


class _ConfigValue(msgspec.Struct, rename="camel"):
    compatibility_level: str | None = None


_key = msgspec.json.Decoder(_Key)
_schema_value = msgspec.json.Decoder(_SchemaValue)
_subject_value = msgspec.json.Decoder(_SubjectValue)
_config_value = msgspec.json.Decoder(_ConfigValue)
_IGNORED = ("NOOP", "MODE", "CONTEXT", "ASSOC")
_INVALID = "internal-record-invalid"
T = TypeVar("T")


class Registry:
    """The state of a registry, fed with the records of its topic in log order."""

    def __init__(self, name: str = "") -> None:
        self.name = name
        self.findings: list[Finding] = []
        #: The compatibility that is set for a subject; that of None holds for the others.
        self.compatibility: dict[str | None, str] = {}
        self._subjects: dict[str, dict[int, SchemaVersion]] = {}
        self._texts: dict[tuple[str, int], tuple[str, set[tuple[str, int]]]] = {}  # and its versions, by context and id
        self._deleted: dict[str, set[tuple[str, int]]] = {}  # by context
        self._text_bytes = 0

    def versions(self) -> Iterator[SchemaVersion]:
        """The versions by subject and number."""
        for _, versions in sorted(self._subjects.items()):
            yield from (each for _, each in sorted(versions.items()))

    def feed(self, records: Iterable[RegistryRecord | Finding], until_ms: int | None = None) -> None:
        """Apply the records that are not later than a time (ms)."""
        for record in records:
            if isinstance(record, Finding):
                self.findings.append(record)
            elif until_ms is None or record.timestamp <= until_ms:
                try:
                    self._take(record)
                except KafkaLogError as error:
                    self.findings.append(finding_of(error, record.place))

    def _take(self, record: RegistryRecord) -> None:
        key = _decoded(_key, record.key, "key")
        if key.keytype == "SCHEMA":
            self._take_schema(key, record)
        elif key.keytype == "CONFIG":
            value = None if record.value is None else _decoded(_config_value, record.value, "value")
            if value is None or value.compatibility_level is None:
                self.compatibility.pop(key.subject, None)
            else:
                self.compatibility[key.subject] = value.compatibility_level
        elif key.keytype in ("DELETE_SUBJECT", "CLEAR_SUBJECT"):
            if record.value is not None:
                self._take_deletion(key.keytype, _decoded(_subject_value, record.value, "value"), record)
        elif key.keytype not in _IGNORED:
            words = f"a key of the type {key.keytype!r}, which this program does not know"
            self.findings.append(
                finding("version-unknown", record.place, words, judgement=Judgement(severity=Severity.INFO))
            )

    def _take_schema(self, key: _Key, record: RegistryRecord) -> None:
        if key.subject is None or key.version < 1 or key.magic not in (0, 1):
            raise CorruptDataError("a key of a schema without a subject, a version or a known magic", code=_INVALID)
        if record.value is None:
            self._set_state(key.subject, key.version, "purged", record)
            return
        value = _decoded(_schema_value, record.value, "value")
        context = context_of(key.subject)
        text, users = self._texts.get((context, value.id), (value.schema, set()))
        if text != value.schema and any(self._subjects[name][number].state != "purged" for name, number in users):
            words = f"another schema than before with the id {value.id}: the registry ignores it"
            self.findings.append(finding(_INVALID, record.place, words, judgement=Judgement(severity=Severity.WARNING)))
            return
        self._text_bytes += len(record.value)
        if self._text_bytes > _MOST_TEXT_BYTES:
            raise LimitExceeded(f"the schemas have more than {_MOST_TEXT_BYTES // MIB} MiB: not read from here on")
        users.add((key.subject, key.version))
        self._texts[context, value.id] = value.schema, users
        kind = value.schema_type or "AVRO"
        self._subjects.setdefault(key.subject, {})[key.version] = SchemaVersion(
            key.subject, key.version, value.id, _guid(value), _KINDS.get(kind, kind), value.schema,
            value.references or (), "active", record.offset, record.timestamp, self.name,
        )  # fmt: skip
        self._deleted.get(context, set()).discard((key.subject, key.version))
        if value.deleted:
            self._set_state(key.subject, key.version, "deleted", record)

    def _take_deletion(self, keytype: str, value: _SubjectValue, record: RegistryRecord) -> None:
        context = context_of(value.subject)
        if keytype == "DELETE_SUBJECT":
            for number, each in list(self._subjects.get(value.subject, {}).items()):
                if each.state == "active" and number <= value.version:
                    self._set_state(value.subject, number, "deleted", record)
        elif not name_without_context(value.subject):
            for subject, number in list(self._deleted.get(context, ())):
                self._set_state(subject, number, "purged", record)
        else:
            for number, each in list(self._subjects.get(value.subject, {}).items()):
                if each.state == "deleted":
                    self._set_state(value.subject, number, "purged", record)

    def _set_state(self, subject: str, version: int, state: str, record: RegistryRecord) -> None:
        known = self._subjects.get(subject, {}).get(version)
        if known is not None and known.state != "purged":
            new = replace(known, state=state, offset=record.offset, timestamp=record.timestamp)
            self._subjects[subject][version] = new
            deleted = self._deleted.setdefault(new.context, set())
            deleted.discard((subject, version))
            if state == "deleted":
                deleted.add((subject, version))


def _decoded(decoder: msgspec.json.Decoder[T], data: bytes | None, what: str) -> T:
    if data is None:
        raise CorruptDataError(f"a record without a {what}, which no schema registry writes", code=_INVALID)
    try:
        return decoder.decode(data)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise CorruptDataError(f"the {what} is not one of a schema registry: {error}", code=_INVALID) from None


def _guid(value: _SchemaValue) -> str:
    """The id of a schema that is the same in every registry: an MD5 (client rest/entities/Schema.updateHash)."""
    if value.md5 is not None:  # of the schema before its metadata was encrypted
        with suppress(ValueError):
            return str(UUID(bytes=b64decode(value.md5)))
    digest = hashlib.md5(value.schema.encode(), usedforsecurity=False)
    for each in value.references or ():
        digest.update(each.name.encode() + each.subject.encode() + (each.version & 0xFFFFFFFF).to_bytes(4, "big"))
    for part in (value.metadata, value.rule_set):
        if part is not None:
            digest.update(b"\x01")
            for word in _words_of_metadata(part) if isinstance(part, _Metadata) else _words_of_rules(part):
                digest.update(word.encode())
    return str(UUID(bytes=digest.digest()))


def _words_of_metadata(metadata: _Metadata) -> Iterator[str]:
    for name, values in sorted((metadata.tags or {}).items()):
        yield from (name, *sorted(values))
    for pair in sorted((metadata.properties or {}).items()):
        yield from pair
    yield from sorted(metadata.sensitive or ())


def _words_of_rules(rules: _RuleSet) -> Iterator[str]:
    for each in (*(rules.migration_rules or ()), *(rules.domain_rules or ()), *(rules.encoding_rules or ())):
        yield from filter(None, (each.name, each.doc, each.kind, each.mode, each.type))
        yield from sorted(each.tags or ())
        for pair in sorted((each.params or {}).items()):
            yield from pair
        yield from filter(None, (each.expr, each.on_success, each.on_failure))
        if each.disabled:
            yield "\x01"
    if rules.enable_at is not None:
        yield rules.enable_at
