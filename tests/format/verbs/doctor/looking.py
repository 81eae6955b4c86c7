"""What the doctor says of directories that tests build."""

from __future__ import annotations

import struct
from pathlib import Path

from format.files import leader_epoch_checkpoint
from format.files.leader_epoch_checkpoint import EpochEntry
from format.node.target import targets_at
from format.verbs.doctor.diagnosis import Diagnosis
from format.verbs.doctor.doctor import DoctorRun
from format.verbs.report.report import ReportRun
from format.verbs.report.terms import Report, ReportTerms
from tests.building import BASE_TIMESTAMP, write_segment

DAY_MS = 24 * 60 * 60 * 1000
NOW_MS = BASE_TIMESTAMP + DAY_MS


def looked_at(*paths: Path, deep: bool = False, now_ms: int = NOW_MS) -> Report:
    """The report of a look at some paths."""
    kind = ReportRun if deep else DoctorRun
    run = kind(targets_at(paths, takes_empty=True), ReportTerms(now_ms))
    for _ in run.findings():
        pass
    return run.finish()


def diagnoses(*paths: Path, deep: bool = False, now_ms: int = NOW_MS) -> list[Diagnosis]:
    """The diagnoses of a look at some paths."""
    return looked_at(*paths, deep=deep, now_ms=now_ms).diagnoses


def codes(*paths: Path, deep: bool = False, now_ms: int = NOW_MS) -> list[str]:
    """The codes of the diagnoses, the most urgent first."""
    return [each.code for each in diagnoses(*paths, deep=deep, now_ms=now_ms)]


def node(
    root: Path,
    logs: dict[str, dict[int, list[bytes]]],
    *,
    node_id: int = 1,
    marks: dict[str, int] | None = None,
    is_clean: bool = False,
    cluster_id: str = "one",
) -> Path:
    """A log directory of partitions with segments by base offset, and the indexes of a broker.

    ``marks`` are high watermarks.
    """
    root.mkdir(parents=True)
    for name, segments in logs.items():
        (root / name).mkdir()
        for base_offset, content in segments.items():
            log = write_segment(root / name, base_offset, content)
            log.with_suffix(".index").touch()
            is_closed = base_offset != max(segments)
            log.with_suffix(".timeindex").write_bytes(_last_entry(content, base_offset) if is_closed else b"")
        epochs = leader_epoch_checkpoint.write([EpochEntry(0, 0)])
        (root / name / "leader-epoch-checkpoint").write_bytes(epochs)
    lines = [f"{name.rpartition('-')[0]} {name.rpartition('-')[2]} {offset}" for name, offset in (marks or {}).items()]
    (root / "replication-offset-checkpoint").write_text("\n".join(["0", str(len(lines)), *lines, ""]))
    (root / "meta.properties").write_text(f"version=1\ncluster.id={cluster_id}\nnode.id={node_id}\n")
    if is_clean:
        (root / ".kafka_cleanshutdown").touch()
        (root / "log-start-offset-checkpoint").write_text("0\n0\n")
    return root


def _last_entry(content: list[bytes], base_offset: int) -> bytes:
    """The entry of the largest timestamp, which a broker writes into the time index when it closes a segment."""
    log, at, latest = b"".join(content), 0, (-1, 0)
    while at < len(log):
        first, length = struct.unpack_from(">qi", log, at)
        (delta,), (timestamp,) = struct.unpack_from(">i", log, at + 23), struct.unpack_from(">q", log, at + 35)
        latest = max(latest, (timestamp, first + delta - base_offset))
        at += 12 + length
    return struct.pack(">qi", *latest)
