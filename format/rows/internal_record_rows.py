"""Record rows of internal topics, and control records of any topic, with their keys and values decoded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice, pairwise
from pathlib import PurePath
from typing import Any

import numpy as np

from format.columns import RECORD
from format.errors import KafkaLogError
from format.findings import Finding, Judgement, Severity, finding, finding_of
from format.internal_topics.decoder import INTERNAL_TOPICS, Decoder, decode_control_value, decoder_for
from format.internal_topics.reader import DecodedMessage
from format.layout import CHECKPOINT_SUFFIX, CLUSTER_METADATA_TOPIC
from format.location import Location
from format.log.control_records import decode_control_record
from format.rows.record_rows import Row, RowBlock

_KEY, _VALUE, _OFFSET, _POSITION, _IS_CONTROL = (
    RECORD.names.index(name) for name in ("key", "value", "offset", "position", "is_control")
)
#: Findings come before the rows that they are about, so these are gathered: so many at most, and fewer at first.
_ROWS_AT_ONCE = 256
_FIRST_ROWS = 4

Item = RowBlock | Finding


def decode_internal(items: Iterable[Item]) -> Iterator[Item]:
    """The same rows and findings, with the keys and values of Kafka's own records decoded.

    A decoded key or value is a dict: ``{"type": "OFFSET_COMMIT", "version": 1, "data": {…}}`` with Kafka's own names.
    Values that cannot be decoded, or are newer than this program, stay bytes, with a finding.
    """
    for item in items:
        if isinstance(item, Finding) or item.schema.type != RECORD.type or item.location is None:
            yield item
            continue
        decoder = decoder_of(item.location)
        for block, is_control in _control_apart(item):
            if decoder is None and not is_control:
                yield block
            else:
                yield from _decoded_blocks(block, item.location, decoder)


def _control_apart(block: RowBlock) -> Iterator[tuple[RowBlock, bool]]:
    """A block in parts with only control records or none, so that only the former need be decoded."""
    records = block.records
    is_control = None if records is None else records.batches.is_control[records.batch]
    if records is None or is_control is None or not is_control.any() or is_control.all():
        yield block, is_control is not None and bool(is_control.any())
        return
    edges = [0, *(np.flatnonzero(is_control[1:] != is_control[:-1]) + 1).tolist(), len(records)]
    for start, stop in pairwise(edges):
        yield block.part(slice(start, stop)), bool(is_control[start])


def decoder_of(location: Location) -> Decoder | None:
    """The decoder of a log's topic; snapshots of the metadata log may be outside of a topic's directory."""
    if PurePath(location.path).name.endswith(CHECKPOINT_SUFFIX):
        return decoder_for(CLUSTER_METADATA_TOPIC)
    return decoder_for(location.topic) if location.topic in INTERNAL_TOPICS else None


def _decoded_blocks(block: RowBlock, location: Location, decoder: Decoder | None) -> Iterator[Item]:
    rows = iter(block.rows)
    at_once = _FIRST_ROWS
    while some := list(islice(rows, at_once)):
        at_once = min(2 * at_once, _ROWS_AT_ONCE)
        findings: list[Finding] = []
        decoded = [_decoded_row(row, location, decoder, findings) for row in some]
        yield from findings
        yield RowBlock(block.schema, decoded, location)


def _decoded_row(row: Row, location: Location, decoder: Decoder | None, findings: list[Finding]) -> Row:
    key, value = row[_KEY], row[_VALUE]
    place = location.at(position=row[_POSITION], offset=row[_OFFSET])
    try:
        if row[_IS_CONTROL]:
            shown_key, shown_value = _control(key, value, location.topic or "", place, findings)
        elif decoder is not None:
            shown_key, shown_value = _internal(decoder, key, value, place, findings)
        else:
            return row
    except KafkaLogError as error:
        findings.append(finding_of(error, place))
        return row
    return (*row[:_KEY], shown_key, shown_value, *row[_VALUE + 1 :])


def _internal(
    decoder: Decoder, key: bytes | None, value: bytes | None, place: Location, findings: list[Finding]
) -> tuple[Any, Any]:
    decoded_key = decoder.decode_key(key)
    shown_key = _shown(decoded_key, key, place, findings)
    if decoded_key.raw is not None and decoded_key.type_id is not None:
        return shown_key, value  # of a type that is not known
    try:
        return shown_key, _shown(decoder.decode_value(decoded_key, value), value, place, findings)
    except KafkaLogError as error:
        findings.append(finding_of(error, place))
        return shown_key, value


def _control(
    key: bytes | None, value: bytes | None, topic: str, place: Location, findings: list[Finding]
) -> tuple[Any, Any]:
    control = decode_control_record(key, value)
    if control.type_name == "UNKNOWN":
        findings.append(
            finding(
                "version-unknown",
                place,
                f"control record type {control.type_number} is not known",
                judgement=Judgement(severity=Severity.INFO),
            )
        )
        return key, value
    shown_key = {"type": control.type_name, "version": control.version}
    return shown_key, _shown(decode_control_value(control.type_number, value, topic), value, place, findings)


def _shown(decoded: DecodedMessage, raw: bytes | None, place: Location, findings: list[Finding]) -> Any:
    """The decoded object, or the bytes without one; the decoder's problems become findings."""
    findings += [problem.finding(place) for problem in decoded.problems]
    if decoded.data is None:
        return raw
    return {"type": decoded.record_type, "version": decoded.version, "data": decoded.data}
