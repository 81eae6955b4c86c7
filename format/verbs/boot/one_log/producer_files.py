"""The producer snapshots of a partition while a start works on them: which it deletes, loads and writes.

Source: storage ProducerStateManager. Of the state of the producers, only their open transactions are simulated.
"""

from __future__ import annotations

from pathlib import Path

from format.errors import KafkaLogError
from format.files import producer_snapshot
from format.files.side_file import INT64_RANGE, decode_integer
from format.layout import PRODUCER_SNAPSHOT_SUFFIX
from format.limits import Limits
from format.verbs.boot.one_log.partition_files import PartitionFiles, file_name
from format.verbs.boot.one_log.producer_replay import OpenTransactions
from format.verbs.boot.pipes import stop_at_pipe
from format.verbs.boot.steps import Action, FailsLogDir, FailsSnapshot, StopsStart

_CLASS = "ProducerStateManager"


def offset_of_name(files: PartitionFiles, name: str) -> int:
    """The offset at the start of a file name. Raises StopsStart where the broker cannot parse it."""
    head, point, _ = name.partition(".")
    offset = decode_integer(head, *INT64_RANGE) if point else None
    if offset is None:
        text = f'For input string: "{head}"' if point else "begin 0, end -1, length"
        reason = f"the name {name} ends as a file of a segment does and does not begin with an offset"
        raise StopsStart(text, "LogFileUtils.offsetFromFileName", path=files.path / name, reason=reason)
    return offset


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
        names = [name for name in self._files.present if name.endswith(PRODUCER_SNAPSHOT_SUFFIX)]
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
            place = self._files.present.get(self.known[newest])
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
        name = file_name(self.map_end, PRODUCER_SNAPSHOT_SUFFIX)
        if name in self._files.folders:
            stop_at_pipe(self._files.path / name, _CLASS)
        try:
            self._files.check_opens(name, _CLASS)
        except FailsLogDir as error:
            raise FailsSnapshot(error.text, _CLASS, path=error.path, reason=error.reason) from error
        self._files.step(
            Action.REBUILD_SNAPSHOT,
            name,
            f"the state of producers at offset {self.map_end} is written",
            offset=self.map_end,
            kafka_class=_CLASS,
        )
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
    if found.version is None:
        return "Snapshot failed schema validation"
    if found.version != producer_snapshot.CURRENT_VERSION:
        return f"Snapshot contained an unknown file version {found.version}"
    if found.stored_entry_count is None or found.stored_entry_count != found.entry_count:
        return "Snapshot failed schema validation"
    if not found.crc_valid:
        return "Snapshot is corrupt (CRC is no longer valid)"
    pairs = zip(found.producer_ids.tolist(), found.current_txn_first_offsets.tolist(), strict=True)
    return {producer_id: first_offset for producer_id, first_offset in pairs if first_offset >= 0}
