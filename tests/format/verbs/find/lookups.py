"""What find finds, in a form that tests compare."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from format.findings import Finding
from format.io.source import FileSource
from format.log.read_records import record_tables
from format.log.walker import batch_chunks
from format.verbs.find.find import find_max_timestamp, find_offset, find_timestamp, partition_to_search
from format.verbs.find.lookup import Match, NotFound, TraceStep
from tests.building import batch
from tests.format.verbs.find.lookup_logs import (
    write_indexed,
)

NOTHING = (-1, -1)


@dataclass(frozen=True)
class Lookup:
    """All that a look-up reported."""

    result: Match | NotFound
    steps: list[TraceStep]
    findings: list[Finding]

    @property
    def offset(self) -> int | None:
        return self.result.location.offset if isinstance(self.result, Match) else None

    @property
    def answer(self) -> tuple[int | None, int | None]:
        """Offset and timestamp as a broker answers them."""
        return (self.offset, self.result.timestamp) if isinstance(self.result, Match) else NOTHING

    @property
    def codes(self) -> list[str]:
        return [each.code for each in self.findings]

    @property
    def reason(self) -> str:
        assert isinstance(self.result, NotFound), self.result
        return self.result.reason

    def detail(self, stage: str) -> str:
        """What the only step of a stage says."""
        (step,) = [each for each in self.steps if each.stage == stage]
        return step.detail


def reported(items: Iterable[Any]) -> Lookup:
    *way, result = items
    assert isinstance(result, (Match, NotFound))
    steps = [each for each in way if isinstance(each, TraceStep)]
    assert steps[-1].stage == "match"
    return Lookup(result, steps, [each for each in way if isinstance(each, Finding)])


def by_offset(path: Path, offset: int) -> Lookup:
    return reported(find_offset(partition_to_search(path), offset))


def by_time(path: Path, timestamp: int, **options: bool) -> Lookup:
    return reported(find_timestamp(partition_to_search(path), timestamp, **options))


def by_max(path: Path, **options: bool) -> Lookup:
    return reported(find_max_timestamp(partition_to_search(path), **options))


def records_on_disk(partition: Path) -> list[tuple[int, int]]:
    """(offset, timestamp) of every record, read from the logs without any index."""
    found = []
    for path in sorted(partition.glob("*.log")):
        with FileSource(path) as source:
            for chunk in batch_chunks(source):
                for table in record_tables(chunk):
                    found += list(zip(table.offset.tolist(), table.timestamp.tolist(), strict=True))
    return found


def three_segments(tmp_path: Path) -> Path:
    """Offsets 0 to 29, a record a millisecond, in segments of 10 and batches of 5."""
    partition = tmp_path / "topic-0"
    for base_offset in (0, 10, 20):
        batches = [batch(offset, [b"v"] * 5) for offset in (base_offset, base_offset + 5)]
        write_indexed(partition, base_offset, batches, is_closed=base_offset < 20)
    return partition
