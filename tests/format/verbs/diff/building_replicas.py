"""Replicas as models: lists of batches with known records, written as partition directories, and what diff must say.

The model knows each record's offset, epoch, key and value, so that the truth is found without reading a log.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from format import layout
from format.files import leader_epoch_checkpoint
from format.files.leader_epoch_checkpoint import EpochEntry
from format.log.encode_batches import BatchHeader, encode_batch
from tests.building import BASE_TIMESTAMP, write_segment
from tests.record_encoder import NewRecord, encode_record

Record = tuple[bytes | None, bytes | None]


@dataclass(frozen=True)
class ModelBatch:
    """A batch: its offsets, its epoch, the records by offset, and its codec."""

    base_offset: int
    last_offset: int
    epoch: int
    records: dict[int, Record]
    codec: int = 0

    def encoded(self) -> bytes:
        records = b"".join(
            encode_record(NewRecord(offset - self.base_offset, offset - self.base_offset, key, value, ()))
            for offset, (key, value) in sorted(self.records.items())
        )
        header = BatchHeader(
            base_offset=self.base_offset,
            last_offset_delta=self.last_offset - self.base_offset,
            record_count=len(self.records),
            base_timestamp=BASE_TIMESTAMP + self.base_offset,
            max_timestamp=BASE_TIMESTAMP + max(self.records, default=self.base_offset),
            leader_epoch=self.epoch,
        )
        return encode_batch(header, records, codec=self.codec)


@dataclass
class ModelReplica:
    """The batches of a replica, and what its checkpoints say."""

    batches: list[ModelBatch]
    high_watermark: int | None = None
    was_cleaned: bool = False
    segment_starts: tuple[int, ...] = (0,)
    damaged: set[int] = field(default_factory=set)  # numbers of batches with a flipped byte

    @property
    def end(self) -> int:
        return self.batches[-1].last_offset + 1 if self.batches else 0

    @property
    def records(self) -> dict[int, tuple[int, Record]]:
        """The epoch and content of each record, by offset."""
        return {
            offset: (batch.epoch, record)
            for number, batch in enumerate(self.batches)
            if number not in self.damaged
            for offset, record in batch.records.items()
        }

    @property
    def epochs(self) -> list[EpochEntry]:
        entries: list[EpochEntry] = []
        for batch in self.batches:
            if not entries or batch.epoch > entries[-1].leader_epoch:
                entries.append(EpochEntry(batch.epoch, batch.base_offset))
        return entries

    def write(self, log_dir: Path, name: str = "orders-0") -> Path:
        """The partition directory and the checkpoints of a log directory with this replica alone."""
        directory = log_dir / name
        directory.mkdir(parents=True)
        starts = sorted({0, *self.segment_starts})
        contents: dict[int, list[bytes]] = {}
        for number, batch in enumerate(self.batches):
            content = bytearray(batch.encoded())
            if number in self.damaged:
                content[-1] ^= 0x40
            start = max(each for each in starts if each <= batch.base_offset)
            contents.setdefault(start, []).append(bytes(content))
        for start in sorted({0, *contents}):
            write_segment(directory, start, contents.get(start, []))
        (directory / layout.LEADER_EPOCH_CHECKPOINT).write_bytes(leader_epoch_checkpoint.write(self.epochs))
        topic, number = name.rsplit("-", 1)
        marks = [] if self.high_watermark is None else [f"{topic} {number} {self.high_watermark}"]
        _write_checkpoint(log_dir / layout.REPLICATION_OFFSET_CHECKPOINT, marks)
        cleaned = [f"{topic} {number} {self.end}"] if self.was_cleaned else []
        _write_checkpoint(log_dir / layout.CLEANER_OFFSET_CHECKPOINT, cleaned)
        return directory


def _write_checkpoint(path: Path, entries: list[str]) -> None:
    path.write_text("\n".join(["0", str(len(entries)), *entries, ""]))


def plain(
    count: int, *, size: int = 3, first: int = 0, epoch: int = 0, keys: int = 5, tag: str = "a"
) -> list[ModelBatch]:
    """Consecutive batches of ``size`` records whose keys repeat."""
    return [
        ModelBatch(
            base,
            base + size - 1,
            epoch,
            {at: (b"key-%d" % (at % keys), f"{tag}-{at}".encode()) for at in range(base, base + size)},
        )
        for base in range(first, first + count * size, size)
    ]


def compacted(batches: list[ModelBatch], up_to: int) -> list[ModelBatch]:
    """What compaction leaves of the batches below an offset: the last record of each key, and no empty batch."""
    latest: dict[bytes | None, int] = {}
    for batch in batches:
        for offset, (key, _) in batch.records.items():
            latest[key] = max(latest.get(key, -1), offset)
    result = []
    for batch in batches:
        if batch.last_offset >= up_to:
            result.append(batch)
            continue
        kept = {offset: record for offset, record in batch.records.items() if latest[record[0]] == offset}
        if kept:
            result.append(ModelBatch(batch.base_offset, batch.last_offset, batch.epoch, kept, batch.codec))
    return result
