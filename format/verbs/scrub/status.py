"""scrub --status: what was verified when, by log directory, and the same numbers as metrics of Prometheus."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from format.columns import SCRUB_DIRECTORY
from format.errors import OutputError
from format.findings import Severity
from format.location import Location
from format.rows.record_rows import Row
from format.verbs.scrub.state import KnownFinding, KnownPartition, Pass, State


class DirectoryStatus(msgspec.Struct):
    """A row of columns.SCRUB_DIRECTORY: the segments of one log directory."""

    path: str
    node_id: int | None
    partition_count: int = 0
    segment_count: int = 0
    size_bytes: int = 0
    overdue_count: int = 0
    overdue_bytes: int = 0
    oldest_ms: int | None = None  # None: one was never verified, or there are none
    finding_count: int = 0

    def add(self, known: KnownPartition, state: State, cutoff_ms: int) -> None:
        """Add a replica."""
        self.partition_count += 1
        self.segment_count += known.segment_count
        self.size_bytes += known.size_bytes
        if known.listing and known.oldest_ms is not None and known.oldest_ms >= cutoff_ms:
            verified, verified_bytes = known.segment_count, known.size_bytes  # as planning found, without a query
        else:
            verified, verified_bytes = state.verified_since(known.id, cutoff_ms)
        self.overdue_count += max(known.segment_count - verified, 0)
        self.overdue_bytes += max(known.size_bytes - verified_bytes, 0) if known.segment_count > verified else 0
        if known.oldest_ms is not None:
            self.oldest_ms = known.oldest_ms if self.oldest_ms is None else min(self.oldest_ms, known.oldest_ms)

    def row(self) -> Row:
        return SCRUB_DIRECTORY.row_of(self, oldest_verified_at=self.oldest_ms)


class Status(msgspec.Struct, frozen=True):
    """What a state says at a time: its log directories, its open findings, and the last pass."""

    directories: list[DirectoryStatus]
    findings: list[KnownFinding]
    last_pass: Pass | None
    verified_segments: int
    verified_bytes: int

    @property
    def overdue_count(self) -> int:
        """The segments that were not verified within the period."""
        return sum(each.overdue_count for each in self.directories)

    @property
    def overdue_bytes(self) -> int:
        return sum(each.overdue_bytes for each in self.directories)

    @property
    def oldest_ms(self) -> int | None:
        """When the longest unverified of the verified segments was verified."""
        return min((each.oldest_ms for each in self.directories if each.oldest_ms is not None), default=None)

    @property
    def seconds_left(self) -> int | None:
        """How long the overdue bytes take at the rate of the last pass; None without one."""
        if self.last_pass is None or not self.last_pass.bytes_per_s:
            return None
        return self.overdue_bytes // self.last_pass.bytes_per_s


def status_of(state: State, period_ms: int) -> Status:
    """The status of a state now, for segments that are to be verified once in a period. Raises InputError."""
    found: dict[str, DirectoryStatus] = {}
    cutoff_ms = time.time_ns() // 1_000_000 - period_ms
    for known in state.partitions():
        path = os.path.dirname(known.path)
        found.setdefault(path, DirectoryStatus(path, known.node_id)).add(known, state, cutoff_ms)
    findings = state.findings()
    for each in findings:
        found[os.path.dirname(os.path.dirname(each.path))].finding_count += 1
    return Status(list(found.values()), findings, state.last_pass(), *state.totals())


def write_metrics(path: str, status: Status) -> None:
    """Write the metrics as text for Prometheus' textfile collector, in place of the file. Raises OutputError."""
    text = "".join(f"{line}\n" for line in _metric_lines(status))
    beside = Path(f"{path}.{os.getpid()}.tmp")  # the collector reads only *.prom
    try:
        beside.write_text(text, encoding="utf-8")
        beside.replace(path)
    except OSError as error:
        beside.unlink(missing_ok=True)
        raise OutputError(f"cannot write: {error.strerror}", Location(path)) from error


def _metric_lines(status: Status) -> Iterator[str]:
    directories = status.directories

    def by_directory(name: str, meaning: str, values: Iterable[int]) -> Iterator[str]:
        yield from _head(name, "gauge", meaning)
        for each, value in zip(directories, values, strict=True):
            yield f"{name}{{{_label('path', each.path)}}} {value}"

    yield from by_directory("kafkalog_scrub_segments", "Segments.", (each.segment_count for each in directories))
    yield from by_directory("kafkalog_scrub_bytes", "Bytes of the segments.", (each.size_bytes for each in directories))
    yield from by_directory(
        "kafkalog_scrub_overdue_segments",
        "Segments that were not verified within the period.",
        (each.overdue_count for each in directories),
    )
    yield from by_directory(
        "kafkalog_scrub_overdue_bytes", "Bytes of these segments.", (each.overdue_bytes for each in directories)
    )
    yield from _one("verified_segments_total", "counter", "Segments verified by all passes.", status.verified_segments)
    yield from _one("verified_bytes_total", "counter", "Bytes verified by all passes.", status.verified_bytes)
    if status.oldest_ms is not None:
        words = "When the longest unverified segment was verified, among those that were."
        yield from _one("oldest_verification_timestamp_seconds", "gauge", words, status.oldest_ms / 1000)
    last = status.last_pass
    if last is not None:
        yield from _one("rate_bytes_per_second", "gauge", "The rate of the last pass.", last.bytes_per_s)
        words = "When the last pass ended, or began where it has not ended."
        yield from _one("last_run_timestamp_seconds", "gauge", words, (last.ended_ms or last.started_ms) / 1000)
        words = "Links, and directories that could not be listed, which the last pass did not read."
        yield from _one("last_run_unread_paths", "gauge", words, last.unread_count)
        words = "Whether the last pass verified all that was due."
        yield from _one("last_run_complete", "gauge", words, int(last.is_complete))
    name = "kafkalog_scrub_findings"
    yield from _head(name, "gauge", "Open findings.")
    counts = Counter((Severity(each.severity).label, each.code) for each in status.findings)
    for (severity, code), count in sorted(counts.items()):
        yield f"{name}{{{_label('severity', severity)},{_label('code', code)}}} {count}"


def _one(name: str, kind: str, meaning: str, value: float) -> Iterator[str]:
    name = f"kafkalog_scrub_{name}"
    yield from _head(name, kind, meaning)
    yield f"{name} {value}"


def _head(name: str, kind: str, meaning: str) -> tuple[str, str]:
    return f"# HELP {name} {meaning}", f"# TYPE {name} {kind}"


def _label(name: str, value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'{name}="{escaped}"'
