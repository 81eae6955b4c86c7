"""Logs of coordinators for tests, and everything that groups says of some paths."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from format.columns import GROUP, GROUP_COMMIT, GROUP_OFFSET
from format.findings import Finding
from format.node.target import Target
from format.verbs.groups.answers import next_command
from format.verbs.groups.group_list import GroupTerms
from format.verbs.groups.groups import CommitHistory, GroupsReading, LogRecords
from tests.building import BASE_TIMESTAMP, batch, write_segment

Row = dict[str, Any]


class Answer:
    """Everything that groups says of some paths."""

    def __init__(self, *paths: Path, terms: GroupTerms | None = None, jobs: int = 1) -> None:
        terms = terms or GroupTerms()
        self.reading = reading = GroupsReading([Target(path) for path in paths], terms)
        history = CommitHistory(terms.narrowing)
        self.findings: list[Finding] = []
        commits: list[tuple[Any, ...]] = []
        for item in reading.read(jobs=jobs):
            if isinstance(item, LogRecords):
                commits += history.rows_of(item)
            else:
                self.findings.append(item)
        self.commits = _rows(GROUP_COMMIT.names, [*commits, *history.rest()])
        found = reading.groups()
        self.raw_groups, self.raw_offsets = list(found.group_rows()), list(found.offset_rows())
        self.groups = {row["group"]: row for row in _rows(GROUP.names, self.raw_groups)}
        self.offsets = _rows(GROUP_OFFSET.names, self.raw_offsets)
        self.sentences = found.sentences()
        self.next_command = next_command(found, ["/x y"])
        self.not_checked = reading.not_checked(found)

    def committed(self) -> dict[str, dict[str, int]]:
        """The offset of each partition of each group."""
        found: dict[str, dict[str, int]] = {}
        for row in self.offsets:
            if row["offset"] is not None:
                found.setdefault(row["group"], {})[f"{row['topic']}-{row['partition']}"] = row["offset"]
        return found


def _rows(names: Iterable[str], rows: Iterable[tuple[Any, ...]]) -> list[Row]:
    return [dict(zip(names, row, strict=True)) for row in rows]


def commit(group: str, partition: int, offset: int | None, metadata: str = "") -> tuple[bytes, bytes | None]:
    """The key and value of an offset commit, or of its tombstone."""
    key = struct.pack(">hh", 1, len(group)) + group.encode() + struct.pack(">h6si", 6, b"orders", partition)
    if offset is None:
        return key, None
    value = struct.pack(">hqih", 3, offset, 0, len(metadata)) + metadata.encode()
    return key, value + struct.pack(">q", BASE_TIMESTAMP + offset)


def batches_of(*records: tuple[tuple[bytes, bytes | None] | str, int | None]) -> list[bytes]:
    """A batch for each record, in the transaction of a producer, or None for none; a marker for COMMIT and ABORT."""
    made = []
    for offset, (record, producer_id) in enumerate(records):
        fields = {} if producer_id is None else {"producer_id": producer_id, "producer_epoch": 0, "attributes": 0x10}
        if isinstance(record, str):
            key, value = struct.pack(">hh", 0, int(record == "COMMIT")), struct.pack(">hi", 0, 0)
            fields["attributes"] = 0x30
        else:
            key, value = record[0], record[1]  # type: ignore[assignment]
        made.append(batch(offset, [value], key=key, **fields))
    return made


def log_of(tmp_path: Path, *records: tuple[tuple[bytes, bytes | None] | str, int | None]) -> Path:
    write_segment(tmp_path / "__consumer_offsets-7", 0, batches_of(*records))
    return tmp_path / "__consumer_offsets-7"
