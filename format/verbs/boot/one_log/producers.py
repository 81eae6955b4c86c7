"""The producers' state of a partition while a start works on it: snapshots, and open transactions."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn

import msgspec

from format import layout
from format.errors import KafkaLogError, NotInBundle
from format.files import producer_snapshot
from format.io.source import Source
from format.limits import Limits
from format.log.batch_chunk import BatchRange
from format.log.control_records import plain_marker
from format.log.kafka_batch import BatchFacts
from format.log.read_records import record_tables
from format.log.walker import batch_chunks
from format.verbs.boot.broker_files import PartitionFiles, file_name, offset_of_name, stop_at_pipe
from format.verbs.boot.steps import Action, BootTerms, FailsLogDir, FailsSnapshot, StopsStart

#: From this release on a generated class reads the value of a marker, which fails at the end of the bytes.
_GENERATED_SINCE = (4, 1)
_CLASS = "ProducerStateManager"
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
        self._completed: list[tuple[int, BatchFacts]] = []
        self._last_aborted: int | None = None

    def take(self, batch: BatchFacts) -> None:
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
            text = f"Expected transactional write from producer {producer_id} at offset"
            since = f"while producer {producer_id} has one open since offset {state.by_producer[producer_id]}"
            self._stop(batch, text, f"a batch outside of a transaction, {since}")

    def finish(self) -> None:
        """Complete the transactions that ended."""
        for first_offset, batch in self._completed:
            self._remove(first_offset, batch)

    def _complete(self, batch: BatchFacts, first_offset: int, *, is_aborted: bool) -> None:
        if not self._recovers:
            self._completed.append((first_offset, batch))
            return
        if is_aborted:
            if self._last_aborted is not None and batch.base_offset <= self._last_aborted:
                text = (
                    f"The last offset of appended transactions must increase sequentially, but {batch.base_offset} is "
                    f"not greater than current last offset {self._last_aborted}"
                )
                reason = "the transaction index cannot hold an aborted transaction that ends before another one"
                self._stop(batch, text, reason, "TransactionIndex")
            self._last_aborted = batch.base_offset
        self._remove(first_offset, batch)

    def _remove(self, first_offset: int, batch: BatchFacts) -> None:
        if first_offset not in self._state.first_offsets:
            reason = f"two transactions begin at offset {first_offset}, and a broker can end only one of them"
            self._stop(batch, "Attempted to complete transaction", reason, _CLASS)
        self._state.first_offsets.remove(first_offset)

    def _marker_aborts(self, batch: BatchFacts) -> bool | None:
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

    def _aborts(self, batch: BatchFacts, key: bytes | None, value: bytes | None) -> bool:
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

    def _stop(self, batch: BatchFacts, text: str, reason: str, kafka_class: str = "ProducerAppendInfo") -> NoReturn:
        words = f"{reason} (offset {batch.base_offset}): the broker cannot rebuild the producers' state"
        raise StopsStart(text, kafka_class, self._path, words, batch.position)


class ProducerFiles:
    """The snapshots that the broker knows, and the offset up to which its state in memory goes (``map_end``).

    ``taken`` are the open transactions of the snapshots that this start writes, by offset.
    """

    def __init__(self, files: PartitionFiles, limits: Limits, taken: dict[int, dict[int, int]]) -> None:
        self._files = files
        self._limits = limits
        self._taken = taken
        self.transactions = OpenTransactions()
        self.map_end = 0
        self.last_snapshot = 0
        self.known: dict[int, str] = {}
        self.reload()

    def reload(self) -> None:
        """List the directory again."""
        names = [name for name in self._files.present if name.endswith(layout.PRODUCER_SNAPSHOT_SUFFIX)]
        self.known = dict(sorted((offset_of_name(self._files, name), name) for name in names))

    def remove(self, offset: int, reason: str, message: str | None = None) -> None:
        """Delete a snapshot, if it is there."""
        name = self.known.pop(offset, None)
        if name is not None and name in self._files.present:
            self._files.delete(name, reason, offset=offset, broker_message=message, kafka_class=_CLASS)

    def remove_strays(self, base_offsets: list[int]) -> None:
        """Delete the snapshots that belong to no segment, except the newest if it lies past all segments."""
        self.reload()
        strays = [offset for offset in self.known if offset not in base_offsets]
        kept = strays[-1] if strays and (not base_offsets or strays[-1] >= max(base_offsets)) else None
        for offset in strays:
            if offset != kept:
                self.remove(offset, "no segment begins at the offset of the snapshot, and it is not the newest one")

    def truncate_and_reload(self, log_start: int, log_end: int) -> None:
        """Delete the snapshots outside the log, and load the newest of the others that can be read."""
        for offset in list(self.known):
            if offset > log_end:
                self.remove(offset, f"the snapshot is past offset {log_end}, up to which the producer state is loaded")
            elif offset <= log_start:
                self.remove(offset, f"a snapshot at or below the log start offset {log_start}")
        if log_end == self.map_end:
            self.map_end = max(self.map_end, log_start)
            self.last_snapshot = max(self.known, default=log_start)
            return
        self.map_end = self.last_snapshot = log_start
        self.transactions.load({})
        while self.known:
            newest = max(self.known)
            place = self._files.place(self.known[newest])
            found = self._taken.get(newest, {}) if place is None else open_in_snapshot(place, self._limits)
            if not isinstance(found, str):
                self.map_end = self.last_snapshot = newest
                self.transactions.load(found)
                return
            self.remove(newest, "the snapshot cannot be read", found)

    def take(self) -> None:
        """Add a step for a new snapshot, if the state goes further than the last snapshot. Raises FailsSnapshot."""
        if self.map_end <= self.last_snapshot:
            return
        name = file_name(self.map_end, layout.PRODUCER_SNAPSHOT_SUFFIX)
        if name in self._files.folders:
            stop_at_pipe(self._files.path / name, _CLASS)
        try:
            self._files.check_opens(name, _CLASS)
        except FailsLogDir as error:
            raise FailsSnapshot(error.text, _CLASS, error.path, error.reason) from error
        reason = f"the state of producers at offset {self.map_end} is written"
        self._files.step(Action.REBUILD_SNAPSHOT, name, reason, offset=self.map_end, kafka_class=_CLASS)
        self._files.create(name)
        self._taken[self.map_end] = dict(self.transactions.by_producer)
        self.known[self.map_end] = name
        self.last_snapshot = self.map_end


def open_in_snapshot(path: Path, limits: Limits) -> dict[int, int] | str:
    """The first offset of each open transaction in a snapshot, by producer id.

    For a snapshot that the broker cannot load: its message, as far as that is constant.
    """
    try:
        found = producer_snapshot.read(path, limits)
    except KafkaLogError as error:
        return error.message
    if found.version not in (None, producer_snapshot.CURRENT_VERSION):
        return f"Snapshot contained an unknown file version {found.version}"
    if found.stored_entry_count != found.entry_count:
        return "Snapshot failed schema validation"
    if not found.crc_valid:
        return "Snapshot is corrupt (CRC is no longer valid)"
    pairs = zip(found.producer_ids.tolist(), found.current_txn_first_offsets.tolist(), strict=True)
    return {producer_id: first_offset for producer_id, first_offset in pairs if first_offset >= 0}
