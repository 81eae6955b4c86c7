"""Checks bootstrap.checkpoint: the metadata of a new cluster, which a node reads at every start, without CRCs.

Source: metadata BootstrapDirectory, BootstrapMetadata, BatchFileReader.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path

from format.errors import KafkaLogError
from format.internal_topics.decoder import decoder_for
from format.io.source import FileSource
from format.layout import BOOTSTRAP_CHECKPOINT, CLUSTER_METADATA_TOPIC
from format.limits import Limits
from format.log.batch_chunk import BatchChunk
from format.log.batch_ranges import BatchRange
from format.log.read_records import record_tables
from format.log.walker import batch_chunks
from format.verbs.boot.followed import exists, opened
from format.verbs.boot.one_log.file_batches import CorruptRecords, batches_from
from format.verbs.boot.one_log.metadata_records import check_metadata_level
from format.verbs.boot.pipes import stop_at_pipe
from format.verbs.boot.steps import BootTerms, StopsStart

_CLASS = "BootstrapDirectory"
_REASON = "a node reads its bootstrap metadata at every start, though only a new cluster needs it"


def check_bootstrap(metadata_dir: Path, terms: BootTerms) -> None:
    """Read the file as a node does. Raises StopsStart where a node fails, UnreadableFile and FileChanged."""
    path = metadata_dir / BOOTSTRAP_CHECKPOINT
    if not exists(path):
        return
    if path.is_dir():
        raise StopsStart(os.strerror(errno.EISDIR), _CLASS, path=path, reason=_REASON)
    stop_at_pipe(path, _CLASS)
    with opened(path) as source:
        level = _metadata_version(source, path, terms.limits)
        if level is not None:
            if not terms.is_one_of_several:  # else the release is not known
                check_metadata_level(level, terms.version, path)
            return
    raise StopsStart(
        "No FeatureLevelRecord for metadata.version was found in the bootstrap metadata from the binary bootstrap "
        f"metadata file: {path}",
        "BootstrapMetadata.fromRecords",
        path=path,
        reason=_REASON,
    )


def _metadata_version(source: FileSource, path: Path, limits: Limits) -> int | None:
    """The last metadata.version in the records, all of which are decoded; None without one. Raises StopsStart."""
    decoder = decoder_for(CLUSTER_METADATA_TOPIC)
    level = None
    for position, value in _values(source, path, limits):
        try:
            decoded = decoder.decode_value(None, value)
        except KafkaLogError as error:
            raise _undecodable(path, str(error), position) from error
        if decoded.data is None:
            raise _undecodable(path, "a record without a value, or of a type that this program does not know", position)
        if decoded.record_type == "FEATURE_LEVEL_RECORD" and decoded.data["name"] == "metadata.version":
            level = int(decoded.data["featureLevel"])
    return level


def _values(source: FileSource, path: Path, limits: Limits) -> Iterator[tuple[int, bytes | None]]:
    """The values of all records but control records, each with the position of its batch. Raises StopsStart."""
    try:
        for batch in batches_from(source, 0, source.size_bytes, path):
            batch_range = BatchRange(batch.position, batch.position + batch.size_bytes)
            for chunk in batch_chunks(source, batch_range, limits=limits):
                for value in _data_values(chunk, path, limits):
                    yield batch.position, value
    except CorruptRecords as error:
        kafka_class = "FileLogInputStream.nextBatch"
        raise StopsStart(error.text, kafka_class, path=path, reason=_REASON, position=error.position) from error


def _data_values(chunk: BatchChunk, path: Path, limits: Limits) -> Iterator[bytes | None]:
    """The values of a chunk's records but control records, in the order in which a node decodes them.

    Raises StopsStart at a record that cannot be read, after the values before it.
    """
    for table in record_tables(chunk, which=~chunk.table.is_control, limits=limits):
        for row in range(len(table)):
            yield table.value(row)
        if table.problems:
            reason, position = f"{_REASON}: {table.problems[0].error}", int(chunk.table.position[0])
            raise StopsStart(
                "InvalidRecordException", "DefaultRecord.readFrom", path=path, reason=reason, position=position
            )


def _undecodable(path: Path, words: str, position: int) -> StopsStart:
    reason = f"{_REASON}: {words}"
    return StopsStart("unable to deserialize record", _CLASS, path=path, reason=reason, position=position)
