"""A finding as a row of the schema FINDING, and back."""

from __future__ import annotations

from typing import Any

from format.columns import FINDING
from format.findings import FINDING_CODES, Cause, Certainty, Finding, Severity
from format.location import Location


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


def finding_of_row(row: tuple[Any, ...]) -> Finding:
    """The finding of a row of the schema FINDING. Raises ValueError for a row that is none, or of a later version."""
    values = dict(zip(FINDING.names, row, strict=True))
    lost, cause, severity = values["lost_offsets"], values["caused_by"], str(values["severity"]).upper()
    if (
        values["code"] not in FINDING_CODES
        or severity not in Severity.__members__
        or None in (values["path"], values["message"])
    ):
        raise ValueError(f"no finding that this version knows: {values['code']}")
    return Finding(
        values["code"],
        Severity[severity],
        Location(
            *(values[name] for name in ("path", "topic", "partition", "segment_base_offset")),
            *(values[name] for name in ("position", "length", "offset")),
        ),
        values["message"],
        Certainty(values["certainty"]),
        values["expected"],
        values["actual"],
        values["next_step"],
        None if lost is None else (int(lost[0]), int(lost[1])),
        None if cause is None else Cause(**cause),
    )
