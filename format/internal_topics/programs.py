"""The schemas of an internal topic as programs of ``format.kernel.messages``.

It checks records some hundred times as fast as the decoder reads them.

Source: as for ``format.internal_topics.reader``.
"""

from __future__ import annotations

from functools import cache

import msgspec
import numpy as np
from numpy.typing import NDArray

from format.internal_topics.decoder import decoder_for
from format.internal_topics.schema import FIXED_WIDTH_TYPES, Field, Message
from format.internal_topics.schemas.transaction_state import TRANSACTION_STATUSES
from format.kernel import messages as kernel
from format.kernel.messages import find_odd_coordinator_record, find_odd_framed_record
from format.log.record_table import RecordTable

#: The last feature level of transaction.version (server-common TransactionVersion).
LAST_CLIENT_VERSION = 2
#: The largest value that a broker accepts in fields that are numbers of something.
_LARGEST = {"transactionStatus": len(TRANSACTION_STATUSES) - 1, "clientTransactionVersion": LAST_CLIENT_VERSION}


class Programs(msgspec.Struct, frozen=True):
    """The programs of a topic: ``messages`` has a row for each record type, ``steps`` the steps of all of them."""

    messages: NDArray[np.int64]
    steps: NDArray[np.int64]


@cache
def programs_of(topic: str) -> Programs | None:
    """The programs of an internal topic, None for other topics."""
    decoder = decoder_for(topic)
    if decoder is None:
        return None
    types = decoder.record_types
    versions = max(each.value.versions.highest for each in types.values()) + 1
    table = np.full((max(types) + 1, versions + 1), -1, np.int64)
    compiler = _Compiler()
    for number, record_type in types.items():
        if record_type.key is not None:
            table[number, 0] = compiler.message(record_type.key, 0)
        value = record_type.value
        for version in range(max(value.versions.lowest, 0), value.versions.highest + 1):
            table[number, version + 1] = compiler.message(value, version)
    return Programs(table, np.array(compiler.steps, np.int64))


def odd_rows(table: RecordTable, topic: str, *, is_framed: bool) -> set[int]:
    """The rows of a table whose key or value does not plainly follow the schemas of an internal topic.

    ``is_framed``: values begin with a frame that has the type of the record, as those of the metadata log do.
    """
    programs = programs_of(topic)
    if programs is None:
        return set()
    find = find_odd_framed_record if is_framed else find_odd_coordinator_record
    records, messages, steps = (
        memoryview(np.ascontiguousarray(each)) for each in (table.columns, programs.messages, programs.steps)
    )
    versions = programs.messages.shape[1] - 1
    rows: set[int] = set()
    row = find(table.buffer, records, messages, versions, steps, 0)
    while row >= 0:
        rows.add(row)
        row = find(table.buffer, records, messages, versions, steps, row + 1)
    return rows


class _Compiler:
    """Collects the steps of programs."""

    def __init__(self) -> None:
        self.steps: list[tuple[int, int, int]] = []

    def message(self, message: Message, version: int) -> int:
        """Add the program of a message in a version; the number of its first step."""
        return self._struct(message.fields, version, version in message.flexible)

    def _struct(self, fields: tuple[Field, ...], version: int, flexible: bool) -> int:
        present = [each for each in fields if version in each.versions]
        steps = [self._step(each, version, flexible) for each in present if each.tag is None]
        if flexible:
            tagged = [(each.tag, self._value(each, version)) for each in present if each.tag is not None]
            steps.append((kernel.STEP_TAGS, len(tagged), 0))
            steps += [(kernel.STEP_TAGS, tag, program) for tag, program in tagged]
        return self._added(steps)

    def _added(self, steps: list[tuple[int, int, int]]) -> int:
        start = len(self.steps)
        self.steps += [*steps, (kernel.STEP_END, 0, 0)]
        return start

    def _value(self, field: Field, version: int) -> int:
        """The program of the value of a tagged field."""
        return self._added([self._step(field, version, flexible=True)])

    def _step(self, field: Field, version: int, flexible: bool) -> tuple[int, int, int]:
        nullable = int(version in field.nullable)
        element_type = field.element_type
        if element_type is not None:
            if element_type == "struct":
                program = self._struct(field.fields, version, flexible)
            else:
                program = self._added([_plain_step(element_type, field.name, flexible, 0)])
            return (kernel.STEP_COMPACT_ARRAY if flexible else kernel.STEP_ARRAY, nullable, program)
        if field.type != "struct":
            return _plain_step(field.type, field.name, flexible, nullable)
        program = self._struct(field.fields, version, flexible)
        if not nullable:  # as a nullable one would be walked, without its first byte
            return (kernel.STEP_STRUCT, 0, program)
        return (kernel.STEP_NULLABLE if field.tag is None else kernel.STEP_NULLABLE_TAGGED, 0, program)


def _plain_step(type: str, name: str, flexible: bool, nullable: int) -> tuple[int, int, int]:
    width = FIXED_WIDTH_TYPES.get(type)
    if width is not None:
        if name in _LARGEST:
            return (kernel.STEP_SMALL, width, _LARGEST[name])
        return (kernel.STEP_SKIP, width, 0)
    if type == "string":
        return (kernel.STEP_COMPACT_STRING if flexible else kernel.STEP_STRING, nullable, 0)
    return (kernel.STEP_COMPACT_BYTES if flexible else kernel.STEP_BYTES, nullable, 0)
