"""A KRaft node as an earlier release would have written it: lower levels of features, and older records."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from format.internal_topics.decoder import decoder_for
from format.io.source import FileSource
from format.layout import BOOTSTRAP_CHECKPOINT, CLUSTER_METADATA_TOPIC
from format.log.batch_chunk import BatchChunk
from format.log.encode_batches import BatchHeader, encode_batch
from format.log.read_records import record_tables
from format.log.walker import batch_chunks
from tests.format.internal_topics.message_encoder import encode
from tests.oracle.boot_mutations.node import METADATA, Node
from tests.record_encoder import NewRecord, encode_record, encode_unsigned_varint

#: 3.9-IV0, which every release from 3.9 on knows; and the versions of records of that time.
_LEVEL = 21
_VERSIONS = {0: 3, 3: 1, 5: 1, 17: 2}


def make_earlier(node: Node) -> Node:
    """Rewrite the metadata of a node as of 3.9."""
    for path in [*_metadata_files(node), node.first / BOOTSTRAP_CHECKPOINT]:
        path.write_bytes(b"".join(_rewritten(path)))
    return node


def _metadata_files(node: Node) -> list[Path]:
    folder = node.partition(METADATA)
    return [*folder.glob("*.log"), *folder.glob("*.checkpoint")]


def _rewritten(path: Path) -> Iterator[bytes]:
    content = path.read_bytes()
    with FileSource(path) as source:
        for chunk in batch_chunks(source):
            table = chunk.table
            for row in range(len(table)):
                start, size = int(table.position[row]), int(table.size_bytes[row])
                yield content[start : start + size] if table.is_control[row] else _older(chunk, row)


def _older(chunk: BatchChunk, row: int) -> bytes:
    table = chunk.table
    records = []
    for found in record_tables(chunk, which=table.position == table.position[row]):
        for number in range(len(found)):
            delta = int(found.offset[number]) - int(table.base_offset[row])
            records.append(encode_record(NewRecord(delta, 0, None, _older_value(found.value(number) or b""))))
    header = BatchHeader(
        int(table.base_offset[row]), len(records) - 1, len(records), int(table.base_timestamp[row]),
        int(table.max_timestamp[row]), int(table.leader_epoch[row]),
    )  # fmt: skip
    return encode_batch(header, b"".join(records))


def _older_value(value: bytes) -> bytes:
    decoder = decoder_for(CLUSTER_METADATA_TOPIC)
    decoded = decoder.decode_value(None, value)
    data: dict[str, Any] | None = decoded.data
    assert data is not None
    assert decoded.type_id is not None
    assert decoded.version is not None
    if data.get("name") == "metadata.version":
        data["featureLevel"] = min(data["featureLevel"], _LEVEL)
    elif "featureLevel" in data:
        data["featureLevel"] = 0
    version = min(decoded.version, _VERSIONS.get(decoded.type_id, decoded.version))
    frame = b"".join(map(encode_unsigned_varint, (1, decoded.type_id, version)))
    return frame + encode(decoder.record_types[decoded.type_id].value, version, data)
