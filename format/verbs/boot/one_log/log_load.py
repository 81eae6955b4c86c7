"""Simulates how a broker loads one log: leftovers, indexes, recovery, log end, producer snapshots, in that order.

Recovery keeps what comes before the first bad batch of a segment. Nothing is written to disk, see ``PartitionFiles``.

Source: storage LogLoader, LoadedLogOffsets, LogSegment.recover, OffsetIndex.append, TimeIndex.maybeAppend,
UnifiedLog.rebuildProducerState.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import NoReturn

import msgspec
from msgspec.structs import replace

from format import layout
from format.files.side_file import INT64_RANGE, decode_integer
from format.io.source import FileSource
from format.log.batch_chunk import BatchRange
from format.scan.read_log import chunks_with_crcs
from format.verbs.boot.broker_files import PartitionFiles, file_name, offset_of_name, opened, size_of
from format.verbs.boot.one_log.batches import (
    CorruptRecords,
    LogEnd,
    OffsetIndexView,
    batches_from,
    first_batch_reaching,
    log_end,
    read_index,
    valid_batches,
)
from format.verbs.boot.one_log.producers import ProducerFiles, Replay
from format.verbs.boot.steps import Action, BootTerms, FailsSnapshot, NotKnown, ReadLog, StopsStart

#: The broker's default of index.interval.bytes: where recovery writes index entries, which matters only in logs whose
#: offsets do not rise.
_INDEX_INTERVAL_BYTES = 4096


class Recovered(msgspec.Struct):
    """A segment after recovery: its valid bytes, its end, and the broker's message where it was truncated.

    ``end`` is the end that the broker's reader finds in the valid bytes. ``is_emptied``: the offsets decrease, so the
    broker makes the segment empty. ``epochs`` are (leader epoch, base offset) of each batch with a new highest epoch.
    """

    size_bytes: int
    end: LogEnd
    valid_bytes: int = 0
    map_end_offset: int | None = None  # the offset after the last v2 batch, up to which the producers' state goes
    has_transactions: bool = False  # a producer's transactional or control batches
    message: str | None = None
    is_emptied: bool = False
    epochs: list[tuple[int, int]] = msgspec.field(default_factory=list)
    index: OffsetIndexView = msgspec.field(default_factory=lambda: OffsetIndexView(0))

    @property
    def next_offset(self) -> int:
        return self.end.next_offset

    @property
    def truncated_bytes(self) -> int:
        return self.size_bytes - self.valid_bytes


def _from_summary(log: ReadLog, size_bytes: int) -> Recovered | None:
    """A sound log after recovery, by its summary; None where its batches have to be read one by one."""
    if not log.is_sound or log.valid_bytes != size_bytes:
        return None
    next_offset = log.base_offset if log.last_offset is None else log.last_offset + 1
    return Recovered(
        size_bytes,
        LogEnd(next_offset, size_bytes, log.last_offset is not None),
        valid_bytes=size_bytes,
        map_end_offset=log.map_end_offset,
        has_transactions=log.has_transactions,
        epochs=log.epochs,
        index=OffsetIndexView(log.base_offset),
    )


class LoadTerms(msgspec.Struct, frozen=True):
    """What is known of a log before it is loaded; ``is_deleted``: its directory waits for its deletion.

    ``may_be_remote``: a checkpoint has the log start offset. Where that is below the first segment, the segments before
    it are in remote storage.
    """

    boot: BootTerms
    clean: bool
    recovery_point: int = 0
    log_start: int = 0
    is_deleted: bool = False
    may_be_remote: bool = False
    is_metadata: bool = False
    max_index_bytes: int | None = None  # the topic's segment.index.bytes, where the metadata has one
    why_recovered: str = "there was no clean shutdown"

    @property
    def is_whole(self) -> bool:
        """Whether the log is loaded: where its directory may be one of several, those to be recovered are not."""
        return self.clean or self.is_metadata or not self.boot.is_one_of_several


class LoadedSegment(msgspec.Struct):
    """A segment in the broker's memory: the file with its bytes, how many of them are valid, and its offset index."""

    base_offset: int
    place: Path | None
    shown_path: Path
    size_bytes: int
    index_place: Path | None
    terms: BootTerms
    recovered: Recovered | None = None
    _end: LogEnd | None = None  # as the reader found it on disk

    @property
    def index(self) -> OffsetIndexView:
        """The offset index: as recovery made it, or as it lies on disk."""
        return read_index(self.index_place, self.base_offset) if self.recovered is None else self.recovered.index

    def end(self) -> LogEnd:
        """Where the broker sees the segment end. Raises StopsStart where its reader fails."""
        if self.place is None:
            return LogEnd(self.base_offset, 0, False)
        if self.recovered is not None:
            return self.recovered.end
        if self._end is None:
            with opened(self.place) as source:
                try:
                    self._end = log_end(source, self.size_bytes, self.index, self.shown_path, self.terms)
                except CorruptRecords as error:
                    raise reader_stops(error, self.shown_path, "to find the end of the log") from error
        return self._end


class LoadedLog(msgspec.Struct, frozen=True):
    """A log after its load: where it starts and ends, its segments, and the epochs that recovery saw."""

    log_start: int
    log_end: int
    segments: tuple[LoadedSegment, ...]
    epochs: tuple[tuple[int, int], ...]
    is_cleared: bool = False  # all segments were below the log start offset


def reader_stops(error: CorruptRecords, path: Path, purpose: str) -> StopsStart:
    """The end of a start at which the broker's reader fails."""
    reason = f"the broker reads the log {purpose}, and stops at {error.what}"
    return StopsStart(error.text, error.kafka_class, path, reason, error.position)


def recovered_segment(segment: LoadedSegment, place: Path, terms: BootTerms) -> Recovered:
    """Simulate the recovery of a segment's log, whose bytes are in ``place``; one that was read is not opened again.

    Raises StopsStart where the broker exits, NotKnown, CorruptRecords, UnreadableFile and FileChanged.
    """
    base_offset = segment.base_offset
    known = terms.read_logs.get(place)
    found = None if known is None or known.base_offset != base_offset else _from_summary(known, segment.size_bytes)
    if found is not None:
        return found
    with opened(place) as source:
        found = _from_summary(_summary(source, base_offset, terms), source.size_bytes)
        return found or _recovered_batch_by_batch(source, segment.shown_path, base_offset, terms)


def emptied_segment(path: Path | None, shown_path: Path, base_offset: int, terms: BootTerms) -> Recovered:
    """A segment that is made empty as its recovery failed; without a whole batch it stays. Raises CorruptRecords."""
    found = Recovered(0, LogEnd(base_offset, 0, False), is_emptied=True, index=OffsetIndexView(base_offset))
    found.message = (
        "Found invalid offset during recovery. Deleting the corrupt segment and creating an empty one with starting "
        f"offset {base_offset}"
    )
    if path is not None:
        with opened(path) as source:
            found.size_bytes = source.size_bytes
            if first_batch_reaching(source, base_offset, 0, source.size_bytes, shown_path, terms) is None:
                found.valid_bytes = source.size_bytes
    return found


def _summary(source: FileSource, base_offset: int, terms: BootTerms) -> ReadLog:
    """The summary of a log up to its first damage, from whole chunks of batches."""
    log = ReadLog(base_offset)
    for chunk in chunks_with_crcs(source, BatchRange(0), terms.limits):
        log.add(chunk.table, is_damaged=chunk.damage is not None)
        if not log.is_sound:
            break
    return log


def _recovered_batch_by_batch(source: FileSource, shown_path: Path, base_offset: int, terms: BootTerms) -> Recovered:
    """Read batch by batch, and make index entries as the broker does: one that it cannot add ends recovery."""
    found = Recovered(source.size_bytes, LogEnd(base_offset, 0, False))
    index = bytearray()
    indexed_at, indexed_offset = 0, base_offset
    greatest, offset_of_greatest = -1, base_offset
    time_entry: tuple[int, int] | None = None
    last_epoch = -1

    def is_time_refused() -> bool:
        """Whether the time index takes no entry for the greatest timestamp, as its offset lies before the last one."""
        if time_entry is None or offset_of_greatest >= time_entry[1]:
            return False
        found.is_emptied, found.message = True, f"Attempt to append an offset ({offset_of_greatest}) to slot"
        return True

    try:
        for batch in valid_batches(source, shown_path):
            relative = batch.last_offset - base_offset
            if not 0 <= relative <= layout.MAX_RELATIVE_OFFSET:
                _overflow(source, base_offset, relative, shown_path, terms)
            if batch.max_timestamp > greatest:
                greatest, offset_of_greatest = batch.max_timestamp, batch.last_offset
            if found.valid_bytes - indexed_at > _INDEX_INTERVAL_BYTES:
                if index and batch.last_offset <= indexed_offset:
                    found.is_emptied = True
                    where = f"position {len(index) // layout.OFFSET_INDEX_ENTRY.size_bytes}"
                    after = f"no larger than the last offset appended ({indexed_offset})"
                    found.message = f"Attempt to append an offset {batch.last_offset} to {where} {after}"
                    break
                index += struct.pack(">iI", relative, found.valid_bytes)
                indexed_offset, indexed_at = batch.last_offset, found.valid_bytes
                if is_time_refused():
                    break
                if time_entry is None or greatest > time_entry[0]:
                    time_entry = (greatest, offset_of_greatest)
            found.valid_bytes += batch.size_bytes
            if batch.magic >= 2:
                if batch.leader_epoch > last_epoch:
                    last_epoch = batch.leader_epoch
                    found.epochs.append((last_epoch, batch.base_offset))
                found.map_end_offset = batch.next_offset
                found.has_transactions |= batch.producer_id >= 0 and (batch.is_transactional or batch.is_control)
    except CorruptRecords as error:
        found.message = error.text
    if found.is_emptied or is_time_refused():  # the greatest is appended once more, as to a segment that is closed
        found.valid_bytes, index = 0, bytearray()
    found.index = OffsetIndexView(base_offset, bytes(index))
    found.end = log_end(source, found.valid_bytes, found.index, shown_path, terms)
    return found


def _overflow(source: FileSource, base_offset: int, relative: int, shown_path: Path, terms: BootTerms) -> NoReturn:
    """Raise for an offset that the segment's index cannot hold: the broker splits the segment, or exits."""
    end = log_end(source, source.size_bytes, OffsetIndexView(base_offset), shown_path, terms)
    last_relative = end.next_offset - 1 - base_offset
    if end.next_offset > base_offset and not 0 <= last_relative <= layout.MAX_RELATIVE_OFFSET:
        raise NotKnown("the segment's offsets overflow its index; the broker splits it into several", shown_path)
    text = f"Split operation is only permitted for segments with overflow, and the problem path is {shown_path}"
    reason = f"a batch's offset lies {relative} past the segment's base offset, which its index cannot hold"
    raise StopsStart(text, "LocalLog.splitOverflowedSegment", shown_path, reason)


_DELETED, _CLEANED, _SWAP = ".deleted", ".cleaned", ".swap"
_SNAPSHOT_DELETED = ".checkpoint.deleted"
_LEFTOVERS = "LogLoader.removeTempFilesAndCollectSwapFiles"
#: Releases before take the first of the two bytes of an entry's version for the version.
_TWO_BYTES_SINCE = (4, 4)
#: The indexes that a broker gives a size, and their entries.
_SIZED_INDEXES = {
    layout.OFFSET_INDEX_SUFFIX: layout.OFFSET_INDEX_ENTRY, layout.TIME_INDEX_SUFFIX: layout.TIME_INDEX_ENTRY,
}  # fmt: skip
_INDEX_SUFFIXES = (*_SIZED_INDEXES, layout.TRANSACTION_INDEX_SUFFIX)
_SEGMENT_SUFFIXES = (layout.LOG_SUFFIX, *_INDEX_SUFFIXES)
_CLASS = "LogLoader"
#: Later releases take I/O errors of a recovery for invalid offsets (LogLoader.recoverLog), earlier ones pass them on.
_EMPTIES_SINCE = (4, 0)


def settle_leftovers(files: PartitionFiles, terms: BootTerms) -> None:
    """Delete files that were marked for deletion or half cleaned, and complete swaps."""
    swaps = _removed_temporary(files)
    bounds = _swapped_range(files, swaps, terms)
    if bounds is not None:
        for name in [name for name in files.present if not name.endswith(_SWAP)]:
            head, point, _ = name.partition(".")
            offset = decode_integer(head, *INT64_RANGE) if point else None
            if offset is not None and bounds[0] <= offset < bounds[1]:
                reason = f"offsets {bounds[0]} to {bounds[1] - 1} come from .swap files, which replace it"
                files.delete(name, reason, kafka_class="LogLoader.load")
    for name in [name for name in files.present if name.endswith(_SWAP)]:
        target = name.removesuffix(_SWAP)
        if target in files.present:
            files.delete(target, "the .swap file takes its place", kafka_class="LogLoader.load")
        files.rename(name, target, "an interrupted swap is completed", kafka_class="LogLoader.load")


def _removed_temporary(files: PartitionFiles) -> list[str]:
    """Delete the temporary files except valid ``.swap`` files, whose names are returned."""
    swaps: list[str] = []
    cleaned: dict[str, int] = {}
    for name in list(files.present):
        if name.endswith(_DELETED) and not name.endswith(_SNAPSHOT_DELETED):
            files.delete(name, "it was marked for deletion before the broker stopped", kafka_class=_LEFTOVERS)
        elif name.endswith(_CLEANED):
            cleaned[name] = offset_of_name(files, name)
        elif name.endswith(_SWAP):
            swaps.append(name)
    least = min(cleaned.values(), default=None)
    for name in list(swaps):
        if offset_of_name(files, name) >= (2**63 if least is None else least):
            files.delete(name, "a split or cleaning of segments that did not complete", kafka_class=_LEFTOVERS)
            swaps.remove(name)
    for name in cleaned:
        files.delete(name, "a cleaning that did not complete", kafka_class=_LEFTOVERS)
    return swaps


def _swapped_range(files: PartitionFiles, swaps: list[str], terms: BootTerms) -> tuple[int, int] | None:
    """The offsets of the swapped segments: the first, and the one after the last. None where nothing is swapped."""
    first: int | None = None
    end = -(2**63)
    for name in swaps:
        if not name.removesuffix(_SWAP).endswith(layout.LOG_SUFFIX):
            continue
        base_offset = offset_of_name(files, name)
        index_name = file_name(base_offset, layout.OFFSET_INDEX_SUFFIX) + _SWAP
        index = read_index(files.place(index_name), base_offset)
        files.present.setdefault(index_name, None)  # the broker opens it, which creates the file
        place = files.place(name)
        first = base_offset if first is None else min(first, base_offset)
        if place is not None:
            with opened(place) as source:
                try:
                    end = max(end, log_end(source, source.size_bytes, index, files.path / name, terms).next_offset)
                except CorruptRecords as error:
                    raise reader_stops(error, place, "to find the end of the .swap log") from error
    return None if first is None else (first, end)


def wrong_transaction_index(path: Path, base_offset: int, release: tuple[int, int]) -> str | None:
    """What a broker does not accept in the transaction index of a segment; None where it accepts all of it.

    Raises StopsStart for an entry of another version, which ends the start.
    """
    with opened(path) as source:
        content = source.read_at(0, source.size_bytes - source.size_bytes % layout.ABORTED_TXN.size_bytes)
    for number, (version, producer_id, first, last, _) in enumerate(layout.ABORTED_TXN.struct.iter_unpack(content)):
        refused = version if release >= _TWO_BYTES_SINCE else max(version >> 8, 0)
        if refused:
            known = "supported version range is 0 to 0" if release >= _TWO_BYTES_SINCE else "current version is 0"
            text = f"Unexpected aborted transaction version {refused} in transaction index {path}, {known}"
            reason = "an entry has a version that no release writes"
            raise StopsStart(text, "TransactionIndex", path, reason, number * layout.ABORTED_TXN.size_bytes)
        if last < base_offset:
            return (
                f"Last offset of aborted transaction (producer id {producer_id}, first offset {first}) is "
                f"{last}, less than start offset {base_offset}"
            )
    return None


def load_log(files: PartitionFiles, terms: LoadTerms) -> LoadedLog:
    """Simulate the load of a log. Raises StopsStart, FailsLogDir, NotKnown, UnreadableFile and FileChanged."""
    return _LogLoad(files, terms).run()


class _LogLoad:
    """The load of one log: the segments found so far; its steps go into ``files``."""

    def __init__(self, files: PartitionFiles, terms: LoadTerms) -> None:
        self._files = files
        self._terms = terms
        self._limits = terms.boot.limits
        self._taken: dict[int, dict[int, int]] = {}
        self._producers = ProducerFiles(files, self._limits, self._taken)
        self._segments: dict[int, LoadedSegment] = {}
        self._epochs: list[tuple[int, int]] = []
        self._is_cleared = False

    def run(self) -> LoadedLog:
        settle_leftovers(self._files, self._terms.boot)
        if not self._terms.is_whole:
            return LoadedLog(self._terms.log_start, 0, (), ())
        self._load_segments()
        if self._terms.is_deleted:
            return LoadedLog(self._terms.log_start, 0, (), ())
        if not self._terms.clean:
            self._recover_unflushed()
        next_offset = self._log_end()
        active = self._segments[max(self._segments)]
        for suffix in _SIZED_INDEXES:
            self._files.present.setdefault(file_name(active.base_offset, suffix), None)
            self._files.check_opens(file_name(active.base_offset, suffix), "AbstractIndex.resize")
        self._check_index_sizes(active)
        log_start = self._terms.log_start
        if not self._terms.may_be_remote:
            log_start = max(log_start, min(self._segments))
        self._producers.remove_strays(list(self._segments))
        self._rebuild_producer_state(log_start, next_offset)
        segments = tuple(self._segments[base] for base in sorted(self._segments))
        return LoadedLog(log_start, next_offset, segments, tuple(self._epochs), self._is_cleared)

    def _check_index_sizes(self, active: LoadedSegment) -> None:
        """Raises StopsStart for an index of the active segment that is larger than the topic's indexes may be."""
        most_bytes = self._terms.max_index_bytes
        if most_bytes is None or active.recovered is not None:
            return
        for suffix, entry in _SIZED_INDEXES.items():
            place = self._files.place(file_name(active.base_offset, suffix))
            most = most_bytes - most_bytes % entry.size_bytes
            size_bytes = 0 if place is None else size_of(place) // entry.size_bytes * entry.size_bytes
            if place is not None and size_bytes > most:
                reason = f"the index is larger than segment.index.bytes of the topic, {most_bytes}"
                text = f"newPosition > limit: ({size_bytes} > {most})"
                raise StopsStart(text, "AbstractIndex.resize", place, reason)

    # -- segments ----------------------------------------------------------------------------------------------

    def _load_segments(self) -> None:
        for name in sorted(self._files.present):
            if name.endswith(_INDEX_SUFFIXES):
                base_offset = offset_of_name(self._files, name)
                log_name = file_name(base_offset, layout.LOG_SUFFIX)
                if log_name not in self._files.present and log_name not in self._files.folders:
                    message = f"Found an orphaned index file {self._files.path / name}, with no corresponding log file."
                    reason = "an index without its log"
                    self._files.delete(name, reason, broker_message=message, kafka_class=_CLASS)
            elif name.endswith(layout.LOG_SUFFIX):
                self._load_segment(offset_of_name(self._files, name))

    def _load_segment(self, base_offset: int) -> None:
        files = self._files
        name = file_name(base_offset, layout.LOG_SUFFIX)
        if base_offset < 0 or name not in files.present:
            # The broker opens the log by the name that the offset gives, and so makes a second, empty one.
            reason = "the broker opens a log by the name that its offset gives, and so makes this empty one"
            files.step(Action.CREATE, name, reason, offset=base_offset, kafka_class="LogSegment.open")
            files.create(name)
        place = files.place(name)
        size_bytes = files.size_bytes(name)
        index_name = file_name(base_offset, layout.OFFSET_INDEX_SUFFIX)
        index_place = files.place(index_name)
        segment = LoadedSegment(base_offset, place, files.path / name, size_bytes, index_place, self._terms.boot)
        txn_name = file_name(base_offset, layout.TRANSACTION_INDEX_SUFFIX)
        if txn_name in files.folders:
            files.check_opens(txn_name, "TransactionIndex")
        txn_place = files.place(txn_name)
        release = self._terms.boot.version
        if index_name not in files.present and index_name not in files.folders:
            what = f"offset index file corresponding to log file {files.path / name}"
            message = f"Could not find {what}, recovering segment and rebuilding index files..."
            self._rebuild_index(index_name, "the index is missing", message)
            self._recover(segment, "its index is missing")
        elif txn_place is not None and (wrong := wrong_transaction_index(txn_place, base_offset, release)):
            message = f"Found a corrupted index file corresponding to log file {files.path / name} due to {wrong}"
            self._rebuild_index(txn_name, wrong, message)
            self._recover(segment, "its transaction index is corrupt")
        else:
            time_name = file_name(base_offset, layout.TIME_INDEX_SUFFIX)
            if time_name not in files.present and time_name not in files.folders:
                files.check_opens(time_name, "LogSegment.sanityCheck")
                what = "the broker makes an empty one, and look-ups by time miss this segment"
                self._rebuild_index(time_name, f"the time index is missing; {what}", None, "LogSegment.sanityCheck")
                files.create(time_name)
        self._segments[base_offset] = segment

    def _rebuild_index(self, name: str, reason: str, message: str | None, kafka_class: str = _CLASS) -> None:
        self._files.step(Action.REBUILD_INDEX, name, reason, broker_message=message, kafka_class=kafka_class)

    def _recover(self, segment: LoadedSegment, why: str, *, empties: bool = False) -> Recovered:
        """Recover a segment. Offsets that decrease empty it where ``empties`` is set, else they stop the broker."""
        files, base_offset = self._files, segment.base_offset
        for suffix, kafka_class in zip(_SIZED_INDEXES, ("OffsetIndex", "TimeIndex"), strict=True):
            index_name = file_name(base_offset, suffix)
            if empties and self._terms.boot.version >= _EMPTIES_SINCE and files.is_pipe(index_name):
                text, reason = f'{kafka_class}.mmap()" is null', "it is a pipe, which cannot be given a size"
                raise StopsStart(text, kafka_class, files.path / index_name, reason)
            files.check_opens(index_name, "LogSegment.recover")
        producers = ProducerFiles(files, self._limits, self._taken)
        self._replay(producers, self._terms.log_start, base_offset)
        if segment.place is None:
            found = Recovered(0, LogEnd(base_offset, 0, False), index=OffsetIndexView(base_offset))
        elif segment.recovered is not None:
            found = replace(segment.recovered, size_bytes=segment.size_bytes)  # what it cut is gone
        else:
            try:
                found = recovered_segment(segment, segment.place, self._terms.boot)
            except CorruptRecords as error:
                raise reader_stops(error, segment.shown_path, "to recover it") from error
        if found.is_emptied and not empties:
            reason = f"{why}, and the offsets of its log decrease: the broker cannot write an index of them"
            raise StopsStart(found.message or "", "OffsetIndex.append", segment.shown_path, reason)
        if not found.is_emptied:
            self._replay_recovered(segment, found, producers)
        name = files.original(segment.shown_path.name)
        reason = f"{why}: every batch is read, its CRC checked, and the indexes are rebuilt"
        values: dict[str, object] = {"kafka_class": "LogSegment.recover", "bytes": found.size_bytes}
        files.step(Action.RECOVER, name, reason, offset=base_offset, **values)
        if found.truncated_bytes:
            self._truncate(name, found, _why_cut(found), "LogSegment.recover")
        for suffix in _SIZED_INDEXES:
            index_name = file_name(base_offset, suffix)
            if files.present.get(index_name) is not None:
                self._rebuild_index(index_name, "rebuilt with its log", None, "LogSegment.recover")
            files.create(index_name)
        self._epochs += found.epochs
        segment.recovered, segment.size_bytes = found, found.valid_bytes
        if not found.is_emptied:  # else the broker's exception comes before the snapshot is taken
            producers.map_end = found.map_end_offset if found.map_end_offset is not None else base_offset
            producers.take()
        return found

    def _truncate(self, name: str, found: Recovered, reason: str, kafka_class: str) -> None:
        self._files.step(
            Action.TRUNCATE, name, reason, offset=found.next_offset, position=found.valid_bytes,
            bytes=found.truncated_bytes, broker_message=found.message, kafka_class=kafka_class,
        )  # fmt: skip

    def _replay_recovered(self, segment: LoadedSegment, found: Recovered, producers: ProducerFiles) -> None:
        """Take the transactions of what recovery leaves. Raises StopsStart."""
        if segment.place is None or not (found.has_transactions or producers.transactions.by_producer):
            return
        path = segment.shown_path
        with opened(segment.place) as source:
            replay = Replay(producers.transactions, source, path, self._terms.boot, recovers=True)
            for batch in batches_from(source, 0, found.valid_bytes, path):
                replay.take(batch)

    def _emptied(self, segment: LoadedSegment, error: FailsSnapshot) -> Recovered:
        """Empty a segment whose recovery ended with an error. Raises StopsStart where the broker's reader fails."""
        base_offset, name = segment.base_offset, segment.shown_path.name
        try:
            found = emptied_segment(segment.place, segment.shown_path, base_offset, self._terms.boot)
        except CorruptRecords as unread:
            raise reader_stops(unread, segment.shown_path, "to make the segment empty") from unread
        self._files.drop_step(Action.TRUNCATE, name)
        if found.truncated_bytes:
            reason = f"{error.path} cannot be written ({error.text}): the broker makes the segment empty"
            self._truncate(name, found, reason, "LogLoader.recoverLog")
        segment.recovered, segment.size_bytes = found, found.valid_bytes
        return found

    def _recover_unflushed(self) -> None:
        bases = sorted(self._segments)
        floor = max((base for base in bases if base <= self._terms.recovery_point), default=None)
        unflushed = [base for base in bases if floor is None or base >= floor]
        for number, base_offset in enumerate(unflushed):
            segment = self._segments[base_offset]
            try:
                found = self._recover(segment, self._terms.why_recovered, empties=True)
            except FailsSnapshot as error:
                if self._terms.boot.version < _EMPTIES_SINCE:
                    raise
                found = self._emptied(segment, error)
            if found.truncated_bytes:
                reason = f"it comes after the segment {base_offset}, which was cut"
                for later in unflushed[number + 1 :]:
                    self._remove_segment(later, reason, (*_SEGMENT_SUFFIXES, layout.PRODUCER_SNAPSHOT_SUFFIX))
                return

    def _remove_segment(self, base_offset: int, reason: str, suffixes: tuple[str, ...]) -> None:
        """Mark a segment's files as deleted; the broker removes them a minute later."""
        del self._segments[base_offset]
        for suffix in suffixes:
            name = file_name(base_offset, suffix)
            if name in self._files.present:
                self._files.delete(
                    name, f"{reason}; renamed at once, removed a minute later", to=f"{name}.deleted",
                    offset=base_offset, kafka_class="LogLoader.removeAndDeleteSegmentsAsync",
                )  # fmt: skip
        if layout.PRODUCER_SNAPSHOT_SUFFIX in suffixes:
            self._producers.known.pop(base_offset, None)

    def _log_end(self) -> int:
        """The log end offset. A log that ends below its log start offset is emptied."""
        log_start = self._terms.log_start
        if self._segments:
            end = self._segments[max(self._segments)].end().next_offset
            if end >= log_start:
                return end
            reason = f"the log ends at {end}, below the log start offset {log_start} of the checkpoint"
            for base_offset in sorted(self._segments):
                self._remove_segment(base_offset, reason, _SEGMENT_SUFFIXES)
            for offset in list(self._producers.known):
                self._producers.remove(offset, reason)
            self._producers.last_snapshot, self._producers.map_end = 0, log_start
            self._producers.transactions.load({})
            self._is_cleared = True
        for suffix in (layout.LOG_SUFFIX, *_SIZED_INDEXES):
            name = file_name(log_start, suffix)
            self._files.check_opens(name, "LogSegment.open")
            self._files.present[name] = None
        path = self._files.path / file_name(log_start, layout.LOG_SUFFIX)
        self._files.step(
            Action.CREATE, path.name, "an empty segment, as the log has none", offset=log_start, kafka_class=_CLASS
        )
        self._segments[log_start] = LoadedSegment(log_start, None, path, 0, None, self._terms.boot)
        return log_start

    # -- the producers' state -----------------------------------------------------------------------------------

    def _rebuild_producer_state(self, log_start: int, log_end: int) -> None:
        producers = self._producers
        if not producers.known and self._terms.clean:
            for offset in (*sorted(self._segments)[-2:], log_end):
                producers.map_end = offset
                producers.take()
            return
        self._replay(producers, log_start, log_end)

    def _replay(self, producers: ProducerFiles, log_start: int, end: int) -> None:
        """Load the newest snapshot and read the log from there to ``end``."""
        empty = producers.map_end >= end
        producers.truncate_and_reload(log_start, end)
        bases = sorted(self._segments)
        snapshots_at = {*bases[-2:], end}
        if end > producers.map_end and not empty:
            floor = max((base for base in bases if base <= producers.map_end), default=None)
            last = max((base for base in bases if base <= end), default=None)
            for base in [base for base in bases if (floor is None or base >= floor) and base < end]:
                start = max(base, producers.map_end, log_start)
                producers.map_end = start
                if base in snapshots_at:
                    producers.take()
                producers.map_end = self._read_producers(producers, base, start, end if base == last else None)
        producers.map_end = end
        producers.take()

    def _read_producers(self, producers: ProducerFiles, base_offset: int, start: int, until: int | None) -> int:
        """Read a segment's batches as the state is rebuilt; returns the offset after the last. Raises StopsStart."""
        segment = self._segments[base_offset]
        if segment.place is None:
            return start
        index_name = file_name(segment.base_offset, layout.OFFSET_INDEX_SUFFIX)
        self._files.check_opens(index_name, "LogSegment.read", is_resized=False)
        path, size_bytes, index, boot = segment.shown_path, segment.size_bytes, segment.index, self._terms.boot
        with opened(segment.place) as source:
            try:
                if until is not None:
                    last = first_batch_reaching(source, until, index.position_for(until), size_bytes, path, boot)
                    size_bytes = size_bytes if last is None else last.position
                first = first_batch_reaching(source, start, index.position_for(start), segment.size_bytes, path, boot)
                if first is None:
                    return start
                replay = Replay(producers.transactions, source, path, boot)
                for batch in batches_from(source, first.position, max(size_bytes, first.position), path):
                    replay.take(batch)
                    start = batch.next_offset if batch.magic >= 2 else start
                replay.finish()
            except CorruptRecords as error:
                raise reader_stops(error, path, "to rebuild the producers' state") from error
        return start


def _why_cut(found: Recovered) -> str:
    if found.is_emptied:
        return "the offsets decrease: the broker makes the segment empty"
    if found.message is None:
        return "the rest of the file holds no whole batch"
    return "the batch here is not valid: the broker removes it and everything after it"
