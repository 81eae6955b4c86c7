"""A finding as a row of the schema FINDING."""

from __future__ import annotations

from typing import Any

from format.findings import Finding


def finding_row(finding: Finding) -> tuple[Any, ...]:
    """The columns of FINDING, in their order."""
    where = finding.location
    return (
        finding.code,
        finding.severity.label,
        finding.certainty.value,
        where.path,
        where.topic,
        where.partition,
        where.base_offset,
        where.position,
        where.length,
        where.offset,
        finding.message,
        finding.expected,
        finding.actual,
        finding.next_step,
        None if finding.lost_offsets is None else list(finding.lost_offsets),
        None if finding.caused_by is None else finding.caused_by.as_json(),
    )
