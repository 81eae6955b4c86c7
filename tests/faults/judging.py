"""What verify says of a log that a test builds, and what dump still reads of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from format.findings import Finding, Severity
from format.limits import DEFAULT_LIMITS, Limits
from format.rows.record_rows import RowBlock
from format.verbs.verify.verify import VerifyTerms, verify
from format.verbs.verify.walk import Level
from tests.dumping import dump

#: These logs have no indexes, and no broker looks for one here.
NOT_MEANT = frozenset({"index-missing"})


def partition_of(
    folder: Path, segments: Mapping[int, bytes] | bytes, side_files: Mapping[str, bytes] | None = None
) -> Path:
    """A partition directory with these segments by base offset (one log starts at 0) and these other files."""
    partition = folder / "t-0"
    partition.mkdir(parents=True, exist_ok=True)
    for base_offset, content in ({0: segments} if isinstance(segments, bytes) else segments).items():
        (partition / f"{base_offset:020d}.log").write_bytes(content)
    for name, content in (side_files or {}).items():
        (partition / name).write_bytes(content)
    return partition


def findings_of(path: Path, *, limits: Limits = DEFAULT_LIMITS, level: Level = Level.FULL) -> list[Finding]:
    return [each for each in verify(path, VerifyTerms(level, limits)) if each.code not in NOT_MEANT]


def codes_of(found: Iterable[Finding], at_least: Severity = Severity.INFO) -> list[str]:
    """The findings' codes, in order of their names."""
    return sorted(each.code for each in found if each.severity >= at_least)


def verdict(folder: Path, segments: Mapping[int, bytes] | bytes, **more: object) -> list[Finding]:
    """The findings for a log, or for segments by base offset."""
    return findings_of(partition_of(folder, segments), **more)  # type: ignore[arg-type]


def offsets_read(folder: Path) -> list[int]:
    """The offsets of all records that dump gives for the partition of ``partition_of``, in its order."""
    found: list[int] = []
    for item in dump(folder / "t-0", records=True):
        if isinstance(item, RowBlock):
            at = item.schema.names.index("offset")
            found += [row[at] for row in item.rows]
    return found
