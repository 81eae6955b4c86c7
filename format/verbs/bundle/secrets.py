"""Finds secrets in the metadata of a cluster, and overwrites them in a bundle.

With KRaft, brokers keep passwords of their dynamic configs as plain text in the metadata log and its snapshots, and
also salted SCRAM passwords. Secrets are overwritten with the same number of bytes, and the batch gets a new CRC, so
that everything else can be read as before.
"""

from __future__ import annotations

import base64
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from format import layout
from format.codecs.checksums import crc32c_of
from format.errors import KafkaLogError
from format.internal_topics.decoder import Decoder, decoder_for
from format.io.source import FileSource
from format.limits import Limits
from format.log.batch_chunk import BatchChunk
from format.log.read_records import record_tables
from format.log.walker import batch_chunks
from format.node.partition import parse_partition_dir
from format.value_class import value_class
from format.verbs.metadata.secret_configs import is_secret

_HEADER_BYTES = layout.RECORD_BATCH.size_bytes
_CRC_AT, _CRC_END = layout.RECORD_BATCH.offset_of("crc"), layout.RECORD_BATCH.offset_of("attributes")
#: A frame version, a record type and a version, each an unsigned varint.
_TYPE_BYTES = 3
_SCRAM_FIELDS = ("salt", "storedKey", "serverKey")
#: Parts of the names of files with metadata records: logs and snapshots, also unfinished and deleted ones.
_WITH_RECORDS = (layout.LOG_SUFFIX, layout.CHECKPOINT_SUFFIX)


@value_class
class Overwritten:
    """A range of a file that is overwritten in the bundle: with ``content``, or with zeros where that is None."""

    position: int
    size_bytes: int
    content: bytes | None = None

    @property
    def end_position(self) -> int:
        return self.position + self.size_bytes


def may_hold_secrets(path: Path) -> bool:
    """Whether a file has records of the cluster's metadata."""
    if path.name == layout.BOOTSTRAP_CHECKPOINT:
        return True
    parsed = parse_partition_dir(path.parent.name)
    is_metadata = parsed is not None and parsed[0] == layout.CLUSTER_METADATA_TOPIC
    return is_metadata and any(suffix in path.name for suffix in _WITH_RECORDS)


def secrets_of(source: FileSource, limits: Limits) -> list[Overwritten]:
    """The ranges of a log or snapshot of the cluster's metadata that are overwritten, by position.

    Of a batch that cannot be read only the header stays, and of bytes that belong to no batch only as many as a header
    has, since their content is not known. Raises KafkaLogError where the file cannot be read.
    """
    decoder = decoder_for(layout.CLUSTER_METADATA_TOPIC)
    if decoder is None:
        raise ValueError("the metadata log has no decoder")
    found: list[Overwritten] = []
    for chunk in batch_chunks(source, limits=limits):
        for row, values in enumerate(_values_of(chunk, limits)):
            found += _in_batch(chunk, row, values, decoder)
        damage = chunk.damage
        if damage is not None and damage.length > _HEADER_BYTES:
            found.append(Overwritten(damage.position + _HEADER_BYTES, damage.length - _HEADER_BYTES))
    return found


def _values_of(chunk: BatchChunk, limits: Limits) -> list[list[tuple[int, bytes]] | None]:
    """The values of each batch, with their positions in the chunk's buffer; None for a batch that cannot be read."""
    table = chunk.table
    is_readable = (table.crc_valid != 0) & (table.magic == 2) & (table.codec == 0)
    found: list[list[tuple[int, bytes]] | None] = [[] if each else None for each in is_readable.tolist()]
    try:
        for records in record_tables(chunk, which=is_readable, limits=limits):
            starts = records.value_start.tolist()
            for row, batch in enumerate(records.batch.tolist()):
                value, values = records.value(row), found[batch]
                if value is not None and values is not None:
                    values.append((starts[row], value))
            for problem in records.problems:
                found[problem.batch] = None
    except KafkaLogError:
        return [None] * len(table)
    return found


def _in_batch(
    chunk: BatchChunk, row: int, values: list[tuple[int, bytes]] | None, decoder: Decoder
) -> Iterator[Overwritten]:
    """The ranges of one batch that are overwritten, with its CRC; none of a control batch."""
    table = chunk.table
    position, size_bytes = int(table.position[row]), int(table.size_bytes[row])
    if values is None or chunk.buffer is None:
        if size_bytes > _HEADER_BYTES:
            yield Overwritten(position + _HEADER_BYTES, size_bytes - _HEADER_BYTES)
        return
    if table.is_control[row]:
        return
    start = position - chunk.buffer_position
    content = bytearray(chunk.buffer[start : start + size_bytes])
    is_changed = False
    for at, value in values:
        for secret in _secrets_in(value, decoder):
            first = value.rfind(secret)  # the name comes before the value
            low = at - start + first
            content[low : low + len(secret)] = b"*" * len(secret)
            is_changed = True
    if is_changed:
        content[_CRC_AT:_CRC_END] = crc32c_of(memoryview(content)[_CRC_END:]).to_bytes(_CRC_END - _CRC_AT, "big")
        yield Overwritten(position, size_bytes, bytes(content))


def _secrets_in(value: bytes, decoder: Decoder) -> list[bytes]:
    """The secret bytes of a record; all after its type where it cannot be decoded."""
    try:
        decoded = decoder.decode_value(None, value)
    except KafkaLogError:
        return [value[_TYPE_BYTES:]]
    data: dict[str, Any] = decoded.data or {}
    if decoded.record_type == "USER_SCRAM_CREDENTIAL_RECORD":
        return [each for name in _SCRAM_FIELDS if (each := base64.b64decode(data[name]))]
    if decoded.record_type == "CONFIG_RECORD" and data["value"] and is_secret(data["resourceType"], data["name"]):
        return [data["value"].encode()]
    return []


def without(secrets: Sequence[Overwritten], position: int, piece: bytes) -> bytes:
    """A piece of a file from ``position`` on, with its secrets overwritten."""
    end = position + len(piece)
    first = bisect_right(secrets, position, key=lambda each: each.end_position)
    if first == len(secrets) or secrets[first].position >= end:
        return piece
    changed = bytearray(piece)
    for each in secrets[first:]:
        low, high = max(each.position, position), min(each.end_position, end)
        if low >= high:
            break
        content = bytes(high - low)
        if each.content is not None:
            content = each.content[low - each.position : high - each.position]
        changed[low - position : high - position] = content
    return bytes(changed)
