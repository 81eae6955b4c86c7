"""bootstrap.checkpoint: the metadata of a new cluster, which a node reads at every start, without checking CRCs.

Source: metadata BootstrapDirectory, BootstrapMetadata, BatchFileReader.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from format.errors import CorruptDataError, KafkaLogError
from format.internal_topics.decoder import decoder_for
from format.io.remote_path import is_there
from format.io.source import FileSource
from format.layout import BOOTSTRAP_CHECKPOINT, CLUSTER_METADATA_TOPIC
from format.limits import Limits
from format.log.batch_chunk import BatchChunk
from format.log.batch_ranges import BatchRange
from format.log.read_records import record_tables
from format.log.walker import batch_chunks
from format.verbs.boot.one_log.file_batches import CorruptRecords, batches_from
from format.verbs.boot.steps import StopsStart

_CLASS = "BootstrapDirectory"
_REASON = "a node reads its bootstrap metadata at every start, though only a new cluster needs it"


def check_bootstrap(metadata_dir: Path, limits: Limits) -> None:
    """Read the file as a node does. Raises StopsStart where that fails, and what reading raises."""
    path = metadata_dir / BOOTSTRAP_CHECKPOINT
    if not is_there(path):
        return
    has_version = False
    decoder = decoder_for(CLUSTER_METADATA_TOPIC)
    with FileSource(path) as source:
        try:
            batches = list(batches_from(source, 0, source.size_bytes, path))
        except CorruptRecords as error:
            raise StopsStart(error.text, "FileLogInputStream.nextBatch", path=path, reason=_REASON,
                             position=error.position) from error  # fmt: skip
        for batch in batches:
            for chunk in batch_chunks(
                source, BatchRange(batch.position, batch.position + batch.size_bytes), limits=limits
            ):
                for value in _data_values(chunk, path, limits):
                    try:
                        decoded = None if decoder is None else decoder.decode_value(None, value)
                    except (CorruptDataError, KafkaLogError) as error:
                        raise _undecodable(path, str(error), batch.position) from error
                    if decoded is None or decoded.data is None:
                        raise _undecodable(path, "a record that is newer than this program, or none", batch.position)
                    has_version |= (
                        decoded.record_type == "FEATURE_LEVEL_RECORD" and decoded.data["name"] == "metadata.version"
                    )
    if not has_version:
        raise StopsStart(
            "No FeatureLevelRecord for metadata.version was found in the bootstrap metadata from the binary bootstrap "
            f"metadata file: {path}",
            "BootstrapMetadata.fromRecords",
            path=path,
            reason=_REASON,
        )


def _data_values(chunk: BatchChunk, path: Path, limits: Limits) -> list[bytes | None]:
    values: list[bytes | None] = []
    which = ~chunk.table.is_control & np.ones(len(chunk.table), np.bool_)
    for table in record_tables(chunk, which=which, limits=limits):
        if table.problems:
            raise _undecodable(path, str(table.problems[0].error), int(chunk.table.position[0]))
        values += [table.value(row) for row in range(len(table))]
    return values


def _undecodable(path: Path, words: str, position: int) -> StopsStart:
    return StopsStart(
        "unable to deserialize record", _CLASS, path=path, reason=f"{_REASON}: {words}", position=position
    )  # fmt: skip
