"""Checks of the records of Kafka's own topics: whether a coordinator, or the metadata loader, can read them.

Source: coordinator-common CoordinatorLoaderImpl and CoordinatorRecordSerde, TransactionStateManager
(loadTransactionMetadata), raft RecordsIterator, server-common AbstractApiMessageSerde. A coordinator skips a record of
an unknown type. At any other record that it cannot read, the load of the partition ends.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import msgspec
import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from format import layout
from format.errors import KafkaLogError
from format.findings import Finding, Judgement, Severity, finding
from format.internal_topics.decoder import (
    INTERNAL_TOPICS,
    TRANSACTION_STATUSES,
    Decoder,
    decode_control_value,
    decoder_for,
)
from format.internal_topics.reader import INVALID, DecodedMessage, DecodingProblem
from format.internal_topics.schema import FIXED_WIDTH_TYPES, MessageField
from format.kernel import messages as kernel
from format.kernel.messages import find_odd_coordinator_record, find_odd_framed_record
from format.location import Location
from format.log.batch_table import batch_location
from format.log.control_records import decode_control_record
from format.log.record_table import RecordTable
from format.wording import counted

#: The last feature level of transaction.version (server-common TransactionVersion).
LAST_CLIENT_VERSION = 2
#: The largest value that a broker accepts in fields that are numbers of something.
_LARGEST = {"transactionStatus": len(TRANSACTION_STATUSES) - 1, "clientTransactionVersion": LAST_CLIENT_VERSION}


class Programs(msgspec.Struct, frozen=True):
    """The schemas of a topic as programs of ``format.kernel.messages``, some hundred times as fast as the decoder.

    ``messages`` has a row for each record type: the first steps of its key, and of its value in each version.
    """

    messages: NDArray[np.int64]
    steps: NDArray[np.int64]


@cache
def programs_of(topic: str) -> Programs:
    """The programs of an internal topic. Raises ValueError for other topics."""
    types = decoder_for(topic).record_types
    versions = max(each.value.versions.highest for each in types.values()) + 1
    table = np.full((max(types) + 1, versions + 1), -1, np.int64)
    compiler = _Compiler()
    for number, kind in types.items():
        if kind.key is not None:
            table[number, 0] = compiler.program(kind.key.fields, 0, 0 in kind.key.flexible)
        for version in kind.value.versions:
            table[number, version + 1] = compiler.program(kind.value.fields, version, version in kind.value.flexible)
    return Programs(table, np.array(compiler.steps, np.int64))


def odd_rows(table: RecordTable, topic: str) -> set[int]:
    """The rows of a table whose key or value does not plainly follow the schemas of an internal topic."""
    programs = programs_of(topic)
    find = find_odd_framed_record if decoder_for(topic).is_framed else find_odd_coordinator_record
    records, messages, steps = (
        memoryview(np.ascontiguousarray(each)) for each in (table.columns, programs.messages, programs.steps)
    )
    rows: set[int] = set()
    row = -1
    while (row := find(table.buffer, records, messages, programs.messages.shape[1] - 1, steps, row + 1)) >= 0:
        rows.add(row)
    return rows


class _Compiler:
    """Collects the steps of programs."""

    def __init__(self) -> None:
        self.steps: list[tuple[int, int, int]] = []

    def program(self, fields: tuple[MessageField, ...], version: int, flexible: bool) -> int:
        """Add the program of a message or struct in a version; the number of its first step."""
        present = [each for each in fields if version in each.versions]
        steps = [self._step(each, version, flexible) for each in present if each.tag is None]
        if flexible:
            tagged = [
                (each.tag, self._added([self._step(each, version, True)])) for each in present if each.tag is not None
            ]
            steps.append((kernel.STEP_TAGS, len(tagged), 0))
            steps += [(kernel.STEP_TAGS, tag, program) for tag, program in tagged]
        return self._added(steps)

    def _added(self, steps: list[tuple[int, int, int]]) -> int:
        start = len(self.steps)
        self.steps += [*steps, (kernel.STEP_END, 0, 0)]
        return start

    def _step(self, field: MessageField, version: int, flexible: bool) -> tuple[int, int, int]:
        nullable = int(version in field.nullable)
        if field.element_type is not None:
            if field.element_type == "struct":
                program = self.program(field.fields, version, flexible)
            else:
                program = self._added([_plain_step(field.element_type, field.name, flexible, 0)])
            return (kernel.STEP_COMPACT_ARRAY if flexible else kernel.STEP_ARRAY, nullable, program)
        if field.type != "struct":
            return _plain_step(field.type, field.name, flexible, nullable)
        program = self.program(field.fields, version, flexible)
        if not nullable:  # as a nullable one would be walked, without its first byte
            return (kernel.STEP_STRUCT, 0, program)
        return (kernel.STEP_NULLABLE if field.tag is None else kernel.STEP_NULLABLE_TAGGED, 0, program)


def _plain_step(type: str, name: str, flexible: bool, nullable: int) -> tuple[int, int, int]:
    width = FIXED_WIDTH_TYPES.get(type)
    if width is not None:
        return (kernel.STEP_SMALL, width, _LARGEST[name]) if name in _LARGEST else (kernel.STEP_SKIP, width, 0)
    if type == "string":
        return (kernel.STEP_COMPACT_STRING if flexible else kernel.STEP_STRING, nullable, 0)
    return (kernel.STEP_COMPACT_BYTES if flexible else kernel.STEP_BYTES, nullable, 0)


#: What follows where a broker cannot read a record of a topic.
_GROUPS_LOST = (
    "the load of the partition ends here: from Kafka 4.0 on, no group of it can be used; before, no group of it has "
    "committed offsets"
)
_CONSEQUENCES = {
    layout.CONSUMER_OFFSETS_TOPIC: _GROUPS_LOST,
    layout.TRANSACTION_STATE_TOPIC: (
        "the load of the partition ends here: the broker forgets the transactional ids of all records after it"
    ),
    layout.SHARE_GROUP_STATE_TOPIC: "the load of the partition ends here: no share group of it can be read",
    layout.CLUSTER_METADATA_TOPIC: "a broker or controller stops here",
}
_CONTROL_BATCH = DecodingProblem(INVALID, Severity.ERROR, "a control record, which is read as any other", "", 0)
_SHARE_UPDATE = 1  # the record type
_STATUS_AT = 16  # in a value of __transaction_state
_PARTITIONS_AT = _STATUS_AT + 1


class OddRecords(msgspec.Struct, frozen=True):
    """Findings about the records of a table, and the rows of those that no broker can read."""

    findings: list[Finding]
    unreadable: set[int]


class InternalRecordCheck(msgspec.Struct, frozen=True):
    """Checks the records of one internal topic, in a log at a place."""

    topic: str
    location: Location

    @classmethod
    def of(cls, location: Location) -> InternalRecordCheck | None:
        """The check for a log, None if its topic is not internal."""
        return cls(location.topic, location) if location.topic in INTERNAL_TOPICS else None

    @property
    def decoder(self) -> Decoder:
        """The decoder of the topic. Raises ValueError for a topic that is not internal."""
        return decoder_for(self.topic)

    def findings(self, table: RecordTable) -> Iterator[Finding]:
        """Findings for each record that a broker does not read, or that is not as a broker writes it."""
        for row, problem in self._odd_records(table):
            yield self._finding(table, row, problem)

    def summary(self, table: RecordTable) -> OddRecords:
        """As ``findings``, but one for all records of the table with which the same is wrong: for the first of them."""
        rows_of: dict[DecodingProblem, list[int]] = {}
        for row, problem in self._odd_records(table):
            rows_of.setdefault(problem, []).append(row)
        found = [self._finding(table, rows[0], each, more=len(rows) - 1) for each, rows in rows_of.items()]
        odd = {row for rows in rows_of.values() for row in rows}
        return OddRecords(found, {row for row in odd if not self._is_readable(table.key(row), table.value(row))})

    def _is_readable(self, key: bytes | None, value: bytes | None) -> bool:
        """Whether a record has a type and a content, or is a tombstone."""
        try:
            decoded_key = self.decoder.decode_key(key)
            decoded = self.decoder.decode_value(decoded_key, value)
        except KafkaLogError:
            return False
        has_type = decoded_key.data is not None or self.decoder.is_framed
        has_content = decoded.data is not None or decoded.is_tombstone
        return has_type and has_content and not any(self._contradictions(decoded))

    def _odd_records(self, table: RecordTable) -> Iterator[tuple[int, DecodingProblem]]:
        """Each row that is not as a broker writes it, with each thing that is wrong with it."""
        if not len(table):
            return
        is_control = table.batches.is_control[table.batch]
        if self.topic == layout.TRANSACTION_STATE_TOPIC:
            yield from ((row, _CONTROL_BATCH) for row in np.flatnonzero(is_control).tolist())
        elif self.topic == layout.CLUSTER_METADATA_TOPIC:
            for row in np.flatnonzero(is_control).tolist():
                yield from ((row, each) for each in _control_problems(table.key(row), table.value(row)))
        rows = np.flatnonzero(~is_control)
        plain = table if len(rows) == len(table) else table.rows(rows)
        for row in self._odd_rows(plain) if len(plain) else ():
            for problem in self.problems(plain.key(row), plain.value(row)):
                yield int(rows[row]), problem

    def _odd_rows(self, table: RecordTable) -> list[int]:
        """The rows that are not plainly sound."""
        rows = odd_rows(table, self.topic)
        if self.topic == layout.TRANSACTION_STATE_TOPIC:
            rows.update(_lacks_partitions(table))
        elif self.topic == layout.SHARE_GROUP_STATE_TOPIC:
            rows.update(_update_tombstones(table))
        return sorted(rows)

    def problems(self, key: bytes | None, value: bytes | None) -> Iterator[DecodingProblem]:
        """What is wrong with a record, as a broker sees it."""
        try:
            decoded_key = self.decoder.decode_key(key)
            if decoded_key.raw is not None and decoded_key.type_id is not None:
                yield from decoded_key.problems  # a type that is not known: its value is not looked at
                return
            decoded = self.decoder.decode_value(decoded_key, value)
        except KafkaLogError as error:
            yield DecodingProblem(INVALID, Severity.ERROR, error.message, "", 0)
            return
        for problem in (*decoded_key.problems, *decoded.problems):
            yield self._judged(problem, decoded)
        yield from self._contradictions(decoded)

    def _judged(self, problem: DecodingProblem, value: DecodedMessage) -> DecodingProblem:
        """A problem with the severity that it has for a broker."""
        if problem.code == "version-unknown" and value.data is None:
            if value.name == "TransactionLogValue":
                message = f"{problem.message}: a 4.3 broker skips the record, a 3.9 broker loads none after it"
                return replace(problem, message=message)
            if problem.part == "value":
                if value.version is None or value.version >= 0:
                    return replace(problem, severity=Severity.WARNING)
                return replace(problem, code=INVALID, severity=Severity.ERROR)
        elif self.topic == layout.CLUSTER_METADATA_TOPIC and (
            problem.part == "key" or value.is_tombstone or "bytes are left" in problem.message
        ):
            return replace(problem, severity=Severity.ERROR)
        return problem

    def _contradictions(self, value: DecodedMessage) -> Iterator[DecodingProblem]:
        """What a broker refuses in a value that it can decode."""
        data = value.data
        if value.is_tombstone and value.name == "ShareUpdateValue":
            yield DecodingProblem(INVALID, Severity.ERROR, "a tombstone, which updates do not have", "value", 0)
        if data is None or value.name != "TransactionLogValue":
            return
        for name, largest in _LARGEST.items():
            if not 0 <= data.get(name, 0) <= largest:
                yield DecodingProblem(INVALID, Severity.ERROR, f"{name} {data[name]} is not one", "value", 0)
        if 0 < data["transactionStatus"] < len(TRANSACTION_STATUSES) and data["transactionPartitions"] is None:
            message = "a transaction without transactionPartitions"
            yield DecodingProblem(INVALID, Severity.ERROR, message, "value", _PARTITIONS_AT)

    def _finding(self, table: RecordTable, row: int, problem: DecodingProblem, more: int = 0) -> Finding:
        batch, offset = int(table.batch[row]), int(table.offset[row])
        place = batch_location(self.location, table.batches, batch)
        part = f"{problem.part}: " if problem.part else ""
        message = f"the record at offset {offset}: {part}{problem.message}"
        consequence = _CONSEQUENCES.get(self.topic)
        if problem.severity >= Severity.ERROR and consequence is not None:
            message += f"; {consequence}"
        elif problem.severity is Severity.WARNING and problem.code == "version-unknown" and consequence is not None:
            message += f"; in a broker that does not know it, {consequence}"
        if more:
            message += f"; {counted(more, 'more record')} like it"
        return finding(
            problem.code,
            place.at(place.position, place.length, offset),
            message,
            judgement=Judgement(severity=problem.severity),
        )


def _control_problems(key: bytes | None, value: bytes | None) -> Iterator[DecodingProblem]:
    """What is wrong with a control record of the raft log: newer than this program, or against its schema."""
    try:
        decoded = decode_control_value(decode_control_record(key, value).type_number, value)
    except KafkaLogError as error:
        yield DecodingProblem(INVALID, Severity.ERROR, error.message, "", 0)
        return
    for each in decoded.problems:
        is_unread = each.code == "version-unknown" and decoded.data is None
        yield DecodingProblem(each.code, Severity.WARNING if is_unread else each.severity, each.message, each.part, 0)


def _lacks_partitions(table: RecordTable) -> list[int]:
    """The rows of transactions that have a status that needs partitions, and null in place of them."""
    rows = np.flatnonzero(table.value_length > _PARTITIONS_AT)
    source, start = np.frombuffer(table.buffer, np.uint8), table.value_start[rows]
    version, status, first = source[start + 1], source[start + _STATUS_AT], source[start + _PARTITIONS_AT]
    lacks = (status > 0) & (((version == 0) & (first >= 0x80)) | ((version == 1) & (first == 0)))
    found: list[int] = rows[lacks].tolist()
    return found


def _update_tombstones(table: RecordTable) -> list[int]:
    """The rows of __share_group_state that are updates without a value, which a broker does not expect."""
    rows = np.flatnonzero((table.value_length < 0) & (table.key_length >= 2))
    types = np.frombuffer(table.buffer, np.uint8)[table.key_start[rows] + 1]
    found: list[int] = rows[types == _SHARE_UPDATE].tolist()
    return found
