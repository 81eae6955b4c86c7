"""The options and sources of extract, and the paths of the files that it writes.

A path is ``topic=TOPIC/partition=N/part-00000.SUFFIX``, as Hive, Spark, DuckDB and Arrow name partitions, below
``broker_id=N`` where several brokers have the same partition. It is made from names of the source's directories, never
from a record.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from format.errors import KafkaLogError
from format.findings import Finding
from format.limits import DEFAULT_LIMITS, Limits
from format.node.log_dir import Kind
from format.node.partition import Partition, read_partition
from format.node.target import Target
from format.scan.progress import Advance, no_progress
from format.scan.selected_logs import selected_bytes
from format.scan.selection import EVERYTHING, Selection
from format.verbs.extract.files import FileFormat

#: The name that Hive gives the partition of rows without a value.
NO_PARTITION = "__HIVE_DEFAULT_PARTITION__"

Key = tuple[str | None, int | None]


class Extraction(msgspec.Struct):
    """The options of one run.

    ``left_out`` lists what is left out on purpose, ``unread`` has findings about what cannot be read.
    """

    file_format: FileFormat
    selection: Selection = EVERYTHING
    limits: Limits = DEFAULT_LIMITS
    records_per_file: int | None = None
    bytes_per_file: int | None = None
    extra_columns: frozenset[str] = frozenset()
    advance: Advance = no_progress
    left_out: list[str] = msgspec.field(default_factory=list)
    unread: list[Finding] = msgspec.field(default_factory=list)


class ExtractSource(msgspec.Struct, frozen=True):
    """The source of one topic and partition: a partition directory, or a log file."""

    key: Key
    path: Path
    kind: Kind
    broker_id: int | None = None  # None where the records of all brokers go to one directory

    @property
    def directory(self) -> str:
        """The directory of the records in the output."""
        topic, partition = (NO_PARTITION if each is None else each for each in self.key)
        broker = "" if self.broker_id is None else f"broker_id={self.broker_id}/"
        return f"{broker}topic={topic}/partition={partition}"

    def bytes_to_read(self, selection: Selection) -> int:
        """Bytes of the logs that may have selected records."""
        return selected_bytes([Target(self.path, self.kind)], selection)

    @property
    def files(self) -> list[Path]:
        """The paths to read: the file, or the directory and the files of its segments."""
        if self.kind is Kind.LOG:
            return [self.path]
        return [self.path, *(file for each in self._partition.segments for file in each.files.values())]

    @property
    def _partition(self) -> Partition:
        """The partition; empty if the directory cannot be listed, which is reported when it is read."""
        try:
            return read_partition(self.path)
        except KafkaLogError:
            return Partition(self.path)
