"""Small partitions that real brokers wrote, laid out to be damaged: one change, verify, undo.

Each has around it what its broker left: checkpoints, indexes, snapshots and the mark of a clean stop. The messages of
v0 and v1 are cut, a few of each codec, out of the log that lived through every format.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from format import layout
from format.files import offset_checkpoint, time_index
from format.findings import Finding, Severity
from format.io.source import FileSource
from format.log.batch_chunk import BatchRange
from format.log.batch_table import BatchTable
from format.log.walker import batch_chunks
from format.verbs.verify.verify import VerifyTerms, verify
from tests.corpora import DATA_DIR
from tests.sources import read_batch_table

SINGLE = DATA_DIR / "kafka-4.3-single" / "node-1"
LEGACY = DATA_DIR / "kafka-0.8-to-2.8" / "data"
NODE_1 = DATA_DIR / "kafka-4.3" / "node-1"

#: Partitions whose offsets leave no gap, and such that a broker has compacted or may compact.
CONTIGUOUS = (
    "clicks-uncompressed-0", "clicks-gzip-0", "clicks-snappy-0", "clicks-lz4-0", "clicks-zstd-0", "clients-0",
    "edge.cases_1-0", "payments-1", "orders-1",
)  # fmt: skip
COMPACTED = ("users-0", "__consumer_offsets-2", "__transaction_state-0")
#: Magic and codec of the slices of old messages, and how many messages each has.
LEGACY_SLICES = tuple((magic, codec) for magic in (0, 1) for codec in (0, 1, 2, 3))
SLICE_MESSAGES = 6


@dataclass
class Workbench:
    """One partition directory to damage; ``before`` are its findings when it is whole."""

    name: str
    directory: Path
    is_contiguous: bool
    before: set[tuple[object, ...]] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.before = {reported(each) for each in self.findings()}

    @property
    def logs(self) -> list[Path]:
        return sorted(self.directory.glob("*.log"))

    def findings(self) -> list[Finding]:
        return list(verify(self.directory.parent, VerifyTerms()))

    def new_findings(self) -> list[Finding]:
        """What verify says now that it did not say of the whole partition."""
        return [each for each in self.findings() if reported(each) not in self.before]

    def is_detected(self, at_least: Severity = Severity.WARNING) -> bool:
        """Whether verify reports the damage; it stops at the first finding that does."""
        found = verify(self.directory.parent, VerifyTerms())
        return any(
            (each.severity >= at_least or each.is_incomplete) and reported(each) not in self.before for each in found
        )

    @contextmanager
    def changed(self, path: Path, position: int, content: bytes) -> Iterator[None]:
        """Some bytes of a file overwritten, and put back afterwards."""
        descriptor = os.open(path, os.O_RDWR)
        try:
            old = os.pread(descriptor, len(content), position)
            os.pwrite(descriptor, content, position)
            try:
                yield
            finally:
                os.pwrite(descriptor, old, position)
        finally:
            os.close(descriptor)


def reported(finding: Finding) -> tuple[object, ...]:
    return finding.code, finding.location, finding.message


def scratch_root() -> Path | None:
    """A folder in memory where there is one: these files are written millions of times."""
    memory = Path("/dev/shm")
    return memory if memory.is_dir() and os.access(memory, os.W_OK) else None


def workbench(root: Path, name: str) -> Workbench:
    """A copy of one of the shipped partitions, in a log directory of its own."""
    if name.startswith("v"):
        return _legacy_slice(root, *(int(digit) for digit in name.removeprefix("v").split("-codec-")))
    source = next(log_dir / name for log_dir in (SINGLE, NODE_1) if (log_dir / name).is_dir())
    log_dir = root / name
    shutil.copytree(source, log_dir / name)
    _copy_surroundings(source.parent, log_dir, name)
    _make_writable(log_dir)
    return Workbench(name, log_dir / name, name in CONTIGUOUS)


def names(*, contiguous: bool = True, compacted: bool = True, legacy: bool = True) -> list[str]:
    found = list(CONTIGUOUS) if contiguous else []
    found += COMPACTED if compacted else ()
    return found + ([f"v{magic}-codec-{codec}" for magic, codec in LEGACY_SLICES] if legacy else [])


def _make_writable(log_dir: Path) -> None:
    for each in log_dir.rglob("*"):
        each.chmod(0o755 if each.is_dir() else 0o644)


def _copy_surroundings(source: Path, log_dir: Path, name: str) -> None:
    """The log directory's own files, with the checkpoints' lines of this one partition."""
    topic, _, partition = name.rpartition("-")
    for checkpoint in layout.OFFSET_CHECKPOINTS:
        if (source / checkpoint).exists():
            entries = offset_checkpoint.read(source / checkpoint).entries
            kept = [each for each in entries if (each.topic, each.partition) == (topic, int(partition))]
            (log_dir / checkpoint).write_bytes(offset_checkpoint.write(kept))
    for other in (layout.META_PROPERTIES, layout.CLEAN_SHUTDOWN):
        if (source / other).exists():
            shutil.copy(source / other, log_dir / other)


def _legacy_slice(root: Path, magic: int, codec: int) -> Workbench:
    """Some messages of one format and codec, as a broker of the time would have left them in a log of their own."""
    path = LEGACY / "legacy-0" / "00000000000000000000.log"
    content = path.read_bytes()
    with FileSource(path) as source:
        table = read_batch_table(source)
        rows = (table.magic == magic) & (table.codec == codec)
        first = int(rows.nonzero()[0][0])
        last = first + min(SLICE_MESSAGES, int(rows.sum()))
        start, end = int(table.position[first]), int(table.end_position[last - 1])
        opened = BatchTable.empty()
        for chunk in batch_chunks(source, BatchRange(start, end)):
            opened = chunk.table
    name = f"v{magic}-codec-{codec}"
    base_offset, last_offset = int(opened.base_offset[0]), int(opened.last_offset[-1])
    log_dir = root / name
    partition = log_dir / "legacy-0"
    partition.mkdir(parents=True)
    prefix = partition / f"{base_offset:020d}"
    prefix.with_suffix(".log").write_bytes(content[start:end])
    prefix.with_suffix(".index").write_bytes(b"")
    entries: tuple[list[int], list[int]] = ([], [])
    if magic:
        row = int(opened.max_timestamp.argmax())
        entries = ([int(opened.max_timestamp[row])], [int(opened.last_offset[row]) - base_offset])
    prefix.with_suffix(".timeindex").write_bytes(time_index.write(entries))
    (partition / "leader-epoch-checkpoint").write_bytes(b"0\n0\n")
    for checkpoint in (layout.REPLICATION_OFFSET_CHECKPOINT, layout.RECOVERY_POINT_CHECKPOINT):
        entry = offset_checkpoint.TopicPartitionOffset("legacy", 0, last_offset + 1)
        (log_dir / checkpoint).write_bytes(offset_checkpoint.write([entry]))
    (log_dir / layout.CLEAN_SHUTDOWN).write_bytes((SINGLE / layout.CLEAN_SHUTDOWN).read_bytes())
    return Workbench(name, partition, True)
