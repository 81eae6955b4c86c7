"""What find finds, in a form that tests compare."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from format.findings import Finding
from format.io.source import FileSource
from format.log.read_records import record_tables
from format.log.walker import batch_chunks
from format.verbs.find.find import find_max_timestamp, find_offset, find_timestamp, partition_to_search
from format.verbs.find.lookup import Lookup, Match, TraceStep
from tests.building import batch
from tests.format.verbs.find.lookup_logs import (
    write_indexed,
)

NOTHING = (-1, -1)


@dataclass(frozen=True)
class Seen:
    """All that a look-up reported."""

    found: Lookup

    @property
    def match(self) -> Match:
        assert self.found.match is not None, self.found.reason
        return self.found.match

    @property
    def offset(self) -> int | None:
        return None if self.found.match is None else self.found.match.location.offset

    @property
    def answer(self) -> tuple[int | None, int | None]:
        """Offset and timestamp as a broker answers them."""
        return NOTHING if self.found.match is None else (self.offset, self.found.match.timestamp)

    @property
    def steps(self) -> list[TraceStep]:
        return self.found.steps

    @property
    def findings(self) -> list[Finding]:
        return self.found.findings

    @property
    def codes(self) -> list[str]:
        return [each.code for each in self.findings]

    @property
    def reason(self) -> str:
        assert self.found.match is None, self.found.match
        return self.found.reason

    def detail(self, stage: str) -> str:
        """What the only step of a stage says."""
        (step,) = [each for each in self.steps if each.stage == stage]
        return step.detail


def seen(found: Lookup) -> Seen:
    assert found.error is None
    assert found.steps[-1].stage == "match"
    return Seen(found)


def by_offset(path: Path, offset: int) -> Seen:
    return seen(find_offset(partition_to_search(path), offset))


def by_time(path: Path, timestamp: int, **options: bool) -> Seen:
    return seen(find_timestamp(partition_to_search(path), timestamp, **options))


def by_max(path: Path, **options: bool) -> Seen:
    return seen(find_max_timestamp(partition_to_search(path), **options))


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
