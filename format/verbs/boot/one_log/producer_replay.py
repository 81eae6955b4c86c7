"""The open transactions that a broker knows while it rebuilds the state of the producers, and where that stops it.

Source: storage ProducerAppendInfo, ProducerStateManager, LogSegment.updateProducerState, UnifiedLog.updateProducers,
TransactionIndex.append; clients EndTransactionMarker, ControlRecordType.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn

import msgspec

from format import layout
from format.errors import KafkaLogError, NotInBundle
from format.io.source import Source
from format.log.batch_chunk import BatchRange
from format.log.control_records import plain_marker
from format.log.read_records import record_tables
from format.log.walker import batch_chunks
from format.verbs.boot.one_log.file_batches import FileBatch
from format.verbs.boot.steps import BootTerms, StopsStart

#: From this release on a generated class reads the value of a marker, which fails at the end of the bytes.
_GENERATED_SINCE = (4, 1)
#: What a broker logs whatever the exception is.
_ANY_ERROR = "There was an error in one of the threads during logs loading"


class OpenTransactions(msgspec.Struct):
    """The first offset of each open transaction by producer id, and the first offsets that a broker waits for.

    These are two, since a broker knows no more than one transaction of a first offset.
    """

    by_producer: dict[int, int] = msgspec.field(default_factory=dict)
    first_offsets: set[int] = msgspec.field(default_factory=set)

    def load(self, by_producer: Mapping[int, int]) -> None:
        """Go on from those of a snapshot."""
        self.by_producer = dict(by_producer)
        self.first_offsets = set(by_producer.values())


class Replay:
    """Takes the batches of one segment. A recovery completes and indexes transactions at once, any other at the end.

    Raises StopsStart at what a broker throws an exception.
    """

    def __init__(
        self, state: OpenTransactions, source: Source, path: Path, terms: BootTerms, *, recovers: bool = False
    ) -> None:
        self._state = state
        self._source = source
        self._path = path
        self._terms = terms
        self._recovers = recovers
        self._completed: list[tuple[int, FileBatch]] = []
        self._last_aborted: int | None = None

    def take(self, batch: FileBatch) -> None:
        """Take the next batch."""
        producer_id, state = batch.producer_id, self._state
        if producer_id < 0:
            return
        if batch.is_control:
            is_abort = self._marker_aborts(batch)
            first_offset = None if is_abort is None else state.by_producer.pop(producer_id, None)
            if first_offset is not None:
                self._complete(batch, first_offset, is_aborted=bool(is_abort))
        elif batch.is_transactional:
            if producer_id not in state.by_producer:
                state.by_producer[producer_id] = batch.base_offset
                state.first_offsets.add(batch.base_offset)
        elif producer_id in state.by_producer:
            self._stop(
                batch,
                f"Expected transactional write from producer {producer_id} at offset",
                f"a batch outside of a transaction, while producer {producer_id} has one open since offset "
                f"{state.by_producer[producer_id]}",
            )

    def finish(self) -> None:
        """Complete the transactions that ended."""
        for first_offset, batch in self._completed:
            self._remove(first_offset, batch)

    def _complete(self, batch: FileBatch, first_offset: int, *, is_aborted: bool) -> None:
        if not self._recovers:
            self._completed.append((first_offset, batch))
            return
        if is_aborted:
            if self._last_aborted is not None and batch.base_offset <= self._last_aborted:
                self._stop(
                    batch,
                    f"The last offset of appended transactions must increase sequentially, but {batch.base_offset} is "
                    f"not greater than current last offset {self._last_aborted}",
                    "the transaction index cannot hold an aborted transaction that ends before another one",
                    "TransactionIndex",
                )
            self._last_aborted = batch.base_offset
        self._remove(first_offset, batch)

    def _remove(self, first_offset: int, batch: FileBatch) -> None:
        if first_offset not in self._state.first_offsets:
            self._stop(
                batch,
                "Attempted to complete transaction",
                f"two transactions begin at offset {first_offset}, and a broker can end only one of them",
                "ProducerStateManager",
            )
        self._state.first_offsets.remove(first_offset)

    def _marker_aborts(self, batch: FileBatch) -> bool | None:
        """Whether a control batch ends a transaction as aborted; None where it holds no record, or is not known."""
        limits, where = self._terms.limits, BatchRange(batch.position, batch.position + batch.size_bytes)
        try:
            plain = plain_marker(self._source, batch.position, batch.size_bytes)
            if plain is not None:
                return plain.type_name == "ABORT"
            for chunk in batch_chunks(self._source, where, check_crc=False, limits=limits):
                count = int(chunk.table.record_count[0]) if len(chunk.table) else 1
                if count == 0:
                    return None
                for records in record_tables(chunk, which=chunk.table.is_control, limits=limits):
                    if not len(records) or (count == 1 and records.problems):
                        break
                    return self._aborts(batch, records.key(0), records.value(0))
        except NotInBundle:
            return None
        except KafkaLogError:
            pass  # a broker's exception depends on what is wrong
        return self._stop(batch, _ANY_ERROR, "the records of a control batch cannot be read")

    def _aborts(self, batch: FileBatch, key: bytes | None, value: bytes | None) -> bool:
        """Read a marker as a broker does."""
        key_bytes, value_bytes = layout.CONTROL_KEY.size_bytes, layout.END_TRANSACTION_MARKER.size_bytes
        if key is None:
            self._stop(batch, 'because "key" is null', "a control record has no key")
        if len(key) < key_bytes:
            text = f"Must have at least {key_bytes} bytes, but found only {len(key)}"
            self._stop(batch, text, "the key of a control record is too short")
        version, number = layout.CONTROL_KEY.struct.unpack_from(key)
        if version < 0:
            text = f"Invalid version found for control record: {version}"
            self._stop(batch, text, f"the key of a control record has version {version}")
        name = layout.CONTROL_TYPES[number] if 0 <= number < len(layout.CONTROL_TYPES) else "UNKNOWN"
        if name not in ("ABORT", "COMMIT"):
            text = "Invalid control record type for end transaction marker"
            self._stop(batch, text, f"a control record of a producer has the type {number} ({name})")
        if value is None:
            self._stop(batch, 'because "value" is null', "an end transaction marker has no value")
        if len(value) < value_bytes:
            text = f"Must have at least {value_bytes} bytes, but found only {len(value)}"
            if self._terms.version >= _GENERATED_SINCE:
                text = "java.nio.BufferUnderflowException"
            self._stop(batch, text, "the value of an end transaction marker is too short")
        version, _ = layout.END_TRANSACTION_MARKER.struct.unpack_from(value)
        if version < 0:
            text = f"Invalid version found for end transaction marker: {version}"
            self._stop(batch, text, f"the value of an end transaction marker has version {version}")
        return name == "ABORT"

    def _stop(self, batch: FileBatch, text: str, reason: str, kafka_class: str = "ProducerAppendInfo") -> NoReturn:
        words = f"{reason} (offset {batch.base_offset}): the broker cannot rebuild the producers' state"
        raise StopsStart(text, kafka_class, path=self._path, reason=words, position=batch.position)
