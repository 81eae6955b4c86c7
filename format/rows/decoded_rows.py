"""Records with what their keys and values say, by ``format.decoding``, and findings about those that do not decode."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from functools import lru_cache

import msgspec
import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from format.columns import DECODED_COLUMNS
from format.decoding.decoder import Decoding, FieldDecoder, TopicDecoder
from format.findings import Finding, Judgement, finding
from format.location import Location
from format.log.record_table import RecordTable
from format.rows.internal_record_rows import decoder_of
from format.rows.record_rows import bounded_parts
from format.scan.protocol import Cost
from format.wording import counted_plainly, shell_line

#: Measured, for small records of Avro.
DECODING_COST = Cost(batch_s=0.9e-6, byte_s=60e-9, compressed_byte_s=70e-9)
#: So many records are decoded at once, and fewer at first, of which more are seldom needed.
_FIRST_ROWS = 4
_MOST_ROWS = 4096
_MOST_BYTES = 1024 * 1024
#: The columns of a field among DECODED_COLUMNS, by its name.
_COLUMNS = {"key": slice(0, 3), "value": slice(3, 6)}
#: The ends of the names of headers with schema ids: Confluent's and Apicurio's.
_HEADERS = (b"_schema_id", b".globalId")


class UndecodableField(msgspec.Struct, frozen=True):
    """A key or a value (``field``) that could not be decoded, and its row in a table of records."""

    row: int
    field: str
    schema_id: int | str | None
    reason: str


def decoded_tables(
    table: RecordTable, location: Location, decoding: Decoding | None
) -> Iterator[RecordTable | Finding]:
    """The records of a table in order, with their keys and values decoded, and each finding before its first record.

    The table as it is without ``decoding``. Kafka's own records are left as they are: ``decode_internal`` decodes them.
    """
    if decoding is None:
        yield table
        return
    decoder = topic_decoder(location, decoding)
    first, at_once = 0, _FIRST_ROWS
    while first < len(table):
        for part in bounded_parts(table.rows(slice(first, first + at_once)), _MOST_BYTES):
            found, undecodable = decoded_table(part, decoder)
            done = 0
            for row, each in _findings(found, undecodable, location):
                if row > done:
                    yield found.rows(slice(done, row))
                yield each
                done = row
            yield found.rows(slice(done, len(found)))
        first += at_once
        at_once = min(2 * at_once, _MOST_ROWS)


def topic_decoder(location: Location, decoding: Decoding) -> TopicDecoder | None:
    """The decoder of a log's topic; None for Kafka's own, whose records ``decode_internal`` decodes."""
    return None if decoder_of(location) is not None else decoding.topic(location.topic or "")


def decoded_table(table: RecordTable, decoder: TopicDecoder | None) -> tuple[RecordTable, list[UndecodableField]]:
    """The records with their decoded columns, and what could not be decoded. Control records are left as they are."""
    decoded = np.full((len(table), len(DECODED_COLUMNS)), None)
    undecodable: list[UndecodableField] = []
    if decoder is None or not len(table):
        return replace(table, decoded=decoded), undecodable
    first, end = int(table.start[0]), int(table.start[-1] + table.size_bytes[-1])
    has_headers = bool((table.header_count > 0).any())
    if has_headers:
        content = bytes(table.buffer[first:end])
        has_headers = any(name in content for name in _HEADERS)
    for field, own in decoder.items():
        _decode_field(table, field, own, decoded, undecodable, has_headers=has_headers)
    undecodable.sort(key=lambda each: each.row)
    return replace(table, decoded=decoded), undecodable


def _decode_field(
    table: RecordTable,
    field: str,
    decoder: FieldDecoder,
    decoded: NDArray[np.object_],
    undecodable: list[UndecodableField],
    *,
    has_headers: bool,
) -> None:
    """Decode the keys or the values: at once what begins with the id of a schema or is ASCII, the others one by one."""
    columns = _COLUMNS[field]
    is_key = field == "key"
    starts, lengths = (table.key_start, table.key_length) if is_key else (table.value_start, table.value_length)
    lengths = np.where(table.batches.is_control[table.batch], -1, lengths)
    is_left = lengths >= 0
    if decoder.kind == "raw":
        decoded[is_left, columns.stop - 1] = "raw"
        return
    framed = () if has_headers else decoder.framed(table.buffer, starts, lengths)
    for rows, schema, schema_id, texts, reasons in framed:
        decoded[rows, columns.start] = texts
        decoded[rows, columns.start + 1] = schema_id
        decoded[rows, columns.start + 2] = schema.kind
        for number, reason in reasons.items():
            decoded[rows[number], columns.start + 2] = "raw"
            undecodable.append(UndecodableField(int(rows[number]), field, schema_id, reason))
        is_left[rows] = False
    if not has_headers:
        rows, strings = decoder.strings(table.buffer, starts, np.where(is_left, lengths, -1))
        decoded[rows, columns.start] = strings
        decoded[rows, columns.start + 2] = "string"
        is_left[rows] = False
    left = np.flatnonzero(is_left)
    decode_once = lru_cache(_MOST_ROWS)(lambda data: decoder.decoded(data, ()))  # keys repeat
    found = []
    for row, start, end in zip(left.tolist(), starts[left].tolist(), (starts + lengths)[left].tolist(), strict=True):
        data = bytes(table.buffer[start:end])
        headers = table.headers(row) if has_headers else None
        named = [(name.decode("utf-8", "replace"), each) for name, each in headers or ()]
        one = decoder.decoded(data, named) if named else decode_once(data)
        found.append(one)
        if one.reason is not None:
            undecodable.append(UndecodableField(row, field, one.schema_id, one.reason))
    decoded[left, columns.start] = [each.text for each in found]
    decoded[left, columns.start + 1] = [each.schema_id for each in found]
    decoded[left, columns.start + 2] = [each.format for each in found]


def _findings(
    table: RecordTable, undecodable: Sequence[UndecodableField], location: Location
) -> Iterator[tuple[int, Finding]]:
    """A finding for each batch and reason, with the row of the first record."""
    groups: dict[tuple[int, str, int | str | None, str], list[int]] = {}
    batches = table.batch
    for each in undecodable:
        groups.setdefault((int(batches[each.row]), each.field, each.schema_id, each.reason), []).append(each.row)
    for (batch, field, schema_id, reason), rows in groups.items():
        place = location.at(position=int(table.batches.position[batch]), offset=int(table.offset[rows[0]]))
        what = (
            f"the {field}" if len(rows) == 1 else f"the {field}s of {counted_plainly(len(rows), 'record')} of a batch"
        )
        yield rows[0], undecodable_finding(place, what, schema_id, reason, len(rows))


def undecodable_finding(
    place: Location, what: str, schema_id: int | str | None, reason: str, count: int = 1
) -> Finding:
    """The finding about keys or values, ``count`` of them and named by ``what``, that do not decode."""
    schema = "" if schema_id is None else f" (schema {schema_id})"
    verb = "does" if what in ("the key", "the value") else "do"
    where = os.path.dirname(place.path) if place.topic is not None else place.path
    step = f"See who wrote such values, and since when: {shell_line(('kafkalog', 'verify', '--values', where))}"
    return finding(
        "value-undecodable",
        place,
        f"{what} {verb} not decode{schema}: {reason}",
        actual={"schema_id": schema_id, "count": count},
        judgement=Judgement(next_step=step),
    )
